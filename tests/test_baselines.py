import copy
import itertools
import sys

import pytest
import torch
from helpers import EDGES, both_ways, features, net, ready
from torch import nn
from torch_geometric.explain import PGExplainer
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from xdegree import Contexts, explain
from xdegree.baselines import (
    METHODS,
    Scores,
    attention,
    contextual,
    degree,
    explain_with,
    gnn_explainer,
    gnn_lrp,
    grad,
    grad_times_input,
    hop_distance,
    instance,
    integrated_gradients,
    occlusion,
    pg_explainer,
    random,
    search,
    subgraphx,
)
from xdegree.baselines.interface import edges_to_nodes, with_edge_weights
from xdegree.baselines.lrp import passed_back, walk_layers
from xdegree.models import GAT, GCN, HybridGAT

LEVELS = pytest.mark.parametrize("level", ["node", "graph"])
SMALL = {"GNNExplainer": {"epochs": 3}, "SubgraphX": {"rollouts": 2, "samples": 3}, "attention": {}}


def model(kind=GCN, level="node", layers=2, width=4, classes=3):
    return ready(kind(width, classes, hidden=5, layers=layers, level=level))


def one(kind=GCN, level="node", index=5, **sizes):
    return instance(model(kind, level, **sizes), features(), EDGES, index=index if level == "node" else None)


def method(name, training):
    if name == "PGExplainer":
        return pg_explainer(training, epochs=2, progress=False)
    return METHODS[name](**SMALL.get(name, {}))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_scores_nodes_and_edges_and_leaves_the_model_alone(name):
    kind = GAT if name == "attention" else GCN
    explained, training = one(kind), [one(kind, index=i) for i in (2, 8)]
    before = copy.deepcopy(explained.model.state_dict())
    state = torch.get_rng_state()
    chosen = method(name, training)
    scores = chosen(explained)
    assert torch.equal(torch.get_rng_state(), state)
    assert scores.node.shape == (12,)
    assert scores.edges(EDGES).shape == (EDGES.shape[1],)
    assert scores.node.isfinite().all()
    outside = torch.ones(12, dtype=torch.bool)
    outside[explained.field] = False
    assert outside.any()
    assert not scores.node[outside].any()
    assert torch.equal(chosen(explained).node, scores.node)  # twice the same
    assert all(torch.equal(value, before[key]) for key, value in explained.model.state_dict().items())
    assert all(module.__dict__.get("_edge_mask") is None for module in explained.model.modules())
    assert all(parameter.grad is None for parameter in explained.model.parameters())
    assert not any(module._forward_hooks for module in explained.model.modules())


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("hop distance", "attention", "PGExplainer")])
def test_every_method_scores_graphs(name):
    scores = METHODS[name](**SMALL.get(name, {}))(one(level="graph"))
    assert scores.node.shape == (12,)
    assert scores.node.isfinite().all()


def test_edges_by_their_ends_and_nodes_by_their_best_edge():
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    assert Scores(torch.tensor([1.0, 2.0, 4.0])).edges(edges).tolist() == [1.5, 3.0, 2.5]
    assert edges_to_nodes(torch.tensor([-3.0, -2.0, -1.0]), edges, 4).tolist() == [-1, -2, -1, 0]


def test_random_scores_depend_on_the_seed_and_the_node():
    assert torch.equal(random(1)(one()).node, random(1)(one()).node)
    assert not torch.equal(random(1)(one()).node, random(2)(one()).node)
    assert not torch.equal(random(1)(one()).node[5:7], random(1)(one(index=6)).node[5:7])


def test_hop_distance_prefers_the_near():
    scores = explain_with(hop_distance(), net(layers=2), features(), EDGES, index=5).node
    assert scores[5] == 1
    assert scores[[4, 6]].tolist() == [0.5, 0.5]
    assert scores[[3, 7]].tolist() == [1 / 3, 1 / 3]
    with pytest.raises(ValueError, match="not of graphs"):
        hop_distance()(one(level="graph"))


