"""Products and quotients."""

from typing import Any

import torch
from torch import Tensor

from ..portions import Messages, Portions, carries, spread, total_of
from ..registry import Call, aten, rule
from .common import bilinear, finite, magnitude_share, shift, telescope


@rule(aten.mul)
def mul(call: Call, a: Any, b: Any) -> Tensor | Messages:
    """attention × value: target × target, the other three products are background; a plain factor scales."""
    if carries(a) and carries(b):
        return _attended(call, a, b) or bilinear(call, torch.mul, a, b).to(call.total.dtype)
    x, factor = (a, b) if carries(a) else (b, a)
    if x.messages is not None and x.dtype == call.total.dtype and _per_row(factor, call.total):
        return x.messages.scaled(total_of(factor).reshape(-1))
    return (spread(x.target, call.total.dim()) * total_of(factor)).to(call.total.dtype)


def _attended(call: Call, a: Portions, b: Portions) -> Messages | None:
    """Messages times an attention that carries portions itself, without writing them out."""
    value, attention = (a, b) if a.messages is not None else (b, a)
    whole = value.dim() == attention.dim() and value.shape == call.total.shape
    if call.options.product != "target" or value.messages is None or not whole:
        return None
    return value.messages.attended(attention.target)


def _per_row(factor: Any, total: Tensor) -> bool:
    """Whether a factor is one number per row."""
    return isinstance(factor, Tensor) and factor.dim() == total.dim() and factor.numel() == len(factor) == len(total)


@rule(aten.div)
def div(call: Call, a: Any, b: Any, *, rounding_mode: str | None = None) -> Tensor:
    """The numerator's target over the whole denominator, which normalises both portions alike.

    A denominator that carries portions over a plain numerator is shared by magnitude, |γ| : |β|.
    """
    if rounding_mode is not None:
        raise NotImplementedError(f"division with rounding_mode={rounding_mode!r} of portions has no rule")
    if not carries(a):
        return finite(call.total) * spread(magnitude_share(b.target, b.total), call.total.dim())
    target, denominator = spread(a.target, call.total.dim()), total_of(b)
    if not carries(b):
        return target / denominator
    quotient = target / denominator
    return torch.where(call.total.isfinite(), quotient, torch.zeros_like(quotient))


@rule(aten.linalg_cross)
def cross(call: Call, a: Tensor, b: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product, bilinear as a product is: target × target of two portions, else linear."""
    along = dim if dim < 0 else dim - call.total.dim()

    def product(left: Tensor, right: Tensor) -> Tensor:
        return torch.linalg.cross(*torch.broadcast_tensors(left, right), dim=along)

    if isinstance(a, Portions) and isinstance(b, Portions):
        return bilinear(call, product, a, b)
    left, right = (x.target if isinstance(x, Portions) else x for x in (a, b))
    return product(left, right)


@rule(aten.lerp)
def lerp(call: Call, a: Tensor, b: Tensor, weight: Any) -> Tensor:
    """a + w (b − a), as the difference, the product and the sum would give it."""
    from .linear import add

    gap: Any = total_of(b) - total_of(a)
    if _any(a, b):
        gap = Portions(gap, add(Call(aten.sub.Tensor, gap, call.groups, call.options), b, a))
    step: Any = total_of(gap) * total_of(weight)
    if carries(gap) or carries(weight):
        inner = Call(aten.mul.Tensor, step, call.groups, call.options)
        step = Portions(step, _dense(mul(inner, gap, weight)))
    return _add(call, a, step)


@rule(aten.glu)
def glu(call: Call, x: Portions, dim: int = -1) -> Tensor:
    """a·σ(b) of two halves: the gate is an activation, the product target × target."""
    total, target = x.total.chunk(2, dim), x.target.chunk(2, shift(dim))
    gate = Portions(total[1], target[1])
    inner = Call(aten.sigmoid.default, total[1].sigmoid(), call.groups, call.options)
    opened = Portions(inner.total, telescope(inner, torch.sigmoid, gate))
    return bilinear(call, torch.mul, Portions(total[0], target[0]), opened)


@rule(aten.addcmul)
def addcmul(call: Call, x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    """x + value·a·b, as the product and the sum would give it."""
    total = total_of(a) * total_of(b)
    if not _any(a, b):
        return _add(call, x, total * value)
    inner = Call(aten.mul.Tensor, total, call.groups, call.options)
    return _add(call, x, Portions(total * value, _dense(mul(inner, a, b)) * value))


@rule(aten.addcdiv)
def addcdiv(call: Call, x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    """x + value·a/b, as the quotient and the sum would give it."""
    quotient = total_of(a) / total_of(b)
    if not _any(a, b):
        return _add(call, x, quotient * value)
    inner = Call(aten.div.Tensor, quotient, call.groups, call.options)
    return _add(call, x, Portions(quotient * value, div(inner, a, b) * value))


def _dense(target: Tensor | Messages) -> Tensor:
    return target.dense() if isinstance(target, Messages) else target


def _any(*xs: Any) -> bool:
    return any(carries(x) for x in xs)


def _add(call: Call, a: Tensor, b: Tensor) -> Tensor:
    from .linear import add

    return add(Call(aten.add.Tensor, call.total, call.groups, call.options), a, b)
