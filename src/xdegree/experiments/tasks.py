"""One trained model and what of it is explained: what the experiments on the paper's five datasets share."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from ..baselines import Scores
from ..baselines.instance import Instance, instance
from ..datasets import Dataset
from ..models import Network
from ..recipes import Kind
from .protocol import (
    MUTAGEN,
    NodeTruth,
    Quality,
    by_pair,
    drawn,
    edge_quality,
    explained_graphs,
    explained_nodes,
    pairs,
)
from .store import NODE_SETS, timed

DATASETS = (*NODE_SETS, "mutag")
TITLES = ("BA-Shapes", "BA-Community", "Tree-Cycles", "Tree-Grid", "MUTAG")
KINDS: tuple[Kind, ...] = ("GCN", "GAT")
QUICK = 3
"""Instances of each method with ``--quick``."""
TRAINING = 30
"""Instances that PGExplainer learns from; it is not judged on them."""


@dataclass(frozen=True)
class Task:
    """One trained model, and what of it is explained."""

    model: Network
    dataset: Dataset
    authors: bool
    """Whether by the authors' protocol, see `protocol`."""
    quick: bool

    @cached_property
    def explained(self) -> list[int]:
        """Ids of nodes or graphs."""
        if self.dataset.level == "graph":
            return explained_graphs(self.dataset)
        return explained_nodes(self.dataset, self.model, self.authors)

    @cached_property
    def training(self) -> list[Instance]:
        """What PGExplainer learns from."""
        return [self.instance(i) for i in self.learnt_from]

    @cached_property
    def learnt_from(self) -> list[int]:
        """Ids of `training`."""
        return drawn(self.explained, QUICK if self.quick else TRAINING, seed=1)

    @cached_property
    def _cut(self) -> dict[int, tuple[Instance, float]]:
        return {}

    def instance(self, i: int) -> Instance:
        """The prediction of a node or a graph, for its true class; cut out once for all methods."""
        if i not in self._cut:
            self._cut[i] = timed(lambda: self.cut_out(i))
        return self._cut[i][0]

    def cutting(self, i: int) -> float:
        """The seconds that cutting out the computation graph took."""
        self.instance(i)
        return self._cut[i][1]

    def cut_out(self, i: int) -> Instance:
        """The same, cut out anew, as where that is timed."""
        if self.dataset.level == "graph":
            graph = self.dataset.graphs[i]
            return instance(self.model, graph.x, graph.edge_index, target=MUTAGEN)
        data = self.dataset.data
        return instance(self.model, data.x, data.edge_index, index=i, target=int(data.y[i]))

    def judge(self, ids: Sequence[int], found: Sequence[Tensor]) -> Quality:
        """Scores of nodes, or of the undirected edges of graphs, against the truth."""
        if self.dataset.level == "graph":
            return edge_quality([self.dataset.graphs[i] for i in ids], found)
        return NodeTruth.of(self.dataset, self.model, self.authors).quality(ids, found)

    def items(self, i: int, scores: Scores) -> Tensor:
        """What is judged: a method's scores of nodes, or of undirected edges."""
        if self.dataset.level == "node":
            return scores.node.detach()
        graph = self.dataset.graphs[i]
        _, place, truth = pairs(graph)
        return by_pair(scores.edges(graph.edge_index).detach(), place, len(truth))
