"""Random programs of PyTorch and PyG operations on node features and edges, as hypothesis strategies.

A program is a list of steps. Each step is drawn for the shape that the steps before it have made, and runs on tensors
and on portions alike. The steps themselves are in `linear_steps` and `other_steps`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

LIMIT = 400
"""Entries that a value may have, so that programs stay small."""

Draw = Callable[..., Any]
Run = Callable[[Tensor, "State"], Tensor]


@dataclass
class State:
    """What a step may use beside the value it is given."""

    edge_index: Tensor
    past: list[Tensor] = field(default_factory=list)
    """The values before; the first one is x."""


@dataclass(frozen=True)
class Step:
    """One operation with its parameters."""

    text: str
    run: Run


@dataclass(frozen=True)
class Program:
    """A model ``f(x, edge_index)`` with a graph to run it on."""

    x: Tensor
    edge_index: Tensor
    steps: tuple[Step, ...]

    def __call__(self, x: Tensor, edge_index: Tensor) -> Tensor:
        state, h = State(edge_index), x
        for step in self.steps:
            state.past.append(h)
            h = step.run(h, state)
        return h

    def __repr__(self) -> str:
        edges = list(map(tuple, self.edge_index.t().tolist()))
        return f"Program(x={list(self.x.shape)}, edges={edges}, {' | '.join(step.text for step in self.steps)})"


Op = Callable[[Draw, Tensor, State], tuple[str, Run] | None]


def op(table: dict[str, Op]) -> Callable[[Op], Op]:
    """Put a kind of step into a table. It returns its text and what it does, or None where the value does not fit."""

    def put(function: Op) -> Op:
        table[function.__name__] = function
        return function

    return put


def constant(draw: Draw, shape: tuple[int, ...]) -> Tensor:
    """Plain numbers from a drawn seed; seed 0 has zeros in it."""
    seed = draw(st.integers(0, 5))
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return values * (values.abs() > 0.6) if seed == 0 else values


def broadcastable(draw: Draw, shape: torch.Size, grow: bool = True) -> tuple[int, ...]:
    """A shape that broadcasts to the given one: fewer dimensions, ones in places, sometimes a dimension in front."""
    kept = list(shape)[draw(st.integers(0, len(shape))) :]
    found = [1 if draw(st.booleans()) and draw(st.booleans()) else n for n in kept]
    if grow and len(found) == len(shape) < 3 and draw(st.integers(0, 4)) == 0:
        found = [draw(st.integers(1, 3)), *found]
    return tuple(found)


def axis(draw: Draw, h: Tensor) -> int:
    """A dimension, counted from the front or from the end."""
    return draw(st.integers(-h.dim(), h.dim() - 1))


def on_nodes(h: Tensor, state: State) -> bool:
    """Whether the rows of a value can be those of the nodes."""
    return h.dim() >= 1 and len(h) == len(state.past[0])


def on_edges(h: Tensor, state: State) -> bool:
    return h.dim() >= 1 and len(h) == state.edge_index.shape[1]


@st.composite
def graphs(draw: Draw) -> tuple[Tensor, Tensor]:
    """Features and edges: one node, no edges, isolated nodes, self-loops and duplicates, as many nodes as features."""
    n = draw(st.integers(1, 5))
    f = draw(st.sampled_from([1, 2, 3, n]))
    ends = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=8))
    x = constant(draw, (n, f))
    return x, torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t().contiguous()


@st.composite
def programs(draw: Draw, *tables: dict[str, Op], most: int = 6) -> Program:
    """A program of steps from the tables, with a graph to run it on."""
    kinds = {name: kind for table in tables for name, kind in table.items()}
    x, edge_index = draw(graphs())
    state, h, steps = State(edge_index), x.clone(), []
    for _ in range(draw(st.integers(1, most))):
        name = draw(st.sampled_from(sorted(kinds)))
        state.past.append(h)
        drawn = kinds[name](draw, h, state)
        if drawn is None or h.numel() > LIMIT:
            state.past.pop()
            continue
        try:
            h = drawn[1](h, state)
        except (IndexError, RuntimeError, ValueError):
            state.past.pop()  # what PyTorch itself refuses is no program
            continue
        steps.append(Step(*drawn))
    return Program(x, edge_index, tuple(steps))


@st.composite
def groups_of(draw: Draw, x: Tensor) -> Tensor:
    """Shares ``[K, N]`` or ``[K, N, F]``: every node by itself (as many pairs as nodes), some nodes, parts of them."""
    n = len(x)
    kind = draw(st.sampled_from(["single", "single", "masks", "shares", "features"]))
    if kind == "single":
        return torch.eye(n, dtype=torch.float64)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 9)))
    shape = (draw(st.integers(1, 4)), n, *([x.shape[1]] if kind == "features" else []))
    share = torch.rand(shape, generator=generator, dtype=torch.float64)
    return share if kind == "shares" else share.lt(0.4).double()


def spread_over(share: Tensor, x: Tensor) -> Tensor:
    """The shares of each entry, ``[K, N, F]``."""
    return share if share.dim() == 3 else share.unsqueeze(-1).expand(-1, *x.shape)
