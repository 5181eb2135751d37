"""Explanations of a few nodes: from what matters for them only, of large graphs without a look at the rest."""

import pytest
import torch
from helpers import CONVS, as_large, assert_close, both_ways, features, net, ready
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GraphNorm, SAGEConv

from xdegree import (
    Explanations,
    StaleError,
    agglomerate,
    contextual_scores,
    decompose,
    explain,
    interaction,
    pick_subgraph,
    prepare,
)
from xdegree.engine.sparse_rows import ActiveRows, TooMuch
from xdegree.locality.message_flow import Incoming, Sampling

# A ladder of forty rungs with a hub that receives messages from a third of it.
RUNGS = [(2 * i, 2 * i + 1) for i in range(40)]
SIDES = [(i, i + 2) for i in range(78)]
EDGES = both_ways([*RUNGS, *SIDES, *[(80, i) for i in range(0, 80, 3)]])
X = features(81)


def directly(model: nn.Module, index: int, x: Tensor = X, edge_index: Tensor = EDGES) -> Tensor:
    """Every node as a group, on the whole graph."""
    d = decompose(model, x, edge_index, groups=[[node] for node in range(len(x))])
    return d.target[:, index, int(d.total[index].argmax())]


@pytest.fixture(params=["whole", "cut"])
def way(request, monkeypatch) -> str:
    """Both ways to explain a few nodes: on the user's graph, and on what is cut out of it."""
    if request.param == "cut":
        as_large(monkeypatch)
    return request.param


@pytest.mark.parametrize("kind", CONVS)
def test_a_node_and_the_next_one(kind, way):
    """The second question is answered by what the first one taught about the model."""
    model = net(kind)
    for index in (7, 80, 40):
        e = explain(model, X, EDGES, index=index)
        assert_close(e.node_scores, directly(model, index))
        assert_close(e.prediction, model(X, EDGES)[index])
        assert set(e.nodes.tolist()) >= set(e.node_scores.nonzero().flatten().tolist())


@pytest.mark.parametrize("of", ["node", "edge", "feature"])
@pytest.mark.parametrize("kind", CONVS)
def test_edges_of_half_the_bits(kind, of, way):
    """An edge_index in int32 says as much as one in int64."""
    e, expected = (explain(net(kind), X, edges, index=7, of=of) for edges in (EDGES.int(), EDGES))
    assert torch.equal(e.nodes, expected.nodes)
    assert len(e.nodes) < len(X)
    assert_close(e.scores, expected.scores)


@pytest.mark.parametrize("kind", CONVS)
@pytest.mark.parametrize("reading", ["contribution", "probability", "strength"])
def test_several_nodes(kind, reading, way):
    model, index = net(kind), [3, 50, 3, 80]
    found = explain(model, X, EDGES, index=index, reading=reading)
    assert isinstance(found, Explanations)
    assert [e.index for e in found] == index
    for e in found:
        one = explain(model, X, EDGES, index=e.index, reading=reading, edge_scores="mean")  # the way of all nodes
        assert_close(e.node_scores, one.node_scores)
        assert torch.equal(e.nodes, one.nodes)


def test_the_sparse_matrix(way):
    found = explain(net(), X, EDGES, index=[3, 50])
    assert found.matrix.layout == torch.sparse_csr
    assert torch.equal(found.matrix.to_dense(), torch.stack([e.node_scores for e in found]))
    frame = found.to_dataframe()
    assert list(frame.columns) == ["index", "target", "node", "score"]
    assert frame["score"].sum() == pytest.approx(float(sum(e.node_scores.sum() for e in found)))
    assert [e.index for e in found[:1]] == [3]
    assert found[-1].index == 50
    with pytest.raises(IndexError):
        found[2]


def test_all_nodes_in_parts(monkeypatch):
    as_large(monkeypatch)
    monkeypatch.setattr("xdegree.attribution.explain.AT_ONCE", 7)
    model = net("sage")
    found = explain(model, X, EDGES, index="all")
    d = decompose(model, X, EDGES, groups=[[node] for node in range(81)])
    assert_close(found.matrix.to_dense(), d.target[:, torch.arange(81), d.total.argmax(1)].t())


@pytest.mark.parametrize("kind", ["gcn", "gat"])
def test_a_tight_budget_takes_more_passes(kind, monkeypatch):
    passes = []
    begin = ActiveRows.attach
    monkeypatch.setattr(ActiveRows, "attach", lambda self, replica: (passes.append(1), begin(self, replica)))
    model = net(kind)
    explain(model, X, EDGES, index=80)
    wide, expected = len(passes), explain(model, X, EDGES, index=80)
    passes.clear()
    as_large(monkeypatch)
    e = explain(model, X, EDGES, index=80, memory="30KB")
    assert len(passes) > wide
    assert_close(e.node_scores, expected.node_scores)


