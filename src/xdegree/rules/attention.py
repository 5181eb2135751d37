"""Softmax, as the attention of a GAT and as the probabilities of an output."""

from typing import Any

import torch
import torch_geometric.utils
from torch import Tensor

from ..portions import Portions
from ..registry import Call, aten, rule
from .common import share_constant


@rule(torch_geometric.utils.softmax, aten._softmax, aten._safe_softmax)
def softmax(call: Call, src: Portions, *args: Any, **kwargs: Any) -> Tensor:
    """softmax(X)·exp|γ| / (exp|γ| + exp|β|), the softmax itself being of the total (eq. softmax).

    Written as σ(|γ| − |β|), which cannot overflow. The rule is the paper's to the letter: exp|0| = 1, so that
    the empty group has a share here too. In attention that is multiplied with an empty value; as a probability
    it is the share of a group about which nothing arrived.
    """
    return call.total * torch.sigmoid(src.target.abs().sub_(src.background.abs_()))


@rule(aten._log_softmax)
def log_softmax(call: Call, x: Portions, dim: int, *args: Any) -> Tensor:
    """x − log Σ exp x: the telescoping sum (eq. ReLU) with the constant −log C as a bias."""
    return _telescope_along(call, lambda t: torch.log_softmax(t, _behind(dim)), x, dim)


def _telescope_along(call: Call, f: Any, x: Portions, dim: int) -> Tensor:
    constant = f(torch.zeros_like(x.total).unsqueeze(0))
    if call.options.activation == "target-first":
        target = f(x.target)
    elif call.options.activation == "target-last":
        target = call.total - f(x.background) + constant
    else:
        target = (f(x.target) + call.total - f(x.background) + constant) / 2
    return share_constant(target - constant, x, constant, call.options)


def _behind(dim: int) -> int:
    return dim + 1 if dim >= 0 else dim
