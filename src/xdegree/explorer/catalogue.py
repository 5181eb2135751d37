"""All that the page can explain: examples, and the predictions that a browser refers to."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from torch_geometric.data import Data

from ..datasets import molecule_of
from ..model_call.call import model_call
from . import parse
from .parse import Reference
from .problem import MAX_NODES, Problem
from .subject import Example, Subject, subject_of

KEPT = 64
"""Predictions that are kept; each is found by what it is made of, so that no choice changes another user's."""


class Catalogue:
    """Examples by their key; it never changes after it is made."""

    def __init__(self, examples: Sequence[Example]) -> None:
        if not examples:
            raise ValueError("the page needs at least one example")
        self.examples = {example.key: example for example in examples}
        self.subject = lru_cache(KEPT)(self._subject)
        """The prediction that a reference means."""

    @property
    def first(self) -> Example:
        """What is shown at the start."""
        return next(iter(self.examples.values()))

    def example(self, key: object) -> Example:
        """An example that a browser names."""
        found = self.examples.get(key) if isinstance(key, str) else None
        if found is None:
            raise Problem(f"There is no example {str(key)[:40]!r}; choose one from the list.")
        return found

    def _subject(self, ref: Reference) -> Subject:
        example = self.example(ref.example)
        key = f"{abs(hash(ref)):x}"
        if ref.item is not None:
            if not 0 <= ref.item < len(example.items):
                raise Problem(f"{example.title} has predictions 0 to {len(example.items) - 1}; choose one of them.")
            item = example.items[ref.item]
            kwargs = {**example.kwargs, **item.kwargs}
            return subject_of(key, item.title, example, item.data, item.index, example.note, **kwargs)
        data, index, title, what = _own(ref, example)
        data = example.like_its_own(data)
        note = f"{what}. {example.about_model}".strip()
        return subject_of(key, title, example, data, index, note, **_beside(example, data))


def _own(ref: Reference, example: Example) -> tuple[Data, int | None, str, str]:
    """What a user typed or uploaded: the graph, the node that is explained, its title, and what it is in words."""
    if ref.smiles is not None:
        if not example.reads_molecules:
            raise Problem(f"{example.title} is no model of molecules, so it cannot read a SMILES.")
        text = parse.smiles(ref.smiles)
        data = _read(text, example.molecule or partial(molecule_of, atoms=example.atoms), "molecule")
        data.smiles = text
        return data, None, text, f"Your molecule, {len(data.x)} atoms"
    if ref.sentence is not None:
        if example.sentence is None:
            raise Problem(f"{example.title} does not say how it reads a sentence, so it cannot take one.")
        text = parse.sentence(ref.sentence)
        data = _read(text, example.sentence, "sentence")
        return data, None, text, f"Your sentence, {len(data.x)} words"
    data, index, title = parse.graph(ref.graph, example.width)
    node = "" if index is None else f", explained is its node {index}"
    edges = data.edge_index.shape[1]
    return data, index, title, f"An uploaded graph of {len(data.x)} nodes and {edges} edges{node}"


def _read(text: str, reader: Callable[[str], Data], what: str) -> Data:
    """What a user typed, as the model reads it; what is wrong with it is told on the page."""
    try:
        data = reader(text)
    except Exception as error:  # the reader may be the user's own: it can fail in any way
        raise Problem(f"This {what} cannot be read: {str(error) or type(error).__name__}") from error
    if not isinstance(data, Data) or data.x is None or data.edge_index is None:
        raise Problem(f"The function that reads a {what} must return a Data with x and edge_index.")
    if len(data.x) > MAX_NODES:
        raise Problem(f"The {what} has {len(data.x):,} nodes; the page takes up to {MAX_NODES:,}.")
    return data


def _beside(example: Example, data: Data) -> dict[str, Any]:
    """What the model takes beside x and edge_index, as the graph has it; all that its own graphs have must be there."""
    try:
        call = model_call(example.model, (data,), example.kwargs)
    except ValueError as error:
        raise Problem(f"The model cannot be called with this graph: {error}") from None
    found = {name: value for name, value in call.kwargs.items() if name not in ("x", "edge_index")}
    if missing := sorted(set(example.items[0].kwargs) - set(found) - {"batch"}):
        raise Problem(f"The model's own graphs come with {', '.join(missing)}, which this one does not have.")
    return found
