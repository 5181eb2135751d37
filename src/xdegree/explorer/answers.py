"""What the page asks the engine, as plain results: no layout, no browser, and nothing that belongs to one reader."""

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ..attribution.decompose import decompose
from ..attribution.explain import explain
from ..baselines import METHODS
from ..canvas import Edge
from ..engine.registry import MissingRuleError
from ..locality.prepared import PreparedCall
from ..model_call.split_points import Of
from ..results.explanation import Explanation
from ..results.tree import ExplanationTree
from ..subgraphs.agglomerate import MAX_NODES, Growth, grown_tree
from ..subgraphs.contextual import Scorer
from .problem import Problem
from .subject import Chosen, Subject, of_edges

OFFERED = tuple(name for name in METHODS if name != "PGExplainer")
"""PGExplainer learns from many predictions before it explains one, so a page cannot offer it at once."""
SLOW = ("SubgraphX", "GNNExplainer", "GNN-LRP", "DEGREE in context", "integrated gradients")
IN_UNITS = ("DEGREE",)
"""Methods whose scores are parts of the prediction itself."""
PATIENCE = 20.0
"""Seconds that the agglomeration may take; the levels found until then are shown."""
MEMORY = "1GB"
"""For the portions of one question."""

Row = tuple[float, ...]
"""One number per class."""


@dataclass(frozen=True)
class GroupAnswer:
    """What two groups contribute to every class; the parts add up to the prediction."""

    a: Row
    b: Row
    together: Row
    """Of both as one group."""
    interaction: Row
    """What they do only together: ``together - a - b``."""
    rest: Row
    """Of all other nodes, or edges."""
    meeting: Row
    """What is left of the prediction: what the groups do only together with the rest."""
    total: Row
    """The model's own output, or the logits where it ends in a softmax: what single scores are parts of, too."""
    seconds: float


@dataclass(frozen=True)
class Grown:
    """An agglomeration, and whether it came to its end."""

    tree: ExplanationTree
    complete: bool


