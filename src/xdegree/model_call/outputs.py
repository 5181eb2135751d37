"""The model's output: its shape as a table, the row and the class that are explained."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from .call import ModelCall

Level = Literal["node", "edge", "graph"]


@dataclass(frozen=True)
class Table:
    """The model's output with a row per node, link or graph and a column per class."""

    values: Tensor
    level: Level

    def of(self, target: Tensor) -> Tensor:
        """The targets of the output in the same form, ``[K, rows, classes]``."""
        return target.reshape(len(target), *self.values.shape)


def as_table(output: Any, call: ModelCall, level: Level | None = None) -> Table:
    """The output as a table; what its rows are is told by their number unless the level is given."""
    if not isinstance(output, Tensor) or not output.is_floating_point():
        got = getattr(output, "dtype", type(output).__name__)
        keys = f" with the parts {list(output)}" if isinstance(output, dict) else ""
        raise TypeError(
            f"the model must return one float tensor to be explained (got {got}{keys}); name the part that is meant,"
            " output=…, or wrap the model to return the prediction"
        )
    if level is not None and level not in get_args(Level):
        raise ValueError(f"level must be one of {get_args(Level)} (got {level!r})")
    level = _level(output, call) if level is None else level
    rows = _rows(call, level)
    # Without knowing better, a vector holds the classes of a graph, but one number per node or link.
    single = output.dim() == 0 or (output.dim() == 1 and level == "graph" and len(output) != rows)
    values = output.reshape(1, -1) if single else output.reshape(len(output), -1)
    if rows is not None and len(values) != rows:
        raise ValueError(f"level={level!r} means {rows} rows, but the model's output has {list(output.shape)}")
    return Table(values, level)


def _level(output: Tensor, call: ModelCall) -> Level:
    rows = len(output) if output.dim() else 1
    links = _rows(call, "edge")
    if links is not None and rows == links:
        return "edge"
    if isinstance(call.x, Tensor) and rows == len(call.x):
        return "node"
    return "graph" if isinstance(call.x, Tensor) else "node"


def _rows(call: ModelCall, level: Level) -> int | None:
    """How many rows the output must have, where that can be known."""
    if level == "edge":
        links = call.get("edge_label_index")
        return links.shape[1] if isinstance(links, Tensor) else None
    if level == "node":
        return len(call.x) if isinstance(call.x, Tensor) else None
    batch = find_batch(call)
    return None if batch is None else int(batch.max()) + 1


def find_batch(call: ModelCall) -> Tensor | None:
    """Which graph each node belongs to: ``batch=``, or else the only vector of whole numbers, one per node."""
    if not isinstance(call.x, Tensor):
        return None
    named = call.get("batch")
    found = [named] if isinstance(named, Tensor) else [t for t in call.tensors() if t.dim() == 1 and t is not call.x]
    found = [t for t in found if t.dtype == torch.long and t.shape == call.x.shape[:1]]
    return found[0] if len(found) == 1 and len(found[0]) else None


def plain_number(value: Any) -> Any:
    """A single number of PyTorch or NumPy as one of Python; anything else as it is."""
    single = getattr(value, "shape", None) == () or (isinstance(value, Tensor) and value.numel() == 1)
    return value.item() if single else value


def check_rows(index: Any, table: Table) -> tuple[list[int], bool]:
    """The rows that are explained and whether it is a single one, or a clear error."""
    return check_rows_among(index, len(table.values), table.level)


def check_rows_among(index: Any, rows: int, level: Level) -> tuple[list[int], bool]:
    """The same where only the number of rows is known."""
    what = {"node": "nodes", "edge": "links", "graph": "graphs"}[level]
    if isinstance(index, str) and index == "all":
        return list(range(rows)), False
    if index is None:
        if rows == 1:
            return [0], True
        raise ValueError(
            f"index is missing: the model predicts {rows} {what}; say which one, index=0 to {rows - 1}, a list of"
            ' them, or index="all"'
        )
    single = not isinstance(index, Iterable) or (isinstance(index, Tensor) and index.dim() == 0)
    chosen = [plain_number(i) for i in ([index] if single else index)]
    for i in chosen:
        if isinstance(i, bool) and not single:
            raise TypeError("index is a mask; name the rows themselves: index=mask.nonzero().flatten()")
        if isinstance(i, bool) or not isinstance(i, int):
            raise TypeError(f"index must be a whole number or a list of them (got {index!r})")
        if not 0 <= i < rows:
            raise ValueError(f"index {i} is out of range: the model predicts {what} 0 to {rows - 1}")
    if not chosen:
        raise ValueError("index is an empty list; name at least one")
    return chosen, single


def check_index(index: Any, table: Table) -> int:
    """The one row that is explained."""
    last = len(table.values) - 1
    if index is None and last > 0:
        raise ValueError(f"index is missing: name the one {table.level} that is explained, index=0 to {last}")
    rows, single = check_rows(index, table)
    if not single:
        raise TypeError(f"index must be one whole number here, 0 to {last} (got {index!r})")
    return rows[0]


def check_target(target: Any, prediction: Tensor) -> int:
    """The class that is explained, by default the predicted one."""
    classes = len(prediction)
    if target is None:
        return int(prediction.argmax())
    target = plain_number(target)
    if isinstance(target, bool) or not isinstance(target, int):
        raise TypeError(f"target must be a whole number, the class (got {target!r})")
    if not 0 <= target < classes:
        raise ValueError(f"target {target} is out of range: the model has the classes 0 to {classes - 1}")
    return target
