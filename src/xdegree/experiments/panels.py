"""Agglomerations as the paper draws them: single nodes first, then levels, one prediction below the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..canvas import INK, Canvas
from ..results.tree import ExplanationTree, Level

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Row:
    """One prediction: its tree and where to draw it."""

    title: str
    tree: ExplanationTree
    canvas: Canvas


def telling(count: int, most: int) -> list[int]:
    """The first level, the last, and others between, ever farther apart: early on most groups come about and meet."""
    if count <= most:
        return list(range(count))
    return sorted({round(count ** (i / (most - 1))) - 1 for i in range(most)})


def plot_rows(rows: Sequence[Row], *, unit: str, levels: int = 5, across: bool = True) -> "Figure":
    """Single nodes and so many levels of each tree: side by side, or below each other where nodes are words.

    Every prediction has a scale of its own, as their contributions differ in size.
    """
    from matplotlib.figure import Figure

    from ..plots.agglomeration import draw_level
    from ..plots.style import centred, colour_bar

    shown = [[("single", row.tree.leaves), *_levels(row.tree, levels)] for row in rows]
    width = 12.0 if across else 9.5
    heights = [_height(row.canvas, len(parts), width, across) for row, parts in zip(rows, shown, strict=True)]
    figure = Figure(figsize=(width, sum(heights) + 0.3), dpi=150, layout="constrained")
    *parts_of, foot = figure.subfigures(len(rows) + 1, 1, height_ratios=[*heights, 0.3], squeeze=False).flatten()
    foot.text(0.5, 0.5, unit, ha="center", va="center", fontsize=9.5, color=INK)  # once, for the scales of all rows
    columns = max(map(len, shown))
    for row, parts, place in zip(rows, shown, parts_of, strict=True):
        place.suptitle(row.title, fontsize=10.5, color=INK, x=0.01, ha="left", parse_math=False)
        grid = place.subplots(*((1, columns) if across else (len(parts), 1)), squeeze=False).flatten().tolist()
        norm = centred(group.score for _, level in parts for group in level)
        for ax, (name, level) in zip(grid, parts, strict=False):
            draw_level(ax, row.canvas, level, norm.halfrange)
            ax.set_title(name, fontsize=8.5, color=INK, loc="center" if across else "left")
        for ax in grid[len(parts) :]:
            ax.set_axis_off()
        colour_bar(grid, norm, below=not across)
    return figure


def _levels(tree: ExplanationTree, most: int) -> list[tuple[str, Level]]:
    shown = telling(len(tree.levels), most)
    return [
        (f"level {number + 1} of {len(tree.levels)}: {_said(tree.levels[number])}", tree.levels[number])
        for number in shown
    ]


def _said(level: Level) -> str:
    if len(level) > 2:
        return f"{len(level)} groups"
    return ", ".join(f"{group.score:+.2f}".replace("-", "\N{MINUS SIGN}") for group in level)


def _height(canvas: Canvas, panels: int, width: float, across: bool) -> float:
    """Inches for panels that have the shape of what they show."""
    left, low, right, high = canvas.box
    shape = min(max((high - low) / max(right - left, 1e-9), 0.08), 1.4)
    if across:
        return 0.88 * width / panels * shape + 0.75
    return panels * (0.9 * width * shape + 0.3) + 1.0
