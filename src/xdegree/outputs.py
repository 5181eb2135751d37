"""The model's output: its shape as a table, the row and the class that are explained."""

from typing import Any

import torch
from torch import Tensor

from .inputs import ModelCall


def as_table(output: Any, call: ModelCall) -> Tensor:
    """The model's output with a row per node or graph and a column per class."""
    if not isinstance(output, Tensor) or not output.is_floating_point():
        got = getattr(output, "dtype", type(output).__name__)
        raise TypeError(
            f"the model must return one float tensor to be explained (got {got}); wrap it to return the prediction"
        )
    if output.dim() == 1 and output.shape[0] != call.x.shape[0]:
        batch = find_batch(call)
        if batch is None or int(batch.max()) + 1 != output.shape[0]:
            return output.unsqueeze(0)
    return output.reshape(output.shape[0] if output.dim() else 1, -1)


def as_tables(target: Tensor, total: Tensor, call: ModelCall) -> Tensor:
    """The targets of an output in the shape that `as_table` gives the output."""
    return target.reshape(target.shape[0], *as_table(total, call).shape)


def find_batch(call: ModelCall) -> Tensor | None:
    """Which graph each node belongs to: ``batch=``, or else the only vector of whole numbers, one per node."""
    named = call.kwargs.get("batch")
    found = [named] if isinstance(named, Tensor) else [t for t in call.tensors() if t.dim() == 1]
    found = [t for t in found if t.dtype == torch.long and t.shape == call.x.shape[:1]]
    return found[0] if len(found) == 1 and len(found[0]) else None


def check_index(index: Any, table: Tensor, call: ModelCall) -> int:
    """The row that is explained, or a clear error."""
    rows = table.shape[0]
    what = "node" if rows == call.x.shape[0] else "graph"
    if index is None:
        if rows == 1:
            return 0
        raise ValueError(f"index is missing: the model predicts {rows} {what}s; say which one, index=0 to {rows - 1}")
    if isinstance(index, Tensor) and index.numel() == 1:
        index = index.item()
    if isinstance(index, bool) or not isinstance(index, int):
        raise TypeError(f"index must be one whole number (got {index!r})")
    if not 0 <= index < rows:
        raise ValueError(f"index {index} is out of range: the model predicts {what}s 0 to {rows - 1}")
    return index


def check_target(target: Any, prediction: Tensor) -> int:
    """The class that is explained, by default the predicted one."""
    classes = len(prediction)
    if target is None:
        return int(prediction.argmax())
    if isinstance(target, Tensor) and target.numel() == 1:
        target = target.item()
    if isinstance(target, bool) or not isinstance(target, int):
        raise TypeError(f"target must be a whole number, the class (got {target!r})")
    if not 0 <= target < classes:
        raise ValueError(f"target {target} is out of range: the model has the classes 0 to {classes - 1}")
    return target
