"""Gives parts to workers, writes what they return, and replaces workers that die or hang."""

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from .settings import JobError
from .storage import Folder
from .tables import tables
from .worker import At, Broken, Crew, Died, Done, Event, Failed, Ready, Task

TRIES = 3
"""How often a part is begun, and writing a part may fail, before we give up on it."""
STARTS = 6
"""Workers in a row that may die before they are ready, with a pause before each new one that doubles each time."""
PAUSE = 0.5
"""Seconds of the first pause."""
DEATHS_OF_A_PLACE = 2
"""After so many deaths at the same place, the instances there are tried one by one, and then left out."""
DEATHS_OF_A_PART = 100
"""After so many deaths, a part is left to the next run: the fault may be the machine's, not that of its instances."""
TICK = 0.5
"""Seconds after which the clock is looked at, though no worker said anything."""


@dataclass
class Report:
    """What happened during a run."""

    failed: dict[int, str] = field(default_factory=dict)
    lost_workers: int = 0
    explained: int = 0
    """Instances in the parts that this run wrote."""
    errors: int = 0
    under_way: int = 0
    """Instances in batches that are explained, but not written yet."""
    began: float | None = None
    ended: float | None = None

    def of_run(self) -> dict[str, Any]:
        """For the status of the job."""
        seconds = 0.0 if self.began is None else (self.ended or time.perf_counter()) - self.began
        rate = self.explained / seconds if seconds else 0.0
        return {"failed": self.failed, "lost_workers": self.lost_workers, "seconds": seconds, "rate": rate}


