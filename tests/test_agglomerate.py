"""Laws of the agglomeration over random graphs, cases that can be computed by hand, and one step typed slowly."""

import math
from functools import cache
from itertools import product

import networkx
import pytest
import torch
from helpers import EDGES, PAIR_BATCH, PAIR_EDGES, both_ways, features, net, ready
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_geometric.nn import (
    ChebConv,
    EdgeConv,
    GATv2Conv,
    GCNConv,
    ResGatedGraphConv,
    SAGEConv,
    TransformerConv,
)

from xdegree import Contexts, Options, agglomerate, agglomerate_levels, contextual_scores, decompose
from xdegree.experiments.forward import learnt, search
from xdegree.experiments.molecules import generated, molecules, plant
from xdegree.locality.prepared import PreparedCall
from xdegree.subgraphs.agglomerate import Growth
from xdegree.subgraphs.contextual import Scorer

X = features()
SELECTIONS = ("threshold", "queue", "percentile", "percentile-signed")
READINGS = list(product(SELECTIONS, ("groups", "nodes")))
MODEL = net(level="graph", hidden=4)
NODE_MODEL = net(hidden=4)


@st.composite
def graphs(draw, most: int = 8):
    """Any edges, self-loops and repeated ones too, isolated nodes and several parts; random features."""
    n = draw(st.integers(1, most))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=2 * n))
    x = features(n, seed=draw(st.integers(0, 99)))
    return x, (both_ways(edges) if edges else torch.empty(2, 0, dtype=torch.long))


def as_networkx(edges: torch.Tensor, nodes: int) -> networkx.Graph:
    graph = networkx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(edges.t().tolist())
    return graph


def same(tree, other, moved=lambda node: node) -> None:
    """The same groups with the same scores, once nodes are renamed."""
    assert len(tree.levels) == len(other.levels)
    for level, there in zip(tree.levels, other.levels, strict=True):
        scores = {frozenset(map(moved, nodes)): score for nodes, score in level}
        assert scores == pytest.approx(dict(there), abs=1e-9)


def check_laws(tree, x, edges, budget=None) -> None:
    graph = as_networkx(edges, len(x))
    before: dict[int, frozenset[int]] = {}
    for level in tree.levels:
        now = {node: group.nodes for group in level for node in group.nodes}
        assert sum(len(group.nodes) for group in level) == len(now), "groups of a level are disjoint"
        assert all(networkx.is_connected(graph.subgraph(group.nodes)) for group in level), "and connected"
        assert all(nodes <= now[node] for node, nodes in before.items()), "levels only grow"
        assert set(now.values()) != set(before.values()), "and every level is a new one"
        before = now
    parts = {frozenset(part) for part in networkx.connected_components(graph)}
    finished = {group.nodes for group in tree.levels[-1]} == parts
    assert finished or len(tree.levels) == budget


@pytest.mark.parametrize(("selection", "candidates"), READINGS)
@settings(max_examples=12, deadline=None)
@given(graph=graphs(), q=st.sampled_from([0, 0.3, 0.6, 1]), budget=st.sampled_from([None, None, 1, 2]))
def test_laws(selection, candidates, graph, q, budget):
    x, edges = graph
    tree = agglomerate(MODEL, x, edges, q=q, max_levels=budget, selection=selection, candidates=candidates)
    check_laws(tree, x, edges, budget)
    assert [leaf.nodes for leaf in tree.leaves] == [{node} for node in range(len(x))]


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("contexts", [Contexts(exact=10**6), Contexts(exact=0, walks=4)], ids=["exact", "drawn"])
@settings(max_examples=8, deadline=None)
@given(graph=graphs(), data=st.data())
def test_renumbering_renumbers_the_tree(selection, contexts, graph, data):
    """Drawn contexts too: features tell all nodes apart here."""
    x, edges = graph
    order = torch.tensor(data.draw(st.permutations(range(len(x)))))
    place = order.argsort()
    tree = agglomerate(MODEL, x, edges, selection=selection, contexts=contexts)
    moved = agglomerate(MODEL, x[order], place[edges], selection=selection, contexts=contexts)
    same(tree, moved, lambda node: int(place[node]))


