"""How groups grow and meet: a row of panels, and a tree with the interaction of each merge."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from ..canvas import (
    GREY,
    INK,
    NOTHING,
    Canvas,
    Edge,
    Molecule,
    Sentence,
    alike,
    graph_canvas,
    level_colours,
    signed_colour,
)
from ..results.tree import ExplanationTree, Group, Level, Merge
from .graph import SMALL, draw_edges, node_size, write
from .molecule import draw_molecule
from .sentence import LETTER, draw_sentence
from .style import bare, centred, colour_bar, figure_of, legend_lines, new_axes, new_figure, quiet

MOST_LEAVES = 150  # more lines than that fit no page
MOST_NUMBERS = 40


def plot_agglomeration(
    tree: ExplanationTree,
    on: Canvas | Tensor,
    *,
    levels: Sequence[int] | None = None,
    panels: int = 6,
    columns: int | None = None,
    title: str | None = None,
    unit: str | None = None,
    classes: Sequence[str] | None = None,
) -> Figure:
    """Draw levels of a tree side by side, each group in the colour of its score, what is in none left white.

    Args:
        tree: what `agglomerate` returned.
        on: where to draw: ``molecule_canvas(…)``, ``sentence_canvas(…)`` or ``graph_canvas(…)`` of `xdegree.canvas`,
            or the graph itself as edge_index [2, E].
        levels: which levels, as places in ``tree.levels``; by default the first, the last, and others evenly between.
        panels: how many levels at most, where they are not named.
        columns: panels side by side; by default as many as are readable: one for sentences, up to four otherwise.
        title: above the picture.
        unit: what the scores are measured in, for the colour bar; by default what the tree says.
        classes: names of the classes, for the legend; their numbers by default.

    Returns:
        The figure, never shown.
    """
    if not tree.levels:
        raise ValueError("the tree has no levels: there is nothing to show")
    canvas = on if isinstance(on, Canvas) else graph_canvas(on, [node for leaf in tree.leaves for node in leaf.nodes])
    chosen = _chosen(len(tree.levels), panels) if levels is None else [range(len(tree.levels))[n] for n in levels]
    rows = math.ceil(len(chosen) / (columns or (1 if isinstance(canvas, Sentence) else 4)))
    columns = columns or math.ceil(len(chosen) / rows)
    figure = new_figure(_size(canvas, columns, rows))
    if title is not None:
        figure.suptitle(title, fontsize=11, color=INK, parse_math=False)
    axes: list[Axes] = figure.subplots(rows, columns, squeeze=False).flatten().tolist()
    norm = centred(group.score for number in chosen for group in tree.levels[number])
    for ax, number in zip(axes, chosen, strict=False):
        draw_level(ax, canvas, tree.levels[number], norm.halfrange)
        ax.set_title(level_title(tree, number), fontsize=9, color=INK)
    for ax in axes[len(chosen) :]:
        ax.set_axis_off()
    colour_bar(axes, norm, *legend_lines(tree, unit, classes, canvas.node))
    return figure


def _chosen(count: int, panels: int) -> list[int]:
    """The first, the last, and others evenly between."""
    if panels < 1:
        raise ValueError(f"panels must be at least 1 (got {panels})")
    if panels == 1:
        return [count - 1]
    return sorted({round(i * (count - 1) / (panels - 1)) for i in range(panels)})


def level_title(tree: ExplanationTree, number: int) -> str:
    """Which level a panel shows, counted from 1 as in all views, and what its groups contribute."""
    level = tree.levels[number]
    said = f"{len(level)} groups" if len(level) > 3 else ", ".join(alike(group.score for group in level))
    return f"level {number + 1} of {len(tree.levels)}: {said}"


def _size(canvas: Canvas, columns: int, rows: int) -> tuple[float, float]:
    """Inches for panels that have the shape of what they show."""
    left, low, right, high = canvas.box
    shape = min(max((high - low) / max(right - left, 1e-9), 0.08), 1.6)
    letters = (right - left) * 0.8 * LETTER * columns
    width = min(letters, 9.0) if isinstance(canvas, Sentence) else min(3.6 * columns, 11.0)
    return max(width, 4.6), max(width / columns * shape, 0.5) * rows + 0.35 * rows + 1.3


def draw_level(ax: Axes, canvas: Canvas, level: Level, most: float) -> None:
    """One level of a tree: each group in its colour, and the edges within it."""
    nodes, edges = level_colours(canvas, level, most)
    bare(ax, None, adjustable="box" if canvas.svg({}, {}) else "datalim")
    if isinstance(canvas, Molecule):
        draw_molecule(ax, canvas, nodes, edges)
    elif isinstance(canvas, Sentence):
        draw_sentence(ax, canvas, nodes, edges)
    else:
        _draw_graph(ax, canvas, nodes, edges)


def _draw_graph(ax: Axes, canvas: Canvas, nodes: Mapping[int, str], edges: Mapping[Edge, str]) -> None:
    ax.margins(0.08)
    count, shown = len(canvas.places), list(canvas.places)
    draw_edges(ax, canvas, edges, scale=0.7)
    ax.scatter(
        [canvas.places[node][0] for node in shown],
        [canvas.places[node][1] for node in shown],
        s=(0.55 * node_size(count)) ** 2,
        c=[nodes.get(node, NOTHING) for node in shown],
        edgecolors=[INK if node in nodes else GREY for node in shown],
        linewidths=[0.7 if node in nodes else 0.4 for node in shown],
        zorder=2,
        gid="nodes",
    )
    if count <= SMALL // 2:
        for node in shown:
            write(ax, canvas.labels[node], canvas.places[node], count=2 * SMALL - count, colour=NOTHING)


def plot_dendrogram(
    tree: ExplanationTree,
    *,
    names: Mapping[int, str] | None = None,
    title: str | None = None,
    unit: str | None = None,
    classes: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a tree from left to right: where lines meet, groups merge, and the number there is their interaction.

    A line has the colour of its group's score. The interaction is the score of the union minus the sum of its parts'
    scores: what they do only together.

    Args:
        tree: what `agglomerate` returned.
        names: what to call a node, by its id; the id by default.
        title: above the picture.
        unit: what the scores are measured in, for the colour bar; by default what the tree says.
        classes: names of the classes, for the legend; their numbers by default.
        ax: where to draw; a new figure by default.

    Returns:
        The figure, never shown.
    """
    if not tree.levels:
        raise ValueError("the tree has no levels: there is nothing to show")
    picture = _Dendrogram(tree)
    order = picture.order
    if ax is None:
        ax = new_axes((min(5 + 0.55 * len(tree.levels), 14), min(max(0.2 * len(order), 1.8), 24) + 1.6))
    norm = centred(group.score for group in tree.groups.values())
    for merge in tree.merges:
        _draw_merge(ax, merge, picture, norm.halfrange)
    for group in tree.levels[-1]:
        x, y = picture.place(group)
        ax.plot([x, len(tree.levels) + 0.4], [y, y], c=signed_colour(group.score, norm.halfrange), lw=3, gid="group")
    strongest = sorted(tree.merges, key=lambda merge: -abs(merge.interaction))[:MOST_NUMBERS]
    texts = alike([norm.halfrange, *(merge.interaction for merge in strongest)])[1:]
    for merge, text in zip(strongest, texts, strict=True):
        place = picture.place(merge.union)
        beside: dict[str, Any] = {"xytext": (4, 3), "textcoords": "offset points", "gid": "interaction"}
        ax.annotate(text, place, **beside, fontsize=7.5, color=INK, zorder=4)
    ax.set(xlim=(-0.1, len(tree.levels) + 0.6), ylim=(len(order) - 0.4, -0.6))
    ax.set_yticks(range(len(order)), [_name(part, names or {}) for part in order], parse_math=False)
    ax.set_xticks(range(len(tree.levels) + 1), ["alone", *(str(number + 1) for number in range(len(tree.levels)))])
    quiet(ax, title, f"level, of {len(tree.levels)} (the number at a merge is its interaction)")
    colour_bar(ax, norm, *legend_lines(tree, unit, classes))
    return figure_of(ax)


