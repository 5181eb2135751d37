"""Looking for the best set of at most so many: step by step from good orders, or in one piece by beam."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np
from tqdm import tqdm

from .adjacency import Bits, members, union
from .games import Units

SWAPS = 8
"""A swap is tried for the best so many to add, with the best so many to leave out."""
POOL = 4
"""Steps add what is among the first of some order: so many times as many as a set may have, and 16 at least."""


class Judge(Protocol):
    """Gives sets their scores."""

    units: Units
    each: int
    """How many passes a new set takes."""

    @property
    def passes(self) -> int:
        """How many were made so far."""

    def scores(self, groups: list[Bits], /) -> list[float]:
        """Of some sets; those that are known already cost nothing."""


class Search:
    """A search over sets of units, with a budget.

    Args:
        judge: scores them.
        most: units of a set.
        budget: passes at most.
        rounding: by what share of the largest score two may differ and still be equal.
        progress: show a bar on a terminal, if it takes longer than a moment.
    """

    def __init__(self, judge: Judge, most: int, budget: int, rounding: float, progress: bool) -> None:
        self._judge, self._count, self._most = judge, judge.units.count, most
        self._budget, self._rounding, self._step = budget, rounding, 1e-30
        self.scores: dict[Bits, float] = {}
        self._pool: Bits = (1 << self._count) - 1
        self._bar = tqdm(total=budget, desc="subgraph", unit="pass", delay=2, disable=None if progress else True)

    def best(self) -> Bits:
        """Of all sets that were scored and are small enough; of equals the smaller one, then the smaller ids."""
        self._bar.close()
        return min((group for group in self.scores if 0 < group.bit_count() <= self._most), key=self._rank)

    @property
    def is_over(self) -> bool:
        """Whether the budget is spent."""
        return self._judge.passes >= self._budget

    # Any set: the prefixes of orders, then steps and swaps from the best of each.

    def prefixes(self, orders: Sequence[Sequence[int]]) -> list[list[Bits]]:
        """The first few of each order, up to the largest size: families to climb from."""
        first = max(16, POOL * self._most)
        self._pool = union(unit for order in orders for unit in order[:first])
        found = [[union(order[:size]) for size in range(1, self._most + 1)] for order in orders]
        self._score([group for family in found for group in family])
        return found

    def climb(self, families: Iterable[Iterable[Bits]]) -> None:
        """From the best of each family: add, leave out or swap a unit, for as long as that helps."""
        families = [list(family) for family in families]
        self._score([group for family in families for group in family])
        known = [[group for group in family if group in self.scores] for family in families]
        active, seen = list(dict.fromkeys(min(some, key=self._rank) for some in known if some)), set[Bits]()
        while active and not self.is_over:
            seen.update(active)
            self._score([move for front in active for move in self._steps(front)])
            stuck = [front for front in active if self._better(front, self._steps(front)) is None]
            self._score([swap for front in stuck for swap in self._swaps(front)])
            found = [self._better(front, [*self._steps(front), *self._swaps(front)]) for front in active]
            active = [group for group in dict.fromkeys(found) if group is not None and group not in seen]

    def _steps(self, front: Bits) -> list[Bits]:
        """With one unit less or more. One more than allowed is no result, but tells what to swap in."""
        return [group for group in (front ^ 1 << unit for unit in members(self._pool | front)) if group]

    def _swaps(self, front: Bits) -> list[Bits]:
        steps = sorted((group for group in self._steps(front) if group in self.scores), key=self._rank)
        less = [front & ~group for group in steps if group.bit_count() < front.bit_count()][:SWAPS]
        more = [group & ~front for group in steps if group.bit_count() > front.bit_count()][:SWAPS]
        if front.bit_count() == 1:
            less = [front]
        return [front & ~out | into for into in more for out in less]

    def _better(self, front: Bits, moves: Iterable[Bits]) -> Bits | None:
        allowed = [group for group in moves if group in self.scores and group.bit_count() <= self._most]
        best = min(allowed, key=self._rank, default=front)
        return best if self.scores[best] > self.scores[front] + self._step else None

    # One piece: groups that grow by one unit, the best of each size go on.

    def grow(self, around: Callable[[Bits], Bits], beam: int, guides: Iterable[Bits] = ()) -> list[Bits]:
        """The best of each size, from single units on; groups that guide the search join at the step of their size."""
        joining: dict[int, list[Bits]] = {}
        for group in guides:
            joining.setdefault(group.bit_count(), []).append(group)
        front, found = [1 << unit for unit in range(self._count)], []
        for size in range(1, self._most + 1):
            some = list(dict.fromkeys([*front, *joining.get(size, [])]))
            self._score(some)
            front = sorted((group for group in some if group in self.scores), key=self._rank)[:beam]
            found += front[:1]
            if not front or self.is_over:
                break  # the parts of the graph are smaller than that, or the budget is spent
            front = [group | 1 << unit for group in front for unit in members(around(group))]
        return found

    def _rank(self, group: Bits) -> tuple[float, int, int]:
        """Best first; of equals the smaller sets, then those of smaller ids."""
        score = self.scores[group]
        place = -round(score / self._step) if math.isfinite(score) else math.inf
        return place, group.bit_count(), -int(f"{group:0{self._count}b}"[::-1], 2)

    def _score(self, groups: Iterable[Bits]) -> None:
        """As many of them as the budget allows, one at least."""
        new = [group for group in dict.fromkeys(groups) if group not in self.scores]
        before = self._judge.passes
        new = new[: max((self._budget - before) // self._judge.each, 0 if self.scores else 1)]
        if not new:
            return
        found = self._judge.scores(new)
        self.scores.update((g, -math.inf if math.isnan(s) else s) for g, s in zip(new, found, strict=True))
        self._step = max(self._step, *(self._rounding * abs(s) for s in found if math.isfinite(s)), 0.0)
        self._bar.update(self._judge.passes - before)


def random_groups(
    count: int, size: int, draws: int, seed: int, around: Callable[[Bits], Bits] | None = None
) -> list[Bits]:
    """Sets of so many units; connected ones where it is said which units are around a set."""
    random, found = np.random.default_rng(seed), []
    for _ in range(draws):
        if around is None:
            found.append(union(random.choice(count, size, replace=False).tolist()))
            continue
        group = 1 << int(random.integers(count))
        while group.bit_count() < size and (next_to := list(members(around(group)))):
            group |= 1 << next_to[random.integers(len(next_to))]
        found.append(group)
    return found
