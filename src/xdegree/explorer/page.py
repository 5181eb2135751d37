"""The page as it is before anything is chosen. Components only: what happens is in `callbacks`."""

from collections.abc import Sequence
from typing import Any

import dash_cytoscape as cyto
from dash import dcc, html

from ..canvas import GREY, INK, SIGNED
from .answers import OFFERED, SLOW
from .problem import MAX_UPLOAD
from .subject import Example

GROUP_A, GROUP_B = "#00703c", "#7b3294"
"""Green and purple: told apart from each other, and from red and blue, by all common kinds of colour vision."""
RAMP = f"linear-gradient(to right, {', '.join(SIGNED[::32])})"

_RING = {"border-width": 5, "border-opacity": 1, "z-index": 10}
_BAND = {"underlay-opacity": 0.75, "underlay-padding": 5}
_STYLES: dict[str, dict[str, Any]] = {
    "node": {
        "label": "data(label)",
        "width": "data(width)",
        "height": "data(height)",
        "background-color": "data(colour)",
        "color": "data(ink)",
        "font-size": 11,
        "font-family": "system-ui, sans-serif",
        "text-valign": "center",
        "text-halign": "center",
        "border-width": 1,
        "border-color": GREY,
        "overlay-opacity": 0,
        "z-index": "data(front)",
    },
    "node.hydrogen": {"font-size": 9},
    "node.named": {
        "text-valign": "bottom",
        "text-margin-y": 3,
        "color": INK,
        "text-background-color": "#ffffff",
        "text-background-opacity": 0.8,
        "text-background-padding": 1,
    },
    "node.word": {"shape": "round-rectangle", "font-size": 14},
    "node.explained": {"shape": "diamond", "width": 42, "height": 42, "border-width": 2, "z-index": 9},
    "node.alone": {"border-style": "dashed", "color": GREY},
    "node:active": {"overlay-opacity": 0.12},
    "edge": {"curve-style": "straight", "line-color": "#b5b5b5", "width": 1.5},
    "edge.arc": {
        "curve-style": "unbundled-bezier",
        "control-point-distances": "data(arc)",
        "control-point-weights": 0.5,
        "source-endpoint": "0% -50%",
        "target-endpoint": "0% -50%",
        "edge-distances": "endpoints",
    },
    # From one line of a sentence to another, behind the words between them.
    "edge.far": {"line-style": "dashed", "line-color": "#d5d5d5"},
    "edge.order2": {"width": 6},
    "edge.order3": {"width": 9},
    "edge.gap2": {"width": 3, "line-color": "#ffffff"},
    "edge.gap3": {"width": 6, "line-color": "#ffffff"},
    "edge.inside": {"width": 5, "line-color": INK},
    # Clicks and the pointer go through these: lines upon a bond, and edges that nothing is sent along.
    "edge.off": {"events": "no"},
    "edge.in-a": {**_BAND, "underlay-color": GROUP_A},
    "edge.in-b": {**_BAND, "underlay-color": GROUP_B, "line-style": "dashed"},
    "node.lit": {
        "underlay-color": "#f0a500",
        "underlay-opacity": 0.8,
        "underlay-padding": 8,
        "underlay-shape": "ellipse",
    },
    "node.in-a": {**_RING, "border-color": GROUP_A, "border-style": "solid"},
    "node.in-b": {**_RING, "border-color": GROUP_B, "border-style": "double", "border-width": 7},
}
STYLES = [{"selector": selector, "style": style} for selector, style in _STYLES.items()]


def layout(examples: Sequence[Example]) -> Any:
    """The whole page."""
    return html.Div(
        [
            _stores(),
            html.Header(
                [
                    html.H1(["xdegree ", html.Span("explorer")]),
                    html.Div("Working …", id="busy", role="status", hidden=True),
                    html.Div(_chooser(examples), className="chooser"),
                ]
            ),
            html.Main(
                [
                    html.Div("", id="notice", role="alert", className="notice"),
                    html.Section([_heading(), _stage(), _growth()], className="card drawing"),
                    html.Aside([_prediction(), _scores(), _groups(), _own(), _downloads()], className="side"),
                ]
            ),
        ],
        className="page",
    )


def _stores() -> Any:
    names = ("ref", "drawing", "growth", "first-layer", "second-layer", "uploaded", "pointed", "edge", "edge-score")
    kept = [dcc.Store(id="most", data=MAX_UPLOAD), dcc.Store(id="mine", data=[])]
    return html.Div([*(dcc.Store(id=name) for name in names), *kept], hidden=True)


def _field(label: str, control: Any, name: str, style: str = "") -> Any:
    return html.Div([html.Label(label, htmlFor=name, id=f"{name}-label"), control], className=f"field {style}")


def _chooser(examples: Sequence[Example]) -> list[Any]:
    options = [{"label": example.title, "value": example.key} for example in examples]
    return [
        _field("Model and data", dcc.Dropdown(options, examples[0].key, id="example", clearable=False), "example"),
        _field("Prediction", dcc.Dropdown(id="item", placeholder="choose one", clearable=False), "item", "wide"),
        _field("Explained output", dcc.Dropdown(id="target", clearable=False), "target"),
    ]


