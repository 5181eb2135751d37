"""Workers as processes of this machine."""

import multiprocessing
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from .settings import Settings
from .worker import Broken, Died, Event, Failed, Task, Worker

PATIENCE = 10.0
"""Seconds that a process has to end once it was told to."""


class Processes:
    """Processes that are started afresh (spawn), each with a pipe: when one dies, only its own pipe breaks."""

    def __init__(self, settings: Settings, expected: Mapping[str, str]) -> None:
        self.settings, self.expected = settings, dict(expected)
        self.context = multiprocessing.get_context("spawn")
        self.workers: dict[int, tuple[Any, Any]] = {}

    def hire(self, worker: int) -> None:
        """Start a process."""
        ours, theirs = self.context.Pipe()
        process = self.context.Process(
            target=_serve, args=(theirs, self.settings, self.expected), name=f"xdegree-worker-{worker}", daemon=True
        )
        with _deaf_to_interrupts():
            process.start()
        theirs.close()  # so that the pipe breaks with the process
        self.workers[worker] = (process, ours)

    def give(self, worker: int, task: Task) -> None:
        """Send a part; of a process that is gone we hear when we wait."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.workers[worker][1].send(task)

    def wait(self) -> list[tuple[int, Event]]:
        """One message of each process that has any."""
        pipes = {pipe: worker for worker, (_, pipe) in self.workers.items()}
        return [(pipes[pipe], self._heard(pipes[pipe], pipe)) for pipe in wait(list(pipes))]

    def _heard(self, worker: int, pipe: Any) -> Event:
        try:
            event: Event = pipe.recv()
        except (EOFError, ConnectionResetError):
            process = self.workers.pop(worker)[0]
            process.join(PATIENCE)
            pipe.close()
            return Died(_ending(process.exitcode))
        return event

    def close(self) -> None:
        """Ask, then force."""
        for process, pipe in self.workers.values():
            pipe.close()
            process.terminate()
        for process, _ in self.workers.values():
            process.join(PATIENCE)
            if process.is_alive():
                process.kill()
                process.join()
        self.workers.clear()


def _serve(pipe: Connection, settings: Settings, expected: Mapping[str, str]) -> None:
    """What a process does until its pipe breaks, which is also when the process that started it dies."""
    worker = Worker()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        for event in worker.start(settings, expected):
            pipe.send(event)
            if isinstance(event, Broken):
                return
        while True:
            task: Task = pipe.recv()
            try:
                for event in worker.explain(task):
                    pipe.send(event)
            except (BrokenPipeError, ConnectionResetError):
                return
            except Exception as error:  # noqa: BLE001 (a fault of ours must not look like a dead worker)
                pipe.send(Failed(task.part, f"{type(error).__name__}: {error}"))


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """A process that is started in here never hears Ctrl-C, which a terminal sends to all: one process decides.

    Blocked signals stay blocked in the new process; here they are heard as soon as they are let through again.
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
