"""What a model predicts without some nodes, against the same call made by hand; and the metrics that rest on it."""

import pytest
import torch
from helpers import EDGES, both_ways, features, net, ready
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, HeteroConv, SAGEConv, global_mean_pool

from xdegree import audit
from xdegree.baselines.instance import instance
from xdegree.metrics import acc_against_sparsity, auc, fidelity, stability, top_nodes
from xdegree.model_call.split_points import mean_features
from xdegree.removal import Removal

X = features()
KEPT = torch.tensor([1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 0, 1]).bool()
INNER = (KEPT[EDGES[0]] & KEPT[EDGES[1]]).nonzero().flatten()
PLACE = KEPT.cumsum(0) - 1


class Regression(nn.Module):
    """Edge weights, a pool over the batch, one number per graph."""

    def __init__(self):
        super().__init__()
        self.conv, self.lin = GCNConv(4, 5), nn.Linear(5, 1)

    def forward(self, x, edge_index, edge_weight, batch):
        return self.lin(global_mean_pool(self.conv(x, edge_index, edge_weight).relu(), batch))


class Typed(nn.Module):
    def __init__(self):
        super().__init__()
        kinds = {("a", "to", "b"): SAGEConv((4, 3), 5), ("b", "to", "a"): SAGEConv((3, 4), 5)}
        self.conv, self.out = HeteroConv(kinds), nn.Linear(5, 2)

    def forward(self, x_dict, edge_index_dict):
        return self.out(self.conv(x_dict, edge_index_dict)["b"].relu())


