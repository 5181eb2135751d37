"""The contextual score φ against its formula, and what it may and may not depend on; interactions of two groups."""

import pytest
import torch
from helpers import EDGES, PAIR_BATCH, PAIR_EDGES, both_ways, features, net, ready
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from xdegree import Contexts, Options, contextual_scores, decompose, interaction
from xdegree.locality.prepared import PreparedCall
from xdegree.subgraphs.adjacency import Adjacency, mask, members, union
from xdegree.subgraphs.contextual import Scorer

X = features()
EXACT, DRAWN = Contexts(exact=10**6), Contexts(exact=0, walks=6)


def f(model, x, edges, group, index=0, target=0) -> float:
    """f^D of one group, by the engine alone."""
    return decompose(model, x, edges, groups=[sorted(group)]).target[0, index, target].item()


def around(edges, group: set[int], hops: int) -> set[int]:
    """N_L(group) without the group, walked hop by hop."""
    found = set(group)
    for _ in range(hops):
        found |= {v for u, v in edges.t().tolist() if u in found} | {u for u, v in edges.t().tolist() if v in found}
    return found - set(group)


def walks(edges, region: set[int], length: int) -> list[tuple[float, frozenset[int]]]:
    """Every walk there is, with its probability, one by one."""
    pairs = {(u, v) for u, v in edges.t().tolist() if u != v} | {(v, u) for u, v in edges.t().tolist() if u != v}

    def further(path: list[int], chance: float, left: int):
        if left == 0:
            yield chance, frozenset(path)
            return
        steps = [v for v in region if (path[-1], v) in pairs] or [path[-1]]
        for step in steps:
            yield from further([*path, step], chance / len(steps), left - 1)

    return [walk for start in region for walk in further([start], 1 / len(region), length)]


def phi(model, x, edges, group: set[int], hops: int, length: int, **row) -> float:
    """φ as the paper writes it, one engine call per term."""
    region = around(edges, group, hops)
    contexts = walks(edges, region, length) if region else [(1.0, frozenset())]
    terms = [p * (f(model, x, edges, group | c, **row) - f(model, x, edges, c, **row)) for p, c in contexts]
    return sum(terms)


@pytest.mark.parametrize("kind", ["gcn", "gat", "gin"])
@pytest.mark.parametrize("group", [{0}, {3, 4}, {1, 9}])
@pytest.mark.parametrize(("hops", "length"), [(1, 2), (2, 1), (2, 0)])
def test_phi_against_the_formula(kind, group, hops, length):
    model, edges = net(kind, "graph"), EDGES[:, (EDGES < 10).all(0)]
    contexts = Contexts(hops=hops, length=length)
    got = contextual_scores(model, X[:10], edges, groups=[group], target=1, contexts=contexts)
    assert got.dtype == torch.float64
    assert got.item() == pytest.approx(phi(model, X[:10], edges, group, hops, length, target=1), abs=1e-10)


def test_of_a_node_and_by_default_as_far_as_the_model_is_deep():
    model = net(layers=2)
    got = contextual_scores(model, X, EDGES, groups=[[5], [4, 6]], index=5, target=2)
    # Contexts stay in the computation graph: nodes 3 to 7 with chord 3-6, two hops around node 5.
    field = sorted({5} | around(EDGES, {5}, 2))
    inside = EDGES[:, torch.isin(EDGES, torch.tensor(field)).all(0)]
    for group, score in zip([{5}, {4, 6}], got.tolist(), strict=True):
        region = around(inside, group, 2)
        terms = [
            p * (f(model, X, EDGES, group | c, 5, 2) - f(model, X, EDGES, c, 5, 2)) for p, c in walks(inside, region, 2)
        ]
        assert score == pytest.approx(sum(terms), abs=1e-10)


def test_with_nothing_around_it_is_the_contribution():
    model = net(level="graph")
    got = contextual_scores(model, X, EDGES, groups=[range(12)], target=0)
    assert got.item() == pytest.approx(f(model, X, EDGES, set(range(12))), abs=1e-12)
    lonely = torch.empty(2, 0, dtype=torch.long)
    got = contextual_scores(model, X, lonely, groups=[[4]], target=0)
    assert got.item() == pytest.approx(f(model, X, lonely, {4}), abs=1e-12)


