"""Many explanations as one table: which kinds of nodes contribute how much, and which subgraphs come back."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import networkx as nx
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

from ..results.explanation import Explanation
from ..results.hetero import HeteroExplanation
from .base import edges_of, graph_title, node_names
from .molecule import mol_of
from .wording import JOINT, PLURAL, UNSIGNED, alike, signs_line, sum_of_two, unit_of

if TYPE_CHECKING:
    from rdkit.Chem import Mol

STRONG = 0.5  # of the largest score of a prediction: what nodes of a recurring subgraph have at least
Kinds = Sequence[str] | Callable[[Data], Sequence[str]]


class Occurrence(NamedTuple):
    """A kind, subgraph or fragment in one prediction."""

    row: int
    """Which prediction."""
    score: float
    """What it contributes there."""
    size: int
    """How many nodes, edges or features that is."""


Section = Mapping[str, tuple[Occurrence, ...]]
"""Occurrences by name."""


@dataclass(frozen=True)
class Row:
    """One prediction."""

    title: str
    target: int
    output: float
    """The model's own (or logit), for the explained class."""
    right: bool | None
    """Whether the predicted class is the label; None where there is no label or no class."""
    size: int
    """Nodes that can contribute."""
    parts: float | None
    """What its single scores add up to; None for readings that are no parts of the output."""
    rest: float | None
    """What they leave open of the output."""


@dataclass(frozen=True)
class Overview:
    """Many predictions; each section adds up what their explanations say."""

    rows: tuple[Row, ...]
    what: str
    """What the kinds are of, as "atoms"."""
    kinds: Section
    subgraphs: Section
    """Connected nodes of one sign with at least half of the largest score: sums of single scores."""
    fragments: Section
    """Functional groups of molecules."""
    exact: bool
    """Whether fragments were decomposed as groups; else they are sums of single scores too."""
    unit: str
    signs: str
    """What the colours mean."""
    single: str
    """What the scores are of, as "single atoms"."""

    @property
    def account(self) -> str:
        """What single scores add up to, the prediction, and the rest, on average; empty where they do not add up."""
        added = [(row.parts, row.rest) for row in self.rows if row.parts is not None and row.rest is not None]
        if not added:
            return ""
        mean, rest = fmean(parts for parts, _ in added), fmean(rest for _, rest in added)
        parts, whole, left = sum_of_two(mean, mean + rest)
        size = alike([fmean(abs(rest) for _, rest in added), mean, rest])[0].lstrip("+")  # else opposite signs hide it
        said = f"on average {self.single} add up to {parts}, the prediction is {whole}"
        return f"{said}, the rest ({JOINT}) is {left}, by magnitude {size}"


def overview(
    explanations: Iterable[Explanation | HeteroExplanation],
    graphs: Sequence[Data] | Data | None = None,
    *,
    kinds: Kinds | None = None,
    features: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    fragments: Sequence[Sequence[tuple[str, Sequence[int], float]]] | None = None,
) -> Overview:
    """Add up what many explanations say.

    Args:
        explanations: of many predictions, in one reading.
        graphs: their graphs in the same order, or the one graph that all are of. ``smiles`` makes kinds of nodes the
            elements, ``words`` the words, ``y`` tells right from wrong.
        kinds: what to call the kind of each node, a list for one graph or a function of a graph. By default types,
            elements, words, hops from the explained node, or degrees, whichever are known first.
        features: names of features, for explanations with ``of="feature"``.
        classes: names of the classes.
        fragments: of each explanation named groups of nodes with what they contribute as one group; by default the
            functional groups that RDKit knows, with the sums of their single scores.
    """
    found = list(explanations)
    if not found:
        raise ValueError("there are no explanations: there is nothing to show")
    if isinstance(graphs, Sequence) and len(graphs) != len(found):
        raise ValueError(f"there are {len(found)} explanations, but {len(graphs)} graphs")
    if len(asked := {(e.reading, e.of) for e in found}) > 1:
        raise ValueError(f"explanations of one reading and of one kind can be added up (got {sorted(asked)})")
    sections: tuple[dict[str, list[Occurrence]], ...] = ({}, {}, {})
    rows, what = [], "nodes"
    for number, e in enumerate(found):
        graph = graphs[number] if isinstance(graphs, Sequence) else graphs
        molecule = _molecule(graph, e)
        rows.append(_row(e, graph, number))
        what, parts = _parts(e, graph, molecule, kinds, features)
        own = None if fragments is None else fragments[number]
        for section, occurrences in zip(
            sections, (parts, _strong(e, graph, molecule, kinds), _groups(e, molecule, own)), strict=True
        ):
            for name, score, size in occurrences:
                section.setdefault(name, []).append(Occurrence(number, score, size))
    one = len({e.target for e in found}) == 1 or len(found[0].prediction) == 1
    unit = unit_of(found[0], classes) if one else "contribution to the explained class of each prediction"
    signs = signs_line(found[0], classes)
    if not one and found[0].reading not in UNSIGNED:
        signs = "red raises the class that a prediction is explained for, blue lowers it"
    node = {"atoms": "atom", "words": "word"}.get(what, "node")
    single = f"single {node}s" if found[0].of == "node" else f"single {PLURAL[found[0].of]}"
    parted, strong, grouped = ({name: tuple(listed) for name, listed in one.items()} for one in sections)
    return Overview(
        tuple(rows), what, parted, strong, grouped, exact=fragments is not None, unit=unit, signs=signs, single=single
    )