def test_renumbering_where_nothing_tells_nodes_apart():
    """A cycle of equal nodes with a chord: mirror images are taken in together."""
    edges = both_ways([*[(i, (i + 1) % 8) for i in range(8)], (0, 4)])
    ones = torch.ones(8, 4, dtype=torch.float64)
    place = torch.tensor([3, 0, 7, 1, 6, 2, 5, 4])
    for selection in SELECTIONS:
        tree = agglomerate(MODEL, ones, edges, selection=selection)
        same(tree, agglomerate(MODEL, ones, place[edges], selection=selection), lambda node: int(place[node]))


@pytest.mark.parametrize("contexts", [Contexts(hops=1), Contexts(exact=0, walks=4)], ids=["exact", "drawn"])
def test_same_seed_same_tree_in_any_chunks(contexts):
    tree = agglomerate(MODEL, X, EDGES, contexts=contexts, seed=7)
    assert agglomerate(MODEL, X, EDGES, contexts=contexts, seed=7) == tree
    same(tree, agglomerate(MODEL, X, EDGES, contexts=contexts, seed=7, memory=1))
    same(tree, agglomerate(MODEL, X, EDGES, contexts=contexts, seed=7, memory=200_000))
    other = agglomerate(MODEL, X, EDGES, contexts=contexts, seed=8)
    assert (other.contextual == tree.contextual) == (contexts.exact > 0)


@pytest.mark.parametrize("edges", [[], [(0, 0)], [(0, 0), (0, 0)]])
def test_one_node(edges):
    edges = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()
    tree = agglomerate(MODEL, X[:1], edges)
    assert [len(level) for level in tree.levels] == [1]
    assert tree.levels[0][0].nodes == {0}
    assert tree.merges == ()
    assert tree.levels[0][0].score == pytest.approx(max(tree.prediction), abs=1e-9)


def test_self_loops_and_repeated_edges_change_nothing_of_the_groups():
    twice = torch.cat([EDGES, EDGES, torch.arange(12).repeat(2, 1)], 1)
    check_laws(agglomerate(MODEL, X, twice), X, EDGES)


def test_edges_of_small_whole_numbers_are_edges():
    same(agglomerate(MODEL, X, EDGES.int(), seed=0), agglomerate(MODEL, X, EDGES, seed=0))


def test_parts_of_the_graph_stay_apart():
    edges = both_ways([(0, 1), (1, 2), (4, 5), (6, 7), (7, 8), (8, 6)])  # 3, 9, 10 and 11 have no edges
    tree = agglomerate(MODEL, X, edges)
    check_laws(tree, X, edges)
    assert {group.nodes for group in tree.levels[-1]} >= {frozenset({0, 1, 2}), frozenset({3}), frozenset({6, 7, 8})}


def test_only_the_computation_graph_of_a_node_takes_part():
    model = net(layers=2)
    tree = agglomerate(model, X, EDGES, index=0)
    near = {0, 1, 2, 3}  # two hops, by the chord 0-2
    assert {node for leaf in tree.leaves for node in leaf.nodes} == near
    assert [group.nodes for group in tree.levels[-1]] == [near]
    assert (tree.index, tree.num_nodes) == (0, 12)
    for nodes, score in (group for level in tree.levels for group in level):
        whole = decompose(model, X, EDGES, groups=[sorted(nodes)]).target[0, 0, tree.target].item()
        assert score == pytest.approx(whole, abs=1e-10)


def test_one_graph_of_a_batch():
    tree = agglomerate(MODEL, X, PAIR_EDGES, PAIR_BATCH, index=1, target=0)
    inside = (PAIR_EDGES >= 5).all(0)
    same(agglomerate(MODEL, X[5:], PAIR_EDGES[:, inside] - 5, target=0), tree, lambda node: node + 5)


# By hand.


class And(nn.Module):
    """a · b + (a + b) / 10, where a and b say how much of two motifs is there."""

    def forward(self, x, edge_index):
        a, b = x.mul(0.5).sum(0)
        return (a * b + (a + b) * 0.1).reshape(1, 1)


