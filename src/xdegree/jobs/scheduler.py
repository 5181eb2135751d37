"""Who gives parts to workers, writes what they bring, and goes on when some of them die."""

import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .settings import JobError, Parts
from .storage import Folder
from .tables import tables
from .worker import At, Broken, Crew, Died, Done, Event, Failed, Ready, Task

TRIES = 3
"""How often a part is begun, workers are started, and parts are written in vain, before we give up on it."""
DEATHS_OF_A_PLACE = 2
"""After so many deaths at the same place, the instances there are tried one by one, and then left out."""
DEATHS_OF_A_PART = 24


@dataclass
class Report:
    """What happened during a run."""

    failed: dict[int, str] = field(default_factory=dict)
    lost_workers: int = 0
    began: float | None = None
    ended: float | None = None

    def of_run(self) -> dict[str, Any]:
        """For the status of the job."""
        seconds = 0.0 if self.began is None else (self.ended or time.perf_counter()) - self.began
        return {"failed": self.failed, "lost_workers": self.lost_workers, "seconds": seconds}


class Foreman:
    """Gives parts to workers, writes what they bring, and replaces those that die."""

    def __init__(self, folder: Folder, parts: Parts, crew: Crew, report: Report, bar: Any) -> None:
        self.folder, self.parts, self.crew, self.report, self.bar = folder, parts, crew, report, bar
        self.waiting: deque[Task] = deque()
        self.busy: dict[int, Task] = {}
        self.idle: list[int] = []
        self.at: dict[int, At] = {}
        self.tries: Counter[int] = Counter()
        self.deaths: Counter[Any] = Counter()
        self.stillborn = self.unwritten = 0

    def work_through(self, missing: Sequence[int], workers: int) -> None:
        """Until every part is finished or given up."""
        self.waiting.extend(Task(part, self.parts[part], self.folder.notes(part)) for part in missing)
        for worker in range(workers):
            self.crew.hire(worker)
        while self.waiting or self.busy:
            for worker, event in self.crew.wait():
                self._hear(worker, event)

    def _hear(self, worker: int, event: Event) -> None:
        match event:
            case Broken(why):
                raise JobError(why)
            case At():
                self.at[worker] = event
            case Died(how):
                self._bury(worker, how)
            case Ready():
                self.stillborn = 0
                self.report.began = self.report.began or time.perf_counter()
                self._next(worker)
            case Failed():
                self._again_or_not(self.busy.pop(worker), event.why)
                self._next(worker)
            case Done():
                del self.busy[worker]
                self._next(worker)  # first, so that nobody waits for the disk
                self._write(event)

    def _next(self, worker: int) -> None:
        self.at.pop(worker, None)
        self.idle.append(worker)
        if self.waiting:
            worker = self.idle.pop()
            self.busy[worker] = self.waiting.popleft()
            self.crew.give(worker, self.busy[worker])

    def _write(self, done: Done) -> None:
        try:
            self.folder.write_part(done.part, {t: done.files[t] for t in tables(self.folder.settings.edge_scores)})
        except OSError as error:
            self.report.failed[done.part] = f"it could not be written: {error}"
            self.unwritten += 1
            if self.unwritten >= TRIES:  # the rest would be explained for nothing
                raise JobError(
                    f"{self.unwritten} parts in a row could not be written to {self.folder.path}: {error}; make room,"
                    f" then go on with: xdegree job resume {self.folder.path}"
                ) from error
            return
        self.unwritten = 0
        self.bar.update(done.counts["instances"])

    def _again_or_not(self, task: Task, why: str) -> None:
        self.tries[task.part] += 1
        if self.tries[task.part] < TRIES:
            self.waiting.append(task)
        else:
            self.report.failed[task.part] = why

    def _bury(self, worker: int, how: str) -> None:
        """Give the part of a dead worker to another; leave out what kills again and again."""
        task, at = self.busy.pop(worker, None), self.at.pop(worker, None)
        if worker in self.idle:
            self.idle.remove(worker)
        elif task is None:
            self.stillborn += 1
            if self.stillborn >= TRIES:
                raise JobError(
                    f"workers die before they begin ({how}). Is there enough memory for each to hold the model and the"
                    ' data? A script that starts a job needs `if __name__ == "__main__":` around it'
                )
        if task is not None:
            self.report.lost_workers += 1
            self._mourn(task, at, how)
        if self.waiting and self.idle:
            self._next(self.idle.pop())
        elif self.waiting:
            self.crew.hire(worker)

    def _mourn(self, task: Task, at: At | None, how: str) -> None:
        self.deaths[task.part] += 1
        self.deaths[task.part, at] += 1
        if self.deaths[task.part] >= DEATHS_OF_A_PART or (at is None and self.deaths[task.part, None] >= TRIES):
            self.report.failed[task.part] = f"workers died of it {self.deaths[task.part]} times ({how})"
            return
        if at is not None and self.deaths[task.part, at] >= DEATHS_OF_A_PLACE:
            task = _careful(task, at, f"workers died while explaining it, {DEATHS_OF_A_PLACE} times ({how})")
        self.waiting.appendleft(task)


def _careful(task: Task, at: At, why: str) -> Task:
    """The same part, its deadly batch one by one; and without the instance that kills also then."""
    if at.index is None:
        return replace(task, alone=task.alone | {at.place})
    return replace(task, skip={**task.skip, at.index: why})
