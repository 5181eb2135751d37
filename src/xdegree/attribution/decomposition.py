"""What `decompose` answers, and how the answers of several passes become one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ..engine.torch_private import tree_flatten, tree_iter, tree_unflatten
from ..model_call.call import mapped_tensors


@dataclass(frozen=True)
class Decomposition:
    """A value of the model and what each group contributed to it."""

    total: Any
    """The model's own value, bit for bit."""
    target: Any
    """``[K, *total]``: what each group contributes."""
    probes: Mapping[str, "Decomposition"] = field(default_factory=dict)
    """The same at the outputs of named modules."""
    logits: "Decomposition | None" = None
    """The same at what the last softmax or sigmoid was applied to, if the model ends with one."""
    products: frozenset[str] = frozenset()
    """The modules that multiply one portion by another, where most of the product is background by the paper's rule."""

    @property
    def background(self) -> Any:
        """What the rest contributes, ``total - target``."""
        totals, shape = tree_flatten(self.total)
        targets, _ = tree_flatten(self.target)
        rest = [None if b is None else a - b for a, b in zip(totals, targets, strict=True)]
        return tree_unflatten(rest, shape)

    def __repr__(self) -> str:
        shapes = [tuple(t.shape) for t in tree_iter(self.target) if t is not None]
        probes = f", probes={list(self.probes)}" if self.probes else ""
        logits = ", with logits" if self.logits is not None else ""
        return f"Decomposition(target={shapes[0] if len(shapes) == 1 else shapes}{probes}{logits})"

    def _repr_html_(self) -> str | None:
        """How notebooks show it: a table of groups."""
        from ..results.notebook import decomposition_table

        if self.logits is not None:
            return decomposition_table(self.logits.total, self.logits.target, "logits")
        return decomposition_table(self.total, self.target)


def added(parts: list[Decomposition]) -> Decomposition:
    """The targets of all steps added up; the totals are those of the last."""
    return _merged(parts, -1, lambda targets: sum(targets[1:], targets[0]))


def joined(parts: list[Decomposition]) -> Decomposition:
    """The answers of several passes as one; the total is the same in all of them."""
    return parts[0] if len(parts) == 1 else _merged(parts, 0, torch.cat)


def _merged(parts: list[Decomposition], base: int, merge: Callable[[Any], Any]) -> Decomposition:
    """One of the parts, with the targets of all of them in its targets, also at probes and logits."""
    flat, one = [tree_flatten(part.target) for part in parts], parts[base]
    each = zip(*[found for found, _ in flat], strict=True)
    target = tree_unflatten([None if group[0] is None else merge(group) for group in each], flat[0][1])
    probes = {name: _merged([part.probes[name] for part in parts], base, merge) for name in one.probes}
    before = [part.logits for part in parts if part.logits is not None]
    logits = None if one.logits is None else _merged(before, base, merge)
    return replace(one, target=target, probes=probes, logits=logits)


def beyond_the_last(d: Decomposition) -> Decomposition:
    """The targets beyond that of the last group, which is empty."""
    target = mapped_tensors(lambda t: t[:-1] - t[-1:], d.target)
    logits = None if d.logits is None else beyond_the_last(d.logits)
    probes = {name: beyond_the_last(probe) for name, probe in d.probes.items()}
    return replace(d, target=target, probes=probes, logits=logits)


def is_sound(d: Decomposition) -> bool:
    """Whether targets are finite wherever the model's own value is."""
    pairs = zip(tree_iter(d.total), tree_iter(d.target), strict=True)
    return not any(t is not None and bool((v.isfinite() & ~t.isfinite()).any()) for v, t in pairs)
