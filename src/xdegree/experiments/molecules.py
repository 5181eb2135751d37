"""Molecules for experiments on subgraphs: Mutagenicity where it is at hand, else graphs drawn to look like it."""

from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from ..datasets import data_folder, mutag
from ..datasets.mutagenicity import ATOMS


def molecules(count: int | None = None, seed: int = 0) -> tuple[str, list[Data]]:
    """Mutagenicity if the data folder has it, else 2,000 generated ones (which have no labels); with their name."""
    if (data_folder() / "mutagenicity" / "raw").is_dir():
        return "Mutagenicity", list(mutag().graphs[:count])
    return "generated molecules (the data folder has no Mutagenicity)", generated(count or 2000, seed, (8, 90))


def generated(count: int, seed: int = 0, sizes: tuple[int, int] = (12, 40)) -> list[Data]:
    """Chains of rings with branches, of as many edges as atoms and a few more; atoms at random, no labels."""
    generator = torch.Generator().manual_seed(seed)
    return [_molecule(int(_draw(generator, *sizes)), generator) for _ in range(count)]


def _molecule(size: int, generator: torch.Generator) -> Data:
    edges: list[tuple[int, int]] = []
    node = 1
    while node < size:
        at, ring = _draw(generator, 0, node - 1), _draw(generator, 0, 2) == 0 and size - node >= 5
        chain = [at, *range(node, node + (5 if ring else 1))]
        edges += list(pairwise(chain)) + ([(chain[-1], at)] if ring else [])
        node += len(chain) - 1
    there = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()
    share = torch.tensor([0.45, 0.08, 0.01, 0.38, 0.08])
    atoms = torch.multinomial(share, size, replacement=True, generator=generator)
    return Data(x=one_hot(atoms, len(ATOMS)).float(), edge_index=torch.cat([there, there.flip(0)], 1))


def _draw(generator: torch.Generator, low: int, high: int) -> int:
    return int(torch.randint(low, high + 1, (), generator=generator))


def plant(graphs: list[Data], noise: float = 0.02, seed: int = 0) -> list[Data]:
    """The paper's forward-looking data: noise as the only feature, and in every second graph one node of value 1.

    Each graph carries ``special``, the planted node or −1, and ``y``, whether there is one.
    """
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(graphs), generator=generator)[: len(graphs) // 2]
    planted = torch.zeros(len(graphs), dtype=torch.long)
    planted[chosen] = 1
    return [_planted(m, bool(y), noise, generator) for m, y in zip(graphs, planted, strict=True)]


def _planted(molecule: Data, special: bool, noise: float, generator: torch.Generator) -> Data:
    size = molecule.num_nodes or 0
    x: Tensor = torch.randn(size, 1, generator=generator) * noise
    node = _draw(generator, 0, size - 1)
    if special:
        x[node] = 1
    return Data(x=x, edge_index=molecule.edge_index, y=torch.tensor([int(special)]), special=node if special else -1)
