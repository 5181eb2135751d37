"""Explanations of one prediction: where they look, what they read, and what the result can do."""

import networkx
import numpy as np
import pandas
import pytest
import torch
from helpers import CONVS, EDGES, PAIR_BATCH, PAIR_EDGES, as_large, assert_close, features, net, ready, singles
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GraphNorm,
    PairNorm,
    SAGEConv,
    SimpleConv,
    global_max_pool,
    global_mean_pool,
)

from xdegree import Explanation, Options, decompose, explain

X = features()


def directly(model, *args, index=0, target=None, **kwargs) -> torch.Tensor:
    """What `explain` must give: single nodes as groups on the whole graph, one entry of the output."""
    d = decompose(model, *args, groups=singles(len(args[0])), **kwargs)
    total = d.total.reshape(len(d.total), -1)
    target = int(total[index].argmax()) if target is None else target
    return d.target.reshape(len(args[0]), *total.shape)[:, index, target]


def reach(edge_index, index, hops, nodes=12) -> set[int]:
    """The nodes whose messages arrive, found by walking the edges backwards."""
    found = {index}
    for _ in range(hops):
        found |= {u for u, v in edge_index.t().tolist() if v in found}
    return found


@pytest.mark.parametrize("kind", CONVS)
@pytest.mark.parametrize("index", [0, 5, 11])
def test_a_node_equals_the_decomposition_of_the_whole_graph(kind, index):
    model = net(kind)
    e = explain(model, X, EDGES, index=index)
    assert_close(e.node_scores, directly(model, X, EDGES, index=index))
    inside = reach(EDGES, index, 2)
    assert set(e.nodes.tolist()) == inside
    outside = [node for node in range(12) if node not in inside]
    assert outside
    assert not e.node_scores[outside].any()
    assert torch.equal(e.prediction, model(X, EDGES)[index])
    assert e.target == int(e.prediction.argmax())
    assert (e.index, e.reading, e.options) == (index, "contribution", Options())
    assert e.node_scores.dtype == torch.float64


@pytest.mark.parametrize("target", [0, 1, 2, torch.tensor(1)])
def test_a_chosen_class(target):
    model = net()
    e = explain(model, X, EDGES, index=torch.tensor(5), target=target)
    assert_close(e.node_scores, directly(model, X, EDGES, index=5, target=int(target)))
    assert e.target == int(target)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("kind", ["gcn", "mean pool"])
@pytest.mark.parametrize("classes", [[2, 0, 1], torch.tensor([2, 0, 1]), np.array([2, 0, 1])])
def test_a_class_for_each_row(large, kind, classes, monkeypatch):
    if large:
        as_large(monkeypatch)
    monkeypatch.setattr("xdegree.attribution.explain.AT_ONCE", 2)
    model = net() if kind == "gcn" else ready(Mixing("mean"))
    rows = [5, 8, 5]  # the same node may be asked about twice
    found = explain(model, X, EDGES, index=rows, target=classes)
    assert [(e.index, e.target) for e in found] == [(5, 2), (8, 0), (5, 1)]
    for e in found:
        assert_close(e.node_scores, directly(model, X, EDGES, index=e.index, target=e.target))
    for e, alone in zip(explain(model, X, EDGES, index=rows, target=classes, of="edge"), found, strict=True):
        assert e.target == alone.target
        expected = explain(model, X, EDGES, index=e.index, target=e.target, of="edge")
        assert_close(e.edge_scores, expected.edge_scores)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(("index", "many"), [([3, 4, 5], 3), ("all", 12), (3, 1)])
def test_as_many_classes_as_rows(large, index, many, monkeypatch):
    if large:
        as_large(monkeypatch)
    with pytest.raises(ValueError, match=f"target names 2 classes, but {many} predictions are explained"):
        explain(net(), X, EDGES, index=index, target=[0, 1])
    with pytest.raises(ValueError, match="target 7 is out of range"):
        explain(net(), X, EDGES, index=index, target=[7] * many)


def test_options_and_memory_reach_the_engine():
    model, options = net(), Options(bias="background", activation="both-orders")
    e = explain(model, X, EDGES, index=5, options=options, memory=1)
    assert_close(e.node_scores, directly(model, X, EDGES, index=5, options=options))
    assert e.options == options


