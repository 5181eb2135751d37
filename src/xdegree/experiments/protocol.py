"""Who is explained, for which class, who competes, and what is true: the one place that says so.

The paper's protocol, as far as its text goes:

- *Synthetic graphs.* All nodes of all motifs are explained, right or wrong predictions alike. The nodes of the
  computation graph compete, the explained one among them; those of its own motif are true. AUC per explained node, then
  the mean; nodes whose computation graph is all motif or has no other motif node are left out and counted.
- *MUTAG.* The 1,015 mutagens that have a marked NO₂ or NH₂ edge are explained. Their edges compete, each once (both
  directions of it are one item, its score the mean of the two); the marked ones are true.
- *The class* is the true label, as the ground truth is the reason for that label. The paper does not say; its authors'
  code has it so.

The authors' code differs. On Tree-Cycles nodes that are predicted to be no motif, and on Tree-Grid all wrong
predictions, are left out. On Tree-Grid every motif node of the computation graph is true, whichever motif it belongs
to. Scores of MUTAG are those of class 0 minus class 1. ``authors=True`` does these; each of their models also has a
random split of its own (`xdegree.datasets.resplit`). The first of equal maxima wins there
(``Options.paper(ties="first")``); here they share. Everywhere models are chosen by validation loss; theirs were by test
loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from ..datasets import Dataset
from ..engine.options import Options
from ..metrics import auc, average, hop_controlled_auc
from ..models import Network

MUTAGEN = 0
"""The label of mutagens in Mutagenicity."""
PAPER_RULES = Options.paper()
"""The rules that every experiment uses unless it says otherwise, whatever the defaults are."""


@dataclass(frozen=True)
class Quality:
    """How well scores find the truth, as means over the explained instances."""

    auc: float
    hop_controlled: float | None
    """AUC among nodes at equal distance; None for graphs."""
    instances: int
    skipped: int
    """Instances where everything or nothing is true."""


def explained_nodes(dataset: Dataset, model: nn.Module, authors: bool = False) -> list[int]:
    """The nodes to explain."""
    data = dataset.data
    chosen = data.motif >= 0
    if authors and dataset.name in ("Tree-Cycles", "Tree-Grid"):
        with torch.no_grad():
            predicted = model(data.x, data.edge_index).argmax(-1)
        chosen = chosen & (predicted != 0 if dataset.name == "Tree-Cycles" else predicted == data.y)
    return [int(node) for node in chosen.nonzero().flatten()]


def explained_graphs(dataset: Dataset) -> list[int]:
    """The graphs to explain: mutagens with a marked edge."""
    return [i for i, graph in enumerate(dataset.graphs) if int(graph.y) == MUTAGEN and bool(graph.edge_mask.any())]


def drawn(items: Sequence[int], count: int | None, seed: int = 0) -> list[int]:
    """So many of the items, drawn without replacement, in their order; all of them for None."""
    if count is None or count >= len(items):
        return list(items)
    order = torch.randperm(len(items), generator=torch.Generator().manual_seed(seed))[:count]
    return [items[i] for i in sorted(order.tolist())]


@dataclass(frozen=True)
class NodeTruth:
    """The explained nodes of a synthetic graph with those that compete and how far away they are."""

    data: Data
    layers: int
    any_motif: bool = False
    """Whether nodes of other motifs are true as well, as in the authors' notebook of Tree-Grid."""

    @classmethod
    def of(cls, dataset: Dataset, model: Network, authors: bool) -> "NodeTruth":
        """The truth of a dataset by one of the protocols."""
        return cls(dataset.data, len(model.convs), any_motif=authors and dataset.name == "Tree-Grid")

    def quality(self, nodes: Sequence[int], scores: Sequence[Tensor]) -> Quality:
        """Of scores ``[N]`` of all nodes for each explained one."""
        plain, controlled = [], []
        for node, score in zip(nodes, scores, strict=True):
            distance = self.distance(node)
            field = distance <= self.layers
            motif = self.data.motif[field]
            own = motif >= 0 if self.any_motif else motif == self.data.motif[node]
            plain.append((score[field].double(), own))
            controlled.append((score[field].double(), own, distance[field]))
        whole, ring = average(auc, plain), average(hop_controlled_auc, controlled)
        return Quality(whole.mean, ring.mean, len(whole.values), whole.skipped)

    def distance(self, node: int) -> Tensor:
        """Hops ``[N]`` from a node, more than the layers where it is farther than the model looks."""
        edge_index = self.data.edge_index
        far = torch.full((int(self.data.num_nodes or 0),), self.layers + 1)
        far[node] = 0
        for hops in range(1, self.layers + 1):
            reached = edge_index[0, far[edge_index[1]] < hops]
            far[reached] = far[reached].clamp(max=hops)
        return far


def pairs(graph: Data) -> tuple[Tensor, Tensor, Tensor]:
    """The undirected edges ``[2, P]`` of a graph, the place ``[E]`` of each directed one among them, the truth ``[P]``.

    Self-loops, which Mutagenicity does not have, would be pairs of a node with itself.
    """
    ends = torch.stack([graph.edge_index.amin(0), graph.edge_index.amax(0)])
    found, place = ends.unique(dim=1, return_inverse=True)
    truth = torch.zeros(found.shape[1], dtype=torch.bool)
    truth[place[graph.edge_mask.bool()]] = True
    return found, place, truth


def by_pair(scores: Tensor, place: Tensor, count: int) -> Tensor:
    """The mean score ``[P]`` of the directed edges of each pair."""
    total = torch.zeros(count, dtype=torch.float64).index_add(0, place, scores.double())
    return total / torch.bincount(place, minlength=count)


def edge_quality(graphs: Sequence[Data], scores: Sequence[Tensor]) -> Quality:
    """Of scores ``[P]`` of the undirected edges of each graph."""
    found = average(auc, [(s.double(), pairs(g)[2]) for g, s in zip(graphs, scores, strict=True)])
    return Quality(found.mean, None, len(found.values), found.skipped)
