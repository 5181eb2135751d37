"""Data as one block of bytes, which processes of one machine can share, and a skeleton that says what is where.

Pickling graph by graph would write the whole dataset for every graph: the graphs of a dataset are views of one tensor,
and a pickled view takes all of that tensor with it.
"""

import io
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

ALIGNED = 64
"""Bytes: where tensors may start, as in memory of their own, so that arithmetic takes the same way."""

Packed = tuple[bytes, Any]
"""The skeleton and the block, a NumPy array: Ray keeps arrays in shared memory, and gives them out without a copy."""


def packed(value: Any, pickler: Callable[[io.BytesIO], Any]) -> Packed:
    """The value, with the plain tensors in it moved to the block; `pickler` makes the pickler for the skeleton."""
    blocks: list[Any] = []
    place = 0

    def moved(found: Any) -> Any:
        nonlocal place
        if type(found) is not Tensor or found.layout != torch.strided or found.device.type != "cpu":
            return None
        if found.requires_grad or found.is_quantized:
            return None
        flat = found.contiguous().flatten().view(torch.uint8).numpy()
        blocks.extend((flat, np.zeros(-len(flat) % ALIGNED, dtype=np.uint8)))
        here, place = place, place + len(flat) + -len(flat) % ALIGNED
        return here, str(found.dtype).removeprefix("torch."), tuple(found.shape)

    skeleton = io.BytesIO()
    writer = pickler(skeleton)
    writer.persistent_id = moved
    writer.dump(value)
    return skeleton.getvalue(), np.concatenate([np.empty(0, dtype=np.uint8), *blocks])


def unpacked(given: Packed, unpickler: Callable[[io.BytesIO], Any]) -> Any:
    """The value again; its tensors are views of the block and must not be written to."""
    skeleton, array = given
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        block = torch.from_numpy(array)

    def found(name: tuple[int, str, tuple[int, ...]]) -> Tensor:
        here, kind, shape = name
        dtype: torch.dtype = getattr(torch, kind)
        return block[here : here + math.prod(shape) * dtype.itemsize].view(dtype).view(shape)

    reader = unpickler(io.BytesIO(skeleton))
    reader.persistent_load = found
    return reader.load()
