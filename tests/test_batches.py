"""A batch of graphs is explained in one pass, each graph as if it were alone."""

import pytest
import torch
from helpers import CONVS, assert_close, features, net, ready
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import BatchNorm, GATConv, GCNConv, GraphNorm, global_max_pool, global_mean_pool

from xdegree import Explanation, Explanations, decompose, explain

SIZES = (4, 7, 1, 5)


def graphs(width=4) -> list[Data]:
    """Four graphs, one of them a single node without edges."""
    found = []
    for number, size in enumerate(SIZES):
        generator = torch.Generator().manual_seed(number)
        edge_index = torch.randint(size, (2, 3 * size if size > 1 else 0), generator=generator)
        found.append(Data(x=features(size, width, number), edge_index=edge_index))
    return found


@pytest.mark.parametrize("kind", CONVS)
@pytest.mark.parametrize("pool", ["max", "mean"])
@pytest.mark.parametrize("reading", ["contribution", "probability", "strength"])
def test_a_batch_equals_one_by_one(kind, pool, reading):
    model, alone = net(kind, "graph", pool=pool), graphs()
    found = explain(model, Batch.from_data_list(alone), reading=reading)
    assert len(found) == 4
    for e, data in zip(found, alone, strict=True):
        one = explain(model, data, reading=reading)
        assert isinstance(e, Explanation)
        assert_close(e.node_scores, one.node_scores)
        assert_close(e.prediction, one.prediction)
        if reading != "strength":
            assert_close(e.class_scores, one.class_scores)
        assert (e.index, e.target, e.num_nodes) == (0, one.target, data.num_nodes)
        assert torch.equal(e.nodes, one.nodes)
        assert torch.equal(e.edge_index, data.edge_index)


@pytest.mark.parametrize("of", ["edge", "feature"])
def test_edges_and_features_of_a_batch(of):
    model, alone = net("sage", "graph"), graphs()
    for e, data in zip(explain(model, Batch.from_data_list(alone), of=of), alone, strict=True):
        one = explain(model, data, of=of)
        assert_close(e.scores, one.scores)
        assert [name for name, _ in e.top(1)] == [name for name, _ in one.top(1)]


@pytest.mark.parametrize("edges", ["pair", "mean"])
def test_edges_by_their_ends_in_a_batch(edges):
    model, alone = net("gcn", "graph"), graphs()
    for e, data in zip(explain(model, Batch.from_data_list(alone), edge_scores=edges), alone, strict=True):
        one = explain(model, data, edge_scores=edges)
        assert_close(e.node_scores, one.node_scores)
        assert_close(e.edge_scores, one.edge_scores)


class Watched(nn.Module):
    """Notes how many groups arrive in each pass; not in itself, as a run leaves no traces in a model."""

    def __init__(self, inner, passes):
        super().__init__()
        self.inner, self.note = inner, passes.append

    def forward(self, x, edge_index, batch=None):
        if type(x).__name__ == "Portions":
            self.note(len(x.target))
        return self.inner(x, edge_index, batch)


def test_one_pass_with_as_many_groups_as_the_largest_graph_has_nodes():
    passes = []
    explain(Watched(net("gcn", "graph"), passes).eval(), Batch.from_data_list(graphs()))
    assert passes == [max(SIZES)]


def test_some_graphs_of_a_batch_keep_the_numbers_of_the_batch():
    model, alone = net("gat", "graph"), graphs()
    batch = Batch.from_data_list(alone)
    second, last = explain(model, batch, index=[1, 3])
    assert (second.index, last.index) == (1, 3)
    assert second.num_nodes == last.num_nodes == sum(SIZES)
    assert second.nodes.tolist() == list(range(4, 11))
    assert_close(second.node_scores[4:11], explain(model, alone[1]).node_scores)
    assert_close(last.node_scores[12:], explain(model, alone[3]).node_scores)
    assert not second.node_scores[:4].any()
    one = explain(model, batch, index=1)
    assert_close(one.node_scores, second.node_scores)


def test_graphs_whose_nodes_are_not_in_order():
    model, alone = net("gcn", "graph"), graphs()
    batch = Batch.from_data_list(alone)
    order = torch.randperm(sum(SIZES), generator=torch.Generator().manual_seed(0))
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    found = explain(model, batch.x[order], place[batch.edge_index], batch.batch[order], index="all")
    for number, e in enumerate(found):
        assert_close(e.node_scores[place[batch.batch == number]], explain(model, alone[number]).node_scores)
        assert not e.node_scores[place[batch.batch != number]].any()


class Mixing(nn.Module):
    """Graphs of a batch that hear of each other."""

    def __init__(self, how):
        super().__init__()
        self.conv, self.lin, self.how = GCNConv(4, 5), nn.Linear(5, 3), how
        self.norm = GraphNorm(5)

    def forward(self, x, edge_index, batch):
        h = self.conv(x, edge_index)
        if self.how == "norm":
            h = self.norm(h)  # without the batch vector: over all nodes of all graphs
        h = global_mean_pool(h, batch)
        return self.lin(WAYS[self.how](h) if self.how in WAYS else h)


