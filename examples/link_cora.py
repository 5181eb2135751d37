"""PyG's example of link prediction on Cora, explained: why does the model expect this citation?

Run it with ``python examples/link_cora.py``; ``--generated`` does without the data.
"""

import argparse
from collections.abc import Sequence

import torch
from citations import TOPICS, citations
from torch import Tensor, nn
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import negative_sampling

from xdegree import Options, explain
from xdegree.metrics import auc


class Net(nn.Module):
    """As in PyG's examples/link_pred.py, encoder and decoder in one."""

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = GCNConv(in_channels, hidden_channels), GCNConv(hidden_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
        """The logit of every pair."""
        z = self.conv2(self.conv1(x, edge_index).relu(), edge_index)
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(dim=-1)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, explain the three surest citations that were held back."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generated", action="store_true", help="a small generated graph in place of Cora")
    parser.add_argument("--epochs", type=int, default=100)
    given = parser.parse_args(argv)

    torch.manual_seed(0)
    data = citations(given.generated)
    split = RandomLinkSplit(num_val=0.05, num_test=0.1, is_undirected=True, add_negative_train_samples=False)
    train, _, test = split(data)
    model = Net(data.num_features, 64, 32)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loss_of = nn.BCEWithLogitsLoss()
    for _ in range(given.epochs):
        optimizer.zero_grad()
        negative = negative_sampling(train.edge_index, data.num_nodes, train.edge_label_index.shape[1])
        pairs = torch.cat([train.edge_label_index, negative], 1)
        labels = torch.cat([train.edge_label, train.edge_label.new_zeros(negative.shape[1])])
        loss_of(model(train.x, train.edge_index, pairs), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits = model(test.x, test.edge_index, test.edge_label_index)
    print(f"{len(logits)} pairs held back, half of them citations; AUC {auc(logits, test.edge_label > 0):.3f}")

    surest = logits.masked_fill(test.edge_label == 0, -torch.inf).topk(3).indices
    # A dot product of two papers: what reaches only one of them counts by half, see Options.
    halves = Options(product="share")
    for e in explain(model, test.x, test.edge_index, test.edge_label_index, index=surest, options=halves):
        a, b = test.edge_label_index[:, e.index].tolist()
        print(f"\nWhy should {a} ({TOPICS[int(data.y[a])]}) and {b} ({TOPICS[int(data.y[b])]}) be linked?")
        print(f"probability {e.prediction[0].sigmoid():.3f}; papers, the strongest of {len(e.nodes)}:")
        for node, score in e.top(4):
            mark = " (one of the two)" if node in (a, b) else ""
            print(f"  paper {node:4d}, {TOPICS[int(data.y[node])]:22}  {score:+.3f}{mark}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # on so small a graph more threads gain nothing, and on a busy machine they lose much
    main()
