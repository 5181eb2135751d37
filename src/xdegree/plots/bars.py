"""Scores as bars: a way from zero to the prediction, and what single features contribute."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from ..canvas import (
    GREY,
    INK,
    SIGNED,
    account,
    account_line,
    alike,
    described,
    output_name,
    scale_of,
    signs_line,
    unit_of,
)
from ..canvas.wording import JOINT, PLURAL, outputs_of, sum_of_two
from ..results.explanation import Explanation
from ..results.hetero import HeteroExplanation
from .style import figure_of, new_axes, quiet

UP, DOWN, REST = SIGNED[-40], SIGNED[40], "#b5b5b5"
"""Red, blue, and the grey of what belongs to no single part."""
Result = Explanation | HeteroExplanation


def plot_waterfall(
    result: Result,
    *,
    names: Mapping[Any, str] | None = None,
    most: int = 10,
    classes: Sequence[str] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the way from zero to the prediction: the largest scores, all others together, the rest, the prediction.

    The rest is what single scores leave open, joint effects and biases; where scores add up, it is nearly nothing.

    Args:
        result: an explanation of nodes, edges or features, in the reading "contribution".
        names: what to call a node, edge or feature, by what `top` calls it.
        most: how many scores have a bar of their own.
        classes: names of the classes; their numbers by default.
        title: above the picture.
        ax: where to draw; a new figure by default.

    Returns:
        The figure, never shown.
    """
    if not isinstance(result, Result):
        raise TypeError(f"a waterfall is drawn of an explanation (got {described(result)})")
    found = account(result)
    if found is None:
        raise ValueError(f"scores of the reading {result.reading!r} do not add up to a prediction")
    top = result.top(most, by="size") if isinstance(result, Explanation) else result.top(most)
    count = sum(s.numel() for s in _scores(result).values()) if not isinstance(result, Explanation) else _able(result)
    steps = [] if found.start is None else [("baseline", found.start)]
    steps += [(named(name, result.of, names), score) for name, score in top]
    if count > len(top):
        other = found.parts - sum(score for _, score in top)
        steps.append((f"{count - len(top)} other {PLURAL[result.of]}", other))
    ax = new_axes((7.5, 0.34 * (len(steps) + 2) + 1.6)) if ax is None else ax
    _draw_steps(ax, [*steps, (f"rest: {JOINT}", found.rest)], found.prediction, output_name(result, classes))
    unit = scale_of(outputs_of(result))
    said = (f"{output_name(result, classes)} ({unit})", signs_line(result, classes), account_line(result, classes))
    _finish(ax, title, *said)
    return figure_of(ax)


def _able(e: Explanation) -> int:
    return len(e.nodes) if e.of == "node" else int(e.scores.count_nonzero())


def _scores(result: Result) -> Mapping[Any, Tensor]:
    found: Mapping[Any, Tensor] = result.scores if isinstance(result.scores, Mapping) else {"": result.scores}
    return found


def named(name: Any, of: str, names: Mapping[Any, str] | None) -> str:
    """What a score is of, in words: ``node 5``, ``edge 2 → 5``, ``node 5, feature 3``, ``paper 5``."""
    if names is not None and name in names:
        return str(names[name])
    if not isinstance(name, tuple):
        return f"{of.removesuffix('_feature')} {name}"
    if of == "edge" and len(name) == 2 and all(isinstance(end, int) for end in name):
        return f"edge {name[0]} → {name[1]}"
    if isinstance(name[0], int):
        return f"{'edge' if of == 'edge_feature' else 'node'} {name[0]}, feature {name[1]}"
    kind = " ".join(map(str, name[0])) if isinstance(name[0], tuple) else str(name[0])
    return f"{kind} {name[1]}" + (f", feature {name[2]}" if len(name) > 2 else "")


def _draw_steps(ax: Axes, steps: Sequence[tuple[str, float]], prediction: float, name: str) -> None:
    at, texts = 0.0, alike([*(score for _, score in steps), prediction])
    begin = steps[0][1] if steps[0][0] == "baseline" else 0.0
    # As the words below have it.
    texts[-2] = sum_of_two(prediction - begin - steps[-1][1], prediction - begin)[2]
    for row, (label, score) in enumerate(steps):
        last = row == len(steps) - 1
        colour = REST if last or label == "baseline" else UP if score >= 0 else DOWN
        ax.barh(row, score, left=at, height=0.62, color=colour, zorder=2)
        ax.plot([at + score] * 2, [row - 0.31, row + 1.31], c=GREY, lw=0.6, zorder=1)
        _number(ax, max(at, at + score), row, texts[row])
        at += score
    ax.barh(len(steps), prediction, height=0.62, color=INK, zorder=2, gid="prediction")
    _number(ax, max(prediction, 0.0), len(steps), texts[-1])
    ax.set_yticks(range(len(steps) + 1), [*(label for label, _ in steps), f"prediction, {name}"], parse_math=False)
    ax.set_ylim(len(steps) + 0.6, -0.6)


