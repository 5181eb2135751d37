"""EiG-Search (Lu et al., ICML 2024), in its own game: some edges, all others removed with the nodes that they leave.

It reads what is lost without each edge and takes the best prefix of that order, by the very measure that it reports.
"""

from dataclasses import dataclass

import torch

from ..removal import Removal
from ..subgraphs.adjacency import union
from ..subgraphs.games import Game, Units
from .instance import Instance
from .interface import Method, Scores, of_edges


@dataclass(frozen=True)
class EdgeSet:
    """Undirected edges of the computation graph, and what they get."""

    edges: frozenset[int]
    """Columns of the instance's ``edge_index``, both directions."""
    gain: float
    """fidelity⁺ − fidelity⁻: the probability with these edges alone, minus that with all others alone."""


def eig_search() -> Method:
    """What the log-probability of the class loses when one undirected edge is left out."""
    return _lost


def _lost(one: Instance) -> Scores:
    game = _game(one)
    lost = torch.tensor(game.without_each(), dtype=one.x.dtype, device=one.x.device)
    return of_edges(one, lost[game.units.of_row])


def eig_subgraph(one: Instance, most: int) -> EdgeSet:
    """The prefix of that order, of at most so many undirected edges, that gains most."""
    game = _game(one)
    lost = game.without_each()
    order = sorted(range(len(lost)), key=lambda unit: (-lost[unit], unit))
    prefixes = [union(order[:size]) for size in range(1, min(most, len(order)) + 1)]
    gain, best = max(zip(game.scores(prefixes), prefixes, strict=True), key=lambda found: found[0])
    return EdgeSet(frozenset(game.units.rows([best])[0].nonzero().flatten().tolist()), gain)


def _game(one: Instance) -> Game:
    away = Removal(
        one.model, one.x, one.edge_index, index=one.row, target=one.target, level=one.level, model_kwargs=one.kwargs
    )
    every = torch.arange(len(one.x), device=one.x.device)
    return Game(away, Units.edges(one.edge_index, every, directed=False), "edges")
