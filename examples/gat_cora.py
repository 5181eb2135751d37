"""PyG's example of a GAT on Cora, explained: several papers in one call, next to the attention itself.

Run it with ``python examples/gat_cora.py``; ``--generated`` does without the data.
"""

import argparse
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from citations import TOPICS, citations
from torch import Tensor, nn
from torch_geometric.nn import GATConv

from xdegree import explain
from xdegree.training import train_node


class GAT(nn.Module):
    """As in PyG's examples/gat.py."""

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, heads: int) -> None:
        super().__init__()
        self.conv1 = GATConv(in_channels, hidden_channels, heads, dropout=0.6)
        self.conv2 = GATConv(hidden_channels * heads, out_channels, heads=1, concat=False, dropout=0.6)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of the topics of every paper."""
        x = F.dropout(x, p=0.6, training=self.training)
        x = F.elu(self.conv1(x, edge_index))
        x = F.dropout(x, p=0.6, training=self.training)
        return self.conv2(x, edge_index)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, explain five papers of the test set at once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generated", action="store_true", help="a small generated graph in place of Cora")
    parser.add_argument("--epochs", type=int, default=100)
    given = parser.parse_args(argv)

    data = citations(given.generated)
    model = GAT(data.num_features, 8, len(TOPICS), heads=8)
    trained = train_node(model, data, epochs=given.epochs, lr=0.005, seed=0)
    print(f"{data.num_nodes} papers, {data.num_edges} citations; test accuracy {trained.test_accuracy:.3f}")

    with torch.no_grad():
        _, (ends, attention) = model.conv1(data.x, data.edge_index, return_attention_weights=True)
    papers = data.test_mask.nonzero().flatten()[:5]
    for e in explain(model, data.x, data.edge_index, index=papers):
        print(f"\nWhy is paper {e.index} about {TOPICS[e.target]} (truly {TOPICS[int(data.y[e.index])]})?")
        for node, score in e.top(3):
            looked = attention[(ends[0] == node) & (ends[1] == e.index)]
            seen = f"{looked.mean():.2f} of the attention" if len(looked) else "two steps away"
            print(f"  paper {node:4d}, {TOPICS[int(data.y[node])]:22}  {score:+.3f}  ({seen})")


if __name__ == "__main__":
    torch.set_num_threads(1)  # on so small a graph more threads gain nothing, and on a busy machine they lose much
    main()
