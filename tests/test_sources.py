"""Portions that start elsewhere than in nodes: in messages, edge features, single features, behind embeddings."""

import pytest
import torch
from helpers import EDGES, PAIR_BATCH, PAIR_EDGES, assert_close, both_ways, features, net, ready
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_geometric import EdgeIndex
from torch_geometric.nn import (
    APPNP,
    DenseGCNConv,
    FastRGCNConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINEConv,
    NNConv,
    RGCNConv,
    SAGEConv,
    TransformerConv,
)
from torch_geometric.utils import to_dense_adj, to_torch_coo_tensor

from xdegree import MissingRuleError, Options, check, decompose, explain
from xdegree.engine.portions import LostPortionsError

X, E = features(), EDGES.shape[1]
LOOP = torch.tensor([[4], [4]])
PATH = torch.tensor([list(range(11)), list(range(1, 12))])


def each(count: int) -> list[list[int]]:
    return [[number] for number in range(count)]


class Two(nn.Module):
    """Two convolutions with a ReLU between them."""

    def __init__(self, conv, width=4):
        super().__init__()
        self.first, self.second = conv(width, 5), conv(5, 3)

    def forward(self, x, edge_index, *more):
        return self.second(self.first(x, edge_index, *more).relu(), edge_index, *more)


# --- messages along edges


@pytest.mark.parametrize("edge_index", [EDGES, torch.cat([EDGES, EDGES[:, :4], LOOP], 1)], ids=["simple", "parallel"])
def test_messages_of_a_sum_add_up_to_the_output(edge_index):
    model = ready(SAGEConv(4, 3, aggr="sum", bias=False, root_weight=False))
    d = decompose(model, X, edge_index, groups=each(edge_index.shape[1]), of="edge")
    assert torch.equal(d.total, model(X, edge_index))
    assert_close(d.target.sum(0), d.total)
    for number, (u, v) in enumerate(edge_index.t().tolist()):
        expected = torch.zeros(12, 3, dtype=torch.float64)
        expected[v] = model.lin_l(X[u])
        assert_close(d.target[number], expected)


def gcn_twin(model: Two, x, edge_index, group: set[int]):
    """Two GCN layers from the definition, entry by entry: in each layer the messages of the group are all target."""
    nodes = len(x)
    gamma = torch.zeros_like(x)
    loops = {u: n for n, (u, v) in enumerate(edge_index.t().tolist()) if u == v}
    edges = [(u, v, n) for n, (u, v) in enumerate(edge_index.t().tolist()) if u != v]
    edges += [(v, v, loops.get(v)) for v in range(nodes)]  # an own self-loop takes the place of the added one
    degree = [sum(1 for _, w, _ in edges if w == v) for v in range(nodes)]
    for layer, last in ((model.first, False), (model.second, True)):
        weight, bias = layer.lin.weight, layer.bias
        total = torch.zeros(nodes, len(bias), dtype=x.dtype)
        target = torch.zeros_like(total)
        for u, v, number in edges:
            norm = (degree[u] * degree[v]) ** -0.5
            message = norm * (weight @ x[u])
            total[v] += message
            target[v] += message if number in group else norm * (weight @ gamma[u])
        rest = total - target
        for i in range(nodes):
            for j in range(len(bias)):
                size = abs(target[i, j]) + abs(rest[i, j])
                if size > 0:
                    target[i, j] += bias[j] * abs(target[i, j]) / size
        total = total + bias
        x, gamma = (total, target) if last else (total.relu(), target.relu())
    return gamma


@pytest.mark.parametrize("edge_index", [EDGES, torch.cat([PATH, LOOP], 1)], ids=["both ways", "path with a loop"])
@torch.no_grad()
def test_messages_through_all_layers_equal_the_slow_twin(edge_index):
    model = ready(Two(GCNConv))
    groups = [[0], [3, 4], [], [edge_index.shape[1] - 1], list(range(edge_index.shape[1]))]
    d = decompose(model, X, edge_index, groups=groups, of="edge", options=Options.paper())
    assert torch.equal(d.total, model(X, edge_index))
    for number, group in enumerate(groups):
        assert_close(d.target[number], gcn_twin(model, X, edge_index, set(group)))
    assert not d.target[2].any()


