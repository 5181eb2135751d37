"""Everything stays on the device of the user's tensors; on a pretended one everywhere, on CUDA where there is one."""

from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest
import torch
from helpers import CONVS, EDGES, PAIR_BATCH, PAIR_EDGES, as_large, features, net, ready
from pretend_device import DeviceMixError, pretend_device
from torch import Tensor, nn
from torch_geometric.explain import Explainer, ModelConfig

from xdegree import (
    DegreeExplainer,
    Options,
    agglomerate,
    agglomerate_levels,
    check,
    contextual_scores,
    decompose,
    explain,
    interaction,
    pick_subgraph,
    prepare,
)
from xdegree.baselines import METHODS, explain_with, instance
from xdegree.models import GAT, GCN
from xdegree.subgraphs.pick import Objective

X = features()
SOME = [[0], [3, 4], [], list(range(12))]
Move = Callable[[Any], Any]


@pytest.fixture(params=["pretended", "cuda"] if torch.cuda.is_available() else ["pretended"])
def elsewhere(request: pytest.FixtureRequest) -> Iterator[Move]:
    """Moves tensors and models to another device, where they must not meet tensors of the CPU."""
    if request.param == "cuda":
        yield lambda value: value.to("cuda")
        return
    with pretend_device() as device:
        yield device.moved


