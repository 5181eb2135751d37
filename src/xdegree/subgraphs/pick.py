"""One subgraph as the answer: connected, of at most so many nodes, that carries the prediction best."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from torch import Tensor

from ..attribution.scores import Reading
from ..engine.options import Contexts, Options
from ..engine.process_state import Memory
from ..locality.prepared import Model, PreparedCall
from ..results.tree import ExplanationTree
from .adjacency import Bits, members
from .agglomerate import Growth, grown_tree
from .contextual import Scorer
from .masking import Masking

Objective = Literal["contribution", "fidelity"]


@dataclass(frozen=True)
class Subgraph:
    """A connected group of nodes, what it contributes and what the model predicts with and without it."""

    nodes: frozenset[int]
    """Their ids."""
    score: float
    """Of the objective: the contribution, or fidelity⁺ − fidelity⁻."""
    contribution: float
    """f^D, in units of the reading."""
    fidelity_plus: float
    """How much probability the class loses when the features of these nodes are set to 0."""
    fidelity_minus: float
    """How much it loses when those of all other nodes are."""
    objective: str
    """What was maximised."""
    target: int
    """The class that is explained."""
    index: int
    """The node, link or graph that is explained."""


def pick_subgraph(
    model: Model,
    *args: Any,
    size: int | None = None,
    sparsity: float | None = None,
    objective: Objective = "contribution",
    beam: int = 8,
    tree: ExplanationTree | None = None,
    index: int | None = None,
    target: int | None = None,
    seed: int = 0,
    contexts: Contexts | None = None,
    reading: Reading = "contribution",
    layer: str | None = None,
    baseline: Any = "zero",
    steps: int = 1,
    graph: Tensor | None = None,
    options: Options | None = None,
    memory: Memory = None,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Subgraph:
    """The connected subgraph of at most so many nodes that carries the prediction best, by beam search.

    Groups grow by one node per step; all candidates of a step are scored at once, and the best of them are kept. The
    groups of an explanation tree are added at the step of their size, so that a subgraph whose parts contribute little
    alone is found too. Only the tree's contexts are random; ties go to the smaller node ids.

    Args:
        model: a PyG model or any callable that computes with PyTorch, or what `prepare` returned.
        *args: the model's arguments, node features first, or a PyG ``Data`` in their place.
        size: the most nodes that the subgraph may have.
        sparsity: instead of a size, the share of nodes to keep, 0 to 1, as the paper defines it (elsewhere
            sparsity is the share that is left *out*). Of the nodes that take part, rounded down, at least one.
        objective: ``"contribution"``, f^D by the reading; ``"fidelity"``, fidelity⁺ − fidelity⁻: the probability of the
            class with the features of all other nodes set to 0, minus that with the subgraph's own set to 0.
        beam: how many groups go on at every step.
        tree: an agglomeration that guides the search; grown by default.
        index: the node (or, in a batch, the graph) that is explained.
        target: the class that is explained; the predicted one by default.
        seed: for the tree's contexts, see `agglomerate`.
        contexts: for the tree, see `agglomerate`.
        reading: what the contribution is, as in `explain`.
        layer: where the strength is read, as in `explain`.
        baseline: what features are measured from, as in `decompose`.
        steps: in how many steps the way from the baseline is split, as in `decompose`.
        graph: edges ``[2, E]`` along which groups grow; those of the model's ``edge_index`` by default.
        options: choices among rules; `Options()` by default.
        memory: budget for the portions, as in `decompose`.
        model_kwargs: keyword arguments of the model whose names are taken by this function.
        **kwargs: all other keyword arguments of the model.
    """
    _check(size, sparsity, objective, beam)
    prepared = PreparedCall.of(model, args, {**kwargs, **(model_kwargs or {})})
    scorer = Scorer.of(
        prepared, index, target, reading, layer, options, memory, graph, contexts, seed, baseline=baseline, steps=steps
    )
    most = max(1, int(sparsity * len(scorer.nodes))) if sparsity is not None else size or 1
    guides = _guides(tree or grown_tree(scorer, Growth()), scorer, most)
    masking = Masking(prepared.model, scorer.place, scorer.target)
    search = _Search(scorer, masking, objective)
    best = search.best(min(most, len(scorer.nodes)), beam, guides)
    scorer.score(contributions=[best])
    plus, minus = masking.fidelity(scorer.own(best))
    return Subgraph(
        nodes=scorer.own(best),
        score=search.scores[best],
        contribution=scorer.contributions[best],
        fidelity_plus=plus,
        fidelity_minus=minus,
        objective=objective,
        target=scorer.target,
        index=scorer.index,
    )


class _Search:
    """Beam search over connected groups."""

    def __init__(self, scorer: Scorer, masking: Masking, objective: Objective) -> None:
        self.scorer, self.masking, self.objective = scorer, masking, objective
        self.scores: dict[Bits, float] = {}

    def best(self, most: int, beam: int, guides: Mapping[int, list[Bits]]) -> Bits:
        """The best group of at most so many nodes."""
        graph = self.scorer.adjacency
        front = [1 << node for node in range(graph.num_nodes)]
        winners: list[Bits] = []
        for size in range(1, most + 1):
            front = self._ranked([*front, *guides.get(size, [])])[:beam]
            if not front:
                break  # the parts of the graph are smaller than that
            winners.append(front[0])
            front = [group | 1 << node for group in front for node in members(graph.around(group))]
        return self._ranked(winners)[0]

    def _ranked(self, groups: Iterable[Bits]) -> list[Bits]:
        """Best first. Scores that differ by rounding alone are equal, and then smaller ids come first."""
        once = list(dict.fromkeys(groups))
        self._score([group for group in once if group not in self.scores])
        step = self.scorer.rounding * max((abs(self.scores[group]) for group in once), default=0.0) or 1.0
        return sorted(once, key=lambda group: (-round(self.scores[group] / step), list(members(group))))

    def _score(self, groups: list[Bits]) -> None:
        if self.objective == "contribution":
            self.scorer.score(contributions=groups)
            self.scores.update({group: self.scorer.contributions[group] for group in groups})
        elif groups:
            self.scores.update(zip(groups, self.masking.gains([self.scorer.own(g) for g in groups]), strict=True))


def _guides(tree: ExplanationTree, scorer: Scorer, most: int) -> dict[int, list[Bits]]:
    """The tree's groups by size, of those that are small enough."""
    found: dict[int, list[Bits]] = {}
    for group in tree.groups:
        if len(group) <= most:
            found.setdefault(len(group), []).append(scorer.inside(group, "a group of the tree"))
    return found


def _check(size: Any, sparsity: Any, objective: Any, beam: Any) -> None:
    if (size is None) == (sparsity is None):
        raise ValueError(f"say how large the subgraph may be: size or sparsity, one of them (got {size}, {sparsity})")
    for name, value in (("size", size), ("beam", beam)):
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        if not whole and not (name == "size" and value is None):
            raise ValueError(f"{name} must be an integer, at least 1 (got {value!r})")
    number = isinstance(sparsity, int | float) and not isinstance(sparsity, bool) and 0 < sparsity <= 1
    if sparsity is not None and not number:
        raise ValueError(f"sparsity must be above 0 and at most 1, the share of nodes to keep (got {sparsity!r})")
    if objective not in get_args(Objective):
        raise ValueError(f"objective must be one of {get_args(Objective)} (got {objective!r})")
