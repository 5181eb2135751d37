"""What the sub-commands share: how they are declared, and the options that mean the same everywhere.

Nothing at the top of any file of this folder imports PyTorch: help and completion must not wait for it.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

from ..engine.options import Options
from ..factories import UsageError, close

DONE, INCOMPLETE, FAILED, INTERRUPTED = 0, 1, 2, 130
CODES = {
    DONE: "done",
    INCOMPLETE: "done, but something is missing or failed",
    FAILED: "could not be carried out: wrong usage, a file that is not there, a model that fails",
    INTERRUPTED: "interrupted by Ctrl-C",
}
"""The exit codes of all commands; the help of each says what they mean there."""

# The choices of `explain`, typed again: their own files import PyTorch. A test compares the two.
OF = ("node", "edge", "feature", "edge_feature")
READINGS = ("contribution", "impact", "probability", "strength")
EDGES = ("pair", "mean")
LEVELS = ("node", "link", "graph")
OPTION_NAMES = tuple(field.name for field in fields(Options))

FACTORY = """\
MODULE:FACTORY names a Python function without arguments that returns the model
and the arguments to call it with:

    def factory():
        return model, (x, edge_index)      # or model, (data,)
        return model, (x,), {"edge_index": edge_index}
        return model, ([data, data, …],)   # many graphs, or a dataset

MODULE is a module that can be imported from here, or a path to a Python file, as
models/net.py:factory.
"""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Descriptions as they are written, and a column wide enough for the names of all commands."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._action_max_length = 16  # argparse forgets that the names of sub-commands are indented


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one message, with the names that were perhaps meant."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is, instead of a screen of options."""
        self.exit(FAILED, f"{self.prog}: {message}\nsee: {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        # Python has suggestions of its own (`suggest_on_error`) only from 3.14 on.
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action, f"there is no {value!r}, only {', '.join(names)}{close(str(value), names)}"
            )


def command(
    commands: Any, name: str, brief: str, *, about: str, examples: Sequence[str], codes: Mapping[int, str]
) -> argparse.ArgumentParser:
    """A sub-command whose help has a description, examples, and the exit codes at the end."""
    lines = [f"  {number:<4} {text}" for number, text in {**CODES, **codes}.items() if codes.get(number, text)]
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=brief,
        description=about,
        epilog="\n".join(["examples:", *(f"  {line}" for line in examples), "", "exit codes:", *lines]),
        formatter_class=Formatter,
    )
    parser.set_defaults(prog=parser.prog)
    return parser


def helps(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    """What a command does that was called without saying what to do."""

    def run(_: argparse.Namespace) -> int:
        parser.print_help(sys.stderr)
        return FAILED

    return run


SHARED: dict[str, dict[str, Any]] = {
    "--weights": {
        "type": Path,
        "metavar": "FILE",
        "help": "a state dict to load into the model, as torch.save wrote it",
    },
    "--index": {
        "type": int,
        "metavar": "ROW",
        "help": "the node, link or graph that is explained (default: the only one)",
    },
    "--target": {"type": int, "metavar": "CLASS", "help": "the class (default: the predicted one)"},
    "--reading": {"choices": READINGS, "default": READINGS[0], "help": "what scores measure (default: %(default)s)"},
    "--edge-scores": {"choices": EDGES, "help": "score edges too, by their end points (default: no)"},
    "--layer": {"metavar": "PATH", "help": "the module at which strength is read (default: the last)"},
    "--option": {
        "action": "append",
        "default": [],
        "metavar": "NAME=VALUE",
        "help": f"a choice among rules, as ties=first; repeatable; names: {', '.join(OPTION_NAMES)}"
        " (default: those of Options)",
    },
    "--level": {"choices": LEVELS, "help": "what the model predicts (default: told by its output)"},
    "--of": {"choices": OF, "default": OF[0], "help": "what is scored (default: %(default)s)"},
    "--start": {
        "metavar": "PATH",
        "help": "for integer inputs: the module, for example emb, whose output is decomposed",
    },
    "--json": {"action": "store_true", "help": "print JSON, and nothing else, to the standard output"},
    "--quiet": {"action": "store_true", "help": "no progress bars and notes on the standard error"},
}
"""Options that mean the same in all commands."""
QUESTION = ("--target", "--reading", "--edge-scores", "--layer", "--option")
"""What is asked of a prediction."""


def add(parser: Any, *names: str) -> None:
    """Options that other commands have too."""
    for name in names:
        parser.add_argument(name, **SHARED[name])


def add_factory(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """The model, and weights for it."""
    parser.add_argument(
        "factory",
        metavar="MODULE:FACTORY",
        nargs="?" if optional else None,
        help="a function that returns (model, args[, kwargs])",
    )
    add(parser, "--weights")


def add_out(parser: Any, metavar: str, about: str, **more: Any) -> None:
    """Where results go."""
    parser.add_argument("-o", "--out", type=Path, metavar=metavar, help=about, **more)


def options_of(given: Sequence[str]) -> Options:
    """The choices among rules that were given as NAME=VALUE."""
    pairs = [choice.partition("=") for choice in given]
    for choice, (name, equals, _) in zip(given, pairs, strict=True):
        if name not in OPTION_NAMES or not equals:
            raise UsageError(
                f"--option is NAME=VALUE with one of the names {', '.join(OPTION_NAMES)} (got {choice!r})"
                f"{close(name, OPTION_NAMES)}"
            )
    try:
        return Options(**{name: value for name, _, value in pairs})  # type: ignore[arg-type]
    except ValueError as error:
        raise UsageError(str(error)) from None


def positive(text: str) -> int:
    """An integer of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of at least 1 is needed (got {text!r})")
    return int(text)


def progress(given: argparse.Namespace) -> bool:
    """Whether the output is a terminal: bars in a log file are noise."""
    return not given.quiet and sys.stderr.isatty()


def note(given: argparse.Namespace, text: str) -> None:
    """Something on the way, which is no result."""
    if not getattr(given, "quiet", False):
        print(text, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """A result for programs."""
    print(json.dumps(value, indent=2, ensure_ascii=False))
