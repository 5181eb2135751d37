"""Targets whose rows are all target or all background: a mask times one table of values, whatever the number of groups.

Until the first messages mix rows, a group's target is the features of its nodes and nothing of the others. What a layer
does to each row by itself is then asked once for all groups. Rows that are gathered along edges keep that form, and
their sum is a product of the mask and the values: messages are never written out for each group.
"""

import math

import torch
from torch import Tensor

from .sparse_rows import ActiveRows, NeedsWhole, SparseRows

THIN = 1 / 16
"""The share of nodes in a group, on average, up to which the pairs of group and row are worked on one by one."""
MANY = 64
"""Groups from which on a product of matrices for each receiver is quicker than one sparse product for all of them."""


class MaskedRows(SparseRows):
    """A target ``[K, N, …]`` that is ``value[n]`` where the mask is set for row n and group k, else zero."""

    __slots__ = ("_pairs", "_thin", "index", "mask", "value")

    def __init__(
        self,
        mask: Tensor,
        value: Tensor,
        index: Tensor | None = None,
        active: ActiveRows | None = None,
        thin: bool | None = None,
    ) -> None:
        self.mask = mask
        """``[rows, K]`` of truth values."""
        self.value = value
        """``[N, …]``: what each row has as a target."""
        self.index = index
        """The row of the mask of each of the N rows; None if they are the same."""
        self._pairs: tuple[Tensor, Tensor] | None = None
        self.groups, self.size = mask.shape[1], len(value)
        self.active, self.known, self.rest, self.left, self._row = active, None, None, -1, None
        self._thin = int(mask.count_nonzero()) <= THIN * mask.numel() if thin is None else thin

    @property
    def shape(self) -> torch.Size:
        """``[K, N, …]``, as if it were written out."""
        return torch.Size([self.groups, *self.value.shape])

    @property
    def is_thin(self) -> bool:
        """Whether few nodes are in a group, so that most of what is written out would be zero."""
        return self._thin

    @property
    def code(self) -> Tensor:  # type: ignore[override]
        """``row · K + group`` of each pair that the mask has."""
        return self._written()[0]

    @property
    def values(self) -> Tensor:  # type: ignore[override]
        """The value of each pair."""
        return self._written()[1]

    def _written(self) -> tuple[Tensor, Tensor]:
        if self._pairs is None:
            row, group = self._mask_of(slice(None)).nonzero(as_tuple=True)
            self._pairs = row * self.groups + group, self.value[row]
        return self._pairs

    def written(self) -> SparseRows:
        """The same pairs with a value each."""
        return SparseRows(self.groups, self.size, self.code, self.values, self.active)

    def _mask_of(self, some: slice | Tensor) -> Tensor:
        return self.mask[some] if self.index is None else self.mask[self.index[some]]

    def fits(self, other: "MaskedRows") -> bool:
        """Whether another target has the same rows in the same groups."""
        if self.mask is not other.mask or self.size != other.size:
            return False
        a, b = self.index, other.index
        return a is b or (a is not None and b is not None and a.data_ptr() == b.data_ptr() and a.stride() == b.stride())

    def having(self, value: Tensor) -> "MaskedRows":
        """Other values for the same rows."""
        return MaskedRows(self.mask, value, self.index, self.active, self._thin)

    def to(self, dtype: torch.dtype) -> "MaskedRows":
        """The same in another precision."""
        return self.having(self.value.to(dtype))

    def dense(self) -> Tensor:
        """Written out, rows first in memory."""
        if self.active is not None:
            raise NeedsWhole
        mask = self._mask_of(slice(None)).reshape(self.size, self.groups, *[1] * (self.value.dim() - 1))
        return torch.where(mask, self.value.unsqueeze(1), 0).movedim(1, 0)

    def gathered(self, index: Tensor) -> "MaskedRows":
        """The rows that index names, as messages do."""
        place = index if self.index is None else self.index[index]
        return MaskedRows(self.mask, self.value[index], place, self.active, self._thin)

    def summed(self, index: Tensor, size: int) -> Tensor | SparseRows:  # type: ignore[override]
        """The rows summed by the places that index names; of rows that do not matter afterwards nothing."""
        if self._thin:
            return self._by_pairs(index, size)
        along = self._along(index)
        if self.active is None and self.groups < MANY:
            return self._sparse_product(index, size)
        kept = torch.arange(len(index), device=index.device) if along is None else along.nonzero().flatten()
        order = kept[torch.argsort(index[kept], stable=True)]
        rows, counts = torch.unique_consecutive(index[order], return_counts=True)
        if self.active is not None:
            self.active.admit(len(rows) * self.groups, self.value[:1].numel() * self.value.element_size())
        width = math.prod(self.value.shape[1:])
        out = self.value.new_empty(len(rows), self.groups, *self.value.shape[1:])
        flat, ends = out.reshape(len(rows), self.groups, width), [0, *counts.cumsum(0).tolist()]
        value, mask = self.value[order].reshape(len(order), width), self._mask_of(order)
        for place in range(len(rows)):
            some = slice(ends[place], ends[place + 1])
            torch.mm(mask[some].t().to(value.dtype), value[some], out=flat[place])
        return self._placed(rows, out, size, None if along is None else index[~along])

    def _by_pairs(self, index: Tensor, size: int) -> SparseRows:
        pairs, along = self.written(), self._along(index)
        if along is not None:
            kept = along[pairs.row]
            pairs = SparseRows(self.groups, self.size, self.code[kept], self.values[kept], self.active, along)
        return pairs.summed(index, size)

    def _sparse_product(self, index: Tensor, size: int) -> Tensor:
        """For few groups: rows written out, and summed at once."""
        rows = self.dense().movedim(0, 1)
        return rows.new_zeros(size, *rows.shape[1:]).index_add_(0, index, rows).movedim(1, 0)

    def _placed(self, rows: Tensor, sums: Tensor, size: int, unknown: Tensor | None) -> Tensor | SparseRows:
        """Sums ``[R, K, …]`` of some rows among all rows."""
        if self.active is None:
            out = sums if len(sums) == size else sums.new_zeros(size, *sums.shape[1:]).index_copy_(0, rows, sums)
            return out.movedim(1, 0)
        code = (rows.unsqueeze(1) * self.groups + torch.arange(self.groups, device=rows.device)).flatten()
        known = torch.ones(size, dtype=torch.bool, device=rows.device)
        if unknown is not None:
            known[unknown] = False
        return SparseRows(self.groups, size, code, sums.flatten(0, 1), self.active, known)

    def reach(self, index: Tensor) -> int:
        """How many pairs of group and row `gathered` stands for."""
        place = index if self.index is None else self.index[index]
        return int(self.mask.sum(1)[place].sum())


class Masks:
    """Groups of nodes for a pass that follows messages to some rows: each row of x is all target or all background."""

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask
        """``[N, K]`` of truth values."""

    def __len__(self) -> int:
        return self.mask.shape[1]

    def mask_of(self, group: int, x: Tensor) -> Tensor:  # noqa: ARG002
        """One group as a mask ``[1, N]``."""
        return self.mask[:, group].unsqueeze(0)

    def split(self, x: Tensor, active: ActiveRows) -> MaskedRows:
        """The features of each group's nodes as its target."""
        return MaskedRows(self.mask, x, active=active, thin=False)
