"""``xdegree check``: which operations of a model have a rule."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from torch import nn

from ..check import Report, check
from ..sources import Of
from .loading import UsageError, listed_graphs, load_weights, made

OK, MISSING = 0, 1

DESCRIPTION = """\
Say which operations of a model have a rule and which lack one, before any work.

MODULE:FACTORY names a Python function without arguments that returns the model and the arguments to call it with:

    def factory():
        return model, (x, edge_index)             # or with keywords: model, (x, edge_index), {"batch": batch}
        return model, ([data, data, …],)          # many graphs, as for a job: the first one is looked at

MODULE is a module that can be imported from here, or a path to a Python file (models/net.py:factory).

exit codes: 0 every operation has a rule, 1 some lack one, 2 the command could not be carried out
"""


def add_to(commands: Any) -> None:
    """Tell the parser about this command."""
    parser = commands.add_parser(
        "check",
        help="list the operations of a model with and without a rule",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("factory", metavar="MODULE:FACTORY", help="a function that returns (model, args[, kwargs])")
    parser.add_argument(
        "--weights", type=Path, metavar="FILE", help="a state dict to load into the model, as torch.save wrote it"
    )
    parser.add_argument(
        "--of", choices=get_args(Of), default="node", help="what would be explained (default: %(default)s)"
    )
    parser.add_argument(
        "--start", metavar="PATH", help="the module, as an embedding, behind which portions start (models of numbers)"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Survey the model and print the report."""
    model, args, kwargs = made(given.factory)
    if graphs := listed_graphs(args):
        args = (graphs[0],)
    if given.weights is not None:
        load_weights(model, given.weights)
    if isinstance(model, nn.Module):
        model.eval()
    try:
        report = check(model, *args, of=given.of, start=given.start, model_kwargs=kwargs)
    except Exception as error:
        raise UsageError(f"the model cannot be surveyed: {type(error).__name__}: {error}") from error
    print(_as_json(report) if given.json else report)
    return OK if report.ok else MISSING


def _as_json(report: Report) -> str:
    rows = [asdict(row) for row in report.rows]
    return json.dumps({"ok": report.ok, "rows": rows, "missing": [asdict(m) for m in report.missing]}, indent=2)
