"""Variants of one call, each with some of its nodes and edges, side by side as one call: many of them in one pass."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data.data import BaseData

from ..model_call.call import Level, ModelCall, find_batch, find_edge_index, parameters_of
from .parts import subgraph_call

AT_ONCE = 2**15
"""Nodes and edges of a stack at most: more at once do not fit into the cache of a processor, and take longer."""
LARGE = 2**25
"""Features of a stack, if a graph is so large that only a few copies of it go into one."""


@dataclass(frozen=True)
class Stack:
    """Several variants of a call as one."""

    call: ModelCall
    rows: Tensor
    """``[K]``: the explained row of each."""
    num_rows: int
    """Of the output, if the model takes several graphs at once."""


@dataclass(frozen=True)
class Variants:
    """One prediction of a call, from which variants with fewer nodes and edges are made."""

    model: Any
    call: ModelCall
    row: int
    level: Level
    num_rows: int

    @property
    def edge_index(self) -> Tensor:
        """Of the whole call."""
        found = find_edge_index(self.call)
        if found is None:
            raise ValueError("edges can be cut where the model takes edge_index [2, E], or a dict of them by type")
        return found

    @property
    def at_once(self) -> int:
        """How many copies of all nodes and edges go into one pass."""
        edges, x = find_edge_index(self.call), self.call.x
        size = len(x) + (0 if edges is None else edges.shape[1])
        return max(1, AT_ONCE // size, min(8, LARGE // x.numel()))

    def stack(self, nodes: Tensor, edges: Tensor) -> Stack:
        """Variants with some nodes ``[K, N]`` and some of the edges between these, ``[K, E]``."""
        count, n = nodes.shape
        kept = nodes.flatten().nonzero().flatten()
        number = torch.full((count * n,), -1, device=kept.device)
        number[kept] = torch.arange(len(kept), device=kept.device)
        first = n * torch.arange(count, device=kept.device)
        variant, edge = edges.nonzero(as_tuple=True)
        ends = number[self.edge_index[:, edge] + first[variant]]
        if self.level == "node":
            rows, num_rows = number[first + self.row], len(kept)
        else:
            each = self.num_rows if self.level == "graph" else 1
            rows, num_rows = torch.arange(count, device=kept.device) * each, count * each
            rows = rows + self.row if self.level == "graph" else rows
        given = self.call.get("edge_label_index")
        links = number[given[:, self.row : self.row + 1] + first] if isinstance(given, Tensor) else None
        batch = find_batch(self.call)
        graphs = 1 if batch is None else int(batch.max()) + 1
        graph = kept // n * graphs + (0 if batch is None else batch[kept % n])
        call = subgraph_call(self.call, self.edge_index, kept % n, edge, ends, links, graph)
        return Stack(call if batch is not None or count == 1 else self._with_batch(call, graph), rows, num_rows)

    def _with_batch(self, call: ModelCall, batch: Tensor) -> ModelCall:
        """The call with the graph of each node, where the model can be told it."""
        if call.args and isinstance(call.args[0], BaseData):
            data = copy(call.args[0])
            data.batch = batch
            return replace(call, args=(data, *call.args[1:]))
        names = [parameter.name for parameter in parameters_of(self.model)]
        if "batch" not in names:
            return call
        if names.index("batch") < len(call.args):  # given as None
            args = [batch if i == names.index("batch") else value for i, value in enumerate(call.args)]
            return replace(call, args=tuple(args))
        return replace(call, kwargs={**call.kwargs, "batch": batch})


def side_by_side(edge_index: Tensor, n: int, copies: int) -> Tensor:
    """The edges of several copies of a graph of n nodes, one behind the other."""
    which = torch.arange(copies, device=edge_index.device)
    return (edge_index.unsqueeze(1) + n * which.unsqueeze(1)).reshape(2, -1)


def of_copies(value: Any, n: int, edge_index: Tensor, copies: int) -> Any:
    """What has a row per node or per edge, for all copies; anything else as it is."""
    per_row = isinstance(value, Tensor) and value.dim() and len(value) in (n, edge_index.shape[1])
    return value.repeat(copies, *[1] * (value.dim() - 1)) if per_row else value
