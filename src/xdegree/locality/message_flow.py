"""How a model passes messages, found by watching it on a plain forward pass."""

import weakref
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch_geometric.nn import MessagePassing

from ..model_call.call import ModelCall
from ..model_call.edges import find_edge_index
from ..model_call.shadow_model import replicate, run_plain
from .neighbours import Incoming, incoming


@dataclass(frozen=True, kw_only=True)
class Outline:
    """How a model passes messages."""

    hops: int
    """How often: an upper bound of the depth of the computation graph."""
    flows: frozenset[str]
    output_layer: str
    """Where the last hidden representation can be read, as a probe: the input of the last layer, or its output
    where the last layer passes messages itself."""

    def incoming(self, call: ModelCall) -> Incoming | None:
        """Who hears of whom; None where there are no edges, or messages go in no direction or in both."""
        edge_index = find_edge_index(call)
        if edge_index is None or len(self.flows) != 1:
            return None
        return incoming(edge_index, len(call.x), next(iter(self.flows)))


@dataclass(frozen=True, kw_only=True)
class Trace(Outline):
    """What a plain forward pass showed."""

    output: Any


_OUTLINES: weakref.WeakKeyDictionary[nn.Module, Outline] = weakref.WeakKeyDictionary()


def last_outline(model: Any) -> Outline | None:
    """What the last trace of a model showed. The model may have been changed since, so it is no more than a guess."""
    return _OUTLINES.get(model) if isinstance(model, nn.Module) else None


def trace(model: Any, call: ModelCall) -> Trace:
    """One plain forward pass that counts the message passing on the way."""
    flows: list[str] = []
    layers: list[str] = []
    replica = replicate(model)
    if isinstance(replica, nn.Module):
        inside: list[str] = []
        for path, module in replica.named_modules():
            if isinstance(module, MessagePassing):
                module.register_propagate_forward_pre_hook(lambda module, _: flows.append(module.flow))
            if isinstance(module, MessagePassing) or next(module.parameters(recurse=False), None) is not None:
                _watch(module, path, inside, layers)
    output = run_plain(replica, call)
    last = layers[-1] if layers else ""
    if isinstance(model, nn.Module):
        _OUTLINES[model] = Outline(hops=len(flows), flows=frozenset(flows), output_layer=last)
    return Trace(hops=len(flows), flows=frozenset(flows), output_layer=last, output=output)


def _watch(module: nn.Module, path: str, inside: list[str], layers: list[str]) -> None:
    """Note the outermost layers in the order in which they finish."""

    def enter(_module: nn.Module, _args: Any) -> None:
        inside.append(path)

    def leave(module: nn.Module, _args: Any, _output: Any) -> None:
        inside.pop()
        if not inside:
            layers.append(path if isinstance(module, MessagePassing) else f"{path}:input")

    module.register_forward_pre_hook(enter)
    module.register_forward_hook(leave)
