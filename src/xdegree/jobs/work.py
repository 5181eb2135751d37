"""What the user's factory hands over: one graph whose rows are explained, or many graphs."""

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.data.data import BaseData

from ..attribution.check import check
from ..attribution.explain import explain
from ..factories import UsageError, listed_graphs, load_weights, made
from ..prepared import Prepared, prepare
from ..results.explanation import Explanation
from .settings import JobError, Settings

Outcome = tuple[int, Explanation | str]
"""An instance and its explanation, or the reason why there is none."""

TRIED = 10
"""Graphs that are looked at before a job, until one can be surveyed: the first may be the broken one."""


def load(settings: Settings) -> "Work":
    """Call the factory and load the weights."""
    try:
        with importable(settings.folder):
            model, args, kwargs = made(settings.factory)
        if settings.weights is not None:
            load_weights(model, Path(settings.weights))
    except JobError:
        raise
    except UsageError as error:
        raise JobError(str(error)) from error
    if isinstance(model, nn.Module):
        model.eval()
    return work_of(model, args, kwargs, settings)


@contextmanager
def importable(folder: str) -> Iterator[None]:
    """Look for modules in a folder first; a factory may import its neighbours when it is called."""
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
    names = ("target", "of", "reading", "edge_scores", "start", "layer", "options", "memory")
    return {name: getattr(settings, name) for name in names}


@dataclass(frozen=True)
class OneGraph:
    """A graph whose nodes (or links) are explained: an instance is a row of the model's output."""

    model: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    settings: Settings
    predictions: Tensor

    @cached_property
    def prepared(self) -> Prepared:
        """Each process makes the plain pass and the index of edges once."""
        return prepare(self.model, *self.args, model_kwargs=self.kwargs)

    @property
    def data(self) -> tuple[Any, dict[str, Any]]:
        """What the model is called with."""
        return (self.args, dict(self.kwargs))

    @property
    def count(self) -> int:
        """The rows of the output."""
        return len(self.predictions)

    def explain(self, ids: Sequence[int]) -> list[Outcome]:
        """Rows without a finite prediction are not asked about: nothing adds up to NaN."""
        finite = self.predictions[list(ids)].isfinite().all(1).tolist()
        asked = [i for i, good in zip(ids, finite, strict=True) if good]
        found: dict[int, Explanation | str] = {
            i: _not_finite(self.predictions[i]) for i, good in zip(ids, finite, strict=True) if not good
        }
        found.update(_together_or_alone(self._together, asked))
        return [(i, found[i]) for i in ids]

    def _together(self, ids: Sequence[int]) -> list[Explanation]:
        return list(self.prepared.explain(index=list(ids), level=self.settings.level, **_choices(self.settings)))


def _one_graph(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], settings: Settings) -> OneGraph:
    try:
        prepared = prepare(model, *args, model_kwargs=kwargs)
        if not isinstance(prepared.call.x, Tensor):
            raise JobError(  # noqa: TRY301
                "jobs explain graphs with one type of nodes; explain graphs with several types with xdegree.explain"
            )
        predictions = prepared.table(settings.level).values
    except JobError:
        raise
    except Exception as error:
        raise JobError(f"the model of {settings.factory} cannot be run: {type(error).__name__}: {error}") from error
    return OneGraph(model, args, kwargs, settings, predictions)


@dataclass(frozen=True)
class ManyGraphs:
    """Graphs that are explained one by one: an instance is the number of a graph."""

    model: Any
    graphs: Sequence[Any]
    kwargs: Mapping[str, Any]
    settings: Settings

    @property
    def data(self) -> tuple[Any, dict[str, Any]]:
        """What the model is called with."""
        return (self.graphs, dict(self.kwargs))

    @property
    def count(self) -> int:
        """The number of graphs."""
        return len(self.graphs)

    def explain(self, ids: Sequence[int]) -> list[Outcome]:
        """Graphs go through the model as one batch, apart from those that could harm their neighbours there."""
        read: dict[int, Data] = {}
        found: dict[int, Explanation | str] = {}
        for i in ids:
            try:
                read[i] = sound(self.graphs[i])
            except Exception as error:
                if of_the_machine(error):
                    raise
                found[i] = _reason(error)  # whatever is wrong with a graph, the others go on

        def together(some: Sequence[int]) -> list[Explanation]:
            batch = Batch.from_data_list([read[i] for i in some])
            return list(explain(self.model, batch, level="graph", model_kwargs=self.kwargs, **_choices(self.settings)))

        found.update(_together_or_alone(together, [i for i in read if _all_finite(read[i])]))
        for i in read.keys() - found.keys():
            found.update(_together_or_alone(together, [i]))
        return [(i, found[i]) for i in ids]


Work = OneGraph | ManyGraphs
"""What a worker needs to explain instances by their numbers."""


