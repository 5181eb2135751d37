"""The tensor that carries the model's own value (total) and what each group brought to it (target)."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import torch
from torch import Tensor

from .sparse_rows import DENSE_ABOVE, SparseRows
from .torch_private import DispatchMode, plain_torch_function, without_modes, wrapper_of

with warnings.catch_warnings():
    # PyTorch says once per process that sparse CSR is in beta; users of this package need not see it.
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 1], [0], [1.0])


class LostPortionsError(RuntimeError):
    """A portion would be lost: it leaves tensors, or enters memory that cannot carry it."""


class Alias:
    """What a tensor and its views have in common.

    ``touched``: a portion was written into the memory; until then it is a buffer that behaves as a plain tensor.
    ``shared``: views of the memory exist, so in-place writes must reach them.
    ``broken``: a view had to be copied on the target's side, so in-place writes could no longer reach the base.
    ``loose``: the same, because the target is sparse: written out, it would share its memory.
    ``missing``: the operations without a rule that it comes from; the target is then not known.
    """

    __slots__ = ("broken", "loose", "missing", "shared", "touched")

    def __init__(self, touched: bool = True) -> None:
        self.touched = touched
        self.shared = False
        self.broken = False
        self.loose = False
        self.missing: tuple[Any, ...] = ()


BLOCK = 2**16
"""Numbers that are worked on at a time: what is computed on the way then stays in the processor's cache."""


