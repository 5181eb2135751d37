"""What the experiments on molecules share: predictions of many, and the parts of one that the paper names."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import networkx
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from ..datasets.mutagenicity import ATOMS, HYDROGEN

CARBON = ATOMS.index("C")


@torch.no_grad()
def predictions(model: nn.Module, graphs: Sequence[Data]) -> list[int]:
    """The predicted class of each graph, from one pass."""
    batch = Batch.from_data_list([Data(x=graph.x, edge_index=graph.edge_index) for graph in graphs])
    found: list[int] = model(batch.x, batch.edge_index, batch.batch).argmax(-1).tolist()
    return found


def marked_atoms(graph: Data) -> list[int]:
    """The ends of the marked edges: the atoms N, O and H of nitro and amino groups."""
    assert graph.edge_index is not None
    found: list[int] = graph.edge_index[:, graph.edge_mask].unique().tolist()
    return found


def ring_carbons(graph: Data) -> list[int]:
    """The carbons that lie on a ring."""
    rings = {atom for edge in ring_edges(graph) for atom in edge}
    return [atom for atom in sorted(rings) if int(_kinds(graph)[atom]) == CARBON]


def ring_edges(graph: Data) -> set[frozenset[int]]:
    """The bonds without which a molecule stays in one piece."""
    assert graph.edge_index is not None
    bonds: Any = networkx.Graph()
    bonds.add_edges_from(tuple(edge) for edge in graph.edge_index.t().tolist())
    apart = {frozenset(edge) for edge in networkx.bridges(bonds)}
    return {frozenset({u, v}) for u, v in bonds.edges} - apart


def other_hydrogens(graph: Data) -> list[int]:
    """The hydrogens that belong to no amino group."""
    marked = set(marked_atoms(graph))
    return [atom for atom, kind in enumerate(_kinds(graph).tolist()) if kind == HYDROGEN and atom not in marked]


def formula(graph: Data, atoms: Iterable[int]) -> str:
    """What a group is made of, carbons and hydrogens first: ``C6H4``, ``NO2``."""
    kinds = _kinds(graph)
    count = Counter(ATOMS[int(kinds[atom])] for atom in atoms)
    order = sorted(count, key=lambda kind: (kind != "C", kind != "H", kind))
    return "".join(f"{kind}{count[kind] if count[kind] > 1 else ''}" for kind in order)


def _kinds(graph: Data) -> Tensor:
    assert graph.x is not None
    return graph.x.argmax(1)
