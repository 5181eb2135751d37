"""Subgraphs of edges in EiG-Search's game, beside EiG-Search, random subgraphs and the motifs; and nodes of Cora.

    python benchmarks/pick.py [--quick]

The game: all edges but the chosen ones are removed, and nodes that no edge is left at leave graph and pooling; what is
maximised is the probability of the class with the chosen edges alone minus that with the rest alone (fidelity⁺ −
fidelity⁻), for at most 50 to 10 % of the edges (sparsity .5 to .9). Both methods choose by that very measure, on the
same graphs, all of them classified correctly. A higher figure is not a truer motif: the share of motif edges stands
beside it. Models are trained here, of 3 layers, with batch norms, a sum or a mean as the pool. "nothing" is the
probability of the class without any edge.
"""

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from measure import arguments, machine, seconds, verdict
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import BatchNorm, GCNConv, GINConv, global_add_pool, global_mean_pool

from xdegree import Subgraph, pick_subgraph, prepare
from xdegree.baselines import eig_subgraph, instance
from xdegree.datasets import Dataset, load
from xdegree.datasets.planetoid import planetoid
from xdegree.models import GCN
from xdegree.training import train_node

SPARSITIES = (0.5, 0.6, 0.7, 0.8, 0.9)
WIDTH = 32
SEED = 0


class Net(nn.Module):
    """Convolutions, ReLU and batch norms, a pool, two linear layers."""

    def __init__(self, kind: str, features: int) -> None:
        super().__init__()
        widths = [features, WIDTH, WIDTH]
        self.convs = nn.ModuleList([_gin(w) if kind == "GIN" else GCNConv(w, WIDTH) for w in widths])
        self.norms = nn.ModuleList([BatchNorm(WIDTH) for _ in widths])
        self.lin1, self.lin2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2)
        self.pool = global_add_pool if kind == "GIN" else global_mean_pool

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Logits of graphs."""
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(x, edge_index).relu())
        out: Tensor = self.lin2(self.lin1(self.pool(x, batch)).relu())
        return out


def _gin(width: int) -> nn.Module:
    return GINConv(nn.Sequential(nn.Linear(width, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)))


def trained(kind: str, data: Dataset, epochs: int) -> tuple[nn.Module, float]:
    """A model in its state of best validation accuracy, and its test accuracy."""
    torch.manual_seed(SEED)
    model = Net(kind, data.num_features)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    parts = {name: [data.graphs[int(i)] for i in data.splits[name]] for name in ("train", "val", "test")}
    best, kept = -1.0, model.state_dict()
    for _ in range(epochs):
        model.train()
        for batch in DataLoader(parts["train"][:1500], batch_size=32, shuffle=True):
            optimizer.zero_grad()
            cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y).backward()
            optimizer.step()
        reached = accuracy(model.eval(), parts["val"])
        if reached > best:
            best, kept = reached, {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(kept)
    return model, accuracy(model, parts["test"])


@torch.no_grad()
def accuracy(model: nn.Module, graphs: list[Data]) -> float:
    """The share of graphs that are classified correctly."""
    batch = next(iter(DataLoader(graphs, batch_size=len(graphs))))
    return float((model(batch.x, batch.edge_index, batch.batch).argmax(-1) == batch.y).double().mean())


def correct(model: nn.Module, data: Dataset, count: int) -> Iterator[Data]:
    """Graphs of the whole dataset, evenly spaced, that are classified correctly and have ten edges at least."""
    step = max(1, len(data.graphs) // (2 * count))
    for graph in data.graphs[::step]:
        with torch.no_grad():
            right = model(graph.x, graph.edge_index).argmax() == graph.y
        if right and graph.num_edges >= 20:
            count -= 1
            yield graph
        if not count:
            return


@dataclass
class Row:
    """What one method gets on one graph and sparsity."""

    score: float
    seconds: float
    precision: float | None = None


def timed(job: Callable[[], Subgraph]) -> tuple[Subgraph, float]:
    """A result and the processor seconds that it took."""
    found: list[Subgraph] = []
    took = seconds(lambda: found.append(job()))
    return found[0], took


def precision(edges: frozenset[int], graph: Data) -> float | None:
    """The share of edges that belong to the motif; None where a graph has none."""
    truth = graph.edge_mask
    return float(truth[sorted(edges)].double().mean()) if bool(truth.any()) else None


def play(model: nn.Module, graph: Data, rows: dict[str, list[Row]]) -> None:
    """All methods on one graph, at all sparsities."""
    for sparsity in SPARSITIES:
        most = max(1, int((1 - sparsity) * graph.num_edges / 2 + 1e-9))
        found = []
        took = seconds(lambda: found.append(eig_subgraph(instance(model, graph.x, graph.edge_index), most)))  # noqa: B023
        rows["EiG-Search"].append(Row(found[0].gain, took, precision(found[0].edges, graph)))
        for name, connected in (("xdegree, any edges", False), ("xdegree, one piece", True)):
            asked = {"of": "edge", "objective": "fidelity", "connected": connected, "progress": False}
            picked, took = timed(lambda: pick_subgraph(model, graph.x, graph.edge_index, size=most, **asked))  # noqa: B023
            rows[name].append(Row(picked.score, took, precision(picked.edges, graph)))
            if not connected:
                rows["random, mean of 32"].append(Row(picked.control.score, 0))
                rows["random, best of 32"].append(Row(picked.control.best, 0))
                rows["nothing"].append(Row(picked.control.nothing or 0, 0))


def print_game(name: str, kind: str, data: Dataset, epochs: int, count: int) -> bool:
    """One model's table; whether the mark is reached."""
    model, reached = trained(kind, data, epochs)
    names = ("EiG-Search", "xdegree, any edges", "xdegree, one piece")
    rows: dict[str, list[Row]] = {n: [] for n in (*names, "random, mean of 32", "random, best of 32", "nothing")}
    graphs = list(correct(model, data, count))
    for graph in graphs:
        play(model, graph, rows)
    print(f"\n{name}, {kind} (test accuracy {reached:.3f}), {len(graphs)} graphs at {len(SPARSITIES)} sparsities")
    print(f"{'':22} {'score':>7} {'beyond EiG (paired, ± s.e.)':>28} {'s/graph':>8} {'in the motif':>13}")
    base = [row.score for row in rows["EiG-Search"]]
    for method, each in rows.items():
        gained = [row.score - other for row, other in zip(each, base, strict=True)]
        by_graph = [statistics.mean(gained[i : i + 5]) for i in range(0, len(gained), len(SPARSITIES))]
        error = statistics.stdev(by_graph) / len(by_graph) ** 0.5
        beyond = f"{statistics.mean(gained):+.3f} ± {error:.3f}" if method in names[1:] else ""
        spent = f"{statistics.mean(row.seconds for row in each):.3f}" if method in names else ""
        shares = [row.precision for row in each if row.precision is not None]
        motif = f"{statistics.mean(shares):.2f}" if shares else ""
        print(f"{method:22} {statistics.mean(row.score for row in each):>7.3f} {beyond:>28} {spent:>8} {motif:>13}")
    gain = statistics.mean(row.score - other for row, other in zip(rows[names[1]], base, strict=True))
    slow = statistics.mean(row.seconds for row in rows[names[1]])
    print(f"any edges beyond EiG-Search: {verdict(gain, 0.03, at_least=True)}; seconds per graph: {verdict(slow, 0.5)}")
    return gain >= 0.03 and slow <= 0.5


