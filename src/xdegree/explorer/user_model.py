"""The user's own model as an example of the page."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from torch_geometric.data import Data
from torch_geometric.utils import from_smiles

from ..canvas import graph_title, node_names
from ..datasets import ATOMS, molecule_of
from ..model_call.call import ModelCall, model_call
from . import parse
from .problem import MAX_CHOICES, MAX_NAME, Problem
from .subject import Example, Item, Kind

_CALL = "the page explains models that are called as model(x, edge_index, …)"
VIEWS = ("molecule", "sentence")
"""What a factory may say beside the model and its arguments."""
TRIED = 3
"""Molecules that a way to read SMILES must read as the user did."""


def own_example(
    model: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    graphs: Sequence[str] = (),
    classes: Sequence[str] = (),
    views: Mapping[str, Any] | None = None,
    title: str = "Your model",
) -> Example:
    """An example from what a factory gave.

    Args:
        model: a module that returns one row of numbers per node, or one for the graph.
        args: ``(x, edge_index, …)``, a PyG ``Data``, or a list of them. With ``data.smiles`` they are drawn as
            molecules, with ``data.words`` as sentences; ``data.name`` or ``data.title`` is what the list calls them.
        kwargs: further arguments of the model.
        graphs: further graphs as JSON, see `parse`.
        classes: names of the classes.
        views: how the model reads what a user types: ``molecule``, a function from a SMILES to a ``Data``, and
            ``sentence``, one from a text to a ``Data`` with ``words``. SMILES that PyG's `from_smiles` or
            `xdegree.datasets.molecule_of` reads in the same way need no function.
        title: what the list calls it.
    """
    if not isinstance(model, nn.Module):
        raise Problem(f"{_CALL}; the factory gave a {type(model).__name__} instead of a module.")
    readers = _readers(views or {})
    model.eval()
    model, given, shared = _calls(model, args, kwargs)
    items = [
        item for number, (data, more) in enumerate(given) for item in _items(model, data, more, number, len(given))
    ]
    for text in graphs:
        data, index, name = parse.graph(text, int(given[0][0].x.shape[1]))
        found = _items(model, data, {}, 0, 1) if index is None else [Item(f"node {index}", data, index)]
        items += [Item(name if item.index is None else f"{name}, {item.title}", data, item.index) for item in found]
    named = model.model if isinstance(model, TakesData) else model
    note = f"{type(named).__name__}, {sum(p.numel() for p in model.parameters()):,} parameters"
    owned = [data for data, _ in given]
    return Example(
        *("own", title, note, _kind(owned), model, items, tuple(classes)),
        kwargs=shared,
        molecule=readers.get("molecule") or _reads_smiles(owned),
        sentence=readers.get("sentence"),
        about_model=note,
    )


def _readers(views: Mapping[str, Any]) -> Mapping[str, Callable[[str], Data]]:
    if unknown := sorted(set(views) - set(VIEWS)):
        raise Problem(f"The factory says {unknown[0]!r} of the views; known are {', '.join(VIEWS)}.")
    for name, reader in views.items():
        if not callable(reader):
            raise Problem(f"{name} must be a function from a text to a Data (got {type(reader).__name__}).")
    return views


def _kind(graphs: Sequence[Data]) -> Kind:
    if all(isinstance(data.get("smiles"), str) for data in graphs):
        return "molecule"
    return "sentence" if all("words" in data for data in graphs) else "graph"


def _reads_smiles(graphs: Sequence[Data]) -> Callable[[str], Data] | None:
    """A known way to read SMILES that gives the user's own molecules, if there is one."""
    known = [(data.smiles, data) for data in graphs if isinstance(data.get("smiles"), str)][:TRIED]
    if not known:
        return None
    ways: list[Callable[[str], Data]] = [
        partial(from_smiles, with_hydrogen=hydrogens, kekulize=kekule)
        for hydrogens in (False, True)
        for kekule in (False, True)
    ]
    ways.append(partial(molecule_of, atoms=ATOMS))
    for way in ways:
        try:
            if all(_alike(way(smiles), data) for smiles, data in known):
                return way
        except (ValueError, RuntimeError, ModuleNotFoundError):  # an atom that this way does not know, or no RDKit
            continue
    return None


