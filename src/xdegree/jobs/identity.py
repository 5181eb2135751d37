"""What the answers of a job depend on beside its settings: the model, its code, the data, the packages."""

import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from types import FunctionType, MethodType
from typing import Any

from torch import nn
from torch.utils.data import Dataset
from torch_geometric.data.data import BaseData

from ..locality.stores import Stores
from ..model_call.call import is_stores
from ..model_call.fingerprint import Hasher, attributes_of
from .settings import JobError, digest

KINDS = ("weights", "attributes", "code", "data")
ALWAYS = ("xdegree", "torch", "torch_geometric")
NAMED = 3
"""Changed values that a message names."""

Details = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Identity:
    """The model and the data in hashes: two jobs with the same one give the same answers."""

    fingerprint: Mapping[str, str]
    """One hash for each of `KINDS`."""
    versions: Mapping[str, str]
    """Python, and the packages that the model uses."""
    details: Details = field(default_factory=dict)
    """A hash for each parameter, attribute, class and argument, so that a message can name what changed."""
    unseen: tuple[str, ...] = ()
    """What could not be hashed by its value."""


def identity(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Identity:
    """Before the model ran for the first time: a run may fill caches, and those are no part of the question."""
    hasher = Hasher()
    details: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    _add_model(details, hasher, model, "")
    for name, value in [*((f"argument {i}", value) for i, value in enumerate(args)), *kwargs.items()]:
        _add_data(details["data"], hasher, value, name)
    versions = {name: _version(name) for name in sorted({*ALWAYS, *hasher.packages})}
    return Identity(
        {kind: digest(found) for kind, found in details.items()},
        {"python": ".".join(platform.python_version_tuple()[:2]), **versions},
        details,
        tuple(dict.fromkeys(hasher.unseen)),
    )


def _add_model(details: dict[str, dict[str, str]], hasher: Hasher, model: Any, prefix: str) -> None:
    if isinstance(model, nn.Module):
        for path, module in model.named_modules():
            _add_module(details, hasher, module, f"{prefix}{path}.".lstrip("."))
    elif isinstance(model, FunctionType) and model.__closure__:
        # A function around a model is common: its weights are named one by one, as the model's own would be.
        for name, cell in zip(model.__code__.co_freevars, model.__closure__, strict=True):
            if isinstance(cell.cell_contents, nn.Module):
                _add_model(details, hasher, cell.cell_contents, f"{prefix}{name}.")
                hasher.leave_out(cell.cell_contents)
        _add_code(details, hasher, model, prefix)
    elif isinstance(model, MethodType):
        _add_model(details, hasher, model.__self__, prefix)
        details["code"][f"{prefix}{model.__name__}"] = hasher.digest(model.__func__)
    elif isinstance(model, partial):
        _add_model(details, hasher, model.func, prefix)
        details["attributes"][f"{prefix}arguments"] = hasher.digest((model.args, model.keywords), "arguments")
    else:
        _add_code(details, hasher, model, prefix)


def _add_code(details: dict[str, dict[str, str]], hasher: Hasher, model: Any, prefix: str) -> None:
    name = getattr(model, "__qualname__", type(model).__qualname__)
    details["code"][f"{prefix}{name}"] = hasher.digest(model, f"{prefix}{name}")


def _add_module(details: dict[str, dict[str, str]], hasher: Hasher, module: nn.Module, prefix: str) -> None:
    kind = type(module)
    details["code"][kind.__qualname__] = hasher.digest(kind, kind.__qualname__)
    for name, value in attributes_of(module):
        if name in ("_parameters", "_buffers"):
            found = details["weights"]
            found.update({f"{prefix}{key}": hasher.digest(one, f"{prefix}{key}") for key, one in value.items()})
        elif name == "_modules":  # each has its own turn; here only their order and their kinds count
            kinds = [(key, type(child).__qualname__) for key, child in value.items()]
            details["attributes"][f"{prefix}modules"] = hasher.digest(kinds)
        else:
            details["attributes"][f"{prefix}{name}"] = hasher.digest(value, f"{prefix}{name}")


def _add_data(found: dict[str, str], hasher: Hasher, value: Any, name: str) -> None:
    if is_stores(value):  # larger than memory: a sample has to do
        stores = Stores(*value)
        found[name] = hasher.digest((type(value[0]), type(value[1]), str(stores.layout)), name)
        sizes = {key: tuple(one.shape) for key, one in stores.stand_in}
        found[f"{name}.sizes"] = hasher.digest(sizes, name)
        for key, rows in stores.sampled().items():
            found[f"{name}.{key}"] = hasher.digest(rows, f"{name}.{key}")
        hasher.unseen.append(f"{name}: what is in the stores, but for a sample of rows")
    elif isinstance(value, BaseData):
        for key, one in value.to_dict().items():
            found[f"{name}.{key}"] = hasher.digest(one, f"{name}.{key}")
        found[name] = hasher.digest(type(value), name)
    elif isinstance(value, list | tuple | Dataset):  # item by item: a dataset may make them when they are asked for
        items: Any = value
        found[name] = digest([hasher.digest(_item(items, i), f"{name}[{i}]") for i in range(len(items))])
    else:
        found[name] = hasher.digest(value, name)


def _item(values: Any, i: int) -> Any:
    try:
        return values[i]
    except OSError as error:
        raise JobError(f"the data cannot be read: {type(error).__name__}: {error}") from error
    except Exception as error:  # noqa: BLE001  (a graph that cannot be read becomes an error of its own later)
        return type(error).__name__


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return str(getattr(sys.modules.get(package), "__version__", "unknown"))


def differences(found: Identity, expected: Identity) -> str:
    """What differs, in words; empty if nothing does. Packages first: they explain all other differences."""
    names = sorted({*found.versions, *expected.versions})
    others = [(name, expected.versions.get(name), found.versions.get(name)) for name in names]
    packages = [f"{name} (was {old or 'not used'}, is {new or 'not used'})" for name, old, new in others if old != new]
    kinds = [kind for kind in KINDS if found.fingerprint.get(kind) != expected.fingerprint.get(kind)]
    if packages and all(old and new for _, old, new in others if old != new):
        return " and ".join(packages)
    return " and ".join([*(kind + _named(found.details, expected.details, kind) for kind in kinds), *packages])


def _named(found: Details, expected: Details, kind: str) -> str:
    """The names of what changed, as far as they are known: a repaired manifest does not know them."""
    if not found.get(kind) or not expected.get(kind):
        return ""
    new, old = found[kind], expected[kind]
    names = [
        f"{name}{' (new)' if name not in old else ' (gone)' if name not in new else ''}"
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]
    return f" [{', '.join(names[:NAMED])}{f' and {len(names) - NAMED} more' if len(names) > NAMED else ''}]"
