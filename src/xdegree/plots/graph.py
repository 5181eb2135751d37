"""A graph whose nodes show what they contribute."""

from collections.abc import Mapping, Sequence

import networkx as nx
import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import CenteredNorm, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from torch import Tensor

INK, GREY = "#222222", "#8c8c8c"
# Red for, blue against, white nothing: told apart by all common kinds of colour vision. The ends, nearly black, are
# left out, so that rings stay visible.
SIGNED = LinearSegmentedColormap.from_list("signed", colormaps["RdBu_r"](np.linspace(0.07, 0.93, 256)))
SMALL = 40  # up to so many nodes, each is large enough to hold its label


def plot_graph(
    edge_index: Tensor,
    node_scores: Tensor,
    *,
    index: int | None = None,
    truth: Tensor | Sequence[int] | None = None,
    nodes: Tensor | Sequence[int] | None = None,
    labels: Mapping[int, str] | None = None,
    title: str | None = None,
    unit: str = "logits",
    ax: Axes | None = None,
) -> Figure:
    """Draw signed node scores on their graph: red nodes speak for the prediction, blue ones against it.

    Args:
        edge_index: [2, E]; directions are not shown.
        node_scores: [N], signed.
        index: the explained node; drawn as a diamond, and always shown.
        truth: the nodes that should matter, ids or a mask [N]; drawn with a ring.
        nodes: the nodes to show, ids or a mask [N]; all by default.
        labels: node id to text. By default the ids: of all nodes in a small graph, otherwise of the explained node, the
            true ones and the ten with the largest scores. An empty mapping shows none.
        title: above the picture.
        unit: what the scores are measured in, for the colour bar.
        ax: where to draw; a new figure by default.

    Returns:
        The figure, never shown.
    """
    if node_scores.dim() != 1 or not node_scores.isfinite().all():
        raise ValueError(f"node_scores holds one finite number per node (got shape {list(node_scores.shape)})")
    scores = dict(enumerate(node_scores.tolist()))
    true = set() if truth is None else _ids("truth", truth, len(scores))
    shown = set(scores) if nodes is None else _ids("nodes", nodes, len(scores))
    if index is not None:
        shown |= _ids("index", [index], len(scores))
    if not shown:
        raise ValueError("nodes is empty: there is nothing to show")
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(sorted(shown))
    graph.add_edges_from((u, v) for u, v in edge_index.T.tolist() if u != v and u in shown and v in shown)
    if labels is None:
        strongest = sorted(shown, key=lambda node: abs(scores[node]))[-10:]
        all_fit = len(shown) <= SMALL
        labels = {node: str(node) for node in shown if all_fit or node in {index, *true, *strongest}}

    if ax is None:
        ax = Figure(figsize=(8, 6.5), dpi=150, layout="constrained").add_subplot()
    figure = ax.get_figure(root=True)
    assert figure is not None
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.06)
    if title is not None:
        ax.set_title(title, fontsize=11, color=INK, pad=10)
    norm = CenteredNorm(0, max(abs(scores[node]) for node in shown) or 1.0)
    colours = ScalarMappable(norm, SIGNED)
    place = _layout(graph)
    _draw_edges(ax, graph, place, true)
    _draw_nodes(ax, {node: scores[node] for node in graph}, place, norm, index=index, true=true)
    for node in graph:
        if node in labels:
            dark = np.dot(colours.to_rgba(scores[node])[:3], (0.299, 0.587, 0.114)) < 0.5
            _write(ax, labels[node], place[node], count=len(graph), dark=bool(dark))
    bar = figure.colorbar(colours, ax=ax, shrink=0.55, aspect=26, pad=0.02)
    bar.set_label(f"contribution to the prediction ({unit})", fontsize=9, color=INK)
    bar.ax.tick_params(labelsize=8, color=GREY, labelcolor=INK)
    bar.outline.set(visible=False)
    _draw_legend(ax, index, ringed=bool(true & shown))
    return figure


def _ids(name: str, nodes: Tensor | Sequence[int], count: int) -> set[int]:
    """Node ids of a list of ids or of a mask [N]."""
    given = torch.as_tensor(nodes)
    if given.dtype == torch.bool:
        if given.shape != (count,):
            raise ValueError(
                f"{name} as a mask has one entry for each of {count} nodes (got shape {list(given.shape)})"
            )
        given = given.nonzero()
    ids: set[int] = set(given.flatten().tolist())
    if bad := sorted(node for node in ids if node not in range(count)):
        raise ValueError(f"{name} holds node ids from 0 to {count - 1} (got {bad})")
    return ids


