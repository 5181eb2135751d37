"""What all views say in words: which output is explained, what red and blue do to it, what scores add up to."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..results.tree import ExplanationTree, Level

UNSIGNED = {
    "impact": ("impact (how much the classes are moved against each other)", "the more it moves the classes"),
    "strength": (
        "strength (L1 norm in the last hidden layer)",
        "the more of it reaches the last hidden layer, for or against the prediction",
    ),
}
"""Readings without a sign: what they measure, and what dark red means."""
PLURAL = {"node": "nodes", "edge": "edges", "feature": "features", "edge_feature": "edge features"}
MINUS = "\N{MINUS SIGN}"
JOINT = "joint effects and biases"
"""What the scores of single nodes leave open."""
LARGE = 0.5
"""The share of a prediction that single scores may leave open before a view says what that means."""


def output_name(result: Any, classes: Sequence[str] | None = None) -> str:
    """Which output is explained: the class by its name or number; "the output" where there is only one."""
    if classes is not None and result.target < len(classes):
        return f"“{classes[result.target]}”" if len(result.prediction) > 1 else str(classes[result.target])
    return f"class {result.target}" if len(result.prediction) > 1 else "the output"


def scale_of(prediction: Any) -> str:
    """What kind of numbers the outputs are: those of a softmax add up to 1, or their exponentials do."""
    values = torch.as_tensor(prediction, dtype=torch.double)
    if len(values) == 1:
        return "its own unit"
    if values.isfinite().all() and (values >= 0).all() and abs(float(values.sum()) - 1) < 1e-3:
        return "probability"
    return "log-probability" if abs(float(values.logsumexp(0))) < 1e-3 else "logits"


def unit_of(result: Any, classes: Sequence[str] | None = None) -> str:
    """What a legend says: what scores measure, for which output, in which unit. Plain numbers are just scores."""
    if getattr(result, "prediction", None) is None:
        return "score"
    if result.reading in UNSIGNED:
        return UNSIGNED[result.reading][0]
    unit = "probability" if result.reading == "probability" else scale_of(outputs_of(result))
    return f"contribution to {output_name(result, classes)} ({unit})"


def outputs_of(result: Any) -> Any:
    """What is explained, one number per class: the logits before a last softmax if there are any, else the outputs."""
    logits = getattr(result, "logits", None)
    return result.prediction if logits is None else logits


def shares_of(result: Any) -> list[float] | None:
    """The share of each class where outputs are those of a softmax, or logits that one can be applied to; else None."""
    values, scale = torch.as_tensor(result.prediction, dtype=torch.double), scale_of(result.prediction)
    ended = getattr(result, "logits", None) is not None  # by a sigmoid where it was no softmax: each class by itself
    if len(values) == 1 or (ended and scale == "logits"):
        return None
    return (values if scale == "probability" else values.softmax(0)).tolist()


def signs_line(result: Any, classes: Sequence[str] | None = None) -> str:
    """What the colours mean, in words."""
    if getattr(result, "prediction", None) is None:
        return "red: positive, blue: negative"
    if result.reading in UNSIGNED:
        return f"the darker the red, {UNSIGNED[result.reading][1]}"
    return f"red raises {output_name(result, classes)}, blue lowers it"


@dataclass(frozen=True)
class Account:
    """What the parts add up to, beside the prediction."""

    parts: float
    """The sum of the scores."""
    prediction: float
    """The model's own output (or logit) for what is explained."""
    what: str
    """What the parts are, as "single nodes"."""
    name: str = "prediction"
    """What is explained: the prediction, or the logit where the model ends in a softmax or sigmoid."""
    start: float | None = None
    """The output for the baseline's features, which scores add to; None where they start from nothing."""

    @property
    def rest(self) -> float:
        """What the parts leave open: what nodes do only together, and biases."""
        return self.prediction - self.parts - (self.start or 0.0)


def account(result: Any, level: Level | None = None, *, node: str = "node") -> Account | None:
    """What the scores of a result add up to; None for readings that are no parts of the output.

    Args:
        result: an explanation or a tree.
        level: groups of a tree, to add up those instead of single nodes.
        node: what a reader calls a node, as "atom".
    """
    if getattr(result, "prediction", None) is None or result.reading != "contribution":
        return None
    output = float(outputs_of(result)[result.target])
    baseline = getattr(result, "baseline_output", None)
    if isinstance(result, ExplanationTree):
        groups = result.leaves if level is None else level
        some = f"the {len(result.leaves)} strongest single {node}s" if result.left_out else f"single {node}s"
        what = some if level is None else ("these groups" if len(level) > 1 else "this group")
        parts = math.fsum(group.score for group in groups)
    else:
        found = result.scores.values() if isinstance(result.scores, Mapping) else [result.scores]
        plural = f"{node}s" if result.of == "node" else PLURAL[result.of]
        what, parts = f"single {plural}", math.fsum(float(s.detach().double().sum()) for s in found)
    name = "prediction" if getattr(result, "logits", None) is None else "logit"
    return Account(parts, output, what, name, None if baseline is None else float(baseline[result.target]))


def account_line(
    result: Any, classes: Sequence[str] | None = None, level: Level | None = None, *, node: str = "node"
) -> str:
    """What single scores add up to, the prediction, and the rest, in one sentence; empty where they do not add up."""
    found = account(result, level, node=node)
    if found is None:
        return ""
    start = found.start or 0.0
    parts, prediction, rest = sum_of_two(found.parts, found.prediction - start)
    whose = f" for {output_name(result, classes)}" if len(result.prediction) > 1 else ""
    beyond = "" if found.start is None else f" beyond the baseline's {alike([start])[0]}"
    verb = "adds" if level is not None and len(level) == 1 else "add"
    said = f"{found.what} {verb} up to {parts}, the {found.name}{whose} is {prediction}{beyond}"
    return f"{said}, the rest ({JOINT}) is {rest}"


def open_line(result: Any, *, node: str = "node") -> str:
    """What a large rest means, in one sentence; empty where single scores account for most of the prediction."""
    found = account(result, node=node)
    if found is None or abs(found.rest) <= LARGE * abs(found.prediction):
        return ""
    return f"much of this {found.name} is what {found.what.removeprefix('single ')} do only together: look at groups"


def alike(values: Iterable[float], digits: int = 3) -> list[str]:
    """Signed numbers with the decimals that the largest of them deserves, so that they can be compared and added."""
    given = list(values)
    decimals = _decimals(given, digits)
    return [_fixed(value, decimals) for value in given]


def sum_of_two(parts: float, total: float) -> tuple[str, str, str]:
    """A part, the whole and what is between them, rounded so that the printed numbers add up."""
    decimals = _decimals((parts, total, total - parts))
    if not all(map(math.isfinite, (parts, total))):
        return _fixed(parts, decimals), _fixed(total, decimals), _fixed(total - parts, decimals)
    rest = round(total, decimals) - round(parts, decimals)
    return _fixed(parts, decimals), _fixed(total, decimals), _fixed(rest, decimals)


def _decimals(values: Iterable[float], digits: int = 3) -> int:
    most = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return max(0, min(12, digits - 1 - math.floor(math.log10(most)))) if most else digits - 1


def _fixed(value: float, decimals: int) -> str:
    text = f"{value:+.{decimals}f}"
    nothing = math.isfinite(value) and float(text) == 0
    return text[1:] if nothing else text.replace("-", MINUS)
