"""What happens on the page. All state is in the browser; every call brings what it is about, and is checked."""

import base64
import binascii
import json
import tempfile
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update

from ..canvas import Canvas
from ..reports import report
from ..tree import Group
from . import drawing, panels, parse
from .answers import IN_UNITS, Answers, agreement, probabilities
from .catalogue import Catalogue
from .problem import Problem
from .subject import Subject

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .picture import Caption

EMPTY = "Click nodes in the picture, or choose them in the lists above, and read here what they contribute together."


class Desk:
    """What callbacks work with: the catalogue, the answers, and drawings kept by prediction."""

    def __init__(self, catalogue: Catalogue, answers: Answers) -> None:
        self.catalogue, self.answers = catalogue, answers
        self.canvas = lru_cache(64)(self._canvas)
        """Where the nodes of a prediction stand."""

    def subject(self, raw: Any) -> Subject:
        """What a browser is looking at."""
        return self.catalogue.subject(parse.reference(raw))

    def _canvas(self, subject: Subject) -> Canvas:
        scores = self.answers.explanation(subject, subject.one.target).node_scores
        assert scores is not None
        return subject.canvas(scores.abs())

    def drawn(self, raw: Any) -> tuple[Subject, Canvas]:
        """A prediction and its canvas."""
        subject = self.subject(raw)
        return subject, self.canvas(subject)

    def target(self, subject: Subject, raw: Any) -> int:
        """The class that is explained; what does not fit is the predicted one."""
        fits = type(raw) is int and 0 <= raw < len(subject.classes)
        return raw if fits else subject.one.target


def register(app: Dash, desk: Desk) -> None:
    """Tell an app what happens."""
    _choosing(app, desk)
    _showing(app, desk)
    _asking(app, desk)
    _growing(app, desk)
    _comparing(app, desk)
    _downloading(app, desk)
    _in_the_browser(app)


def _choosing(app: Dash, desk: Desk) -> None:
    @app.callback(
        Output("item", "options"),
        Output("item", "value"),
        Output("smiles-panel", "hidden"),
        Input("example", "value"),
    )
    def offer(key: Any) -> Any:
        example = desk.catalogue.example(key)
        options = [{"label": title, "value": number} for number, title in example.choices]
        return options, 0, not example.atoms

    @app.callback(
        Output("ref", "data"),
        Output("item", "value", allow_duplicate=True),
        Output("own-said", "children"),
        Output("notice", "children"),
        Input("example", "value"),
        Input("item", "value"),
        Input("smiles-go", "n_clicks"),
        Input("smiles", "n_submit"),
        Input("uploaded", "data"),
        State("smiles", "value"),
        running=[(Output("busy", "hidden"), False, True)],
        prevent_initial_call="initial_duplicate",
    )
    def choose(key: Any, item: Any, _go: Any, _enter: Any, uploaded: Any, smiles: Any) -> Any:
        """A choice that cannot be explained leaves what is shown as it is, and says why."""
        cause = ctx.triggered_id
        try:
            if cause in ("smiles-go", "smiles"):
                ref: dict[str, Any] = {"example": key, "smiles": parse.smiles(smiles)}
            elif cause == "uploaded":
                ref = {"example": key, "graph": _text(uploaded)}
            elif item is None and cause == "item":
                return no_update, no_update, no_update, no_update
            else:
                ref = {"example": key, "item": item if type(item) is int else 0}
            desk.drawn(ref)
        except Problem as problem:
            return no_update, no_update, str(problem), ""
        return ref, (no_update if "item" in ref else None), "", ""


