"""``xdegree explain``: why one prediction, printed or saved."""

import argparse
import json
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..factories import UsageError, listed_graphs, ready, said
from .arguments import (
    DONE,
    FACTORY,
    INCOMPLETE,
    QUESTION,
    add,
    add_factory,
    add_out,
    command,
    note,
    options_of,
    positive,
)

ABOUT = f"""\
Say what each node, edge or feature contributes to one prediction.

Positive scores raise the explained output, negative ones lower it, in units of the
model's output. What single scores leave open, joint effects and biases, is printed too.

{FACTORY}
Of many graphs, --index chooses one."""

COLUMNS = {
    "node": ("node",),
    "edge": ("source", "to"),
    "feature": ("node", "feature"),
    "edge_feature": ("edge", "feature"),
}
MOST_OUTPUTS = 10


def add_to(commands: Any) -> None:
    """Tell the parser about this command."""
    parser = command(
        commands,
        "explain",
        "say what each node contributes to a prediction",
        about=ABOUT,
        examples=[
            "xdegree explain my_models.py:factory --index 5",
            "xdegree explain my_models.py:factory --index 5 --of edge --top 3",
            "xdegree explain my_models.py:factory --index 5 --out why.json",
            "xdegree report why.json",
        ],
        codes={DONE: "the prediction is explained", INCOMPLETE: ""},
    )
    add_factory(parser)
    add(parser, "--index", *QUESTION, "--of", "--level", "--start")
    parser.add_argument(
        "--top", type=positive, default=10, metavar="N", help="how many scores are printed (default: %(default)s)"
    )
    add_out(parser, "FILE", "save the whole explanation as JSON, for `xdegree report` and Explanation.load")
    add(parser, "--json")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Explain and print; save what is to be kept."""
    model, args, kwargs = ready(given.factory, given.weights)
    args, index = chosen(args, given.index)
    asked = question(given, index, kwargs)
    e = explained(
        model, args, of=given.of, level=given.level, start=given.start, edge_scores=given.edge_scores, **asked
    )
    if given.out is not None:
        try:
            e.save(given.out)
        except OSError as error:
            raise UsageError(str(error)) from None
        note(given, f"saved: {given.out} (a page of it: xdegree report {given.out})")
    print(json.dumps(e.content()) if given.json else text(e, given))
    return DONE


def chosen(args: tuple[Any, ...], index: int | None) -> tuple[tuple[Any, ...], int | None]:
    """What the model is called with, and the row of its output: of many graphs the index means the graph."""
    graphs = listed_graphs(args)
    if graphs is None:
        return args, index
    count = len(graphs)
    if index is None and count > 1:
        raise UsageError(f"the factory hands over {count} graphs: choose one, --index 0 to {count - 1}")
    if not 0 <= (index or 0) < count:
        raise UsageError(f"index {index or 0} is out of range: the factory hands over {count} graphs")
    return (graphs[index or 0],), None


def question(given: argparse.Namespace, index: int | None, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that `explain` and `agglomerate` have in common."""
    return {
        "index": index,
        "target": given.target,
        "reading": given.reading,
        "layer": given.layer,
        "options": options_of(given.option),
        "model_kwargs": kwargs,
    }


def explained(model: Any, args: tuple[Any, ...], **asked: Any) -> Any:
    """One explanation, or an error in words."""
    from ..attribution.explain import explain
    from ..results.explanation import Explanation
    from ..results.hetero import HeteroExplanation

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "single scores add up")  # what is printed says it
            e = explain(model, *args, **asked)
    except Exception as error:
        raise unexplained(error, asked["index"]) from error
    if not isinstance(e, Explanation | HeteroExplanation):
        raise UsageError(f"there are {len(e)} predictions: choose one, --index 0 to {len(e) - 1}")
    return e


def unexplained(error: Exception, index: int | None) -> UsageError:
    """The error in the words of the command line."""
    text = said(error)
    if index is None and text.startswith("index is missing"):
        text = text.partition(";")[0] + "; say which one by --index"
    return UsageError(f"the model cannot be explained: {text}")


def text(e: Any, given: argparse.Namespace) -> str:
    """The prediction, and a table of the largest scores; one of edges too if they were asked for beside nodes."""
    from ..results.tables import aligned

    parts = [aligned(_summary(e, given)), _top(e, given.top)]
    if e.edge_scoring is not None:
        parts.append(_pairs(e, given.top))
    return "\n\n".join(parts)


def _summary(e: Any, given: argparse.Namespace) -> list[tuple[str, str]]:
    from ..canvas import account_line

    outputs = e.prediction.tolist()
    shown = ", ".join(f"{value:+.4g}" for value in outputs[:MOST_OUTPUTS])
    more = ", …" if len(outputs) > MOST_OUTPUTS else ""
    several = len(outputs) > 1
    what = f"class {e.target}, " if several else ""
    place = f"{e.level or 'row'} {e.index if given.index is None else given.index}"
    lines = [
        ("prediction", (f"class {e.prediction.argmax()}, outputs " if several else "") + shown + more),
        ("explained", f"{place}, {what}by {e.of.replace('_', ' ')}, reading {e.reading}"),
    ]
    if hasattr(e, "nodes"):
        lines.append(("nodes", f"{len(e.nodes)} of {e.num_nodes} can contribute"))
    if line := account_line(e):
        lines.append(("scores", line))
    return lines


def _pairs(e: Any, count: int) -> str:
    """Edges by their end points: both directions have the same score, so each pair is printed once."""
    from ..canvas import edge_scores
    from ..results.tables import aligned

    if isinstance(e.scores, Mapping):  # an edge between types has one direction
        return _top(replace(e, of="edge"), count)
    found = sorted(edge_scores(e).items(), key=lambda item: -abs(item[1]))[:count]
    return aligned([("node", "node", "score"), *((str(u), str(v), f"{score:+.4g}") for (u, v), score in found)])


def _top(e: Any, count: int) -> str:
    from ..results.tables import aligned

    found = [(_cells(name), f"{score:+.4g}") for name, score in e.top(count)]
    if not found:
        return f"no {e.of.replace('_', ' ')} contributes anything"
    wide = len(found[0][0])
    typed = isinstance(e.scores, Mapping)
    names = ("type", "edge" if "edge" in e.of else "node", "feature") if typed else COLUMNS[e.of]
    return aligned([(*names[:wide], "score"), *((*cells, score) for cells, score in found)])


def _cells(name: Any) -> tuple[str, ...]:
    """The name of a node, edge or feature, as one cell each; that of a type of edges has three words."""
    parts = name if isinstance(name, tuple) else (name,)
    return tuple(" ".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in parts)
