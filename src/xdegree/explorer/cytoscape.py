"""What a browser needs to draw a prediction: places, names and, for every class, colours. Plain values only."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from torch import Tensor

from ..canvas import (
    NOTHING,
    Canvas,
    Edge,
    Molecule,
    Sentence,
    edge_of,
    largest,
    signed_colour,
    signs_line,
    text_on,
    unit_of,
)
from ..canvas.sentence import TALL
from ..results.tree import ExplanationTree
from .problem import MAX_NAME
from .subject import Subject

SIZE, SMALL = 28, 20  # diameters of a node and of a hydrogen, in the browser's units
INSIDE, CROWD = 4, 60  # letters that fit into a node; nodes from which on long names are cut
LETTER = 15.0  # the height of letters of a sentence
Drawing = dict[str, Any]
Layer = dict[str, Any]


def drawing(subject: Subject, canvas: Canvas, class_scores: Tensor, logits: Tensor | None = None) -> Drawing:
    """Nodes and edges, and a layer of colours for each class.

    Args:
        subject: what is explained.
        canvas: where it stands.
        class_scores: ``[N, C]``.
        logits: what is explained instead of the prediction, of a model that ends in a softmax.
    """
    scale, shown = _scale(canvas), list(canvas.places)
    layers = [layer(shown, class_scores[:, c].tolist()) for c in range(class_scores.shape[1])]
    return {
        "key": subject.key,
        "nodes": [_node(canvas, node, scale, explained=node == subject.index) for node in shown],
        "edges": [_edge(subject, canvas, edge, scale) for edge in canvas.paths],
        "layers": layers,
        "captions": [caption(subject, c, logits) for c in range(len(layers))],
        "words": {"node": f"{canvas.node}s", "edge": "bonds" if isinstance(canvas, Molecule) else "edges"},
        "numbered": isinstance(canvas, Molecule),
    }


def caption(subject: Subject, target: int, logits: Tensor | None = None) -> str:
    """What the colours of a class mean."""
    asked = said_of(subject, target, logits)
    return f"{unit_of(asked, subject.names)}: {signs_line(asked, subject.names)}"


def said_of(subject: Subject, target: int, logits: Tensor | Sequence[float] | None = None) -> Any:
    """The prediction as the words of all views take it."""
    return SimpleNamespace(prediction=subject.one.prediction, target=target, reading="contribution", logits=logits)


def layer(shown: Sequence[int], scores: Sequence[float]) -> Layer:
    """Colours of nodes for one number each."""
    chosen = [scores[node] for node in shown]
    most = largest(chosen)
    colours = [signed_colour(score, most) for score in chosen]
    return {"most": most, "scores": chosen, "colours": colours, "inks": [text_on(colour) for colour in colours]}


def growth_layers(tree: ExplanationTree, shown: Sequence[int]) -> dict[str, Any]:
    """For each level the group of each node, -1 for none, and the colour of what the group contributes."""
    most = largest(group.score for level in tree.levels for group in level)
    levels = []
    for level in tree.levels:
        owner = {node: number for number, group in enumerate(level) for node in group.nodes}
        groups = [owner.get(node, -1) for node in shown]
        scores = [level[number].score if number >= 0 else 0.0 for number in groups]
        colours = [signed_colour(s, most) if n >= 0 else NOTHING for s, n in zip(scores, groups, strict=True)]
        levels.append(
            {"groups": groups, "scores": scores, "colours": colours, "inks": [text_on(colour) for colour in colours]}
        )
    return {"most": most, "levels": levels}


def name_of(canvas: Canvas, node: int) -> str:
    """What the page calls a node, not longer than a line; of nodes with names of their own, also the number."""
    label = shortened(canvas.labels.get(node, str(node)), MAX_NAME)
    if isinstance(canvas, Molecule):
        return label
    return f"node {label}" if label == str(node) else f"{label} ({node})"


def item_name(canvas: Canvas, item: int | Edge) -> str:
    """What the page calls a node, or an edge: by its ends."""
    return name_of(canvas, item) if isinstance(item, int) else " – ".join(name_of(canvas, end) for end in item)


def shortened(text: str, most: int) -> str:
    """A text of so many letters at most, with a sign where it was cut."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _scale(canvas: Canvas) -> float:
    """Browser units per unit of the canvas."""
    if isinstance(canvas, Molecule):
        return 1.25
    if isinstance(canvas, Sentence):
        return LETTER
    places = list(canvas.places.values())
    lengths = sorted(math.dist(canvas.places[u], canvas.places[v]) for u, v in canvas.paths)
    if not lengths or not lengths[len(lengths) // 2]:
        return 60.0
    middle = lengths[len(lengths) // 2]
    nearest = min((math.dist(p, q) for i, p in enumerate(places) for q in places[:i]), default=middle)
    return max(66 / middle, min(1.2 * SIZE / max(nearest, 1e-9), 120 / middle))


def _node(canvas: Canvas, node: int, scale: float, *, explained: bool) -> dict[str, Any]:
    x, y = canvas.places[node]
    label, classes, width, height = canvas.labels[node], [], float(SIZE), float(SIZE)
    if isinstance(canvas, Molecule):
        label = label.split(" ")[0]
        if label == "H":
            classes, width, height = ["hydrogen"], float(SMALL), float(SMALL)
    elif isinstance(canvas, Sentence):
        classes, width, height = ["word"], canvas.widths[node] * scale, TALL * scale
    if explained:
        classes.append("explained")
    if canvas.kind == "graph" and len(label) > INSIDE:
        # Below its node; where there are many, names would cover each other: the list has them in full.
        classes.append("named")
        label = shortened(label, 18 if len(canvas.places) <= CROWD else INSIDE)
    place = {"x": round(x * scale, 1), "y": round(-y * scale, 1)}
    size = {"width": round(width, 1), "height": round(height, 1)}
    found = {"node": node, "label": label, "name": name_of(canvas, node), "classes": classes, **place, **size}
    if isinstance(canvas, Molecule):
        found["charge"] = charge(canvas.mol.GetAtomWithIdx(node).GetFormalCharge())
    return found


def charge(formal: int) -> str:
    """A formal charge as chemists write it: ⁺, ⁻, ²⁺."""
    if not formal:
        return ""
    size = "" if abs(formal) == 1 else str(abs(formal)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return size + ("⁺" if formal > 0 else "⁻")


def _edge(subject: Subject, canvas: Canvas, edge: Edge, scale: float) -> dict[str, Any]:
    found: dict[str, Any] = {"u": edge[0], "v": edge[1], "order": 1, "arc": 0}
    found |= {"name": item_name(canvas, edge), "able": edge_of(*edge) in subject.edges}
    if isinstance(canvas, Molecule):
        bond = canvas.mol.GetBondBetweenAtoms(*edge)
        found["order"] = max(1, min(3, int(bond.GetBondTypeAsDouble())))
    elif isinstance(canvas, Sentence) and len(canvas.paths[edge]) > 1:
        found["far"] = True
    elif isinstance(canvas, Sentence):
        height = [y for _, y in canvas.paths[edge][0]]
        found["arc"] = round((max(height) - min(height)) * scale, 1)
    return found
