"""What may be chosen, and what a choice gets: its contribution, or predictions with and without it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..attribution.decompose import whole_survey
from ..attribution.scores import Reader
from ..locality.parts import Place
from ..model_call.call import find_edge_index
from ..removal import Removal, Way
from ..results.subgraph import Chosen, Without
from .adjacency import Bits, mask, members, union

WAYS: dict[Without, Way] = {"features": "zero", "mean": "mean", "nodes": "nodes"}


@dataclass(frozen=True)
class Units:
    """What is in or out as a whole: a node, an edge, or both directions of an undirected edge."""

    of: Chosen
    of_row: Tensor
    """The unit of each node or edge of the call, −1 where it cannot be chosen."""
    count: int
    ends: Tensor
    """``[2, R]``: the nodes that each row touches; itself twice for a node."""

    @classmethod
    def nodes(cls, place: Place) -> "Units":
        """All nodes that can contribute."""
        n = len(place.call.x)
        of_row = torch.full((n,), -1, device=place.field.device)
        of_row[place.here(place.field)] = torch.arange(len(place.field), device=of_row.device)
        every = torch.arange(n, device=of_row.device)
        return cls("node", of_row, len(place.field), torch.stack([every, every]))

    @classmethod
    def edges(cls, ends: Tensor, nodes: Tensor, directed: bool) -> "Units":
        """All edges ``[2, E]`` between some nodes, single ones or by their two ends."""
        inside = torch.isin(ends, nodes).all(0).nonzero().flatten()
        own = ends[:, inside]
        key = inside if directed else own.amin(0) * (int(ends.max()) + 1 if ends.numel() else 1) + own.amax(0)
        names, which = torch.unique(key, return_inverse=True)
        of_row = torch.full((ends.shape[1],), -1, device=ends.device)
        of_row[inside] = which
        return cls("edge", of_row, len(names), ends)

    def rows(self, groups: list[Bits]) -> Tensor:
        """Which rows of the call belong to each group, ``[K, R]``."""
        chosen = mask(groups, self.count).t().to(self.of_row.device)
        return torch.cat([chosen, chosen.new_zeros(len(groups), 1)], 1)[:, self.of_row]

    def of_rows(self, rows: Tensor) -> Bits:
        """The units that some rows belong to."""
        return union(set(self.of_row[rows].tolist()) - {-1})

    @cached_property
    def touching(self) -> list[Bits]:
        """For edges, which others share an end with each."""
        at: dict[int, Bits] = {}
        sides = [(unit, *ends) for unit, ends in zip(self.of_row.tolist(), self.ends.t().tolist(), strict=True)]
        for unit, u, v in sides:
            if unit >= 0:
                at[u], at[v] = at.get(u, 0) | 1 << unit, at.get(v, 0) | 1 << unit
        found = [0] * self.count
        for unit, u, v in sides:
            if unit >= 0:
                found[unit] |= (at[u] | at[v]) & ~(1 << unit)
        return found

    def around(self, group: Bits) -> Bits:
        """The edges that share an end with a group of them."""
        found = 0
        for unit in members(group):
            found |= self.touching[unit]
        return found & ~group


class Contributions:
    """f^D of sets of nodes or edges of one prediction; nothing is scored twice, and one request is one engine call."""

    each = 1

    def __init__(self, reader: Reader, units: Units) -> None:
        self.reader, self.units = reader, units
        self.known: dict[Bits, float] = {}

    def scores(self, groups: list[Bits]) -> list[float]:
        """The contribution of each group."""
        new = [group for group in dict.fromkeys(groups) if group not in self.known]
        if new:
            reader = self.reader
            source = reader.source(self.units.of)
            with whole_survey(reader.prepared.model, reader.prepared.call, reader.prepared.source(self.units.of)):
                found = reader.by_row(source, self.units.rows(new)).scores.sum(1)
            self.known.update(zip(new, found.tolist(), strict=True))
        return [self.known[group] for group in groups]

    @property
    def passes(self) -> int:
        """How many groups the engine was asked for."""
        return len(self.known)


class Game:
    """Predictions with a choice alone and without it; each variant of the graph is computed once."""

    each = 2

    def __init__(self, removal: Removal, units: Units, without: Without) -> None:
        self.removal, self.units, self.without = removal, units, without
        self._known: dict[bytes, float] = {}

    def scores(self, groups: list[Bits]) -> list[float]:
        """fidelity⁺ − fidelity⁻ of each group: the probability with it alone, minus that without it."""
        return [plus - minus for plus, minus in self.fidelities(groups)]

    def fidelities(self, groups: list[Bits]) -> list[tuple[float, float]]:
        """fidelity⁺ and fidelity⁻ of each group."""
        if not groups:
            return []
        alone = self._kept(groups)
        kept, rest = np.split(self._values(torch.cat([alone, ~alone])), 2)
        plus, minus = self.whole - rest, self.whole - kept
        if self.removal.task == "regression":
            plus, minus = abs(plus), abs(minus)
        return list(zip(plus.tolist(), minus.tolist(), strict=True))

    def without_each(self) -> list[float]:
        """What the class loses without each unit, as a logarithm of its probability: EiG-Search's order."""
        rest = self._values(~self._kept([1 << unit for unit in range(self.units.count)]))
        if self.removal.task == "regression":
            return [float(v) for v in abs(self.whole - rest)]
        return [float(v) for v in -np.log(np.clip(rest, 1e-38, None))]

    @cached_property
    def whole(self) -> float:
        """The probability of the class in the whole graph."""
        return self.removal.whole

    @property
    def nothing(self) -> float | None:
        """The same with everything removed."""
        found = float(self._values(self._kept([0]))[0])
        return None if np.isnan(found) else found

    @property
    def passes(self) -> int:
        """How many variants of the graph were computed."""
        return len(self._known)

    def _kept(self, groups: list[Bits]) -> Tensor:
        """What stays, by edge ``[K, E]`` in the game without edges, else by node ``[K, N]``."""
        rows, units = self.units.rows(groups), self.units
        if self.without == "edges":
            if units.of == "edge":
                return rows
            ends = find_edge_index(self.removal.call)
            assert ends is not None
            return rows[:, ends[0]] & rows[:, ends[1]]
        if units.of == "node":
            return rows
        touched = torch.zeros(len(rows), self.removal.num_nodes, dtype=torch.bool, device=rows.device)
        group, edge = rows.nonzero(as_tuple=True)
        touched[group, units.ends[0, edge]] = touched[group, units.ends[1, edge]] = True
        return touched

    def _values(self, kept: Tensor) -> "np.ndarray[Any, np.dtype[np.float64]]":
        keys = [row.tobytes() for row in np.packbits(kept.cpu().numpy(), axis=1)]
        new = {key: number for number, key in enumerate(keys) if key not in self._known}
        if new:
            masks, removal = kept[list(new.values())], self.removal
            by_edge = self.without == "edges"
            rows = removal.with_edges(masks) if by_edge else removal.predictions(masks, WAYS[self.without])
            self._known.update(zip(new, removal.measured(rows).double().tolist(), strict=True))
        return np.array([self._known[key] for key in keys])
