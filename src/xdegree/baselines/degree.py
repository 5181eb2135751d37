"""xdegree's own readings behind the same interface, so that tables compare like with like."""

from collections.abc import Callable

import torch
from torch import Tensor

from ..attribution.explain import explain
from ..attribution.scores import EdgeScores, Reading
from ..engine.options import Contexts, Options
from ..subgraphs.contextual import contextual_scores
from .instance import Instance
from .interface import Method, Scores, of_nodes


def degree(
    reading: Reading = "contribution",
    edge_scores: EdgeScores | None = None,
    absolute: bool = False,
    options: Options | None = None,
) -> Method:
    """What `xdegree.explain` says.

    Args:
        reading: ``"contribution"`` (logit), ``"probability"`` (the paper's) or ``"strength"``.
        edge_scores: score edges as well, by the ``"pair"`` or the ``"mean"`` of their ends.
        absolute: rank by magnitude.
        options: choices among rules; `Options()` by default.
    """
    size: Callable[[Tensor], Tensor] = torch.abs if absolute else lambda scores: scores

    def method(one: Instance) -> Scores:
        index = one.row if one.level == "node" else None
        with torch.no_grad():
            e = explain(
                one.model,
                one.x,
                one.edge_index,
                index=index,
                target=one.target,
                reading=reading,
                edge_scores=edge_scores,
                options=options,
                model_kwargs=one.kwargs,
            )
        of_edges = None if e.edge_scores is None else one.of_edges(size(e.edge_scores))
        return Scores(of_nodes(one, size(e.node_scores)).node, of_edges)

    return method


def contextual(contexts: Contexts | None = None, seed: int = 0, options: Options | None = None) -> Method:
    """The contextual score φ of single nodes."""

    def method(one: Instance) -> Scores:
        places = one.local_field.tolist()
        scores = one.x.new_zeros(len(one.x))
        found = contextual_scores(
            one.model,
            one.x,
            one.edge_index,
            groups=[[node] for node in places],
            index=one.row if one.level == "node" else None,
            target=one.target,
            contexts=contexts,
            seed=seed,
            options=options,
            **one.kwargs,
        )
        scores[places] = found.to(scores)
        return of_nodes(one, scores)

    return method
