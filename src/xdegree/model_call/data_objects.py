"""PyG's ``Data`` objects and containers among the arguments: what they hold, and copies with other values."""

import copy
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import BaseData


def with_items(value: Any, given: Callable[[Any], Any]) -> Any:
    """The same tuple, list or dict with other items."""
    if isinstance(value, dict):
        return {key: given(item) for key, item in value.items()}
    items = [given(item) for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def data_with(data: Any, given: Callable[[str, Any], Any]) -> Any:
    """A copy of a Data object with its values replaced or copied."""
    copied = copy.copy(data)
    for store, old in zip(copied.stores, data.stores, strict=True):
        for name in list(old.keys()):
            store[name] = given(name, old[name])
    return copied


def check_list(args: tuple[Any, ...], required: int) -> None:
    """Refuse a list that holds graphs, or the model's arguments where it takes more than one."""
    first = args[0][0]
    if isinstance(first, BaseData):
        raise TypeError(
            f"the graphs came as a {type(args[0]).__name__}; put them into a batch: Batch.from_data_list(graphs)"
        )
    if isinstance(first, Tensor) and required > len(args):
        raise TypeError(
            f"the model's arguments came as a {type(args[0]).__name__}; give them one by one: (model, x, edge_index)"
        )


def data_value(data: Any, name: str) -> Any:
    """What a Data object has by a name; of one with types a dict by type, or what only one type has."""
    if not isinstance(data, HeteroData):
        return data.get(name)
    stores = [store for store in data.stores if name.removesuffix("_dict") in store]
    if name.endswith("_dict"):
        return {store._key: store[name.removesuffix("_dict")] for store in stores} or None
    return stores[0][name] if len(stores) == 1 else None


def takes_data(parameters: list[inspect.Parameter], data: Any) -> bool:
    """Whether the model takes the object itself, not what it holds."""
    if not parameters:
        return True
    first = parameters[0]
    if isinstance(first.annotation, type) and issubclass(first.annotation, BaseData):
        return True
    required = [p for p in parameters if p.default is p.empty]
    return len(required) <= 1 and (first.name == "batch" or not _in_data(data, first.name))


FEATURES = ("x", "feat", "feats", "features", "node_feat", "node_feats", "node_features", "h", "input", "inputs", "xs")
"""What models call the features of nodes."""


def _in_data(data: Any, name: str) -> bool:
    if isinstance(data, HeteroData):
        return any(name.removesuffix("_dict") in store for store in data.stores)
    if name in FEATURES and name not in data:
        return data.x is not None
    return name in data or name == "num_nodes"


def from_data(data: Any, parameters: list[inspect.Parameter]) -> dict[str, Any]:
    """What a model's parameters get from a Data object, by their names."""
    return {p.name: _from_data(data, p) for p in parameters if _wanted(data, p)}


def _wanted(data: BaseData, parameter: inspect.Parameter) -> bool:
    return _in_data(data, parameter.name) or parameter.default is parameter.empty


def _from_data(data: Any, parameter: inspect.Parameter) -> Any:
    if isinstance(data, HeteroData) and _in_data(data, parameter.name):
        return getattr(data, f"{parameter.name.removesuffix('_dict')}_dict")
    if _in_data(data, parameter.name):
        return data[parameter.name] if parameter.name in data else getattr(data, parameter.name, data.x)
    if parameter.name in ("x", "x_dict"):
        return None
    if parameter.name == "batch" and isinstance(data, Data):
        device = next((t.device for t in data.to_dict().values() if isinstance(t, Tensor)), None)
        return torch.zeros(data.num_nodes or 1, dtype=torch.long, device=device)
    raise ValueError(
        f"the model needs {parameter.name!r}, which the Data object does not have (it has {sorted(data.keys())}); give"
        f" the tensors themselves, or {parameter.name}=… beside the Data object"
    )
