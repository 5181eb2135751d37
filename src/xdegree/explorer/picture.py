"""The drawing as a picture for slides: what the page shows, with the question, the legend and the groups written on it.

Only this file of the page needs matplotlib, so only a picture does.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyBboxPatch

from ..canvas import INK, Canvas, Edge, Molecule, Sentence
from ..canvas.sentence import TALL
from ..plots import plot_graph, plot_molecule, plot_sentence
from ..plots.agglomeration import draw_level
from ..plots.graph import node_size
from ..plots.sentence import LETTER
from ..plots.style import colour_bar
from ..results.tree import Level
from .cytoscape import shortened
from .page import GROUP_A, GROUP_B
from .subject import Chosen, of_edges

SHARP = 220  # dots per inch
RINGS = ((GROUP_A, "-"), (GROUP_B, "--"))
"""The colours of the groups on the page; dashes for B where the page has a double ring, which matplotlib has not."""


@dataclass(frozen=True)
class Panel:
    """One drawing: a number for each node, or the groups of one level."""

    title: str
    unit: str
    scores: Sequence[float] = ()
    level: Level = ()
    most: float = 0.0
    """The end of the scale of a level, as all levels share it."""


@dataclass(frozen=True)
class Caption:
    """What is written around the drawings."""

    question: str
    below: str
    """What it is about."""
    groups: tuple[Chosen, Chosen]
    said: tuple[str, ...]
    """What the groups contribute: a line for each that is not empty, and one on both."""


def figure(canvas: Canvas, panels: Sequence[Panel], caption: Caption, index: int | None) -> Figure:
    """The drawings side by side, and what is written around them.

    Args:
        canvas: where nodes stand.
        panels: what is drawn on it.
        caption: what is written.
        index: the explained node, where one is.
    """
    width, height = _inches(canvas, len(panels))
    made = Figure(figsize=(width, height + 0.9 + 0.22 * len(caption.said)), dpi=SHARP, layout="constrained")
    letters = int(width * 11)
    lines = [shortened(caption.question, letters), shortened(caption.below, letters)]
    made.suptitle("\n".join(lines), fontsize=11, color=INK, parse_math=False)
    for ax, panel in zip(made.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _draw(ax, canvas, panel, index)
        ax.set_title(panel.title, fontsize=10, color=INK, parse_math=False)
        for group, (colour, line) in zip(caption.groups, RINGS, strict=True):
            if of_edges(group):
                _band(ax, canvas, group, colour, line)
            else:
                _ring(ax, canvas, group, colour, line)
    if caption.said:
        _legend(made, caption, int(width * 12))
    return made


def png(made: Figure) -> bytes:
    """A figure as a file."""
    file = io.BytesIO()
    made.savefig(file, format="png")
    return file.getvalue()


def _inches(canvas: Canvas, count: int) -> tuple[float, float]:
    """The size of all drawings side by side: their own shape, within what fits a slide."""
    left, low, right, high = canvas.box
    shape = min(max((high - low) / max(right - left, 1e-9), 0.12), 1.1)
    if isinstance(canvas, Sentence):
        width = min(max((right - left) * LETTER, 5.5), 11.0)
    elif isinstance(canvas, Molecule):
        width = min(max((right - left) / 60, 5.5), 9.0 if count == 1 else 6.5)
    else:
        width, shape = (8.0 if count == 1 else 6.5), max(shape, 0.6)
    return width * count, width * shape + 0.6


def _draw(ax: Axes, canvas: Canvas, panel: Panel, index: int | None) -> None:
    if panel.level:
        draw_level(ax, canvas, panel.level, panel.most)
        colour_bar(ax, CenteredNorm(0, panel.most), panel.unit, below=True)
    elif isinstance(canvas, Molecule):
        plot_molecule(panel.scores, unit=panel.unit, canvas=canvas, ax=ax)
    elif isinstance(canvas, Sentence):
        plot_sentence(panel.scores, list(canvas.labels.values()), unit=panel.unit, canvas=canvas, ax=ax)
    else:
        plot_graph(panel.scores, nodes=canvas.places, index=index, unit=panel.unit, canvas=canvas, ax=ax)


def _band(ax: Axes, canvas: Canvas, edges: Sequence[Edge], colour: str, line: str) -> None:
    """Mark the edges of a group that are shown, behind everything else."""
    for edge in (edge for edge in edges if edge in canvas.paths):
        for path in canvas.paths[edge]:
            style = line if line == "-" else (0, (0.8, 0.4))
            ax.plot(*zip(*path, strict=True), color=colour, ls=style, lw=9, alpha=0.5, zorder=0.5)


def _ring(ax: Axes, canvas: Canvas, nodes: Any, colour: str, line: str) -> None:
    """Mark the nodes of a group that are shown."""
    for node in (node for node in nodes if node in canvas.places):
        x, y = canvas.places[node]
        if isinstance(canvas, Molecule):
            ax.add_patch(Circle((x, y), 14, fill=False, ec=colour, ls=line, lw=2, zorder=4))
        elif isinstance(canvas, Sentence):
            wide = canvas.widths[node]
            box = FancyBboxPatch((x - wide / 2 + 0.25, y - TALL / 2 + 0.25), wide - 0.5, TALL - 0.5)
            box.set_boxstyle("round", pad=0.25)
            box.set(fc="none", ec=colour, ls=line, lw=2, zorder=4)
            ax.add_patch(box)
        else:
            size = 1.15 * node_size(len(canvas.places))
            ax.scatter([x], [y], s=size**2, c="none", edgecolors=colour, linestyles=line, linewidths=2, zorder=4)


def _legend(made: Figure, caption: Caption, letters: int) -> None:
    marks = [
        Line2D([], [], color=colour, ls=line, lw=2.5)
        for nodes, (colour, line) in zip(caption.groups, RINGS, strict=True)
        if nodes
    ]
    marks += [Line2D([], [], ls="")] * (len(caption.said) - len(marks))
    lines = [fill(shortened(line, 2 * letters), letters) for line in caption.said]
    legend = made.legend(marks, lines, loc="outside lower center", frameon=False, fontsize=10, labelcolor=INK)
    for text in legend.get_texts():
        text.set_parse_math(False)
