"""Sparse targets against dense ones: every node of a graph as a group of its own, all in one pass.

On a tree the computation graph of a node is a handful of nodes; on BA-Shapes hubs join most of the graph within three
hops. Both forms give the same numbers (tests/test_sparse_rows.py); this prints what each costs.
"""

import platform
import statistics
import time
from unittest.mock import patch

import torch
from torch import nn
from torch_geometric.data import Data

import xdegree.sources
from xdegree import decompose
from xdegree.datasets import ba_shapes, tree_cycles
from xdegree.models import GAT, GCN

ROUNDS = 5


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print(f"{platform.machine()}, 1 thread, torch {torch.__version__}; random weights and graphs, seed 0")
    print(f"processor seconds for all nodes, median of {ROUNDS} rounds in turn")
    print(f"{'graph':12} {'nodes':>6} {'model':6} {'dense':>8} {'chosen':>8} {'ratio':>7}")
    for name, data in (("Tree-Cycles", tree_cycles(seed=0)), ("BA-Shapes", ba_shapes(seed=0))):
        for kind in (GCN, GAT):
            torch.manual_seed(0)
            model = kind(data.num_features, 4).eval()
            rounds = [(seconds(model, data, sparse=False), seconds(model, data, sparse=True)) for _ in range(ROUNDS)]
            dense, chosen = (statistics.median(times) for times in zip(*rounds, strict=True))
            print(f"{name:12} {data.num_nodes:6} {kind.__name__:6} {dense:8.3f} {chosen:8.3f} {dense / chosen:6.1f}x")


def seconds(model: nn.Module, data: Data, sparse: bool) -> float:
    """Of the processor, for every node as a group; the engine chooses sparse targets unless it must not."""
    groups = [[node] for node in range(data.num_nodes or 0)]
    limit = xdegree.sources.SPARSE_BELOW if sparse else -1.0
    with patch.object(xdegree.sources, "SPARSE_BELOW", limit):
        start = time.process_time()
        decompose(model, data.x, data.edge_index, groups=groups)
        return time.process_time() - start


if __name__ == "__main__":
    main()
