"""One worker: it makes the model once, then explains part after part and tells what it is at."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from .settings import JobError, Settings
from .tables import counts, encoded
from .work import Outcome, Work, fingerprint, load


@dataclass(frozen=True)
class Task:
    """A part to explain."""

    part: int
    ids: tuple[int, ...]
    notes: Mapping[str, Any]
    """What its files are marked with."""
    alone: frozenset[int] = frozenset()
    """Batches, by their place in the part, whose instances go one by one: workers died of them."""
    skip: Mapping[int, str] = field(default_factory=dict)
    """Instances that are not tried again, and why."""


@dataclass(frozen=True)
class Ready:
    """The worker has its model."""


@dataclass(frozen=True)
class Broken:
    """The worker cannot work at all."""

    why: str


@dataclass(frozen=True)
class At:
    """What the worker is at: a batch by its place in the part, or an instance of it. If it dies, it died of that."""

    place: int
    index: int | None = None


@dataclass(frozen=True)
class Done:
    """A part, as files."""

    part: int
    files: Mapping[str, bytes]
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Failed:
    """A part that could not be explained for a reason that is not in its instances."""

    part: int
    why: str


@dataclass(frozen=True)
class Died:
    """The worker is gone; the others never say this of themselves."""

    how: str


Event = Ready | Broken | At | Done | Failed | Died


class Crew(Protocol):
    """Some workers, by their numbers: processes, or actors of Ray."""

    def hire(self, worker: int) -> None:
        """Start a worker, also in the place of one that died."""

    def give(self, worker: int, task: Task) -> None:
        """Let a worker that is ready explain a part."""

    def wait(self) -> list[tuple[int, Event]]:
        """What workers have to tell; waits until there is something."""

    def close(self) -> None:
        """End all workers, whatever they are at."""


class Worker:
    """The model and its data in one process, on one thread: more processes, not more threads, share the work."""

    def __init__(self) -> None:
        self.work: Work | None = None

    def start(self, settings: Settings, expected: Mapping[str, str]) -> Iterator[Event]:
        """Make the model by the user's own factory and see that it is the one that the job was started with."""
        torch.set_num_threads(1)
        try:
            self.work = load(settings)
        except JobError as error:
            yield Broken(str(error))
            return
        if other := differing(fingerprint(self.work), expected):
            yield Broken(
                f"{settings.factory} returns other {other} in each process; let it draw with a fixed seed, or load"
                " weights"
            )
            return
        yield Ready()

    def take(self, work: Work) -> Iterator[Event]:
        """Work with what is already made."""
        torch.set_num_threads(1)
        self.work = work
        yield Ready()

    def explain(self, task: Task) -> Iterator[Event]:
        """Explain a part in batches that the settings fix."""
        assert self.work is not None
        settings, outcomes = self.work.settings, list[Outcome]()
        try:
            for place in range(0, len(task.ids), settings.batch_size):
                batch = task.ids[place : place + settings.batch_size]
                if place not in task.alone:
                    yield At(place)
                    outcomes += self.work.explain(batch)
                    continue
                for index in batch:
                    yield At(place, index)
                    outcomes += [(index, task.skip[index])] if index in task.skip else self.work.explain([index])
            yield Done(task.part, encoded(outcomes, settings, dict(task.notes)), counts(outcomes))
        except OSError as error:
            yield Failed(task.part, f"{type(error).__name__}: {error}")


def differing(found: Mapping[str, str], expected: Mapping[str, str]) -> str:
    """What differs, in words; nothing if nothing does."""
    return " and ".join(name for name in expected if found.get(name) != expected[name])
