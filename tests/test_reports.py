"""The report as a file, and the command that writes it; test_reports_page.py opens it in a browser."""

import re
import sys
import warnings
from dataclasses import replace

import pytest
import torch
from helpers import EDGES, PATH, features, net

from xdegree import Explanation, HeteroExplanation, agglomerate, explain, pick_subgraph
from xdegree.canvas import (
    alike,
    explained_graph,
    molecule_canvas,
    part_line,
    sentence_canvas,
    signed_colour,
    signed_text,
)
from xdegree.cli import main
from xdegree.reports import report
from xdegree.reports.tables import _telling
from xdegree.results.tree import Group

PLOTLY_LIMIT = 5_000_000


def test_the_page_says_what_the_result_says(of_node):
    e, tree = of_node
    html = report(e, tree, classes=["red", "green", "blue"], settings={"model": "a GCN"}).html
    assert f"Why “{['red', 'green', 'blue'][e.target]}” for node 5?" in html
    for text in alike(e.prediction.tolist()):
        assert f"{text}</td>" in html
    best, score = e.top(1, by="size")[0]
    assert re.search(rf"node {best}</th>.*?{re.escape(alike([score])[0])}<", html)
    for name, value in (("model", "a GCN"), ("agglomeration: q", "0.8"), ("options: ties", "share"), ("seed", "0")):
        assert re.search(rf"{name}</th><td>{value}</td>", html)


def test_the_same_result_makes_the_same_page(of_node):
    assert report(*of_node).html == report(*of_node).html


def test_it_needs_nothing_else(of_node):
    html = report(*of_node).html
    assert not re.search(r"<(?:link|img|iframe)\b|\bsrc\s*=|url\(|@import", html)
    assert "default-src 'none'" in html


def test_three_hundred_nodes_stay_below_five_megabytes():
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.cat(
        [torch.randint(300, (2, 900), generator=generator), torch.stack([torch.arange(299), torch.arange(1, 300)])], 1
    )
    x = features(300)
    e = explain(net(level="graph"), x, edge_index, edge_scores="mean")
    levels = tuple((Group(frozenset(range(size)), float(size)),) for size in range(1, 301, 10))
    tree = agglomerate(net(level="graph"), features(4), PATH)
    leaves = tuple(Group(frozenset({n}), 1.0) for n in range(300))
    grown = type(tree)(levels, tuple((1.0,) for _ in levels), leaves, tuple(e.prediction.tolist()), e.target, 0, 300)
    assert len(report(e, grown).html.encode()) < PLOTLY_LIMIT


def test_a_long_molecule_stays_below_five_megabytes():
    smiles = "C" * 100 + "O"
    e = Explanation(torch.tensor([1.0, 0.0]), 0, 0, 101, torch.arange(101), node_scores=torch.linspace(-1, 1, 101))
    assert len(report(e, on=molecule_canvas(smiles)).html.encode()) < PLOTLY_LIMIT


def test_a_picked_subgraph_is_listed_with_its_game():
    model, x = net(level="graph"), features()
    picked = pick_subgraph(model, x, EDGES, of="edge", size=2, objective="fidelity")
    page = report(explain(model, x, EDGES), groups=[picked]).html
    assert f"{picked.size} edges, score {signed_text(picked.score)} ({picked.game})" in page
    unknown = replace(picked, contribution=None)
    with pytest.raises(ValueError, match="not known of this subgraph"):
        report(explain(model, x, EDGES), groups={"B": unknown})


def test_the_question_of_a_link_is_about_the_link(of_node):
    assert "Why class" in (html := report(replace(of_node[0], level="link", index=2)).html)
    assert "for link 2?" in html


def test_what_does_not_fit_is_refused(of_node, of_graph):
    e, tree = of_node
    with pytest.raises(ValueError, match=r"tree is of another prediction: its .* is"):
        report(e, of_graph[1])
    with pytest.raises(ValueError, match="3 classes, but 2 names"):
        report(e, tree, classes=["a", "b"])
    with pytest.raises(TypeError, match="HeteroExplanation"):
        report(HeteroExplanation(torch.zeros(2), 0, 0))
    with pytest.raises(ValueError, match="does not know its graph"):
        report(Explanation(torch.zeros(2), 0, 0, 2, torch.arange(2), node_scores=torch.zeros(2)))


def test_of_a_large_graph_the_neighborhood_that_matters_is_drawn_and_groups_that_say_something_new_listed():
    path = torch.stack([torch.arange(3999), torch.arange(1, 4000)])
    scores = torch.zeros(4000).index_put((torch.tensor([2000, 2010]),), torch.tensor([2.0, -1.0]))
    e = Explanation(torch.zeros(2), 0, 0, 4000, torch.arange(4000), node_scores=scores, edge_index=path)
    canvas = explained_graph(e)
    assert len(canvas.places) == 300
    assert {*range(2000, 2011)} <= set(canvas.places), "the strongest, and the way that joins them"
    assert part_line(canvas, range(4000), scores.tolist(), None).startswith("Drawn are 300 of 4,000 nodes")
    page = report(e).html
    assert re.search("node 2010</th>", page)
    assert "3988 more with smaller scores" in page
    grown = [Group(frozenset(range(size)), 1.0 if size < 12 else 3.0) for size in range(2, 22)]
    kept = _telling(grown)
    assert [len(group.nodes) for group in kept] == [2, 12], "the smallest group of each score"
    assert _telling(grown[:12]) == grown[:12]


