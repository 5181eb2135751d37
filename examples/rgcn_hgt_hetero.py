"""Papers and authors: an HGT on types of nodes and edges, an RGCN on relations as numbers, both explained.

The graph is generated so that a paper's topic can only be learnt from its authors. Run it with
``python examples/rgcn_hgt_hetero.py``.
"""

import argparse
from collections.abc import Sequence

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import HGTConv, Linear, RGCNConv

from xdegree import decompose, explain

TOPICS = 3
WRITES = ("author", "writes", "paper")


def generated(papers: int = 90, authors: int = 45, seed: int = 0) -> HeteroData:
    """Authors have a topic of their own, papers the one of their authors; citations are random."""
    generator = torch.Generator().manual_seed(seed)
    data = HeteroData()
    field = torch.arange(authors) % TOPICS
    data["paper"].y = torch.arange(papers) % TOPICS
    data["author"].x = F.one_hot(field, TOPICS).float() + 0.3 * torch.randn(authors, TOPICS, generator=generator)
    data["paper"].x = torch.randn(papers, 4, generator=generator)
    writes = (torch.rand(authors, papers, generator=generator) < 0.15) & (field[:, None] == data["paper"].y)
    data[WRITES].edge_index = writes.nonzero().t().contiguous()
    data["paper", "cites", "paper"].edge_index = torch.randint(papers, (2, 2 * papers), generator=generator)
    return T.ToUndirected(merge=False)(data)


class HGT(nn.Module):
    """As in PyG's examples/hetero/hgt_dblp.py."""

    def __init__(
        self, metadata: tuple[list[str], list[tuple[str, str, str]]], hidden: int = 16, heads: int = 2
    ) -> None:
        super().__init__()
        self.start = nn.ModuleDict({"author": Linear(TOPICS, hidden), "paper": Linear(4, hidden)})
        self.convs = nn.ModuleList([HGTConv(hidden, hidden, metadata, heads) for _ in range(2)])
        self.lin = Linear(hidden, TOPICS)

    def forward(self, x_dict: dict[str, Tensor], edge_index_dict: dict[tuple[str, str, str], Tensor]) -> Tensor:
        """Logits of the topics of papers."""
        x_dict = {kind: self.start[kind](x).relu() for kind, x in x_dict.items()}
        for conv in self.convs:
            x_dict = conv(x_dict, edge_index_dict)
        return self.lin(x_dict["paper"])


class RGCN(nn.Module):
    """As in PyG's examples/rgcn.py, with features."""

    def __init__(self, relations: int, hidden: int = 16) -> None:
        super().__init__()
        self.conv1, self.conv2 = RGCNConv(TOPICS + 4, hidden, relations), RGCNConv(hidden, TOPICS, relations)

    def forward(self, x: Tensor, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        """Logits of the topics of all nodes."""
        return self.conv2(self.conv1(x, edge_index, edge_type).relu(), edge_index, edge_type)


def train(model: nn.Module, args: tuple[object, ...], rows: Tensor, y: Tensor, epochs: int) -> float:
    """Fit to the first two thirds of the papers; the accuracy on the rest."""
    optimizer, cut = torch.optim.Adam(model.parameters(), lr=0.01), 2 * len(y) // 3
    for _ in range(epochs):
        optimizer.zero_grad()
        F.cross_entropy(model(*args)[rows][:cut], y[:cut]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return float((model(*args)[rows][cut:].argmax(-1) == y[cut:]).double().mean())


def main(argv: Sequence[str] | None = None) -> None:
    """Train both, explain one paper with each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=60)
    given = parser.parse_args(argv)

    torch.manual_seed(0)
    data = generated()
    y, last = data["paper"].y, data["paper"].num_nodes - 1
    hgt = HGT(data.metadata())
    accuracy = train(hgt, (data.x_dict, data.edge_index_dict), torch.arange(len(y)), y, given.epochs)
    print(f"HGT: accuracy on held papers {accuracy:.3f}")
    e = explain(hgt, data, index=last)
    written_by = data[WRITES].edge_index[0, data[WRITES].edge_index[1] == last].tolist()
    print(f"Why topic {e.target} for paper {last}, whose authors are {written_by}?")
    for (kind, node), score in e.top(5):
        print(f"  {kind:6} {node:3d}  {score:+.3f}")
    groups = [{kind: range(edges.shape[1])} for kind, edges in data.edge_index_dict.items()]
    d = decompose(hgt, data, groups=groups, of="edge")
    print("What travels along each type of edges:")
    for kind, score in zip(data.edge_types, d.target[:, last, e.target].tolist(), strict=True):
        print(f"  {' '.join(kind):28}  {score:+.3f}")

    # The same graph with one type of nodes and numbers for relations; each type has columns of its own.
    authors = data["author"].num_nodes
    x = torch.zeros(authors + len(y), TOPICS + 4)
    x[:authors, :TOPICS], x[authors:, TOPICS:] = data["author"].x, data["paper"].x
    offset = {"author": 0, "paper": authors}
    ends = [e + torch.tensor([[offset[u]], [offset[v]]]) for (u, _, v), e in data.edge_index_dict.items()]
    relation = torch.arange(len(ends)).repeat_interleave(torch.tensor([e.shape[1] for e in ends]))
    rgcn, args = RGCN(len(ends)), (x, torch.cat(ends, 1), relation)
    accuracy = train(rgcn, args, torch.arange(authors, len(x)), y, given.epochs)
    print(f"\nRGCN: accuracy on held papers {accuracy:.3f}")
    e = explain(rgcn, *args, index=authors + last)
    print(f"Why topic {e.target} for paper {last}?")
    for node, score in e.top(5):
        kind, number = ("author", node) if node < authors else ("paper", node - authors)
        print(f"  {kind:6} {number:3d}  {score:+.3f}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # on so small a graph more threads gain nothing, and on a busy machine they lose much
    main()
