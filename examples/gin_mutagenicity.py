"""PyG's GIN on Mutagenicity, explained: which atoms make a molecule a mutagen? A batch of them in one pass.

Run it with ``python examples/gin_mutagenicity.py``; ``--generated`` does without the data.
"""

import argparse
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GIN, MLP, global_add_pool

from xdegree import explain
from xdegree.datasets.mutagenicity import ATOMS, MUTAGEN, mutag, nitro_and_amino
from xdegree.metrics import auc


class Net(nn.Module):
    """As in PyG's examples/mutag_gin.py, with fewer layers."""

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, num_layers: int) -> None:
        super().__init__()
        self.gnn = GIN(in_channels, hidden_channels, num_layers, norm="batch_norm")
        self.classifier = MLP([hidden_channels, hidden_channels, out_channels], norm="batch_norm", dropout=0.5)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Logits of mutagen and nonmutagen for every molecule."""
        return self.classifier(global_add_pool(self.gnn(x, edge_index), batch))


def generated(count: int = 120, seed: int = 0) -> list[Data]:
    """Chains of carbon and hydrogen; every other one carries a nitro group and is a mutagen."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for number in range(count):
        atoms = (torch.rand(8, generator=generator) < 0.4).long() * ATOMS.index("H")
        edges = [(i, i + 1) for i in range(7)]
        if number % 2 == 0:
            atoms = torch.cat([atoms, torch.tensor([ATOMS.index(a) for a in ("N", "O", "O")])])
            edges += [(int(torch.randint(8, (), generator=generator)), 8), (8, 9), (8, 10)]
        ends = torch.tensor(edges + [(v, u) for u, v in edges]).t()
        x = F.one_hot(atoms, len(ATOMS)).float()
        graphs.append(Data(x=x, edge_index=ends, y=torch.tensor([number % 2]), edge_mask=nitro_and_amino(atoms, ends)))
    return graphs


def main(argv: Sequence[str] | None = None) -> None:
    """Train, explain mutagens with a known reason, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generated", action="store_true", help="small generated molecules in place of Mutagenicity")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--explained", type=int, default=50, help="how many molecules")
    given = parser.parse_args(argv)

    torch.manual_seed(0)
    try:
        graphs = generated() if given.generated else list(mutag(seed=0).graphs)
    except FileNotFoundError as error:
        raise SystemExit(f"{error}. Without the data: --generated") from None
    order = torch.randperm(len(graphs)).tolist()
    held = len(graphs) // 10
    test, train = [graphs[i] for i in order[:held]], [graphs[i] for i in order[held:]]
    model = Net(len(ATOMS), 32, 2, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(given.epochs):
        model.train()
        for batch in DataLoader(train, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        whole = Batch.from_data_list(test)
        predicted = model(whole.x, whole.edge_index, whole.batch).argmax(-1)
    print(f"{len(graphs)} molecules; test accuracy {(predicted == whole.y).double().mean():.3f}")

    reasons = [g for g, p in zip(test, predicted, strict=True) if g.y == p == MUTAGEN and bool(g.edge_mask.any())]
    if not reasons:
        raise SystemExit("No mutagen with a known reason is predicted correctly: train longer.")
    chosen = reasons[: given.explained]
    found = explain(model, Batch.from_data_list(chosen), target=MUTAGEN)
    scores = []
    for e, molecule in zip(found, chosen, strict=True):
        truth = torch.zeros(e.num_nodes, dtype=torch.bool)
        truth[molecule.edge_index[:, molecule.edge_mask].flatten()] = True
        scores.append(auc(e.node_scores, truth) if not bool(truth.all()) else 1.0)
    mean = sum(scores) / len(scores)
    print(f"{len(found)} mutagens with NO2 or NH2, explained in one pass: AUC of those atoms {mean:.3f}")

    e, molecule = found[0], chosen[0]
    print(f"\nOne of them, logit {e.prediction[MUTAGEN]:+.2f}; its strongest atoms:")
    for node, score in e.top(6):
        print(f"  {ATOMS[int(molecule.x[node].argmax())]:2} {node:3d}  {score:+.3f}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # on so small a graph more threads gain nothing, and on a busy machine they lose much
    main()
