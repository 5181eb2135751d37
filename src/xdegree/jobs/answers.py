"""What a job keeps of an explanation: the rows of its tables, and nothing of the size of the graph."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..results.explanation import Explanation

Rows = dict[str, Tensor]
"""Columns of a table of scores: what each is of, and the score."""


@dataclass(frozen=True)
class Answer:
    """The explanation of one instance, as it is written."""

    target: int
    output: list[float]
    """The model's output for all classes."""
    num_nodes: int
    scores: Rows
    edges: Rows | None
    """Of edges by their end points, if asked for."""

    @property
    def prediction(self) -> float:
        """The output for the class that is explained."""
        return self.output[self.target]

    @classmethod
    def of(cls, e: Explanation) -> "Answer":
        """Copies, so that the explanation, which has a number for every node of the graph, can go."""
        edges = _scored_edges(e) if e.edge_scores is not None and e.of != "edge" else None
        return cls(e.target, e.prediction.tolist(), e.num_nodes, _scored(e), edges)


Outcome = tuple[int, Answer | str]
"""An instance and its answer, or the reason why there is none."""


def _scored(e: Explanation) -> Rows:
    """A row for each node or edge that can contribute; of features, which are many, for those that do."""
    if e.of == "node":
        return {"node": e.nodes, "score": e.scores[e.nodes]}
    if e.of == "edge":
        return _scored_edges(e)
    scores = e.scores.unsqueeze(1) if e.scores.dim() == 1 else e.scores.flatten(1)
    row, feature = scores.nonzero(as_tuple=True)
    whose = {"node": row} if e.of == "feature" else _ends(e, row)
    return {**whose, "feature": feature, "score": scores[row, feature]}


def _scored_edges(e: Explanation) -> Rows:
    """A row for each edge between nodes that can contribute."""
    assert e.edge_scores is not None
    inside = _inside(e)
    return {**_ends(e, inside), "score": e.edge_scores[inside]}


def _ends(e: Explanation, edges: Tensor) -> Rows:
    assert e.edge_index is not None
    return {"edge": edges, "source": e.edge_index[0, edges], "to": e.edge_index[1, edges]}


def _inside(e: Explanation) -> Tensor:
    assert e.edge_index is not None
    if len(e.nodes) == e.num_nodes:
        return torch.arange(e.edge_index.shape[1])
    return torch.isin(e.edge_index, e.nodes).all(0).nonzero().flatten()
