"""Workers as processes of this machine."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from .identity import Identity
from .interruptions import end_with_parent
from .settings import Settings
from .worker import Broken, Died, Event, Task, Worker, compared

PATIENCE = 10.0
"""Seconds that a process has to end once it was told to."""


class Processes:
    """Processes that are started afresh (spawn), each with a pipe: when one dies, only its own pipe breaks."""

    def __init__(self, settings: Settings, memory: int | None = None) -> None:
        self.settings, self.memory = settings, memory
        self.context = multiprocessing.get_context("spawn")
        self.workers: dict[int, tuple[Any, Any]] = {}
        self.expected: Identity | None = None

    def hire(self, worker: int) -> None:
        """Start a process."""
        ours, theirs = self.context.Pipe()
        process = self.context.Process(
            target=_serve, args=(theirs, self.settings, self.memory), name=f"xdegree-worker-{worker}", daemon=True
        )
        with _deaf_to_interrupts():
            process.start()
        theirs.close()  # so that the pipe breaks with the process
        self.workers[worker] = (process, ours)
        if self.expected is not None:
            self._send(worker, self.expected)

    def begin(self, expected: Identity) -> None:
        """Tell workers which model they must have."""
        self.expected = expected
        for worker in self.workers:
            self._send(worker, expected)

    def give(self, worker: int, task: Task) -> None:
        """Send a part."""
        self._send(worker, task)

    def _send(self, worker: int, message: Any) -> None:
        with suppress(OSError):  # a process that is gone is noticed when we wait for it
            self.workers[worker][1].send(message)

    def wait(self, seconds: float) -> list[tuple[int, Event]]:
        """One message of each process that has any."""
        pipes = {pipe: worker for worker, (_, pipe) in self.workers.items()}
        return [(pipes[pipe], self._heard(pipes[pipe], pipe)) for pipe in wait(list(pipes), seconds)]

    def _heard(self, worker: int, pipe: Any) -> Event:
        try:
            event: Event = pipe.recv()
        except (EOFError, OSError):  # OSError: it died in the middle of a message
            process = self.workers[worker][0]
            process.join(PATIENCE)
            code = process.exitcode
            self.end(worker)
            return Died(_ending(code))
        return event

    def end(self, worker: int) -> None:
        """Kill a process."""
        process, pipe = self.workers.pop(worker)
        pipe.close()
        process.kill()
        process.join()

    def close(self) -> None:
        """Ask, then force."""
        for process, pipe in self.workers.values():
            pipe.close()
            process.terminate()
        for process, _ in self.workers.values():
            process.join(PATIENCE)
        for worker in list(self.workers):
            self.end(worker)


def _serve(pipe: Connection, settings: Settings, memory: int | None) -> None:
    """What a process does until its pipe breaks, or the process that started it ends."""
    end_with_parent()
    os.dup2(2, 1)  # what a model prints is no part of the results that the command prints
    worker = Worker(memory)
    with suppress(EOFError, OSError):
        found = worker.load(settings)
        # A worker that cannot load says so at once, the others when they know what to compare with.
        event = found if isinstance(found, Broken) else compared(found, pipe.recv(), settings.factory)
        pipe.send(event)
        while not isinstance(event, Broken):
            for event in worker.explain(pipe.recv()):
                pipe.send(event)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """A process that is started in here does not receive Ctrl-C, which a terminal sends to all: one process decides.

    Blocked signals stay blocked in the new process; here they are delivered as soon as they are unblocked.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which would let them through, were it started later
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
