"""Graphs in PyG's stores: the same answers as from memory, and nothing is read but neighborhoods."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, EdgeAttr, FeatureStore, GraphStore, TensorAttr
from torch_geometric.distributed import LocalFeatureStore, LocalGraphStore
from torch_geometric.nn import GATConv, GCNConv, GraphConv, SAGEConv
from torch_geometric.utils import k_hop_subgraph, sort_edge_index

from xdegree import agglomerate, check, contextual_scores, decompose, explain, pick_subgraph, prepare

NODES, EDGES = 300, 600


class Net(torch.nn.Module):
    """Two layers, with or without features of edges."""

    def __init__(self, kind, edges=None, **options):
        super().__init__()
        self.edges = edges
        self.first, self.second = kind(5, 6, **options), kind(6, 3, **options)

    def forward(self, x, edge_index, edge_weight=None, edge_attr=None):
        given = {} if self.edges is None else {self.edges: edge_weight if self.edges == "edge_weight" else edge_attr}
        return self.second(self.first(x, edge_index, **given).relu(), edge_index, **given)


class TakesData(Net):
    def forward(self, data):
        return super().forward(data.x, data.edge_index)


class Tables(FeatureStore):
    """NumPy arrays by name, of nodes or of edges; notes which rows are read."""

    def __init__(self, **tables):
        super().__init__()
        self.__dict__.update(tables=tables, read=[])

    def _get_tensor(self, attr):
        self.read.append((attr.attr_name, np.asarray(attr.index)))
        return self.tables[attr.attr_name][np.asarray(attr.index)]

    def _get_tensor_size(self, attr):
        return self.tables[attr.attr_name].shape

    def get_all_tensor_attrs(self):
        return [TensorAttr(("n", "to", "n") if name.startswith("edge") else "n", name) for name in self.tables]

    def _put_tensor(self, *_):
        raise NotImplementedError

    _remove_tensor = _put_tensor


class Edges(GraphStore):
    """One layout of one type of edges, in 32 bits."""

    def __init__(self, layout, row, col):
        super().__init__()
        self.layout, self.ends = layout, (row.int(), col.int())

    def _get_edge_index(self, _):
        return self.ends

    def get_all_edge_attrs(self):
        return [EdgeAttr(("n", "to", "n"), self.layout, size=(NODES, NODES))]

    def _put_edge_index(self, *_):
        raise NotImplementedError

    _remove_edge_index = _put_edge_index


def pointers(ends):
    return torch.cat([torch.zeros(1, dtype=torch.long), torch.bincount(ends, minlength=NODES).cumsum(0)])


@pytest.fixture(scope="module")
def graph():
    """Edges sorted by receiver, so that they have the same numbers in all layouts but CSR."""
    draw = torch.Generator().manual_seed(0)
    edge_index = sort_edge_index(torch.randint(NODES, (2, EDGES), generator=draw), sort_by_row=False)
    weight, attr = torch.rand(EDGES, generator=draw), torch.rand(EDGES, 2, generator=draw)
    x = torch.randn(NODES, 5, generator=draw)
    return Data(x=x, edge_index=edge_index, edge_weight=weight, edge_attr=attr)


def tables(graph, order=slice(None)):
    return Tables(
        x=graph.x.numpy(), edge_weight=graph.edge_weight[order].numpy(), edge_attr=graph.edge_attr[order].numpy()
    )


def stores(graph, kind):
    row, col = graph.edge_index
    if kind == "data":
        return graph, graph
    if kind == "local":
        features = LocalFeatureStore.from_data(
            torch.arange(NODES), graph.x, edge_id=torch.arange(EDGES), edge_attr=graph.edge_attr
        )
        return features, LocalGraphStore.from_data(torch.arange(EDGES), graph.edge_index, NODES)
    if kind == "csr":
        order = torch.argsort(row, stable=True)
        return tables(graph, order), Edges("csr", pointers(row), col[order])
    return tables(graph), Edges(kind, row, pointers(col) if kind == "csc" else col)


def made(model, **options):
    torch.manual_seed(0)
    return model(**options).eval()


MODELS = {
    "mean of neighbors": lambda: made(Net, kind=SAGEConv),
    "degrees of neighbors": lambda: made(Net, kind=GCNConv),
    "weights": lambda: made(Net, kind=GraphConv, edges="edge_weight"),
    "attention with features of edges": lambda: made(Net, kind=GATConv, edges="edge_attr", edge_dim=2),
    "against the arrows": lambda: made(Net, kind=SAGEConv, flow="target_to_source"),
    "a Data object": lambda: made(TakesData, kind=SAGEConv),
}


@pytest.mark.parametrize("kind", ["csc", "coo", "csr", "data", "local"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:single scores add up")
def test_the_same_as_from_memory(graph, kind, name):
    if kind == "local" and name == "weights":
        pytest.skip("PyG's own store holds edge_attr only")
    model = MODELS[name]()
    prepared = prepare(model, stores(graph, kind))
    for index in (3, 77):
        expected, e = explain(model, graph, index=index), prepared.explain(index=index)
        assert e.scope == "neighborhood, not verified"
        torch.testing.assert_close(e.node_scores, expected.node_scores)
        torch.testing.assert_close(e.class_scores, expected.class_scores)
        assert torch.equal(e.nodes, expected.nodes)
        assert e.num_nodes == NODES
        inside = torch.isin(graph.edge_index, e.nodes).all(0)
        assert sorted(e.edge_index.t().tolist()) == sorted(graph.edge_index[:, inside].t().tolist())
    rows = [5, 9, 200]
    for e, expected in zip(prepared.explain(index=rows), explain(model, graph, index=rows), strict=True):
        torch.testing.assert_close(e.node_scores, expected.node_scores)
        assert set(e.to_networkx().nodes) == set(expected.nodes.tolist())


@pytest.mark.filterwarnings("ignore:single scores add up")
def test_groups_that_grow(graph):
    model, given = MODELS["degrees of neighbors"](), stores(graph, "csc")
    trees = [agglomerate(model, source, index=77, seed=0) for source in (given, graph)]
    assert trees[0].levels[-1] == trees[1].levels[-1]
    scores = [contextual_scores(model, source, groups=[[77]], index=77, seed=0) for source in (given, graph)]
    torch.testing.assert_close(*scores)


@pytest.mark.filterwarnings("ignore:single scores add up")
def test_only_the_neighborhood_is_read(graph):
    features, edges = stores(graph, "csc")
    model = MODELS["mean of neighbors"]()
    prepared = prepare(model, (features, edges))
    prepared.explain(index=0)  # the first question also looks at a few edges
    features.read.clear()
    prepared.explain(index=77)
    near = k_hop_subgraph(77, 3, graph.edge_index)[0]  # one hop more tells whether degrees matter
    assert features.read
    assert {name for name, _ in features.read} == {"x", "edge_weight", "edge_attr"}
    for name, rows in features.read:
        nodes = rows if name == "x" else graph.edge_index[:, rows].flatten()
        assert set(nodes.tolist()) <= set(near.tolist())
    assert len(near) < NODES / 4


@pytest.mark.filterwarnings("ignore:single scores add up")
def test_sampled_neighbors_and_a_small_graph(graph):
    model, given = MODELS["mean of neighbors"](), stores(graph, "csc")
    e = explain(model, given, index=77, num_neighbors=1)
    assert e.scope == "sampled neighborhood"
    torch.testing.assert_close(e.node_scores, explain(model, graph, index=77, num_neighbors=1).node_scores)
    trusted = explain(model, graph.x, graph.edge_index, index=77, trust_neighborhood=True)  # also of few nodes
    torch.testing.assert_close(trusted.node_scores, explain(model, graph, index=77).node_scores)


def test_two_graphs_are_no_stores(graph):
    with pytest.raises(TypeError, match="put them into a batch"):
        explain(MODELS["mean of neighbors"](), (graph, graph.clone()), index=0)


def hetero(graph):
    features = tables(graph)
    kinds = [TensorAttr("n", "x"), TensorAttr("m", "x")]
    features.__dict__["get_all_tensor_attrs"] = lambda: kinds
    return features, stores(graph, "csc")[1]


def several_edges(graph):
    features, edges = stores(graph, "csc")
    edges.get_all_edge_attrs = lambda: [EdgeAttr(("n", to, "n"), "csc") for to in "ab"]
    return features, edges


def beyond(graph):
    features, edges = stores(graph, "csc")
    edges.ends = (edges.ends[0] + NODES, edges.ends[1])
    return features, edges


class Squeezed(Tables):
    """A trap of NumPy: an index of one element, a tensor, is taken for a number."""

    def _get_tensor(self, attr):
        return self.tables[attr.attr_name][0]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (hetero, "one type of nodes .got several: .'m', 'n'.."),
        (several_edges, "one type of edges .got several"),
        (lambda graph: (Tables(y=graph.x.numpy()), stores(graph, "csc")[1]), "no node features x .it has .'y'."),
        (lambda graph: (Tables(x=graph.x[:9].numpy()), stores(graph, "csc")[1]), "is for 300 nodes, but x has 9 rows"),
        (beyond, "come from 3[0-9]+ to [0-9]+ of 300 nodes|index .* out of"),
        (lambda graph: (Squeezed(x=graph.x.numpy()), stores(graph, "csc")[1]), "gave 5 rows of 'x' where 1 were asked"),
    ],
)
def test_stores_that_cannot_be_used(graph, source, message):
    with pytest.raises((TypeError, ValueError, IndexError), match=message):
        explain(MODELS["mean of neighbors"](), source(graph), index=77)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"of": "edge"}, "by nodes"),
        ({"edge_scores": "pair"}, "graphs in stores, are for single nodes"),
        ({"level": "graph"}, "single nodes are explained .got level='graph'"),
        ({"baseline": "mean"}, "give it as a tensor"),
        ({"index": NODES}, "out of range"),
        ({"index": None}, "index is missing"),
    ],
)
def test_questions_that_need_the_whole_graph(graph, question, message):
    with pytest.raises(ValueError, match=message):
        explain(MODELS["mean of neighbors"](), stores(graph, "csc"), **{"index": 77, **question})


def test_functions_that_need_the_whole_graph(graph):
    model, given = MODELS["mean of neighbors"](), stores(graph, "csc")
    with pytest.raises(TypeError, match="needs the graph in memory"):
        decompose(model, given, groups=[[0]])
    with pytest.raises(TypeError, match="needs the whole graph"):
        prepare(model, given).decompose(groups=[[0]])
    with pytest.raises(TypeError, match="needs the whole graph"):
        pick_subgraph(model, given, index=77, size=3)


def test_a_model_that_looks_beyond(graph):
    class Global(Net):
        def forward(self, x, edge_index):
            return super().forward(x, edge_index).mean(0)

    with pytest.raises(ValueError, match="predict nodes by passing messages"):
        explain(made(Global, kind=SAGEConv), stores(graph, "csc"), index=77)


def test_the_survey_of_a_model(graph):
    assert check(MODELS["mean of neighbors"](), stores(graph, "csc")).ok


@pytest.mark.filterwarnings("ignore:single scores add up")
def test_a_baseline_of_features(graph):
    model, mean = MODELS["mean of neighbors"](), graph.x.mean(0)
    found = [explain(model, source, index=77, baseline=mean, steps=2) for source in (stores(graph, "csc"), graph)]
    torch.testing.assert_close(found[0].node_scores, found[1].node_scores)
