"""The picture of an audit."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..removal import WAY_NAMES, Way
from .curves import plot_curves
from .style import figure_of, new_figure


def plot_audit(audit: Any, way: Way | None = None) -> Figure:
    """Draw what is measured when the best nodes are kept (left) and dropped (right), one curve per method.

    Args:
        audit: an `xdegree.Audit`.
        way: of taking nodes away; the last that was possible by default.

    Returns:
        The figure, never shown.
    """
    possible = list(audit.blank)
    if not possible:
        raise ValueError("there is nothing to show: no way of taking nodes away was possible")
    way = possible[-1] if way is None else way
    if way not in possible:
        raise ValueError(f"way must be one of {tuple(possible)} (got {way!r})")
    figure = new_figure((10.5, 4.2))
    left, right = figure.subplots(1, 2, sharey=True)
    shares = np.asarray(audit.shares)
    what = "number" if audit.task == "regression" else "probability of the class"
    for ax, side, title in ((left, "keep", "only the best nodes stay"), (right, "drop", "the best nodes go")):
        curves = {one.name: (shares, getattr(one.ways[way], side)) for one in audit.methods if way in one.ways}
        plot_curves(curves, xlabel="share of the nodes", ylabel=what, title=f"{title} ({WAY_NAMES[way]})", ax=ax)
        ax.axhline(audit.whole, c="#888888", lw=0.8, ls=":", gid="whole graph")
        ax.annotate("all nodes", (shares[0], audit.whole), (0, -9), textcoords="offset points", size=7, c="#555555")
        if (legend := ax.get_legend()) is not None and ax is left:
            legend.remove()
    return figure_of(left)
