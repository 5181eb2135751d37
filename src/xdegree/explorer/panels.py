"""Results as parts of the page. All text goes in as text: Dash escapes it, and nothing here is markup."""

from collections.abc import Collection, Sequence
from typing import Any

from dash import html
from torch import Tensor

from ..canvas import Canvas, account_line, alike, node_scores, open_line, shares_of, signed_colour, text_on
from ..results.explanation import Explanation
from ..results.tree import ExplanationTree
from .answers import GroupAnswer, Row
from .cytoscape import name_of, said_of
from .subject import Chosen, Subject, of_edges

SHOWN_GROUPS = 6
SHOWN_CLASSES = 12
SHOWN_SCORES = 200


def number(value: float) -> str:
    """A signed number of three digits, with a real minus."""
    text = f"{value:+.3g}" if abs(value) < 0.01 or abs(value) >= 1000 else f"{value:+.2f}"
    return ("0" if value == 0 else text).replace("-", "−")


def prediction(subject: Subject, logits: Tensor | None, target: int) -> Any:
    """What is explained for every class, the model's own output or its logits, with the shares that these come to."""
    values = (subject.one.prediction if logits is None else logits).tolist()
    shares = shares_of(said_of(subject, target, logits))
    order = sorted(range(len(values)), key=lambda c: -values[c])
    if len(order) > SHOWN_CLASSES:
        order = [*order[:SHOWN_CLASSES], *([] if target in order[:SHOWN_CLASSES] else [target])]
    rows, texts = [], alike(values)
    for c in order:
        share = None if shares is None else shares[c]
        cells = [
            html.Span(subject.classes[c], className="name", title=subject.classes[c]),
            html.Span(html.Span(style={"width": f"{100 * (share or 0):.1f}%"}), className="bar", hidden=share is None),
            html.Span("" if share is None else f"{share:.1%}", className="share"),
            html.Span(texts[c], className="logit", title=f"{values[c]:+.9g}"),
        ]
        rows.append(html.Li(cells, className="chosen" if c == target else ""))
    left = len(values) - len(order)
    more = [html.Li(f"and {left} classes with smaller outputs", className="quiet")] if left > 0 else []
    return html.Ul(rows + more, className="prediction", id="prediction")


def scores(subject: Subject, canvas: Canvas, e: Explanation) -> Any:
    """Every node with its score, the strongest first; a row lights its node in the drawing (see explorer.js)."""
    found = node_scores(e)
    order = sorted(subject.nodes, key=lambda node: (-abs(found[node]), node))
    shown = order[:SHOWN_SCORES]
    most = max((abs(found[node]) for node in shown), default=0.0)
    rows = []
    for node, text in zip(shown, alike(found[node] for node in shown), strict=True):
        colour = signed_colour(found[node], most)
        drawn = node in canvas.places
        where = "" if drawn else " (not drawn)"
        cells = [
            html.Span(name_of(canvas, node) + where),
            html.Span(text, className="figure", style={"background": colour, "color": text_on(colour)}),
        ]
        mark: Any = {"data-node": str(node)}
        rows.append(html.Li(html.Button(cells, className="score", type="button", disabled=not drawn, **mark)))
    left = len(order) - len(shown)
    more = [html.Li(f"and {left:,} with smaller scores", className="quiet")] if left else []
    lines = [account_line(e, subject.names, node=canvas.node), open_line(e, node=canvas.node)]
    return [
        html.P(" ".join(f"{line[:1].upper()}{line[1:]}." for line in lines if line), id="account"),
        html.Ul(rows + more, className="score-list", id="scores"),
    ]


def contributions(subject: Subject, answer: GroupAnswer, groups: tuple[Chosen, Chosen], target: int) -> Any:
    """What two groups contribute to every class: rows that add up to the prediction."""
    a, b = map(len, groups)
    edges = of_edges([*groups[0], *groups[1]])
    rest = len(subject.edges if edges else subject.nodes) - a - b
    classes = [target, *(c for c in range(len(subject.classes)) if c != target)]
    most = max(
        abs(value) for row in (answer.a, answer.b, answer.together, answer.rest, answer.meeting) for value in row
    )
    rows: list[tuple[str, str, Row, str]] = []
    if a:
        rows.append(("a", f"Group A ({a})", answer.a, ""))
    if b:
        rows.append(("b", f"Group B ({b})", answer.b, ""))
    if a and b:
        rows.append(("interaction", "Interaction of A and B", answer.interaction, "part"))
        rows.append(("together", "A and B together", answer.together, "sum"))
    rows += [
        ("rest", f"The rest ({rest})", answer.rest, ""),
        ("meeting", f"Joint effects{', own features' * edges} and biases", answer.meeting, "part"),
        ("total", "Prediction", answer.total, "sum"),
    ]
    names = [html.Th(subject.classes[c], scope="col", className="chosen" * (c == target)) for c in classes]
    head = html.Thead(html.Tr([html.Th("", scope="col"), *names]))
    body = [
        html.Tr(
            [html.Th(name, scope="row"), *(_cell(row[c], most, tinted=key != "total") for c in classes)],
            className=f"{style} row-{key}",
            id=f"row-{key}",
        )
        for key, name, row, style in rows
    ]
    return html.Div(html.Table([head, html.Tbody(body)]), className="scroll", tabIndex="0")


def _cell(value: float, most: float, *, tinted: bool) -> Any:
    """A number with as many digits as the largest of the table deserves; the exact one where the pointer rests."""
    colour = signed_colour(value, most) if tinted else "#ffffff"
    style = {"background": colour, "color": text_on(colour)}
    text = f"{value:+.2f}".replace("-", "−") if 0.5 <= most < 1000 else number(value)
    nothing = abs(value) < (0.005 if 0.5 <= most < 1000 else 1e-4 * most)
    return html.Td("≈ 0" if nothing else text, style=style, title=f"{value:+.9g}")


def level(tree: ExplanationTree, at: int, names: Sequence[str] | dict[int, str], what: str) -> Any:
    """One level of an agglomeration: its groups, the strongest first, and what merging changed."""
    groups = tree.levels[at]
    covered = sum(len(group.nodes) for group in groups)
    count = f"{len(groups)} group{'s' if len(groups) > 1 else ''}"
    head = html.P(
        f"Level {at + 1} of {len(tree.levels)}: {count}, {covered} of {len(tree.leaves)} {what}s", className="lead"
    )
    merged = {merge.union.nodes: merge for merge in tree.merges if merge.level == at}
    rows = []
    for group in sorted(groups, key=lambda g: -abs(g.score))[:SHOWN_GROUPS]:
        merge = merged.get(group.nodes)
        text = members(group.nodes, names)
        came = "" if merge is None else f"{len(merge.parts)} parts met, interaction {number(merge.interaction)}"
        rows.append(
            html.Li(
                [html.B(number(group.score), className="figure"), html.Span(text), html.Span(came, className="quiet")]
            )
        )
    more = len(groups) - SHOWN_GROUPS
    if more > 0:
        rows.append(html.Li(f"and {more} more", className="quiet"))
    return [head, html.Ul(rows, className="groups")]


def members(items: Collection[Any], names: Any, most: int = 8) -> str:
    """The names of nodes or edges, not too many."""
    ordered = sorted(items)
    text = ", ".join(names[item] for item in ordered[:most])
    return text if len(ordered) <= most else f"{text} and {len(ordered) - most} more"
