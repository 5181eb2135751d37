"""Explain predictions: what each node, edge or feature contributes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch

from .computation_graph import Trace, Workplace, fields_of_rows, graphs_are_apart, trace, workplace
from .decompose import whole_survey
from .edges import find_edge_index, find_edges
from .explanation import Explanation, HeteroExplanation
from .inputs import ModelCall, model_call, prepare
from .memory import Memory
from .options import Options
from .outputs import Level, Table, as_table, check_rows, check_target, find_batch
from .scores import (
    Edges,
    ObjectScores,
    Reader,
    Reading,
    check_choices,
    score_edges,
    score_entries,
    score_objects,
    score_typed_edges,
    score_typed_entries,
)
from .sources import Of, Source, find_source


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
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Say what each node (or edge, or feature) contributes to a prediction.

    For the prediction of a node or a link only its computation graph is worked on; outside of it scores are
    exactly 0. For the prediction of a graph all its nodes are scored.

    Args:
        model: a PyG model or any callable that computes with PyTorch.
        *args: the model's arguments, node features first, or a PyG ``Data``, ``HeteroData`` or ``Batch`` instead.
        index: the node, link or graph that is explained, by its row in the output. A list, or ``"all"``, gives a list
            of explanations, one each, from shared work. A ``Batch`` without index gives one explanation per graph,
            in the numbering of that graph.
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
        model_kwargs: keyword arguments of the model whose names are taken by this function.
        **kwargs: all other keyword arguments of the model.

    Returns:
        An `Explanation`, a `HeteroExplanation` for several types of nodes, or a list of them.
    """
    check_choices(reading, edges, memory)
    call = replace(model_call(model, args, {**kwargs, **(model_kwargs or {})}), part=output)
    prepare(model, call)
    source = find_source(model, call, of, start)
    seen = trace(model, call)
    table = as_table(seen.output, call, level)
    batched = bool(args) and isinstance(args[0], Batch) and table.level == "graph"
    rows, single = check_rows("all" if batched and index is None else index, table)
    classes = [check_target(target, table.values[row]) for row in rows]
    job = Job(model, call, seen, table, rows, classes, reading, edges, of, start, layer, Options.of(options), memory)
    with whole_survey(model, call, source):
        found = job.explanations()
    if batched and index is None:
        return [_local(e, args[0]) for e in found]
    return found[0] if single else found


@dataclass(frozen=True)
class Job:
    """What the user asked for, understood and checked."""

    model: Any
    call: ModelCall
    seen: Trace
    table: Table
    rows: list[int]
    classes: list[int]
    reading: Reading
    edges: Edges | None
    of: Of
    start: str | None
    layer: str | None
    options: Options
    memory: Memory

    def explanations(self) -> list[Any]:
        """One explanation for each row."""
        work = workplace(self.model, self.call, self.seen, torch.tensor(self.rows), self.table.level)
        reader = Reader(
            self.reading,
            work.rows,
            torch.tensor(self.classes),
            self.layer or self.seen.output_layer,
            self.options,
            level=self.table.level,
        )
        if self.of == "node":
            return self._of_nodes(work, reader)
        return self._of_entries(work, reader)

    def _of_nodes(self, work: Workplace, reader: Reader) -> list[Any]:
        edge_index = find_edges(self.call)
        apart = self._graphs_apart()
        if apart is not None:
            scores = self._graph_by_graph(apart, reader)
        else:
            scores = score_objects(self.model, work, reader, self.memory, self.edges, edge_index, self.start)
        fields = self._fields(work)
        if isinstance(self.call.x, Mapping):
            return [
                HeteroExplanation(
                    **self._common(number),
                    node_scores={kind: s[number] for kind, s in scores.nodes.items()},
                    edge_index=edge_index,
                    edge_scores=None if scores.edges is None else {k: s[number] for k, s in scores.edges.items()},
                )
                for number in range(len(self.rows))
            ]
        return [
            Explanation(
                **self._common(number),
                num_nodes=len(self.call.x),
                node_scores=scores.nodes[number],
                class_scores=None if scores.classes is None else scores.classes[number],
                nodes=fields[number],
                edge_index=edge_index,
                edge_scores=None if scores.edges is None else scores.edges[number],
            )
            for number in range(len(self.rows))
        ]

    def _common(self, number: int) -> dict[str, Any]:
        return {
            "prediction": self.table.values[self.rows[number]].clone(),
            "target": self.classes[number],
            "index": self.rows[number],
            "reading": self.reading,
            "of": self.of,
            "edges": self.edges,
            "options": self.options,
        }

    def _fields(self, work: Workplace) -> list[Any]:
        """The nodes that can contribute to each of the rows."""
        if len(self.rows) == 1 or not isinstance(work.field, Tensor):
            return [work.field] * len(self.rows)
        return fields_of_rows(self.model, self.call, self.seen, self.rows, self.table.level)

    def _graphs_apart(self) -> Tensor | None:
        """The batch vector if several graphs are explained and none has a say in the prediction of another."""
        batch = find_batch(self.call)
        plain = self.table.level == "graph" and self.edges is None and len(self.rows) > 1 and self.start is None
        if not plain or batch is None or not isinstance(self.call.x, Tensor):
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
        scores, table = reader.by_row(self.model, self.call, source, groups, self.memory)
        own = batch.unsqueeze(0) == rows.unsqueeze(1)  # [rows, N]
        nodes = torch.where(own, scores.t()[:, nth], scores.new_zeros(()))
        if table is None:
            return ObjectScores(nodes)
        return ObjectScores(nodes, None, torch.where(own.unsqueeze(2), table.movedim(0, 1)[:, nth], 0.0))

    def _of_entries(self, work: Workplace, reader: Reader) -> list[Any]:
        """Scores of single features, edge features, or of the messages along single edges."""
        source = find_source(self.model, work.call, self.of, self.start)
        if not isinstance(work.field, Tensor):
            return self._of_typed_entries(work, reader, source)
        found: dict[str, Any]
        if self.of == "feature":
            inner = _here(work, work.field)
            scores = score_entries(self.model, work.call, reader, source, self.memory, inner)
            found = {"feature_scores": _spread(scores, work.nodes, len(self.call.x))}
        else:
            among = _edges_inside(find_edge_index(work.call), _here(work, work.field))
            total = find_edges(self.call).shape[1]
            if self.of == "edge":
                scores = score_edges(self.model, work.call, reader, source, self.memory, among)
                found = {"edge_scores": _spread(scores, work.edges, total)}
            else:
                scores = score_entries(self.model, work.call, reader, source, self.memory, among)
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
        score = score_typed_edges if self.of == "edge" else score_typed_entries
        scores = score(self.model, work.call, reader, source, self.memory)
        found: list[dict[str, Any]] = [
            {f"{self.of}_scores": {kind: s[number] for kind, s in scores.items()}} for number in range(len(self.rows))
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
