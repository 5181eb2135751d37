"""Operations that only move, copy, add up or choose entries: the same on the target, one dimension further in."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ..engine.portions import Portions, carries, rows, spread, target_of, total_of, unrows
from ..engine.registry import Call, aten, rule
from ..engine.sparse_rows import SparseRows
from .common import Half, lift, no_target, numbers_too, shift

FOURIER = (aten._fft_r2c, aten._fft_c2c, aten._fft_c2r)


@rule(aten.clone, aten.detach, aten.alias, aten.neg, rows="elements")
@rule(aten.unsqueeze, aten.select, aten.slice, rows="columns")
@rule(
    *(aten.transpose, aten.split, aten.split_with_sizes, aten.unbind, aten.unsafe_split),
    *(aten.squeeze.dim, aten.squeeze.dims, aten.diagonal, aten.unfold, aten.flip, aten.cumsum, aten.narrow_copy),
    *(aten.tril, aten.triu, aten.lift_fresh),
    *(aten.diag_embed, aten.rot90, *FOURIER),
    *(aten.view_as_real, aten.view_as_complex, aten._conj_physical),
    *(aten.select_copy, aten.unsqueeze_copy, aten.slice_copy, aten.detach_copy),
)
@numbers_too
def structural(call: Call, *args: Any, **kwargs: Any) -> Any:
    """The operation itself on the target, its dimensions moved by one (both portions alike; eq. concatenation)."""
    if not call.groups and call.op.overloadpacket in FOURIER:
        return no_target(call.total)
    return lift(call, args, kwargs, Half.target, reduces=False)


@rule(aten.roll)
@numbers_too
def roll(call: Call, x: Portions, shifts: list[int], dims: list[int] | None = None) -> Tensor:
    """Entries moved on in a circle, through all dimensions if none is named; of both portions alike."""
    if dims:
        return x.target.roll(shifts, [shift(d) for d in dims])
    return x.target.reshape(call.groups, x.numel()).roll(shifts, 1).reshape(x.target.shape)


@rule(aten._conj)
def lazy_conjugate(call: Call, x: Portions) -> Tensor:
    """A conjugate that PyTorch only makes a note of: the note does not reach the next operation, so it is refused."""
    raise NotImplementedError(
        f"complex portions of shape {tuple(x.shape)} are conjugated by a note that they cannot carry (.conj()); use"
        " torch.conj_physical"
    )


@rule(aten.t)
def t(call: Call, x: Portions) -> Tensor:
    """The transpose of a matrix, of both portions alike."""
    return x.target.transpose(1, 2) if x.dim() == 2 else x.target


@rule(aten.squeeze.default)
def squeeze(call: Call, x: Portions) -> Tensor:
    """All dimensions of size one go, but never the groups'."""
    return x.target.squeeze([d + 1 for d in range(x.dim()) if x.shape[d] == 1])


@rule(aten.permute)
def permute(call: Call, x: Portions, dims: list[int]) -> Tensor:
    """Another order of dimensions, of both portions alike."""
    return x.target.permute(0, *[d % x.dim() + 1 for d in dims])


@rule(aten.view, aten._unsafe_view, rows="shape")
@rule(aten._reshape_alias)
def view(call: Call, x: Portions, size: Any, *args: Any) -> Tensor:
    """The same entries in another shape, of both portions alike."""
    if isinstance(size, torch.dtype):
        raise NotImplementedError(f"the bits of portions read as {size} (.view(dtype)) are no portions; use .to(dtype)")
    if size and size[0] in (x.shape[:1] or [None]) and x.dim() > 1:  # rows stay rows: keep them first in memory
        return unrows(rows(x.target).reshape(size[0], call.groups, *call.total.shape[1:]))
    return x.target.reshape(call.groups, *call.total.shape)


@rule(aten.expand)
def expand(call: Call, x: Portions, size: list[int], *, implicit: bool = False) -> Tensor:
    """Broadcasting, of both portions alike."""
    return spread(x.target, len(size)).expand(call.groups, *call.total.shape)


@rule(aten.repeat)
def repeat(call: Call, x: Portions, repeats: list[int]) -> Tensor:
    """Tiles, of both portions alike."""
    return spread(x.target, len(repeats)).repeat(1, *repeats)


@rule(aten._to_copy, rows="elements")
def to_copy(call: Call, x: Portions, **kwargs: Any) -> Tensor:
    """Another floating or complex dtype, or device; integers cannot carry portions."""
    if not call.total.is_floating_point() and not call.total.is_complex():
        raise NotImplementedError(
            f"portions of shape {tuple(x.shape)} are turned into {call.total.dtype}, which cannot carry them. If the"
            " model looks up embeddings by integer features, start the decomposition behind the embedding"
        )
    return x.target.to(dtype=call.total.dtype, device=call.total.device)


