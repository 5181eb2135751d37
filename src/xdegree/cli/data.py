"""``xdegree data``: make data that take a while, once."""

import argparse
from pathlib import Path
from typing import Any

from ..factories import UsageError
from .arguments import DONE, add, add_out, command

ABOUT = """\
Make the word vectors of all 70,042 sentences of the rebuilt Graph-SST2.

They are MiniLM's last hidden state, in float16: 550 MB, some minutes of one core. It is
done once: a command that was interrupted resumes where it stopped, and one that was
finished only prints. The trees are those of $XDEGREE_DATA, and so are the vectors if
they lie there already."""


def add_to(commands: Any) -> None:
    """Tell the parser about this command."""
    parser = command(
        commands,
        "data",
        "make data that take a while, once",
        about=ABOUT,
        examples=["xdegree data graph-sst2"],
        codes={DONE: "the data are there"},
    )
    parser.add_argument("name", metavar="NAME", choices=("graph-sst2",), help="graph-sst2")
    add_out(parser, "FOLDER", "for the vectors (default: the user's cache folder)")
    add(parser, "--quiet")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Make them and print where they are."""
    import torch

    from ..datasets.word_vectors import find_vectors, make_vectors

    torch.set_num_threads(1)
    found: Path | None = None if given.out else find_vectors()
    try:
        path = found or make_vectors(given.out, progress=not given.quiet)
    except (FileNotFoundError, ImportError) as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the same command resumes where it stopped") from None
    print("vectors:", path)
    return DONE
