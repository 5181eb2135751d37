"""Where the rows of nodes stand in a call: in an argument, behind a module, or in a table that the model holds.

A spot knows the rows that it has now, and how to put others in their place for one forward pass.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data.data import BaseData

from ..engine.portions import Portions
from ..engine.sparse_rows import SparseRows
from ..engine.torch_private import DispatchMode, OpOverload, without_modes

Given = Callable[[tuple[Any, ...]], Any]
"""What stands somewhere among the arguments."""
Pairs = list[tuple[Any, Any]]
"""Arguments (old, new) that are replaced."""


@dataclass(frozen=True)
class Argument:
    """A tensor among the arguments."""

    way: tuple[Any, ...]
    """The position or name of the argument, and what leads on inside of it: ``(0,)``, ``("data", "user", "x")``."""
    stacked: bool = False
    """Whether it is a stack of graphs, ``[graphs, nodes, …]``, of which every node has a row."""

    def rows(self, given: Given) -> Tensor:
        """What stands there; of a sparse matrix all entries."""
        value: Tensor = given(self.way)
        value = value if value.layout == torch.strided else value.to_dense()
        return value.flatten(0, 1) if self.stacked else value

    def of_nodes(self, nodes: Tensor) -> "Argument":  # noqa: ARG002
        """Arguments are cut with the call."""
        return self

    def place(self, model: Any, new: Tensor, given: Given, until: ExitStack) -> Pairs:  # noqa: ARG002
        """Replace the argument; a sparse one stays what it is for the model, with a dense target beside it."""
        old: Tensor = given(self.way)
        if self.stacked:
            with without_modes():
                return [(old, _unflattened(new, old.shape[:2]))]
        if old.layout == torch.strided:
            return [(old, new)]
        if not isinstance(new, Portions):
            return [(old, new.to_sparse(layout=old.layout))]
        own = old.clone()
        with without_modes():
            new = Portions(new.total, new.target)
        new.total = own
        _stand_in(own, new, until)
        return [(old, own)]


def _unflattened(new: Tensor, size: torch.Size) -> Tensor:
    if not isinstance(new, Portions):
        return new.reshape(*size, *new.shape[1:])
    target = new.target.reshape(new.groups, *size, *new.shape[1:])
    return Portions(new.total.reshape(*size, *new.shape[1:]), target)


@dataclass(frozen=True)
class Behind:
    """What a module returns, as an embedding does; of several tensors the one that ``part`` leads to."""

    module: str
    """Its path."""
    output: Tensor
    part: tuple[Any, ...] = ()
    before: bool = False
    """Whether it is what the module is given instead, its argument of this position."""

    def rows(self, given: Given) -> Tensor:  # noqa: ARG002
        """As the module gave them in a plain pass."""
        return self.output

    def of_nodes(self, nodes: Tensor) -> "Behind":
        """Those that it gives for some of the nodes."""
        return replace(self, output=self.output[nodes])

    def place(self, model: Any, new: Tensor, given: Given, until: ExitStack) -> Pairs:  # noqa: ARG002
        """Exchange what the module returns, whenever it is called."""

        def exchanged(_module: nn.Module, _args: Any, output: Any) -> Any:
            return put(output, self.part, new)

        def given_instead(_module: nn.Module, args: Any) -> Any:
            return put(args, self.part, new)

        module = model.get_submodule(self.module)
        hook = (
            module.register_forward_pre_hook(given_instead) if self.before else module.register_forward_hook(exchanged)
        )
        until.callback(hook.remove)
        return []


@dataclass(frozen=True)
class Held:
    """A tensor that the model holds itself: a parameter, a buffer, an attribute, a variable of its function."""

    name: str
    """Its path in the model; empty where only the tensor itself is known."""
    tensor: Tensor = field(repr=False)
    dim: int = 0
    """The dimension that has the nodes."""
    current: Tensor | None = None
    """Other rows than its own, of a part of the graph."""

    def rows(self, given: Given) -> Tensor:  # noqa: ARG002
        """The rows of the table."""
        return self.tensor.detach().movedim(self.dim, 0) if self.current is None else self.current

    def of_nodes(self, nodes: Tensor) -> "Held":
        """A table of some of the rows, which has to stand in the place of the whole one."""
        return replace(self, current=self.rows(lambda _: None)[nodes])

    def place(self, model: Any, new: Tensor, given: Given, until: ExitStack) -> Pairs:  # noqa: ARG002
        """Put another table in its place in every operation: only the dispatcher sees all readers of it."""
        own = follow(model, self.name) if self.name else self.tensor
        with without_modes():
            if isinstance(new, Portions) and self.dim:
                total, target = new.total.movedim(0, self.dim), new.target.movedim(1, self.dim + 1)
                new = Portions(total.contiguous(), target.contiguous())
            elif self.dim:
                new = new.movedim(0, self.dim).contiguous()
        _stand_in(own, new, until)
        return []


Spot = Argument | Behind | Held
Spots = tuple[Spot, ...]
"""Several spots are inputs of the same nodes, side by side."""


class _StandIns(DispatchMode):
    """For a pass without another mode."""

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*self.stand_in(args), **self.stand_in(kwargs or {}))


def _stand_in(own: Tensor, new: Tensor, until: ExitStack) -> None:
    mode = DispatchMode.current() or until.enter_context(_StandIns())
    mode.in_place_of[id(own)] = (own, new)
    until.callback(mode.in_place_of.pop, id(own), None)


def side_by_side(parts: list[Tensor]) -> Tensor:
    """Several inputs of the same nodes as one, ``[N, all features]``; a single one as it is."""
    return parts[0] if len(parts) == 1 else torch.cat([part.reshape(len(part), -1) for part in parts], 1)


def apart(new: Tensor, parts: list[Tensor]) -> list[Tensor]:
    """The inverse of `side_by_side` for other rows of the same nodes."""
    if len(parts) == 1:
        return [new]
    found, start = [], 0
    with without_modes():
        for part in parts:
            end, shape = start + part[:1].numel(), part.shape[1:]
            found.append(_columns(new, start, end, shape))
            start = end
    return found


def _columns(new: Tensor, start: int, end: int, shape: torch.Size) -> Tensor:
    if not isinstance(new, Portions):
        return new[:, start:end].reshape(-1, *shape)
    total = new.total[:, start:end].reshape(-1, *shape)
    if type(new.sparse) is SparseRows:
        return Portions(total, new.sparse.with_values(new.sparse.values[:, start:end].reshape(-1, *shape)))
    return Portions(total, new.target[:, :, start:end].reshape(new.groups, len(total), *shape))


def follow(value: Any, way: str | tuple[Any, ...]) -> Any:
    """What a path of names, keys and positions leads to."""
    for step in way.split(".") if isinstance(way, str) else way:
        if isinstance(value, BaseData | Mapping):
            value = value[step]
        elif isinstance(value, list | tuple) and not hasattr(value, str(step)):
            value = value[int(step)]
        else:
            value = getattr(value, str(step))
    return value


def put(value: Any, way: tuple[Any, ...], new: Any) -> Any:
    """The value with something else at the end of a path; tuples, lists and dicts are copied on the way."""
    if not way:
        return new
    if isinstance(value, Mapping):
        return {**value, way[0]: put(value[way[0]], way[1:], new)}
    items = list(value)
    items[way[0]] = put(items[way[0]], way[1:], new)
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
