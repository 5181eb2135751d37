"""What the commands of `xdegree reproduce` do in large, in small: protocol, readings, kept results, pages."""

import json
from dataclasses import replace

import pytest
import torch
from helpers import assert_close, both_ways, ready
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from xdegree import Options, decompose, explain
from xdegree.attribution.scores import share_of_probability
from xdegree.baselines import Scores
from xdegree.baselines.instance import instance
from xdegree.cli import main
from xdegree.datasets import node_dataset
from xdegree.experiments import (
    EXPERIMENTS,
    Bench,
    Outcome,
    Picture,
    ablation,
    accuracy,
    auc,
    defaults,
    experiment,
    fixed_reading,
    keep,
    ladder,
    others,
    tasks,
    variants,
    write_page,
)
from xdegree.experiments.protocol import (
    NodeTruth,
    by_pair,
    drawn,
    edge_quality,
    explained_graphs,
    explained_nodes,
    pairs,
)
from xdegree.experiments.rankings import READINGS, SETTINGS, cases, decomposed, judge, read, true_nodes
from xdegree.experiments.readings import in_floats, of_nodes, of_pairs
from xdegree.experiments.store import timed
from xdegree.models import GAT, GCN, GIN
from xdegree.results.tables import Table, aligned, spread


def small(name="tree_cycles"):
    """A path of twelve nodes, on each third of which hangs a triangle, the motif."""
    edges, motif = [(i, i + 1) for i in range(11)], [-1] * 12
    for number, base in enumerate(range(0, 12, 3)):
        a = len(motif)
        edges += [(base, a), (a, a + 1), (a + 1, a + 2), (a, a + 2)]
        motif += [number] * 3
    places, tags = torch.arange(24), torch.tensor(motif)
    masks = {f"{split}_mask": places % 3 == i for i, split in enumerate(("train", "val", "test"))}
    data = Data(x=torch.ones(24, 3), edge_index=both_ways(edges), y=(tags >= 0).long(), motif=tags, **masks)
    return node_dataset("Tree-Cycles", data, "constant", "made by hand")


def untrained(dataset, kind=GCN, level="node"):
    torch.manual_seed(0)
    return kind(dataset.num_features, dataset.num_classes, hidden=5, layers=2, level=level).double().eval()


def molecules():
    """Two mutagens with a marked edge, one without, and one that is none."""
    marked = torch.tensor([True, False, False] * 2)
    edges = both_ways([(0, 1), (1, 2), (2, 3)])
    x = torch.eye(4, dtype=torch.float64)

    def graph(y, mask):
        return Data(x=x, edge_index=edges, y=torch.tensor([y]), edge_mask=mask)

    graphs = (graph(0, marked), graph(0, ~marked), graph(0, torch.zeros(6).bool()), graph(1, marked))
    return replace(small(), name="MUTAG", graphs=graphs, level="graph", splits={"val": torch.tensor([0, 1])})


def few_molecules():
    """The same for training: some of each kind in each split."""
    graphs = molecules().graphs * 3
    splits = {split: torch.arange(start, 12, 3) for start, split in enumerate(("train", "val", "test"))}
    return replace(molecules(), graphs=tuple(Data(**{**g.to_dict(), "x": g.x.float()}) for g in graphs), splits=splits)


# The protocol


def test_all_motif_nodes_are_explained_and_by_the_authors_only_some_of_the_trees():
    dataset = small()
    model, data = untrained(dataset).float(), dataset.data
    everyone = explained_nodes(dataset, model)
    assert everyone == (data.y > 0).nonzero().flatten().tolist()
    predicted = model(data.x, data.edge_index).argmax(-1)
    assert explained_nodes(dataset, model, authors=True) == [i for i in everyone if predicted[i] != 0]
    grid = replace(dataset, name="Tree-Grid")
    assert explained_nodes(grid, model, authors=True) == [i for i in everyone if predicted[i] == data.y[i]]


