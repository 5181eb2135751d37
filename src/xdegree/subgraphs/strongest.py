"""Which nodes of a large computation graph take part in the growth of groups."""

import torch
from torch import Tensor

from ..locality.parts import Place
from ..model_call.call import find_edge_index


def strongest(scores: Tensor, place: Place, most: int) -> tuple[Tensor, float]:
    """The nodes that contribute most, each with nodes that connect it to what is explained; and the share of the rest.

    Strong nodes first, each with its way along edges to the explained node, until there is no more room.
    """
    field, size = place.field, scores.abs()
    order = field[size[field].argsort(descending=True, stable=True)].tolist()
    kept: set[int] = set()
    onward = _ways(place, size)
    for node in order:
        way = [node]
        while (after := onward.get(way[-1])) is not None and after not in kept:
            way.append(after)
        if len(kept | set(way)) > most:
            break
        kept.update(way)
    chosen = torch.tensor(sorted(kept or order[:1]), device=field.device)
    total = float(size[field].sum())
    return chosen, 0.0 if total == 0 else 1 - float(size[chosen].sum()) / total


def _ways(place: Place, size: Tensor) -> dict[int, int]:
    """For each node one that is a hop nearer to what is explained, the one that contributes most."""
    edges = find_edge_index(place.call)
    if place.distance is None or edges is None:
        return {}
    source, end = edges.long()
    source, end = torch.cat([source, end]), torch.cat([end, source])
    nearer = place.distance[end] == place.distance[source] - 1
    source, end = source[nearer], end[nearer]
    own = end if place.nodes is None else place.nodes[end]
    order = size[own].argsort(stable=True)  # of several the last one stays
    start = source if place.nodes is None else place.nodes[source]
    return dict(zip(start[order].tolist(), own[order].tolist(), strict=True))