class Mixing(nn.Module):
    """Nodes hear of each other without messages."""

    def __init__(self, how: str, scale: float = 1.0):
        super().__init__()
        self.conv, self.how, self.scale = GCNConv(4, 4), how, scale
        self.norm = {"graph_norm": GraphNorm, "pair_norm": lambda _: PairNorm()}.get(how, lambda _: nn.Identity())(4)

    def forward(self, x, edge_index):
        h = self.conv(x, edge_index)
        if self.how == "mean":
            h = h + h.mean(0)
        elif self.how == "pool":
            h = h + global_mean_pool(h, None)
        elif self.how == "max":
            h = h + global_max_pool(h, None)
        elif self.how == "relu_max":
            h = h + global_max_pool(x.relu(), None)
        elif self.how == "first":
            h = h + h[:1]
        elif self.how == "matrix":
            h = torch.softmax(x.new_ones(len(x), len(x)), -1) @ h
        return self.norm(h) * self.scale


@pytest.mark.parametrize("how", ["mean", "pool", "max", "relu_max", "first", "matrix", "graph_norm", "pair_norm"])
@pytest.mark.parametrize("index", [0, 11])
def test_models_whose_receptive_field_is_the_whole_graph(how, index):
    model = ready(Mixing(how))
    e = explain(model, X, EDGES, index=index)
    assert_close(e.node_scores, directly(model, X, EDGES, index=index))


@pytest.mark.parametrize("how", ["max", "relu_max"])
def test_a_global_maximum_of_constant_features(how):
    """Equal features everywhere: the maximum is shared by all nodes, far ones too."""
    model, ones = ready(Mixing(how)), torch.ones(12, 4, dtype=torch.float64)
    assert_close(explain(model, ones, EDGES, index=0).node_scores, directly(model, ones, EDGES, index=0))


@pytest.mark.parametrize(("dtype", "scale"), [(torch.float64, 1e-16), (torch.float32, 1e-7)])
def test_small_outputs_do_not_hide_that_nodes_mix(dtype, scale):
    model, x = ready(Mixing("mean", scale), dtype=dtype), features(dtype=dtype)
    e = explain(model, x, EDGES, index=0)
    assert_close(e.node_scores / scale, directly(model, x, EDGES, index=0) / scale, atol=1e-4)


class Directed(nn.Module):
    def __init__(self, flow="source_to_target", conv=SAGEConv):
        super().__init__()
        self.first, self.second = conv(4, 4, flow=flow), conv(4, 3, flow=flow)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


@pytest.mark.parametrize("conv", [GCNConv, SAGEConv, GATConv])
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_directed_graphs_and_flows(conv, flow):
    model = ready(Directed(flow, conv))
    path = torch.tensor([list(range(11)), list(range(1, 12))])
    e = explain(model, X, path, index=6)
    assert_close(e.node_scores, directly(model, X, path, index=6))
    assert set(e.nodes.tolist()) == ({4, 5, 6} if flow == "source_to_target" else {6, 7, 8})


def test_both_flows_in_one_model():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.up = SAGEConv(4, 4), SAGEConv(4, 3, flow="target_to_source")

        def forward(self, x, edge_index):
            return self.up(self.down(x, edge_index).relu(), edge_index)

    model, path = ready(Both()), torch.tensor([list(range(11)), list(range(1, 12))])
    assert_close(explain(model, X, path, index=6).node_scores, directly(model, X, path, index=6))


def test_reversed_edges_inside_the_model():
    class Backwards(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = SAGEConv(4, 3)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index.flip(0))

    model, path = ready(Backwards()), torch.tensor([list(range(11)), list(range(1, 12))])
    assert_close(explain(model, X, path, index=6).node_scores, directly(model, X, path, index=6))


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(4, 4), GCNConv(4, 3)

    def forward(self, x, edge_index, edge_weight=None, shift=None):
        x = self.conv2(self.conv1(x, edge_index, edge_weight).relu(), edge_index, edge_weight)
        return x if shift is None else x + shift


@pytest.mark.parametrize("positional", [True, False])
def test_edge_weights_and_node_arguments(positional):
    model = ready(Weighted())
    weight = torch.rand(EDGES.shape[1], generator=torch.Generator().manual_seed(0)).double()
    shift = features(12, 3, seed=9)
    args, kwargs = ((weight, shift), {}) if positional else ((), {"edge_weight": weight, "shift": shift})
    e = explain(model, X, EDGES, *args, index=5, **kwargs)
    assert_close(e.node_scores, directly(model, X, EDGES, *args, index=5, **kwargs))


