"""Many predictions at a glance: what each kind of node, edge or feature contributes, one dot per prediction."""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch_geometric.data import Data

from ..canvas import GREY, INK, Occurrence, alike, overview, signed_colour
from ..canvas.overview import Kinds
from ..results.explanation import Explanation
from ..results.hetero import HeteroExplanation
from .style import centred, figure_of, new_axes, quiet

BINS = 70  # across the picture: dots of one bin are stacked
SPREAD = 0.4  # the most that dots of a line leave it to either side


def plot_dataset(
    explanations: Iterable[Explanation | HeteroExplanation],
    graphs: Sequence[Data] | Data | None = None,
    *,
    kinds: Kinds | None = None,
    features: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    most: int = 15,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw what each kind contributes to many predictions: one dot per prediction, their mean as an upright line.

    Args:
        explanations: of many predictions, in one reading.
        graphs: their graphs in the same order, or the one graph that all are of, see `xdegree.canvas.overview`.
        kinds: what to call the kind of each node; by default types, elements, words, hops or degrees.
        features: names of features, for explanations with ``of="feature"``.
        classes: names of the classes.
        most: how many kinds are shown: those that contribute the most by magnitude, over all predictions.
        title: above the picture.
        ax: where to draw; a new figure by default.

    Returns:
        The figure, never shown.
    """
    found = overview(explanations, graphs, kinds=kinds, features=features, classes=classes)
    order = sorted(found.kinds, key=lambda name: -sum(abs(o.score) for o in found.kinds[name]))
    shown, left = order[:most], len(order) - most
    ax = new_axes((8.0, 0.42 * len(shown) + 1.6)) if ax is None else ax
    end = centred(o.score for name in shown for o in found.kinds[name]).halfrange
    means = [float(np.mean([o.score for o in found.kinds[name]])) for name in shown]
    for row, (name, mean, text) in enumerate(zip(shown, means, alike([end, *means])[1:], strict=True)):
        _draw_line(ax, row, found.kinds[name], mean, end)
        counted = f"mean {text}\n{len(found.kinds[name])} of {len(found.rows)}"
        ax.annotate(counted, (1.0, row), xycoords=ax.get_yaxis_transform(), va="center", fontsize=7, color=INK)
    ax.axvline(0, c=GREY, lw=0.8, zorder=0)
    ax.set_yticks(range(len(shown)), shown, parse_math=False)
    every = [0.0, *(o.score for name in shown for o in found.kinds[name])]
    ax.set(xlim=(min(every) - 0.05 * end, max(every) + 0.12 * end), ylim=(len(shown) - 0.4, -0.6))
    more = f"; {left} more kinds contribute less" if left > 0 else ""
    lines = (
        f"{found.unit}, of all {found.what} of a kind in a prediction",
        f"{found.signs}; a dot is one of {len(found.rows)} predictions, a line their mean{more}",
        found.account,
    )
    quiet(ax, title, *lines)
    return figure_of(ax)


def _draw_line(ax: Axes, row: int, occurrences: Sequence[Occurrence], mean: float, end: float) -> None:
    scores = np.sort([o.score for o in occurrences])
    colours = [signed_colour(score, end) for score in scores.tolist()]
    ax.scatter(scores, row + swarm(scores, end), s=9, c=colours, edgecolors=GREY, linewidths=0.3, zorder=2, gid="dots")
    ax.plot([mean, mean], [row - 0.42, row + 0.42], c=INK, lw=1.6, zorder=3, gid="mean")


def swarm(scores: np.ndarray, end: float) -> np.ndarray:
    """How far each dot leaves its line: dots of one bin are stacked to both sides, so that a crowd is wide."""
    bins = np.round(scores / max(end, 1e-12) * BINS / 2).astype(int)
    places, counts = np.zeros(len(scores)), np.unique(bins, return_counts=True)
    step = min(0.07, 2 * SPREAD / max(int(counts[1].max(initial=1)), 1))
    for number, count in zip(*counts, strict=True):
        places[bins == number] = (np.arange(count) - (count - 1) / 2) * step
    return places