def _showing(app: Dash, desk: Desk) -> None:
    @app.callback(
        Output("drawing", "data"),
        Output("title", "children"),
        Output("note", "children"),
        Output("target", "options"),
        Output("target", "value"),
        Output("group-a", "options"),
        Output("group-b", "options"),
        Input("ref", "data"),
        prevent_initial_call=True,
    )
    def show(ref: Any) -> Any:
        subject, canvas = desk.drawn(ref)
        scores = desk.answers.explanation(subject, subject.one.target).class_scores
        assert scores is not None
        made = drawing.drawing(subject, canvas, scores)
        note = subject.example.note
        if made["shown"] < made["able"]:
            note = f"The {made['shown']} strongest of {made['able']} nodes that can contribute. {note}"
        targets = [{"label": name, "value": c} for c, name in enumerate(subject.classes)]
        nodes = [{"label": drawing.name_of(canvas, node), "value": node} for node in canvas.places]
        return made, subject.title, note, targets, subject.one.target, nodes, nodes

    @app.callback(
        Output("prediction-panel", "children"),
        Input("target", "value"),
        Input("ref", "data"),
        prevent_initial_call=True,
    )
    def predict(target: Any, ref: Any) -> Any:
        subject = desk.subject(ref)
        return panels.prediction(subject, probabilities(subject), desk.target(subject, target))


def _asking(app: Dash, desk: Desk) -> None:
    @app.callback(
        Output("answer", "children"),
        Input("group-a", "value"),
        Input("group-b", "value"),
        Input("target", "value"),
        Input("ref", "data"),
        prevent_initial_call=True,
    )
    def ask(a: Any, b: Any, target: Any, ref: Any) -> Any:
        """One call of the engine for both groups, their union and the rest."""
        subject = desk.subject(ref)
        able = set(subject.nodes)
        first, second = parse.nodes(a, able), parse.nodes(b, able)
        if not first and not second:
            return html.P(EMPTY, className="quiet")
        answer = desk.answers.groups(subject, first, second)
        sizes = (len(first), len(second), len(able) - len(first) - len(second))
        table = panels.contributions(subject, answer, sizes, desk.target(subject, target))
        unit = "logits" if len(subject.classes) > 1 else "units of the output"
        return [table, html.P(f"In {unit}; asked in {1000 * answer.seconds:.0f} ms.", className="explain")]


def _growing(app: Dash, desk: Desk) -> None:
    @app.callback(
        Output("growth", "data"),
        Output("level", "max"),
        Input("view", "value"),
        Input("ref", "data"),
        Input("target", "value"),
        running=[(Output("growth-said", "children"), f"Growing groups, {desk.answers.patience:.0f} s at most …", "")],
        prevent_initial_call=True,
    )
    def grow(view: Any, ref: Any, target: Any) -> Any:
        if view != "growth":
            return no_update, no_update
        subject, canvas = desk.drawn(ref)
        chosen = desk.target(subject, target)
        tree = desk.answers.grown(subject, chosen).tree
        found = drawing.growth_layers(tree, list(canvas.places))
        name = f"“{subject.classes[chosen]}” (logits)" if len(subject.classes) > 1 else "the output"
        return {**found, "key": subject.key, "target": chosen, "name": name}, len(tree.levels) - 1

    @app.callback(
        Output("growth-said", "children"),
        Input("growth", "data"),
        Input("level", "value"),
        State("ref", "data"),
        State("target", "value"),
        prevent_initial_call=True,
    )
    def tell(growth: Any, at: Any, ref: Any, target: Any) -> Any:
        if not growth:
            return no_update
        subject, canvas = desk.drawn(ref)
        grown = desk.answers.grown(subject, desk.target(subject, target))
        place = min(_level(at), len(grown.tree.levels) - 1)
        names = {node: drawing.name_of(canvas, node) for node in subject.nodes}
        late = "" if grown.complete else f"Stopped after {desk.answers.patience:.0f} s: larger groups were not reached."
        return [*panels.level(grown.tree, place, names, canvas.node), html.P(late, className="quiet")]


def _level(raw: Any) -> int:
    """The place of the slider; what is no number is the first."""
    return int(raw) if str(raw).isdecimal() else 0


