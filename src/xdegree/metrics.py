"""How well scores find a known truth, and how well the parts that they pick stand for the whole."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan, nan
from typing import Any

import torch
from torch import Tensor
from torch_geometric.explain.metric import characterization_score

from .baselines.instance import Instance
from .removal import Removal, Task, Way, checked_task

ByNode = Tensor | Mapping[Any, Tensor]
"""A number per node ``[N]``, or by type of node, ``{type: [n]}``: the nodes of all types then count together."""


def auc(scores: ByNode, truth: ByNode) -> float:
    """Area under the ROC curve: the chance that a true item scores above a false one, a tie counting one half.

    Args:
        scores: [N], higher means more likely true; by type for a graph with several.
        truth: [N], boolean or 0 and 1; by type as well.
    """
    scores, truth = _joined(scores, truth)
    true = _checked(scores, truth)
    positives, negatives = int(true.sum()), int((~true).sum())
    if not positives or not negatives:
        raise ValueError(
            f"AUC needs true and false items (got {positives} true and {negatives} false); leave this instance out"
        )
    return float((_ranks(scores)[true].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def _joined(*values: ByNode) -> list[Tensor]:
    """Numbers by type as one tensor each, the types in the order of the first."""
    types = list(values[0]) if isinstance(values[0], Mapping) else []
    if any(isinstance(v, Mapping) != bool(types) or (types and set(v) != set(types)) for v in values):
        raise ValueError(f"numbers of nodes are either all tensors or all by the same types ({types})")
    return [torch.cat([v[kind] for kind in types], -1) if isinstance(v, Mapping) else v for v in values]


def hop_controlled_auc(scores: Tensor, truth: Tensor, distance: Tensor) -> float:
    """AUC among nodes at the same distance from the explained one, so that distance alone scores exactly one half.

    Of all pairs of a true and a false node at the same distance, the share that is in the right order, a tie counting
    one half. Motifs are near the nodes that they explain, and plain AUC rewards every method that prefers near nodes.

    Args:
        scores: [N], higher means more likely true.
        truth: [N], boolean or 0 and 1.
        distance: [N], hops to the explained node.
    """
    true = _checked(scores, truth)
    right, pairs = 0.0, 0
    for hops in distance.unique().tolist():
        ring = distance == hops
        here = int(true[ring].sum()) * int((~true[ring]).sum())
        if here:
            right += here * auc(scores[ring], true[ring])
            pairs += here
    if not pairs:
        raise ValueError("no distance has both true and false nodes; leave this instance out")
    return right / pairs


def _checked(scores: Tensor, truth: Tensor) -> Tensor:
    if scores.shape != truth.shape or scores.dim() != 1:
        raise ValueError(f"scores and truth are vectors of one length (got {list(scores.shape)}, {list(truth.shape)})")
    if scores.isnan().any():
        raise ValueError("scores hold NaN, which has no rank")
    return truth.bool()


def _ranks(scores: Tensor) -> Tensor:
    """Ranks from 1; tied items share the mean of their ranks."""
    ordered = scores.sort().values
    below, upto = torch.searchsorted(ordered, scores), torch.searchsorted(ordered, scores, right=True)
    return (below + 1 + upto).double() / 2


@dataclass(frozen=True)
class Average:
    """A measure of several instances: the values of those that have one, and how many have none."""

    values: tuple[float, ...]
    """Of the instances that have one."""
    skipped: int
    """How many have none."""

    @property
    def mean(self) -> float:
        """The mean over instances, NaN if there is none."""
        return float(torch.tensor(self.values, dtype=torch.float64).mean())


def average(measure: Callable[..., float], items: Iterable[tuple[Tensor, ...]]) -> Average:
    """A measure such as `auc` per instance; instances that it refuses, as those of one class only, are skipped."""
    values, skipped = [], 0
    for item in items:
        try:
            values.append(measure(*item))
        except ValueError as error:
            if "leave this instance out" not in str(error):
                raise
            skipped += 1
    return Average(tuple(values), skipped)


def node_truth(instance: Instance, motif: Tensor, index: int) -> tuple[Tensor, Tensor]:
    """The nodes that compete, ``[n]``, and which of them are true: those of the explained node's motif.

    Args:
        instance: of the prediction of node `index`.
        motif: [N], the number of each node's motif.
        index: the explained node, which competes as well.
    """
    return instance.field, motif[instance.field] == motif[index]


@dataclass(frozen=True)
class Fidelity:
    """What happens to a prediction without a group of nodes (plus) and with nothing else (minus).

    Of a class: how much its probability falls, and whether the predicted class changes (0 or 1). Of a regression: by
    how much the number changes, up or down, in its own unit.
    """

    plus: float
    """How much the probability falls, or the number changes, without the group."""
    minus: float
    """How much it falls or changes with nothing else."""
    plus_changed: float | None
    """1 if the predicted class changes without the group, else 0; None of a regression."""
    minus_changed: float | None
    """1 if it changes with nothing else, else 0; None of a regression."""
    scale: float = 1.0
    """What counts as a whole: 1 for probabilities, for a regression the change when all nodes are taken away."""

    @property
    def characterisation(self) -> float:
        """The harmonic mean of fidelity⁺ and 1 − fidelity⁻, both in units of `scale` (PyG's); 0 if one is ≤ 0."""
        if isnan(self.scale):  # without any node some models predict nothing
            return nan
        if not self.scale:
            return 0.0
        plus, minus = min(self.plus / self.scale, 1.0), self.minus / self.scale
        if plus <= 0 or minus >= 1:
            return 0.0
        return float(characterization_score(torch.tensor(plus), torch.tensor(minus)))


def fidelity(instance: Instance | Removal, group: ByNode, *, way: Way = "zero", task: Task | None = None) -> Fidelity:
    """fidelity⁺ and fidelity⁻ of a group of nodes.

    PyG's own `fidelity` is the changed classes of this for a node mask; it gives no probabilities, and it refuses
    regressions and graphs with types of nodes.

    Args:
        instance: the prediction; a `Removal` for graphs with types of nodes and for the other ways.
        group: [N], true for the nodes of the group; by type for a graph with several.
        way: how nodes are taken away; an `Instance` knows ``"zero"`` only: features set to 0 and edges kept.
        task: what outputs are, as for `Removal`, which knows its own.
    """
    rows, task = _taken(instance, group, way, task)
    whole, without, alone, nothing = _measured(instance, rows, task).tolist()
    if task == "regression":
        return Fidelity(abs(whole - without), abs(whole - alone), None, None, abs(whole - nothing))
    best = _decided(instance, rows, task)
    changed = (best[1:3] != best[0]).double().tolist()
    return Fidelity(whole - without, whole - alone, *changed)


def _task(one: Instance | Removal, task: Task | None = None) -> Task:
    return one.task if isinstance(one, Removal) else checked_task(task, one.prediction[None], one.operations)


def _measured(one: Instance | Removal, rows: Tensor, task: Task) -> Tensor:
    return one.measured(rows) if isinstance(one, Removal) else one.measured(rows, task)


def _decided(one: Instance | Removal, rows: Tensor, task: Task) -> Tensor:
    """The class ``[K]`` that outputs ``[K, C]`` decide for; of a yes or no whether it is yes."""
    if task == "regression":
        raise ValueError("a number has no class that could stay the same; give tolerance=… for a regression")
    return rows.argmax(-1) if task == "classification" else _measured(one, rows, task) > 0.5


def _taken(one: Instance | Removal, group: ByNode, way: Way, task: Task | None) -> tuple[Tensor, Task]:
    """The outputs ``[4, C]`` of the whole, without the group, with it alone and with nothing; and the task."""
    if isinstance(one, Removal):
        if task not in (None, one.task):
            raise ValueError(f"the Removal is one of {one.task} (got task={task!r})")
        inside = one.flat(group).bool()
    else:
        if way != "zero" or isinstance(group, Mapping):
            raise ValueError('an Instance sets features to zero, way="zero", of one type of nodes; make a Removal')
        inside = one.here(group.bool())
    chosen = _task(one, task)
    masks = [torch.ones_like(inside), ~inside, inside, torch.zeros_like(inside)]
    if isinstance(one, Instance):
        return one.masked(torch.stack(masks)), chosen
    if way != "nodes" or one.level != "graph":
        return one.predictions(torch.stack(masks), way), chosen
    rows = one.predictions(torch.stack(masks[:3]), way)  # a graph without any node has no prediction
    return torch.cat([rows, torch.full_like(rows[:1], torch.nan)]), chosen


def top_nodes(scores: ByNode, sparsities: Sequence[float]) -> Tensor:
    """Masks ``[S, N]`` of the best nodes, for each share of them that is kept; at least one, ties by index.

    Of scores by type all nodes compete, numbered one type after another.
    """
    [scores] = _joined(scores)
    if bad := [share for share in sparsities if not 0 < share <= 1]:
        raise ValueError(f"sparsity is the share of nodes that is kept, above 0 and up to 1 (got {bad})")
    order = torch.argsort(scores, descending=True, stable=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device)
    sizes = torch.tensor([max(1, round(share * len(scores))) for share in sparsities], device=order.device)
    return place.unsqueeze(0) < sizes.unsqueeze(1)


def acc_against_sparsity(
    instances: Sequence[Instance | Removal],
    masks: Sequence[Tensor],
    *,
    draws: int | None = None,
    max_nodes: int | None = None,
    seed: int = 0,
    tolerance: float | None = None,
) -> list[float]:
    """The share of graphs whose prediction stays the same with the features of all but some nodes set to 0.

    The paper's ACC; sparsity there is the share of nodes that is *kept*. A class stays the same or not; the number of a
    regression may change by the tolerance.

    Args:
        instances: predictions of graphs; a `Removal` for graphs with types of nodes.
        masks: for each, ``[S, N]``: the nodes kept at each of S sparsities, as from `top_nodes`.
        draws: how many graphs to draw with replacement, as the authors do (1,000); by default each counts once.
        max_nodes: leave out larger graphs, as the authors do (200).
        seed: of the draws.
        tolerance: for regressions, which it marks: by how much a number may change and still count as the same.
    """
    chosen = [i for i, one in enumerate(instances) if max_nodes is None or one.num_nodes <= max_nodes]
    if not chosen:
        raise ValueError("no graphs to measure")
    hits = torch.stack([_unchanged(instances[i], masks[i], tolerance) for i in chosen])
    if draws is not None:
        hits = hits[torch.randint(len(hits), (draws,), generator=torch.Generator().manual_seed(seed))]
    means: list[float] = hits.double().mean(0).tolist()
    return means


def _unchanged(one: Instance | Removal, masks: Tensor, tolerance: float | None) -> Tensor:
    rows = one.predictions(masks) if isinstance(one, Removal) else one.masked(one.here(masks))
    if tolerance is not None:
        return (rows[:, one.target] - one.prediction[one.target]).abs() <= tolerance
    best = _decided(one, torch.cat([one.prediction[None], rows]), _task(one))
    return best[1:] == best[0]


@dataclass(frozen=True)
class Stability:
    """How alike the scores of several runs are, as means over all pairs of runs."""

    correlation: float
    """Spearman's, of the ranks; 1 for equal order."""
    overlap: float
    """Of the k best: the size of the intersection by that of the union."""


def stability(scores: ByNode, k: int = 5) -> Stability:
    """Compare the scores ``[S, N]`` of one prediction under S seeds; by type for a graph with several."""
    [scores] = _joined(scores)
    if scores.dim() != 2 or len(scores) < 2:
        raise ValueError(f"stability compares two or more rows of scores (got {list(scores.shape)})")
    ranks = torch.stack([_ranks(row) for row in scores])
    ranks = ranks - ranks.mean(1, keepdim=True)
    best = [set(torch.argsort(row, descending=True, stable=True)[:k].tolist()) for row in scores]
    pairs = list(combinations(range(len(scores)), 2))
    likeness = [_cosine(ranks[i], ranks[j]) for i, j in pairs]
    overlap = [len(best[i] & best[j]) / len(best[i] | best[j]) for i, j in pairs]
    return Stability(sum(likeness) / len(pairs), sum(overlap) / len(pairs))


def _cosine(one: Tensor, other: Tensor) -> float:
    """Scores without any order are alike only to each other."""
    size = float(one.norm() * other.norm())
    return float(one @ other) / size if size else float(torch.equal(one, other))
