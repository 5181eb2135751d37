from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import both_ways
from torch_geometric.data import Data
from torch_geometric.utils import contains_self_loops, is_undirected

from xdegree.datasets import (
    BrokenFileError,
    agreement,
    ba_community,
    ba_shapes,
    data_folder,
    generated_ba2motifs,
    graph_dataset,
    load,
    molecule_of,
    mutag,
    nitro_and_amino,
    released,
    table,
    toy_molecules,
    toy_sentences,
    tree_cycles,
    tree_grid,
)
from xdegree.datasets.mutagenicity import ATOMS


@pytest.mark.parametrize("random_edges", [0.0, 0.01, 0.1])
def test_ba_shapes_has_the_counts_of_its_recipe(random_edges):
    data = ba_shapes(random_edges=random_edges)
    edges = 5 + 5 * 294 + 80 * (6 + 1)  # a star, then five links per new node; houses, each with one link to the base
    assert data.validate()
    assert data.x.shape == (700, 10)
    assert (data.x == 1).all()
    assert data.edge_index.shape == (2, 2 * (edges + int(random_edges * edges)))
    assert data.y.bincount().tolist() == [300, 160, 160, 80]


def test_ba_shapes_is_simple_undirected_and_sorted():
    data = ba_shapes()
    assert is_undirected(data.edge_index)
    assert not contains_self_loops(data.edge_index)
    assert data.is_coalesced()


def test_ba_shapes_base_grows_by_preferential_attachment():
    data = ba_shapes(random_edges=0)
    both = (data.motif[data.edge_index] < 0).all(0)
    degree = data.edge_index[0, both].bincount(minlength=300)
    assert degree.min() >= 1
    assert (degree[6:] >= 5).all()
    assert degree[:30].double().mean() > 2 * degree[-30:].double().mean()  # the old are rich


def test_ba_shapes_truth_is_the_six_edges_of_each_house():
    data = ba_shapes(random_edges=0.5)  # so many that some fall inside houses, where they are not true
    row, col = data.edge_index
    house = data.motif[row]
    assert data.motif[:300].tolist() == [-1] * 300
    assert data.motif[300:].bincount().tolist() == [5] * 80
    assert (house[data.edge_mask] == data.motif[col][data.edge_mask]).all()
    assert house[data.edge_mask].bincount().tolist() == [12] * 80
    inside = (house >= 0) & (house == data.motif[col])
    assert inside.sum() > data.edge_mask.sum()
    # middle-middle, middle-bottom, bottom-bottom and middle-top are the edges of a house
    pairs = {tuple(sorted(pair)) for pair in data.y[data.edge_index[:, data.edge_mask]].T.tolist()}
    assert pairs == {(1, 1), (1, 2), (2, 2), (1, 3)}


def test_ba_shapes_hangs_each_house_on_a_base_node_of_its_own():
    data = ba_shapes(random_edges=0)
    row, col = data.edge_index
    links = (data.motif[row] >= 0) & (data.motif[col] < 0)
    assert links.sum() == 80
    assert data.motif[row[links]].unique().numel() == 80
    assert col[links].unique().numel() == 80
    assert (data.y[row[links]] == 1).all()


def test_ba_shapes_splits_every_node_once():
    data = ba_shapes()
    masks = torch.stack([data.train_mask, data.val_mask, data.test_mask])
    assert masks.sum(1).tolist() == [560, 70, 70]
    assert (masks.sum(0) == 1).all()


def test_ba_shapes_depends_on_the_seed_alone():
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002 - the legacy state is what must stay as it was
    before, legacy = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    first, again, other = ba_shapes(seed=5), ba_shapes(seed=5), ba_shapes(seed=6)
    assert torch.equal(torch.get_rng_state(), before)
    assert np.random.get_state()[1].tolist() == legacy  # noqa: NPY002
    assert all(torch.equal(first[key], again[key]) for key in first.keys())  # noqa: SIM118 - iterates over pairs
    assert not torch.equal(first.edge_index, other.edge_index)
    assert not torch.equal(first.train_mask, other.train_mask)