def test_without_contexts_and_as_the_authors_do():
    model, group = net(level="graph"), {3, 4}
    none = contextual_scores(model, X, EDGES, groups=[group], target=0, contexts=Contexts("none"))
    assert none.item() == pytest.approx(f(model, X, EDGES, group), abs=1e-12)
    theirs = contextual_scores(model, X, EDGES, groups=[group], target=0, contexts=Contexts("neighbors"))
    sets = [group, *(group | {node} for node in around(EDGES, group, 1))]
    expected = sum(f(model, X, EDGES, s) for s in sets) / len(sets)
    assert theirs.item() == pytest.approx(expected, abs=1e-12)


def test_drawn_scores_come_near_the_exact_one():
    model = net(level="graph", layers=3)
    groups = [[0], [5], [8, 9]]
    exact = contextual_scores(model, X, EDGES, groups=groups, contexts=EXACT)
    drawn = contextual_scores(model, X, EDGES, groups=groups, contexts=Contexts(exact=0, walks=4000))
    few = contextual_scores(model, X, EDGES, groups=groups, contexts=DRAWN)
    assert not torch.allclose(few, exact, atol=1e-6)
    torch.testing.assert_close(drawn, exact, rtol=0.05, atol=0.05 * float(exact.abs().max()))


def test_drawn_contexts_are_distributed_as_walks_are():
    model = net(level="graph")
    call = PreparedCall.of(model, (X, EDGES), {})
    scorer = Scorer.of(call, contexts=Contexts(exact=0, walks=20000))
    region = scorer.adjacency.within(1 << 5, 2) & ~(1 << 5)
    exact = Scorer.of(call, contexts=EXACT).surroundings._enumerated(region)
    drawn = scorer.surroundings.of(1 << 5)
    assert sum(exact.values()) == pytest.approx(1)
    assert drawn.keys() <= exact.keys()
    assert max(abs(exact[c] - drawn.get(c, 0)) for c in exact) < 0.015


@pytest.mark.parametrize("contexts", [EXACT, DRAWN])
def test_seed_and_group_decide_and_nothing_else(contexts):
    model, groups = net(level="graph", layers=3), [[0], [5], [8, 9], [1, 2, 3]]
    scores = contextual_scores(model, X, EDGES, groups=groups, contexts=contexts, seed=3)

    def again(**changes):
        return contextual_scores(model, X, EDGES, **{"groups": groups, "contexts": contexts, "seed": 3, **changes})

    assert torch.equal(scores, again())
    torch.testing.assert_close(again(memory=1), scores, rtol=0, atol=1e-12)
    torch.testing.assert_close(again(memory=30_000), scores, rtol=0, atol=1e-12)
    torch.testing.assert_close(again(groups=groups[::-1]).flip(0), scores, rtol=0, atol=1e-12)
    for number, group in enumerate(groups):
        torch.testing.assert_close(again(groups=[group]), scores[number : number + 1], rtol=0, atol=1e-12)
    assert torch.allclose(again(seed=4), scores) == (contexts is EXACT)


@pytest.mark.parametrize("contexts", [EXACT, DRAWN])
@settings(max_examples=15, deadline=None)
@given(order=st.permutations(range(12)), index=st.integers(0, 11))
def test_renumbering_renumbers(contexts, order, index):
    """Drawn contexts too, where features tell all nodes apart."""
    model, order = net(layers=3), torch.tensor(order)
    inverse = order.argsort()
    groups = [[index], [0, 1], [4, 7, 11]]
    before = contextual_scores(model, X, EDGES, groups=groups, index=index, contexts=contexts)
    moved = [inverse[torch.tensor(group)].tolist() for group in groups]
    after = contextual_scores(
        model, X[order], inverse[EDGES], groups=moved, index=int(inverse[index]), contexts=contexts
    )
    torch.testing.assert_close(after, before, rtol=0, atol=1e-10)


