"""``xdegree job``: explain many predictions, in parts that are written once."""

import argparse
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from .. import fork_server
from ..factories import UsageError
from .arguments import (
    DONE,
    FACTORY,
    INCOMPLETE,
    QUESTION,
    add,
    add_factory,
    add_out,
    command,
    helps,
    options_of,
    positive,
    print_json,
    progress,
)

ABOUT = """\
Explain many nodes of a graph, or many graphs, into Parquet files.

The work is done in parts; a part is written once, whole or not at all. A job that
was interrupted is resumed where it stopped."""
ABOUT_RUN = f"""\
Explain many nodes of a graph, or many graphs, and write Parquet files.

{FACTORY}
Of one graph every row of the model's output is explained; of many, every graph.

The results, FOLDER/scores/*.parquet and FOLDER/instances/*.parquet, do not depend
on the engine or the number of workers. A job that was interrupted, by whatever it
was, is finished by `xdegree job resume FOLDER`."""
ABOUT_STATUS = """\
Say how far a job is, what could not be explained, and which files are damaged.

May be asked at any time, also while the job runs. Of a job that does not run every
file is read and compared with its checksum."""
ABOUT_RESUME = """\
Resume a job that was interrupted.

What is missing or damaged is done, with the settings that the job was started with;
it is refused if the model, its code, the data or packages changed. The engine, the
workers, the timeout and the memory limit may be others."""
ABOUT_REPAIR = """\
Write the manifest of a job anew from its parts.

For a manifest.json that is cut off, broken or gone. Every part carries the settings;
the broken manifest is kept in FOLDER/damaged."""
MEANS = ("workers", "timeout", "memory", "address", "version")
TERMINATED = 143
CODES = {
    DONE: "everything is explained",
    INCOMPLETE: "some could not be explained, or parts are missing: see `xdegree job status`",
    TERMINATED: "told to end (SIGTERM)",
}


def add_to(commands: Any) -> None:
    """Tell the parser about this command."""
    parser = command(
        commands,
        "job",
        "explain many nodes or graphs, into Parquet files",
        about=ABOUT,
        examples=[
            "xdegree job run my_models.py:factory --out why",
            "xdegree job status why",
            "xdegree job resume why",
            "xdegree job repair why",
        ],
        codes=CODES,
    )
    parser.set_defaults(run=helps(parser))
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    _add_run(actions)
    _add_status(actions)
    _add_resume(actions)
    _add_repair(actions)


def _add_run(actions: Any) -> None:
    run = command(
        actions,
        "run",
        "start a job",
        about=ABOUT_RUN,
        examples=[
            "xdegree job run my_models.py:factory --out why --workers 2",
            "xdegree job run my_models.py:factory --out why --index 3,5,9 --edge-scores pair",
        ],
        codes=CODES,
    )
    add_factory(run)
    add_out(run, "FOLDER", "a new folder for the results (required)", required=True)
    run.add_argument(
        "--index",
        default="all",
        metavar="ROWS",
        help="which nodes, links or graphs: all, numbers as 3,5,9, or a file with a number per line"
        " (default: %(default)s)",
    )
    add(run, "--of", *QUESTION, "--level", "--start")
    run.add_argument(
        "--portions",
        metavar="SIZE",
        help="budget for the portions of each worker (default: 1GB, or a fourth of --memory)",
    )
    run.add_argument(
        "--part-size", type=positive, default=512, metavar="N", help="instances in one file (default: %(default)s)"
    )
    run.add_argument(
        "--batch-size", type=positive, default=64, metavar="N", help="instances in one call (default: %(default)s)"
    )
    _add_workers(run, "local", "as many as there are processors")
    run.set_defaults(run=_guarded(_run))


def _add_repair(actions: Any) -> None:
    repair = command(
        actions,
        "repair",
        "write a broken manifest anew",
        about=ABOUT_REPAIR,
        examples=["xdegree job repair why", "xdegree job repair why --index rows.txt"],
        codes={DONE: "the manifest is written, and everything is explained", INCOMPLETE: CODES[INCOMPLETE]},
    )
    _add_folder(repair)
    repair.add_argument(
        "--index", metavar="ROWS", help="the instances of the job, where its parts cannot tell them (default: they do)"
    )
    add(repair, "--json")
    repair.set_defaults(run=_guarded(_repair))


