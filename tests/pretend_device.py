"""A device that is not there: tensors on the CPU that say they are elsewhere, and must not meet those that are not.

PyTorch's own FakeTensors have no numbers, so they stop at the first operation whose result depends on data. Here every
operation really runs on the CPU. A dispatch mode keeps a note of which memory is elsewhere and raises, as CUDA would,
when tensors of two devices meet in one operation.
"""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_iter, tree_map_only
from torch.utils.weak import WeakTensorKeyDictionary

THERE = torch.device("xla:0")
"""A device type that PyTorch knows and never initialises by itself."""
HERE = torch.device("cpu")

aten = torch.ops.aten
TAKES_BOTH = {aten.copy_, aten._to_copy, aten.copy}
"""Operations that move numbers between devices."""
INDEXED = {aten.index, aten.index_put, aten.index_put_, aten._unsafe_index, aten._index_put_impl_}
"""Operations whose positions may be on the CPU."""

_device_of = torch._C.TensorBase.device.__get__  # type: ignore[attr-defined]


class DeviceMixError(RuntimeError):
    """Tensors of two devices met in one operation."""


class PretendDevice(TorchDispatchMode):
    """While it is active, tensors that `moved` returns are elsewhere, and so is what is made of them."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: dict[int, Any] = {}
        """What is elsewhere, kept alive: an address that is given away again would be taken for elsewhere too."""
        self.others = WeakTensorKeyDictionary()

    def is_there(self, x: Tensor) -> bool:
        if _device_of(x).type != "cpu":
            return True  # a wrapper that was told so when it was made
        place = _place(x)
        return place in self.memory if place is not None else x in self.others

    def mark(self, x: Tensor, there: bool) -> None:
        place = _place(x)
        if place is None:
            self.others.pop(x, None)
            if there:
                self.others[x] = True
        elif there:
            self.memory[place] = x.untyped_storage()
        else:
            self.memory.pop(place, None)

    def moved(self, value: Any) -> Any:
        """A copy of a tensor, or a model itself, elsewhere."""
        if isinstance(value, nn.Module):
            for x in (*value.parameters(), *value.buffers()):
                self.mark(x, True)
            return value
        copy = value.clone()
        self.mark(copy, True)
        return copy

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        given = [x for x in tree_iter((args, kwargs)) if isinstance(x, Tensor)]
        there = self._device(func, args, given)
        wanted = [x for x in (*args, kwargs.get("device")) if isinstance(x, torch.device)]
        if wanted and "sparse" not in func.name():  # of its constructors PyTorch fills in the device itself
            there = wanted[0].type == THERE.type or torch._C._current_graph_task_id() >= 0  # of gradients it does too
        args = tuple([HERE if isinstance(x, torch.device) else x for x in args])
        kwargs = {name: HERE if isinstance(x, torch.device) else x for name, x in kwargs.items()}
        out = func(*args, **kwargs)
        if not func._schema.is_mutable:
            fresh = not any(r.alias_info is not None for r in func._schema.returns)
            tree_map_only(Tensor, lambda x: self.mark(x, there) if fresh or there else None, out)
        return out

    def _device(self, func: Any, args: Any, given: list[Tensor]) -> bool:
        """Whether the operation runs elsewhere; as CUDA does, it takes single numbers from the CPU."""
        packet = func.overloadpacket
        if packet in TAKES_BOTH:
            return self.is_there(args[0])
        if packet in INDEXED:
            given = [x for x in given if not any(x is i for i in args[1])] or given
        there = [self.is_there(x) for x in given]
        if any(there) and any(not t and x.dim() for t, x in zip(there, given, strict=True)):
            shapes = [f"{tuple(x.shape)} on {THERE if t else HERE}" for t, x in zip(there, given, strict=True)]
            raise DeviceMixError(f"{func} got tensors of two devices: {', '.join(shapes)}")
        return any(there)


def _place(x: Tensor) -> int | None:
    """What identifies a tensor's memory; None where it has none of its own."""
    if x.layout != torch.strided:
        return None
    try:
        return x.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return None


@contextlib.contextmanager
def pretend_device() -> Iterator[PretendDevice]:
    """The mode, and what of PyTorch's Python side has to know of it."""
    mode = PretendDevice()

    @contextlib.contextmanager
    def all_but_this() -> Iterator[None]:
        with _disable_current_modes(), mode:
            yield

    def here(self: Tensor) -> Tensor:
        copy = self.clone()
        mode.mark(copy, False)
        return copy

    def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        wanted = kwargs.get("device", args[0] if args and isinstance(args[0], str | torch.device) else None)
        like = args[0] if args and isinstance(args[0], Tensor) else None
        if like is not None and not mode.is_there(like):
            wanted = HERE
        if wanted is not None and torch.device(wanted).type == "cpu" and mode.is_there(self):
            return here(original_to(self, *args, **kwargs))
        if like is not None and mode.is_there(like):
            return original_to(self, THERE, like.dtype)
        if wanted is not None and torch.device(wanted).type == THERE.type and mode.is_there(self):
            return original_to(self, *args[1:], **{k: v for k, v in kwargs.items() if k != "device"})
        return original_to(self, *args, **kwargs)

    def numpy(self: Tensor, **kwargs: Any) -> Any:
        if mode.is_there(self) and not kwargs.get("force"):
            raise TypeError(f"can't convert {THERE} tensor to numpy. Use Tensor.cpu() first")
        return original_numpy(self, **kwargs)

    original_to, original_numpy = Tensor.to, Tensor.numpy
    device = property(lambda x: THERE if mode.is_there(x) else HERE)
    patches = [
        mock.patch.object(Tensor, "device", device, create=True),
        mock.patch.object(Tensor, "cpu", lambda self: here(self) if mode.is_there(self) else self, create=True),
        mock.patch.object(Tensor, "to", to, create=True),
        mock.patch.object(Tensor, "numpy", numpy, create=True),
        mock.patch.object(Tensor, "new_tensor", lambda x, data, **kw: torch.tensor(data, device=x.device, **kw)),
        mock.patch("xdegree.engine.run.without_modes", all_but_this),
        mock.patch("xdegree.engine.portions.without_modes", all_but_this),
    ]
    before = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)
    try:
        with contextlib.ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patch)
            stack.enter_context(mode)
            yield mode
    finally:
        torch._C._set_only_lift_cpu_tensors(before)
