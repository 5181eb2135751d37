"""Graph-SST2: sentences as dependency trees, labelled by sentiment (0 negative, 1 positive).

The original (its files in ``Graph-SST2/raw``) is read where the data folder has it. Otherwise there is a rebuild, from
prepared trees and word vectors or from the sentences, and it says so in its `note`.
"""

import io
import json
import pickle
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from .dataset import Dataset, graph_dataset, split_ids
from .folder import Array, BrokenFileError, data_folder, missing, read_npz, read_numbers, require
from .word_vectors import TREES, VECTORS, find_vectors

REBUILT = "rebuilt: trees by spaCy, not the original's Biaffine parser"
Vectors = Literal["full", "contextual", "static"]
DEVELOPMENT = "development split"


def graph_sst2(
    seed: int = 0, root: Path | None = None, vectors: Vectors = "contextual", limit: int | None = None
) -> Dataset:
    """Graph-SST2 from the data folder: the original if it is there, else the rebuild.

    Args:
        seed: draws the split, and the graphs if there is a limit.
        root: the data folder; by default the one of `data_folder`.
        vectors: of the rebuild. ``"full"``: the language model's own vectors of all sentences, which ``xdegree data
            graph-sst2`` makes; the three splits are then phrases of the corpus's training split, and its development
            split is `Dataset.held_out`, as phrases share parts with each other. ``"contextual"``: the same vectors, of
            the development split alone; ``"static"``: all sentences, each word with the mean of its vectors there,
            64 principal components of them, and zeros for words that do not occur there.
        limit: how many graphs at most, drawn at random.
    """
    root = root or data_folder()
    if vectors not in get_args(Vectors):
        raise ValueError(f"vectors must be one of {get_args(Vectors)} (got {vectors!r})")
    if (root / "Graph-SST2" / "raw").is_dir():
        graphs, features, note = _original(root / "Graph-SST2" / "raw", limit, seed), "BERT word embedding", ""
    elif vectors == "full":
        return _full(root, limit, seed)
    else:
        graphs, features, note = _rebuilt(root / "graph_sst2_rebuilt", vectors, limit, seed)
    return graph_dataset("Graph-SST2", graphs, features, seed, note)


def _full(root: Path, limit: int | None, seed: int) -> Dataset:
    """All sentences with vectors of their own; the corpus's splits stay apart."""
    path = find_vectors(root)
    if path is None:
        raise missing(root / VECTORS, "`xdegree data graph-sst2` makes it, in minutes")
    trees, ptr, head, token = _trees(root / "graph_sst2_rebuilt")
    split = read_npz(root / TREES, ("split",), "it says which sentences are held out")["split"]
    stored = np.load(path, mmap_mode="r", allow_pickle=False)
    require(path, stored.ndim == 2 and len(stored) == ptr[-1], "does not fit the trees")
    chosen = _some(np.arange(len(ptr) - 1), limit, seed)
    vocab = trees["vocab"].tolist()
    graphs = []
    for g in chosen.tolist():
        a, b = ptr[g], ptr[g + 1]
        vector = torch.from_numpy(stored[a:b].astype(np.float32))
        words = [vocab[t] for t in token[a:b]]
        graphs.append(_tree(vector, tree_edges(torch.from_numpy(head[a:b])), int(trees["y"][g]), words))
    phrases, held = (torch.from_numpy((split[chosen] == part).nonzero()[0]) for part in (0, 1))
    splits = {part: phrases[ids] for part, ids in split_ids(len(phrases), seed).items()}
    return Dataset("Graph-SST2", graphs, "graph", "MiniLM word vectors", splits, REBUILT, {DEVELOPMENT: held})


def _tree(x: Tensor, edges: Tensor, label: int, words: list[str]) -> Data:
    """One sentence; the words come along for pictures."""
    return Data(x=x, edge_index=edges, y=torch.tensor([label]), words=words)


def tree_edges(head: Tensor) -> Tensor:
    """Both directions of the edges of a tree ``[2, 2(n - 1)]``; the head of a root is the word itself or -1."""
    child = ((head >= 0) & (head != torch.arange(len(head)))).nonzero().flatten()
    there = torch.stack([head[child], child])
    return torch.cat([there, there.flip(0)], 1)


