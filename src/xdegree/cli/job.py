"""``xdegree job``: explain many predictions, in parts that are written once."""

import argparse
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..factories import UsageError
from .arguments import (
    DONE,
    FACTORY,
    INCOMPLETE,
    add_factory,
    add_json,
    add_level,
    add_of,
    add_out,
    add_question,
    add_quiet,
    add_start,
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
was interrupted goes on where it stopped."""
ABOUT_RUN = f"""\
Explain many nodes of a graph, or many graphs, and write Parquet files.

{FACTORY}
Of one graph every row of the model's output is explained; of many, every graph.

The results, FOLDER/scores/*.parquet and FOLDER/instances/*.parquet, do not depend
on the engine or the number of workers. A job that was interrupted, by whatever it
was, is finished by `xdegree job resume FOLDER`."""
ABOUT_STATUS = """\
Say how far a job is, and what could not be explained.

May be asked at any time, also while the job runs."""
ABOUT_RESUME = """\
Go on with a job that was interrupted.

What is missing is done, with the settings that the job was started with. Only the
engine and the number of workers may be others."""
CODES = {
    DONE: "everything is explained",
    INCOMPLETE: "some could not be explained, or parts are missing: see `xdegree job status`",
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
        ],
        codes=CODES,
    )
    parser.set_defaults(run=helps(parser))
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    _add_run(actions)
    _add_status(actions)
    _add_resume(actions)


def _add_run(actions: Any) -> None:
    run = command(
        actions,
        "run",
        "start a job",
        about=ABOUT_RUN,
        examples=[
            "xdegree job run my_models.py:factory --out why --workers 2",
            "xdegree job run my_models.py:factory --out why --index 3,5,9 --edges pair",
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
    add_of(run)
    add_question(run)
    add_level(run)
    add_start(run)
    run.add_argument(
        "--memory", default="1GB", metavar="SIZE", help="for the portions of each worker (default: %(default)s)"
    )
    run.add_argument(
        "--part-size", type=positive, default=512, metavar="N", help="instances in one file (default: %(default)s)"
    )
    run.add_argument(
        "--batch-size", type=positive, default=64, metavar="N", help="instances in one call (default: %(default)s)"
    )
    _add_workers(run, "local", "as many as there are processors")
    run.set_defaults(run=_guarded(_run))


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
    add_json(status)
    status.set_defaults(run=_guarded(_status))


def _add_resume(actions: Any) -> None:
    resume = command(
        actions,
        "resume",
        "go on with a job that was interrupted",
        about=ABOUT_RESUME,
        examples=["xdegree job resume why", "xdegree job resume why --workers 2"],
        codes=CODES,
    )
    _add_folder(resume)
    _add_workers(resume, "as before", "as before")
    resume.set_defaults(run=_guarded(_resume))


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", type=Path, metavar="FOLDER", help="the job's folder")


def _add_workers(parser: argparse.ArgumentParser, engine: str, workers: str) -> None:
    parser.add_argument("--engine", choices=("local", "ray"), help=f"processes, or Ray (default: {engine})")
    parser.add_argument(
        "--workers", type=positive, metavar="N", help=f"how many work at the same time (default: {workers})"
    )
    add_json(parser)
    add_quiet(parser)


def _guarded(action: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The action with its errors and interruptions in words."""

    def run(given: argparse.Namespace) -> int:
        try:
            return action(given)
        except ImportError as error:
            raise UsageError(str(error)) from None
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"to go on: xdegree job resume {given.out}") from None

    return run


def _run(given: argparse.Namespace) -> int:
    from .. import jobs

    names = ("weights", "target", "of", "reading", "edge_scores", "level", "start", "layer")
    sizes = ("memory", "part_size", "batch_size")
    return _told(
        jobs.run(
            given.factory,
            out=given.out,
            engine=given.engine or "local",
            workers=given.workers,
            index=_index(given.index),
            options=options_of(given.option),
            progress=progress(given),
            **{name: getattr(given, name) for name in (*names, *sizes)},
        ),
        given,
    )


def _resume(given: argparse.Namespace) -> int:
    from .. import jobs

    status = jobs.resume(given.out, engine=given.engine, workers=given.workers, progress=progress(given))
    return _told(status, given)


def _status(given: argparse.Namespace) -> int:
    from .. import jobs

    return _told(jobs.status(given.out), given)


def _told(status: Any, given: argparse.Namespace) -> int:
    print_json({**asdict(status), "folder": str(status.folder)}) if given.json else print(status)
    return DONE if status.state in ("finished", "running") and not status.errors else INCOMPLETE


def _index(text: str) -> Any:
    if text == "all":
        return "all"
    path = Path(text)
    try:
        return [int(number) for number in (path.read_text().split() if path.is_file() else text.split(","))]
    except ValueError:
        raise UsageError(f"--index is all, numbers as 3,5,9, or a file with a number per line (got {text!r})") from None
