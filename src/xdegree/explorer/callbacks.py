"""What happens on the page. All state is in the browser; every call carries its arguments, which are checked."""

import base64
import binascii
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update

from ..canvas import account_line, output_name, part_line, scale_of, signs_line
from ..canvas.wording import outputs_of
from . import cytoscape, panels, parse
from .answers import IN_UNITS, agreement
from .downloads import OWN_UNIT, downloading
from .problem import MAX_NAME, Problem
from .server_state import Desk, level
from .subject import not_drawn

UNREAD = (
    "To type SMILES here, let the factory say how the model reads them: return a fourth element,"
    ' {"molecule": smiles_to_data}.'
)
EMPTY = "Click nodes or edges in the picture, or choose them in the lists above, and read here what they contribute."


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
        Output("smiles-panel", "hidden"),
        Output("sentence-panel", "hidden"),
        Output("own-hint", "children"),
        Input("example", "value"),
    )
    def ask(key: Any) -> Any:
        example = desk.catalogue.example(key)
        unread = example.kind == "molecule" and not example.reads_molecules
        return not example.reads_molecules, example.sentence is None, UNREAD if unread else ""

    @app.callback(
        Output("ref", "data"),
        # Together: a list forgets a value that it does not offer.
        Output("item", "options"),
        Output("item", "value"),
        Output("mine", "data"),
        Output("own-said", "children"),
        Output("notice", "children"),
        Input("example", "value"),
        Input("item", "value"),
        Input("smiles-go", "n_clicks"),
        Input("smiles", "n_submit"),
        Input("sentence-go", "n_clicks"),
        Input("sentence", "n_submit"),
        Input("uploaded", "data"),
        State("smiles", "value"),
        State("sentence", "value"),
        State("mine", "data"),
        running=[(Output("busy", "hidden"), False, True)],
    )
    def choose(key: Any, item: Any, *rest: Any) -> Any:
        """A choice that cannot be explained leaves what is shown as it is, and says why."""
        uploaded, smiles, sentence, mine = rest[4:]
        cause, mine = ctx.triggered_id, parse.mine(mine)
        if cause == "item" and item is None:
            return (no_update,) * 6
        try:
            if cause in ("smiles-go", "smiles"):
                ref: dict[str, Any] = {"example": key, "smiles": parse.smiles(smiles)}
            elif cause in ("sentence-go", "sentence"):
                ref = {"example": key, "sentence": parse.sentence(sentence)}
            elif cause == "uploaded":
                ref = {"example": key, "graph": _text(uploaded)}
            else:
                ref = _listed(key, item if cause == "item" else 0, mine)
            subject, _ = desk.drawn(ref)
        except Problem as problem:
            return *(no_update,) * 4, str(problem), ""
        if cause == "item":
            return ref, *(no_update,) * 3, "", ""
        own = {"label": cytoscape.shortened(subject.title, MAX_NAME), "ref": ref}
        if "item" not in ref and own not in mine:
            mine = [*mine, own]
        value = 0 if "item" in ref else f"own-{mine.index(own)}"
        return ref, _offered(desk, key, mine), value, mine, "", ""


