"""What several families of rules share: biases, telescoping sums, shares, lifting to the K dimension."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..options import Options
from ..portions import Portions, carries, rows, spread, target_of, total_of, unrows
from ..registry import Call


def share_bias(target: Tensor, total: Tensor, bias: Tensor | float, options: Options) -> Tensor:
    """γ + b·|γ| / (|γ| + |β|), element by element (eq. gcn_b); 0/0 goes to the background.

    Any constant that is added to portions counts as a bias, not only a layer's parameter.
    """
    if options.bias == "background":
        return target.expand(target.shape[0], *_broadcast(target.shape[1:], bias))
    return target + bias * magnitude_share(target, total)


def magnitude_share(target: Tensor, total: Tensor) -> Tensor:
    """|γ| / (|γ| + |β|): the target's share of what both compete for, 0 where there is nothing of either."""
    share = target.abs()
    return share.div_((total - target).abs_().add_(share).clamp_min_(torch.finfo(target.dtype).tiny))


def _broadcast(shape: torch.Size, other: Tensor | float) -> torch.Size:
    return torch.broadcast_shapes(shape, other.shape) if isinstance(other, Tensor) else shape


def telescope(call: Call, f: Callable[[Tensor], Tensor], x: Portions) -> Tensor:
    """The telescoping sum over a function f: target first, the background is the remainder (eq. ReLU).

    A value f(0) ≠ 0 comes from neither portion; it is a constant and treated as a bias.
    """
    at_zero = f(x.total.new_zeros(()))
    if call.options.activation == "target-first":
        target = f(x.target)
    elif call.options.activation == "target-last":
        target = (call.total - f(x.background)).add_(at_zero)
    else:
        target = (f(x.target) + call.total - f(x.background)).add_(at_zero).div_(2)
    if bool(at_zero == 0):
        return target
    return share_constant(target - at_zero, x, at_zero, call.options)


def share_constant(target: Tensor, x: Portions, constant: Tensor, options: Options) -> Tensor:
    """Add a constant to a target by the magnitudes of the portions that went in, |γ| : |β|."""
    if options.bias == "background":
        return target
    return target + constant * magnitude_share(x.target, x.total)


def proportional(call: Call, x: Portions) -> Tensor:
    """f(x)·|γ| / (|γ| + |β|), for functions that a portion alone could send out of their domain or to infinity."""
    return finite(call.total) * magnitude_share(x.target, x.total)


def finite(total: Tensor) -> Tensor:
    """The total with its own infinities left to the background, where 0·∞ would make a NaN the model has not."""
    return torch.where(total.isfinite(), total, torch.zeros_like(total))


def on_rows(f: Callable[[Tensor], Tensor], target: Tensor) -> Tensor:
    """Apply a map of the last dimension so that the rows stay together in memory."""
    if target.dim() >= 3 and target.stride(1) >= target.stride(0):
        return unrows(f(rows(target)))
    return f(target)


def targets(call: Call, *xs: Any) -> list[Tensor]:
    """The targets of several operands, aligned so that they broadcast as the operands do."""
    dim = max(x.dim() for x in xs if isinstance(x, Tensor))
    return [spread(target_of(x, call.groups), dim) for x in xs if isinstance(x, Tensor)]


def by_group(call: Call, *args: Any, **kwargs: Any) -> Any:
    """The operation on one group's targets after the other: right for every linear operation, and slow."""
    outs = [
        call.op(
            *[_pick(a, k) for a in args],
            **{name: _pick(a, k) for name, a in kwargs.items()},
        )
        for k in range(call.groups)
    ]
    if not outs:
        return _no_groups(call.total)
    if isinstance(outs[0], Tensor):
        return torch.stack(outs)
    return tuple(torch.stack(parts) if parts[0].is_floating_point() else None for parts in zip(*outs, strict=True))


def _pick(x: Any, k: int) -> Any:
    if isinstance(x, list | tuple):
        return type(x)(_pick(item, k) for item in x)
    if carries(x):
        return x.target[k]
    if isinstance(x, Tensor) and x.is_floating_point():
        return torch.zeros_like(total_of(x))
    return total_of(x)


def _no_groups(total: Any) -> Any:
    if isinstance(total, Tensor):
        return total.new_zeros(0, *total.shape) if total.is_floating_point() else None
    return tuple(_no_groups(part) for part in total)
