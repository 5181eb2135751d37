"""What the user's factory hands over: one graph whose rows are explained, or many graphs."""

import multiprocessing
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from ..attribution.check import check
from ..attribution.explain import explain
from ..factories import UsageError, listed_graphs, load_weights, made
from ..model_call.call import is_stores
from ..prepared import Prepared, prepare
from ..results.explanation import Explanation
from ..results.explanations import Explanations
from .answers import Answer, Outcome
from .identity import Identity, identity
from .interruptions import end_with_parent
from .settings import JobError, Settings

LONGEST = 2000
"""Characters of an error."""
PATIENCE = 30.0
"""Seconds that a survey may take at least: it does more than explain one instance."""
TRIED = 10
"""Graphs that are looked at before a job, until one can be surveyed: the first may be the broken one."""


def load(settings: Settings) -> tuple["Work", Identity]:
    """Call the factory, load the weights, and take the fingerprint of what came out, before the model runs."""
    with importable(settings.folder):
        try:
            model, args, kwargs = made(settings.factory)
            if settings.weights is not None:
                load_weights(model, Path(settings.weights))
        except JobError:
            raise
        except UsageError as error:
            raise JobError(str(error)) from error
        if isinstance(model, nn.Module):
            model.eval()
        found = identity(model, args, kwargs)
    return work_of(model, args, kwargs, settings), found


@contextmanager
def importable(folder: str) -> Iterator[None]:
    """Look for modules in a folder first; a factory may import its neighbors when it is called."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def work_of(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], settings: Settings) -> "Work":
    """One graph or many, told by the first argument: ``(model, (graphs,))`` hands over a list of them."""
    graphs = graphs_in(args)
    if graphs is None:
        return _one_graph(model, args, kwargs, settings)
    if not len(graphs):
        raise JobError(f"{settings.factory} hands over an empty list of graphs; there is nothing to explain")
    return ManyGraphs(model, graphs, kwargs, settings)


def graphs_in(args: tuple[Any, ...]) -> Sequence[Any] | None:
    """The graphs, if a list, a dataset or a ``Batch`` of them is the only argument."""
    if len(args) != 1:
        return None
    if isinstance(args[0], Batch):
        return list(args[0].to_data_list())
    return listed_graphs(args)


def _choices(settings: Settings) -> dict[str, Any]:
    names = ("target", "of", "reading", "edge_scores", "start", "layer", "options")
    return {"memory": settings.portions, **{name: getattr(settings, name) for name in names}}


@dataclass(frozen=True)
class OneGraph:
    """A graph whose nodes (or links) are explained: an instance is a row of the model's output."""

    model: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    settings: Settings
    predictions: Tensor

    @property
    def is_stored(self) -> bool:
        """Whether the graph is in stores, which every worker opens itself."""
        return bool(self.args) and is_stores(self.args[0])

    @cached_property
    def prepared(self) -> Prepared:
        """Each process makes the plain pass and the index of edges once."""
        return prepare(self.model, *self.args, start=self.settings.start, model_kwargs=self.kwargs)

    @property
    def count(self) -> int:
        """The rows of the output."""
        return len(self.predictions)

    def explain(self, ids: Sequence[int]) -> list[Outcome]:
        """Rows without a finite prediction are not asked about: nothing adds up to NaN."""
        finite = self.predictions[list(ids)].isfinite().all(1).tolist()
        asked = [i for i, good in zip(ids, finite, strict=True) if good]
        found: dict[int, Answer | str] = {
            i: _not_finite(self.predictions[i]) for i, good in zip(ids, finite, strict=True) if not good
        }
        found.update(_together_or_alone(self._together, asked))
        return [(i, found[i]) for i in ids]

    def _together(self, ids: Sequence[int]) -> Iterable[Explanation]:
        found: Explanations = self.prepared.explain(
            index=list(ids), level=self.settings.level, **_choices(self.settings)
        )
        return found


def _one_graph(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], settings: Settings) -> OneGraph:
    try:
        prepared = prepare(model, *args, start=settings.start, model_kwargs=kwargs)
        if not isinstance(prepared.call.x, Tensor):
            raise JobError(  # noqa: TRY301
                "jobs explain graphs with one type of nodes; explain graphs with several types with xdegree.explain"
            )
        predictions = prepared.table(settings.level).values
    except JobError:
        raise
    except (Exception, SystemExit) as error:
        raise JobError(f"the model of {settings.factory} cannot be run: {reason(error)}") from error
    work = OneGraph(model, args, kwargs, settings, predictions)
    if work.is_stored and (settings.of, settings.edge_scores, settings.start) != ("node", None, None):
        raise JobError("of a graph in stores nodes are scored, and nothing else: leave out of, edge_scores and start")
    vars(work)["prepared"] = prepared
    return work


