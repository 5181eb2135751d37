"""Ctrl-C and SIGTERM: exceptions, but never in the middle of a file. And no process outlives its parent."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

TERMINATED = 128 + signal.SIGTERM
"""The exit code of a process that was told to end, 143."""


class _Terminated(KeyboardInterrupt):
    """SIGTERM on its way up: as Ctrl-C, it passes where a model's own SystemExit is caught."""


class Interruptions:
    """While it is entered, SIGINT raises KeyboardInterrupt and SIGTERM ends in SystemExit(143), each at most once.

    Both wait until no file is being written. Once the job is ending, further signals do not disturb its end.
    """

    def __init__(self) -> None:
        self.pending: BaseException | None = None
        self.told = False
        self.holding = 0
        self.before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Python gives signals to no other
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) != signal.SIG_IGN:
                    self.before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        if isinstance(error, _Terminated):
            raise SystemExit(TERMINATED) from None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Finish what is in here first."""
        self.holding += 1
        try:
            yield
        finally:
            self.holding -= 1
        if not self.holding and self.pending is not None:
            pending, self.pending = self.pending, None
            raise pending

    def _hear(self, number: int, _: FrameType | None) -> None:
        if self.told:
            return
        self.told = True
        stop = KeyboardInterrupt() if number == signal.SIGINT else _Terminated()
        if not self.holding:
            raise stop
        self.pending = stop


def end_with_parent() -> None:
    """End this process, whatever the model is at, as soon as the one that started it is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
