"""``xdegree report``: one prediction, explained on one page."""

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..factories import UsageError, listed_graphs, ready
from .arguments import (
    DONE,
    FACTORY,
    INCOMPLETE,
    QUESTION,
    add,
    add_out,
    command,
    positive,
    print_json,
)
from .explain import chosen, explained, question, unexplained

if TYPE_CHECKING:
    from ..canvas import Canvas
    from ..results.explanation import Explanation
    from ..results.tree import ExplanationTree

    Subject = tuple[Explanation, ExplanationTree | None, Any, int | None]
    """The explanation and its tree, the data if they are known, and the node that is explained if it is one."""

ABOUT = f"""\
Explain one prediction, or with --many a whole dataset, and write one HTML page.

The page is one file that opens from disk, without a network.

SOURCE is a saved explanation, why.json, as `xdegree explain --out` and
Explanation.save write it, or MODULE:FACTORY. With --many it is the folder of a job
(xdegree job run) or MODULE:FACTORY: what each kind of node contributes over many
predictions, which subgraphs come back, and for molecules (data.smiles) functional
groups, each decomposed as one group.

{FACTORY}
A graph is drawn as a molecule or a sentence if it says that it is one (--smiles,
--words, data.smiles, data.words, or data.bond beside atoms one-hot as in
Mutagenicity)."""


def add_to(commands: Any) -> None:
    """Tell the parser about this command."""
    parser = command(
        commands,
        "report",
        "explain one prediction, or many, on one HTML page",
        about=ABOUT,
        examples=[
            "xdegree report my_models.py:factory --index 5 --classes no,yes",
            "xdegree report why.json --out why.html",
            "xdegree report --many my_models.py:factory --limit 500",
            "xdegree report --many jobs/mutagens --out mutagens.html",
        ],
        codes={DONE: "the page is written", INCOMPLETE: ""},
    )
    parser.add_argument("source", metavar="SOURCE", help="why.json, or MODULE:FACTORY; with --many also a job's folder")
    add_out(parser, "FILE", "the page (default: %(default)s)", default=Path("report.html"))
    add(parser, "--json")
    parser.add_argument("--title", metavar="TEXT", help="of the page (default: the question that it answers)")
    parser.add_argument("--classes", metavar="A,B,…", help="names of the classes (default: their numbers)")
    parser.add_argument("--smiles", metavar="SMILES", help="draw the graph as this molecule")
    parser.add_argument(
        "--words", metavar="TEXT", help="draw the graph as this sentence, its words set apart by blanks"
    )
    parser.add_argument("--tree", type=Path, metavar="FILE", help="the tree of a saved explanation, as saved")
    parser.add_argument("--many", action="store_true", help="many predictions on one page")
    parser.add_argument(
        "--limit",
        type=positive,
        default=1000,
        metavar="N",
        help="with --many: predictions at most (default: %(default)s)",
    )
    asked = parser.add_argument_group("of a factory")
    add(asked, "--weights", "--index", *QUESTION)
    asked.add_argument(
        "--q",
        type=float,
        default=0.6,
        metavar="Q",
        help="how choosy groups grow, 0 to 1 (default: %(default)s)",
    )
    asked.add_argument("--seed", type=int, default=0, metavar="N", help="of all that is random (default: %(default)s)")
    asked.add_argument("--no-tree", action="store_true", help="no agglomeration, which takes the most time")
    parser.set_defaults(run=run)


TOLD = ("prediction", "target", "index", "reading", "num_nodes")
"""What the command says of the explanation; the rest is on the page."""


def run(given: argparse.Namespace) -> int:
    """Explain, write the page, and say where it is."""
    try:
        from ..reports import report
    except ModuleNotFoundError as error:
        raise UsageError(str(error)) from None
    if given.many:
        return _many(given)
    saved = given.source.endswith(".json")
    e, tree, data, node = _saved(given) if saved else _explained(given)
    classes = None if given.classes is None else given.classes.split(",")
    try:
        page = report(
            e,
            tree,
            on=_canvas(given, e, data),
            classes=classes,
            index=node,
            title=given.title,
            settings={"source": given.source},
        )
        page.save(given.out)
    except (ValueError, ModuleNotFoundError, OSError) as error:
        raise UsageError(str(error)) from None
    content = e.content()
    return _told(given, {name: content[name] for name in TOLD}, "")


def _told(given: argparse.Namespace, found: dict[str, Any], said: str) -> int:
    """Say where the page is, and what is on it."""
    size = given.out.stat().st_size
    if given.json:
        print_json({"out": str(given.out), "bytes": size, **found})
    else:
        print(f"{given.out} ({said}{f'{size / 1e6:.1f} MB' if size > 1e6 else f'{size / 1e3:.0f} kB'})")
    return DONE


def _many(given: argparse.Namespace) -> int:
    """Explain many predictions, or read what a job found, and write the page."""
    from ..reports import report_many

    job = Path(given.source).is_dir()
    try:
        found, graphs, fragments = _of_job(given) if job else _of_factory(given)
        if not found:
            raise UsageError(f"{given.source} has no predictions that could be explained")
        classes = None if given.classes is None else given.classes.split(",")
        page = report_many(found, graphs, classes=classes, fragments=fragments, title=given.title)
        page.save(given.out)
    except (ValueError, ModuleNotFoundError, OSError) as error:
        raise UsageError(str(error)) from None
    return _told(given, {"predictions": len(found)}, f"{len(found)} predictions, ")