def test_readings_without_a_sign_have_none_and_groups_have_the_head_of_their_reading(of_node):
    e = explain(net(), features(), EDGES, index=5, reading="impact")
    page = report(e, agglomerate(net(), features(), EDGES, index=5, reading="impact")).html
    assert re.findall(r"class='score'[^>]*>([^<]*)<", page)
    assert not re.search(r"class='score'[^>]*>[+−]", page)
    assert re.search("<th scope='col' class=number>impact</th><th scope='col' class=number>interaction</th>", page)


def test_plotly_is_named_with_its_extra(monkeypatch):
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in [n for n in sys.modules if n.startswith("xdegree.reports") or n.split(".")[0] == "plotly"]:
            patch.delitem(sys.modules, name)
        patch.setitem(sys.modules, "plotly", None)
        with pytest.raises(ImportError, match=r'needs plotly.*: pip install "xdegree\[report\]"'):
            import xdegree.reports  # noqa: F401


FACTORY = """
import torch
from helpers import features, net
def graph():
    return net(level="graph"), (features(4), torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]))
"""


def test_the_command_writes_a_report(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a_factory.py").write_text(FACTORY)
    assert main(["report", "a_factory.py:graph", "--smiles", "CCOC", "--classes", "a,b,c", "-o", "why.html"]) == 0
    assert capsys.readouterr().out.startswith("why.html (2.")
    html = (tmp_path / "why.html").read_text()
    assert "for this molecule?" in html
    assert "a_factory.py:graph" in html.replace("<wbr>", "")


def test_the_command_reads_saved_results(tmp_path, capsys, of_graph):
    e, tree = of_graph
    e.save(tmp_path / "why.json")
    tree.save(tmp_path / "tree.json")
    out = tmp_path / "why.html"
    assert main(["report", str(tmp_path / "why.json"), "--tree", str(tmp_path / "tree.json"), "-o", str(out)]) == 0
    assert "agglomeration: q" in out.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a_factory.py:graph", "--smiles", "C("], "no SMILES"),
        (["a_factory.py:graph", "--words", "one two"], "2 words, but 4 nodes"),
        (["a_factory.py:graph", "--classes", "one"], "3 classes, but 1 names"),
        (["a_factory.py:graph", "--tree", "tree.json"], "goes with a saved explanation"),
        (["a_factory.py:graph", "--index", "7"], "cannot be explained"),
        (["nowhere.json"], "nowhere.json"),
        (["a_factory.py:graph", "-o", "no/such/folder.html"], "no/such/folder"),
    ],
)
def test_what_the_command_cannot_do_it_says(tmp_path, capsys, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a_factory.py").write_text(FACTORY)
    assert main(["report", *options]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("*.html*"))


def test_another_class_than_the_predicted_one_is_named(of_node):
    other = explain(net(), features(), EDGES, index=5, target=(of_node[0].target + 1) % 3)
    html = report(other).html
    assert f"Why class {other.target} for node 5?" in html
    assert f"Red raises class {other.target}, blue lowers it." in html


def listed(html: str) -> list[tuple[str, str]]:
    """The names and numbers of the table of what is strongest."""
    table = re.search(r'<section id="nodes">(.*?)</section>', html, re.DOTALL)[1]
    return re.findall(r"<th scope='row'>(.*?)</th>.*?<span[^>]*>(.*?)</span>", table)


@pytest.mark.parametrize("of", ["node", "edge", "feature"])
def test_what_was_scored_is_listed_and_named(of):
    e = explain(net(), features(), EDGES, index=5, of=of)
    html = report(e, features=["a", "b", "c", "d"]).html
    assert f"<h2>Strongest {of}s</h2>" in html
    assert f"Single {of}s add up to" in html
    article = "an" if of == "edge" else "a"
    assert f"The score of {article} {of} is what it contributes" in html
    names = {
        "node": lambda place: f"node {place}",
        "edge": lambda place: "node {} – node {}".format(*sorted(place)),
        "feature": lambda place: f"node {place[0]}, {'abcd'[place[1]]}",
    }
    best = names[of](e.top(1, by="size")[0][0])
    assert best in [name for name, _ in listed(html)][:2], "both directions of an edge are one line"


def test_the_table_has_the_colours_of_the_drawing(of_node):
    e, _ = of_node
    node, score = e.top(1, by="size")[0]
    most = max(float(e.node_scores.abs().max()), float(e.edge_scores.abs().max()))
    assert most > abs(score), "the scale is that of edges too"
    html = report(e).html
    row = re.search(rf"<th scope='row'>node {node}</th><td[^>]*><span[^>]*background:(#\w+)", html)
    assert row[1] == signed_colour(score, most)


@pytest.mark.parametrize("reading", ["impact", "strength", "probability"])
def test_readings_that_do_not_add_up_say_so(reading):
    html = report(explain(net(), features(), EDGES, index=5, reading=reading)).html
    assert f"Scores of this kind ({reading}) do not add up to the prediction." in html
    assert "what it contributes to" not in html
    assert f"<th scope='col' class=number>{reading}</th>" in html


@pytest.mark.parametrize("share", [0.2, 3.0])
def test_a_large_rest_is_said_in_words(share):
    scores = torch.tensor([1.0, -0.5, 0.25])
    whole = torch.tensor([float(scores.sum()) / (1 - share), 0.0])
    e = Explanation(whole, 0, 0, 3, torch.arange(3), node_scores=scores, edge_index=PATH[:, :4])
    said = "Much of this prediction is what nodes do only together" in report(e).html
    assert said == (share > 0.5)


def test_words_that_come_twice_have_numbers(of_graph):
    html = report(of_graph[0], on=sentence_canvas(["so", "so", "good", "film"], edge_index=PATH)).html
    assert {name for name, _ in listed(html)} == {"so (0)", "so (1)", "good", "film"}