def _layout(graph: "nx.Graph[int]") -> dict[int, tuple[float, float]]:
    """Positions whose distances follow the hops between nodes (Kamada-Kawai); the same graph gets the same ones."""
    if len(graph) > 300:  # where Kamada-Kawai takes longer than a reader waits
        place = nx.spring_layout(graph, seed=0)
    else:
        paths = dict(nx.all_pairs_shortest_path_length(graph))
        apart = 1 + max(max(row.values()) for row in paths.values())  # parts without a path stand side by side
        hops = np.array([[paths[u].get(v, apart) for v in graph] for u in graph], dtype=float)
        dist = {u: dict(zip(graph, row, strict=True)) for u, row in zip(graph, hops.tolist(), strict=True)}
        place = nx.kamada_kawai_layout(graph, dist=dist, pos=_start(graph, hops))
    xy = np.array([place[node] for node in graph])
    xy -= xy.mean(0)
    xy = xy @ np.linalg.eigh(xy.T @ xy)[1][:, ::-1]  # the long side lies flat
    return {node: (x, y) for node, (x, y) in zip(graph, xy.tolist(), strict=True)}


def _start(graph: "nx.Graph[int]", hops: np.ndarray) -> dict[int, np.ndarray]:
    """Classical scaling of the hops [n, n]: from a circle, the default, the layout often stays tangled.

    The circle is added in small, because nodes of equal hops would start at one point and never part.
    """
    squares = hops**2
    centred = squares.mean(0) + squares.mean(1)[:, None] - squares.mean() - squares
    values, vectors = np.linalg.eigh(centred)
    xy = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))
    return {node: xy[row] + 0.1 * near for row, (node, near) in enumerate(nx.circular_layout(graph).items())}


def _size(count: int) -> float:
    """The diameter of a node, in points, when so many are shown."""
    return float(np.clip(150 / np.sqrt(count), 14, 26))


def _draw_edges(ax: Axes, graph: "nx.Graph[int]", place: dict[int, tuple[float, float]], true: set[int]) -> None:
    """Thin lines; between true nodes, bold ones."""
    bold = [u in true and v in true for u, v in graph.edges]
    lines = LineCollection(
        [(place[u], place[v]) for u, v in graph.edges],
        colors=[INK if both else GREY for both in bold],
        linewidths=[1.6 if both else 0.6 for both in bold],
        alpha=0.7,
        zorder=1,
        gid="edges",
    )
    ax.add_collection(lines)


def _draw_nodes(
    ax: Axes,
    scores: dict[int, float],
    place: dict[int, tuple[float, float]],
    norm: CenteredNorm,
    *,
    index: int | None,
    true: set[int],
) -> None:
    """Discs coloured by score, the strongest on top; where labels do not fit inside, weak ones are smaller."""
    size, least = _size(len(scores)), 1.0 if len(scores) <= SMALL else 0.6
    order = sorted(scores, key=lambda node: abs(scores[node]))
    for gid, marker, members in (
        ("nodes", "o", [node for node in order if node != index]),
        ("explained", "D", [node for node in order if node == index]),
    ):
        ax.scatter(
            [place[node][0] for node in members],
            [place[node][1] for node in members],
            s=[
                (size * (1 if node in true else max(least, abs(scores[node]) / norm.halfrange))) ** 2
                for node in members
            ],
            c=[scores[node] for node in members],
            norm=norm,
            cmap=SIGNED,
            marker=marker,
            edgecolors=[INK if node in true else GREY for node in members],
            linewidths=[2.0 if node in true else 0.6 for node in members],
            clip_on=False,
            zorder=2,
            gid=gid,
        )


def _write(ax: Axes, text: str, place: tuple[float, float], *, count: int, dark: bool) -> None:
    """A label inside its node, or above it when so many nodes are shown that they are too small."""
    size = _size(count)
    if count <= SMALL:
        ax.annotate(text, place, ha="center", va="center", fontsize=0.36 * size, color="white" if dark else INK)
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
        zorder=3,
    )


def _draw_legend(ax: Axes, index: int | None, *, ringed: bool) -> None:
    keys = []
    if index is not None:
        keys.append(Line2D([], [], ls="", marker="D", ms=8, mfc="white", mec=GREY, label=f"explained node {index}"))
    if ringed:
        keys.append(Line2D([], [], ls="", marker="o", ms=9, mfc="white", mec=INK, mew=2, label="ground truth"))
    if keys:
        ax.legend(handles=keys, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=2, frameon=False, fontsize=9)