@pytest.mark.parametrize("random_edges", [-0.1, 1.5])
def test_ba_shapes_refuses_what_is_no_share(random_edges):
    with pytest.raises(ValueError, match=rf"between 0 and 1 \(got {random_edges}\)"):
        ba_shapes(random_edges=random_edges)


@pytest.mark.data
def test_ba_shapes_with_one_percent_has_the_counts_of_the_released_graph(data_folder):
    released = np.load(data_folder / "synthetic" / "ba_shapes.npz", allow_pickle=False)
    data = ba_shapes(random_edges=0.01)
    assert data.edge_index.shape == released["edge_index"].shape
    assert sorted(data.y.bincount().tolist()) == sorted(np.bincount(released["y"]).tolist())


SYNTHETIC = {"ba_shapes": ba_shapes, "ba_community": ba_community, "tree_cycles": tree_cycles, "tree_grid": tree_grid}


def pairs(edge_index):
    return set(map(tuple, edge_index.T.tolist()))


@pytest.mark.parametrize(
    ("generate", "nodes", "edges", "classes", "motifs", "true"),
    [
        (ba_community, 1400, 2 * 2035 + 350, [300, 160, 160, 80] * 2, 160, 6),
        (tree_cycles, 871, 510 + 60 * 7, [511, 360], 60, 6),
        (tree_grid, 1231, 510 + 80 * 13, [511, 720], 80, 12),
    ],
)
def test_the_others_have_the_counts_of_their_recipes(generate, nodes, edges, classes, motifs, true):
    data = generate(random_edges=0)
    assert data.validate()
    assert data.x.shape == (nodes, 10)
    assert data.edge_index.shape == (2, 2 * edges)
    assert is_undirected(data.edge_index)
    assert not contains_self_loops(data.edge_index)
    assert data.y.bincount().tolist() == classes
    assert int(data.motif.max()) + 1 == motifs
    assert data.motif[data.edge_index[0, data.edge_mask]].bincount().tolist() == [2 * true] * motifs
    assert ((data.motif < 0) == ((data.y == 0) | ((data.y == 4) if generate is ba_community else False))).all()


def test_ba_community_tells_communities_apart_by_two_features():
    data = ba_community()
    one, two = data.x[data.y < 4], data.x[data.y >= 4]
    assert (one[:, :2].mean(0) + 1).abs().max() < 0.1
    assert (two[:, :2].mean(0) - 1).abs().max() < 0.1
    assert (one[:, :2].var(0) - 0.5).abs().max() < 0.1
    assert (data.x[:, 2:].var(0) - 1).abs().max() < 0.15
    across = ((data.y < 4)[data.edge_index[0]]) & ((data.y >= 4)[data.edge_index[1]])
    assert across.sum() == 350


def test_trees_are_balanced_and_binary():
    data = tree_cycles(random_edges=0)
    inside = (data.motif[data.edge_index] < 0).all(0)
    assert data.edge_index[0, inside].bincount().bincount().tolist() == [0, 256, 1, 254]  # leaves, the root, the rest


@pytest.mark.parametrize("generate", SYNTHETIC.values())
def test_a_seed_gives_one_graph(generate):
    one, again, other = generate(seed=1), generate(seed=1), generate(seed=2)
    assert torch.equal(one.edge_index, again.edge_index)
    assert torch.equal(one.x, again.x)
    assert pairs(one.edge_index) != pairs(other.edge_index)


def test_motifs_need_nodes_to_hang_on():
    with pytest.raises(ValueError, match=r"1 to 511 \(got 512\)"):
        tree_grid(motifs=512)
    with pytest.raises(ValueError, match=r"1 to 20 \(got 21\)"):
        ba_shapes(base=20, motifs=21)


