"""Seconds per explanation tree against the size of the molecule and q, and what asking the engine in batches gains.

    python benchmarks/agglomerate.py [--quick] [--threads N]

Mutagenicity if the data folder has it, else generated molecules. The last table grows the same trees a second time with
one engine call per group: same tree, same groups, none of them twice. There the batched time is the best of three, and
times of the processor are compared, which other load on the machine disturbs less. The other tables show the
clock; on a busy machine they should be taken again.

At the end a citation graph, Cora or one of its size: the trees and features of nodes by the size of their computation
graph, in forward passes over the whole graph (processor time, models with random weights).
"""

import argparse
import os
import platform
import statistics
import time
from collections.abc import Sequence

import torch
from measure import in_turn, seconds, verdict
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, elu
from torch_geometric import __version__ as pyg_version
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.utils import barabasi_albert_graph, k_hop_subgraph

import xdegree
from xdegree import agglomerate, explain
from xdegree.datasets.planetoid import planetoid
from xdegree.experiments.molecules import molecules
from xdegree.locality.prepared import PreparedCall
from xdegree.models import GAT, GCN
from xdegree.results.tree import ExplanationTree
from xdegree.subgraphs.adjacency import Bits
from xdegree.subgraphs.agglomerate import Growth, grown_tree
from xdegree.subgraphs.contextual import Scorer

SEED = 0
SIZES = (10, 20, 30, 40, 60, 80)
QS = (0.2, 0.4, 0.6, 0.8, 1.0)


def main() -> None:
    """Print the machine, the settings and the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer molecules")
    parser.add_argument("--threads", type=int, default=1, help="that torch may use (default: 1)")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    per_size, singly, epochs = (2, 1, 2) if given.quick else (5, 3, 5)
    name, graphs = molecules(seed=SEED)
    epochs = epochs if graphs[0].y is not None else 0  # generated molecules have no labels
    models = {kind.__name__: trained(kind(14, 2, level="graph"), graphs, epochs) for kind in (GCN, GAT)}
    print(describe(name, epochs, per_size))
    chosen = {size: of_size(graphs, size, per_size) for size in SIZES}
    for kind, model in models.items():
        print_by_size_and_q(kind, model, chosen)
        print_by_selection(kind, model, chosen[30])
        print_singly(kind, model, chosen[30][:singly])
    print_citations(sizes=(60,) if given.quick else (20, 60, 120, 200, 400))
    print(f"\n{load()} at the end")


class CitationGCN(nn.Module):
    """As in PyG's example, 64 wide."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = GCNConv(features, 64), GCNConv(64, 7)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every paper."""
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


class CitationGAT(nn.Module):
    """As in PyG's example, with 8 heads."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = GATConv(features, 8, heads=8), GATConv(64, 7)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every paper."""
        return self.conv2(elu(self.conv1(x, edge_index)), edge_index)


def citations() -> tuple[str, Data]:
    """Cora where it is at hand, else a graph of its size."""
    try:
        return "Cora", planetoid("Cora")
    except FileNotFoundError:
        words = (torch.rand(2708, 1433) < 0.0127).float()
        return "a random graph of the size of Cora", Data(x=words, edge_index=barabasi_albert_graph(2708, 2))


def print_citations(sizes: Sequence[int]) -> None:
    """Trees and features of single nodes, in forward passes."""
    torch.manual_seed(SEED)
    name, data = citations()
    reach = {v: len(k_hop_subgraph(v, 2, data.edge_index, num_nodes=data.num_nodes)[0]) for v in range(600)}
    print(f"\n{name}: forward passes per node, by the size of its computation graph")
    print(f"{'model':>6} {'nodes':>6} {'levels':>7} {'left out':>9} {'tree':>7} {'':12} {'features':>9}")
    for kind in (CitationGCN, CitationGAT):
        for size in sizes:
            index = min(reach, key=lambda v, size=size: abs(reach[v] - size))
            print_citation(kind(data.num_features).eval(), data, index, reach[index], marked=size == 60)


def print_citation(model: nn.Module, data: Data, index: int, reach: int, marked: bool) -> None:
    """One row of the table."""
    given = (model, data.x, data.edge_index)
    with torch.no_grad():
        forward = in_turn({"": lambda: model(*given[1:])}, 3, {"": 5})[""]
    tree = agglomerate(*given, index=index)
    grown = seconds(lambda: agglomerate(*given, index=index)) / forward
    words = seconds(lambda: explain(*given, index=index, of="feature")) / forward
    marks = (verdict(grown, 150), verdict(words, 50)) if marked else ("", "")
    left = f"{len(tree.levels):>7} {tree.left_out:>9.1%}"
    print(f"{type(model).__name__[-3:]:>6} {reach:>6} {left} {grown:>7.0f} {marks[0]:12} {words:>9.0f} {marks[1]}")


def trained(model: nn.Module, graphs: list[Data], epochs: int) -> nn.Module:
    """A few epochs, so that the trees are those of a model that has learnt something."""
    torch.manual_seed(SEED)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for _ in range(epochs):
        for batch in DataLoader(graphs, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y).backward()
            optimizer.step()
    return model.eval()


