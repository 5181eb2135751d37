"""What the kinds of results share: how they are described, and how their tensors are kept in files."""

from typing import Any, get_args

import torch
from torch import Tensor

from ..model_call.outputs import Level
from .files import finite, require

OF = ("node", "edge", "feature", "edge_feature")
"""What can be scored."""
COMMON: dict[str, Any] = {
    "target": int,
    "index": int,
    "reading": str,
    "of": str,
    "edges": str | None,
    "level": str | None,
}
"""What every kind has that is no tensor, and its type in files."""
IDS = ("nodes", "edge_index")
"""The tensors of whole numbers."""


def check_common(prediction: Tensor, target: int, level: str | None) -> None:
    """What views and files rely on, of every kind."""
    require(prediction.dim() == 1, "prediction must be a vector")
    require(0 <= target < len(prediction), f"target must lie between 0 and {len(prediction) - 1}")
    require(level in (None, *get_args(Level)), f"level must be one of {get_args(Level)} (got {level!r})")


def check_count(k: object) -> None:
    """How many of the largest scores are wanted."""
    if not isinstance(k, int) or k < 0:
        raise ValueError(f"k is how many scores are wanted, a whole number (got {k!r})")


def at(level: str | None) -> str:
    """The level as a part of a description."""
    return "" if level is None else f", level={level!r}"


def read_dtype(content: dict[str, Any]) -> torch.dtype:
    """Of the scores in a file."""
    known = {"float32": torch.float32, "float64": torch.float64}
    require(content["dtype"] in known, f"dtype must be one of {tuple(known)} (got {content['dtype']!r})")
    return known[content["dtype"]]


def read_values(content: dict[str, Any], kinds: dict[str, Any]) -> dict[str, Any]:
    """What is no tensor, each of its kind."""
    for name, kind in kinds.items():
        require(isinstance(content[name], kind), f"{name} must be {kind} (got {content[name]!r})")
    return {name: content[name] for name in kinds}


def plain(tensor: Tensor | None) -> Any:
    """A tensor as lists of numbers."""
    return None if tensor is None else finite(tensor.tolist())


def read_tensor(value: Any, dtype: torch.dtype) -> Tensor | None:
    """What `plain` made of a tensor, as a tensor again."""
    if value is None:
        return None
    numbers = _number(value)
    if dtype == torch.long:
        whole = torch.tensor(numbers)
        require(whole.dtype == torch.long or not whole.numel(), "node ids must be whole numbers")
    return torch.tensor(numbers, dtype=dtype)


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(item) for item in value]
    return float(value) if isinstance(value, str) else value