RELATIONS = torch.arange(E) % 3
MESSAGES = {
    "gcn": (Two(GCNConv), ()),
    "gat": (Two(GATConv), ()),
    "gatv2, two heads": (Two(lambda i, o: GATv2Conv(i, o, heads=2, concat=False)), ()),
    "transformer": (Two(TransformerConv), ()),
    "max": (Two(lambda i, o: SAGEConv(i, o, aggr="max")), ()),
    "target to source": (Two(lambda i, o: SAGEConv(i, o, flow="target_to_source")), ()),
    "rgcn": (Two(lambda i, o: RGCNConv(i, o, 3)), (RELATIONS,)),
    "fast rgcn": (Two(lambda i, o: FastRGCNConv(i, o, 3)), (RELATIONS,)),
}


@pytest.mark.parametrize("name", MESSAGES)
@torch.no_grad()
def test_the_laws_hold_for_messages(name):
    model, more = MESSAGES[name]
    model = ready(model)
    groups = [[0], [1, 2, 7], [], [E - 1]]
    d = decompose(model, X, EDGES, *more, groups=groups, of="edge")
    assert torch.equal(d.total, model(X, EDGES, *more))
    assert d.target.isfinite().all()
    assert not d.target[2].any()
    for number, group in enumerate(groups):
        assert_close(decompose(model, X, EDGES, *more, groups=[group], of="edge").target[0], d.target[number])
    order = torch.randperm(E, generator=torch.Generator().manual_seed(0))  # other numbers for the same edges
    moved = decompose(
        model, X, EDGES[:, order], *[m[order] for m in more], groups=[(order == 7).nonzero().flatten()], of="edge"
    )
    assert_close(moved.target, decompose(model, X, EDGES, *more, groups=[[7]], of="edge").target)
    ends = EDGES if "source" in name else EDGES.flip(0)
    heard = ends[0, 0]  # the first edge tells its end, which tells its neighbors
    near = {int(heard), *(int(a) for a, b in ends.t().tolist() if b == heard)}
    far = [node for node in range(12) if node not in near]
    assert far
    assert not d.target[0, far].any()


def test_all_messages_of_a_model_without_root_weight_are_everything():
    model = ready(Two(lambda i, o: SAGEConv(i, o, root_weight=False, bias=False)))
    ring = torch.tensor([list(range(12)), [*range(1, 12), 0]])
    d = decompose(model, X, ring, groups=[range(12)], of="edge")
    assert_close(d.target[0], d.total)


@pytest.mark.parametrize("conv", [GCNConv, GATConv], ids=["gcn", "gat"])
def test_added_self_loops_are_nobodys_edges(conv):
    """With all edges in the group only what the added self-loops and nothing else carries stays background."""
    model, edge = ready(conv(4, 3)), torch.tensor([[0], [1]])
    x = features(3)
    d = decompose(model, x, edge, groups=[[0]], of="edge")
    assert d.target[0, 1].any()
    assert not d.target[0, [0, 2]].any()  # they hear of themselves only
    if isinstance(model, GCNConv):
        linear = (0.5**0.5) * x[0] @ model.lin.weight.t()
        rest = 0.5 * x[1] @ model.lin.weight.t()
        assert_close(d.target[0, 1], linear + model.bias * linear.abs() / (linear.abs() + rest.abs()))


def test_an_own_self_loop_takes_the_place_of_the_added_one():
    model = ready(GCNConv(4, 3, bias=False))
    edge_index = torch.tensor([[0, 1], [1, 1]])
    d = decompose(model, features(3), edge_index, groups=[[0], [1], [0, 1]], of="edge")
    assert_close(d.target[2, 1], d.total[1])
    assert_close(d.target[0] + d.target[1], d.target[2])