def test_small_graphs_for_quick_examples():
    assert ba_shapes(base=30, motifs=6).num_nodes == 30 + 5 * 6
    assert ba_community(base=20, motifs=3, between=7).num_nodes == 2 * (20 + 5 * 3)
    assert tree_cycles(depth=3, motifs=4).num_nodes == 15 + 6 * 4
    assert tree_grid(depth=3, motifs=4).num_nodes == 15 + 9 * 4


@pytest.mark.parametrize(
    ("generate", "sizes", "words"),
    [
        (ba_shapes, {"base": 5}, r"at least 6 \(got 5\)"),
        (tree_cycles, {"depth": 0}, r"1 to 20 \(got 0\)"),
        (ba_community, {"base": 10, "motifs": 2, "between": 401}, r"up to 400 edges \(got between=401\)"),
    ],
)
def test_sizes_that_make_no_graph(generate, sizes, words):
    with pytest.raises(ValueError, match=words):
        generate(**sizes)


# Toy data


def test_a_smiles_has_the_atoms_of_its_molecule():
    pytest.importorskip("rdkit", reason='no RDKit: pip install "xdegree[chem]"')
    data = molecule_of("c1ccccc1[N+](=O)[O-]", ("C", "O", "H", "N"))
    assert data.x.sum(0).tolist() == [6, 2, 5, 1]
    assert data.x[:9].argmax(1).tolist() == [0] * 6 + [3, 1, 1]
    assert sorted(data.bond.tolist()) == [1] * 20 + [2] * 8
    assert molecule_of("CCO").x.shape == (9, len(ATOMS))


@pytest.mark.parametrize(
    ("smiles", "words"), [("C1CC", "cannot read 'C1CC'"), ("", "cannot read"), (5, "cannot read 5"), ("[U]", "seen U")]
)
def test_a_smiles_that_cannot_be_read(smiles, words):
    pytest.importorskip("rdkit", reason='no RDKit: pip install "xdegree[chem]"')
    with pytest.raises(ValueError, match=words):
        molecule_of(smiles)


def test_toy_molecules_follow_their_rule():
    pytest.importorskip("rdkit", reason='no RDKit: pip install "xdegree[chem]"')
    graphs = toy_molecules(40).graphs
    assert [int(graph.y) for graph in graphs] == [int("[N+](=O)[O-]" in graph.smiles) for graph in graphs]


def test_toy_sentences_follow_their_rule():
    for graph in toy_sentences(60).graphs:
        assert graph.edge_index.shape[1] == 2 * (len(graph.words) - 1)
        last = graph.words[graph.words.index("but") + 1 :] if "but" in graph.words else graph.words
        last = last[: last.index("and")] if "and" in last else last
        good = last[-1] in ("good", "funny", "brilliant", "moving", "charming", "clever", "fresh", "lovely")
        assert int(graph.y) == int(good != ("not" in last))


# Reading


def write_released(root, **changes):
    """A path of two nodes and two motifs of two nodes, in the form of the released files."""
    edges = np.array([[0, 1, 2, 3, 4, 5, 1, 2], [1, 0, 3, 2, 5, 4, 2, 1]], dtype=np.int32)
    arrays = {
        "edge_index": edges,
        "x": np.ones((6, 3), dtype=np.float32),
        "y": np.array([0, 0, 1, 1, 1, 1], dtype=np.int8),
        "train_mask": np.array([1, 1, 1, 1, 0, 0], dtype=bool),
        "val_mask": np.array([0, 0, 0, 0, 1, 0], dtype=bool),
        "test_mask": np.array([0, 0, 0, 0, 0, 1], dtype=bool),
        "edge_gt": np.array([0, 0, 1, 0, 1, 0, 0, 0], dtype=np.int8),
        **changes,
    }
    path = root / "synthetic" / "ba_shapes.npz"
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    return path