def _alike(read: Data, data: Data) -> bool:
    return (
        read.x.shape == data.x.shape
        and torch.equal(read.x.to(data.x), data.x)
        and set(zip(*read.edge_index.tolist(), strict=True)) == set(zip(*data.edge_index.tolist(), strict=True))
    )


class TakesData(nn.Module):
    """A model whose forward takes a ``Data``, called with its tensors."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
        pos: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Any:
        """Put the tensors into a ``Data`` again."""
        given = {"edge_attr": edge_attr, "edge_weight": edge_weight, "pos": pos}
        batch = torch.zeros(len(x), dtype=torch.long, device=x.device) if batch is None else batch
        known = {name: value for name, value in given.items() if value is not None}
        return self.model(Data(x=x, edge_index=edge_index, batch=batch, num_nodes=len(x), **known))


def _calls(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[nn.Module, list[tuple[Data, dict[str, Any]]], dict[str, Any]]:
    """The model, its graphs with what it takes beside each, and what it takes beside any graph."""
    shared = {name: value for name, value in kwargs.items() if not isinstance(value, Tensor)}
    if len(args) == 1 and isinstance(args[0], list | tuple | Dataset):
        listed: Any = args[0]
        graphs = [listed[number] for number in range(min(len(listed), MAX_CHOICES))]
    elif len(args) == 1 and isinstance(args[0], Data):
        graphs = [args[0]]
    else:
        data, rest = _one(model_call(model, tuple(args), kwargs))
        return model, [(data, rest)], shared
    if not graphs or not all(isinstance(data, Data) and data.x is not None for data in graphs):
        raise Problem(f"{_CALL}; a list of graphs must hold Data objects with x and edge_index.")
    if model_call(model, (graphs[0],), kwargs).args:
        model = TakesData(model).eval()
    return model, [(data, _beside(model, data, kwargs)) for data in graphs], shared


def _beside(model: nn.Module, data: Data, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What the model takes beside x and edge_index, as the graph has it."""
    try:
        named = dict(model_call(model, (data,), kwargs).kwargs)
    except ValueError as error:
        raise Problem(f"{_CALL}; {error}") from None
    if not isinstance(named.pop("x", None), Tensor) or not isinstance(named.pop("edge_index", None), Tensor):
        raise Problem(f"{_CALL} with tensors x [N, F] and edge_index [2, E]; this factory's arguments are others.")
    return named


def _one(call: ModelCall) -> tuple[Data, dict[str, Any]]:
    """The graph of a call with tensors, and the arguments beside it."""
    named = {**dict(zip(call.names, call.args, strict=False)), **call.kwargs}
    x = named.pop(call.names[0] if call.args and call.names else "x", None)
    edges = named.pop("edge_index", None)
    if not isinstance(x, Tensor) or not isinstance(edges, Tensor) or x.dim() != 2:
        raise Problem(f"{_CALL} with tensors x [N, F] and edge_index [2, E]; this factory's arguments are others.")
    return Data(x=x, edge_index=edges), named


def _items(model: nn.Module, data: Data, kwargs: Mapping[str, Any], number: int, count: int) -> list[Item]:
    """One prediction per graph, or per node where the model has a row for each."""
    with torch.no_grad():
        output = model(data.x, data.edge_index, **kwargs)
    if not isinstance(output, Tensor) or not output.is_floating_point():
        raise Problem(f"{_CALL} and return one float tensor (this one returns a {type(output).__name__}).")
    title = (graph_title(data) or f"graph {number}")[: 2 * MAX_NAME]
    if output.dim() and len(output) == len(data.x) and len(data.x) > 1:
        prefix = "" if count == 1 else f"{title}, "
        names = [f", {name[:MAX_NAME]}" for name in node_names(data) or ()] or [""] * len(data.x)
        most = min(len(data.x), MAX_CHOICES)
        return [Item(f"{prefix}node {node}{names[node]}", data, node, kwargs) for node in range(most)]
    return [Item(title, data, None, kwargs)]
