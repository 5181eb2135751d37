"""``xdegree check``: which operations of a model have a rule."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..factories import UsageError, listed_graphs, ready, said
from .arguments import (
    DONE,
    FACTORY,
    INCOMPLETE,
    add,
    add_factory,
    command,
    print_json,
)

if TYPE_CHECKING:
    from ..attribution.check import Report

ABOUT = f"""\
Say which operations of a model have a rule and which lack one, before any work.

{FACTORY}"""


def add_to(commands: Any) -> None:
    """Tell the parser about this command."""
    parser = command(
        commands,
        "check",
        "list the operations of a model with and without a rule",
        about=ABOUT,
        examples=["xdegree check my_models.py:factory", "xdegree check my_models.py:factory --of edge --json"],
        codes={DONE: "every operation has a rule", INCOMPLETE: "some operations lack one"},
    )
    add_factory(parser)
    add(parser, "--of", "--start", "--json")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Survey the model and print the report."""
    from ..attribution.check import check

    model, args, kwargs = ready(given.factory, given.weights)
    if graphs := listed_graphs(args):
        args = (graphs[0],)
    try:
        report = check(model, *args, of=given.of, start=given.start, model_kwargs=kwargs)
    except Exception as error:
        raise UsageError(f"the model cannot be surveyed: {said(error)}") from error
    print_json(_plain(report)) if given.json else print(report)
    return DONE if report.ok else INCOMPLETE


def _plain(report: "Report") -> dict[str, Any]:
    rows = [asdict(row) for row in report.rows]
    return {"ok": report.ok, "rows": rows, "missing": [asdict(missing) for missing in report.missing]}