def test_as_many_edges_as_nodes():
    ring = torch.tensor([list(range(12)), [*range(1, 12), 0]])
    model = ready(Weighted())
    weight = torch.rand(12, generator=torch.Generator().manual_seed(0)).double()
    e = explain(model, X, ring, weight, index=5)
    assert_close(e.node_scores, directly(model, X, ring, weight, index=5))
    assert set(e.nodes.tolist()) == {3, 4, 5}


def test_of_a_large_graph_only_the_computation_graph_is_worked_on(monkeypatch):
    sizes = []
    as_large(monkeypatch)

    class Watched(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GCNConv(4, 3)

        def forward(self, x, edge_index):
            sizes.append((type(x).__name__, len(x)))
            return self.conv(x, edge_index)

    x, path = features(60), torch.tensor([list(range(59)), list(range(1, 60))])
    model, edge_index = ready(Watched()), torch.cat([path, path.flip(0)], 1)
    e = explain(model, x, edge_index, index=30)
    assert [size for kind, size in sizes if kind == "Portions"] == [5]
    assert [size for kind, size in sizes if kind == "Tensor"] == [60, 5]  # the plain pass, and a hop more for degrees
    assert_close(e.node_scores, directly(model, x, edge_index, index=30))
    assert_close(e.prediction, model(x, edge_index)[30])


@st.composite
def odd_graphs(draw):
    """Graphs of one to six nodes with anything between no and many edges: loops, doubles, single nodes, one way."""
    nodes = draw(st.integers(1, 6))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=10))
    index, seed = draw(node), draw(st.integers(0, 99))
    return features(nodes, 4, seed), torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t(), index, seed


@pytest.mark.parametrize("kind", CONVS)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(graph=odd_graphs())
def test_odd_graphs(kind, graph):
    x, edge_index, index, seed = graph
    model = net(kind, seed=seed)
    e = explain(model, x, edge_index, index=index, edge_scores="pair")
    assert_close(e.node_scores, directly(model, x, edge_index, index=index))
    assert e.node_scores.isfinite().all()
    assert e.edge_scores.shape == edge_index.shape[1:]
    inside = reach(edge_index, index, 2)
    assert not e.node_scores[[node for node in range(len(x)) if node not in inside]].any()
    pairs = [sorted({u, v}) for u, v in edge_index.t().tolist()]
    expected = decompose(model, x, edge_index, groups=[*pairs, []]).target[:-1, index, e.target]
    whole = torch.tensor([set(pair) <= inside for pair in pairs], dtype=torch.bool)
    assert_close(e.edge_scores, torch.where(whole, expected, 0.0))


@pytest.mark.parametrize("kind", CONVS)
@pytest.mark.parametrize("level", ["node", "graph"])
def test_one_node_without_edges(kind, level):
    model, x, edge_index = net(kind, level), features(1), torch.zeros(2, 0, dtype=torch.long)
    e = explain(model, x, edge_index, edge_scores="mean")
    assert_close(e.node_scores, directly(model, x, edge_index))
    assert (e.index, e.edge_scores.shape) == (0, (0,))


@pytest.mark.parametrize("kind", CONVS)
@pytest.mark.parametrize("pool", ["max", "mean"])
def test_a_graph_without_batch(kind, pool):
    model = net(kind, "graph", pool=pool)
    e = explain(model, X, EDGES)
    assert_close(e.node_scores, directly(model, X, EDGES))
    assert e.nodes.tolist() == list(range(12))
    assert_close(explain(model, X, EDGES, index=0).node_scores, e.node_scores)


@pytest.mark.parametrize("given_as", ["positional", "keyword", "batch"])
@pytest.mark.parametrize("index", [0, 1])
def test_a_graph_in_a_batch(given_as, index):
    model = net("gat", "graph")
    if given_as == "positional":
        e = explain(model, X, PAIR_EDGES, PAIR_BATCH, index=index)
    elif given_as == "keyword":
        e = explain(model, X, PAIR_EDGES, batch=PAIR_BATCH, index=index)
    else:
        parts = [Data(x=X[:5], edge_index=PAIR_EDGES[:, (PAIR_EDGES < 5).all(0)])]
        parts += [Data(x=X[5:], edge_index=PAIR_EDGES[:, (PAIR_EDGES >= 5).all(0)] - 5)]
        e = explain(model, Batch.from_data_list(parts), index=index)
    assert_close(e.node_scores, directly(model, X, PAIR_EDGES, PAIR_BATCH, index=index))
    inside = PAIR_BATCH == index
    assert e.nodes.tolist() == inside.nonzero().flatten().tolist()
    assert not e.node_scores[~inside].any()