def test_released_truth_is_marked_in_both_directions(tmp_path):
    write_released(tmp_path)
    data = released("ba_shapes", tmp_path)
    assert data.edge_mask.tolist() == [False, False, True, True, True, True, False, False]
    assert data.motif.tolist() == [-1, -1, 0, 0, 1, 1]
    assert data.y.dtype == torch.long
    found = load("ba_shapes", root=tmp_path)
    assert {split: ids.tolist() for split, ids in found.splits.items()} == {
        "train": [0, 1, 2, 3],
        "val": [4],
        "test": [5],
    }
    assert (found.num_classes, found.num_features, found.constant_features) == (2, 3, True)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"edge_gt": None, "y": None}, "lacks y, edge_gt"),
        ({"edge_gt": np.zeros(3)}, "another number of edges"),
        ({"y": np.zeros(5)}, "unequal count"),
        ({"edge_index": np.full((2, 8), 6)}, "nodes that do not exist"),
        ({"edge_index": np.zeros((3, 8))}, r"not \[2, E\]"),
        ({"edge_index": np.array([[0, 1, 2, 4, 0, 0, 0, 0], [1, 0, 3, 5, 0, 0, 0, 0]])}, "lacks the reverse"),
        ({"x": np.array([{}], dtype=object)}, "not a whole .npz"),
    ],
)
def test_a_broken_file_is_reported_by_name(tmp_path, changes, why):
    path = write_released(tmp_path, **changes)
    with pytest.raises(BrokenFileError, match=why) as error:
        released("ba_shapes", tmp_path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("kept", [0, 10, 600])
def test_a_partial_file_is_reported_by_name(tmp_path, kept):
    path = write_released(tmp_path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(BrokenFileError, match=r"ba_shapes\.npz is not a whole"):
        load("ba_shapes", root=tmp_path)


def test_what_is_missing_is_generated_or_reported(tmp_path):
    found = load("tree_cycles", root=tmp_path, motifs=3)
    assert found.stats().nodes == 511 + 18
    assert "generated" in found.stats().note
    assert load("ba2motifs", root=tmp_path, count=4).stats().graphs == 4
    for name in ("tree_cycles", "ba2motifs"):
        with pytest.raises(FileNotFoundError, match=rf"{name}.npz does not exist; .*XDEGREE_DATA"):
            load(name, root=tmp_path, origin="released")
    with pytest.raises(FileNotFoundError, match="graph_sst2_trees"):
        load("graph_sst2", root=tmp_path)
    with pytest.raises(ValueError, match=r"one of .*\(got 'cora'\)"):
        load("cora")
    with pytest.raises(ValueError, match="origin"):
        load("mutag", origin="mars")
    with pytest.raises(ValueError, match="one of"):
        released("karate", tmp_path)


def test_the_data_folder_is_the_variable_or_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDEGREE_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.delenv("XDEGREE_DATA")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder() == tmp_path / "cache" / "xdegree"


def test_generated_ba2motifs_have_a_cycle_or_a_house():
    found = generated_ba2motifs(count=10)
    assert [int(graph.y) for graph in found.graphs] == [0] * 5 + [1] * 5
    for graph in found.graphs:
        assert graph.validate()
        assert is_undirected(graph.edge_index)
        assert graph.num_edges == 2 * (19 + 1 + (6 if graph.y else 5))
        assert graph.edge_mask.sum() == (12 if graph.y else 10)
        assert (graph.motif[graph.edge_index[:, graph.edge_mask]] == 0).all()
        degrees = graph.edge_index[0, graph.edge_mask].bincount(minlength=25)[20:]
        assert degrees.sort().values.tolist() == ([2, 2, 2, 3, 3] if graph.y else [2] * 5)


# Molecules


def test_nitro_and_amino_groups_by_hand():
    def found(atoms, bonds):
        edges = both_ways(bonds)
        true = nitro_and_amino(torch.tensor([ATOMS.index(a) for a in atoms]), edges)
        assert torch.equal(true[: len(bonds)], true[len(bonds) :])
        return true[: len(bonds)].tolist()

    star = [(0, 1), (0, 2), (0, 3)]
    assert found("NOOC", star) == [True, True, False]
    assert found("NHHC", star) == [True, True, False]
    assert found("NOOO", star) == [False] * 3  # a nitrate
    assert found("NHHO", star) == [False] * 3  # aminooxy
    assert found("NHHH", star) == [False] * 3
    assert found("NHCC", star) == [False] * 3
    assert found("NHHCC", [*star, (0, 4)]) == [False] * 4
    assert found("COOC", star) == [False] * 3


def write_molecules(root, **changes):
    """Nitromethane without its hydrogens, and water."""
    files = {
        "node_labels": "4\n1\n1\n0\n1\n3\n3\n",
        "A": "1, 2\n2, 1\n1, 3\n3, 1\n1, 4\n4, 1\n5, 6\n6, 5\n5, 7\n7, 5\n",
        "edge_labels": "1\n1\n0\n0\n0\n0\n0\n0\n0\n0\n",
        "graph_indicator": "1\n1\n1\n1\n2\n2\n2\n",
        "graph_labels": "0\n1\n",
        "edge_gt": "1\n1\n1\n1\n0\n0\n0\n0\n0\n0\n",
        **changes,
    }
    raw = root / "mutagenicity" / "raw"
    raw.mkdir(parents=True)
    for name, text in files.items():
        (raw / f"Mutagenicity_{name}.txt").write_text(text)
    return raw


def test_molecules_are_read_and_compared_with_the_given_truth(tmp_path):
    raw = write_molecules(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    found = mutag(root=tmp_path)
    assert [graph.num_nodes for graph in found.graphs] == [4, 3]
    assert found.graphs[0].x.argmax(1).tolist() == [4, 1, 1, 0]
    assert found.graphs[1].edge_index.tolist() == [[0, 1, 0, 2], [1, 0, 2, 0]]
    assert found.graphs[0].edge_mask.tolist() == [True] * 4 + [False] * 2
    assert found.graphs[0].bond.tolist() == [2, 2, 1, 1, 1, 1]
    same = agreement(found, tmp_path)
    assert (same.both, same.ours_only, same.given_only, same.edges) == (4, 0, 0, 10)
    assert sorted(tmp_path.rglob("*")) == before  # the folder is not written to
    (raw / "Mutagenicity_edge_gt.txt").write_text("1\n")
    with pytest.raises(BrokenFileError, match=r"edge_gt\.txt marks 1 edges instead of 10"):
        agreement(found, tmp_path)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"A": "1, 2\n2, 1\n1, "}, r"A\.txt does not hold 2 integers"),
        ({"A": "1, 2\n2, 1\n"}, r"edge_labels\.txt has 10 edges instead of 2"),
        ({"A": "1, 9\n" * 10}, r"A\.txt has edges to nodes that do not exist"),
        ({"A": "1, 5\n" * 10}, r"A\.txt is not in the order of the graphs"),
        ({"node_labels": "77\n" * 7}, r"node_labels\.txt names an unknown atom"),
        ({"node_labels": "1, 2\n"}, r"node_labels\.txt"),
        ({"graph_indicator": "1\n2\n"}, r"graph_indicator\.txt has 2 nodes instead of 7"),
        ({"graph_indicator": "2\n1\n1\n1\n1\n1\n1\n"}, r"graph_indicator\.txt is not in order"),
        ({"graph_labels": "0\n"}, r"graph_labels\.txt has 1 labels"),
        ({"graph_labels": "0\n7\n"}, r"graph_labels\.txt has labels other"),
    ],
)
def test_broken_molecule_files_are_reported_by_name(tmp_path, changes, why):
    write_molecules(tmp_path, **changes)
    with pytest.raises(BrokenFileError, match=why):
        mutag(root=tmp_path)


