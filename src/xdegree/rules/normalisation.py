"""Normalisation layers: statistics are the model's own, the offset is a bias."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_remaining_self_loops, scatter

from ..engine.portions import Portions, carries, total_of
from ..engine.registry import Call, aten, rule
from .common import lost, or_lost, share_bias


@rule(aten.native_batch_norm, aten._native_batch_norm_legit_no_training, rows="weights")
def batch_norm(
    call: Call,
    x: Portions,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    *args: Any,
) -> tuple[Tensor | None, ...]:
    """Batch norm in eval mode is an affine map per channel; its offset is shared like a bias (eq. gcn_b).

    With the statistics of the batch itself (InstanceNorm) the mean is part of the map and of both portions.
    """
    weight, bias, mean, var = _plain(weight, bias, mean, var)
    of_batch, eps = (args[0] if len(args) == 3 else False), args[-1]
    channel = (-1, *[1] * (x.dim() - 2))
    weight, bias = (None if p is None else p.reshape(channel) for p in (weight, bias))
    if of_batch or mean is None or var is None:
        if call.options.loses:
            return lost(call, (x, weight, bias, mean, var, *args), {})
        dims = [d for d in range(x.dim()) if d != 1]
        return _normalised(call, x, dims, weight, bias, eps), None, None
    scale = torch.rsqrt(var + eps).reshape(channel)
    scale = scale if weight is None else scale * weight
    offset = -mean.reshape(channel) * scale
    offset = offset if bias is None else offset + bias
    shared = share_bias(x.target * scale, x.total * scale, offset, call.options)
    return shared.to(x.dtype), None, None  # parameters may be more precise than the features


def _plain(*parameters: Tensor | None) -> list[Any]:
    """The parameters of a norm, which must not carry portions: they would be lost."""
    if any(carries(p) for p in parameters):
        raise NotImplementedError(
            "a norm whose weight, bias or statistics carry portions has no rule; normalise without them, then multiply"
            " and add"
        )
    return [total_of(p) for p in parameters]


def _normalised(
    call: Call, x: Portions, dims: list[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """(x − mean) / σ · w + b: the mean is linear, so each portion's own; σ is the total's and scales both alike."""
    scale = torch.rsqrt(x.total.var(dims, correction=0, keepdim=True) + eps)
    scale = scale if weight is None else scale * weight
    target = (x.target - x.target.mean([d + 1 for d in dims], keepdim=True)) * scale
    if bias is not None:
        target = share_bias(target, (x.total - x.total.mean(dims, keepdim=True)) * scale, bias, call.options)
    return target.to(x.dtype)


@rule(aten.native_layer_norm, rows="columns")
@or_lost
def layer_norm(
    call: Call, x: Portions, shape: list[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor | None, ...]:
    """Layer norm: the mean of each portion, the deviation of the total, the offset a bias (eq. gcn_b)."""
    dims = list(range(x.dim() - len(shape), x.dim()))
    weight, bias = _plain(weight, bias)
    return _normalised(call, x, dims, weight, bias, eps), None, None


@rule(aten.native_group_norm)
@or_lost
def group_norm(
    call: Call,
    x: Portions,
    weight: Tensor | None,
    bias: Tensor | None,
    n: int,
    c: int,
    hw: int,
    groups: int,
    eps: float,
) -> tuple[Tensor | None, ...]:
    """Group norm: layer norm over groups of channels (eq. gcn_b)."""
    weight, bias = _plain(weight, bias)
    shape = (n, groups, c // groups, hw)
    folded = Portions(x.total.reshape(shape), x.target.reshape(call.groups, *shape))
    channel = (1, groups, c // groups, 1)
    weight, bias = (None if p is None else p.reshape(channel) for p in (weight, bias))
    return _normalised(call, folded, [2, 3], weight, bias, eps).reshape(call.groups, *x.shape), None, None


@rule(torch.nn.functional.rms_norm)
@or_lost
def rms_norm(
    call: Call, x: Portions, shape: list[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x / rms(x) · w: the root mean square is the total's and scales both portions alike.

    A rule of the function, because its operations multiply by 1/rms, which would be a product of two portions.
    """
    [weight] = _plain(weight)
    dims = list(range(x.dim() - len(shape), x.dim()))
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    scale = torch.rsqrt(x.total.square().mean(dims, keepdim=True) + eps)
    return (x.target * (scale if weight is None else scale * weight)).to(call.total.dtype)


@rule(gcn_norm)
def degree_norm(
    call: Call,
    edge_index: Tensor,
    edge_weight: Tensor | None = None,
    num_nodes: int | None = None,
    improved: bool = False,
    add_self_loops: bool = True,
    flow: str = "source_to_target",
    dtype: Any = None,
) -> tuple[None, Tensor]:
    """w_ij / √(d_i d_j): the degrees are the total's and scale both portions alike; added self-loops are background.

    A rule of the function, because its operations multiply by 1/√d, which would be a product of three portions, of
    which an edge that does not lead back to its own source has nothing.
    """
    if not isinstance(edge_weight, Portions) or not carries(edge_weight) or edge_index.layout != torch.strided:
        raise NotImplementedError("the norm by degrees has a rule for edge_index [2, E] with edge_weight [E]")
    total, target = edge_weight.total, edge_weight.target.t()  # [E, K]
    size = int(edge_index.max()) + 1 if num_nodes is None and edge_index.numel() else num_nodes
    own = edge_index
    if add_self_loops:
        edge_index, total = add_remaining_self_loops(own, total, 2.0 if improved else 1.0, size)
        target = add_remaining_self_loops(own, target, 0.0, size)[1]
    source, end = edge_index[0], edge_index[1]
    at = end if flow == "source_to_target" else source

    def scale(weight: Tensor) -> Tensor:
        root = scatter(weight, at, 0, dim_size=size, reduce="sum").pow_(-0.5)
        root.masked_fill_(root == torch.inf, 0)
        return root[source] * root[end]

    if not call.options.loses:
        return None, target.t() * scale(total)
    rest = total.unsqueeze(1) - target
    return None, ((total * scale(total)).unsqueeze(1) - rest * scale(rest)).t()
