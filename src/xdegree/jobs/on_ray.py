"""Workers as actors of Ray, on a cluster that is there or on one of this machine."""

import os
import pickle
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..factories import UsageError, find_factory
from .identity import Identity
from .settings import JobError, Settings
from .shared_tensors import packed, unpacked
from .work import Work, importable
from .worker import Broken, Died, Event, Task, Worker, compared

LOCAL_ONLY = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray's own switch for a cluster of one machine: switched off, all of its servers listen on 127.0.0.1 alone."""


LOOK, PATIENCE = 1.0, 10.0
"""Seconds after which the cluster is looked at, and that it has to answer."""


def ray() -> Any:
    """The package, or a clear error."""
    try:
        import ray
    except ImportError as error:
        raise ImportError('engine="ray" needs Ray: pip install "xdegree[ray]"') from error
    return ray


def connect(address: str | None) -> bool:
    """Connect to a cluster, or start one of this machine; whether that was needed."""
    there = ray()
    if there.is_initialized():
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    choices: dict[str, Any] = {"address": address}
    named = address or os.environ.get("RAY_ADDRESS")
    if named is None:  # "local": never a cluster that somebody else left running
        choices = {"address": "local", "include_dashboard": False}
        _listen_on_this_machine_only()
    elif re.fullmatch(r"[^/]+:\d+", named):  # Ray itself would try for minutes
        host, _, port = named.rpartition(":")
        _ask(f"the cluster that {named!r} names", host, int(port))
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        there.init(log_to_driver=False, logging_level="ERROR", **choices)
    except Exception as error:
        raise JobError(f"Ray cannot be started or reached: {type(error).__name__}: {error}") from error
    finally:
        if main:  # Ray would end the process at once
            signal.signal(signal.SIGTERM, before)
    return True


def _listen_on_this_machine_only() -> None:
    """`_node_ip_address` would not do: Ray replaces 127.0.0.1 by the machine's own address, and listens everywhere."""
    from ray._private import ray_constants

    os.environ.setdefault(LOCAL_ONLY, "0")  # for the processes that Ray starts
    ray_constants.ENABLE_RAY_CLUSTER = os.environ[LOCAL_ONLY] not in ("0", "false", "False")  # read when imported


def _ask(which: str, host: str, port: int) -> None:
    """Ask a server of Ray for a connection."""
    try:
        socket.create_connection((host.strip("[]"), port), PATIENCE).close()
    except OSError as error:
        raise JobError(
            f"Ray is gone: {which} at {host}:{port} does not answer ({error}). Finished parts are kept: resume the job"
            " when it is back, or with --engine local"
        ) from error


def _servers() -> dict[str, tuple[str, int]]:
    """What this process cannot do without: the head of the cluster, and the node that this process belongs to."""
    context = ray().get_runtime_context()
    host, _, port = context.gcs_address.rpartition(":")
    own = next(node for node in ray().nodes() if node["NodeID"] == context.get_node_id())
    return {
        "the head": (host, int(port)),
        "the node of this process": (own["NodeManagerAddress"], own["NodeManagerPort"]),
    }


class Actors:
    """Actors that take model and data from Ray's object store, where they are put once for all of them.

    Actors of one machine share the data there, without copies. Stores are opened by every actor itself, as the factory
    does it: they may be files, or servers.

    Parts come back to this process and are written by it, so that the machines need no common disk.
    """

    def __init__(self, work: Work, expected: Identity, memory: int | None = None, address: str | None = None) -> None:
        self.ray, self.ours = ray(), connect(address)
        self.settings, self.expected, self.memory, self.given = work.settings, expected, memory, list[Any]()
        if not work.is_stored:
            data = packed(replace(work, model=None), self.ray.cloudpickle.Pickler)
            # In a list, so that Ray does not unpack them before the user's module is imported.
            self.given = [self.ray.put(work.model), self.ray.put(data)]
        # No restarts by Ray: a worker that died is replaced by us, who know what it died of.
        size = {"memory": memory} if memory is not None else {}
        self.kind = self.ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0, **size)(_Actor)
        self.actors: dict[int, Any] = {}
        self.streams: dict[int, Any] = {}
        self.servers, self.seen, self.lost = _servers(), time.monotonic(), False

    def hire(self, worker: int) -> None:
        """Start an actor; if the cluster has no room for it yet, it starts when there is."""
        self.actors[worker] = self.kind.remote(self.memory)
        self._stream(worker, "start", self.settings, self.given, self.expected)

    def give(self, worker: int, task: Task) -> None:
        """Let an actor explain a part."""
        self._stream(worker, "explain", task)

    def _stream(self, worker: int, method: str, *args: Any) -> None:
        self.streams[worker] = getattr(self.actors[worker], method).options(num_returns="streaming").remote(*args)

    def wait(self, seconds: float) -> list[tuple[int, Event]]:
        """The next message of the actors that have any."""
        if time.monotonic() - self.seen > LOOK:
            self._look()
        workers = {stream: worker for worker, stream in self.streams.items()}
        if not workers:
            time.sleep(seconds)
            return []
        ready, _ = self.ray.wait(list(workers), num_returns=1, timeout=seconds)
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
            self._look()
            return Died(str(error).strip().splitlines()[0])
        return event

    def _look(self) -> None:
        """Stop while there is time: without its head, or the node of this process, Ray soon ends this process itself.

        They are asked for a connection, because Ray's own questions would wait for as long as that takes.
        """
        self.seen = time.monotonic()
        self.lost = True
        for which, (host, port) in self.servers.items():
            _ask(which, host, port)
        self.lost = False

    def end(self, worker: int) -> None:
        """Kill an actor."""
        self.streams.pop(worker, None)
        self.ray.kill(self.actors.pop(worker))

    def close(self) -> None:
        """End our actors, and Ray if we started it."""
        for worker in list(self.actors) if not self.lost else ():
            self.end(worker)
        self.actors.clear()
        if self.ours:
            self.ours = False
            self.ray.shutdown()


class _Actor:
    """A worker as Ray knows it."""

    def __init__(self, memory: int | None) -> None:
        self.worker = Worker(memory)

    def start(self, settings: Settings, given: list[Any], expected: Identity) -> Iterator[Event]:
        """Import the user's module, which may also register rules, and take what the object store holds.

        Actors that open stores make their own model, which is compared.
        """
        if not given:
            yield compared(self.worker.load(settings), expected, settings.factory)
            return
        try:
            with importable(settings.folder):
                find_factory(settings.factory)
                model, data = ray().get(given)
                # What we packed ourselves a moment ago, nothing that a user hands us.
                work: Work = replace(unpacked(data, pickle.Unpickler), model=model)
        except UsageError as error:
            yield Broken(f"a worker of Ray cannot import the model: {error}; its machine needs the same code")
            return
        yield self.worker.take(work)

    def explain(self, task: Task) -> Iterator[Event]:
        """Explain a part."""
        yield from self.worker.explain(task)
