"""Functions, methods, partial calls and objects around modules: what they refer to, and copies that refer to others."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from torch import nn

MANY = 256
"""Entries of containers, and variables in all, that are looked at."""


class Around(nn.Module):
    """A callable as a module that has the modules which it refers to as its own, by the names that it has for them.

    What is found out about modules (layers, messages, tables, modes, caches) then holds for functions around them too.
    """

    def __init__(self, function: Callable[..., Any], modules: dict[str, nn.Module]) -> None:
        super().__init__()
        self.function = function
        for name, module in modules.items():
            self.add_module(f"{name}_" if hasattr(self, name) else name, module)
        self.training = False  # it has no mode of its own

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The call itself."""
        return self.function(*args, **kwargs)


def as_module(model: Any) -> Any:
    """A callable around modules as a module; modules, and functions that refer to none, as they are."""
    if isinstance(model, nn.Module) or not callable(model) or isinstance(model, type):
        return model
    modules = modules_around(model)
    return Around(model, modules) if modules else model


def modules_around(value: Any) -> dict[str, nn.Module]:
    """The modules that something refers to, the nearest first, by the names that it has for them."""
    found: dict[str, nn.Module] = {}
    for name, one in _around(value):
        if isinstance(one, nn.Module):
            found[f"{name}_{len(found)}" if name in found else name.replace(".", "_")] = one
    return found


def leads_to(value: Any, known: Mapping[int, Any]) -> bool:
    """Whether something refers to modules, or to what is known by its identity."""
    return any(isinstance(one, nn.Module) or id(one) in known for _, one in _around(value))


def _around(value: Any) -> Iterator[tuple[str, Any]]:
    seen, waiting = {id(value)}, [value]
    while waiting and len(seen) <= MANY:
        for name, one in variables(waiting.pop(0)).items():
            if id(one) not in seen and not isinstance(one, type):
                seen.add(id(one))
                yield name, one
                if not isinstance(one, nn.Module):
                    waiting.append(one)


def variables(value: Any) -> dict[str, Any]:
    """What a callable, a container or an object of somebody's own refers to, by name."""
    if isinstance(value, MethodType):
        return {"self": value.__self__, **variables(value.__func__)}
    if isinstance(value, partial):
        return {"func": value.func, **{str(i): one for i, one in enumerate(value.args)}, **value.keywords}
    if isinstance(value, FunctionType):
        return {} if _is_library(value) else {**_globals_of(value), **_closure_of(value)}
    if isinstance(value, list | tuple | set | dict):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return {str(name): one for name, one in pairs} if len(value) <= MANY else {}
    return {} if _is_library(type(value)) else dict(getattr(value, "__dict__", {}))


def _is_library(value: Any) -> bool:
    """Whether it was not written around somebody's model: builtins and libraries refer to none."""
    return str(value.__module__).split(".")[0] in ("builtins", "torch", "torch_geometric", "numpy", "functools")


def _closure_of(value: FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def _globals_of(value: FunctionType) -> dict[str, Any]:
    known = value.__globals__
    return {name: known[name] for name in _names(value.__code__) if name in known and known[name] is not value}


def _names(code: CodeType) -> set[str]:
    inner = [_names(one) for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*inner)


def rebuilt(value: FunctionType, other: Callable[[Any], Any], memo: dict[int, Any]) -> FunctionType:
    """The function with other(variable) in the place of each that it refers to; in the memo first, if it is one."""
    cells = {name: CellType() for name in value.__code__.co_freevars}
    known = dict(value.__globals__)
    made = FunctionType(value.__code__, known, value.__name__, value.__defaults__, tuple(cells.values()) or None)
    made.__kwdefaults__, made.__dict__ = value.__kwdefaults__, dict(value.__dict__)
    memo[id(value)] = made
    known.update({name: other(one) for name, one in _globals_of(value).items()})
    for name, one in _closure_of(value).items():
        cells[name].cell_contents = other(one)
    return made
