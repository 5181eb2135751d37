"""Lends a Python function to its rule while a run is on.

PyG's ``softmax`` is a Python function that many modules have imported under their own name, so replacing an
attribute somewhere would miss most callers. Every alias is the *same function object*, though: its code is
exchanged while at least one run is on, for code that asks here whether an argument carries portions. Calls
without portions, from other threads too, go to the function's own code as ever.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

_LOCK = threading.Lock()
_USERS: dict[Any, int] = {}
_ORIGINALS: dict[Any, Callable[..., Any]] = {}
_ACTIVE = threading.local()


def _shim(*args: Any, **kwargs: Any) -> Any:
    # Runs with the globals of the function that it stands in for, hence the import by name.
    return __import__("xdegree.intercept", fromlist=["_redirect"])._redirect("function", args, kwargs)


def _redirect(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    original = _ORIGINALS[function]
    handler = getattr(_ACTIVE, "handler", None)
    return original(*args, **kwargs) if handler is None else handler(function, original, args, kwargs)


def _code_for(function: Any) -> CodeType:
    code = _shim.__code__
    return code.replace(co_consts=tuple(function if c == "function" else c for c in code.co_consts))


@contextmanager
def intercepted(functions: Iterable[Any], handler: Callable[..., Any]) -> Iterator[None]:
    """Send calls of the functions that this thread makes to ``handler(function, original, args, kwargs)``."""
    functions = list(functions)
    outer = getattr(_ACTIVE, "handler", None)
    for function in functions:
        _borrow(function)
    _ACTIVE.handler = handler
    try:
        yield
    finally:
        _ACTIVE.handler = outer
        for function in functions:
            _give_back(function)


def _borrow(function: Any) -> None:
    with _LOCK:
        if not _USERS.get(function):
            original = FunctionType(
                function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
            )
            original.__kwdefaults__ = function.__kwdefaults__
            _ORIGINALS[function] = original
            function.__code__ = _code_for(function)
        _USERS[function] = _USERS.get(function, 0) + 1


def _give_back(function: Any) -> None:
    # The original stays in _ORIGINALS: another thread may be inside the shim at this very moment.
    with _LOCK:
        _USERS[function] -= 1
        if not _USERS[function]:
            function.__code__ = _ORIGINALS[function].__code__
