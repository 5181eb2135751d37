"""The graph that groups grow in, with sets of nodes as integers: bit i stands for node i.

Sets are united, compared and looked up thousands of times per explanation; as numbers that costs next to nothing.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

Bits = int
"""A set of nodes."""
Words = np.ndarray[Any, np.dtype[np.uint64]]


class Adjacency:
    """Which nodes touch: without direction, self-loops and repetition.

    Args:
        edge_index: ``[2, E]``, ids from 0 to ``num_nodes - 1``.
        num_nodes: how many nodes there are.
        marks: ``[num_nodes, …]``, what tells nodes apart besides the edges: their features.
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, marks: Tensor | None = None) -> None:
        self.num_nodes = num_nodes
        self.everything: Bits = (1 << num_nodes) - 1
        touching = [0] * num_nodes
        for u, v in edge_index.t().tolist():
            touching[u] |= 1 << v
            touching[v] |= 1 << u
        self.touching: tuple[Bits, ...] = tuple(bits & ~(1 << node) for node, bits in enumerate(touching))
        self._marks = marks
        self._reach: dict[int, tuple[Bits, ...]] = {0: tuple(1 << node for node in range(num_nodes))}

    def around(self, group: Bits) -> Bits:
        """The nodes that touch a group from outside."""
        found = 0
        for node in members(group):
            found |= self.touching[node]
        return found & ~group

    def within(self, group: Bits, hops: int) -> Bits:
        """A group and all nodes within some hops of it."""
        reach = self._hops(min(hops, self.num_nodes))
        found = 0
        for node in members(group):
            found |= reach[node]
        return found

    def _hops(self, hops: int) -> tuple[Bits, ...]:
        """What each node reaches."""
        if hops not in self._reach:
            self._reach[hops] = tuple(bits | self.around(bits) for bits in self._hops(hops - 1))
        return self._reach[hops]

    def parts(self, group: Bits) -> list[Bits]:
        """The connected parts of a set, the one with the smallest node first."""
        found = []
        while group:
            part, grown = 0, group & -group
            while part != grown:
                part, grown = grown, grown | self.around(grown) & group
            found.append(part)
            group &= ~part
        return found

    @cached_property
    def keys(self) -> list[int]:
        """A number per node that another numbering of the nodes does not change.

        Marks and the keys of all nodes around, refined until no more nodes are told apart (Weisfeiler and Leman).
        Nodes that keep the same key may be images of each other; nothing but their ids tells those apart.
        """
        keys = _digest(self._marks, self.num_nodes)
        ends = [(v, u) for v, bits in enumerate(self.touching) for u in members(bits)]
        to, source = np.array(ends, dtype=np.int64).reshape(-1, 2).T
        distinct = 0
        while distinct < (distinct := len(np.unique(keys))):
            arriving = np.zeros_like(keys)
            np.add.at(arriving, to, scramble(keys[source]))
            keys = scramble(scramble(~keys) + arriving)  # own keys otherwise than those around
        return [int(key) for key in keys]

    @cached_property
    def rank(self) -> list[int]:
        """The place of each node when all are sorted by key, those of equal keys by id."""
        order = sorted(range(self.num_nodes), key=lambda node: (self.keys[node], node))
        return [place for _, place in sorted(zip(order, range(self.num_nodes), strict=True))]


def members(group: Bits) -> Iterator[int]:
    """The nodes of a set in the order of their ids."""
    while group:
        low = group & -group
        yield low.bit_length() - 1
        group ^= low


def union(nodes: Iterable[int]) -> Bits:
    """The set of some nodes."""
    found = 0
    for node in nodes:
        found |= 1 << node
    return found


def mask(groups: list[Bits], num_nodes: int) -> Tensor:
    """Sets of nodes as a mask ``[num_nodes, K]`` of truth values."""
    width = (num_nodes + 7) // 8
    packed = np.frombuffer(b"".join(group.to_bytes(width, "little") for group in groups), dtype=np.uint8)
    bits = np.unpackbits(packed.reshape(len(groups), width), axis=1, count=num_nodes, bitorder="little")
    return torch.from_numpy(np.ascontiguousarray(bits.T)).bool()


def scramble(numbers: Words) -> Words:
    """SplitMix64: 64 bits that look random, a function of nothing but the number."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _digest(marks: Tensor | None, num_nodes: int) -> Words:
    """A number per row of marks that depends on the row alone."""
    keys = np.zeros(num_nodes, dtype=np.uint64)
    if marks is None:
        return keys
    columns = marks.detach().cpu().double().reshape(num_nodes, -1).contiguous().numpy().view(np.uint64)
    for column in columns.T:
        keys = scramble(keys ^ column)
    return keys
