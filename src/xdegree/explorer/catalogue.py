"""All that the page can explain: examples, and the predictions that a browser refers to."""

from collections.abc import Sequence
from functools import lru_cache

from torch_geometric.data import Data

from ..datasets import molecule_of
from . import parse
from .parse import Reference
from .problem import MAX_NODES, Problem
from .subject import Example, Subject, subject_of

KEPT = 64
"""Predictions that are kept; each is found by what it is made of, so that nobody's choice changes another's."""


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
            return subject_of(key, item.title, example, item.data, item.index, **example.kwargs)
        if ref.smiles is not None:
            if not example.atoms:
                raise Problem(f"{example.title} is no model of molecules, so it cannot read a SMILES.")
            text = parse.smiles(ref.smiles)
            return subject_of(key, text, example, example.like_its_own(_molecule(text, example)), None)
        if example.kwargs:
            raise Problem("This model takes more than x and edge_index, which an uploaded graph does not have.")
        data, index, title = parse.graph(ref.graph, example.width)
        return subject_of(key, title, example, example.like_its_own(data), index)


def _molecule(smiles: str, example: Example) -> Data:
    """The molecule that somebody typed; what is wrong with it is told on the page."""
    try:
        data = molecule_of(smiles, example.atoms)
    except (ValueError, ModuleNotFoundError) as error:
        raise Problem(str(error)) from None
    if len(data.x) > MAX_NODES:
        raise Problem(f"The molecule has {len(data.x):,} atoms; the page takes up to {MAX_NODES:,}.")
    return data
