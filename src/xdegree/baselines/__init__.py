"""Other methods, and xdegree's own readings, behind one interface: an `Instance` in, `Scores` out.

```python
from xdegree.baselines import METHODS, explain_with, grad

scores = explain_with(grad("edge"), model, x, edge_index, index=5)
scores.node, scores.edges(edge_index)
```
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

from .degree import contextual, degree
from .eig_search import EdgeSet, eig_search, eig_subgraph
from .instance import Instance, instance
from .interface import Method, Scores
from .learned import gnn_explainer, pg_explainer
from .lrp import gnn_lrp
from .simple import attention, grad, grad_times_input, hop_distance, integrated_gradients, occlusion, random
from .subgraphx import Search, search, subgraphx

METHODS: dict[str, Callable[..., Method]] = {
    "random": random,
    "hop distance": hop_distance,
    "GRAD": grad,
    "gradient x input": grad_times_input,
    "attention": attention,
    "occlusion": occlusion,
    "integrated gradients": integrated_gradients,
    "|integrated gradients|": partial(integrated_gradients, reading="absolute"),
    "integrated gradients, norm over classes": partial(integrated_gradients, reading="norm"),
    "integrated gradients from the mean": partial(integrated_gradients, baseline="mean"),
    "GNNExplainer": gnn_explainer,
    "PGExplainer": pg_explainer,
    "GNN-LRP": gnn_lrp,
    "SubgraphX": subgraphx,
    "EiG-Search": eig_search,
    "DEGREE": degree,
    "DEGREE in context": contextual,
}
"""Each gives a method when called with its settings; PGExplainer's first is what it learns from."""


def explain_with(
    method: Method,
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor,
    *,
    index: int | None = None,
    target: int | None = None,
    **kwargs: Any,
) -> Scores:
    """Explain one prediction by a method; arguments as for `instance`, which several methods can share."""
    return method(instance(model, x, edge_index, index=index, target=target, **kwargs))


__all__ = [
    "METHODS",
    "Method",
    "Scores",
    "Instance",
    "instance",
    "explain_with",
    "random",
    "hop_distance",
    "grad",
    "grad_times_input",
    "attention",
    "occlusion",
    "integrated_gradients",
    "gnn_explainer",
    "pg_explainer",
    "gnn_lrp",
    "subgraphx",
    "Search",
    "search",
    "eig_search",
    "eig_subgraph",
    "EdgeSet",
    "degree",
    "contextual",
]