@LEVELS
def test_grad_of_edges_is_the_slope_of_the_output_along_the_weight_of_an_edge(level):
    explained = one(level=level)
    found = grad("edge")(explained).edge
    weights = torch.ones(explained.edge_index.shape[1], dtype=torch.float64)
    torch.testing.assert_close(with_edge_weights(explained, weights), explained.prediction)
    for edge in (0, 3):
        step = torch.zeros_like(weights)
        step[edge] = 1e-6
        up, down = (with_edge_weights(explained, weights + sign * step)[explained.target] for sign in (1, -1))
        own = edge if explained.edges is None else int(explained.edges[edge])
        assert float(found[own]) == pytest.approx(abs(float(up - down)) / 2e-6, abs=1e-6)


@LEVELS
def test_grad_of_nodes_and_gradient_times_input(level):
    explained = one(level=level)
    x = features().requires_grad_()
    output = explained.model(x, EDGES)[5 if level == "node" else 0, explained.target]
    (slope,) = torch.autograd.grad(output, x)
    torch.testing.assert_close(grad("node")(explained).node, slope.abs().sum(1))
    torch.testing.assert_close(grad_times_input()(explained).node, (slope * x).sum(1).detach())


def test_gradient_times_input_of_a_linear_model_is_occlusion_and_integrated_gradients():
    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GCNConv(4, 3, bias=False)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    explained = instance(ready(Linear()), features(), EDGES, index=3)
    expected = grad_times_input()(explained).node
    torch.testing.assert_close(occlusion()(explained).node, expected)
    torch.testing.assert_close(integrated_gradients(steps=5)(explained).node, expected)
    torch.testing.assert_close(degree()(explained).node, expected)
    assert float(expected.sum()) == pytest.approx(float(explained.prediction[explained.target]))


@LEVELS
def test_readings_of_integrated_gradients(level):
    explained = one(level=level)
    classes = [
        explain_with(integrated_gradients(20), explained.model, features(), EDGES, target=c, **at(level))
        for c in range(3)
    ]
    table = torch.stack([scores.node for scores in classes], 1)
    own = integrated_gradients(20)(explained).node
    assert torch.equal(integrated_gradients(20, "absolute")(explained).node, own.abs())
    centred = table - table.mean(1, keepdim=True)
    torch.testing.assert_close(integrated_gradients(20, "norm")(explained).node, centred.square().sum(1).sqrt())
    with pytest.raises(ValueError, match="reading must be one of"):
        integrated_gradients(reading="squared")


def at(level):
    return {"index": 5} if level == "node" else {}


def test_the_norm_of_a_single_output_is_its_absolute_value():
    explained = one(classes=1)
    signed = integrated_gradients(10)(explained).node
    assert bool(signed.any())
    assert torch.equal(integrated_gradients(10, "norm")(explained).node, signed.abs())


@LEVELS
def test_integrated_gradients_from_the_mean_add_up_to_what_the_mean_graph_lacks(level):
    """Columns that do not vary start at 0; the mean is that of the whole graph, not of the part that is cut out."""
    x = features()
    x[:, 1] = 0.7
    explained = instance(model(level=level), x, EDGES, **at(level))
    mean = x.mean(0)
    mean[1] = 0
    torch.testing.assert_close(explained.mean, mean)
    start = explained.output(explained.mean.expand_as(explained.x))[explained.target]
    total = integrated_gradients(400, baseline="mean")(explained).node.sum()
    torch.testing.assert_close(total, explained.prediction[explained.target] - start, rtol=0, atol=5e-3)
    named = integrated_gradients(20, baseline="mean")(explained).node
    assert torch.equal(integrated_gradients(20, baseline=mean)(explained).node, named)
    assert not torch.equal(integrated_gradients(20)(explained).node, named)
    with pytest.raises(ValueError, match="baseline is"):
        integrated_gradients(baseline="median")


