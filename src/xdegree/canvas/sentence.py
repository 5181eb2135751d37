"""A sentence: its words in lines, the arcs of its dependency tree above them."""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import ClassVar

from torch import Tensor

from .base import Canvas, Colours, Edge, EdgeColours, Line, Point, edge_of, edges_of
from .colours import GREY, INK, NOTHING, text_on

# In units of the height of the letters.
WIDTH = 46.0  # of a line of text at most
GAP, PAD = 0.55, 0.3  # between words, within the box of a word
TALL = 1.5  # the box of a word
STEP, FOOT = 0.62, 0.45  # between arcs that lie above each other, from the box to the lowest arc
BELOW = 0.75  # between the box of a word and the arcs of the line below it


@dataclass(frozen=True)
class Sentence(Canvas):
    """A canvas of words; its unit is the height of the letters."""

    widths: tuple[float, ...]
    """Of the boxes around the words."""
    size: tuple[float, float]

    kind: ClassVar[str] = "sentence"
    node: ClassVar[str] = "word"

    @property
    def box(self) -> tuple[float, float, float, float]:
        """The whole drawing."""
        return 0.0, 0.0, *self.size

    def svg(self, nodes: Colours, edges: EdgeColours) -> str:
        """Words on coloured boxes under their arcs; what a word holds is text, never markup."""
        width, height = self.size
        parts = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:.2f} {height:.2f}'>"]
        for edge, lines in self.paths.items():
            colour = edges.get(edge)
            stroke = f"stroke='{colour or GREY}' stroke-width='{0.22 if colour else 0.07}'"
            for line in lines:
                points = " ".join(f"{x:.2f},{height - y:.2f}" for x, y in line)
                parts.append(f"<polyline points='{points}' fill='none' {stroke}/>")
        for word, (x, y) in self.places.items():
            fill, wide = nodes.get(word, NOTHING), self.widths[word]
            parts.append(
                f"<rect x='{x - wide / 2:.2f}' y='{height - y - TALL / 2:.2f}' width='{wide:.2f}' height='{TALL}'"
                f" rx='0.3' fill='{fill}' stroke='{GREY}' stroke-width='0.04'/>"
                f"<text x='{x:.2f}' y='{height - y + 0.34:.2f}' font-size='1' font-family='sans-serif'"
                f" text-anchor='middle' textLength='{wide - 2 * PAD:.2f}' lengthAdjust='spacingAndGlyphs'"
                f" fill='{text_on(fill) if word in nodes else INK}'>{escape(_printable(self.labels[word]))}</text>"
            )
        return "".join([*parts, "</svg>"])


def sentence_canvas(
    words: Sequence[str],
    *,
    heads: Sequence[int] | Tensor | None = None,
    edge_index: Tensor | None = None,
    width: float = WIDTH,
) -> Sentence:
    """Set words in lines under the arcs of their tree.

    Args:
        words: the nodes, in order.
        heads: of each word the number of its head; of the root itself or -1.
        edge_index: [2, E], instead of the heads.
        width: of a line, in letter heights; a word that is longer has a line of its own.
    """
    if not len(words):
        raise ValueError("words is empty: there is nothing to show")
    edges = _tree(heads, len(words)) if heads is not None else [] if edge_index is None else edges_of(edge_index)
    if bad := [edge for edge in edges if edge[1] >= len(words)]:
        raise ValueError(f"there are {len(words)} words, but edges {bad[:3]}")
    widths = tuple(word_width(word) + 2 * PAD for word in words)
    rows = _rows(widths, width)
    row_of = {word: number for number, row in enumerate(rows) for word in row}
    across = _across(rows, widths)
    wide = max(across[row[-1]] + widths[row[-1]] / 2 for row in rows)
    feet = _feet(edges, across, widths)
    spans = [_spans(number, row_of, feet, edges, wide) for number in range(len(rows))]
    tracks = [_tracks(row) for row in spans]
    tall = [FOOT + STEP * max(track.values(), default=0) + TALL + BELOW for track in tracks]
    total = sum(tall) - BELOW
    base = [total - sum(tall[: number + 1]) + BELOW + TALL / 2 for number in range(len(rows))]
    places = {word: (across[word], base[row_of[word]]) for word in range(len(words))}
    paths: dict[Edge, tuple[Line, ...]] = dict.fromkeys(edges, ())
    for number, row in enumerate(spans):
        for edge, span in row.items():
            foot = base[number] + TALL / 2
            paths[edge] += (_arc(span, foot, foot + FOOT + STEP * tracks[number][edge]),)
    return Sentence(places, paths, dict(enumerate(words)), widths=widths, size=(wide, total))


