"""Functions that are no linear maps: of one number (activations), and of several (softmax, attention).

Activations are telescoping sums; where f(γ) alone might leave the domain of f, shares by magnitude.
"""

import math
from typing import Any

import torch
import torch_geometric.utils
from torch import Tensor

from ..engine.masked_rows import MaskedRows
from ..engine.portions import Portions, carries, spread, total_of
from ..engine.registry import Call, aten, rule
from ..engine.sparse_rows import SparseRows
from .common import finite, lost, magnitude_share, numbers_too, or_lost, proportional, share_constant, telescope
from .linear import matrix_product

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
@or_lost
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
@or_lost
def power(call: Call, x: Any, exponent: Any) -> Tensor:
    """x^p: γ^p for whole p ≥ 1, which a portion of any sign can be raised to; else shared by |γ| : |β|."""
    if not carries(exponent) and isinstance(exponent, int | float) and exponent >= 1 and float(exponent).is_integer():
        return telescope(call, lambda t: t**exponent, x)
    base = x if carries(x) else exponent
    return finite(call.total) * spread(magnitude_share(base.target, base.total), call.total.dim())


@rule(torch_geometric.utils.softmax, aten._softmax, aten._safe_softmax)
def softmax(call: Call, src: Portions, *args: Any, **kwargs: Any) -> Tensor | SparseRows | None:
    """softmax(X)·exp|γ| / (exp|γ| + exp|β|), the softmax itself being of the total (eq. softmax).

    Written as σ(|γ| − |β|), which cannot overflow. The rule is the paper's to the letter: exp|0| = 1, so that
    the empty group has a share here too. In attention that is multiplied with an empty value; as a probability
    it is the share of a group about which nothing arrived. With attention taken as a whole it carries nothing.
    """
    of_edges = call.op is torch_geometric.utils.softmax
    if call.options.loses and (call.options.attention == "split" or not of_edges):  # it may be of classes, and last
        found: Tensor = lost(call, (src, *args), kwargs)
        return found
    if call.options.attention == "whole":
        return None
    if src.is_by_pairs and call.groups and call.total.dim() and _thin(src):
        return _softmax_by_pairs(call.total, src)
    return shared_softmax(call.total, src)


def shared_softmax(total: Tensor, src: Portions) -> Tensor:
    """The target's share of a softmax."""
    return total * torch.sigmoid(src.target.abs().sub_(src.background.abs_()))


def _thin(src: Portions) -> bool:
    if isinstance(src.sparse, MaskedRows):
        return src.sparse.is_thin or src.sparse.active is not None
    return src.messages is None or src.messages.is_thin()


def _softmax_by_pairs(total: Tensor, src: Portions) -> SparseRows:
    """The same where few groups reach a row: the share of all others is that of nothing."""
    assert src.sparse is not None
    pairs = src.sparse.trimmed()
    row = pairs.row
    share = torch.sigmoid(pairs.values.abs().sub_((src.total[row] - pairs.values).abs_()))
    return pairs.with_values(total[row] * share, rest=total * torch.sigmoid(-src.total.abs()))


@rule(aten._scaled_dot_product_flash_attention_for_cpu)
def dot_product_attention(
    call: Call,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor | None, ...]:
    """softmax(Q Kᵀ / √d) V, step by step: product, softmax of the total (eq. softmax), attention × value."""
    if dropout_p > 0:
        raise NotImplementedError("attention with dropout has no rule; call model.eval() first")
    if call.options.loses and call.options.attention == "split":
        given = {"attn_mask": attn_mask, "scale": scale}
        found: tuple[Tensor | None, ...] = lost(call, (query, key, value, dropout_p, is_causal), given)
        return found
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    logits = _product(call, query, _transposed(key))
    total = logits.total * factor
    mask = _mask(total, total_of(attn_mask), is_causal)
    attention = torch.softmax(total + mask, -1)
    gamma = logits.target * factor
    share = torch.sigmoid(gamma.abs() - (total - gamma).abs())
    split = logits.alias.touched and call.options.attention == "split"
    out = _product(call, Portions(attention, attention * share) if split else attention, value)
    return out.target, *[None] * (len(call.total) - 1)


def _mask(total: Tensor, given: Tensor | None, causal: bool) -> Tensor:
    """What is added to the logits: 0 where attention may look, −∞ where it may not, or the given bias."""
    mask = torch.zeros_like(total)
    if causal:
        mask = mask.masked_fill(~torch.ones_like(total, dtype=torch.bool).tril(), -torch.inf)
    if given is None:
        return mask
    return mask.masked_fill(~given, -torch.inf) if given.dtype == torch.bool else mask + given


def _transposed(x: Tensor) -> Tensor:
    return Portions(x.total.mT, x.target.mT) if isinstance(x, Portions) and carries(x) else total_of(x).mT


def _product(call: Call, a: Tensor, b: Tensor) -> Portions:
    """The product of matrices of which one or both carry portions."""
    total = torch.matmul(total_of(a), total_of(b))
    if not carries(a) and not carries(b):
        return Portions(total, None, call.groups)
    return Portions(total, matrix_product(call, a, b))


@rule(aten._log_softmax, rows="columns")
@numbers_too
def log_softmax(call: Call, x: Portions, dim: int, *args: Any) -> Tensor:
    """x − log Σ exp x: the telescoping sum (eq. ReLU) with the constant −log C as a bias."""
    return _telescope_along(call, lambda t: torch.log_softmax(t, _behind(dim)), x, dim)


def _telescope_along(call: Call, f: Any, x: Portions, dim: int) -> Tensor:
    constant = f(torch.zeros_like(x.target))
    order = call.options.activation
    target = f(x.target) - constant if order != "target-last" else torch.zeros_like(x.target)
    if order != "target-first":
        target = target + (f(x.whole) - f(x.background))
    return share_constant(target / 2 if order in ("both-orders", "gate") else target, x, constant, call.options)


def _behind(dim: int) -> int:
    return dim + 1 if dim >= 0 else dim