ADVICE = "`xdegree.datasets.sentence_graphs` builds trees from sentences of your own"


def _trees(folder: Path) -> tuple[dict[str, Array], Array, Array, Array]:
    """The trees, and of them where sentences start, the head of each word, and its number in the vocabulary."""
    path = folder / TREES.name
    trees = read_npz(path, ("ptr", "head", "token_id", "vocab", "y"), ADVICE)
    ptr, head, token = (trees[key].astype(np.int64) for key in ("ptr", "head", "token_id"))
    fits = len(ptr) == len(trees["y"]) + 1 and ptr[0] == 0 and ptr[-1] == len(head) == len(token)
    require(path, fits and bool((np.diff(ptr) > 0).all()), "is cut wrongly")
    require(path, bool((head < np.repeat(np.diff(ptr), np.diff(ptr))).all()), "has heads outside of their sentences")
    require(path, 0 <= token.min() and token.max() < len(trees["vocab"]), "has words outside of its vocabulary")
    return trees, ptr, head, token


def _rebuilt(folder: Path, vectors: Vectors, limit: int | None, seed: int) -> tuple[list[Data], str, str]:
    trees, ptr, head, token = _trees(folder)
    file = folder / "features_minilm_dev.npz"
    stored = read_npz(file, ("graph", "ptr", "x"), ADVICE)
    with_vectors, cut, x = stored["graph"].astype(np.int64), stored["ptr"].astype(np.int64), stored["x"]
    fits = len(cut) == len(with_vectors) + 1 and cut[-1] == len(x) and with_vectors.max() < len(ptr) - 1
    require(file, fits and bool((np.diff(cut) == np.diff(ptr)[with_vectors]).all()), "does not fit the trees")
    require(file, bool(np.isfinite(x).all()), "holds numbers that are not finite")

    if vectors == "contextual":
        chosen, rows = with_vectors, {int(g): slice(a, b) for g, a, b in zip(with_vectors, cut, cut[1:], strict=False)}
        features, note = "MiniLM word vectors", f"{REBUILT}; the development split only"
    else:
        tokens = np.concatenate([token[ptr[g] : ptr[g + 1]] for g in with_vectors])
        x = _static(tokens, x, len(trees["vocab"]))[token]
        chosen, rows = np.arange(len(ptr) - 1), {g: slice(ptr[g], ptr[g + 1]) for g in range(len(ptr) - 1)}
        features, note = "static word vectors (64 components of MiniLM's)", REBUILT
    vocab = trees["vocab"].tolist()
    graphs = []
    for g in _some(chosen, limit, seed).tolist():
        a, b = ptr[g], ptr[g + 1]
        words = [vocab[t] for t in token[a:b]]
        vector = torch.from_numpy(x[rows[g]].astype(np.float32))
        graphs.append(_tree(vector, tree_edges(torch.from_numpy(head[a:b])), int(trees["y"][g]), words))
    return graphs, features, note


def _static(tokens: Array, x: Array, words: int, width: int = 64) -> Array:
    """The mean vector of each word, reduced to its principal components; 0 for words without one."""
    count = np.bincount(tokens, minlength=words)
    total = np.zeros((words, x.shape[1]))
    np.add.at(total, tokens, x.astype(np.float64))
    seen = count > 0
    mean = total[seen] / count[seen, None]
    mean -= mean.mean(0)
    basis = np.linalg.eigh(mean.T @ mean)[1][:, ::-1][:, :width]
    basis = basis * np.sign(basis[np.abs(basis).argmax(0), np.arange(basis.shape[1])])  # the sign is arbitrary: fix it
    reduced = mean @ basis
    found = np.zeros((words, reduced.shape[1]), dtype=np.float32)
    found[seen] = reduced / reduced.std()
    return found


def _some(ids: Array, limit: int | None, seed: int) -> Array:
    if limit is None or limit >= len(ids):
        return ids
    return np.sort(np.random.default_rng(seed).choice(ids, limit, replace=False))


