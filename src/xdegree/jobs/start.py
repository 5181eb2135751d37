"""Start a job, resume one, say how far it is, repair its manifest."""

import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version as version_of
from os import cpu_count
from pathlib import Path
from typing import Any, Literal, get_args

from tqdm import tqdm

from .. import fork_server
from ..attribution.scores import EdgeScores, Reading
from ..engine.options import Options
from ..engine.process_state import Memory
from ..model_call.call import Level
from ..model_call.split_points import Of
from .identity import Identity, differences
from .interruptions import Interruptions
from .manifest import opened, rebuilt
from .on_ray import Actors, ray
from .processes import Processes
from .scheduler import Report, Scheduler
from .settings import JobError, Settings, size_of
from .status import State, Status
from .storage import Folder, is_locked, locked
from .tables import pyarrow
from .work import Work, load, survey
from .worker import Crew

Engine = Literal["local", "ray"]
SHARE = 20
"""Writing the manifest on the way may take one in so many seconds."""
BAR = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"


@dataclass(frozen=True)
class Means:
    """How a run is carried out; no score depends on it."""

    engine: Engine
    workers: int
    timeout: float | None
    memory: int | None
    address: str | None
    progress: bool

    def __post_init__(self) -> None:
        if self.engine not in get_args(Engine):
            raise JobError(f"engine must be one of {get_args(Engine)} (got {self.engine!r})")
        if self.timeout is not None and (isinstance(self.timeout, bool) or not self.timeout > 0):
            raise JobError(f"timeout must be a positive number of seconds, or None (got {self.timeout!r})")
        pyarrow()
        if self.engine == "ray":
            ray()

    def warm_up(self) -> None:
        """Let the server of local workers import PyTorch while this process makes the model."""
        if self.engine == "local":
            fork_server.start()

    def crew(self, work: Work, expected: Identity) -> Crew:
        """Who does the work."""
        if self.engine == "ray":
            return Actors(work, expected, self.memory, self.address)
        return Processes(work.settings, expected, self.memory)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        names = ("engine", "workers", "timeout", "memory", "address")
        return {**{name: getattr(self, name) for name in names}, **_surroundings()}


