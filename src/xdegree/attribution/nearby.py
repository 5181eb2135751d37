"""Nodes of a large graph, explained from their neighbourhoods alone: no step looks at the rest of the graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..engine.sparse_rows import NeedsWhole, TooMuch
from ..locality.computation_graph import Fields, Near, near_cut, tiny_outline
from ..locality.message_flow import Outline
from ..locality.neighbours import Sampling
from ..locality.subgraph_call import Cutter, margins
from ..model_call.call import ModelCall
from ..model_call.edges import find_edge_index
from ..model_call.memory import budget, plain_size
from ..model_call.outputs import Level
from ..model_call.shadow_model import run_plain
from .request import Answer, Question
from .scores import PairScores, score_objects, score_pairs

LARGE = 2**16
"""Nodes and edges from which on a graph is too large for a forward pass that explains a few of its nodes."""
AT_ONCE = 64
"""Nodes that are explained together, at most: enough that what they share pays, few enough to fit into caches."""


def is_large(call: ModelCall) -> bool:
    """Whether a forward pass over the whole graph is to be avoided."""
    edge_index = find_edge_index(call) if isinstance(call.x, Tensor) and call.x.dim() else None
    return edge_index is not None and len(call.x) + edge_index.shape[1] >= LARGE


@dataclass(frozen=True)
class Nearby:
    """A model that predicts the nodes of a graph from their neighbourhoods, as far as can be told before any work."""

    model: Any
    call: ModelCall
    question: Question
    seen: Outline
    cutter: Cutter
    sampling: Sampling | None

    @classmethod
    def of(
        cls, model: Any, call: ModelCall, level: Level | None, question: Question, sampling: Sampling | None
    ) -> "Nearby | None":
        """None where something else than single nodes is asked for, or the model predicts something else than nodes."""
        other = call.get("batch", "edge_label_index") is not None or level not in (None, "node")
        if other or not question.is_plain or not isinstance(call.x, Tensor) or call.x.dim() < 2:
            return None
        seen = tiny_outline(model, call)
        cutter = None if seen is None else Cutter.of(call, seen)
        return None if seen is None or cutter is None else cls(model, call, question, seen, cutter, sampling)

    def answer(self, rows: list[int]) -> Answer | None:
        """The scores for some nodes; None if the model looks at more than the messages that reach them."""
        asked = list(zip(rows, self.question.targets(len(rows)), strict=True))
        waiting, done = [asked[i : i + self._at_once] for i in range(0, len(rows), self._at_once)], []
        while waiting:
            some = waiting.pop(0)
            try:
                found = self._together(some)
            except TooMuch:
                if len(some) == 1:
                    raise
                waiting = [some[: len(some) // 2], some[len(some) // 2 :], *waiting]
                continue
            if found is None:
                return None
            done.append(found)
        return Answer.joined(done)

    @property
    def _at_once(self) -> int:
        return AT_ONCE if self.question.reading != "probability" else 1

    def _together(self, asked: list[tuple[int, Any]]) -> Answer | None:
        """The scores for some nodes, each with the class that the user named, from one pass."""
        rows, targets = [row for row, _ in asked], [target for _, target in asked]
        places = torch.tensor(rows, device=self.call.x.device)
        found = near_cut(self.model, self.cutter, places, self.sampling, lambda near: self._admit(near, len(rows)))
        if found is None:
            return None
        near, sampled = found
        predictions = sampled if self.sampling is None else self._full(places)
        classes = self.question.classes(predictions, targets)
        return Answer(
            rows,
            predictions,
            classes,
            self._scores(near, classes),
            self._fields(near, rows),
            sampling_error=None if self.sampling is None else sampled - predictions,
        )

    def _admit(self, call: ModelCall, rows: int) -> None:
        """Refuse to take several nodes at once if the plain pass alone would take half of the budget."""
        allowed = budget(self.question.memory, self.call.x.device) / 2
        wanted = plain_size(self.model, call)
        if rows > 1 and wanted > allowed:
            raise TooMuch(wanted / allowed)

    def _full(self, rows: Tensor) -> Tensor:
        """The predictions with all neighbours."""
        cut = self.cutter.directed(rows, margins(self.model, self.cutter.rounds)[0])
        work = self.cutter.workplace(cut, rows, None)
        out: Tensor = run_plain(self.model, work.call)[work.rows]
        return out.reshape(len(rows), -1)

    def _scores(self, near: Near, classes: list[int]) -> PairScores:
        reader = self.question.reader(near.work.rows, classes, self.seen, "node")
        try:
            return score_pairs(self.model, near, reader, self.question.memory)
        except NeedsWhole:
            if len(classes) > 1:
                raise TooMuch(len(classes)) from None  # one node after the other
            scores = score_objects(self.model, near.work, reader, self.question.memory, None, None)
            return PairScores.of_dense(scores.nodes, scores.classes)

    def _fields(self, near: Near, rows: list[int]) -> Sequence[Tensor]:
        if len(rows) == 1:
            return [near.work.field]
        return Fields(self.cutter.index, self.cutter.rounds, rows, None, self.sampling)