class Messages:
    """The target of messages along edges, not yet written out: rows of a source, each scaled by a number.

    ``x_j = x[source]; m = x_j * weight; sum of m by target`` is what most layers do. Written out, the messages
    are the largest thing in a pass, [E, K × F]; kept apart they are a sparse matrix that meets the source once.
    Attention has a weight of its own for each group: such messages are written out and summed a few at a time.
    """

    def __init__(
        self,
        source: Tensor | SparseRows,
        index: Tensor,
        weight: Tensor | None = None,
        attention: Tensor | None = None,
    ) -> None:
        self.source = source
        self.index = index
        self.weight = weight
        self.attention = attention
        self._dense: Tensor | None = None
        self._sparse: SparseRows | None = None

    @property
    def shape(self) -> torch.Size:
        """``[K, E, …]``, as if they were written out."""
        return torch.Size([self.source.shape[0], len(self.index), *self.source.shape[2:]])

    def scaled(self, weight: Tensor) -> "Messages":
        """Each message times a number of its own, ``[E]``."""
        weight = weight if self.weight is None else self.weight * weight
        return Messages(self.source, self.index, weight, self.attention)

    def attended(self, attention: Tensor) -> "Messages":
        """Each message times a number of its own for each group, ``[K, E, …]``, which broadcasts to the messages."""
        attention = attention if self.attention is None else self.attention * attention
        return Messages(self._dense_source(), self.index, self.weight, attention)

    def dense(self) -> Tensor:
        """Written out, for everything that is not a sum."""
        if self._dense is None:
            self._dense = unrows(self._gathered(slice(None)))
        return self._dense

    def _gathered(self, some: slice) -> Tensor:
        """Some of the messages, rows first."""
        gathered = rows(self._dense_source()).index_select(0, self.index[some])
        if self.weight is not None:
            gathered = gathered * self.weight[some].reshape(-1, *[1] * (gathered.dim() - 1))
        if self.attention is not None:
            gathered = gathered.mul_(rows(self.attention)[some])
        return gathered

    def _dense_source(self) -> Tensor:
        if isinstance(self.source, SparseRows):
            self.source = self.source.dense()
        return self.source

    def sparse(self) -> SparseRows | None:
        """Written out as pairs of group and edge, if the source is sparse."""
        if self._sparse is None and isinstance(self.source, SparseRows):
            found = self.source.gathered(self.index)
            if self.weight is not None:
                weight = self.weight.to(found.values.dtype)[found.row]
                found = found.with_values(found.values * weight.reshape(-1, *[1] * (found.values.dim() - 1)))
            self._sparse = found
        return self._sparse

    def is_thin(self) -> bool:
        """Whether few enough pairs of group and edge would be written out; with a active there is no other way."""
        if not isinstance(self.source, SparseRows):
            return False
        if self._sparse is not None or self.source.active is not None:
            return True
        return self.source.reach(self.index) <= DENSE_ABOVE * len(self.index) * self.source.groups

    def summed(self, index: Tensor, size: int) -> Tensor | SparseRows:
        """The messages summed by the rows that index names, ``[K, size, …]``: a sparse matrix times the source."""
        if self._dense is not None:  # the source may have changed since
            return _summed_rows(rows(self._dense), index, size)
        if isinstance(self.source, SparseRows):
            if self.is_thin():
                pairs = self.sparse()
                assert pairs is not None
                return pairs.summed(index, size)
            self._dense_source()
        if self.attention is not None:
            return self._summed_in_blocks(index, size)
        return self._summed_dense(self._dense_source(), index, size)

    def _summed_in_blocks(self, index: Tensor, size: int) -> Tensor:
        k, e, *rest = self.shape
        out = self._dense_source().new_zeros(size, k, *rest)
        step = max(1, BLOCK // max(1, out[:1].numel())) if out.device.type == "cpu" else max(1, e)
        for start in range(0, e, step):
            some = slice(start, start + step)
            out.index_add_(0, index[some], self._gathered(some))
        return unrows(out)

    def _summed_dense(self, source: Tensor, index: Tensor, size: int) -> Tensor:
        if source.dtype not in (torch.float32, torch.float64):  # sparse matrices know no others
            return _summed_rows(rows(self.dense()), index, size)
        n, *rest = rows(source).shape
        order = torch.argsort(index, stable=True)
        counts = torch.bincount(index, minlength=size)
        start = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        weight = source.new_ones(len(index)) if self.weight is None else self.weight.to(source.dtype)[order]
        matrix = torch.sparse_csr_tensor(start, self.index[order], weight, (size, n), check_invariants=False)
        return unrows((matrix @ rows(source).reshape(n, -1)).reshape(size, *rest))


def _summed_rows(messages: Tensor, index: Tensor, size: int) -> Tensor:
    return unrows(messages.new_zeros(size, *messages.shape[1:]).index_add_(0, index, messages))


class Later:
    """A target that is made when it is first asked for.

    With attention taken as given, what the weights were computed from is never asked for, so it costs nothing.
    """

    __slots__ = ("__weakref__", "_made", "_make", "depth", "operands", "shape")

    def __init__(self, groups: int, total: Tensor, operands: tuple[Any, ...], make: Callable[[], Any]) -> None:
        self.shape = torch.Size([groups, *total.shape])
        self.operands = operands
        waiting: list[int] = [x._target.depth for x in portions_in(operands) if type(x._target) is Later]
        self.depth: int = 1 + max(waiting, default=0)
        """How many operations wait for each other."""
        self._make: Callable[[], Any] | None = make
        self._made: Tensor | Messages | SparseRows | None = None

    def made(self) -> "Tensor | Messages | SparseRows | None":
        """The target; what it is made from is forgotten."""
        if self._make is not None:
            self._made = self._make()
            self._make, self.operands = None, ()
        return self._made

    def reads(self, places: set[int]) -> bool:
        """Whether it would be made from memory that starts at some places."""
        return any(place_of(x) in places for x in leaves(self.operands) if isinstance(x, Tensor))


def place_of(x: Tensor) -> int:
    """Where the memory of a tensor, and of all its views, starts."""
    return total_of(x).untyped_storage().data_ptr() if x.layout == torch.strided else 0


class Portions(Tensor):
    """A tensor without storage of its own: ``total`` of some shape and ``target`` of shape ``[K, *shape]``.

    The background is ``total - target`` and never stored. As nothing can be read from the wrapper itself, an
    operation either goes through a rule or fails: a portion cannot get lost on the way.
    """

    total: Tensor
    before: "Portions | None" = None
    """What a softmax or sigmoid was applied to, if this is its result and nothing but moving entries came after."""
    exponent: "Portions | None" = None
    """What it is the exponential of, up to one factor per row."""
    _unshifted: "Portions | None" = None
    alias: Alias
    groups: int
    _target: Tensor | Messages | SparseRows | Later | None

    @staticmethod
    def __new__(
        cls,
        total: Tensor,
        target: Tensor | Messages | SparseRows | Later | None,
        groups: int | None = None,
        alias: Alias | None = None,
    ) -> Self:
        """A wrapper of the total's shape and strides, so that composites decide as they would without it."""
        self: Self = wrapper_of(cls, total)
        self.total = total
        self._target = target
        self.groups = target.shape[0] if target is not None else groups or 0
        self.alias = alias or Alias(touched=target is not None)
        return self

    @property
    def target(self) -> Tensor:
        """The portion of each group, ``[K, *shape]``."""
        held = self.held
        if not isinstance(held, Tensor):
            with without_modes():  # these operations are not the model's, whatever calls them
                # None is a buffer: no portion was written into it yet
                held = self._target = zeros(self.total, self.groups) if held is None else held.dense()
        return held

    @target.setter
    def target(self, value: Tensor | SparseRows) -> None:
        self._target = value

    @property
    def unshifted(self) -> "Portions":
        """This tensor, or what one number per row was taken off of to make it: a softmax does not notice that."""
        return self if self._unshifted is None else self._unshifted

    @unshifted.setter
    def unshifted(self, value: "Portions") -> None:
        self._unshifted = value

    @property
    def held(self) -> Tensor | Messages | SparseRows | None:
        """The target as it is stored; None of a buffer."""
        if type(self._target) is Later:
            self._target = self._target.made()
        return self._target  # type: ignore[return-value]

    @property
    def is_by_pairs(self) -> bool:
        """Whether `sparse` is to be had."""
        held = self.held
        return isinstance(held.source if isinstance(held, Messages) else held, SparseRows)

    @property
    def sparse(self) -> SparseRows | None:
        """The target if it is stored by pairs of group and row only."""
        held = self.held
        return held.sparse() if isinstance(held, Messages) else self.stored

    @property
    def stored(self) -> SparseRows | None:
        """The same if it is so already; nothing is written out for it."""
        held = self.held
        return held if isinstance(held, SparseRows) else None

    @property
    def messages(self) -> Messages | None:
        """The target if it is messages that are not written out."""
        held = self.held
        return held if isinstance(held, Messages) else None

    @property
    def background(self) -> Tensor:
        """What is left of the total, ``[K, *shape]``."""
        return self.total - self.target

    @property
    def whole(self) -> Tensor:
        """The total for each group, laid out as `background` is: equal numbers then round equally in every kernel."""
        return self.total - torch.zeros_like(self.target)

    def requires_grad_(self, requires_grad: bool = True) -> Self:  # noqa: ARG002
        """Gradients inside of a model are refused where they are asked for."""
        return self

    def numpy(self, *, force: bool = False) -> Any:
        """The model's own numbers, which carry nothing."""
        return self._taken().numpy(force=force)

    def tolist(self) -> Any:
        """The model's own numbers, which carry nothing."""
        return self._taken().tolist()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self._taken().__array__(*args, **kwargs)

    def __format__(self, spec: str) -> str:
        return format(self._taken(), spec) if spec else repr(self)

    def _taken(self) -> Tensor:
        """The total, of which the run at work notes that numbers were taken from it."""
        run = DispatchMode.current()
        with without_modes():
            return run.as_numbers(self.total) if self.alias.touched and run is not None else self.total

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Portions({tuple(self.shape)}, groups={self.groups}, dtype={self.dtype})"

    __torch_function__ = plain_torch_function  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise RuntimeError(
            f"{func} was called on portions outside of the run they belong to; the model (or a hook on it) seems to"
            " keep tensors of one forward pass for later. Keep `tensor.total` instead."
        )


def zeros(total: Tensor, groups: int, shape: tuple[int, ...] | None = None) -> Tensor:
    """A target of zeros for a total, in the layout that `rows` uses."""
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
    """Whether x carries portions (a buffer that nothing was written into does not)."""
    return isinstance(x, Portions) and x.alias.touched


def total_of(x: Any) -> Any:
    """The model's own value of x, whatever x is."""
    return x.total if isinstance(x, Portions) else x


def leaves(value: Any) -> Iterator[Any]:
    """What is inside of tuples, lists and dicts. PyTorch's own pytrees do more and cost more than a small operation."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))
    else:
        yield value


def portions_in(values: Iterable[Any]) -> list[Portions]:
    """The `leaves` that are portions; this runs at every operation of the model."""
    found: list[Portions] = []
    for value in values:
        kind = type(value)
        if kind is Portions:
            found.append(value)
        elif kind is list or kind is tuple:
            found += portions_in(value)
    return found


def settle(value: Any) -> None:
    """Make the targets inside that were left for later."""
    for x in leaves(value):
        if isinstance(x, Portions) and x.held is not None and x.before is not None:
            settle(x.before)


def mapped(f: Callable[[Any], Any], value: Any) -> Any:
    """The same tuples, lists and dicts with f applied to what is inside of them."""
    if isinstance(value, dict):
        return {key: mapped(f, item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        items = [mapped(f, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return f(value)


def totals(value: Any) -> Any:
    """The model's own values of everything inside; this runs at every operation, so the usual is done first."""
    if type(value) is tuple:
        return tuple([x.total if type(x) is Portions else x if type(x) in _PLAIN else totals(x) for x in value])
    return mapped(total_of, value)


_PLAIN = frozenset({Tensor, int, float, bool, str, type(None), torch.nn.Parameter, torch.dtype, torch.device})


def target_of(x: Any, groups: int) -> Tensor:
    """The target of a tensor, zeros if it carries nothing."""
    if carries(x):
        return x.target
    total = total_of(x)
    return total.new_zeros(()).expand(groups, *total.shape)


def copy_of(x: Portions) -> Portions:
    """The same values in memory of its own."""
    return Portions(x.total.clone(), x.sparse if x.sparse is not None else x.target.clone())


def together(total: Any, target: Any, base: Portions | None) -> Any:
    """Put totals and targets together; outputs that are no float tensors carry nothing."""
    if isinstance(total, tuple | list):
        return type(total)(together(t, g, base) for t, g in zip(total, target, strict=True))
    if target is None or not is_float(total):
        return total
    if target.shape[1:] != total.shape:
        raise ValueError(f"a rule gave a target of shape {tuple(target.shape)} for a total of {tuple(total.shape)}")
    return Portions(total, target, alias=_alias_of(base, target))


def finite_target(target: Any, total: Any) -> Any:
    """The target without what is not finite although the total is; that goes to the background."""
    if isinstance(target, tuple | list):
        return type(target)(finite_target(g, t) for g, t in zip(target, total, strict=True))
    if target is None or not is_float(total):
        return target
    dense: Tensor = target if isinstance(target, Tensor) else target.dense()
    return torch.where(total.isfinite() & ~dense.isfinite(), 0.0, dense)


def _alias_of(base: Portions | None, target: Tensor) -> Alias | None:
    if base is None:
        return None
    if base.alias.loose or share_memory(target, base.target):
        return base.alias
    alias = Alias(base.alias.touched)
    alias.broken = True
    return alias


def share_memory(view: Any, base: Tensor) -> bool:
    """Whether all parts of a view lie in the memory of its base."""
    parts = [view] if isinstance(view, Tensor) else [part for part in view if part is not None]
    place = base.untyped_storage().data_ptr()
    return all(part.untyped_storage().data_ptr() == place for part in parts)


def is_float(x: Any) -> bool:
    """Whether a value can carry anything: numbers of floating point, or complex ones."""
    return isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())


def all_without_buffers(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """`without_buffers` of everything; most operations have no buffer among their operands."""
    if all(x.alias.touched for x in portions_in(args)):
        return args
    return tuple([mapped(without_buffers, x) for x in args])


def without_buffers(x: Any) -> Any:
    """Rules see portions and plain tensors: a buffer that nothing was written into is plain."""
    return x.total if isinstance(x, Portions) and not x.alias.touched else x


def is_buffer(x: Any) -> bool:
    """Whether a value is memory that portions may be written into."""
    return is_float(x) and not isinstance(x, Portions) and x.layout == torch.strided
