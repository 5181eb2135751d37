"""How many groups go through the model at once."""

import re
from collections.abc import Callable

import psutil
import torch
from torch import nn

from .call import ModelCall

Memory = int | str | None
"""A budget in bytes, as text ("500MB", "2GB"), or None for a quarter of what is free."""

WORKING_SET = 12
"""Portions of the largest size that are alive at one moment, with room to spare: operands, results, shares."""

AT_ONCE = 2**27
"""Bytes of the largest portions of one pass, generously guessed, above which more groups only make it slower: memory
that does not fit into caches is fetched, and large blocks are asked of the system again and again."""

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def budget(memory: Memory, device: torch.device) -> int:
    """The budget in bytes."""
    if memory is None:
        return _free(device) // 4
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", memory)
        if not match or match[2].upper() not in _UNITS:
            raise ValueError(f'memory must be a number of bytes or text such as "500MB" or "2GB" (got {memory!r})')
        memory = int(float(match[1]) * _UNITS[match[2].upper()])
    if isinstance(memory, bool) or not isinstance(memory, int) or memory <= 0:
        raise ValueError(f"memory must be a positive number of bytes (got {memory!r})")
    return memory


def _free(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


def chunks(groups: int, memory: Memory, model: object, call: ModelCall, survey: Callable[[], int]) -> list[slice]:
    """Cut K groups so that one pass stays within the budget.

    A generous guess spares small jobs the survey, which costs a forward pass.
    """
    allowed, guess = budget(memory, call.tensors()[0].device), plain_size(model, call)
    size = max(32, AT_ONCE // max(1, guess))
    if min(groups, size) * WORKING_SET * guess > allowed:
        size = max(1, min(size, allowed // max(1, WORKING_SET * survey())))
    passes = max(1, -(-groups // size))
    size = -(-groups // passes)  # passes of the same size
    return [slice(start, min(start + size, groups)) for start in range(0, groups, size)] or [slice(0, 0)]


def plain_size(model: object, call: ModelCall) -> int:
    """Bytes of the largest value of a pass, as if the widest layer met all nodes and edges at once."""
    tensors = call.tensors()
    widths = [max(p.shape, default=1) for p in model.parameters()] if isinstance(model, nn.Module) else []
    widths += [size for t in tensors if t.is_floating_point() for size in t.shape[1:]]
    return sum(max(t.shape, default=1) for t in tensors) * max([*widths, 1]) * 8
