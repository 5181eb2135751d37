"""A sentence whose words show what they contribute, under the arcs of its dependency tree."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D
from torch import Tensor

from ..canvas import (
    GREY,
    INK,
    NOTHING,
    Edge,
    ScoresLike,
    Sentence,
    edge_scores,
    node_scores,
    sentence_canvas,
    signed_colour,
    text_on,
)
from ..canvas.sentence import PAD, TALL
from ..results.explanation import Explanation
from .style import bare, centred, colour_bar, figure_of, legend_lines, new_axes

LETTER = 0.2  # inches


def plot_sentence(
    scores: ScoresLike,
    words: Sequence[str],
    *,
    heads: Sequence[int] | Tensor | None = None,
    edge_index: Tensor | None = None,
    edges: Tensor | Mapping[Edge, float] | None = None,
    title: str | None = None,
    unit: str | None = None,
    classes: Sequence[str] | None = None,
    canvas: Sentence | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw signed scores on the words of a sentence: red words raise the explained output, blue ones lower it.

    Long sentences take several lines; an arc that runs to a margin continues in another line.

    Args:
        scores: an explanation, or scores of words [N].
        words: the words, in order.
        heads: of each word the number of its head; of the root itself or -1.
        edge_index: [2, E], instead of the heads; of an explanation its own by default.
        edges: scores of arcs, [E] or by pair of words; of an explanation its own by default.
        title: above the picture.
        unit: what the scores are measured in, for the colour bar; by default what the explanation says.
        classes: names of the classes, for the legend; their numbers by default.
        canvas: a sentence that is laid out already.
        ax: where to draw; a new figure by default.

    Returns:
        The figure, never shown.
    """
    of_words = node_scores(scores)
    if len(of_words) != len(words):
        raise ValueError(f"there are {len(words)} words, but {len(of_words)} nodes were scored")
    if heads is None and edge_index is None and isinstance(scores, Explanation):
        edge_index = scores.edge_index
    of_arcs = edge_scores(scores, edge_index, edges)
    canvas = canvas or sentence_canvas(words, heads=heads, edge_index=edge_index)
    norm = centred([*of_words, *of_arcs.values()])
    if ax is None:
        width, height = (side * LETTER for side in canvas.size)
        ax = new_axes((max(width, 4.6), max(height, 0.6) + 1.05 + 0.3 * (title is not None)))
    bare(ax, title)
    draw_sentence(
        ax,
        canvas,
        {word: signed_colour(score, norm.halfrange) for word, score in enumerate(of_words)},
        {edge: signed_colour(score, norm.halfrange) for edge, score in of_arcs.items()},
    )
    colour_bar(ax, norm, *legend_lines(scores, unit, classes, canvas.node))
    return figure_of(ax)


def draw_sentence(ax: Axes, canvas: Sentence, words: Mapping[int, str], arcs: Mapping[Edge, str]) -> None:
    """Boxes, words and arcs in the units of the axes, so that words fit their boxes at any size."""
    lines = [(line, arcs.get(edge)) for edge, path in canvas.paths.items() for line in path]
    drawn = LineCollection([line for line, _ in lines], colors=[colour or GREY for _, colour in lines])
    drawn.set(linewidths=[2.6 if colour else 0.9 for _, colour in lines], zorder=1, gid="arcs")
    ax.add_collection(drawn)
    edged = LineCollection([line for line, colour in lines if colour], colors=GREY, linewidths=0.4, zorder=1.1)
    ax.add_collection(edged)  # so that an arc of nearly no score can be seen
    for word, (x, y) in canvas.places.items():
        fill, wide = words.get(word, NOTHING), canvas.widths[word]
        box = FancyBboxPatch(
            (x - wide / 2 + 0.25, y - TALL / 2 + 0.25), wide - 0.5, TALL - 0.5, boxstyle="round,pad=0.25"
        )
        box.set(fc=fill, ec=GREY, lw=0.5, zorder=2, gid=f"word {word}")
        ax.add_patch(box)
        ax.add_patch(_letters(canvas.labels[word], x, y, wide - 2 * PAD, text_on(fill) if word in words else INK))
    ax.set(xlim=(-0.1, canvas.size[0] + 0.1), ylim=(-0.1, canvas.size[1] + 0.1))


def _letters(word: str, x: float, y: float, wide: float, colour: str) -> PathPatch:
    """A word as a shape, centred at a place, no wider than its box allows; a dollar is no formula."""
    path = TextPath((0, 0), word.replace("$", r"\$"), size=1.0)
    extent = path.get_extents() if len(path.vertices) else None
    shrink = 1.0 if extent is None or extent.width <= wide else wide / extent.width
    middle = 0.0 if extent is None else (extent.x0 + extent.x1) / 2
    place = Affine2D().translate(-middle, -0.36).scale(shrink).translate(x, y)
    return PathPatch(place.transform_path(path), fc=colour, ec="none", zorder=3, gid="letters")
