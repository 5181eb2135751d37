"""Normalisation layers: statistics are the model's own, the offset is a bias."""

from typing import Any

import torch
from torch import Tensor

from ..portions import Portions, total_of
from ..registry import Call, aten, rule
from .common import share_bias


@rule(aten.native_batch_norm, aten._native_batch_norm_legit_no_training)
def batch_norm(
    call: Call,
    x: Portions,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    *args: Any,
) -> tuple[Tensor | None, ...]:
    """Batch norm in eval mode is an affine map per channel; its offset is shared like a bias (eq. gcn_b)."""
    training, eps = (args[0] if len(args) == 3 else False), args[-1]
    if training or mean is None or var is None:
        raise NotImplementedError(
            "batch norm with the statistics of the batch has no rule; call model.eval(), with track_running_stats=True"
        )
    scale = torch.rsqrt(total_of(var) + eps)
    scale = scale if weight is None else scale * total_of(weight)
    offset = -total_of(mean) * scale
    offset = offset if bias is None else offset + total_of(bias)
    channel = (-1, *[1] * (x.dim() - 2))
    scale, offset = scale.reshape(channel), offset.reshape(channel)
    return share_bias(x.target * scale, x.total * scale, offset, call.options), None, None
