"""Explain predictions: what each node, edge or feature contributes."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from ..engine.options import Options
from ..engine.registry import MissingRuleError
from ..engine.sparse_rows import ActiveRows, NeedsWhole, TooMuch
from ..locality.computation_graph import near
from ..locality.message_flow import last_outline, trace
from ..locality.neighbours import Sampling
from ..model_call.call import ModelCall, model_call, prepare, short
from ..model_call.memory import Memory, budget
from ..model_call.outputs import Level, as_table, check_rows, check_rows_among
from ..model_call.split_points import Of, Source, find_source
from ..results import Explanation, Explanations, HeteroExplanation
from .decompose import decompose_at, whole_survey
from .nearby import Nearby, is_large
from .request import Answer, Classes, Question
from .scores import Edges, Reading, check_choices
from .whole import NEED_WHOLE, Whole


# Type checkers know the answer by the features and the index; what PyG's untyped objects stand in for, they do not.
# Each lists the most used arguments again: what only stood in **kwargs would be neither checked nor offered.
@overload
def explain(
    model: Callable[..., Any],
    x: Tensor,
    *args: Any,
    index: int | None = None,
    target: int | None = None,
    of: Of = "node",
    reading: Reading = "contribution",
    edges: Edges | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> Explanation: ...


@overload
def explain(
    model: Callable[..., Any],
    x: Tensor,
    *args: Any,
    index: Sequence[int] | Literal["all"],
    target: Classes = None,
    of: Literal["node"] = "node",
    reading: Reading = "contribution",
    edges: Edges | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> Explanations: ...


@overload
def explain(
    model: Callable[..., Any],
    x: Tensor,
    *args: Any,
    index: Sequence[int] | Literal["all"],
    target: Classes = None,
    of: Literal["edge", "feature", "edge_feature"],
    reading: Reading = "contribution",
    edges: Edges | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> list[Explanation]: ...


@overload
def explain(
    model: Callable[..., Any],
    x: Mapping[str, Tensor],
    *args: Any,
    index: int | None = None,
    target: int | None = None,
    of: Of = "node",
    reading: Reading = "contribution",
    edges: Edges | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> HeteroExplanation: ...


@overload
def explain(
    model: Callable[..., Any],
    x: Mapping[str, Tensor],
    *args: Any,
    index: Sequence[int] | Literal["all"],
    target: Classes = None,
    of: Of = "node",
    reading: Reading = "contribution",
    edges: Edges | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> list[HeteroExplanation]: ...


@overload
def explain(
    model: Callable[..., Any],
    *args: Any,
    index: Any = None,
    target: Classes = None,
    of: Of = "node",
    reading: Reading = "contribution",
    edges: Edges | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> Any: ...


def explain(
    model: Callable[..., Any],
    *args: Any,
    index: Any = None,
    target: Classes = None,
    of: Of = "node",
    reading: Reading = "contribution",
    edges: Edges | None = None,
    level: Level | None = None,
    output: Any = None,
    start: str | None = None,
    layer: str | None = None,
    options: Options | None = None,
    memory: Memory = None,
    neighbours: int | None = None,
    seed: int = 0,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Say what each node (or edge, or feature) contributes to a prediction.

    For the prediction of a node or a link only its computation graph is worked on; outside of it scores are
    exactly 0. For the prediction of a graph all its nodes are scored. Of a large graph (2¹⁶ nodes and edges) nothing
    else is even looked at if the model passes messages and no more; its edges are indexed in the first call, which the
    next ones profit from as long as they are given the same tensor.

    Args:
        model: a PyG model or any callable that computes with PyTorch.
        *args: the model's arguments, node features first, or a PyG ``Data``, ``HeteroData`` or ``Batch`` instead.
        index: the node, link or graph that is explained, by its row in the output. A list, or ``"all"``, gives a
            sequence of explanations, one each, from shared work. A ``Batch`` without index gives one explanation per
            graph, in the numbering of that graph.
        target: the class (or the output of a regression) that is explained; the largest output by default. For several
            rows one for all, or a list or tensor with one for each.
        of: what is scored: every ``"node"``; every ``"edge"``, by the messages that travel along it in all layers;
            every single ``"feature"`` of every node; every ``"edge_feature"`` in ``edge_attr`` or ``edge_weight``.
        reading: ``"contribution"``, signed and in units of the model's output; ``"probability"``, the share of the
            class probability by the paper's softmax rule; ``"strength"``, how much arrives in the last hidden
            representation, without sign.
        edges: with nodes, score edges by their end points too: the ``"pair"`` as one group (as the authors' code
            does) or the ``"mean"`` of the two scores (as the paper says).
        level: what the rows of the output are, ``"node"``, ``"edge"`` (links, by ``edge_label_index``) or ``"graph"``;
            told by their number by default.
        output: which part of the output is explained, for models that return several, as a dict by node type.
        start: for models of whole numbers: the module, as an embedding, behind which portions start.
        layer: where ``"strength"`` is read, as a probe of `decompose`; found automatically by default.
        options: choices among rules; the paper's by default.
        memory: budget for the portions, as in `decompose`.
        neighbours: for hubs: of more neighbours than that a node hears only some, drawn evenly. The scores are those of
            the sampled graph; ``sampling_error`` says by how much its output differs from the model's own.
        seed: of the neighbours that are drawn.
        model_kwargs: keyword arguments of the model whose names are taken by this function.
        **kwargs: all other keyword arguments of the model.

    Returns:
        An `Explanation`, or a `HeteroExplanation` for several types of nodes. For several rows, a list of them; where
        nodes of one type are scored it is an `Explanations`, a sequence that is stored as a sparse matrix.
    """
    check_choices(reading, edges, memory)
    call = replace(model_call(model, args, {**kwargs, **(model_kwargs or {})}), part=output)
    prepare(model, call)
    question = Question(target, reading, edges, of, start, layer, Options.of(options), memory)
    _check_layer(model, layer)
    sampling = None if neighbours is None else _sampling(neighbours, seed)
    nearby = _nearby(model, call, index, level, question, sampling)
    if nearby is not None:
        return nearby
    if sampling is not None:
        raise ValueError(
            "neighbours are sampled for single nodes of a graph, by a model that passes messages along edge_index and"
            " looks at nothing else; this is another question or another model"
        )
    source = find_source(model, call, of, start)
    quick = _quickly(model, call, index, level, question, source)
    if quick is not None:
        return quick
    seen = trace(model, call)
    table = as_table(seen.output, call, level)
    batched = bool(args) and isinstance(args[0], Batch) and table.level == "graph"
    rows, single = check_rows("all" if batched and index is None else index, table)
    with whole_survey(model, call, source):
        found = Whole(model, call, seen, table, rows, question).explanations()
    if table.level == "edge" and _looks_one_sided(found, question):
        warnings.warn(_ONE_SIDED, stacklevel=2)
    if batched and index is None:
        return [_local(e, args[0]) for e in found]
    return found[0] if single else found


