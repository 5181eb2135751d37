"""The folder of a job: files that are there whole or not at all, and a manifest of what they hold."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..results.files import read_json
from .settings import JobError, Settings, digest
from .tables import errors_in, notes_of, tables

FORMAT = "xdegree.job/1"
SHOWN = 20
"""Errors that the manifest and the status show; all of them are in the table of instances."""

State = Literal["running", "finished", "unfinished"]


@dataclass(frozen=True)
class Status:
    """How far a job is."""

    folder: Path
    state: State
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
    lost_workers: int = 0
    """Workers that died during the last run; their parts were given to others."""
    seconds: float = 0.0
    """From the moment when the first worker was ready until the last run ended."""

    def __str__(self) -> str:
        lines = [
            f"{self.folder}: {self.state}",
            f"  instances  {self.finished} of {self.instances}, in {self.parts_finished} of {self.parts} parts",
            f"  scores     {self.rows} rows",
            f"  errors     {self.errors}",
            *[f"    {one['index']}: {one['error']}" for one in self.examples],
        ]
        if self.errors > len(self.examples):
            lines.append(f"    … all are in {self.folder / 'instances'}")
        if self.lost_workers:
            lines.append(f"  workers that died: {self.lost_workers}; their parts were given to others")
        lines += [f"  part {part} is missing: {why}" for part, why in self.failed.items()]
        if self.state == "unfinished":
            lines.append(f"  to go on: xdegree job resume {self.folder}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Folder:
    """A job's folder, as its manifest describes it. Only one process writes into it: the one that holds its lock."""

    path: Path
    settings: Settings
    fingerprint: Mapping[str, str]
    versions: Mapping[str, str]
    instances: int
    """How many there are to choose from."""

    @property
    def job(self) -> str:
        """The name of all that decides the answer; every file carries it."""
        return digest([self.settings.to_dict(), dict(self.fingerprint), dict(self.versions), self.instances])

    def notes(self, part: int) -> dict[str, Any]:
        """What the files of a part are marked with."""
        return {"job": self.job, "part": part}

    def file(self, table: str, part: int) -> Path:
        """Where a part of a table is."""
        return self.path / table / f"part-{part:06d}.parquet"

    def write_part(self, part: int, files: Mapping[str, bytes]) -> None:
        """Write the files of a part: first all of them under other names, where a full disk does no harm."""
        written = []
        try:
            for table, content in files.items():
                written.append(self.file(table, part))
                _write_aside(self.file(table, part), content)
            for path in written:  # in the order of `tables`: the instances, which tell that a part is there, come last
                _aside(path).replace(path)
                _sync_folder(path.parent)
        finally:
            for path in written:
                _aside(path).unlink(missing_ok=True)

    def finished(self) -> dict[int, dict[str, int]]:
        """The parts that are there, with their numbers of instances, rows and errors."""
        found = {}
        for path in sorted((self.path / "instances").glob("part-*.parquet")):
            notes = notes_of(path)
            if notes.get("job") != self.job:
                raise JobError(
                    f"{path} was not written by the job that {self.path / 'manifest.json'} describes; settings of a job"
                    " cannot be changed, start another one in another folder"
                )
            part = int(notes["part"])
            if all(self.file(table, part).is_file() for table in tables(self.settings.edge_scores)):
                found[part] = {name: int(notes[name]) for name in ("instances", "rows", "errors")}
        return found

    def tidy(self) -> None:
        """Remove what an interrupted job left behind: files under other names, and parts of which some files lack."""
        whole = {self.file(table, part) for part in self.finished() for table in tables(self.settings.edge_scores)}
        for table in tables(self.settings.edge_scores):
            folder = self.path / table
            folder.mkdir(exist_ok=True)
            for path in folder.iterdir():
                if path not in whole:
                    path.unlink()

    def status(self, state: State | None = None, **of_run: Any) -> Status:
        """How far the job is, read off the files themselves."""
        parts, finished = len(self.settings.parts(self.instances)), self.finished()
        total = {name: sum(one[name] for one in finished.values()) for name in ("instances", "rows", "errors")}
        return Status(
            folder=self.path,
            state=state or ("finished" if len(finished) == parts else "unfinished"),
            instances=len(self.settings.parts(self.instances).ids),
            finished=total["instances"],
            errors=total["errors"],
            rows=total["rows"],
            parts=parts,
            parts_finished=len(finished),
            examples=self._examples(finished),
            **of_run,
        )

    def _examples(self, finished: Mapping[int, Mapping[str, int]]) -> tuple[dict[str, Any], ...]:
        found: list[dict[str, Any]] = []
        for part in (part for part, one in finished.items() if one["errors"]):
            found += errors_in(self.file("instances", part), SHOWN - len(found))
            if len(found) >= SHOWN:
                break
        return tuple(found)

    def write_manifest(self, status: Status, run: Mapping[str, Any]) -> None:
        """Say what the folder holds: at the start of a run and at its end."""
        finished = self.finished()
        content = {
            "format": FORMAT,
            "job": self.job,
            "state": status.state,
            "settings": self.settings.to_dict(),
            "fingerprint": dict(self.fingerprint),
            "versions": dict(self.versions),
            "instances": self.instances,
            "rows": status.rows,
            "errors": {"count": status.errors, "first": list(status.examples)},
            "parts": [{"part": part, "file": self.file("", part).name, **one} for part, one in finished.items()],
            "failed": {str(part): why for part, why in status.failed.items()},
            "lost_workers": status.lost_workers,
            "seconds": status.seconds,
            "run": dict(run),
        }
        path = self.path / "manifest.json"
        try:
            _write_aside(path, json.dumps(content, indent=1).encode())
            _aside(path).replace(path)
            _sync_folder(path.parent)
        finally:
            _aside(path).unlink(missing_ok=True)


def opened(path: Path) -> tuple[Folder, dict[str, Any]]:
    """A job that is there, and its manifest."""
    manifest = path / "manifest.json"
    if not manifest.is_file():
        raise JobError(f"{path} holds no job (it has no manifest.json); start one with xdegree job run")
    try:
        folder, content = read_json(manifest, FORMAT, "job", lambda content: (_from(path, content), content))
    except ValueError as error:
        raise JobError(str(error)) from None
    if content.get("job") != folder.job:
        raise JobError(f"{manifest} was changed by hand; settings of a job cannot be changed, start another one")
    return folder, content


def _from(path: Path, content: dict[str, Any]) -> Folder:
    settings = Settings.from_dict(content["settings"])
    return Folder(path, settings, dict(content["fingerprint"]), dict(content["versions"]), int(content["instances"]))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a folder alone. The system lets go of the lock when its holder dies, however it dies."""
    with (path / ".lock").open("w") as file:
        if not _lock(file):
            raise JobError(f"another process is at work on {path}; wait for it, or end it first")
        yield


def is_locked(path: Path) -> bool:
    """Whether a process is at work on a folder."""
    try:
        with (path / ".lock").open("r") as file:
            return not _lock(file)
    except FileNotFoundError:
        return False


def _lock(file: Any) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows; there a second process is not noticed
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _aside(path: Path) -> Path:
    """Where a file is written; readers of Parquet folders pass over names that start with a dot."""
    return path.with_name(f".{path.name}.tmp")


def _write_aside(path: Path, content: bytes) -> None:
    with _aside(path).open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    """Make a new name last through a power cut."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