def _row(e: Explanation | HeteroExplanation, graph: Data | None, number: int) -> Row:
    predicted, label = int(e.prediction.argmax()), None if graph is None else graph.get("y")
    right = None
    if isinstance(label, Tensor) and not label.is_floating_point() and len(e.prediction) > 1:
        place = e.index if label.numel() > 1 else 0
        right = bool(label.flatten()[place] == predicted) if place < label.numel() else None
    size = len(e.nodes) if isinstance(e, Explanation) else sum(len(s) for s in e.scores.values())
    parts = None if e.residual is None else e.total_scores
    return Row(_title(e, graph, number), e.target, e.output, right, size, parts, e.residual)


def _title(e: Explanation | HeteroExplanation, graph: Data | None, number: int) -> str:
    """What a prediction is of: the node by its name, the graph by its title, SMILES or words; else by its number."""
    names = None if graph is None else node_names(graph)
    if e.level == "node":
        return f"node {e.index}" if names is None else names[e.index]
    return (None if graph is None else graph_title(graph)) or f"{e.level or 'prediction'} {number}"


Part = tuple[str, float, int]


def _parts(
    e: Explanation | HeteroExplanation,
    graph: Data | None,
    molecule: "Mol | None",
    kinds: Kinds | None,
    features: Sequence[str] | None,
) -> tuple[str, list[Part]]:
    """What the kinds are of, and what each kind contributes to one prediction."""
    if isinstance(e, HeteroExplanation):
        what = "edge types" if e.of.startswith("edge") else "node types"
        return what, [(_typed(kind), float(s.double().sum()), len(s)) for kind, s in e.scores.items()]
    if e.of.endswith("feature"):
        scores = e.scores.double().reshape(len(e.scores), -1)
        names = features or [f"feature {number}" for number in range(scores.shape[1])]
        if len(names) != scores.shape[1]:
            raise ValueError(f"there are {scores.shape[1]} features, but {len(names)} names")
        used = [(name, float(s.sum()), int(s.count_nonzero())) for name, s in zip(names, scores.t(), strict=True)]
        return "features", [part for part in used if part[2]]
    what, named = _named(e, graph, molecule, kinds)
    sums: dict[str, tuple[float, int]] = {}
    if e.of == "edge":
        assert e.edge_index is not None
        ends = zip(*e.edge_index.tolist(), e.edge_scores.tolist(), strict=True)  # type: ignore[union-attr]
        what, every = "edges", (("–".join(sorted((named[u], named[v]))), score) for u, v, score in ends if score)
    else:
        every = ((named[node], float(e.node_scores[node])) for node in e.nodes.tolist())
    for name, score in every:
        total, count = sums.get(name, (0.0, 0))
        sums[name] = (total + score, count + 1)
    return what, [(name, total, count) for name, (total, count) in sums.items()]


def _typed(kind: Any) -> str:
    return " ".join(map(str, kind)) if isinstance(kind, tuple) else str(kind)


def _named(
    e: Explanation, graph: Data | None, molecule: "Mol | None", kinds: Kinds | None
) -> tuple[str, Mapping[int, str]]:
    """The kind of each node, and what the kinds are of."""
    if kinds is not None:
        if callable(kinds) and graph is None:
            raise ValueError("kinds is a function of a graph: give the graphs")
        listed = kinds(graph) if callable(kinds) else kinds
        if len(listed) != e.num_nodes:
            raise ValueError(f"there are {e.num_nodes} nodes, but {len(listed)} kinds")
        return "nodes", dict(enumerate(map(str, listed)))
    if molecule is not None:
        return "atoms", {atom.GetIdx(): atom.GetSymbol() for atom in molecule.GetAtoms()}
    if graph is not None and "words" in graph and len(graph.words) == e.num_nodes:
        return "words", {place: str(word).lower() for place, word in enumerate(graph.words)}
    if e.edge_index is None:
        return "nodes", dict.fromkeys(e.nodes.tolist(), "node")
    if e.level == "node":
        near: nx.Graph[int] = nx.Graph(edges_of(e.edge_index, e.nodes.tolist()))
        near.add_nodes_from(e.nodes.tolist())
        hops = nx.single_source_shortest_path_length(near, e.index)
        said = {0: "the explained node", 1: "1 hop away"}
        return "nodes", {node: said.get(hop, f"{hop} hops away") for node, hop in hops.items()} | {
            node: "not connected" for node in e.nodes.tolist() if node not in hops
        }
    counts = degree(e.edge_index[1], e.num_nodes).long().tolist()
    return "nodes", {node: f"degree {count}" for node, count in enumerate(counts)}


