"""What still matters of a pass whose output is read at a few rows only.

Messages travel one hop a round. A row that is further from all wanted rows than rounds are left can no longer reach
them, so its targets need not be worked on: with three layers the last one is asked about the wanted rows alone, the one
before about their neighbours. This is a guess about the model, made from the layers that pass messages; whether it was
right is known for certain in the end, because every sparse target knows which of its rows are complete.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing


class NeedsWhole(Exception):
    """A target is needed where it was left out or must not be written out; the pass must be made without a focus."""


class TooMuch(Exception):
    """The pairs of a pass would exceed the memory budget by some factor; it must be made in parts."""

    def __init__(self, factor: float) -> None:
        super().__init__(f"{factor:.1f} times the memory budget")
        self.factor = factor


WORKING_SET = 6
"""Values of the largest number of pairs that are alive at one moment: operands, results, shares, codes."""


class Focus:
    """The rows that are wanted, and how many rounds of messages are still to come."""

    def __init__(self, distance: Tensor, rounds: int, limit: int | None = None) -> None:
        self.distance = distance
        """Hops from each row to the nearest wanted one."""
        self.left = rounds
        self.limit = limit
        """Bytes that the pairs of the pass may take."""
        self.edges: Tensor | None = None
        """During a round: which of its edges lead to rows that matter afterwards."""

    def attach(self, replica: nn.Module) -> None:
        """Follow the rounds of messages by PyG's own hooks."""
        for module in replica.modules():
            if isinstance(module, MessagePassing):
                module.register_edge_update_forward_pre_hook(self._begin)
                module.register_propagate_forward_pre_hook(self._begin)
                module.register_propagate_forward_hook(self._end)

    def _begin(self, module: Any, args: Any) -> None:
        edges = args[0]
        plain = type(edges) is Tensor and edges.layout == torch.strided and edges.dim() == 2
        ends = edges[1 if module.flow == "source_to_target" else 0] if plain else None
        fits = ends is not None and (not len(ends) or int(ends.max()) < len(self.distance))
        self.edges = self.distance[ends] < self.left if fits else None

    def _end(self, _module: Any, _args: Any, _output: Any) -> None:
        self.left -= 1
        self.edges = None

    def rows(self, size: int) -> Tensor | None:
        """Which of so many rows matter now; None if that cannot be told."""
        if self.edges is not None or size != len(self.distance):
            return None
        return self.distance <= self.left

    def admit(self, pairs: int, bytes_each: int) -> None:
        """Refuse more pairs than the budget allows, before they are made."""
        if self.limit is not None:
            wanted = pairs * (bytes_each + 16) * WORKING_SET
            if wanted > self.limit:
                raise TooMuch(wanted / self.limit)
