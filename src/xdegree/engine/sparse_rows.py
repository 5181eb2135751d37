"""Targets that are stored only where they can be other than zero, and which of their rows still matter.

A single node's portion lives in its l-hop ball at layer l, so almost all of a dense ``[K, N, F]`` is zero. What most
layers do to rows, they do to each row by itself; then it is enough to work on the (group, row) pairs that matter.

Messages travel one hop a round. A row that is further from all wanted rows than rounds are left can no longer reach
them, so its targets need not be worked on: with three layers the last one is asked about the wanted rows alone, the one
before about their neighbors. `ActiveRows` keeps count. Whether it was right to leave rows out is known in the end,
because every sparse target knows which of its rows are complete.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing


class NeedsWhole(Exception):
    """A target is needed where it was left out or must not be written out; the pass must be made without a active."""


class TooMuch(Exception):
    """The pairs of a pass would exceed the memory budget by some factor; it must be made in parts."""

    def __init__(self, factor: float) -> None:
        super().__init__(f"{factor:.1f} times the memory budget")
        self.factor = factor


WORKING_SET = 6
"""Values of the largest number of pairs that are alive at one moment: operands, results, shares, codes."""


class ActiveRows:
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


DENSE_ABOVE = 1 / 6
"""The share of pairs above which writing out everything is cheaper: dense kernels do several numbers at a time."""


class SparseRows:
    """A target ``[K, N, …]`` as the values of some (row, group) pairs, sorted by row, then group.

    All else is zero, or what ``rest`` says. With a active, rows that do not matter are left out.
    """

    __slots__ = ("_row", "active", "code", "groups", "known", "left", "rest", "size", "values")

    def __init__(
        self,
        groups: int,
        size: int,
        code: Tensor,
        values: Tensor,
        active: ActiveRows | None = None,
        known: Tensor | None = None,
        rest: Tensor | None = None,
    ) -> None:
        self.groups = groups
        self.size = size
        self.code = code
        """``row · K + group`` of each pair, in order and without repetition."""
        self.values = values
        self.active = active
        self.known = known
        """Which rows are complete; None for all of them."""
        self.rest = rest
        """``[N, …]``: what all pairs that are not stored have; None for zero."""
        self.left = -1
        """The rounds that were left when rows were last left out."""
        self._row: Tensor | None = None

    @property
    def shape(self) -> torch.Size:
        """``[K, N, …]``, as if it were written out."""
        return torch.Size([self.groups, self.size, *self.values.shape[1:]])

    @property
    def row(self) -> Tensor:
        """The row of each pair."""
        if self._row is None:
            self._row = torch.div(self.code, self.groups, rounding_mode="floor")
        return self._row

    @property
    def group(self) -> Tensor:
        """The group of each pair."""
        return self.code % self.groups

    def with_values(self, values: Tensor, rest: Tensor | None = None) -> "SparseRows":
        """Other values for the same pairs."""
        out = SparseRows(self.groups, self.size, self.code, values, self.active, self.known, rest)
        out.left, out._row = self.left, self._row
        return out

    def with_code(self, code: Tensor) -> "SparseRows":
        """The same rows with other pairs, whose values are still to be found."""
        return SparseRows(self.groups, self.size, code, self.values[:0], self.active, self.known)

    def to(self, dtype: torch.dtype) -> "SparseRows":
        """The same in another precision."""
        if self.values.dtype == dtype:
            return self
        return self.with_values(self.values.to(dtype), None if self.rest is None else self.rest.to(dtype))

    def dense(self) -> Tensor:
        """Written out, rows first in memory."""
        if self.active is not None:
            raise NeedsWhole
        shape = (self.size, self.groups, *self.values.shape[1:])
        out = self.values.new_zeros(shape)
        if self.rest is not None:
            out += self.rest.unsqueeze(1)
        out.view(self.size * self.groups, *self.values.shape[1:])[self.code] = self.values
        return out.movedim(1, 0)

    def trimmed(self) -> "SparseRows":
        """Without the rows that no longer matter."""
        if self.active is None or self.left == self.active.left:
            return self
        matter = self.active.rows(self.size)
        if matter is None:
            return self
        kept = matter[self.row]
        known = matter if self.known is None else matter & self.known
        out = SparseRows(self.groups, self.size, self.code[kept], self.values[kept], self.active, known, self.rest)
        out.left = self.active.left
        return out

    def at(self, code: Tensor) -> Tensor:
        """The values of other pairs, which are in order too."""
        if code is self.code:
            return self.values
        if not len(self.code):
            found = self.values.new_zeros(len(code), *self.values.shape[1:])
            return found if self.rest is None else self.rest[torch.div(code, self.groups, rounding_mode="floor")]
        place = torch.searchsorted(self.code, code).clamp_(max=len(self.code) - 1)
        missing = (self.code[place] != code).reshape(-1, *[1] * (self.values.dim() - 1))
        if self.rest is None:
            return self.values[place].masked_fill_(missing, 0)
        return torch.where(missing, self.rest[torch.div(code, self.groups, rounding_mode="floor")], self.values[place])

    def gathered(self, index: Tensor) -> "SparseRows":
        """The rows that index names, as messages do: ``[K, E, …]``; during a round only along edges that matter."""
        along = self._along(index)
        edges = None if along is None else along.nonzero().flatten()
        asked = index if edges is None else index[edges]
        counts = torch.bincount(self.row, minlength=self.size)
        lengths = counts[asked]
        total = int(lengths.sum())
        if self.active is not None:
            self.active.admit(total, self.values[0:1].numel() * self.values.element_size())
        nth = torch.repeat_interleave(lengths, output_size=total)
        shift = (counts.cumsum(0) - counts)[asked] - (lengths.cumsum(0) - lengths)
        place = torch.arange(total, device=index.device).add_(shift[nth])
        edge = nth if edges is None else edges[nth]
        known = along if self.known is None else self.known[index] if along is None else self.known[index] & along
        rest = None if self.rest is None else self.rest[index]
        code = edge * self.groups + self.group[place]
        out = SparseRows(self.groups, len(index), code, self.values[place], self.active, known, rest)
        out._row = edge
        return out

    def _along(self, index: Tensor) -> Tensor | None:
        """Which edges matter, if index names the sources of the edges of a round."""
        edges = None if self.active is None else self.active.edges
        return edges if edges is not None and len(edges) == len(index) else None

    def reach(self, index: Tensor) -> int:
        """How many pairs `gathered` would give."""
        lengths, along = torch.bincount(self.row, minlength=self.size)[index], self._along(index)
        return int((lengths if along is None else lengths * along).sum())

    def summed(self, index: Tensor, size: int) -> "SparseRows":
        """The rows summed by the places that index names."""
        if self.rest is not None:
            raise NeedsWhole
        out = coalesced(self.groups, size, index[self.row] * self.groups + self.group, self.values)
        out.active = self.active
        if self.known is not None:
            out.known = torch.ones(size, dtype=torch.bool, device=index.device)
            out.known[index[~self.known]] = False
        return out

    def wanted(self, rows: Tensor) -> "SparseRows":
        """The pairs of some rows, which must be complete."""
        if int(rows.max()) >= self.size or (self.known is not None and not bool(self.known[rows].all())):
            raise NeedsWhole
        return self.gathered(rows)


class Singles:
    """Some nodes, each a group of its own: what a mask ``[K, N]`` would say, without the mask."""

    def __init__(self, nodes: Tensor, asked: Tensor) -> None:
        self.nodes = nodes
        """In order and without repetition."""
        self.asked = asked
        """``[N]``: the nodes that are groups in this pass or another one; what others contribute is not known."""

    def __len__(self) -> int:
        return len(self.nodes)

    def mask_of(self, group: int, x: Tensor) -> Tensor:
        """One group as a mask ``[1, N]``."""
        mask = torch.zeros(1, len(x), dtype=torch.bool, device=x.device)
        mask[0, self.nodes[group]] = True
        return mask

    def split(self, x: Tensor, active: ActiveRows) -> SparseRows:
        """The features of each node as the target of its group."""
        k = len(self.nodes)
        code = self.nodes * k + torch.arange(k, device=x.device)
        return SparseRows(k, len(x), code, x[self.nodes], active, self.asked)


class Entries:
    """Single features, each a group of its own: what a mask ``[K, N, F]`` would say, without the mask."""

    def __init__(self, entries: Tensor) -> None:
        self.entries = entries
        """Where they are in the features, counted through all rows; in order and without repetition."""

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, some: slice) -> "Entries":
        return Entries(self.entries[some])

    def mask_of(self, group: int, x: Tensor) -> Tensor:
        """One group as a mask ``[1, *x.shape]``."""
        return self[group : group + 1].mask(x)

    def mask(self, x: Tensor) -> Tensor:
        """Written out, ``[K, *x.shape]`` of truth values."""
        mask = torch.zeros(len(self), x.numel(), dtype=torch.bool, device=x.device)
        mask[torch.arange(len(self), device=x.device), self.entries] = True
        return mask.reshape(len(self), *x.shape)

    def split(self, x: Tensor, active: ActiveRows | None = None) -> SparseRows:
        """Each feature as the target of its group."""
        k, width = len(self), x[:1].numel()
        row, group = self.entries // width, torch.arange(k, device=x.device)
        values = x.new_zeros(k, width)
        values[group, self.entries % width] = x.reshape(-1)[self.entries]
        return SparseRows(k, len(x), row * k + group, values.reshape(k, *x.shape[1:]), active)


def sparse_share(x: Tensor, share: Tensor) -> SparseRows:
    """X^γ = diag(m) X for all groups, where groups are small."""
    row, group = share.t().nonzero(as_tuple=True)
    weight = share[group, row].reshape(-1, *[1] * (x.dim() - 1))
    return SparseRows(len(share), len(x), row * len(share) + group, x[row] * weight)


def coalesced(groups: int, size: int, code: Tensor, values: Tensor) -> SparseRows:
    """Pairs in order, the values of equal ones added up."""
    if groups * size <= 16 * len(code):  # a table of all pairs is quicker than sorting some
        seen = torch.zeros(groups * size, dtype=torch.bool, device=code.device)
        seen[code] = True
        unique = seen.nonzero().flatten()
        place = (seen.cumsum(0) - 1)[code]
    else:
        unique, place = torch.unique(code, return_inverse=True)
    flat = values.reshape(len(values), math.prod(values.shape[1:]))
    out = flat.new_zeros(len(unique), flat.shape[1])
    out.scatter_add_(0, place.unsqueeze(1).expand_as(flat), flat)
    return SparseRows(groups, size, unique, out.reshape(len(unique), *values.shape[1:]))


def union(parts: list[SparseRows]) -> Tensor:
    """The pairs of several targets of the same rows, as codes in order."""
    if all(part.code is parts[0].code for part in parts):
        return parts[0].code
    return torch.unique(torch.cat([part.code for part in parts]))
