# ruff: noqa: PLW0108  (functions that only call a module are what this is about)
"""Functions, methods, objects and hooks around modules: explained as the modules are, and left as they were."""

import functools
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from helpers import EDGES, features, ready
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SGConv

from xdegree import StaleError, check, decompose, explain, prepare, rule
from xdegree.engine.registry import unregister
from xdegree.model_call.callables import Around, as_module

X = features()


class Net(nn.Module):
    """Keeps what it can keep: a cache, an attribute, what hooks saw."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = SGConv(4, 6, K=2, cached=True), GATConv(6, 3)
        self.kept: dict[str, Tensor] = {}
        self.last.register_forward_hook(lambda _module, _args, out: self.kept.update(last=out.detach()))
        self.hidden: Any = None

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.hidden = self.first(x, edge_index).relu()
        return self.last(self.hidden, edge_index)

    def predict(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self(x, edge_index)


class Pipeline:
    """No module itself."""

    def __init__(self, net: nn.Module) -> None:
        self.parts = {"net": net}

    def __call__(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.parts["net"](x, edge_index)

    def run(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self(x, edge_index)


GLOBAL = SimpleNamespace(net=None)


def of_a_global(x: Tensor, edge_index: Tensor) -> Tensor:
    return GLOBAL.net(x, edge_index)


def passed_on(function: Any) -> Any:
    @functools.wraps(function)
    def outer(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return outer


WAYS = {
    "module": lambda net: net,
    "method": lambda net: net.predict,
    "function": lambda net: lambda x, edge_index: net(x, edge_index),
    "function in a function": lambda net: passed_on(lambda x, edge_index: net(x, edge_index)),
    "partial": lambda net: functools.partial(lambda model, x, edge_index: model(x, edge_index), net),
    "list": lambda net: functools.partial(lambda nets, x, edge_index: nets[0](x, edge_index), [net]),
    "object": Pipeline,
    "method of an object": lambda net: Pipeline(net).run,
    "global": lambda net: setattr(GLOBAL, "net", net) or of_a_global,
    "compiled": lambda net: torch.compile(lambda x, edge_index: net(x, edge_index), backend="eager"),
}


@pytest.fixture
def net() -> Any:
    yield ready(Net())
    GLOBAL.net = None


@pytest.mark.parametrize("way", WAYS)
def test_whatever_is_around_a_module_gives_its_answer_and_leaves_no_trace(way: str, net: Net) -> None:
    expected, of_edges = explain(net, X, EDGES, index=5), explain(net, X, EDGES, index=5, of="edge")
    model = WAYS[way](net)
    found = explain(model, X, EDGES, index=5)
    assert torch.allclose(found.node_scores, expected.node_scores, rtol=1e-12)
    assert torch.allclose(explain(model, X, EDGES, index=5, of="edge").edge_scores, of_edges.edge_scores, rtol=1e-12)
    assert {row.op for row in check(model, X, EDGES).rows} == {row.op for row in check(net, X, EDGES).rows}
    assert (net.hidden, net.kept, net.first._cached_x) == (None, {}, None)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "compiled"])
def test_what_is_said_of_modules_is_said_of_functions_around_them(way: str, net: Net) -> None:
    model = WAYS[way](net)
    prepared = prepare(model, X, EDGES)
    prepared.explain(index=2)
    with torch.no_grad():
        net.last.bias.add_(1)
    with pytest.raises(StaleError, match="bias"):
        prepared.explain(index=2)
    with torch.no_grad():
        net(X * 2, EDGES)  # a cache of other features
    with pytest.raises(ValueError, match="keep what they computed on other arguments"):
        explain(model, X, EDGES, index=2)
    net.first._cached_x = None
    net.add_module("drop", nn.Dropout(0.5))
    net.train()
    with pytest.raises(ValueError, match=r"model\.eval\(\)"):
        explain(model, X, EDGES, index=2)


def test_rules_of_modules_hold_inside_of_functions() -> None:
    class Half(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x / 2

    half = Half()

    @rule(Half)
    def nothing(call: Any, x: Any) -> Tensor:
        return torch.zeros_like(x.target)

    try:
        for model in (half, lambda x: half(x)):
            assert not decompose(model, X, groups=[[0]]).target.any()
    finally:
        unregister(Half)


def test_functions_without_modules_stay_what_they_are() -> None:
    assert as_module(torch.relu) is torch.relu
    function = lambda x, edge_index: x.relu() @ X.t()
    assert as_module(function) is function
    module = ready(GCNConv(4, 3))
    around = as_module(lambda x, edge_index: module(x, edge_index))
    assert isinstance(around, Around)
    assert dict(around.named_children()) == {"module": module}


def test_modules_of_a_function_are_named_as_it_names_them() -> None:
    emb, conv = ready(nn.Embedding(12, 4)), ready(GCNConv(4, 3))

    def model(edge_index: Tensor) -> Tensor:
        return conv(emb.weight, edge_index)

    for start in (None, "emb", "emb.weight", "conv:input", emb):
        found = explain(model, EDGES, index=5, start=start)
        expected = explain(conv, emb.weight.detach(), EDGES, index=5)
        assert torch.allclose(found.node_scores, expected.node_scores, rtol=1e-12)
    with pytest.raises(ValueError, match="no part of the model"):
        explain(model, EDGES, index=5, start=nn.Embedding(12, 4))


def test_logs_outside_of_the_model_go_on_and_tensors_are_shared() -> None:
    conv, log, table = ready(GCNConv(4, 3)), list[str](), features()
    conv.register_forward_hook(lambda _module, _args, out: log.append(type(out).__name__))

    def model(edge_index: Tensor) -> Tensor:
        return conv(table, edge_index)

    found = explain(model, EDGES, index=5, start=table)
    assert "Portions" in log
    assert torch.allclose(found.node_scores, explain(conv, table, EDGES, index=5).node_scores, rtol=1e-12)


class Open(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(4, 3)

    def forward(self, **given: Any) -> Tensor:
        return self.conv(given["x"], given["edge_index"])


class HalfOpen(Open):
    def forward(self, x: Tensor, **given: Any) -> Tensor:
        return self.conv(x, given["edge_index"])


class HandsOn(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.anything = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.anything(*args, **kwargs)


@pytest.mark.parametrize(
    "build",
    [
        lambda: ready(Open()),
        lambda: ready(HalfOpen()),
        lambda: HandsOn(ready(GCNConv(4, 3))),
        lambda: HandsOn(HandsOn(ready(HalfOpen()))),
        lambda: torch.optim.swa_utils.AveragedModel(ready(GCNConv(4, 3))),
        lambda: passed_on(ready(GCNConv(4, 3)).forward),
    ],
)
def test_data_for_models_that_take_whatever_they_are_given(build: Any) -> None:
    model = build()
    data = Data(x=X, edge_index=EDGES, y=torch.arange(12), train_mask=torch.arange(12) < 6)
    found = explain(model, data, index=5)
    assert torch.equal(found.node_scores, explain(model, x=X, edge_index=EDGES, index=5).node_scores)