def motifs() -> tuple[torch.Tensor, torch.Tensor]:
    """A path of 14 nodes; the first two are one motif, the last two the other."""
    x = torch.zeros(14, 2, dtype=torch.float64)
    x[:2, 0] = x[-2:, 1] = 1
    return x, both_ways([(i, i + 1) for i in range(13)])


@pytest.mark.parametrize("candidates", ["groups", "nodes"])
def test_an_and_of_two_motifs(candidates):
    """Neither motif does anything without the other, so all of it happens where they meet: at the top."""
    x, edges = motifs()
    tree = agglomerate(And(), x, edges, candidates=candidates, options=Options.paper())
    # Only motif nodes have something to add: φ = 0.05 each, mean 0.2 / 14, so r is 0.036 for them and 0.014 elsewhere.
    assert [group.nodes for group in tree.levels[0]] == [{0}, {1}, {12}, {13}]
    assert tree.contextual[0] == pytest.approx((0.05,) * 4, abs=1e-12)
    *others, top = tree.merges
    assert top.union.nodes == set(range(14))
    assert top.union.score == pytest.approx(1.2, abs=1e-12)
    assert top.interaction == pytest.approx(1, abs=1e-12)
    assert [merge.interaction for merge in others] == pytest.approx([0] * len(others), abs=1e-12)
    sides = [part for part in top.parts if len(part.nodes) > 1]
    assert [part.score for part in sides] == pytest.approx([0.1, 0.1], abs=1e-12)
    assert {0, 1} <= sides[0].nodes
    assert {12, 13} <= sides[1].nodes