def print_cora(count: int) -> None:
    """Ten edges for the prediction of a node."""
    graph = planetoid("Cora")
    model = GCN(graph.num_features, int(graph.y.max()) + 1, hidden=64, layers=2)
    result = train_node(model, graph, epochs=60, lr=0.01, weight_decay=5e-4, seed=SEED, progress=False)
    prepared = prepare(model, graph.x, graph.edge_index)
    nodes = graph.test_mask.nonzero().flatten()[:: max(1, int(graph.test_mask.sum()) // count)][:count].tolist()
    with torch.no_grad():
        forward = seconds(lambda: model(graph.x, graph.edge_index), 5)
    print(
        f"\nCora, GCN of 2 layers, 64 wide (test accuracy {result.test_accuracy:.3f}), {count} nodes, at most 10 edges"
    )
    print(f"{'':22} {'score':>7} {'random':>7} {'best':>7} {'nothing':>8} {'s/node':>8} {'forward passes':>15}")
    for name, connected in (("xdegree, any edges", False), ("xdegree, one piece", True)):
        asked = {"of": "edge", "size": 10, "objective": "fidelity", "connected": connected, "progress": False}
        found = [timed(lambda node=node: prepared.pick_subgraph(index=node, **asked)) for node in nodes]  # noqa: B023
        each = [(s.score, s.control.score, s.control.best, s.control.nothing or 0, took) for s, took in found]
        score, random, best, nothing, took = (statistics.mean(values) for values in zip(*each, strict=True))
        scores = f"{score:>7.3f} {random:>7.3f} {best:>7.3f} {nothing:>8.3f}"
        print(f"{name:22} {scores} {took:>8.3f} {took / forward:>15.0f}")


def main() -> None:
    """Print the tables."""
    given = arguments(__doc__)
    print(machine())
    print("game      all other edges removed, untouched nodes out of the pooling; score: fidelity⁺ − fidelity⁻")
    count = 6 if given.quick else 20
    reached = []
    for name, epochs in (("ba2motifs", (12, 60)), ("mutag", (15, 25))):
        data = load(name)
        for kind, most in zip(("GIN", "GCN"), epochs, strict=True):
            reached.append(print_game(data.name, kind, data, most, count))
    print(
        f"\nboth marks reached on {sum(reached)} of {len(reached)} models ({verdict(sum(reached), 4, at_least=True)})"
    )
    print_cora(4 if given.quick else 15)


if __name__ == "__main__":
    main()
