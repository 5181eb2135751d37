"""The process that workers are forked from: it imports PyTorch and PyG once for all of them.

That takes seconds of a processor and some 400 MB, whoever does it. This module imports neither, so that a command can
start the server first, and both import at the same time.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker


def start() -> str:
    """Start the server, or see that it runs; the start method of workers, for `multiprocessing.get_context`.

    Where processes should not be forked, each is started afresh: on other systems than Linux, whose libraries do not
    bear it, and in a process that was itself forked, where the server is that of its parent.
    """
    if sys.platform != "linux":
        return "spawn"
    try:
        with deaf_to_interrupts():
            forkserver.set_forkserver_preload(["xdegree.jobs.processes"])
            forkserver.ensure_running()
    except ChildProcessError:
        return "spawn"
    return "forkserver"


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
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
