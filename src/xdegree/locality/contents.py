"""What a prepared call consists of, in marks that tell whether it is still the same."""

import zlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ..engine.portions import leaves
from ..model_call.call import ModelCall, find_edge_index
from .message_flow import Incoming
from .stores import StoredCall

MANY, BLOCK = 2**18, 2**8
"""Edges from which on sums are compared, and of how many each."""


def checksum(value: Tensor) -> Any:
    """A mark of the values of a tensor."""
    dense = value.detach().coalesce().values() if value.layout == torch.sparse_coo else value.detach()
    if dense.layout != torch.strided:
        dense = dense.values()
    flat = dense.contiguous().cpu().reshape(-1).view(torch.uint8)
    return tuple(value.shape), zlib.crc32(flat.numpy().data)


def contents(model: Any, call: ModelCall) -> Iterator[tuple[str, Tensor]]:
    """All tensors of a model and its arguments, by name."""
    if isinstance(model, nn.Module):
        yield from ((f"parameter {name!r}", p) for name, p in model.named_parameters())
        yield from ((f"buffer {name!r}", b) for name, b in model.named_buffers())
    if isinstance(call, StoredCall):  # what is in stores stays as it is, says PyG
        return
    for name, value in call.named_values():
        tensors = [leaf for leaf in leaves(value) if isinstance(leaf, Tensor)]
        yield from ((name if len(tensors) == 1 else f"{name}[{i}]", t) for i, t in enumerate(tensors))


def edge_marks(call: ModelCall, incoming: Incoming | None) -> Tensor:
    """All edges, or of very many the sums of the receivers of each few of them.

    Sums do not see that neighboring edges swapped their receivers, but one of these then leaves the part that is
    cut out, and the edges of that are compared one by one.
    """
    edges = find_edge_index(call)
    if edges is None or incoming is None or isinstance(call, StoredCall):
        return torch.empty(0)
    ends = edges[incoming.end]
    if len(ends) <= MANY:
        return edges.clone()
    whole = len(ends) // BLOCK * BLOCK
    return torch.cat([ends[:whole].view(-1, BLOCK).sum(1), ends[whole:]])
