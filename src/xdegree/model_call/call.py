"""The user's arguments: where the node features are among them, and whether they fit together."""

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import BaseData

from ..engine.portions import leaves, mapped


@dataclass(frozen=True)
class ModelCall:
    """A call of the model, with the names of its arguments as far as they are known."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    names: tuple[str, ...] = ()
    """What the model calls its positional arguments."""
    part: Any = None
    """Which part of the output is meant, for models that return several: a key or a position."""

    @property
    def x(self) -> Any:
        """The node features: the first argument, the one called ``x`` or ``x_dict``, or ``data.x``."""
        if not self.args:
            return self.kwargs["x"] if "x" in self.kwargs else self.kwargs.get("x_dict")
        if isinstance(self.args[0], HeteroData):
            return self.args[0].x_dict
        return self.args[0].x if isinstance(self.args[0], BaseData) else self.args[0]

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
            if value is None and data is not None and name in data:
                value = data[name]
            if value is not None:
                return value
        return None

    def run(self, model: Any, *replaced: tuple[Any, Any]) -> Any:
        """Call the model, some values (old, new) replaced; of all other tensors it gets copies to write into."""

        def given(value: Any) -> Any:
            for old, new in replaced:
                if value is old:
                    return new
            if isinstance(value, BaseData):
                return _data_with(value, given)
            return mapped_tensors(Tensor.clone, value)

        args, kwargs = [given(a) for a in self.args], {name: given(a) for name, a in self.kwargs.items()}
        try:
            output = model(*args, **kwargs)
        except (TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
            found = _faults(model, self)
            if not found:
                raise
            raise ValueError(f"the model cannot be called with these arguments: {'; '.join(found)}") from error
        return output if self.part is None else self._pick(output)

    def _pick(self, output: Any) -> Any:
        try:
            return output[self.part]
        except (KeyError, IndexError, TypeError):
            has = list(output) if isinstance(output, dict) else f"a {type(output).__name__}"
            raise ValueError(f"output={self.part!r} is no part of what the model returns ({has})") from None

    def tensors(self) -> list[Tensor]:
        """All tensors among the arguments."""
        inputs = [dict(a.to_dict()) if isinstance(a, BaseData) else a for a in self.args]
        return [leaf for leaf in leaves((inputs, dict(self.kwargs))) if isinstance(leaf, Tensor)]


def _faults(model: Any, call: ModelCall) -> list[str]:
    """What is usually wrong with the arguments of a model that raises: looked for only then, since it takes time."""
    found = []
    x, edges, batch = call.x, call.get("edge_index"), call.get("batch")
    try:
        inspect.signature(model.forward if isinstance(model, nn.Module) else model).bind(*call.args, **call.kwargs)
    except TypeError as error:
        unknown = "; keywords that xdegree does not know go to the model" if "unexpected" in str(error) else ""
        found.append(f"{error} (it takes {', '.join(p.name for p in _parameters(model))}{unknown})")
    except ValueError:
        pass
    if any(type(value) is int for value in call.args):
        found.append("a whole number is among them; what is explained is named by index=…, its class by target=…")
    if not isinstance(x, Tensor):
        return found
    weights = {p.dtype for p in model.parameters() if p.is_floating_point()} if isinstance(model, nn.Module) else set()
    if len(weights) == 1 and x.is_floating_point() and x.dtype not in weights:
        [dtype] = weights
        found.append(f"x is {x.dtype}, its weights are {dtype}; convert x: x.to({dtype})")
    width = getattr(model, "in_channels", None)
    if x.dim() < 2 and x.is_floating_point():
        found.append(f"x is {list(x.shape)} instead of [nodes, features]; a single feature is x.unsqueeze(1)")
    elif isinstance(width, int) and width > 0 and x.shape[-1] != width:
        found.append(f"x has {x.shape[-1]} features per node, it expects {width}")
    if isinstance(batch, Tensor) and (batch.is_floating_point() or batch.shape != x.shape[:1]):
        got = f"{batch.dtype} {list(batch.shape)}"
        found.append(f"batch names the graph of each node, whole numbers [{len(x)}] (got {got})")
    features = call.get("edge_weight", "edge_attr")
    return found + ([] if edges is None else _edge_faults(edges, len(x), features))


def _edge_faults(edges: Any, nodes: int, features: Any) -> list[str]:
    if not isinstance(edges, Tensor):
        known = isinstance(edges, list | tuple) or type(edges).__module__ == "numpy"
        return [f"edge_index is a {type(edges).__name__}; make it a tensor: torch.tensor(edge_index)"] if known else []
    if edges.layout != torch.strided:
        return []
    if edges.dim() != 2 or edges.shape[0] != 2:
        pairs = edges.dim() == 2 and edges.shape[1] == 2
        advice = "it lies on its side: edge_index.t()" if pairs else "an adjacency matrix becomes one by .nonzero().t()"
        return [f"edge_index is {list(edges.shape)} instead of [2, E]; {advice}"]
    if edges.is_floating_point() or edges.dtype == torch.bool:
        return [f"edge_index is {edges.dtype}; node ids are whole numbers: edge_index.long()"]
    low, high = (int(edges.min()), int(edges.max())) if edges.numel() else (0, -1)
    if low < 0 or high >= nodes:
        return [f"edge_index names nodes {low} to {high}, but x has rows 0 to {nodes - 1}"]
    if isinstance(features, Tensor) and features.shape[:1] != edges.shape[1:]:
        return [f"edge features are {list(features.shape)}, but edge_index has {edges.shape[1]} edges"]
    return []


def mapped_tensors(f: Callable[[Tensor], Any], value: Any) -> Any:
    """The same value with f applied to the tensors inside of it."""
    return mapped(lambda x: f(x) if isinstance(x, Tensor) else x, value)


def _data_with(data: Any, given: Callable[[Any], Any]) -> Any:
    """A copy of a Data object with its values replaced or copied."""
    if isinstance(data, HeteroData):
        raise TypeError(
            "a model that takes a HeteroData object cannot be decomposed as it is; wrap it so that it takes x_dict and"
            " edge_index_dict"
        )
    copied = copy.copy(data)
    for name in data.keys():  # noqa: SIM118 (a Data object is no dict)
        copied[name] = given(data[name])
    return copied


def model_call(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ModelCall:
    """The user's arguments as a call; a PyG ``Data`` gives each parameter of the model what it has by that name."""
    if isinstance(model, type) or not callable(model):
        got = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise TypeError(f"the first argument is the model, made and trained, as in (model, x, edge_index) (got {got})")
    if not args and "x" not in kwargs and "x_dict" not in kwargs:
        raise TypeError(
            "the model's arguments are missing; give them as the model takes them: (model, x, edge_index, …)"
        )
    if args and isinstance(args[0], list | tuple) and len(args[0]) and isinstance(args[0][0], Tensor | BaseData):
        several = isinstance(args[0][0], BaseData)
        advice = (
            "put the graphs into a batch: Batch.from_data_list(graphs)"
            if several
            else "give them one by one: (model, x, edge_index)"
        )
        raise TypeError(f"the model's arguments came as a {type(args[0]).__name__}; {advice}")
    parameters = _parameters(model)
    if not args or not isinstance(args[0], BaseData):
        return ModelCall(args, kwargs, tuple(p.name for p in parameters))
    data, parameters = args[0], [p for p in parameters if p.name not in kwargs]
    if isinstance(data, Data) and data.x is None:
        raise ValueError(f"the Data object has no node features x (it has {sorted(data.keys())})")
    if _takes_data(parameters) or len(args) > 1:
        return ModelCall(args, kwargs, tuple(p.name for p in parameters))
    return ModelCall((), {**kwargs, **{p.name: _from_data(data, p) for p in parameters if _wanted(data, p)}})