def test_parallel_edges_are_told_apart():
    edge_index = torch.cat([EDGES, EDGES[:, :1]], 1)
    weight = torch.ones(E + 1, dtype=torch.float64)
    weight[-1] = 3.0
    model = ready(Two(lambda i, o: GCNConv(i, o, normalize=False, bias=False)))
    d = decompose(model, X, edge_index, weight, groups=[[0], [E]], of="edge")
    first = ready(GCNConv(4, 3, normalize=False, bias=False))
    one = decompose(first, X, edge_index, weight, groups=[[0], [E]], of="edge").target
    assert_close(one[1], 3 * one[0])
    assert not torch.equal(d.target[0], d.target[1])


def test_parallel_edges_of_several_types_are_ambiguous():
    edge_index, kinds = torch.cat([EDGES, EDGES[:, :1]], 1), torch.cat([RELATIONS, torch.tensor([1])])
    model = ready(RGCNConv(4, 3, 3))
    with pytest.raises(ValueError, match=r"edges 0 → 1 are parallel .* Remove parallel edges"):
        decompose(model, X, edge_index, kinds, groups=[[0]], of="edge")


def test_two_self_loops_where_a_layer_keeps_one_are_ambiguous():
    with pytest.raises(ValueError, match="edges 4 → 4 are parallel"):
        decompose(ready(GCNConv(4, 3)), X, torch.cat([EDGES, LOOP, LOOP], 1), groups=[[0]], of="edge")


def test_edges_of_some_types_only_are_followed():
    """A relational layer takes the edges type by type; a group of one type stays within it."""
    model = ready(RGCNConv(4, 3, 3, bias=False, root_weight=False))
    d = decompose(
        model, X, EDGES, RELATIONS, groups=[(RELATIONS == kind).nonzero().flatten() for kind in range(3)], of="edge"
    )
    assert_close(d.target.sum(0), d.total)
    for kind in range(3):
        kept = RELATIONS == kind
        assert_close(d.target[kind], model(X, EDGES[:, kept], RELATIONS[kept]))


def test_several_rounds_of_one_layer():
    model = ready(nn.Sequential(APPNP(3, 0.1)))[0]
    d = decompose(model, X, EDGES, groups=[range(E), []], of="edge")
    assert d.target[0].any()
    assert not d.target[1].any()


def test_explain_edges_equals_the_whole_graph():
    model = net("gcn")
    for index in (0, 5, 11):
        e = explain(model, X, EDGES, index=index, of="edge")
        d = decompose(model, X, EDGES, groups=each(E), of="edge")
        assert_close(e.edge_scores, d.target[:, index, e.target])
        assert e.scores is e.edge_scores
        assert (e.of, e.node_scores, e.edge_scores.shape) == ("edge", None, (E,))
        (u, v), score = e.top(1)[0]
        assert [u, v] in EDGES.t().tolist()
        assert abs(score) == e.edge_scores.abs().max()


def test_explain_edges_of_graphs_and_by_other_readings():
    model = net("sage", "graph")
    count = PAIR_EDGES.shape[1]
    d = decompose(model, X, PAIR_EDGES, PAIR_BATCH, groups=each(count), of="edge", probes=["lin2:input"])
    first, second = explain(model, X, PAIR_EDGES, PAIR_BATCH, index="all", of="edge")
    assert_close(first.edge_scores, d.target[:, 0, first.target])
    assert_close(second.edge_scores, d.target[:, 1, second.target])
    strong = explain(model, X, PAIR_EDGES, PAIR_BATCH, index=1, of="edge", reading="strength")
    assert_close(strong.edge_scores, d.probes["lin2:input"].target[:, 1].abs().sum(-1))


def test_options_reach_the_messages():
    model, options = net("gcn"), Options(bias="background")
    e = explain(model, X, EDGES, index=5, of="edge", options=options)
    d = decompose(model, X, EDGES, groups=each(E), of="edge", options=options)
    assert_close(e.edge_scores, d.target[:, 5, e.target])


@st.composite
def odd_graphs(draw):
    """One to six nodes; parallel edges, and at most one self-loop per node, as some layers keep only one."""
    nodes = draw(st.integers(1, 6))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=10))
    loops = {(u, v) for u, v in edges if u == v}
    edges = [(u, v) for u, v in edges if u != v] + sorted(loops)
    order = draw(st.permutations(edges))
    index, seed = draw(node), draw(st.integers(0, 99))
    return features(nodes, 4, seed), torch.tensor(order, dtype=torch.long).reshape(-1, 2).t(), index, seed


