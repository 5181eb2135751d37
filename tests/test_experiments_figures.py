"""The figures of `xdegree reproduce` in small: what is shown, what is counted, and that all of it is drawn."""

import math
from dataclasses import dataclass, replace

import pytest
import torch
from helpers import both_ways
from matplotlib.text import Text
from torch import nn
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from xdegree import Options, agglomerate, decompose, explain
from xdegree.baselines import Scores
from xdegree.baselines.instance import instance
from xdegree.canvas import molecule_canvas
from xdegree.datasets.dataset import graph_dataset, node_dataset
from xdegree.datasets.mutagenicity import ATOMS, nitro_and_amino
from xdegree.datasets.synthetic import tree_cycles
from xdegree.experiments import Bench, acc_sparsity, efficiency, forward, keep, mutag, qtime, sst, subgraphx
from xdegree.experiments.molecules import generated, plant
from xdegree.experiments.mutagens import formula, marked_atoms, other_hydrogens, predictions, ring_carbons, ring_edges
from xdegree.experiments.panels import Row, plot_rows, telling
from xdegree.experiments.tasks import Task
from xdegree.models import GAT, GCN
from xdegree.training import TrainingResult

REACHED = TrainingResult(1, 0.5, 0.8, 0.8, 0.75)


def molecule(marked: bool, tail: int, label: int) -> Data:
    """Benzene with a nitro group, or a chlorine in its place, and a chain of carbons, hydrogens around."""
    atoms, edges = ["C"] * 6, [(i, (i + 1) % 6) for i in range(6)]

    def add(kind: str, at: int) -> int:
        atoms.append(kind)
        edges.append((at, len(atoms) - 1))
        return len(atoms) - 1

    group = add("N" if marked else "Cl", 0)
    if marked:
        add("O", group), add("O", group)
    at = 3
    for _ in range(tail):
        at = add("C", at)
        add("H", at), add("H", at)
    for corner in (1, 2, 4, 5):
        add("H", corner)
    kinds, index = torch.tensor([ATOMS.index(kind) for kind in atoms]), both_ways(edges)
    x = one_hot(kinds, len(ATOMS)).float()
    mask = nitro_and_amino(kinds, index)
    return Data(x=x, edge_index=index, y=torch.tensor([label]), edge_mask=mask, bond=torch.ones(index.shape[1]).long())


def molecules():
    graphs = [molecule(i % 3 > 0, i % 4, 0 if i % 3 else 1) for i in range(24)]
    dataset = graph_dataset("MUTAG", graphs, "atoms, one-hot", seed=0)
    return replace(dataset, splits={**dataset.splits, "test": torch.arange(12)})


