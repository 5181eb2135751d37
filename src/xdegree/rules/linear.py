"""Linear maps, convolutions, products and quotients: the map on both halves, biases shared by magnitude."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from ..engine.portions import Messages, Portions, carries, rows, spread, target_of, total_of, unrows
from ..engine.registry import Call, aten, rule
from .common import (
    bilinear,
    finite,
    magnitude_share,
    on_rows,
    or_lost,
    proportional,
    share_bias,
    shift,
    targets,
    telescope,
)


def matrix_product(call: Call, a: Tensor, b: Tensor) -> Tensor:
    """γ of a product of matrices: the map on the target; of two portions target × target (eq. FC, eq. gcn)."""
    if isinstance(a, Portions) and isinstance(b, Portions) and carries(a) and carries(b):
        return bilinear(call, torch.matmul, a, b)
    if isinstance(a, Portions) and carries(a):
        weight = total_of(b)
        return on_rows(lambda t: torch.matmul(t, weight), a.target) if weight.dim() == 2 else a.target @ weight
    return _left_product(total_of(a), target_of(b, call.groups))


def _left_product(matrix: Tensor, target: Tensor) -> Tensor:
    """matrix · γ for all groups; of a plain (perhaps sparse) matrix with the K × F block as its right-hand side."""
    if isinstance(matrix, EdgeIndex):
        matrix = matrix.to_sparse_coo().to(target.dtype)
    if matrix.dim() != 2 or target.dim() != 3:
        return torch.matmul(matrix, target)
    n, k, f = rows(target).shape
    return unrows((matrix @ rows(target).reshape(n, k * f)).reshape(matrix.shape[0], k, f))


@rule(aten.mm, rows="weights")
@rule(aten.bmm, aten.mv, aten.dot)
def matmul(call: Call, a: Tensor, b: Tensor) -> Tensor:
    """X Θ: linear, so the map on the target (eq. FC without b); a product of two portions as in attention."""
    if b.dim() == 1:  # mv and dot: the vector as a column
        return _vector_product(call, a, b)
    return matrix_product(call, a, b)


def _vector_product(call: Call, a: Tensor, b: Tensor) -> Tensor:
    if carries(a) and carries(b):
        return bilinear(call, torch.mul, a, b).sum(-1)  # type: ignore[arg-type]
    left = target_of(a, call.groups) if carries(a) else total_of(a)
    right = target_of(b, call.groups) if carries(b) else total_of(b)
    return (left * (right.unsqueeze(1) if carries(b) and a.dim() == 2 else right)).sum(-1)


@rule(aten.addmm, rows="weights")
@rule(aten.baddbmm, aten._sparse_addmm)
def affine(call: Call, bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """X Θ + b: γ + b·|γ| / (|γ| + |β|) (eq. FC; eq. gcn_b)."""
    if not carries(a) and not carries(b):
        return _onto(call, bias, torch.matmul(total_of(a), total_of(b)), alpha, beta)
    product = matrix_product(call, a, b)
    product = product * alpha if alpha != 1 else product
    if carries(bias):
        return product + beta * spread(bias.target, call.total.dim())  # type: ignore[attr-defined]
    if not bool(total_of(bias).any()):
        return product
    total = torch.matmul(total_of(a), total_of(b))
    constant = total_of(bias) * beta if beta != 1 else total_of(bias)
    return share_bias(product, total * alpha if alpha != 1 else total, constant, call.options, fresh=True)


@rule(aten.addmv, aten.addbmm)
def affine_rare(call: Call, bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """The vector and the summed form of X Θ + b (eq. FC)."""
    summed = call.op.overloadpacket is aten.addbmm
    total = total_of(a) @ total_of(b)
    total = total.sum(0) if summed else total
    if not carries(a) and not carries(b):
        return _onto(call, bias, total, alpha, beta)
    product = matrix_product(call, a, b).sum(1) if summed else _vector_product(call, a, b)
    if carries(bias):
        return product * alpha + beta * spread(bias.target, call.total.dim())  # type: ignore[attr-defined]
    return share_bias(product * alpha, total * alpha, total_of(bias) * beta, call.options)


def _onto(call: Call, bias: Tensor, product: Tensor, alpha: float, beta: float) -> Tensor:
    """A plain product on top of portions is the constant of the two."""
    scaled = Portions(total_of(bias) * beta, target_of(bias, call.groups) * beta)
    return _add_constant(call, scaled, product * alpha, 1)


@rule(aten.add, aten.sub, rows="elements")
def add(call: Call, a: Any, b: Any, *, alpha: float = 1) -> Tensor:
    """A sum of portions adds their targets; a constant that is added is a bias (eq. gcn_b)."""
    sign = -alpha if call.op.overloadpacket is aten.sub else alpha
    if carries(a) and carries(b):
        left, right = (target.to(call.total.dtype) for target in targets(call, a, b))
        return left + right if sign == 1 else torch.add(left, right, alpha=sign)
    if carries(a):
        return _add_constant(call, a, total_of(b) * sign if sign != 1 else total_of(b), 1)
    return _add_constant(call, b, total_of(a), sign)


@rule(aten.rsub, rows="elements")
def rsub(call: Call, a: Any, b: Any, alpha: float = 1) -> Tensor:
    """b − a, as in 1 − z: the target changes its sign, the constant is a bias (eq. gcn_b)."""
    return add(call, b, a, alpha=-alpha)


def _add_constant(call: Call, x: Portions, constant: Any, factor: float) -> Tensor:
    target, total = spread(x.target, call.total.dim()).to(call.total.dtype), x.total.to(call.total.dtype)
    if factor == 1:
        return share_bias(target, total, constant, call.options)
    return share_bias(target * factor, total * factor, constant, call.options)


@rule(aten._trilinear)
@or_lost
def trilinear(call: Call, a: Tensor, b: Tensor, c: Tensor, *args: Any) -> Tensor:
    """A product of three, linear in each: of targets where portions are, of the whole for plain factors."""
    factors = (a, b, c)
    carried = [i for i, x in enumerate(factors) if carries(x)]
    if call.options.product == "target" or len(carried) == 1:
        return _by_group(call, factors, carried, args)
    if len(carried) > 2:
        raise NotImplementedError("a product of three portions has a rule with Options(product='target') only")
    return (_by_group(call, factors, carried[:1], args) + _by_group(call, factors, carried[1:], args)) / 2


def _by_group(call: Call, factors: tuple[Tensor, ...], as_target: list[int], args: tuple[Any, ...]) -> Tensor:
    """The product with the targets of some factors and the totals of the others, one group after the other."""
    outs = [
        aten._trilinear(
            *[target_of(x, call.groups)[k] if i in as_target else total_of(x) for i, x in enumerate(factors)], *args
        )
        for k in range(call.groups)
    ]
    return torch.stack(outs) if outs else call.total.new_zeros(0, *call.total.shape)


@rule(aten.convolution)
def convolution(call: Call, x: Tensor, weight: Tensor, bias: Tensor | None, *args: Any) -> Tensor:
    """A convolution over a regular grid: linear in x, with the bias shared (eq. gcn_b)."""
    if carries(weight) or not isinstance(x, Portions):
        raise NotImplementedError("a convolution whose kernel carries portions has no rule")
    flat = x.target.flatten(0, 1) if x.dim() > weight.dim() - 1 else x.target
    linear = aten.convolution(flat, total_of(weight), None, *args)
    target = linear.reshape(call.groups, *call.total.shape) if x.dim() > weight.dim() - 1 else linear
    if bias is None:
        return target
    constant = total_of(bias).reshape(-1, *[1] * (weight.dim() - 2))
    return share_bias(target, aten.convolution(x.total, total_of(weight), None, *args), constant, call.options)


@rule(aten.mul, rows="elements")
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


@rule(aten.div, rows="elements")
@or_lost
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


@rule(aten._linalg_solve_ex)
def solve(call: Call, a: Tensor, b: Tensor, *, left: bool = True, **_: Any) -> tuple[Tensor | None, ...]:
    """A⁻¹ B: linear in B, so the map on the target (eq. FC without b)."""
    if carries(a):
        raise NotImplementedError("a system of equations whose matrix is made of portions has no rule")
    target = target_of(b, call.groups)
    if b.dim() < a.dim():  # vectors
        return torch.linalg.solve(total_of(a), target.unsqueeze(-1)).squeeze(-1), None, None, None
    return torch.linalg.solve(total_of(a), target, left=left), None, None, None


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
    gap: Any = total_of(b) - total_of(a)
    if _any(a, b):
        gap = Portions(gap, add(Call(aten.sub.Tensor, gap, call.groups, call.options), b, a))
    step: Any = total_of(gap) * total_of(weight)
    if carries(gap) or carries(weight):
        inner = Call(aten.mul.Tensor, step, call.groups, call.options)
        step = Portions(step, _dense(mul(inner, gap, weight)))
    return _add(call, a, step)


@rule(aten.xlogy)
@or_lost
def xlogy(call: Call, a: Any, b: Any) -> Tensor:
    """a·log b, as the logarithm and the product would give it; 0 where a is."""
    a, b = (x if isinstance(x, Tensor) else torch.tensor(x, dtype=call.total.dtype) for x in (a, b))
    log: Any = total_of(b).log()
    if carries(b):
        log = Portions(log, proportional(Call(aten.log.default, log, call.groups, call.options), b))
    target = _dense(mul(Call(aten.mul.Tensor, call.total, call.groups, call.options), a, log))
    return torch.where((total_of(a) == 0) | ~target.isfinite(), torch.zeros_like(target), target)


@rule(aten.glu)
def glu(call: Call, x: Portions, dim: int = -1) -> Tensor:
    """a·σ(b) of two halves: the gate is an activation, the product target × target."""
    total, target = x.total.chunk(2, dim), x.target.chunk(2, shift(dim))
    gate = Portions(total[1], target[1])
    inner = Call(aten.sigmoid.default, total[1].sigmoid(), call.groups, call.options)
    opened = Portions(inner.total, telescope(inner, torch.sigmoid, gate))
    return bilinear(call, torch.mul, Portions(total[0], target[0]), opened)


@rule(aten.addcmul, rows="elements")
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
    return add(Call(aten.add.Tensor, call.total, call.groups, call.options), a, b)
