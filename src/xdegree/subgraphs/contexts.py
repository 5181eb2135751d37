"""Which contexts a group of nodes is seen in: the random walks of the paper, the neighbors of the authors' code, none.

A context C is what a random walk visits. The walk starts at a node drawn evenly from N_L(S), the nodes within L hops
of the group but not of the group itself, continues along edges to a node drawn evenly from those of N_L(S), and stays
where it is if there is none. With nothing around the group the only context is the empty one.

Where few contexts are possible the expectation is exact: all of them, each with its probability. Else walks are drawn.
What they meet is a function of the seed and the group alone: not of other groups, of their order, of what was scored
before. Exact contexts follow when nodes are renumbered. Drawn ones do as far as features and structure tell nodes
apart: walks are drawn along names that do not depend on the numbering, and two nodes with the same name (mirror
images, say) are told apart by their ids, so for them only the distribution stays the same.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.options import Contexts
from .adjacency import Adjacency, Bits, Words, members, scramble

_STATES_PER_CONTEXT = 8  # a walk that has seen the same nodes may stand on any of them


class Drawn(dict[Bits, float]):
    """Contexts that were drawn, not all that there are: a mean over them has an error."""


@dataclass(frozen=True)
class Surroundings:
    """The contexts of the groups of one graph."""

    adjacency: Adjacency
    contexts: Contexts
    hops: int
    """The model's depth, for contexts that do not say how far they reach."""
    seed: int

    @property
    def _hops(self) -> int:
        return max(1, self.hops) if self.contexts.hops is None else self.contexts.hops

    @property
    def _length(self) -> int:
        return self._hops if self.contexts.length is None else self.contexts.length

    def of(self, group: Bits) -> dict[Bits, float]:
        """The contexts of a group and the weight of each."""
        if self.contexts.kind == "none":
            return {0: 1.0}
        if self.contexts.kind == "neighbors":
            around = [0, *(1 << node for node in members(self.adjacency.around(group)))]
            return dict.fromkeys(around, 1 / len(around))
        region = self.adjacency.within(group, self._hops) & ~group
        if not region:
            return {0: 1.0}
        return self._enumerated(region) or self._drawn(group, region)

    def _enumerated(self, region: Bits) -> dict[Bits, float] | None:
        """All contexts with their probabilities; None if there are too many."""
        starts, touching = list(members(region)), self.adjacency.touching
        if self._length and sum((touching[node] & region).bit_count() for node in starts) > 2 * self.contexts.exact:
            return None  # walking to and fro makes a context of every edge
        inside = {node: list(members(touching[node] & region)) or [node] for node in starts}
        walks = {(1 << node, node): 1 / len(starts) for node in starts}
        for _ in range(self._length):
            longer: dict[tuple[Bits, int], float] = {}
            for (seen, node), weight in walks.items():
                steps = inside[node]
                weight /= len(steps)  # noqa: PLW2901
                for step in steps:
                    state = (seen | 1 << step, step)
                    longer[state] = longer.get(state, 0.0) + weight
            if len(longer) > _STATES_PER_CONTEXT * self.contexts.exact:
                return None
            walks = longer
        contexts: dict[Bits, float] = {}
        for (seen, _), weight in walks.items():
            contexts[seen] = contexts.get(seen, 0.0) + weight
        return contexts if len(contexts) <= self.contexts.exact else None

    def _drawn(self, group: Bits, region: Bits) -> dict[Bits, float]:
        """Contexts that walks found, weighted by how many of them did."""
        rank = self.adjacency.rank
        starts = sorted(members(region), key=rank.__getitem__)
        inside: dict[int, list[int]] = {}
        contexts = Drawn()
        for start, *steps in self._draws(group).tolist():
            node = starts[int(start * len(starts))]
            seen = 1 << node
            for step in steps:
                if node not in inside:
                    ways = members(self.adjacency.touching[node] & region)
                    inside[node] = sorted(ways, key=rank.__getitem__) or [node]
                node = inside[node][int(step * len(inside[node]))]
                seen |= 1 << node
            contexts[seen] = contexts.get(seen, 0.0) + 1 / self.contexts.walks
        return contexts

    def _draws(self, group: Bits) -> Any:
        """Even draws from 0 to 1, ``[walks, length + 1]``, a function of the seed and the group's own keys."""
        keys = np.array([self.adjacency.keys[node] for node in members(group)], dtype=np.uint64)
        seed = scramble(np.array([self.seed % 2**64], dtype=np.uint64))
        start = scramble(seed + np.add.reduce(scramble(keys)))
        shape = (self.contexts.walks, self._length + 1)
        counter: Words = np.arange(shape[0] * shape[1], dtype=np.uint64)
        numbers = scramble(start + counter)
        return ((numbers >> np.uint64(11)) * 2.0**-53).reshape(shape)
