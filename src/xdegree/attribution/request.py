"""What the user wants to know of predictions, and the answer in the form that the user gets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..engine.options import Options
from ..locality.message_flow import Outline
from ..model_call.call import ModelCall
from ..model_call.edges import find_edges
from ..model_call.memory import Memory
from ..model_call.outputs import Level, check_target, plain_number
from ..model_call.split_points import Of
from ..results import Explanations
from .scores import Edges, PairScores, Reader, Reading

Classes = int | Sequence[int] | Tensor | None
"""The class that is explained: one for all rows, one for each, or None for the predicted ones."""


@dataclass(frozen=True)
class Question:
    """The arguments of `explain`, and of those that grow groups, that are about the answer, not about the model."""

    target: Classes = None
    reading: Reading = "contribution"
    edges: Edges | None = None
    of: Of = "node"
    start: str | None = None
    layer: str | None = None
    options: Options = field(default_factory=Options)
    memory: Memory = None

    @property
    def is_plain(self) -> bool:
        """Whether single nodes are scored, and nothing else."""
        return self.of == "node" and self.edges is None and self.start is None

    def targets(self, rows: int) -> list[Any]:
        """What the user said of the class of each of the explained rows."""
        target = plain_number(self.target)
        if isinstance(target, str) or not isinstance(target, Iterable):
            return [target] * rows
        each = [plain_number(one) for one in target]
        if len(each) != rows:
            raise ValueError(
                f"target names {len(each)} classes, but {rows} predictions are explained; name one class for all, or a"
                " list with one for each"
            )
        return each

    def classes(self, predictions: Tensor, targets: Sequence[Any] | None = None) -> list[int]:
        """The class of each prediction that is explained; where these are not all of them, with their own `targets`."""
        targets = self.targets(len(predictions)) if targets is None else targets
        return [check_target(target, prediction) for target, prediction in zip(targets, predictions, strict=True)]

    def reader(self, rows: Tensor, classes: list[int], seen: Outline, level: Level) -> Reader:
        """How portions are read."""
        place = torch.tensor(classes, device=rows.device)
        return Reader(self.reading, rows, place, self.layer or seen.output_layer, self.options, level=level)


@dataclass(frozen=True)
class Answer:
    """Scores of nodes for some rows of the output, in the numbering of the whole graph."""

    rows: list[int]
    predictions: Tensor
    classes: list[int]
    pairs: PairScores
    fields: Sequence[Tensor]
    edge_scores: Tensor | None = None
    sampling_error: Tensor | None = None

    def explanations(self, call: ModelCall, question: Question, level: Level = "node") -> Explanations:
        """What the user gets."""
        return Explanations(
            predictions=self.predictions,
            targets=tuple(self.classes),
            explained=tuple(self.rows),
            num_nodes=len(call.x),
            fields=self.fields,
            row=self.pairs.row,
            node=self.pairs.node,
            scores=self.pairs.scores,
            class_scores=self.pairs.classes,
            edge_index=find_edges(call),
            edge_scores=self.edge_scores,
            sampling_error=self.sampling_error,
            reading=question.reading,
            edges=question.edges,
            options=question.options,
            level=level,
        )

    @classmethod
    def joined(cls, parts: "list[Answer]") -> "Answer":
        """The answers for some rows and for others."""
        if len(parts) == 1:
            return parts[0]
        starts = [sum(len(part.rows) for part in parts[:number]) for number in range(len(parts))]
        errors = [part.sampling_error for part in parts if part.sampling_error is not None]
        return cls(
            [row for part in parts for row in part.rows],
            torch.cat([part.predictions for part in parts]),
            [c for part in parts for c in part.classes],
            PairScores.joined([part.pairs for part in parts], starts),
            [field for part in parts for field in part.fields],
            sampling_error=torch.cat(errors) if errors else None,
        )
