"""The parts of a report that are plain HTML, readable without any script. All text of users is escaped here."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from math import isfinite

import torch

from ..canvas import (
    Canvas,
    account_line,
    alike,
    largest,
    open_line,
    output_name,
    scale_of,
    shares_of,
    signed_colour,
    signs_line,
    text_on,
)
from ..canvas.wording import UNSIGNED, outputs_of
from ..results.explanation import Explanation
from ..results.tree import ExplanationTree, Group
from .views import drawn_scores

MOST_CLASSES, MOST_ROWS, MOST_NAMES = 30, 12, 14
NEAR = 0.05  # of the largest score of a group: a difference that is none to a reader
PAPER = "https://openreview.net/forum?id=Ve0Wth3ptT_"
"""Where the method is described: a page that opens from disk has no other pages beside it."""


MEASURED = {
    "impact": "how far it moves the classes against each other",
    "strength": "how much of it reaches the last hidden layer, for or against the prediction",
    "probability": "its share of the class's probability",
}
"""What a score is, of readings that are no contributions."""


def meaning(e: Explanation, classes: Sequence[str] | None, node: str) -> str:
    """What the numbers of the page mean, in three sentences for readers who have read nothing else."""
    scored = node if e.of == "node" else e.of.replace("_", " ")
    article = "an" if scored[0] in "aeiou" else "a"
    measured = MEASURED.get(e.reading, f"what it contributes to {output_name(e, classes)}")
    how = "found by decomposing the model's own computation (DEGREE)"
    sentences = [
        signs_line(e, classes),
        account_line(e, classes, node=node) or f"scores of this kind ({e.reading}) do not add up to the prediction",
        open_line(e, node=node),
        f"the score of {article} {scored} is {measured}, {how}: nothing is removed from the graph or trained",
    ]
    text = " ".join(escape(f"{line[0].upper()}{line[1:]}.") for line in sentences if line)
    return f"{text} <a href='{PAPER}' rel='noreferrer'>How it works</a>"


def prediction_table(e: Explanation, names: Sequence[str]) -> str:
    """Every class with what is explained, the model's output or the logit before its end, and the share it comes to."""
    values = torch.as_tensor(outputs_of(e)).tolist()
    texts, heads, second = alike(values), ["output" if e.logits is None else "logit"], None
    shares = shares_of(e)
    if shares is not None and (e.logits is not None or scale_of(values) != "probability"):  # which are shares already
        heads, second = [*heads, "softmax"], [f"{share:.1%}" for share in shares]
    elif e.logits is not None:
        heads, second = [*heads, "output"], alike(e.prediction.tolist())
    order = sorted(range(len(values)), key=lambda number: -values[number])
    shown = order[:MOST_CLASSES]
    if e.target not in shown:
        shown.append(e.target)
    most = max((abs(value) for value in values if isfinite(value)), default=0.0) or 1.0
    rows = []
    for number in shown:
        marked = " class='explained'" if number == e.target else ""
        note = " <small>explained</small>" if number == e.target else ""
        more = "" if second is None else f"<td class='number'>{second[number]}</td>"
        rows.append(
            f"<tr{marked}><th scope='row'>{escape(names[number])}{note}</th>"
            f"<td class='number'>{texts[number]}</td>{more}<td>{_bar(values[number], most)}</td></tr>"
        )
    left = f"<p class='note'>{len(order) - len(shown)} more classes</p>" if len(order) > len(shown) else ""
    return f"{_table(('class' if len(values) > 1 else '', *heads, ''), rows)}{left}"


def _bar(value: float, most: float) -> str:
    """A bar to the right for positive, to the left for negative numbers."""
    wide = min(abs(value) / most, 1.0) * 50 if isfinite(value) else 0.0
    left = 50.0 if value >= 0 else 50 - wide
    return f"<span class='bar'><i style='left:{left:.1f}%;width:{wide:.1f}%'></i></span>"


def strongest_table(e: Explanation, canvas: Canvas, features: Sequence[str] | None) -> str:
    """The nodes, edges or features with the largest scores, in the colours of the drawing."""
    nodes, edges, most = drawn_scores(e, canvas)
    if e.of == "edge":
        found = [(f"{canvas.name_of(u)} – {canvas.name_of(v)}", score) for (u, v), score in edges.items()]
    elif e.of == "feature":
        found = [
            (f"{canvas.name_of(node)}, {features[f] if features else f'feature {f}'}", score)
            for (node, f), score in e.top(e.scores.numel(), by="size")
        ]
        most = largest(score for _, score in found)
    else:
        found = [(canvas.name_of(node), nodes[node]) for node in e.nodes.tolist()]
    best = sorted(found, key=lambda item: -abs(item[1]))[:MOST_ROWS]
    rows = [
        f"<tr><th scope='row'>{escape(name)}</th>{_score(score, most, text)}</tr>"
        for (name, score), text in zip(best, _texts(e.reading, [score for _, score in best]), strict=True)
    ]
    left = len(found) - len(best)
    more = f"<p class='note'>{left} more with smaller scores</p>" if left else ""
    scored = canvas.node if e.of == "node" else e.of.replace("_", " ")
    return f"<h2>Strongest {scored}s</h2>{_table((scored, e.reading), rows)}{more}"


@dataclass(frozen=True)
class Listed:
    """The groups of the table and the table; its buttons name groups by their place."""

    groups: tuple[tuple[str, Group], ...]
    """With their names, which are empty where they have none."""
    html: str


