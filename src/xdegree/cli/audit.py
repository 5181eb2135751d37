"""``xdegree audit``: does the score of a group tell what the model does without it?"""

import argparse
from pathlib import Path
from typing import Any

from ..factories import UsageError, listed_graphs, ready, said
from .arguments import (
    DONE,
    FACTORY,
    INCOMPLETE,
    add,
    add_factory,
    add_out,
    command,
    note,
    positive,
    print_json,
    progress,
)

ABOUT = f"""\
Compare what several methods say of nodes with what the model does without them.

Nodes are taken away in four ways: features set to zero or to the mean, edges cut,
nodes removed. A random ranking and a blank graph are the controls: a method that
is no better than random found nothing.

{FACTORY}
Of many graphs or rows, --index chooses some (default: 20 of them at most)."""

# The choices of `audit`, typed again: its own files import PyTorch. A test compares the two.
TASKS = ("classification", "binary", "regression")
WAYS = ("zero", "mean", "edges", "nodes")


def add_to(commands: Any) -> None:
    """Tell the parser about this command."""
    parser = command(
        commands,
        "audit",
        "compare methods by what the model does without the nodes they name",
        about=ABOUT,
        examples=[
            "xdegree audit my_models.py:factory --index 5",
            "xdegree audit my_models.py:factory --index 5 --index 7 --way nodes",
            "xdegree audit my_models.py:factory --out audit.json --picture audit.png",
        ],
        codes={DONE: "every method was measured in every way", INCOMPLETE: "some could not be measured; it says why"},
    )
    add_factory(parser)
    parser.add_argument(
        "--index", type=int, action="append", metavar="ROW", help="a node, link or graph; repeatable (default: some)"
    )
    add(parser, "--target")
    parser.add_argument(
        "--task", choices=TASKS, help="what outputs are (default: binary behind a sigmoid, regression for one)"
    )
    parser.add_argument(
        "--method", action="append", metavar="NAME", help="a method, as occlusion; repeatable (default: ten or so)"
    )
    parser.add_argument(
        "--way", choices=WAYS, action="append", help="how nodes are taken away; repeatable (default: all ways)"
    )
    parser.add_argument(
        "--samples", type=positive, default=20, metavar="N", help="random draws per measure (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all that is random (default: %(default)s)")
    add(parser, "--level")
    add_out(parser, "FILE", "save all numbers as JSON")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="save the curves as a picture (.png, .svg, .pdf)")
    add(parser, "--json", "--quiet")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Audit and print; save what is to be kept."""
    from ..auditing import audit

    model, args, kwargs = ready(given.factory, given.weights)
    graphs = listed_graphs(args)
    try:
        found = audit(
            model,
            *(args if graphs is None else ([graphs[i] for i in range(len(graphs))],)),
            index=given.index,
            target=given.target,
            task=given.task,
            methods=given.method,
            ways=tuple(given.way or WAYS),  # type: ignore[arg-type]
            samples=given.samples,
            seed=given.seed,
            level=given.level,
            progress=progress(given),
            model_kwargs=kwargs,
        )
    except Exception as error:
        raise UsageError(f"the model cannot be audited: {said(error)}") from error
    try:
        if given.out is not None:
            note(given, f"saved: {found.save(given.out)}")
        if given.picture is not None:
            found.plot().savefig(given.picture)
            note(given, f"saved: {given.picture}")
    except OSError as error:
        raise UsageError(str(error)) from None
    if given.json:
        print_json(found.to_dict())
    else:
        print(found)
    return INCOMPLETE if found.notes else DONE
