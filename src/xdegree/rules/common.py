"""What several families of rules share: biases, telescoping sums, shares, lifting to the K dimension."""

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from ..engine.options import Options
from ..engine.portions import BLOCK, Portions, carries, mapped, rows, spread, target_of, total_of, unrows
from ..engine.registry import Call, R
from ..engine.torch_private import schema_of


def share_bias(target: Tensor, total: Tensor, bias: Tensor | float, options: Options, fresh: bool = False) -> Tensor:
    """γ + b·|γ| / (|γ| + |β|), element by element (eq. gcn_b); 0/0 goes to the background.

    Any constant that is added to portions counts as a bias, not only a layer's parameter. A fresh target is
    not shared and is written into.
    """
    if options.bias == "background":
        return target.expand(target.shape[0], *_broadcast(target.shape[1:], bias))
    shape = _broadcast(target.shape[1:], bias)
    if shape != target.shape[1:]:
        return target + finite(bias) * magnitude_share(target, total)
    out = target if fresh else torch.empty_like(target)
    constant = torch.as_tensor(finite(bias), dtype=target.dtype, device=target.device)
    for part, whole, added, into in in_blocks(target, total, constant, out):
        size = part.abs()
        both = _magnitudes(part, whole, size)
        torch.addcdiv(part, size.mul_(added), both, out=into)
    return out


def magnitude_share(target: Tensor, total: Tensor) -> Tensor:
    """|γ| / (|γ| + |β|): the target's share of what both compete for, 0 where there is nothing of either."""
    share = torch.empty_like(target)
    for part, whole, into in in_blocks(target, total, share):
        size = torch.abs(part, out=into)
        size.div_(_magnitudes(part, whole, size))
    return share


def _magnitudes(target: Tensor, total: Tensor, size: Tensor) -> Tensor:
    """|γ| + |β|, never 0; ``size`` is |γ|."""
    return (total - target).abs_().add_(size).clamp_min_(torch.finfo(target.dtype).tiny)