def _molecule(graph: Data | None, e: Explanation | HeteroExplanation) -> "Mol | None":
    smiles = None if graph is None else graph.get("smiles")
    if not isinstance(smiles, str) or not isinstance(e, Explanation):
        return None
    try:
        return mol_of(smiles, e.num_nodes)
    except ValueError:  # its nodes are no atoms of this SMILES
        return None


def _strong(
    e: Explanation | HeteroExplanation, graph: Data | None, molecule: "Mol | None", kinds: Kinds | None
) -> list[Part]:
    """Connected nodes of one sign, each with at least half of the largest score."""
    if not isinstance(e, Explanation) or e.of != "node" or e.edge_index is None:
        return []
    scores = {node: float(e.node_scores[node]) for node in e.nodes.tolist()}
    most = max(map(abs, scores.values()), default=0.0)
    _, named = _named(e, graph, molecule, kinds)
    found: list[Part] = []
    for sign in (1, -1):
        strong = [node for node, score in scores.items() if most and sign * score >= STRONG * most]
        part: nx.Graph[int] = nx.Graph(edges_of(e.edge_index, strong))
        for nodes in nx.connected_components(part):
            inside = sorted(nodes)
            name = _shape(part.subgraph(inside), named, molecule)
            found.append((name, sum(scores[node] for node in inside), len(inside)))
    return found


def _shape(part: "nx.Graph[int]", named: Mapping[int, str], molecule: "Mol | None") -> str:
    """A name that equal subgraphs share: canonical SMILES of molecules, kinds of nodes and a hash of other graphs."""
    if molecule is not None:
        from rdkit.Chem import MolFragmentToSmiles

        heavy = [node for node in part if molecule.GetAtomWithIdx(node).GetAtomicNum() > 1]
        return str(MolFragmentToSmiles(molecule, heavy)) if heavy else "[H]"
    kinds = {node: named[node] for node in part}
    nx.set_node_attributes(part, kinds, "kind")
    mark = nx.weisfeiler_lehman_graph_hash(part, node_attr="kind", digest_size=3)
    listed = [name if times == 1 else f"{times} × {name}" for name, times in sorted(Counter(kinds.values()).items())]
    said = ", ".join(listed[:6]) + (f" and {len(listed) - 6} more" if len(listed) > 6 else "")
    return f"{said} [{mark}]"


@cache
def _patterns() -> tuple[tuple[str, Any], ...]:
    """The functional groups that RDKit counts (its fragment descriptors), in words."""
    from rdkit import RDConfig
    from rdkit.Chem import MolFromSmarts

    found = []
    with open(os.path.join(RDConfig.RDDataDir, "FragmentDescriptors.csv"), encoding="utf-8") as file:  # noqa: PTH118, PTH123
        for line in file:
            fields = line.strip().split("\t")
            if line.startswith(("#", "//")) or len(fields) < 3:
                continue
            pattern = MolFromSmarts(fields[2].strip('"'))
            if pattern is not None:
                name = fields[1].strip('"').removeprefix("Number of ").strip()
                found.append((name[0].lower() + name[1:] if name[1:2].islower() else name, pattern))
    return tuple(found)


def functional_groups(smiles: str, num_nodes: int | None = None) -> list[tuple[str, tuple[int, ...]]]:
    """The functional groups of a molecule that RDKit knows: name and atoms, with the hydrogens at them.

    Args:
        smiles: atoms are numbered as in the text.
        num_nodes: how many nodes there are: with all hydrogens, or without.
    """
    return _matched(mol_of(smiles, num_nodes))


def _matched(molecule: "Mol") -> list[tuple[str, tuple[int, ...]]]:
    found: dict[tuple[str, tuple[int, ...]], None] = {}  # some groups have two patterns
    for name, pattern in _patterns():
        for match in molecule.GetSubstructMatches(pattern):
            atoms = [molecule.GetAtomWithIdx(atom) for atom in match]
            hydrogens = {n.GetIdx() for atom in atoms for n in atom.GetNeighbors() if n.GetAtomicNum() == 1}
            found[name, tuple(sorted({*match, *hydrogens}))] = None
    return list(found)


def _groups(
    e: Explanation | HeteroExplanation,
    molecule: "Mol | None",
    given: Sequence[tuple[str, Sequence[int], float]] | None,
) -> list[Part]:
    if given is not None:
        return [(name, score, len(nodes)) for name, nodes, score in given]
    if molecule is None or not isinstance(e, Explanation) or e.of != "node":
        return []
    return [(name, float(e.node_scores[list(nodes)].double().sum()), len(nodes)) for name, nodes in _matched(molecule)]
