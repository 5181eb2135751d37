"""Phantom portions: targets and backgrounds that are large only against each other and cancel in the total.

A unit whose output is 0 can have portions of +5 and −5; a batch norm behind it that scales by 1,000 makes thousands of
them where the model itself computes numbers near 1. Such contributions say nothing about the prediction.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..engine.options import Options
from ..engine.portions import leaves, portions_in
from ..engine.run import Run
from ..engine.torch_private import tree_flatten
from ..model_call.call import ModelCall
from ..model_call.shadow_model import shadow_of
from ..model_call.split_points import Source

LIMIT = 10.0
"""How many times the largest value of the model a contribution may be without a warning."""

SCALES = ("aten.rsqrt", "aten.reciprocal")
"""What they give is a factor, as one over the deviation of a norm: no value that a contribution is part of."""
SQUARES, ROOTS = ("aten.pow", "aten.square", "aten.var"), ("aten.sqrt", "aten.rsqrt", "aten.div", "aten.reciprocal")
"""Between them lie the squares of a deviation, which are no such values either."""


@dataclass(frozen=True)
class Portion:
    """The largest target of one operation, with the total that it is a part of."""

    module: str
    """The path of the module; empty for the model itself."""
    op: str
    target: float
    total: float
    largest: float
    """The largest value that the model computed up to there."""

    def __str__(self) -> str:
        where = f"in module {self.module!r}" if self.module else "in the model itself"
        background = self.total - self.target
        return f"{where} ({self.op}: target {self.target:.3g}, background {background:.3g}, total {self.total:.3g})"


def warn_of_phantoms(total: Any, target: Any, locate: Callable[[int], list[Portion]]) -> None:
    """Warn, once, of contributions that are large against every value that the model computed.

    Args:
        total: the model's output, or several tensors.
        target: the contributions ``[K, *total]``.
        locate: runs one group again and returns its portions, in order.
    """
    worst = max(_suspicious(total, target), default=None)
    if worst is None:
        return
    size, group = worst
    portions = locate(group)
    largest = portions[-1].largest if portions else 0.0
    first = next((p for p in portions if abs(p.target) > LIMIT * p.largest), None)
    if first is None or size <= LIMIT * largest:
        return
    warnings.warn(
        f"contributions of up to {size:.3g}, but the largest value that the model itself computes is {largest:.3g}:"
        f" portions of opposite sign that cancel in the total were scaled up, first {first}. Such contributions say"
        ' little about the prediction. options=Options(bound="output") keeps every portion within what its unit puts'
        ' out; Options(activation="gate") passes nothing through units that are 0',
        stacklevel=2,
    )


def warn_of_infinite(output: Any, what: str = "the model's output") -> None:
    """Warn of an output that has no parts, since it is no number."""
    for part in tree_flatten(output)[0]:
        if isinstance(part, Tensor) and part.is_floating_point() and not bool((finite := part.isfinite()).all()):
            rows = [] if part.numel() <= 8 else (~finite.reshape(len(part), -1)).any(1).nonzero().flatten().tolist()
            values = part.tolist() if not rows else f"in {len(rows)} of {len(part)} rows, first {rows[0]}"
            warnings.warn(
                f"{what} is not finite ({values}), so its scores mean nothing; look for a division by zero or an"
                " overflow in the model",
                stacklevel=3,
            )
            return


def warn_of_the_whole(total: Any, target: Any, share: Any) -> None:
    """Warn where a group that holds everything contributes another number than the output."""
    parts = tree_flatten(share)[0]
    if not all(isinstance(part, Tensor) for part in parts):
        return  # single nodes or features, each a group of its own
    each = [part.reshape(len(part), -1).ge(1).all(1) for part in parts if part.numel()]
    groups = torch.stack(each).all(0).nonzero().flatten().tolist() if each else []
    for whole, part in zip(tree_flatten(total)[0], tree_flatten(target)[0], strict=True):
        if part is None or not groups or not whole.numel():
            continue
        gap, largest = largest_of(whole - part[groups[0]]), largest_of(whole)
        if gap > max(largest, torch.finfo(whole.dtype).tiny):
            warnings.warn(
                f"the group of all rows contributes up to {gap:.3g} more or less than the output, whose largest value"
                f" is {largest:.3g}: portions that cancel in the output leave a part that no group has;"
                " the default options, or steps=16, leave less open",
                stacklevel=2,
            )
            return


def _suspicious(total: Any, target: Any) -> Iterator[tuple[float, int]]:
    """The largest contribution and its group, of each part of an output that it is large against."""
    for whole, part in zip(tree_flatten(total)[0], tree_flatten(target)[0], strict=True):
        if part is None or not part.numel():
            continue
        if largest_of(part) > LIMIT * largest_of(whole):
            by_group = part.abs().nan_to_num(0, 0).reshape(len(part), -1).amax(1)
            yield float(by_group.max()), int(by_group.argmax())


def largest_of(x: Tensor) -> float:
    """The size of the largest finite entry."""
    if not x.numel():
        return 0.0
    plain = x.detach().abs() if x.is_complex() else x.detach()
    # In the order of memory, which takes a tenth of the time: targets are stored rows first.
    low, high = plain.permute(sorted(range(x.dim()), key=x.stride, reverse=True)).aminmax()
    size = max(-float(low), float(high))
    return size if size < torch.inf else float(plain.abs().nan_to_num(0, 0).max())


def locate_portions(model: Any, call: ModelCall, source: Source, share: Any, options: Options) -> list[Portion]:
    """One group's largest portion at each operation, in order."""
    portions: list[Portion] = []
    squaring: set[str] = set()  # modules that are about to take a root
    largest = 0.0

    def watch(module: str, op: str, inputs: Any, totals: Any, targets: Any) -> None:
        nonlocal largest
        pairs, given = list(zip(leaves(totals), leaves(targets), strict=True)), portions_in(leaves(inputs))
        own = [] if op.startswith(SCALES) else [total for total, target in pairs if target is not None]
        if op.startswith(SQUARES) or (op.startswith("aten.mul") and len({id(x) for x in given}) < len(given)):
            squaring.add(module)
        if module in squaring:
            own = []
        if op.startswith(ROOTS):
            squaring.discard(module)
        for x in (*own, *(x.total for x in given if not portions)):
            largest = max(largest, largest_of(x))
        for total, target in pairs:
            dense = target if target is None or isinstance(target, Tensor) else target.dense()
            if dense is not None and dense.numel() and not dense.is_complex():
                place = dense[0].abs().nan_to_num(0, 0).argmax()
                values = (float(dense[0].flatten()[place]), float(total.flatten()[place]), largest)
                portions.append(Portion(module, op, *values))

    run = Run(1, options, sparse=False, states=call.random_states, watch=watch)
    shadow = shadow_of(model, run)
    replaced = source.start(run, shadow, share)
    with run.active():
        call.run(shadow, *replaced)
    source.finish()
    return portions