def run(
    factory: str,
    *,
    out: str | Path,
    engine: Engine = "local",
    workers: int | None = None,
    timeout: float | None = None,
    memory: Memory = None,
    address: str | None = None,
    weights: str | Path | None = None,
    version: str | None = None,
    index: Literal["all"] | Sequence[int] = "all",
    target: int | None = None,
    of: Of = "node",
    reading: Reading = "contribution",
    edge_scores: EdgeScores | None = None,
    level: Level | None = None,
    start: str | None = None,
    layer: str | None = None,
    options: Options | None = None,
    portions: Memory = None,
    part_size: int = 512,
    batch_size: int = 64,
    progress: bool = True,
) -> Status:
    """Explain many nodes of a graph, or many graphs, and write Parquet files.

    Every result is written exactly once, whatever dies on the way; what is missing, `resume` adds. The files depend on
    the settings alone, bit for bit: not on the engine, not on the number of workers, not on interruptions.

    Args:
        factory: ``"MODULE:FACTORY"``, a function without arguments that returns ``(model, args)`` or
            ``(model, args, kwargs)``, as for ``xdegree check``. Its arguments are those of the model, for one graph; or
            a list (or dataset) of PyG ``Data`` alone, ``(model, (graphs,))``, for many.
        out: the folder for the results, a new or an empty one.
        engine: ``"local"`` processes, or actors of ``"ray"``.
        workers: how many of them; as many as there are processors by default.
        timeout: seconds for one call of a batch. One that takes longer is stopped and its instances are explained one
            by one; an instance that takes longer alone becomes an error.
        memory: limit for each worker, all in all; an allocation beyond it fails, and the instance becomes an error.
        address: of a Ray cluster, as in ``ray.init``. Without it, the cluster that this process is connected to, else
            the one that ``RAY_ADDRESS`` names, else one of this machine alone, which listens on 127.0.0.1 only.
        weights: a state dict to load into the model; only tensors are read from the file.
        version: a name for what the job's fingerprint cannot see, such as a service that the model asks; a `resume`
            with another one is refused.
        index: which nodes (or links, or graphs) are explained.
        target: the class that is explained, the predicted one by default.
        of: what is scored, every ``"node"``, ``"edge"``, ``"feature"`` or ``"edge_feature"``, as in `explain`.
        reading: as in `explain`.
        edge_scores: score edges by their end points too, as in `explain`; they get a table of their own.
        level: what the rows of the model's output are, for one graph; as in `explain`.
        start: for models of integers, as in `explain`.
        layer: where strength is read, as in `explain`.
        options: choices among rules; `Options()` by default.
        portions: budget for the portions of each worker, ``memory`` in `explain`; 1 GB by default, or a quarter of
            `memory` if that is less.
        part_size: instances in one file.
        batch_size: instances that are explained in one call.
        progress: show a progress bar.

    Returns:
        How far the job came: instances that could not be explained are no exception, but counted and listed.

    Raises:
        JobError: the job cannot be started.
        KeyboardInterrupt: after Ctrl-C. Finished parts stay, and `resume` does the rest.
        SystemExit: after SIGTERM, with code 143; else as after Ctrl-C.
    """
    limit = None if memory is None else size_of(memory, "memory")
    means = Means(engine, _number_of_workers(workers), timeout, limit, address, progress)
    settings = Settings(
        factory=_absolute(factory),
        folder=str(Path.cwd()),
        weights=None if weights is None else str(Path(weights).resolve()),
        index=_chosen(index),
        target=target,
        of=of,
        reading=reading,
        edge_scores=edge_scores,
        level=level,
        start=start,
        layer=layer,
        options=Options() if options is None else options,
        portions=portions if portions is not None else min(10**9, limit // 4) if limit else "1GB",
        version=version,
        part_size=part_size,
        batch_size=batch_size,
    )
    path = Path(out)
    _check_new(path)
    with Interruptions() as stops:
        means.warm_up()
        work, found = load(settings)
        folder = Folder(path, settings, found, work.count)
        survey(work, timeout)
        try:
            path.mkdir(parents=True, exist_ok=True)
            with locked(path):
                return _carried_out(folder, work, means, stops, folder.missing())
        except OSError as error:
            raise _unwritable(path, error) from error


def resume(
    out: str | Path,
    *,
    engine: Engine | None = None,
    workers: int | None = None,
    timeout: float | None = None,
    memory: Memory = None,
    address: str | None = None,
    version: str | None = None,
    errors: bool = False,
    progress: bool = True,
) -> Status:
    """Do what is missing or damaged, with the settings that the job was started with.

    Args:
        out: the job's folder.
        engine: may differ from before, as may `workers`, `timeout`, `memory` and `address`.
        workers: see `run`.
        timeout: see `run`.
        memory: see `run`.
        address: see `run`.
        version: must be that of `run`, if it is given.
        errors: also try the parts again in which instances could not be explained.
        progress: show a progress bar.

    Raises:
        JobError: the job cannot be resumed; if model, data, code or packages changed, it says what did.
    """
    path = Path(out)
    last = opened(path)[1]["run"]
    means = Means(
        last["engine"] if engine is None else engine,
        _number_of_workers(last["workers"] if workers is None else workers),
        last.get("timeout") if timeout is None else timeout,
        last.get("memory") if memory is None else size_of(memory, "memory"),
        last.get("address") if address is None else address,
        progress,
    )
    with Interruptions() as stops, locked(path):
        folder, manifest = opened(path)  # again: now no other process writes it
        folder.look()
        if not (missing := folder.missing(errors)):
            folder.write_manifest(status := folder.status(**_of_run(manifest)), manifest["run"])
            return status
        if version not in (None, before := folder.settings.version):
            raise JobError(
                f"cannot resume: the job was started with version={before!r} (got {version!r}); start another one in"
                " another folder"
            )
        means.warm_up()
        work, found = load(folder.settings)
        if other := differences(found, folder.identity):
            raise JobError(
                f"cannot resume: its {other} changed since the job was started, and parts with other answers would"
                " stand side by side; put back what the job was started with, or start another job in another folder"
            )
        if work.count != folder.instances:
            raise JobError(f"there were {folder.instances} instances when the job was started, now {work.count}")
        # A repaired manifest does not know the details any more; what is the same now was the same then.
        folder.identity = found
        try:
            return _carried_out(folder, work, means, stops, missing)
        except OSError as error:
            raise _unwritable(path, error) from error


def status(out: str | Path) -> Status:
    """How far a job is, at any time; of a job that does not run, every file is compared with its checksum."""
    path = Path(out)
    folder, manifest = opened(path)
    running = is_locked(path)
    folder.look(thorough=not running)
    state: State = "running" if running else "interrupted" if manifest["state"] == "interrupted" else "unfinished"
    return folder.status(state, **_of_run(manifest))


def repair(out: str | Path, *, index: Sequence[int] | None = None) -> Status:
    """Write the manifest anew from the parts, if it is broken or gone; the broken one is kept.

    Args:
        out: the job's folder.
        index: the instances of the job as it was started, where the parts cannot tell them all.

    Raises:
        JobError: the parts do not tell what the job was; the message says what is lost.
    """
    path = Path(out)
    if not path.is_dir():
        raise JobError(f"there is no folder {path}")
    with locked(path):
        try:
            folder, manifest = opened(path)
        except JobError:
            folder = rebuilt(path, None if index is None else _chosen(index))
            run = Means("local", _number_of_workers(None), None, None, None, False).to_dict()
            folder.look()
            if (path / "manifest.json").exists():
                folder.set_aside(path / "manifest.json")
            folder.write_manifest(folder.status(), run)
            return folder.status()
        folder.look()
        return folder.status(**_of_run(manifest))


def _of_run(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What the manifest says of the last run."""
    failed = {int(part): str(why) for part, why in manifest["failed"].items()}
    return {"failed": failed, **{name: manifest[name] for name in ("lost_workers", "seconds", "rate")}}


def _carried_out(folder: Folder, work: Work, means: Means, stops: Interruptions, missing: Sequence[int]) -> Status:
    """Explain what is missing; whatever happens, workers end and the manifest says how far it came."""
    report, run = Report(), means.to_dict()
    state: State | None = None
    finished = [folder.parts[part].counts for part in folder.parts.keys() - set(missing)]
    done, known = (sum(counts[name] for counts in finished) for name in ("instances", "errors"))
    total, hidden = len(folder.cut.ids), None if means.progress else True
    bar = tqdm(total=total, initial=done, unit=" instances", bar_format=BAR, disable=hidden)
    told = _Told(folder, report, run, bar, done, known)
    crew: Crew | None = None
    try:
        with stops.held():
            folder.tidy()
            folder.write_manifest(folder.status("running"), run)
        crew = means.crew(work, folder.identity)
        scheduler = Scheduler(folder, crew, report, means.timeout, told, stops.held)
        scheduler.work_through(missing, min(means.workers, len(missing)))
        report.ended = time.perf_counter()
    except KeyboardInterrupt:
        state = "interrupted"
        raise
    finally:
        stops.told = True  # from here on, another signal does not disturb the end
        bar.close()
        try:
            ending = folder.status(state, **report.of_run())
            folder.write_manifest(ending, run)
        finally:  # last: what a broken cluster does when it is closed is not up to us
            if crew is not None:
                crew.close()
    return ending


class _Told:
    """Shows progress, and writes the manifest on the way, so that it is never long out of date."""

    def __init__(self, folder: Folder, report: Report, run: Mapping[str, Any], bar: Any, done: int, known: int) -> None:
        self.folder, self.report, self.run, self.bar, self.done, self.known = folder, report, run, bar, done, known
        self.last, self.cost, self.written = time.monotonic(), 0.0, 0

    def __call__(self) -> None:
        self.bar.set_postfix_str(f"errors {self.known + self.report.errors}", refresh=False)
        self.bar.update(self.done + self.report.explained + self.report.under_way - self.bar.n)
        now = time.monotonic()
        if self.report.explained > self.written and now - self.last > max(1.0, SHARE * self.cost):
            with suppress(OSError):  # a full disk: the parts tell that, and at the end the manifest is written again
                self.folder.write_manifest(self.folder.status("running", **self.report.of_run()), self.run)
            self.last, self.cost, self.written = time.monotonic(), time.monotonic() - now, self.report.explained


def _number_of_workers(workers: Any) -> int:
    if workers is None:
        return cpu_count() or 1
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise JobError(f"workers must be an integer, at least 1 (got {workers!r})")
    return workers


def _chosen(index: Any) -> Any:
    """Which instances, as plain numbers; a tensor or an array of them will do."""
    if isinstance(index, str):
        return index
    plain = index.tolist() if hasattr(index, "tolist") else index
    return tuple(plain) if isinstance(plain, Iterable) else plain


def _absolute(factory: str) -> str:
    """A path to a Python file stays valid wherever the job is resumed."""
    module, colon, name = factory.rpartition(":")
    return f"{Path(module).resolve()}{colon}{name}" if module.endswith(".py") else factory


def _check_new(path: Path) -> None:
    if (path / "manifest.json").exists():
        raise JobError(f"{path} holds a job already; resume it: xdegree job resume {path}; or choose another folder")
    if path.exists() and (not path.is_dir() or [file for file in path.iterdir() if file.name != ".lock"]):
        raise JobError(f"{path} is no empty folder; choose another one")


def _unwritable(path: Path, error: OSError) -> JobError:
    then = f"resume: xdegree job resume {path}" if (path / "manifest.json").is_file() else "start again"
    return JobError(f"{path} cannot be written to: {error}; mend that, then {then}")


def _surroundings() -> dict[str, str]:
    """What else is worth a note."""
    return {"python": platform.python_version(), "pyarrow": version_of("pyarrow"), "platform": platform.platform()}
