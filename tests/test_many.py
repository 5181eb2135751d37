"""Many predictions at a glance: what is added up, drawn and filtered, from results, factories and jobs."""

import json
import re
from collections import Counter
from dataclasses import replace

import pytest
import torch
from helpers import EDGES, features, holds, net, reads, until
from matplotlib.figure import Figure
from torch_geometric.data import Data

pytest.importorskip("rdkit", reason='no RDKit: pip install "xdegree[chem]"')

from xdegree import HeteroExplanation, decompose, explain
from xdegree.canvas import functional_groups, overview
from xdegree.cli import main
from xdegree.datasets import molecule_of
from xdegree.models import GCN
from xdegree.plots import plot_dataset
from xdegree.reports import report_many

pytestmark = pytest.mark.filterwarnings("ignore:single scores add up")
SMILES = ("Cc1ccc([N+](=O)[O-])cc1", "CCO", "CC(=O)N", "c1ccccc1O", "CCBr", "CCO")
EVIL = "<img src=x onerror=alert(1)>"


def molecules() -> list[Data]:
    graphs = [molecule_of(smiles) for smiles in SMILES]
    for number, (graph, smiles) in enumerate(zip(graphs, SMILES, strict=True)):
        graph.smiles, graph.y = smiles, torch.tensor([number % 2])
    return graphs


@pytest.fixture(scope="module")
def explained():
    torch.manual_seed(0)
    model, graphs = GCN(14, 2, level="graph").eval(), molecules()
    return model, graphs, [explain(model, g.x, g.edge_index) for g in graphs]


def test_kinds_of_atoms_add_up_to_all_scores(explained):
    _, graphs, found = explained
    made = overview(found, graphs)
    assert made.what == "atoms"
    for number, (e, graph) in enumerate(zip(found, graphs, strict=True)):
        parts = {name: o for name, listed in made.kinds.items() for o in listed if o.row == number}
        assert sum(o.score for o in parts.values()) == pytest.approx(float(e.node_scores.sum()), abs=1e-5)
        symbols = Counter(
            re.findall("Br|[CONH]", "".join("COxHNxBxxxxxxx"[int(i)].replace("B", "Br") for i in graph.x.argmax(1)))
        )
        assert {name: o.size for name, o in parts.items()} == dict(symbols)
        assert made.rows[number].right == (int(e.prediction.argmax()) == int(graph.y))
        assert made.rows[number].title == graph.smiles


def test_functional_groups_are_those_of_rdkit():
    groups = dict(functional_groups("CC(=O)N", 9))
    assert set(groups["primary amides"]) >= {1, 2, 3}
    assert set(groups["primary amides"]) & {4, 5, 6} == set(), "hydrogens of the methyl group are not in it"
    assert "nitro groups" in dict(functional_groups("c1ccccc1[N+](=O)[O-]"))
    assert functional_groups("C") == []


def test_fragments_are_sums_or_what_is_given(explained):
    _, graphs, found = explained
    sums = overview(found, graphs)
    assert not sums.exact
    [nitro] = sums.fragments["nitro groups"]
    atoms = dict(functional_groups(SMILES[0], found[0].num_nodes))["nitro groups"]
    assert nitro.score == pytest.approx(float(found[0].node_scores[list(atoms)].sum()), abs=1e-5)
    given = overview(found, graphs, fragments=[[("mine", (0, 1), 5.0)], *[[]] * 5])
    assert given.exact
    assert given.fragments == {"mine": ((0, 5.0, 2),)}


def test_equal_subgraphs_share_a_name_whatever_their_numbers():
    edges = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    e = explain(net(level="graph"), features(4), edges)

    one = replace(e, node_scores=torch.tensor([2.0, 2.0, 0.1, -2.0], dtype=torch.double))
    other = replace(e, node_scores=torch.tensor([0.0, 0.1, 3.0, 3.0], dtype=torch.double))
    found = overview([one, other]).subgraphs
    assert len(found) == 1, "the two ends of a path are alike"
    assert [(o.row, o.score, o.size) for o in next(iter(found.values()))] == [(0, 4.0, 2), (1, 6.0, 2)]
    chain = Data(smiles="CCCC", x=torch.ones(4, 1), edge_index=edges)
    assert list(overview([one, other], [chain, chain]).subgraphs) == ["CC"]


