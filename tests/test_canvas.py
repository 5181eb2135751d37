"""Where views draw: places, paths, colours, and what they read off results."""

import itertools
import math
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import networkx as nx
import pytest
import torch
from helpers import EDGES, features, net
from matplotlib import colormaps
from matplotlib.colors import to_rgb
from torch_geometric.data import Data

from xdegree import explain
from xdegree.canvas import (
    SIGNED,
    edge_scores,
    explained_node,
    graph_canvas,
    is_dark,
    level_colours,
    molecule_canvas,
    node_scores,
    sentence_canvas,
    signed_colour,
    signed_text,
    unit_of,
)
from xdegree.canvas.sentence import GAP, TALL
from xdegree.datasets import ATOMS
from xdegree.results.tree import Group

SVG = "{http://www.w3.org/2000/svg}"

pytestmark = pytest.mark.filterwarnings("ignore:single scores add up")


def test_colours_are_brewers_and_centred():
    for place in (0, 64, 128, 192, 256):
        expected = colormaps["RdBu_r"](0.07 + place / 256 * 0.86)
        assert max(abs(a - b) for a, b in zip(to_rgb(SIGNED[place]), expected[:3], strict=True)) < 0.02
    assert signed_colour(0, 5) == SIGNED[128]
    assert (signed_colour(-5, 5), signed_colour(5, 5)) == (SIGNED[0], SIGNED[256])
    assert signed_colour(9, 5) == SIGNED[256]
    assert signed_colour(0, 0) == SIGNED[128]
    assert is_dark(SIGNED[0])
    assert is_dark(SIGNED[256])
    assert not is_dark(SIGNED[128])


def luminance(colour):
    parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_text_can_be_read_on_every_colour():
    for colour in SIGNED:
        text = luminance("#ffffff" if is_dark(colour) else "#222222")
        low, high = sorted([text, luminance(colour)])
        assert (high + 0.05) / (low + 0.05) > 3.2, colour


def test_a_score_as_text():
    assert signed_text(1.23456) == "+1.23"
    assert signed_text(-0.5) == "−0.5"
    assert signed_text(1e-7, most=1) == "≈ 0"
    assert signed_text(1e-7) == "+1e−07"


def test_scores_of_results():
    e = explain(net(), features(), EDGES, index=3, edge_scores="pair")
    assert node_scores(e) == e.node_scores.tolist()
    pairs = edge_scores(e)
    assert len(pairs) == EDGES.shape[1] // 2
    assert pairs[0, 1] == pytest.approx(float(e.edge_scores[0]))
    assert unit_of(e) == f"contribution to class {e.target} (logits)"
    assert explained_node(e) == 3
    of_features = explain(net(), features(), EDGES, index=3, of="feature")
    assert node_scores(of_features) == pytest.approx(of_features.feature_scores.sum(1).tolist())


def test_messages_of_both_directions_add_up():
    e = explain(net(), features(), EDGES, index=3, of="edge")
    there, back = (float(e.edge_scores[(EDGES.T == torch.tensor(p)).all(1)].sum()) for p in ((3, 4), (4, 3)))
    assert edge_scores(e)[3, 4] == pytest.approx(there + back)
    assert node_scores(e) == [0.0] * 12


def test_a_whole_graph_has_no_explained_node():
    e = explain(net(level="graph"), features(), EDGES)
    assert explained_node(e) is None
    assert explained_node(replace(e, nodes=torch.arange(3))) is None
    assert explained_node(replace(e, nodes=torch.arange(3), level="link")) is None  # the link 0 is not the node 0
    assert explained_node(replace(e, nodes=torch.arange(3), level=None)) == 0


@pytest.mark.parametrize("scores", [explain(net(), features(), EDGES, index=[1, 2]), 5, "text"])
def test_what_has_no_scores(scores):
    with pytest.raises((TypeError, ValueError)):
        node_scores(scores)


def test_a_level_colours_nodes_and_the_edges_within_groups():
    canvas = graph_canvas(torch.tensor([[0, 1, 2], [1, 2, 3]]), range(4))
    level = (Group(frozenset({0, 1}), 2.0), Group(frozenset({3}), -2.0))
    nodes, edges = level_colours(canvas, level, 2.0)
    assert nodes == {0: SIGNED[256], 1: SIGNED[256], 3: SIGNED[0]}
    assert edges == {(0, 1): SIGNED[256]}


def edges_by(graph: nx.Graph) -> torch.Tensor:
    return torch.tensor(list(nx.convert_node_labels_to_integers(graph).edges)).T


@pytest.mark.parametrize(
    "graph", [nx.house_graph(), nx.balanced_tree(2, 4), nx.star_graph(30), nx.barabasi_albert_graph(80, 2, seed=0)]
)
def test_a_layout_follows_the_hops_as_well_as_kamada_kawai(graph):
    def stress(places):
        far = {(u, v): math.dist(places[u], places[v]) for u, v in itertools.combinations(graph, 2)}
        size = sum(d / hops[u][v] for (u, v), d in far.items()) / sum(
            (d / hops[u][v]) ** 2 for (u, v), d in far.items()
        )
        return sum((size * d / hops[u][v] - 1) ** 2 for (u, v), d in far.items())

    hops = dict(nx.all_pairs_shortest_path_length(graph))
    assert stress(graph_canvas(edges_by(graph), graph).places) < 1.01 * stress(nx.kamada_kawai_layout(graph)) + 1e-6