@pytest.fixture(params=["whole", "cut"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """On the user's graph, and on what is cut out of it."""
    if request.param == "cut":
        as_large(monkeypatch)
    return request.param


def same(got: Tensor, expected: Tensor) -> None:
    """Elsewhere, and up to rounding what the CPU gives."""
    assert got.device.type != "cpu"
    torch.testing.assert_close(got.cpu(), expected, rtol=1e-9, atol=1e-9)


def test_the_pretended_device_refuses_a_mix() -> None:
    with pretend_device() as device:
        there = device.moved(X)
        assert there.device != X.device
        assert (there * 2).view(-1).device == there.new_zeros(2).device == there.device
        assert torch.arange(3, device=there.device).device == there.device
        assert there.cpu().device == X.device
        for mix in (lambda: there + X, lambda: torch.cat([X, there]), lambda: there.index_select(0, torch.tensor([1]))):
            with pytest.raises(DeviceMixError):
                mix()
    assert X.device.type == "cpu"


@pytest.mark.parametrize(
    "options", [Options(), Options(activation="both-orders", ties="first"), Options(bias="background")]
)
@pytest.mark.parametrize("kind", CONVS)
def test_decompose(kind, options, elsewhere):
    expected = decompose(net(kind), X, EDGES, groups=SOME, options=options)
    d = decompose(elsewhere(net(kind)), elsewhere(X), elsewhere(EDGES), groups=SOME, options=options)
    same(d.total, expected.total)
    same(d.target, expected.target)


@pytest.mark.parametrize("kind", CONVS)
def test_sparse_targets(kind, elsewhere, monkeypatch):
    monkeypatch.setattr("xdegree.engine.masked_rows.THIN", torch.inf)
    monkeypatch.setattr("xdegree.engine.portions.DENSE_ABOVE", torch.inf)
    expected = decompose(net(kind), X, EDGES, groups=SOME)
    d = decompose(elsewhere(net(kind)), elsewhere(X), elsewhere(EDGES), groups=SOME)
    same(d.target, expected.target)


@pytest.mark.parametrize("kind", CONVS)
def test_explain(kind, elsewhere, way):
    there, x, edge_index = elsewhere(net(kind)), elsewhere(X), elsewhere(EDGES)
    expected = explain(net(kind), X, EDGES, index="all")
    same(explain(there, x, edge_index, index=5).node_scores, expected[5].node_scores)
    for e in (*explain(there, x, edge_index, index=[3, 7]), *explain(there, x, edge_index, index="all")):
        same(e.node_scores, expected[e.index].node_scores)
        assert e.nodes.device == x.device


@pytest.mark.parametrize("reading", ["contribution", "probability", "strength"])
@pytest.mark.parametrize("edge_scores", ["pair", "mean"])
def test_readings(reading, edge_scores, elsewhere, way):
    arguments = {"index": 5, "reading": reading, "edge_scores": edge_scores}
    expected = explain(net(), X, EDGES, **arguments)
    e = explain(elsewhere(net()), elsewhere(X), elsewhere(EDGES), **arguments)
    same(e.node_scores, expected.node_scores)
    same(e.edge_scores, expected.edge_scores)


@pytest.mark.parametrize("of", ["edge", "feature"])
def test_edges_and_features(of, elsewhere, way):
    expected = explain(net(), X, EDGES, index=5, of=of)
    same(explain(elsewhere(net()), elsewhere(X), elsewhere(EDGES), index=5, of=of).scores, expected.scores)


class Weighted(nn.Module):
    """A model with edge weights."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        for conv in self.inner.convs:
            x = conv(x, edge_index, edge_weight).relu()
        return self.inner.lin2(x)


def test_edge_features(elsewhere, way):
    weight = features(EDGES.shape[1], 1).abs().flatten()
    given = (X, EDGES, weight)
    expected = explain(Weighted().eval(), *given, index=5, of="edge_feature")
    got = explain(elsewhere(Weighted().eval()), *map(elsewhere, given), index=5, of="edge_feature")
    same(got.scores, expected.scores)


@pytest.mark.parametrize("pool", ["max", "mean"])
def test_graphs(pool, elsewhere):
    inputs = (X, PAIR_EDGES, PAIR_BATCH)
    expected = explain(net("gin", "graph", pool=pool), *inputs, index="all")
    found = explain(elsewhere(net("gin", "graph", pool=pool)), *map(elsewhere, inputs), index="all")
    for e, other in zip(found, expected, strict=True):
        same(e.node_scores, other.node_scores)


def test_sampling(elsewhere, way):
    arguments = {"index": 3, "num_neighbors": 2, "seed": 4}
    expected = explain(net("sage"), X, EDGES, **arguments)
    same(explain(elsewhere(net("sage")), elsewhere(X), elsewhere(EDGES), **arguments).node_scores, expected.node_scores)


def test_prepared(elsewhere, way):
    prepared = prepare(elsewhere(net()), elsewhere(X), elsewhere(EDGES))
    for index in (5, 7):
        same(prepared.explain(index=index).node_scores, explain(net(), X, EDGES, index=index).node_scores)


def groups_of(tree: Any) -> list[Any]:
    return [[(set(nodes), round(score, 9)) for nodes, score in level] for level in tree.levels]


def test_trees(elsewhere, way):
    there = elsewhere(net()), elsewhere(X), elsewhere(EDGES)
    arguments = {"index": 5, "q": 0.6, "seed": 0}
    assert check(*there).ok
    assert groups_of(agglomerate(*there, **arguments)) == groups_of(agglomerate(net(), X, EDGES, **arguments))
    assert len(list(agglomerate_levels(*there, **arguments))) > 1


@pytest.mark.parametrize("level", ["node", "graph"])
def test_contexts(level, elsewhere, way):
    inputs = (X, EDGES) if level == "node" else (X, PAIR_EDGES, PAIR_BATCH)
    model = lambda: net("gcn", level)
    there = (elsewhere(model()), *map(elsewhere, inputs))
    groups, arguments = [[5], [4, 6]], {"index": 0 if level == "graph" else 5, "seed": 1}
    groups = [[1], [2, 3]] if level == "graph" else groups
    expected = contextual_scores(model(), *inputs, groups=groups, **arguments)
    torch.testing.assert_close(
        contextual_scores(*there, groups=groups, **arguments).cpu(), expected, rtol=1e-9, atol=1e-9
    )


def test_interactions(elsewhere, way):
    there = elsewhere(net()), elsewhere(X), elsewhere(EDGES)
    expected = interaction(net(), X, EDGES, a=[4], b=[6], index=5)
    assert float(interaction(*there, a=[4], b=[6], index=5)) == pytest.approx(float(expected))


@pytest.mark.parametrize("objective", get_args(Objective))
def test_subgraphs(objective, elsewhere, way):
    arguments = {"index": 5, "size": 3, "objective": objective}
    there = elsewhere(net()), elsewhere(X), elsewhere(EDGES)
    assert set(pick_subgraph(*there, **arguments).nodes) == set(pick_subgraph(net(), X, EDGES, **arguments).nodes)


@pytest.mark.parametrize("edge_mask_type", [None, "object"])
def test_the_interface_of_pyg(edge_mask_type, elsewhere, way):
    config = ModelConfig(mode="multiclass_classification", task_level="node", return_type="raw")

    def explained(model: nn.Module, x: Tensor, edge_index: Tensor) -> Any:
        explainer = Explainer(
            model,
            DegreeExplainer(),
            explanation_type="model",
            model_config=config,
            node_mask_type="object",
            edge_mask_type=edge_mask_type,
        )
        return explainer(x, edge_index, index=5)

    got, expected = explained(elsewhere(net()), elsewhere(X), elsewhere(EDGES)), explained(net(), X, EDGES)
    same(got.node_mask, expected.node_mask)
    if edge_mask_type:
        same(got.edge_mask, expected.edge_mask)


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"PGExplainer"}))
def test_other_methods(name, elsewhere, way):
    """Their numbers may be random; that they run to the end on one device is what is asked."""
    model = ready((GAT if name == "attention" else GCN)(4, 3, hidden=6))
    few = {"GNNExplainer": {"epochs": 3}, "integrated gradients": {"steps": 3}}.get(name, {})
    scores = explain_with(METHODS[name](**few), elsewhere(model), elsewhere(X), elsewhere(EDGES), index=5)
    assert len(scores.node) == len(X)


def test_instances(elsewhere, way):
    found = instance(elsewhere(net()), elsewhere(X), elsewhere(EDGES), index=5)
    assert found.local_field.device == found.x.device != X.device
    same(found.outputs(torch.stack([found.x, 2 * found.x]))[0], net()(X, EDGES)[5].detach())
    kept = torch.ones(2, len(found.x), dtype=torch.bool, device=found.x.device)
    same(found.probabilities(kept), net()(X, EDGES)[5].softmax(-1)[found.target].expand(2).detach())