Fragments = list[list[tuple[str, tuple[int, ...], float]]]
"""Of each explanation named groups with what they contribute."""


def _of_job(given: argparse.Namespace) -> "tuple[list[Explanation], Any, Fragments | None]":
    """The explanations of a job's files; the model and the graphs are those of its factory."""
    from ..jobs.read import explanations_of, settings_of
    from ..jobs.work import importable

    settings = settings_of(given.source)
    with importable(settings.folder):
        model, args, kwargs = ready(settings.factory, None if settings.weights is None else Path(settings.weights))
    graphs = listed_graphs(args)
    listed = _one_graph(args, kwargs) if graphs is None else graphs
    found = explanations_of(given.source, listed, given.limit)
    chosen_graphs = listed if graphs is None else [graphs[index] for index, _ in found]
    explanations = [e for _, e in found]
    return explanations, chosen_graphs, _fragments(model, kwargs, explanations, chosen_graphs, settings.options)


def _of_factory(given: argparse.Namespace) -> "tuple[list[Explanation], Any, Fragments | None]":
    from ..attribution.explain import explain
    from ..locality.prepared import PreparedCall

    model, args, kwargs = ready(given.source, given.weights)
    asked = {**question(given, None, kwargs), "index": None}
    graphs = listed_graphs(args)
    if graphs is None:
        data = _one_graph(args, kwargs)
        try:
            rows = range(min(len(PreparedCall.of(model, args, dict(kwargs)).table(None).values), given.limit))
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "single scores add up")  # the page says it
                found = list(explain(model, *args, **{**asked, "index": list(rows)}))
        except Exception as error:
            raise unexplained(error, None) from error
        return found, data, None
    some = [graphs[number] for number in range(min(len(graphs), given.limit))]
    found = [explained(model, (graph,), **asked) for graph in some]
    return found, some, _fragments(model, kwargs, found, some, asked["options"])


def _one_graph(args: tuple[Any, ...], kwargs: Any) -> Any:
    """The graph that all rows are of; None of one with several types of nodes."""
    from torch import Tensor
    from torch_geometric.data import Data

    x, edges = args[0], args[1] if len(args) > 1 else kwargs.get("edge_index")
    return x if isinstance(x, Data) else Data(x=x, edge_index=edges) if isinstance(x, Tensor) else None


def _fragments(model: Any, kwargs: Any, found: "list[Explanation]", graphs: Any, options: Any) -> "Fragments | None":
    """What functional groups contribute, each decomposed as one group; None where graphs are no molecules."""
    from ..attribution.decompose import decompose
    from ..canvas import functional_groups

    if not isinstance(graphs, list) or not all(isinstance(graph.get("smiles"), str) for graph in graphs):
        return None
    if any(e.reading != "contribution" for e in found):
        return None
    made: Fragments = []
    for e, graph in zip(found, graphs, strict=True):
        named = functional_groups(graph.smiles, e.num_nodes)
        if not named:
            made.append([])
            continue
        d = decompose(model, graph, groups=[list(nodes) for _, nodes in named], options=options, model_kwargs=kwargs)
        scores = d.target.reshape(len(named), -1)[:, e.target].tolist()
        made.append([(name, nodes, score) for (name, nodes), score in zip(named, scores, strict=True)])
    return made


def _saved(given: argparse.Namespace) -> "Subject":
    from ..results.explanation import Explanation
    from ..results.tree import ExplanationTree

    try:
        tree = None if given.tree is None else ExplanationTree.load(given.tree)
        return Explanation.load(given.source), tree, None, given.index
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {error.filename}") from None
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from None


def _explained(given: argparse.Namespace) -> "Subject":
    """The prediction that the factory's model makes of the factory's arguments; its data, if they are one object."""
    from ..results.explanation import Explanation
    from ..subgraphs.agglomerate import agglomerate

    if given.tree is not None:
        raise UsageError("--tree goes with a saved explanation; the tree of a factory is grown here")
    model, args, kwargs = ready(given.source, given.weights)
    args, index = chosen(args, given.index)
    asked = question(given, index, kwargs)
    e = explained(model, args, edge_scores=given.edge_scores, **asked)
    if not isinstance(e, Explanation):
        raise UsageError("reports are of graphs with one type of nodes; `xdegree explain` prints the others")
    try:
        grown = None if given.no_tree else agglomerate(model, *args, q=given.q, seed=given.seed, **asked)
    except Exception as error:
        raise unexplained(error, index) from error
    return e, grown, args[0] if hasattr(args[0], "edge_index") else None, index


def _canvas(given: argparse.Namespace, e: "Explanation", data: Any) -> "Canvas | None":
    """How to draw: as what the user says, else as what the data say, else as a graph."""
    from ..canvas import explained_graph, molecule_canvas, node_names, sentence_canvas
    from ..datasets import ATOMS

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
        return molecule_canvas(graph=data, atoms=ATOMS)
    names = None if data is None else node_names(data)
    return None if names is None else explained_graph(e, dict(enumerate(names)))
