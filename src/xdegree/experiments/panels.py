"""Agglomerations as the paper draws them: single nodes first, then levels, one prediction below the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..canvas import INK, Canvas, unit_of
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


def plot_rows(rows: Sequence[Row], *, levels: int = 5, across: bool = True, unit: str | None = None) -> "Figure":
    """Single nodes and so many levels of each tree: side by side, or below each other where nodes are words.

    Every prediction has a scale of its own, as their contributions differ in size.
    """
    from matplotlib.figure import Figure

    shown = [[("single", row.tree.leaves), *_levels(row.tree, levels)] for row in rows]
    width = 12.0 if across else 9.5
    heights = [_height(row.canvas, len(parts), width, across) for row, parts in zip(rows, shown, strict=True)]
    figure = Figure(figsize=(width, sum(heights)), dpi=150, layout="constrained")
    parts_of = figure.subfigures(len(rows), 1, height_ratios=heights, squeeze=False).flatten()
    columns = max(map(len, shown))
    for row, parts, place in zip(rows, shown, parts_of, strict=True):
        place.suptitle(row.title, fontsize=10.5, color=INK, x=0.01, ha="left", parse_math=False)
        grid = place.subplots(*((1, columns) if across else (len(parts), 1)), squeeze=False).flatten().tolist()
        _draw(grid, row, parts, unit, across)
    return figure


def _draw(grid: list[object], row: Row, parts: list[tuple[str, Level]], unit: str | None, across: bool) -> None:
    from ..plots.agglomeration import draw_level
    from ..plots.style import centred, colour_bar

    norm = centred(group.score for _, level in parts for group in level)
    for ax, (name, level) in zip(grid, parts, strict=False):
        draw_level(ax, row.canvas, level, norm.halfrange)  # type: ignore[arg-type]
        ax.set_title(name, fontsize=8.5, color=INK, loc="center" if across else "left")  # type: ignore[attr-defined]
    for ax in grid[len(parts) :]:
        ax.set_axis_off()  # type: ignore[attr-defined]
    colour_bar(grid, norm, unit or unit_of(row.tree), below=not across)  # type: ignore[arg-type]


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
