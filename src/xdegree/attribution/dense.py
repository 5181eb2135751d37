"""Answers from passes that ask about all groups at once: graphs, many rows, edges, features, several types."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ..locality.parts import Place
from ..locality.prepared import BEYOND
from ..model_call.call import find_batch, find_edge_index, find_edges
from ..results.explanation import Explanation
from ..results.explanations import Explanations, HeteroExplanations
from ..results.hetero import HeteroExplanation
from .explain import Answer, Part
from .objects import (
    ObjectScores,
    of_dense,
    score_edges,
    score_entries,
    score_objects,
    score_typed_edges,
    score_typed_entries,
)
from .scores import Reader


@dataclass(frozen=True)
class DenseAnswer(Answer):
    """An answer for which messages are not followed: what no group contributes to is shown, not known."""

    def of_all_nodes(self) -> Part:
        """All rows from one pass over all nodes that can contribute."""
        question, prepared = self.question, self.prepared
        apart = self._apart
        place = prepared.proven_place(self.tensor(self.rows), self.level)
        reader = question.reader(prepared, place, self.classes, self.level)
        if apart is not None:
            scores = self._graph_by_graph(apart, reader)
        else:
            scores = score_objects(reader, question.edge_scores, find_edges(prepared.call))
        return Part(
            self.rows,
            self.table.values[self.rows],
            self.classes,
            of_dense(scores),
            self._fields(place),
            place.scope,
            scores.edges,
            baseline=self.baseline(reader),
        )

    def _fields(self, place: Place) -> Sequence[Any]:
        """The nodes that can contribute to each of the rows."""
        if len(self.rows) == 1 or not isinstance(place.field, Tensor) or place.scope == BEYOND:
            return [place.field] * len(self.rows)
        if self.level == "graph":
            batch = self._apart
            each = None if batch is None else [(batch == row).nonzero().flatten() for row in self.rows]
            return each or [place.field] * len(self.rows)
        if place.distance is None:
            return [place.field] * len(self.rows)
        # That no other nodes contribute is shown for one row that messages leave something out of.
        fields = self.balls(self.rows)
        number = next((i for i, field in enumerate(fields) if len(field) < place.num_nodes), None)
        if number is None or self.prepared.is_closed(fields[number], self.tensor([self.rows[number]]), self.level):
            return fields
        return [place.field] * len(self.rows)

    @cached_property
    def _apart(self) -> Tensor | None:
        """Which graph each node belongs to, where several are asked about and none affects another; else None."""
        batch = find_batch(self.prepared.call)
        plain = self.level == "graph" and self.question.edge_scores is None
        if not plain or len(self.rows) == 1 or batch is None:
            return None
        # Two graphs differ in at least one bit of their numbers: if none affects one that has another value there, for
        # no bit, each stands for itself.
        graphs = torch.arange(int(batch.max()) + 1, device=batch.device)
        for bit in range(max(1, (len(graphs) - 1).bit_length())):
            for value in (0, 1):
                same, nodes = ((ids >> bit & 1 == value).nonzero().flatten() for ids in (graphs, batch))
                if len(same) and not self.prepared.is_closed(nodes, same, self.level):
                    return None
        return batch

    def _graph_by_graph(self, batch: Tensor, reader: Reader) -> ObjectScores:
        """The n-th nodes of all graphs share a group: as many groups as the largest graph has nodes."""
        rows = self.tensor(self.rows)
        order = torch.argsort(batch, stable=True)
        first = torch.searchsorted(batch[order], batch)
        nth = torch.empty_like(batch)
        nth[order] = torch.arange(len(batch), device=batch.device)
        nth -= first
        groups = torch.zeros(int(nth.max()) + 1, len(batch), dtype=torch.bool, device=batch.device)
        groups[nth, torch.arange(len(batch), device=batch.device)] = True
        found = reader.by_row(reader.source(), groups)
        scores, table = found.scores, found.classes
        own = batch.unsqueeze(0) == rows.unsqueeze(1)  # [rows, N]
        nodes = torch.where(own, scores.t()[:, nth], scores.new_zeros(()))
        each = None if table is None else torch.where(own.unsqueeze(2), table.movedim(0, 1)[:, nth], 0.0)
        return ObjectScores(nodes, None, each, found.logits, found.products)

    def of_entries(self) -> Sequence[Any]:
        """Scores of features, edge features, messages along edges; and all that is scored in a graph with types."""
        question, prepared = self.question, self.prepared
        if self.sampling is not None or prepared.trust:
            raise ValueError(
                "num_neighbors and trust_neighborhood are for explanations by nodes, of a graph with one type of them"
            )
        place = prepared.proven_place(self.tensor(self.rows), self.level)
        reader = question.reader(prepared, place, self.classes, self.level)
        typed = not isinstance(place.field, Tensor)
        scores = self._typed_scores(reader) if typed else self._entry_scores(reader)
        logits, base = self._logits(reader), self.baseline(reader)
        edge_index = find_edges(prepared.call)
        fields = None if typed else self._fields(place)
        found: list[Any] = []
        for number, row in enumerate(self.rows):
            common = {
                **self.common(),
                "prediction": self.table.values[row].clone(),
                "target": self.classes[number],
                "index": row,
                "of": question.of,
                "scope": place.scope,
                "edge_index": edge_index,
                "logits": None if logits is None else logits[number],
                "baseline_output": None if base is None else base[number],
                **scores(number),
            }
            if fields is None:
                found.append(HeteroExplanation(**common))
            else:
                found.append(Explanation(**common, num_nodes=place.num_nodes, nodes=fields[number]))
        return HeteroExplanations(found) if typed else Explanations(found)

    def _logits(self, reader: Reader) -> Tensor | None:
        """What is explained, where the model ends with a softmax or sigmoid and that is left out."""
        return reader.before_the_end(self.table.values[self.rows], self.question.of)

    def _entry_scores(self, reader: Reader) -> Callable[[int], dict[str, Any]]:
        place, of = reader.place, self.question.of
        source = reader.source(of)
        among, own, size = place.here(place.field), place.nodes, place.num_nodes
        if of != "feature":
            edges = find_edge_index(self.prepared.call)
            if edges is None:
                raise ValueError("edges are scored, but no edge_index [2, E] is among the model's arguments")
            inside = torch.isin(find_edge_index(place.call), among).all(0)  # type: ignore[arg-type]
            among, own, size = inside.nonzero().flatten(), place.edges, edges.shape[1]
        if of != "edge":
            scores = _spread(score_entries(reader, source, among), own, size)
            return lambda number: {f"{of}_scores": scores[number]}
        single, classes = score_edges(reader, source, among)
        each = _spread(single, own, size)
        table = None if classes is None else _spread(classes, own, size)
        return lambda n: {"edge_scores": each[n], "class_scores": None if table is None else table[n]}

    def _typed_scores(self, reader: Reader) -> Callable[[int], dict[str, Any]]:
        q, of = self.question, self.question.of
        if of == "node":
            objects = score_objects(reader, q.edge_scores, find_edges(self.prepared.call))
            return lambda number: {
                "products": tuple(sorted(objects.products)),
                "node_scores": {kind: s[number] for kind, s in objects.nodes.items()},
                "edge_scores": None if objects.edges is None else {k: s[number] for k, s in objects.edges.items()},
            }
        score = score_typed_edges if of == "edge" else score_typed_entries
        scores = score(reader, reader.source(of))
        return lambda number: {f"{of}_scores": {kind: s[number] for kind, s in scores.items()}}


def _spread(scores: Tensor, own: Tensor | None, size: int) -> Tensor:
    """Scores ``[rows, here, …]`` in the numbering of the whole graph; what was cut away has 0."""
    if own is None:
        return scores
    out = scores.new_zeros(len(scores), size, *scores.shape[2:])
    out[:, own] = scores
    return out
