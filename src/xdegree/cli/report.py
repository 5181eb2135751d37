"""``xdegree report``: one prediction, explained on one page."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from torch import nn

from ..agglomerate import agglomerate
from ..explain import explain
from ..explanation import Explanation
from ..scores import Edges, Reading
from ..tree import ExplanationTree
from .loading import UsageError, load_weights, made

if TYPE_CHECKING:
    from ..canvas import Canvas

DESCRIPTION = """\
Explain one prediction and write one HTML file that opens from disk, without a network.

SOURCE is an explanation that Explanation.save wrote (why.json), or MODULE:FACTORY, a Python function without arguments
as for `xdegree check`:

    def factory():
        return model, (x, edge_index)             # or model, (data,) with data.x, data.edge_index

A graph is drawn as a molecule or a sentence if it says that it is one (--smiles, --words, data.smiles, data.words, or
data.bond beside atoms one-hot as in Mutagenicity).

exit codes: 0 the file is written, 2 the command could not be carried out
"""


def add_to(commands: Any) -> None:
    """Tell the parser about this command."""
    parser = commands.add_parser(
        "report",
        help="explain one prediction on one HTML page",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", metavar="SOURCE", help="why.json, or MODULE:FACTORY")
    parser.add_argument("-o", "--out", type=Path, default=Path("report.html"), help="the file (default: %(default)s)")
    parser.add_argument("--title", help="of the page")
    parser.add_argument("--classes", metavar="A,B,…", help="names of the classes")
    parser.add_argument("--smiles", help="draw the graph as this molecule")
    parser.add_argument("--words", help="draw the graph as this sentence, its words set apart by blanks")
    parser.add_argument("--tree", type=Path, metavar="FILE", help="the tree of a saved explanation, as saved")
    asked = parser.add_argument_group("of a factory")
    asked.add_argument("--weights", type=Path, metavar="FILE", help="a state dict to load into the model")
    asked.add_argument("--index", type=int, metavar="ROW", help="the node or graph that is explained")
    asked.add_argument("--target", type=int, metavar="CLASS", help="the class (default: the predicted one)")
    asked.add_argument("--reading", choices=get_args(Reading), default="contribution", help="default: %(default)s")
    asked.add_argument("--edges", choices=get_args(Edges), help="score edges by their end points too")
    asked.add_argument("--q", type=float, default=0.6, help="of the agglomeration (default: %(default)s)")
    asked.add_argument("--seed", type=int, default=0, help="of the agglomeration (default: %(default)s)")
    asked.add_argument("--no-tree", action="store_true", help="no agglomeration, which takes the most time")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Explain, write the page, and say where it is."""
    try:
        from ..reports import report
    except ModuleNotFoundError as error:
        raise UsageError(str(error)) from error
    saved = given.source.endswith(".json")
    e, tree, data = _saved(given) if saved else _explained(given)
    classes = None if given.classes is None else given.classes.split(",")
    try:
        page = report(
            e,
            tree,
            on=_canvas(given, e, data),
            classes=classes,
            index=given.index,
            title=given.title,
            settings={"source": given.source},
        )
        page.save(given.out)
    except (ValueError, ModuleNotFoundError, OSError) as error:
        raise UsageError(str(error)) from error
    print(f"{given.out} ({given.out.stat().st_size / 1e6:.1f} MB)")
    return 0


def _saved(given: argparse.Namespace) -> tuple[Explanation, ExplanationTree | None, Any]:
    try:
        tree = None if given.tree is None else ExplanationTree.load(given.tree)
        return Explanation.load(given.source), tree, None
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error


def _explained(given: argparse.Namespace) -> tuple[Explanation, ExplanationTree | None, Any]:
    """The prediction that the factory's model makes of the factory's arguments; its data, if they are one object."""
    if given.tree is not None:
        raise UsageError("--tree goes with a saved explanation; the tree of a factory is grown here")
    model, args, kwargs = made(given.source)
    if given.weights is not None:
        load_weights(model, given.weights)
    if isinstance(model, nn.Module):
        model.eval()
    asked = {"index": given.index, "target": given.target, "reading": given.reading, "model_kwargs": kwargs}
    try:
        e = explain(model, *args, edges=given.edges, **asked)
        one = isinstance(e, Explanation)
        grown = agglomerate(model, *args, q=given.q, seed=given.seed, **asked) if one and not given.no_tree else None
    except Exception as error:
        raise UsageError(f"the model cannot be explained: {type(error).__name__}: {error}") from error
    if not one:
        raise UsageError("reports are of one prediction on a graph with one type of nodes: choose one by --index")
    return e, grown, args[0] if hasattr(args[0], "edge_index") else None


def _canvas(given: argparse.Namespace, e: Explanation, data: Any) -> "Canvas | None":
    """How to draw: as what the user says, else as what the data say, else as a graph."""
    from ..canvas import molecule_canvas, sentence_canvas
    from ..datasets.mutagenicity import ATOMS

    smiles, words = given.smiles or getattr(data, "smiles", None), getattr(data, "words", None)
    if given.words is not None:
        words = given.words.split()
    if isinstance(smiles, str):
        return molecule_canvas(smiles, num_nodes=e.num_nodes)
    if words is not None:
        if len(words) != e.num_nodes:
            raise ValueError(f"there are {len(words)} words, but {e.num_nodes} nodes were scored")
        return sentence_canvas(words, edge_index=e.edge_index)
    if data is not None and "bond" in data and data.x.shape[1] == len(ATOMS):
        return molecule_canvas(graph=data)
    return None
