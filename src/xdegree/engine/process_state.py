"""What a run takes from the process, and what it changes there and puts back.

Memory and random numbers; PyTorch's fused kernels and Python functions that have a rule.
"""

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

import psutil
import torch
from torch import Tensor

from .registry import with_generator
from .torch_private import OpOverload, fused_kernels, set_fused_kernels

Memory = int | str | None
"""A budget in bytes, as text ("500MB", "2GB"), or None for a quarter of what is free."""

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def budget(memory: Memory, device: torch.device) -> int:
    """The budget in bytes."""
    if memory is None:
        return _free(device) // 4
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", memory)
        if not match or match[2].upper() not in _UNITS:
            raise ValueError(f'memory must be a number of bytes or text such as "500MB" or "2GB" (got {memory!r})')
        memory = int(float(match[1]) * _UNITS[match[2].upper()])
    if isinstance(memory, bool) or not isinstance(memory, int) or memory <= 0:
        raise ValueError(f"memory must be a positive number of bytes (got {memory!r})")
    return memory


def _free(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


RandomStates = Mapping[str, Tensor]
"""Where the global random generators stand, by device."""


def random_states() -> RandomStates:
    """Where the global random generators stand now."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_initialized():
        states |= {f"cuda:{i}": torch.cuda.get_rng_state(i) for i in range(torch.cuda.device_count())}
    return states


class OwnDraws:
    """Random numbers of one pass, from generators of its own.

    They start where the global ones stood when the call was made, so every pass draws what the model would have drawn.
    The global ones are only read: other threads may draw from them at any time.
    """

    def __init__(self, states: RandomStates | None = None) -> None:
        self._states = random_states() if states is None else states
        self._generators: dict[torch.device, torch.Generator] = {}

    def __call__(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An operation that draws; the few that take no generator draw from the global one."""
        form = with_generator(func)
        if form is None or kwargs.get("generator") is not None:
            return func(*args, **kwargs)
        tensors = [x for x in args if isinstance(x, Tensor)]
        device = tensors[0].device if tensors else torch.device(kwargs.get("device") or "cpu")
        return form(*args, **{**kwargs, "generator": self._generator(device)})

    def _generator(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device)
            name = "cpu" if device.type == "cpu" else f"{device.type}:{device.index or 0}"
            self._generators[device].set_state(self._states[name])
        return self._generators[device]


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
                self._before = fused_kernels()
                set_fused_kernels(False, False)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    set_fused_kernels(*self._before)

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """As the user has them, for an operation whose last bits depend on it; not while other runs need them off."""
        with self._lock:  # a run that starts now waits for the end of the operation
            alone = self._users == 1
            if alone:
                set_fused_kernels(*self._before)
                try:
                    yield
                finally:
                    set_fused_kernels(False, False)
        if not alone:
            yield


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