def _together_or_alone(
    together: Callable[[Sequence[int]], list[Explanation]], ids: Sequence[int]
) -> dict[int, Explanation | str]:
    """Ask about all at once; where that fails, about each alone, so that the reason stands with the culprit."""
    try:
        return dict(zip(ids, map(_checked, together(ids)), strict=True)) if ids else {}
    except Exception as error:
        if of_the_machine(error):
            raise
        if len(ids) == 1:  # an error of one instance must not end the job
            return {ids[0]: _reason(error)}
    return {i: found for one in ids for i, found in _together_or_alone(together, [one]).items()}


def _checked(e: Explanation) -> Explanation | str:
    if not bool(e.prediction.isfinite().all()):
        return _not_finite(e.prediction)
    return e


def _not_finite(prediction: Tensor) -> str:
    return f"the prediction is not finite: {prediction.tolist()}"


def of_the_machine(error: Exception) -> bool:
    """Whether an error says nothing about an instance: then its part is not finished, and is tried again."""
    return isinstance(error, OSError) and not isinstance(error, FileNotFoundError)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def sound(graph: Any) -> Data:
    """A graph that can stand in a batch: an edge to a node that it lacks would reach into the next graph there."""
    if not isinstance(graph, Data):
        raise TypeError(f"a graph must be a PyG Data object (got {type(graph).__name__})")
    if not isinstance(graph.x, Tensor) or not graph.x.dim() or not len(graph.x):
        raise ValueError("the graph has no node features x [N, F] with at least one node")
    edges, n = graph.edge_index, len(graph.x)
    if not isinstance(edges, Tensor) or edges.dim() != 2 or len(edges) != 2 or edges.dtype != torch.long:
        raise ValueError("the graph has no edge_index [2, E] of whole numbers")
    if edges.numel() and not (0 <= int(edges.min()) and int(edges.max()) < n):
        raise ValueError(f"edge_index names nodes {int(edges.min())} to {int(edges.max())}, but there are 0 to {n - 1}")
    return graph


def _all_finite(graph: Data) -> bool:
    values = graph.to_dict().values()
    return all(bool(v.isfinite().all()) for v in values if isinstance(v, Tensor) and v.is_floating_point())


def survey(work: Work) -> None:
    """Refuse a hopeless job before any work: a million times the same missing rule helps nobody."""
    given, kwargs = work.data
    why = ""
    for number in range(1 if isinstance(work, OneGraph) else min(TRIED, work.count)):
        try:
            args = given if isinstance(work, OneGraph) else (Batch.from_data_list([sound(given[number])]),)
            report = check(work.model, *args, of=work.settings.of, start=work.settings.start, model_kwargs=kwargs)
        except Exception as error:  # noqa: BLE001 (the next graph may be a sound one)
            why = _reason(error)
            continue
        if report.missing:
            raise JobError("no rule applies to " + "; ".join(str(missing) for missing in report.missing))
        return
    raise JobError(f"the model of {work.settings.factory} cannot be surveyed: {why}")


def fingerprint(work: Work) -> dict[str, str]:
    """What the answer depends on beside the settings, hashed: the model's weights, its code, and the data."""
    return {
        "weights": _hashed(dict(work.model.state_dict()) if isinstance(work.model, nn.Module) else None),
        "code": _hashed(_code(work.model)),
        "data": _hashed(work.data),
    }


def _code(model: Any) -> list[str]:
    """The structure of the model and the source of the classes that are not those of PyTorch or PyG."""
    if not isinstance(model, nn.Module):
        return [_source(model)]
    kinds = dict.fromkeys(type(module) for module in model.modules())
    own = [kind for kind in kinds if kind.__module__.split(".")[0] not in ("torch", "torch_geometric")]
    return [repr(model), *map(_source, own)]


def _source(value: Any) -> str:
    try:
        return inspect.getsource(value)
    except (OSError, TypeError):  # made by hand, or in C++
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"


def _hashed(value: Any) -> str:
    summary = hashlib.sha256()
    _feed(summary, value)
    return summary.hexdigest()[:16]


def _feed(summary: Any, value: Any) -> None:
    """Values in a fixed order; of what cannot be hashed by its value only the type counts."""
    if isinstance(value, Tensor) and value.layout == torch.strided:
        summary.update(f"{value.dtype}{list(value.shape)}".encode())
        summary.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    elif isinstance(value, BaseData | Mapping):
        plain = value.to_dict() if isinstance(value, BaseData) else value
        for key in sorted(plain, key=str):
            summary.update(f"{key}:".encode())
            _feed(summary, plain[key])
    elif isinstance(value, str | int | float | bool | None):
        summary.update(repr(value).encode())
    elif hasattr(value, "__len__") and hasattr(value, "__getitem__"):
        summary.update(f"{len(value)}[".encode())
        for i in range(len(value)):
            _feed_item(summary, value, i)
    else:
        summary.update(type(value).__name__.encode())


def _feed_item(summary: Any, values: Any, i: int) -> None:
    try:
        value = values[i]
    except Exception as error:
        if of_the_machine(error):
            raise JobError(f"the data cannot be read: {_reason(error)}") from error
        value = type(error).__name__  # a graph that cannot be read becomes an error of its own later
    _feed(summary, value)