def _comparing(app: Dash, desk: Desk) -> None:
    @app.callback(
        Output("first-layer", "data"),
        Output("second-layer", "data"),
        Output("first-said", "children"),
        Output("second-said", "children"),
        Output("compare-said", "children"),
        Input("view", "value"),
        Input("first-method", "value"),
        Input("second-method", "value"),
        Input("ref", "data"),
        Input("target", "value"),
        running=[(Output("compare-said", "children"), "Asking both methods …", "")],
        prevent_initial_call=True,
    )
    def compare(view: Any, first: Any, second: Any, ref: Any, target: Any) -> Any:
        if view != "compare":
            return (no_update,) * 5
        subject, canvas = desk.drawn(ref)
        chosen, shown = desk.target(subject, target), list(canvas.places)
        layers: list[drawing.Layer | None] = []
        said, scores = [], []
        for method in (str(first), str(second)):
            try:
                found = desk.answers.scores(subject, method, chosen)
            except Problem as problem:
                layers.append(None)
                said.append(str(problem))
                continue
            scores.append(found[subject.nodes])
            unit = drawing.caption(subject, chosen) if method in IN_UNITS else f"{method}, in its own unit"
            made = drawing.layer(shown, found.tolist())
            layers.append({**made, "key": subject.key, "target": chosen, "caption": unit})
            said.append("")
        rank = agreement(*scores) if len(scores) == 2 else None
        same = "" if rank is None else f"Rank correlation of the two (Spearman): {rank:+.2f}".replace("-", "−")
        return *layers, *said, same


def _downloading(app: Dash, desk: Desk) -> None:
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
                shown = str(view), _level(at), tuple(map(str, methods))
                return _file("xdegree.png", _png(picture_of(desk, subject, canvas, chosen, a, b, *shown))), ""
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

    unit = drawing.caption(subject, target)
    if view == "growth":
        tree = desk.answers.grown(subject, target).tree
        place = min(at, len(tree.levels) - 1)
        most = drawing.growth_most(tree)
        title = f"level {place + 1} of {len(tree.levels)}"
        shown = [picture.Panel(title, f"{unit}, of each group", level=tree.levels[place], most=most)]
    elif view == "compare":
        found = [(method, desk.answers.scores(subject, method, target)) for method in methods]
        shown = [
            picture.Panel(method, unit if method in IN_UNITS else "in its own unit", scores.tolist())
            for method, scores in found
        ]
    else:
        shown = [picture.Panel("", unit, desk.answers.scores(subject, "DEGREE", target).tolist())]
    return picture.figure(canvas, shown, _caption(desk, subject, canvas, target, a, b), subject.index)


def _png(made: "Figure") -> bytes:
    from .picture import png

    return png(made)


def _caption(desk: Desk, subject: Subject, canvas: Canvas, target: int, a: Any, b: Any) -> "Caption":
    from .picture import Caption

    able = set(subject.nodes)
    groups = parse.nodes(a, able), parse.nodes(b, able)
    said = []
    if any(groups):
        answer = desk.answers.groups(subject, *groups)
        names = {node: drawing.name_of(canvas, node) for node in subject.nodes}
        for name, nodes, row in zip("AB", groups, (answer.a, answer.b), strict=True):
            if nodes:
                said.append(f"{name}  {panels.number(row[target])}  {panels.members(frozenset(nodes), names)}")
        if all(groups):
            together, met = panels.number(answer.together[target]), panels.number(answer.interaction[target])
            said.append(f"A and B together {together}, of which their interaction {met}")
    if len(subject.classes) == 1:
        return Caption(subject.title, f"output {panels.number(float(subject.one.prediction[0]))}", groups, tuple(said))
    shares, predicted = probabilities(subject), subject.one.target
    assert shares is not None
    question = f"Why “{subject.classes[target]}”? Predicted with {shares[target]:.1%}"
    if target != predicted:
        question += f", after “{subject.classes[predicted]}” with {shares[predicted]:.1%}"
    return Caption(question, subject.title, groups, tuple(said))


def _numbers(desk: Desk, subject: Subject, target: int, a: Any, b: Any) -> str:
    """The explanation as `Explanation.save` writes it, and what was asked of groups beside it."""
    able = set(subject.nodes)
    first, second = parse.nodes(a, able), parse.nodes(b, able)
    with tempfile.TemporaryDirectory() as folder:
        path = desk.answers.explanation(subject, target).save(Path(folder) / "explanation.json")
        content = json.loads(path.read_text())
    content["title"], content["classes"] = subject.title, list(subject.classes)
    if first or second:
        content["groups"] = {"A": first, "B": second, **asdict(desk.answers.groups(subject, first, second))}
    return json.dumps(content, indent=1)


