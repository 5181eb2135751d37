"""How results show themselves in notebooks."""

from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .explanation import Explanation
    from .tree import ExplanationTree

MOST = 2000  # nodes; laying out more takes longer than a reader of a notebook waits


def picture(result: "Explanation | ExplanationTree") -> bytes | None:
    """A PNG of a result; None, by which notebooks fall back to text, if it cannot be drawn here."""
    try:
        figure = _figure(result)
    except (ImportError, ValueError):  # a package is missing, or a score is not finite
        return None
    if figure is None:
        return None
    written = BytesIO()
    figure.savefig(written, format="png", dpi=100)
    return written.getvalue()


def _figure(result: "Explanation | ExplanationTree") -> "Figure | None":
    from ..plots import plot_dendrogram, plot_graph
    from .explanation import Explanation

    if not isinstance(result, Explanation):
        return plot_dendrogram(result) if result.levels else None
    drawn = result.edge_index is not None and 0 < len(result.nodes) <= MOST
    return plot_graph(result) if drawn else None
