"""What the model predicts when the features of some nodes are set to 0, for many choices of nodes at once.

The graph stays as it is, edges and all, as in the authors' experiments. Copies of the graph that differ in their masks
are stacked into one big graph, where the model allows it: that is tried before it is relied on.

This takes any call of any model, which stays untouched. `instance`, for baselines and metrics, knows its models, calls
them as they are and lets gradients pass; the two share how copies of a graph are put side by side.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..locality.prepared import Place
from ..model_call.call import ModelCall, as_table, find_batch, find_edge_index
from ..model_call.shadow_model import run_plain

STACKED = 200_000
"""Nodes and edges of a stack at most."""


class Masking:
    """Masked predictions of one explained row."""

    def __init__(self, model: Any, place: Place, target: int) -> None:
        self.model, self.call, self.target = model, place.call, target
        self.row = int(place.rows[0])
        n = len(place.call.x)
        here = place.here(place.field).tolist()
        self._place = dict(zip(place.field.tolist(), here, strict=True))
        self._known: dict[frozenset[int], float] = {}
        self._everything = frozenset(range(n))
        self._num_rows = len(as_table(run_plain(model, place.call), place.call).values)
        self._stackable: bool | None = None

    def fidelity(self, group: Collection[int]) -> tuple[float, float]:
        """fidelity⁺ and fidelity⁻ of a group, by probability."""
        inside = self._inside(group)
        whole, without, alone = self._probabilities([self._everything, self._everything - inside, inside])
        return whole - without, whole - alone

    def gains(self, groups: list[frozenset[int]]) -> list[float]:
        """fidelity⁺ − fidelity⁻ of each group: the probability with the group alone minus that without the group."""
        inside = [self._inside(group) for group in groups]
        chances = self._probabilities([*inside, *(self._everything - group for group in inside)])
        return [alone - without for alone, without in zip(chances[: len(groups)], chances[len(groups) :], strict=True)]

    def _inside(self, group: Collection[int]) -> frozenset[int]:
        return frozenset(self._place[node] for node in group)

    def _probabilities(self, kept: list[frozenset[int]]) -> list[float]:
        """The probability of the class with the features of some nodes kept; each choice is computed once."""
        new = [nodes for nodes in dict.fromkeys(kept) if nodes not in self._known]
        if new:
            self._known.update(zip(new, self._computed(new), strict=True))
        return [self._known[nodes] for nodes in kept]

    def _computed(self, kept: list[frozenset[int]]) -> list[float]:
        x = self.call.x
        masks = torch.zeros(len(kept), len(x), dtype=torch.bool, device=x.device)
        for number, nodes in enumerate(kept):
            masks[number, list(nodes)] = True
        if len(kept) > 1 and self._stackable is None:
            self._stackable = self._try_stack()
        if not self._stackable:
            return [self._probability(self._row(masks[number])) for number in range(len(kept))]
        cuts = masks.split(copies_at_once(len(x), find_edge_index(self.call)))
        return [self._probability(row) for cut in cuts for row in self._stacked(cut)]

    def _probability(self, row: Tensor) -> float:
        """Of the class; a single output counts as that of a sigmoid."""
        return float(row.sigmoid() if len(row) == 1 else row.softmax(-1)[self.target])

    def _row(self, mask: Tensor) -> Tensor:
        """The explained row under one mask, ``[classes]``."""
        x = self.call.x
        return as_table(run_plain(self.model, self.call, (x, _masked(x, mask))), self.call).values[self.row]

    def _stacked(self, masks: Tensor) -> Tensor:
        """The explained row under each mask, ``[K, classes]``, from one forward pass."""
        x, copies = self.call.x, len(masks)
        stacked = _masked(x.repeat(copies, *[1] * (x.dim() - 1)), masks.reshape(-1))
        call, others = _stack(self.call, copies)
        output: Tensor = run_plain(self.model, call, (x, stacked), *others)
        return output.reshape(copies, self._num_rows, -1)[:, self.row]

    def _try_stack(self) -> bool:
        """Whether two masks give the same in a stack as they do alone."""
        masks = torch.ones(2, len(self.call.x), dtype=torch.bool, device=self.call.x.device)
        masks[1, ::2] = False
        alone = torch.stack([self._row(mask) for mask in masks])
        try:
            together = self._stacked(masks)
        except (RuntimeError, IndexError, ValueError, TypeError, AssertionError):
            return False  # the model is made for one graph
        return together.shape == alone.shape and torch.allclose(together, alone, rtol=1e-4, atol=1e-6)


def _masked(x: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask.reshape(-1, *[1] * (x.dim() - 1)), x, torch.zeros_like(x))


def _stack(call: ModelCall, copies: int) -> tuple[ModelCall, list[tuple[Tensor, Tensor]]]:
    """A call for several copies of its graph side by side: what else than the features changes, from what to what."""
    edge_index, batch, n = find_edge_index(call), find_batch(call), len(call.x)
    if edge_index is None:
        raise ValueError("no edges to stack")
    graphs = 1 if batch is None else int(batch.max()) + 1
    which = torch.arange(copies, device=edge_index.device)

    def repeated(value: Tensor) -> Tensor:
        if value is edge_index:
            return side_by_side(value, n, copies)
        if value is batch:
            return (value + graphs * which.unsqueeze(1)).reshape(-1)
        return of_copies(value, n, edge_index, copies)

    others = [(value, repeated(value)) for value in call.tensors() if value is not call.x]
    if batch is None and "batch" in call.names:
        call = replace(call, kwargs={**call.kwargs, "batch": torch.repeat_interleave(which, n)})
    return call, others


def copies_at_once(n: int, edge_index: Tensor | None) -> int:
    """How many copies of a graph of n nodes go into one pass."""
    return max(1, STACKED // (n + (0 if edge_index is None else edge_index.shape[1])))


def side_by_side(edge_index: Tensor, n: int, copies: int) -> Tensor:
    """The edges of several copies of a graph of n nodes, one behind the other."""
    which = torch.arange(copies, device=edge_index.device)
    return (edge_index.unsqueeze(1) + n * which.unsqueeze(1)).reshape(2, -1)


def of_copies(value: Any, n: int, edge_index: Tensor, copies: int) -> Any:
    """What has a row per node or per edge, for all copies; anything else as it is."""
    per_row = isinstance(value, Tensor) and value.dim() and len(value) in (n, edge_index.shape[1])
    return value.repeat(copies, *[1] * (value.dim() - 1)) if per_row else value