def test_a_failed_download_leaves_nothing_behind(tmp_path, monkeypatch):
    class Interrupted:
        def __init__(self, root, name):
            (Path(root) / name / "raw").mkdir(parents=True)
            (Path(root) / name / "raw" / "Mutagenicity_A.txt").write_text("1, ")
            raise OSError("the line is dead")

    monkeypatch.setattr("torch_geometric.datasets.TUDataset", Interrupted)
    with pytest.raises(OSError, match="the line is dead"):
        mutag(root=tmp_path)
    assert list((tmp_path / "mutagenicity").iterdir()) == []


def test_a_download_is_moved_into_place(tmp_path, monkeypatch):
    def download(root, name):
        write_molecules(Path(root) / "there")
        (Path(root) / name).mkdir()
        (Path(root) / "there" / "mutagenicity" / "raw").rename(Path(root) / name / "raw")

    monkeypatch.setattr("torch_geometric.datasets.TUDataset", download)
    assert mutag(root=tmp_path).stats().graphs == 2
    monkeypatch.setattr("torch_geometric.datasets.TUDataset", None)  # the second time nothing is downloaded
    assert mutag(root=tmp_path).stats().graphs == 2


# Statistics and splits


def test_graphs_are_split_once_and_by_the_seed():
    graphs = [Data(x=torch.ones(2, 1), edge_index=both_ways([(0, 1)]), y=torch.tensor([i % 2])) for i in range(25)]
    one, again, other = (graph_dataset("pairs", graphs, "ones", seed) for seed in (0, 0, 1))
    assert sorted(torch.cat(list(one.splits.values())).tolist()) == list(range(25))
    assert [len(one.splits[split]) for split in ("train", "val", "test")] == [21, 2, 2]
    assert all(torch.equal(one.splits[split], again.splits[split]) for split in one.splits)
    assert not torch.equal(one.splits["train"], other.splits["train"])
    assert len(one.part("val")) == 2
    with pytest.raises(ValueError, match="25 graphs"):
        one.data  # noqa: B018


