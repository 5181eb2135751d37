"""The command ``xdegree``."""

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import torch
from torch import nn

from .check import Report, check
from .sources import Of

OK, MISSING, USAGE = 0, 1, 2

CHECK = """\
Say which operations of a model have a rule and which lack one, before any work.

MODULE:FACTORY names a Python function without arguments that returns the model and the arguments to call it with:

    def factory():
        return model, (x, edge_index)             # or with keywords: model, (x, edge_index), {"batch": batch}

MODULE is a module that can be imported from here, or a path to a Python file (models/net.py:factory).

exit codes: 0 every operation has a rule, 1 some lack one, 2 the command could not be carried out
"""


class UsageError(Exception):
    """What was asked for cannot be done; the message says what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = _parser()
    given = parser.parse_args(argv)
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
    checking = commands.add_parser(
        "check",
        help="list the operations of a model with and without a rule",
        description=CHECK,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    checking.add_argument("factory", metavar="MODULE:FACTORY", help="a function that returns (model, args[, kwargs])")
    checking.add_argument(
        "--weights", type=Path, metavar="FILE", help="a state dict to load into the model, as torch.save wrote it"
    )
    checking.add_argument(
        "--of", choices=get_args(Of), default="node", help="what would be explained (default: %(default)s)"
    )
    checking.add_argument(
        "--start", metavar="PATH", help="the module, as an embedding, behind which portions start (models of numbers)"
    )
    checking.add_argument("--json", action="store_true", help="print the report as JSON")
    checking.set_defaults(run=_check)
    return parser


def _check(given: argparse.Namespace) -> int:
    model, args, kwargs = _made(given.factory)
    if given.weights is not None:
        _load(model, given.weights)
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


def _made(name: str) -> tuple[Any, tuple[Any, ...], Mapping[str, Any]]:
    """What the user's function returns, checked."""
    factory = _factory(name)
    try:
        made = factory()
    except Exception as error:
        raise UsageError(f"{name} failed: {type(error).__name__}: {error}") from error
    expected = f"{name} must return (model, args) or (model, args, kwargs)"
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        raise UsageError(f"{expected} (got {_described(made)})")
    model, args, kwargs = made if len(made) == 3 else (*made, {})
    if not callable(model) or not isinstance(args, tuple | list) or not isinstance(kwargs, Mapping):
        raise UsageError(f"{expected}: a model, a tuple and a dict (got {_described(made)})")
    return model, tuple(args), kwargs


def _described(value: Any) -> str:
    return f"({', '.join(type(part).__name__ for part in value)})" if isinstance(value, tuple) else type(value).__name__


def _factory(name: str) -> Callable[[], Any]:
    module_name, colon, function_name = name.rpartition(":")
    if not colon or not module_name or not function_name:
        raise UsageError(f"name the function as MODULE:FACTORY (got {name!r})")
    module = _module(module_name)
    factory = getattr(module, function_name, None)
    if not callable(factory):
        known = sorted(
            n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == module.__name__
        )
        raise UsageError(f"{module_name} has no function {function_name!r} (it has {known})")
    return factory


def _module(name: str) -> Any:
    path = Path(name)
    if path.suffix == ".py":
        if not path.is_file():
            raise UsageError(f"there is no file {name}")
        folder, name = str(path.resolve().parent), path.stem
    else:
        folder = ""  # a command, unlike `python -m`, does not look for modules where it is run
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise UsageError(f"{name} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)


def _load(model: Any, path: Path) -> None:
    """Load weights; only tensors are read from the file, no code."""
    if not isinstance(model, nn.Module):
        raise UsageError(f"--weights is for modules (the model is a {type(model).__name__})")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except Exception as error:
        raise UsageError(f"{path} is no state dict that can be read safely: {str(error).splitlines()[0]}") from error
    try:
        model.load_state_dict(state)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} does not fit the model: {error}") from error