def sentences():
    words = ["though", "it", "looks", "fine", ",", "the", "plot", "is", "a", "bore", "and", "so", "is", "the", "rest"]
    edges = both_ways([(i // 2, i) for i in range(1, len(words))])
    torch.manual_seed(0)
    graphs = [
        Data(x=torch.randn(len(words), 6), edge_index=edges, y=torch.tensor([i % 2]), words=words) for i in range(20)
    ]
    dataset = graph_dataset("Graph-SST2", graphs, "noise", seed=0, note="rebuilt")
    return replace(dataset, splits={**dataset.splits, "test": torch.arange(20)})


@dataclass(frozen=True)
class Tiny(Bench):
    """Small datasets, and models that know nothing."""

    def trained(self, name, kind, seed):
        level = "graph" if name in ("mutag", "graph_sst2") else "node"
        made = {"mutag": molecules, "graph_sst2": sentences}
        dataset = made[name]() if level == "graph" else node_dataset("Tree-Cycles", tree_cycles(motifs=3), "constant")
        torch.manual_seed(seed)
        network = {"GCN": GCN, "GAT": GAT}[kind](dataset.num_features, 2, hidden=5, level=level)
        return network.eval(), dataset, REACHED


@pytest.fixture
def bench(tmp_path):
    return Tiny(tmp_path, seeds=2, quick=True, progress=False)


class BySize(nn.Module):
    """Predicts class 0 for graphs with an even number of nodes: right and wrong predictions at will."""

    def forward(self, x, edge_index, batch):
        even = (torch.bincount(batch) % 2 == 0).float()
        return torch.stack([even, 1 - even], 1)


def kept(outcome, folder):
    """Everything is written, and pictures are not empty."""
    files = keep(outcome, folder)
    assert {path.suffix for path in files} == ({".png", ".svg"} if files else set())
    assert all(path.stat().st_size > 5000 for path in files)
    return files


# Parts of molecules


def test_the_parts_of_a_molecule_that_the_paper_names():
    graph = molecule(marked=True, tail=1, label=0)
    assert formula(graph, marked_atoms(graph)) == "NO2"
    assert ring_carbons(graph) == [0, 1, 2, 3, 4, 5]
    assert formula(graph, other_hydrogens(graph)) == "H6"
    assert len(ring_edges(graph)) == 6
    assert formula(graph, range(graph.num_nodes)) == "C7H6NO2"


def test_a_carbon_that_only_links_two_rings_is_on_none_of_them():
    ring = [(i, (i + 1) % 5) for i in range(5)]
    edges = both_ways([*ring, (0, 10), (10, 5), *((u + 5, v + 5) for u, v in ring)])
    graph = Data(x=one_hot(torch.zeros(11).long(), len(ATOMS)).float(), edge_index=edges)
    assert ring_carbons(graph) == list(range(10))


def test_predictions_of_many_graphs_are_those_of_each():
    model, dataset, _ = Tiny(None).trained("mutag", "GCN", 3)
    alone = [int(model(graph.x, graph.edge_index, None).argmax()) for graph in dataset.graphs]
    assert predictions(model, dataset.graphs) == alone


# Agglomerations


def test_one_right_and_two_wrong_mutagens_are_shown_the_first_of_the_test_split():
    dataset = molecules()
    chosen = mutag.choose(BySize(), dataset)
    sizes = {i: dataset.graphs[i].num_nodes for i in range(12) if i % 3}
    inside = [i for i, n in sizes.items() if 12 <= n <= 30]
    right, wrong = [i for i in inside if not sizes[i] % 2], [i for i in inside if sizes[i] % 2]
    assert list(chosen) == [*right[:1], *wrong[:2]]
    assert list(chosen.values()) == [0] * len(right[:1]) + [1] * len(wrong[:2])


def test_mutag_counts_what_decompose_says(bench):
    outcome = mutag.run(bench)
    model, dataset, _ = bench.trained("mutag", "GCN", 0)
    values = []
    for graph in (g for g in dataset.graphs if int(g.y) == 0):
        d = decompose(model, graph.x, graph.edge_index, groups=[marked_atoms(graph)], options=Options.paper())
        values.append(float(d.target[0, 0, 0] - d.target[0, 0, 1]))
    cell = bench.cell("mutag/claims-0", {"seed": 0, "molecules": 20}, lambda: pytest.fail("it was computed already"))
    assert cell["count"] == len(values)
    assert cell["mean"]["nitro and amino groups"] == pytest.approx(sum(values) / len(values), abs=1e-5)
    assert cell["positive"]["nitro and amino groups"] == pytest.approx(sum(v > 0 for v in values) / len(values))
    both, marked, ring = (
        cell["mean"][p] for p in ("groups and rings together", "nitro and amino groups", "carbons in rings")
    )
    assert cell["mean"]["… minus the sum of both"] == pytest.approx(both - marked - ring, abs=1e-5)
    assert outcome.tables[0].rows[0][3] == "moderately positive"
    kept(outcome, bench.folder)


def test_levels_are_tabled_with_the_strongest_groups_first():
    model, dataset, _ = Tiny(None).trained("mutag", "GCN", 0)
    graph = dataset.graphs[1]
    tree = agglomerate(model, graph.x, graph.edge_index, target=0)
    table = mutag.levels_table("a title", graph, tree)
    assert [row[0] for row in table.rows] == ["single", *map(str, range(len(tree.levels)))]
    best = max(tree.leaves, key=lambda leaf: abs(leaf.score))
    star = "*" if best.nodes & {*marked_atoms(graph)} else ""
    assert table.rows[0][3].startswith(f"{formula(graph, best.nodes)}{star} {best.score:+.2f}")
    assert table.rows[-1][2] == str(graph.num_nodes)


@pytest.mark.parametrize(
    ("count", "most", "levels"), [(3, 5, [0, 1, 2]), (11, 4, [0, 1, 4, 10]), (15, 5, [0, 1, 3, 7, 14])]
)
def test_shown_levels_are_dense_at_the_beginning(count, most, levels):
    assert telling(count, most) == levels


def test_rows_of_panels_have_a_colour_for_every_atom_of_the_last_level():
    model, dataset, _ = Tiny(None).trained("mutag", "GCN", 0)
    graph = dataset.graphs[1]
    tree = agglomerate(model, graph.x, graph.edge_index)
    figure = plot_rows([Row("one", tree, molecule_canvas(graph=graph, atoms=ATOMS))] * 2, levels=3, unit="logits")
    titles = [ax.get_title() for ax in figure.axes]
    assert titles.count("single") == 2
    assert sum(title.startswith("level") for title in titles) == 6
    assert f"level {len(tree.levels)} of {len(tree.levels)}" in " ".join(titles)
    figure.canvas.draw()
    texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    boxes = [text.get_window_extent() for text in texts if text.get_text() in ("logits", "one", *titles)]
    assert len(boxes) >= 11
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes), "no words are cut off"
    assert all(figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1 for box in boxes)


def test_sentences_are_a_wrong_and_a_right_negative_one(bench):
    model, dataset, _ = bench.trained("graph_sst2", "GCN", 0)
    said = predictions(model, dataset.graphs)
    chosen = sst.choose(model, dataset)
    assert chosen
    assert all(int(dataset.graphs[i].y) == 0 for i in chosen.values())
    assert all((said[i] == 0) == (name == "right") for name, i in chosen.items())
    outcome = sst.run(bench)
    assert "rebuilt" in outcome.about
    assert "0.75 (paper: 0.88" in outcome.about
    assert len(kept(outcome, bench.folder)) == 2 * len(chosen)


def test_sentences_with_a_turn_come_first():
    dataset = sentences()
    dataset.graphs[4].words = ["plain"] * 15
    for i in (0, 2):
        dataset.graphs[i].words = ["plain"] * 15

    class Always(nn.Module):
        def forward(self, x, edge_index, batch):
            return torch.tensor([[1.0, 0.0]]).repeat(int(batch.max()) + 1, 1)

    assert sst.choose(Always(), dataset) == {"right": 6}


def test_phrases_keep_the_order_and_show_gaps():
    graph = Data(words=["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"])
    assert sst.phrase(graph, {4, 0, 1}) == "a b … e"
    assert sst.phrase(graph, range(10), most=3) == "a b c …"


# Time


def test_molecules_of_a_size_are_the_nearest_first():
    graphs = [Data(num_nodes=n) for n in (30, 9, 11, 10)]
    assert [graph.num_nodes for graph in qtime.of_size(graphs, 10, 2)] == [10, 9]


def test_time_against_q_has_every_q_and_size_and_goes_on_where_it_stopped(bench, monkeypatch):
    monkeypatch.setattr(qtime, "SIZES", (13, 16))
    outcome = qtime.run(bench)
    table = outcome.tables[0]
    assert len(table.rows) == 2
    assert all(float(cell) > 0 for row in table.rows for cell in row[1:6])
    assert "atoms the time grows" in table.notes[0]
    monkeypatch.setattr(qtime, "agglomerate", lambda *_args, **_kwargs: pytest.fail("it was measured already"))
    assert qtime.run(bench).tables[0] == table
    kept(outcome, bench.folder)


def fake(of="edge", **_kwargs):
    """A method that costs nothing."""
    return lambda one: Scores(torch.zeros(one.num_nodes))


def test_efficiency_has_the_papers_figures_beside_ours(bench, monkeypatch):
    monkeypatch.setattr(efficiency, "DATASETS", ("tree_cycles", "mutag"))
    monkeypatch.setattr(efficiency, "TITLES", ("Tree-Cycles", "MUTAG"))
    monkeypatch.setattr(efficiency, "PAPER", {key: values[2::2] for key, values in efficiency.PAPER.items()})
    monkeypatch.setattr(efficiency.baselines, "gnn_explainer", fake)
    monkeypatch.setattr(efficiency.baselines, "pg_explainer", lambda _training, **_kwargs: fake())
    outcome = efficiency.run(bench)
    rows = {row[0]: row[1:] for row in outcome.tables[0].rows}
    assert rows["paper: DEGREE(GCN)"] == ("0.25", "0.83")
    assert all(float(cell) > 0 for cell in rows["xdegree, one instance per call"])
    assert "PGExplainer, training + each instance" in rows
    assert "processor seconds" in outcome.about.lower()
    kept(outcome, bench.folder)


def test_what_is_timed_together_is_what_is_timed_one_by_one(bench):
    for name in ("tree_cycles", "mutag"):
        model, dataset, _ = bench.trained(name, "GCN", 0)
        task = Task(model, dataset, authors=False, quick=True)
        ids = task.explained[:3]
        together = efficiency.explained_together(task, ids)
        for i, e in zip(ids, together, strict=True):
            alone = efficiency.explained(task, i)
            assert torch.allclose(e.node_scores, alone.node_scores, atol=1e-5)


def test_the_loop_asks_for_what_one_call_scores(bench):
    model, dataset, _ = bench.trained("mutag", "GCN", 0)
    task = Task(model, dataset, authors=False, quick=True)
    i = task.explained[0]
    assert len(efficiency._groups(task, i)) == dataset.graphs[i].num_edges // 2
    model, dataset, _ = bench.trained("tree_cycles", "GCN", 0)
    task = Task(model, dataset, authors=False, quick=True)
    groups = efficiency._groups(task, task.explained[0])
    assert groups == [[node] for node in task.instance(task.explained[0]).field.tolist()]


# ACC against sparsity


def one_molecule():
    model, dataset, _ = Tiny(None).trained("mutag", "GCN", 0)
    graph = dataset.graphs[4]  # the smallest
    return instance(model, graph.x, graph.edge_index)


@pytest.mark.parametrize("row", [row for row in acc_sparsity.LINES if row != "no node kept"])
def test_every_row_keeps_no_more_than_the_sparsity_allows_and_all_at_the_end(row):
    one = one_molecule()
    masks = acc_sparsity.LINES[row].masks(one)
    allowed = [max(1, round(share * one.num_nodes)) for share in acc_sparsity.SPARSITIES]
    assert masks.shape == (len(allowed), one.num_nodes)
    assert all(1 <= n <= most for n, most in zip(masks.sum(1).tolist(), allowed, strict=True))
    assert masks[-1].all()


def test_growth_takes_what_joins_early_and_then_the_largest_contributions():
    one = one_molecule()
    paper = Options.paper()
    tree = agglomerate(one.model, one.x, one.edge_index, target=one.target, rising=True, options=paper)
    first = {node for group in tree.levels[0] for node in group.nodes}
    masks = acc_sparsity.by_growth(one)
    for mask in masks:
        inside = {*mask.nonzero().flatten().tolist()}
        assert inside <= first or first <= inside
    never = sorted(set(range(one.num_nodes)) - {node for group in tree.levels[-1] for node in group.nodes})
    scores = explain(one.model, one.x, one.edge_index, target=one.target, options=paper).node_scores
    if never:
        worst = min(never, key=lambda node: float(scores[node]))
        assert not masks[-2, worst] or bool(masks[-2].all())


def test_acc_has_the_authors_curve_beside_ours(bench, monkeypatch):
    fast = {row: acc_sparsity.LINES[row] for row in ("DEGREE, largest contributions", "random", "no node kept")}
    monkeypatch.setattr(acc_sparsity, "LINES", fast)
    outcome = acc_sparsity.run(bench)
    assert [table.title for table in outcome.tables[::3]] == [
        "ACC against sparsity: MUTAG",
        "ACC against sparsity: Graph-SST2 (rebuilt)",
    ]
    rows = {row[0]: row[1:] for row in outcome.tables[0].rows}
    assert rows["DEGREE, largest contributions"][:2] == ("16", "2")
    assert rows["DEGREE, largest contributions"][-2] == rows["random"][-2] == "1.000"
    assert len({*rows["no node kept"][2:-1]}) == 1
    assert rows["authors' DEGREE"][2:6] == ("–", "–", "0.919", "0.925")
    assert len(rows["… the same, 1,000 draws"]) == len(rows["random"])
    kept(outcome, bench.folder)


def test_rows_are_compared_on_the_graphs_and_models_that_they_share():
    """A row of few graphs, or of an easy model, must not shine beside others that had harder ones."""

    def cell(hits):
        return {"count": len(hits), "hits": {str(i): [hit] * len(acc_sparsity.SPARSITIES) for i, hit in hits.items()}}

    hard = {i: float(i < 20) for i in range(40)}
    found = {
        "all": [cell(hard), cell(dict.fromkeys(range(40), 0.0))],
        "some": [cell(dict.fromkeys(range(10, 30), 1.0))] * 2,
        "few": [cell({0: 1.0})] * 2,
    }
    spreads, by_model = acc_sparsity.shared_tables("a title", found)
    assert "the same 20 graphs in every row" in spreads.title
    assert [row[0] for row in spreads.rows] == ["all", "some"]
    assert spreads.rows[0][1].startswith("0.25 ±")
    assert by_model.rows[0] == ("all", "0.50", "0.00")
    assert by_model.rows[1] == ("some", "1.00", "1.00")


def test_every_row_of_acc_has_every_model(bench, monkeypatch):
    asked = []
    monkeypatch.setattr(acc_sparsity, "_cell", lambda *given: asked.append(given[3:6:2]) or {})
    acc_sparsity._measured(bench, "mutag")
    assert sorted(asked) == sorted((row, seed) for row in acc_sparsity.LINES for seed in range(bench.seeds))


def test_the_authors_curves_fit_the_sparsities():
    for values in acc_sparsity.AUTHORS.values():
        assert len(values) == len(acc_sparsity.SPARSITIES)
        assert [math.isnan(value) for value in values] == [share < 0.2 for share in acc_sparsity.SPARSITIES]


# SubgraphX


def test_a_marked_bond_needs_both_ends():
    graph = molecule(marked=True, tail=0, label=0)
    nitrogen, oxygen, _ = marked_atoms(graph)
    assert subgraphx.has_marked_bond(graph, [0, nitrogen, oxygen])
    assert not subgraphx.has_marked_bond(graph, [0, nitrogen])
    assert not subgraphx.has_marked_bond(graph, [oxygen, oxygen + 1])


@pytest.mark.parametrize("picker", subgraphx.PICKERS.values(), ids=lambda picker: picker.__name__)
def test_pickers_keep_to_their_size(picker):
    model, dataset, _ = Tiny(None).trained("mutag", "GCN", 0)
    atoms = picker(model, dataset.graphs[2], 4)
    assert len(atoms) == len({*atoms}) <= 4
    assert {*atoms} <= {*range(dataset.graphs[2].num_nodes)}


def test_similar_molecules_have_one_ring_and_a_marked_group_and_are_predicted_right():
    dataset = molecules()
    found = subgraphx.similar(BySize(), dataset, 2)
    low, high = subgraphx.SHOWN_ATOMS
    sizes = [(i, dataset.graphs[i].num_nodes) for i in range(12) if i % 3]
    assert found == [i for i, n in sizes if low <= n <= high and n % 2 == 0][:2]


def test_subgraphx_counts_picked_bonds(bench, monkeypatch):
    everything = {"all atoms": lambda model, graph, size: list(range(graph.num_nodes)), "none": lambda *_: []}
    monkeypatch.setattr(subgraphx, "PICKERS", everything)
    for name, pick in everything.items():
        pick.__name__ = name
    monkeypatch.setattr(subgraphx, "similar", lambda *_: [])
    rows = {row[0]: row[1:] for row in subgraphx.run(bench).tables[0].rows}
    assert rows["all atoms"][:3] == tuple(f"{n} of 8 ({n // 2} to {n // 2} by model)" for n in (8, 8, 0))
    assert rows["none"][:3] == ("0 of 8 (0 to 0 by model)",) * 3


def test_subgraphx_is_drawn(bench, monkeypatch):
    monkeypatch.setattr(subgraphx, "_counts", lambda *_: ("",) * 6)
    monkeypatch.setattr(subgraphx, "_picks", lambda *_: {})
    monkeypatch.setattr(subgraphx, "similar", lambda *_: [1, 2])
    outcome = subgraphx.run(bench)
    figure = outcome.pictures["subgraphx"].figure
    assert [ax.get_title() for ax in figure.axes] == ["graph 1", "graph 2"] * 3
    kept(outcome, bench.folder)


# The planted node


def test_forward_shows_the_planted_node_and_the_papers_row(bench, monkeypatch):
    graphs = generated(24, seed=1, sizes=(12, 14))
    monkeypatch.setattr(forward, "molecules", lambda _count: ("generated", graphs))
    monkeypatch.setattr(forward, "NOISES", (0.02,))
    outcome = forward.run(bench)
    ours, paper = outcome.tables[0].rows
    assert ours[0] == "0.02"
    assert ours[-1] == "12"
    assert paper[1] == paper[3] == "100%"
    kept(outcome, bench.folder)


def test_forward_holds_a_fifth_of_the_graphs_out():
    learnt, held_out = forward.order(100, seed=3)
    assert len(held_out) == 20
    assert sorted([*learnt, *held_out]) == list(range(100))
    graphs = plant(generated(10, seed=0))
    model = forward.learnt(graphs, epochs=1, progress=False)
    found = forward.search(model, graphs, explained=2, progress=False)
    held = [graphs[i] for i in forward.order(10)[1]]
    assert found.test_accuracy == forward.accuracy(model, held)
    assert found.graphs == 2