def test_as_many_graphs_as_nodes():
    model, batch = net(level="graph"), torch.arange(12)
    empty = torch.zeros(2, 0, dtype=torch.long)
    e = explain(model, X, empty, batch, index=7)
    assert_close(e.node_scores, directly(model, X, empty, batch, index=7))
    assert e.node_scores.nonzero().flatten().tolist() == [7]


@pytest.mark.parametrize("shape", ["[C]", "[N]", "[N, 1]", "[]"])
def test_outputs_of_other_shapes(shape):
    inner = net(classes=1)

    def model(x, edge_index):
        out = inner(x, edge_index)
        return {
            "[C]": lambda: out[:3, 0] * 2,
            "[N]": lambda: out[:, 0],
            "[N, 1]": lambda: out,
            "[]": out.sum,
        }[shape]()

    full = decompose(inner, X, EDGES, groups=singles()).target[..., 0]
    e = explain(model, X, EDGES, index=5 if "N" in shape else None)
    expected = {"[C]": lambda: full[:, e.target] * 2, "[]": lambda: full.sum(1)}.get(shape, lambda: full[:, 5])()
    assert_close(e.node_scores, expected)


def test_the_probability_reading_is_the_papers_softmax_rule():
    model = net()
    paper = Options.paper()
    d = decompose(model, X, EDGES, groups=singles(), options=paper)
    e = explain(model, X, EDGES, index=5, reading="probability", options=paper)
    expected = (d.total[5].softmax(-1) * (d.target[:, 5] / d.total[5]).clamp(0, 1))[:, e.target]
    assert_close(e.node_scores, expected)
    assert e.reading == "probability"
    inside = (d.target[:, 5, e.target] / d.total[5, e.target]).clamp(0, 1).diff().abs() > 1e-9
    softened = decompose(
        lambda x, edge_index: model(x, edge_index).softmax(-1), X, EDGES, groups=singles(), options=paper
    )
    by_rule = softened.target[:, 5, e.target]
    assert inside.any()
    assert torch.equal(e.node_scores.diff()[inside] > 0, by_rule.diff()[inside] > 0)  # the same order


@pytest.mark.parametrize("shape", ["[N, 1]", "[N]"])
def test_the_probability_of_a_single_output_is_that_of_a_sigmoid(shape):
    inner = net(classes=1)
    model = inner if shape == "[N, 1]" else lambda x, edge_index: inner(x, edge_index)[:, 0]
    d = decompose(inner, X, EDGES, groups=singles())
    e = explain(model, X, EDGES, index=5, reading="probability")
    expected = d.total[5, 0].sigmoid() * (d.target[:, 5, 0] / d.total[5, 0]).clamp(0, 1)
    assert_close(e.node_scores, expected)


@pytest.mark.parametrize("level", ["node", "graph"])
def test_the_strength_reading_is_the_norm_in_the_last_hidden_representation(level):
    model = net("gcn", level)
    d = decompose(model, X, EDGES, groups=singles(), probes=["lin2:input"])
    e = explain(model, X, EDGES, index=5 if level == "node" else None, reading="strength")
    hidden = d.probes["lin2:input"].target[:, 5 if level == "node" else 0]
    assert_close(e.node_scores, hidden.abs().sum(-1))
    assert (e.node_scores >= 0).all()


def test_the_strength_of_one_graph_in_a_batch():
    model = net("gcn", "graph")
    d = decompose(model, X, PAIR_EDGES, PAIR_BATCH, groups=singles(), probes=["lin2:input"])
    e = explain(model, X, PAIR_EDGES, PAIR_BATCH, index=1, reading="strength")
    assert_close(e.node_scores, d.probes["lin2:input"].target[:, 1].abs().sum(-1))


@pytest.mark.parametrize("layer", ["convs.0", "convs.1", "lin1", "lin1:input", "lin2:input"])
def test_a_named_layer(layer):
    model = net()
    d = decompose(model, X, EDGES, groups=singles(), probes=[layer])
    e = explain(model, X, EDGES, index=5, reading="strength", layer=layer)
    assert_close(e.node_scores, d.probes[layer].target[:, 5].abs().sum(-1))


def test_the_strength_of_a_model_that_ends_with_a_convolution():
    model = ready(Directed())
    e = explain(model, X, EDGES, index=5, reading="strength")
    d = decompose(model, X, EDGES, groups=singles(), probes=["second"])
    assert_close(e.node_scores, d.probes["second"].target[:, 5].abs().sum(-1))


