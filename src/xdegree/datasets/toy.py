"""Toy data, made up on the spot: molecules put together from parts, sentences of a small grammar.

Their labels follow a rule that is written here, so a reader can tell whether an explanation makes sense. They are for
looking at explanations, not for judging models.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from .dataset import Dataset, graph_dataset
from .molecule import molecule_of
from .sst2 import tree_edges

NITRO = "[N+](=O)[O-]"
_SCAFFOLDS = (
    *("c1ccc({a})cc1{b}", "c1cc({a})cc({b})c1", "c1ccc2c({a})cc({b})cc2c1", "c1cc({a})ncc1{b}", "C1CC({a})CCC1{b}"),
    *("CC({a})CC{b}", "c1c({a})scc1{b}", "CC(C)C({a})CO{b}", "c1cc({a})oc1{b}", "C1CCN(CC1{a})C{b}"),
)
# Beside the nitro group: groups that share its atoms, so that a model cannot go by single atoms.
_GROUPS = (
    *("N", "O", "C", "OC", "Cl", "F", "C(=O)O", "C(=O)N", "C#N", "CC", "N(C)C", "C(C)=O", "Br", "SC"),
    *("NC(C)=O", "C=NO", "NO", "OC(N)=O", "CON", "N=O"),
)


def toy_molecules(count: int = 700, seed: int = 0) -> Dataset:
    """Molecules put together from parts; the label is whether there is a nitro group (1), which half of them have.

    Every graph has its ``smiles``, atoms one-hot as ``x``, and bond orders as ``bond`` (needs ``xdegree[chem]``).
    """
    rng = np.random.default_rng(seed)
    found: dict[str, Data] = {}
    while len(found) < count:
        label = len(found) % 2
        a, b = (_GROUPS[rng.integers(len(_GROUPS))] for _ in range(2))
        if label:
            a, b = (NITRO, b) if rng.integers(2) else (a, NITRO)
        smiles = _SCAFFOLDS[rng.integers(len(_SCAFFOLDS))].format(a=a, b=b)
        if smiles not in found:
            graph = molecule_of(smiles)
            graph.y, graph.smiles = torch.tensor([label]), smiles
            found[smiles] = graph
    note = "put together from parts; the label is whether there is a nitro group"
    return graph_dataset("Generated-Molecules", list(found.values()), "atoms, one-hot", seed, note)


_SUBJECTS = (
    *(("the", "film"), ("this", "movie"), ("the", "plot"), ("the", "acting"), ("her", "performance")),
    *(("the", "ending"), ("his", "script"), ("the", "music"), ("the", "cast")),
)
_VERBS = ("is", "was", "seems", "feels")
_DEGREES = ("", "", "very", "truly", "quite")
_GOOD = ("good", "funny", "brilliant", "moving", "charming", "clever", "fresh", "lovely")
_BAD = ("bad", "dull", "boring", "clumsy", "bland", "awful", "stale", "silly")


@dataclass(frozen=True)
class _Clause:
    words: list[str]
    heads: list[int]
    root: int
    positive: bool


def toy_sentences(count: int = 1500, seed: int = 0) -> Dataset:
    """Sentences of a small grammar as dependency trees; the label 1 is positive.

    "not" turns an adjective round; of two clauses the one after "but" counts, and "and" joins two that agree. Every
    graph has its ``words``.
    """
    rng = np.random.default_rng(seed)
    drawn: dict[str, tuple[list[str], list[int], bool]] = {}
    while len(drawn) < count:
        words, heads, positive = _sentence(rng)
        drawn[" ".join(words)] = (words, heads, positive)
    known = {word: number for number, word in enumerate(sorted({w for s in drawn.values() for w in s[0]}))}
    graphs = [
        Data(
            x=one_hot(torch.tensor([known[word] for word in words]), len(known)).float(),
            edge_index=tree_edges(torch.tensor(heads)),
            y=torch.tensor([int(positive)]),
            words=words,
        )
        for words, heads, positive in drawn.values()
    ]
    note = "from a small grammar; the label is its rule"
    return graph_dataset("Generated-Sentences", graphs, "words, one-hot", seed, note)


def _sentence(rng: np.random.Generator) -> tuple[list[str], list[int], bool]:
    first = _clause(rng, positive=bool(rng.integers(2)))
    joint = ("", "but", "and")[rng.integers(3)]
    if not joint:
        return first.words, first.heads, first.positive
    second = _clause(rng, positive=first.positive if joint == "and" else not first.positive)
    shift = len(first.words) + 1
    heads = [*first.heads, shift + second.root, *(head + shift for head in second.heads)]
    heads[shift + second.root] = first.root
    return [*first.words, joint, *second.words], heads, second.positive


def _clause(rng: np.random.Generator, *, positive: bool) -> _Clause:
    """Subject, verb, perhaps "not" and a degree, adjective; the adjective is the root, as in Universal Dependencies."""
    negated = bool(rng.integers(3) == 0)
    adjectives = _GOOD if positive != negated else _BAD
    degree = _DEGREES[rng.integers(len(_DEGREES))]
    subject = _SUBJECTS[rng.integers(len(_SUBJECTS))]
    between = [_VERBS[rng.integers(len(_VERBS))], *(["not"] if negated else []), *([degree] if degree else [])]
    words = [*subject, *between, str(adjectives[rng.integers(len(adjectives))])]
    root = len(words) - 1
    return _Clause(words, [1, root, *[root] * len(between), root], root, positive)