def test_the_same_graph_gets_the_same_places():
    edges = edges_by(nx.gnp_random_graph(60, 0.03, seed=1))
    canvas = graph_canvas(edges, range(60))
    mixed = torch.cat([edges.flip(0), edges], 1)[:, torch.randperm(2 * edges.shape[1])]
    assert graph_canvas(mixed, reversed(range(60))).places == canvas.places


def test_parts_stand_beside_each_other_and_not_within():
    parts = [nx.cycle_graph(8), nx.star_graph(6), nx.path_graph(3), nx.empty_graph(4)]
    canvas = graph_canvas(edges_by(nx.disjoint_union_all(parts)), range(22))
    boxes = []
    for nodes in (range(8), range(8, 15), range(15, 18), *([n] for n in range(18, 22))):
        x, y = zip(*(canvas.places[node] for node in nodes), strict=True)
        boxes.append((min(x), min(y), max(x), max(y)))
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]
    left, low, right, high = canvas.box
    assert 0.5 < (right - left) / (high - low) < 3


def test_a_large_graph_is_laid_out_at_once():
    edges = edges_by(nx.barabasi_albert_graph(300, 2, seed=0))
    began = time.process_time()
    places = graph_canvas(edges, range(300)).places
    took = time.process_time() - began
    assert took < 2, took  # 0.3 s on an idle machine, where Kamada-Kawai by networkx takes 3
    assert min(math.dist(a, b) for a, b in itertools.combinations(places.values(), 2)) > 0.005


def test_a_graph_of_many_nodes_keeps_its_unit():
    canvas = graph_canvas(edges_by(nx.path_graph(420)), range(422))
    lengths = sorted(math.dist(*line) for (line,) in canvas.paths.values())
    assert lengths[len(lengths) // 2] == pytest.approx(1)


def test_a_smiles_is_laid_out_with_the_atoms_in_order():
    canvas = molecule_canvas("Cc1ccc([N+](=O)[O-])cc1")
    assert [canvas.labels[i].split()[0] for i in range(10)] == ["C", *["C"] * 4, "N", "O", "O", "C", "C"]
    assert len(canvas.paths) == 10
    left, low, right, high = canvas.box
    assert all(left < x < right and low < y < high for x, y in canvas.places.values())
    assert min(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in itertools.combinations(canvas.places.values(), 2)) > 10


@pytest.mark.parametrize("marked", [range(10), (0,), (5, 6)])
def test_highlights_stand_where_the_atoms_are(marked):
    canvas = molecule_canvas("Cc1ccc([N+](=O)[O-])cc1")
    svg = canvas.svg(dict.fromkeys(marked, SIGNED[0]), {})
    rings = [e for e in ElementTree.fromstring(svg) if e.tag == f"{SVG}ellipse"]
    found = {int(e.get("class").removeprefix("atom-")): (float(e.get("cx")), float(e.get("cy"))) for e in rings}
    assert set(found) == set(marked)
    for atom, (x, y) in found.items():
        letters = (
            0.1 if canvas.labels[atom].startswith("C ") else 5
        )  # an O⁻ is wider than an O, and so is its highlight
        assert (x, canvas.size[1] - y) == pytest.approx(canvas.places[atom], abs=letters)


def test_hydrogens_are_drawn_if_they_were_scored():
    assert len(molecule_canvas("CCO", num_nodes=9).places) == 9
    assert len(molecule_canvas("CCO", num_nodes=3).places) == 3
    with pytest.raises(ValueError, match="has 3 atoms, 9 with all hydrogens, but 4 nodes"):
        molecule_canvas("CCO", num_nodes=4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"smiles": "C("}, "no SMILES"),
        ({"smiles": ""}, "no atoms"),
        ({}, "one of smiles, mol and graph"),
        ({"graph": Data(x=torch.zeros(2, 3), edge_index=EDGES), "atoms": ATOMS}, "one-hot over the 14 atoms"),
        ({"graph": Data(x=torch.zeros(2, 3), edge_index=EDGES)}, "what the columns of graph.x mean"),
    ],
)
def test_what_is_no_molecule_is_refused(given, message, capfd):
    with pytest.raises(ValueError, match=message):
        molecule_canvas(**given)
    assert capfd.readouterr() == ("", "")


def nitro(**more):
    """Nitromethane without two of its hydrogens: C-N(=O)-O, and one H."""
    x = torch.eye(14)[[0, 4, 1, 1, 3]]
    edge_index = torch.tensor([[0, 1, 1, 0, 1, 0, 2, 3, 4, 1], [1, 2, 3, 4, 0, 4, 1, 1, 0, 0]])[
        :, [0, 1, 2, 3, 6, 7, 8]
    ]
    return Data(x=x, edge_index=edge_index, **more)


