"""``xdegree reproduce``: the paper's tables and figures, beside what is measured here."""

import argparse
from pathlib import Path
from typing import Any

import torch

from .loading import UsageError

DESCRIPTION = """\
Do an experiment of the paper and print what comes out beside the paper's figures.

Every model is trained from its seed and kept at its least validation loss; all methods explain the same models. Results
are kept in FOLDER as they come: a command that was interrupted goes on where it stopped, and one that was finished only
prints. The page, results.md, holds all experiments that were done so far.

The data are those of $XDEGREE_DATA. Synthetic graphs that are not there are generated; an experiment whose data cannot
be had says so.
"""


def add_to(commands: Any) -> None:
    """Tell the parser about this command."""
    from ..experiments import EXPERIMENTS

    parser = commands.add_parser(
        "reproduce",
        help="do the paper's experiments, one by one or all",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", choices=[*EXPERIMENTS, "all"], help=", ".join([*EXPERIMENTS, "all"]))
    parser.add_argument("--seeds", type=_positive, metavar="N", help="models per dataset (default: 5; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="few instances, only to see that everything works")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", default=Path("xdegree-results"), help="default: %(default)s"
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="where the page goes (default: FOLDER/results.md)")
    parser.add_argument("--no-progress", action="store_true", help="show no progress bars")
    parser.set_defaults(run=run)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of at least 1 is needed (got {text!r})")
    return int(text)


def run(given: argparse.Namespace) -> int:
    """Do the experiments, print each as it ends, and write the page."""
    from ..experiments import EXPERIMENTS, Bench, experiment, keep, write_page

    torch.set_num_threads(1)  # graphs are small; and times are of one processor
    seeds = given.seeds or (1 if given.quick else 5)
    bench = Bench(given.out, seeds, given.quick, not given.no_progress)
    folder = given.out / ("quick" if given.quick else "full")
    for name in EXPERIMENTS if given.name == "all" else [given.name]:
        try:
            outcome = experiment(name)(bench)
        except (FileNotFoundError, ImportError) as error:
            if given.name != "all":
                raise UsageError(str(error)) from error
            print(f"== {name}: left out, {error}\n", flush=True)
            continue
        pictures = keep(outcome, folder)
        print(outcome.text(), *(f"picture: {path}" for path in pictures), sep="\n", end="\n\n", flush=True)
    command = f"xdegree reproduce all --seeds {seeds}" + (" --quick" if given.quick else "")
    print("page:", write_page(tuple(EXPERIMENTS), folder, given.page or given.out / "results.md", command))
    return 0
