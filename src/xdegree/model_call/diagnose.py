"""What is wrong with a call, looked for when the model raises: the usual mistakes, each with what to do."""

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from .call import ModelCall, parameters_of, unwrapped


def faults(model: Any, call: ModelCall, said: str) -> list[str]:
    """What is usually wrong with the arguments of a model that raises: looked for only then, since it takes time."""
    found = []
    x, edges, batch = call.x, call.get("edge_index"), call.get("batch")
    try:
        own = unwrapped(model)
        inspect.signature(own.forward if isinstance(own, nn.Module) else own).bind(*call.args, **call.kwargs)
    except TypeError as error:
        unknown = "; keywords that xdegree does not know go to the model" if "unexpected" in str(error) else ""
        found.append(f"{error} (it takes {', '.join(p.name for p in parameters_of(model))}{unknown})")
    except ValueError:
        pass
    if any(type(value) is int for value in call.args):
        found.append("an integer is among them; what is explained is named by index=…, its class by target=…")
    if not isinstance(x, Tensor) or not x.dim():
        return found
    weights = {p.dtype for p in model.parameters() if p.is_floating_point()} if isinstance(model, nn.Module) else set()
    if len(weights) == 1 and x.is_floating_point() and x.dtype not in weights:
        [dtype] = weights
        found.append(f"x is {x.dtype}, its weights are {dtype}; convert x: x.to({dtype})")
    if x.dim() < 2 and x.is_floating_point():
        found.append(f"x is {list(x.shape)} instead of [nodes, features]; a single feature is x.unsqueeze(1)")
    elif "shapes cannot be multiplied" in said:
        layer, width = _first_width(model) or ("", x.shape[-1])
        if width != x.shape[-1]:
            found.append(f"x has {x.shape[-1]} features per node, {layer} expects {width}")
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
    if edges.dtype not in (torch.long, torch.int32):
        return [f"edge_index is {edges.dtype}; node ids are integers of 64 or 32 bits; pass edge_index.long()"]
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