class Answers:
    """Questions to the engine, one at a time: it sets switches of the whole process while it runs.

    What is kept is found by the prediction alone (`Subject` never changes), so readers share work but no choices.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self._turn = threading.Lock()
        self.explanation = lru_cache(64)(self._explanation)
        """The scores of all nodes for a class (`Explanation`, in the numbering of the whole graph)."""
        self.grown = lru_cache(32)(self._grown)
        """The agglomeration for a class."""
        self.scores = lru_cache(128)(self._scores)
        """The scores ``[N]`` of any method for a class."""
        self.edge = lru_cache(1024)(self._edge)
        """What the messages along one edge contribute to every class, in both directions."""

    def _ask(self, question: Callable[[], Any]) -> Any:
        with self._turn, torch.no_grad(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "single scores add up")  # the page says it beside the scores
            try:
                return question()
            except MissingRuleError as error:
                raise Problem(f"The model has an operation without a rule: {str(error).splitlines()[0]}") from error

    def groups(self, subject: Subject, a: Chosen, b: Chosen) -> GroupAnswer:
        """What two groups contribute, alone and together, and what the rest does: one call of the engine.

        Both are of nodes, or both of edges: what the messages along these contribute, in both directions.
        """
        of: Of = "edge" if of_edges([*a, *b]) else "node"
        if both := sorted({*a} & {*b}):
            name = f"{of.title()} {both[0]}"
            raise Problem(f"{name} is in both groups; their interaction is only defined for separate ones.")
        chosen = {*a, *b}
        rest = [item for item in (subject.edges if of == "edge" else subject.nodes) if item not in chosen]
        start = time.perf_counter()
        rows, total = self._decomposed(subject, [sorted(group) for group in (a, b, chosen, rest)], of)
        seconds = time.perf_counter() - start
        return GroupAnswer(
            a=_row(rows[0]),
            b=_row(rows[1]),
            together=_row(rows[2]),
            interaction=_row(rows[2] - rows[0] - rows[1]),
            rest=_row(rows[3]),
            meeting=_row(total - rows[2] - rows[3]),
            total=_row(total),
            seconds=seconds,
        )

    def _decomposed(self, subject: Subject, groups: Sequence[Chosen], of: Of) -> tuple[Tensor, Tensor]:
        """What groups contribute ``[K, C]``, and the output that they are parts of ``[C]``."""
        one, local = subject.one, [subject.local(group) for group in groups]
        found = self._ask(
            lambda: decompose(
                one.model, one.x, one.edge_index, groups=local, of=of, memory=MEMORY, model_kwargs=dict(one.kwargs)
            )
        )
        shown = found if found.logits is None else found.logits
        rows = shown.target.reshape(len(groups), -1, len(one.prediction))[:, one.row].double()
        return rows, shown.total.reshape(-1, len(one.prediction))[one.row].double()

    def _edge(self, subject: Subject, edge: Edge) -> Row:
        return _row(self._decomposed(subject, [[edge]], "edge")[0][0])

    def _explanation(self, subject: Subject, target: int) -> Explanation:
        found: Explanation = self._ask(
            lambda: explain(
                subject.one.model,
                subject.data.x,
                subject.data.edge_index,
                index=subject.index,
                target=target,
                memory=MEMORY,
                model_kwargs=subject.kwargs,
            )
        )
        return found

    def _grown(self, subject: Subject, target: int) -> Grown:
        model, data = subject.one.model, subject.data
        scorer: Scorer = self._ask(
            lambda: Scorer.of(
                PreparedCall.of(model, (data.x, data.edge_index), dict(subject.kwargs)),
                index=subject.index,
                target=target,
                seed=0,
                memory=MEMORY,
                max_nodes=MAX_NODES,
            )
        )
        growth, count, complete = Growth(), 0, True
        levels, until = growth.levels(scorer), time.monotonic() + self.patience
        while True:
            # Level by level, so that a short question of another reader does not wait for all of them.
            if self._ask(lambda: next(levels, None)) is None:
                break
            count += 1
            if time.monotonic() > until:
                complete = False
                break
        if not count:
            raise Problem("Nothing grows here: no node of this graph contributes anything.")
        # Nothing is scored twice: what the levels needed is known by now.
        tree = self._ask(lambda: grown_tree(scorer, growth if complete else replace(growth, max_levels=count)))
        return Grown(tree, complete)

    def _scores(self, subject: Subject, method: str, target: int) -> Tensor:
        if method not in OFFERED:
            raise Problem(f"There is no method {method[:40]!r}; choose one from the list.")
        try:
            chosen = METHODS[method]()
            # Not under `_ask`: gradients are needed, and only the engine's own methods need its turn.
            with self._turn:
                found: Tensor = chosen(replace(subject.one, target=target)).node.detach()
        except (ValueError, ImportError, NotImplementedError, RuntimeError, MissingRuleError) as error:
            raise Problem(f"{method} cannot explain this: {str(error).splitlines()[0]}") from error
        if not found.isfinite().all():
            raise Problem(f"{method} gave scores that are not finite.")
        return found


def agreement(first: Tensor, second: Tensor) -> float | None:
    """Spearman's rank correlation of two methods' scores; None where one of them ranks nothing."""
    a, b = (_ranks(scores) for scores in (first, second))
    a, b = a - a.mean(), b - b.mean()
    size = float(a.norm() * b.norm())
    return float(a @ b) / size if size else None


def _ranks(scores: Tensor) -> Tensor:
    """Ranks, equal ones for equal scores (up to rounding)."""
    values = scores.double()
    steps = (values / (values.abs().max() or 1) * 1e6).round()
    _, place, count = torch.unique(steps, return_inverse=True, return_counts=True)
    last = count.cumsum(0).double()
    return (last - (count.double() - 1) / 2)[place]


def _row(values: Tensor) -> Row:
    return tuple(values.tolist())
