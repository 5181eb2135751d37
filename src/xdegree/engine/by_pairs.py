"""Rules applied to the pairs of a sparse target: what happens to each row by itself needs no other rows.

The pairs (group, row) of a `SparseRows` are taken as the rows of a smaller tensor with a single group. The same rule
then decomposes the same operation on it, and its answer belongs to the same pairs.
"""

from typing import Any

from torch import Tensor

from .masked_rows import MaskedRows
from .portions import Portions, leaves, mapped, portions_in
from .registry import ROW_WISE, Call, Rule, aten, op_schema
from .sparse_rows import SparseRows, union
from .torch_private import schema_of


def by_pairs(found: Rule, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The rule on pairs instead of all rows; None where the operation mixes rows or the operands do not fit."""
    carried = portions_in((args, *kwargs.values()))
    by_pair = [x for x in carried if x.is_by_pairs]
    size = by_pair[0].shape[0] if by_pair[0].dim() else 0
    if not call.groups or not _fits(call, args, kwargs, carried, size):
        return None  # a survey asks the rules themselves, which may refuse
    masked = [x.stored for x in by_pair if isinstance(x.stored, MaskedRows)]
    if len(masked) == len(carried) and all(masked[0].fits(x) for x in masked) and not op_schema(call.op).squashes:
        return _by_rows(found, call, args, kwargs, masked[0])
    if not all(map(_pays, by_pair)) or _stays_a_message(call, carried, args):
        return None
    multiplies = call.op.overloadpacket is aten.mul and call.options.product == "target"
    if len(by_pair) < len(carried) and not multiplies:
        return None  # a dense operand brings everything with it, but for a product, which is zero where a factor is
    targets = {id(x): x.sparse.trimmed() for x in by_pair if x.sparse is not None}
    if len(targets) < len(carried) and any(t.rest is not None for t in targets.values()):
        return None
    pairs = _pairs(list(targets.values()), multiplies)
    if pairs is None:
        return None
    rest = next((t.rest for t in targets.values()), None) if len(carried) == 1 else None
    after = None if rest is None else _rest(found, call, args, kwargs, rest)
    if not pairs.code.numel():
        return mapped(lambda t: _nothing(pairs, t, after) if _is_row_wise(t, size) else None, call.total)
    row, kind = pairs.row, ROW_WISE.get(call.op.overloadpacket)

    def compressed(x: Any) -> Any:
        if isinstance(x, Portions):
            target = targets[id(x)].at(pairs.code) if id(x) in targets else x.target[pairs.group, row]
            return Portions(x.total[row], target.unsqueeze(0))
        return x[row] if isinstance(x, Tensor) and _has_rows(x, call, size) else x

    small = Call(call.op, mapped(lambda t: t[row] if _is_row_wise(t, size) else t, call.total), 1, call.options)
    # What belongs to a layer has no rows, whatever its size. Of B + h·W the B may have some.
    own = len(args) if kind != "weights" else 2 if call.op.overloadpacket is aten.addmm else 1
    args, kwargs = (*mapped(compressed, args[:own]), *args[own:]), mapped(compressed, kwargs)
    if kind == "shape":
        args = (args[0], [len(row), *args[1][1:]])
    target: Any = found(small, *args, **kwargs)
    if isinstance(target, tuple):
        return tuple(None if part is None else pairs.with_values(part[0]) for part in target)
    return pairs.with_values(target[0], after)


def _pays(x: Portions) -> bool:
    """Whether pairs are few enough to be worked on one by one; where only some rows matter there is no other way."""
    if x.messages is not None:
        return x.messages.is_thin()
    return not isinstance(x.sparse, MaskedRows) or x.sparse.is_thin or x.sparse.active is not None


def _by_rows(found: Rule, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], like: MaskedRows) -> Any:
    """The rule on rows that are all target, once for all groups; rows without any target have none afterwards."""

    def whole(x: Any) -> Any:
        return Portions(x.total, x.sparse.value.unsqueeze(0)) if isinstance(x, Portions) else x  # type: ignore[union-attr]

    target: Any = found(Call(call.op, call.total, 1, call.options), *mapped(whole, args), **mapped(whole, kwargs))
    if isinstance(target, tuple):
        return tuple(None if part is None else like.having(part[0]) for part in target)
    return like.having(target[0])


def _pairs(targets: list[SparseRows], multiplies: bool) -> SparseRows | None:
    """The pairs of the result, without values that mean anything yet; None where everything may be other than zero."""
    first = targets[0]
    if len(targets) == 1:
        return first
    zero_else = [t for t in targets if t.rest is None]
    if multiplies and zero_else:  # a product is zero where a factor is
        out = min(zero_else, key=lambda t: len(t.code)).with_values(first.values)
    elif len(zero_else) == len(targets):
        code = union(targets)
        out = first.with_values(first.values) if code is first.code else first.with_code(code)
    else:
        return None
    known = [t.known for t in targets if t.known is not None]
    out.known = known[0] if known else None
    for other in known[1:]:
        if other is not out.known:
            out.known = out.known & other if out.known is not None else other
    return out


def _rest(found: Rule, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], rest: Tensor) -> Tensor:
    """What the operation makes of the pairs that are not stored: the same for all groups, so it is asked once."""
    args, kwargs = mapped(
        lambda x: Portions(x.total, rest.unsqueeze(0)) if isinstance(x, Portions) else x, (args, kwargs)
    )
    target: Any = found(Call(call.op, call.total, 1, call.options), *args, **kwargs)
    return target[0]


def _nothing(pairs: SparseRows, total: Tensor, rest: Tensor | None) -> SparseRows:
    return pairs.with_values(total.new_zeros(0, *total.shape[1:]), rest)


def _is_row_wise(x: Any, size: int) -> bool:
    return isinstance(x, Tensor) and x.dim() > 0 and x.shape[0] == size


def _stays_a_message(call: Call, carried: list[Portions], args: tuple[Any, ...]) -> bool:
    """A message times a number of its own is cheaper as a message."""
    factors = [a for a in args if isinstance(a, Tensor) and not isinstance(a, Portions)]
    lone = len(carried) == 1 and carried[0].messages is not None and call.op.overloadpacket is aten.mul
    return lone and all(f.numel() == len(call.total) for f in factors)


def _fits(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], carried: list[Portions], size: int) -> bool:
    """Whether the operation treats rows one by one, and its output has the same rows."""
    outputs = [t for t in leaves(call.total) if isinstance(t, Tensor)]
    if not outputs or any(not x.dim() or x.shape[0] != size for x in carried):
        return False
    packet, first = call.op.overloadpacket, outputs[0]
    if not first.dim() or first.shape[0] != size:
        return False
    kind = ROW_WISE.get(packet)
    if kind == "elements":
        return all(x.dim() == first.dim() for x in carried)
    if kind == "weights":
        x = args[1] if packet is aten.addmm else args[0]
        return len(carried) == 1 and isinstance(x, Portions) and not _of_batch(call, args)
    if kind == "shape":
        return isinstance(args[1], list | tuple) and args[1][0] in (size, -1) and size > 0
    return kind == "columns" and _spares_rows(call, args, kwargs, carried[0].dim())


def _of_batch(call: Call, args: tuple[Any, ...]) -> bool:
    """Whether a batch norm takes its statistics from all rows."""
    return call.op.overloadpacket is aten.native_batch_norm and (bool(args[5]) or args[3] is None)


def _spares_rows(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], rank: int) -> bool:
    """Whether no dimension among the arguments is that of the rows."""
    names = [argument.name for argument in schema_of(call.op).arguments]
    values = dict(zip(names, args, strict=False)) | kwargs
    if call.op.overloadpacket is aten.native_layer_norm:
        return len(values["normalized_shape"]) < rank
    dims = values.get("dim", 0)
    dims = [dims] if isinstance(dims, int) else list(dims or [0])
    grown = rank + (call.op.overloadpacket is aten.unsqueeze)
    return all(d % grown != 0 for d in dims)


def _has_rows(x: Tensor, call: Call, size: int) -> bool:
    """Whether a plain operand has a row for each row."""
    first = call.total if isinstance(call.total, Tensor) else call.total[0]
    return x.dim() == first.dim() and x.shape[0] == size