@LEVELS
def test_integrated_gradients_add_up(level):
    explained = one(level=level)
    difference = explained.prediction - explained.output(torch.zeros_like(explained.x))
    total = integrated_gradients(steps=200)(explained).node.sum()
    assert float(total) == pytest.approx(float(difference[explained.target].detach()), abs=0.02)


def test_without_captum_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(ImportError, match=r"xdegree\[bench\]"):
        integrated_gradients()


def test_occlusion_is_the_fall_of_the_output():
    explained = one(level="graph")
    x = features()
    x[3] = 0
    fall = explained.prediction - explained.model(x, EDGES)[0]
    assert float(occlusion()(explained).node[3]) == pytest.approx(float(fall[explained.target].detach()))


def test_attention_is_the_mean_over_layers():
    explained = one(GAT, level="graph")
    convs, x = explained.model.convs, features()
    _, (_, first) = convs[0](x, EDGES, return_attention_weights=True)
    _, (_, second) = convs[1](convs[0](x, EDGES).relu(), EDGES, return_attention_weights=True)
    expected = (first + second).squeeze(1)[: EDGES.shape[1]] / 2
    torch.testing.assert_close(attention()(explained).edge, expected.detach())
    with pytest.raises(ValueError, match="attention layers"):
        attention()(one(GCN))
    loops = torch.cat([EDGES, torch.tensor([[0], [0]])], 1)
    with pytest.raises(ValueError, match="self-loops"):
        explain_with(attention(), model(GAT), features(), loops, index=1)


# Methods that learn


