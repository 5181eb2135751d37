"""Finds where the rows of nodes are, if they are no float matrix ``x``: what `start` names, or the only candidate."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.data.data import BaseData
from torch_geometric.nn import MessagePassing

from ..engine.portions import leaves
from ..engine.torch_private import OpOverload
from .call import FEATURES, ModelCall, find_edge_index, is_edges, short
from .shadow_model import Plain, check_caches, shadow_of
from .spots import Argument, Behind, Held, Spot, Spots

TABLES = (nn.Embedding, nn.EmbeddingBag)


def located(model: Any, call: ModelCall, start: Any = None) -> ModelCall:
    """The call with the spots of its nodes: those that ``start`` names, else the usual place or the only candidate."""
    check_caches(model, call)
    if start is None and _is_usual(call):
        return call
    seen = _look(model, call, start)
    if isinstance(start, Mapping):
        if not start:
            raise ValueError("start is an empty dict; name where the rows of each type of nodes are: start={type: …}")
        named = {kind: _resolved(seen, one, kind) for kind, one in start.items()}
        return replace(call, spots={**_typed_arguments(call), **named})
    if start is not None:
        return replace(call, spots=_resolved(seen, start))
    if sides := _two_sides(call):
        return replace(call, spots=sides)
    types = _types(call)
    return replace(call, spots=_by_type(seen, types) if types else _only(seen))


def _is_usual(call: ModelCall) -> bool:
    """Whether `x` is a float matrix, or a dict of them for all types that edges connect."""
    x = call.x
    if isinstance(x, Mapping) and any(is_edges(value) for value in x.values()):
        return False  # all arguments in one
    if isinstance(x, Mapping):
        whole = bool(x) and all(_is_matrix(value) for value in x.values()) and not isinstance(call.data, HeteroData)
        return whole and (call.spots is not None or not (_types(call) - set(x)))
    return _is_matrix(x) and not _is_stack(call)


def _is_stack(call: ModelCall) -> bool:
    """Whether `x` is a stack of graphs ``[graphs, nodes, …]``: adjacency matrices or edges beside it tell."""
    x = call.x
    if not isinstance(x, Tensor) or x.dim() < 3:
        return False
    square = any(t.dim() > 1 and t.shape[-2:] == (x.shape[1], x.shape[1]) for t in call.tensors() if t is not x)
    edges = find_edge_index(call)
    among = edges is not None and edges.numel() and len(x) <= int(edges.max()) < x.shape[1]
    return bool(square and x.shape[1] != 2) or bool(among)


def _is_matrix(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.layout == torch.strided


def _types(call: ModelCall) -> set[Any]:
    """The types of nodes that features, data and edges speak of."""
    x = call.x
    if isinstance(x, Mapping) and any(is_edges(value) for value in x.values()):
        return set()
    edges = call.get("edge_index_dict", "edge_index", "adj_t_dict")
    dicts = [value for _, value in call.named_values() if isinstance(value, Mapping)]
    edges = edges if isinstance(edges, Mapping) else next((d for d in dicts if _has_edge_types(d)), {})
    found = set(x) if isinstance(x, Mapping) else set()
    found |= {kind for key in edges if isinstance(key, tuple) and len(key) == 3 for kind in (key[0], key[2])}
    data = next((a for a in call.args if isinstance(a, HeteroData)), None)
    return found | set(data.node_types if data is not None else ())


def _has_edge_types(value: Mapping[Any, Any]) -> bool:
    return bool(value) and all(isinstance(key, tuple) and len(key) == 3 for key in value)


def _typed_arguments(call: ModelCall) -> dict[Any, Spots]:
    """The types whose features are among the arguments."""
    for position, value in enumerate(call.args):
        if isinstance(value, HeteroData):
            stores = {store._key: store for store in value.node_stores}
            return {k: (Argument((position, k, "x")),) for k, store in stores.items() if _is_matrix(store.get("x"))}
    for name in ("x_dict", "x"):
        value = call.get(name)
        if isinstance(value, Mapping):
            return {kind: (Argument((name, kind)),) for kind, one in value.items() if _is_matrix(one)}
    for position, value in enumerate(call.args):
        if isinstance(value, Mapping) and not _has_edge_types(value):
            return {kind: (Argument((position, kind)),) for kind, one in value.items() if _is_matrix(one)}
    return {}


def _two_sides(call: ModelCall) -> dict[str, Spots]:
    """The features of both sides of a bipartite graph, as PyG's layers take them: ``(x_source, x_target)``."""
    for position, value in enumerate(call.args):
        pair = isinstance(value, tuple) and len(value) == 2 and all(one is None or _is_matrix(one) for one in value)
        if pair and find_edge_index(call) is not None:
            sides = zip(("source", "target"), value, strict=True)
            return {side: (Argument((position, n)),) for n, (side, one) in enumerate(sides) if one is not None}
    return {}


