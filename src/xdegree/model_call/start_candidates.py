"""The only place where the rows of nodes can be, if none was named: features, an embedding, a table of the model."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import MessagePassing

from .call import ModelCall, find_edge_index, is_edges, is_matrix
from .data_objects import FEATURES
from .spots import Argument, Behind, Held, Spots
from .start_pass import TABLES, Seen, advice, module_spot, rows_in, tables_of, tensors_in, what_x_is


def types_of(call: ModelCall) -> set[Any]:
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


def typed_arguments(call: ModelCall) -> dict[Any, Spots]:
    """The types whose features are among the arguments."""
    for position, value in enumerate(call.args):
        if isinstance(value, HeteroData):
            stores = {store._key: store for store in value.node_stores}
            return {k: (Argument((position, k, "x")),) for k, store in stores.items() if is_matrix(store.get("x"))}
    for name in ("x_dict", "x"):
        value = call.get(name)
        if isinstance(value, Mapping):
            return {kind: (Argument((name, kind)),) for kind, one in value.items() if is_matrix(one)}
    for position, value in enumerate(call.args):
        if isinstance(value, Mapping) and not _has_edge_types(value):
            return {kind: (Argument((position, kind)),) for kind, one in value.items() if is_matrix(one)}
    return {}


def two_sides(call: ModelCall) -> dict[str, Spots]:
    """The features of both sides of a bipartite graph, as PyG's layers take them: ``(x_source, x_target)``."""
    for position, value in enumerate(call.args):
        pair = isinstance(value, tuple) and len(value) == 2 and all(one is None or is_matrix(one) for one in value)
        if pair and find_edge_index(call) is not None:
            sides = zip(("source", "target"), value, strict=True)
            return {side: (Argument((position, n)),) for n, (side, one) in enumerate(sides) if one is not None}
    return {}


def value_at(call: ModelCall, way: tuple[Any, ...]) -> Any:
    """What stands somewhere among the arguments; None if the way leads nowhere."""
    try:
        return call.at(way)
    except (KeyError, AttributeError, IndexError, TypeError, ValueError):
        return None


def only_candidate(seen: Seen) -> Spots:
    """The spots of a graph with one type of nodes, found without a name."""
    call = seen.call
    listed = next(
        (p for p, a in enumerate(call.args) if isinstance(a, list | tuple) and a and all(map(is_matrix, a))), None
    )
    if listed is not None:
        return tuple(Argument((listed, number)) for number in range(len(call.args[listed])))
    if isinstance(call.x, Tensor) and call.x.is_floating_point():  # sparse or a stack, or it would be usual
        way = next(way for way in (*((name,) for name in FEATURES), (0,)) if value_at(call, way) is call.x)
        return (Argument(way, stacked=call.x.layout == torch.strided),)
    found = _argument_candidates(seen)
    candidates = [*found, *(one for one in _table_candidates(seen) if not found or ":" not in one[0])]
    integers = isinstance(call.x, Tensor) and call.x.dim() == 2 and not is_edges(call.x)
    if len(candidates) > 1 and integers and {name for name, _ in candidates} == set(tables_of(seen, call.x)):
        return tuple(spot for _, spots in candidates for spot in spots)  # an embedding for each column
    if len(candidates) > 1:
        named = " or ".join(f"start={name!r}" for name, _ in candidates[:6])
        raise TypeError(
            f"{what_x_is(call)}, and the rows of nodes may be in several places; name the one that is meant: {named}"
        )
    if not candidates:
        raise TypeError(
            f"{what_x_is(call)}, and no embedding, table or other float matrix with a row per node was found that the"
            f" model reads; {advice(call)}"
        )
    return candidates[0][1]


def _argument_candidates(seen: Seen) -> list[tuple[str, Spots]]:
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


def _table_candidates(seen: Seen) -> list[tuple[str, Spots]]:
    """Embeddings that look nodes up, and tables with a row per node that the model reads as they are."""
    n = seen.known_nodes
    called = [path for path in seen.tables if _gives_rows(seen, path)]
    found: list[tuple[str, Spots]] = [
        (path, (module_spot(seen, seen.model.get_submodule(path), path),)) for path in _common(seen, called)
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


def _first_floats(seen: Seen) -> list[tuple[str, Spots]]:
    """Where integers became floats on the way, as one-hot vectors do: the first layer that is given a row per node."""
    modules = dict(seen.model.named_modules()) if isinstance(seen.model, nn.Module) else {}
    if seen.known_nodes is None:
        return []
    for path in seen.first:
        layer = path and next(modules[path].parameters(recurse=False), None) is not None
        if layer or isinstance(modules.get(path), MessagePassing):
            rows, part = rows_in(seen.inputs[path][0], seen.known_nodes)
            if rows is not None and len(part) == 1 and len(seen.inputs[path]) == 1:
                return [(f"{path}:input", (Behind(path, rows.detach(), part, before=True),))]
    return []


def _gives_rows(seen: Seen, path: str) -> bool:
    """Whether an embedding was called with the nodes."""
    given, n = seen.inputs[path][-1][0], seen.known_nodes
    if not isinstance(given, Tensor):
        return False
    return len(given) == n if n is not None else len(given) >= seen.least_nodes and given.dim() <= 2


def _common(seen: Seen, paths: list[str]) -> list[str]:
    """The module that several embeddings belong to, if it returns one row per node; else they themselves."""
    if len(paths) < 2:
        return paths
    pieces = [path.split(".") for path in paths]
    for length in range(min(map(len, pieces)) - 1, 0, -1):
        path = ".".join(pieces[0][:length])
        if all(piece[:length] == pieces[0][:length] for piece in pieces) and path in seen.outputs:
            rows, _ = rows_in(seen.outputs[path][-1], seen.known_nodes)
            return [path] if rows is not None else paths
    return paths


def _is_embedding(seen: Seen, name: str) -> bool:
    owner = name.rpartition(".")[0]
    modules = dict(seen.model.named_modules()) if isinstance(seen.model, nn.Module) else {}
    return isinstance(modules.get(owner), TABLES)


def _own_table(seen: Seen, name: str, tensor: Tensor) -> Spots | None:
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


def _original(seen: Seen, name: str, tensor: Tensor) -> Tensor:
    return dict(tensors_in(seen.model)).get(name, tensor) if name else tensor


def _without_features(seen: Seen) -> list[tuple[str, Spots]]:
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


def by_type(seen: Seen, types: set[Any]) -> Mapping[Any, Spots]:
    """The spots of a graph with several types: features where a type has them, else its embedding or table."""
    found = typed_arguments(seen.call)
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


def _typed_tables(seen: Seen) -> list[tuple[str, Spots]]:
    found: list[tuple[str, Spots]] = [
        (path, (module_spot(seen, seen.model.get_submodule(path), path),)) for path in seen.tables
    ]
    for number, tensor in seen.read.items():
        name = seen.names.get(number, "")
        spots = _own_table(seen, name, tensor)
        if spots is not None:
            found.append((name, spots))
    return found