@pytest.mark.parametrize("of", ["edge", "node"])
def test_gnn_explainer_learns_to_prefer_what_the_prediction_needs(of):
    """A model that looks at node 0 only, by way of the edge from 0 to 1."""

    class Look(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GCNConv(1, 2, bias=False, add_self_loops=False, normalize=False)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    looking = Look()
    with torch.no_grad():
        looking.conv.lin.weight.copy_(torch.tensor([[5.0], [-5.0]]))
    edges, x = torch.tensor([[0, 2, 3], [1, 1, 1]]), torch.tensor([[1.0], [0.0], [0.0], [0.0]])
    scores = explain_with(gnn_explainer(of, epochs=60, lr=0.1), looking, x, edges, index=1, target=0)
    best = scores.edge if of == "edge" else scores.node
    assert int(best.argmax()) == 0
    assert gnn_explainer(of, epochs=2, seed=1)(one()).node.tolist() != gnn_explainer(of, epochs=2)(one()).node.tolist()


def test_pg_explainer_learns_from_some_predictions_and_explains_others():
    training = [one(level="graph")]
    fitted = pg_explainer(training, epochs=3, progress=False)
    scores = fitted(instance(training[0].model, features(seed=2), EDGES))
    assert scores.edge.shape == (EDGES.shape[1],)
    assert ((scores.edge >= 0) & (scores.edge <= 1)).all()
    with pytest.raises(ValueError, match="got none"):
        pg_explainer([])


def test_no_method_breaks_the_next_one():
    explained = one()
    alone = integrated_gradients()(explained).node
    gnn_explainer(epochs=2)(explained)
    after = pg_explainer([explained], epochs=2, progress=False)(explained).edge
    assert torch.equal(integrated_gradients()(explained).node, alone)
    assert torch.equal(pg_explainer([one()], epochs=2, progress=False)(one()).edge, after)


@pytest.mark.parametrize("chosen", [grad, gnn_explainer, gnn_lrp])
def test_what_is_scored_must_be_known(chosen):
    with pytest.raises(ValueError, match=r'"edge" or "node" \(got \'walk\'\)'):
        chosen("walk")


# GNN-LRP against a list of all walks


def walks_of(explained, gamma):
    """The relevance of every walk, by the formula, walk by walk and neuron by neuron."""
    net_, x, edges = explained.model, explained.x, explained.edge_index
    n, hidden, steps = len(x), [x], []
    for number, conv in enumerate(net_.convs):
        if isinstance(conv, GCNConv):
            links, share = gcn_norm(edges, None, n, dtype=x.dtype)
        else:
            _, (links, share) = conv(hidden[-1], edges, return_attention_weights=True)
        weight, bias = conv.lin.weight.detach().t(), conv.bias.detach()
        rate = gamma * (1 - number / len(net_.convs))
        weight, bias = weight + rate * weight.clamp(min=0), bias + rate * bias.clamp(min=0)
        lam = torch.zeros(n, n, dtype=x.dtype)
        lam[links[0], links[1]] = share.detach().flatten()
        steps.append((lam, weight, bias, hidden[-1]))
        hidden.append(conv(hidden[-1], edges).relu().detach())
    _, top = walk_layers(explained, gamma)
    found = {}
    for walk in itertools.product(range(n), repeat=len(steps) + 1):
        relevance = top[walk[-1]]
        for (lam, weight, bias, h), j, k in reversed(list(zip(steps, walk[:-1], walk[1:], strict=True))):
            z = sum(lam[i, k] * h[i] @ weight for i in range(n)) + bias
            relevance = torch.stack(
                [
                    sum(lam[j, k] * h[j, a] * weight[a, b] / z[b] * relevance[b] for b in range(len(z)))
                    for a in range(h.shape[1])
                ]
            )
        if relevance.any():
            found[walk] = float(relevance.sum().detach())
    return found


@pytest.mark.parametrize("kind", [GCN, GAT, HybridGAT])
@LEVELS
def test_gnn_lrp_is_the_sum_over_walks(kind, level):
    small = ready(kind(2, 2, hidden=3, layers=2, level=level))
    edges = both_ways([(0, 1), (1, 2), (2, 3)])
    explained = instance(small, features(4, 2).abs(), edges, index=1 if level == "node" else None)
    walks = walks_of(explained, gamma=0.7)
    assert len(walks) > 4
    nodes = [sum(value for walk, value in walks.items() if node in walk) for node in range(4)]
    torch.testing.assert_close(gnn_lrp("node", 0.7)(explained).node, torch.tensor(nodes, dtype=torch.float64))
    along = []
    for u, v in edges.T.tolist():
        uses = [value for walk, value in walks.items() if {(u, v), (v, u)} & set(itertools.pairwise(walk))]
        along.append(sum(uses))
    torch.testing.assert_close(gnn_lrp("edge", 0.7)(explained).edge, torch.tensor(along, dtype=torch.float64))


@LEVELS
def test_gnn_lrp_without_biases_hands_back_the_whole_output(level):
    bare = model(level=level)
    with torch.no_grad():
        for name, parameter in bare.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
    explained = instance(bare, features().abs(), EDGES, index=5 if level == "node" else None)
    with torch.no_grad():
        layers, top = walk_layers(explained, gamma=0.5)
        total = passed_back(layers, top.unsqueeze(0)).sum()
    assert float(total) == pytest.approx(float(explained.prediction[explained.target]), rel=1e-6)


def test_gnn_lrp_says_what_it_is_for():
    with pytest.raises(TypeError, match=r"xdegree\.models \(got Net\)"):
        gnn_lrp()(instance(net(), features(), EDGES, index=1))


# SubgraphX against the definition


def exact_shapley(explained, group, others, always):
    """The mean over all orders of the players of what the group adds when it joins."""
    players, total, count = [*others, "group"], 0.0, 0
    for order in itertools.permutations(players):
        before = set(order[: order.index("group")])
        chances = []
        for present in (before | set(group) | set(always), before | set(always)):
            kept = torch.tensor([[node in present for node in range(len(explained.x))]])
            chances.append(float(explained.probabilities(kept)))
        total, count = total + chances[0] - chances[1], count + 1
    return total / count


def test_subgraphs_have_shapley_values():
    path = both_ways([(i, i + 1) for i in range(5)])
    explained = instance(model(level="graph", layers=1), features(6), path)
    found = search(explained, max_nodes=2, rollouts=4, samples=64)
    for group, value in found.values.items():
        near = {node for node in range(6) if any(abs(node - inside) == 1 for inside in group)} - group
        far = set(range(6)) - near - group
        assert value == pytest.approx(exact_shapley(explained, group, near, far), abs=1e-9)
    assert len(found.best(2)) <= 2
    assert found.values[found.best(6)] == max(found.values.values())


@LEVELS
def test_subgraphs_are_connected_and_hold_the_explained_node(level):
    explained = one(level=level)
    found = search(explained, max_nodes=3, rollouts=3, samples=4)
    assert min(len(group) for group in found.values) <= 3
    for group in found.values:
        reached, grown = set(), {min(group)}
        while reached != grown:
            reached = grown
            grown = reached | {v for u, v in explained.edge_index.T.tolist() if u in reached and v in group}
        assert reached == group
        assert level == "graph" or explained.row in group
    scores = subgraphx(max_nodes=3, rollouts=3, samples=4)(explained).node
    here = explained.here(scores)
    best = found.best(3)
    assert all(here[node] == here.max() for node in best)
    assert scores.tolist() == subgraphx(max_nodes=3, rollouts=3, samples=4)(explained).node.tolist()


def test_a_search_finds_the_node_that_decides():
    """A model that looks for one large feature anywhere."""
    small = GCN(1, 2, hidden=1, layers=1, level="graph").double().eval()
    with torch.no_grad():
        for parameter in small.parameters():
            parameter.fill_(0)
        small.convs[0].lin.weight.fill_(1)
        small.lin1.weight.fill_(1)
        small.lin2.weight.copy_(torch.tensor([[0.0], [5.0]]))
    x = torch.zeros(12, 1, dtype=torch.float64)
    x[4] = 1
    scores = explain_with(subgraphx(max_nodes=3, rollouts=15), small, x, EDGES, target=1).node
    assert scores[4] == scores.max() > 0


# xdegree's own


def test_degree_is_explain():
    explained = one()
    e = explain(explained.model, features(), EDGES, index=5, edge_scores="pair")
    found = degree(edge_scores="pair")(explained)
    torch.testing.assert_close(found.node, e.node_scores)
    torch.testing.assert_close(found.edge, e.edge_scores)
    torch.testing.assert_close(degree(absolute=True)(explained).node, e.node_scores.abs())
    strong = explain(explained.model, features(), EDGES, index=5, reading="strength")
    torch.testing.assert_close(degree("strength")(explained).node, strong.node_scores)


def test_contextual_without_contexts_is_the_contribution():
    explained = one()
    torch.testing.assert_close(contextual(Contexts(kind="none"))(explained).node, degree()(explained).node)


def test_coefficients_of_one_pg_explainer_are_not_those_of_the_next():
    """PyG keeps them at the class."""
    usual = dict(PGExplainer.coeffs)
    explained = one()
    own = pg_explainer([explained], epochs=1, progress=False, edge_size=100.0, temp=[9.0, 9.0])
    assert usual == PGExplainer.coeffs
    other = pg_explainer([explained], epochs=1, progress=False)
    assert not torch.equal(own(explained).edge, other(explained).edge)
    size = gnn_explainer(epochs=5, edge_size=50.0)(explained).edge
    assert size.sum() < gnn_explainer(epochs=5, edge_size=0.0)(explained).edge.sum()


def test_a_graph_of_one_node_is_a_graph():
    """Its output has as many rows as nodes; side by side its variants are graphs all the same."""
    model, x = net(level="graph"), features(1)
    one = instance(model, x, torch.empty(2, 0, dtype=torch.long))
    kept = torch.tensor([[True], [False], [True]])
    rows = one.masked(kept)
    assert rows.shape == (3, 3)
    torch.testing.assert_close(rows[[0, 2]], one.prediction.expand(2, -1))
    assert not torch.equal(rows[1], rows[0])