# What is seen on one plain pass.


@dataclass
class _Seen:
    """Who took part in a plain forward pass."""

    model: Any
    call: ModelCall
    outputs: dict[str, list[Any]] = field(default_factory=dict)
    """What each module returned, each time it was called."""
    inputs: dict[str, list[Any]] = field(default_factory=dict)
    """The positional arguments that it got, each time."""
    used: set[int] = field(default_factory=set)
    """The arguments that an operation took, by the identity of the user's own."""
    read: dict[int, Tensor] = field(default_factory=dict)
    """The float tensors that the model did not compute and was not given: it holds them itself."""
    first: dict[str, None] = field(default_factory=dict)
    """The modules in the order in which they were called."""
    names: dict[int, str] = field(default_factory=dict)
    """Their paths in the model, where they have one."""

    @property
    def tables(self) -> list[str]:
        """The embeddings that were called."""
        modules = self.model.named_modules() if isinstance(self.model, nn.Module) else []
        return [path for path, module in modules if isinstance(module, TABLES) and path in self.outputs]

    @property
    def known_nodes(self) -> int | None:
        """The number of nodes, where the arguments tell."""
        call = self.call
        ids = call.get("x", "z", "n_id", "node_id", "node_ids", "batch", "num_nodes")
        if ids is None and call.args and isinstance(call.args[0], Tensor) and call.args[0].dim() == 1:
            ids = call.args[0]
        if isinstance(ids, Tensor) and ids.dim() and not is_edges(ids):
            return len(ids)
        return ids if isinstance(ids, int) else None

    @property
    def least_nodes(self) -> int:
        """A number of nodes that there are at least."""
        edges = find_edge_index(self.call)
        if edges is None or not edges.numel():
            return 1 if self.known_nodes is None else self.known_nodes
        return int(edges.max()) + 1


class _Reads(Plain):
    """A plain pass that notes which tensors a model holds itself: it uses them and has not made them."""

    def __init__(self, call: ModelCall) -> None:
        super().__init__(call.random_states)
        self.made: dict[int, Tensor] = {}
        self.read: dict[int, Tensor] = {}
        self.taken: set[int] = set()

    def given(self, values: Any) -> None:
        for value in leaves(values):
            if isinstance(value, Tensor):
                self.made[id(value)] = value

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        for x in leaves((args, kwargs or {})):
            if isinstance(x, Tensor) and x.is_floating_point() and id(x) not in self.made:
                self.read[id(x)] = x
            self.taken.add(id(x))
        out = super().__torch_dispatch__(func, types, args, kwargs)
        self.given(out)
        return out