@rule(aten.cat, rows="columns")
@rule(aten.stack)
def concatenate(call: Call, tensors: list[Tensor], dim: int = 0) -> Tensor:
    """X ‖ Y = X^γ ‖ Y^γ + X^β ‖ Y^β (eq. concatenation)."""
    join: Callable[..., Tensor] = torch.cat if call.op.overloadpacket is aten.cat else torch.stack
    kept = tensors
    if join is torch.cat:  # which passes over empty vectors, whatever the shape of the others
        kept = [x for x in tensors if x.dim() != 1 or x.numel() or call.total.dim() == 1]
    parts = [target_of(x, call.groups).to(call.total.dtype) for x in kept]
    if join is torch.cat and dim % call.total.dim() and call.total.dim() > 1:
        return unrows(torch.cat([rows(part) for part in parts], dim if dim < 0 else dim + 1))
    return join(parts, shift(dim))


@rule(aten.sum, aten.mean, rows="columns")
@numbers_too
def reduce_linear(call: Call, x: Portions, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum and mean pooling: linear, so of both portions alike."""
    dims = [dim] if isinstance(dim, int) else list(dim or range(x.dim()))
    if not dims:
        return x.target.to(call.total.dtype)
    reduce: Callable[..., Tensor] = torch.sum if call.op.overloadpacket is aten.sum else torch.mean
    return reduce(x.target, [d % x.dim() + 1 for d in dims], keepdim=keepdim, dtype=dtype)


@rule(aten.index)
def index(call: Call, x: Portions, indices: list[Tensor | None]) -> Tensor | SparseRows:
    """Advanced indexing by positions or truth values, of both portions alike."""
    first, *rest = indices
    if first is not None and first.dim() == 1 and not rest and x.dim() > 1:
        if x.sparse is not None and first.dtype == torch.long:
            return x.sparse.gathered(first % max(1, len(x)))  # positions may be counted from the end
        return unrows(rows(x.target)[first])
    return _behind_groups(x.target, [total_of(i) for i in indices])


def _behind_groups(target: Tensor, indices: list[Tensor | None]) -> Tensor:
    """Index behind K, wherever the indices make the result begin."""
    out: Tensor = aten.index(target, [None, *indices])
    return out.movedim(_place_of_groups(indices), 0)


def _place_of_groups(indices: list[Tensor | None]) -> int:
    """Indices with a gap between them put what they choose in front of all other dimensions, K included."""
    given = [i for i, position in enumerate(indices) if position is not None]
    if all(b - a == 1 for a, b in pairwise(given)):
        return 0
    chosen = [i.nonzero(as_tuple=True)[0] if i.dtype == torch.bool else i for i in indices if i is not None]
    return len(torch.broadcast_shapes(*[i.shape for i in chosen]))


@rule(aten.masked_select)
def masked_select(call: Call, x: Portions, mask: Tensor) -> Tensor:
    """The entries that a mask names, of both portions alike."""
    shape = torch.broadcast_shapes(x.shape, mask.shape)
    return spread(x.target, len(shape)).expand(call.groups, *shape)[:, mask.expand(shape)]


@rule(aten.trace)
def trace(call: Call, x: Portions) -> Tensor:
    """The sum of the diagonal: linear, so of both portions alike."""
    return x.target.diagonal(0, 1, 2).sum(-1)


@rule(aten.block_diag)
def block_diag(call: Call, tensors: list[Tensor]) -> Tensor:
    """Blocks along the diagonal, of both portions alike (eq. concatenation)."""
    parts = [target_of(x, call.groups) for x in tensors]
    blocks = [torch.block_diag(*[part[k] for part in parts]) for k in range(call.groups)]
    return torch.stack(blocks) if blocks else call.total.new_zeros(0, *call.total.shape)


@rule(aten.as_strided)
def as_strided(call: Call, x: Portions, size: list[int], stride: list[int], offset: int | None = None) -> Tensor:
    """The same memory in another shape: the positions it names, taken from both portions alike."""
    if not x.total.is_contiguous() or x.total.storage_offset():
        raise NotImplementedError("as_strided of a tensor that is itself a view has no rule; use indexing")
    if x.target.is_contiguous():  # a view, which a model may write into
        start = x.target.storage_offset() + (offset or 0)
        return x.target.as_strided([call.groups, *size], [x.numel(), *stride], start)
    positions = torch.arange(x.numel(), device=x.device).as_strided(size, stride, offset or 0)
    return x.target.reshape(call.groups, x.numel())[:, positions]


@rule(aten.take)
def take(call: Call, x: Portions, index: Tensor) -> Tensor:
    """Entries by their place in the flattened tensor, of both portions alike."""
    return x.target.reshape(call.groups, x.numel())[:, index]


@rule(aten.gather)
@numbers_too
def gather(call: Call, x: Portions, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Entries by position, of both portions alike."""
    return x.target.gather(shift(dim), index.expand(call.groups, *index.shape))


@rule(aten.where, rows="elements")
def where(call: Call, condition: Tensor, a: Any, b: Any) -> Tensor:
    """The choice that the model made, of both portions alike; a plain alternative is background."""
    left, right = (_operand(call, x) for x in (a, b))
    return torch.where(condition, left, right)


def _operand(call: Call, x: Any) -> Tensor:
    if isinstance(x, Tensor):
        return spread(target_of(x, call.groups), call.total.dim()).to(call.total.dtype)
    return call.total.new_zeros(())


@rule(aten.masked_fill, rows="elements")
def masked_fill(call: Call, x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Overwritten entries leave the target; a plain value in their place is background."""
    kept = _operand(call, x)
    return torch.where(mask, _operand(call, value), kept) if carries(value) else kept.masked_fill(mask, 0)


@rule(aten.masked_scatter)
def masked_scatter(call: Call, x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Writing where a mask says: the targets of what is written take the place of what was there."""
    base = spread(target_of(x, call.groups), call.total.dim()).expand(call.groups, *call.total.shape).clone()
    place = mask.expand(call.total.shape)
    base[:, place] = target_of(source, call.groups).reshape(call.groups, source.numel())[:, : int(place.sum())]
    return base


@rule(aten.index_fill)
@numbers_too
def index_fill(call: Call, x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Overwritten rows leave the target; a plain value in their place is background."""
    base = target_of(x, call.groups).clone()
    if not carries(value):
        return base.index_fill(shift(dim), index, 0)
    base.movedim(shift(dim), 1)[:, index] = spread(value.target, x.dim())
    return base


@rule(aten.copy)
def copy(call: Call, x: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Overwriting: the target is the one of what is written."""
    return spread(target_of(src, call.groups), x.dim()).expand(call.groups, *x.shape).to(x.dtype).clone()


@rule(aten.fill, aten.zero)
def fill(call: Call, x: Tensor, value: Any = 0) -> Tensor:
    """Overwriting with one value: its target, if it has one, everywhere."""
    return (spread(target_of(value, call.groups), x.dim()) if carries(value) else call.total.new_zeros(())).expand(
        call.groups, *x.shape
    ) + call.total.new_zeros(())


@rule(aten.index_put, aten._unsafe_index_put)
def index_put(call: Call, x: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """Writing entries: their targets take the place of (or are added to) what was there."""
    written = target_of(values, call.groups)
    place = aten.index(total_of(x), [total_of(i) for i in indices]).shape
    return aten.index_put(
        target_of(x, call.groups).clone(),
        [None, *indices],
        spread(written, len(place)).expand(call.groups, *place).movedim(0, _place_of_groups(indices)),
        accumulate,
    )


@rule(aten.index_copy)
@numbers_too
def index_copy(call: Call, x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Writing rows by position: their targets take the place of what was there."""
    base = target_of(x, call.groups).clone()
    return base.index_copy(shift(dim), index, target_of(source, call.groups).to(base.dtype))


@rule(aten.embedding)
def embedding(call: Call, table: Tensor, index: Tensor, *args: Any) -> Tensor:
    """Rows of a table that carries portions, of both portions alike."""
    return target_of(table, call.groups)[:, index]


@rule(aten.scatter)
@numbers_too
def scatter(call: Call, x: Tensor, dim: int, index: Tensor, src: Any, **kwargs: Any) -> Tensor:
    """Writing entries by position: their targets take the place of what was there."""
    if kwargs:
        raise NotImplementedError("scatter with a reduction of portions has no rule; use scatter_reduce")
    base, place = target_of(x, call.groups).clone(), index.expand(call.groups, *index.shape)
    if not isinstance(src, Tensor):
        return base.scatter(shift(dim), place, 0.0)
    return base.scatter(shift(dim), place, target_of(src, call.groups))


@rule(aten.slice_scatter, aten.select_scatter)
def write_slice(call: Call, x: Tensor, src: Tensor, dim: int = 0, *args: Any, **kwargs: Any) -> Tensor:
    """Writing a slice: the target of what is written takes the place of what was there."""
    written = target_of(src, call.groups)
    return call.op(target_of(x, call.groups).clone(), written, shift(dim), *args, **kwargs)


@rule(aten.constant_pad_nd)
def pad(call: Call, x: Portions, pad: list[int], value: float = 0) -> Tensor:
    """Padding is background: no group contributes it."""
    return aten.constant_pad_nd(x.target, pad, 0)
