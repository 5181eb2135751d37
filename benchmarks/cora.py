"""Explained nodes of a citation graph (Cora) against gradients: one per call, one per prepared call, all in one call.

    python benchmarks/cora.py [--quick]

The models are a GCN of 64 hidden units and a GAT of 8 heads with 8 each, two layers, random weights. Jobs take turns.
"""

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from measure import arguments, in_turn, machine, seconds, verdict
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv

import xdegree
from xdegree.datasets.planetoid import planetoid

GOALS = {"one node per call": 0.8, "one node, prepared": 0.25, "all in one call, each": 0.05}
"""Gradients' time that an explained node may take."""


class Two(nn.Module):
    """Two convolutions."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of all nodes."""
        out: Tensor = self.second(self.first(x, edge_index).relu(), edge_index)
        return out


def main() -> None:
    """Print the machine and one table per model."""
    given = arguments(__doc__)
    warnings.simplefilter("ignore")  # untrained models leave much open
    data = planetoid("Cora")
    rounds, every = (5, 9) if given.quick else (25, 1)
    width, classes = data.num_features, int(data.y.max()) + 1
    torch.manual_seed(0)
    models = {
        "GCN": Two(GCNConv(width, 64), GCNConv(64, classes)),
        "GAT": Two(GATConv(width, 8, heads=8), GATConv(64, classes)),
    }
    print(machine())
    print(f"data      Cora: {data.num_nodes} nodes, {data.num_edges} directed edges, {width} features; float32")
    for name, model in models.items():
        print_table(name, model.eval(), data, rounds, every)


def print_table(name: str, model: nn.Module, data: Any, rounds: int, every: int) -> None:
    """One model: what each way of asking takes, in gradients."""
    x, edge_index = data.x, data.edge_index
    prepared = xdegree.prepare(model, x, edge_index)
    rows = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(0)).tolist()

    def gradient(row: int) -> None:
        features = x.clone().requires_grad_()
        model(features, edge_index)[row].max().backward()

    def turn(job: Callable[[int], Any]) -> Callable[[], Any]:
        nodes = itertools.cycle(rows)
        return lambda: job(next(nodes))

    jobs = {
        "gradient": turn(gradient),
        "one node per call": turn(lambda row: xdegree.explain(model, x, edge_index, index=row)),
        "one node, prepared": turn(lambda row: prepared.explain(index=row)),
    }
    found = in_turn(jobs, rounds)
    some = list(range(0, data.num_nodes, every))
    found["all in one call, each"] = seconds(lambda: prepared.explain(index=some)) / len(some)
    base = found.pop("gradient")
    print(f"\n{name}: milliseconds, and in gradients ({base * 1e3:.1f} ms); median of {rounds} nodes")
    for way, took in found.items():
        print(f"  {way:22}{took * 1e3:9.2f}{took / base:8.2f}   {verdict(took / base, GOALS[way])}")


if __name__ == "__main__":
    main()
