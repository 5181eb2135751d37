"""What is wrong with a call: found before any work where it is cheap, else looked for when the model raises."""

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from .call import ModelCall, parameters_of, short


def check_call(model: Any, call: ModelCall) -> None:
    """Raise for what can be found wrong before any work: lazy layers, devices, the model's mode, features."""
    _check_initialised(model)
    _check_devices(model, call)
    _check_mode(model)
    x = call.x
    if isinstance(x, Tensor) and x.layout != torch.strided:
        raise TypeError(f"x is sparse ({x.layout}); portions need a dense tensor: x.to_dense()")
    if isinstance(x, Tensor) and x.dim() and not len(x):
        raise ValueError(f"the graph has no nodes: x is {list(x.shape)}")


def _check_devices(model: Any, call: ModelCall) -> None:
    """All tensors in one place, or a clear error before any work."""
    places = {str(t.device) for t in call.tensors()}
    weights = {str(p.device) for p in model.parameters()} if isinstance(model, nn.Module) else set()
    if "meta" in places | weights:
        raise ValueError("tensors on the meta device have no values to explain; load the model and the data first")
    if len(places | weights) > 1:
        raise ValueError(
            f"tensors are on different devices: the arguments on {sorted(places)}, the model's parameters on"
            f" {sorted(weights)}; move them together with .to(device)"
        )


def _check_mode(model: Any) -> None:
    """Refuse a model that computes something else in training than it does when it predicts."""
    modules = model.named_modules() if isinstance(model, nn.Module) else []
    active = [name for name, module in modules if module.training and _trains(module)]
    if active:
        raise ValueError(
            "the model is in training mode, where it drops entries at random or normalises by the batch"
            f" (in {short(active)}); call model.eval() first"
        )


def _check_initialised(model: Any) -> None:
    """Refuse lazy layers that do not know their width yet: a run on a shadow would not teach the model itself."""
    parameters = model.named_parameters() if isinstance(model, nn.Module) else []
    lazy = [name for name, p in parameters if isinstance(p, nn.parameter.UninitializedParameter)]
    if lazy:
        raise ValueError(f"the model has parameters without a shape ({short(lazy)}); run it once on the data first")


def _trains(module: nn.Module) -> bool:
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return module.p > 0
    return isinstance(module, nn.modules.batchnorm._BatchNorm) and bool(module.track_running_stats)


def faults(model: Any, call: ModelCall) -> list[str]:
    """What is usually wrong with the arguments of a model that raises: looked for only then, since it takes time."""
    found = []
    x, edges, batch = call.x, call.get("edge_index"), call.get("batch")
    try:
        inspect.signature(model.forward if isinstance(model, nn.Module) else model).bind(*call.args, **call.kwargs)
    except TypeError as error:
        unknown = "; keywords that xdegree does not know go to the model" if "unexpected" in str(error) else ""
        found.append(f"{error} (it takes {', '.join(p.name for p in parameters_of(model))}{unknown})")
    except ValueError:
        pass
    if any(type(value) is int for value in call.args):
        found.append("an integer is among them; what is explained is named by index=…, its class by target=…")
    if not isinstance(x, Tensor):
        return found
    weights = {p.dtype for p in model.parameters() if p.is_floating_point()} if isinstance(model, nn.Module) else set()
    if len(weights) == 1 and x.is_floating_point() and x.dtype not in weights:
        [dtype] = weights
        found.append(f"x is {x.dtype}, its weights are {dtype}; convert x: x.to({dtype})")
    if x.dim() < 2 and x.is_floating_point():
        found.append(f"x is {list(x.shape)} instead of [nodes, features]; a single feature is x.unsqueeze(1)")
    elif x.is_floating_point() and (expected := _first_width(model)) is not None and x.shape[-1] != expected[1]:
        found.append(f"x has {x.shape[-1]} features per node, {expected[0]} expects {expected[1]}")
    if isinstance(batch, Tensor) and (batch.is_floating_point() or batch.shape != x.shape[:1]):
        got = f"{batch.dtype} {list(batch.shape)}"
        found.append(f"batch names the graph of each node, integers [{len(x)}] (got {got})")
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
        advice = "it is transposed; pass edge_index.t()" if pairs else "of an adjacency matrix pass .nonzero().t()"
        return [f"edge_index is {list(edges.shape)} instead of [2, E]; {advice}"]
    if edges.is_floating_point() or edges.dtype == torch.bool:
        return [f"edge_index is {edges.dtype}; node ids are integers; pass edge_index.long()"]
    low, high = (int(edges.min()), int(edges.max())) if edges.numel() else (0, -1)
    if low < 0 or high >= nodes:
        return [f"edge_index names nodes {low} to {high}, but x has rows 0 to {nodes - 1}"]
    if isinstance(features, Tensor) and features.shape[:1] != edges.shape[1:]:
        return [f"edge features are {list(features.shape)}, but edge_index has {edges.shape[1]} edges"]
    return []


def _first_width(model: Any) -> tuple[str, int] | None:
    """The model, or its first layer that says so, and how many features it expects."""
    for path, module in model.named_modules() if isinstance(model, nn.Module) else []:
        for name in ("in_channels", "in_features"):
            width = getattr(module, name, None)
            if isinstance(width, int) and width > 0:
                return ("the model" if not path else f"its first layer {path!r}"), width
    return None
