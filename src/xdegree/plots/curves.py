"""Curves and surfaces: AUC, accuracy against sparsity, time against size."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike

from ..canvas import GREY, INK
from .style import Picture, figure_of, new_axes

# Okabe and Ito's colours, without the yellow that cannot be read on white; markers and dashes tell apart in print.
LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8c8c8c", "#8c510a")
MARKERS, DASHES = ("o", "s", "^", "D", "v", "P", "X", "*", "<"), ("-", "--", "-.", ":")
FEW = 5  # curves whose bands and names can be told apart within the axes
Log = Literal["", "x", "y", "xy"]


def plot_curves(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    xlabel: str,
    ylabel: str,
    log: Log = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw named curves; several runs become their mean, with one standard deviation to both sides.

    That is a band where there are few curves, and upright lines, side by side, where bands would cover each other.

    Args:
        curves: name to (x, y): x [P], and y [P] or [runs, P]; what is not a number leaves a gap.
        xlabel: what x is, with its unit.
        ylabel: what y is, with its unit.
        log: the axes that are logarithmic: ``""``, ``"x"``, ``"y"`` or ``"xy"``.
        title: above the picture.
        ax: where to draw; a new figure by default.

    Returns:
        The figure, never shown.
    """
    if not curves:
        raise ValueError("curves is empty: there is nothing to show")
    ax = new_axes((6.4, 4.2)) if ax is None else ax
    looks = zip(cycle(LINES), cycle(MARKERS), cycle(DASHES), strict=False)
    for number, ((name, (x, y)), (colour, marker, dash)) in enumerate(zip(curves.items(), looks, strict=False)):
        across, runs = np.asarray(x, dtype=float), np.atleast_2d(np.asarray(y, dtype=float))
        if across.ndim != 1 or runs.ndim != 2 or runs.shape[1] != len(across):
            raise ValueError(f"curve {name!r}: x is [P] and y [P] or [runs, P] (got {across.shape}, {np.shape(y)})")
        mean = runs.mean(0)
        ax.plot(across, mean, dash, c=colour, marker=marker, ms=4.5, lw=1.6, label=name, gid=name)
        if len(runs) > 1:
            low, high = mean - runs.std(0), mean + runs.std(0)
            if len(curves) <= FEW:
                ax.fill_between(across, low, high, color=colour, alpha=0.16, lw=0, gid=f"{name} spread")
            else:
                beside = ScaledTranslation(2 * (number - len(curves) / 2) / 72, 0, figure_of(ax).dpi_scale_trans)
                drawn = ax.vlines(across, low, high, color=colour, alpha=0.6, lw=1.2, zorder=1, gid=f"{name} spread")
                drawn.set_transform(ax.transData + beside)
    if "x" in log:
        ax.set_xscale("log")
    if "y" in log:
        ax.set_yscale("log")
    ruled(ax, xlabel, ylabel, title)
    if len(curves) > 1:
        many = len(curves) > FEW  # so many names would cover the curves
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1)} if many else {"loc": "best"}
        ax.legend(frameon=False, fontsize=8.5, **place)
    return figure_of(ax)


def ruled(ax: Axes, xlabel: str, ylabel: str, title: str | None = None, grid: Literal["both", "y"] = "both") -> None:
    """The axes of all curves and points: open to the right and above, with a quiet grid."""
    ax.set_xlabel(xlabel, fontsize=9.5, color=INK)
    ax.set_ylabel(ylabel, fontsize=9.5, color=INK)
    ax.tick_params(labelsize=8.5, color=GREY, labelcolor=INK)
    ax.grid(axis=grid, color=GREY, alpha=0.25, lw=0.5)
    ax.spines[["top", "right"]].set_visible(False)
    if title is not None:
        ax.set_title(title, fontsize=11, color=INK, parse_math=False)


def plot_surface(
    x: Sequence[float],
    y: Sequence[float],
    z: ArrayLike,
    *,
    xlabel: str,
    ylabel: str,
    zlabel: str,
    title: str | None = None,
) -> Figure:
    """Draw a quantity over two others, as the time over q and the size of the graph.

    Args:
        x: [X].
        y: [Y].
        z: [Y, X].
        xlabel: what x is, with its unit.
        ylabel: what y is, with its unit.
        zlabel: what z is, with its unit.
        title: above the picture.

    Returns:
        The figure, never shown.
    """
    heights = np.asarray(z, dtype=float)
    if heights.shape != (len(y), len(x)):
        raise ValueError(f"z is [{len(y)}, {len(x)}], one number for each y and x (got shape {list(heights.shape)})")
    ax: Any = Picture(figsize=(6.4, 5), dpi=150).add_subplot(projection="3d")
    across, along = np.meshgrid(x, y)
    ax.plot_surface(across, along, heights, cmap="viridis", edgecolor="#ffffff66", linewidth=0.4, rstride=1, cstride=1)
    for axis, label in ((ax.xaxis, xlabel), (ax.yaxis, ylabel), (ax.zaxis, zlabel)):
        axis.set_label_text(label, fontsize=9, color=INK)
        axis.set_tick_params(labelsize=8)
    ax.view_init(elev=24, azim=-128)
    ax.set_position((0.0, 0.02, 0.94, 0.98))
    ax.set_box_aspect((1.25, 1.25, 0.85), zoom=0.98)
    if title is not None:
        figure_of(ax).suptitle(title, fontsize=11, color=INK, parse_math=False)
    return figure_of(ax)