def _name(part: tuple[Group, ...], names: Mapping[int, str]) -> str:
    if len(part) > 1:
        return f"{len(part)} nodes"
    return names.get(node := min(part[0].nodes), str(node))


class _Dendrogram:
    """Where the groups of a tree stand: x is the level at which they come about, y the middle of their parts.

    Single nodes are lines of the picture, those of one merge side by side; where there are too many lines, single
    nodes that join together share one.
    """

    def __init__(self, tree: ExplanationTree) -> None:
        self.by_union = {merge.union.nodes: merge for merge in tree.merges}
        joined = {node for group in tree.levels[-1] for node in group.nodes}
        self.shares = len(joined) > MOST_LEAVES
        self.order: list[tuple[Group, ...]] = []
        self.row: dict[frozenset[int], float] = {}
        for group in tree.levels[-1]:
            self._walk(group)

    def _walk(self, group: Group) -> float:
        merge = self.by_union.get(group.nodes)
        if merge is None:
            self._add((group,))
        else:
            alone = [part for part in merge.parts if part.nodes not in self.by_union]
            for together in [tuple(alone)] if self.shares and alone else [(part,) for part in alone]:
                self._add(together)
            rows = [self.row[part.nodes] for part in alone]
            rows += [self._walk(part) for part in merge.parts if part.nodes in self.by_union]
            self.row[group.nodes] = (min(rows) + max(rows)) / 2
        return self.row[group.nodes]

    def _add(self, together: tuple[Group, ...]) -> None:
        for group in together:
            self.row[group.nodes] = len(self.order)
        self.order.append(together)

    def place(self, group: Group) -> tuple[float, float]:
        merge = self.by_union.get(group.nodes)
        return (0.0 if merge is None else merge.level + 1.0), self.row[group.nodes]


def _draw_merge(ax: Axes, merge: Merge, picture: _Dendrogram, most: float) -> None:
    """The lines of the parts up to the level of the union, and the upright line that joins them."""
    x, _ = picture.place(merge.union)
    for part in merge.parts:
        left, y = picture.place(part)
        ax.plot([left, x], [y, y], c=signed_colour(part.score, most), lw=3, solid_capstyle="butt", gid="group")
        ax.plot([left, x], [y, y], c=GREY, lw=0.4, zorder=2.5)
    rows = [picture.row[part.nodes] for part in merge.parts]
    ax.plot([x, x], [min(rows), max(rows)], c=GREY, lw=1, gid="merge")
