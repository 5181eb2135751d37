"""Ask many questions about one call of a model: it runs once, plain, and its edges are indexed once."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor

from .attribution.decompose import decompose
from .attribution.decomposition import Decomposition
from .attribution.explain import explain
from .locality.prepared import PreparedCall
from .results.subgraph import Subgraph
from .results.tree import ExplanationTree, Level
from .subgraphs.agglomerate import agglomerate, agglomerate_levels
from .subgraphs.contextual import contextual_scores
from .subgraphs.interactions import interaction
from .subgraphs.pick import pick_subgraph


class Prepared(PreparedCall):
    """A call of a model that is ready for questions.

    The methods take the arguments of the functions of the same names, without the model and its arguments. When the
    model, the features or the edges were changed in between, in whatever way, they raise a `StaleError`.
    """

    def explain(self, **question: Any) -> Any:
        """`xdegree.explain`."""
        return explain(self, **question)

    def decompose(self, **question: Any) -> Decomposition:
        """`xdegree.decompose`."""
        return decompose(self, **question)

    def agglomerate(self, **question: Any) -> ExplanationTree:
        """`xdegree.agglomerate`."""
        return agglomerate(self, **question)

    def agglomerate_levels(self, **question: Any) -> Iterator[Level]:
        """`xdegree.agglomerate_levels`."""
        return agglomerate_levels(self, **question)

    def contextual_scores(self, **question: Any) -> Tensor:
        """`xdegree.contextual_scores`."""
        return contextual_scores(self, **question)

    def interaction(self, **question: Any) -> float:
        """`xdegree.interaction`."""
        return interaction(self, **question)

    def pick_subgraph(self, **question: Any) -> Subgraph:
        """`xdegree.pick_subgraph`."""
        return pick_subgraph(self, **question)


def prepare(
    model: Callable[..., Any],
    *args: Any,
    trust_neighborhood: bool = False,
    start: Any = None,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Prepared:
    """Make the plain pass and the index of edges once, for many questions about the same call.

    Args:
        model: a PyG model or any callable that computes with PyTorch.
        *args: the model's arguments, node features first, or a PyG ``Data`` or stores in their place, as in `explain`.
        trust_neighborhood: for graphs too large for one plain pass, as in `explain`.
        start: where the rows of nodes are, as in `explain`.
        model_kwargs: keyword arguments of the model whose names are taken by this function.
        **kwargs: all other keyword arguments of the model.
    """
    prepared = Prepared.of(model, args, {**kwargs, **(model_kwargs or {})}, trust_neighborhood, start)
    assert isinstance(prepared, Prepared)
    prepared.remember()
    return prepared
