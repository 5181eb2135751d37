"""Operations over regular grids: pooling windows, padding, resizing."""

from typing import Any

from torch import Tensor

from ..engine.portions import Portions
from ..engine.registry import Call, aten, rule


@rule(
    *(aten.avg_pool2d, aten.avg_pool3d, aten._adaptive_avg_pool2d, aten._adaptive_avg_pool3d),
    *(aten.reflection_pad1d, aten.reflection_pad2d, aten.replication_pad1d, aten.replication_pad2d),
    *(aten.upsample_nearest1d, aten.upsample_nearest2d, aten.upsample_linear1d, aten.upsample_bilinear2d),
)
def windows(call: Call, x: Portions, *args: Any, **kwargs: Any) -> Tensor:
    """Means over windows, copies at the border: linear, so of both portions alike, with the groups as a batch."""
    batched = x.dim() == _spatial(call) + 2
    folded = x.target.flatten(0, 1) if batched else x.target
    return call.op(folded, *args, **kwargs).reshape(call.groups, *call.total.shape)


@rule(aten.max_pool2d_with_indices, aten.max_pool3d_with_indices, aten.adaptive_max_pool2d, aten.adaptive_max_pool3d)
def max_windows(call: Call, x: Portions, *args: Any, **kwargs: Any) -> tuple[Tensor, None]:
    """Max pooling over windows: both portions at the entry that won in the total (Maxpooling).

    Ties go to the entry that PyTorch names, as places in a grid, unlike nodes, have an order of their own.
    """
    places = call.total[1]
    flat = x.target.flatten(-_spatial(call))
    index = places.flatten(-_spatial(call))
    index = index.expand(call.groups, *index.shape)
    return flat.gather(-1, index).reshape(call.groups, *places.shape), None


def _spatial(call: Call) -> int:
    """How many dimensions the grid has; the names of these operations say it."""
    return next(n for n in (1, 2, 3) if f"{n}d" in str(call.op))