def _parameters(model: Any) -> list[inspect.Parameter]:
    """The parameters of a model that have names of their own."""
    try:
        signature = inspect.signature(model.forward if isinstance(model, nn.Module) else model)
    except (TypeError, ValueError):  # some callables of C++ do not tell
        return []
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p for p in signature.parameters.values() if p.kind in named]


def _takes_data(parameters: list[inspect.Parameter]) -> bool:
    if not parameters:
        return True
    annotation = parameters[0].annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseData):
        return True
    required = [p for p in parameters if p.default is p.empty]
    return parameters[0].name not in ("x", "x_dict") and len(required) <= 1


def _in_data(data: Any, name: str) -> bool:
    if isinstance(data, HeteroData):
        return any(name.removesuffix("_dict") in store for store in data.stores)
    return name in data


def _wanted(data: BaseData, parameter: inspect.Parameter) -> bool:
    return _in_data(data, parameter.name) or parameter.default is parameter.empty


def _from_data(data: Any, parameter: inspect.Parameter) -> Any:
    if isinstance(data, HeteroData) and _in_data(data, parameter.name):
        return getattr(data, f"{parameter.name.removesuffix('_dict')}_dict")
    if _in_data(data, parameter.name):
        return data[parameter.name]
    if parameter.name == "batch" and isinstance(data, Data):
        return torch.zeros(data.num_nodes, dtype=torch.long, device=data.x.device)
    raise ValueError(
        f"the model needs {parameter.name!r}, which the Data object does not have (it has {sorted(data.keys())}); give"
        f" the tensors themselves, or {parameter.name}=… beside the Data object"
    )


def prepare(model: Any, call: ModelCall) -> None:
    """What can be found wrong before any work: lazy layers, devices, the model's mode."""
    check_initialised(model)
    check_devices(model, call)
    check_mode(model)


def check_devices(model: Any, call: ModelCall) -> None:
    """All tensors in one place, or a clear error before any work."""
    places = {str(t.device) for t in call.tensors()}
    weights = {str(p.device) for p in model.parameters()} if isinstance(model, nn.Module) else set()
    if len(places | weights) > 1:
        raise ValueError(
            f"tensors are on different devices: the arguments on {sorted(places)}, the model's parameters on"
            f" {sorted(weights)}; move them together with .to(device)"
        )


def check_mode(model: Any) -> None:
    """Refuse a model that computes something else in training than it does when it predicts."""
    modules = model.named_modules() if isinstance(model, nn.Module) else []
    active = [name for name, module in modules if module.training and _trains(module)]
    if active:
        raise ValueError(
            "the model is in training mode, where it drops entries at random or normalises by the batch"
            f" (in {short(active)}); call model.eval() first"
        )


def check_initialised(model: Any) -> None:
    """Refuse lazy layers that do not know their width yet: a run on a replica would not teach the model itself."""
    parameters = model.named_parameters() if isinstance(model, nn.Module) else []
    lazy = [name for name, p in parameters if isinstance(p, nn.parameter.UninitializedParameter)]
    if lazy:
        raise ValueError(f"the model has parameters without a shape ({short(lazy)}); run it once on the data first")


def _trains(module: nn.Module) -> bool:
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return module.p > 0
    return isinstance(module, nn.modules.batchnorm._BatchNorm) and bool(module.track_running_stats)


def short(items: list[Any]) -> str:
    """A list for an error message, not all of it if it is long."""
    return str(items) if len(items) <= 8 else f"{items[:8]} and {len(items) - 8} more".replace("]", ", …]", 1)
