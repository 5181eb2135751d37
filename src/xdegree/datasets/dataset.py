"""One small interface for all datasets, and the row of the paper's table of statistics."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ..results.tables import aligned

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = ("train", "val", "test")


@dataclass(frozen=True)
class Stats:
    """A row of the paper's table; edges count both directions, as there."""

    name: str
    """Of the dataset."""
    nodes: int
    """In all graphs."""
    edges: int
    """In all graphs, both directions."""
    graphs: int
    """How many."""
    labels: int
    """How many classes."""
    features: str
    """What the node features are, in words."""
    note: str = ""
    """What a reader must know of the data."""


@dataclass(frozen=True)
class Dataset:
    """Graphs with labels, splits and, where it is known, the ground truth of the labels.

    Every graph is a PyG ``Data`` with ``x``, ``edge_index`` and ``y``. The truth is ``edge_mask`` [E], the edges that
    make the label, and ``motif`` [N], the number of the motif that a node belongs to, -1 where there is none. A dataset
    for node classification has one graph, split by ``train_mask``, ``val_mask`` and ``test_mask``.
    """

    name: str
    """As tables call it."""
    graphs: Sequence[Data]
    """All of them; one for node classification."""
    level: Literal["node", "graph"]
    """Whether labels are those of nodes or of graphs."""
    features: str
    """What the node features are, in words."""
    splits: dict[Split, Tensor]
    """Ids of nodes or graphs, ascending."""
    note: str = ""
    """What a reader of results must know, as that the data are a rebuild."""
    held_out: dict[str, Tensor] = field(default_factory=dict)
    """Ids of graphs that are in none of the splits, such as another corpus, by name."""

    @property
    def data(self) -> Data:
        """The graph of a dataset that has only one."""
        if len(self.graphs) != 1:
            raise ValueError(f"{self.name} has {len(self.graphs)} graphs; take one of `graphs`")
        return self.graphs[0]

    @property
    def num_features(self) -> int:
        """The width of the node features."""
        return int(self.graphs[0].num_features)

    @property
    def num_classes(self) -> int:
        """How many labels there are."""
        return int(max(int(graph.y.max()) for graph in self.graphs)) + 1

    @property
    def constant_features(self) -> bool:
        """Whether all nodes have the same features, so that attention has nothing to tell them apart by."""
        first = self.graphs[0].x[0]
        return all(bool((graph.x == first).all()) for graph in self.graphs)

    def part(self, split: Split) -> list[Data]:
        """The graphs of one split."""
        return [self.graphs[i] for i in self.splits[split].tolist()]

    def stats(self) -> Stats:
        """The row of the paper's table of statistics."""
        return Stats(
            self.name,
            nodes=sum(int(graph.num_nodes or 0) for graph in self.graphs),
            edges=sum(int(graph.num_edges) for graph in self.graphs),
            graphs=len(self.graphs),
            labels=self.num_classes,
            features=self.features,
            note=self.note,
        )


def one_hot_degree(dataset: Dataset, width: int = 10) -> Dataset:
    """The same graphs with the degree of a node as its features, one-hot, the last entry for `width - 1` and more.

    Constant features are replaced, others are kept in front.

    For networks with attention: attention weights sum to one, so where all nodes have the same features every node
    receives just these features, whatever its neighbors are, and all outputs are equal.
    """
    graphs, replaced = [], dataset.constant_features
    for graph in dataset.graphs:
        count = torch.bincount(graph.edge_index[1], minlength=int(graph.num_nodes or 0)).clamp(max=width - 1)
        other = copy.copy(graph)
        degree = torch.nn.functional.one_hot(count, width).to(graph.x.dtype)
        other.x = degree if replaced else torch.cat([graph.x, degree], 1)
        graphs.append(other)
    return replace(
        dataset,
        graphs=tuple(graphs),
        features="degree, one-hot" if replaced else f"{dataset.features}; degree, one-hot",
    )


def table(rows: Sequence[Stats]) -> str:
    """Rows of statistics as text, columns aligned."""
    head = ("dataset", "nodes", "edges", "graphs", "labels", "features")
    lines = [head] + [
        (r.name, f"{r.nodes:,}", f"{r.edges:,}", f"{r.graphs:,}", str(r.labels), r.features) for r in rows
    ]
    notes = [f"{r.name}: {r.note}" for r in rows if r.note]
    return "\n".join([aligned(lines), *notes])


def random_split(count: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Random masks ``[count]`` of 80, 10 and 10 percent."""
    tenth = count // 10
    part = torch.from_numpy(rng.permutation(count))
    return part >= 2 * tenth, part < tenth, (part >= tenth) & (part < 2 * tenth)


def split_ids(count: int, seed: int) -> dict[Split, Tensor]:
    """The same as ids of the three splits."""
    masks = random_split(count, np.random.default_rng(seed))
    return {split: mask.nonzero().flatten() for split, mask in zip(SPLITS, masks, strict=True)}


def resplit(dataset: Dataset, seed: int) -> Dataset:
    """The same dataset with another random split of 80, 10 and 10 percent, as the authors' code draws one each time."""
    splits = split_ids(len(dataset.data.y) if dataset.level == "node" else len(dataset.graphs), seed)
    graphs = dataset.graphs
    if dataset.level == "node":
        data = copy.copy(dataset.data)
        for split, ids in splits.items():
            data[f"{split}_mask"] = torch.zeros(len(data.y), dtype=torch.bool).index_fill(0, ids, value=True)
        graphs = (data,)
    note = "; ".join(part for part in (dataset.note, f"random split {seed}") if part)
    return replace(dataset, graphs=graphs, splits=splits, note=note)


def node_dataset(name: str, data: Data, features: str, note: str = "") -> Dataset:
    """A dataset of one graph whose nodes are split by its masks."""
    splits = {split: data[f"{split}_mask"].nonzero().flatten() for split in SPLITS}
    return Dataset(name, (data,), "node", features, splits, note)


def graph_dataset(name: str, graphs: Sequence[Data], features: str, seed: int, note: str = "") -> Dataset:
    """A dataset of many graphs, split at random."""
    return Dataset(name, tuple(graphs), "graph", features, split_ids(len(graphs), seed), note)
