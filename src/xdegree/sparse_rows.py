"""Targets that are stored only where they can be other than zero.

A single node's portion lives in its l-hop ball at layer l, so almost all of a dense ``[K, N, F]`` is zero. What most
layers do to rows, they do to each row by itself; then it is enough to work on the (group, row) pairs that matter.
"""

import math

import torch
from torch import Tensor

DENSE_ABOVE = 1 / 6
"""The share of pairs above which writing out everything is cheaper: dense kernels do several numbers at a time."""


class SparseRows:
    """A target ``[K, N, …]`` as the values of some (row, group) pairs, sorted by row, then group; all else is zero."""

    __slots__ = ("code", "groups", "size", "values")

    def __init__(self, groups: int, size: int, code: Tensor, values: Tensor) -> None:
        self.groups = groups
        self.size = size
        self.code = code
        """``row · K + group`` of each pair, in order and without repetition."""
        self.values = values

    @property
    def shape(self) -> torch.Size:
        """``[K, N, …]``, as if it were written out."""
        return torch.Size([self.groups, self.size, *self.values.shape[1:]])

    @property
    def row(self) -> Tensor:
        """The row of each pair."""
        return torch.div(self.code, self.groups, rounding_mode="floor")

    @property
    def group(self) -> Tensor:
        """The group of each pair."""
        return self.code % self.groups

    def with_values(self, values: Tensor) -> "SparseRows":
        """Other values for the same pairs."""
        return SparseRows(self.groups, self.size, self.code, values)

    def dense(self) -> Tensor:
        """Written out, rows first in memory."""
        out = self.values.new_zeros(self.size * self.groups, *self.values.shape[1:])
        out[self.code] = self.values
        return out.reshape(self.size, self.groups, *self.values.shape[1:]).movedim(1, 0)

    def at(self, code: Tensor) -> Tensor:
        """The values of other pairs, which must include all of these."""
        if code is self.code:
            return self.values
        out = self.values.new_zeros(len(code), *self.values.shape[1:])
        out[torch.searchsorted(code, self.code)] = self.values
        return out

    def gathered(self, index: Tensor) -> "SparseRows":
        """The rows that index names, as messages do: ``[K, E, …]``."""
        counts = torch.bincount(self.row, minlength=self.size)
        starts = counts.cumsum(0) - counts
        lengths = counts[index]
        edge = torch.repeat_interleave(torch.arange(len(index), device=index.device), lengths)
        first = lengths.cumsum(0) - lengths
        place = starts[index][edge] + torch.arange(len(edge), device=index.device) - first[edge]
        return SparseRows(self.groups, len(index), edge * self.groups + self.group[place], self.values[place])

    def reach(self, index: Tensor) -> int:
        """How many pairs `gathered` would give."""
        return int(torch.bincount(self.row, minlength=self.size)[index].sum())

    def summed(self, index: Tensor, size: int) -> "SparseRows":
        """The rows summed by the places that index names."""
        return coalesced(self.groups, size, index[self.row] * self.groups + self.group, self.values)


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
