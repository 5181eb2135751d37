"""Many predictions on one page: what each kind contributes, which subgraphs come back, filtered as a reader likes."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from torch_geometric.data import Data

from ..canvas import SIGNED, Overview, molecule_canvas, overview, signed_colour
from ..canvas.overview import Kinds, Section
from ..results.explanation import Explanation
from ..results.hetero import HeteroExplanation
from .report import HtmlReport, filled, packed, text_of
from .views import drawn_scores

MOST_DRAWN = 500  # molecules, about 500 bytes each
MOST_NAMES = 400  # of a section: those that occur most, since a page must stay small


def report_many(
    explanations: Iterable[Explanation | HeteroExplanation],
    graphs: Sequence[Data] | Data | None = None,
    *,
    kinds: Kinds | None = None,
    features: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    fragments: Sequence[Sequence[tuple[str, Sequence[int], float]]] | None = None,
    title: str | None = None,
) -> HtmlReport:
    """Put many explanations on one page, with filters by class, by right or wrong predictions, and by size.

    Args:
        explanations: of many predictions, in one reading.
        graphs: their graphs in the same order, or the one graph that all are of, see `xdegree.canvas.overview`.
        kinds: what to call the kind of each node; by default types, elements, words, hops or degrees.
        features: names of features, for explanations with ``of="feature"``.
        classes: names of the classes; their numbers by default.
        fragments: of each explanation named groups of nodes with what they contribute as one group; by default
            the functional groups that RDKit knows, with the sums of their single scores.
        title: of the page.

    Returns:
        The page, one file that needs nothing else; its `save` writes it.
    """
    given = list(explanations)
    found = overview(given, graphs, kinds=kinds, features=features, classes=classes, fragments=fragments)
    heading = title or f"What {len(found.rows)} predictions are made of"
    parts = {
        "title": escape(heading),
        "meaning": escape(_meaning(found)),
        "style": text_of("page.css", "many.css"),
        "script": text_of("shared.js", "many.js"),
        "content": json.dumps(_content(found, classes), separators=(",", ":")).replace("<", "\\u003c"),
        "drawings": packed(json.dumps(_drawings(given, graphs, found.subgraphs))),
    }
    return HtmlReport(filled(text_of("many.html"), parts), heading)


def _drawings(
    explanations: Sequence[Explanation | HeteroExplanation],
    graphs: Sequence[Data] | Data | None,
    subgraphs: Section,
) -> dict[str, Any]:
    """Molecules as RDKit draws them: of the first rows in the colours of their scores, and what comes back among them.

    None, or nothing, where graphs are no molecules; the page then has their names alone.
    """
    rows = [
        _molecule(e, graph.get("smiles"))
        for e, graph in zip(explanations[:MOST_DRAWN], graphs if isinstance(graphs, Sequence) else (), strict=False)
    ]
    names = sorted(subgraphs, key=lambda name: -len(subgraphs[name]))[:MOST_DRAWN] if any(rows) else []
    return {"rows": rows, "names": {name: svg for name in names if (svg := _fragment(name)) is not None}}


def _molecule(e: Explanation | HeteroExplanation, smiles: Any) -> str | None:
    if not isinstance(e, Explanation) or not isinstance(smiles, str):
        return None
    try:
        canvas = molecule_canvas(smiles, num_nodes=e.num_nodes)
    except ValueError:  # its nodes are no atoms of this SMILES
        return None
    scores, edges, most = drawn_scores(e, canvas)
    return canvas.svg(
        {atom: signed_colour(scores[atom], most) for atom in canvas.places},
        {edge: signed_colour(score, most) for edge, score in edges.items()},
    )


def _fragment(smiles: str) -> str | None:
    try:
        return molecule_canvas(smiles).svg({}, {})
    except ValueError:  # a part of an aromatic ring is no molecule of its own
        return None


def _meaning(found: Overview) -> str:
    parts = found.single.removeprefix("single ")
    return (
        f"A dot is one prediction, and stands at what all {found.what} of one kind contribute to it ({found.unit})."
        f" {found.signs[0].upper()}{found.signs[1:]}; the dark line is the mean. What {parts} do only"
        " together is in none of these sums: the rest, below, says how much that is."
        + " Molecules show the scores of their atoms, each on a scale of its own."
        * (found.what == "atoms")
    )


def _content(found: Overview, classes: Sequence[str] | None) -> dict[str, Any]:
    targets = sorted({row.target for row in found.rows})
    names = {t: classes[t] if classes is not None and t < len(classes) else f"class {t}" for t in targets}
    how = "contribution of the group as a whole" if found.exact else "sum of the scores of its single atoms"
    strong = "Connected nodes of one sign, each with at least half of the largest score of its prediction;"
    sections = [
        ("kinds", f"Kinds of {found.what}", "All of a kind in a prediction, added up.", found.kinds),
        ("fragments", "Functional groups", f"As RDKit finds them; a number is the {how}.", found.fragments),
        ("subgraphs", "Subgraphs that come back", f"{strong} a number is the sum of their scores.", found.subgraphs),
    ]
    return {
        "rows": [
            [row.title, row.target, _short(row.output), row.right, row.size, _short(row.parts), _short(row.rest)]
            for row in found.rows
        ],
        "single": found.single,
        "nodes": found.what if found.what in ("atoms", "words") else "nodes",
        "classes": names,
        "scale": SIGNED[::16],
        "unit": found.unit,
        "sections": [
            {"key": key, "title": title, "note": note, "names": _named(section)}
            for key, title, note, section in sections
            if section
        ],
    }


def _named(section: Section) -> list[list[Any]]:
    often = sorted(section.items(), key=lambda item: -len(item[1]))[:MOST_NAMES]
    return [[name, [[o.row, _short(o.score), o.size] for o in listed]] for name, listed in often]


def _short(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.5g}")
