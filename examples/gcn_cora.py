"""PyG's example of a GCN on Cora, explained: which papers, which words, which citations led to a topic?

Run it with ``python examples/gcn_cora.py``; ``--generated`` does without the data.
"""

import argparse
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from citations import TOPICS, a_clear_case, citations
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from xdegree import explain
from xdegree.training import train_node


class GCN(nn.Module):
    """As in PyG's examples/gcn.py."""

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = GCNConv(in_channels, hidden_channels), GCNConv(hidden_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of the topics of every paper."""
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, edge_index).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return self.conv2(x, edge_index)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, choose a paper, explain it three times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generated", action="store_true", help="a small generated graph in place of Cora")
    parser.add_argument("--epochs", type=int, default=200)
    given = parser.parse_args(argv)

    data = citations(given.generated)
    model = GCN(data.num_features, 16, len(TOPICS))
    trained = train_node(model, data, epochs=given.epochs, lr=0.01, seed=0)
    print(f"{data.num_nodes} papers, {data.num_edges} citations; test accuracy {trained.test_accuracy:.3f}")

    index = a_clear_case(model(data.x, data.edge_index), data)
    e = explain(model, data.x, data.edge_index, index=index)
    print(f"\nWhy is paper {index} about {TOPICS[e.target]} (logit {e.prediction[e.target]:+.2f})?")
    print(f"Papers, the strongest of {len(e.nodes)} that can contribute:")
    for node, score in e.top(5):
        print(f"  paper {node:4d}, {TOPICS[int(data.y[node])]:22}  {score:+.3f}")

    words = explain(model, data.x, data.edge_index, index=index, of="feature", target=e.target)
    print("Words, the strongest, summed over all papers:")
    summed = words.feature_scores.sum(0)
    for word in summed.abs().topk(5).indices.tolist():
        print(f"  word {word:4d}  {summed[word]:+.3f}")

    cited = explain(model, data.x, data.edge_index, index=index, of="edge", target=e.target)
    print("Citations, by the messages that travel along them in both layers:")
    for (source, end), score in cited.top(5):
        print(f"  paper {source:4d} → {end:4d}  {score:+.3f}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # on so small a graph more threads gain nothing, and on a busy machine they lose much
    main()
