"""Functions of many entries: norms, variances, distances, products, order statistics."""

from typing import Any

from torch import Tensor

from ..engine.portions import Portions, carries, spread, total_of
from ..engine.registry import Call, aten, rule
from ..engine.torch_private import schema_of
from .common import Half, lift, no_target, numbers_too, or_lost, shift, telescope_lifted


@rule(
    *(aten.linalg_vector_norm, aten.norm, aten.std.correction, aten.var.correction, aten.logsumexp, aten.prod.dim_int),
    *(aten.cumprod, aten.logcumsumexp),
)
@numbers_too
def statistic(call: Call, *args: Any, **kwargs: Any) -> Tensor:
    """A norm, variance or product: of the target first, the background is the remainder (eq. ReLU)."""
    return telescope_lifted(call, args, kwargs)


@rule(aten.var_mean.correction, aten.std_mean.correction)
@numbers_too
def var_mean(call: Call, x: Portions, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """The variance or deviation as a statistic (eq. ReLU), the mean as the linear map it is."""
    if not call.groups:
        return no_target(call.total[0]), no_target(call.total[1])
    single = aten.var.correction if call.op.overloadpacket is aten.var_mean else aten.std.correction
    variance = Call(single, call.total[0], call.groups, call.options)
    target = telescope_lifted(variance, (x, *args), kwargs)
    return target, lift(call, (x, *args), kwargs, Half.target)[1]


@rule(aten.prod.default)
@or_lost
def product(call: Call, x: Portions, *, dtype: Any = None) -> Tensor:
    """Π x: target × … × target, as in attention × value; of no factors at all it is 1, which is background."""
    return x.target.reshape(call.groups, x.numel()).prod(1, dtype=dtype) * bool(x.numel())


@rule(
    *(aten._cdist_forward, aten._euclidean_dist, aten.atan2, aten.hypot, aten.remainder, aten.fmod),
    *(aten.logaddexp, aten.logaddexp2),
)
def distance(call: Call, a: Any, b: Any, *args: Any) -> Tensor:
    """A function of two operands: of the targets first, the background is the remainder (eq. ReLU).

    A plain operand is the same for both; what it gives with zeros is a bias.
    """
    if carries(b) and call.op.overloadpacket in (aten.remainder, aten.fmod):
        raise NotImplementedError("a remainder after division by portions has no rule: a portion may be zero")
    rank = call.total.dim()
    # Adding 0 makes a plain zero of −0, for which atan2 has an opinion of its own.
    operands = [Portions(x.total, spread(x.target, rank) + 0.0) if carries(x) else total_of(x) for x in (a, b)]
    return telescope_lifted(call, (*operands, *args), {})


@rule(
    *(aten.sort, aten.topk, aten.kthvalue, aten.median.dim, aten.nanmedian.dim, aten.mode, aten.cummax, aten.cummin),
)
def ranked(call: Call, x: Portions, *args: Any, **kwargs: Any) -> tuple[Tensor, None]:
    """Both portions at the places that the order of the totals decided, as in max pooling (Maxpooling)."""
    values, places = call.total
    dim = _dimension(call, args, kwargs)
    if x.dim() and values.dim() < x.dim():
        places = places.unsqueeze(dim)
    target = x.target.gather(shift(dim), places.expand(call.groups, *places.shape)) if x.dim() else x.target
    return (target if values.dim() == x.dim() else target.squeeze(shift(dim))), None


@rule(aten.median.default, aten.nanmedian.default)
def median(call: Call, x: Portions) -> Tensor:
    """Both portions at the place of the median of all entries, as in max pooling (Maxpooling)."""
    place = call.op.overloadpacket.dim(x.total.reshape(-1), 0)[1]
    return x.target.reshape(call.groups, x.numel())[:, place]


def _dimension(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """The dimension along which the operation ranks, wherever its schema puts it."""
    names = [argument.name for argument in schema_of(call.op).arguments]
    values = dict(zip(names[1:], args, strict=False)) | kwargs
    return values.get("dim", -1)
