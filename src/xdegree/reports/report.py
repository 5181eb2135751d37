"""The report: what is said about a result, put into one page that needs nothing else."""

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

from ..canvas import (
    Canvas,
    alike,
    described,
    explained_graph,
    explained_node,
    node_scores,
    output_name,
    part_line,
    signed_text,
)
from ..results.explanation import Explanation
from ..results.files import write_text
from ..results.notebook import frame
from ..results.subgraph import Subgraph
from ..results.tree import ExplanationTree, Group
from .tables import groups_table, meaning, prediction_table, settings_table, strongest_table
from .views import scene

MOST_NODES = 3000  # more than that no browser draws in reasonable time


@dataclass(frozen=True)
class HtmlReport:
    """A page that opens from disk, with its drawing library inside."""

    html: str
    title: str = "report"

    def __repr__(self) -> str:
        size = len(self.html)
        said = f"{size / 1e6:.1f} MB" if size > 1e6 else f"{size / 1e3:.0f} kB"
        return f"HtmlReport({self.title!r}, {said}; save(path) writes the file)"

    def _repr_html_(self) -> str:
        """How notebooks show it: the page in a frame of bounded height."""
        return frame(self.html)

    def save(self, path: str | Path) -> Path:
        """Write the page, whole or not at all."""
        return write_text(path, self.html)


def report(
    explanation: Explanation,
    tree: ExplanationTree | None = None,
    *,
    on: Canvas | None = None,
    groups: Mapping[str, Group | Subgraph] | Iterable[Group | Subgraph] = (),
    classes: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    truth: Iterable[int] = (),
    index: int | None = None,
    title: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> HtmlReport:
    """Put an explanation on one page: prediction, graph, levels of the agglomeration, groups, settings.

    Args:
        explanation: what `explain` returned.
        tree: what `agglomerate` returned for the same prediction: adds the slider and the groups.
        on: how to draw: ``molecule_canvas(…)``, ``sentence_canvas(…)`` or ``graph_canvas(…)`` of `xdegree.canvas`; by
            default the nodes that can contribute, as a graph; of more than 300 the strongest, and the ways between.
        groups: further groups to list, with what they contribute, also what `pick_subgraph` returned; by name if they
            have names.
        classes: names of the classes; their numbers by default.
        features: names of features, for explanations with ``of="feature"``; their numbers by default.
        truth: the nodes that should matter; drawn with a ring.
        index: the explained node, drawn as a diamond; by default that of the explanation, where it is clear that a
            node was explained.
        title: of the page; by default the question that it answers.
        settings: more to say about how the result came about, as the name of the model.

    Returns:
        The page; its `save` writes the file.
    """
    if not isinstance(explanation, Explanation):
        raise TypeError(f"reports are made of an xdegree.Explanation (got {described(explanation)})")
    if tree is not None:
        _check_same(explanation, tree)
    names = _class_names(classes, len(explanation.prediction))
    if features is not None and explanation.of == "feature" and len(features) != explanation.scores.shape[1]:
        raise ValueError(f"there are {explanation.scores.shape[1]} features, but {len(features)} names are given")
    index = explained_node(explanation) if index is None else index
    canvas = on or explained_graph(explanation)
    if len(canvas.places) > MOST_NODES:
        raise ValueError(
            f"{len(canvas.places)} nodes are too many to draw in a browser (at most {MOST_NODES}):"
            " choose some, on=graph_canvas(edge_index, nodes)"
        )
    link = f"link {explanation.index}" if explanation.level == "link" else None
    what = link or f"this {canvas.kind}" if index is None else canvas.name_of(index)
    heading = title or f"Why {_explained(explanation, classes)} for {what}?"
    listed = groups_table(tree, _named(groups), canvas, explanation.reading)
    content = {
        **scene(explanation, tree, canvas, index=index, truth=set(truth), classes=classes),
        "part": part_line(canvas, explanation.nodes.tolist(), node_scores(explanation), index),
        "listed": [
            {
                "title": f"{name or 'A group'}, {len(group.nodes)} {canvas.node}s: {signed_text(group.score)}",
                "nodes": [place for place, node in enumerate(canvas.places) if node in group.nodes],
            }
            for name, group in listed.groups
        ],
    }
    parts = {
        "title": escape(heading),
        "meaning": meaning(explanation, classes, canvas.node),
        "prediction": prediction_table(explanation, names),
        "nodes": strongest_table(explanation, canvas, features),
        "groups": listed.html,
        "settings": settings_table(explanation, tree, classes, settings or {}),
        "hidden": "" if tree is not None and tree.levels else "hidden",
        "grouped": "" if listed.groups else "hidden",
        "style": text_of("page.css"),
        "script": text_of("shared.js", "page.js"),
        "content": packed(json.dumps(content, separators=(",", ":"))),
        "library": _library(),
    }
    return HtmlReport(filled(text_of("page.html"), parts), heading)


def _named(groups: Mapping[str, Group | Subgraph] | Iterable[Group | Subgraph]) -> list[tuple[str, Group]]:
    """Groups with their names; a picked subgraph is named by its game, and listed with what it contributes."""
    given = groups.items() if isinstance(groups, Mapping) else (("", group) for group in groups)
    found = []
    for name, group in given:
        if not isinstance(group, Subgraph):
            found.append((name, group))
        elif group.contribution is None:
            raise ValueError("the table lists what groups contribute, which is not known of this subgraph")
        else:
            said = f"{name or 'picked'}: {group.size} {group.of}s, score {signed_text(group.score)} ({group.game})"
            found.append((said, Group(group.nodes, group.contribution)))
    return found


def _explained(e: Explanation, classes: Sequence[str] | None) -> str:
    """What the question is about: a class, or the value of the only output."""
    name = output_name(e, classes)
    if len(e.prediction) > 1:
        return name
    value = alike(e.prediction.tolist())[0]
    return value if classes is None else f"{name} {value}"


def _check_same(e: Explanation, tree: ExplanationTree) -> None:
    for name in ("target", "index", "num_nodes"):
        if getattr(e, name) != getattr(tree, name):
            raise ValueError(
                f"the tree is of another prediction: its {name} is {getattr(tree, name)},"
                f" that of the explanation {getattr(e, name)}"
            )


def _class_names(classes: Sequence[str] | None, count: int) -> list[str]:
    if classes is None:
        return ["the output"] if count == 1 else [f"class {number}" for number in range(count)]
    if len(classes) != count:
        raise ValueError(f"the prediction has {count} classes, but {len(classes)} names are given")
    return list(classes)


@cache
def _library() -> str:
    return packed(get_plotlyjs())


def packed(text: str) -> str:
    """Compressed, as browsers can undo it: the drawing library alone would take 4.8 MB. Same text, same bytes."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def text_of(*names: str) -> str:
    """Files of this folder, one after the other."""
    return "\n".join((files(__package__) / name).read_text(encoding="utf-8") for name in names)


def filled(template: str, parts: Mapping[str, Any]) -> str:
    """The template with its ``{{name}}`` replaced, once: what a part holds is not looked at again."""
    pieces = template.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, rest = piece.split("}}", 1)
        filled += [parts[name], rest]
    return "".join(filled)
