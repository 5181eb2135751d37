"""The picker: every game against calls made by hand, and the best of all sets on small graphs."""

from itertools import combinations

import networkx
import pytest
import torch
from helpers import EDGES, PAIR_BATCH, PAIR_EDGES, both_ways, features, net, ready
from test_agglomerate import And, as_networkx, motifs
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GCNConv, GINConv, global_add_pool, global_max_pool, global_mean_pool

from xdegree import agglomerate, decompose, interaction, pick_subgraph, prepare
from xdegree.baselines import eig_search, eig_subgraph, explain_with, instance
from xdegree.model_call.split_points import mean_features
from xdegree.removal import Removal
from xdegree.subgraphs.games import Game, Units

X = features()
MODEL = net(level="graph", hidden=4)
NODES = net()
SMALL = both_ways([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5), (1, 4)])
QUIET = {"progress": False}
GAMES = ["features", "mean", "edges", "nodes"]


class Molecule(nn.Module):
    """A GIN with batch norms and any pool and last step, as models of papers have them."""

    def __init__(self, pool=global_add_pool, last="logits", classes=2):
        super().__init__()
        self.convs = nn.ModuleList(GINConv(nn.Sequential(nn.Linear(w, 5), nn.ReLU(), nn.Linear(5, 5))) for w in (4, 5))
        self.norms = nn.ModuleList(nn.BatchNorm1d(5) for _ in range(2))
        self.out, self.pool, self.last = nn.Linear(5, classes), pool, last

    def forward(self, x, edge_index, batch=None):
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(x, edge_index).relu())
        out = self.out(self.pool(x, batch)) * 0.2
        return {"logits": out, "log": out.log_softmax(-1), "chance": out.softmax(-1), "sigmoid": out.sigmoid()}[
            self.last
        ]