def _look(model: Any, call: ModelCall, start: Any) -> _Seen:
    seen, shadow, reads = _Seen(model, call), shadow_of(model), _Reads(call)
    plain = replace(call, part=None, spots=None)
    if isinstance(shadow, nn.Module):
        seen.names = {id(tensor): name for name, tensor in _tensors_in(shadow)}
        for path, module in shadow.named_modules():
            if not isinstance(module, torch.jit.ScriptModule):
                _note_calls(seen, path, module)
    own, copies = _tensors_given((*call.args, *call.kwargs.values())), list[Tensor]()
    reads.given(own)

    def called(*args: Any, **kwargs: Any) -> Any:
        copies[:] = _tensors_given((*args, *kwargs.values()))
        reads.given(copies)
        return shadow(*args, **kwargs)

    try:
        with torch.no_grad(), reads:
            plain.run(called)
    except Exception as error:
        if start is None and isinstance(call.x, Mapping):
            _refuse_types(call.x, error)
        if start is not None or not _is_features(call.x):
            raise
        raise TypeError(f"{_what_x_is(call)}; {_advice(call)}") from error
    seen.read = reads.read
    seen.used = {id(a) for a, b in zip(own, copies, strict=True) if id(b) in reads.taken}
    return seen


def _refuse_types(x: Mapping[Any, Any], error: Exception) -> None:
    """Say which type has no features, if the model raises without them."""
    if not x:
        raise ValueError("the dict of node features is empty") from error
    for kind, value in x.items():
        if not _is_matrix(value):
            got = value.dtype if isinstance(value, Tensor) else type(value).__name__
            raise TypeError(
                f"node features of type {kind!r} must be floating point to be split into portions (got {got}); convert"
                " them: .float()"
            ) from error


def _is_features(x: Any) -> bool:
    """Whether this stands where features are expected, so that a model that raises was given the wrong ones."""
    plain = isinstance(x, list) or type(x).__module__ == "numpy"
    return x is None or plain or (isinstance(x, Tensor) and not is_edges(x))


def _tensors_given(values: Iterable[Any]) -> list[Tensor]:
    """All tensors among some arguments, in order."""
    opened = [value.to_dict() if isinstance(value, BaseData) else value for value in values]
    return [leaf for leaf in leaves(opened) if isinstance(leaf, Tensor)]