def test_more_than_one_node_alone_can_take():
    active = ActiveRows(torch.zeros(3), 1, limit=100)
    with pytest.raises(TooMuch, match="times the memory budget"):
        active.admit(100, 8)


class Edited(nn.Module):
    """A network whose depth somebody changes between two questions."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([SAGEConv(4, 4) for _ in range(3)])
        self.depth, self.mixes, self.back = 1, False, False

    def forward(self, x, edge_index):
        for conv in self.convs[: self.depth]:
            x = conv(x, edge_index.flip(0) if self.back else edge_index).relu()
        return x + x.mean(0) if self.mixes else x


def test_a_model_that_changes_between_two_questions(way):
    model, path = ready(Edited()), torch.tensor([list(range(29)), list(range(1, 30))])
    x = features(30)
    changes = [{}, {"depth": 3}, {"depth": 1}, {"back": True}, {"mixes": True}, {"mixes": False, "back": False}]
    for change in changes:
        vars(model).update(change)
        e = explain(model, x, path, index=9)
        assert_close(e.node_scores, directly(model, 9, x, path))


class Mixing(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.conv, self.norm, self.how = GCNConv(4, 3), GraphNorm(3), how

    def forward(self, x, edge_index):
        h = self.conv(x, edge_index)
        first = {"first": h[:1], "last": h[-1:], "mean": h.mean(0), "max": h.amax(0), "moved": h.roll(1, 0)}
        return self.norm(h) if self.how == "norm" else h + first[self.how]


@pytest.mark.parametrize("how", ["first", "last", "mean", "max", "moved", "norm"])
def test_models_that_look_further_are_run_on_everything(how, way):
    model = ready(Mixing(how))
    for _ in range(2):
        assert_close(explain(model, X, EDGES, index=40).node_scores, directly(model, 40))


WRITES = {
    "in place": lambda t, at, value: t.__setitem__(at, value),
    "through .data": lambda t, at, value: t.data.__setitem__(at, value),
    "through NumPy": lambda t, at, value: t.numpy().__setitem__(at, value),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("what", ["sender", "receiver", "both", "swapped", "feature", "parameter", "far feature"])
def test_what_changes_between_two_questions_is_noticed(what, write, way):
    """A held object refuses, or gives what a fresh one would; the functions remember nothing."""
    model, x, edge_index = net("sage"), X.clone(), EDGES.clone()
    prepared = prepare(model, x, edge_index)
    assert_close(prepared.explain(index=7).node_scores, explain(model, x, edge_index, index=7).node_scores)
    change = WRITES[write]
    with torch.no_grad():
        if what in ("sender", "both"):
            change(edge_index, (0, 5), 60)
        if what in ("receiver", "both"):
            change(edge_index, (1, 5), 7)
        if what == "swapped":
            first, second = edge_index[1, 3].item(), edge_index[1, 100].item()
            change(edge_index, (1, 3), second)
            change(edge_index, (1, 100), first)
        if what == "feature":
            change(x, (5, 0), 9.0)
        if what == "far feature":
            change(x, (70, 0), 9.0)
        if what == "parameter":
            change(model.lin2.weight.detach(), (0, 0), 9.0)
    expected = directly(model, 7, x, edge_index)
    assert_close(explain(model, x, edge_index, index=7).node_scores, expected)
    try:
        found = prepared.explain(index=7)
    except StaleError as error:
        told = str(error)
    else:
        told = "call xdegree.prepare again"
        assert_close(found.node_scores, expected)
    assert "call xdegree.prepare again" in told
    assert_close(prepare(model, x, edge_index).explain(index=7).node_scores, expected)


@pytest.mark.parametrize("many", [False, True])
def test_edges_that_move_among_very_many(many, monkeypatch):
    """Sums of blocks stand for the edges of a graph that is too large to compare all of them."""
    as_large(monkeypatch)
    if many:
        monkeypatch.setattr("xdegree.locality.contents.MANY", 8)
    model = net("sage")
    for first, second in [(5, 90), (0, 150), (33, 34)]:
        edge_index = EDGES.clone()
        prepared = prepare(model, X, edge_index)
        edge_index.numpy()[1, [first, second]] = edge_index.numpy()[1, [second, first]]
        for index in (7, 40, 80, int(edge_index[1, first])):
            try:
                found = prepared.explain(index=index)
            except StaleError:
                continue
            assert_close(found.node_scores, directly(model, index, X, edge_index))


def test_a_question_is_asked_with_the_same_words():
    model = net()
    prepared = prepare(model, X, EDGES)
    assert_close(
        prepared.decompose(groups=[[3], [7, 8]]).target, decompose(model, X, EDGES, groups=[[3], [7, 8]]).target
    )
    given = (model, X, EDGES)
    assert prepared.agglomerate(index=40).levels == agglomerate(*given, index=40).levels
    assert list(prepared.agglomerate_levels(index=40)) == list(agglomerate(*given, index=40).levels)
    asked = {"index": 40, "groups": [[40], [41, 42]]}
    assert_close(prepared.contextual_scores(**asked), contextual_scores(*given, **asked))
    asked = {"index": 40, "a": [40], "b": [42]}
    assert prepared.interaction(**asked) == interaction(*given, **asked)
    assert prepared.pick_subgraph(index=40, size=3) == pick_subgraph(*given, index=40, size=3)
    with pytest.raises(TypeError, match="were given to prepare"):
        explain(prepared, X, EDGES, index=3)


def test_the_model_runs_plain_once_for_many_questions():
    passes = []

    class Counted(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.note = net("sage"), passes.append

        def forward(self, x, edge_index):
            self.note(len(x))
            return self.inner(x, edge_index)

    prepared = prepare(Counted().eval(), X, EDGES)
    for index in range(5):
        prepared.explain(index=index)
    assert passes == [81] * 6  # one plain, one over portions for each question


SCOPES = ("neighborhood, verified", "whole graph", "whole graph: the model looks beyond the neighborhood")


def test_the_explanation_says_what_was_worked_on(way):
    assert explain(net(), X, EDGES, index=7).scope == ("whole graph" if way == "whole" else SCOPES[0])
    assert explain(ready(Mixing("mean")), X, EDGES, index=7).scope == SCOPES[2]
    assert explain(net(), X, EDGES, index=7, of="edge").scope in SCOPES[:2]


def test_on_trust(monkeypatch):
    as_large(monkeypatch)
    for kind in CONVS:
        e = explain(net(kind), X, EDGES, index=7, trust_neighborhood=True)
        assert e.scope == "neighborhood, not verified"
        assert_close(e.node_scores, directly(net(kind), 7))
        assert_close(e.prediction, net(kind)(X, EDGES)[7])
    prepared = prepare(net(), X, EDGES, trust_neighborhood=True)
    assert_close(prepared.explain(index=[7, 80])[1].node_scores, directly(net(), 80))
    tree = prepared.agglomerate(index=7)
    assert tree.levels == agglomerate(net(), X, EDGES, index=7).levels


def test_sampled_neighbors():
    model = net("sage")
    full = explain(model, X, EDGES, index=80)
    e = explain(model, X, EDGES, index=80, num_neighbors=5, seed=1)
    assert len(e.nodes) < len(full.nodes)
    assert_close(e.prediction, full.prediction)
    assert e.sampling_error.abs().max() > 0
    again, other = (explain(model, X, EDGES, index=80, num_neighbors=5, seed=seed) for seed in (1, 2))
    assert torch.equal(e.node_scores, again.node_scores)
    assert not torch.equal(e.node_scores, other.node_scores)
    among = explain(model, X, EDGES, index=[3, 80], num_neighbors=5, seed=1)[1]
    assert_close(among.node_scores, e.node_scores)
    enough = explain(model, X, EDGES, index=80, num_neighbors=99)
    assert_close(enough.node_scores, full.node_scores)
    assert not enough.sampling_error.any()
    with pytest.raises(ValueError, match="num_neighbors and trust_neighborhood"):
        explain(ready(Mixing("mean")), X, EDGES, index=80, num_neighbors=5)


def test_a_sample_is_even():
    star = torch.stack([torch.arange(1, 41), torch.zeros(40, dtype=torch.long)])
    index, counts = Incoming(star, 41, "source_to_target"), torch.zeros(41)
    for seed in range(400):
        _, sources, _ = index.into(torch.tensor([0, 3]), Sampling(10, seed))
        assert len(sources.unique()) == len(sources) == 10
        counts[sources] += 1
    assert counts[0] == 0
    assert counts[1:].min() > 60
    assert counts[1:].max() < 140


@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_what_lies_within_some_hops(flow):
    path = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    ball = Incoming(path, 5, flow).ball(torch.tensor([2]), 2)
    assert ball.nodes.tolist() == ([0, 1, 2] if flow == "source_to_target" else [2, 3, 4])
    assert ball.distance.tolist() == ([2, 1, 0] if flow == "source_to_target" else [0, 1, 2])
    assert ball.edges.tolist() == ([0, 1] if flow == "source_to_target" else [2, 3])
    assert Incoming(path, 5, flow).ball(torch.tensor([2]), 9).nodes.tolist() == ball.nodes.tolist()