def in_blocks(like: Tensor, *others: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Cut a large target, and what broadcasts to it, along its outermost dimension in memory.

    For chains of element-wise operations: block by block they take half of the time, as only what goes in and what
    comes out meets main memory.
    """
    if like.numel() <= 2 * BLOCK or like.device.type != "cpu":
        yield (like, *others)
        return
    dim = max(range(like.dim()), key=like.stride)
    size = max(1, BLOCK * like.shape[dim] // like.numel())
    yield from zip(*(x.expand(like.shape).split(size, dim) for x in (like, *others)), strict=True)


def _broadcast(shape: torch.Size, other: Tensor | float) -> torch.Size:
    if isinstance(other, Tensor) and shape[len(shape) - other.dim() :] == other.shape:
        return shape  # the usual, spared a function of PyTorch that is written in Python
    return torch.broadcast_shapes(shape, other.shape) if isinstance(other, Tensor) else shape


def telescope(call: Call, f: Callable[[Tensor], Tensor], x: Portions) -> Tensor:
    """An element-wise function f, split as `Options.activation` says; the background is the remainder (eq. ReLU).

    A value f(0) ≠ 0 comes from neither portion; it is a constant and treated as a bias.
    """
    at_zero = f(x.total.new_zeros(()))
    order = call.options.activation
    if order == "target-first":
        target = f(x.target)
    elif order == "gate":
        target = gated(x, call.total - at_zero).add_(at_zero)
    else:
        # Kernels round by the place in memory: f(γ + β) − f(β) is not always 0 where γ is.
        target = (call.total - f(x.background)).masked_fill_(x.target == 0, 0).add_(at_zero)
    if order == "both-orders":
        target = target.add_(f(x.target)).div_(2)
    if call.options.bound == "none" and not bool(at_zero.any()):
        return target
    target = target - at_zero
    if call.options.bound == "output":
        target = within_output(target, call.total - at_zero)
    return share_constant(target, x, at_zero, call.options) if bool(at_zero.any()) else target


def gated(x: Portions, output: Tensor) -> Tensor:
    """γ·f(T)/T, the output being f(T) − f(0): each portion passes as the total does.

    At T = 0 the output is 0, and so is what passes, whatever cancelled there.
    """
    slope = output / x.total
    return x.target * torch.where(slope.isfinite(), slope, 0.0)


def within_output(target: Tensor, output: Tensor) -> Tensor:
    """Clip portions of an output to lie between 0 and that output.

    The interval is symmetric about output / 2, so clipping γ' and output − γ' keeps their sum.
    """
    return torch.clamp(target, output.clamp(max=0), output.clamp(min=0))


def share_constant(target: Tensor, x: Portions, constant: Tensor, options: Options) -> Tensor:
    """Add a constant to a target by the magnitudes of the portions that went in, |γ| : |β|."""
    if options.bias == "background":
        return target
    return target + constant * magnitude_share(x.target, x.total)


def proportional(call: Call, x: Portions) -> Tensor:
    """f(x)·|γ| / (|γ| + |β|), for functions that a portion alone could send out of their domain or to infinity."""
    return finite(call.total) * magnitude_share(x.target, x.total)


def finite(value: Tensor | float) -> Tensor | float:
    """A value without its infinities, which are left to the background: 0·∞ would make a NaN the model has not."""
    if not isinstance(value, Tensor):
        return value if math.isfinite(value) else 0.0
    return value if bool(value.isfinite().all()) else torch.where(value.isfinite(), value, torch.zeros_like(value))


def on_rows(f: Callable[[Tensor], Tensor], target: Tensor) -> Tensor:
    """Apply a map of the last dimension so that the rows stay together in memory."""
    if target.dim() >= 3 and target.stride(1) >= target.stride(0):
        return unrows(f(rows(target)))
    return f(target)


def bilinear(call: Call, f: Callable[[Tensor, Tensor], Tensor], a: Portions, b: Portions) -> Tensor:
    """A product of two portions: f(γ, γ') as attention × value has it, with half of the mixed terms, or with all."""
    left, right = targets(call, a, b)
    if call.options.product == "target":
        return f(left, right)
    both = f(left, b.total) + f(a.total, right)
    return both.div_(2) if call.options.product == "share" else both.sub_(f(left, right))


def targets(call: Call, *xs: Any) -> list[Tensor]:
    """The targets of several operands, aligned so that they broadcast as the operands do."""
    dim = max(x.dim() for x in xs if isinstance(x, Tensor))
    return [spread(target_of(x, call.groups), dim) for x in xs if isinstance(x, Tensor)]


def or_lost(function: R) -> R:
    """Let a rule give way to f(T) − f(β) where options ask for that: what the operation loses without the target."""

    @functools.wraps(function)
    def taken(call: Call, *args: Any, **kwargs: Any) -> Any:
        return lost(call, args, kwargs) if call.options.loses else function(call, *args, **kwargs)

    return taken  # type: ignore[return-value]


def lost(call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """f(T) − f(β), one group after the other; 0 where that is no number. Of several results the first has parts."""

    def first(half: Callable[[Portions], Tensor]) -> Tensor:
        found = call.op(*mapped(lambda x: _half(x, half), args), **mapped(lambda x: _half(x, half), dict(kwargs)))
        return found[0] if isinstance(found, tuple) else found

    several = isinstance(call.total, tuple)
    total: Tensor = call.total[0] if several else call.total
    # Kernels round by the place in memory: what is compared is computed alike.
    whole = first(lambda x: x.total - torch.zeros_like(x.total))
    gone = [whole - first(lambda x, k=k: x.total - x.target[k]) for k in range(call.groups)]  # type: ignore[misc]
    target = torch.stack(gone).nan_to_num_(0, 0, 0) if gone else no_target(total)
    return (target, *[None] * (len(call.total) - 1)) if several else target


def _half(x: Any, half: Callable[[Portions], Tensor]) -> Any:
    return half(x) if isinstance(x, Portions) and carries(x) else total_of(x)


DIMENSIONS = frozenset({"dim", "dims", "dim0", "dim1", "dim2", "axis", "dimension"})
DROPPED = frozenset({"memory_format", "layout", "pin_memory", "device"})


def shift(dim: int) -> int:
    """A dimension of the total as a dimension of the target."""
    return dim + 1 if dim >= 0 else dim


def numbers_too(function: R) -> R:
    """Let a rule that counts dimensions meet a number, which PyTorch takes for a vector of one entry."""

    @functools.wraps(function)
    def taken(call: Call, *args: Any, **kwargs: Any) -> Any:
        first = next((x for x in args if isinstance(x, Tensor)), None)
        if first is None or first.dim():
            return function(call, *args, **kwargs)
        inner = Call(call.op, mapped(_as_vector, call.total), call.groups, call.options)
        target: Any = function(inner, *mapped(_as_vector, args), **mapped(_as_vector, kwargs))
        if isinstance(target, tuple):
            return tuple(None if g is None else unlike(g, t) for g, t in zip(target, call.total, strict=True))
        return unlike(target, call.total)

    def unlike(target: Any, total: Tensor) -> Tensor:
        return target.reshape(target.shape[0], *total.shape)

    return taken  # type: ignore[return-value]


def _as_vector(x: Any) -> Any:
    if not isinstance(x, Tensor) or x.dim():
        return x
    return Portions(x.total.reshape(1), x.target.unsqueeze(1)) if isinstance(x, Portions) else x.reshape(1)


class Half(Enum):
    """Which part of its operands an operation is asked about."""

    target = "target"
    background = "background"
    whole = "whole"
    zero = "zero"
    zeros = "zeros"

    def of(self, x: Portions) -> Tensor:
        """This part of x, ``[K, *shape]``; of zero one row will do."""
        if self is Half.whole:
            return x.whole
        if self in (Half.zero, Half.zeros):
            return torch.zeros_like(x.target[:1] if self is Half.zero else x.target)
        half: Tensor = getattr(x, self.value)
        return half


def lift(call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any], half: Half, reduces: bool = True) -> Any:
    """The operation on one half of its operands for all groups at once: its dimensions are moved by one.

    No dimensions at all are all of them for an operation that reduces; but never the groups'.
    """
    values: list[tuple[Any, Any]] = []
    rank = next(x.dim() for x in args if isinstance(x, Tensor))
    for argument, value in _bind(call.op, args, kwargs):
        if isinstance(value, Portions):
            values.append((argument, half.of(value)))
        elif argument.name in DIMENSIONS:
            values.append((argument, _lifted_dimensions(value, rank if reduces else 0)))
        else:
            values.append((argument, None if argument.name in DROPPED else value))
    return call.op(
        *[v for a, v in values if not a.kwarg_only], **{a.name: v for a, v in values if a.kwarg_only and v is not None}
    )


def _lifted_dimensions(value: Any, rank: int) -> Any:
    if isinstance(value, int):
        return shift(value)
    return [shift(d) for d in value or range(rank)]


def _bind(op: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Every argument of an operation's schema with its value, defaults included."""
    bound = []
    for position, argument in enumerate(schema_of(op).arguments):
        given = args[position] if position < len(args) else kwargs.get(argument.name, argument.default_value)
        bound.append((argument, given))
    return bound


def no_target(total: Tensor) -> Tensor:
    """The target for no groups at all, as `check` asks: of what is empty a variance warns, MKL refuses an FFT."""
    return total.new_empty(0, *total.shape)


def telescope_lifted(call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tensor:
    """The telescoping sum over an operation that mixes entries: a norm, a variance, a distance (eq. ReLU).

    What it gives for zeros comes from neither portion and is a bias of what remains.
    """
    if not call.groups:
        return no_target(call.total)
    at_zero = lift(call, args, kwargs, Half.zero)
    if bool((at_zero != 0).any()):  # kernels round by the place in memory, and nothing must give exactly 0
        at_zero = lift(call, args, kwargs, Half.zeros)
    order = call.options.activation
    target = torch.zeros_like(at_zero)
    if order != "target-last":
        target = target + lift(call, args, kwargs, Half.target) - at_zero
    if order != "target-first":
        target = target + (lift(call, args, kwargs, Half.whole) - lift(call, args, kwargs, Half.background))
    target = target / 2 if order in ("both-orders", "gate") else target
    if bool((at_zero == 0).all()):
        return target
    return share_bias(target, call.total - at_zero[0], at_zero[0], call.options)
