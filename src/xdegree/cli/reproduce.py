"""``xdegree reproduce``: the paper's tables and figures, beside what is measured here."""

import argparse
import sys
import warnings
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..factories import UsageError
from .arguments import (
    DONE,
    INCOMPLETE,
    add,
    add_out,
    command,
    positive,
    print_json,
    progress,
)

if TYPE_CHECKING:
    from ..experiments import Outcome

ABOUT = """\
Do an experiment of the paper and print the outcome beside its figures.

Every model is trained from its seed and kept at its least validation loss; all
methods explain the same models. Results are kept in FOLDER as they come: a
command that was interrupted resumes where it stopped, and one that was finished
only prints. The page, results.md, sums up all experiments that were done so far;
each has a page of its own beside it, in the folder results.

The data are those of $XDEGREE_DATA. Synthetic graphs that are not there are
generated; an experiment whose data cannot be had says so."""


def add_to(commands: Any) -> None:
    """Tell the parser about this command."""
    from ..experiments import EXPERIMENTS

    names = (*EXPERIMENTS, "all")
    parser = command(
        commands,
        "reproduce",
        "do the paper's experiments, one by one or all",
        about=ABOUT,
        examples=[
            "xdegree reproduce datasets",
            "xdegree reproduce accuracy --seeds 1",
            "xdegree reproduce all --quick --json > results.json",
        ],
        codes={
            DONE: "the experiments are done",
            INCOMPLETE: "of all experiments some were left out, the reason is said",
        },
    )
    parser.add_argument("name", metavar="NAME", choices=names, help=", ".join(names))
    parser.add_argument("--seeds", type=positive, metavar="N", help="models per dataset (default: 5; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="few instances, only to see that everything works")
    add_out(parser, "FOLDER", "for results and models (default: %(default)s)", default=Path("xdegree-results"))
    parser.add_argument("--page", type=Path, metavar="FILE", help="where the page goes (default: FOLDER/results.md)")
    add(parser, "--json", "--quiet")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Do the experiments, print each as it ends, and write the page."""
    import torch

    from ..experiments import EXPERIMENTS, Bench, experiment, keep, write_page

    torch.set_num_threads(1)  # graphs are small; and times are of one processor
    # By the paper's rules most explanations leave much open: the pages say so, not a line for each of thousands.
    warnings.filterwarnings("ignore", "single scores add up", UserWarning)
    seeds = given.seeds or (1 if given.quick else 5)
    _check_extras()
    bars = progress(given)
    bench = Bench(given.out, seeds, given.quick, bars, log=not bars and not given.quiet)
    folder = given.out / ("quick" if given.quick else "full")
    done: list[dict[str, Any]] = []
    left_out: dict[str, str] = {}
    for name in EXPERIMENTS if given.name == "all" else [given.name]:
        try:
            outcome = experiment(name)(bench)
        except (FileNotFoundError, ImportError) as error:
            if given.name != "all":
                raise UsageError(str(error)) from None
            left_out[name] = str(error)
            print(f"{given.prog}: {name} is left out, {error}", file=sys.stderr)
            continue
        except KeyboardInterrupt:
            raise KeyboardInterrupt("the same command resumes where it stopped") from None
        pictures = keep(outcome, folder, _command(name, seeds, given.quick))
        done.append(_plain(outcome, pictures))
        if not given.json:
            print(outcome.text(), *(f"picture: {path}" for path in pictures), sep="\n", end="\n\n", flush=True)
    said = _command(given.name, seeds, given.quick)
    page = write_page(tuple(EXPERIMENTS), folder, given.page or given.out / "results.md", said)
    if given.json:
        print_json({"experiments": done, "left_out": left_out, "page": str(page)})
    else:
        print("page:", page)
    return INCOMPLETE if left_out else DONE


def _check_extras() -> None:
    """Say what is missing before any work, not after an hour of it."""
    missing = [package for package in EXTRAS if find_spec(package) is None]
    if missing:
        raise UsageError(f'experiments need {", ".join(missing)}: pip install "xdegree[bench]"')


EXTRAS = ("safetensors", "matplotlib", "scipy", "captum", "rdkit")


def _command(name: str, seeds: int, quick: bool) -> str:
    return f"xdegree reproduce {name} --seeds {seeds}" + (" --quick" if quick else "")


def _plain(outcome: "Outcome", pictures: list[Path]) -> dict[str, Any]:
    return {
        "name": outcome.name,
        "title": outcome.title,
        "about": outcome.about,
        "tables": [asdict(table) for table in outcome.tables],
        "pictures": [str(path) for path in pictures],
    }