def last_alone(h):
    """Only one graph looks at another."""
    return torch.cat([h[:-1], h[-1:] + h[1:2]])


WAYS = {
    "mean": lambda h: h + h.mean(0),
    "max": lambda h: h + h.amax(0),
    "next": lambda h: h + h.roll(1, 0),
    "next but one": lambda h: h * h.roll(2, 0),
    "the other half": lambda h: torch.maximum(h, torch.cat([h[len(h) // 2 :], h[: len(h) // 2]])),
    "last alone": last_alone,
    "attention": lambda h: (h @ h.t()).softmax(-1) @ h,
    "batch statistics": lambda h: torch.nn.functional.batch_norm(h, None, None, training=True),
    "at -1": lambda h: h + (h.sum(0) - 1e3).clamp(min=-1),
}


@pytest.mark.parametrize("how", [*WAYS, "norm"])
def test_a_model_that_mixes_graphs_is_still_right(how):
    model, batch = ready(Mixing(how)), Batch.from_data_list(graphs())
    d = decompose(model, batch, groups=[[node] for node in range(sum(SIZES))])
    for number, e in enumerate(explain(model, batch)):
        own = batch.batch == number
        assert_close(e.node_scores, d.target[own, number, e.target])
    whole = explain(model, batch.x, batch.edge_index, batch.batch, index=[0, 1])
    for number, e in enumerate(whole):
        assert_close(e.node_scores[batch.batch == number], d.target[batch.batch == number, number, e.target])


def test_batch_norm_in_eval_mode_mixes_nothing():
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.lin = GATConv(4, 5), BatchNorm(5), nn.Linear(5, 2)

        def forward(self, x, edge_index, batch):
            return self.lin(global_max_pool(self.norm(self.conv(x, edge_index)).relu(), batch))

    passes, alone = [], graphs()
    model = Watched(ready(Normed()), passes).eval()
    found = explain(model, Batch.from_data_list(alone))
    assert passes == [max(SIZES)]
    for e, data in zip(found, alone, strict=True):
        assert_close(
            e.node_scores,
            explain(model, data.x, data.edge_index, torch.zeros(data.num_nodes, dtype=torch.long)).node_scores,
        )


def test_nodes_of_a_batch_are_explained_as_of_one_graph():
    """A model of nodes has a row per node of the batch, so that index is needed."""
    model, batch = net("gcn"), Batch.from_data_list(graphs())
    e = explain(model, batch, index=6)
    d = decompose(model, batch, groups=[[node] for node in range(sum(SIZES))])
    assert_close(e.node_scores, d.target[:, 6, e.target])
    with pytest.raises(ValueError, match="index is missing: the model predicts 17 nodes"):
        explain(model, batch)


def test_one_class_for_all_graphs_and_regression():
    model, alone = net("gcn", "graph", classes=1), graphs()
    for e, data in zip(explain(model, Batch.from_data_list(alone)), alone, strict=True):
        assert_close(e.node_scores, explain(model, data).node_scores)
    wide = net("gcn", "graph")
    assert [e.target for e in explain(wide, Batch.from_data_list(alone), target=1)] == [1] * 4


def test_a_class_for_each_graph():
    model, alone = net("gcn", "graph"), graphs()
    batch = Batch.from_data_list(alone)
    found = explain(model, batch, target=torch.tensor([2, 0, 1, 0]))
    for e, data, target in zip(found, alone, [2, 0, 1, 0], strict=True):
        assert e.target == target
        assert_close(e.node_scores, explain(model, data, target=target).node_scores)
    with pytest.raises(ValueError, match="names 3 classes, but 4 predictions"):
        explain(model, batch, target=[0, 1, 2])


def test_a_squeezed_output_of_a_batch():
    inner, alone = net("gcn", "graph", classes=1), graphs()

    def model(x, edge_index, batch):
        return inner(x, edge_index, batch).squeeze(-1)

    for e, data in zip(explain(model, Batch.from_data_list(alone)), alone, strict=True):
        assert_close(e.node_scores, explain(inner, data).node_scores)


def test_a_batch_of_one_graph_gives_a_sequence_of_one():
    model, [data, *_] = net("gcn", "graph"), graphs()
    found = explain(model, Batch.from_data_list([data]))
    assert isinstance(found, Explanations)
    assert len(found) == 1
    assert_close(found[0].node_scores, explain(model, data).node_scores)


def test_numbers_behind_an_embedding_in_a_batch():
    class Embedded(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.inner = nn.Embedding(9, 4), net("gcn", "graph")

        def forward(self, x, edge_index, batch):
            return self.inner(self.emb(x), edge_index, batch)

    model, alone = ready(Embedded()), graphs()
    for data in alone:
        data.x = torch.arange(data.num_nodes) * 2 % 9
    for e, data in zip(explain(model, Batch.from_data_list(alone), start="emb"), alone, strict=True):
        assert_close(e.node_scores, explain(model, data, start="emb").node_scores)
