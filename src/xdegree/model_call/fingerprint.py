"""Hashes of whatever an answer can depend on: tensors, plain values, containers, objects, modules, code.

Two processes that make the same value get the same hash. What cannot be seen by its value is named, never passed over.
"""

import copyreg
import dis
import hashlib
import importlib
import sys
import sysconfig
import types
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch_geometric.data.data import BaseData
from torch_geometric.inspector import Inspector

from ..engine.torch_private import OpOverload, OpOverloadPacket

PLAIN = (bool, int, float, complex, str, bytes)
DICTS = (dict, OrderedDict, types.MappingProxyType)
IGNORED_OF_MODULES = vars(nn.Module()).keys() - {
    "training", "_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks"
}  # fmt: skip
"""What PyTorch keeps in a module that does not affect its output: hooks of gradients and of state dicts."""
WRAPPERS = (property, staticmethod, classmethod)
FUNCTIONS = (*WRAPPERS, types.FunctionType)


def fingerprint(value: Any) -> str:
    """A hash of any value, code included. `Hasher` also tells what could not be seen."""
    return Hasher().digest(value)


class Hasher:
    """Hashes values, and keeps a list of those that it cannot see.

    Code of installed packages counts by its name alone: `packages` lists them, so that their versions can be compared.
    """

    def __init__(self) -> None:
        self.unseen: list[str] = []
        self.packages: set[str] = set()
        self._values: dict[int, tuple[Any, bytes]] = {}
        self._kept: dict[int, tuple[Any, bytes]] = {}
        self._open: dict[int, int] = {}

    def digest(self, value: Any, path: str = "value") -> str:
        """The hash of a value; `path` is its name in `unseen`."""
        try:
            content = self._bytes(value, path)
        except RecursionError:
            self._open.clear()
            content = self._unseen(value, path)
        self._values.clear()  # of a million graphs, one after the other, none is held longer than it takes
        return hashlib.sha256(content).hexdigest()[:16]

    def leave_out(self, value: Any) -> None:
        """Count a value as nothing from now on: it is hashed elsewhere."""
        self._kept[id(value)] = (value, b"elsewhere")

    def _bytes(self, value: Any, path: str) -> bytes:
        """Plain values as they are, all others as a hash of what they consist of."""
        if value is None or type(value) in PLAIN:
            return f"{type(value).__name__}:{value!r}".encode()
        key = id(value)
        known = self._kept.get(key) or self._values.get(key)
        if known is not None:
            return known[1]
        if key in self._open:  # a cycle: how far up it leads says enough
            return f"up:{len(self._open) - self._open[key]}".encode()
        self._open[key] = len(self._open)
        try:
            found = _sealed(type(value).__name__.encode(), *self._pieces(value, path))
        except (TypeError, AttributeError, NotImplementedError, RuntimeError, ValueError, ImportError) as error:
            if isinstance(error, RecursionError):
                raise
            found = self._unseen(value, path)
        self._open.pop(key, None)
        # With the value itself, so that its id is not given to another; classes and functions come again and again.
        (self._kept if isinstance(value, type | types.FunctionType) else self._values)[key] = (value, found)
        return found

    def _unseen(self, value: Any, path: str) -> bytes:
        self.unseen.append(f"{path} ({type(value).__module__}.{type(value).__qualname__})")
        return f"unseen:{type(value).__qualname__}".encode()

    def _pieces(self, value: Any, path: str) -> Iterator[Any]:
        """What a value consists of."""
        match value:
            case Tensor():
                yield from self._tensor(value, path)
            case np.ndarray():
                yield f"{value.dtype.str}{value.dtype.descr}{value.shape}".encode()
                yield from self._all(value.tolist(), path) if value.dtype.hasobject else [value.tobytes()]
            case _ if type(value) in (list, tuple):
                yield from self._all(value, path)
            case _ if type(value) in DICTS:
                yield from self._items(value.items(), path)
            case set() | frozenset():
                yield from sorted(self._all(value, path))
            case Inspector():  # PyG's memory of signatures that it has seen, which differs from moment to moment
                yield b""
            case BaseData():
                yield self._bytes(type(value), path)
                yield from self._items(sorted(value.to_dict().items(), key=lambda item: str(item[0])), path)
            case torch.jit.ScriptModule() | torch.jit.ScriptFunction():
                yield str(value.code).encode()
                yield from self._items(getattr(value, "state_dict", dict)().items(), path)
            case nn.Module():
                yield self._bytes(type(value), path)
                yield from self._items(attributes_of(value), path)
            case weakref.ReferenceType():
                yield self._bytes(value(), path)
            case _:
                yield from self._code_or_object(value, path)

    def _code_or_object(self, value: Any, path: str) -> Iterator[bytes]:
        match value:
            case types.ModuleType():
                yield self._library(value.__name__) if is_library(value.__name__) else value.__name__.encode()
            case type():
                yield from self._class(value, path)
            case types.FunctionType():
                yield from self._function(value, path)
            case types.MethodType():  # any function may be bound to any object, under any name
                yield from self._all((value.__func__, value.__self__), path)
            case types.CodeType():
                yield from self._code(value, {}, path)
            case _ if isinstance(value, WRAPPERS):
                parts = (getattr(value, name, None) for name in ("fget", "fset", "__func__"))
                yield from (self._bytes(part, path) for part in parts)
            case _:
                yield from self._object(value, path)

    def _all(self, values: Iterable[Any], path: str) -> Iterator[bytes]:
        return (self._bytes(item, f"{path}[{i}]") for i, item in enumerate(values))

    def _items(self, items: Iterable[tuple[Any, Any]], path: str) -> Iterator[bytes]:
        """In their order, which a model may go by."""
        for key, value in items:
            yield self._bytes(key, path)
            yield self._bytes(value, f"{path}.{key}")

    def _tensor(self, value: Tensor, path: str) -> Iterator[Any]:
        if is_lazy(value):
            yield b"without a shape"
            return
        if type(value) not in (Tensor, nn.Parameter, nn.Buffer):
            yield self._bytes(type(value), path)
            if hasattr(value, "__tensor_flatten__"):  # a tensor that consists of others, as PyG's EdgeIndex
                names, context = value.__tensor_flatten__()
                yield from self._items(((name, getattr(value, name)) for name in names), path)
                yield self._bytes(context, path)
                return
            yield from self._items(sorted(vars(value).items()), path)
            value = value.detach().as_subclass(Tensor)
        if value.is_nested:
            yield from self._all(value.unbind(), path)
            return
        yield f"{value.dtype}{list(value.shape)}{value.layout}".encode()
        for part in _stored(value):
            if part.is_quantized:
                yield str(part.qscheme()).encode()
            plain = part.dequantize() if part.is_quantized else part.resolve_conj().resolve_neg()
            yield plain.cpu().contiguous().flatten().view(torch.uint8).numpy()

    def _class(self, value: type, path: str) -> Iterator[bytes]:
        """The code and the values of a user's class and its bases; of a library's class only what a user replaced."""
        for kind in value.__mro__:
            library = is_library(kind.__module__)
            yield self._library(f"{kind.__module__}.{kind.__qualname__}") if library else kind.__qualname__.encode()
            for name, attribute in sorted(vars(kind).items()):
                if _counts(name, attribute) and (not library or _replaced(attribute)):
                    yield name.encode()
                    yield self._bytes(attribute, f"{path}.{name}")

    def _function(self, value: types.FunctionType, path: str) -> Iterator[bytes]:
        """Its code, what it closes over, and the globals that it uses: the functions that it calls are among them."""
        if _of_library(value):
            yield self._library(f"{value.__globals__.get('__name__', '')}.{value.__code__.co_qualname}")
        else:
            yield from self._code(value.__code__, value.__globals__, path)
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            if name != "__class__" and cell != types.CellType():
                yield self._bytes(cell.cell_contents, f"{path}:{name}")
        yield self._bytes((value.__defaults__, value.__kwdefaults__, vars(value)), path)

    def _code(self, code: types.CodeType, names: dict[str, Any], path: str) -> Iterator[bytes]:
        yield from (code.co_code, code.co_exceptiontable, repr(code.co_names).encode())
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield _sealed(*self._code(constant, names, path))
            else:
                yield self._bytes(constant, path)
        for step in dis.get_instructions(code):
            name = step.argval
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and name in names:
                yield from self._used(names[name], code, f"{path}:{name}")
            elif step.opname == "IMPORT_NAME" and not is_library(name):
                yield from self._used(_imported(name, str(names.get("__package__") or "")), code, f"{path}:{name}")

    def _used(self, value: Any, code: types.CodeType, path: str) -> Iterator[bytes]:
        """A global; of a user's module, what the code takes from it."""
        yield self._bytes(value, path)
        if isinstance(value, types.ModuleType) and not is_library(value.__name__):
            for name in code.co_names:
                if name in vars(value) and vars(value)[name] is not value:
                    yield from self._used(vars(value)[name], code, f"{path}.{name}")

    def _object(self, value: Any, path: str) -> Iterator[bytes]:
        """As `pickle` would take it apart; what pickle cannot see, we cannot."""
        if isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, types.ModuleType | None):
            yield self._library(f"{value.__module__}.{value.__qualname__}")
            return
        if isinstance(value, OpOverload | OpOverloadPacket):
            yield str(value).encode()
            return
        registered = copyreg.dispatch_table.get(type(value))
        reduced = value.__reduce_ex__(4) if registered is None else registered(value)
        if isinstance(reduced, str):
            yield f"{type(value).__module__}.{reduced}".encode()
            yield self._bytes(getattr(value, "__wrapped__", None), path)
            return
        make, args, state, items, pairs = (*reduced[:5], None, None, None)[:5]
        yield self._bytes(make, path)
        yield from self._all(args, path)
        yield from self._items(state.items(), path) if type(state) is dict else [self._bytes(state, path)]
        yield from self._all(items or (), path)
        yield from self._items(pairs or (), path)

    def _library(self, name: str) -> bytes:
        package = name.partition(".")[0]
        if package not in sys.stdlib_module_names:
            self.packages.add(package)
        return name.encode()