@dataclass(frozen=True)
class ManyGraphs:
    """Graphs that are explained one by one: an instance is the number of a graph."""

    model: Any
    graphs: Sequence[Any]
    kwargs: Mapping[str, Any]
    settings: Settings

    is_stored = False

    @property
    def count(self) -> int:
        """The number of graphs."""
        return len(self.graphs)

    def explain(self, ids: Sequence[int]) -> list[Outcome]:
        """Graphs go through the model as one batch, apart from those that could harm their neighbors there."""
        read: dict[int, Data] = {}
        found: dict[int, Answer | str] = {}
        for i in ids:
            try:
                read[i] = sound(self.graphs[i])
            except BaseException as error:  # noqa: BLE001 (whatever is wrong with a graph, the others follow)
                found[i] = reason(error)

        def together(some: Sequence[int]) -> Iterable[Explanation]:
            batch = Batch.from_data_list([read[i] for i in some])
            found: Explanations = explain(
                self.model, batch, level="graph", model_kwargs=self.kwargs, **_choices(self.settings)
            )
            return found

        found.update(_together_or_alone(together, [i for i in read if _all_finite(read[i])]))
        for i in read.keys() - found.keys():
            found.update(_together_or_alone(together, [i]))
        return [(i, found[i]) for i in ids]


Work = OneGraph | ManyGraphs
"""What a worker needs to explain instances by their numbers."""


def _together_or_alone(
    together: Callable[[Sequence[int]], Iterable[Explanation]], ids: Sequence[int]
) -> dict[int, Answer | str]:
    """Ask about all at once; where that fails, about each alone, so that the reason stands with the culprit.

    Also a model that calls `exit`, or raises KeyboardInterrupt, costs one instance: Ctrl-C does not reach workers.
    """
    try:
        return dict(zip(ids, map(_checked, together(ids)), strict=True)) if ids else {}
    except BaseException as error:  # noqa: BLE001
        if len(ids) == 1:
            return {ids[0]: reason(error)}
    return {i: found for one in ids for i, found in _together_or_alone(together, [one]).items()}


def _checked(e: Explanation) -> Answer | str:
    return Answer.of(e) if bool(e.prediction.isfinite().all()) else _not_finite(e.prediction)


def _not_finite(prediction: Tensor) -> str:
    return f"the prediction is not finite: {prediction.tolist()}"


def reason(error: BaseException) -> str:
    """An error in words, as the last line of its traceback has them; also of one that cannot print itself.

    What is no Unicode, such as bytes of a file's name, would be refused by the table, and cost the whole part.
    """
    try:
        words = str(error)
    except BaseException:  # noqa: BLE001 (the words are the model's, too)
        words = "<exception str() failed>"
    line = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return line[:LONGEST].encode(errors="backslashreplace").decode()


def sound(graph: Any) -> Data:
    """A graph that can stand in a batch: an edge to a node that it lacks would reach into the next graph there."""
    if not isinstance(graph, Data):
        raise TypeError(f"a graph must be a PyG Data object (got {type(graph).__name__})")
    if not isinstance(graph.x, Tensor) or not graph.x.dim() or not len(graph.x):
        raise ValueError("the graph has no node features x [N, F] with at least one node")
    edges, n = graph.edge_index, len(graph.x)
    if not isinstance(edges, Tensor) or edges.dim() != 2 or len(edges) != 2 or edges.dtype != torch.long:
        raise ValueError("the graph has no edge_index [2, E] of integers")
    if edges.numel() and not (0 <= int(edges.min()) and int(edges.max()) < n):
        raise ValueError(f"edge_index names nodes {int(edges.min())} to {int(edges.max())}, but there are 0 to {n - 1}")
    return graph


def _all_finite(graph: Data) -> bool:
    values = graph.to_dict().values()
    return all(bool(v.isfinite().all()) for v in values if isinstance(v, Tensor) and v.is_floating_point())


def survey(work: Work, timeout: float | None = None) -> None:
    """Refuse a hopeless job before any work: a million times the same missing rule is of no use.

    Graphs are surveyed in a process of its own: the first may be the one that hangs, or that ends its process.
    """
    why, timeout = "", None if timeout is None else max(timeout, PATIENCE)
    for number in range(1 if isinstance(work, OneGraph) else min(TRIED, work.count)):
        if isinstance(work, OneGraph):
            found = _surveyed(work, work.args)
        else:
            graphs = work.graphs
            found = _apart(lambda: _surveyed(work, (Batch.from_data_list([sound(graphs[number])]),)), timeout)  # noqa: B023
        if isinstance(found, list):
            if found:
                raise JobError("no rule applies to " + "; ".join(found))
            return
        why = found
    raise JobError(f"the model of {work.settings.factory} cannot be surveyed: {why}")


def _surveyed(work: Work, args: Sequence[Any]) -> list[str] | str:
    """The operations without a rule, or why they cannot be told."""
    try:
        report = check(work.model, *args, of=work.settings.of, start=work.settings.start, model_kwargs=work.kwargs)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the next graph may be a sound one)
        return reason(error)
    return [str(missing) for missing in report.missing]


def _apart(question: Callable[[], Any], timeout: float | None) -> Any:
    """The answer of a forked process, which has the data already; where there is no fork, of this one."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return question()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def answer() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        end_with_parent()  # it has the pipes by which workers notice that; they would live on with it
        torch.set_num_threads(1)  # the threads of a process do not come along
        try:
            theirs.send(question())
        except BaseException as error:  # noqa: BLE001
            theirs.send(reason(error))

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        process = context.Process(target=answer, daemon=True)
        process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(timeout) else f"it took longer than {timeout} s"
    except EOFError:
        return "its process died"
    finally:
        process.kill()
        process.join()
        ours.close()
