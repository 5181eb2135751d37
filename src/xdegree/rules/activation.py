"""Functions of one number: the telescoping sum for activations, shares by magnitude for the rest."""

from typing import Any

import torch
from torch import Tensor

from ..engine.portions import Portions, carries, spread, total_of
from ..engine.registry import Call, aten, rule
from .common import finite, magnitude_share, proportional, telescope

TELESCOPED = (
    *(aten.relu, aten.leaky_relu, aten.elu, aten.celu, aten.gelu, aten.silu, aten.mish, aten.softplus, aten.sigmoid),
    *(aten.tanh, aten.hardtanh, aten.hardswish, aten.hardsigmoid, aten.hardshrink, aten.softshrink, aten.threshold),
    *(aten.abs, aten.clamp, aten.clamp_min, aten.clamp_max),
    *(aten.erf, aten.erfc, aten.sin, aten.cos, aten.sinc, aten.atan, aten.asinh, aten.nan_to_num),
)
PROPORTIONAL = (
    *(aten.exp, aten.exp2, aten.expm1, aten.log, aten.log2, aten.log10, aten.log1p, aten.sqrt, aten.rsqrt),
    *(aten.reciprocal, aten.sinh, aten.cosh, aten.tan, aten.asin, aten.acos, aten.acosh, aten.atanh),
    *(aten.digamma, aten.lgamma, aten.erfinv, aten.logit),
)


@rule(*TELESCOPED, rows="elements")
def activation(call: Call, x: Portions, *args: Any, **kwargs: Any) -> Tensor:
    """ReLU, LeakyReLU and similar functions: γ' = f(γ), β' = f(γ + β) − f(γ) (eq. ReLU)."""
    if any(carries(a) for a in (*args, *kwargs.values())):
        raise NotImplementedError("an activation whose bounds carry portions has no rule; use maximum and minimum")
    if call.total.dim() > x.dim():  # bounds that are tensors may bring more dimensions
        x = Portions(x.total, spread(x.target, call.total.dim()))
    if call.options.bound == "output" and call.op.overloadpacket is aten.relu:
        return torch.minimum(x.target.clamp_min(0), call.total)  # what all orders give within the output
    return telescope(call, lambda t: call.op(t, *args, **kwargs), x)


@rule(*PROPORTIONAL, rows="elements")
def magnitude(call: Call, x: Portions, *args: Any, **kwargs: Any) -> Tensor:
    """f(x) shared by |γ| : |β| where f(γ) alone might leave the domain of f or overflow."""
    return proportional(call, x)


@rule(aten.log_sigmoid_forward, rows="elements")
def log_sigmoid(call: Call, x: Portions) -> tuple[Tensor, None]:
    """log σ(x) with its constant −log 2 as a bias (eq. ReLU)."""
    inner = Call(call.op, call.total[0], call.groups, call.options)
    return telescope(inner, lambda t: aten.log_sigmoid_forward(t)[0], x), None


@rule(aten.rrelu_with_noise)
def rrelu(
    call: Call, x: Portions, noise: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, *_: Any
) -> Tensor:
    """A LeakyReLU with the mean slope in eval mode (eq. ReLU); in training its slopes are random."""
    if training:
        raise NotImplementedError("RReLU draws random slopes in training mode; call model.eval() first")
    return telescope(call, lambda t: aten.leaky_relu(t, (lower + upper) / 2), x)


@rule(aten._prelu_kernel, rows="elements")
def prelu(call: Call, x: Portions, weight: Tensor) -> Tensor:
    """LeakyReLU with a learnt slope, γ' = f(γ) (eq. ReLU)."""
    if carries(weight):
        raise NotImplementedError("a PReLU whose slope carries portions has no rule")
    slope = total_of(weight)
    # The kernel wants equal shapes; at zero the function is zero for every slope.
    return telescope(call, lambda t: aten._prelu_kernel(t, slope.expand_as(t) if t.dim() else slope.new_ones(())), x)


@rule(aten.pow, rows="elements")
def power(call: Call, x: Any, exponent: Any) -> Tensor:
    """x^p: γ^p for whole p ≥ 1, which a portion of any sign can be raised to; else shared by |γ| : |β|."""
    if not carries(exponent) and isinstance(exponent, int | float) and exponent >= 1 and float(exponent).is_integer():
        return telescope(call, lambda t: t**exponent, x)
    base = x if carries(x) else exponent
    return finite(call.total) * spread(magnitude_share(base.target, base.total), call.total.dim())