def word_width(word: str) -> float:
    """About how wide a word is in a plain typeface, in letter heights."""
    return max(sum(map(_letter, word)), 0.5)


def _letter(letter: str) -> float:
    if letter in "iljtf.,;:'!|()[]-`’‘ ":
        return 0.36
    if letter in "mwMW@%—" or letter.isupper():
        return 0.86 if letter in "mwMW@%—" else 0.7
    return 1.05 if unicodedata.east_asian_width(letter) in "WF" else 0.6


def _printable(text: str) -> str:
    """Without control characters, which XML does not allow even escaped."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _tree(heads: Sequence[int] | Tensor, count: int) -> list[Edge]:
    given = [int(head) for head in heads]
    if len(given) != count:
        raise ValueError(f"there are {count} words, but {len(given)} heads")
    return [edge_of(word, head) for word, head in enumerate(given) if head not in (-1, word)]


def _rows(widths: Sequence[float], width: float) -> list[list[int]]:
    """As few lines as possible, and these about equally full: the last one of a greedy filling is often one word."""
    fewest = len(_filled(widths, width))
    narrow, wide = 0.0, width
    for _ in range(20):
        middle = (narrow + wide) / 2
        narrow, wide = (narrow, middle) if len(_filled(widths, middle)) <= fewest else (middle, wide)
    return _filled(widths, wide)


def _filled(widths: Sequence[float], width: float) -> list[list[int]]:
    rows, used = [[0]], widths[0]
    for word in range(1, len(widths)):
        used += GAP + widths[word]
        if used > width:
            rows.append([])
            used = widths[word]
        rows[-1].append(word)
    return rows


def _across(rows: list[list[int]], widths: Sequence[float]) -> dict[int, float]:
    """The middle of each word."""
    found = {}
    for row in rows:
        left = 0.0
        for word in row:
            found[word] = left + widths[word] / 2
            left += widths[word] + GAP
    return found


def _feet(edges: list[Edge], across: dict[int, float], widths: Sequence[float]) -> dict[tuple[int, Edge], float]:
    """Where an arc stands on a word: beside its other arcs, the shortest ones outside, so that they do not cross."""
    found = {}
    for word, middle in across.items():
        left = sorted((edge for edge in edges if edge[1] == word), key=lambda edge: -edge[0])
        right = sorted((edge for edge in edges if edge[0] == word), key=lambda edge: -edge[1])
        own = [*left, *right]
        step = min(0.4, (widths[word] - 0.5) / max(len(own) - 1, 1))
        for number, edge in enumerate(own):
            found[word, edge] = middle + (number - (len(own) - 1) / 2) * step
    return found


@dataclass(frozen=True)
class _Span:
    """What of an arc lies above one line of text; an open end continues in another line."""

    left: float
    right: float
    opens_left: bool = False
    opens_right: bool = False


def _spans(
    row: int, row_of: dict[int, int], feet: dict[tuple[int, Edge], float], edges: list[Edge], wide: float
) -> dict[Edge, _Span]:
    found = {}
    for u, v in edges:
        first, last = row_of[u], row_of[v]
        if first == last == row:
            found[u, v] = _Span(feet[u, (u, v)], feet[v, (u, v)])
        elif row == first:
            found[u, v] = _Span(feet[u, (u, v)], wide, opens_right=True)
        elif row == last:
            found[u, v] = _Span(0.0, feet[v, (u, v)], opens_left=True)
    return found


def _tracks(spans: dict[Edge, _Span]) -> dict[Edge, int]:
    """The height of each arc: the lowest that no shorter arc over the same words has."""
    tracks: dict[Edge, int] = {}
    for edge, span in sorted(spans.items(), key=lambda item: item[1].right - item[1].left):
        over = [tracks[e] for e in tracks if spans[e].left < span.right and span.left < spans[e].right]
        tracks[edge] = max(over, default=-1) + 1
    return tracks


def _arc(span: _Span, foot: float, top: float) -> Line:
    """Up, along and down, with round corners; along to the margin where the arc continues in another line."""
    corner = min(0.5, (span.right - span.left) / 2, top - foot)
    turns = [math.pi / 2 * step / 6 for step in range(7)]
    line: list[Point] = []
    if span.opens_left:
        line.append((span.left, top))
    else:
        line.append((span.left, foot))
        line += [(span.left + corner * (1 - math.cos(t)), top - corner * (1 - math.sin(t))) for t in turns]
    if span.opens_right:
        line.append((span.right, top))
    else:
        line += [(span.right - corner * (1 - math.sin(t)), top - corner * (1 - math.cos(t))) for t in turns]
        line.append((span.right, foot))
    return tuple(line)