def test_exact_scores_of_mirror_images_are_equal():
    """On a cycle of equal nodes all single nodes are alike; drawn contexts, which only ids tell apart, need not be."""
    model = net(level="graph", layers=2)
    cycle, ones = both_ways([(i, (i + 1) % 8) for i in range(8)]), torch.ones(8, 4, dtype=torch.float64)
    exact = contextual_scores(model, ones, cycle, groups=[[i] for i in range(8)], contexts=EXACT)
    assert float(exact.max() - exact.min()) < 1e-10


def test_one_engine_call_for_all_groups_and_nothing_twice():
    model = net(level="graph")
    scorer = Scorer.of(PreparedCall.of(model, (X, EDGES), {}))
    scorer.score(contributions=[1, 3], contextual=[1, 2, 4])
    assert scorer.calls == 1
    scorer.score(contributions=[1, 3], contextual=[1, 2, 4])
    assert scorer.calls == 1
    known = len(scorer.contributions)
    scorer.score(contributions=[1 << 11])
    assert (scorer.calls, len(scorer.contributions)) == (2, known + 1)


def test_probability_and_strength_are_readings_of_it():
    model = net(level="graph")
    for reading in ("probability", "strength"):
        got = contextual_scores(model, X, EDGES, groups=[[0], [5]], reading=reading, options=Options(ties="first"))
        assert bool(got.isfinite().all())


