"""A graph whose nodes and edges show what they contribute."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import CenteredNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from torch import Tensor

from ..canvas import (
    GREY,
    INK,
    Canvas,
    Edge,
    ScoresLike,
    edge_scores,
    explained_node,
    graph_canvas,
    node_scores,
    signed_colour,
    text_on,
)
from ..results.explanation import Explanation
from .style import SIGNED_MAP, bare, centred, colour_bar, figure_of, ids, legend_lines, new_axes

SMALL = 40  # up to so many nodes, each is large enough to hold its label
CROWD = 300  # from so many edges on they step back behind the nodes
MANY = 16  # labels outside of their nodes at most: more would cover each other


def plot_graph(
    scores: ScoresLike,
    edge_index: Tensor | None = None,
    *,
    edges: Tensor | Mapping[Edge, float] | None = None,
    index: int | None = None,
    truth: Tensor | Iterable[int] | None = None,
    truth_name: str = "ground truth",
    nodes: Tensor | Iterable[int] | None = None,
    labels: Mapping[int, str] | None = None,
    title: str | None = None,
    unit: str | None = None,
    classes: Sequence[str] | None = None,
    canvas: Canvas | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw signed scores on their graph: red raises the explained output, blue lowers it.

    Args:
        scores: an explanation, or node scores [N].
        edge_index: [2, E], of an explanation its own by default; directions are not shown.
        edges: edge scores, [E] or by pair of nodes; of an explanation its own by default.
        index: the explained node, drawn as a diamond and always shown; by default that of an explanation, where it is
            clear that a node was explained.
        truth: the nodes that should matter, ids or a mask [N]; drawn with a ring.
        truth_name: what the legend calls them, as ``"the two ends"`` of a link.
        nodes: the nodes to show, ids or a mask [N]; by default those that can contribute, or all.
        labels: node id to text. By default the ids: of all nodes in a small graph, otherwise of the explained node and
            of true and strong ones, as many as there is room for. An empty mapping shows none.
        title: above the picture.
        unit: what the scores are measured in, for the colour bar; by default what the explanation says.
        classes: names of the classes, for the legend; their numbers by default.
        canvas: places of the nodes, to have them the same in several pictures.
        ax: where to draw; a new figure by default.

    Returns:
        The figure, never shown.
    """
    of_nodes = dict(enumerate(node_scores(scores)))
    of_edges = edge_scores(scores, edge_index, edges)
    if isinstance(scores, Explanation):
        edge_index = scores.edge_index if edge_index is None else edge_index
        nodes = scores.nodes if nodes is None else nodes
        index = explained_node(scores) if index is None else index
    if edge_index is None and canvas is None:
        raise ValueError("these scores do not know their graph: give edge_index [2, E]")
    true = set() if truth is None else ids("truth", truth, len(of_nodes))
    shown = set(of_nodes) if nodes is None else ids("nodes", nodes, len(of_nodes))
    if index is not None:
        shown |= ids("index", [index], len(of_nodes))
    if canvas is None:
        assert edge_index is not None
        canvas = graph_canvas(edge_index, shown)
    shown &= set(canvas.places)
    if labels is None:
        labels = {node: canvas.labels[node] for node in _worth_a_label(shown, of_nodes, index, true)}

    ax = new_axes(_inches(canvas)) if ax is None else ax
    bare(ax, title, adjustable="datalim")
    ax.margins(0.06)
    drawn = {edge: score for edge, score in of_edges.items() if edge in canvas.paths}
    norm = centred([*(of_nodes[node] for node in shown), *drawn.values()])
    draw_edges(ax, canvas, {edge: signed_colour(s, norm.halfrange) for edge, s in drawn.items()}, true)
    _draw_nodes(ax, {node: of_nodes[node] for node in sorted(shown)}, canvas, norm, index=index, true=true)
    for node in sorted(shown):
        if node in labels:
            colour = signed_colour(of_nodes[node], norm.halfrange)
            write(ax, labels[node], canvas.places[node], count=len(shown), colour=colour)
    colour_bar(ax, norm, *legend_lines(scores, unit, classes, canvas.node))
    named = None if index is None else labels.get(index, str(index))
    _draw_legend(ax, named, truth_name if true & shown else None)
    return figure_of(ax)


