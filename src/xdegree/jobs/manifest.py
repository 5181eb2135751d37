"""The manifest of a job: read strictly, and written anew from the parts where it is broken."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from .identity import KINDS, Identity
from .settings import JobError, Settings, digest
from .storage import COUNTS, FORMAT, Folder, Part
from .tables import notes_of, pyarrow

FIELDS: dict[str, type | tuple[type, ...]] = {
    "job": str,
    "state": str,
    "settings": dict,
    "fingerprint": dict,
    "versions": dict,
    "details": dict,
    "unseen": list,
    "instances": int,
    "parts": list,
    "failed": dict,
    "lost_workers": int,
    "seconds": (int, float),
    "rate": (int, float),
    "run": dict,
}
OPTIONAL: dict[str, type | tuple[type, ...]] = {"timeout": (int, float), "memory": int, "address": str}
"""Of the last run, if they were given."""
IN_WORDS = {str: "text", dict: "an object", list: "a list", int: "an integer", (int, float): "a number"}


def opened(path: Path) -> tuple[Folder, dict[str, Any]]:
    """A job that is there, and its manifest."""
    manifest = path / "manifest.json"
    if not manifest.is_file():
        if _files(path):
            raise JobError(f"{path} has parts, but no manifest.json; write it anew: xdegree job repair {path}")
        raise JobError(f"{path} holds no job (it has no manifest.json); start one with xdegree job run")
    try:
        content = json.loads(manifest.read_text())
        folder = _checked(path, content)
    except (ValueError, RecursionError, JobError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        how = f"it is no JSON: {error}" if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) else error
        raise JobError(
            f"{manifest} cannot be used: {how}. To write it anew from the parts: xdegree job repair {path}"
        ) from None
    return folder, content


def _checked(path: Path, content: Any) -> Folder:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise ValueError(f"it is no manifest of the format {FORMAT!r} (got {found!r})")
    for name, kind in FIELDS.items():
        _check(content, name, kind, "")
    _check(content["run"], "engine", str, "run.")
    _check(content["run"], "workers", int, "run.")
    for name, kind in OPTIONAL.items():
        if content["run"].get(name) is not None:
            _check(content["run"], name, kind, "run.")
    for kind in content["details"]:
        _check(content["details"], kind, dict, "details.")
    if wrong := [part for part in content["failed"] if not part.isdecimal()]:
        raise ValueError(f"the field failed must name parts by their numbers (got {wrong[0]!r})")
    folder = _folder(path, content, content["details"], tuple(map(str, content["unseen"])))
    if content["job"] != folder.job:
        raise ValueError(
            "it was changed by hand: settings, fingerprint or number of instances are not those that the job was"
            " started with, and settings of a job cannot be changed"
        )
    for number, one in enumerate(content["parts"]):
        folder.parts.update([_part(one, f"parts[{number}].", len(folder.cut), folder.tables)])
    return folder


def _folder(path: Path, content: Mapping[str, Any], details: Any, unseen: tuple[str, ...]) -> Folder:
    for kind in KINDS:
        _check(content["fingerprint"], kind, str, "fingerprint.")
    known = {one.name for one in fields(Settings)}
    if wrong := sorted(known ^ content["settings"].keys()):
        raise ValueError(f"settings lack or have too much: {', '.join(wrong)}")
    _check(content["settings"], "options", dict, "settings.")
    if content["instances"] < 1:
        raise ValueError(f"instances must be at least 1 (got {content['instances']})")
    try:
        settings = Settings.from_dict(content["settings"])
    except TypeError as error:
        raise ValueError(f"settings are wrong: {error}") from None
    identity = Identity(dict(content["fingerprint"]), dict(content["versions"]), details, unseen)
    return Folder(path, settings, identity, content["instances"])


def _part(one: Any, where: str, count: int, tables: Sequence[str]) -> tuple[int, Part]:
    _check({where[:-1]: one}, where[:-1], dict, "")
    for name in ("part", *COUNTS):
        _check(one, name, int, where)
        if one[name] < 0:
            raise ValueError(f"{where}{name} must be at least 0 (got {one[name]})")
    if not 0 <= one["part"] < count:
        raise ValueError(f"{where}part must be one of 0 to {count - 1} (got {one['part']})")
    _check(one, "files", dict, where)
    for table in tables:
        _check(one["files"], table, dict, f"{where}files.")
        _check(one["files"][table], "bytes", int, f"{where}files.{table}.")
        _check(one["files"][table], "sha256", str, f"{where}files.{table}.")
    return one["part"], Part({name: one[name] for name in COUNTS}, one["files"])


def _check(content: Mapping[str, Any], name: str, kind: Any, where: str) -> None:
    if name not in content:
        raise ValueError(f"the field {where}{name} is missing")
    value = content[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"the field {where}{name} must be {IN_WORDS[kind]} (got {value!r})")


def rebuilt(path: Path, index: Sequence[int] | None) -> Folder:
    """A job's folder as its parts describe it; `index` is needed where they cannot tell it."""
    notes = [found for file in _files(path) if (found := _notes(file)) is not None]
    jobs = Counter(found["job"] for found in notes)
    if not jobs:
        raise JobError(
            f"{path} has no part that can be read, and only parts tell what the job was: the settings are lost. Start"
            " the job again, in another folder"
        )
    job = jobs.most_common(1)[0][0]
    content = json.loads(next(found["description"] for found in notes if found["job"] == job))
    settings = content["settings"]
    if isinstance(settings["index"], str) and settings["index"] != "all":
        settings["index"] = _index(path, job, settings, index)
    folder = _folder(path, content, {}, ())
    if folder.job != job:
        raise JobError(f"the parts in {path} do not say what the job was; start it again, in another folder")
    return folder


def _index(path: Path, job: str, settings: Mapping[str, Any], given: Sequence[int] | None) -> list[int]:
    """The instances of the job: those of its parts, if none is missing, or what the user says they were."""
    found: dict[int, list[int]] = {}
    for file in sorted((path / "instances").glob("part-*.parquet")):
        notes = _notes(file)
        if notes is not None and notes["job"] == job:
            table = pyarrow().parquet.read_table(file, columns=["index"])
            found[int(notes["part"])] = table.column("index").to_pylist()
    index = [i for part in sorted(found) for i in found[part]] if given is None else list(given)
    if digest(index) == settings["index"]:
        return index
    if given is not None:
        raise JobError(f"these {len(index)} instances are not those that the job in {path} was started with")
    raise JobError(
        f"the list of instances was lost with the manifest: {len(index)} of them are in the {len(found)} parts that can"
        f" be read, but not all. Name them as when the job was started: xdegree job repair {path} --index FILE"
    )


def _files(path: Path) -> list[Path]:
    return [
        file for table in ("instances", "scores", "edges") for file in sorted((path / table).glob("part-*.parquet"))
    ]


def _notes(file: Path) -> dict[str, str] | None:
    try:
        notes = notes_of(file)
    except ValueError:
        return None
    return notes if {"job", "part", "description"} <= notes.keys() else None
