"""Messages: rows are gathered along edges and come together; sums are linear, a maximum is of those who reach it."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import SortAggregation

from ..engine.masked_rows import MaskedRows
from ..engine.portions import Messages, Portions, carries, rows, target_of, total_of, unrows
from ..engine.registry import Call, aten, rule
from ..engine.sparse_rows import SparseRows
from .common import lost, numbers_too, shift, targets

ROUNDING = 32
"""How many units in the last place count as a tie: equal atoms differ by rounding only."""


@rule(aten.index_select)
@numbers_too
def index_select(call: Call, x: Portions, dim: int, index: Tensor) -> Tensor | Messages | SparseRows:
    """Gather rows, as a message does: x_j of every edge."""
    if x.dim() > 1 and dim % x.dim() == 0:
        pairs = x.sparse
        if isinstance(pairs, MaskedRows) and pairs.active is not None:
            return pairs.gathered(index)
        if isinstance(pairs, MaskedRows):  # all receivers matter: one sparse product is quicker than one for each
            pairs = pairs.written() if pairs.is_thin else None
        return Messages(pairs if pairs is not None and pairs.rest is None else x.target, index)
    return x.target.index_select(shift(dim), index)


def scatter_sum(target: Tensor, dim: int, index: Tensor, shape: torch.Size) -> Tensor:
    """Sum the target's rows by index into a tensor of some shape, ``[K, E, …] → [K, *shape]`` for dim = 0."""
    dim, size, index = dim % index.dim(), shape[dim], index.long()
    row_index = _row_index(index, dim) if dim == 0 and index.shape[1:] == shape[1:] else None
    if row_index is not None and target.dim() > 1:
        _, k, *rest = rows(target).shape
        source = rows(target).flatten(1)
        out = source.new_zeros(size, source.shape[1])
        out.scatter_add_(0, row_index.unsqueeze(1).expand_as(source), source)
        return unrows(out.reshape(size, k, *rest))
    k = target.shape[0]
    return target.new_zeros(k, *shape).scatter_add_(dim + 1, index.expand(k, *index.shape), target)


def _row_index(index: Tensor, dim: int) -> Tensor | None:
    """The vector that an index was expanded from, as PyG does to sum whole rows."""
    others = [d for d in range(index.dim()) if d != dim]
    if any(index.shape[d] == 0 or (index.stride(d) and index.shape[d] > 1) for d in others):
        return None
    return index[tuple(slice(None) if d == dim else 0 for d in range(index.dim()))]


