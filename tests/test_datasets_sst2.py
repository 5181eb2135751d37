import json
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from xdegree.cli import main
from xdegree.datasets import BrokenFileError, graph_sst2, sentence_graphs, word_vectors
from xdegree.datasets.sst2 import tree_edges


def edges(graph):
    return set(map(tuple, graph.edge_index.T.tolist()))


@pytest.mark.parametrize("root", [-1, 2])
def test_a_tree_has_an_edge_to_each_word_but_the_root(root):
    found = tree_edges(torch.tensor([2, 0, root, 2]))
    assert set(map(tuple, found.T.tolist())) == {(2, 0), (0, 2), (0, 1), (1, 0), (2, 3), (3, 2)}
    assert tree_edges(torch.tensor([0])).shape == (2, 0)


def write_rebuilt(root, trees=None, vectors=None):
    """Three sentences, "good film", "film" and "bad bad film"; the first two have vectors."""
    folder = root / "graph_sst2_rebuilt"
    folder.mkdir()
    stored = {
        "ptr": np.array([0, 2, 3, 6]),
        "head": np.array([1, 1, 0, 2, 2, 2], dtype=np.int16),
        "token_id": np.array([1, 2, 2, 0, 0, 2]),
        "vocab": np.array(["bad", "good", "film"]),
        "y": np.array([1, 1, 0], dtype=np.int8),
        **(trees or {}),
    }
    np.savez(folder / "graph_sst2_trees.npz", **stored)
    x = np.array([[1, 0, 0], [0, 1, 0], [0, 3, 0]], dtype=np.float16)
    stored = {"graph": np.array([0, 1]), "ptr": np.array([0, 2, 3]), "x": x, **(vectors or {})}
    np.savez(folder / "features_minilm_dev.npz", **stored)


def test_the_rebuild_says_so_and_has_vectors_in_context(tmp_path):
    write_rebuilt(tmp_path)
    found = graph_sst2(root=tmp_path)
    assert "rebuilt" in found.stats().note
    assert [graph.words for graph in found.graphs] == [["good", "film"], ["film"]]
    assert found.graphs[0].x.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert edges(found.graphs[0]) == {(0, 1), (1, 0)}
    assert found.graphs[1].num_edges == 0
    assert len(graph_sst2(root=tmp_path, limit=1).graphs) == 1


def encoder(fails_at=None):
    """Vectors that tell a word's length and its place in the sentence; breaks off at a call."""
    calls = []

    def encode(sentences):
        calls.append(sentences)
        if len(calls) == fails_at:
            raise KeyboardInterrupt
        return [
            torch.tensor([[float(len(word)), place] + [0.0] * 382 for place, word in enumerate(s)]) for s in sentences
        ]

    return encode, calls


