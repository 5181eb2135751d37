"""Sparse targets against dense ones: every node of a graph as a group of its own, all in one pass.

    python benchmarks/sparse.py [--quick]

On a tree the computation graph of a node is a handful of nodes; on BA-Shapes hubs join most of the graph within three
hops. Both forms give the same numbers (tests/test_sparse_rows.py); this prints what each costs.
"""

from unittest.mock import patch

import torch
from measure import arguments, in_turn, machine, verdict
from torch import nn
from torch_geometric.data import Data

import xdegree.engine.masked_rows
from xdegree import decompose
from xdegree.datasets import ba_community, ba_shapes, tree_cycles, tree_grid
from xdegree.models import GAT, GCN


def main() -> None:
    """Print the table."""
    given = arguments(__doc__)
    print(machine())
    print("random weights and graphs, seed 0; processor seconds for all nodes, median of rounds in turn\n")
    print(f"{'graph':13} {'nodes':>6} {'model':6} {'dense':>8} {'chosen':>8} {'dense / chosen':>15}")
    graphs = {"Tree-Cycles": tree_cycles(seed=0), "BA-Shapes": ba_shapes(seed=0)}
    if not given.quick:
        graphs |= {"Tree-Grid": tree_grid(seed=0), "BA-Community": ba_community(seed=0)}
    for name, data in graphs.items():
        for kind in (GCN, GAT):
            print_row(name, data, kind)


def print_row(name: str, data: Data, kind: type[GCN] | type[GAT]) -> None:
    """Both forms on one graph with one model."""
    torch.manual_seed(0)
    model = kind(data.num_features, 4).eval()
    took = in_turn({"dense": lambda: run(model, data, False), "chosen": lambda: run(model, data, True)}, 2)
    ratio = took["dense"] / took["chosen"]
    mark = verdict(ratio, 10 if name == "Tree-Cycles" else 0.9, True)
    times = f"{took['dense']:8.3f} {took['chosen']:8.3f} {ratio:15.1f}"
    print(f"{name:13} {data.num_nodes:6} {kind.__name__:6} {times}   {mark}")


def run(model: nn.Module, data: Data, sparse: bool) -> None:
    """Every node as a group; the engine chooses sparse targets unless it must not."""
    groups = [[node] for node in range(data.num_nodes or 0)]
    limit = xdegree.engine.masked_rows.THIN if sparse else -1.0
    with patch.object(xdegree.engine.masked_rows, "THIN", limit):
        decompose(model, data.x, data.edge_index, groups=groups)


if __name__ == "__main__":
    main()