def _offered(desk: Desk, key: Any, mine: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The predictions of an example, and before them what this reader brought along."""
    own: list[dict[str, Any]] = [
        {"label": f"yours: {one['label']}", "value": f"own-{number}"}
        for number, one in enumerate(mine)
        if one["ref"]["example"] == key
    ]
    return own + [{"label": title, "value": number} for number, title in desk.catalogue.example(key).choices]


def _listed(key: Any, item: Any, mine: list[dict[str, Any]]) -> dict[str, Any]:
    """What a choice of the list means: a prediction of the example, or something that the reader brought along."""
    number = str(item).removeprefix("own-")
    if isinstance(item, str) and number.isdecimal() and int(number) < len(mine):
        found: dict[str, Any] = mine[int(number)]["ref"]
        return found
    return {"example": key, "item": item if type(item) is int else 0}


def _showing(app: Dash, desk: Desk) -> None:
    @app.callback(
        Output("drawing", "data"),
        Output("title", "children"),
        Output("note", "children"),
        Output("target", "options"),
        Output("target", "value"),
        Input("ref", "data"),
        prevent_initial_call=True,
    )
    def show(ref: Any) -> Any:
        subject, canvas = desk.drawn(ref)
        e = desk.answers.explanation(subject, subject.one.target)
        scores = e.class_scores
        assert scores is not None
        made = cytoscape.drawing(subject, canvas, scores, e.logits)
        part = part_line(canvas, subject.nodes, scores[:, subject.one.target].tolist(), subject.index)
        note = f"{part} {subject.note} {not_drawn(subject.data, canvas)}".strip()
        targets = [{"label": name, "value": c} for c, name in enumerate(subject.classes)]
        return made, subject.title, note, targets, subject.one.target

    @app.callback(
        Output("prediction-panel", "children"),
        Output("scores-panel", "children"),
        Input("target", "value"),
        Input("ref", "data"),
        prevent_initial_call=True,
    )
    def tell(target: Any, ref: Any) -> Any:
        subject, canvas = desk.drawn(ref)
        chosen = desk.target(subject, target)
        listed = panels.scores(subject, canvas, desk.answers.explanation(subject, chosen))
        return panels.prediction(subject, desk.logits(subject), chosen), listed


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
        groups = desk.groups(subject, a, b)
        if not any(groups):
            return html.P(EMPTY, className="quiet")
        answer = desk.answers.groups(subject, *groups)
        table = panels.contributions(subject, answer, groups, desk.target(subject, target))
        unit = scale_of(answer.total)
        return [table, html.P(f"Unit: {unit}; asked in {1000 * answer.seconds:.0f} ms.", className="explain")]

    @app.callback(Output("edge-score", "data"), Input("edge", "data"), State("ref", "data"), prevent_initial_call=True)
    def score_edge(edge: Any, ref: Any) -> Any:
        """What the edge below the pointer contributes to every class; not one of a graph that was drawn before."""
        subject = desk.subject(ref)
        if not isinstance(edge, dict) or edge.get("key") != subject.key:
            return no_update
        chosen = parse.edges([edge.get("edge")], subject.edges)
        return {**edge, "scores": desk.answers.edge(subject, chosen[0])} if chosen else no_update


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
        asked = cytoscape.said_of(subject, chosen, tree.logits)
        unit, name = scale_of(outputs_of(asked)), output_name(asked, subject.names)
        name = f"{name} ({unit}): {signs_line(asked, subject.names)}"
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
        line = account_line(grown.tree, subject.names, grown.tree.levels[place])
        said = html.P(f"{line[:1].upper()}{line[1:]}.", className="quiet")
        return [*panels.level(grown.tree, place, names, canvas.node), said, html.P(late, className="quiet")]


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
        running=[
            (Output("compare-said", "children"), "Asking both methods; what is dimmed is not the answer yet …", ""),
            (Output("dimmed", "className"), "stale", ""),
        ],
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
            unit = (
                cytoscape.caption(subject, chosen, desk.logits(subject))
                if method in IN_UNITS
                else f"{method}, {OWN_UNIT}"
            )
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
        *(Input("graph", "tapNodeData"), Input("second", "tapNodeData"), Input("graph", "selectedNodeData")),
        *(Input("graph", "tapEdgeData"), Input("second", "tapEdgeData"), Input("graph", "selectedEdgeData")),
        *(Input("clear", "n_clicks"), Input("drawing", "data"), Input("of", "value")),
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
        *(Input("into", "value"), Input("numbers", "value"), Input("of", "value")),
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "lists"),
        *(Output("of", "options"), Output("group-a", "options"), Output("group-b", "options")),
        Output("hint", "children"),
        *(Input("drawing", "data"), Input("of", "value")),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "drawSecond"),
        *(Output("second", "elements"), *(Output(f"second-{part}", "children") for part in ("low", "high", "caption"))),
        *(Input("drawing", "data"), Input("view", "value"), Input("target", "value"), Input("second-layer", "data")),
        *(Input("group-a", "value"), Input("group-b", "value"), Input("numbers", "value"), Input("of", "value")),
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "views"),
        *(Output("growth-panel", "hidden"), Output("compare-said", "hidden"), Output("stage", "className")),
        Output("numbers", "className"),
        *(Input("view", "value"), Input("drawing", "data")),
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "hover"),
        *(Output("first-hover", "children"), Output("second-hover", "children")),
        *(Input("pointed", "data"), Input("edge-score", "data"), State("target", "value")),
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
