"""The command ``xdegree``: one file per sub-command, each with an ``add_to`` that tells the parser about it."""

import argparse
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from ..factories import WRITTEN_FOR_USERS, UsageError
from . import audit, check, completion, data, explain, explorer, job, report, reproduce
from .arguments import CODES, FAILED, INCOMPLETE, INTERRUPTED, Formatter, Parser, helps

COMMANDS = (check, explain, report, audit, explorer, job, reproduce, data, completion)
EPILOG = """\
examples:
  xdegree check my_models.py:factory               can this model be explained?
  xdegree explain my_models.py:factory --index 5   why this prediction?
  xdegree COMMAND --help                           all about a command

exit codes, of all commands:
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    try:
        with warnings.catch_warnings():
            if not sys.warnoptions:  # of other packages, about their own future: nothing that a reader could mend
                warnings.simplefilter("ignore", FutureWarning)
            return _carried_out(_parser().parse_args(argv))
    finally:
        _let_readers_leave()


def _carried_out(given: argparse.Namespace) -> int:
    """Run a sub-command; whatever ends it, a message says so in one place and in one form."""
    try:
        return int(given.run(given))
    except KeyboardInterrupt as stop:
        print("; ".join([f"{given.prog}: interrupted", *map(str, stop.args)]), file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return INCOMPLETE
    except Exception as error:  # noqa: BLE001  (a traceback is no message; the variable below shows it)
        return _failed(given.prog, error)


def _failed(prog: str, error: Exception) -> int:
    """Say what went wrong; where it did only if that is asked for, or how to ask if the message cannot be enough."""
    known = isinstance(error, UsageError)
    enough = known and (error.__cause__ is None or isinstance(error.__cause__, WRITTEN_FOR_USERS))
    if os.environ.get("XDEGREE_DEBUG"):
        traceback.print_exception(error)
    print(f"{prog}: {error if known else f'{type(error).__name__}: {error}'}", file=sys.stderr)
    if not enough and not os.environ.get("XDEGREE_DEBUG"):
        print("(XDEGREE_DEBUG=1 shows where it happened)", file=sys.stderr)
    return FAILED


def _let_readers_leave() -> None:
    """Drop output whose reader is gone, as behind ``| head -1``: Python would report an error at exit."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Version(argparse.Action):
    """Versions are looked up only on request; those of PyTorch and PyG without importing them."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        from .. import __version__

        print(f"xdegree {__version__}", *(f"{name} {version(name)}" for name in ("torch", "torch_geometric")), sep="\n")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="xdegree",
        description="Explain the predictions of PyTorch Geometric models by decomposition.",
        epilog=EPILOG + "\n".join(f"  {number:<4} {text}" for number, text in CODES.items()),
        formatter_class=Formatter,
    )
    about = "print the versions of xdegree, PyTorch and PyG, and exit"
    parser.add_argument("--version", action=_Version, nargs=0, help=about)
    parser.set_defaults(prog=parser.prog, run=helps(parser))
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for module in COMMANDS:
        module.add_to(commands)
    return parser