def test_of_molecules_only_marked_mutagens_are_explained():
    assert explained_graphs(molecules()) == [0, 1]


def test_nodes_compete_within_the_layers_and_own_motif_is_true():
    # A triangle motif 0-1-2 at the end of a path 2-3-4-5, another motif 5-6.
    data = Data(
        edge_index=both_ways([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (5, 6)]),
        motif=torch.tensor([0, 0, 0, -1, -1, 1, 1]),
        num_nodes=7,
    )
    truth = NodeTruth(data, layers=3)
    assert truth.distance(0).tolist() == [0, 1, 1, 2, 3, 4, 4]
    wrong_outside = torch.tensor([1.0, 1, 1, 0, 0, 9, 9])
    assert truth.quality([0], [wrong_outside]).auc == 1
    assert truth.quality([0], [-wrong_outside]).auc == 0
    nothing_else = NodeTruth(data, layers=1).quality([0], [wrong_outside])
    assert (nothing_else.instances, nothing_else.skipped) == (0, 1)


def test_distance_alone_gains_nothing_under_hop_control():
    dataset = small()
    truth = NodeTruth(dataset.data, 3)
    nodes = explained_nodes(dataset, untrained(dataset))[:10]
    near = truth.quality(nodes, [-truth.distance(node).double() for node in nodes])
    assert near.hop_controlled == pytest.approx(0.5)
    assert near.auc > 0.55


def test_both_directions_of_an_edge_are_one_item():
    graph = molecules().graphs[0]
    ends, place, truth = pairs(graph)
    assert ends.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert truth.tolist() == [True, False, False]
    assert by_pair(torch.tensor([1.0, 2, 3, 5, 6, 7]), place, 3).tolist() == [3, 4, 5]
    assert edge_quality([graph], [torch.tensor([3.0, 2, 1])]).auc == 1


def test_draws_are_seeded_and_in_order():
    assert drawn(range(5), None) == drawn(range(5), 9) == [0, 1, 2, 3, 4]
    some = drawn(range(100), 7, seed=3)
    assert some == drawn(range(100), 7, seed=3) == sorted(set(some))
    assert some != drawn(range(100), 7, seed=4)


# The readings


