"""What a run changes in the whole process and puts back: Python functions with a rule, PyTorch's fused kernels."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

import torch


@contextmanager
def random_state_kept() -> Iterator[None]:
    """Put the random state back if something drew from it."""
    states = [(torch.get_rng_state, torch.set_rng_state)]
    if torch.cuda.is_initialized():
        states.append((torch.cuda.get_rng_state, torch.cuda.set_rng_state))
    before = [get() for get, _ in states]
    try:
        yield
    finally:
        for (get, put), state in zip(states, before, strict=True):
            if not torch.equal(get(), state):
                put(state)


class _FusedKernels:
    """PyTorch's fused kernels, off while at least one run is on, in whatever thread.

    Those of transformers and recurrent layers hide their operations from the dispatcher.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = (True, True)

    @contextmanager
    def off(self) -> Iterator[None]:
        """Switch them off, and back to what they were when the last run ends."""
        with self._lock:
            if not self._users:
                self._before = (torch.backends.mha.get_fastpath_enabled(), torch._C._get_mkldnn_enabled())
                _set_fused(False, False)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    _set_fused(*self._before)

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """As the user has them, for an operation whose last bits depend on it; not while other runs need them off."""
        with self._lock:  # whoever starts a run now waits for the end of the operation
            alone = self._users == 1
            if alone:
                _set_fused(*self._before)
                try:
                    yield
                finally:
                    _set_fused(False, False)
        if not alone:
            yield


def _set_fused(attention: bool, onednn: bool) -> None:
    torch.backends.mha.set_fastpath_enabled(attention)
    torch._C._set_mkldnn_enabled(onednn)


FUSED_KERNELS = _FusedKernels()


# PyG's ``softmax`` is a Python function that many modules have imported under their own name, so replacing an attribute
# somewhere would miss most callers. Every alias is the *same function object*, though: its code is exchanged while at
# least one run is on, for code that asks here whether an argument carries portions. Calls without portions, from other
# threads too, go to the function's own code as ever.

_LOCK = threading.Lock()
_USERS: dict[Any, int] = {}
_ORIGINALS: dict[Any, Callable[..., Any]] = {}
_ACTIVE = threading.local()


def _shim(*args: Any, **kwargs: Any) -> Any:
    # Runs with the globals of the function that it stands in for, hence the import by name.
    return __import__("xdegree.engine.process_state", fromlist=["_redirect"])._redirect("function", args, kwargs)


def _redirect(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    original = _ORIGINALS[function]
    handler = getattr(_ACTIVE, "handler", None)
    return original(*args, **kwargs) if handler is None else handler(function, original, args, kwargs)


def _code_for(function: Any) -> CodeType:
    code = _shim.__code__
    return code.replace(co_consts=tuple(function if c == "function" else c for c in code.co_consts))


@contextmanager
def patched(functions: Iterable[Any], handler: Callable[..., Any]) -> Iterator[None]:
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