def test_the_table_has_a_row_per_dataset_and_the_notes_below():
    text = table([load("ba_shapes", origin="generated", random_edges=0.01).stats()])
    assert text.splitlines()[1].split() == ["BA-Shapes", "700", "4,110", "1", "4", "constant"]
    assert text.splitlines()[2] == "BA-Shapes: generated, not the released graph"


# The real files


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "nodes", "edges", "labels", "motifs"),
    [
        ("ba_shapes", 700, 4110, 4, 80),
        ("ba_community", 1400, 8920, 8, 160),
        ("tree_cycles", 871, 1942, 2, 60),
        ("tree_grid", 1231, 3130, 2, 80),
    ],
)
def test_the_released_graphs(data_folder, name, nodes, edges, labels, motifs):
    found = load(name, root=data_folder, origin="released")
    row = found.stats()
    assert (row.nodes, row.edges, row.labels) == (nodes, edges, labels)
    data = found.data
    size = data.motif[data.motif >= 0].bincount().unique()
    assert int(data.motif.max()) + 1 == motifs
    assert len(size) == 1
    assert ((data.motif >= 0) == (data.y % 4 != 0)).all()
    assert torch.equal(data.edge_mask, data.edge_mask[_reverse(data.edge_index)])


def _reverse(edge_index):
    place = {edge: number for number, edge in enumerate(map(tuple, edge_index.T.tolist()))}
    return torch.tensor([place[v, u] for u, v in edge_index.T.tolist()])


@pytest.mark.data
def test_ba2motifs_as_released(data_folder):
    found = load("ba2motifs", root=data_folder, origin="released")
    assert (found.stats().graphs, found.stats().nodes) == (1000, 25000)
    assert all(int(graph.edge_mask.sum()) == (12 if graph.y else 10) for graph in found.graphs)


@pytest.mark.data
def test_our_groups_are_those_of_the_given_file(data_folder):
    found = mutag(root=data_folder)
    assert (found.stats().nodes, found.stats().edges, found.stats().graphs) == (131_488, 266_894, 4_337)
    same = agreement(found, data_folder)
    assert (same.both, same.ours_only, same.given_only) == (7352, 0, 0)
    assert sum(bool(graph.edge_mask.any()) for graph in found.graphs) == 1356
    assert sum(bool(graph.edge_mask.any()) and int(graph.y) == 0 for graph in found.graphs) == 1015