def _report_of(desk: Desk, subject: Subject, canvas: Canvas, target: int, a: Any, b: Any) -> str:
    """The report with the agglomeration, and the groups that were asked about."""
    able = set(subject.nodes)
    first, second = parse.nodes(a, able), parse.nodes(b, able)
    listed = []
    if first or second:
        answer = desk.answers.groups(subject, first, second)
        asked = ((first, answer.a), (second, answer.b), ({*first, *second}, answer.together))
        listed = [Group(frozenset(nodes), row[target]) for nodes, row in asked if nodes]
    grown = desk.answers.grown(subject, target)
    settings: dict[str, object] = {"prediction": subject.title, "data and model": subject.example.note}
    if not grown.complete:
        settings["agglomeration"] = f"stopped after {desk.answers.patience:g} s"
    return report(
        desk.answers.explanation(subject, target),
        grown.tree,
        on=canvas,
        groups=dict.fromkeys(listed),
        classes=subject.classes,
        index=subject.index,
        settings=settings,
    ).html


def _text(uploaded: Any) -> str:
    """The text of a file as the browser sends it: a data address with base64."""
    contents = uploaded.get("contents") if isinstance(uploaded, dict) else None
    try:
        return base64.b64decode(str(contents).partition(",")[2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise Problem("The file is no text, so it is no JSON.") from None


def _in_the_browser(app: Dash) -> None:
    """What must happen at once: see assets/explorer.js."""
    groups = (Output("group-a", "value"), Output("group-b", "value"))
    app.clientside_callback(
        ClientsideFunction("explorer", "groups"),
        *groups,
        Input("graph", "tapNodeData"),
        Input("second", "tapNodeData"),
        Input("graph", "selectedNodeData"),
        Input("clear", "n_clicks"),
        Input("drawing", "data"),
        Input("group-a", "value"),
        Input("group-b", "value"),
        State("into", "value"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "draw"),
        *(Output("graph", "elements"), *(Output(f"first-{part}", "children") for part in ("low", "high", "caption"))),
        *(Input("drawing", "data"), Input("view", "value"), Input("target", "value"), Input("growth", "data")),
        *(Input("level", "value"), Input("first-layer", "data"), Input("group-a", "value"), Input("group-b", "value")),
        Input("into", "value"),
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "drawSecond"),
        *(Output("second", "elements"), *(Output(f"second-{part}", "children") for part in ("low", "high", "caption"))),
        *(Input("drawing", "data"), Input("view", "value"), Input("target", "value"), Input("second-layer", "data")),
        *(Input("group-a", "value"), Input("group-b", "value")),
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "views"),
        *(Output("growth-panel", "hidden"), Output("compare-said", "hidden"), Output("stage", "className")),
        *(Input("view", "value"), Input("drawing", "data")),
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "hover"),
        Output("hover", "children"),
        *(Input("graph", "mouseoverNodeData"), Input("second", "mouseoverNodeData")),
        *(Input("drawing", "data"), Input("view", "value")),
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "dragging"),
        *(Output("graph", "userPanningEnabled"), Output("graph", "boxSelectionEnabled")),
        Input("drag", "value"),
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "play"),
        *(Output("tick", "disabled"), Output("level", "value"), Output("play", "children")),
        *(Input("play", "n_clicks"), Input("tick", "n_intervals"), Input("growth", "data"), Input("view", "value")),
        *(State("level", "value"), State("tick", "disabled")),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "upload"),
        *(
            Output("uploaded", "data"),
            Output("own-said", "children", allow_duplicate=True),
            Output("upload", "contents"),
        ),
        *(Input("upload", "contents"), State("upload", "filename"), State("most", "data")),
        prevent_initial_call=True,
    )
