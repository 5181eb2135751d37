"""Workers as processes of this machine."""

import multiprocessing
import os
import signal
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from .. import fork_server
from .identity import Identity
from .interruptions import end_with_parent
from .settings import Settings
from .worker import Broken, Died, Event, Task, Worker, compared

PATIENCE = 10.0
"""Seconds that a process has to end once its pipe is broken."""


class Processes:
    """Processes, each with a pipe: when one dies, only its own pipe breaks."""

    def __init__(self, settings: Settings, expected: Identity, memory: int | None = None) -> None:
        self.settings, self.expected, self.memory = settings, expected, memory
        self.workers: dict[int, tuple[Any, Any]] = {}
        self.stillborn: list[tuple[int, Event]] = []

    def hire(self, worker: int) -> None:
        """Start a process."""
        how = fork_server.start()
        context: Any = multiprocessing.get_context(how)
        ours, theirs = context.Pipe()
        given = (theirs, self.settings, self.memory, self.expected, dict(os.environ))
        process = context.Process(target=_serve, args=given, name=f"xdegree-worker-{worker}", daemon=True)
        try:
            with fork_server.deaf_to_interrupts() if how == "spawn" else nullcontext():
                process.start()
        except (EOFError, OSError) as error:
            self.stillborn.append((worker, Died(f"it could not be started: {error!r}")))
            return
        theirs.close()  # so that the pipe breaks with the process
        self.workers[worker] = (process, ours)

    def give(self, worker: int, task: Task) -> None:
        """Send a part."""
        self._send(worker, task)

    def _send(self, worker: int, message: Any) -> None:
        with suppress(OSError):  # a process that is gone is noticed when we wait for it
            self.workers[worker][1].send(message)

    def wait(self, seconds: float) -> list[tuple[int, Event]]:
        """One message of each process that has any."""
        if self.stillborn:
            told, self.stillborn = self.stillborn, []
            return told
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
        """Kill them all: what they are at is of no use any more."""
        for worker in list(self.workers):
            self.end(worker)


def _serve(
    pipe: Connection, settings: Settings, memory: int | None, expected: Identity, environment: Mapping[str, str]
) -> None:
    """What a process does until its pipe breaks, or the process that started the job ends."""
    end_with_parent()
    os.environ.clear()  # the server's, which may be older than changes to it
    os.environ.update(environment)
    os.dup2(2, 1)  # what a model prints is no part of the results that the command prints
    worker = Worker(memory)
    with suppress(EOFError, OSError):
        event = compared(worker.load(settings), expected, settings.factory)
        pipe.send(event)
        while not isinstance(event, Broken):
            for event in worker.explain(pipe.recv()):
                pipe.send(event)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
