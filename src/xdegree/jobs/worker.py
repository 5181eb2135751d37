"""One worker: it makes the model once, then explains part after part and tells what it is at."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import psutil
import torch

from .answers import Outcome
from .identity import Identity, differences
from .settings import JobError, Settings
from .tables import counts, encoded
from .work import Work, load


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
    """What the worker is at: a batch by its place in the part, or an instance of it. If it dies, it died of that.

    A place behind the last batch means that everything is explained and the files are being made.
    """

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

    def wait(self, seconds: float) -> list[tuple[int, Event]]:
        """What workers have to tell; waits until there is something, or so long."""

    def end(self, worker: int) -> None:
        """End a worker, whatever it is doing; no more events come from it."""

    def close(self) -> None:
        """End all workers, whatever they are at."""


class Worker:
    """The model and its data in one process, on one thread: more processes, not more threads, share the work."""

    def __init__(self, memory: int | None = None) -> None:
        self.work: Work | None = None
        self.memory = memory

    def load(self, settings: Settings) -> Identity | Broken:
        """Make the model by the user's own factory."""
        torch.set_num_threads(1)
        try:
            limit_memory(self.memory)
            self.work, found = load(settings)
        except JobError as error:
            return Broken(str(error))
        return found

    def take(self, work: Work) -> Event:
        """Work with what is already made."""
        torch.set_num_threads(1)
        self.work = work
        try:
            limit_memory(self.memory)
        except JobError as error:
            return Broken(str(error))
        return Ready()

    def explain(self, task: Task) -> Iterator[Event]:
        """Explain a part in batches that the settings fix."""
        assert self.work is not None
        settings, outcomes = self.work.settings, list[Outcome]()
        for place in range(0, len(task.ids), settings.batch_size):
            batch = task.ids[place : place + settings.batch_size]
            if place not in task.alone:
                yield At(place)
                outcomes += self.work.explain(batch)
                continue
            for index in batch:
                yield At(place, index)
                outcomes += [(index, task.skip[index])] if index in task.skip else self.work.explain([index])
        yield At(len(task.ids))
        try:
            done = Done(task.part, encoded(outcomes, settings, dict(task.notes)), counts(outcomes))
        except Exception as error:  # noqa: BLE001 (a fault of ours must not look like a dead worker)
            yield Failed(task.part, f"{type(error).__name__}: {error}")
            return
        yield done


def compared(found: Identity | Broken, expected: Identity, factory: str) -> Event:
    """Whether a worker made the model that the job was started with."""
    if isinstance(found, Broken):
        return found
    if other := differences(found, expected):
        return Broken(
            f"{factory} returns other {other} in each process; let it draw with a fixed seed, or load weights"
        )
    return Ready()


def limit_memory(most: int | None) -> None:
    """Let allocations beyond a limit fail, as an exception that costs one instance, instead of filling the machine.

    The limit is on data (`RLIMIT_DATA`), not on addresses: PyTorch reserves many more of those than it uses.
    """
    if most is None:
        return
    try:
        import resource
    except ImportError:  # Windows
        return
    used = psutil.Process().memory_info().data
    if used >= most:
        raise JobError(
            f"memory={most} bytes is less than what a worker takes with Python and PyTorch alone ({used} bytes);"
            " allow more, or leave it out"
        )
    resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))
