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
from torch_geometric.explain import Explainer
from torch_geometric.nn import GATConv, GCNConv, SGConv

from xdegree import (
    DegreeExplainer,
    StaleError,
    agglomerate,
    agglomerate_levels,
    check,
    contextual_scores,
    decompose,
    explain,
    interaction,
    pick_subgraph,
    prepare,
    rule,
)
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


class Table(nn.Module):
    """Rows of nodes in a table, and a side output."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.conv = nn.Parameter(torch.zeros(12, 4)), GCNConv(4, 3)

    def forward(self, edge_index: Tensor) -> dict[str, Tensor]:
        h = self.conv(self.rows, edge_index)
        return {"logits": h, "size": h.norm(dim=1)}


@pytest.fixture
def table() -> Any:
    model = ready(Table())
    with torch.no_grad():
        model.rows.copy_(X)
    return model


ASKED = {"index": 5, "output": "logits", "start": "rows"}


def test_all_questions_take_start_and_output(table: Table) -> None:
    own = {"index": 5, "seed": 0, "progress": False}
    expected = agglomerate(table.conv, X, EDGES, **own)
    found = agglomerate(table, EDGES, output="logits", start="rows", **own)
    assert found.levels == expected.levels
    assert found.levels == prepare(table, EDGES, start="rows").agglomerate(output="logits", **own).levels
    scores = contextual_scores(table, EDGES, groups=[[4], [5, 6]], **ASKED)
    assert torch.allclose(scores, contextual_scores(table.conv, X, EDGES, groups=[[4], [5, 6]], index=5))
    both = interaction(table, EDGES, a=[4], b=[5], **ASKED)
    assert both == pytest.approx(interaction(table.conv, X, EDGES, a=[4], b=[5], index=5))
    assert next(agglomerate_levels(table, EDGES, **ASKED)) == next(agglomerate_levels(table.conv, X, EDGES, index=5))
    config = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    named = DegreeExplainer(output="logits", start="net.rows")
    masks = [
        Explainer(model, algorithm, "phenomenon", node_mask_type="object", model_config=config)(
            x, EDGES, index=5, target=torch.full((12,), 2)
        ).node_mask
        for model, algorithm, x in ((Of(table), named, None), (table.conv, DegreeExplainer(), X))
    ]
    assert torch.allclose(*masks)


class Of(nn.Module):
    """PyG's explainer gives every model ``x`` and ``edge_index``."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: None, edge_index: Tensor) -> dict[str, Tensor]:
        return self.net(edge_index)


@pytest.mark.parametrize("without", ["features", "mean"])
def test_fidelity_of_tables_is_that_of_features(table: Table, without: Any) -> None:
    how = {"index": 5, "size": 3, "objective": "fidelity", "without": without, "passes": 100, "progress": False}
    found = pick_subgraph(table, EDGES, output="logits", start="rows", **how)
    expected = pick_subgraph(table.conv, X, EDGES, **how)
    assert found.nodes == expected.nodes
    assert (found.fidelity_plus, found.fidelity_minus) == pytest.approx(
        (expected.fidelity_plus, expected.fidelity_minus)
    )
    assert found.fidelity_plus


def test_a_model_that_does_not_work_without_some_nodes_says_what_does(table: Table) -> None:
    def model(edge_index: Tensor) -> Tensor:
        return table.conv(table.rows * torch.ones(12, 1), edge_index)

    how = {"index": 5, "start": table.rows, "of": "edge", "size": 2, "passes": 60, "progress": False}
    with pytest.raises(ValueError, match=r'does not work without some of its nodes.*without="features"'):
        pick_subgraph(model, EDGES, objective="fidelity", **how)
    assert pick_subgraph(model, EDGES, objective="fidelity", without="features", **how).fidelity_plus


def test_a_vector_of_links_is_found_or_named(table: Table) -> None:
    pairs = torch.tensor([[0, 3, 9, 5], [2, 6, 11, 1]])

    def given(x: Tensor, edges: Tensor, links: Tensor) -> Tensor:
        z = table.conv(x, edges)
        return (z[links[0]] * z[links[1]]).sum(-1)

    found = explain(given, X, EDGES, pairs, index=1)
    assert found.level == "link"
    with pytest.raises(ValueError, match="say so: level='link'"):
        explain(lambda x, edges: given(x, edges, pairs), X, EDGES, index=1)
    named = explain(lambda x, edges: given(x, edges, pairs), X, EDGES, index=1, level="link")
    assert torch.allclose(named.node_scores, found.node_scores, rtol=1e-12)


def test_labels_are_no_batch(table: Table) -> None:
    def model(x: Tensor, edge_index: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        out = table.conv(x, edge_index)
        return -out.log_softmax(-1).gather(1, labels.unsqueeze(1)).mean(), out

    labels = torch.arange(12) * 5 % 3
    assert explain(model, X, EDGES, labels, output=0).level == "graph"
    assert explain(model, X, EDGES, labels, output=1, index=5).level == "node"