def _note_calls(seen: _Seen, path: str, module: nn.Module) -> None:
    def note(_module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        seen.inputs.setdefault(path, []).append(args or tuple(kwargs.values()))
        seen.outputs.setdefault(path, []).append(output)

    def begin(_module: nn.Module, _args: Any) -> None:
        seen.first.setdefault(path)

    module.register_forward_pre_hook(begin)
    module.register_forward_hook(note, with_kwargs=True)


def _tensors_in(value: Any, path: str = "", depth: int = 6) -> Iterator[tuple[str, Tensor]]:
    """All float tensors inside of a model, with their paths."""
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield path, value
        return
    if isinstance(value, nn.Module):
        items: Iterable[tuple[Any, Any]] = [
            *value._parameters.items(),
            *value._buffers.items(),
            *value._modules.items(),
        ]
        items = [*items, *((k, v) for k, v in vars(value).items() if k not in _OWN)]
    elif isinstance(value, BaseData):
        items = value.to_dict().items()
    elif isinstance(value, dict):
        items = [(k, v) for k, v in value.items() if isinstance(k, str) and "." not in k]
    elif isinstance(value, list | tuple):
        items = list(enumerate(value))[:64]
    else:
        items = vars(value).items() if hasattr(value, "__dict__") and not isinstance(value, type) else ()
    for key, item in items if depth else ():
        if not callable(item) or isinstance(item, nn.Module | BaseData):
            yield from _tensors_in(item, f"{path}.{key}" if path else str(key), depth - 1)


_OWN = frozenset(vars(nn.Module()))


# What ``start`` names.


def _resolved(seen: _Seen, start: Any, kind: Any = None) -> Spots:
    if isinstance(start, list | tuple) and start:
        return tuple(spot for one in start for spot in _resolved(seen, one, kind))
    if isinstance(start, nn.Module):
        return (_module(seen, start),)
    if isinstance(start, Tensor):
        return (_tensor(seen, start),)
    if start is None or start == "x":
        typed = _typed_arguments(seen.call)
        if kind in typed:
            return typed[kind]
    if isinstance(start, str):
        return (_named(seen, start, kind),)
    raise TypeError(
        "start names a module, a parameter or an argument (or is one), or is a dict of such by type of node"
        f" (got {type(start).__name__})"
    )


def _named(seen: _Seen, name: str, kind: Any) -> Spot:
    modules = dict(seen.model.named_modules()) if isinstance(seen.model, nn.Module) else {}
    held = {path: seen.read.get(number) for number, path in seen.names.items()}
    if name.endswith(":input") and name.removesuffix(":input") in modules:
        return _input(seen, name.removesuffix(":input"))
    if name in modules and name:
        return _module(seen, modules[name], name)
    if name in held:
        tensor = dict(_tensors_in(seen.model))[name]
        return _table(name, tensor, held[name] is not None)
    way = next((way for way in ((name,), (name, kind)) if isinstance(_at(seen.call, way), Tensor)), None)
    if way is not None:
        return _argument(seen, way)
    called = [path for path in seen.outputs if path]
    tables = [path for number, path in seen.names.items() if number in seen.read]
    raise ValueError(
        f"start names {name!r}, but the model's modules are {short(called or list(modules)[1:])}, the tensors that it"
        f" reads {short(tables)}, its arguments {[n for n, _ in seen.call.named_values()]}"
    )


def _at(call: ModelCall, way: tuple[Any, ...]) -> Any:
    try:
        return call.at(way)
    except (KeyError, AttributeError, IndexError, TypeError, ValueError):
        return None


def _argument(seen: _Seen, way: tuple[Any, ...]) -> Spot:
    """A float argument itself; of integers the embedding that looks them up."""
    value: Tensor = seen.call.at(way)
    if value.is_floating_point():
        return Argument(way)
    users = [path for path in seen.tables if any(_same(value, given[0]) for given in seen.inputs[path])]
    if len(users) == 1:
        return _module(seen, seen.model.get_submodule(users[0]), users[0])
    advice = f"name one of the embeddings that take them, start={users[0]!r}" if users else "convert them: .float()"
    raise TypeError(f"start names {'.'.join(map(str, way))!r}, which holds {value.dtype}; {advice}")


def _same(a: Tensor, b: Any) -> bool:
    return isinstance(b, Tensor) and a.shape == b.shape and torch.equal(a, b)


def _table(name: str, tensor: Tensor, read: bool) -> Held:
    if not read:
        raise ValueError(f"start names {name!r}, which the model did not read in this forward pass")
    if tensor.dim() < 2 and tensor.numel() < 2:
        raise ValueError(f"start names {name!r}, which has no rows: it is {list(tensor.shape)}")
    return Held(name, tensor)


def _tensor(seen: _Seen, tensor: Tensor) -> Spot:
    """A tensor itself: an argument, a parameter, or one that a function has as a variable."""
    for name, value in seen.call.named_values():
        if value is tensor:
            position = seen.call.names.index(name) if name in seen.call.names else None
            return Argument((name if position is None or name in seen.call.kwargs else position,))
    for path, own in _tensors_in(seen.model) if isinstance(seen.model, nn.Module) else ():
        if own is tensor:
            return _table(path, tensor, any(seen.names.get(number) == path for number in seen.read))
    return _table("", tensor, id(tensor) in seen.read)


def _module(seen: _Seen, module: nn.Module, path: str | None = None) -> Spot:
    """What a module returns; the table of an embedding that is not called, or not with one row per node."""
    if path is None and isinstance(seen.model, nn.Module):
        path = next((name for name, one in seen.model.named_modules() if one is module), None)
    found = seen.outputs.get(path, []) if path is not None else _outputs_of(seen, module)
    rows = [(one, *_rows_in(output, seen.known_nodes)) for output in found[-1:] for one in (output,)]
    table = getattr(module, "weight", None)
    fits = bool(rows) and rows[0][1] is not None and len({_shape(output) for output in found}) == 1
    if fits and not (isinstance(module, TABLES) and len(found) > 1):
        _, tensor, part = rows[0]
        assert tensor is not None
        return Behind(module if path is None else path, tensor.detach(), part)
    if isinstance(table, Tensor) and (isinstance(module, TABLES) or not found):
        name = f"{path}.weight" if path else "" if path is None else "weight"
        read = any(seen.names.get(number, "") == name for number in seen.read) if name else id(table) in seen.read
        if read or found:
            return Held(name, table)
    named = path or type(module).__name__
    if not found:
        raise ValueError(f"start names {named!r}, which the model did not call in this forward pass")
    count = "" if seen.known_nodes is None else f", {seen.known_nodes}"
    got = _described(found[-1])
    raise TypeError(f"start={named!r} must give one float row per node{count} (got {got})")


def _input(seen: _Seen, path: str) -> Behind:
    """What a module is given."""
    for given in seen.inputs.get(path, [])[-1:]:
        rows, part = _rows_in(given, seen.known_nodes)
        if rows is not None and len(part) == 1:
            return Behind(path, rows.detach(), part, before=True)
    raise ValueError(f"start names {path + ':input'!r}, but {path!r} was given no float tensor with a row per node")


def _outputs_of(seen: _Seen, module: nn.Module) -> list[Any]:
    """Of a module that only a function knows, on a pass of its own."""
    found: list[Any] = []
    hook = module.register_forward_hook(lambda _module, _args, output: found.append(output))
    try:
        with torch.no_grad(), Plain(seen.call.random_states):
            replace(seen.call, part=None, spots=None).run(shadow_of(seen.model))
    finally:
        hook.remove()
    return found


def _rows_in(output: Any, nodes: int | None) -> tuple[Tensor | None, tuple[Any, ...]]:
    """The first float tensor with a row per node in what a module returned, and the way there."""
    if isinstance(output, Tensor):
        fits = output.is_floating_point() and output.dim() and (nodes is None or len(output) == nodes)
        return (output if fits else None), ()
    items = (
        enumerate(output) if isinstance(output, list | tuple) else output.items() if isinstance(output, dict) else ()
    )
    for key, item in items:
        found, way = _rows_in(item, nodes)
        if found is not None:
            return found, (key, *way)
    return None, ()


def _shape(output: Any) -> Any:
    return tuple(tuple(leaf.shape) for leaf in leaves(output) if isinstance(leaf, Tensor))


def _described(output: Any) -> str:
    return f"{output.dtype} {list(output.shape)}" if isinstance(output, Tensor) else type(output).__name__


# The only candidate.


def _only(seen: _Seen) -> Spots:
    """The spots of a graph with one type of nodes, found without a name."""
    call = seen.call
    listed = next(
        (p for p, a in enumerate(call.args) if isinstance(a, list | tuple) and a and all(map(_is_matrix, a))), None
    )
    if listed is not None:
        return tuple(Argument((listed, number)) for number in range(len(call.args[listed])))
    if isinstance(call.x, Tensor) and call.x.is_floating_point():  # sparse or a stack, or it would be usual
        way = next(way for way in (*((name,) for name in FEATURES), (0,)) if _at(call, way) is call.x)
        return (Argument(way, stacked=call.x.layout == torch.strided),)
    found = _argument_candidates(seen)
    candidates = [*found, *(one for one in _table_candidates(seen) if not found or ":" not in one[0])]
    if len(candidates) > 1:
        named = " or ".join(f"start={name!r}" for name, _ in candidates[:6])
        raise TypeError(
            f"{_what_x_is(call)}, and the rows of nodes may be in several places; name the one that is meant: {named}"
        )
    if not candidates:
        raise TypeError(
            f"{_what_x_is(call)}, and no embedding, table or other float matrix with a row per node was found that the"
            f" model reads; {_advice(call)}"
        )
    return candidates[0][1]


def _what_x_is(call: ModelCall) -> str:
    x = call.x
    if isinstance(x, Tensor):
        return f"node features must be floating point to be split into portions (got {x.dtype})"
    return f"node features must be a float tensor, the model's argument x (got {type(x).__name__})"


def _advice(call: ModelCall) -> str:
    if isinstance(call.x, Tensor) and not is_edges(call.x):
        return "convert them: x.float()"
    return "name where their rows are with start=…: a module, a parameter's name, or the tensor itself"


def _argument_candidates(seen: _Seen) -> list[tuple[str, Spots]]:
    """Float arguments with a row per node, those with a usual name first."""
    found: list[tuple[str, Spots]] = []
    for name, way, value in _each_argument(seen.call):
        matrix = isinstance(value, Tensor) and value.is_floating_point() and value.dim() > 1
        if matrix and not name.startswith("edge") and len(value) >= seen.least_nodes and id(value) in seen.used:
            found.append((name, (Argument(way),)))
    usual = [one for one in found if one[0] in FEATURES]
    return usual[:1] or found


def _each_argument(call: ModelCall) -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    """All arguments, those of containers one by one, with their names and the ways to them."""
    for name, value in call.named_values():
        way = int(name.split()[1]) if name.startswith("argument ") else name
        items = enumerate(value) if isinstance(value, list | tuple) else ()
        for key, item in value.items() if isinstance(value, Mapping) else items:
            yield str(key), (way, key), item
        yield name, (way,), value


def _table_candidates(seen: _Seen) -> list[tuple[str, Spots]]:
    """Embeddings that look nodes up, and tables with a row per node that the model reads as they are."""
    n = seen.known_nodes
    called = [path for path in seen.tables if _gives_rows(seen, path)]
    found: list[tuple[str, Spots]] = [
        (path, (_module(seen, seen.model.get_submodule(path), path),)) for path in _common(seen, called)
    ]
    if found and n is not None:
        return found
    nameless: list[tuple[str, Spots]] = []
    for number, tensor in seen.read.items():
        name = seen.names.get(number, "")
        spots = _own_table(seen, name, tensor)
        if spots is not None and name:
            found.append((name.removesuffix(".weight") if _is_embedding(seen, name) else name, spots))
        elif spots is not None:
            nameless.append((f"the tensor {list(tensor.shape)} itself", spots))
    return [*found, *_without_features(seen)] or nameless or _first_floats(seen)


def _first_floats(seen: _Seen) -> list[tuple[str, Spots]]:
    """Where integers became floats on the way, as one-hot vectors do: the first layer that is given a row per node."""
    modules = dict(seen.model.named_modules()) if isinstance(seen.model, nn.Module) else {}
    if seen.known_nodes is None:
        return []
    for path in seen.first:
        layer = path and next(modules[path].parameters(recurse=False), None) is not None
        if layer or isinstance(modules.get(path), MessagePassing):
            rows, part = _rows_in(seen.inputs[path][0], seen.known_nodes)
            if rows is not None and len(part) == 1 and len(seen.inputs[path]) == 1:
                return [(f"{path}:input", (Behind(path, rows.detach(), part, before=True),))]
    return []


def _gives_rows(seen: _Seen, path: str) -> bool:
    """Whether an embedding was called with the nodes."""
    given, n = seen.inputs[path][-1][0], seen.known_nodes
    if not isinstance(given, Tensor):
        return False
    return len(given) == n if n is not None else len(given) >= seen.least_nodes and given.dim() <= 2


def _common(seen: _Seen, paths: list[str]) -> list[str]:
    """The module that several embeddings belong to, if it returns one row per node; else they themselves."""
    if len(paths) < 2:
        return paths
    pieces = [path.split(".") for path in paths]
    for length in range(min(map(len, pieces)) - 1, 0, -1):
        path = ".".join(pieces[0][:length])
        if all(piece[:length] == pieces[0][:length] for piece in pieces) and path in seen.outputs:
            rows, _ = _rows_in(seen.outputs[path][-1], seen.known_nodes)
            return [path] if rows is not None else paths
    return paths


def _is_embedding(seen: _Seen, name: str) -> bool:
    owner = name.rpartition(".")[0]
    modules = dict(seen.model.named_modules()) if isinstance(seen.model, nn.Module) else {}
    return isinstance(modules.get(owner), TABLES)


def _own_table(seen: _Seen, name: str, tensor: Tensor) -> Spots | None:
    """A table of the model's own, no weight of a layer: an embedding that is read, a parameter, features it keeps."""
    if tensor.dim() < 2 or len(tensor) < max(2, seen.least_nodes):
        return None
    n = seen.known_nodes
    if n is not None and len(tensor) != n and len(tensor) < seen.least_nodes:
        return None
    owner, modules = (
        name.rpartition(".")[0],
        dict(seen.model.named_modules()) if isinstance(seen.model, nn.Module) else {},
    )
    module = modules.get(owner)
    if isinstance(module, TABLES):
        return None if owner in seen.outputs else (Held(name, _original(seen, name, tensor)),)
    library = type(module).__module__.startswith(("torch.nn", "torch_geometric.nn")) and module is not seen.model
    library = library and not isinstance(module, nn.ParameterList | nn.ParameterDict)
    if module is not None and (library or isinstance(module, MessagePassing | nn.Linear)):
        return None
    return (Held(name, _original(seen, name, tensor)),)


def _original(seen: _Seen, name: str, tensor: Tensor) -> Tensor:
    return dict(_tensors_in(seen.model)).get(name, tensor) if name else tensor


def _without_features(seen: _Seen) -> list[tuple[str, Spots]]:
    """Layers that get no features (``x=None``) and take a row of their weights for each node instead."""
    found: list[tuple[str, Spots]] = []
    modules = dict(seen.model.named_modules()) if isinstance(seen.model, nn.Module) else {}
    for path, given in seen.inputs.items():
        module = modules.get(path)
        size = getattr(module, "in_channels", None)
        got = given[-1][0] if given[-1] else None
        if not isinstance(module, MessagePassing) or got is not None or not isinstance(size, int):
            continue
        tables = [
            Held(f"{path}.{name}" if path else name, p, list(p.shape).index(size))
            for name, p in module.named_parameters(recurse=False)
            if p.dim() > 1 and size in p.shape
        ]
        if tables:
            found.append((path, tuple(tables)))
    return found


def _by_type(seen: _Seen, types: set[Any]) -> Mapping[Any, Spots]:
    """The spots of a graph with several types: features where a type has them, else its embedding or table."""
    found = _typed_arguments(seen.call)
    spare = [
        (name, spots)
        for name, spots in _typed_tables(seen)
        if not any(spot in spots for own in found.values() for spot in own)
    ]
    for kind in sorted(types - set(found), key=str):
        named = [one for one in spare if str(kind).lower() in one[0].lower()]
        fitting = named or [one for one in spare if len(types - set(found)) == 1]
        if len(fitting) == 1:
            found[kind] = fitting[0][1]
            spare.remove(fitting[0])
    if not found:
        raise TypeError(
            f"no features, embedding or table was found for any of the types {sorted(map(str, types))}; name where"
            " their rows are: start={type: module or parameter}"
        )
    return found


def _typed_tables(seen: _Seen) -> list[tuple[str, Spots]]:
    found: list[tuple[str, Spots]] = [
        (path, (_module(seen, seen.model.get_submodule(path), path),)) for path in seen.tables
    ]
    for number, tensor in seen.read.items():
        name = seen.names.get(number, "")
        spots = _own_table(seen, name, tensor)
        if spots is not None:
            found.append((name, spots))
    return found
