"""What a model returns, opened: records by the names of their fields, and the part of it that is meant."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor, nn
from torch_geometric.data.data import BaseData

from .spots import follow


def opened(output: Any) -> Any:
    """The same with dataclasses, ``Data`` and other records of tensors as dicts by name, at any depth."""
    if isinstance(output, Tensor | nn.Module | str | type) or output is None:
        return output
    if isinstance(output, BaseData):
        return {name: opened(value) for name, value in output.to_dict().items()}
    if is_dataclass(output):
        named = {one.name: getattr(output, one.name) for one in fields(output)}
        return {name: opened(value) for name, value in named.items() if value is not None}
    if isinstance(output, Mapping):
        return {key: opened(value) for key, value in output.items()}
    if isinstance(output, tuple | list):
        items = [opened(item) for item in output]
        return type(output)(*items) if hasattr(output, "_fields") else type(output)(items)
    inside = getattr(output, "__dict__", {})
    if any(isinstance(value, Tensor) for value in inside.values()):
        return {name: opened(value) for name, value in inside.items()}
    return output


def picked(output: Any, part: Any) -> Any:
    """The part of an output that is meant."""
    if part is None:
        return output
    for way in ((part,), part if isinstance(part, tuple) else str(part)):
        try:
            return follow(output, way)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError):
            continue
    has = [name for name, _ in parts_of(output) if name != ()] or f"a {type(output).__name__}"
    raise ValueError(f"output={part!r} is no part of what the model returns ({has})") from None


def only_part(output: Any) -> Any:
    """The name of the only float tensor in an output of several parts; None if there are more, or it is one itself."""
    found = [] if isinstance(output, Tensor) else list(parts_of(output))
    return found[0][0] if len(found) == 1 else None


def parts_of(output: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Tensor]]:
    """All float tensors of an output, each with what ``output=`` would have to be."""
    if isinstance(output, Tensor):
        if output.is_floating_point():
            yield (way[0] if len(way) == 1 else way), output
        return
    if isinstance(output, tuple) and hasattr(output, "_fields"):
        output = dict(zip(output._fields, output, strict=True))
    if isinstance(output, Mapping):
        for key, value in output.items():
            yield from parts_of(value, (*way, key))
    elif isinstance(output, tuple | list):
        for number, value in enumerate(output):
            yield from parts_of(value, (*way, number))
