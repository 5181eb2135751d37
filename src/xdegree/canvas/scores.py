"""What a view reads off a result: scores of nodes and of edges, and the unit they are measured in."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from ..results.explanation import Explanation
from ..results.explanations import Explanations
from ..results.hetero import HeteroExplanation
from ..results.tree import Level
from .base import Canvas, Edge, edge_of
from .colours import signed_colour

ScoresLike = Explanation | Tensor | Sequence[float]
"""What views draw: a result, or one number per node."""


def node_scores(scores: ScoresLike) -> list[float]:
    """One number per node: its own score, else the sum over its features, else 0 where only edges were scored."""
    found: Tensor
    if isinstance(scores, Explanation):
        if scores.node_scores is not None:
            found = scores.node_scores
        elif scores.feature_scores is not None:
            found = scores.feature_scores.flatten(1).sum(1)
        else:
            found = torch.zeros(scores.num_nodes)
    else:
        if not isinstance(scores, Tensor | Sequence | np.ndarray) or isinstance(scores, Explanations):
            raise TypeError(f"scores must be an xdegree.Explanation or one number per node (got {described(scores)})")
        found = torch.as_tensor(scores)
    if found.dim() != 1 or not found.isfinite().all():
        raise ValueError(f"node_scores holds one finite number per node (got shape {list(found.shape)})")
    values: list[float] = found.tolist()
    return values


def described(result: object) -> str:
    """What was given in place of an explanation, and how to get one from it."""
    advice = ""
    if isinstance(result, Explanations):
        advice = "; take one of them, as found[0]"
    if isinstance(result, HeteroExplanation):
        advice = "; its to_homogeneous() is one"
    return type(result).__name__ + advice


def edge_scores(
    scores: ScoresLike, edge_index: Tensor | None = None, given: Tensor | Mapping[Edge, float] | None = None
) -> dict[Edge, float]:
    """One number per edge, whatever its direction; empty where edges were not scored.

    The messages along both directions of an edge add up. Scores by end points are the same in both directions, and so
    are numbers from elsewhere, as a rule: their mean is taken.
    """
    if isinstance(given, Mapping):
        return {edge_of(u, v): float(score) for (u, v), score in given.items()}
    adds_up = False
    if given is None and isinstance(scores, Explanation):
        given, edge_index, adds_up = scores.edge_scores, scores.edge_index, scores.of == "edge"
    if given is None:
        return {}
    if edge_index is None or given.shape != edge_index.shape[1:] or not given.isfinite().all():
        raise ValueError(f"edge_scores holds one finite number per edge (got shape {list(given.shape)})")
    sums: dict[Edge, list[float]] = {}
    for (u, v), score in zip(edge_index.T.tolist(), given.tolist(), strict=True):
        if u != v:
            sums.setdefault(edge_of(u, v), []).append(score)
    return {edge: sum(found) / (1 if adds_up else len(found)) for edge, found in sums.items()}


def explained_node(e: Explanation) -> int | None:
    """The explained node; of a file that does not say its level, if its computation graph is a part and holds it."""
    if e.level is not None:
        return e.index if e.level == "node" else None
    inside = len(e.nodes) < e.num_nodes and e.index in set(e.nodes.tolist())
    return e.index if inside else None


def level_colours(canvas: Canvas, level: Level, most: float) -> tuple[dict[int, str], dict[Edge, str]]:
    """The colour of each node that is in a group, and of each edge within one."""
    nodes = {node: signed_colour(group.score, most) for group in level for node in group.nodes if node in canvas.places}
    number = {node: n for n, group in enumerate(level) for node in group.nodes}
    edges = {(u, v): nodes[u] for u, v in canvas.paths if u in nodes and number[u] == number.get(v)}
    return nodes, edges


def largest(scores: Iterable[float]) -> float:
    """The largest magnitude, the end of the scale of colours; 1 where there is nothing but zeros."""
    values = [abs(score) for score in scores]
    if not all(map(math.isfinite, values)):
        raise ValueError("scores that are not finite have no colour: look at the numbers with to_dataframe()")
    return max(values, default=0.0) or 1.0


def signed_text(score: float, most: float = 0.0) -> str:
    """A score as text; one that is nothing beside the largest is rounding and is not spelled out."""
    return "≈ 0" if abs(score) < 1e-4 * most else f"{score:+.3g}".replace("-", "\N{MINUS SIGN}")
