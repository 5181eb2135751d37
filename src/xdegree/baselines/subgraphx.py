"""SubgraphX (Yuan et al.), compact: a Monte-Carlo tree search for the connected subgraph of largest Shapley value.

The search starts from the whole computation graph and removes one node at a time, low degrees first; what falls apart
is dropped, but for the largest part, or for the part of the explained node. A subgraph's value is its Shapley value as
one player among the nodes within L hops of it: features of absent nodes are 0, edges stay, nodes farther away are
present.

Simplifications, for time: far fewer rollouts, children and samples by default than the original's 20, 14 and 100 (give
those to have them); a large subgraph loses a tenth of its nodes at a time; and where there are no more coalitions than
samples the Shapley value is exact. It is slow all the same where computation graphs have hundreds of nodes.
"""

from dataclasses import dataclass, field
from itertools import combinations
from math import comb, sqrt

import numpy as np
import torch
from torch import Tensor

from ..subgraphs.adjacency import Adjacency, Bits, members, union
from .instance import Instance
from .interface import Method, Scores, of_nodes


@dataclass(frozen=True)
class Search:
    """What a search has seen: each subgraph, a set of nodes of the computation graph, with its value."""

    values: dict[frozenset[int], float]

    def best(self, size: int) -> frozenset[int]:
        """The subgraph of largest value among those of at most so many nodes; the smallest one if none is so small."""
        small = {nodes: value for nodes, value in self.values.items() if len(nodes) <= size}
        if not small:
            return min(self.values, key=lambda nodes: (len(nodes), sorted(nodes)))
        return max(small, key=lambda nodes: (small[nodes], -len(nodes), [-node for node in sorted(nodes)]))


def subgraphx(
    max_nodes: int = 5, rollouts: int = 10, children: int = 6, samples: int = 10, explore: float = 10.0, seed: int = 0
) -> Method:
    """A node has the value of the best subgraph of at most `max_nodes` nodes that it is in; in none, the least value.

    Args:
        max_nodes: how small subgraphs become.
        rollouts: paths of the search.
        children: how many nodes are tried for removal at each step, those of the lowest degree.
        samples: coalitions for each Shapley value.
        explore: weight of what was seldom tried.
        seed: of the coalitions.
    """

    def method(one: Instance) -> Scores:
        found = search(one, max_nodes, rollouts, children, samples, explore, seed)
        small = {nodes: value for nodes, value in found.values.items() if len(nodes) <= max_nodes}
        scores = torch.full((len(one.x),), min([0.0, *small.values()]) - 1e-6, dtype=one.x.dtype)
        for nodes, value in small.items():
            ids = list(nodes)
            scores[ids] = scores[ids].clamp(min=value)
        return of_nodes(one, scores)

    return method


@dataclass
class _State:
    """A node of the search tree."""

    value: float = 0.0
    visits: int = 0
    reward: float = 0.0
    next: list[Bits] = field(default_factory=list)


def search(
    one: Instance,
    max_nodes: int = 5,
    rollouts: int = 10,
    children: int = 6,
    samples: int = 10,
    explore: float = 10.0,
    seed: int = 0,
) -> Search:
    """The subgraphs that the search meets; arguments as for `subgraphx`."""
    tree = _Tree(one, children, samples, explore, np.random.default_rng(seed))
    start = tree.kept_part(union(one.local_field.tolist()))
    for _ in range(rollouts):
        tree.roll_out(start, max_nodes)
    return Search({frozenset(members(group)): state.value for group, state in tree.states.items()})


class _Tree:
    def __init__(self, one: Instance, children: int, samples: int, explore: float, rng: np.random.Generator) -> None:
        self.one, self.children, self.samples, self.explore, self.rng = one, children, samples, explore, rng
        self.graph = Adjacency(one.edge_index, len(one.x))
        self.hops = max(1, sum(1 for m in one.model.modules() if hasattr(m, "propagate")))
        self.states: dict[Bits, _State] = {}

    def kept_part(self, group: Bits) -> Bits:
        """The part of the explained node, or the largest one."""
        parts = self.graph.parts(group)
        if self.one.level == "node":
            return next(part for part in parts if part >> self.one.row & 1)
        return max(parts, key=lambda part: (part.bit_count(), -part))

    def roll_out(self, start: Bits, max_nodes: int) -> None:
        """Walk down to a small subgraph, then tell all states on the way what was found there."""
        self._value([start])
        path = [start]
        while path[-1].bit_count() > max_nodes:
            below = self._children(path[-1])
            if not below:
                break
            self._value(below)
            tried = sum(self.states[group].visits for group in below)
            path.append(max(below, key=lambda group: (self._promise(group, tried), -group)))
        reward = self.states[path[-1]].value
        for group in path:
            self.states[group].visits += 1
            self.states[group].reward += reward

    def _promise(self, group: Bits, tried: int) -> float:
        state = self.states[group]
        mean = state.reward / state.visits if state.visits else 0.0
        return mean + self.explore * state.value * sqrt(tried) / (1 + state.visits)

    def _children(self, group: Bits) -> list[Bits]:
        state = self.states[group]
        if not state.next:
            fixed = 1 << self.one.row if self.one.level == "node" else 0
            degree = {node: (self.graph.touching[node] & group).bit_count() for node in members(group & ~fixed)}
            order = sorted(degree, key=lambda node: (degree[node], node))
            block = max(1, len(order) // 10)
            removed = [order[start : start + block] for start in range(self.children)]
            state.next = list(dict.fromkeys(self.kept_part(group & ~union(nodes)) for nodes in removed if nodes))
        return state.next

    def _value(self, groups: list[Bits]) -> None:
        """Shapley values of groups that have none yet, from one batch of predictions."""
        new = [group for group in groups if group not in self.states]
        if not new:
            return
        plans = [self._coalitions(group) for group in new]
        masks = torch.cat([torch.cat([present | inside, present]) for present, inside, _ in plans])
        chances = self.one.probabilities(masks.to(self.one.x.device)).double().cpu()
        for group, (present, _, weights) in zip(new, plans, strict=True):
            with_group, without, chances = *chances[: 2 * len(present)].chunk(2), chances[2 * len(present) :]
            self.states[group] = _State(float(weights @ (with_group - without)))

    def _coalitions(self, group: Bits) -> tuple[Tensor, Tensor, Tensor]:
        """Masks ``[S, n]`` of the others that are present, the mask ``[n]`` of the group, and weights ``[S]``."""
        n = len(self.one.x)
        near = list(members(self.graph.within(group, self.hops) & ~group))
        inside = torch.zeros(n, dtype=torch.bool)
        inside[list(members(group))] = True
        far = ~inside
        far[near] = False
        if 2 ** len(near) <= self.samples:
            chosen = [subset for size in range(len(near) + 1) for subset in combinations(near, size)]
            weights = [1 / ((len(near) + 1) * comb(len(near), len(subset))) for subset in chosen]
        else:
            # In a random order of all players, those before the group: their number is uniform, the choice then even.
            sizes = self.rng.integers(0, len(near) + 1, self.samples)
            chosen = [tuple(self.rng.choice(near, size, replace=False).tolist()) for size in sizes]
            weights = [1 / self.samples] * self.samples
        present = far.repeat(len(chosen), 1)
        for number, subset in enumerate(chosen):
            present[number, list(subset)] = True
        return present, inside, torch.tensor(weights, dtype=torch.float64)