@pytest.mark.parametrize("reading", ["contribution", "probability", "strength"])
def test_edges_as_pairs_and_as_means(reading):
    model = net("gat")
    pair = explain(model, X, EDGES, index=5, edge_scores="pair", reading=reading)
    mean = explain(model, X, EDGES, index=5, edge_scores="mean", reading=reading)
    assert torch.equal(pair.node_scores, mean.node_scores)
    assert (pair.edge_scoring, mean.edge_scoring) == ("pair", "mean")
    d = decompose(model, X, EDGES, groups=EDGES.t().tolist(), probes=["lin2:input"])
    softened = d.total.softmax(-1) * (d.target / d.total).clamp(0, 1)
    expected = {
        "contribution": d.target[:, 5, pair.target],
        "probability": softened[:, 5, pair.target],
        "strength": d.probes["lin2:input"].target[:, 5].abs().sum(-1),
    }[reading]
    inside = set(pair.nodes.tolist())
    for number, (u, v) in enumerate(EDGES.t().tolist()):
        if u not in inside or v not in inside:
            assert pair.edge_scores[number] == mean.edge_scores[number] == 0
            continue
        assert_close(mean.edge_scores[number], (mean.node_scores[u] + mean.node_scores[v]) / 2)
        assert_close(pair.edge_scores[number], expected[number])
    half = EDGES.shape[1] // 2
    assert torch.equal(pair.edge_scores[:half], pair.edge_scores[half:])  # both directions alike


def test_edges_of_a_graph_with_loops_and_doubles():
    model = net(level="graph")
    edge_index = torch.cat([EDGES, torch.tensor([[3, 0, 0], [3, 1, 1]])], 1)
    e = explain(model, X, edge_index, edge_scores="pair")
    d = decompose(model, X, edge_index, groups=[[3], [0, 1]])
    assert_close(e.edge_scores[-3], d.target[0, 0, e.target])
    assert_close(e.edge_scores[-1], d.target[1, 0, e.target])
    assert e.edge_scores[-1] == e.edge_scores[-2]


def test_renumbered_nodes_get_renumbered_scores():
    model, order = net("gat"), torch.randperm(12, generator=torch.Generator().manual_seed(0))
    place = torch.empty_like(order)
    place[order] = torch.arange(12)
    e, moved = explain(model, X, EDGES, index=5), explain(model, X[order], place[EDGES], index=int(place[5]))
    assert_close(moved.node_scores, e.node_scores[order])


@pytest.fixture
def explained() -> Explanation:
    return explain(net(), X, EDGES, index=5, edge_scores="pair")


def test_top(explained):
    top = explained.top(3, by="size")
    sizes = [abs(score) for _, score in explained.top(99, by="size")]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == len(explained.nodes)
    assert top == [(node, explained.node_scores[node].item()) for node, _ in top]
    assert abs(top[0][1]) == explained.node_scores.abs().max()
    assert explained.top(0) == []
    signed = [score for _, score in explained.top(99, by="sign")]
    assert signed == sorted(signed, reverse=True)
    with pytest.raises(ValueError, match="by must be"):
        explained.top(3, by="loudness")


def test_top_ranks_by_sign_for_graphs_and_by_impact_for_nodes():
    e = explain(net(), X, EDGES, index=5)
    impact = explain(net(), X, EDGES, index=5, reading="impact").node_scores
    order = [node for node, _ in e.top(12)]
    assert order == e.nodes[impact[e.nodes].argsort(descending=True, stable=True)].tolist()
    graph = explain(net(level="graph"), X, EDGES)
    assert [score for _, score in graph.top(12)] == graph.node_scores.sort(descending=True).values.tolist()
    single = explain(net(classes=1), X, EDGES, index=5)
    assert single.top(12) == single.top(12, by="size")


