"""The private parts of PyTorch that the engine leans on, all of them: what a new release may move stands here alone.

Tried with PyTorch 2.13.0, as `docs/coverage.md` says. Everything else imports these names from here.
"""

import threading
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch._ops import OpOverload, OpOverloadPacket
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, _pop_mode, _push_mode
from torch.utils._pytree import tree_flatten, tree_iter, tree_map, tree_unflatten

__all__ = [
    "DispatchMode",
    "OpOverload",
    "OpOverloadPacket",
    "TorchDispatchMode",
    "no_dispatch",
    "tree_flatten",
    "tree_iter",
    "tree_map",
    "tree_unflatten",
]

without_modes = _disable_current_modes
"""For operations that no mode of this thread may see."""

plain_torch_function = torch._C._disabled_torch_function_impl
"""``__torch_function__`` of a subclass that only cares about ATen operations."""


class DispatchMode(TorchDispatchMode):
    """A mode that sees every ATen operation of its thread, and leaves the rest of the process alone.

    The base class also keeps process-wide flags for the compiler, which two threads would leave in disorder.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.in_place_of: dict[int, tuple[Tensor, Tensor]] = {}
        """Tensors that a model holds itself, by their identity, each with what stands in its place."""

    @staticmethod
    def current() -> "DispatchMode | None":
        """The innermost one that this thread is in."""
        return _ENTERED.modes[-1] if getattr(_ENTERED, "modes", None) else None

    def stand_in(self, values: Any) -> Any:
        """The arguments of an operation with what stands in the place of others."""
        if isinstance(values, dict):
            return {name: self.stand_in(value) for name, value in values.items()}
        if isinstance(values, tuple | list):
            return type(values)([self.stand_in(value) for value in values])
        found = self.in_place_of.get(id(values))
        return values if found is None else found[1]

    def as_numbers(self, total: Tensor) -> Tensor:
        """What a model gets where it takes numbers out of a tensor."""
        return total

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # spares every operation a wrapper; nothing is compiled during a run

    def __enter__(self) -> Self:
        _push_mode(self)
        _ENTERED.modes = [*getattr(_ENTERED, "modes", ()), self]
        return self

    def __exit__(self, *error: object) -> None:
        _pop_mode()
        _ENTERED.modes = _ENTERED.modes[:-1]


_ENTERED = threading.local()


def wrapper_of(cls: Any, total: Tensor) -> Any:
    """A tensor of a subclass that has the shape and strides of another one, and no memory."""
    return Tensor._make_wrapper_subclass(
        cls,
        total.shape,
        strides=total.stride(),
        storage_offset=total.storage_offset(),
        dtype=total.dtype,
        device=total.device,
        layout=total.layout,
        requires_grad=False,
    )


def schema_of(op: OpOverload) -> Any:
    """What PyTorch says of the arguments and results of an operation."""
    return op._schema


def overload_name(op: OpOverload) -> str:
    """``"Tensor"`` of ``aten.add.Tensor``."""
    return op._overloadname


def is_composite(op: OpOverload) -> bool:
    """Whether PyTorch takes an operation apart before a mode sees it."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd"))


def fused_kernels() -> tuple[bool, bool]:
    """Whether the fused kernels of transformers and those of oneDNN are on."""
    return torch.backends.mha.get_fastpath_enabled(), torch._C._get_mkldnn_enabled()


def set_fused_kernels(attention: bool, onednn: bool) -> None:
    """Switch them on or off, in the whole process."""
    torch.backends.mha.set_fastpath_enabled(attention)
    torch._C._set_mkldnn_enabled(onednn)


def inner_module(module: nn.Module) -> nn.Module | None:
    """The module that ``torch.compile`` wrapped, if it made this one."""
    return next((inner for name, inner in module.named_children() if name == "_orig_mod"), None)


def trains(module: nn.Module) -> bool:
    """Whether a module computes something else in training mode: it drops entries or normalises by the batch."""
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return module.p > 0
    return isinstance(module, nn.modules.batchnorm._BatchNorm) and bool(module.track_running_stats)
