"""Colours for signed scores, shared by all views: red for, blue against, white nothing."""

from bisect import bisect_right

INK, GREY = "#222222", "#8c8c8c"
NOTHING = "#ffffff"
"""What has no score at all; what scores 0 is `signed_colour(0, …)`, nearly the same."""

# ColorBrewer's RdBu: told apart by all common kinds of colour vision. Its ends, nearly black, are left out, so that
# rings and letters stay visible.
_ANCHORS = (
    *("#053061", "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7"),
    *("#fddbc7", "#f4a582", "#d6604d", "#b2182b", "#67001f"),
)
_LEFT_OUT = 0.07


def _interpolated(place: float) -> tuple[float, ...]:
    """The colour at a place from 0 to 1 of the anchors, three numbers from 0 to 255."""
    steps = len(_ANCHORS) - 1
    left = min(int(place * steps), steps - 1)
    share = place * steps - left
    low, high = (tuple(int(_ANCHORS[i][c : c + 2], 16) for c in (1, 3, 5)) for i in (left, left + 1))
    return tuple(a + share * (b - a) for a, b in zip(low, high, strict=True))


SIGNED = tuple(
    "#" + "".join(f"{round(part):02x}" for part in _interpolated(_LEFT_OUT + i / 256 * (1 - 2 * _LEFT_OUT)))
    for i in range(257)
)
"""From most negative to most positive; the middle one is zero."""
_EDGES = [(i + 0.5) / 256 for i in range(256)]


def signed_colour(score: float, most: float) -> str:
    """The colour of a score on a scale from -most to most, as ``#rrggbb``."""
    share = 0.5 if not most else min(max(0.5 + score / most / 2, 0.0), 1.0)
    return SIGNED[bisect_right(_EDGES, share)]


def is_dark(colour: str) -> bool:
    """Whether text on this colour (``#rrggbb``) must be white."""
    red, green, blue = (int(colour[c : c + 2], 16) for c in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue < 128


def text_on(colour: str) -> str:
    """Ink or white, whichever can be read on this colour."""
    return "#ffffff" if is_dark(colour) else INK