def of_size(graphs: list[Data], size: int, count: int) -> list[Data]:
    """The first molecules of that size, or of the sizes nearest to it."""
    return sorted(graphs, key=lambda m: abs((m.num_nodes or 0) - size))[:count]


def describe(name: str, epochs: int, per_size: int) -> str:
    """The machine, the versions and the settings."""
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, torch_geometric {pyg_version}"
    return "\n".join(
        [
            f"machine   {platform.machine()}, {os.cpu_count()} cores, torch uses {torch.get_num_threads()}; {load()}",
            f"versions  {versions}, xdegree {xdegree.__version__}",
            f"data      {name}, {per_size} molecules per size, seed {SEED}",
            f"models    3 layers of width 20, {epochs} epochs of training, float32",
            f"trees     {Growth()}, {xdegree.Contexts()}",
            "measured  each tree once, after one to warm up; median over molecules",
        ]
    )


def load() -> str:
    """How busy the machine is."""
    return f"load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"


class Singly(Scorer):
    """Asks the engine for one group at a time."""

    def _ask(self, groups: list[Bits]) -> None:
        for group in groups:
            super()._ask([group])


def grow(
    model: nn.Module, data: Data, kind: type[Scorer] = Scorer, **growth: float | str
) -> tuple[float, float, ExplanationTree, Scorer]:
    """Seconds by the clock and of the processor, the tree, and the scorer that counted."""
    start, busy = time.perf_counter(), time.process_time()
    scorer = kind.of(PreparedCall.of(model, (data.x, data.edge_index), {}), seed=SEED)
    tree = grown_tree(scorer, Growth(**growth))  # type: ignore[arg-type]
    return time.perf_counter() - start, time.process_time() - busy, tree, scorer


def print_by_size_and_q(kind: str, model: nn.Module, chosen: dict[int, list[Data]]) -> None:
    """The paper's 3-D figure as a table."""
    grow(model, chosen[SIZES[0]][0])
    print(f"\n{kind}: seconds per tree (engine calls) by atoms and q")
    print(f"{'atoms':>6} " + " ".join(f"{f'q = {q}':>14}" for q in QS) + f" {'groups scored, q = 0.6':>24}")
    for size, graphs in chosen.items():
        cells, groups = [], 0.0
        for q in QS:
            runs = [grow(model, data, q=q) for data in graphs]
            seconds = statistics.median(run[0] for run in runs)
            calls = statistics.median(run[3].calls for run in runs)
            cells.append(f"{f'{seconds:.3f} ({calls:.0f})':>14}")
            if q == 0.6:
                groups = statistics.median(len(run[3].contributions) for run in runs)
        print(f"{size:>6} {' '.join(cells)} {groups:>24.0f}")


def print_by_selection(kind: str, model: nn.Module, graphs: list[Data]) -> None:
    """The three readings, at the default q."""
    print(f"\n{kind}: readings of the selection, {len(graphs)} molecules of 30 atoms")
    print(f"{'selection':>18} {'seconds':>9} {'largest':>9} {'engine calls':>13} {'groups scored':>14} {'levels':>7}")
    for selection in ("threshold", "queue", "percentile", "percentile-signed"):
        runs = [grow(model, data, selection=selection) for data in graphs]
        seconds = [run[0] for run in runs]
        calls = statistics.median(run[3].calls for run in runs)
        groups = statistics.median(len(run[3].contributions) for run in runs)
        levels = statistics.median(len(run[2].levels) for run in runs)
        middle, most = statistics.median(seconds), max(seconds)
        print(f"{selection:>18} {middle:>9.3f} {most:>9.3f} {calls:>13.0f} {groups:>14.0f} {levels:>7.0f}")


def print_singly(kind: str, model: nn.Module, graphs: list[Data]) -> None:
    """The same trees with one engine call per group."""
    print(f"\n{kind}: the same tree of 30 atoms, one engine call per group")
    print(f"{'':>14} {'seconds':^19} {'of the processor':^19}")
    columns = f"{'batched':>9} {'singly':>9}"
    print(f"{'atoms':>6} {'groups':>7} {columns} {columns} {'faster':>7} {'same':>5}")
    for data in graphs:
        several = [grow(model, data) for _ in range(3)]
        clock, busy = min(run[0] for run in several), min(run[1] for run in several)
        _, _, tree, scorer = several[0]
        singly, busily, other, _ = grow(model, data, Singly)
        same = [[g.nodes for g in level] for level in tree.levels] == [[g.nodes for g in lv] for lv in other.levels]
        measured = f"{clock:>9.3f} {singly:>9.2f} {busy:>9.3f} {busily:>9.2f} {busily / busy:>6.0f}x"
        print(f"{data.num_nodes:>6} {len(scorer.contributions):>7} {measured} {'yes' if same else 'no':>5}")


if __name__ == "__main__":
    main()
