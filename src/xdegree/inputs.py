"""The user's arguments: where the node features are among them, and whether they fit together."""

import copy
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_iter, tree_map_only
from torch_geometric.data.data import BaseData


@dataclass(frozen=True)
class ModelCall:
    """A call of the model that is waiting for its node features."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def x(self) -> Any:
        """The node features: the first argument, the one called ``x``, or ``data.x``."""
        first = self.args[0] if self.args else self.kwargs.get("x")
        return first.x if isinstance(first, BaseData) else first

    def run(self, model: Any, x: Any) -> Any:
        """Call the model with other features in the place of the node features.

        It gets copies of all other tensors: a model may write into its arguments.
        """
        kwargs = tree_map_only(Tensor, Tensor.clone, {k: v for k, v in self.kwargs.items() if v is not self.x})
        if not self.args:
            return model(**kwargs, x=x)
        rest = tree_map_only(Tensor, Tensor.clone, self.args[1:])
        return model(_put(self.args[0], x), *rest, **kwargs)

    def tensors(self) -> list[Tensor]:
        """All tensors among the arguments."""
        inputs = [dict(a.to_dict()) if isinstance(a, BaseData) else a for a in self.args]
        return [leaf for leaf in tree_iter((inputs, dict(self.kwargs))) if isinstance(leaf, Tensor)]


def _put(first: Any, x: Any) -> Any:
    if not isinstance(first, BaseData):
        return x
    data = copy.copy(first)
    data.x = None  # not to be copied
    data = data.clone()
    data.x = x
    return data


def model_call(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ModelCall:
    """The user's arguments as a call; a PyG ``Data`` gives each parameter of the model what it has by that name."""
    if not args and "x" not in kwargs:
        raise TypeError(
            "the model's arguments are missing; give them as the model takes them: (model, x, edge_index, …)"
        )
    if not args or not isinstance(args[0], BaseData):
        return ModelCall(args, kwargs)
    data, forward = args[0], model.forward if isinstance(model, nn.Module) else model
    if "x" not in data or data.x is None:
        raise ValueError(f"the Data object has no node features x (it has {sorted(data.keys())})")
    parameters = [
        p
        for p in inspect.signature(forward).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in kwargs
    ]
    if _takes_data(parameters) or len(args) > 1:
        return ModelCall(args, kwargs)
    return ModelCall((), {**kwargs, **{p.name: _from_data(data, p) for p in parameters if _wanted(data, p)}})


def _takes_data(parameters: list[inspect.Parameter]) -> bool:
    if not parameters:
        return True
    annotation = parameters[0].annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseData):
        return True
    required = [p for p in parameters if p.default is p.empty]
    return parameters[0].name != "x" and len(required) <= 1


def _wanted(data: BaseData, parameter: inspect.Parameter) -> bool:
    return parameter.name in data or parameter.default is parameter.empty


def _from_data(data: Any, parameter: inspect.Parameter) -> Any:
    if parameter.name in data:
        return data[parameter.name]
    if parameter.name == "batch":
        return torch.zeros(data.num_nodes, dtype=torch.long, device=data.x.device)
    raise ValueError(
        f"the model needs {parameter.name!r}, which the Data object does not have (it has {sorted(data.keys())}); give"
        f" the tensors themselves, or {parameter.name}=… beside the Data object"
    )


def prepare(model: Any, call: ModelCall) -> None:
    """Everything that can be found wrong before any work: devices, features, the model's mode."""
    check_devices(model, call)
    check_features(call.x)
    check_mode(model)


def check_features(x: Any) -> Tensor:
    """The node features, or a clear error."""
    if not isinstance(x, Tensor):
        raise TypeError(
            f"the model's first argument must be the node features, a float tensor (got {type(x).__name__})"
        )
    if not x.is_floating_point():
        raise TypeError(
            f"node features must be floating point to be split into portions (got {x.dtype}); convert them: x.float()"
        )
    if x.dim() == 0:
        raise ValueError("node features must have a row per node (got a single number)")
    if not bool(x.isfinite().all()):
        bad = (~x.isfinite()).reshape(x.shape[0], -1).any(1).nonzero().flatten().tolist()
        raise ValueError(f"node features must be finite (got NaN or infinity at nodes {short(bad)}); clean them first")
    return x


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


def _trains(module: nn.Module) -> bool:
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return module.p > 0
    return isinstance(module, nn.modules.batchnorm._BatchNorm) and bool(module.track_running_stats)


def short(items: list[Any]) -> str:
    """A list for an error message, not all of it if it is long."""
    return str(items) if len(items) <= 8 else f"{items[:8]} and {len(items) - 8} more".replace("]", ", …]", 1)
