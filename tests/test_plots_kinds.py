"""Molecules, sentences, agglomerations and curves: what is drawn, in which colour, with which words."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from helpers import EDGES, features, net, singles
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from xdegree import HeteroExplanation, agglomerate, decompose, explain
from xdegree.canvas import GREY, SIGNED, graph_canvas, molecule_canvas, sentence_canvas, signed_colour
from xdegree.engine.options import Options
from xdegree.plots import (
    plot_agglomeration,
    plot_curves,
    plot_dendrogram,
    plot_features,
    plot_graph,
    plot_molecule,
    plot_sentence,
    plot_waterfall,
)
from xdegree.plots import plot_surface as surface
from xdegree.results.tree import ExplanationTree, Group

pytestmark = pytest.mark.filterwarnings("ignore:single scores add up")
ETHANOL = torch.tensor([2.0, 0.0, -2.0])
WORDS = ["a", "gorgeous", "movie", "$ 5 & <b>"]
HEADS = [2, 2, 2, 2]


def groups(*pairs):
    return tuple(Group(frozenset(nodes), score) for nodes, score in pairs)


# 0 and 1 merge, then 2, then all; 3 comes last.
TREE = ExplanationTree(
    levels=(groups(([0], 1.0), ([2], -1.0)), groups(([0, 1], 2.0), ([2], -1.0)), groups(([0, 1, 2, 3], 4.0))),
    contextual=((1.0, -1.0), (2.0, -1.0), (4.0,)),
    leaves=groups(([0], 1.0), ([1], 0.5), ([2], -1.0), ([3], 0.25)),
    prediction=(4.0, -4.0),
    target=0,
    index=0,
    num_nodes=4,
)
PATH = torch.tensor([[0, 1, 2], [1, 2, 3]])


def patches(figure, gid, axes=0):
    return [p for p in figure.axes[axes].patches if p.get_gid() == gid]


def saved(figure, tmp_path):
    """Both formats can be written, without a display and without warnings."""
    assert isinstance(figure, Figure)
    figure.savefig(tmp_path / "it.png", dpi=50)
    figure.savefig(tmp_path / "it.svg")
    assert (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG")
    return (tmp_path / "it.svg").read_text()


def highlights(figure, axes=0):
    return {p.get_gid(): to_hex(p.get_facecolor()) for p in figure.axes[axes].patches if isinstance(p, Ellipse)}


def test_atoms_have_the_colour_of_their_score(tmp_path):
    figure = plot_molecule(ETHANOL, "CCO", title="why")
    expected = {f"atom-{i}": signed_colour(s, 2.0) for i, s in enumerate(ETHANOL.tolist())}
    assert highlights(figure) == expected
    assert figure.axes[0].get_title() == "why"
    assert figure.axes[1].get_xlim() == (-2, 2)
    assert figure.axes[1].get_xlabel() == "score\nred: positive, blue: negative"
    text = saved(figure, tmp_path)
    assert "<image" not in text.split("colorbar")[0].split("axes_2")[0]  # vectors, no pixels


def test_bonds_have_the_colour_of_their_score():
    figure = plot_molecule(ETHANOL, "CCO", edges={(1, 0): 2.0, (1, 2): -1.0})
    bands = {
        p.get_gid().split()[0]: to_hex(p.get_facecolor())
        for p in figure.axes[0].patches
        if (p.get_gid() or "").startswith("bond-") and p.get_facecolor()[3] and p.get_fill() and not p.get_linewidth()
    }
    assert bands == {"bond-0": SIGNED[256], "bond-1": signed_colour(-1, 2)}


def test_an_explanation_of_a_molecule_brings_its_edges_and_unit():
    x, edge_index = features(3), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    e = explain(net(level="graph"), x, edge_index, edge_scores="pair", reading="probability")
    figure = plot_molecule(e, "CCO", truth=[1])
    assert figure.axes[1].get_xlabel().startswith(f"contribution to class {e.target} (probability)\nred raises class")
    assert len([p for p in figure.axes[0].patches if (p.get_gid() or "").startswith("bond-")]) >= 4
    assert len(patches(figure, "truth 1")) == 1
    assert [t.get_text() for t in figure.axes[0].get_legend().get_texts()] == ["ground truth"]


def test_scores_of_another_molecule_are_refused():
    with pytest.raises(ValueError, match="but 4 nodes were scored"):
        plot_molecule(torch.zeros(4), "CCO")
    with pytest.raises(ValueError, match="has 3 atoms, but 4 nodes"):
        plot_molecule(torch.zeros(4), canvas=molecule_canvas("CCO"))


@pytest.mark.data
def test_every_kind_of_mutagenicity_graph_is_drawn():
    from xdegree.datasets import ATOMS, mutag

    graphs = mutag().graphs
    odd = [max(graphs, key=lambda g: g.num_nodes), min(graphs, key=lambda g: g.num_nodes), *graphs[::400]]
    for graph in odd:
        figure = plot_molecule(
            torch.linspace(-1, 1, graph.num_nodes), graph=graph, atoms=ATOMS, edges=graph.edge_mask.float()
        )
        assert len(highlights(figure)) == graph.num_nodes


def test_words_have_the_colour_of_their_score_over_their_arcs(tmp_path):
    scores = [0.5, 1.0, 0.0, -1.0]
    figure = plot_sentence(scores, WORDS, heads=HEADS, edges={(1, 2): -1.0})
    for word, score in enumerate(scores):
        (box,) = patches(figure, f"word {word}")
        assert to_hex(box.get_facecolor()) == signed_colour(score, 1.0)
    (arcs,) = (c for c in figure.axes[0].collections if c.get_gid() == "arcs")
    assert len(arcs.get_segments()) == 3
    assert sorted(map(to_hex, arcs.get_colors())) == sorted([GREY, SIGNED[0], GREY])
    saved(figure, tmp_path)


def test_letters_stay_within_the_box_of_their_word():
    words = ["WWWWWWMMMM", "illi", "Ünïcödé", *WORDS]
    figure = plot_sentence([0.0] * 7, words)
    letters, boxes = patches(figure, "letters"), [patches(figure, f"word {i}")[0] for i in range(7)]
    for inner, outer in zip(letters, boxes, strict=True):
        a, b = inner.get_path().get_extents(), outer.get_path().get_extents()
        assert b.x0 <= a.x0
        assert a.x1 <= b.x1


def test_fifty_words_take_several_lines():
    words = [f"word{i}" for i in range(50)]
    figure = plot_sentence(torch.linspace(-1, 1, 50), words, heads=[-1, *range(49)])
    width, height = figure.get_size_inches()
    assert width < 11
    assert height < 8


def test_a_sentence_needs_a_score_for_each_word():
    with pytest.raises(ValueError, match="2 words, but 3 nodes"):
        plot_sentence([1.0, 2.0, 3.0], ["a", "b"])


@pytest.mark.parametrize("kind", ["graph", "molecule", "sentence", "edge_index"])
def test_groups_grow_from_panel_to_panel(kind, tmp_path):
    on = {
        "graph": graph_canvas(PATH, range(4)),
        "edge_index": PATH,
        "molecule": molecule_canvas("CCOC"),
        "sentence": sentence_canvas(WORDS, edge_index=PATH),
    }[kind]
    figure = plot_agglomeration(TREE, on, title="how")
    titles = [ax.get_title() for ax in figure.axes[:3]]
    assert titles == ["level 1 of 3: +1.00, −1.00", "level 2 of 3: +2.00, −1.00", "level 3 of 3: +4.00"]
    for ax, level in zip(figure.axes, TREE.levels, strict=False):
        expected = {node: signed_colour(g.score, 4.0) for g in level for node in g.nodes}
        assert coloured(ax, kind) == expected
    assert figure.get_suptitle() == "how"
    saved(figure, tmp_path)


def coloured(ax, kind):
    if kind == "molecule":
        return {int(p.get_gid()[5:]): to_hex(p.get_facecolor()) for p in ax.patches if isinstance(p, Ellipse)}
    if kind == "sentence":
        boxes = {int(p.get_gid()[5:]): to_hex(p.get_facecolor()) for p in ax.patches if p.get_gid().startswith("word")}
    else:
        (drawn,) = (c for c in ax.collections if c.get_gid() == "nodes")
        boxes = dict(enumerate(map(to_hex, drawn.get_facecolors())))
    return {node: colour for node, colour in boxes.items() if colour != "#ffffff"}


def test_panels_are_the_first_the_last_and_some_between():
    tree = agglomerate(net(level="graph"), features(), EDGES, q=0.9)
    count = len(tree.levels)
    assert count > 4
    figure = plot_agglomeration(tree, EDGES, panels=3)
    shown = [int(ax.get_title().split(" ")[1]) for ax in figure.axes[:3]]
    assert (shown[0], shown[-1]) == (1, count)
    assert len(plot_agglomeration(tree, EDGES, panels=1).axes) == 2
    assert plot_agglomeration(tree, EDGES, levels=[-1]).axes[0].get_title().startswith(f"level {count} of {count}:")
    with pytest.raises(ValueError, match="at least 1"):
        plot_agglomeration(tree, EDGES, panels=0)


def test_a_dendrogram_says_the_interaction_of_each_merge(tmp_path):
    figure = plot_dendrogram(TREE, names={0: "$x$", 1: "<b>"}, title="how")
    ax = figure.axes[0]
    assert [text.get_text() for text in ax.texts] == ["+2.75", "+0.50"]  # 4 - (2 - 1 + 0.25), 2 - (1 + 0.5)
    assert sorted(label.get_text() for label in ax.get_yticklabels()) == ["$x$", "2", "3", "<b>"]
    joins = [line for line in ax.lines if line.get_gid() == "merge"]
    assert [set(line.get_xdata()) for line in joins] == [{2.0}, {3.0}]
    lines = [line for line in ax.lines if line.get_gid() == "group"]
    assert sorted(to_hex(line.get_color()) for line in lines) == sorted(
        signed_colour(score, 4.0) for score in (1.0, 0.5, 2.0, -1.0, 0.25, 4.0)
    )
    saved(figure, tmp_path)


def test_lines_of_a_dendrogram_do_not_cross():
    tree = agglomerate(net(), features(), EDGES, index=5)
    ax = plot_dendrogram(tree).axes[0]
    flat = [(*line.get_xdata(), line.get_ydata()[0]) for line in ax.lines if line.get_gid() == "group"]
    upright = [(line.get_xdata()[0], *line.get_ydata()) for line in ax.lines if line.get_gid() == "merge"]
    for (left, right, y), (x, low, high) in itertools.product(flat, upright):
        assert not (left < x < right and low < y < high)


def test_a_large_dendrogram_fits_a_page():
    count = 400
    leaves = tuple(Group(frozenset({n}), 1.0) for n in range(count))
    levels = tuple(groups((range(size), float(size))) for size in (1, 40, 200, 400))
    tree = ExplanationTree(levels, tuple((1.0,) for _ in levels), leaves, (1.0,), 0, 0, count)
    figure = plot_dendrogram(tree)
    assert figure.get_size_inches()[1] < 26
    assert "39 nodes" not in {t.get_text() for t in figure.axes[0].get_yticklabels()}
    assert {"40 nodes", "160 nodes", "200 nodes"} <= {t.get_text() for t in figure.axes[0].get_yticklabels()}


def test_a_tree_without_levels_is_refused():
    empty = ExplanationTree((), (), TREE.leaves, (1.0,), 0, 0, 4, options=Options())
    for plot in (plot_dendrogram, lambda tree: plot_agglomeration(tree, PATH)):
        with pytest.raises(ValueError, match="no levels"):
            plot(empty)


def test_curves_have_names_and_bands(tmp_path):
    figure = plot_curves(
        {"ours": ([1, 10, 100], [[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]]), "theirs": ([1, 10], [4.0, 5.0])},
        xlabel="nodes",
        ylabel="time (s)",
        log="x",
    )
    ax = figure.axes[0]
    assert [line.get_label() for line in ax.lines] == ["ours", "theirs"]
    assert ax.lines[0].get_ydata().tolist() == [2.0, 3.0, 4.0]
    assert [band.get_gid() for band in ax.collections] == ["ours spread"]
    assert ax.collections[0].get_paths()[0].get_extents().y0 == 1.0
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["ours", "theirs"]
    assert len({line.get_color() for line in ax.lines}) == len({line.get_marker() for line in ax.lines}) == 2
    saved(figure, tmp_path)


def test_bad_curves_are_refused():
    with pytest.raises(ValueError, match="curves is empty"):
        plot_curves({}, xlabel="", ylabel="")
    with pytest.raises(ValueError, match=r"'a'.*got"):
        plot_curves({"a": ([1, 2], [1, 2, 3])}, xlabel="", ylabel="")
    with pytest.raises(ValueError, match=r"z is \[1, 2\]"):
        surface([1, 2], [3], [[1, 2, 3]], xlabel="", ylabel="", zlabel="")


def test_a_surface_is_drawn(tmp_path):
    figure = surface([1, 2, 3], [3, 4], [[1, 2, 3], [4, 5, 6]], xlabel="q", ylabel="nodes", zlabel="s", title="time")
    assert figure.axes[0].get_xlabel() == "q"
    assert figure.get_suptitle() == "time"
    saved(figure, tmp_path)


def test_results_show_themselves_in_notebooks():
    e = explain(net(), features(), EDGES, index=5)
    of_features, of_edges = (explain(net(), features(), EDGES, index=5, of=of) for of in ("feature", "edge"))
    for result in (e, agglomerate(net(), features(), EDGES, index=5), of_features, of_edges, typed()):
        assert result._repr_png_().startswith(b"\x89PNG")
        assert len(repr(result)) < 300


def typed(of="node"):
    """An explanation with two types of nodes."""
    given = {"paper": torch.tensor([1.0, -2.0]), "author": torch.tensor([0.5])}
    if of == "feature":
        given = {kind: scores.unsqueeze(1) * torch.tensor([[1.0, -1.0, 2.0]]) for kind, scores in given.items()}
    return HeteroExplanation(torch.tensor([1.0, 2.0]), 1, 0, of=of, **{f"{of}_scores": given})


def test_figures_show_themselves_in_notebooks():
    e = explain(net(), features(), EDGES, index=5)
    for figure in (plot_graph(e), plot_waterfall(e), plot_curves({"a": ([1, 2], [1, 2])}, xlabel="x", ylabel="y")):
        assert figure._repr_png_().startswith(b"\x89PNG")
        assert len(repr(figure)) < 80


def test_tables_show_themselves_in_notebooks():
    model, x = net(level="graph"), features()
    html = decompose(model, x, EDGES, groups=[[0], [1, 2]])._repr_html_()
    assert html.count("<tr>") == 4  # the head, two groups, the prediction
    many = decompose(net(), x, EDGES, groups=singles())._repr_html_()
    assert "rows reached, of 12" in many
    plain = net()
    for logits, unit in ((False, "output"), (True, "logit")):
        found = explain(lambda *args: plain(*args).softmax(-1), x, EDGES, index=[1, 2], logits=logits)
        several = found._repr_html_()
        assert several.count("<tr>") == 3
        assert f"<th>{unit}</th>" in several
        assert f"<td>{found[0].output:+.3g}</td>" in several
        assert f"<td>{found[0].residual:+.3g}</td>" in several
    ended = decompose(lambda *args: model(*args).softmax(-1), x, EDGES, groups=[[0], [1, 2]])._repr_html_()
    assert ended == html.replace(">prediction<", ">logits<").replace("of the output", "of the logits")


def test_a_waterfall_goes_from_zero_to_the_prediction(tmp_path):
    e = explain(net(), features(), EDGES, index=5)
    figure = plot_waterfall(e, most=3, names={5: "$me$"}, title="why")
    bars = figure.axes[0].patches
    assert len(bars) == 3 + 3  # others, rest, prediction
    at = 0.0
    for bar in bars[:-1]:
        assert bar.get_x() == pytest.approx(at)
        at += bar.get_width()
    assert at == pytest.approx(float(e.prediction[e.target]))
    assert bars[-1].get_width() == pytest.approx(at)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels[3:] == [
        f"{len(e.nodes) - 3} other nodes",
        "rest: joint effects and biases",
        f"prediction, class {e.target}",
    ]
    assert "add up to" in figure.axes[0].get_xlabel()
    saved(figure, tmp_path)
    with pytest.raises(ValueError, match="'strength' do not add up"):
        plot_waterfall(explain(net(), features(), EDGES, index=5, reading="strength"))
    with pytest.raises(TypeError, match="got Tensor"):
        plot_waterfall(torch.zeros(3))


def test_a_waterfall_of_several_types_names_them():
    labels = [label.get_text() for label in plot_waterfall(typed()).axes[0].get_yticklabels()]
    assert labels[:3] == ["paper 1", "paper 0", "author 0"]
    assert labels[3] == "rest: joint effects and biases"


@pytest.mark.parametrize("node", [None, 5])
def test_features_are_bars_with_their_names(node, tmp_path):
    e = explain(net(), features(), EDGES, index=5, of="feature")
    names = ["$a$", "b", "c", "d"]
    figure = plot_features(e, features=names, node=node, title="which")
    net_ = (e.feature_scores if node is None else e.feature_scores[5:6]).sum(0)
    order = net_.abs().argsort(descending=True).tolist()
    assert [bar.get_width() for bar in figure.axes[0].patches] == pytest.approx(net_[order].tolist())
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [names[i] for i in order]
    assert ("of node 5" if node else "summed over 12 nodes") in figure.axes[0].get_xlabel()
    saved(figure, tmp_path)


def test_features_of_types_and_what_is_refused():
    assert len(plot_features(typed("feature"), kind="paper").axes[0].patches) == 3
    e = explain(net(), features(), EDGES, index=5, of="feature")
    for given, message in (
        ((typed("feature"), {}), "kind is one of"),
        ((e, {"features": ["a"]}), "4 features, but 1 names"),
        ((e, {"node": 12}), "0 to 11"),
        ((explain(net(), features(), EDGES, index=5), {}), "of='node'"),
    ):
        with pytest.raises(ValueError, match=message):
            plot_features(given[0], **given[1])


def test_without_matplotlib_notebooks_show_text(monkeypatch):
    e = explain(net(), features(), EDGES, index=5)
    monkeypatch.setitem(__import__("sys").modules, "xdegree.plots", None)
    assert e._repr_png_() is None
    assert TREE._repr_png_() is None


def test_edge_scores_are_bands_in_their_colour():
    figure = plot_graph(torch.zeros(4), PATH, edges=torch.tensor([1.0, -1.0, 0.0]))
    (bands,) = (c for c in figure.axes[0].collections if c.get_gid() == "edge scores")
    assert list(map(to_hex, bands.get_colors())) == [SIGNED[256], SIGNED[0], SIGNED[128]]
    assert figure.axes[1].get_xlim() == (-1, 1)


def test_an_explanation_knows_its_graph_its_node_and_its_unit():
    e = explain(net(), features(), EDGES, index=3, reading="strength")
    figure = plot_graph(e)
    assert [t.get_text() for t in figure.axes[0].get_legend().get_texts()] == ["explained node 3"]
    assert len(figure.axes[0].texts) == len(e.nodes)
    assert figure.axes[1].get_xlabel().startswith("strength (L1 norm in the last hidden layer)\nthe darker the red")
    with pytest.raises(ValueError, match="do not know their graph"):
        plot_graph(torch.zeros(3))


def test_scores_that_are_not_finite_are_refused_and_shown_as_text():
    bad = replace(TREE, levels=(groups(([0], math.inf)),), contextual=((1.0,),))
    for plot in (plot_dendrogram, lambda tree: plot_agglomeration(tree, PATH)):
        with pytest.raises(ValueError, match="not finite have no colour"):
            plot(bad)
    assert bad._repr_png_() is None
