"""What a job is asked to do: everything that decides the answer, and nothing that does not."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

import torch

from ..attribution.scores import EdgeScores, Question, Reading
from ..engine.options import Options
from ..engine.process_state import Memory, budget
from ..factories import UsageError
from ..model_call.call import Level
from ..model_call.split_points import Of


class JobError(UsageError):
    """A job that cannot be started or resumed; the message says what to do."""


@dataclass(frozen=True)
class Settings:
    """The settings of a job. Engine, workers, timeout and memory limit are none: no score depends on them."""

    factory: str
    folder: str
    """Where the factory's module is looked for."""
    weights: str | None = None
    index: Literal["all"] | tuple[int, ...] = "all"
    part_size: int = 512
    batch_size: int = 64
    target: int | None = None
    of: Of = "node"
    reading: Reading = "contribution"
    edge_scores: EdgeScores | None = None
    level: Level | None = None
    start: str | None = None
    layer: str | None = None
    options: Options = field(default_factory=Options)
    portions: Memory = "1GB"
    """The budget for portions, `memory` in `explain`."""
    version: str | None = None
    """The user's own name for what the fingerprint cannot see."""

    def __post_init__(self) -> None:
        for name in ("part_size", "batch_size"):
            size = getattr(self, name)
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise JobError(f"{name} must be an integer, at least 1 (got {size!r})")
        if self.portions is None:
            # What is free differs from moment to moment, and with it would the last bits of the answer.
            raise JobError('portions must be a fixed budget for each worker, such as "1GB" (got None)')
        size_of(self.portions, "portions")
        try:
            Question(reading=self.reading, edge_scores=self.edge_scores, memory=self.portions)
            Options.of(self.options)
        except (ValueError, TypeError) as error:
            raise JobError(str(error)) from None
        if self.version is not None and not isinstance(self.version, str):
            raise JobError(f"version must be text, or None (got {self.version!r})")
        if self.of not in get_args(Of):
            raise JobError(f"of must be one of {get_args(Of)} (got {self.of!r})")
        if self.of != "node" and self.edge_scores is not None:
            raise JobError(
                f"edge_scores by end points go with nodes (got edge_scores={self.edge_scores!r} and of={self.of!r})"
            )
        if self.target is not None and (isinstance(self.target, bool) or not isinstance(self.target, int)):
            raise JobError(f"target must be an integer, the class, or None (got {self.target!r})")
        if self.index != "all":
            _check_index(self.index)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for the manifest."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        index = self.index if self.index == "all" else list(self.index)
        return {**plain, "index": index, "options": self.options.to_dict()}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Settings":
        """What `to_dict` gave."""
        index = plain["index"] if plain["index"] == "all" else tuple(plain["index"])
        return cls(**{**plain, "index": index, "options": Options.paper(**plain["options"])})

    def parts(self, instances: int) -> "Parts":
        """The parts of a job with so many instances to choose from; they do not depend on the workers."""
        ids = range(instances) if self.index == "all" else self.index
        if max(ids) >= instances:
            raise JobError(f"index {max(ids)} is out of range: there are the instances 0 to {instances - 1}")
        return Parts(ids, self.part_size)


@dataclass(frozen=True)
class Parts:
    """The instances that are explained, cut into parts: each becomes one file of every table."""

    ids: Sequence[int]
    size: int

    def __len__(self) -> int:
        return (len(self.ids) + self.size - 1) // self.size

    def __getitem__(self, part: int) -> tuple[int, ...]:
        return tuple(self.ids[part * self.size : (part + 1) * self.size])


def size_of(memory: Memory, name: str) -> int:
    """A size in bytes."""
    try:
        return budget(memory, torch.device("cpu"))
    except ValueError as error:
        raise JobError(str(error).replace("memory", name, 1)) from None


def digest(value: Any) -> str:
    """A short name for plain values, the same for the same values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _check_index(index: Any) -> None:
    if not isinstance(index, tuple) or not index:
        raise JobError(f'index must be "all" or a list of at least one integer (got {index!r})')
    for i in index:
        if isinstance(i, bool) or not isinstance(i, int) or i < 0:
            raise JobError(f"index must hold integers, at least 0 (got {i!r})")
    often = Counter(index).most_common(1)[0]
    if often[1] > 1:
        raise JobError(f"index holds {often[0]} {often[1]} times; every result is written once, name it once")