def test_kinds_of_other_graphs():
    of_nodes = explain(net(), features(), EDGES, index=[3, 5])
    hops = overview(of_nodes).kinds
    assert [o.score for o in hops["the explained node"]] == pytest.approx(
        [float(e.node_scores[e.index]) for e in of_nodes]
    )
    assert set(hops) == {"the explained node", "1 hop away", "2 hops away"}
    whole = explain(net(level="graph"), features(), EDGES)
    assert set(overview([whole]).kinds) == {"degree 2", "degree 3"}
    assert set(overview([whole], kinds=["a", "b"] * 6).kinds) == {"a", "b"}
    words = Data(x=features(), edge_index=EDGES, words=["So", "so"] * 6)
    assert overview([whole], words).kinds["so"][0].size == 12
    by_feature = explain(net(level="graph"), features(), EDGES, of="feature")
    named = overview([by_feature], features=list("pqrs")).kinds
    assert named["q"][0].score == pytest.approx(float(by_feature.feature_scores[:, 1].sum()))
    typed = HeteroExplanation(torch.zeros(2), 0, 0, node_scores={"paper": torch.tensor([1.0, 2.0])})
    assert overview([typed]).kinds == {"paper": ((0, 3.0, 2),)}
    by_edge = explain(net(level="graph"), features(), EDGES, of="edge")
    total = sum(o.score for listed in overview([by_edge]).kinds.values() for o in listed)
    assert total == pytest.approx(float(by_edge.edge_scores.sum()))


def test_what_cannot_be_added_up_is_refused(explained):
    _, graphs, found = explained
    strength = explain(net(level="graph"), features(), EDGES, reading="strength")
    whole = explain(net(level="graph"), features(), EDGES)
    for given, message in (
        (([],), "no explanations"),
        ((found, graphs[:2]), "6 explanations, but 2 graphs"),
        (([strength, whole],), "one reading"),
    ):
        with pytest.raises(ValueError, match=message):
            overview(*given)
    with pytest.raises(ValueError, match="12 nodes, but 2 kinds"):
        overview([whole], kinds=["a", "b"])


def test_a_picture_of_many_has_a_dot_for_each_prediction(explained, tmp_path):
    _, graphs, found = explained
    figure = plot_dataset(found, graphs, title="many", most=3)
    assert isinstance(figure, Figure)
    made = overview(found, graphs).kinds
    dots = [c for c in figure.axes[0].collections if c.get_gid() == "dots"]
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(dots) == len(names) == 3
    for name, drawn in zip(names, dots, strict=True):
        assert sorted(drawn.get_offsets()[:, 0].tolist()) == pytest.approx(sorted(o.score for o in made[name]))
    means = [line for line in figure.axes[0].lines if line.get_gid() == "mean"]
    assert means[0].get_xdata()[0] == pytest.approx(sum(o.score for o in made[names[0]]) / len(made[names[0]]))
    assert "2 more kinds contribute less" in figure.axes[0].get_xlabel().replace("\n", " ")
    figure.savefig(tmp_path / "many.png", dpi=50)


def content(html: str) -> dict:
    return json.loads(re.search(r'id="content">(.*?)</script>', html, re.DOTALL)[1])


def test_molecules_are_drawn_and_a_page_of_many_stays_small(page, tmp_path, explained):
    _, graphs, found = explained
    made = report_many(found * 200, graphs * 200)
    assert len(made.html) < 1_000_000
    assert len(report_many(found, graphs).html) < 60_000
    page.goto(report_many(found, graphs).save(tmp_path / "many.html").as_uri())
    page.wait_for_selector("body[data-ready]")
    holds(page, "#predictions img.molecule", len(graphs))
    until(page, lambda: page.evaluate(SEEN), "every molecule is a picture that the browser can show")
    assert page.locator("#predictions img").first.get_attribute("alt") == SMILES[0]
    page.get_by_role("button", name="nitro groups").click()
    holds(page, "#predictions img.molecule", 1)


SEEN = "() => [...document.querySelectorAll('img.molecule')].every((img) => img.complete && img.naturalWidth > 20)"


