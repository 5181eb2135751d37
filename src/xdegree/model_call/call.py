"""The user's call: where features, edges and batch are among its arguments, and what the rows of its output are."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch_geometric.data import FeatureStore, GraphStore
from torch_geometric.data.data import BaseData

from ..engine.portions import LostPortionsError, leaves, mapped
from ..engine.process_state import RandomStates, random_states
from ..engine.registry import MissingRuleError
from ..engine.torch_private import inner_module
from .callables import Around
from .data_objects import FEATURES, check_list, data_value, data_with, from_data, takes_data, with_items
from .spots import Argument, Held, Pairs, Spots, apart, follow, side_by_side


@dataclass(frozen=True)
class ModelCall:
    """A call of the model, with the names of its arguments as far as they are known."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    names: tuple[str, ...] = ()
    """What the model calls its positional arguments."""
    part: Any = None
    """Which part of the output is meant, for models that return several: a key or a position."""
    data: Any = None
    """The ``Data`` object that the arguments were taken from, if any."""
    random_states: RandomStates = field(default_factory=random_states)
    """Where every pass over this call starts to draw random numbers."""
    spots: Spots | Mapping[Any, Spots] | None = None
    """Where the rows of nodes stand, by type where there are several; None for the usual place, see `x`."""

    @cached_property
    def x(self) -> Any:
        """The rows of nodes: those of the `spots`, else the argument called ``x`` or ``x_dict``, or the first one."""
        if isinstance(self.spots, Mapping):
            return {kind: side_by_side(self._rows_at(spots)) for kind, spots in self.spots.items()}
        if self.spots is not None:
            return side_by_side(self._rows_at(self.spots))
        named = self.get("x", "x_dict", *FEATURES)
        if named is not None or not self.args:
            return named
        return None if isinstance(self.args[0], BaseData) else self.args[0]

    @property
    def is_stack(self) -> bool:
        """Whether the rows are the nodes of several graphs of the same size, ``[graphs, nodes, …]``."""
        return isinstance(self.spots, tuple) and any(isinstance(s, Argument) and s.stacked for s in self.spots)

    def _rows_at(self, spots: Spots) -> list[Tensor]:
        return [spot.rows(self.at) for spot in spots]

    def at(self, way: tuple[Any, ...]) -> Any:
        """What stands somewhere among the arguments."""
        first, *rest = way
        return follow(self.args[first] if isinstance(first, int) else self.get(first), tuple(rest))

    def of_part(self, part: Any) -> "ModelCall":
        """The same for another part of the output; its `x` stays the very same, which replacing goes by."""
        other = replace(self, part=part)
        other.__dict__["x"] = self.x
        return other

    def of_nodes(self, nodes: Tensor) -> "ModelCall":
        """The call with some of the rows, or with the rows in another order, in the spots that are no arguments."""
        if self.spots is None or isinstance(self.spots, Mapping):
            return self
        return replace(self, spots=tuple(spot.of_nodes(nodes) for spot in self.spots))

    @property
    def num_nodes(self) -> int:
        """The number of nodes of a graph with one type of them."""
        return len(self.x)

    def get(self, *names: str) -> Any:
        """The argument of the first of these names that was given, else None."""
        data = next((a for a in self.args if isinstance(a, BaseData)), None)
        for name in names:
            value = self.kwargs.get(name)
            if value is None and name in self.names:
                position = self.names.index(name)
                value = self.args[position] if position < len(self.args) else None
            if value is None and data is not None:
                value = data_value(data, name)
            if value is not None:
                return value
        return None

    def run(self, model: Any, *replaced: tuple[Any, Any]) -> Any:
        """Call the model, some values (old, new) replaced; of all other tensors it gets copies to write into."""
        with ExitStack() as until:
            pairs = self._placed(model, replaced, until)

            def given(value: Any) -> Any:
                for old, new in pairs:
                    if value is old:
                        return new
                if isinstance(value, BaseData):
                    return data_with(value, lambda _, item: given(item))
                if isinstance(value, tuple | list | dict):
                    return with_items(value, given)
                return value.clone() if isinstance(value, Tensor) else value

            args, kwargs = [given(a) for a in self.args], {name: given(a) for name, a in self.kwargs.items()}
            return self.picked(opened(self._called(model, args, kwargs)))

    def _placed(self, model: Any, replaced: Iterable[tuple[Any, Any]], until: ExitStack) -> Pairs:
        """What is replaced among the arguments; rows in other places are exchanged there until the pass ends."""
        pairs: Pairs = []
        new: Any = None
        for one in replaced:
            if self.spots is not None and one[0] is self.x:
                new = one[1]
            else:
                pairs.append(one)
        by_type = isinstance(self.spots, Mapping)
        for kind, spots in self.spots.items() if isinstance(self.spots, Mapping) else [(None, self.spots or ())]:
            own = self._rows_at(spots)
            rows = None if new is None else new[kind] if by_type else new
            if rows is None and any(isinstance(spot, Held) and spot.current is not None for spot in spots):
                rows = self.x[kind] if by_type else self.x
            if rows is not None:
                for spot, part in zip(spots, apart(rows, own), strict=True):
                    pairs += spot.place(model, part, self.at, until)
        return pairs

    def _called(self, model: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        try:
            return model(*args, **kwargs)
        except (MissingRuleError, LostPortionsError):
            raise
        except (TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
            if (
                isinstance(error, RuntimeError)
                and "does not require grad" in str(error)
                and not torch.is_grad_enabled()
            ):
                with torch.enable_grad():  # a gradient inside of the model; whether it is in the way is seen later
                    return mapped_tensors(Tensor.detach, opened(model(*args, **kwargs)))
            from .diagnose import faults

            found = faults(model, self, str(error))
            if not found:
                raise
            raise ValueError(f"the model cannot be called with these arguments: {'; '.join(found)}") from error

    def picked(self, output: Any) -> Any:
        """The part of an output that is meant."""
        return picked(output, self.part)

    def named_values(self) -> Iterator[tuple[str, Any]]:
        """All arguments by their names, those of a ``Data`` object one by one."""
        names = (*self.names, *(f"argument {i}" for i in range(len(self.names), len(self.args))))
        for name, value in (*zip(names, self.args, strict=False), *self.kwargs.items()):
            yield from value.to_dict().items() if isinstance(value, BaseData) else [(name, value)]

    def tensors(self) -> list[Tensor]:
        """All tensors among the arguments."""
        return [t for _, value in self.named_values() for t in leaves(value) if isinstance(t, Tensor)]

    def mapped(self, f: Callable[[str, Any], Any]) -> "ModelCall":
        """The call with f(name, value) in the place of every value, also inside of containers and ``Data``."""

        def applied(name: str, value: Any) -> Any:
            if isinstance(value, BaseData):
                return data_with(value, f)
            return mapped(lambda item: f(name, item), value)

        names = (*self.names, *[""] * len(self.args))
        args = tuple(applied(name, value) for name, value in zip(names, self.args, strict=False))
        return replace(self, args=args, kwargs={name: applied(name, value) for name, value in self.kwargs.items()})

    def rows_of(self, value: Tensor, rows: Tensor) -> Tensor:
        """Some rows of one of the call's tensors, of a sparse matrix too."""
        return value[rows] if value.layout == torch.strided else value.to_dense()[rows].to_sparse(layout=value.layout)

    def plain_size(self, model: Any) -> int:
        """Bytes of the largest value of a pass, as if the widest layer met all nodes and edges at once."""
        tensors = self.tensors()
        widths = [max(p.shape, default=1) for p in model.parameters()] if isinstance(model, nn.Module) else []
        widths += [size for t in tensors if t.is_floating_point() for size in t.shape[1:]]
        return sum(max(t.shape, default=1) for t in tensors) * max([*widths, 1]) * 8


def mapped_tensors(f: Callable[[Tensor], Any], value: Any) -> Any:
    """The same value with f applied to the tensors inside of it."""
    return mapped(lambda x: f(x) if isinstance(x, Tensor) else x, value)


def is_stores(value: Any) -> bool:
    """Whether a value is ``(feature_store, graph_store)``, as PyG's loaders take it.

    A ``Data`` object is both, so ``(data, data)`` are stores; two different ones are two graphs.
    """
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    features, graph = value
    graphs = isinstance(features, BaseData) and isinstance(graph, BaseData) and features is not graph
    return isinstance(features, FeatureStore) and isinstance(graph, GraphStore) and not graphs


def model_call(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ModelCall:
    """The user's arguments as a call; a PyG ``Data`` gives each parameter of the model what it has by that name."""
    if isinstance(model, type) or not callable(model):
        got = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise TypeError(f"the first argument is the model, made and trained, as in (model, x, edge_index) (got {got})")
    parameters = parameters_of(model)
    required = [p for p in parameters if p.default is p.empty and p.name not in kwargs]
    if not args and not kwargs and required:
        raise TypeError(
            "the model's arguments are missing; give them as the model takes them: (model, x, edge_index, …)"
        )
    if args and is_stores(args[0]):
        raise TypeError(
            "a graph in stores can be asked about single nodes: explain, prepare and agglomerate take"
            " (feature_store, graph_store); this question needs the graph in memory"
        )
    if args and isinstance(args[0], list | tuple) and len(args[0]):
        check_list(args, len(required))
    if not args or not isinstance(args[0], BaseData):
        return ModelCall(args, kwargs, tuple(p.name for p in parameters))
    data, inner = args[0], _handed_on(model)
    parameters = [p for p in parameters_of(inner) if p.name not in kwargs]
    named = {p.name for p in parameters}
    if (takes_data(parameters, data) and (named or not _takes_names(inner))) or len(args) > 1:
        return ModelCall(args, kwargs, tuple(p.name for p in parameters), data=data)
    others = {} if "edge_index" in named or not _takes_names(inner) else dict(data.to_dict().items())
    return ModelCall((), {**others, **kwargs, **from_data(data, parameters)}, data=data)


def parameters_of(model: Any) -> list[inspect.Parameter]:
    """The parameters of a model that have names of their own."""
    return [p for p in _signature(unwrapped(model)) if p.kind not in OPEN_ENDED]


OPEN_ENDED = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
"""Parameters that take whatever is given."""


def _signature(model: Any) -> list[inspect.Parameter]:
    try:
        found = inspect.signature(model.forward if isinstance(model, nn.Module) else model)
    except (TypeError, ValueError):  # some callables of C++ do not tell
        return []
    return list(found.parameters.values())


def _takes_names(model: Any) -> bool:
    """Whether a model takes arguments of any name, ``**kwargs``, and no positions that it has no names for."""
    kinds = {p.kind for p in _signature(model)}
    return inspect.Parameter.VAR_KEYWORD in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds


def unwrapped(model: Any) -> Any:
    """What stands inside of a module that only spreads work over devices, compiles it, or is a function."""
    while isinstance(model, nn.Module):
        spread = isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel)
        inner = model.function if isinstance(model, Around) else model.module if spread else inner_module(model)
        if inner is None:
            return model
        model = inner
    return model


def _handed_on(model: Any) -> Any:
    """The only module of one that hands on ``*args, **kwargs``, whatever they are: it knows what it needs."""
    model = unwrapped(model)
    while isinstance(model, nn.Module) and len(children := list(model.children())) == 1:
        if {p.kind for p in _signature(model)} != OPEN_ENDED:
            break
        model = unwrapped(children[0])
    return model


def short(items: list[Any]) -> str:
    """A list for an error message, not all of it if it is long."""
    return str(items) if len(items) <= 8 else f"{items[:8]} and {len(items) - 8} more".replace("]", ", …]", 1)


def find_edge_index(call: ModelCall) -> Tensor | None:
    """The tensor of edges among the arguments, ``[2, E]`` of integers: by name, or if there is only one."""
    named = call.get("edge_index")
    if named is not None:
        return named if is_edges(named) else None
    found = [t for t in (*call.args, *call.kwargs.values()) if is_edges(t) and t is not call.get("edge_label_index")]
    return found[0] if len(found) == 1 else None


def find_edges(call: ModelCall) -> Any:
    """The edges among the arguments: a tensor, or a dict of them by type where nodes have several types."""
    if not isinstance(call.x, Mapping):
        return find_edge_index(call)
    named = call.get("edge_index_dict", "edge_index")
    found = [named] if named is not None else [*call.args[1:], *call.kwargs.values()]
    found = [v for v in found if isinstance(v, Mapping) and v and all(is_edges(e) for e in v.values())]
    return found[0] if len(found) == 1 else None


def is_matrix(value: Any) -> bool:
    """Whether a value is a dense tensor of floats, as features are."""
    return isinstance(value, Tensor) and value.is_floating_point() and value.layout == torch.strided


def is_edges(value: Any) -> bool:
    """Whether a value is a plain list of edges."""
    integers = type(value) is Tensor and value.dtype in (torch.long, torch.int32)
    return integers and value.dim() == 2 and value.shape[0] == 2


Level = Literal["node", "link", "graph"]
"""What a row of the output is about."""


@dataclass(frozen=True)
class Table:
    """The model's output with a row per node, link or graph and a column per class."""

    values: Tensor
    level: Level

    def of(self, target: Tensor) -> Tensor:
        """The targets of the output in the same form, ``[K, rows, classes]``."""
        return target.reshape(len(target), *self.values.shape)


def as_table(output: Any, call: ModelCall, level: Level | None = None) -> Table:
    """The output as a table; what its rows are follows from their number unless the level is given."""
    if not isinstance(output, Tensor) or not output.is_floating_point():
        got, parts = getattr(output, "dtype", type(output).__name__), [name for name, _ in parts_of(output)]
        advice = f"name the part that is meant, output={parts[0]!r}" if parts else "wrap it to return the prediction"
        keys = f" with the parts {parts}" if parts else ""
        raise TypeError(f"the model must return one float tensor to be explained (got {got}{keys}); {advice}")
    if level is not None and level not in get_args(Level):
        raise ValueError(f"level must be one of {get_args(Level)} (got {level!r})")
    if call.is_stack and output.dim() > 2 and output.shape[:2].numel() == len(call.x):
        output = output.flatten(0, 1)
    level = _level(output, call) if level is None else level
    rows = _rows(call, level)
    # Without knowing better, a vector holds the classes of a graph, but one number per node or link.
    single = output.dim() == 0 or (output.dim() == 1 and level == "graph" and len(output) != rows)
    values = output.reshape(1, -1) if single else output.reshape(len(output), -1)
    if rows is not None and len(values) != rows and not (level == "node" and len(values) == call.get("batch_size")):
        raise ValueError(f"level={level!r} means {rows} rows, but the model's output has {list(output.shape)}")
    return Table(values, level)


def _level(output: Tensor, call: ModelCall) -> Level:
    rows = len(output) if output.dim() else 1
    links = _rows(call, "link")
    if links is not None and rows == links:
        return "link"
    if isinstance(call.x, Tensor) and rows in (len(call.x), call.get("batch_size")):
        return "node"
    if not isinstance(call.x, Tensor):
        return "node"
    pairs = {value.shape[1] for value in call.tensors() if is_edges(value)}
    if output.dim() and rows > 1 and rows in pairs and find_batch(call) is None:
        return "link"  # something is said of every edge, or of other pairs of nodes
    return "graph"


def _rows(call: ModelCall, level: Level) -> int | None:
    """How many rows the output must have, where that can be known."""
    if level == "link":
        links = call.get("edge_label_index")
        return links.shape[1] if isinstance(links, Tensor) else None
    if level == "node":
        return len(call.x) if isinstance(call.x, Tensor) else None
    batch = find_batch(call)
    return None if batch is None else int(batch.max()) + 1


def find_batch(call: ModelCall) -> Tensor | None:
    """Which graph each node belongs to: ``batch=``, or else the only rising vector of integers, one per node."""
    if not isinstance(call.x, Tensor):
        return None
    named, ids = (
        call.get("batch"),
        (call.x, *(call.args[:1] if call.spots is not None else ()), call.get("x", "z", "n_id")),
    )
    found = [named] if isinstance(named, Tensor) else [t for t in call.tensors() if t.dim() == 1]
    found = [t for t in found if not any(t is one for one in ids)]
    found = [t for t in found if t.dtype == torch.long and t.shape == call.x.shape[:1] and len(t)]
    if named is None:  # labels and kinds of nodes are in no order
        found = [t for t in found if int(t[0]) == 0 and bool((t.diff() >= 0).all())]
    return found[0] if len(found) == 1 else None


def plain_number(value: Any) -> Any:
    """A single number of PyTorch or NumPy as one of Python; anything else as it is."""
    single = getattr(value, "shape", None) == () or (isinstance(value, Tensor) and value.numel() == 1)
    return value.item() if single else value


def check_rows(index: Any, table: Table) -> tuple[list[int], bool]:
    """The rows that are explained and whether it is a single one, or a clear error."""
    return check_rows_among(index, len(table.values), table.level)


def check_rows_among(index: Any, rows: int, level: Level) -> tuple[list[int], bool]:
    """The same where only the number of rows is known."""
    what = {"node": "nodes", "link": "links", "graph": "graphs"}[level]
    if isinstance(index, str) and index == "all":
        return list(range(rows)), False
    if index is None:
        if rows == 1:
            return [0], True
        raise ValueError(
            f"index is missing: the model predicts {rows} {what}; say which one, index=0 to {rows - 1}, a list of"
            ' them, or index="all"'
        )
    single = not isinstance(index, Iterable) or (isinstance(index, Tensor) and index.dim() == 0)
    chosen = [plain_number(i) for i in ([index] if single else index)]
    for i in chosen:
        if isinstance(i, bool) and not single:
            raise TypeError("index is a mask; name the rows themselves: index=mask.nonzero().flatten()")
        if isinstance(i, bool) or not isinstance(i, int):
            raise TypeError(f"index must be an integer or a list of them (got {index!r})")
        if not 0 <= i < rows:
            links = "; if its output is a number for each link, say so: level='link'"
            advice = links if (rows, level) == (1, "graph") else ""
            raise ValueError(f"index {i} is out of range: the model predicts {what} 0 to {rows - 1}{advice}")
    if not chosen:
        raise ValueError("index is an empty list; name at least one")
    return chosen, single


def check_index(index: Any, table: Table) -> int:
    """The one row that is explained."""
    last = len(table.values) - 1
    if index is None and last > 0:
        raise ValueError(f"index is missing: name the one {table.level} that is explained, index=0 to {last}")
    rows, single = check_rows(index, table)
    if not single:
        raise TypeError(f"index must be one integer here, 0 to {last} (got {index!r})")
    return rows[0]


def check_target(target: Any, prediction: Tensor) -> int:
    """The class that is explained, by default the predicted one."""
    classes = len(prediction)
    if target is None:
        return int(prediction.argmax())
    target = plain_number(target)
    if isinstance(target, bool) or not isinstance(target, int):
        raise TypeError(f"target must be an integer, the class (got {target!r})")
    if not 0 <= target < classes:
        raise ValueError(f"target {target} is out of range: the model has the classes 0 to {classes - 1}")
    return target


def opened(output: Any) -> Any:
    """The same with dataclasses, ``Data`` and other records of tensors as dicts by name, at any depth."""
    if isinstance(output, Tensor | nn.Module | str | type) or output is None:
        return output
    if isinstance(output, BaseData):
        return {name: opened(value) for name, value in output.to_dict().items()}
    if is_dataclass(output):
        named = {one.name: getattr(output, one.name) for one in fields(output)}
        return {name: opened(value) for name, value in named.items() if value is not None}
    if isinstance(output, Mapping):
        return {key: opened(value) for key, value in output.items()}
    if isinstance(output, tuple | list):
        items = [opened(item) for item in output]
        return type(output)(*items) if hasattr(output, "_fields") else type(output)(items)
    inside = getattr(output, "__dict__", {})
    if any(isinstance(value, Tensor) for value in inside.values()):
        public = {name: opened(value) for name, value in inside.items() if not name.startswith("_")}
        return public if any(parts_of(public)) else {name: opened(value) for name, value in inside.items()}
    return output


def picked(output: Any, part: Any) -> Any:
    """The part of an output that is meant."""
    if part is None:
        return output
    for way in ((part,), part if isinstance(part, tuple) else str(part)):
        try:
            return follow(output, way)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError):
            continue
    has = [name for name, _ in parts_of(output) if name != ()] or f"a {type(output).__name__}"
    raise ValueError(f"output={part!r} is no part of what the model returns ({has})") from None


def only_part(output: Any) -> Any:
    """The name of the only float tensor in an output of several parts; None if there are more, or it is one itself."""
    found = [] if isinstance(output, Tensor) else list(parts_of(output))
    return found[0][0] if len(found) == 1 else None


def parts_of(output: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Tensor]]:
    """All float tensors of an output, each with what ``output=`` would have to be."""
    if isinstance(output, Tensor):
        if output.is_floating_point():
            yield (way[0] if len(way) == 1 else way), output
        return
    if isinstance(output, tuple) and hasattr(output, "_fields"):
        output = dict(zip(output._fields, output, strict=True))
    if isinstance(output, Mapping):
        for key, value in output.items():
            yield from parts_of(value, (*way, key))
    elif isinstance(output, tuple | list):
        for number, value in enumerate(output):
            yield from parts_of(value, (*way, number))