def test_repr_names_what_matters(explained):
    text = repr(explained)
    node, score = explained.top(1)[0]
    assert f"{node}: {score:+.4g}" in text
    assert "index=5" in text
    assert f"nodes={len(explained.nodes)} of 12" in text


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("edges", [None, "mean"])
def test_save_and_load(tmp_path, dtype, edges):
    options = Options(ties="first", activation="both-orders")
    model = net(dtype=dtype)
    e = explain(model, features(dtype=dtype), EDGES, index=5, edge_scores=edges, reading="strength", options=options)
    path = e.save(tmp_path / "explanation.json")
    again = Explanation.load(str(path))
    assert [file.name for file in tmp_path.iterdir()] == ["explanation.json"]
    for name in ("node_scores", "prediction", "nodes", "edge_index", "edge_scores"):
        before, after = getattr(e, name), getattr(again, name)
        assert (before is None and after is None) or (torch.equal(before, after) and before.dtype == after.dtype)
    for name in ("target", "index", "reading", "edge_scoring", "options", "level", "scope"):
        assert getattr(e, name) == getattr(again, name)


def test_an_explanation_says_its_level():
    assert explain(net(), X, EDGES, index=5).level == "node"
    several = explain(net(), X, EDGES, index=[5, 6])
    assert (several.level, several[0].level) == ("node", "node")
    assert explain(net(), X, EDGES, index=5, of="edge").level == "node"
    of_graph = explain(net(level="graph"), X, EDGES)
    assert of_graph.level == "graph"
    assert "index=0, level='graph'" in repr(of_graph)


def test_save_and_load_infinities_and_an_edgeless_graph(tmp_path):
    e = Explanation(
        node_scores=torch.tensor([float("inf"), -float("inf"), float("nan")]),
        prediction=torch.tensor([0.5]),
        target=0,
        index=0,
        num_nodes=3,
        nodes=torch.arange(3),
        edge_index=torch.zeros(2, 0, dtype=torch.long),
        edge_scores=torch.zeros(0),
    )
    again = Explanation.load(e.save(tmp_path / "e.json"))
    torch.testing.assert_close(again.node_scores, e.node_scores, equal_nan=True)
    assert again.edge_index.shape == (2, 0)
    assert again.edge_index.dtype == torch.long


def test_frozen(explained):
    with pytest.raises(AttributeError):
        explained.target = 1


def test_to_pyg(explained):
    pyg = explained.to_pyg()
    assert torch.equal(pyg.node_mask, explained.node_scores.unsqueeze(-1))
    assert torch.equal(pyg.edge_mask, explained.edge_scores)
    assert pyg.validate()
    assert pyg.num_nodes == 12
    assert pyg.get_explanation_subgraph().node_mask.shape[0] == int((explained.node_scores != 0).sum())
    assert "edge_mask" not in explain(net(), X, EDGES, index=5).to_pyg()


def test_to_networkx(explained):
    graph = explained.to_networkx()
    assert isinstance(graph, networkx.DiGraph)
    assert set(graph.nodes) == set(explained.nodes.tolist())
    assert all(graph.nodes[node]["score"] == explained.node_scores[node].item() for node in graph)
    for number, (u, v) in enumerate(EDGES.t().tolist()):
        assert graph.has_edge(u, v) == ({u, v} <= set(graph.nodes))
        if graph.has_edge(u, v):
            assert graph.edges[u, v]["score"] == explained.edge_scores[number].item()


def test_to_dataframe(explained):
    frame = explained.to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    assert list(zip(frame["node"], frame["score"], strict=True)) == explained.top(99)


@pytest.mark.parametrize("of", ["node", "feature", "edge", "edge_feature"])
@pytest.mark.parametrize("options", [Options.paper(), Options(bound="none"), Options(activation="gate"), Options()])
@pytest.mark.filterwarnings("ignore:single scores add up")
def test_everything_is_scored_under_every_option(of, options):
    model, weight = ready(GCNConv(4, 3)), torch.rand(EDGES.shape[1], dtype=torch.float64)
    e = explain(model, X, EDGES, weight, index=5, of=of, options=options)
    d = decompose(model, X, EDGES, weight, groups=[[5]], of=of, options=options) if of != "feature" else None
    place = {"node": 5, "edge": 5, "edge_feature": 5}.get(of)
    if d is not None:
        assert_close(e.scores[place], d.target[0, 5, e.target])
    assert e.options == options


def test_scores_that_are_all_zero_are_said():
    conv = SimpleConv(aggr="mul")
    with pytest.warns(UserWarning, match="every score is exactly 0.*xdegree.removal"):
        explain(conv, X.abs() + 1, EDGES, index=5)
    with pytest.warns(UserWarning, match="every score is exactly 0"):
        explain(lambda x, edge_index: x.prod().expand(len(x)), X.abs() + 1, EDGES, index=[3, 5])
    assert not explain(lambda x, edge_index: x * 0, X, EDGES, index=5).is_all_zero
