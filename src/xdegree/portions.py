"""The tensor that carries the model's own value (total) and what each group brought to it (target)."""

from typing import Any, Self

import torch
from torch import Tensor


class LostPortionsError(RuntimeError):
    """A portion would be lost: it leaves tensors, or enters memory that cannot carry it."""


class Alias:
    """What a tensor and its views have in common.

    ``touched``: a portion was written into the memory; until then it is a buffer that behaves as a plain tensor.
    ``shared``: views of the memory exist, so in-place writes must reach them.
    ``broken``: a view had to be copied on the target's side, so in-place writes could no longer reach the base.
    """

    __slots__ = ("broken", "shared", "touched")

    def __init__(self, touched: bool = True) -> None:
        self.touched = touched
        self.shared = False
        self.broken = False


class Portions(Tensor):
    """A tensor without storage of its own: ``total`` of some shape and ``target`` of shape ``[K, *shape]``.

    The background is ``total - target`` and never stored. As nothing can be read from the wrapper itself, an
    operation either goes through a rule or fails: a portion cannot get lost on the way.
    """

    total: Tensor
    alias: Alias
    groups: int
    _target: Tensor | None

    @staticmethod
    def __new__(
        cls, total: Tensor, target: Tensor | None, groups: int | None = None, alias: Alias | None = None
    ) -> Self:
        """A wrapper of the total's shape and strides, so that composites decide as they would without it."""
        self = Tensor._make_wrapper_subclass(
            cls,
            total.shape,
            strides=total.stride(),
            storage_offset=total.storage_offset(),
            dtype=total.dtype,
            device=total.device,
            layout=total.layout,
            requires_grad=False,
        )
        self.total = total
        self._target = target
        self.groups = target.shape[0] if target is not None else groups or 0
        self.alias = alias or Alias(touched=target is not None)
        return self

    @property
    def target(self) -> Tensor:
        """The portion of each group, ``[K, *shape]``."""
        if self._target is None:  # a buffer: nobody brought anything yet
            self._target = zeros(self.total, self.groups)
        return self._target

    @target.setter
    def target(self, value: Tensor) -> None:
        self._target = value

    @property
    def background(self) -> Tensor:
        """What is left of the total, ``[K, *shape]``."""
        return self.total - self.target

    def numpy(self, *, force: bool = False) -> Any:  # noqa: ARG002
        """Of a buffer only: a portion must not leave tensors."""
        return self._plain("numpy").numpy()

    def tolist(self) -> Any:
        """Of a buffer only: a portion must not leave tensors."""
        return self._plain("tolist").tolist()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self._plain("__array__").__array__(*args, **kwargs)

    def _plain(self, method: str) -> Tensor:
        """The tensor that a buffer still is; portions must not leave tensors."""
        if self.alias.touched:
            raise LostPortionsError(
                f"the model calls .{method}() on a tensor that carries portions; its contribution would be lost."
                " Keep it a tensor"
            )
        return self.total

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Portions({tuple(self.shape)}, groups={self.groups}, dtype={self.dtype})"

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise RuntimeError(
            f"{func} was called on portions outside of the run they belong to; the model (or a hook on it) seems to"
            " keep tensors of one forward pass for later. Keep `tensor.total` instead."
        )


def zeros(total: Tensor, groups: int, shape: tuple[int, ...] | None = None) -> Tensor:
    """A target of zeros for a total, laid out as `rows` likes it."""
    shape = tuple(total.shape) if shape is None else shape
    if not shape:
        return total.new_zeros(groups)
    return total.new_zeros(shape[0], groups, *shape[1:]).movedim(1, 0)


def rows(target: Tensor) -> Tensor:
    """The target with its rows first, ``[N, K, …]``, without a copy.

    Targets are *stored* this way round where possible: gathering and summing messages then moves blocks of
    K × F numbers that lie together. Element-wise operations keep the storage order by themselves.
    """
    return target.movedim(0, 1)


def unrows(target: Tensor) -> Tensor:
    """The inverse of `rows`, again without a copy."""
    return target.movedim(1, 0)


def spread(target: Tensor, dim: int) -> Tensor:
    """``[K, *shape]`` with ones put behind K until the shape has ``dim`` dimensions, so that it broadcasts."""
    missing = dim - (target.dim() - 1)
    return target.reshape(target.shape[0], *[1] * missing, *target.shape[1:]) if missing > 0 else target


def carries(x: object) -> bool:
    """Whether x brings portions with it (a buffer that nothing was written into does not)."""
    return isinstance(x, Portions) and x.alias.touched


def total_of(x: Any) -> Any:
    """The model's own value of x, whatever x is."""
    return x.total if isinstance(x, Portions) else x


def target_of(x: Any, groups: int) -> Tensor:
    """The target of a tensor, zeros if it carries nothing."""
    if carries(x):
        return x.target
    total = total_of(x)
    return total.new_zeros(()).expand(groups, *total.shape)
