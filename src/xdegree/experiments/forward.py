"""The paper's forward-looking experiment: one special node hidden in half of the molecules, and found again.

    python -m xdegree.experiments.forward [--graphs N] [--epochs N] [--noise S] [--seed N]

A 3-layer GCN learns which molecules hold a special node; DEGREE then scores the nodes of those that do. Reported is
the model's accuracy on all graphs and on those that it was not trained on, and in how many of the graphs the
special node has the largest contribution, and is among the first groups of the explanation tree. The paper
reports 100 % for the model and for the nodes, but not how strong its noise was.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from tqdm import tqdm, trange

from ..agglomerate import agglomerate
from ..explain import explain
from ..models import GCN
from .molecules import molecules, plant


@dataclass(frozen=True)
class Found:
    """What came out, as shares of graphs."""

    accuracy: float
    """Of all graphs."""
    test_accuracy: float
    """Of the graphs that the model was not trained on."""
    graphs: int
    """With a special node, of those that were explained."""
    contribution: float
    """The special node contributes most."""
    seed: float
    """The special node is among the groups that the tree starts from."""
    only_seed: float
    """The tree starts from the special node alone."""


def train(graphs: Sequence[Data], epochs: int, seed: int, progress: bool = True) -> GCN:
    """The paper's GCN, with a learning rate that falls to 0 so that it settles."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GCN(1, 2, level="graph")
        optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
        for _ in trange(epochs, desc="training", unit="epoch", disable=not progress):
            for batch in DataLoader(list(graphs), batch_size=64, shuffle=True):
                optimizer.zero_grad()
                cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y).backward()
                optimizer.step()
            falling.step()
    return model.eval()


@torch.no_grad()
def accuracy(model: GCN, graphs: Sequence[Data]) -> float:
    """The share of graphs that the model is right about."""
    right = [
        model(batch.x, batch.edge_index, batch.batch).argmax(-1) == batch.y
        for batch in DataLoader(list(graphs), batch_size=512)
    ]
    return float(torch.cat(right).double().mean())


def run(
    graphs: Sequence[Data], epochs: int, seed: int = 0, explained: int | None = None, progress: bool = True
) -> Found:
    """Train on four of five graphs, look for the special nodes in all graphs, or in the first so many of them."""
    order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(seed)).tolist()
    cut = len(graphs) * 4 // 5
    model = train([graphs[i] for i in order[:cut]], epochs, seed, progress)
    special = [graph for graph in graphs if graph.special >= 0][:explained]
    first, start, alone = 0, 0, 0
    for graph in tqdm(special, desc="explaining", unit="graph", disable=not progress):
        scores = explain(model, graph.x, graph.edge_index, target=1).node_scores
        seeds = agglomerate(model, graph.x, graph.edge_index, target=1, budget=1).levels[0]
        first += int(scores.argmax()) == graph.special
        start += any(graph.special in group.nodes for group in seeds)
        alone += [group.nodes for group in seeds] == [{graph.special}]
    shares = [count / len(special) for count in (first, start, alone)]
    tested = accuracy(model, [graphs[i] for i in order[cut:]])
    return Found(accuracy(model, graphs), tested, len(special), *shares)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the experiment and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=None, help="how many graphs (default: all of Mutagenicity)")
    parser.add_argument("--epochs", type=int, default=200, help="of training (default: 200)")
    parser.add_argument("--noise", type=float, default=0.02, help="standard deviation of the noise (default: 0.02)")
    parser.add_argument("--explained", type=int, default=None, help="how many graphs to explain (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    name, found_there = molecules(given.graphs, given.seed)
    graphs = plant(found_there, given.noise, given.seed)
    found = run(graphs, given.epochs, given.seed, given.explained)
    print(f"{name}: {len(graphs)} graphs, noise {given.noise}, seed {given.seed}, 3-layer GCN")
    print(
        f"accuracy                      {found.accuracy:.2%} of all graphs, {found.test_accuracy:.2%} of those held out"
    )
    print(f"special node contributes most {found.contribution:.2%} of {found.graphs} graphs that have one")
    print(f"… is where the tree starts    {found.seed:.2%}, and nothing else is {found.only_seed:.2%}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