@pytest.mark.parametrize("kind", ["gcn", "gat", "sage"])
@settings(max_examples=12, deadline=None, derandomize=True)
@given(graph=odd_graphs())
def test_odd_graphs(kind, graph):
    x, edge_index, index, seed = graph
    model, count = net(kind, seed=seed), edge_index.shape[1]
    e = explain(model, x, edge_index, index=index, of="edge")
    assert e.edge_scores.shape == (count,)
    d = decompose(model, x, edge_index, groups=[*each(count), []], of="edge")
    assert torch.equal(d.total, model(x, edge_index))
    assert not d.target[-1].any()
    assert_close(e.edge_scores, d.target[:-1, index, e.target])
    reached = {index}
    for _ in range(2):
        reached |= {u for u, v in edge_index.t().tolist() if v in reached}
    for number, (_, v) in enumerate(edge_index.t().tolist()):
        if v not in reached:
            assert e.edge_scores[number] == 0


@pytest.mark.parametrize("adjacency", ["torch.sparse", "EdgeIndex"])
def test_a_sparse_adjacency_is_refused(adjacency):
    given = (
        to_torch_coo_tensor(EDGES, size=12).transpose(0, 1).coalesce().double()
        if adjacency == "torch.sparse"
        else EdgeIndex(EDGES, sparse_size=(12, 12)).sort_by("col")[0]
    )
    with pytest.raises(ValueError, match=r"of='edge' needs an edge_index \[2, E\]"):
        decompose(ready(Two(SAGEConv)), X, given, groups=[[0]], of="edge")


