"""Workers as actors of Ray, on a cluster that is there or on one of this machine."""

import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..factories import UsageError, find_factory
from .settings import JobError, Settings
from .shared_tensors import packed, unpacked
from .work import Work, importable
from .worker import Broken, Died, Event, Failed, Task, Worker


def ray() -> Any:
    """The package, or a clear error."""
    try:
        import ray
    except ImportError as error:
        raise ImportError('engine="ray" needs Ray: pip install "xdegree[ray]"') from error
    return ray


class Actors:
    """Actors that take model and data from Ray's object store, where they are put once for all of them.

    Actors of one machine share the data there, without copies.

    Parts come back to this process and are written by it, so that the machines need no common disk.
    """

    def __init__(self, work: Work) -> None:
        self.ray = ray()
        self.ours = not self.ray.is_initialized()
        if self.ours:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            try:
                self.ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
            except Exception as error:
                raise JobError(f"Ray cannot be started or reached: {type(error).__name__}: {error}") from error
        self.settings, self.model = work.settings, self.ray.put(work.model)
        self.data = self.ray.put(packed(replace(work, model=None), self.ray.cloudpickle.Pickler))
        # No restarts by Ray: a worker that died is replaced by us, who know what it died of.
        self.kind = self.ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Actor)
        self.actors: dict[int, Any] = {}
        self.streams: dict[int, Any] = {}

    def hire(self, worker: int) -> None:
        """Start an actor; if the cluster has no room for it yet, it starts when there is."""
        self.actors[worker] = self.kind.remote()
        # In a list, so that Ray does not unpack them before the user's module is imported.
        self._stream(worker, "start", self.settings, [self.model, self.data])

    def give(self, worker: int, task: Task) -> None:
        """Let an actor explain a part."""
        self._stream(worker, "explain", task)

    def _stream(self, worker: int, method: str, *args: Any) -> None:
        self.streams[worker] = getattr(self.actors[worker], method).options(num_returns="streaming").remote(*args)

    def wait(self) -> list[tuple[int, Event]]:
        """The next message of the actors that have any."""
        workers = {stream: worker for worker, stream in self.streams.items()}
        ready, _ = self.ray.wait(list(workers), num_returns=1)
        heard = [(workers[stream], self._heard(workers[stream], stream)) for stream in ready]
        return [(worker, event) for worker, event in heard if event is not None]

    def _heard(self, worker: int, stream: Any) -> Event | None:
        """None where a stream has come to its end."""
        try:
            event: Event = self.ray.get(next(stream))
        except StopIteration:
            del self.streams[worker]
            return None
        except self.ray.exceptions.RayError as error:
            del self.streams[worker], self.actors[worker]
            return Died(str(error).strip().splitlines()[0])
        return event

    def close(self) -> None:
        """End our actors, and Ray if we started it."""
        for actor in self.actors.values():
            self.ray.kill(actor)
        self.actors.clear()
        self.streams.clear()
        if self.ours:
            self.ray.shutdown()


class _Actor:
    """A worker as Ray knows it."""

    def __init__(self) -> None:
        self.worker = Worker()

    def start(self, settings: Settings, stored: list[Any]) -> Iterator[Event]:
        """Import the user's module, which may also register rules, and take what the object store holds."""
        try:
            with importable(settings.folder):
                find_factory(settings.factory)
                model, data = ray().get(stored)
                # What we packed ourselves a moment ago, nothing that a user hands us.
                work: Work = replace(unpacked(data, pickle.Unpickler), model=model)
        except UsageError as error:
            yield Broken(f"a worker of Ray cannot import the model: {error}; its machine needs the same code")
            return
        yield from self.worker.take(work)

    def explain(self, task: Task) -> Iterator[Event]:
        """Explain a part."""
        try:
            yield from self.worker.explain(task)
        except Exception as error:  # noqa: BLE001 (a fault of ours must not look like a dead worker)
            yield Failed(task.part, f"{type(error).__name__}: {error}")
