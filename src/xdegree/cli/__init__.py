"""The command ``xdegree``: one file per sub-command, each with an ``add_to`` that tells the parser about it."""

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version

from . import check, explorer, job, report, reproduce
from .loading import UsageError

USAGE = 2
COMMANDS = (check, report, explorer, job, reproduce)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    given = _parser().parse_args(argv)
    try:
        return int(given.run(given))
    except UsageError as error:
        print(f"xdegree {given.command}: {error}", file=sys.stderr)
        return USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="xdegree", description="Explain the predictions of PyTorch Geometric models by decomposition."
    )
    parser.add_argument("--version", action="version", version=f"xdegree {version('xdegree')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands)
    return parser