def _heading() -> Any:
    views = {"scores": "Contributions", "growth": "Growing groups", "compare": "Compare"}
    drags = {"lasso": "Lasso", "box": "Box", "move": "Move"}
    numbers = {"charges": "Charges", "numbers": "Atom numbers"}
    return html.Div(
        [
            html.Div([html.H2("", id="title"), html.P("", id="note", className="quiet")], className="titles"),
            dcc.RadioItems(views, "scores", id="view", className="segments", inline=True),
            html.Div(
                [
                    html.Span("Dragging", className="quiet"),
                    dcc.RadioItems(drags, "lasso", id="drag", className="segments small", inline=True),
                ],
                className="dragging",
            ),
            dcc.Checklist(numbers, ["charges"], id="numbers", className="switch", inline=True),
            html.P("Click nodes, or draw around them, to ask what they contribute.", id="hint", className="quiet hint"),
        ],
        className="heading",
    )


def _graph(name: str, *, select: bool) -> Any:
    return cyto.Cytoscape(
        id=name,
        elements=[],
        layout={"name": "preset", "fit": True, "padding": 24},
        stylesheet=STYLES,
        boxSelectionEnabled=False,
        autounselectify=not select,
        autoungrabify=True,
        userPanningEnabled=not select,
        minZoom=0.1,
        maxZoom=1.8,
        style={"width": "100%", "height": "100%"},
    )


def _stage() -> Any:
    figures = [
        _figure("first", "DEGREE", _graph("graph", select=True)),
        _figure("second", "gradient x input", _graph("second", select=False)),
    ]
    return html.Div(
        [
            html.Div(html.Div(figures, id="stage", className="stage scores"), id="dimmed"),
            html.P("", id="compare-said", hidden=True, role="status"),
        ]
    )


def _figure(name: str, method: str, graph: Any) -> Any:
    """A drawing with its method above it and its legend below."""
    pointed = html.P("", id=f"{name}-hover", className="pointed")
    return html.Figure(
        [_method(name, method), html.Div(graph, className="canvas"), pointed, _legend(name)], id=f"{name}-figure"
    )


def _method(which: str, value: str) -> Any:
    options = [{"label": f"{name} (takes a moment)" if name in SLOW else name, "value": name} for name in OFFERED]
    control = dcc.Dropdown(options, value, id=f"{which}-method", clearable=False)
    return html.Div([control, html.P("", id=f"{which}-said", className="quiet", role="status")], className="method")


def _growth() -> Any:
    return html.Div(
        [
            html.Div(
                [
                    html.Button("Play", id="play", className="plain"),
                    html.Label("Level", htmlFor="level"),
                    dcc.Input(id="level", type="range", min=0, max=1, step=1, value=0),
                ],
                className="player",
            ),
            html.Div("", id="growth-said", role="status"),
            dcc.Interval(id="tick", interval=900, disabled=True),
        ],
        id="growth-panel",
        hidden=True,
    )


def _legend(prefix: str) -> Any:
    ramp = html.Div(className="ramp", style={"background": RAMP})
    ends = [html.Span("", id=f"{prefix}-low"), html.Span("0"), html.Span("", id=f"{prefix}-high")]
    return html.Div([ramp, html.Div(ends, className="ends"), html.P("", id=f"{prefix}-caption")], className="legend")


def _prediction() -> Any:
    return html.Section([html.H2("Prediction"), html.Div("", id="prediction-panel")], className="card")


def _scores() -> Any:
    head = html.Summary(html.H2("Scores"))
    return html.Details([head, html.Div("", id="scores-panel")], className="card scores-card", open=True)


def _groups() -> Any:
    many: dict[str, Any] = {"multi": True, "placeholder": "none yet"}
    return html.Section(
        [
            html.Div(
                [html.H2("Your groups"), html.Button("Clear", id="clear", className="plain")], className="with-button"
            ),
            html.Div(
                [
                    html.Span("Clicks put"),
                    dcc.RadioItems(
                        {"node": "nodes", "edge": "edges"}, "node", id="of", className="segments small", inline=True
                    ),
                    html.Span("into"),
                    dcc.RadioItems({"a": "A", "b": "B"}, "a", id="into", className="segments small", inline=True),
                ],
                className="into",
            ),
            _field("A", dcc.Dropdown(id="group-a", **many), "group-a", "group a"),
            _field("B", dcc.Dropdown(id="group-b", **many), "group-b", "group b"),
            html.Div("", id="answer", role="status"),
        ],
        className="card",
    )


def _entry(name: str, label: str, example: str) -> Any:
    """A line to type something of one's own."""
    line = dcc.Input(id=name, type="text", placeholder=example, debounce=False)
    entry = html.Div([line, html.Button("Explain", id=f"{name}-go")], className="entry")
    return html.Div([html.Label(label, htmlFor=name), entry], id=f"{name}-panel")


def _own() -> Any:
    graph = html.Div(
        [
            html.Span("A graph, as JSON", className="label"),
            dcc.Upload(html.Button("Choose a file …", className="plain"), id="upload", accept=".json,application/json"),
        ],
        className="entry graph-file",
    )
    return html.Section(
        [
            html.H2("Something of your own"),
            _entry("smiles", "A molecule, as SMILES", "c1ccccc1[N+](=O)[O-]"),
            _entry("sentence", "A sentence", "the film is not good"),
            graph,
            html.P("", id="own-hint", className="quiet"),
            html.Div("", id="own-said", role="alert", className="problem"),
        ],
        className="card",
    )


def _downloads() -> Any:
    names = {"report": "Report (HTML)", "png": "PNG", "json": "JSON"}
    return html.Section(
        [
            html.H2("Take it with you"),
            html.Div(
                [html.Button(text, id=f"get-{name}", className="plain") for name, text in names.items()],
                className="buttons",
            ),
            html.Div("", id="download-said", role="alert", className="problem"),
            dcc.Download(id="download"),
        ],
        className="card",
    )