class Additive(nn.Module):
    """Without bias and ReLU what nodes contribute adds up."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(4, 5, bias=False), GCNConv(5, 5, bias=False)
        self.lin = nn.Linear(5, 2, bias=False)

    def forward(self, x, edge_index):
        return self.lin(self.conv2(self.conv1(x, edge_index), edge_index)).sum(0, keepdim=True)


@settings(max_examples=10, deadline=None)
@given(graph=graphs(), selection=st.sampled_from(SELECTIONS))
def test_an_additive_model_has_no_interactions(graph, selection):
    tree = agglomerate(ready(Additive()), *graph, selection=selection)
    assert all(abs(merge.interaction) < 1e-9 for merge in tree.merges)
    for level, phis in zip(tree.levels, tree.contextual, strict=True):  # and contexts make no difference
        assert phis == pytest.approx([score for _, score in level], abs=1e-9)


# One step, typed from the text of the paper.


def next_level_slowly(level: list[set[int]], edges, n: int, q: float, phi) -> set[frozenset[int]]:
    """Groups take in nodes or whole groups next to them with r(v) ≥ q · max r(v'); what overlaps becomes one."""
    united = [set(group) for group in level]
    for group in level or [set()]:
        owner = {node: frozenset(g) for g in level for node in g}
        near = {v for u, v in edges.t().tolist() if u in group} - group if group else set(range(n))
        candidates = {owner.get(v, frozenset({v})) for v in near}
        if not candidates:
            continue
        s = {v: phi(group | v) - (phi(group) if group else 0) for v in candidates}
        mean = sum(s.values()) / len(s)
        r = {v: abs(s[v] - mean) for v in s}
        united += [set(group) | v for v in s if r[v] >= q * max(r.values()) - 1e-12]
    graph = networkx.Graph([(i, j) for i in range(len(united)) for j in range(len(united)) if united[i] & united[j]])
    return {frozenset().union(*(united[i] for i in part)) for part in networkx.connected_components(graph)}


@pytest.mark.parametrize(("q", "seed"), [(0.3, 1), (0.6, 2), (0.6, 3), (0.9, 4)])
def test_every_step_against_the_text(q, seed):
    x, model = features(seed=seed), net(level="graph", seed=seed)
    tree = agglomerate(model, x, EDGES, q=q)

    @cache
    def known(group: frozenset[int]) -> float:
        return contextual_scores(model, x, EDGES, groups=[group]).item()

    def phi(group) -> float:
        return known(frozenset(group))

    level: list[set[int]] = []
    for found in tree.levels:
        expected = next_level_slowly(level, EDGES, 12, q, phi)
        assert {group.nodes for group in found} == expected
        level = [set(group.nodes) for group in found]


def values(pairs: dict[tuple[int, int], float]):
    """A scorer that knows s of some pairs of a group and a candidate, as bits, and nothing else."""

    class Known:
        rounding = 0.0
        contextual = {group | other: value for (group, other), value in pairs.items()} | {0b1: 0.0, 0b1000: 0.0}

    return list(pairs), Known()


def test_three_ways_to_choose():
    """Two groups, {0} and {3}, with two and three candidates. s of the second group is small throughout."""
    s = {(0b1, 0b10): 5.0, (0b1, 0b100): 1.0, (0b1000, 0b10000): 0.5, (0b1000, 0b100000): 0.0, (0b1000, 0b1000000): 0.1}
    pairs, scorer = values(s)

    def chosen(selection, q, rising=False):
        taken = Growth(selection, "nodes", rising, q)._taken(pairs, scorer)
        return [pair for pair in pairs if pair[0] | pair[1] in taken]

    first, second, third, fourth, fifth = pairs
    # Each group for itself: r = 2, 2 around 3; and 0.3, 0.2, 0.1 around 0.2.
    assert chosen("threshold", 0.7) == [first, second, third]
    assert chosen("threshold", 0.6) == [first, second, third, fourth]
    # All together: the mean is 1.32, so r = 3.68, 0.32, 0.82, 1.32, 1.22.
    assert chosen("queue", 0.4) == [first, fourth]
    assert chosen("queue", 0.5) == [first, fourth, fifth]
    assert chosen("percentile", 0.75) == [first, fourth]
    assert chosen("percentile-signed", 0.75) == [first, second]
    assert chosen("threshold", 0.2, rising=True) == [first, second, third, fifth]
    assert chosen("queue", 0.25, rising=True) == [first]


def test_the_first_queue_is_ordered_by_the_score_itself():
    pairs, scorer = values({(0, 0b10): -9.0, (0, 0b100): 2.0, (0, 0b10000): 1.0})
    assert Growth("queue", q=0.1)._taken(pairs, scorer) == [0b100]
    assert Growth("threshold", q=0.9)._taken(pairs, scorer) == [0b10]


def test_groups_that_touch_become_one_in_the_authors_way_only():
    theirs = agglomerate(MODEL, X, EDGES, selection="percentile", candidates="nodes", contexts=Contexts("neighbors"))
    for level in theirs.levels:
        covered = as_networkx(EDGES, 12).subgraph([node for group in level for node in group.nodes])
        assert {group.nodes for group in level} == {frozenset(p) for p in networkx.connected_components(covered)}
    x, edges = motifs()
    assert [group.nodes for group in agglomerate(And(), x, edges).levels[0]] == [{0}, {1}, {12}, {13}]
    first = agglomerate(And(), x, edges, selection="percentile", q=0.9).levels[0]
    assert [group.nodes for group in first] == [{0, 1}, {12, 13}]


@settings(max_examples=25, deadline=None)
@given(graph=graphs(), selection=st.sampled_from(SELECTIONS))
def test_only_additions_that_raise_the_score(graph, selection):
    x, edges = graph
    settings = {"selection": selection, "candidates": "nodes", "contexts": Contexts("none")}
    tree = agglomerate(MODEL, x, edges, rising=True, **settings)
    if not selection.startswith("percentile"):  # where seeds that touch are one from the start
        assert all(score > 0 for level in tree.levels[:1] for _, score in level)
    for merge in tree.merges:
        before, *added = sorted(merge.parts, key=lambda part: -len(part.nodes))
        if merge.level and len(added) == 1 and len(before.nodes) > 1 and len(added[0].nodes) == 1:
            assert merge.union.score > min(before.score, added[0].score)
    last = [group.nodes for group in tree.levels[-1]] if tree.levels else [frozenset()]
    near = as_networkx(edges, len(x))
    for group in last:  # nothing is left that would raise it
        outside = {v for u in group for v in near[u]} - group if group else set(near)
        both = [sorted(group), *(sorted(group | {v}) for v in outside)]
        own, *raised = decompose(MODEL, x, edges, groups=both).target[:, 0, tree.target].tolist()
        assert all(score <= own + 1e-9 for score in raised)


def test_nothing_raises_a_score_that_only_falls():
    x, edges = motifs()
    tree = agglomerate(And(), -x[:, [0, 0]] * torch.tensor([1.0, 0.0]), edges, rising=True)
    assert tree.levels == ()
    assert "none" in repr(tree)
    assert str(tree) == "class 0, 0 levels, 14 of 14 nodes"


# Work.


def test_one_engine_call_per_step():
    scorer = Scorer.of(PreparedCall.of(MODEL, (X, EDGES), {}))
    levels = list(Growth().levels(scorer))
    assert len(levels) > 2
    assert scorer.calls <= len(levels) + 1


def test_levels_one_by_one():
    tree = agglomerate(MODEL, X, EDGES)
    assert tuple(agglomerate_levels(MODEL, X, EDGES)) == tree.levels
    stopped = agglomerate_levels(MODEL, X, EDGES)
    assert next(stopped) == tree.levels[0]
    stopped.close()
    assert tuple(agglomerate_levels(MODEL, X, EDGES, max_levels=2)) == tree.levels[:2]
    with pytest.raises(ValueError, match="q must be"):
        agglomerate_levels(MODEL, X, EDGES, q=2)  # before the first level is asked for


def test_the_tree_says_how_it_was_made():
    options = Options(bias="background")
    tree = agglomerate(
        MODEL, X, EDGES, target=1, q=0.5, max_levels=2, seed=4, selection="queue", candidates="nodes",
        reading="strength", options=options, contexts=Contexts(walks=3),
    )  # fmt: skip
    assert (tree.q, tree.max_levels, tree.seed, tree.selection, tree.candidates) == (0.5, 2, 4, "queue", "nodes")
    assert (tree.reading, tree.target, tree.options, tree.contexts) == ("strength", 1, options, Contexts(walks=3))
    assert tree.prediction == pytest.approx(MODEL(X, EDGES)[0].tolist())


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"q": 1.1}, ValueError, r"q must be a number from 0 to 1 \(got 1.1\)"),
        ({"q": -0.1}, ValueError, "q must be"),
        ({"q": math.nan}, ValueError, "q must be"),
        ({"q": "0.6"}, ValueError, "q must be"),
        ({"q": True}, ValueError, "q must be"),
        ({"max_levels": 0}, ValueError, "max_levels must be None or an integer, at least 1"),
        ({"max_levels": 1.5}, ValueError, "max_levels must be"),
        ({"max_nodes": 0}, ValueError, "max_nodes must be"),
        ({"selection": "best"}, ValueError, "selection must be one of"),
        ({"candidates": "edges"}, ValueError, "candidates must be one of"),
        ({"rising": 1}, TypeError, "rising must be True or False"),
        ({"seed": "0"}, TypeError, "seed must be an integer"),
        ({"reading": "sound"}, ValueError, "reading must be one of"),
        ({"index": 1}, ValueError, "out of range"),
        ({"contexts": "walks"}, TypeError, "contexts must be"),
        ({"graph": torch.zeros(2, 3)}, ValueError, "graph must be edges"),
    ],
)
def test_clear_errors(changes, error, match):
    with pytest.raises(error, match=match):
        agglomerate(MODEL, X, EDGES, **changes)


