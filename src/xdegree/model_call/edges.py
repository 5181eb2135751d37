"""The user's edges as a layer numbers them."""

from typing import Any

import torch
from torch import Tensor


def match_edges(own: Tensor, layer: Any) -> Tensor:
    """For each edge that a layer uses the number that it has among the user's edges, −1 for added ones.

    Layers drop, add and move self-loops, and relational layers take edges by type. Edges are known by their end
    points; parallel edges by their order, which only tells them apart if the layer takes all of them.
    """
    if not isinstance(layer, Tensor) or layer.layout != torch.strided:
        raise NotImplementedError("messages along a sparse adjacency cannot be followed; give edge_index [2, E]")
    own, layer = own.long(), layer.long()  # a pair of nodes as one number does not fit into fewer bits
    if layer.shape == own.shape and torch.equal(layer, own):
        return torch.arange(own.shape[1], device=own.device)
    n = int(max(own.max(), layer.max())) + 1 if own.numel() and layer.numel() else 1
    (own_key, own_nth), (key, nth) = (_numbered(edges[0] * n + edges[1]) for edges in (own, layer))
    known, counts = torch.unique(own_key, return_counts=True)
    taken = torch.bincount(_place(known, key)[_place(known, key) >= 0], minlength=len(known))
    parallel = (taken > 0) & (taken < counts)
    if bool(parallel.any()):
        pair = int(known[parallel][0])
        raise ValueError(
            f"edges {pair // n} → {pair % n} are parallel and a layer takes only some of them (by their type?); which"
            " ones cannot be told. Remove parallel edges"
        )
    most = int(counts.max()) if len(counts) else 1
    own_code, code = own_key * most + own_nth, key * most + nth.clamp(max=most)
    order = torch.argsort(own_code)
    place = _place(own_code[order], torch.where(nth < most, code, -1))
    return torch.where(place >= 0, order[place.clamp(min=0)], -1) if len(order) else place


def _numbered(key: Tensor) -> tuple[Tensor, Tensor]:
    """Each key with its number among its equals."""
    order = torch.argsort(key, stable=True)
    sorted_key = key[order]
    position = torch.arange(len(key), device=key.device)
    first = torch.ones_like(key, dtype=torch.bool)
    first[1:] = sorted_key[1:] != sorted_key[:-1]
    start = torch.where(first, position, 0).cummax(0).values if len(key) else position
    nth = torch.empty_like(position)
    nth[order] = position - start
    return key, nth


def _place(known: Tensor, wanted: Tensor) -> Tensor:
    """Where each wanted value is among sorted known ones, −1 if it is not."""
    if not len(known):
        return torch.full_like(wanted, -1)
    place = torch.searchsorted(known, wanted).clamp(max=len(known) - 1)
    return torch.where(known[place] == wanted, place, -1)