def _original(raw: Path, limit: int | None, seed: int) -> list[Data]:
    """The files of the original: edges and graph numbers as text, words as JSON, vectors as a pickled array."""

    def file(name: str) -> Path:
        path = raw / f"Graph-SST2_{name}"
        if not path.is_file():
            raise missing(path, f"all files of the original belong into {raw}")
        return path

    edges = torch.from_numpy(read_numbers(file("edge_index.txt"), 2)).t()
    node = torch.from_numpy(read_numbers(file("node_indicator.txt"))) - 1
    labels = torch.from_numpy(read_numbers(file("graph_labels.txt")))
    x, words = _pickled_array(file("node_features.pkl")), _words(file("sentence_tokens.json"))
    require(file("node_features.pkl"), x.ndim == 2 and len(x) == len(node), "does not have one row per node")
    require(file("node_indicator.txt"), bool((node.diff() >= 0).all() and node[0] == 0), "is not in order")
    require(file("graph_labels.txt"), len(labels) == int(node.max()) + 1, "does not have one label per graph")
    require(file("edge_index.txt"), 0 <= int(edges.min()) and int(edges.max()) < len(node), "has edges to no node")
    inside = bool((node[edges[0]] == node[edges[1]]).all())
    require(file("edge_index.txt"), inside, "has edges from one sentence to another")
    edges = edges[:, torch.argsort(node[edges[0]], stable=True)]
    sizes = torch.bincount(node)
    start = sizes.cumsum(0) - sizes
    parts = edges.split(torch.bincount(node[edges[0]], minlength=len(labels)).tolist(), 1)
    graphs = []
    for g in _some(np.arange(len(labels)), limit, seed).tolist():
        a, size = int(start[g]), int(sizes[g])
        vector = torch.from_numpy(x[a : a + size].astype(np.float32))
        graphs.append(_tree(vector, (parts[g] - a).contiguous(), int(labels[g]), words.get(g, [""] * size)))
    return graphs


def _words(path: Path) -> dict[int, list[str]]:
    try:
        return {int(number): list(words) for number, words in json.loads(path.read_text("utf-8")).items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise BrokenFileError(path, f"does not hold the words of numbered sentences ({error})") from error


class _ArraysOnly(pickle.Unpickler):
    """Opens the pickle of an array and refuses everything else: a pickle can name any function to be called."""

    ALLOWED = frozenset({"_reconstruct", "ndarray", "dtype"})

    def find_class(self, module: str, name: str) -> Any:
        if module in ("numpy", "numpy.core.multiarray", "numpy._core.multiarray") and name in self.ALLOWED:
            return super().find_class(module.replace("numpy.core", "numpy._core"), name)
        if (module, name) == ("_codecs", "encode"):  # how old pickles spell bytes
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no part of an array")


def _pickled_array(path: Path) -> Array:
    try:
        array = _ArraysOnly(io.BytesIO(path.read_bytes())).load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise BrokenFileError(path, f"is not a whole pickled array ({error})") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
        raise BrokenFileError(path, "is not an array of floats")
    return array


def sentence_graphs(
    sentences: Iterable[str],
    labels: Sequence[int],
    encode: Callable[[list[str]], Tensor],
    parser: Any = None,
) -> list[Data]:
    """Dependency trees of sentences: what Graph-SST2 does, for sentences of one's own.

    Args:
        sentences: of words; one graph each, also where the parser sees several sentences.
        labels: one per sentence.
        encode: the vectors ``[words, width]`` of a sentence's words, as from a language model.
        parser: a spaCy pipeline; by default ``en_core_web_sm`` (needs the extra ``xdegree[text]`` and that model).
    """
    parser = parser or _spacy()
    graphs = []
    for document, label in zip(parser.pipe(sentences), labels, strict=True):
        words = [token.text for token in document]
        x = encode(words)
        if len(x) != len(words):
            raise ValueError(f"encode must give one vector per word (got {len(x)} for {len(words)} words)")
        graphs.append(_tree(x, tree_edges(torch.tensor([token.head.i for token in document])), label, words))
    return graphs


def _spacy() -> Any:
    try:
        import spacy  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise ImportError('parsing sentences needs spaCy: pip install "xdegree[text]"') from error
    try:
        return spacy.load("en_core_web_sm")
    except OSError as error:
        raise OSError("spaCy lacks its English model: python -m spacy download en_core_web_sm") from error
