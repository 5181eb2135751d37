"""What the drawing of a report shows: places, and for single nodes and each level who belongs together."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import torch

from ..canvas import (
    SIGNED,
    Canvas,
    Edge,
    Sentence,
    account_line,
    edge_scores,
    is_dark,
    largest,
    level_colours,
    node_scores,
    sentence_canvas,
    signed_colour,
    signed_text,
    signs_line,
    unit_of,
)
from ..canvas.wording import UNSIGNED
from ..results.explanation import Explanation
from ..results.tree import ExplanationTree, Level

NARROW = 24.0  # letters of a line on a phone
View = dict[str, Any]
Painting = tuple[Mapping[int, str], Mapping[Edge, str]]
"""Colours of nodes and of edges, for those canvases that draw themselves."""
SHADES = 16  # of edges to each side: each shade is a line of its own to the library


def scene(
    e: Explanation,
    tree: ExplanationTree | None,
    canvas: Canvas,
    *,
    index: int | None,
    truth: set[int],
    classes: Sequence[str] | None,
) -> dict[str, Any]:
    """All that the page's script draws, as plain values."""
    number = {node: place for place, node in enumerate(canvas.places)}
    layouts = [canvas, *_narrow(canvas)]
    return {
        "kind": canvas.kind,
        "scale": SIGNED[::16],
        "index": None if index is None else number.get(index),
        "truth": [number[node] for node in canvas.places if node in truth],
        "names": [escape(canvas.name_of(node)) for node in canvas.places],
        "edges": [[number[u], number[v]] for u, v in canvas.paths],
        "layouts": [_layout(each) for each in layouts],
        "views": [
            {**view, "images": [_image(each, colours) for each in layouts]}
            for view, colours in (_singles(e, canvas, classes), *_levels(tree, canvas, classes))
        ],
    }


def _narrow(canvas: Canvas) -> list[Canvas]:
    """A sentence in shorter lines, for phones."""
    if not isinstance(canvas, Sentence) or canvas.size[0] <= NARROW:
        return []
    words = [canvas.labels[word] for word in canvas.places]
    edges = torch.tensor(list(canvas.paths), dtype=torch.long).reshape(-1, 2).t()
    return [sentence_canvas(words, edge_index=edges, width=NARROW)]


def _layout(canvas: Canvas) -> dict[str, Any]:
    left, low, right, high = canvas.box
    return {
        "box": [_short(side) for side in (left, low, right, high)],
        "x": [_short(x) for x, _ in canvas.places.values()],
        "y": [_short(y) for _, y in canvas.places.values()],
    }


def _short(number: float) -> float:
    return float(f"{number:.5g}")


def drawn_scores(e: Explanation, canvas: Canvas) -> tuple[list[float], dict[Edge, float], float]:
    """What single nodes and edges of the drawing score, and the end of the scale that both share."""
    nodes = node_scores(e)
    edges = {edge: score for edge, score in edge_scores(e).items() if edge in canvas.paths}
    return nodes, edges, largest([*(nodes[node] for node in canvas.places), *edges.values()])


def _singles(e: Explanation, canvas: Canvas, classes: Sequence[str] | None) -> tuple[View, Painting]:
    """Every node by itself, and the edges where those were scored."""
    nodes, edges, most = drawn_scores(e, canvas)
    shades = {edge: signed_colour(round(SHADES * score / most) / SHADES, 1.0) for edge, score in edges.items()}
    colours = {node: signed_colour(nodes[node], most) for node in canvas.places}

    def said(score: float) -> str:
        return signed_text(score, most).lstrip("+" if e.reading in UNSIGNED else "")

    view = {
        "title": _TITLES.get(e.of, "Every {node} by itself").format(node=canvas.node),
        **_words(e, classes),
        "account": "",  # it stands at the top of the page
        "most": most,
        "group": list(range(len(canvas.places))),
        "groups": [{**_colour(colours[node]), "text": said(nodes[node])} for node in canvas.places],
        "shades": [shades.get(edge) for edge in canvas.paths],
        "said": [said(edges[edge]) if edge in edges else None for edge in canvas.paths] if edges else [],
    }
    return view, (colours, {edge: signed_colour(score, most) for edge, score in edges.items()})


_TITLES = {"edge": "Every edge by itself", "feature": "Every {node}, its features added up"}


def _words(result: Explanation | ExplanationTree, classes: Sequence[str] | None, level: Level | None = None) -> View:
    return {
        "signed": result.reading not in UNSIGNED,
        "unit": f"{unit_of(result, classes)}: {signs_line(result, classes)}",
        "account": account_line(result, classes, level),
    }


def _levels(tree: ExplanationTree | None, canvas: Canvas, classes: Sequence[str] | None) -> list[tuple[View, Painting]]:
    if tree is None or not tree.levels:
        return []
    most = largest(group.score for level in tree.levels for group in level)
    alone = {node: leaf.score for leaf in tree.leaves for node in leaf.nodes}
    shown = [_level(number, tree, canvas, most, alone) for number in range(len(tree.levels))]
    words = [_words(tree, classes, level) for level in tree.levels]
    return [({**view, **said}, colours) for (view, colours), said in zip(shown, words, strict=True)]


def _level(
    number: int, tree: ExplanationTree, canvas: Canvas, most: float, alone: Mapping[int, float]
) -> tuple[View, Painting]:
    """One level: the number of each node's group, -1 for none, and what the groups contribute."""
    level, phi = tree.levels[number], tree.contextual[number]
    where = {node: n for n, group in enumerate(level) for node in group.nodes}
    groups = [
        {
            **_colour(signed_colour(group.score, most)),
            "text": signed_text(group.score, most),
            "more": f"φ {signed_text(inside, most)}, {len(group.nodes)} {canvas.node}{'s' * (len(group.nodes) > 1)}",
        }
        for group, inside in zip(level, phi, strict=True)
    ]
    said = ", ".join(signed_text(group.score, most) for group in level[:4]) + (", …" if len(level) > 4 else "")
    view = {
        "title": f"Level {number + 1} of {len(tree.levels)}: {len(level)} group{'s' * (len(level) != 1)} ({said})",
        "most": most,
        "group": [where.get(node, -1) for node in canvas.places],
        "groups": groups,
        "alone": [signed_text(alone.get(node, 0.0), most) for node in canvas.places],
    }
    return view, level_colours(canvas, level, most)


def _colour(colour: str) -> dict[str, Any]:
    return {"colour": colour, "dark": is_dark(colour)}


def _image(canvas: Canvas, colours: Painting) -> str | None:
    """The canvas's own drawing as an address that holds it, or None where the library draws."""
    svg = canvas.svg(*colours)
    return None if svg is None else f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