def _texts(reading: str, scores: Sequence[float]) -> list[str]:
    """Scores of a table; a sign only where there are two."""
    return [text.lstrip("+") if reading in UNSIGNED else text for text in alike(scores)]


def groups_table(
    tree: ExplanationTree | None, given: Sequence[tuple[str, Group]], canvas: Canvas, reading: str
) -> Listed:
    """Given groups by name, then those of the tree with the largest scores; single nodes have a table already."""
    every = [] if tree is None else [group for group in tree.groups.values() if len(group.nodes) > 1]
    grown = sorted(_telling(every), key=lambda group: (-abs(group.score), len(group.nodes)))
    groups = (*given, *(("", group) for group in grown[:MOST_ROWS]))
    if not groups:
        return Listed((), "")
    most = largest(group.score for _, group in groups)
    merges = () if tree is None else tree.merges
    joined = {m.union.nodes: (str(m.level + 1), m.interaction) for m in merges}
    met = [joined.get(group.nodes, ("", None)) for _, group in groups]
    texts = _texts(reading, [*(group.score for _, group in groups), *(inter or 0.0 for _, inter in met)])
    rows = []
    for number, ((name, group), (level, inter)) in enumerate(zip(groups, met, strict=True)):
        interaction = "" if inter is None else texts[len(groups) + number]
        rows.append(
            f"<tr><th scope='row'><button type='button' class='group' data-group='{number}'>"
            f"{f'<b>{escape(name)}</b> ' if name else ''}{_members(group.nodes, canvas)}</button></th>"
            f"<td class='number' data-head='size'>{len(group.nodes)}</td>{_score(group.score, most, texts[number])}"
            f"<td class='number' data-head='interaction'>{interaction}</td>"
            f"<td class='number' data-head='level'>{level}</td></tr>"
        )
    heads = ("group", "size", reading, "interaction", "level")
    left, same = max(len(grown) - MOST_ROWS, 0), len(every) - len(grown)
    said = [f"{left} smaller contributions"] * (left > 0) + [f"{same} that add little to a listed part"] * (same > 0)
    note = f"<p class='note'>Not listed: {', '.join(said)}</p>" if said else ""
    return Listed(groups, f"{_table(heads, rows)}{note}")


def _telling(groups: Sequence[Group]) -> list[Group]:
    """Of many groups those that say something new: not what a part of them, itself listed, contributes nearly alone."""
    if len(groups) <= MOST_ROWS:
        return list(groups)
    kept: list[Group] = []
    near = NEAR * largest(group.score for group in groups)
    for group in sorted(groups, key=lambda group: len(group.nodes)):
        if not any(part.nodes < group.nodes and abs(part.score - group.score) < near for part in kept):
            kept.append(group)
    return kept


def _members(nodes: Iterable[int], canvas: Canvas) -> str:
    order = sorted(nodes)
    named = [canvas.labels.get(node, str(node)) for node in order[:MOST_NAMES]]
    rest = f" … and {len(order) - MOST_NAMES} more" if len(order) > MOST_NAMES else ""
    return escape((" " if canvas.kind == "sentence" else ", ").join(named) + rest)


def settings_table(
    e: Explanation, tree: ExplanationTree | None, classes: Sequence[str] | None, more: Mapping[str, object]
) -> str:
    """Everything that another run needs to come to the same numbers."""
    said: dict[str, object] = {
        **more,
        "explained": f"row {e.index} of the output" + (f", {output_name(e, classes)}" if len(e.prediction) > 1 else ""),
        "reading": e.reading,
        "scores of": e.of if e.edge_scoring is None else f"{e.of}, edges by {e.edge_scoring}",
        "nodes": f"{len(e.nodes)} of {e.num_nodes} can contribute",
        **({} if e.scope is None else {"decomposed": e.scope}),
        **{f"options: {name}": value for name, value in e.options.to_dict().items()},
    }
    if tree is not None:
        growth = "q selection candidates rising max_levels max_nodes left_out contextual_error seed"
        said |= {f"agglomeration: {name}": getattr(tree, name) for name in growth.split()}
        said |= {f"contexts: {name}": value for name, value in tree.contexts.to_dict().items()}
        if tree.options != e.options:
            said |= {f"agglomeration, options: {name}": value for name, value in tree.options.to_dict().items()}
    said |= {name: version(name) for name in ("xdegree", "torch", "torch_geometric")}
    rows = [
        f"<tr><th scope='row'>{escape(name)}</th><td>{_breakable(_said(value))}</td></tr>"
        for name, value in said.items()
    ]
    return _table(("setting", "value"), rows)


def _said(value: object) -> str:
    return "not set" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _breakable(text: str) -> str:
    """A value that may be broken where a reader would break it: behind the slashes and dots of paths and names."""
    return re.sub(r"([/\\_:]|\.(?=[a-zA-Z]))(?=\S)", r"\1<wbr>", escape(text))


def _score(score: float, most: float, text: str) -> str:
    colour = signed_colour(score, most)
    shown = f"<span class='score' style='background:{colour};color:{text_on(colour)}'>{text}</span>"
    return f"<td class='number' data-head='contribution'>{shown}</td>"


def _table(heads: Sequence[str], rows: Sequence[str]) -> str:
    text = ("", "class", "group", "setting", "value", "node", "atom", "word", "edge", "feature", "edge feature")
    head = "".join(f"<th scope='col'{'' if name in text else ' class=number'}>{name}</th>" for name in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