def attributes_of(module: nn.Module) -> list[tuple[str, Any]]:
    """All that a module's output can depend on, by name; hooks without their numbers, which the process counts."""
    own = ((name, value) for name, value in vars(module).items() if name not in IGNORED_OF_MODULES)
    return [(name, list(value.values()) if name.endswith("_hooks") else value) for name, value in sorted(own)]


def _counts(name: str, attribute: Any) -> bool:
    """Whether an attribute of a class can affect what its objects do: what Python itself notes there cannot."""
    if isinstance(attribute, types.MemberDescriptorType | types.GetSetDescriptorType) or name.startswith("__annot"):
        return False
    return name != "_abc_impl" and (not name.startswith("__") or isinstance(attribute, FUNCTIONS))


def _replaced(attribute: Any) -> bool:
    return isinstance(attribute, types.FunctionType) and not _of_library(attribute)


def _stored(value: Tensor) -> tuple[Tensor, ...]:
    """The strided tensors that hold a tensor's entries: of a sparse one as many as it has entries, not n × n."""
    value = value.detach()
    match value.layout:
        case torch.strided:
            return (value,)
        case torch.sparse_coo:
            return (value._indices(), value._values())
        case torch.sparse_csr | torch.sparse_bsr:
            return (value.crow_indices(), value.col_indices(), value.values())
        case torch.sparse_csc | torch.sparse_bsc:
            return (value.ccol_indices(), value.row_indices(), value.values())
    return (value.to_dense(),)


def _sealed(*pieces: Any) -> bytes:
    """One hash of several pieces; their lengths keep them apart."""
    found = hashlib.sha256()
    for piece in pieces:
        found.update(len(piece).to_bytes(8, "little"))
        found.update(piece)
    return found.digest()


@cache
def is_library(module: str) -> bool:
    """Whether a module is part of Python or of an installed package, whose version says what it does."""
    if module.partition(".")[0] in {"builtins", "xdegree", *sys.stdlib_module_names} - {"__main__"}:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return module in sys.builtin_module_names
    return _installed(file)


def _of_library(function: types.FunctionType) -> bool:
    file = function.__code__.co_filename
    return is_library(function.__module__ or "") if file.startswith("<") else _installed(file) or _ours(file)


@cache
def _installed(file: str) -> bool:
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(Path(file).is_relative_to(place) for place in places)


def _ours(file: str) -> bool:
    return Path(file).is_relative_to(Path(__file__).parent.parent)


def _imported(name: str, package: str) -> Any:
    """A module that a function imports when it runs."""
    known = sys.modules.get(name) or sys.modules.get(f"{package}.{name}")
    return known if known is not None else importlib.import_module(name)