class Weighted(nn.Module):
    """Edge features and weights, a Data object, and a batch under that."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.out = GATConv(4, 5, edge_dim=2), GCNConv(5, 5), nn.Linear(5, 2)

    def forward(self, data):
        x = self.first(data.x, data.edge_index, data.edge_attr).relu()
        x = self.second(x, data.edge_index, data.edge_weight).relu()
        return self.out(global_mean_pool(x, data.batch))


class Links(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GCNConv(4, 5)

    def forward(self, x, edge_index, edge_label_index):
        x = self.conv(x, edge_index)
        return (x[edge_label_index[0]] * x[edge_label_index[1]]).sum(1)


# By hand.


def chance(output, target: int) -> float:
    output = output.detach()
    return float(output.sigmoid() if output.numel() == 1 else output.softmax(-1)[target])


def with_edges(model, x, edges, kept, target, spared=(), row=None) -> float:
    """Only some edges, and the nodes that they touch, in a graph of its own."""
    inner = edges[:, sorted(kept)]
    nodes = sorted({*inner.flatten().tolist(), *spared})
    place = {node: i for i, node in enumerate(nodes)}
    renumbered = torch.tensor([[place[v] for v in side] for side in inner.tolist()], dtype=torch.long).reshape(2, -1)
    return chance(model(x[nodes], renumbered)[0 if row is None else place[row]], target)


def with_nodes(model, x, edges, nodes, way, target, row=None) -> float:
    inside = torch.zeros(len(x), dtype=torch.bool)
    inside[sorted(nodes)] = True
    if way == "nodes":
        if row is not None:
            inside[row] = True
        own = inside[edges[0]] & inside[edges[1]]
        place = inside.cumsum(0) - 1
        return chance(model(x[inside], place[edges[:, own]])[0 if row is None else int(place[row])], target)
    blank = torch.zeros_like(x) if way == "features" else mean_features(x).expand_as(x)
    return chance(model(torch.where(inside[:, None], x, blank), edges)[row or 0], target)


def by_hand(model, x, edges, found, row=None) -> tuple[float, float]:
    """The probability of the class with the subgraph alone, and with the rest alone."""
    if found.without == "edges":
        spared = () if row is None else (row,)
        rest = set(range(edges.shape[1])) - found.edges
        return tuple(with_edges(model, x, edges, kept, found.target, spared, row) for kept in (found.edges, rest))
    others = set(range(len(x))) - found.nodes
    return tuple(with_nodes(model, x, edges, kept, found.without, found.target, row) for kept in (found.nodes, others))


@pytest.mark.parametrize("of", ["node", "edge"])
@pytest.mark.parametrize("without", GAMES)
@pytest.mark.parametrize(("kind", "level"), [("gcn", "graph"), ("gin", "node"), ("gat", "node")])
def test_each_game_is_what_calls_by_hand_give(of, without, kind, level):
    model, row = net(kind, level), None if level == "graph" else 5
    found = pick_subgraph(
        model, X, EDGES, of=of, without=without, size=3, objective="fidelity", connected=False, index=row, **QUIET
    )
    whole = chance(model(X, EDGES)[row or 0], found.target)
    alone, rest = by_hand(model, X, EDGES, found, row)
    assert found.fidelity_plus == pytest.approx(whole - rest, abs=1e-9)
    assert found.fidelity_minus == pytest.approx(whole - alone, abs=1e-9)
    assert found.score == pytest.approx(alone - rest, abs=1e-9)
    assert found.control.whole == pytest.approx(whole, abs=1e-9)
    assert (found.of, found.without, found.objective, found.connected) == (of, without, "fidelity", False)
    assert 1 <= found.size <= 3
    ends = set(EDGES[:, sorted(found.edges)].flatten().tolist())
    assert ends <= found.nodes if of == "node" else ends == found.nodes


@pytest.mark.parametrize("pool", [global_add_pool, global_mean_pool, global_max_pool])
@pytest.mark.parametrize("last", ["logits", "log", "chance"])
def test_any_pool_and_any_last_step(pool, last):
    model = ready(Molecule(pool, last))
    found = pick_subgraph(model, X, EDGES, of="edge", share=0.3, objective="fidelity", **QUIET)
    bare = ready(Molecule(pool))
    alone, rest = by_hand(bare, X, EDGES, found)
    assert found.score == pytest.approx(alone - rest, abs=1e-9)
    assert found.score >= found.control.best
    everything = with_edges(bare, X, EDGES, range(28), found.target)
    assert found.control.whole == pytest.approx(everything, abs=1e-9)
    assert 0 <= found.control.nothing <= 1


def test_a_single_output_is_a_logit_or_a_probability_or_a_number():
    logit, sigmoid = (ready(Molecule(last=last, classes=1)) for last in ("logits", "sigmoid"))
    asked = {"of": "edge", "size": 4, "objective": "fidelity", **QUIET}
    first, second = (pick_subgraph(model, X, EDGES, **asked) for model in (logit, sigmoid))
    assert first.edges == second.edges
    assert first.score == pytest.approx(second.score, abs=1e-9)
    number = pick_subgraph(logit, X, EDGES, **asked, task="regression")
    whole = float(logit(X, EDGES).detach())
    assert number.control.whole == pytest.approx(whole)
    assert number.fidelity_plus >= 0
    assert number.fidelity_minus >= 0


@pytest.mark.parametrize("without", GAMES)
@pytest.mark.parametrize("of", ["node", "edge"])
def test_the_search_finds_the_best_of_all_sets(of, without):
    x, model = features(6, seed=3), net("gin", "graph", seed=4)
    found = pick_subgraph(
        model, x, SMALL, of=of, without=without, size=3, objective="fidelity", connected=False, **QUIET
    )
    away = Removal(model, x, SMALL, target=found.target)
    every = torch.arange(6)
    units = Units.edges(SMALL, every, False) if of == "edge" else Units(of, every, 6, torch.stack([every, every]))
    sets = [sum(1 << i for i in some) for size in (1, 2, 3) for some in combinations(range(units.count), size)]
    assert found.score == pytest.approx(max(Game(away, units, without).scores(sets)), abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_search_is_never_behind_eig_search(seed):
    model, x = ready(Molecule(), seed=seed), features(12, seed=seed)
    for most in (2, 5):
        theirs = eig_subgraph(instance(model, x, EDGES), most)
        ours = pick_subgraph(model, x, EDGES, of="edge", size=most, objective="fidelity", **QUIET)
        assert ours.score >= theirs.gain - 1e-9


def test_eig_search_by_hand():
    model = ready(Molecule())
    target = int(model(X, EDGES).argmax())
    one = instance(model, X, EDGES)
    scores = explain_with(eig_search(), model, X, EDGES).edge
    every, pairs = set(range(28)), {frozenset(e): [] for e in EDGES.t().tolist()}
    for i, e in enumerate(EDGES.t().tolist()):
        pairs[frozenset(e)].append(i)
    for both in pairs.values():
        rest = with_edges(model, X, EDGES, every - set(both), target)
        assert scores[both].tolist() == pytest.approx([-torch.tensor(rest).log().item()] * 2, abs=1e-5)
    order = sorted(pairs.values(), key=lambda both: -float(scores[both[0]]))
    gains = []
    for size in range(1, 5):
        kept = {i for both in order[:size] for i in both}
        alone, rest = (with_edges(model, X, EDGES, some, target) for some in (kept, every - kept))
        gains.append(alone - rest)
    found = eig_subgraph(one, 4)
    assert found.gain == pytest.approx(max(gains), abs=1e-9)
    assert len(found.edges) == 2 * (gains.index(max(gains)) + 1)


def test_directions_are_chosen_one_by_one_where_a_graph_is_directed():
    one_way = EDGES[:, :14]
    found = pick_subgraph(MODEL, X, one_way, of="edge", size=3, objective="fidelity", **QUIET)
    assert len(found.edges) == found.size <= 3
    both = pick_subgraph(MODEL, X, EDGES, of="edge", size=3, objective="fidelity", **QUIET)
    assert len(both.edges) == 2 * both.size
    assert {e + 14 if e < 14 else e - 14 for e in both.edges} == both.edges
    single = pick_subgraph(MODEL, X, EDGES, of="edge", size=3, objective="fidelity", directed=True, **QUIET)
    assert len(single.edges) == single.size
    uneven = torch.rand(28, dtype=X.dtype)
    data = Data(x=X, edge_index=EDGES, edge_attr=torch.ones(28, 2, dtype=X.dtype), edge_weight=uneven)
    assert len((weighted := pick_subgraph(ready(Weighted()), data, of="edge", size=4, **QUIET)).edges) == weighted.size


def test_edge_features_weights_and_a_data_object_follow():
    weight = torch.rand(14, generator=torch.Generator().manual_seed(0), dtype=X.dtype).repeat(2)
    attr = torch.stack([weight, 1 - weight], 1)
    model, data = ready(Weighted()), Data(x=X, edge_index=EDGES, edge_attr=attr, edge_weight=weight)
    found = pick_subgraph(model, data, of="edge", size=4, objective="fidelity", **QUIET)

    def alone(kept) -> float:
        inner = EDGES[:, sorted(kept)]
        nodes = inner.unique()
        part = Data(x=X[nodes], edge_index=torch.searchsorted(nodes, inner), edge_attr=attr[sorted(kept)])
        part.edge_weight = weight[sorted(kept)]
        return chance(model(part)[0], found.target)

    assert len(found.edges) == 2 * found.size
    assert found.score == pytest.approx(alone(found.edges) - alone(set(range(28)) - found.edges), abs=1e-9)


def test_one_graph_of_a_batch_is_as_that_graph_alone():
    model = net("gin", "graph", pool="mean")
    asked = {"of": "edge", "size": 3, "objective": "fidelity", **QUIET}
    inside = (PAIR_EDGES >= 5).all(0)
    whole = pick_subgraph(model, X, PAIR_EDGES, PAIR_BATCH, index=1, **asked)
    alone = pick_subgraph(model, X[5:], PAIR_EDGES[:, inside] - 5, **asked)
    assert {node - 5 for node in whole.nodes} == alone.nodes
    assert whole.score == pytest.approx(alone.score, abs=1e-9)
    ids = inside.nonzero().flatten()
    assert {int(ids[edge]) for edge in alone.edges} == whole.edges
    graphs = [Data(x=X[5:], edge_index=PAIR_EDGES[:, inside] - 5)] * 2
    assert pick_subgraph(model, Batch.from_data_list(graphs), index=0, **asked).score == pytest.approx(alone.score)


def test_the_ends_of_a_link_stay():
    model, links = ready(Links()), torch.tensor([[0, 4], [8, 7]])
    found = pick_subgraph(model, X, EDGES, links, index=1, of="edge", size=2, objective="fidelity", **QUIET)
    inner = EDGES[:, sorted(found.edges)]
    nodes = torch.tensor(sorted({*inner.flatten().tolist(), 4, 7}))
    part = model(X[nodes], torch.searchsorted(nodes, inner), torch.searchsorted(nodes, links[:, 1:].contiguous()))
    assert found.control.whole - found.fidelity_minus == pytest.approx(float(part.detach().sigmoid()), abs=1e-9)


def test_a_model_of_one_graph_is_asked_one_by_one():
    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.out = GCNConv(4, 5), nn.Linear(5, 2)

        def forward(self, x, edge_index):
            return self.out(self.conv(x, edge_index).relu().amax(0, keepdim=True))

    model = ready(Whole())
    found = pick_subgraph(model, X, EDGES, of="edge", size=3, objective="fidelity", passes=300, **QUIET)
    alone, rest = by_hand(model, X, EDGES, found)
    assert found.score == pytest.approx(alone - rest, abs=1e-9)
    assert found.control.nothing is None  # a maximum over no nodes


def test_what_no_engine_can_follow_is_still_played():
    asked = {"of": "edge", "size": 2, "index": 3, **QUIET}

    def outer(x, edge_index):
        return torch.stack([x[edge_index[0, edge_index[1] == node]].sum(0) for node in range(len(x))])

    with pytest.warns(UserWarning, match="contributions cannot be computed here"):
        found = pick_subgraph(outer, X, EDGES, objective="fidelity", passes=200, **asked)
    assert found.contribution is None
    with pytest.raises(TypeError, match="this function refers to none"):
        pick_subgraph(outer, X, EDGES, **asked)


def test_no_variant_is_computed_twice_and_the_budget_holds(monkeypatch):
    seen = []
    plain = Removal._of_variants

    def counted(self, nodes, edges, x=None):
        seen.extend(map(bytes, edges.numpy()))
        return plain(self, nodes, edges, x)

    monkeypatch.setattr(Removal, "_of_variants", counted)
    model, asked = ready(Molecule()), {"of": "edge", "size": 5, "objective": "fidelity", **QUIET}
    free = pick_subgraph(model, X, EDGES, **asked)
    assert len(seen) == len(set(seen)) == free.passes
    few = pick_subgraph(model, X, EDGES, passes=100, **asked)
    control = 2 * few.control.draws + 2
    assert few.passes <= 100 + control < free.passes
    assert few.score <= free.score
    assert pick_subgraph(model, X, EDGES, **asked) == free
    assert prepare(model, X, EDGES).pick_subgraph(**asked) == free


def test_contributions_of_edges():
    found = pick_subgraph(MODEL, X, EDGES, of="edge", size=3, **QUIET)
    ids = sorted(found.edges)
    expected = decompose(MODEL, X, EDGES, groups=[ids], of="edge").target[0, 0, found.target].item()
    assert found.score == found.contribution == pytest.approx(expected, abs=1e-10)
    pairs = [[i, i + 14] for i in range(14)]
    sets = [[e for pair in some for e in pair] for size in (1, 2, 3) for some in combinations(pairs, size)]
    best = decompose(MODEL, X, EDGES, groups=sets, of="edge").target[:, 0, found.target].max().item()
    assert found.score == pytest.approx(best, abs=1e-9)
    a, b = [0, 14], [3, 17]
    alone, other, together = decompose(MODEL, X, EDGES, groups=[a, b, a + b], of="edge").target[:, 0, 1].tolist()
    got = interaction(MODEL, X, EDGES, of="edge", a=a, b=b, target=1)
    assert got == pytest.approx(together - alone - other, abs=1e-10)


def test_one_piece_of_edges():
    model = ready(Molecule())
    found = pick_subgraph(model, X, EDGES, of="edge", size=5, objective="fidelity", connected=True, beam=1000, **QUIET)
    graph = as_networkx(EDGES[:, sorted(found.edges)], 12).subgraph(found.nodes)
    assert networkx.is_connected(graph)
    free = pick_subgraph(model, X, EDGES, of="edge", size=5, objective="fidelity", **QUIET)
    assert found.score <= free.score + 1e-9


def test_the_overlap_with_a_known_motif():
    found = pick_subgraph(MODEL, X, EDGES, of="edge", size=4, objective="fidelity", truth=[0, 14, 1], **QUIET)
    motif = {0, 14, 1, 15}
    hit = len(found.edges & motif) / 2
    assert found.overlap.precision == hit / found.size
    assert (found.overlap.recall, found.overlap.chance) == (hit / 2, 2 / 14)
    mask = torch.zeros(12, dtype=torch.bool)
    mask[[1, 2]] = True
    nodes = pick_subgraph(MODEL, X, EDGES, size=3, truth=mask, **QUIET)
    assert nodes.overlap.recall == len(nodes.nodes & {1, 2}) / 2
    assert "motif precision" in repr(nodes)


def test_the_game_is_named():
    found = pick_subgraph(MODEL, X, EDGES, of="edge", size=2, objective="fidelity", **QUIET)
    assert found.game == (
        "fidelity⁺ − fidelity⁻, edges; left out: all other edges removed, with the nodes that no edge is left at"
    )
    assert found.game in repr(found)
    assert "random" in repr(found)


# Connected groups of nodes.


def every_connected_group(edges, nodes: int, most: int) -> list[frozenset[int]]:
    graph = as_networkx(edges, nodes)
    found = {frozenset({node}) for node in graph}
    for _ in range(most - 1):
        found |= {group | {v} for group in found if len(group) < most for u in group for v in graph[u]}
    return list(found)


@pytest.mark.parametrize("objective", ["contribution", "fidelity"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_wide_beam_finds_the_best_connected_group(objective, seed):
    x, model = features(9, seed=seed), net(level="graph", seed=seed)
    edges = EDGES[:, (EDGES < 9).all(0)]
    found = pick_subgraph(model, x, edges, size=4, objective=objective, beam=1000)
    groups = every_connected_group(edges, 9, 4)
    target = int(model(x, edges).argmax())
    if objective == "contribution":
        scores = decompose(model, x, edges, groups=[sorted(g) for g in groups]).target[:, 0, target].tolist()
    else:
        scores = [gain(model, x, edges, g, target) for g in groups]
    assert found.score == pytest.approx(max(scores), abs=1e-9)
    assert found.nodes in [g for g, s in zip(groups, scores, strict=True) if s > max(scores) - 1e-9]
    assert (found.objective, found.target, found.index) == (objective, target, 0)


def probability(model, x, edges, target) -> float:
    return model(x, edges).softmax(-1)[0, target].item()


def gain(model, x, edges, group, target) -> float:
    """fidelity⁺ − fidelity⁻, one forward pass at a time."""
    inside = torch.zeros(len(x), 1, dtype=x.dtype)
    inside[list(group)] = 1
    return probability(model, x * inside, edges, target) - probability(model, x * (1 - inside), edges, target)


def test_what_is_reported_of_a_subgraph():
    found = pick_subgraph(MODEL, X, EDGES, size=3)
    inside = torch.zeros(12, 1, dtype=X.dtype)
    inside[list(found.nodes)] = 1
    whole = probability(MODEL, X, EDGES, found.target)
    assert found.fidelity_plus == pytest.approx(whole - probability(MODEL, X * (1 - inside), EDGES, found.target))
    assert found.fidelity_minus == pytest.approx(whole - probability(MODEL, X * inside, EDGES, found.target))
    expected = decompose(MODEL, X, EDGES, groups=[sorted(found.nodes)]).target[0, 0, found.target].item()
    assert found.contribution == found.score == pytest.approx(expected, abs=1e-10)


def test_the_tree_leads_to_what_a_narrow_beam_would_miss():
    """Of two motifs that only count together a beam of one sees a single one; the tree has both on the way up."""
    x, edges = motifs()
    tree = agglomerate(And(), x, edges)
    assert pick_subgraph(And(), x, edges, size=14, beam=1, tree=tree).score == pytest.approx(1.2)


def test_size_and_share():
    assert len(pick_subgraph(MODEL, X, EDGES, share=0.25).nodes) <= 3
    assert len(pick_subgraph(MODEL, X, EDGES, share=0.01).nodes) == 1
    assert len(pick_subgraph(MODEL, X, EDGES, size=100).nodes) <= 12
    lonely = torch.empty(2, 0, dtype=torch.long)
    assert len(pick_subgraph(MODEL, X, lonely, size=5).nodes) == 1
    near = pick_subgraph(net(), X, EDGES, index=0, size=3)
    assert near.nodes <= {0, 1, 2, 3}
    assert pick_subgraph(net(), X, EDGES, index=0, size=3) == near


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({}, "size or share, one of them"),
        ({"size": 3, "share": 0.5}, "size or share, one of them"),
        ({"size": 0}, "size must be an integer, at least 1"),
        ({"size": 2.5}, "size must be"),
        ({"share": 0}, "share must be above 0 and at most 1"),
        ({"share": 1.5}, "share must be"),
        ({"size": 2, "beam": 0}, "beam must be"),
        ({"size": 2, "passes": 0}, "passes must be"),
        ({"size": 2, "objective": "beauty"}, "objective must be one of"),
        ({"size": 2, "without": "hope"}, "without must be one of"),
        ({"size": 2, "of": "graph"}, "of must be one of"),
        ({"size": 2, "of": "edge", "steps": 4}, "baseline and steps are for features of nodes"),
        ({"size": 2, "of": "edge", "edge_index": torch.empty(2, 0, dtype=torch.long)}, "no edge can contribute"),
    ],
)
def test_clear_errors_of_the_picker(changes, match):
    with pytest.raises(ValueError, match=match):
        pick_subgraph(MODEL, X, **{"edge_index": EDGES, **changes})


def test_an_old_name_is_said():
    with pytest.raises(TypeError, match="sparsity is now called share"):
        pick_subgraph(MODEL, X, EDGES, sparsity=0.5)
