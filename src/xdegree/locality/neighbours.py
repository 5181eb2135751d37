"""Who hears of whom: the edges into each node, and what lies within some hops of a node."""

import weakref
from dataclasses import dataclass

import torch
from torch import Tensor

KEPT_FROM = 2**16
"""Graphs of so many edges are indexed once and remembered; smaller ones are indexed quicker than looked up safely."""


@dataclass(frozen=True)
class Sampling:
    """A limit on the neighbours that a node hears of, for hubs: some of them, drawn evenly."""

    neighbours: int
    seed: int


@dataclass(frozen=True)
class Ball:
    """What lies within some hops of some nodes, against the direction of the messages."""

    nodes: Tensor
    """In order."""
    distance: Tensor
    """Of each of them, in hops."""
    edges: Tensor
    """All edges into nodes that are nearer than the last hop, in order."""


class Incoming:
    """The edges of a graph by the node that they bring messages to."""

    def __init__(self, edge_index: Tensor, num_nodes: int, flow: str) -> None:
        self.flow = flow
        source, end = (0, 1) if flow == "source_to_target" else (1, 0)
        self.order = torch.argsort(edge_index[end], stable=True)
        self.source = edge_index[source, self.order]  # a copy: a view would keep the user's tensor alive
        counts = torch.bincount(edge_index[end], minlength=num_nodes)
        self.start = torch.cat([counts.new_zeros(1), counts.cumsum(0)])

    def into(self, nodes: Tensor, sampling: Sampling | None = None) -> tuple[Tensor, Tensor]:
        """The edges into some nodes, and where they come from."""
        first = self.start[nodes]
        counts = self.start[nodes + 1] - first
        which = torch.repeat_interleave(torch.arange(len(nodes), device=nodes.device), counts)
        begin = counts.cumsum(0) - counts
        nth = torch.arange(len(which), device=nodes.device) - begin[which]
        place = first[which] + nth
        if sampling is not None and bool((counts > sampling.neighbours).any()):
            # Sorted by a number drawn for each edge, the first of each node are an even choice, in which neither
            # other nodes nor the order of the work have a say.
            order = torch.argsort(_drawn(self.order[place], sampling.seed))
            order = order[torch.argsort(which[order], stable=True)]
            place = place[order[nth < sampling.neighbours]]
        return self.order[place], self.source[place]

    def ball(self, seeds: Tensor, hops: int, sampling: Sampling | None = None) -> Ball:
        """Everything within some hops of the seeds."""
        nodes = torch.unique(seeds)
        distance, frontier, found = torch.zeros_like(nodes), nodes, []
        for hop in range(1, hops + 1):
            edges, sources = self.into(frontier, sampling)
            found.append(edges)
            met = torch.unique(sources)
            frontier = met[~is_among(nodes, met)]
            nodes, order = torch.cat([nodes, frontier]).sort()
            distance = torch.cat([distance, torch.full_like(frontier, hop)])[order]
            if not len(frontier):
                break
        return Ball(nodes, distance, torch.cat(found).sort().values if found else nodes[:0])

    def among(self, nodes: Tensor) -> Tensor:
        """All edges between some nodes, in order."""
        edges, sources = self.into(nodes)
        return edges[is_among(nodes, sources)].sort().values


def is_among(known: Tensor, wanted: Tensor) -> Tensor:
    """Whether values are among sorted ones."""
    if not len(known):
        return torch.zeros_like(wanted, dtype=torch.bool)
    return known[torch.searchsorted(known, wanted).clamp_(max=len(known) - 1)] == wanted


def _drawn(ids: Tensor, seed: int) -> Tensor:
    """A number for each id that looks random, the same wherever it is asked for (the mixing step of splitmix64)."""
    z = ids * -7046029254386353131 + (seed * 2654435769 % 2**62)
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):
        z = (z ^ ((z >> shift) & (2 ** (64 - shift) - 1))) * factor
    return z ^ ((z >> 31) & (2**33 - 1))


_KEPT: dict[int, tuple["weakref.ref[Tensor]", int, int, str, Incoming]] = {}


def incoming(edge_index: Tensor, num_nodes: int, flow: str) -> Incoming:
    """The index of a graph; that of a large one is kept for as long as its edges live and are not written to."""
    if edge_index.shape[1] < KEPT_FROM:
        return Incoming(edge_index, num_nodes, flow)
    key = id(edge_index)
    kept = _KEPT.get(key)
    if kept is not None and kept[0]() is edge_index and kept[1:4] == (edge_index._version, num_nodes, flow):
        return kept[4]
    found = Incoming(edge_index, num_nodes, flow)
    _KEPT[key] = (weakref.ref(edge_index, lambda _: _KEPT.pop(key, None)), edge_index._version, num_nodes, flow, found)
    return found
