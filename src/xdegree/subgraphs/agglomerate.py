"""From nodes to subgraphs: the paper's agglomeration, in the readings that its text and its Algorithm 1 allow.

Every step scores all candidates of all groups and takes some of them in:

    s(v) = φ({v} ∪ B) − φ(B),   r(v) = |s(v) − E[s(v')]|,   v, v' ∈ N(B)

=============== ============================== ============================== ==============================
selection       who is compared                who is taken                   after
=============== ============================== ============================== ==============================
``threshold``   the candidates of each group   r(v) ≥ q · max r(v')           the paper's text (the default)
``queue``       all candidates of all groups   the best ⌈q · n⌉ of the queue  Algorithm 1
``percentile``  all candidates of all groups   r(v) ≥ the q-quantile of r     the authors' code
=============== ============================== ============================== ==============================

``docs/agglomeration.md`` says where they come from and what the sources leave open.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from torch import Tensor
from tqdm import tqdm

from ..attribution.scores import Reading
from ..engine.options import Contexts, Options
from ..engine.process_state import Memory
from ..locality.prepared import Model, PreparedCall
from ..results.tree import ExplanationTree, Group, Level
from .adjacency import Adjacency, Bits, members
from .contextual import Scorer

Selection = Literal["threshold", "queue", "percentile", "percentile-signed"]
Candidates = Literal["groups", "nodes"]
Pair = tuple[Bits, Bits]
"""A group and a candidate for it."""
MAX_NODES = 200
"""Nodes that take part by default: more take minutes, and a tree of them is too large to read."""


def agglomerate(
    model: Model,
    *args: Any,
    index: int | None = None,
    target: int | None = None,
    q: float = 0.6,
    max_levels: int | None = None,
    max_nodes: int | None = MAX_NODES,
    seed: int = 0,
    selection: Selection = "threshold",
    candidates: Candidates = "groups",
    rising: bool = False,
    contexts: Contexts | None = None,
    reading: Reading = "contribution",
    output: Any = None,
    start: Any = None,
    layer: str | None = None,
    baseline: Any = "zero",
    steps: int = 1,
    graph: Tensor | None = None,
    options: Options | None = None,
    memory: Memory = None,
    progress: bool = True,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> ExplanationTree:
    """Grow groups of nodes from single nodes to the whole graph, and say what each merge changes.

    For a node's prediction only its computation graph takes part. Every step asks the engine once, for all candidates
    of all groups in all their contexts, and no group is scored twice.

    Args:
        model: a PyG model or any callable that computes with PyTorch, or what `prepare` returned.
        *args: the model's arguments, node features first, or a PyG ``Data`` in their place.
        index: the node (or, in a batch, the graph) that is explained.
        target: the class that is explained; the predicted one by default.
        q: how choosy a step is, 0 to 1; see ``selection``.
        max_levels: how many levels at most; by default until every connected part is one group.
        max_nodes: how many nodes take part at most: in larger computation graphs those that contribute most, with nodes
            that connect them. ``left_out`` of the tree says how much the others contribute. None for all of them.
        seed: draws contexts where they are too many to take all of them.
        selection: ``"threshold"``, a group takes its candidates with r(v) ≥ q · max r (the paper's text);
            ``"queue"``, the best ⌈q · n⌉ candidates of all groups (Algorithm 1; its first step ranks by φ itself);
            ``"percentile"``, those at or above the q-quantile of r, and groups that touch become one (the authors' code
            for sentences); ``"percentile-signed"``, the same by s instead of r (their code for molecules).
        candidates: what may join a group: a neighboring node, or with ``"groups"`` all of the group that it belongs
            to (the paper's text); with ``"nodes"`` only the node counts for the score (Algorithm 2).
        rising: take only additions that raise the score: candidates with s(v) > 0, ranked by s. The tree ends where
            none are left.
        contexts: how the contextual score φ looks around a group: see `Contexts`.
        reading: what the contributions f^D are, as in `explain`.
        output: which part of the output is explained, as in `explain`.
        start: where the rows of nodes are, as in `explain`.
        layer: where the strength is read, as in `explain`.
        baseline: what features are measured from, as in `decompose`.
        steps: in how many steps the way from the baseline is split, as in `decompose`.
        graph: edges ``[2, E]`` along which groups grow; those of the model's ``edge_index`` by default.
        options: choices among rules; `Options()` by default.
        memory: budget for the portions, as in `decompose`.
        progress: show a bar, if it takes longer than a second and somebody watches.
        model_kwargs: keyword arguments of the model whose names are taken by this function.
        **kwargs: all other keyword arguments of the model.
    """
    growth = Growth(selection, candidates, rising, q, max_levels, max_nodes)
    prepared = PreparedCall.of(model, args, {**kwargs, **(model_kwargs or {})}, start=start).of_part(output)
    scorer = Scorer.of(
        prepared, index, target, reading, layer, options, memory, graph, contexts, seed, baseline, steps, max_nodes
    )
    return grown_tree(scorer, growth, progress)


def agglomerate_levels(
    model: Model,
    *args: Any,
    q: float = 0.6,
    max_levels: int | None = None,
    max_nodes: int | None = MAX_NODES,
    selection: Selection = "threshold",
    candidates: Candidates = "groups",
    rising: bool = False,
    index: int | None = None,
    target: int | None = None,
    seed: int = 0,
    contexts: Contexts | None = None,
    reading: Reading = "contribution",
    output: Any = None,
    start: Any = None,
    layer: str | None = None,
    baseline: Any = "zero",
    steps: int = 1,
    graph: Tensor | None = None,
    options: Options | None = None,
    memory: Memory = None,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Iterator[Level]:
    """The levels of `agglomerate`, which takes the same arguments, one by one as they are found.

    Nothing is computed beyond the levels that are asked for. Wrong arguments raise at once, not at the first level.
    """
    growth = Growth(selection, candidates, rising, q, max_levels, max_nodes)
    prepared = PreparedCall.of(model, args, {**kwargs, **(model_kwargs or {})}, start=start).of_part(output)
    scorer = Scorer.of(
        prepared, index, target, reading, layer, options, memory, graph, contexts, seed, baseline, steps, max_nodes
    )
    return (_level(scorer, groups) for groups in growth.levels(scorer))


def grown_tree(scorer: Scorer, growth: "Growth", progress: bool = False) -> ExplanationTree:
    """All levels as a tree."""
    levels, f, reader = [], scorer.contributions, scorer.reader
    quiet = None if progress else True  # None: only where somebody watches
    with tqdm(total=len(scorer.nodes), desc="growing", unit="node", disable=quiet, delay=1, leave=False) as bar:
        for groups in growth.levels(scorer):
            levels.append(groups)
            apart = len(groups) + len(scorer.nodes) - sum(group.bit_count() for group in groups)
            bar.update(len(scorer.nodes) - apart - bar.n)
    errors = [scorer.errors.get(group, 0.0) for groups in levels for group in groups]
    logits = reader.before_the_end(scorer.prediction.unsqueeze(0))
    return ExplanationTree(
        levels=tuple(_level(scorer, groups) for groups in levels),
        contextual=tuple(tuple(scorer.contextual[group] for group in groups) for groups in levels),
        leaves=tuple(Group(frozenset({node}), f[1 << bit]) for bit, node in enumerate(scorer.nodes)),
        prediction=tuple(scorer.prediction.tolist()),
        target=scorer.target,
        index=scorer.index,
        num_nodes=scorer.place.num_nodes,
        reading=scorer.reader.reading,
        selection=growth.selection,
        candidates=growth.candidates,
        rising=growth.rising,
        q=growth.q,
        max_levels=growth.max_levels,
        max_nodes=growth.max_nodes,
        left_out=scorer.left_out,
        contextual_error=max(errors, default=0.0),
        seed=scorer.surroundings.seed,
        contexts=scorer.surroundings.contexts,
        options=scorer.reader.options,
        logits=None if logits is None else tuple(logits[0].tolist()),
        baseline_output=None if reader.path.is_trivial else tuple(reader.output_at(0)[0].tolist()),
    )


def _level(scorer: Scorer, groups: Iterable[Bits]) -> Level:
    return tuple(Group(scorer.own(group), scorer.contributions[group]) for group in groups)


@dataclass(frozen=True)
class Growth:
    """How groups grow."""

    selection: Selection = "threshold"
    candidates: Candidates = "groups"
    rising: bool = False
    q: float = 0.6
    max_levels: int | None = None
    max_nodes: int | None = MAX_NODES

    def __post_init__(self) -> None:
        for name, allowed in (("selection", get_args(Selection)), ("candidates", get_args(Candidates))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed} (got {getattr(self, name)!r})")
        if not isinstance(self.rising, bool):
            raise TypeError(f"rising must be True or False (got {self.rising!r})")
        if isinstance(self.q, bool) or not isinstance(self.q, int | float) or not 0 <= self.q <= 1:
            raise ValueError(f"q must be a number from 0 to 1 (got {self.q!r})")
        for name in ("max_levels", "max_nodes"):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if value is not None and not whole:
                raise ValueError(f"{name} must be None or an integer, at least 1 (got {value!r})")

    def levels(self, scorer: Scorer) -> Iterator[list[Bits]]:
        """Level after level; f^D and φ of its groups are known to the scorer by then."""
        graph = scorer.adjacency
        singles = [1 << node for node in range(graph.num_nodes)]
        scorer.score(contributions=singles, contextual=singles)
        groups: list[Bits] = []
        pairs: list[Pair] = [(0, single) for single in singles]
        for _ in range(graph.num_nodes if self.max_levels is None else self.max_levels):
            taken = self._taken(pairs, scorer)
            if not taken:
                return
            groups = self._merged(graph, groups, taken)
            pairs = self._pairs(graph, groups)
            new = [group for group in groups if group not in scorer.contextual]
            scorer.score(contributions=groups, contextual=[*new, *(group | other for group, other in pairs)])
            yield groups
            if not pairs:
                covered = sum(groups)  # disjoint, so the sum is the union
                pairs = [(0, single) for single in singles if not single & covered]

    def _pairs(self, graph: Adjacency, groups: list[Bits]) -> list[Pair]:
        """All candidates of all groups."""
        owner = {node: group for group in groups for node in members(group)} if self.candidates == "groups" else {}
        found: dict[Pair, None] = {}
        for group in groups:
            for node in members(graph.around(group)):
                found[group, owner.get(node, 1 << node)] = None
        return list(found)

    def _taken(self, pairs: list[Pair], scorer: Scorer) -> list[Bits]:
        """The unions of groups and the candidates that they take in."""
        phi = scorer.contextual
        s = np.array([phi[group | other] - (phi[group] if group else 0.0) for group, other in pairs])
        rounding = scorer.rounding * max((abs(phi[group | other]) for group, other in pairs), default=0.0)
        if self.rising:
            up = (s > rounding).nonzero()[0]
            pairs, s = [pairs[place] for place in up], s[up]
        if not pairs:
            return []
        rank = {"threshold": self._by_group, "queue": self._by_queue}.get(self.selection, self._by_percentile)
        chosen = rank(s, [group for group, _ in pairs], rounding)
        return [group | other for (group, other), taken in zip(pairs, chosen, strict=True) if taken]

    def _by_group(self, s: Any, groups: list[Bits], rounding: float) -> Any:
        """The text: r(v) ≥ q · max r(v'), among the candidates of the same group."""
        chosen = np.zeros(len(s), dtype=bool)
        for places in _places(groups):
            r = s[places] if self.rising else np.abs(s[places] - s[places].mean())
            chosen[places] = r >= self.q * r.max() - rounding
        return chosen

    def _by_queue(self, s: Any, groups: list[Bits], rounding: float) -> Any:
        """Algorithm 1: the top of one queue, the first one ordered by φ itself; equals of the last one pass too."""
        r = s if self.rising or not groups[0] else np.abs(s - s.mean())
        last = max(1, math.ceil(self.q * len(r)))
        return r >= np.sort(r)[-last] - rounding

    def _by_percentile(self, s: Any, _groups: list[Bits], rounding: float) -> Any:
        """The authors' code: at or above a percentile of all candidates."""
        r = s if self.rising or self.selection == "percentile-signed" else np.abs(s - s.mean())
        return r >= np.quantile(r, self.q) - rounding

    def _merged(self, graph: Adjacency, groups: list[Bits], taken: list[Bits]) -> list[Bits]:
        """The next level: what has a node in common becomes one; in the authors' code also what touches."""
        if self.selection.startswith("percentile"):
            covered = 0
            for group in [*groups, *taken]:
                covered |= group
            return graph.parts(covered)
        found: list[Bits] = []
        for group in [*groups, *taken]:
            apart = []
            union = group
            for other in found:
                if other & group:
                    union |= other
                else:
                    apart.append(other)
            found = [*apart, union]
        return sorted(found, key=lambda group: group & -group)


def _places(groups: list[Bits]) -> list[list[int]]:
    """Where the candidates of each group stand."""
    found: dict[Bits, list[int]] = {}
    for place, group in enumerate(groups):
        found.setdefault(group, []).append(place)
    return list(found.values())