def test_vectors_of_all_sentences_are_made_once_and_resumed(tmp_path, monkeypatch, capsys):
    write_rebuilt(tmp_path, trees={"split": np.array([0, 1, 0])})
    monkeypatch.setattr(word_vectors, "AT_ONCE", 1)
    monkeypatch.setattr(word_vectors, "KEPT_EVERY", 1)
    monkeypatch.setattr(word_vectors, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setenv("XDEGREE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="xdegree data graph-sst2"):
        graph_sst2(root=tmp_path, vectors="full")
    encode, calls = encoder(fails_at=3)
    monkeypatch.setattr(word_vectors, "minilm", lambda: encode)
    assert main(["data", "graph-sst2", "--quiet"]) == 130
    assert "resumes where it stopped" in capsys.readouterr().err
    assert word_vectors.find_vectors(tmp_path) is None
    encode, calls = encoder()
    assert main(["data", "graph-sst2", "--quiet"]) == 0
    assert len(calls) == 1  # two of the three sentences were there
    path = word_vectors.find_vectors(tmp_path)
    assert f"vectors: {path}" in capsys.readouterr().out
    assert main(["data", "graph-sst2", "--quiet"]) == 0
    assert len(calls) == 1
    assert not list(path.parent.glob("*.part"))

    found = graph_sst2(root=tmp_path, vectors="full")
    assert [graph.words for graph in found.graphs] == [["good", "film"], ["film"], ["bad", "bad", "film"]]
    assert found.graphs[2].x[:, :2].tolist() == [[3, 0], [3, 1], [4, 2]]
    assert found.held_out["development split"].tolist() == [1]
    assert sorted(torch.cat(list(found.splits.values())).tolist()) == [0, 2]


def test_vectors_of_other_trees_are_not_resumed(tmp_path, monkeypatch):
    """Nor are they used."""
    write_rebuilt(tmp_path, trees={"split": np.array([0, 1, 0])})
    np.save(tmp_path / "graph_sst2_rebuilt" / "minilm.npy", np.zeros((5, 384), dtype=np.float16))
    with pytest.raises(BrokenFileError, match="does not fit the trees"):
        graph_sst2(root=tmp_path, vectors="full")
    out = tmp_path / "out"
    (out / "graph_sst2_rebuilt").mkdir(parents=True)
    (out / "graph_sst2_rebuilt" / "minilm.npy.json").write_text('{"words": 99, "done": 1}')
    encode, calls = encoder()
    monkeypatch.setattr(word_vectors, "minilm", lambda: encode)
    word_vectors.make_vectors(out, tmp_path, progress=False)
    assert len(calls[0]) == 3


def test_a_word_is_the_mean_of_its_pieces():
    pieces = torch.tensor([[9.0], [1.0], [3.0], [5.0], [9.0]])
    assert word_vectors.of_words(pieces, [None, 0, 0, 2, None], 3).tolist() == [[2], [0], [5]]


def test_static_vectors_are_the_same_for_a_word_everywhere_and_zero_for_others(tmp_path):
    write_rebuilt(tmp_path)
    found = graph_sst2(root=tmp_path, vectors="static")
    assert "rebuilt" in found.note
    good, film = found.graphs[0].x
    assert torch.equal(found.graphs[1].x[0], film)
    assert torch.equal(found.graphs[2].x[2], film)
    assert not found.graphs[2].x[:2].any()
    assert (good - film).norm() > 1
    with pytest.raises(ValueError, match="contextual"):
        graph_sst2(root=tmp_path, vectors="glove")


@pytest.mark.parametrize(
    ("trees", "vectors", "why"),
    [
        ({"ptr": np.array([0, 2, 3])}, {}, "trees.npz is cut wrongly"),
        ({"head": np.array([1, 1, 0, 2, 2, 3])}, {}, "trees.npz has heads outside"),
        ({"token_id": np.array([1, 2, 2, 0, 0, 9])}, {}, "trees.npz has words outside"),
        ({}, {"ptr": np.array([0, 1, 3])}, "dev.npz does not fit"),
        ({}, {"x": np.full((3, 3), np.nan)}, "dev.npz holds numbers that are not finite"),
    ],
)
def test_broken_trees_and_vectors_are_reported_by_name(tmp_path, trees, vectors, why):
    write_rebuilt(tmp_path, trees, vectors)
    with pytest.raises(BrokenFileError, match=why):
        graph_sst2(root=tmp_path)


def write_original(root, features=None):
    raw = root / "Graph-SST2" / "raw"
    raw.mkdir(parents=True)
    (raw / "Graph-SST2_edge_index.txt").write_text("0, 1\n1, 0\n2, 3\n3, 2\n")
    (raw / "Graph-SST2_node_indicator.txt").write_text("1\n1\n2\n2\n")
    (raw / "Graph-SST2_graph_labels.txt").write_text("1\n0\n")
    (raw / "Graph-SST2_sentence_tokens.json").write_text(json.dumps({"0": ["good", "film"], "1": ["bad", "film"]}))
    x = np.arange(8, dtype=np.float32).reshape(4, 2) if features is None else features
    (raw / "Graph-SST2_node_features.pkl").write_bytes(pickle.dumps(x))
    return raw


def test_the_original_is_taken_where_it_is_there(tmp_path):
    write_original(tmp_path)
    found = graph_sst2(root=tmp_path)
    assert found.note == ""
    assert [graph.words for graph in found.graphs] == [["good", "film"], ["bad", "film"]]
    assert found.graphs[1].x.tolist() == [[4, 5], [6, 7]]
    assert edges(found.graphs[1]) == {(0, 1), (1, 0)}
    assert [int(graph.y) for graph in found.graphs] == [1, 0]


class Evil:
    def __reduce__(self):
        return print, ("this must not run",)


def test_a_pickle_that_is_no_array_is_refused_unopened(tmp_path, capsys):
    raw = write_original(tmp_path, features=Evil())
    with pytest.raises(BrokenFileError, match=r"node_features.pkl .*builtins.print is no part of an array"):
        graph_sst2(root=tmp_path)
    assert capsys.readouterr().out == ""
    (raw / "Graph-SST2_node_features.pkl").write_bytes(pickle.dumps(np.ones((4, 2)))[:30])
    with pytest.raises(BrokenFileError, match="not a whole pickled array"):
        graph_sst2(root=tmp_path)
    (raw / "Graph-SST2_node_features.pkl").unlink()
    with pytest.raises(FileNotFoundError, match=r"node_features\.pkl does not exist"):
        graph_sst2(root=tmp_path)


class Parser:
    """Stands in for spaCy: every word hangs on the one before."""

    def pipe(self, sentences):
        for sentence in sentences:
            words = [SimpleNamespace(text=word, i=i) for i, word in enumerate(sentence.split())]
            for word in words:
                word.head = words[max(0, word.i - 1)]
            yield words


def test_sentences_of_ones_own():
    encode = lambda words: torch.tensor([[float(len(word))] for word in words])
    one, two = sentence_graphs(["a fine film", "dull"], [1, 0], encode, Parser())
    assert edges(one) == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert one.x.tolist() == [[1], [4], [4]]
    assert two.num_edges == 0
    with pytest.raises(ValueError, match="one vector per word"):
        sentence_graphs(["dull"], [0], lambda _: torch.ones(2, 3), Parser())


def test_without_spacy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "spacy", None)
    with pytest.raises(ImportError, match=r"xdegree\[text\]"):
        sentence_graphs(["dull"], [0], torch.ones)


@pytest.mark.data
def test_the_prepared_trees_of_the_development_split(data_folder):
    found = graph_sst2(root=data_folder)
    assert (found.stats().graphs, found.stats().nodes, found.num_features) == (872, 17_614, 384)
    assert all(graph.num_edges == 2 * (graph.num_nodes - parts(graph)) for graph in found.graphs[:50])
    assert found.graphs[0].words[:3] == ["it", "'s", "a"]


def parts(graph):
    """How many trees a sentence falls into: the parser may see several sentences in it."""
    from networkx import number_connected_components
    from torch_geometric.utils import to_networkx

    return number_connected_components(to_networkx(graph, to_undirected=True))