class Dense(nn.Module):
    """No edge_index among the arguments."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 2, bias=False)

    def forward(self, x, adjacency):
        return self.lin(adjacency @ x).sum(0, keepdim=True)


def test_edges_can_be_given_apart():
    model = ready(Dense())
    adjacency = torch.zeros(12, 12, dtype=torch.float64)
    adjacency[EDGES[1], EDGES[0]] = 1
    with pytest.raises(ValueError, match="graph=edge_index"):
        contextual_scores(model, X, adjacency, groups=[[0]])
    got = contextual_scores(model, X, adjacency, groups=[[0]], graph=EDGES, target=0)
    assert got.item() == pytest.approx(f(model, X, adjacency, {0}), abs=1e-10)  # a sum over nodes


def test_data_in_the_place_of_tensors():
    model, data = net(level="graph"), Data(x=X, edge_index=EDGES)
    tensors = contextual_scores(model, X, EDGES, groups=[[0]])
    assert torch.equal(contextual_scores(model, data, groups=[[0]]), tensors)


def test_a_graph_of_a_batch():
    model = net(level="graph")
    got = contextual_scores(model, X, PAIR_EDGES, PAIR_BATCH, groups=[[6, 7], [0]], index=1, target=0)
    inside = (PAIR_EDGES >= 5).all(0)
    alone = contextual_scores(model, X[5:], PAIR_EDGES[:, inside] - 5, groups=[[1, 2]], target=0)
    assert got[0].item() == pytest.approx(alone.item(), abs=1e-10)
    assert got[1].item() == 0  # another graph's node


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"groups": [[12]]}, ValueError, r"group 0 names nodes \[12\], but ids go from 0 to 11"),
        ({"groups": [[0], [-1]]}, ValueError, r"group 1 names nodes \[-1\]"),
        ({"groups": [0]}, TypeError, "group 0 must be a list of node ids"),
        ({"groups": ["ab"]}, TypeError, "group 0 must be a list of node ids"),
        ({"groups": [[True]]}, TypeError, "integer node ids"),
        ({"groups": [[0.5]]}, TypeError, "integer node ids"),
        ({"seed": 0.5}, TypeError, "seed must be an integer"),
        ({"seed": True}, TypeError, "seed must be an integer"),
        ({"contexts": 10}, TypeError, r"contexts must be xdegree.Contexts\(…\)"),
        ({"reading": "sound"}, ValueError, "reading must be one of"),
        ({"index": 3}, ValueError, "out of range"),
        ({"target": 3}, ValueError, "out of range"),
        ({"graph": [[0, 1]]}, ValueError, "graph must be edges"),
        ({"graph": EDGES.float()}, ValueError, "graph must be edges"),
        ({"graph": EDGES + 1}, ValueError, "graph must name nodes from 0 to 11"),
        ({"options": {}}, TypeError, "options must be"),
        ({"memory": "much"}, ValueError, "memory must be"),
    ],
)
def test_clear_errors(changes, error, match):
    with pytest.raises(error, match=match):
        contextual_scores(net(level="graph"), X, EDGES, **{"groups": [[0]], **changes})


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"kind": "dreams"}, "Contexts.kind must be one of"),
        ({"walks": 0}, "Contexts.walks must be an integer of at least 1"),
        ({"walks": None}, "Contexts.walks"),
        ({"length": -1}, "Contexts.length"),
        ({"hops": 1.5}, "Contexts.hops"),
        ({"exact": True}, "Contexts.exact"),
    ],
)
def test_contexts_that_do_not_exist(changes, match):
    with pytest.raises(ValueError, match=match):
        Contexts(**changes)


def test_features_that_cannot_be_split():
    with pytest.raises(TypeError, match="floating point"):
        contextual_scores(net(level="graph"), X.long(), EDGES, groups=[[0]])
    hetero = {"atom": X}
    with pytest.raises(NotImplementedError, match="one type of nodes"):
        contextual_scores(lambda x_dict: x_dict["atom"].sum(0, keepdim=True), hetero, groups=[[0]])


# Interactions of two groups that the user names.


def test_interaction_is_the_difference():
    model, a, b = net(), [3, 4], [6, 7]
    got = interaction(model, X, EDGES, a=a, b=b, index=5, target=1)
    row = {"index": 5, "target": 1}
    expected = f(model, X, EDGES, a + b, **row) - f(model, X, EDGES, a, **row) - f(model, X, EDGES, b, **row)
    assert got == pytest.approx(expected, abs=1e-12)
    assert got == pytest.approx(interaction(model, X, EDGES, a=b, b=torch.tensor(a), index=5, target=1), abs=1e-12)


def test_interactions_of_a_linear_model_are_zero():
    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GCNConv(4, 3, bias=False)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index).sum(0, keepdim=True)

    assert abs(interaction(ready(Linear()), X, EDGES, a=[0, 1], b=range(2, 12))) < 1e-9


def test_nodes_out_of_reach_do_not_interact():
    assert interaction(net(), X, EDGES, a=[0], b=[11], index=0) == 0


@pytest.mark.parametrize(
    ("a", "b", "error", "match"),
    [
        ([0, 1], [1, 2], ValueError, r"no node in common \(got \[1\] in both\)"),
        ([0], [12], ValueError, r"b names nodes \[12\]"),
        (3, [1], TypeError, "a must be a list of node ids"),
        ([0], ["1"], TypeError, "b must hold integer node ids"),
    ],
)
def test_groups_that_cannot_interact(a, b, error, match):
    with pytest.raises(error, match=match):
        interaction(net(level="graph"), X, EDGES, a=a, b=b)


def test_an_overlap_out_of_reach_is_still_an_error():
    with pytest.raises(ValueError, match="no node in common"):
        interaction(net(), X, EDGES, a=[0, 11], b=[1, 11], index=0)


# Sets of nodes as numbers.


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sets(st.integers(0, 70)), min_size=1, max_size=5))
def test_bits_and_masks(groups):
    bits = [union(group) for group in groups]
    assert [set(members(b)) for b in bits] == groups
    found = mask(bits, 71)
    assert [set(column.nonzero().flatten().tolist()) for column in found.t()] == groups


def test_keys_do_not_depend_on_the_numbering():
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    inverse = order.argsort()
    before, after = Adjacency(EDGES, 12, X).keys, Adjacency(inverse[EDGES], 12, X[order]).keys
    assert [before[node] for node in order.tolist()] == after
    assert len(set(before)) == 12
    assert len(set(Adjacency(EDGES, 12).keys)) > 6  # structure alone tells most of them apart
    assert len(set(Adjacency(both_ways([(i, (i + 1) % 6) for i in range(6)]), 6).keys)) == 1
