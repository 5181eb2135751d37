"""What a reader takes along: the numbers, a report, a picture."""

import base64
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dash import Dash, Input, Output, State, ctx, no_update

from ..canvas import Canvas, account_line, largest, shares_of
from ..reports import report
from ..results.tree import Group
from . import cytoscape, panels
from .answers import IN_UNITS
from .problem import Problem
from .server_state import Desk, level
from .subject import Chosen, Subject, of_edges

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .picture import Caption


OWN_UNIT = "in its own unit: red for positive, blue for negative scores"


def downloading(app: Dash, desk: Desk) -> None:
    """The buttons that give a file."""

    @app.callback(
        Output("download", "data"),
        Output("download-said", "children"),
        Input("get-report", "n_clicks"),
        Input("get-png", "n_clicks"),
        Input("get-json", "n_clicks"),
        State("ref", "data"),
        State("target", "value"),
        State("group-a", "value"),
        State("group-b", "value"),
        State("view", "value"),
        State("level", "value"),
        State("first-method", "value"),
        State("second-method", "value"),
        running=[(Output("busy", "hidden"), False, True)],
        prevent_initial_call=True,
    )
    def download(
        _r: Any, _p: Any, _j: Any, ref: Any, target: Any, a: Any, b: Any, view: Any, at: Any, *methods: Any
    ) -> Any:
        try:
            subject, canvas = desk.drawn(ref)
            chosen = desk.target(subject, target)
            if ctx.triggered_id == "get-json":
                return _file("xdegree.json", _numbers(desk, subject, chosen, a, b)), ""
            if ctx.triggered_id == "get-png":
                shown = str(view), level(at), tuple(map(str, methods))
                from .picture import png

                return _file("xdegree.png", png(picture_of(desk, subject, canvas, chosen, a, b, *shown))), ""
            return _file("xdegree.html", _report_of(desk, subject, canvas, chosen, a, b)), ""
        except Problem as problem:
            return no_update, str(problem)
        except ModuleNotFoundError as error:  # only a picture needs more than the page itself
            return no_update, f'A picture needs {error.name}: pip install "xdegree[plot]"'


def _file(name: str, content: str | bytes) -> dict[str, object]:
    """A file as `dcc.Download` takes it."""
    if isinstance(content, str):
        return {"filename": name, "content": content, "type": None, "base64": False}
    return {"filename": name, "content": base64.b64encode(content).decode(), "type": "image/png", "base64": True}


def picture_of(
    desk: Desk,
    subject: Subject,
    canvas: Canvas,
    target: int,
    a: Any,
    b: Any,
    view: str,
    at: int,
    methods: tuple[str, ...],
) -> "Figure":
    """What the page shows, as a picture with its question and its legend."""
    from . import picture

    unit = cytoscape.caption(subject, target, desk.logits(subject))
    if view == "growth":
        tree = desk.answers.grown(subject, target).tree
        place = min(at, len(tree.levels) - 1)
        most = largest(group.score for each in tree.levels for group in each)
        title = f"level {place + 1} of {len(tree.levels)}"
        shown = [picture.Panel(title, f"{unit}, of each group", level=tree.levels[place], most=most)]
    elif view == "compare":
        found = [(method, desk.answers.scores(subject, method, target)) for method in methods]
        shown = [
            picture.Panel(method, unit if method in IN_UNITS else OWN_UNIT, scores.tolist()) for method, scores in found
        ]
    else:
        shown = [picture.Panel("", unit, desk.answers.scores(subject, "DEGREE", target).tolist())]
    return picture.figure(canvas, shown, _caption(desk, subject, canvas, target, a, b), subject.index)


def _caption(desk: Desk, subject: Subject, canvas: Canvas, target: int, a: Any, b: Any) -> "Caption":
    from .picture import Caption

    groups = desk.groups(subject, a, b)
    said = []
    if any(groups):
        answer = desk.answers.groups(subject, *groups)
        for name, group, row in zip("AB", groups, (answer.a, answer.b), strict=True):
            if group:
                names = {item: cytoscape.item_name(canvas, item) for item in group}
                said.append(f"{name}  {panels.number(row[target])}  {panels.members(group, names)}")
        if all(groups):
            together, met = panels.number(answer.together[target]), panels.number(answer.interaction[target])
            said.append(f"A and B together {together}, of which their interaction {met}")
    said.append(account_line(desk.answers.explanation(subject, target), subject.names, node=canvas.node))
    if len(subject.classes) == 1:
        return Caption(subject.title, f"output {panels.number(float(subject.one.prediction[0]))}", groups, tuple(said))
    shares, predicted = shares_of(cytoscape.said_of(subject, target, desk.logits(subject))), subject.one.target
    question = f"Why “{subject.classes[target]}”?"
    if shares is not None:
        question += f" Predicted with {shares[target]:.1%}"
        if target != predicted:
            question += f", after “{subject.classes[predicted]}” with {shares[predicted]:.1%}"
    return Caption(question, subject.title, groups, tuple(said))


def _numbers(desk: Desk, subject: Subject, target: int, a: Any, b: Any) -> str:
    """The explanation as `Explanation.save` writes it, and what was asked of groups beside it."""
    first, second = desk.groups(subject, a, b)
    content = desk.answers.explanation(subject, target).content()
    content["title"], content["classes"] = subject.title, list(subject.classes)
    if first or second:
        of = "edge" if of_edges([*first, *second]) else "node"
        answer = asdict(desk.answers.groups(subject, first, second))
        content["groups"] = {"of": of, "A": first, "B": second, **answer}
    return json.dumps(content, indent=1)


def _report_of(desk: Desk, subject: Subject, canvas: Canvas, target: int, a: Any, b: Any) -> str:
    """The report with the agglomeration, and the groups that were asked about."""
    first, second = desk.groups(subject, a, b)
    listed, both = {}, [*first, *second]
    if both:
        answer = desk.answers.groups(subject, first, second)
        asked = [("A", first, answer.a), ("B", second, answer.b), ("A and B together", both, answer.together)]
        listed = {
            _counted(name, group): Group(_touched(group), row[target])
            for name, group, row in (asked if first and second else asked[:2])
            if group
        }
    grown = desk.answers.grown(subject, target)
    settings: dict[str, object] = {"prediction": subject.title, "data and model": subject.note}
    if not grown.complete:
        settings["agglomeration"] = f"stopped after {desk.answers.patience:g} s"
    return report(
        desk.answers.explanation(subject, target),
        grown.tree,
        on=canvas,
        groups=listed,
        classes=subject.names,
        index=subject.index,
        settings=settings,
    ).html


def _counted(name: str, group: Chosen) -> str:
    """The name of a group; of one of edges, which the report lists by the nodes that they touch, with their number."""
    return f"{name}: {len(group)} edge{'s' * (len(group) > 1)}" if of_edges(group) else name


def _touched(group: Chosen) -> frozenset[int]:
    return frozenset(node for item in group for node in (item if isinstance(item, tuple) else (item,)))
