"""The measures of an audit: curves, robust fidelity, infidelity."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..metrics import stability
from ..removal import Removal, Way
from .result import Measures

SHARES = (0.1, 0.2, 0.3, 0.5, 0.7)
"""Of the nodes that compete, how many the curves keep or drop."""
ROBUST_SHARE = 0.3
"""Of the nodes that compete, how many are the explanation whose robust fidelity is measured."""
ALPHA = 0.1
"""The chance of each node to be removed, in robust fidelity: of the explanation for ⁺, of the rest for ⁻."""


@dataclass(frozen=True)
class Trial:
    """What all methods are measured on: the prediction, the nodes that compete, and random draws that they share."""

    away: Removal
    field: Tensor
    """The nodes that compete, by number."""
    groups: Tensor
    """Random groups ``[M, N]`` for infidelity, of nodes that every way can take away."""
    draws: Tensor
    """Uniform numbers ``[T, N]`` for robust fidelity."""

    @classmethod
    def of(cls, away: Removal, field: Tensor, samples: int, generator: torch.Generator) -> "Trial":
        """Draw what is random."""
        n, spared = away.num_nodes, torch.tensor(_spared(away), dtype=torch.long)
        inner = field[~torch.isin(field, spared)] if len(field) > len(spared) else field
        size = len(inner)
        groups = torch.zeros(samples, n, dtype=torch.bool)
        for number in range(samples):
            share = 0.1 + 0.4 * float(torch.rand((), generator=generator))
            chosen = torch.randperm(size, generator=generator)[: max(1, round(share * size))]
            groups[number, inner[chosen]] = True
        return cls(away, field, groups, torch.rand(samples, n, generator=generator))

    def ranked(self, scores: Tensor, way: Way) -> Tensor:
        """The nodes that compete, best first; of a regression by magnitude, as its number may go either way."""
        field = self.field
        if way in ("edges", "nodes"):
            field = field[~torch.isin(field, torch.tensor(_spared(self.away), dtype=torch.long))]
        value = scores[field].abs() if self.away.task == "regression" else scores[field]
        return field[torch.argsort(value, descending=True, stable=True)]

    def kept(self, nodes: Tensor) -> Tensor:
        """All nodes but those that compete, and these ones."""
        mask = torch.ones(self.away.num_nodes, dtype=torch.bool)
        mask[self.field] = False
        mask[nodes] = True
        return mask

    def dropped(self, nodes: Tensor) -> Tensor:
        """All nodes but these."""
        mask = torch.ones(self.away.num_nodes, dtype=torch.bool)
        mask[nodes] = False
        return mask

    def values(self, masks: list[Tensor], way: Way) -> Tensor:
        """What is measured ``[K]``; NaN for a graph of which no node is left."""
        found = torch.full((len(masks),), torch.nan, dtype=torch.float64)
        empty = way == "nodes" and self.away.level == "graph"
        some = [i for i, mask in enumerate(masks) if not empty or bool(mask.any())]
        if some:
            found[some] = self.away.values(torch.stack([masks[i] for i in some]), way).double().cpu()
        return found

    def fall(self, values: Tensor) -> Tensor:
        """How much what is measured falls, or of a regression changes."""
        fall = self.away.whole - values
        return fall.abs() if self.away.task == "regression" else fall


def _spared(away: Removal) -> list[int]:
    """The nodes that cannot be cut or removed, where they are known."""
    try:
        return away.explained_nodes
    except ValueError:
        return []


def blank(trial: Trial, way: Way) -> float:
    """What is measured of a graph of which all that competes is taken away."""
    return float(trial.values([trial.kept(trial.field[:0])], way)[0])


def measures(trial: Trial, scores: Tensor, group_scores: Tensor, signed: bool, way: Way) -> Measures:
    """All measures of one method's scores under one way of taking away."""
    order = trial.ranked(scores, way)
    best = [order[: max(1, round(share * len(order)))] for share in SHARES]
    keep = trial.values([trial.kept(nodes) for nodes in best], way)
    drop = trial.values([trial.dropped(nodes) for nodes in best], way)
    infidelity, correlation = _against_removal(trial, group_scores, signed, way)
    return Measures(
        keep=tuple(keep.tolist()),
        drop=tuple(drop.tolist()),
        fidelity=float((trial.fall(drop) - trial.fall(keep)).nanmean()),
        robust=_robust(trial, order, way),
        infidelity=infidelity,
        correlation=correlation,
    )


def _robust(trial: Trial, order: Tensor, way: Way) -> float:
    """Robust fidelity⁺ − fidelity⁻ (Zheng et al., 2024): a few nodes at a time, so that graphs stay like themselves."""
    size = max(1, round(ROBUST_SHARE * len(order)))
    plus, minus = [], []
    for draw in trial.draws:
        plus.append(trial.dropped(order[:size][draw[order[:size]] < ALPHA]))
        minus.append(trial.dropped(order[size:][draw[order[size:]] < ALPHA]))
    falls = trial.fall(trial.values([*plus, *minus], way))
    return float(falls[: len(plus)].nanmean() - falls[len(plus) :].nanmean())


def _against_removal(trial: Trial, scores: Tensor, signed: bool, way: Way) -> tuple[float, float]:
    """Infidelity (Yeh et al., 2019) of groups' scores, at their best scale, and their rank correlation.

    Both against how much the explained output itself falls without each group.
    """
    away, masks = trial.away, ~trial.groups
    if way == "nodes" and away.level == "graph":
        masks[~masks.any(1), trial.field[0]] = True
    falls = (away.prediction[away.target] - away.predictions(masks, way)[:, away.target]).double().cpu()
    falls = falls if signed else falls.abs()
    scores = scores.double().cpu()
    size = float(scores.norm() * falls.norm())
    cosine = max(0.0, float(scores @ falls) / size) if size else 0.0
    return 1 - cosine**2, rank_correlation(scores, falls)


def rank_correlation(one: Tensor, other: Tensor) -> float:
    """Spearman's; 0 where one side has no order and the other has."""
    return stability(torch.stack([one, other]), k=1).correlation