# The paper's forward-looking experiment.


@pytest.mark.slow
def test_a_planted_node_is_found():
    graphs = plant(generated(160, seed=1, sizes=(8, 16)), seed=1)
    model = learnt(graphs, epochs=40, seed=1, progress=False)
    found = search(model, graphs, seed=1, explained=20, progress=False)
    assert found.accuracy >= 0.97
    assert found.contribution >= 0.95
    assert found.seed >= 0.95


@pytest.mark.data
@pytest.mark.slow
def test_a_planted_node_is_found_in_molecules(data_folder):
    """In small; ``xdegree reproduce forward`` does all graphs."""
    name, graphs = molecules(600)
    assert (name, len(graphs)) == ("Mutagenicity", 600)
    graphs = plant(graphs)
    found = search(learnt(graphs, epochs=40, progress=False), graphs, explained=40, progress=False)
    assert found.accuracy >= 0.97
    assert found.contribution >= 0.95


def test_large_computation_graphs_grow_among_the_strongest_nodes():
    """What is left out is said, and what takes part is connected to the explained node."""
    whole = agglomerate(NODE_MODEL, X, EDGES, index=5)
    tree = agglomerate(NODE_MODEL, X, EDGES, index=5, max_nodes=4)
    assert whole.left_out == 0
    alone = {next(iter(leaf.nodes)): leaf.score for leaf in whole.leaves}
    kept = {next(iter(leaf.nodes)) for leaf in tree.leaves}
    assert len(kept) <= 4 < len(alone)
    share = 1 - sum(abs(alone[node]) for node in kept) / sum(map(abs, alone.values()))
    assert tree.left_out == pytest.approx(share)
    assert f"{tree.left_out:.1%} of what single nodes contribute left out" in repr(tree)
    assert len(tree.levels[-1]) == 1  # connected
    assert {leaf.nodes: leaf.score for leaf in tree.leaves}.items() <= {g.nodes: g.score for g in whole.leaves}.items()


