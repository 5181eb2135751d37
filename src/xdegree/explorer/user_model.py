"""The user's own model as an example of the page."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from ..model_call.call import model_call
from . import parse
from .problem import MAX_CHOICES, Problem
from .subject import Example, Item

_CALL = "the page explains models that are called as model(x, edge_index, …)"


def own_example(
    model: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    graphs: Sequence[str] = (),
    classes: Sequence[str] = (),
    title: str = "Your model",
) -> Example:
    """An example from what a factory gave.

    Args:
        model: a module that returns one row of numbers per node, or one for the graph.
        args: ``(x, edge_index, …)``, a PyG ``Data``, or a list of them.
        kwargs: further arguments of the model.
        graphs: further graphs as JSON, see `parse`.
        classes: names of the classes.
        title: what the list calls it.
    """
    if not isinstance(model, nn.Module):
        raise Problem(f"{_CALL}; the factory gave a {type(model).__name__} instead of a module.")
    model.eval()
    given, rest = _graphs(model, args, kwargs)
    items = [item for number, data in enumerate(given) for item in _items(model, data, rest, number, len(given))]
    width = int(given[0].x.shape[1])
    for text in graphs:
        data, index, name = parse.graph(text, width)
        found = _items(model, data, {}, 0, 1) if index is None else [Item(f"node {index}", data, index)]
        items += [Item(name if item.index is None else f"{name}, {item.title}", data, item.index) for item in found]
    note = f"{type(model).__name__}, {sum(p.numel() for p in model.parameters()):,} parameters"
    return Example("own", title, note, "graph", model, items, tuple(classes), kwargs=rest)


def _graphs(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Data], dict[str, Any]]:
    """The graphs among the arguments, and the arguments beside them."""
    if len(args) == 1 and isinstance(args[0], list | tuple) and args[0]:
        if not all(isinstance(data, Data) and data.x is not None for data in args[0]):
            raise Problem(f"{_CALL}; a list of graphs must hold Data objects with x and edge_index.")
        return list(args[0]), dict(kwargs)
    call = model_call(model, tuple(args), kwargs)
    named = {**dict(zip(call.names, call.args, strict=False)), **call.kwargs}
    x = named.pop(call.names[0] if call.args and call.names else "x", None)
    edges = named.pop("edge_index", None)
    if not isinstance(x, Tensor) or not isinstance(edges, Tensor) or x.dim() != 2:
        raise Problem(f"{_CALL} with tensors x [N, F] and edge_index [2, E]; this factory's arguments are others.")
    source = args[0] if args and isinstance(args[0], Data) else {}
    data = Data(x=x, edge_index=edges, **{name: source[name] for name in ("names", "words") if name in source})
    return [data], named


def _items(model: nn.Module, data: Data, kwargs: Mapping[str, Any], number: int, count: int) -> list[Item]:
    """One prediction per graph, or per node where the model has a row for each."""
    with torch.no_grad():
        output = model(data.x, data.edge_index, **kwargs)
    if not isinstance(output, Tensor) or not output.is_floating_point():
        raise Problem(f"{_CALL} and return one float tensor (this one returns a {type(output).__name__}).")
    title = f"graph {number}"
    if output.dim() and len(output) == len(data.x) and len(data.x) > 1:
        prefix = "" if count == 1 else f"{title}, "
        return [Item(f"{prefix}node {node}", data, node) for node in range(min(len(data.x), MAX_CHOICES))]
    return [Item(title, data)]
