"""``xdegree completion``: the tab key completes commands, options, choices and files."""

import argparse
from collections.abc import Iterator
from typing import Any

from ..factories import UsageError
from .arguments import DONE, INCOMPLETE, command

SHELLS = ("bash", "zsh", "tcsh")
ABOUT = """\
Print a script that completes the command xdegree in a shell.

With it the tab key completes commands, options, choices, files and folders. It
needs shtab: pip install "xdegree[completion]". Print it again after an update of
xdegree."""


def add_to(commands: Any) -> None:
    """Tell the parser about this command."""
    parser = command(
        commands,
        "completion",
        "print a script that completes the command in a shell",
        about=ABOUT,
        examples=[
            'eval "$(xdegree completion bash)"     # now; in ~/.bashrc: always',
            "xdegree completion bash > ~/.local/share/bash-completion/completions/xdegree",
            "xdegree completion zsh > ~/.zfunc/_xdegree",
        ],
        codes={DONE: "the script is printed", INCOMPLETE: ""},
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the script."""
    try:
        import shtab
    except ModuleNotFoundError:
        raise UsageError('completion needs shtab: pip install "xdegree[completion]"') from None
    from . import _parser

    parser = _parser()
    kinds = {"FOLDER": shtab.DIRECTORY, **dict.fromkeys(("FILE", "SOURCE", "MODULE:FACTORY"), shtab.FILE)}
    for action in _actions(parser):
        if action.metavar in kinds:
            vars(action)["complete"] = kinds[str(action.metavar)]
    print(shtab.complete(parser, given.shell))
    return DONE


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All arguments, also those of sub-commands; their metavar says what is completed."""
    for action in parser._actions:  # argparse has no other list of them
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
