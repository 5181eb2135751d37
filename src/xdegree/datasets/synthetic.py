"""Synthetic graphs: motifs hung on a random base, so that the nodes that make a label are known."""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

Edge = tuple[int, int]

# A square (0, 1, 2, 3) with a roof (4) over its middle corners 0 and 1. Classes: 1 middle, 2 bottom, 3 top.
HOUSE_EDGES: tuple[Edge, ...] = ((0, 1), (1, 2), (2, 3), (0, 3), (0, 4), (1, 4))
HOUSE_CLASSES = (1, 1, 2, 2, 3)


def ba_shapes(seed: int = 0, random_edges: float = 0.1) -> Data:
    """BA-Shapes: 80 houses hung on a Barabási-Albert graph of 300 nodes (m = 5), with random edges as noise.

    Node classes are 0 (base), 1 (middle of a house), 2 (bottom) and 3 (top). Each house hangs with a middle corner on a
    base node of its own.

    Args:
        seed: draws the graph and the split; the global random state is neither read nor changed.
        random_edges: how many random edges to add, as a share of the edges so far (the paper says 0.1, the graph that
            its authors used has 0.01).

    Returns:
        `x` [700, 10] ones, `edge_index` [2, E] both directions and sorted, `y` [700], `train_mask`, `val_mask` and
        `test_mask` [700] (80/10/10 %), and the ground truth: `edge_mask` [E], true for the edges of the houses, and
        `motif` [700], the number of the house that a node belongs to, -1 in the base.
    """
    if not 0 <= random_edges <= 1:
        raise ValueError(f"random_edges is a share between 0 and 1 (got {random_edges})")
    base, houses = 300, 80
    rng = np.random.default_rng(seed)

    edges = _barabasi_albert(base, 5, rng)
    house_edges: list[Edge] = []
    for house, anchor in enumerate(rng.choice(base, houses, replace=False).tolist()):
        start = base + len(HOUSE_CLASSES) * house
        house_edges += [(start + u, start + v) for u, v in HOUSE_EDGES]
        edges.append((anchor, start))
    nodes = base + houses * len(HOUSE_CLASSES)
    edges += house_edges
    edges += _new_edges(nodes, edges, int(random_edges * len(edges)), rng)

    in_house = set(house_edges)
    truth = torch.tensor([edge in in_house for edge in edges], dtype=torch.uint8)
    edge_index, edge_mask = to_undirected(torch.tensor(edges).T, truth, nodes, reduce="max")
    train_mask, val_mask, test_mask = _split(nodes, rng)
    return Data(
        x=torch.ones(nodes, 10),
        edge_index=edge_index,
        y=torch.tensor([0] * base + list(HOUSE_CLASSES) * houses),
        train_mask=train_mask,
        val_mask=val_mask,
        test_mask=test_mask,
        edge_mask=edge_mask.bool(),
        motif=torch.cat([torch.full((base,), -1), torch.arange(houses).repeat_interleave(len(HOUSE_CLASSES))]),
    )


def _barabasi_albert(nodes: int, m: int, rng: np.random.Generator) -> list[Edge]:
    """Preferential attachment, from a star of m + 1 nodes: each new node links to m others, drawn by their degree."""
    edges = [(0, leaf) for leaf in range(1, m + 1)]
    ends = [end for edge in edges for end in edge]  # every node as often as it has edges
    for new in range(m + 1, nodes):
        chosen: set[int] = set()
        while len(chosen) < m:
            chosen.add(ends[rng.integers(len(ends))])
        edges += [(old, new) for old in sorted(chosen)]
        ends += [*chosen, *[new] * m]
    return edges


def _new_edges(nodes: int, edges: list[Edge], count: int, rng: np.random.Generator) -> list[Edge]:
    """Random edges (u < v) between nodes that have none yet."""
    taken = set(edges)
    new: list[Edge] = []
    while len(new) < count:
        u, v = sorted(rng.integers(nodes, size=2).tolist())
        if u != v and (u, v) not in taken:
            taken.add((u, v))
            new.append((u, v))
    return new


def _split(nodes: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Random masks [nodes] of 80, 10 and 10 percent."""
    tenth = nodes // 10
    part = torch.from_numpy(rng.permutation(nodes))
    return part >= 2 * tenth, part < tenth, (part >= tenth) & (part < 2 * tenth)
