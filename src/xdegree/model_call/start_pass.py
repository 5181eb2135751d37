"""One plain pass that shows which modules, tables and arguments of a call may hold the rows of nodes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data.data import BaseData

from ..engine.portions import leaves
from ..engine.torch_private import OpOverload
from .call import ModelCall, find_edge_index, is_edges, is_matrix
from .shadow_model import Plain, shadow_of
from .spots import Behind, Held, Spot

TABLES = (nn.Embedding, nn.EmbeddingBag)


@dataclass
class Seen:
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


def look(model: Any, call: ModelCall, start: Any) -> Seen:
    """Run the model once, and note who took part."""
    seen, shadow, reads = Seen(model, call), shadow_of(model), _Reads(call)
    plain = replace(call, part=None, spots=None)
    if isinstance(shadow, nn.Module):
        seen.names = {id(tensor): name for name, tensor in tensors_in(shadow)}
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
        raise TypeError(f"{what_x_is(call)}; {advice(call)}. With them as they are, the model said: {error}") from error
    seen.read = reads.read
    seen.used = {id(a) for a, b in zip(own, copies, strict=True) if id(b) in reads.taken}
    return seen


def _refuse_types(x: Mapping[Any, Any], error: Exception) -> None:
    """Say which type has no features, if the model raises without them."""
    if not x:
        raise ValueError("the dict of node features is empty") from error
    for kind, value in x.items():
        if not is_matrix(value):
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


def _note_calls(seen: Seen, path: str, module: nn.Module) -> None:
    def note(_module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        seen.inputs.setdefault(path, []).append(args or tuple(kwargs.values()))
        seen.outputs.setdefault(path, []).append(output)

    def begin(_module: nn.Module, _args: Any) -> None:
        seen.first.setdefault(path)

    module.register_forward_pre_hook(begin)
    module.register_forward_hook(note, with_kwargs=True)


def tensors_in(value: Any, path: str = "", depth: int = 6) -> Iterator[tuple[str, Tensor]]:
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
            yield from tensors_in(item, f"{path}.{key}" if path else str(key), depth - 1)


_OWN = frozenset(vars(nn.Module()))


def module_spot(seen: Seen, module: nn.Module, path: str | None = None) -> Spot:
    """What a module returns; the table of an embedding that is not called, or not with one row per node."""
    if path is None:
        named = seen.model.named_modules() if isinstance(seen.model, nn.Module) else ()
        path = next((name for name, one in named if one is module), None)
    if path is None:
        raise ValueError(f"start is a {type(module).__name__} that is no part of the model; name one of its modules")
    found = seen.outputs.get(path, [])
    rows = [rows_in(output, seen.known_nodes) for output in found[-1:]]
    table = getattr(module, "weight", None)
    fits = bool(rows) and rows[0][0] is not None and len({_shape(output) for output in found}) == 1
    if fits and not (isinstance(module, TABLES) and len(found) > 1):
        tensor, part = rows[0]
        assert tensor is not None
        return Behind(path, tensor.detach(), part)
    if isinstance(table, Tensor) and (isinstance(module, TABLES) or not found):
        name = f"{path}.weight" if path else "weight"
        if found or any(seen.names.get(number, "") == name for number in seen.read):
            return Held(name, table)
    if not found:
        raise ValueError(f"start names {path!r}, which the model did not call in this forward pass")
    count = "" if seen.known_nodes is None else f", {seen.known_nodes}"
    got = _described(found[-1])
    raise TypeError(f"start={path!r} must give one float row per node{count} (got {got})")


def tables_of(seen: Seen, value: Tensor) -> list[str]:
    """The embeddings that look integers up: the whole tensor, or each a column of it."""

    def same(given: Any) -> bool:
        if not isinstance(given, Tensor) or len(given) != len(value):
            return False
        columns = [value, *value.unbind(1)] if value.dim() == 2 else [value]
        return any(one.shape == given.shape and torch.equal(one, given) for one in columns)

    return [path for path in seen.tables if any(given and same(given[0]) for given in seen.inputs[path])]


def rows_in(output: Any, nodes: int | None) -> tuple[Tensor | None, tuple[Any, ...]]:
    """The first float tensor with a row per node in what a module returned, and the way there."""
    if isinstance(output, Tensor):
        fits = output.is_floating_point() and output.dim() and (nodes is None or len(output) == nodes)
        return (output if fits else None), ()
    items = (
        enumerate(output) if isinstance(output, list | tuple) else output.items() if isinstance(output, dict) else ()
    )
    for key, item in items:
        found, way = rows_in(item, nodes)
        if found is not None:
            return found, (key, *way)
    return None, ()


def _shape(output: Any) -> Any:
    return tuple(tuple(leaf.shape) for leaf in leaves(output) if isinstance(leaf, Tensor))


def _described(output: Any) -> str:
    return f"{output.dtype} {list(output.shape)}" if isinstance(output, Tensor) else type(output).__name__


def what_x_is(call: ModelCall) -> str:
    """What stands in the place of features, for an error."""
    x = call.x
    if isinstance(x, Tensor) and x.layout != torch.strided:
        return f"node features must be dense to be split into portions in this model (got {x.layout})"
    if isinstance(x, Tensor):
        return f"node features must be floating point to be split into portions (got {x.dtype})"
    return f"node features must be a float tensor, the model's argument x (got {type(x).__name__})"


def advice(call: ModelCall) -> str:
    """What to do about it."""
    if isinstance(call.x, Tensor) and not is_edges(call.x):
        return "convert them: x.float()" if call.x.layout == torch.strided else "convert them: x.to_dense()"
    if isinstance(call.x, list) or type(call.x).__module__ == "numpy":
        return "make them one: torch.as_tensor(x)"
    return "name where their rows are with start=…: a module, a parameter's name, or the tensor itself"
