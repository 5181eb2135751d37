"""How far a job is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

State = Literal["running", "finished", "interrupted", "unfinished"]
SHOWN = 20
"""Errors, damaged parts and the like that a status shows; all errors are in the table of instances."""


@dataclass(frozen=True)
class Status:
    """How far a job is."""

    folder: Path
    state: State
    """``"interrupted"`` by Ctrl-C or SIGTERM; ``"unfinished"`` if parts are missing for any other reason."""
    instances: int
    finished: int
    """Instances whose part is written, the errors among them too."""
    errors: int
    """Instances that could not be explained; the reason is in the table of instances."""
    rows: int
    """Of the table of scores."""
    parts: int
    parts_finished: int
    examples: tuple[dict[str, Any], ...] = ()
    """The first errors: ``index`` and ``error``."""
    failed: Mapping[int, str] = field(default_factory=dict)
    """Parts that the last run could not finish, and why; `resume` tries them again."""
    damaged: Mapping[int, str] = field(default_factory=dict)
    """Parts whose files are not as they were written, and how; `resume` makes them anew."""
    foreign: tuple[str, ...] = ()
    """Files in the folders of the tables that this job did not write; who reads those folders reads them too."""
    unseen: tuple[str, ...] = ()
    """Values of the model or the data that the fingerprint cannot see: that they stay the same is up to the user."""
    lost_workers: int = 0
    """Workers that died or were stopped during the last run; their parts were given to others."""
    seconds: float = 0.0
    """From the moment when the first worker was ready until the last run ended, or until now."""
    rate: float = 0.0
    """Instances per second of the last run."""

    @property
    def left(self) -> float | None:
        """Seconds that a running job needs at this rate."""
        return (self.instances - self.finished) / self.rate if self.state == "running" and self.rate else None

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        plain = {name: value for name, value in vars(self).items() if name != "folder"}
        return {"folder": str(self.folder), **plain, "left": self.left}

    def __str__(self) -> str:
        lines = [
            f"{self.folder}: {self.state}",
            f"  instances  {self.finished} of {self.instances}, in {self.parts_finished} of {self.parts} parts",
            f"  scores     {self.rows} rows",
            f"  errors     {self.errors}",
            *[f"    {one['index']}: {' '.join(one['error'].split())}" for one in self.examples],
        ]
        if self.errors > len(self.examples):
            lines.append(f"    … all are in {self.folder / 'instances'}")
        if self.left is not None:
            lines.append(f"  rate       {self.rate:.1f} instances/s, about {_clock(self.left)} left")
        if self.lost_workers:
            lines.append(f"  workers that died: {self.lost_workers}; their parts were given to others")
        lines += _some([f"  part {part} is missing: {why}" for part, why in self.failed.items()])
        lines += _some([f"  part {part} is damaged: {why}" for part, why in self.damaged.items()])
        lines += _some([f"  not written by this job: {path}" for path in self.foreign])
        if self.unseen:
            lines.append(
                f"  the fingerprint cannot see {', '.join(self.unseen[:3])}{' …' if len(self.unseen) > 3 else ''};"
                " name their version with version="
            )
        if self.state in ("unfinished", "interrupted"):
            lines.append(f"  to resume: xdegree job resume {self.folder}")
        return "\n".join(lines)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _some(lines: list[str]) -> list[str]:
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], *([f"  … and {more} more"] if more > 0 else [])]