def test_a_sparse_adjacency_made_inside_the_model_is_refused():
    class Inside(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = SAGEConv(4, 3)

        def forward(self, x, edge_index):
            adjacency = torch.sparse_coo_tensor(edge_index.flip(0), torch.ones(edge_index.shape[1]).double(), (12, 12))
            return self.conv(x, adjacency)

    with pytest.raises(NotImplementedError, match=r"'conv'.* Give the edges as edge_index \[2, E\]"):
        decompose(ready(Inside()), X, EDGES, groups=[[0]], of="edge")


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = DenseGCNConv(4, 3)

    def forward(self, x, edge_index):
        return self.conv(x, to_dense_adj(edge_index, max_num_nodes=len(x)).to(x.dtype))[0]


def test_a_model_that_passes_no_messages():
    with pytest.raises(LostPortionsError, match="found no messages"):
        decompose(ready(Dense()), X, EDGES, groups=[[0]], of="edge")
    with pytest.raises(LostPortionsError, match="found no messages"):
        explain(ready(Dense()), X, EDGES, index=5, of="edge")
    with pytest.raises(LostPortionsError, match="found no messages"):
        check(ready(Dense()), X, EDGES, of="edge")
    with pytest.raises(TypeError, match="this function refers to none"):
        decompose(lambda x, edge_index: x, X, EDGES, groups=[[0]], of="edge")


@pytest.mark.parametrize(
    ("groups", "message"),
    [([[E]], f"ids go from 0 to {E - 1}"), ([[-1]], "group 0 names"), ([[3, 3]], "more than once"), ([], "empty list")],
)
def test_edges_that_do_not_exist(groups, message):
    with pytest.raises(ValueError, match=message) as error:
        decompose(net(), X, EDGES, groups=groups, of="edge")
    assert "node" not in str(error.value)


def test_masks_of_edges():
    model, mask = net(), torch.rand(3, E, generator=torch.Generator().manual_seed(0)) < 0.3
    d = decompose(model, X, EDGES, groups=mask, of="edge")
    groups = [row.nonzero().flatten().tolist() for row in mask]
    assert_close(d.target, decompose(model, X, EDGES, groups=groups, of="edge").target)
    with pytest.raises(ValueError, match=rf"\[K, {E}\]"):
        decompose(model, X, EDGES, groups=mask[:, :12], of="edge")


def test_an_unknown_kind_of_target():
    for call in (
        lambda **k: explain(net(), X, EDGES, index=5, **k),
        lambda **k: decompose(net(), X, EDGES, groups=[[0]], **k),
    ):
        with pytest.raises(ValueError, match="of must be one of"):
            call(of="motif")


# --- edge features


class Attributed(nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.conv, self.lin = conv, nn.Linear(6, 3)

    def forward(self, x, edge_index, edge_attr):
        return self.lin(self.conv(x, edge_index, edge_attr).relu())


ATTR = features(E, 2, seed=5)
WITH_ATTRIBUTES = {
    "gat": lambda: GATConv(4, 6, edge_dim=2, add_self_loops=False),
    "gat with self-loops": lambda: GATConv(4, 6, edge_dim=2),
    "nn": lambda: NNConv(4, 6, nn.Sequential(nn.Linear(2, 24))),
    "gine": lambda: GINEConv(nn.Sequential(nn.Linear(4, 6)), edge_dim=2),
    "transformer": lambda: TransformerConv(4, 6, edge_dim=2),
}


@pytest.mark.parametrize("name", WITH_ATTRIBUTES)
def test_edge_attributes(name):
    model = ready(Attributed(WITH_ATTRIBUTES[name]()))
    mask = torch.eye(2 * E, dtype=torch.bool).reshape(-1, E, 2)
    d = decompose(model, X, EDGES, ATTR, groups=mask, of="edge_feature")
    assert torch.equal(d.total, model(X, EDGES, ATTR))
    for index in (0, 5):
        e = explain(model, X, EDGES, ATTR, index=index, of="edge_feature")
        assert_close(e.edge_feature_scores, d.target[:, index, e.target].reshape(E, 2))
        assert e.scores is e.edge_feature_scores
        assert e.scores.any()
    nothing = decompose(model, X, EDGES, ATTR, groups=[[]], of="edge_feature").target
    assert not nothing.any()


def test_an_edge_network_without_bias_is_linear_in_the_edge_attributes():
    model = ready(NNConv(4, 3, nn.Linear(2, 12, bias=False), bias=False, root_weight=False))
    d = decompose(model, X, EDGES, ATTR, groups=each(E), of="edge_feature")
    assert_close(d.target.sum(0), d.total)
    masked = torch.zeros_like(ATTR)
    masked[7] = ATTR[7]
    assert_close(d.target[7], model(X, EDGES, masked))


def test_edge_weights():
    weight = torch.rand(E, generator=torch.Generator().manual_seed(0)).double() + 0.1
    plain = ready(GCNConv(4, 3, normalize=False, bias=False))
    d = decompose(plain, X, EDGES, weight, groups=each(E), of="edge_feature")
    assert_close(d.target.sum(0), d.total)
    masked = torch.zeros_like(weight)
    masked[7] = weight[7]
    assert_close(d.target[7], plain(X, EDGES, masked))
    model = ready(GCNConv(4, 3))  # normalised by degrees that are sums of the weights
    e = explain(model, X, EDGES, weight, index=5, of="edge_feature")
    d = decompose(model, X, EDGES, weight, groups=each(E), of="edge_feature")
    assert_close(e.edge_feature_scores, d.target[:, 5, e.target])
    assert e.edge_feature_scores.shape == (E,)
    assert e.edge_feature_scores.isfinite().all()
    assert isinstance(e.top(1)[0][0], int)
    inside = torch.isin(EDGES, e.nodes).all(0)
    assert e.edge_feature_scores[inside & (EDGES[1] == 5)].all()
    assert not e.edge_feature_scores[~inside].any()


def test_edge_features_by_keyword_and_in_data():
    from torch_geometric.data import Data

    model = ready(Attributed(GATConv(4, 6, edge_dim=2)))
    expected = explain(model, X, EDGES, ATTR, index=5, of="edge_feature").edge_feature_scores
    assert_close(explain(model, X, EDGES, edge_attr=ATTR, index=5, of="edge_feature").edge_feature_scores, expected)
    data = Data(x=X, edge_index=EDGES, edge_attr=ATTR)
    assert_close(explain(model, data, index=5, of="edge_feature").edge_feature_scores, expected)


def test_edge_features_that_cannot_be_split():
    with pytest.raises(ValueError, match="needs edge_attr or edge_weight"):
        explain(net(), X, EDGES, index=5, of="edge_feature")
    model = ready(Attributed(GATConv(4, 6, edge_dim=2)))
    with pytest.raises(TypeError, match="edge features must be floating point"):
        explain(model, X, EDGES, ATTR.long(), index=5, of="edge_feature")
    bad = ATTR.clone()
    bad[3, 1] = float("nan")
    with pytest.raises(ValueError, match=r"edge features must be finite .*\[3\]"):
        decompose(model, X, EDGES, bad, groups=[[0]], of="edge_feature")
    with pytest.raises(ValueError, match=f"ids go from 0 to {E - 1}"):
        decompose(model, X, EDGES, ATTR, groups=[[E]], of="edge_feature")


# --- features of nodes


@pytest.mark.parametrize("kind", ["gcn", "gat"])
@pytest.mark.parametrize("index", [0, 5, 11])
def test_features_equal_masks_of_single_entries(kind, index):
    model, x = net(kind), X.clone()
    x[4] = 0
    e = explain(model, x, EDGES, index=index, of="feature")
    mask = torch.eye(48, dtype=torch.bool).reshape(48, 12, 4)
    d = decompose(model, x, EDGES, groups=mask, of="feature")
    assert_close(e.feature_scores, d.target[:, index, e.target].reshape(12, 4))
    assert_close(d.target, decompose(model, x, EDGES, groups=mask).target)
    assert not e.feature_scores[4].any()
    outside = [node for node in range(12) if node not in e.nodes.tolist()]
    assert not e.feature_scores[outside].any()
    (node, feature), score = e.top(1)[0]
    assert e.feature_scores[node, feature].item() == score
    assert torch.equal(e.to_pyg().node_mask, e.feature_scores)


def test_features_of_a_linear_model_are_its_gradient_times_input():
    model = ready(GCNConv(4, 3, bias=False))
    e = explain(model, X, EDGES, index=5, of="feature", target=1)
    x = X.clone().requires_grad_()
    model(x, EDGES)[5, 1].backward()
    assert_close(e.feature_scores, x.grad * X)


# --- behind an embedding


class Embedded(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.emb, self.inner = nn.Embedding(9, 4), inner

    def forward(self, z, edge_index, batch=None):
        return self.inner(self.emb(z), edge_index, batch)


Z = torch.arange(12) * 5 % 9


@pytest.mark.parametrize("level", ["node", "graph"])
def test_a_start_behind_an_embedding(level):
    model = ready(Embedded(net("gat", level)))
    x = model.emb(Z).detach()
    index = 5 if level == "node" else None
    e = explain(model, Z, EDGES, index=index, start="emb", edge_scores="pair")
    expected = explain(model.inner, x, EDGES, index=index, edge_scores="pair")
    assert_close(e.node_scores, expected.node_scores)
    assert_close(e.edge_scores, expected.edge_scores)
    groups = [[0], [3, 4], []]
    d = decompose(model, Z, EDGES, groups=groups, start="emb")
    assert_close(d.target, decompose(model.inner, x, EDGES, groups=groups).target)
    assert torch.equal(d.total, model(Z, EDGES))


def test_several_rows_and_other_readings_behind_an_embedding():
    model = ready(Embedded(net("gcn")))
    x = model.emb(Z).detach()
    for reading in ("probability", "strength"):
        for e in explain(model, Z, EDGES, index=[2, 9], start="emb", reading=reading):
            one = explain(model.inner, x, EDGES, index=e.index, reading=reading)
            assert_close(e.node_scores[one.nodes], one.node_scores[one.nodes])


def test_single_features_behind_an_embedding():
    model = ready(Embedded(net("gcn")))
    x = model.emb(Z).detach()
    e = explain(model, Z, EDGES, index=5, start="emb", of="feature")
    assert_close(e.feature_scores, explain(model.inner, x, EDGES, index=5, of="feature").feature_scores)
    mask = torch.eye(48, dtype=torch.bool).reshape(48, 12, 4)
    d = decompose(model, Z, EDGES, groups=mask, start="emb", of="feature")
    assert_close(d.target, decompose(model.inner, x, EDGES, groups=mask).target)


def test_numbers_in_a_column_and_a_model_of_another_precision():
    class Column(Embedded):
        def forward(self, z, edge_index):
            return self.inner(self.emb(z.squeeze(-1)), edge_index)

    for dtype in (torch.float32, torch.float64):
        model = ready(Column(net(dtype=dtype)), dtype=dtype)
        e = explain(model, Z.unsqueeze(1), EDGES, index=5, start="emb")
        assert e.node_scores.dtype == dtype
        assert_close(e.node_scores, explain(model.inner, model.emb(Z).detach(), EDGES, index=5).node_scores, atol=1e-6)


def test_the_default_precision_does_not_matter():
    model = ready(Embedded(net(dtype=torch.float32)), dtype=torch.float32)
    torch.set_default_dtype(torch.float64)
    try:
        d = decompose(model, Z, EDGES, groups=[[0]], start="emb")
        assert d.target.dtype == d.total.dtype == torch.float32
        d = decompose(model.inner, model.emb(Z).detach(), EDGES, groups=[[0]], of="edge")
        assert d.target.dtype == d.total.dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_only_embedding_is_found():
    model = ready(Embedded(net()))
    assert_close(
        explain(model, Z, EDGES, index=5).node_scores, explain(model, Z, EDGES, index=5, start="emb").node_scores
    )
    d, named = (decompose(model, Z, EDGES, groups=[[0]], **start) for start in ({}, {"start": "emb"}))
    assert_close(d.target, named.target)
    assert check(model, Z, EDGES).rows == check(model, Z, EDGES, start="emb").rows
    with pytest.raises(TypeError, match=r"x\.float\(\)"):
        explain(net(), Z, EDGES, index=5)


def test_starts_that_cannot_be():
    model = ready(Embedded(net()))
    with pytest.raises(ValueError, match=r"start names 'table', but the model's modules are \['emb'"):
        explain(model, Z, EDGES, index=5, start="table")
    with pytest.raises(ValueError, match="modules are"):
        decompose(lambda z, edge_index: model(z, edge_index) * 2, Z, EDGES, groups=[[0]], start="emb")
    assert explain(model, Z, EDGES, index=5, start="emb", of="edge").edge_scores.any()
    graph = ready(Embedded(net(level="graph")))
    with pytest.raises(TypeError, match=r"start='inner\.lin2' must give one float row per node"):
        explain(graph, Z, EDGES, start="inner.lin2")
    model.spare = nn.Linear(4, 4).double()
    with pytest.raises(ValueError, match="start names 'spare', which the model did not call"):
        explain(model, Z, EDGES, index=5, start="spare")


# --- check


def test_check_knows_where_portions_start():
    model = ready(Embedded(net()))
    report = check(model, Z, EDGES, start="emb")
    assert report.ok
    assert not any(row.module == "emb" for row in report.rows)
    header, *lines = str(report).splitlines()
    assert header.split() == ["operation", "module", "rule", "calls"]
    assert lines[-1] == "every operation has a rule"
    assert repr(report) == str(report)
    edges = check(net(), X, EDGES, of="edge")
    assert edges.ok
    attr = check(ready(Attributed(GATConv(4, 6, edge_dim=2))), X, EDGES, ATTR, of="edge_feature")
    assert attr.ok
    assert attr.rows


def test_check_lists_what_is_missing_without_an_error():
    inner = net()

    def model(x, edge_index):
        return torch.special.bessel_j0(torch.special.i0(inner(x, edge_index)))

    report = check(model, X, EDGES)
    assert not report.ok
    assert [m.op for m in report.missing] == ["aten.i0.default", "aten.special_bessel_j0.default"]
    text = str(report)
    assert text.count("MISSING") == 2
    assert "no rule applies to:" in text
    with pytest.raises(MissingRuleError, match="2 operation"):
        explain(model, X, EDGES, index=5)


def test_check_of_links_both_ways_and_of_a_directed_path():
    assert check(net("sage"), X, both_ways([(0, 1)])).ok
    assert check(net("sage"), X, PATH, of="edge").ok