class Scheduler:
    """One loop for all engines: `crew` says what its workers are at, this decides what follows from it."""

    def __init__(
        self,
        folder: Folder,
        crew: Crew,
        report: Report,
        timeout: float | None,
        told: Callable[[], None],
        held: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.folder, self.crew, self.report = folder, crew, report
        self.timeout, self.told, self.held = timeout, told, held
        self.waiting: deque[Task] = deque()
        self.busy: dict[int, Task] = {}
        self.idle: list[int] = []
        self.at: dict[int, At] = {}
        self.since: dict[int, float] = {}
        self.to_hire: list[tuple[float, int]] = []
        self.starting: set[int] = set()
        self.tries: Counter[int] = Counter()
        self.deaths: Counter[Any] = Counter()
        self.died_at_start = self.unwritten = 0

    def work_through(self, missing: Sequence[int], workers: int) -> None:
        """Until every part is finished or given up."""
        self.waiting.extend(Task(part, self.folder.cut[part], self.folder.notes(part)) for part in missing)
        for worker in range(workers):
            self._hire(worker)
        while self.waiting or self.busy:
            for worker, event in self.crew.wait(TICK):
                self._hear(worker, event)
            self._look_at_the_clock()
            self.told()

    def _hire(self, worker: int) -> None:
        self.starting.add(worker)
        self.crew.hire(worker)

    def _hear(self, worker: int, event: Event) -> None:
        self.since[worker] = time.monotonic()
        match event:
            case Broken(why):
                raise JobError(why)
            case At():
                self.at[worker] = event
            case Died(how):
                self._lost(worker, how)
            case Ready():
                self.died_at_start = 0
                self.starting.discard(worker)
                self.report.began = self.report.began or time.perf_counter()
                self._next(worker)
            case Failed():
                self._again_or_not(self.busy.pop(worker), event.why)
                self._next(worker)
            case Done():
                del self.busy[worker]
                self._next(worker)  # first, so that no worker waits for the disk
                with self.held():
                    self._write(event)
        self.report.under_way = sum(min(at.place, len(self.busy[w].ids)) for w, at in self.at.items() if w in self.busy)

    def _next(self, worker: int) -> None:
        self.at.pop(worker, None)
        if self.waiting:
            self.busy[worker] = self.waiting.popleft()
            self.crew.give(worker, self.busy[worker])
        else:
            self.idle.append(worker)

    def _write(self, done: Done) -> None:
        try:
            self.folder.write_part(
                done.part, {t: done.files[t] for t in tables(self.folder.settings.edge_scores)}, done.counts
            )
        except OSError as error:
            self.report.failed[done.part] = f"it could not be written: {error}"
            self.unwritten += 1
            if self.unwritten >= TRIES:  # the rest would be explained for nothing
                raise JobError(
                    f"{self.unwritten} parts in a row could not be written to {self.folder.path}: {error}; make room,"
                    f" then resume: xdegree job resume {self.folder.path}"
                ) from error
            return
        self.unwritten = 0
        self.report.explained += done.counts["instances"]
        self.report.errors += done.counts["errors"]

    def _again_or_not(self, task: Task, why: str) -> None:
        self.tries[task.part] += 1
        if self.tries[task.part] < TRIES:
            self.waiting.append(task)
        else:
            self.report.failed[task.part] = why

    def _look_at_the_clock(self) -> None:
        """End workers that take too long, and hire those whose pause is over."""
        now = time.monotonic()
        for worker, task in list(self.busy.items()):
            at = self.at.get(worker)
            late = self.timeout is not None and now - self.since[worker] > self.timeout
            if late and at is not None and at.place < len(task.ids):
                self.crew.end(worker)
                self._lost(worker, f"it took longer than {self.timeout:g} s", too_late=True)
        due = [worker for when, worker in self.to_hire if when <= now]
        self.to_hire = [(when, worker) for when, worker in self.to_hire if when > now]
        for worker in due:
            self._hire(worker)

    def _lost(self, worker: int, how: str, too_late: bool = False) -> None:
        """Give the part of a lost worker to another; leave out what kills or hangs again and again."""
        task, at = self.busy.pop(worker, None), self.at.pop(worker, None)
        if worker in self.idle:
            self.idle.remove(worker)
        pause = self._pause(worker, how) if worker in self.starting else 0.0
        if task is not None:
            self.report.lost_workers += 1
            self._put_back(task, at, how, too_late)
        if self.waiting and self.idle:
            self._next(self.idle.pop())
        elif self.waiting and pause is not None:
            self.to_hire.append((time.monotonic() + pause, worker))

    def _pause(self, worker: int, how: str) -> float | None:
        """Seconds until a worker that died at its start is started anew; None if the others have to do without it."""
        self.starting.discard(worker)
        self.died_at_start += 1
        if self.died_at_start < STARTS:
            return PAUSE * 2 ** (self.died_at_start - 1)
        if self.busy or self.starting:
            return None
        raise JobError(
            f"{self.died_at_start} workers in a row died before they began ({how}). Is there enough memory for each to"
            ' hold the model and the data? A script that starts a job needs `if __name__ == "__main__":` around it.'
            f" Then resume: xdegree job resume {self.folder.path}"
        )

    def _put_back(self, task: Task, at: At | None, how: str, too_late: bool) -> None:
        self.deaths[task.part] += not too_late
        self.deaths[task.part, at] += 1
        outside = at is None or at.place >= len(task.ids)  # of the batches: no instance is to blame
        if self.deaths[task.part] >= DEATHS_OF_A_PART or (outside and self.deaths[task.part, at] >= TRIES):
            self.report.failed[task.part] = f"workers died of it {self.deaths[task.part]} times ({how})"
            return
        often = 1 if too_late else DEATHS_OF_A_PLACE
        if at is not None and not outside and self.deaths[task.part, at] >= often:
            task = _careful(task, at, how if too_late else f"workers died while explaining it, {often} times ({how})")
        self.waiting.appendleft(task)


def _careful(task: Task, at: At, why: str) -> Task:
    """The same part, its deadly batch one by one; and without the instance that kills also then."""
    if at.index is None:
        return replace(task, alone=task.alone | {at.place})
    return replace(task, skip={**task.skip, at.index: why})