@pytest.mark.parametrize("kind", [GCN, GAT])
def test_readings_of_one_pass_are_those_of_explain(kind):
    dataset = small()
    model, data = untrained(dataset, kind), dataset.data
    data.x = torch.rand(data.x.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    nodes, classes = [13, 20], [1, 0]
    found = of_nodes(model, data, nodes, classes, Options())
    for row, (node, label) in enumerate(zip(nodes, classes, strict=True)):
        for name, reading, layer in [
            ("logit", "contribution", None),
            ("probability", "probability", None),
            ("strength", "strength", None),
            ("strength at the head", "strength", "lin1:input"),
        ]:
            e = explain(model, data.x, data.edge_index, index=node, target=label, reading=reading, layer=layer)
            inside = e.nodes
            assert_close(found[name][row, inside], e.node_scores[inside])
    assert_close(found["|logit|"], found["logit"].abs())


def test_readings_of_pairs_are_those_of_decompose(monkeypatch):
    """Side by side in one pass as each alone, for the class mutagen or, as the authors have it, minus the other."""
    dataset = molecules()
    model, graphs = untrained(dataset, level="graph"), dataset.graphs[:3]
    monkeypatch.setattr("xdegree.experiments.readings.AT_ONCE", 2)
    for graph, (paper, authors) in zip(graphs, of_pairs(model, graphs, Options()), strict=True):
        d = decompose(model, graph.x, graph.edge_index, groups=[[0, 1], [1, 2], [2, 3]], probes=["lin2:input"])
        assert_close(paper["logit"], d.target[:, 0, 0])
        assert_close(authors["logit"], d.target[:, 0, 0] - d.target[:, 0, 1])
        assert_close(paper["strength"], d.probes["lin2:input"].target[:, 0].abs().sum(-1))
        assert_close(authors["strength"], paper["strength"])


def test_small_contributions_are_lost_in_floats_and_not_in_the_ratio():
    total = torch.tensor([[3.0, 1.0]])
    target = torch.tensor([1e-9, 2e-9, 0.5]).view(3, 1, 1) * torch.ones(1, 1, 2)
    lost = in_floats(total, target)[:, 0, 0]
    assert lost[0] == lost[1] < lost[2]
    kept = share_of_probability(total, target)[:, 0, 0]
    assert kept[0] < kept[1] < kept[2]


# What is kept


def test_a_cell_is_computed_once_for_its_settings(tmp_path):
    bench, calls = Bench(tmp_path, progress=False), []

    def compute():
        calls.append(1)
        return {"auc": len(calls)}

    assert bench.cell("auc/x", {"most": 3}, compute) == {"auc": 1}
    assert bench.cell("auc/x", {"most": 3}, compute) == {"auc": 1}
    assert bench.cell("auc/x", {"most": 4}, compute) == {"auc": 2}
    assert replace(bench, quick=True).cell("auc/x", {"most": 4}, compute) == {"auc": 3}


@pytest.mark.parametrize("content", ["", '{"format": "xdeg', "[]", "\xff"])
def test_a_broken_cell_is_computed_again(tmp_path, content):
    bench = Bench(tmp_path, progress=False)
    path = tmp_path / "full" / "a.json"
    path.parent.mkdir()
    path.write_bytes(content.encode("latin-1"))
    assert bench.cell("a", {}, lambda: {"auc": 1}) == {"auc": 1}
    assert json.loads(path.read_text())["result"] == {"auc": 1}


def test_results_of_other_data_are_not_mixed(tmp_path, monkeypatch):
    bench = Bench(tmp_path / "new", seeds=1, progress=False)
    monkeypatch.setattr("xdegree.experiments.store.load", lambda _: small())
    assert bench.dataset("tree_cycles").name == bench.dataset("tree_cycles").name == "Tree-Cycles"
    monkeypatch.setattr("xdegree.experiments.store.load", lambda _: replace(small(), note="generated"))
    assert bench.dataset("tree_cycles").note == "made by hand"  # what was read is kept
    bench = Bench(tmp_path / "new", seeds=1, progress=False)
    with pytest.raises(ValueError, match=r"another Tree-Cycles \(note 'made by hand', now 'generated'\); take another"):
        bench.dataset("tree_cycles")


def test_an_interrupted_cell_leaves_nothing(tmp_path):
    def fails():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Bench(tmp_path).cell("a", {}, fails)
    assert not list(tmp_path.rglob("*.json"))


def test_seconds_are_those_of_the_processor():
    result, seconds = timed(lambda: sum(range(200_000)))
    assert result == 19999900000
    assert 0 < seconds < 5


class FakeFigure:
    def savefig(self, path):
        path.write_text("picture")


def test_a_page_holds_all_outcomes_that_are_there(tmp_path):
    table = Table("T", ("a", "b"), (("1", "|x|"),), ("a note",))
    outcome = Outcome("auc", "Title", "About.", [table], {"curve": Picture(FakeFigure(), "A curve")}, ["In short."])
    files = keep(outcome, tmp_path / "out", "xdegree reproduce auc --seeds 3")
    assert [path.name for path in files] == ["curve.png", "curve.svg"]
    page = write_page(("accuracy", "auc"), tmp_path / "out", tmp_path / "docs" / "results.md", "xdegree reproduce all")
    first = page.read_text()
    assert "In short." in first
    assert "[Title](results/auc.md)" in first
    assert "Not run for this page: `xdegree reproduce accuracy`." in first
    assert "a note" not in first  # long tables are on a page of their own
    text = (tmp_path / "docs" / "results" / "auc.md").read_text()
    assert "Written by `xdegree reproduce auc --seeds 3`" in text
    assert "| 1 | \\|x\\| |" in text
    assert "- a note" in text
    assert "![A curve](curve.png)" in text
    assert (tmp_path / "docs" / "results" / "curve.png").read_text() == "picture"
    assert "About." in outcome.text()


def test_tables_are_aligned_and_say_their_spread():
    assert aligned([("a", "b"), ("long", "c")]) == "a     b\nlong  c"
    assert spread([0.5]) == "0.500"
    assert spread([1.0, 2.0, 3.0], 1) == "2.0 ± 1.0"
    assert spread([]) == "–"


# Table 1 and the ablation, on a small graph


def learner(_name, task):
    """Refuses what it learnt from."""
    seen = {id(one) for one in task.training}
    assert len(seen) == 2

    def method(one):
        assert id(one) not in seen
        return Scores(torch.zeros(one.num_nodes))

    return method


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A bench whose only datasets are small and whose models are trained for a moment."""
    for module in (ablation, auc, ladder, others):
        monkeypatch.setattr(module, "DATASETS", ("tree_cycles", "mutag"))
        monkeypatch.setattr(module, "TITLES", ("Tree-Cycles", "MUTAG"))
    figures = {kind: figures[::2][1:] for kind, figures in auc.PAPER_DEGREE.items()}
    monkeypatch.setattr(auc, "PAPER_DEGREE", figures)
    monkeypatch.setattr(others, "PAPER", {})
    for module in (ablation, others, tasks, variants):
        monkeypatch.setattr(module, "QUICK", 2)
    quick = ("GRAD, adjacency", "GAT attention", "learner")
    rows = {**others.OTHERS, "learner": others.Other(learner, learns=True)}
    monkeypatch.setattr(others, "OTHERS", {row: other for row, other in rows.items() if row in quick})
    monkeypatch.setattr("xdegree.experiments.store.load", lambda name: few_molecules() if name == "mutag" else small())
    monkeypatch.setattr("xdegree.experiments.store.QUICK_EPOCHS", {"node": 3, "graph": 1})
    return Bench(tmp_path, seeds=2, quick=True, progress=False)


def test_table_1_has_its_cells_ladders_and_controls_and_is_resumed(bench, monkeypatch):
    quality, seconds = others.run(bench).tables[:2]
    assert [row[0] for row in quality.rows] == ["GRAD, adjacency", "learner"]
    assert seconds.rows[-1][0] == "learner"
    outcome = auc.run(bench)
    cells, text, cycles, molecules_, controls = outcome.tables[:5]
    assert [row[:2] for row in cells.rows] == [
        ("Tree-Cycles", "GCN"),
        ("Tree-Cycles", "hybrid GAT"),
        ("MUTAG", "GCN"),
        ("MUTAG", "GAT"),
    ]
    assert cells.rows[0][3] == "0.958 ± 0.004"
    assert all("±" in row[4] and "±" in row[6] and {row[5], row[7]} <= {"yes", "no"} for row in cells.rows[2:])
    assert all("±" in row[4] for row in text.rows)  # by the authors' protocol there may be no node to explain
    assert len(text.rows[0]) == len(cells.rows[0]) - 1  # other methods are run by one protocol
    steps = [row[1] for row in cycles.rows if row[0] == "GAT"]
    assert steps[:3] == ["GAT on one-hot degrees", "graph convolution first (hybrid)", "scores as a ratio"]
    assert cycles.rows[0][4] == ""
    assert "batches of 128" in {row[1] for row in molecules_.rows}
    assert [row[2] for row in controls.rows[:3]] == ["first weights", "3 epochs", "trained"]
    assert cells.rows[2][8].endswith(("GRAD, adjacency", "learner"))
    assert "Below it by our reading" in "".join(outcome.front) or "by strength" in outcome.front[0]

    def unwanted(*_):
        raise AssertionError("computed again")

    monkeypatch.setattr(others, "_measured", unwanted)
    monkeypatch.setattr(variants, "of_degree", unwanted)
    assert auc.run(bench).tables == outcome.tables


def test_other_methods_of_a_model_that_predicts_no_motif(bench, monkeypatch):
    """There is no node to explain, and none to learn from."""
    explained = {"graph": [0, 1, 2, 3], "node": []}
    monkeypatch.setattr(tasks.Task, "explained", property(lambda task: explained[task.dataset.level]))
    quality, seconds = others.run(bench).tables[:2]
    assert all(row[1] == "not run" != row[2] for row in quality.rows)
    assert all(row[1] == "–" != row[2] for row in seconds.rows)
    assert "nan" not in str([*quality.rows, *seconds.rows])


def test_other_methods_that_were_not_run_are_said(bench, monkeypatch, capsys):
    """An interrupted run shows what was done, and resumes."""
    measured, calls = others._measured, []

    def once(*given):
        if calls:
            raise KeyboardInterrupt
        calls.append(given)
        return measured(*given)

    monkeypatch.setattr(others, "_measured", once)
    quality = others.run(bench).tables[0]
    assert "the same command resumes there" in capsys.readouterr().err
    assert [cell == "not run" for cell in quality.rows[0][1:3]] == [False, True]
    assert quality.rows[1][1:3] == ("not run", "not run")


def cell(papers, head=0.5, accuracy=0.9):
    """A cell of Tree-Cycles whose models have these AUCs."""

    def of(value):
        return {"accuracy": accuracy, "authors": {r: {"auc": value} for r in ("probability", "strength")}}

    theirs = [of(value) for value in papers]
    for one in theirs:
        one["authors"]["strength at the head"] = {"auc": head}
    return auc.TenCells("tree_cycles", "GCN", "authors", (0.958, 0.004), theirs, theirs, {"GRAD": [{"auc": 0.96}]}, 0.8)


def test_a_cell_says_whether_it_is_within_the_papers_spread_and_why_not():
    assert cell([0.9536, 0.9544]).within([0.9536, 0.9544])  # to the digits that the paper prints
    assert not cell([0.5, 0.97]).within([0.5, 0.97])
    assert "best of our 2 models has 0.970" in auc.cause(cell([0.5, 0.97]))
    assert "strength at the head 0.990" in auc.cause(cell([0.5, 0.6], head=0.99))
    assert "test accuracy 0.60, there 0.89" in auc.cause(cell([0.5, 0.6], accuracy=0.6))
    assert auc.cause(cell([0.5, 0.6], accuracy=0.89)) == "not found"
    assert cell([0.5]).best_other == ("GRAD", 0.96)


def test_the_authors_truth_of_tree_grid_has_all_motifs():
    dataset = replace(small(), name="Tree-Grid")
    model = untrained(dataset)
    own, every = (NodeTruth.of(dataset, model, authors) for authors in (False, True))
    assert not own.any_motif
    assert every.any_motif
    other = (dataset.data.motif >= 0) & (dataset.data.motif != dataset.data.motif[12])
    scores = (dataset.data.motif == dataset.data.motif[12]).double()
    near = replace(every, layers=5)
    assert replace(own, layers=5).quality([12], [scores]).auc == 1
    assert near.quality([12], [scores]).auc < near.quality([12], [scores + other.double()]).auc == 1
    assert not NodeTruth.of(small(), model, authors=True).any_motif


def test_settings_are_compared_by_validation_loss(bench, monkeypatch):
    monkeypatch.setattr(accuracy, "MODELS", (("tree_cycles", "GCN"), ("tree_cycles", "HybridGAT")))
    reached, search = accuracy.run(bench).tables
    assert [row[:2] for row in reached.rows] == [("Tree-Cycles", "GCN"), ("Tree-Cycles", "HybridGAT")]
    for kind, count in (("GCN", 3), ("HybridGAT", 5)):
        rows = [row for row in search.rows if row[1] == kind]
        assert len(rows) == count
        losses = [float(row[3].split()[0]) for row in rows]
        assert [loss for row, loss in zip(rows, losses, strict=True) if "least" in row[5]] == [min(losses)]
        assert sum("used" in row[5] for row in rows) == 1


def test_models_that_were_not_trained_are_said(bench, monkeypatch):
    monkeypatch.setattr(accuracy, "MODELS", (("tree_cycles", "GCN"), ("mutag", "GCN"), ("mutag", "GAT")))
    monkeypatch.setattr(accuracy, "SEARCHED", ())
    trained = Bench.trained

    def interrupted(self, name, *given):
        if name == "mutag":
            raise KeyboardInterrupt
        return trained(self, name, *given)

    monkeypatch.setattr(Bench, "trained", interrupted)
    table = accuracy.run(bench).tables[0]
    assert [row[0] for row in table.rows] == ["Tree-Cycles"]
    assert table.notes[-2:] == ("Not run: mutag, GCN.", "Not run: mutag, GAT.")


def test_the_one_reading_is_chosen_on_other_data(bench, monkeypatch):
    monkeypatch.setattr(fixed_reading, "COLUMNS", (("tree_cycles", "GCN"),))
    monkeypatch.setattr(fixed_reading, "load", lambda name, origin, seed: small())
    monkeypatch.setattr(fixed_reading, "QUICK_EPOCHS", {"node": 300})  # until it predicts some motif
    (table,) = fixed_reading.run(bench).tables
    means = {row[0]: float(row[1]) for row in table.rows[:-1]}
    assert set(means) == set(fixed_reading.CANDIDATES)
    assert means[table.notes[0].removeprefix("The highest mean is that of: ").rstrip(".")] == max(means.values())


def test_the_ablation_tries_every_choice_and_picks_by_agreement(bench):
    outcome = ablation.run(replace(bench, seeds=1))
    assert len(outcome.tables[0].rows) == len(ablation.choices("GCN", "graph")) == 12
    assert len(ablation.choices("GCN", "node")) == 6
    assert len(ablation.choices("GAT", "graph")) == 24
    picks = outcome.tables[-1].rows
    assert [row[:2] for row in picks[:2]] == [("Tree-Cycles", "GCN"), ("MUTAG", "GCN")]
    agreements = {row[0]: float(row[1].split()[0]) for row in outcome.tables[2].rows if row[1] != "–"}
    assert agreements[picks[0][2]] == max(agreements.values())


def test_agreement_is_one_where_contributions_are_what_the_model_loses():
    """A layer without bias and ReLU is linear: without a group it loses what the group contributes."""
    dataset = small()
    x = torch.rand(24, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    layer = ready(GCNConv(3, 2, bias=False))
    one = instance(layer, x, dataset.data.edge_index, index=13)
    groups = ablation.random_groups(one, seed=0)
    assert int(groups.sum(1).min()) >= 1
    falls = ablation.fall(one, groups)
    d = decompose(layer, one.x, one.edge_index, groups=groups)
    assert_close(d.target[:, one.row, one.target], falls)
    assert ablation.agreement(d.target[:, one.row, one.target], falls) == pytest.approx(1)
    assert ablation.agreement(-d.target[:, one.row, one.target], falls) == pytest.approx(-1)


# The trial of defaults


def two_columns():
    """On set A one candidate is best, on set B another; the third is even."""
    first = {"x: one": 0.9, "y: one": 0.5, "z": 0.8}
    second = {"x: one": 0.4, "y: one": 1.0, "z": 0.8}
    seeds = ((first, first), (second, {**second, "x: one": 0.6}))
    return [defaults.Column(name, "node", "GCN", each, ({}, {})) for name, each in zip(("A", "B"), seeds, strict=True)]


def test_a_standing_has_the_mean_the_shortfall_and_the_worst_column():
    columns = two_columns()
    found = defaults.standing("x: one", columns)
    assert found.mean == pytest.approx(0.7)
    assert found.shortfall == pytest.approx((0 + 0.5) / 2)
    assert found.worst is columns[1]
    assert found.by_seed == pytest.approx((0.65, 0.75))


def test_candidates_are_compared_column_by_column(monkeypatch):
    monkeypatch.setattr(defaults, "PAIRS", (("x: one", "y: one"),))
    (row,) = defaults._pairs_table(two_columns()).rows
    assert row == ("x: one", "y: one", "-0.050 ± 0.450", "-0.050", "1 : 1", "-0.500, B GCN")


def test_with_a_dataset_left_out_the_choice_is_made_on_the_others():
    assert defaults.left_out(["x: one", "y: one", "z"], two_columns()) == {
        "A": ("y: one", pytest.approx(0.5)),
        "B": ("x: one", pytest.approx(0.5)),
    }
    assert defaults.left_out(["z"], two_columns())["A"] == ("z", pytest.approx(0.8))


def test_readings_of_a_table_of_classes():
    table = torch.tensor([[1.0, 3.0, 2.0], [0.0, -1.0, 2.0]])
    found = read(table, torch.tensor([0.1, 0.9, 0.5]))
    assert {name: found[name].tolist() for name in READINGS[:3]} == {
        "contribution": [3, -1],
        "|contribution|": [3, 1],
        "margin": [1, -3],
    }
    assert_close(found["impact"], (table - table.mean(1, keepdim=True)).norm(dim=1))


def test_true_nodes_are_the_ends_of_marked_edges_a_motif_or_the_nitro_group():
    assert true_nodes(molecules().graphs[0]).tolist() == [True, True, False, False]
    motif = Data(edge_index=both_ways([(0, 1)]), motif=torch.tensor([-1, 0]), num_nodes=2)
    assert true_nodes(motif).tolist() == [False, True]
    pytest.importorskip("rdkit")
    methane = Data(edge_index=both_ways([(0, 1), (1, 2), (1, 3)]), smiles="C[N+](=O)[O-]", num_nodes=7)
    assert true_nodes(methane).nonzero().flatten().tolist() == [1, 2, 3]


def test_graphs_side_by_side_are_explained_as_each_alone():
    dataset = molecules()
    dataset = replace(dataset, name="other")
    model = untrained(dataset, GAT, level="graph")
    for graph in dataset.graphs:
        graph.y = model(graph.x, graph.edge_index).argmax(-1)
    found = cases(model, dataset, most=3)
    assert [case.place for case in found] == [0, 1, 3]
    for name in ("bounded", "removal, from the mean", "4 steps, from the mean"):
        how = SETTINGS[name]
        alone = [
            explain(model, c.one.x, c.one.edge_index, options=how.options, baseline=how.baseline, steps=how.steps)
            for c in found
        ]
        sizes = [e.node_scores.abs() for e in alone]
        assert decomposed(found, dataset, {name: how})[name]["|contribution|"] == pytest.approx(judge(found, sizes))


@pytest.mark.parametrize("kind", [GCN, GAT, GIN])
def test_shared_products_change_nothing_where_attention_is_whole(kind):
    """Why the trial has no column of its own for them."""
    dataset = small()
    model, data = untrained(dataset, kind), dataset.data
    x = torch.rand(data.x.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for setting in SETTINGS.values():
        if setting.options.attention == "whole" or kind is not GAT:
            shared = replace(setting.options, product="share")
            both = [
                decompose(model, x, data.edge_index, groups=[[3], [13]], options=o) for o in (setting.options, shared)
            ]
            assert torch.equal(both[0].target, both[1].target)


def test_what_the_trial_calls_bounded_is_the_default():
    assert replace(SETTINGS["bounded"].options, product="share") == Options()


def test_the_trial_ranks_all_candidates_and_is_resumed(bench, monkeypatch):
    monkeypatch.setattr(defaults, "DATASETS", ("tree_cycles", "mutag", "absent"))
    monkeypatch.setattr(defaults, "QUICK", 2)
    monkeypatch.setattr(defaults, "KINDS", ("GCN", "GAT"))
    monkeypatch.setattr("xdegree.experiments.rankings.IG_STEPS", 3)
    bench = replace(bench, seeds=1)

    def load(name):
        if name == "absent":
            raise FileNotFoundError("no such data")
        return few_molecules() if name == "mutag" else small()

    monkeypatch.setattr("xdegree.experiments.store.load", load)
    outcome = defaults.run(bench)
    tables = {table.title: table for table in outcome.tables}
    matrix = tables["Mean AUC of every reading under every setting"]
    assert [row[0] for row in matrix.rows] == list(SETTINGS)
    every = {row[0]: row for row in tables["All candidates"].rows}
    others = {"random", "hop distance", "|gradient|", "gradient × input", "IG", "|IG|", "IG norm", "occlusion"}
    assert others | set(defaults.NAMED) <= set(every)
    assert all(0 <= float(row[1].split(" ")[0]) <= 1 for row in every.values())
    assert {row[0].split()[0] for row in tables["The models"].rows} == {"Tree-Cycles", "MUTAG"}
    assert "absent, no such data" in outcome.about

    def unwanted(*_):
        raise AssertionError("kept results are computed again")

    monkeypatch.setattr(defaults, "decomposed", unwanted)
    monkeypatch.setattr(defaults, "others", unwanted)
    assert defaults.run(bench).tables == outcome.tables


# The command


def test_every_name_has_an_experiment():
    for name in EXPERIMENTS:
        assert callable(experiment(name))
    with pytest.raises(ValueError, match="name must be one of"):
        experiment("fame")


def test_the_command_prints_and_writes_the_page(bench, monkeypatch, capsys):
    monkeypatch.setattr("xdegree.experiments.accuracy.MODELS", (("tree_cycles", "GCN"),))
    arguments = ["reproduce", "accuracy", "--quick", "--out", str(bench.folder), "--quiet"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "Tree-Cycles  GCN" in printed
    assert "made by hand" in printed
    assert "# Accuracy" in (bench.folder / "results" / "accuracy.md").read_text()
    assert "(results/accuracy.md)" in (bench.folder / "results.md").read_text()
    assert main([*arguments, "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["experiments"]
    assert (found["name"], found["tables"][0]["rows"][0][:2]) == ("accuracy", ["Tree-Cycles", "GCN"])


def test_the_statistics_of_the_datasets(monkeypatch, tmp_path):
    def found(name, **_):
        if name in ("mutag", "graph_sst2"):
            raise FileNotFoundError("no such data")
        return small()

    monkeypatch.setattr("xdegree.experiments.store.load", found)
    table = experiment("datasets")(Bench(tmp_path)).tables[0]
    rows = {row[0]: row for row in table.rows}
    assert rows["Tree-Cycles"][1:] == ("24", "54", "1", "2", "constant", "1,231", "3,410", "1", "2")
    assert rows["mutag"][1:6] == ("missing",) * 5
    assert table.notes[-1] == "graph_sst2: missing, no such data"


def test_missing_data_are_said(monkeypatch, capsys, tmp_path):
    def missing(_bench):
        raise FileNotFoundError("there is no data folder")

    monkeypatch.setattr("xdegree.experiments.experiment", lambda name: missing)
    arguments = ["--out", str(tmp_path), "--quiet"]
    assert main(["reproduce", "sst", *arguments]) == 2
    assert "there is no data folder" in capsys.readouterr().err
    assert main(["reproduce", "all", "--json", *arguments]) == 1
    captured = capsys.readouterr()
    assert "accuracy is left out, there is no data folder" in captured.err
    assert json.loads(captured.out)["left_out"]["accuracy"] == "there is no data folder"


@pytest.mark.parametrize("seeds", ["0", "-1", "many"])
def test_seeds_must_be_a_number(seeds, capsys):
    with pytest.raises(SystemExit):
        main(["reproduce", "auc", f"--seeds={seeds}"])
    assert "at least 1" in capsys.readouterr().err