def test_a_graph_without_geometry_becomes_a_molecule():
    with_orders = molecule_canvas(graph=nitro(bond=torch.tensor([1, 2, 2, 1, 2, 2, 1])), atoms=ATOMS)
    assert [atom.GetFormalCharge() for atom in with_orders.mol.GetAtoms()] == [
        0,
        0,
        0,
        0,
        0,
    ]  # pentavalent, as some are
    charged = molecule_canvas(graph=nitro(bond=torch.tensor([1, 2, 1, 1, 2, 1, 1])), atoms=ATOMS)
    assert [atom.GetFormalCharge() for atom in charged.mol.GetAtoms()] == [0, 1, 0, -1, 0]
    one_hot = molecule_canvas(graph=nitro(edge_attr=torch.eye(3)[[0, 1, 0, 0, 1, 0, 0]]), atoms=ATOMS)
    assert [bond.GetBondTypeAsDouble() for bond in one_hot.mol.GetBonds()] == [1, 2, 1, 1]
    assert all(bond.GetBondTypeAsDouble() == 1 for bond in molecule_canvas(graph=nitro(), atoms=ATOMS).mol.GetBonds())


def test_a_highlight_has_the_colour_it_was_given_and_letters_can_be_read():
    canvas = molecule_canvas("CO")
    drawing = ElementTree.fromstring(canvas.svg({0: "#fddbc7", 1: "#b2182b"}, {(0, 1): "#f4a582"}))
    circles = {c.get("class"): c.get("style").lower() for c in drawing.iter(f"{SVG}ellipse")}
    assert "fill:#fddbc7" in circles["atom-0"]
    assert "fill:#b2182b" in circles["atom-1"]
    bands = [p.get("style").lower() for p in drawing.iter(f"{SVG}path") if "bond-0" in (p.get("class") or "")]
    assert any("fill:#f4a582" in style for style in bands)
    letters = [p.get("fill") for p in drawing.iter(f"{SVG}path") if p.get("class") == "atom-1"]
    assert set(letters) == {"#FFFFFF"}


SENTENCE = "it is one of those pictures where the hero is stoic and the wife is patient , the kids are cute"
LONG = SENTENCE.split() * 2


def test_words_stand_in_lines_and_do_not_overlap():
    canvas = sentence_canvas(LONG, heads=[-1, *range(len(LONG) - 1)])
    rows = {y for _, y in canvas.places.values()}
    assert 1 < len(rows) < 6
    for a, b in itertools.pairwise(range(len(LONG))):
        (xa, ya), (xb, yb) = canvas.places[a], canvas.places[b]
        if ya == yb:
            assert xb - xa == pytest.approx((canvas.widths[a] + canvas.widths[b]) / 2 + GAP)
        else:
            assert ya - yb > TALL
    used = [max(x + canvas.widths[w] / 2 for w, (x, y) in canvas.places.items() if y == row) for row in rows]
    assert min(used) > 0.6 * max(used)  # no line of one word


def test_arcs_stand_on_their_words_and_do_not_cross_where_the_tree_does_not():
    canvas = sentence_canvas(["a", "gorgeous", "witty", "movie"], heads=[3, 3, 3, 3])
    assert set(canvas.paths) == {(0, 3), (1, 3), (2, 3)}
    tops = {}
    for (u, v), (line,) in canvas.paths.items():
        for word, (x, y) in ((u, line[0]), (v, line[-1])):
            assert abs(x - canvas.places[word][0]) < canvas.widths[word] / 2
            assert y == pytest.approx(canvas.places[word][1] + TALL / 2)
        tops[u] = max(y for _, y in line)
    assert tops[0] > tops[1] > tops[2]
    feet = {u: line[-1][0] for (u, _), (line,) in canvas.paths.items()}
    assert feet[2] < feet[1] < feet[0]


def test_an_arc_between_lines_goes_on_at_the_margins():
    canvas = sentence_canvas(LONG, heads=[-1, *[0] * (len(LONG) - 1)])
    pieces = canvas.paths[0, len(LONG) - 1]
    assert len(pieces) == 2
    assert pieces[0][-1][0] == pytest.approx(canvas.size[0])
    assert pieces[1][0][0] == 0


def test_a_sentence_is_safe_as_svg():
    words = ["<script>alert(1)</script>", "a&b", "\x00\x1b", "it's", '"q"']
    drawing = ElementTree.fromstring(sentence_canvas(words, heads=[1, 1, 1, 1, 1]).svg({0: "#b2182b"}, {}))
    said = [text.text for text in drawing.iter(f"{SVG}text")]
    assert said == [words[0], words[1], "\ufffd\ufffd", *words[3:]]
    assert not list(drawing.iter(f"{SVG}script"))


@pytest.mark.parametrize(
    ("words", "given", "message"),
    [
        ([], {}, "words is empty"),
        (["a", "b"], {"heads": [0]}, "2 words, but 1 heads"),
        (["a", "b"], {"edge_index": torch.tensor([[0], [2]])}, r"2 words, but edges \[\(0, 2\)\]"),
    ],
)
def test_what_is_no_sentence_is_refused(words, given, message):
    with pytest.raises(ValueError, match=message):
        sentence_canvas(words, **given)
