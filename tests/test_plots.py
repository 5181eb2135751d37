import sys
import warnings

import pytest
import torch
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from xdegree.canvas import GREY, INK
from xdegree.plots import plot_graph

PATH = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 4], [1, 0, 2, 1, 3, 2, 4, 3]])  # 0 - 1 - 2 - 3 - 4
SCORES = torch.tensor([2.0, -1.0, 0.0, 0.5, -0.25])


def artist(figure, gid):
    return next(a for a in figure.axes[0].collections if a.get_gid() == gid)


def texts(figure):
    return {text.get_text() for text in figure.axes[0].texts}


def test_sign_is_colour_and_zero_is_white():
    figure = plot_graph(SCORES, PATH)
    drawn = artist(figure, "nodes")
    colours = dict(zip(drawn.get_array().tolist(), drawn.to_rgba(drawn.get_array()).tolist(), strict=True))
    assert set(colours) == set(SCORES.tolist())
    for score, (red, _, blue, _) in colours.items():
        assert (red - blue) * score > 0 or score == 0
    assert min(colours[0.0]) > 0.95
    assert colours[2.0][0] - colours[2.0][2] > colours[0.5][0] - colours[0.5][2]


def test_the_colour_bar_is_centred_at_zero_and_names_the_unit():
    figure = plot_graph(SCORES, PATH, unit="contribution to the prediction (probability)")
    bar = figure.axes[1]
    assert bar.get_xlim() == (-2, 2)
    assert bar.get_xlabel().splitlines()[0] == "contribution to the prediction (probability)"
    assert "red: positive, blue: negative" in bar.get_xlabel()


@pytest.mark.parametrize("truth", [[1, 2], torch.tensor([1, 2]), torch.tensor([False, True, True, False, False])])
def test_explained_node_is_a_diamond_and_truth_is_ringed(truth):
    figure = plot_graph(SCORES, PATH, index=1, truth=truth)
    explained, others = artist(figure, "explained"), artist(figure, "nodes")
    assert explained.get_array().tolist() == [-1]
    assert len(explained.get_paths()[0].vertices) == 5  # a closed square
    assert explained.get_edgecolors().tolist() == [list(to_rgba(INK))]
    ringed = {
        score: colour == list(to_rgba(INK))
        for score, colour in zip(others.get_array().tolist(), others.get_edgecolors().tolist(), strict=True)
    }
    assert ringed == {2.0: False, 0.0: True, 0.5: False, -0.25: False}
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["explained node 1", "ground truth"]


def test_each_edge_is_drawn_once_between_its_nodes_and_bold_within_the_truth():
    figure = plot_graph(SCORES, PATH, truth=[0, 1])
    drawn, edges = artist(figure, "nodes"), artist(figure, "edges")
    place = dict(zip(drawn.get_array().tolist(), map(tuple, drawn.get_offsets().tolist()), strict=True))
    s = SCORES.tolist()
    expected = {frozenset([place[s[u]], place[s[u + 1]]]) for u in range(4)}
    assert {frozenset(map(tuple, line.tolist())) for line in edges.get_segments()} == expected
    bold = [c[:3] == list(to_rgba(INK))[:3] for c in edges.get_colors().tolist()]
    assert bold == [True, False, False, False]
    assert edges.get_colors()[1].tolist()[:3] == list(to_rgba(GREY))[:3]


def test_a_subset_is_shown_with_its_own_edges_and_the_explained_node():
    figure = plot_graph(SCORES, PATH, index=4, nodes=[0, 1], truth=[3])
    assert sorted(artist(figure, "nodes").get_array().tolist()) == [-1, 2]
    assert artist(figure, "explained").get_array().tolist() == [-0.25]
    assert len(artist(figure, "edges").get_segments()) == 1
    assert texts(figure) == {"0", "1", "4"}
    assert len(figure.axes[0].get_legend().get_texts()) == 1  # the true node is not among those shown


def test_the_strongest_nodes_are_drawn_last():
    drawn = artist(plot_graph(SCORES, PATH), "nodes")
    assert drawn.get_array().tolist() == sorted(SCORES.tolist(), key=abs)


def test_labels_are_ids_or_given_or_none():
    assert texts(plot_graph(SCORES, PATH)) == {"0", "1", "2", "3", "4"}
    assert texts(plot_graph(SCORES, PATH, labels={0: "C", 3: "N", 99: "no such node"})) == {"C", "N"}
    assert texts(plot_graph(SCORES, PATH, labels={})) == set()


def test_a_large_graph_labels_only_what_matters():
    ring = torch.arange(60)
    scores = torch.arange(60) / 60
    figure = plot_graph(scores, torch.stack([ring, ring.roll(1)]), index=0, truth=[1, 2])
    assert texts(figure) == {"0", "1", "2", *map(str, range(50, 60))}
    sizes = artist(figure, "nodes").get_sizes()
    assert sizes[-1] > sizes[2]  # 59 and 3: 1 and 2 are true, and keep the full size


def test_scores_do_not_move_nodes():
    places = []
    for scores in (SCORES, SCORES.flip(0)):
        drawn = artist(plot_graph(scores, PATH), "nodes")
        order = sorted(range(5), key=lambda node, s=scores: abs(float(s[node])))
        places.append({node: tuple(xy) for node, xy in zip(order, drawn.get_offsets().tolist(), strict=True)})
    assert places[0] == places[1]


@pytest.mark.parametrize(
    ("edges", "count"),
    [([], 1), ([], 3), ([(0, 1), (2, 3), (4, 4)], 6), ([(u, v) for u in range(6) for v in range(u)], 6)],
)
def test_odd_graphs_have_places(edges, count):
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    figure = plot_graph(torch.zeros(count), edge_index)
    places = torch.from_numpy(artist(figure, "nodes").get_offsets().data)
    assert places.isfinite().all()
    if count > 1:
        assert torch.pdist(places).min() > 0.05


def test_it_draws_into_given_axes_and_saves_without_a_display(tmp_path):
    mine = Figure()
    left, right = mine.subplots(1, 2)
    assert plot_graph(SCORES, PATH, ax=right, title="why") is mine
    assert right.get_title() == "why"
    assert not left.collections
    mine.savefig(tmp_path / "why.png")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")


def test_pyplot_stays_out_of_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it now would raise
    plot_graph(SCORES, PATH, index=1, truth=[0]).savefig(tmp_path / "why.png")
    assert (tmp_path / "why.png").stat().st_size > 1000


@pytest.mark.parametrize("package", ["matplotlib", "networkx"])
def test_a_missing_package_is_named_with_its_extra(monkeypatch, package):
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        views = ("xdegree.plots", "xdegree.canvas")
        for name in [n for n in sys.modules if n.startswith(views) or n.split(".")[0] == package]:
            patch.delitem(sys.modules, name)
        patch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=rf'needs {package}.*: pip install "xdegree\[plot\]"'):
            import xdegree.plots  # noqa: F401


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (SCORES[None], {}, r"one finite number per node \(got shape \[1, 5\]\)"),
        (SCORES / 0, {}, "one finite number per node"),
        (SCORES, {"index": 5}, r"index holds node ids from 0 to 4 \(got \[5\]\)"),
        (SCORES, {"truth": [-1]}, r"truth holds node ids from 0 to 4 \(got \[-1\]\)"),
        (SCORES, {"nodes": torch.tensor([True])}, r"one entry for each of 5 nodes \(got shape \[1\]\)"),
        (SCORES, {"nodes": []}, "nothing to show"),
    ],
)
def test_bad_input_is_refused(scores, options, message):
    with pytest.raises(ValueError, match=message):
        plot_graph(scores, PATH, **options)