@rule(aten.scatter_add)
@numbers_too
def scatter_add(call: Call, x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor | SparseRows:
    """Σ of messages: the target is the sum of their targets (eq. gcn, its linear part)."""
    whole = index.shape == src.shape and index.shape[1:] == x.shape[1:]
    by_row = _row_index(index, dim % x.dim()) if whole else None
    if isinstance(src, Portions) and dim == 0 and by_row is not None:
        summed = _summed_rows(src, by_row, len(x))
        if summed is not None:
            return _added(call, x, summed)
    return _added(call, x, scatter_sum(_cut(target_of(src, call.groups), index), dim, index, x.shape))


@rule(aten.index_add)
@numbers_too
def index_add(call: Call, x: Tensor, dim: int, index: Tensor, src: Tensor, *, alpha: float = 1) -> Tensor | SparseRows:
    """Σ of messages by a vector of rows (eq. gcn, its linear part)."""
    if isinstance(src, Portions) and dim == 0 and alpha == 1:
        summed = _summed_rows(src, index, len(x))
        if summed is not None:
            return _added(call, x, summed)
    full = _rows_of(index, src, dim)
    return _added(call, x, scatter_sum(target_of(src, call.groups) * alpha, dim, full, x.shape))


def _rows_of(index: Tensor, src: Tensor, dim: int) -> Tensor:
    """A vector of rows as an index for every entry of them."""
    shape = [1] * src.dim()
    shape[dim] = -1
    return index.reshape(shape).expand(src.shape)


def _summed_rows(src: Portions, index: Tensor, size: int) -> Tensor | SparseRows | None:
    """The sum of rows without writing them out, for messages and sparse targets."""
    if src.messages is not None:
        return src.messages.summed(index, size)
    return None if src.sparse is None or src.sparse.rest is not None else src.sparse.summed(index, size)


def _added(call: Call, x: Tensor, summed: Tensor | SparseRows) -> Tensor | SparseRows:
    if not carries(x):
        return summed
    return x.target + (summed.dense() if isinstance(summed, SparseRows) else summed)  # type: ignore[attr-defined]


def _cut(target: Tensor, index: Tensor) -> Tensor:
    """scatter reads only as much of its source as the index covers."""
    if target.shape[1:] == index.shape:
        return target
    return target[(slice(None), *(slice(n) for n in index.shape))]


@rule(aten.scatter_reduce)
@numbers_too
def scatter_reduce(
    call: Call, x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Sum, mean, maximum or minimum of rows; a maximum is taken at the rows that won in the total (Maxpooling)."""
    if reduce == "prod" and call.options.loses:
        inner = Call(aten.scatter_reduce.two, call.total, call.groups, call.options)
        return lost(inner, (x, dim, index, src, reduce), {"include_self": include_self})
    target = _cut(target_of(src, call.groups), index)
    total = total_of(src)[tuple(slice(n) for n in index.shape)]
    if reduce in ("amax", "amin"):
        return _scatter_winners(call, x, dim, index, total, target, include_self)
    if reduce == "prod":
        return _scatter_product(call, x, dim, index, target, include_self)
    if reduce not in ("sum", "mean"):
        raise NotImplementedError(f"{reduce!r} of portions has no rule")
    summed = scatter_sum(target, dim, index, x.shape)
    count = torch.zeros_like(call.total).scatter_add_(dim, index, torch.ones_like(total))
    kept = torch.ones_like(count) if include_self else (count == 0).to(count.dtype)
    if carries(x):
        summed = summed + target_of(x, call.groups) * kept
    return summed if reduce == "sum" else summed / (count + kept).clamp(min=1)


def _scatter_product(call: Call, x: Tensor, dim: int, index: Tensor, target: Tensor, include_self: bool) -> Tensor:
    """A product of portions is the product of their targets; plain old values scale it, alone they are background."""
    members = torch.zeros_like(call.total).scatter_add_(dim, index, torch.ones(index.shape).to(call.total))
    start = target_of(x, call.groups) if carries(x) else total_of(x).expand(call.groups, *x.shape)
    place = index.expand(call.groups, *index.shape)
    product = start.clone().scatter_reduce_(shift(dim), place, target, "prod", include_self=include_self)
    return product if carries(x) else product * (members > 0)


def _scatter_winners(
    call: Call, x: Tensor, dim: int, index: Tensor, total: Tensor, target: Tensor, include_self: bool
) -> Tensor:
    """Shares of one for the rows that reach the maximum, split by `ties`; the old value may win as well."""
    won = tied(total, call.total.gather(dim, index)).to(total.dtype)
    count = torch.zeros_like(call.total).scatter_add_(dim, index, won)
    untouched = torch.zeros_like(call.total).scatter_add_(dim, index, torch.ones_like(total)) == 0
    own = (tied(total_of(x), call.total) | untouched) if include_self else untouched
    if call.options.ties == "first":
        won = _first_of(won, dim, index, call.total.shape[dim]) * (~own).to(won.dtype).gather(dim, index)
        count = torch.ones_like(count)
    else:
        count = (count + own).clamp(min=1)
    summed = scatter_sum(target * (won / count.gather(dim, index)), dim, index, call.total.shape)
    return summed + target_of(x, call.groups) * (own / count) if carries(x) else summed


def _first_of(won: Tensor, dim: int, index: Tensor, size: int) -> Tensor:
    """Of the winners of each place the one with the smallest position."""
    shape = [1] * won.dim()
    shape[dim] = -1
    position = torch.arange(won.shape[dim], device=won.device).reshape(shape).expand_as(won)
    candidate = torch.where(won > 0, position, won.shape[dim])
    first_shape = list(won.shape)
    first_shape[dim] = size
    first = candidate.new_full(first_shape, won.shape[dim]).scatter_reduce_(dim, index, candidate, "amin")
    return (position == first.gather(dim, index)).to(won.dtype)


def tied(x: Tensor, best: Tensor) -> Tensor:
    """Whether x reaches the best value up to rounding; in half precision 32 units would be a quarter of the value."""
    precision = torch.finfo(x.dtype)
    return (x - best).abs() <= (ROUNDING if precision.bits > 16 else 1) * precision.eps * best.abs()


def winners(call: Call, x: Tensor, best: Tensor, dim: list[int]) -> Tensor:
    """Shares of one along some dimensions for the entries that reach the best value, split by `ties`."""
    won = tied(x, best)
    if call.options.ties == "share":
        share = won.to(x.dtype)
        return share / share.sum(dim, keepdim=True).clamp(min=1)
    kept = [d for d in range(x.dim()) if d not in dim]
    flat = won.permute(*kept, *dim).reshape(*[x.shape[d] for d in kept], -1)
    first = (flat & (flat.cumsum(-1) == 1)).to(x.dtype)
    order = [*kept, *dim]
    back = [order.index(d) for d in range(x.dim())]
    return first.reshape([x.shape[d] for d in order]).permute(back)


@rule(aten.amax, aten.amin, aten.max, aten.min)
@numbers_too
def extreme(call: Call, x: Portions, *args: Any, **kwargs: Any) -> Any:
    """Max pooling: both portions are taken at the entries that won in the total (Maxpooling)."""
    if args and isinstance(args[0], Tensor):
        return maximum(call, x, args[0])
    dim, keepdim = _bound(call, args, kwargs)
    best = call.total[0] if isinstance(call.total, tuple) else call.total
    axes = sorted({d % x.dim() for d in dim}) if dim else list(range(x.dim()))
    keep = best.reshape([1 if d in axes else n for d, n in enumerate(x.shape)])
    share = winners(call, x.total, keep, axes)
    target = (x.target * share).sum([d + 1 for d in axes], keepdim=keepdim) if axes else x.target
    return (target, None) if isinstance(call.total, tuple) else target


def _bound(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[int], bool]:
    values = dict(zip(("dim", "keepdim"), args, strict=False)) | kwargs
    dim = values.get("dim", [])
    return ([dim] if isinstance(dim, int) else list(dim)), bool(values.get("keepdim", False))


@rule(aten.maximum, aten.minimum, aten.fmax, aten.fmin)
def maximum(call: Call, a: Tensor, b: Tensor) -> Tensor:
    """The larger of two: the portions of the one that won, half of each at a tie (Maxpooling)."""
    left, right = targets(call, a, b)
    a_won, b_won = tied(total_of(a), call.total), tied(total_of(b), call.total)
    if call.options.ties == "first":
        share = a_won.to(call.total.dtype)
    else:
        share = a_won.to(call.total.dtype) / (a_won.to(call.total.dtype) + b_won).clamp(min=1)
    return left * share + right * (1 - share)


@rule(aten.index_reduce)
@numbers_too
def index_reduce(
    call: Call, x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """The same by a vector of rows."""
    return scatter_reduce(call, x, dim, _rows_of(index, src, dim), src, reduce, include_self=include_self)


@rule(aten._sparse_mm_reduce_impl)
def sparse_reduce(call: Call, matrix: Tensor, x: Tensor, reduce: str) -> tuple[Tensor, None]:
    """A sparse matrix that aggregates rows by mean or maximum: the messages, then their aggregation."""
    counts = matrix.crow_indices().diff()
    index = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
    columns, weights = matrix.col_indices(), matrix.values().unsqueeze(1)
    messages = Portions(total_of(x)[columns] * weights, target_of(x, call.groups)[:, columns] * weights)
    inner = Call(call.op, call.total[0], call.groups, call.options)
    start, rows_of = torch.zeros_like(call.total[0]), _rows_of(index, messages.total, 0)
    reduce = _REDUCTIONS.get(reduce, reduce)
    return scatter_reduce(inner, start, 0, rows_of, messages, reduce, include_self=False), None


@rule(aten.segment_reduce)
def segment_reduce(
    call: Call,
    data: Portions,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Sums, means and maxima of consecutive rows, as scatter_reduce does them for any rows."""
    if lengths is None and offsets is not None:
        lengths = offsets.diff()
    if lengths is None or axis != 0 or lengths.dim() != 1:
        raise NotImplementedError("segment_reduce of portions has a rule along axis 0 with lengths or offsets only")
    index = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
    index = index.reshape(-1, *[1] * (data.dim() - 1)).expand(data.shape)
    x = torch.zeros_like(call.total)
    target: Any = scatter_reduce(call, x, 0, index, data, _REDUCTIONS.get(reduce, reduce), include_self=False)
    return target * initial if reduce == "prod" and initial is not None else target


_REDUCTIONS = {"max": "amax", "min": "amin"}


@rule(SortAggregation)
def sort_aggregation(call: Call, x: Portions, *args: Any, **kwargs: Any) -> Tensor:
    """The first k rows of each graph by their last feature: the rows that the model chose, of both portions alike.

    As operations it would turn a value into a number, to fill up graphs with fewer than k nodes.
    """
    layer: Any = call.op
    number = torch.arange(1, len(x) + 1, device=x.device, dtype=torch.float64).unsqueeze(1)
    last = layer.to_dense_batch(x.total[:, -1:], *args, **kwargs, fill_value=float(x.total.min()) - 1)[0]
    place = layer.to_dense_batch(number, *args, **kwargs)[0].squeeze(-1).long()
    chosen = place.gather(1, last.squeeze(-1).sort(dim=-1, descending=True).indices)[:, : layer.k]
    chosen = torch.nn.functional.pad(chosen, (0, layer.k - chosen.shape[1]))
    target = torch.cat([x.target.new_zeros(call.groups, 1, x.shape[1]), x.target], 1)
    return target[:, chosen].reshape(call.groups, *call.total.shape)
