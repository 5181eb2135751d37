"""The examples run, in small, and print what they promise."""

import importlib
import re
import sys
from pathlib import Path

import pytest
import torch

from xdegree.datasets.folder import BrokenFileError
from xdegree.datasets.planetoid import load_npz_graph, planetoid

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def run(monkeypatch, capsys):
    """Run an example's main and give what it printed; its module is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    before = set(sys.modules)

    def run(name, *args):
        with torch.random.fork_rng():
            importlib.import_module(name).main(args)
        return capsys.readouterr().out

    yield run
    for name in set(sys.modules) - before:
        if str(EXAMPLES) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def signed(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"[+-]\d+\.\d{3}", text)]


@pytest.mark.parametrize("data", ["generated", pytest.param("cora", marks=[pytest.mark.data, pytest.mark.slow])])
def test_gcn_cora(run, data):
    printed = run("gcn_cora", "--epochs", "30", *(["--generated"] if data == "generated" else []))
    assert "papers" in printed
    assert float(re.search(r"test accuracy (\d\.\d+)", printed)[1]) > 0.6
    papers, rest = printed.split("Words,")
    words, citations = rest.split("Citations,")
    for part in (papers, words, citations):
        sizes = [abs(score) for score in signed(part)]
        assert len(sizes) == 5
        assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("data", ["generated", pytest.param("cora", marks=[pytest.mark.data, pytest.mark.slow])])
def test_gat_cora(run, data):
    printed = run("gat_cora", "--epochs", "10", *(["--generated"] if data == "generated" else []))
    assert printed.count("Why is paper") == 5
    assert "of the attention" in printed
    assert len(signed(printed)) == 15


@pytest.mark.parametrize("data", ["generated", pytest.param("cora", marks=[pytest.mark.data, pytest.mark.slow])])
def test_link_cora(run, data):
    printed = run("link_cora", "--epochs", "30", *(["--generated"] if data == "generated" else []))
    assert float(re.search(r"AUC (\d\.\d+)", printed)[1]) > 0.6
    assert printed.count("be linked?") == 3
    assert len(signed(printed)) == 12


def test_gin_mutagenicity_on_generated_molecules(run):
    printed = run("gin_mutagenicity", "--generated", "--epochs", "15")
    assert float(re.search(r"AUC of those atoms (\d\.\d+)", printed)[1]) > 0.5
    assert len(signed(printed)) == 6


@pytest.mark.data
@pytest.mark.slow
def test_gin_mutagenicity(run):
    printed = run("gin_mutagenicity", "--epochs", "1", "--explained", "10")
    assert "4337 molecules" in printed
    assert "10 mutagens" in printed


def test_larger_than_memory(run, tmp_path):
    printed = run("larger_than_memory", "--nodes", "2000", "--folder", str(tmp_path))
    assert "2,000 nodes and 20,000 edges in files of" in printed
    assert printed.count("of 2,000 nodes were read (neighborhood, not verified)") == 2
    assert len(signed(printed)) == 6


def test_rgcn_hgt_hetero(run):
    printed = run("rgcn_hgt_hetero", "--epochs", "20")
    assert "HGT: accuracy" in printed
    assert "RGCN: accuracy" in printed
    for kind in ("author writes paper", "paper rev_writes author", "paper cites paper"):
        assert kind in printed
    assert len(signed(printed)) == 5 + 4 + 5


@pytest.mark.data
def test_cora_is_cora(data_folder):
    data = planetoid("Cora", data_folder)
    assert (data.num_nodes, data.num_edges, data.num_features) == (2708, 10556, 1433)
    assert [int(data[f"{split}_mask"].sum()) for split in ("train", "val", "test")] == [140, 500, 1000]
    assert int(data.y.max()) == 6
    torch.testing.assert_close(data.x.sum(1), torch.ones(2708))


def arrays():
    import numpy as np

    return {
        "edge_index": np.array([[0, 1], [1, 2]]),
        "y": np.array([0, 1, 0]),
        "x_indptr": np.array([0, 2, 2, 3]),
        "x_indices": np.array([0, 3, 1]),
        "x_data": np.ones(1, dtype=np.float32),
        "x_shape": np.array([3, 4]),
        **{
            f"{split}_mask": np.array([split == s for s in ("train", "val", "test")])
            for split in ("train", "val", "test")
        },
    }


def test_a_graph_in_a_file(tmp_path):
    import numpy as np

    (tmp_path / "node_graphs").mkdir()
    path = tmp_path / "node_graphs" / "cora.npz"
    np.savez(path, **arrays())
    assert load_npz_graph(path).x.tolist() == [[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]
    assert planetoid("Cora", tmp_path).x.tolist() == [[0.5, 0, 0, 0.5], [0, 0, 0, 0], [0, 1, 0, 0]]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("edge_index", [[0, 1], [1, 3]]),
        ("y", [0, 1]),
        ("x_indptr", [0, 2, 1, 3]),
        ("x_indices", [0, 4, 1]),
        ("x_shape", [3]),
        ("train_mask", [1, 0, 0]),
        ("x_data", [1.0, 2.0]),
        ("test_mask", None),
    ],
)
def test_a_broken_file_is_named(tmp_path, key, value):
    import numpy as np

    stored = arrays()
    if value is None:
        del stored[key]
    else:
        stored[key] = np.array(value)
    np.savez(tmp_path / "graph.npz", **stored)
    with pytest.raises(BrokenFileError, match=r"graph\.npz"):
        load_npz_graph(tmp_path / "graph.npz")


def test_half_a_file_is_named(tmp_path):
    import numpy as np

    np.savez(tmp_path / "graph.npz", **arrays())
    whole = (tmp_path / "graph.npz").read_bytes()
    (tmp_path / "graph.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BrokenFileError, match=r"graph\.npz"):
        load_npz_graph(tmp_path / "graph.npz")


def test_no_data_and_no_internet(tmp_path, monkeypatch):
    import torch_geometric.datasets

    def offline(*_):
        raise OSError("no route to host")

    monkeypatch.setattr(torch_geometric.datasets, "Planetoid", offline)
    with pytest.raises(FileNotFoundError, match=r"Cora is neither in .* nor could it be downloaded .*XDEGREE_DATA"):
        planetoid("Cora", tmp_path)
