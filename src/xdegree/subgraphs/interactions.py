"""What two groups do together that neither does alone."""

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from ..attribution.scores import Reading
from ..engine.options import Options
from ..engine.process_state import Memory
from ..locality.prepared import Model, PreparedCall
from ..model_call.call import short
from ..results.subgraph import Chosen
from .choice import Choice
from .contextual import listed
from .games import Contributions


def interaction(
    model: Model,
    *args: Any,
    a: Iterable[int],
    b: Iterable[int],
    of: Chosen = "node",
    index: int | None = None,
    target: int | None = None,
    reading: Reading = "contribution",
    output: Any = None,
    start: Any = None,
    layer: str | None = None,
    baseline: Any = "zero",
    steps: int = 1,
    options: Options | None = None,
    memory: Memory = None,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> float:
    """What two groups do together beyond what each does alone: f^D(a ∪ b) − f^D(a) − f^D(b).

    Args:
        model: a PyG model or any callable that computes with PyTorch, or what `prepare` returned.
        *args: the model's arguments, node features first, or a PyG ``Data`` in their place.
        a: ids of nodes, or of edges: columns of ``edge_index``, both directions of an undirected edge.
        b: more of them, none that is in a.
        of: what the groups are made of, ``"node"`` or ``"edge"``: the messages that travel along edges.
        index: the node (or, in a batch, the graph) that is explained.
        target: the class that is explained; the predicted one by default.
        reading: what f^D is, as in `explain`.
        output: which part of the output is explained, as in `explain`.
        start: where the rows of nodes are, as in `explain`.
        layer: where the strength is read, as in `explain`.
        baseline: what features are measured from, as in `decompose`.
        steps: in how many steps the way from the baseline is split, as in `decompose`.
        options: choices among rules; `Options()` by default.
        memory: budget for the portions, as in `decompose`.
        model_kwargs: keyword arguments of the model whose names are taken by this function.
        **kwargs: all other keyword arguments of the model.
    """
    if of not in get_args(Chosen):
        raise ValueError(f"of must be one of {get_args(Chosen)} (got {of!r})")
    prepared = PreparedCall.of(model, args, {**kwargs, **(model_kwargs or {})}, start=start).of_part(output)
    choice = Choice.of(prepared, of, index, target, reading, layer, options, memory, baseline, steps, directed=True)
    first, second = choice.bits(a := listed(a, "a"), "a"), choice.bits(b := listed(b, "b"), "b")
    if both := sorted(set(a) & set(b)):
        raise ValueError(f"a and b must have no {of} in common (got {short(both)} in both)")
    f = Contributions(choice.reader, choice.units).scores([first, second, first | second])
    return f[2] - f[0] - f[1]
