"""What all pictures share: the colours of matplotlib, the legend, a new figure."""

from collections.abc import Iterable, Sequence
from typing import Literal

import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import CenteredNorm, ListedColormap
from matplotlib.figure import Figure
from torch import Tensor

from ..canvas import GREY, INK, SIGNED, largest

SIGNED_MAP = ListedColormap(SIGNED, "signed")


def figure_of(ax: Axes) -> Figure:
    """The figure that holds some axes."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def new_axes(size: tuple[float, float]) -> Axes:
    """Axes of a new figure, in inches, without pyplot: no window, no global list of figures."""
    return Figure(figsize=size, dpi=150, layout="constrained").add_subplot()


def bare(ax: Axes, title: str | None, *, adjustable: Literal["box", "datalim"] = "box") -> None:
    """No frame, equal units, a title."""
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable=adjustable)
    if title is not None:
        ax.set_title(title, fontsize=11, color=INK, pad=10, parse_math=False)


def centred(scores: Iterable[float]) -> CenteredNorm:
    """A scale whose middle is zero and that just holds the scores."""
    return CenteredNorm(0, largest(scores))


def colour_bar(axes: Axes | Sequence[Axes], norm: CenteredNorm, unit: str, *, below: bool = False) -> None:
    """The legend of the scores, in units of the prediction."""
    first = axes if isinstance(axes, Axes) else axes[0]
    place = {"location": "bottom", "shrink": 0.45, "aspect": 36} if below else {"shrink": 0.55, "aspect": 26}
    bar = figure_of(first).colorbar(ScalarMappable(norm, SIGNED_MAP), ax=axes, pad=0.02, **place)
    bar.set_label(unit, fontsize=9, color=INK)
    bar.ax.tick_params(labelsize=8, color=GREY, labelcolor=INK)
    bar.outline.set(visible=False)


def ids(name: str, nodes: Tensor | Iterable[int], count: int) -> set[int]:
    """Node ids of a list of ids or of a mask [N]."""
    given = nodes if isinstance(nodes, Tensor) else torch.as_tensor(list(nodes))
    if given.dtype == torch.bool:
        if given.shape != (count,):
            raise ValueError(
                f"{name} as a mask has one entry for each of {count} nodes (got shape {list(given.shape)})"
            )
        given = given.nonzero()
    found: set[int] = set(given.flatten().tolist())
    if bad := sorted(node for node in found if node not in range(count)):
        raise ValueError(f"{name} holds node ids from 0 to {count - 1} (got {bad})")
    return found
