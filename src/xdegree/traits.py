"""What the engine must know of an operation: what it reads and writes, and which form of it does the same elsewhere."""

import functools
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload

from .registry import FACTORIES, aten, carries_nothing


@dataclass(frozen=True, slots=True)
class Traits:
    """What the engine asks at every operation, found once."""

    draws: bool
    """Whether it draws random numbers."""
    is_view: bool
    mutable: bool
    writes_first: bool
    """In-place forms write into their first argument; a few operations only note something in another one."""
    carries_nothing: bool
    makes_memory: bool
    composite: bool
    """Whether PyTorch takes it apart before a run sees it."""
    outs: tuple[str, ...]
    """The arguments that ``out=`` becomes."""
    by_onednn: bool
    """Whether its last bits are other ones without oneDNN, which is off during a run."""


_TRAITS: dict[int, Traits] = {}
"""By the identity of an operation, which lives as long as the process; its own hash is computed in Python."""


def traits_of(func: OpOverload) -> Traits:
    """The traits of an operation."""
    return _TRAITS.get(id(func)) or _learn(func)


def _learn(func: OpOverload) -> Traits:
    schema = func._schema
    first = schema.arguments[0].alias_info if schema.arguments else None
    is_view = any(r.alias_info is not None for r in schema.returns) and not schema.is_mutable
    found = Traits(
        draws=torch.Tag.nondeterministic_seeded in func.tags,
        is_view=is_view,
        mutable=schema.is_mutable,
        writes_first=first is not None and first.is_write,
        carries_nothing=func.overloadpacket in FACTORIES or carries_nothing(func),
        makes_memory=not is_view and not schema.is_mutable,
        composite=torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"),
        outs=tuple(argument.name for argument in schema.arguments if argument.is_out),
        by_onednn=func.overloadpacket in (aten.gelu, aten.convolution),
    )
    _TRAITS[id(func)] = found
    return found


@functools.cache
def out_of_place(func: OpOverload) -> OpOverload | None:
    """The out-of-place form of an in-place operation: ``aten.relu_.default`` → ``aten.relu.default``."""
    namespace, name = func._schema.name.split("::")
    packet = getattr(getattr(torch.ops, namespace), name.removesuffix("_"), None) if name.endswith("_") else None
    if packet is None:
        return None
    return _overload(packet, _signature(func), func._overloadname)


def without_out(func: OpOverload) -> OpOverload | None:
    """The form that returns its result of one that writes it into ``out=``."""
    return _overload(func.overloadpacket, _signature(func), "")


def _signature(func: OpOverload) -> list[tuple[str, str]]:
    """Names and types: ``pow_.Scalar`` takes a tensor and a number, ``pow.Scalar`` a number and a tensor."""
    return [(argument.name, str(argument.real_type)) for argument in func._schema.arguments if not argument.is_out]


def _overload(packet: Any, arguments: list[tuple[str, str]], preferred: str) -> OpOverload | None:
    """The overload of an operation that takes these arguments and no ``out``."""
    overloads = [getattr(packet, overload) for overload in packet.overloads()]
    fitting = [o for o in overloads if _signature(o) == arguments and not any(a.is_out for a in o._schema.arguments)]
    return next((o for o in fitting if o._overloadname == preferred), fitting[0] if fitting else None)
