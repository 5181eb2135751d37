"""What all pictures share: the colours of matplotlib, the legend with its words, a new figure."""

from collections.abc import Iterable, Sequence
from io import BytesIO
from textwrap import fill, wrap
from typing import Any, Literal

import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import CenteredNorm, ListedColormap
from matplotlib.figure import Figure
from torch import Tensor

from ..canvas import GREY, INK, SIGNED, account_line, largest, signs_line, unit_of

SIGNED_MAP = ListedColormap(SIGNED, "signed")
LETTERS = 13  # of a legend's line per inch


class Picture(Figure):
    """A figure that a notebook shows by itself, as one of pyplot, without pyplot being imported."""

    def _repr_png_(self) -> bytes:
        written = BytesIO()
        self.savefig(written, format="png", dpi=100)
        return written.getvalue()


def new_figure(size: tuple[float, float]) -> Picture:
    """A figure, in inches, without pyplot: no window, no global list of figures."""
    return Picture(figsize=size, dpi=150, layout="constrained")


def figure_of(ax: Axes) -> Figure:
    """The figure that holds some axes."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def new_axes(size: tuple[float, float]) -> Axes:
    """Axes of a new figure, in inches."""
    return new_figure(size).add_subplot()


def bare(ax: Axes, title: str | None, *, adjustable: Literal["box", "datalim"] = "box") -> None:
    """No frame, equal units, a title."""
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable=adjustable)
    if title is not None:
        ax.set_title(title, fontsize=11, color=INK, pad=10, parse_math=False)


def centred(scores: Iterable[float]) -> CenteredNorm:
    """A scale whose middle is zero and that just holds the scores."""
    return CenteredNorm(0, largest(scores))


def colour_bar(axes: Axes | Sequence[Axes], norm: CenteredNorm, *lines: str, below: bool = True) -> None:
    """The scale of the scores, with their unit and what else must be said below it."""
    first = axes if isinstance(axes, Axes) else axes[0]
    figure = figure_of(first)
    place = {"location": "bottom", "shrink": 0.45, "aspect": 36} if below else {"shrink": 0.55, "aspect": 26}
    bar = figure.colorbar(ScalarMappable(norm, SIGNED_MAP), ax=axes, pad=0.02, **place)
    text = wrapped(axes if isinstance(axes, Axes) else figure, lines)
    bar.set_label(text, fontsize=9, color=INK, parse_math=False)
    bar.ax.tick_params(labelsize=8, color=GREY, labelcolor=INK)
    bar.outline.set(visible=False)


def wrapped(over: Axes | Figure, lines: Iterable[str]) -> str:
    """Lines of text that fit the width of a figure, or of the part of it that some axes have."""
    # Before the layout is made, the only axes of a figure take 0.775 of its width.
    share = min(over.get_position().width / 0.775, 1.0) if isinstance(over, Axes) else 1.0
    figure = figure_of(over) if isinstance(over, Axes) else over
    letters = max(int(LETTERS * figure.get_figwidth() * share), 30)
    return "\n".join(_balanced(line, letters) for line in lines if line)


def _balanced(line: str, letters: int) -> str:
    """As few lines as fit, about equally long: a last line of one word looks like an accident."""
    count = len(wrap(line, letters))
    return fill(line, next(width for width in range(10, letters + 1) if len(wrap(line, width)) <= count))


def quiet(ax: Axes, title: str | None, *lines: str) -> None:
    """No frame and no ticks, a title, and the words below."""
    ax.set_xlabel(wrapped(ax, lines), fontsize=9, color=INK, parse_math=False)
    ax.tick_params(length=0, labelsize=8, labelcolor=INK)
    ax.spines[:].set_visible(False)
    if title is not None:
        ax.set_title(title, fontsize=11, color=INK, parse_math=False)


def legend_lines(result: Any, unit: str | None, classes: Sequence[str] | None, node: str = "node") -> tuple[str, ...]:
    """What stands below a scale: the unit, what the colours mean, what the scores add up to."""
    adding = account_line(result, classes, node=node)
    if unit is not None and "red raises" in unit:  # the caller's unit may say already what the colours mean
        return (unit, adding)
    return (unit or unit_of(result, classes), signs_line(result, classes), adding)


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
