"""``xdegree job``: explain many predictions, in parts that are written once."""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args

from ..options import Options
from ..outputs import Level
from ..scores import Edges, Reading
from .loading import UsageError

OK, NOT_ALL, INTERRUPTED = 0, 1, 130

DESCRIPTION = """\
Explain many nodes of a graph, or many graphs, and write Parquet files.

MODULE:FACTORY names a Python function without arguments, as for `xdegree check`:

    def factory():
        return model, (x, edge_index)             # one graph: every row of the model's output is explained
        return model, ([data, data, …],)          # or a list, or dataset, of graphs: every graph is explained

The results, OUT/scores/*.parquet and OUT/instances/*.parquet, do not depend on the engine or the number of workers. A
job that was interrupted, by whatever it was, is finished by `xdegree job resume OUT`.

exit codes: 0 everything is explained; 1 some could not be, or parts are missing (see `xdegree job status OUT`);
2 the command could not be carried out; 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Tell the parser about this command."""
    parser = commands.add_parser("job", help="explain many nodes or graphs, into Parquet files")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_run(actions)
    status = actions.add_parser("status", help="say how far a job is")
    status.add_argument("out", type=Path, help="the job's folder")
    status.add_argument("--json", action="store_true", help="print it as JSON")
    status.set_defaults(run=_guarded(_status))
    resume = actions.add_parser("resume", help="go on with a job that was interrupted")
    resume.add_argument("out", type=Path, help="the job's folder")
    _add_workers(resume, "as before")
    resume.set_defaults(run=_guarded(_resume))


def _add_run(actions: Any) -> None:
    run = actions.add_parser(
        "run", help="start a job", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    run.add_argument("factory", metavar="MODULE:FACTORY", help="a function that returns (model, args[, kwargs])")
    run.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="a new folder for the results")
    run.add_argument("--weights", type=Path, metavar="FILE", help="a state dict to load into the model")
    run.add_argument(
        "--index", default="all", help="which nodes or graphs: all, numbers (3,5,9), or a file with a number per line"
    )
    run.add_argument("--target", type=int, metavar="CLASS", help="the class (default: the predicted one)")
    run.add_argument("--reading", choices=get_args(Reading), default="contribution", help="(default: %(default)s)")
    run.add_argument("--edges", choices=get_args(Edges), help="score edges too, by their end points")
    run.add_argument("--level", choices=get_args(Level), help="what the model predicts (default: told by its output)")
    run.add_argument("--start", metavar="PATH", help="the module behind which portions start (models of numbers)")
    run.add_argument("--layer", metavar="PATH", help="the module at which strength is read")
    run.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="a choice among rules, as ties=first"
    )
    run.add_argument("--memory", default="1GB", help="for the portions of each worker (default: %(default)s)")
    run.add_argument("--part-size", type=int, default=512, help="instances in one file (default: %(default)s)")
    run.add_argument("--batch-size", type=int, default=64, help="instances in one call (default: %(default)s)")
    _add_workers(run, "local; as many as there are processors")
    run.set_defaults(run=_guarded(_run))


def _add_workers(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("--engine", choices=("local", "ray"), help=f"processes, or Ray (default: {default})")
    parser.add_argument("--workers", type=int, metavar="N", help="how many work at the same time")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def _guarded(action: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The action with its errors and interruptions in words."""

    def run(given: argparse.Namespace) -> int:
        try:
            return action(given)
        except ImportError as error:
            raise UsageError(str(error)) from error
        except KeyboardInterrupt:
            print(f"interrupted; to go on: xdegree job resume {given.out}", file=sys.stderr)
            return INTERRUPTED

    return run


def _run(given: argparse.Namespace) -> int:
    from .. import jobs

    names = ("weights", "target", "reading", "edges", "level", "start", "layer", "memory", "part_size", "batch_size")
    return _told(
        jobs.run(
            given.factory,
            out=given.out,
            engine=given.engine or "local",
            workers=given.workers,
            index=_index(given.index),
            options=_options(given.option),
            progress=not given.quiet,
            **{name: getattr(given, name) for name in names},
        )
    )


def _resume(given: argparse.Namespace) -> int:
    from .. import jobs

    return _told(jobs.resume(given.out, engine=given.engine, workers=given.workers, progress=not given.quiet))


def _status(given: argparse.Namespace) -> int:
    from .. import jobs

    return _told(jobs.status(given.out), as_json=given.json)


def _told(status: Any, as_json: bool = False) -> int:
    print(json.dumps({**asdict(status), "folder": str(status.folder)}, indent=2) if as_json else status)
    return OK if status.state in ("finished", "running") and not status.errors else NOT_ALL


def _index(text: str) -> Any:
    if text == "all":
        return "all"
    path = Path(text)
    try:
        return [int(number) for number in (path.read_text().split() if path.is_file() else text.split(","))]
    except ValueError:
        raise UsageError(f"--index is all, numbers as 3,5,9, or a file with a number per line (got {text!r})") from None


def _options(given: list[str]) -> Options:
    known = [field.name for field in fields(Options)]
    pairs = [choice.partition("=") for choice in given]
    if wrong := [name for name, equals, _ in pairs if name not in known or not equals]:
        raise UsageError(f"--option is NAME=VALUE with one of the names {known} (got {wrong[0]!r})")
    try:
        return Options(**{name: value for name, _, value in pairs})  # type: ignore[arg-type]
    except ValueError as error:
        raise UsageError(str(error)) from None