def _inches(canvas: Canvas) -> tuple[float, float]:
    """The shape of the graph, within what fits a page, and room for the legend: no empty strip beside the drawing."""
    left, low, right, high = canvas.box
    shape = (high - low) / max(right - left, 1e-9)
    return (8.0, min(max(8 * shape, 1.5), 6.5) + 1.5) if shape <= 1.2 else (max(7.5 / shape, 5.0), 9.0)


def _worth_a_label(shown: set[int], scores: Mapping[int, float], index: int | None, true: set[int]) -> list[int]:
    """All nodes of a small graph; of a large one the explained node, then the ten strongest, then true ones."""
    if len(shown) <= SMALL:
        return sorted(shown)
    strongest = sorted(shown, key=lambda node: -abs(scores[node]))
    order = dict.fromkeys([*([] if index is None else [index]), *strongest[:10], *(n for n in strongest if n in true)])
    return list(order)[:MANY]


def node_size(count: int) -> float:
    """The diameter of a node, in points, when so many are shown."""
    return float(np.clip(150 / np.sqrt(count), 7 if count > 150 else 14, 26))


def draw_edges(
    ax: Axes, canvas: Canvas, colours: Mapping[Edge, str], true: Iterable[int] = (), scale: float = 1.0
) -> None:
    """Thin lines; between true nodes, bold ones; edges with a colour of their own as wide bands below them."""
    inside = set(true)
    bands = [(line, colour) for edge, colour in colours.items() for line in canvas.paths.get(edge, ())]
    if bands:
        wide = LineCollection([line for line, _ in bands], colors=[colour for _, colour in bands])
        wide.set(linewidths=[6.5 * scale], zorder=0.9, gid="edge scores", capstyle="round")
        ax.add_collection(wide)
    lines = [(line, u in inside and v in inside) for (u, v), path in canvas.paths.items() for line in path]
    thin = LineCollection(
        [line for line, _ in lines],
        colors=[INK if both else GREY for _, both in lines],
        linewidths=[(1.6 if both else 0.6) * scale for _, both in lines],
        alpha=0.7 if len(lines) <= CROWD else 0.4,
        zorder=1,
        gid="edges",
    )
    ax.add_collection(thin)


def _draw_nodes(
    ax: Axes, scores: dict[int, float], canvas: Canvas, norm: CenteredNorm, *, index: int | None, true: set[int]
) -> None:
    """Discs coloured by score, the strongest on top; where labels do not fit inside, weak ones are smaller."""
    size, least = node_size(len(scores)), 1.0 if len(scores) <= SMALL else 0.6
    order = sorted(scores, key=lambda node: abs(scores[node]))
    for gid, marker, members in (
        ("nodes", "o", [node for node in order if node != index]),
        ("explained", "D", [node for node in order if node == index]),
    ):
        ax.scatter(
            [canvas.places[node][0] for node in members],
            [canvas.places[node][1] for node in members],
            s=[
                (size * (1 if node in true else max(least, abs(scores[node]) / norm.halfrange))) ** 2
                for node in members
            ],
            c=[scores[node] for node in members],
            norm=norm,
            cmap=SIGNED_MAP,
            marker=marker,
            edgecolors=[INK if node in true else GREY for node in members],
            linewidths=[2.0 if node in true else 0.6 for node in members],
            clip_on=False,
            zorder=2,
            gid=gid,
        )


def write(ax: Axes, text: str, place: tuple[float, float], *, count: int, colour: str) -> None:
    """A label inside its node, or above it when so many nodes are shown that they are too small."""
    size = node_size(count)
    if count <= SMALL:
        letters = 0.36 * size * min(1.0, 3.4 / max(len(text), 1))
        ax.annotate(
            text, place, ha="center", va="center", fontsize=letters, color=text_on(colour), parse_math=False, zorder=3
        )
        return
    ax.annotate(
        text,
        place,
        xytext=(0, 0.6 * size),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=7.5,
        color=INK,
        path_effects=[withStroke(linewidth=2, foreground="white")],
        parse_math=False,
        zorder=3,
    )


def _draw_legend(ax: Axes, explained: str | None, ringed: str | None) -> None:
    keys = []
    if explained is not None:
        keys.append(Line2D([], [], ls="", marker="D", ms=8, mfc="white", mec=GREY, label=f"explained node {explained}"))
    if ringed is not None:
        keys.append(Line2D([], [], ls="", marker="o", ms=9, mfc="white", mec=INK, mew=2, label=ringed))
    if keys:
        ax.legend(handles=keys, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=2, frameon=False, fontsize=9)
