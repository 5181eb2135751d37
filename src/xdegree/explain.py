"""Explain predictions: what each node, edge or feature contributes."""

import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, overload

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from .computation_graph import (
    Trace,
    Workplace,
    fields_of_rows,
    graphs_are_apart,
    last_outline,
    near,
    near_fields,
    trace,
    workplace,
)
from .decompose import decompose_at, whole_survey
from .edges import find_edge_index, find_edges
from .explanation import Explanation, Explanations, HeteroExplanation
from .focus import Focus, NeedsWhole, TooMuch
from .inputs import ModelCall, model_call, prepare, short
from .memory import Memory, budget
from .nearby import Nearby, is_large
from .neighbours import Sampling
from .options import Options
from .outputs import Level, Table, as_table, check_rows, check_rows_among, find_batch
from .question import Answer, Question
from .registry import MissingRuleError
from .scores import (
    Edges,
    ObjectScores,
    PairScores,
    Reader,
    Reading,
    check_choices,
    score_edges,
    score_entries,
    score_objects,
    score_pairs,
    score_typed_edges,
    score_typed_entries,
)
from .sources import Of, Source, find_source


# Type checkers know the answer by the features and the index; what PyG's untyped objects stand in for, they do not.
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
    target: int | None = None,
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
    target: int | None = None,
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
    target: int | None = None,
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
    target: int | None = None,
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
    target: int | None = None,
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
        target: the class (or the output of a regression) that is explained; the largest output by default.
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
    job = Job(model, call, seen, table, rows, question)
    with whole_survey(model, call, source):
        found = job.explanations()
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

    The pass itself tells whether the model still is what it was: a focus that leaves too much out is always noticed.
    """
    seen, x = last_outline(model), call.x
    plain = q.is_plain and q.reading != "strength" and level in (None, "node")
    plain = plain and call.get("batch", "edge_label_index") is None
    if seen is None or not plain or type(index) is not int or model in _WHOLE or not isinstance(x, Tensor):
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
    groups, focus = place.groups, Focus(place.distance, place.rounds, budget(q.memory, x.device))
    try:
        d = decompose_at(model, call, source, groups, rows, "", q.options, focus)
    except (NeedsWhole, TooMuch, MissingRuleError):
        return None
    table = as_table(d.total, call, level)
    if table.level != "node" or focus.left:
        return None
    predictions = table.values[rows]
    classes = q.classes(predictions)
    pairs = q.reader(rows, classes, seen, "node").read(d, place.work, groups.nodes)
    return Answer([index], predictions, classes, pairs, [place.work.field]).explanations(call, q)[0]


FEW = 1 / 4
"""The share of the rows up to which it pays to work on what matters for them only."""

_WHOLE: weakref.WeakSet[nn.Module] = weakref.WeakSet()
"""Models that were found to do more than pass messages. They are only spared the attempt; the answer is the same."""


@dataclass(frozen=True)
class Job:
    """What the user asked for, understood and checked."""

    model: Any
    call: ModelCall
    seen: Trace
    table: Table
    rows: list[int]
    question: Question

    @cached_property
    def classes(self) -> list[int]:
        """The class of each row that is explained."""
        return self.question.classes(self.table.values[self.rows])

    def explanations(self) -> Sequence[Any]:
        """One explanation for each row."""
        if self.question.of == "node" and not isinstance(self.call.x, Mapping):
            return self._of_nodes()
        work = self._workplace()
        reader = self.question.reader(work.rows, self.classes, self.seen, self.table.level)
        return self._of_typed_nodes(work, reader) if self.question.of == "node" else self._of_entries(work, reader)

    def _workplace(self) -> Workplace:
        rows = torch.tensor(self.rows, device=self.table.values.device)
        return workplace(self.model, self.call, self.seen, rows, self.table.level)

    def _of_nodes(self) -> Explanations:
        found = self._near() if self._is_for_few() else None
        if found is not None:
            return self._answer(*found)
        work = self._workplace()
        reader = self.question.reader(work.rows, self.classes, self.seen, self.table.level)
        apart, edge_index = self._graphs_apart(), find_edges(self.call)
        if apart is not None:
            scores = self._graph_by_graph(apart, reader)
        else:
            q = self.question
            scores = score_objects(self.model, work, reader, q.memory, q.edges, edge_index, q.start)
        fields = self._fields(work)
        if self.question.reading == "probability" and len(self.rows) > 1:
            scores = scores.inside(fields)
        return self._answer(PairScores.of_dense(scores.nodes, scores.classes), fields, scores.edges)

    def _answer(self, pairs: PairScores, fields: Sequence[Tensor], edge_scores: Tensor | None = None) -> Explanations:
        predictions = self.table.values[self.rows]
        answer = Answer(self.rows, predictions, self.classes, pairs, fields, edge_scores)
        return answer.explanations(self.call, self.question, self.table.level)

    def _is_for_few(self) -> bool:
        """Whether few enough rows are asked for, in the simplest way, to work on what matters for them only."""
        plain = self.question.is_plain and self.table.level != "graph"
        known = isinstance(self.model, nn.Module) and self.model in _WHOLE
        joint = self.question.reading == "probability" and len(self.rows) > 1
        return plain and not known and not joint and len(self.rows) <= max(1, FEW * len(self.table.values))

    def _near(self) -> tuple[PairScores, Sequence[Tensor]] | None:
        """Scores and fields from what lies near; None if the model does more than pass messages."""
        rows = torch.tensor(self.rows, device=self.table.values.device)
        place = near(self.call, self.seen, rows, self.table.level)
        if place is None:
            return None
        reader = self.question.reader(place.work.rows, self.classes, self.seen, self.table.level)
        try:
            pairs = score_pairs(self.model, place, reader, self.question.memory)
        except NeedsWhole:
            if isinstance(self.model, nn.Module):
                _WHOLE.add(self.model)
            return None
        except TooMuch:
            return None
        return pairs, [place.work.field] if len(self.rows) == 1 else near_fields(
            self.call, self.seen, self.rows, self.table.level
        )

    def _of_typed_nodes(self, work: Workplace, reader: Reader) -> list[Any]:
        q, edge_index = self.question, find_edges(self.call)
        scores = score_objects(self.model, work, reader, q.memory, q.edges, edge_index, q.start)
        return [
            HeteroExplanation(
                **self._common(number),
                node_scores={kind: s[number] for kind, s in scores.nodes.items()},
                edge_index=edge_index,
                edge_scores=None if scores.edges is None else {k: s[number] for k, s in scores.edges.items()},
            )
            for number in range(len(self.rows))
        ]

    def _common(self, number: int) -> dict[str, Any]:
        return {
            "prediction": self.table.values[self.rows[number]].clone(),
            "target": self.classes[number],
            "index": self.rows[number],
            "reading": self.question.reading,
            "of": self.question.of,
            "edges": self.question.edges,
            "options": self.question.options,
            "level": self._level(),
        }

    def _level(self) -> Level | None:
        """What the rows are, as far as it is known: with several types their number has to fit to one of them."""
        x, level = self.call.x, self.table.level
        fits = not isinstance(x, Mapping) or any(len(v) == len(self.table.values) for v in x.values())
        return level if fits or level == "edge" else None

    def _fields(self, work: Workplace) -> Sequence[Any]:
        """The nodes that can contribute to each of the rows."""
        if len(self.rows) == 1 or not isinstance(work.field, Tensor):
            return [work.field] * len(self.rows)
        return fields_of_rows(self.model, self.call, self.seen, self.rows, self.table.level)

    def _graphs_apart(self) -> Tensor | None:
        """The batch vector if several graphs are explained and none has a say in the prediction of another."""
        batch = find_batch(self.call)
        plain = self.table.level == "graph" and self.question.edges is None and self.question.start is None
        if not plain or len(self.rows) == 1 or batch is None or not isinstance(self.call.x, Tensor):
            return None
        return batch if graphs_are_apart(self.model, self.call, self.seen, batch) else None

    def _graph_by_graph(self, batch: Tensor, reader: Reader) -> ObjectScores:
        """The n-th nodes of all graphs share a group: as many groups as the largest graph has nodes."""
        n, rows = len(batch), torch.tensor(self.rows, device=batch.device)
        first = torch.searchsorted(batch, batch) if bool((batch.diff() >= 0).all()) else None
        nth = torch.arange(n, device=batch.device) - first if first is not None else _nth(batch)
        groups = torch.zeros(int(nth.max()) + 1, n, dtype=torch.bool, device=batch.device)
        groups[nth, torch.arange(n, device=batch.device)] = True
        source = find_source(self.model, self.call)
        scores, table = reader.by_row(self.model, self.call, source, groups, self.question.memory)
        own = batch.unsqueeze(0) == rows.unsqueeze(1)  # [rows, N]
        nodes = torch.where(own, scores.t()[:, nth], scores.new_zeros(()))
        if table is None:
            return ObjectScores(nodes)
        return ObjectScores(nodes, None, torch.where(own.unsqueeze(2), table.movedim(0, 1)[:, nth], 0.0))

    def _of_entries(self, work: Workplace, reader: Reader) -> list[Any]:
        """Scores of single features, edge features, or of the messages along single edges."""
        source = find_source(self.model, work.call, self.question.of, self.question.start)
        if not isinstance(work.field, Tensor):
            return self._of_typed_entries(work, reader, source)
        found: dict[str, Any]
        if self.question.of == "feature":
            inner = _here(work, work.field)
            scores = score_entries(self.model, work.call, reader, source, self.question.memory, inner)
            found = {"feature_scores": _spread(scores, work.nodes, len(self.call.x))}
        else:
            among = _edges_inside(find_edge_index(work.call), _here(work, work.field))
            total = find_edges(self.call).shape[1]
            if self.question.of == "edge":
                scores = score_edges(self.model, work.call, reader, source, self.question.memory, among)
                found = {"edge_scores": _spread(scores, work.edges, total)}
            else:
                scores = score_entries(self.model, work.call, reader, source, self.question.memory, among)
                found = {"edge_feature_scores": _spread(scores, work.edges, total)}
        fields = self._fields(work)
        return [
            Explanation(
                **self._common(number),
                num_nodes=len(self.call.x),
                nodes=fields[number],
                edge_index=find_edges(self.call),
                **{name: value[number] for name, value in found.items()},
            )
            for number in range(len(self.rows))
        ]

    def _of_typed_entries(self, work: Workplace, reader: Reader, source: Source) -> list[Any]:
        """The same for several types."""
        score = score_typed_edges if self.question.of == "edge" else score_typed_entries
        scores = score(self.model, work.call, reader, source, self.question.memory)
        found: list[dict[str, Any]] = [
            {f"{self.question.of}_scores": {kind: s[number] for kind, s in scores.items()}}
            for number in range(len(self.rows))
        ]
        edge_index = find_edges(self.call)
        return [HeteroExplanation(**self._common(n), edge_index=edge_index, **scored) for n, scored in enumerate(found)]


def _nth(batch: Tensor) -> Tensor:
    """The number of each node within its graph."""
    one_hot = torch.nn.functional.one_hot(batch)
    return (one_hot.cumsum(0) * one_hot).sum(1) - 1


def _here(work: Workplace, ids: Tensor) -> Tensor:
    """Nodes as the workplace numbers them."""
    return ids if work.nodes is None else torch.searchsorted(work.nodes, ids)


def _edges_inside(edge_index: Tensor | None, nodes: Tensor) -> Tensor:
    """The edges whose end points are both among some nodes."""
    if edge_index is None:
        raise ValueError("edges are scored, but no edge_index [2, E] is among the model's arguments")
    return torch.isin(edge_index, nodes).all(0).nonzero().flatten()


def _spread(scores: Tensor, own: Tensor | None, size: int) -> Tensor:
    """Scores ``[rows, here, …]`` in the numbering of the whole graph; what was cut away has 0."""
    if own is None:
        return scores
    out = scores.new_zeros(len(scores), size, *scores.shape[2:])
    out[:, own] = scores
    return out


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