def _number(ax: Axes, x: float, row: float, text: str) -> None:
    beside: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
    ax.annotate(text, (x, row), **beside, fontsize=8, color=INK, annotation_clip=False)


def plot_features(
    result: Result,
    *,
    features: Sequence[str] | None = None,
    node: int | None = None,
    kind: Any = None,
    most: int = 15,
    classes: Sequence[str] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw what single features contribute, summed over all nodes (or edges) or of one of them.

    A sum may hide that a feature raises the output at some nodes and lowers it at others: the grey line of a bar goes
    from what it lowers to what it raises in all.

    Args:
        result: an explanation with ``of="feature"`` or ``of="edge_feature"``.
        features: names of the features; their numbers by default.
        node: one node, or one edge by its number, instead of the sum.
        kind: the type of nodes or edges, where there are several.
        most: how many features have a bar, the largest by magnitude.
        classes: names of the classes; their numbers by default.
        title: above the picture.
        ax: where to draw; a new figure by default.

    Returns:
        The figure, never shown.
    """
    scores = _of_features(result, kind)
    what = "edge" if result.of == "edge_feature" else "node"
    if features is not None and len(features) != scores.shape[1]:
        raise ValueError(f"there are {scores.shape[1]} features, but {len(features)} names")
    if node is not None and node not in range(len(scores)):
        raise ValueError(f"node is one of the {what}s 0 to {len(scores) - 1} (got {node})")
    rows = scores if node is None else scores[node : node + 1]
    net = rows.sum(0)
    order = torch.argsort(net.abs(), descending=True, stable=True)[:most].tolist()
    low, high = rows.clamp(max=0).sum(0).tolist(), rows.clamp(min=0).sum(0).tolist()
    ax = new_axes((7.0, 0.3 * len(order) + 1.7)) if ax is None else ax
    for row, (feature, text) in enumerate(zip(order, alike(net[order].tolist()), strict=True)):
        value = float(net[feature])
        ax.barh(row, value, height=0.6, color=UP if value >= 0 else DOWN, zorder=2, gid=f"feature {feature}")
        if low[feature] and high[feature]:
            ax.plot([low[feature], high[feature]], [row, row], c=GREY, lw=1.2, zorder=3, gid="spread")
        _number(ax, max(value, high[feature], 0.0), row, text)
    labels = [features[f] if features is not None else f"feature {f}" for f in order]
    ax.set_yticks(range(len(order)), labels, parse_math=False)
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.axvline(0, c=INK, lw=0.8)
    whose = f"summed over {len(scores)} {what}s" if node is None else f"of {what} {node}"
    spread = f"grey lines go from what a feature lowers at some {what}s to what it raises at others"
    said = [line for line in ax.lines if line.get_gid() == "spread"]
    lines = (f"{unit_of(result, classes)}, {whose}", signs_line(result, classes), spread if said else "")
    _finish(ax, title, *lines, account_line(result, classes))
    return figure_of(ax)


def _of_features(result: Result, kind: Any) -> Tensor:
    """``[rows, F]``."""
    if not isinstance(result, Result) or result.of not in ("feature", "edge_feature"):
        got = f"of={result.of!r}" if isinstance(result, Result) else described(result)
        raise ValueError(f'features are drawn of an explanation with of="feature" or of="edge_feature" (got {got})')
    found = _scores(result)
    if isinstance(result, Explanation):
        scores = result.scores
    elif kind in found:
        scores = found[kind]
    else:
        raise ValueError(f"kind is one of {list(found)} (got {kind!r})")
    return scores.detach().double().reshape(len(scores), -1)


def _finish(ax: Axes, title: str | None, *lines: str) -> None:
    """No frame, a quiet grid, the words below."""
    quiet(ax, title, *lines)
    ax.grid(axis="x", color="#e6e6e6", lw=0.6, zorder=0)
    ax.set_axisbelow(True)
    ax.margins(x=0.12)
