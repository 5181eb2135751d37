"""How results show themselves in notebooks: pictures, tables and pages of bounded size."""

from collections.abc import Callable, Sequence
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .explanation import Explanation
    from .explanations import Explanations
    from .hetero import HeteroExplanation
    from .tree import ExplanationTree

MOST = 2000  # nodes; laying out more takes longer than a reader of a notebook waits
ROWS, COLUMNS = 12, 8  # of a table
HEIGHT = 640  # of a page, in pixels


def shown(draw: "Callable[[], Figure | None]") -> bytes | None:
    """A figure as PNG; None, by which notebooks fall back to text, if it cannot be drawn here."""
    try:
        figure = draw()
    except (ImportError, ValueError):  # a package is missing, or a score is not finite
        return None
    if figure is None:
        return None
    written = BytesIO()
    figure.savefig(written, format="png", dpi=100)
    return written.getvalue()


def picture(result: "Explanation | ExplanationTree | HeteroExplanation") -> bytes | None:
    """A PNG of a result, or None if it cannot be drawn here."""
    return shown(lambda: _figure(result))


def _figure(result: "Explanation | ExplanationTree | HeteroExplanation") -> "Figure | None":
    from ..plots import plot_dendrogram, plot_features, plot_graph, plot_waterfall
    from .tree import ExplanationTree

    if isinstance(result, ExplanationTree):
        return plot_dendrogram(result) if result.levels else None
    if isinstance(result.edge_index, Tensor) and not result.of.endswith("feature") and hasattr(result, "nodes"):
        if 0 < len(result.nodes) <= MOST:
            return plot_graph(result)
    elif result.of.endswith("feature") and hasattr(result, "nodes"):
        return plot_features(result)
    return plot_waterfall(result)


def frame(page: str, height: int = HEIGHT) -> str:
    """A whole page within a cell: an iframe of its own, so that neither changes how the other looks."""
    held = escape(page, quote=True)
    return (
        f'<iframe srcdoc="{held}" sandbox="allow-scripts allow-downloads" loading="lazy"'
        f' style="width:100%;height:{height}px;border:1px solid #d9d9d9;border-radius:8px;background:#fff"></iframe>'
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """A small table as HTML; all text is escaped."""
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{below}"


def decomposition_table(total: Any, target: Any, unit: str = "output") -> str | None:
    """What each group contributes: to every class of one prediction, or how many rows of the output it reaches."""
    from ..canvas import alike

    if not isinstance(total, Tensor) or not isinstance(target, Tensor) or not total.is_floating_point():
        return None
    count, width = len(target), total.shape[-1] if total.dim() else 1
    left = f"{count - ROWS} more groups; " if count > ROWS else ""
    if total.numel() == width <= COLUMNS:
        values = [*target[:ROWS].reshape(-1, width).tolist(), total.flatten().tolist()]
        texts = alike(value for row in values for value in row)
        cells = [texts[i : i + width] for i in range(0, len(texts), width)]
        names = [*(f"group {number}" for number in range(len(cells) - 1)), "prediction" if unit == "output" else unit]
        head = ["", *(f"class {c}" if width > 1 else "output" for c in range(width))]
        return table(head, [(name, *row) for name, row in zip(names, cells, strict=True)], f"{left}units of the {unit}")
    reached = target[:ROWS].detach().reshape(min(count, ROWS), len(total), -1).abs()
    most = [f"{value:.3g}" for value in reached.amax((1, 2)).tolist()]
    rows = [str(int(number)) for number in (reached.amax(2) > 0).sum(1)]
    body = [(f"group {number}", *cells) for number, cells in enumerate(zip(rows, most, strict=True))]
    head = ["", f"rows reached, of {len(total)}", "largest magnitude"]
    return table(head, body, f"{left}.target holds all numbers, {list(target.shape)}")


def explanations_table(found: "Explanations") -> str:
    """One line per prediction: the number that is explained, the three strongest scores, what scores leave open."""
    rows: list[Any] = []
    level = "index"
    for e in found[:ROWS]:
        level = e.level or level
        best = ", ".join(f"{_place(name)}: {score:+.3g}" for name, score in e.top(3))
        rest = "" if e.residual is None else f"{e.residual:+.3g}"
        rows.append((str(e.index), str(e.target), f"{e.output:+.3g}", best, rest))
    left = f"{len(found) - ROWS} more" if len(found) > ROWS else ""
    output = "output" if found[0].logits is None else "logit"
    return table((level, "class", output, "strongest scores", "residual"), rows, left)


def _place(name: Any) -> str:
    return " ".join(map(str, name)) if isinstance(name, tuple) else str(name)