def _check_layer(model: Any, layer: str | None) -> None:
    if layer is None:
        return
    known = [name for name, _ in model.named_modules() if name] if isinstance(model, nn.Module) else []
    if str(layer).removesuffix(":input") not in known:
        raise ValueError(f"layer names {layer!r}, but the model's modules are {short(known)}")


def _sampling(neighbours: Any, seed: Any) -> Sampling:
    for name, value, least in (("neighbours", neighbours, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least} (got {value!r})")
    return Sampling(neighbours, seed)


_ONE_SIDED = (
    "most nodes that can contribute to this link have exactly 0. If the model multiplies what arrives at its two ends"
    " (a dot product), a node that reaches only one of them contributes nothing by the paper's rule; with"
    ' options=Options(product="share") it contributes half of the mixed terms'
)


def _looks_one_sided(found: Sequence[Any], q: Question) -> bool:
    """Whether a link seems to be predicted by a product of which most nodes have only one factor."""
    if q.of != "node" or q.reading != "contribution" or q.options.product != "target":
        return False
    e = found[0]
    if isinstance(e, HeteroExplanation):
        scores = torch.cat([s.flatten() for s in e.scores.values()])
    else:
        scores = e.scores[e.nodes]
    return bool(e.prediction[e.target]) and int((scores == 0).sum()) > len(scores) // 2


def _nearby(
    model: Any, call: ModelCall, index: Any, level: Level | None, question: Question, sampling: Sampling | None
) -> Any:
    """Nodes of a large graph from their neighbourhoods alone; None if that is not all that the model looks at."""
    if index is None or not (sampling is not None or is_large(call)):
        return None
    found = Nearby.of(model, call, level, question, sampling)
    if found is None:
        return None
    rows, single = check_rows_among(index, len(call.x), "node")
    answer = found.answer(rows)
    if answer is None:
        return None
    explanations = answer.explanations(call, question)
    return explanations[0] if single else explanations


def _quickly(model: Any, call: ModelCall, index: Any, level: Level | None, q: Question, source: Source) -> Any:
    """One node from a single pass, by what is known of the model from an earlier call; None if that does not fit.

    The pass itself tells whether the model still is what it was: a active that leaves too much out is always noticed.
    """
    seen, x = last_outline(model), call.x
    plain = q.is_plain and q.reading != "strength" and level in (None, "node")
    plain = plain and call.get("batch", "edge_label_index") is None
    if seen is None or not plain or type(index) is not int or model in NEED_WHOLE or not isinstance(x, Tensor):
        return None
    if x.dim() < 2 or not 0 <= index < len(x):
        return None
    rows = torch.tensor([index], device=x.device)
    try:
        place = near(call, seen, rows, "node")
    except IndexError:  # edges to nodes that do not exist: the model itself will say so
        return None
    if place is None:
        return None
    groups, active = place.groups, ActiveRows(place.distance, place.rounds, budget(q.memory, x.device))
    try:
        d = decompose_at(model, call, source, groups, rows, "", q.options, active)
    except (NeedsWhole, TooMuch, MissingRuleError):
        return None
    table = as_table(d.total, call, level)
    if table.level != "node" or active.left:
        return None
    predictions = table.values[rows]
    classes = q.classes(predictions)
    pairs = q.reader(rows, classes, seen, "node").read(d, place.work, groups.nodes)
    return Answer([index], predictions, classes, pairs, [place.work.field]).explanations(call, q)[0]


def _local(e: Explanation, batch: Any) -> Explanation:
    """The explanation of one graph of a batch in the numbering of that graph, as if it had been explained alone."""
    low, high = (int(batch.ptr[e.index + i]) for i in (0, 1))
    inside = None if e.edge_index is None else ((e.edge_index >= low) & (e.edge_index < high)).all(0)

    def nodes(value: Tensor | None) -> Tensor | None:
        return None if value is None else value[low:high]

    def edges(value: Tensor | None) -> Tensor | None:
        return None if value is None else value[inside]

    return replace(
        e,
        index=0,
        num_nodes=high - low,
        nodes=torch.arange(high - low, device=e.nodes.device),
        node_scores=nodes(e.node_scores),
        class_scores=nodes(e.class_scores),
        feature_scores=nodes(e.feature_scores),
        edge_index=None if e.edge_index is None else e.edge_index[:, inside] - low,
        edge_scores=edges(e.edge_scores),
        edge_feature_scores=edges(e.edge_feature_scores),
    )
