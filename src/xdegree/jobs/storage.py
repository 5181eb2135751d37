"""The folder of a job: files that are there whole or not at all, and a manifest with the checksum of each."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .identity import Identity
from .settings import JobError, Settings, digest
from .status import SHOWN, State, Status
from .tables import errors_in, notes_of, read_whole, tables

FORMAT = "xdegree.job/2"
COUNTS = ("instances", "rows", "errors")
SHORT = 100
"""Numbers of an index that every file can carry; of a longer one they carry the hash."""
DAMAGED = "damaged"
"""The folder for files that were found damaged, or in the place of ours: nothing that we did not write is deleted."""


@dataclass(frozen=True)
class Part:
    """A part that is written: how much it holds, and size and checksum of the file of each table."""

    counts: Mapping[str, int]
    files: Mapping[str, Mapping[str, Any]]


@dataclass
class Folder:
    """A job's folder. Only one process writes into it: the one that holds its lock."""

    path: Path
    settings: Settings
    identity: Identity
    instances: int
    """How many there are to choose from."""
    parts: dict[int, Part] = field(default_factory=dict)
    """What is written, by the number of the part."""
    damaged: dict[int, str] = field(default_factory=dict)
    listed: dict[int, Part] = field(default_factory=dict)
    """What the manifest says is written."""

    def __post_init__(self) -> None:
        self.cut = self.settings.parts(self.instances)
        index = self.settings.to_dict()["index"]
        self.description = {
            "settings": {**self.settings.to_dict(), "index": index if len(index) <= SHORT else digest(index)},
            "fingerprint": dict(self.identity.fingerprint),
            "versions": dict(self.identity.versions),
            "instances": self.instances,
        }
        self.job = digest(self.description)
        """The name of all that decides the answer; every file carries it."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of the job."""
        return tables(self.settings.edge_scores)

    def missing(self, errors: bool = False) -> list[int]:
        """The parts that are still to be done; those with errors too, if they are to be tried again."""
        done = {part for part, one in self.parts.items() if not (errors and one.counts["errors"])}
        return [part for part in range(len(self.cut)) if part not in done]

    def notes(self, part: int) -> dict[str, Any]:
        """What the files of a part are marked with: enough to write the manifest again from any of them."""
        return {"job": self.job, "part": part, "description": json.dumps(self.description, sort_keys=True)}

    def file(self, table: str, part: int) -> Path:
        """Where a part of a table is."""
        return self.path / table / f"part-{part:06d}.parquet"

    def write_part(self, part: int, files: Mapping[str, bytes], counts: Mapping[str, int]) -> None:
        """Write the files of a part; the instances, which tell that it is there, come last."""
        self._write({self.file(table, part): content for table, content in files.items()})
        marks = {t: {"bytes": len(c), "sha256": hashlib.sha256(c).hexdigest()} for t, c in files.items()}
        self.parts[part] = Part({name: int(counts[name]) for name in COUNTS}, marks)

    def look(self, thorough: bool = True) -> None:
        """Compare the files with the manifest: what is damaged is no part any more, what came later is one.

        Not thorough, it only looks at sizes: fast, for a job that runs.
        """
        self.listed = listed = self.parts
        self.parts, self.damaged = {}, {}
        for part in range(len(self.cut)):
            try:
                if part in listed:
                    self._compare(part, listed[part], thorough)
                    self.parts[part] = listed[part]
                elif self.file("instances", part).exists():
                    self.parts[part] = self._unlisted(part, thorough)
            except (ValueError, KeyError) as error:
                self.damaged[part] = str(error)

    def _compare(self, part: int, listed: Part, thorough: bool) -> None:
        for table in self.tables:
            path, mark = self.file(table, part), listed.files[table]
            name = path.relative_to(self.path)
            if not path.is_file():
                raise ValueError(f"{name} is not there")
            if (size := path.stat().st_size) != mark["bytes"]:
                raise ValueError(f"{name} has {size} bytes instead of {mark['bytes']}{self._whose(path, part)}")
            if thorough and _checksum(path) != mark["sha256"]:
                raise ValueError(f"{name} has another checksum than when it was written{self._whose(path, part)}")
        if thorough and (found := _counted(self.file("instances", part))) != listed.counts:
            raise ValueError(f"the manifest says {dict(listed.counts)}, its files {found}")

    def _whose(self, path: Path, part: int) -> str:
        """For files that were swapped, what they are."""
        try:
            notes = notes_of(path)
        except ValueError:
            return ""
        if notes.get("job") != self.job:
            return ": it is of another job"
        return "" if notes.get("part") == str(part) else f": it is of part {notes.get('part')}"

    def _unlisted(self, part: int, thorough: bool) -> Part:
        """A part that was written after the manifest was: its own marks must fit, and its content be whole."""
        size = len(self.cut[part])
        counts: dict[str, int] = {}
        for table, path in self._files(part):
            try:
                notes = notes_of(path)
                if whose := self._whose(path, part):
                    raise ValueError(whose.removeprefix(": "))  # noqa: TRY301
                found = _counted(path)
                fits = notes["description"] == self.notes(part)["description"] and found["instances"] == size
                if not fits or found != (counts := counts or found):
                    raise ValueError("its notes do not fit")  # noqa: TRY301
                if thorough:
                    read_whole(path)
            except (ValueError, KeyError) as error:
                raise ValueError(f"{table}/{path.name}: {error}") from error
        marks = {t: {"bytes": f.stat().st_size, "sha256": _checksum(f)} for t, f in self._files(part)}
        return Part(counts, marks if thorough else {})

    def _files(self, part: int) -> list[tuple[str, Path]]:
        return [(table, self.file(table, part)) for table in self.tables]

    def tidy(self) -> None:
        """Remove half-written files of this job, and make room for parts that are missing.

        What lies in their place, and is not ours or not as we wrote it, is moved to another folder, not deleted.
        """
        for table in self.tables:
            folder = self.path / table
            folder.mkdir(exist_ok=True)
            for path in folder.glob(f".part-*.parquet.{self.job}.tmp"):
                path.unlink()
        for part in self.missing():
            for table, path in self._files(part):
                if path.exists() and not self._ours(table, part):
                    self.set_aside(path)

    def _ours(self, table: str, part: int) -> bool:
        """Whether a file may be written over: it is as we wrote it."""
        path = self.file(table, part)
        if part in self.listed:
            return path.is_file() and _checksum(path) == self.listed[part].files[table]["sha256"]
        try:
            return part not in self.damaged and notes_of(path).get("job") == self.job and not self._whose(path, part)
        except ValueError:
            return False

    def set_aside(self, path: Path) -> None:
        """Move a file to the folder of damaged ones."""
        folder = self.path / DAMAGED
        folder.mkdir(exist_ok=True)
        name = "-".join(path.relative_to(self.path).parts)
        free = (folder / f"{name}{f'.{i}' if i else ''}" for i in range(10**6))
        path.rename(next(place for place in free if not place.exists()))

    def status(self, state: State | None = None, **of_run: Any) -> Status:
        """How far the job is."""
        total = {name: sum(one.counts[name] for one in self.parts.values()) for name in COUNTS}
        whole = len(self.parts) == len(self.cut)
        return Status(
            folder=self.path,
            state="finished" if whole and state != "running" else state or "unfinished",
            instances=len(self.cut.ids),
            finished=total["instances"],
            errors=total["errors"],
            rows=total["rows"],
            parts=len(self.cut),
            parts_finished=len(self.parts),
            examples=self._examples(),
            damaged=self.damaged,
            foreign=self._foreign(),
            unseen=self.identity.unseen,
            **of_run,
        )

    def _examples(self) -> tuple[dict[str, Any], ...]:
        found: list[dict[str, Any]] = []
        for part in (part for part, one in sorted(self.parts.items()) if one.counts["errors"]):
            found += errors_in(self.file("instances", part), SHOWN - len(found))
            if len(found) >= SHOWN:
                break
        return tuple(found)

    def _foreign(self) -> tuple[str, ...]:
        """Readers of Parquet folders pass over names that start with a dot or an underscore, and so do we."""
        own = {path for part in range(len(self.cut)) for _, path in self._files(part)}
        found = [p for table in self.tables for p in (self.path / table).glob("*") if p.name[0] not in "._"]
        return tuple(str(path.relative_to(self.path)) for path in sorted(set(found) - own))

    def write_manifest(self, status: Status, run: Mapping[str, Any]) -> None:
        """Say what the folder holds: at the start of a run, on the way, and at its end."""
        content = {
            "format": FORMAT,
            "job": self.job,
            "state": status.state,
            **self.description,
            "settings": self.settings.to_dict(),
            "details": self.identity.details,
            "unseen": list(self.identity.unseen),
            "rows": status.rows,
            "errors": {"count": status.errors, "first": list(status.examples)},
            "parts": [
                {"part": part, "file": self.file("", part).name, **one.counts, "files": one.files}
                for part, one in sorted(self.parts.items())
            ],
            "failed": {str(part): why for part, why in status.failed.items()},
            "lost_workers": status.lost_workers,
            "seconds": status.seconds,
            "rate": status.rate,
            "run": dict(run),
        }
        self._write({self.path / "manifest.json": json.dumps(content, indent=1).encode()})

    def _write(self, files: Mapping[Path, bytes]) -> None:
        """Write files: first all of them under names that readers pass over, where a full disk does no harm."""
        aside = {path: path.with_name(f".{path.name}.{self.job}.tmp") for path in files}
        try:
            for path, content in files.items():
                write_through(aside[path], content)
            for path in files:
                aside[path].replace(path)
                _sync_folder(path.parent)
        finally:
            for path in aside.values():
                path.unlink(missing_ok=True)


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


def _counted(path: Path) -> dict[str, int]:
    """What a file says that its part holds."""
    notes = notes_of(path)
    return {name: int(notes[name]) for name in COUNTS}


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_through(path: Path, content: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("wb") as file:
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