class Links(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GATConv(4, 5)

    def forward(self, x, edge_index, edge_label_index):
        h = self.conv(x, edge_index)
        return (h[edge_label_index[0]] * h[edge_label_index[1]]).sum(1)


TYPED_X = {"a": features(7, 4, seed=2), "b": features(5, 3, seed=3)}
TYPED_EDGES = {
    ("a", "to", "b"): torch.tensor([[0, 1, 2, 3, 4, 5, 6, 0], [0, 0, 1, 2, 3, 4, 4, 2]]),
    ("b", "to", "a"): torch.tensor([[0, 1, 2, 3, 4], [6, 5, 4, 3, 0]]),
}


def close(got, expected):
    torch.testing.assert_close(got, expected.detach(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["gcn", "gat", "gin", "sage"])
@pytest.mark.parametrize("level", ["node", "graph"])
def test_each_way_is_the_call_by_hand(kind, level):
    model, index = net(kind, level), 3 if level == "node" else None
    away, row = Removal(model, X, EDGES, index=index), index or 0
    mean = torch.where(KEPT[:, None], X, X.mean(0))
    by_hand = {
        "zero": model(X * KEPT[:, None], EDGES)[row],
        "mean": model(mean, EDGES)[row],
        "edges": model(X, EDGES[:, INNER])[row],
        "nodes": model(X[KEPT], PLACE[EDGES[:, INNER]])[int(PLACE[row]) if level == "node" else 0],
    }
    for way, expected in by_hand.items():
        close(away.predictions(KEPT[None], way)[0], expected)
        close(away.predictions(torch.ones(1, 12), way)[0], model(X, EDGES)[row])
    close(away.values(KEPT[None], "edges")[0], by_hand["edges"].softmax(0)[away.target])


def test_the_explained_node_is_blanked_but_never_cut_or_removed():
    model, none = net(), torch.zeros(1, 12)
    away = Removal(model, X, EDGES, index=3)
    assert away.explained_nodes == [3]
    close(away.predictions(none, "nodes")[0], model(X[3:4], EDGES[:, :0])[0])
    close(away.predictions(none, "edges")[0], model(X, EDGES[:, :0])[3])
    close(away.predictions(none)[0], model(torch.zeros_like(X), EDGES)[3])


def test_edge_weights_batches_and_data_objects_are_cut_along():
    model, weight, batch = ready(Regression()), torch.rand(EDGES.shape[1]).double(), torch.tensor([0] * 5 + [1] * 7)
    within = batch[EDGES[0]] == batch[EDGES[1]]
    data = Data(x=X, edge_index=EDGES[:, within], edge_weight=weight[within], batch=batch)
    inner = (KEPT[data.edge_index[0]] & KEPT[data.edge_index[1]]).nonzero().flatten()
    expected = model(X[KEPT], PLACE[data.edge_index[:, inner]], data.edge_weight[inner], batch[KEPT])
    away = Removal(model, data, index=1)
    assert (away.task, away.level) == ("regression", "graph")
    close(away.predictions(KEPT[None], "nodes")[0], expected[1])
    close(away.values(KEPT[None], "nodes")[0], expected[1, 0])


def test_links_keep_their_ends():
    model, links = ready(Links()), torch.tensor([[0, 2], [11, 10]])
    away = Removal(model, X, EDGES, links, index=0, task="binary")
    assert away.explained_nodes == [0, 11]
    close(away.predictions(KEPT[None], "nodes")[0], model(X[KEPT], PLACE[EDGES[:, INNER]], PLACE[links[:, :1]]))
    close(away.values(KEPT[None], "edges"), model(X, EDGES[:, INNER], links)[:1].sigmoid())


def test_types_of_nodes_one_after_another():
    model, kept = (
        ready(Typed()),
        {"a": torch.tensor([1, 0, 1, 1, 1, 0, 1]).bool(), "b": torch.tensor([0, 1, 1, 1, 1]).bool()},
    )
    away = Removal(model, TYPED_X, TYPED_EDGES, index=2)
    assert (away.num_nodes, away.explained_nodes) == (12, [9])
    place = {kind: mask.cumsum(0) - 1 for kind, mask in kept.items()}
    inner = {k: kept[k[0]][e[0]] & kept[k[2]][e[1]] for k, e in TYPED_EDGES.items()}
    cut = {k: e[:, inner[k]] for k, e in TYPED_EDGES.items()}
    moved = {k: torch.stack([place[k[0]][e[0]], place[k[2]][e[1]]]) for k, e in cut.items()}
    flat = away.flat(kept)[None]
    close(away.predictions(flat, "edges")[0], model(TYPED_X, cut)[2])
    close(away.predictions(flat, "nodes")[0], model({k: x[kept[k]] for k, x in TYPED_X.items()}, moved)[1])
    close(away.predictions(flat)[0], model({k: x * kept[k][:, None] for k, x in TYPED_X.items()}, TYPED_EDGES)[2])


def test_a_tensor_that_stands_for_two_types_is_blanked_for_one():
    def model(x_dict, edge_index_dict):
        return x_dict["a"].sum() + 2 * x_dict["b"].sum() + 0 * edge_index_dict["a", "to", "b"].sum()

    shared, edges = features(5, 4), {("a", "to", "b"): torch.tensor([[0], [1]])}
    away = Removal(model, {"a": shared, "b": shared}, edges, level="graph")
    close(away.predictions(torch.arange(10)[None] < 5)[0], shared.sum().reshape(1))


@pytest.mark.parametrize("index", [2, 4])
def test_renumbered_graphs_predict_the_same(index):
    cases = [(net("gat"), X, EDGES), (ready(Typed()), TYPED_X, TYPED_EDGES)]
    for model, *args in cases:
        away = Removal(model, *args, index=index)
        other, order = away.renumbered(torch.Generator().manual_seed(1))
        assert sorted(order.tolist()) == list(range(12))
        assert order.tolist() != list(range(12))
        close(other.prediction, away.prediction)
    batch = torch.tensor([0] * 5 + [1] * 7)
    within = EDGES[:, batch[EDGES[0]] == batch[EDGES[1]]]
    away = Removal(net("gcn", "graph"), X, within, batch, index=1)
    other, _ = away.renumbered(torch.Generator().manual_seed(1))
    assert bool((other.call.args[2].diff() >= 0).all())
    close(other.prediction, away.prediction)


def test_what_cannot_be_taken_away_is_said():
    with pytest.raises(ValueError, match="way must be one of"):
        Removal(net(), X, EDGES, index=3).predictions(KEPT[None], "colour")
    with pytest.raises(ValueError, match="task must be one of"):
        Removal(net(), X, EDGES, index=3, task="ranking")
    with pytest.raises(ValueError, match="one output is no choice"):
        Removal(net(classes=1), X, EDGES, index=3, task="classification")
    with pytest.raises(ValueError, match="one number per node is needed, 12"):
        Removal(net(), X, EDGES, index=3).predictions(KEPT[None, :5])
    with pytest.raises(ValueError, match="edges can be cut where"):
        Removal(lambda x: x.sum(0, keepdim=True), X, level="graph").predictions(KEPT[None], "edges")
    table = nn.Embedding(9, 3)
    with pytest.raises(ValueError, match="integers have no zero"):
        Removal(lambda x, edge_index: table(x), torch.arange(9), EDGES[:, :2], index=1).predictions(torch.ones(1, 9))


LASTS = {  # the last step, the task as given and as understood
    "logits": (lambda h: h, None, "classification"),
    "log_softmax": (lambda h: h.log_softmax(-1), None, "classification"),
    "softmax": (lambda h: h.softmax(-1), None, "classification"),
    "labels": (lambda h: h, "binary", "binary"),
    "sigmoids": (lambda h: h.sigmoid(), None, "binary"),
    "one logit": (lambda h: h[:, :1], "binary", "binary"),
    "one sigmoid": (lambda h: h[:, :1].sigmoid(), "binary", "binary"),
    "squeezed": (lambda h: h[:, :1].sigmoid().squeeze(-1), None, "binary"),
    "stacked": (lambda h: torch.stack([h[:, 0].sigmoid(), h[:, 1].sigmoid()], 1), None, "binary"),
    "number": (lambda h: h[:, :1], None, "regression"),
}


@pytest.mark.parametrize("last", LASTS)
def test_what_is_measured_is_one_probability_everywhere(last):
    """Of the whole, without a group and in all metrics; what is a probability already is not made one again."""
    f, given, task = LASTS[last]
    model = Ended(net(), f)
    asked = {"index": 3, "target": 0}

    def by_hand(x):
        h = model.inner(x, EDGES)[3].detach()
        value = {"classification": h.softmax(-1)[0], "binary": h[0].sigmoid(), "regression": h[0]}[task]
        return float(value), int(h.argmax() if task == "classification" else value > 0.5)

    (whole, before), (without, after) = by_hand(X), by_hand(X * ~KEPT[:, None])
    away = Removal(model, X, EDGES, task=given, **asked)
    assert away.task == task
    assert away.whole == pytest.approx(whole)
    assert float(away.values(~KEPT[None])[0]) == pytest.approx(without)
    audited = audit(model, X, EDGES, task=given, methods=["occlusion"], ways=["zero"], progress=False, **asked)
    assert (audited.task, audited.whole) == (task, away.whole)
    one = instance(model, X, EDGES, **asked)
    for found in (fidelity(away, KEPT), fidelity(one, KEPT, task=given)):
        assert found.plus == pytest.approx(abs(whole - without) if task == "regression" else whole - without)
        assert found.plus_changed == (None if task == "regression" else float(before != after))
    if task == "regression":
        with pytest.raises(ValueError, match="tolerance="):
            acc_against_sparsity([away], [~KEPT[None]])
    else:
        assert acc_against_sparsity([away], [~KEPT[None]]) == [float(before == after)]


class Ended(nn.Module):
    def __init__(self, inner, last):
        super().__init__()
        self.inner, self.last = inner, last

    def forward(self, x, edge_index):
        return self.last(self.inner(x, edge_index))


def test_columns_that_do_not_vary_have_no_mean():
    assert mean_features(torch.tensor([[1.0, 2.0], [1.0, 4.0]])).tolist() == [0, 3]


def test_fidelity_of_a_removal_by_zero_is_that_of_an_instance():
    model = net()
    given = fidelity(instance(model, X, EDGES, index=3), KEPT)
    found = fidelity(Removal(model, X, EDGES, index=3), KEPT)
    assert found.plus == pytest.approx(given.plus)
    assert found.minus == pytest.approx(given.minus)
    assert (found.plus_changed, found.minus_changed) == (given.plus_changed, given.minus_changed)
    with pytest.raises(ValueError, match="make a Removal"):
        fidelity(instance(model, X, EDGES, index=3), KEPT, way="edges")


@pytest.mark.parametrize("level", ["node", "graph"])
def test_fidelity_of_a_regression_is_the_change_of_its_number(level):
    model = net(level=level, classes=1)
    index, row = (3, 3) if level == "node" else (None, 0)
    whole, without, alone, nothing = (
        float(model(x, EDGES)[row].detach()) for x in (X, X * ~KEPT[:, None], X * KEPT[:, None], 0 * X)
    )
    for one in (instance(model, X, EDGES, index=index), Removal(model, X, EDGES, index=index)):
        found = fidelity(one, KEPT)
        assert found.plus == pytest.approx(abs(whole - without))
        assert found.minus == pytest.approx(abs(whole - alone))
        assert found.scale == pytest.approx(abs(whole - nothing))
        assert found.plus_changed is None
        assert 0 <= found.characterisation <= 1
    near, exact = abs(whole - alone) * 1.001, abs(whole - alone) * 0.999
    removal = [Removal(model, X, EDGES, index=index)]
    assert acc_against_sparsity(removal, [KEPT[None]], tolerance=near) == [1]
    assert acc_against_sparsity(removal, [KEPT[None]], tolerance=exact) == [0]
    with pytest.raises(ValueError, match="tolerance"):
        acc_against_sparsity(removal, [KEPT[None]])


def test_metrics_of_graphs_with_types():
    scores = {"a": torch.tensor([3.0, 1.0, 0.0]), "b": torch.tensor([2.0, -1.0])}
    truth = {"b": torch.tensor([1, 0]), "a": torch.tensor([1, 0, 0])}
    assert auc(scores, truth) == 1
    assert top_nodes(scores, [0.4]).tolist() == [[True, False, False, True, False]]
    rows = {kind: torch.stack([s, 2 * s]) for kind, s in scores.items()}
    assert stability(rows, k=2).correlation == pytest.approx(1)
    with pytest.raises(ValueError, match="same types"):
        auc(scores, {"a": truth["a"]})
    away = Removal(ready(Typed()), TYPED_X, TYPED_EDGES, index=2)
    group = {"a": torch.ones(7).bool(), "b": torch.zeros(5).bool()}
    every = torch.ones(1, 12).bool()
    whole, without = away.values(torch.cat([every, ~away.flat(group)[None]]), "edges").tolist()
    assert fidelity(away, group, way="edges").plus == pytest.approx(whole - without)
    assert acc_against_sparsity([away], [every]) == [1]


def test_a_graph_whose_pool_loses_every_node_has_no_scale():
    away = Removal(net(level="graph", classes=1, pool="mean"), X, both_ways([(0, 1)]))
    found = fidelity(away, KEPT, way="nodes")
    assert found.plus > 0
    assert found.characterisation != found.characterisation
