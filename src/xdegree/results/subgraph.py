"""The subgraph that a prediction rests on, what it gets in which game, and what chance gets there."""

from dataclasses import dataclass
from typing import Literal

Chosen = Literal["node", "edge"]
Objective = Literal["contribution", "fidelity"]
Without = Literal["features", "mean", "edges", "nodes"]

GAMES: dict[Without, str] = {
    "features": "features of all other nodes set to 0",
    "mean": "features of all other nodes set to the mean",
    "edges": "all other edges removed, with the nodes that no edge is left at",
    "nodes": "all other nodes removed",
}


@dataclass(frozen=True)
class Control:
    """What chance gets in the same game: a score says little where this is as high."""

    draws: int
    """How many random subgraphs of the same size; connected ones where the subgraph had to be."""
    score: float
    """Their mean score, of the same objective."""
    best: float
    """The score of the best of them."""
    whole: float
    """The probability of the class in the whole graph (the number of a regression)."""
    nothing: float | None
    """The same with everything removed; None if the model cannot compute that."""


@dataclass(frozen=True)
class Overlap:
    """How much of a known motif was found. A higher score is not a truer motif."""

    precision: float
    """The share of what was chosen that belongs to the motif."""
    recall: float
    """The share of the motif that was chosen."""
    chance: float
    """The precision of a random choice."""


@dataclass(frozen=True)
class Subgraph:
    """Some nodes or edges, what they contribute, and what the model predicts with and without them."""

    nodes: frozenset[int]
    """The chosen ones, or those that the chosen edges touch."""
    edges: frozenset[int]
    """Columns of ``edge_index``: the chosen ones, both directions of an undirected edge, or those between the nodes."""
    size: int
    """How many were chosen; an undirected edge counts once."""
    score: float
    """Of the objective: the contribution, or fidelity⁺ − fidelity⁻."""
    contribution: float | None
    """f^D, in units of the reading; None where messages cannot be followed and only fidelity was asked for."""
    fidelity_plus: float
    """How much probability the class loses without what was chosen."""
    fidelity_minus: float
    """How much it loses with nothing else."""
    of: Chosen
    """What was chosen."""
    objective: Objective
    """What was maximised."""
    without: Without
    """What it means that a part of the graph is left out."""
    connected: bool
    """Whether it had to be one piece."""
    target: int
    """The class that is explained."""
    index: int
    """The node, link or graph that is explained."""
    passes: int
    """How many variants of the graph the model computed, and groups the engine."""
    control: Control
    """What random subgraphs and the empty one get."""
    overlap: Overlap | None = None
    """With the truth, where that was given."""

    @property
    def game(self) -> str:
        """What was maximised by leaving out what, in words."""
        what = "fidelity⁺ − fidelity⁻" if self.objective == "fidelity" else "contribution"
        return f"{what}, {'connected ' if self.connected else ''}{self.of}s; left out: {GAMES[self.without]}"

    def __repr__(self) -> str:
        chosen = sorted(self.nodes if self.of == "node" else self.edges)
        shown = f"{chosen[:12]}".replace("]", ", …]") if len(chosen) > 12 else f"{chosen}"
        motif = "" if self.overlap is None else f", motif precision={self.overlap.precision:.2f}"
        return (
            f"Subgraph({self.of}s={shown}, score={self.score:.4g} (random: {self.control.score:.4g}),"
            f" fidelity⁺={self.fidelity_plus:.4g}, fidelity⁻={self.fidelity_minus:.4g}{motif}, game={self.game!r})"
        )
