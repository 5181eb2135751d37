"""Start a job, go on with one, say how far it is."""

import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from importlib.metadata import version
from os import cpu_count
from pathlib import Path
from typing import Any, Literal, get_args

from tqdm import tqdm

from ..attribution.scores import EdgeScores, Reading
from ..engine.options import Options
from ..engine.process_state import Memory
from ..model_call.call import Level
from ..model_call.split_points import Of
from .on_ray import Actors, ray
from .processes import Processes
from .scheduler import Foreman, Report
from .settings import JobError, Settings
from .storage import Folder, Status, is_locked, locked, opened
from .tables import pyarrow
from .work import Work, fingerprint, load, survey
from .worker import Crew, differing

Engine = Literal["local", "ray"]


def run(
    factory: str,
    *,
    out: str | Path,
    engine: Engine = "local",
    workers: int | None = None,
    weights: str | Path | None = None,
    index: Literal["all"] | Sequence[int] = "all",
    target: int | None = None,
    of: Of = "node",
    reading: Reading = "contribution",
    edge_scores: EdgeScores | None = None,
    level: Level | None = None,
    start: str | None = None,
    layer: str | None = None,
    options: Options | None = None,
    memory: Memory = "1GB",
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
        engine: ``"local"`` processes, or actors of ``"ray"``, on the cluster that this process is connected to, else on
            the one that ``RAY_ADDRESS`` names, else on this machine alone.
        workers: how many of them; as many as there are processors by default.
        weights: a state dict to load into the model; only tensors are read from the file.
        index: which nodes (or links, or graphs) are explained.
        target: the class that is explained, the predicted one by default.
        of: what is scored, every ``"node"``, ``"edge"``, ``"feature"`` or ``"edge_feature"``, as in `explain`.
        reading: as in `explain`.
        edge_scores: score edges by their end points too, as in `explain`; they get a table of their own.
        level: what the rows of the model's output are, for one graph; as in `explain`.
        start: for models of whole numbers, as in `explain`.
        layer: where strength is read, as in `explain`.
        options: choices among rules; the paper's by default.
        memory: budget for the portions of each worker.
        part_size: instances in one file.
        batch_size: instances that are explained in one call.
        progress: show a progress bar.

    Returns:
        How far the job came: also instances that could not be explained are no exception, but counted and listed.

    Raises:
        JobError: the job cannot be done, or cannot be gone on with.
        KeyboardInterrupt: after Ctrl-C; finished parts stay, and `resume` goes on.
    """
    _check_engine(engine)
    workers = _number_of_workers(workers)
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
        memory=memory,
        part_size=part_size,
        batch_size=batch_size,
    )
    path = Path(out)
    _check_new(path)
    work = load(settings)
    settings.parts(work.count)
    survey(work)
    folder = Folder(path, settings, fingerprint(work), _versions(), work.count)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with locked(path):
            return _carried_out(folder, work, engine, workers, progress)
    except OSError as error:
        raise _unwritable(path, error) from error


def resume(
    out: str | Path, *, engine: Engine | None = None, workers: int | None = None, progress: bool = True
) -> Status:
    """Go on with a job: do what is missing, with the settings that it was started with.

    Args:
        out: the job's folder.
        engine: another than before, if you like.
        workers: another number than before, if you like.
        progress: show a progress bar.
    """
    path = Path(out)
    folder, manifest = opened(path)
    engine = manifest["run"]["engine"] if engine is None else engine
    workers = manifest["run"]["workers"] if workers is None else workers
    _check_engine(engine)
    workers = _number_of_workers(workers)
    with locked(path):
        if folder.status().state == "finished":
            return _closed(folder, Report(), manifest["run"])
        _check_same("versions", _versions(), folder.versions, "install these versions again")
        work = load(folder.settings)
        _check_same("the fingerprints", fingerprint(work), folder.fingerprint, "put back what the job was started with")
        if work.count != folder.instances:
            raise JobError(f"there were {folder.instances} instances when the job was started, now {work.count}")
        try:
            return _carried_out(folder, work, engine, workers, progress)
        except OSError as error:
            raise _unwritable(path, error) from error


def status(out: str | Path) -> Status:
    """How far a job is; may be asked at any time, also while it runs."""
    path = Path(out)
    folder, manifest = opened(path)
    if is_locked(path):
        return folder.status("running")
    failed = {int(part): why for part, why in manifest["failed"].items()}
    return folder.status(failed=failed, lost_workers=manifest["lost_workers"], seconds=manifest["seconds"])


def _carried_out(folder: Folder, work: Work, engine: Engine, workers: int, progress: bool) -> Status:
    """Explain what is missing; whatever happens, workers end and the manifest says how far it came."""
    report, run = Report(), {"engine": engine, "workers": workers, **_surroundings()}
    folder.tidy()
    folder.write_manifest(folder.status("running"), run)
    parts, finished = folder.settings.parts(work.count), folder.finished()
    missing = [part for part in range(len(parts)) if part not in finished]
    done = sum(one["instances"] for one in finished.values())
    try:
        crew: Crew = Actors(work) if engine == "ray" else Processes(folder.settings, folder.fingerprint)
        with (
            closing(crew),
            tqdm(total=len(parts.ids), initial=done, unit="instance", disable=None if progress else True) as bar,
        ):
            Foreman(folder, parts, crew, report, bar).work_through(missing, min(workers, len(missing)))
            report.ended = time.perf_counter()
    finally:
        ending = _closed(folder, report, run)
    return ending


def _closed(folder: Folder, report: Report, run: Mapping[str, Any]) -> Status:
    """Write the manifest at the end of a run."""
    ending = folder.status(**report.of_run())
    folder.write_manifest(ending, run)
    return ending


def _check_engine(engine: object) -> None:
    if engine not in get_args(Engine):
        raise JobError(f"engine must be one of {get_args(Engine)} (got {engine!r})")
    pyarrow()
    if engine == "ray":
        ray()


def _number_of_workers(workers: Any) -> int:
    if workers is None:
        return cpu_count() or 1
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise JobError(f"workers must be a whole number, at least 1 (got {workers!r})")
    return workers


def _chosen(index: Any) -> Any:
    """Which instances, as plain numbers; a tensor or an array of them will do."""
    if isinstance(index, str):
        return index
    plain = index.tolist() if hasattr(index, "tolist") else index
    return tuple(plain) if isinstance(plain, Iterable) else plain


def _absolute(factory: str) -> str:
    """A path to a Python file stays valid wherever the job is gone on with."""
    module, colon, name = factory.rpartition(":")
    return f"{Path(module).resolve()}{colon}{name}" if module.endswith(".py") else factory


def _check_new(path: Path) -> None:
    if (path / "manifest.json").exists():
        raise JobError(
            f"{path} holds a job already; go on with it: xdegree job resume {path}; or choose another folder"
        )
    if path.exists() and (not path.is_dir() or [file for file in path.iterdir() if file.name != ".lock"]):
        raise JobError(f"{path} is no empty folder; choose another one")


def _unwritable(path: Path, error: OSError) -> JobError:
    then = f"go on with: xdegree job resume {path}" if (path / "manifest.json").is_file() else "start again"
    return JobError(f"{path} cannot be written to: {error}; mend that, then {then}")


def _versions() -> dict[str, str]:
    """Of what decides the answer."""
    return {name: version(name) for name in ("xdegree", "torch", "torch_geometric")}


def _surroundings() -> dict[str, str]:
    """What else is worth a note."""
    return {"python": platform.python_version(), "pyarrow": version("pyarrow"), "platform": platform.platform()}


def _check_same(what: str, found: Mapping[str, str], before: Mapping[str, str], advice: str) -> None:
    if other := differing(found, before):
        raise JobError(
            f"the job cannot be gone on with: its {other} changed since it was started ({what} differ), and parts with"
            f" other answers would stand side by side; {advice}, or start another job in another folder"
        )
