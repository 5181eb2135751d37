"""The engine's speed on BA-Shapes, in one run: K groups against K + 1 plain forward passes, and explained nodes.

    python benchmarks/engine.py [--quick] [--threads N]

A ratio of 1 means that one pass over K groups takes as long as K + 1 plain passes of the same model. Both are
measured alternately and compared round by round, so that other load on the machine hits them alike; the median over
the rounds counts. On a busy machine threads wait for each other and small operations take many times their time: the
load is printed, and figures that were taken under load should be taken again.
"""

import argparse
import copy
import os
import platform
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric import __version__ as pyg_version
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer

import xdegree
from xdegree.datasets import ba_shapes
from xdegree.models import GAT, GCN
from xdegree.training import train_node

SEED = 0
GROUPS = (1, 10, 100, 700)
GNN_EXPLAINER_EPOCHS = 100


def main() -> None:
    """Print the machine, the settings and both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and explained nodes")
    parser.add_argument(
        "--threads", type=int, default=torch.get_num_threads(), help="that torch may use (default: all)"
    )
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    rounds, explained, epochs = (3, 3, 50) if given.quick else (9, 20, 300)
    data = ba_shapes(seed=SEED)
    models: dict[str, nn.Module] = {"GCN": GCN(data.num_features, 4), "GAT": GAT(data.num_features, 4)}
    for model in models.values():
        train_node(model, data, epochs=epochs, seed=SEED, progress=False)
    print(describe(data, rounds, epochs))
    for name, model in models.items():
        print_ratios(name, model, data, rounds)
    nodes = motif_nodes(data, explained)
    everything = (data.y > 0).nonzero().flatten().tolist()
    print(
        f"\nseconds per explained node: median over {len(nodes)} motif nodes, one call each; and, of xdegree, one call"
    )
    print(f"for all {len(everything)} motif nodes, which gives one explanation each")
    print(f"{'model':6} {'GNNExplainer':>13} {'one call each':>14} {'faster':>8} {'one call':>10} {'faster':>8}")
    for name, model in models.items():
        print_explained(name, model, data, nodes, everything)
    print(f"\n{load()} at the end")


def describe(data: Data, rounds: int, epochs: int) -> str:
    """The machine, the versions and the settings."""
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, torch_geometric {pyg_version}"
    cores, threads = os.cpu_count(), torch.get_num_threads()
    return "\n".join(
        [
            f"machine   {platform.machine()}, {cores} cores, torch uses {threads} threads; {load()}",
            f"versions  {versions}, xdegree {xdegree.__version__}",
            f"data      BA-Shapes, seed {SEED}: {data.num_nodes} nodes, {data.num_edges} directed edges, float32",
            f"models    3 layers of width 20, {epochs} epochs of training, seed {SEED}",
            f"measured  median of {rounds} rounds, engine and plain passes alternately, after one round to warm up",
        ]
    )


def load() -> str:
    """How busy the machine is; this benchmark alone makes a load of about the threads that it uses."""
    return f"load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"


def print_ratios(name: str, model: nn.Module, data: Data, rounds: int) -> None:
    """Time of K groups over K + 1 plain passes."""
    print(f"\n{name}: K groups at once against K + 1 plain forward passes")
    print(f"{'K':>5} {'engine (ms)':>12} {'K + 1 plain (ms)':>17} {'ratio':>7}")
    for k in GROUPS:
        groups = some_groups(data, k)
        engine, plain = alternately(
            lambda groups=groups: decompose(model, data, groups), lambda: forward(model, data), rounds
        )
        all_plain = [seconds * (k + 1) for seconds in plain]
        ratio = statistics.median(a / b for a, b in zip(engine, all_plain, strict=True))
        print(f"{k:>5} {milliseconds(engine):>12.1f} {milliseconds(all_plain):>17.1f} {ratio:>7.2f}")


def milliseconds(seconds: list[float]) -> float:
    """The median."""
    return 1e3 * statistics.median(seconds)


def some_groups(data: Data, k: int) -> list[list[int]]:
    """Single nodes, spread over the graph."""
    return [[node] for node in torch.linspace(0, data.num_nodes - 1, k).long().tolist()]


def decompose(model: nn.Module, data: Data, groups: list[list[int]]) -> Tensor:
    """All groups in one call."""
    target: Tensor = xdegree.decompose(model, data.x, data.edge_index, groups=groups).target
    return target


@torch.no_grad()
def forward(model: nn.Module, data: Data) -> Tensor:
    """One plain pass."""
    out: Tensor = model(data.x, data.edge_index)
    return out


def alternately(
    first: Callable[[], Tensor], second: Callable[[], Tensor], rounds: int
) -> tuple[list[float], list[float]]:
    """Seconds of both in each round; the second, which is short, is run before and after the first."""
    firsts, seconds = [], []
    for number in range(rounds + 1):
        before = seconds_of(second, 5)
        took = seconds_of(first, 1)
        after = seconds_of(second, 5)
        if number:  # the first round warms up
            firsts.append(took)
            seconds.append((before + after) / 2)
    return firsts, seconds


def seconds_of(job: Callable[[], object], times: int) -> float:
    """Seconds that one call takes, as the mean of several."""
    start = time.perf_counter()
    for _ in range(times):
        job()
    return (time.perf_counter() - start) / times


def motif_nodes(data: Data, count: int) -> list[int]:
    """Nodes of houses, spread over all of them."""
    motif = (data.y > 0).nonzero().flatten()
    chosen: list[int] = motif[torch.linspace(0, len(motif) - 1, count).long()].tolist()
    return chosen


def print_explained(name: str, model: nn.Module, data: Data, nodes: list[int], everything: list[int]) -> None:
    """Both explainers on the same nodes, one node after the other; then all motif nodes in one call."""
    peer = Explainer(
        copy.deepcopy(model),
        GNNExplainer(epochs=GNN_EXPLAINER_EPOCHS),
        explanation_type="model",
        node_mask_type="object",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    torch.manual_seed(SEED)
    xdegree.explain(model, data.x, data.edge_index, index=nodes[0])  # warms up
    ours, theirs = [], []
    for node in nodes:
        ours.append(seconds_of(lambda node=node: xdegree.explain(model, data.x, data.edge_index, index=node), 1))
        theirs.append(seconds_of(lambda node=node: peer(data.x, data.edge_index, index=node), 1))
    single, other = statistics.median(ours), statistics.median(theirs)
    whole = seconds_of(lambda: xdegree.explain(model, data.x, data.edge_index, index=everything), 1) / len(everything)
    print(f"{name:6} {other:>13.3f} {single:>14.4f} {other / single:>7.0f}x {whole:>10.5f} {other / whole:>7.0f}x")


if __name__ == "__main__":
    main()
