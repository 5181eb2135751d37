"""One prediction that methods explain, cut to its computation graph, and its variants with other features.

Baselines and metrics work on it; the engine does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from ..engine.torch_private import OpOverload
from ..locality.prepared import PreparedCall
from ..locality.stacking import AT_ONCE, of_copies, side_by_side
from ..model_call.call import check_rows, check_target, find_edge_index
from ..model_call.split_points import mean_features
from ..removal import Task, are_probabilities, measured


@dataclass(frozen=True)
class Instance:
    """A prediction of a node or of a single graph; tensors are those of its computation graph, numbered from 0."""

    model: nn.Module
    """The user's own: a method that writes to it works on a copy."""
    x: Tensor
    edge_index: Tensor
    kwargs: Mapping[str, Any]
    row: int
    """The explained row of the output."""
    target: int
    """The explained class."""
    prediction: Tensor
    """The explained row itself, ``[classes]``."""
    level: str
    num_nodes: int
    """Of the whole graph."""
    num_edges: int
    nodes: Tensor | None
    """The nodes of the computation graph by their own ids; None if that is the whole graph."""
    edges: Tensor | None
    field: Tensor
    """The nodes that can contribute, by their own ids."""
    mean: Tensor
    """The mean features ``[F]`` of the whole graph, 0 in columns that do not vary: a node without properties."""
    operations: Sequence[OpOverload]
    """Those of the model: the last of them tell whether outputs are probabilities."""

    @property
    def local_field(self) -> Tensor:
        """The nodes that can contribute, as the computation graph numbers them."""
        return self.field if self.nodes is None else torch.searchsorted(self.nodes, self.field)

    def output(self, x: Tensor) -> Tensor:
        """The explained row for other features ``[n, F]``."""
        return self._table(self.model(x, self.edge_index, **self.kwargs), 1)[0]

    def outputs(self, xs: Tensor) -> Tensor:
        """The explained row ``[K, classes]`` for each of several features ``[K, n, F]``; gradients pass through."""
        return torch.cat([self._stacked(part) for part in xs.split(self._at_once)])

    @torch.no_grad()
    def masked(self, kept: Tensor) -> Tensor:
        """The explained row ``[K, classes]`` with the features of all but the kept nodes ``[K, n]`` set to 0.

        Edges stay, as in the authors' experiments.
        """
        zero = self.x.new_zeros(())
        parts = [torch.where(part.unsqueeze(-1), self.x, zero) for part in kept.split(self._at_once)]
        return torch.cat([self._stacked(part) for part in parts])

    def probabilities(self, kept: Tensor) -> Tensor:
        """The probability ``[K]`` of the explained class under the same masks."""
        return self.measured(self.masked(kept), "classification")

    def measured(self, rows: Tensor, task: Task) -> Tensor:
        """The probability ``[K]`` of the explained class, or the number of a regression, in outputs ``[K, C]``."""
        already = are_probabilities(self.prediction[None], task, self.operations)
        return measured(rows, self.target, task, already)

    @property
    def _at_once(self) -> int:
        """How many copies of the graph go into one pass."""
        return max(1, AT_ONCE // (len(self.x) + self.edge_index.shape[1]))

    def _stacked(self, xs: Tensor) -> Tensor:
        """Copies of the graph side by side in one pass; one after the other where the model is made for one graph."""
        copies, n = len(xs), len(self.x)
        takes_batch = "batch" in signature(self.model.forward).parameters
        if copies == 1 or (self.level == "graph" and not takes_batch):
            return torch.stack([self.output(x) for x in xs])
        edges = side_by_side(self.edge_index, n, copies)
        kwargs = {name: of_copies(value, n, self.edge_index, copies) for name, value in self.kwargs.items()}
        if self.level == "graph":
            kwargs["batch"] = torch.arange(copies, device=xs.device).repeat_interleave(n)
        return self._table(self.model(xs.reshape(copies * n, -1), edges, **kwargs), copies)

    def _table(self, output: Tensor, copies: int) -> Tensor:
        """The explained row of each copy."""
        rows = len(self.x) if self.level == "node" else 1
        return output.reshape(copies, rows, -1)[:, self.row]

    def of_nodes(self, scores: Tensor) -> Tensor:
        """Scores ``[n]`` of the computation graph in the numbering of the whole graph ``[N]``; 0 outside."""
        return _spread(scores, self.nodes, self.num_nodes)

    def of_edges(self, scores: Tensor) -> Tensor:
        """Scores of edges ``[e]`` in the numbering of the whole graph ``[E]``; 0 outside."""
        return _spread(scores, self.edges, self.num_edges)

    def here(self, mask: Tensor) -> Tensor:
        """What is said of all nodes ``[…, N]``, of those of the computation graph ``[…, n]``."""
        return mask if self.nodes is None else mask[..., self.nodes]

    def distance(self) -> Tensor:
        """Hops ``[n]`` from the explained node, along edges in any direction; n where there is no way."""
        n = len(self.x)
        far = torch.full((n,), n, device=self.x.device)
        if self.level != "node":
            raise ValueError("the distance to the explained node is for predictions of nodes, not of graphs")
        far[self.row] = 0
        ends = torch.cat([self.edge_index, self.edge_index.flip(0)], 1)
        for _ in range(n):
            nearer = far.scatter_reduce(0, ends[1], far[ends[0]] + 1, "amin")
            if torch.equal(nearer, far):
                break
            far = nearer
        return far


def instance(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor,
    *,
    index: int | None = None,
    target: int | None = None,
    **kwargs: Any,
) -> Instance:
    """The prediction of node `index`, or of the graph, ready to be explained.

    Args:
        model: called as ``model(x, edge_index, **kwargs)``, in eval mode; returns logits ``[N, classes]`` of nodes or
            ``[1, classes]`` of a graph.
        x: node features ``[N, F]``.
        edge_index: ``[2, E]``.
        index: the node; None for a graph.
        target: the class that is explained; the predicted one by default.
        **kwargs: further arguments of the model.
    """
    prepared = PreparedCall.of(model, (x, edge_index), kwargs)
    # Of a single node, the number of rows does not tell a graph's prediction from a node's.
    alone = index is None and len(x) == 1 and "batch" in signature(model.forward).parameters
    table = prepared.table("graph" if alone else None)
    if table.level == "link":
        raise ValueError("methods of xdegree.baselines explain predictions of nodes and graphs, not of links")
    rows, single = check_rows(index, table)
    if not single or len(rows) != 1:
        raise ValueError(f"one prediction is explained at a time (got index={index!r})")
    place = prepared.proven_place(torch.tensor(rows, device=x.device), table.level, induced=True)
    inner = find_edge_index(place.call)
    assert inner is not None
    return Instance(
        model,
        place.call.x,
        inner,
        dict(place.call.kwargs),
        row=int(place.rows[0]),
        target=check_target(target, table.values[rows[0]]),
        prediction=table.values[rows[0]].detach(),
        level=table.level,
        num_nodes=len(x),
        num_edges=edge_index.shape[1],
        nodes=place.nodes,
        edges=place.edges,
        field=place.field,
        mean=mean_features(x),
        operations=prepared.flow.operations,
    )


def _spread(scores: Tensor, own: Tensor | None, size: int) -> Tensor:
    if own is None:
        return scores
    out = scores.new_zeros(size)
    out[own] = scores
    return out
