"""Models that users name on the command line: a Python function, and weights that hold no code."""

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

Made = tuple[Any, tuple[Any, ...], Mapping[str, Any]]
"""A model, the arguments to call it with, and its keyword arguments."""


WRITTEN_FOR_USERS = (ValueError, NotImplementedError)
"""Errors of the library, a missing rule among them, that say what to do: neither type nor traceback adds to them."""


class UsageError(Exception):
    """What was asked for cannot be done; the message says what to do."""


def close(name: str, known: Iterable[str]) -> str:
    """The known name that was perhaps meant, in words; nothing if none is close."""
    found = get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f"; did you mean {found[0]!r}?" if found else ""


def ready(name: str, weights: Path | None) -> Made:
    """The user's model with its weights, as it predicts, and what it is called with."""
    model, args, kwargs = made(name)
    if weights is not None:
        load_weights(model, weights)
    if hasattr(model, "eval"):
        model.eval()
    return model, args, kwargs


def made(name: str) -> Made:
    """What the user's function returns, checked, without what it says of views."""
    return made_with_views(name)[0]


def made_with_views(name: str) -> tuple[Made, Mapping[str, Any]]:
    """What the user's function returns, checked, and what it says of views, as how to read a SMILES."""
    with neighbors(name):
        factory = find_factory(name)
        try:
            made = factory()
        except (Exception, SystemExit) as error:
            how = " (it is called without arguments)" if isinstance(error, TypeError) else ""
            raise UsageError(f"{name} failed: {said(error)}{how}") from error
    expected = f"{name} must return (model, args) or (model, args, kwargs)"
    if not isinstance(made, tuple) or len(made) not in (2, 3, 4):
        raise UsageError(f"{expected} (got {_described(made)})")
    model, args, kwargs, views = (*made, {}, {})[:4] if len(made) < 4 else made
    dicts = isinstance(kwargs, Mapping) and isinstance(views, Mapping)
    if not callable(model) or not isinstance(args, tuple | list) or not dicts:
        raise UsageError(f"{expected}: a model, a tuple and a dict (got {_described(made)})")
    return (model, tuple(args), kwargs), views


def listed_graphs(args: tuple[Any, ...]) -> Any:
    """The graphs, if the factory hands over many of them: a list or a dataset as the only argument."""
    from torch.utils.data import Dataset

    from .model_call.call import is_stores

    listed = len(args) == 1 and isinstance(args[0], list | tuple | Dataset) and not is_stores(args[0])
    return args[0] if listed else None


def _described(value: Any) -> str:
    return f"({', '.join(type(part).__name__ for part in value)})" if isinstance(value, tuple) else type(value).__name__


def said(error: BaseException) -> str:
    """An error in words; the type says nothing where the message was written for users."""
    return str(error) if isinstance(error, WRITTEN_FOR_USERS) and str(error) else f"{type(error).__name__}: {error}"


def find_factory(name: str) -> Callable[[], Any]:
    """The function that a name stands for; its module is imported."""
    module_name, colon, function_name = name.rpartition(":")
    if not colon or not module_name or not function_name:
        module_name = (module_name if colon else name) or "my_models.py"
        raise UsageError(f"name the function as MODULE:FACTORY, as {module_name}:factory (got {name!r})")
    module = _module(module_name)
    factory = getattr(module, function_name, None)
    if not callable(factory):
        known = sorted(
            n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == module.__name__
        )
        meant = close(function_name, known)
        raise UsageError(f"{module_name} has no function {function_name!r} (it has {known}){meant}")
    return factory


def _module(name: str) -> Any:
    path = Path(name)
    if path.suffix == ".py" and not path.is_file():
        raise UsageError(f"there is no file {name}{close(path.name, _files(path.parent))}")
    if path.suffix != ".py" and (len(path.parts) > 1 or name.startswith(".")):
        raise UsageError(_not_found(name))
    try:
        with neighbors(f"{name}:"):
            return _file(path.resolve()) if path.suffix == ".py" else importlib.import_module(name)
    except ModuleNotFoundError as error:
        if path.suffix != ".py" and error.name and f"{name}.".startswith(f"{error.name}."):
            raise UsageError(_not_found(name)) from None
        raise UsageError(f"{name} cannot be imported: {said(error)}") from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"{name} cannot be imported: {said(error)}") from error


def _not_found(name: str) -> str:
    """What to do about a module that there is not; the path of a file without its ``.py`` is a likely mistake."""
    if Path(f"{name}.py").is_file():
        return f"{name} cannot be imported: name a file with its ending, {name}.py"
    meant = close(f"{name}.py", _files(Path()))
    return (
        f"{name} cannot be imported: there is no such module, neither in the current folder nor installed; a file is"
        f" named by its path, as models/net.py:factory{meant}"
    )


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.py")) if folder.is_dir() else []


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
def neighbors(name: str) -> Iterator[None]:
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
    import torch

    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"--weights is for modules (the model is a {type(model).__name__})")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except Exception:  # noqa: BLE001  (a file can be broken in any way, and torch advises to read it unsafely)
        raise UsageError(
            f"{path} is no state dict that can be read safely: it must be written by"
            " torch.save(model.state_dict(), …) and hold nothing but tensors"
        ) from None
    try:
        model.load_state_dict(state)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} does not fit the model: {error}") from None
