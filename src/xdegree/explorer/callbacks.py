"""What happens on the page. All state is in the browser; every call brings what it is about, and is checked."""

import base64
import binascii
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update

from . import cytoscape, panels, parse
from .answers import IN_UNITS, agreement, probabilities
from .downloads import downloading
from .problem import Problem
from .server_state import Desk, level

EMPTY = "Click nodes in the picture, or choose them in the lists above, and read here what they contribute together."


def register(app: Dash, desk: Desk) -> None:
    """Tell an app what happens."""
    _choosing(app, desk)
    _showing(app, desk)
    _asking(app, desk)
    _growing(app, desk)
    _comparing(app, desk)
    downloading(app, desk)
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
        made = cytoscape.drawing(subject, canvas, scores)
        note = subject.example.note
        if made["shown"] < made["able"]:
            note = f"The {made['shown']} strongest of {made['able']} nodes that can contribute. {note}"
        targets = [{"label": name, "value": c} for c, name in enumerate(subject.classes)]
        nodes = [{"label": cytoscape.name_of(canvas, node), "value": node} for node in canvas.places]
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
        found = cytoscape.growth_layers(tree, list(canvas.places))
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
        place = min(level(at), len(grown.tree.levels) - 1)
        names = {node: cytoscape.name_of(canvas, node) for node in subject.nodes}
        late = "" if grown.complete else f"Stopped after {desk.answers.patience:.0f} s: larger groups were not reached."
        return [*panels.level(grown.tree, place, names, canvas.node), html.P(late, className="quiet")]


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
        layers: list[cytoscape.Layer | None] = []
        said, scores = [], []
        for method in (str(first), str(second)):
            try:
                found = desk.answers.scores(subject, method, chosen)
            except Problem as problem:
                layers.append(None)
                said.append(str(problem))
                continue
            scores.append(found[subject.nodes])
            unit = cytoscape.caption(subject, chosen) if method in IN_UNITS else f"{method}, in its own unit"
            made = cytoscape.layer(shown, found.tolist())
            layers.append({**made, "key": subject.key, "target": chosen, "caption": unit})
            said.append("")
        rank = agreement(*scores) if len(scores) == 2 else None
        same = "" if rank is None else f"Rank correlation of the two (Spearman): {rank:+.2f}".replace("-", "−")
        return *layers, *said, same


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
