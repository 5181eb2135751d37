"""Rows of the output, explained after the model was run once on all that it was given."""

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from ..engine.sparse_rows import NeedsWhole, TooMuch
from ..locality.computation_graph import fields_of_rows, graphs_are_apart, near, near_fields, workplace
from ..locality.message_flow import Trace
from ..locality.subgraph_call import Workplace
from ..model_call.call import ModelCall
from ..model_call.edges import find_edge_index, find_edges
from ..model_call.outputs import Level, Table, find_batch
from ..model_call.split_points import Source, find_source
from ..results import Explanation, Explanations, HeteroExplanation
from .request import Answer, Question
from .scores import (
    ObjectScores,
    PairScores,
    Reader,
    score_edges,
    score_entries,
    score_objects,
    score_pairs,
    score_typed_edges,
    score_typed_entries,
)

FEW = 1 / 4
"""The share of the rows up to which it pays to work on what matters for them only."""

NEED_WHOLE: weakref.WeakSet[nn.Module] = weakref.WeakSet()
"""Models that were found to do more than pass messages. They are only spared the attempt; the answer is the same."""


@dataclass(frozen=True)
class Whole:
    """A call of a model, what its plain forward pass showed, and what is asked of some rows of the output."""

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
        known = isinstance(self.model, nn.Module) and self.model in NEED_WHOLE
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
                NEED_WHOLE.add(self.model)
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
        q, edge_index = self.question, find_edges(self.call)
        source = find_source(self.model, work.call, q.of, q.start)
        if not isinstance(work.field, Tensor):
            return self._of_typed_entries(work, reader, source)
        among, own, size = _here(work, work.field), work.nodes, len(self.call.x)
        if q.of != "feature":
            among, own, size = _edges_inside(find_edge_index(work.call), among), work.edges, edge_index.shape[1]
        score = score_edges if q.of == "edge" else score_entries
        scores = _spread(score(self.model, work.call, reader, source, q.memory, among), own, size)
        fields, found = self._fields(work), [{f"{q.of}_scores": of_row} for of_row in scores]
        return [
            Explanation(
                **self._common(number),
                num_nodes=len(self.call.x),
                nodes=fields[number],
                edge_index=edge_index,
                **scored,
            )
            for number, scored in enumerate(found)
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
