"""Models that users name on the command line: a Python function, and weights that hold no code."""

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset


class UsageError(Exception):
    """What was asked for cannot be done; the message says what to do."""


def made(name: str) -> tuple[Any, tuple[Any, ...], Mapping[str, Any]]:
    """What the user's function returns, checked."""
    with neighbours(name):
        factory = find_factory(name)
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


def listed_graphs(args: tuple[Any, ...]) -> Any:
    """The graphs, if the factory hands over many of them: a list or a dataset as the only argument."""
    return args[0] if len(args) == 1 and isinstance(args[0], list | tuple | Dataset) else None


def _described(value: Any) -> str:
    return f"({', '.join(type(part).__name__ for part in value)})" if isinstance(value, tuple) else type(value).__name__


def find_factory(name: str) -> Callable[[], Any]:
    """The function that a name stands for; its module is imported."""
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
    if path.suffix == ".py" and not path.is_file():
        raise UsageError(f"there is no file {name}")
    try:
        with neighbours(f"{name}:"):
            return _file(path.resolve()) if path.suffix == ".py" else importlib.import_module(name)
    except Exception as error:
        raise UsageError(f"{name} cannot be imported: {type(error).__name__}: {error}") from error


def _file(path: Path) -> Any:
    """A file as a module of its own name: one of the same stem may have been imported, as a user's `utils.py`."""
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def neighbours(name: str) -> Iterator[None]:
    """Let a named function, and its module, import what lies beside it, as a script can."""
    path = Path(name.rpartition(":")[0])
    # A command, unlike `python -m`, does not look for modules where it is run.
    folder = str(path.resolve().parent) if path.suffix == ".py" else str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def load_weights(model: Any, path: Path) -> None:
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