def test_hubs_end():
    """A hub of 3,000 neighbors: minutes without a bound."""
    spokes = torch.arange(1, 3001)
    edges = torch.stack([torch.cat([spokes, torch.zeros_like(spokes)]), torch.cat([torch.zeros_like(spokes), spokes])])
    x = torch.randn(3001, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    tree = agglomerate(NODE_MODEL, x, edges, index=0, max_levels=2, max_nodes=30, contexts=Contexts(walks=3, exact=0))
    assert len(tree.leaves) == 30
    assert 0 < tree.left_out < 1
    assert tree.contextual_error > 0


def test_the_error_of_drawn_contexts_shrinks_with_their_number():
    few, many = (
        agglomerate(MODEL, X, EDGES, max_levels=1, contexts=Contexts(exact=0, walks=walks)).contextual_error
        for walks in (10, 1000)
    )
    assert 0 < many < few / 3
    assert agglomerate(MODEL, X, EDGES, max_levels=1, contexts=Contexts("none")).contextual_error == 0


class Encoded(nn.Module):
    """An encoder that treats rows one by one, messages in two layers, a skip connection."""

    def __init__(self, conv):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.LayerNorm(6))
        self.first, self.second, self.out = conv(), conv(), nn.Linear(6, 3)

    def forward(self, x, edge_index):
        h = self.first(self.encoder(x), edge_index).relu()
        return self.out(self.second(h, edge_index) + h)


LAYERS = {
    "transformer": lambda: TransformerConv(6, 6),
    "edge": lambda: EdgeConv(nn.Linear(12, 6)),
    "attention": lambda: GATv2Conv(6, 3, heads=2),
    "polynomial": lambda: ChebConv(6, 6, 2),
    "maximum": lambda: SAGEConv(6, 6, aggr="max"),
    "gated": lambda: ResGatedGraphConv(6, 6),
}


@pytest.mark.parametrize("options", [Options(), Options.paper()], ids=["default", "paper"])
@pytest.mark.parametrize("layer", LAYERS)
def test_groups_that_follow_messages_contribute_what_decompose_says(layer, options):
    model = ready(Encoded(LAYERS[layer]))
    tree = agglomerate(model, X, EDGES, index=5, max_levels=2, options=options)
    groups = [group for level in (tree.leaves, *tree.levels) for group in level]
    d = decompose(model, X, EDGES, groups=[sorted(group.nodes) for group in groups], options=options)
    scores = torch.tensor([group.score for group in groups], dtype=torch.float64)
    torch.testing.assert_close(scores, d.target[:, 5, tree.target], rtol=1e-9, atol=1e-9)
