"""Finds where the rows of nodes are, if they are no float matrix ``x``: what `start` names, or the only candidate."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from .call import ModelCall, short
from .spots import Argument, Behind, Held, Spot, Spots
from .start_candidates import by_type, only_candidate, two_sides, typed_arguments, types_of, value_at
from .start_pass import Seen, look, module_spot, rows_in, tables_of, tensors_in


def searched(model: Any, call: ModelCall, start: Any = None) -> ModelCall:
    """The call with the spots of its nodes: those that ``start`` names, else the only candidate."""
    seen = look(model, call, start)
    if isinstance(start, Mapping):
        if not start:
            raise ValueError("start is an empty dict; name where the rows of each type of nodes are: start={type: …}")
        named = {kind: _resolved(seen, one, kind) for kind, one in start.items()}
        return replace(call, spots={**typed_arguments(call), **named})
    if start is not None:
        return replace(call, spots=_resolved(seen, start))
    if sides := two_sides(call):
        return replace(call, spots=sides)
    types = types_of(call)
    return replace(call, spots=by_type(seen, types) if types else only_candidate(seen))


def _resolved(seen: Seen, start: Any, kind: Any = None) -> Spots:
    if isinstance(start, list | tuple) and start:
        return tuple(spot for one in start for spot in _resolved(seen, one, kind))
    if isinstance(start, nn.Module):
        return (module_spot(seen, start),)
    if isinstance(start, Tensor):
        return (_tensor(seen, start),)
    if start is None or start == "x":
        typed = typed_arguments(seen.call)
        if kind in typed:
            return typed[kind]
    if isinstance(start, str):
        return _named(seen, start, kind)
    raise TypeError(
        "start names a module, a parameter or an argument (or is one), or is a dict of such by type of node"
        f" (got {type(start).__name__})"
    )


def _named(seen: Seen, name: str, kind: Any) -> Spots:
    modules = dict(seen.model.named_modules()) if isinstance(seen.model, nn.Module) else {}
    held = {path: seen.read.get(number) for number, path in seen.names.items()}
    if name.endswith(":input") and name.removesuffix(":input") in modules:
        return (_input(seen, name.removesuffix(":input")),)
    if name in modules and name:
        return (module_spot(seen, modules[name], name),)
    if name in held:
        tensor = dict(tensors_in(seen.model))[name]
        return (_table(name, tensor, held[name] is not None),)
    way = next((way for way in ((name,), (name, kind)) if isinstance(value_at(seen.call, way), Tensor)), None)
    if way is not None:
        return _argument(seen, way)
    called = [path for path in seen.outputs if path]
    tables = [path for number, path in seen.names.items() if number in seen.read]
    raise ValueError(
        f"start names {name!r}, but the model's modules are {short(called or list(modules)[1:])}, the tensors that it"
        f" reads {short(tables)}, its arguments {[n for n, _ in seen.call.named_values()]}"
    )


def _argument(seen: Seen, way: tuple[Any, ...]) -> Spots:
    """A float argument itself; of integers the embeddings that look them up, or their columns."""
    value: Tensor = seen.call.at(way)
    if value.is_floating_point():
        return (Argument(way),)
    if users := tables_of(seen, value):
        return tuple(module_spot(seen, seen.model.get_submodule(path), path) for path in users)
    raise TypeError(f"start names {'.'.join(map(str, way))!r}, which holds {value.dtype}; convert them: .float()")


def _table(name: str, tensor: Tensor, read: bool) -> Held:
    if not read:
        raise ValueError(f"start names {name!r}, which the model did not read in this forward pass")
    if tensor.dim() < 2 and tensor.numel() < 2:
        raise ValueError(f"start names {name!r}, which has no rows: it is {list(tensor.shape)}")
    return Held(name, tensor)


def _tensor(seen: Seen, tensor: Tensor) -> Spot:
    """A tensor itself: an argument, a parameter, or one that a function has as a variable."""
    for name, value in seen.call.named_values():
        if value is tensor:
            position = seen.call.names.index(name) if name in seen.call.names else None
            return Argument((name if position is None or name in seen.call.kwargs else position,))
    for path, own in tensors_in(seen.model) if isinstance(seen.model, nn.Module) else ():
        if own is tensor:
            return _table(path, tensor, any(seen.names.get(number) == path for number in seen.read))
    return _table("", tensor, id(tensor) in seen.read)


def _input(seen: Seen, path: str) -> Behind:
    """What a module is given."""
    for given in seen.inputs.get(path, [])[-1:]:
        rows, part = rows_in(given, seen.known_nodes)
        if rows is not None and len(part) == 1:
            return Behind(path, rows.detach(), part, before=True)
    raise ValueError(f"start names {path + ':input'!r}, but {path!r} was given no float tensor with a row per node")