def _add_status(actions: Any) -> None:
    status = command(
        actions,
        "status",
        "say how far a job is",
        about=ABOUT_STATUS,
        examples=["xdegree job status why", "xdegree job status why --json"],
        codes={DONE: "it is finished, or it runs, without errors so far", INCOMPLETE: CODES[INCOMPLETE]},
    )
    _add_folder(status)
    add(status, "--json")
    status.set_defaults(run=_guarded(_status))


def _add_resume(actions: Any) -> None:
    resume = command(
        actions,
        "resume",
        "resume a job that was interrupted",
        about=ABOUT_RESUME,
        examples=["xdegree job resume why", "xdegree job resume why --workers 2"],
        codes=CODES,
    )
    _add_folder(resume)
    _add_workers(resume, "as before", "as before")
    resume.add_argument("--errors", action="store_true", help="also try the instances again that have an error")
    resume.set_defaults(run=_guarded(_resume))


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", type=Path, metavar="FOLDER", help="the job's folder")


def _add_workers(parser: argparse.ArgumentParser, engine: str, workers: str) -> None:
    parser.add_argument("--engine", choices=("local", "ray"), help=f"processes, or Ray (default: {engine})")
    parser.add_argument(
        "--workers", type=positive, metavar="N", help=f"how many work at the same time (default: {workers})"
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        metavar="SECONDS",
        help="for an instance, or a batch of them (default: none, or as before)",
    )
    parser.add_argument("--memory", metavar="SIZE", help="limit for each worker, as 4GB (default: none, or as before)")
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="of a Ray cluster, or auto (default: $RAY_ADDRESS, or this machine alone)",
    )
    parser.add_argument(
        "--model-version",
        dest="version",
        metavar="NAME",
        help="of what the fingerprint cannot see; another one is not resumed (default: none)",
    )
    add(parser, "--json", "--quiet")


def _guarded(action: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The action with its errors and interruptions in words."""

    def run(given: argparse.Namespace) -> int:
        try:
            return action(given)
        except ImportError as error:
            raise UsageError(str(error)) from None
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_to_resume(given.out)) from None
        except SystemExit as stop:
            if stop.code == TERMINATED:
                print(f"{given.prog}: terminated; {_to_resume(given.out)}", file=sys.stderr)
            raise

    return run


def _to_resume(out: Path) -> str:
    return f"to resume: xdegree job resume {out}" if (out / "manifest.json").exists() else "nothing was written"


def _jobs(given: argparse.Namespace) -> Any:
    """The package, which imports PyTorch; local workers need it too, and their server imports it at the same time."""
    if given.engine != "ray":
        fork_server.start()
    from .. import jobs

    return jobs


def _run(given: argparse.Namespace) -> int:
    names = ("weights", "target", "of", "reading", "edge_scores", "level", "start", "layer")
    sizes = ("portions", "part_size", "batch_size")
    with redirect_stdout(sys.stderr):  # what a factory prints is no result
        status = _jobs(given).run(
            given.factory,
            out=given.out,
            engine=given.engine or "local",
            index=_index(given.index),
            options=options_of(given.option),
            progress=progress(given),
            **{name: getattr(given, name) for name in (*names, *sizes, *MEANS)},
        )
    return _told(status, given)


def _resume(given: argparse.Namespace) -> int:
    with redirect_stdout(sys.stderr):
        status = _jobs(given).resume(
            given.out,
            engine=given.engine,
            errors=given.errors,
            progress=progress(given),
            **{name: getattr(given, name) for name in MEANS},
        )
    return _told(status, given)


def _repair(given: argparse.Namespace) -> int:
    from .. import jobs

    return _told(jobs.repair(given.out, index=None if given.index is None else _index(given.index)), given)


def _status(given: argparse.Namespace) -> int:
    from .. import jobs

    return _told(jobs.status(given.out), given)


def _told(status: Any, given: argparse.Namespace) -> int:
    print_json(status.to_dict()) if given.json else print(status)
    return DONE if status.state in ("finished", "running") and not status.errors else INCOMPLETE


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"a positive number of seconds is needed (got {text!r})")
    return seconds


def _index(text: str) -> Any:
    if text == "all":
        return "all"
    path = Path(text)
    try:
        return [int(number) for number in (path.read_text().split() if path.is_file() else text.split(","))]
    except ValueError:
        raise UsageError(f"--index is all, numbers as 3,5,9, or a file with a number per line (got {text!r})") from None