def test_nodes_have_their_names_and_kinds_are_counted():
    graph = Data(x=features(), edge_index=EDGES, names=[f"sensor {n}" for n in range(12)], title="a town")
    of_nodes = explain(net(), features(), EDGES, index=[3, 5])
    assert [row.title for row in overview(of_nodes, graph).rows] == ["sensor 3", "sensor 5"]
    assert [row.title for row in overview(of_nodes).rows] == ["node 3", "node 5"]
    whole = explain(net(level="graph"), features(4), torch.tensor([[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]]))
    equal = replace(whole, node_scores=torch.ones(4, dtype=torch.double))
    assert next(iter(overview([equal], kinds=["a", "b", "a", "a"]).subgraphs)).startswith("3 × a, b [")


def test_the_page_filters(page, tmp_path, explained):
    _, graphs, found = explained
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    path = report_many(found, graphs, classes=["no", EVIL]).save(tmp_path / "many.html")
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-ready]")
    made = overview(found, graphs)
    right = sum(row.right for row in made.rows)
    line = made.account
    reads(page, "#count", f"6 of 6 predictions. {line[0].upper()}{line[1:]}.")
    holds(page, "#kinds svg circle", sum(map(len, made.kinds.values())))
    page.select_option("#right", "true")
    reads(page, "#count", f"{right} of 6 predictions. On average")
    page.select_option("#right", "false")
    wrong = sum(not made.rows[o.row].right for listed in made.kinds.values() for o in listed)
    holds(page, "#kinds svg circle", wrong)
    page.click("#reset")
    small = sum(row.size <= 9 for row in made.rows)
    page.fill("#most", "9")
    reads(page, "#count", f"{small} of 6 predictions")
    page.click("#reset")
    page.get_by_role("button", name="nitro groups").click()
    holds(page, "#predictions tbody tr", 1)
    reads(page, "#predictions tbody", SMILES[0])
    holds(page, "img[src=x]", 0)
    assert not [url for url in asked if not url.startswith("file:")]


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_of_the_page_of_many(page, tmp_path, explained, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(report_many(explained[2], explained[1]).save(tmp_path / "many.html").as_uri())
    page.wait_for_selector("body[data-ready]")
    until(page, lambda: page.evaluate("document.documentElement.scrollWidth") <= width, f"fits {width}")


FACTORY = f"""
import torch
from xdegree.datasets import molecule_of
from xdegree.models import GCN


def many():
    graphs = [molecule_of(smiles) for smiles in {SMILES}]
    for number, (graph, smiles) in enumerate(zip(graphs, {SMILES})):
        graph.smiles, graph.y = smiles, torch.tensor([number % 2])
    torch.manual_seed(0)
    return GCN(14, 2, level="graph").eval(), (graphs,)
"""
"""Without the imports of this file, which a worker would have to do too."""


def test_the_command_explains_many_and_reads_jobs(tmp_path, monkeypatch, capsys, explained):
    pytest.importorskip("pyarrow", reason='no pyarrow: pip install "xdegree[jobs]"')
    model, graphs, found = explained
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(FACTORY)
    assert main(["report", "--many", "f.py:many", "-o", "many.html"]) == 0
    assert capsys.readouterr().out.startswith("many.html (6 predictions, ")
    assert main(["job", "run", "f.py:many", "--out", "job", "--workers", "1", "--quiet"]) == 0
    assert main(["report", "--many", "job", "-o", "job.html", "--json"]) == 0
    direct, read = (content((tmp_path / name).read_text()) for name in ("many.html", "job.html"))
    assert [row[:2] for row in direct["rows"]] == [row[:2] for row in read["rows"]]
    for one, other in zip(direct["sections"], read["sections"], strict=True):
        assert [name for name, _ in one["names"]] == [name for name, _ in other["names"]]
        flat = ([o[1] for _, listed in part["names"] for o in listed] for part in (one, other))
        assert next(flat) == pytest.approx(next(flat), rel=1e-3, abs=1e-5)
    fragments = dict(next(part["names"] for part in direct["sections"] if part["key"] == "fragments"))
    atoms = list(dict(functional_groups(SMILES[0], found[0].num_nodes))["nitro groups"])
    whole = decompose(model, graphs[0].x, graphs[0].edge_index, groups=[atoms]).target[0, 0, found[0].target]
    assert fragments["nitro groups"][0][1] == pytest.approx(float(whole), rel=1e-3, abs=1e-5), "as one group"
    assert main(["report", "--many", "nowhere"]) == 2
