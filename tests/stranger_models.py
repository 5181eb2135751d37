"""More models as strangers write them: other inputs, other outputs, tables, wrappers, habits."""

from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch.nn import Linear, Parameter
from torch_geometric.nn import GATConv, GCNConv, GINConv, MessagePassing, SAGEConv, global_mean_pool
from torch_geometric.utils import add_self_loops, degree, scatter, softmax, to_dense_adj

Output = namedtuple("Output", ["logits", "hidden"])  # noqa: PYI024 (as many still write)


class Result(NamedTuple):
    pred: Tensor
    aux: list[Tensor]


@dataclass
class Prediction:
    logits: Tensor
    embeddings: Tensor
    loss: Tensor | None = None


class Two(nn.Module):
    def __init__(self, conv=GCNConv, width=4, hidden=8, classes=3):
        super().__init__()
        self.conv1, self.conv2, self.lin = conv(width, hidden), conv(hidden, hidden), Linear(hidden, classes)

    def embed(self, x, edge_index):
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index).relu()

    def forward(self, x, edge_index):
        return self.lin(self.embed(x, edge_index))


class Named(Two):
    def forward(self, x, edge_index):
        h = self.embed(x, edge_index)
        return Output(self.lin(h), h)


class Nested(Two):
    def forward(self, x, edge_index):
        h = self.embed(x, edge_index)
        return {"heads": [self.lin(h), (h, h.mean(0))], "edges": edge_index}


class TypedResult(Two):
    def forward(self, x, edge_index):
        h = self.embed(x, edge_index)
        return Result(self.lin(h), [h, h.relu()])


class AsDataclass(Two):
    def forward(self, x, edge_index):
        h = self.embed(x, edge_index)
        return Prediction(self.lin(h), h, torch.lgamma(h.abs() + 1).mean())


class AsNamespace(Two):
    def forward(self, x, edge_index):
        h = self.embed(x, edge_index)
        return SimpleNamespace(out=self.lin(h), h=h)


class SideLoss(Two):
    """A second output with operations that have no rule."""

    def forward(self, x, edge_index):
        h = self.embed(x, edge_index)
        spread = torch.linalg.svdvals(h).sum() + torch.special.i0(h).mean()
        return self.lin(h), spread


class MoE(Two):
    """A mixture of experts with a load loss."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts = Linear(8, 2), nn.ModuleList([Linear(8, 3) for _ in range(2)])

    def forward(self, x, edge_index):
        h = self.embed(x, edge_index)
        weight = self.gate(h).softmax(-1)
        out = torch.stack([expert(h) for expert in self.experts], 1)
        importance = weight.sum(0)
        return (weight.unsqueeze(-1) * out).sum(1), importance.var() / importance.mean() ** 2


class EdgesFirst(Two):
    def forward(self, edge_index, x):
        return super().forward(x, edge_index)


class OtherName(Two):
    def forward(self, graph_edges, node_feat):
        return super().forward(node_feat, graph_edges)


class WithTime(Two):
    def forward(self, t, h, edges):
        return super().forward(h, edges) * t


class SparseFeatures(nn.Module):
    """Bags of words as a sparse matrix, as Kipf wrote it."""

    def __init__(self):
        super().__init__()
        self.weight, self.weight2 = Parameter(torch.randn(4, 8)), Parameter(torch.randn(8, 3))

    def forward(self, x, adj):
        x = F.relu(torch.spmm(adj, torch.mm(x, self.weight)))
        return F.log_softmax(torch.spmm(adj, x @ self.weight2), dim=1)


class SparseLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.conv = Linear(4, 8), GCNConv(8, 3)

    def forward(self, x, edge_index):
        return self.conv(self.lin(x).relu(), edge_index)


class KipfLayer(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight, self.bias = Parameter(torch.randn(i, o)), Parameter(torch.zeros(o))

    def forward(self, x, adj):
        return adj @ (x @ self.weight) + self.bias


class Kipf(nn.Module):
    """A dense adjacency, no PyG at all."""

    def __init__(self):
        super().__init__()
        self.gc1, self.gc2 = KipfLayer(4, 8), KipfLayer(8, 3)

    def forward(self, x, adj):
        return F.log_softmax(self.gc2(F.relu(self.gc1(x, adj)), adj), dim=1)


class DegreeBuckets(nn.Module):
    """Nodes have no features but their degree, looked up."""

    def __init__(self):
        super().__init__()
        self.deg_emb, self.conv = nn.Embedding(8, 8), GCNConv(8, 3)

    def forward(self, edge_index, num_nodes):
        deg = degree(edge_index[0], num_nodes, dtype=torch.long).clamp(max=7)
        return self.conv(self.deg_emb(deg), edge_index)


class IdEmbedding(nn.Module):
    def __init__(self, num_nodes):
        super().__init__()
        self.emb, self.conv = nn.Embedding(num_nodes, 8), SAGEConv(8, 3)

    def forward(self, n_id, edge_index):
        return self.conv(self.emb(n_id), edge_index)


class EmbeddingTable(nn.Module):
    """A table that is read whole, and features beside it."""

    def __init__(self, num_nodes):
        super().__init__()
        self.table, self.lin, self.conv = nn.Embedding(num_nodes, 8), Linear(4, 8), GCNConv(8, 3)

    def forward(self, x, edge_index):
        return self.conv(self.table.weight + (0 if x is None else self.lin(x)), edge_index)


class ParameterTable(nn.Module):
    def __init__(self, num_nodes, trained=True):
        super().__init__()
        table = torch.randn(num_nodes, 8)
        if trained:
            self.x = Parameter(table)
        else:
            self.register_buffer("x", table)
        self.conv = GATConv(8, 3)

    def forward(self, edge_index):
        return self.conv(self.x, edge_index)


class TableInList(nn.Module):
    def __init__(self, num_nodes):
        super().__init__()
        self.tables = nn.ParameterList([Parameter(torch.randn(num_nodes, 8))])
        self.conv = GCNConv(8, 3)

    def forward(self, edge_index):
        return self.conv(self.tables[0], edge_index)


class UserItem(nn.Module):
    """NGCF: users and items in two tables, joined into one graph."""

    def __init__(self, users, items, layers=2):
        super().__init__()
        self.user_embedding, self.item_embedding = nn.Embedding(users, 8), nn.Embedding(items, 8)
        self.convs = nn.ModuleList([pyg.LGConv() for _ in range(layers)])
        self.users = users

    def forward(self, edge_index, user, item):
        x = torch.cat([self.user_embedding.weight, self.item_embedding.weight])
        out = x
        for conv in self.convs:
            x = conv(x, edge_index)
            out = out + x
        return (out[user] * out[item + self.users]).sum(-1)


class TokenGraph(nn.Module):
    """Words of sentences as nodes: embedding and position, averaged per sentence."""

    def __init__(self):
        super().__init__()
        self.word, self.position = nn.Embedding(20, 8), nn.Embedding(12, 8)
        self.conv, self.out = GCNConv(8, 8), Linear(8, 2)

    def forward(self, tokens, edge_index, batch):
        place = torch.arange(len(tokens)) % 12
        h = self.word(tokens) + self.position(place)
        return self.out(global_mean_pool(self.conv(h, edge_index).relu(), batch))


class Bond(MessagePassing):
    """A layer of one's own with integer bonds."""

    def __init__(self):
        super().__init__(aggr="add")
        self.bond, self.lin = nn.Embedding(4, 8), Linear(8, 8)

    def forward(self, x, edge_index, bond):
        return self.propagate(edge_index, x=x, e=self.bond(bond)) + self.lin(x)

    def message(self, x_j, e):
        return (x_j + e).relu()


class Molecule(nn.Module):
    def __init__(self):
        super().__init__()
        self.atom, self.conv, self.head = nn.Embedding(10, 8), Bond(), Linear(8, 1)

    def forward(self, data):
        x = self.conv(self.atom(data.z), data.edge_index, data.bond)
        return self.head(pyg.global_add_pool(x, data.batch)).squeeze(-1)


class OwnAttention(MessagePassing):
    def __init__(self, i, o):
        super().__init__(node_dim=0, aggr="add")
        self.lin, self.att = Linear(i, o, bias=False), Parameter(torch.randn(1, 2 * o))

    def forward(self, x, edge_index):
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        return self.propagate(edge_index, x=self.lin(x))

    def message(self, x_i, x_j, index, ptr, size_i):
        alpha = (torch.cat([x_i, x_j], -1) * self.att).sum(-1)
        return x_j * softmax(F.leaky_relu(alpha, 0.2), index, ptr, size_i).view(-1, 1)


class ScatterOnly(nn.Module):
    """Message passing by hand."""

    def __init__(self):
        super().__init__()
        self.lin1, self.lin2 = Linear(8, 8), Linear(8 + 4, 3)

    def forward(self, x, edge_index):
        src, dst = edge_index
        message = F.elu(self.lin1(torch.cat([x[src], x[dst]], dim=-1)))
        total = torch.zeros(x.size(0), 8, dtype=x.dtype).index_add_(0, dst, message)
        return self.lin2(torch.cat([x, total], dim=-1))


class VirtualNode(nn.Module):
    def __init__(self):
        super().__init__()
        self.virtual, self.lin = nn.Embedding(1, 8), Linear(4, 8)
        self.conv1, self.conv2, self.mlp = GCNConv(8, 8), GCNConv(8, 8), pyg.MLP([8, 8, 8], norm=None)
        self.head = Linear(8, 2)

    def forward(self, x, edge_index, batch):
        v = self.virtual(torch.zeros(int(batch.max()) + 1, dtype=torch.long))
        h = self.conv1(self.lin(x) + v[batch], edge_index).relu()
        v = v + self.mlp(pyg.global_add_pool(h, batch))
        return self.head(global_mean_pool(self.conv2(h + v[batch], edge_index), batch))


class EdgePooler(nn.Module):
    """Line graph: features of edges from both ends, then pooled."""

    def __init__(self):
        super().__init__()
        self.lin, self.out = Linear(8, 8), Linear(8, 2)

    def forward(self, x, edge_index, batch):
        e = self.lin((x[edge_index[0]] - x[edge_index[1]]).abs().repeat(1, 2)).relu()
        return self.out(scatter(e, batch[edge_index[0]], dim=0, reduce="max"))


class GraphTransformer(nn.Module):
    """Plain PyTorch: all nodes attend to all, with a bias by edges."""

    def __init__(self):
        super().__init__()
        self.proj = Linear(4, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = Linear(8, 3)

    def forward(self, x, edge_index):
        mask = to_dense_adj(edge_index, max_num_nodes=len(x))[0] == 0
        mask.fill_diagonal_(False)
        return self.head(self.encoder(self.proj(x).unsqueeze(0), mask=mask).squeeze(0))


class Seq2Graph(nn.Module):
    """A history per node through an LSTM, then a convolution."""

    def __init__(self):
        super().__init__()
        self.lstm, self.conv, self.lin = nn.LSTM(4, 8, batch_first=True), GCNConv(8, 8), Linear(8, 1)

    def forward(self, x, edge_index, edge_weight):
        _, (h, _) = self.lstm(x)
        return self.lin(self.conv(h[-1], edge_index, edge_weight).relu())


class STGCN(nn.Module):
    """Traffic: convolutions over time and over the graph."""

    def __init__(self):
        super().__init__()
        self.time1, self.conv, self.time2 = nn.Conv1d(2, 8, 3), GCNConv(8, 8), nn.Conv1d(8, 8, 3)
        self.head = Linear(8, 1)

    def forward(self, x, edge_index):
        h = F.glu(torch.cat([self.time1(x), self.time1(x)], 1), dim=1)
        h = torch.stack([self.conv(h[..., t], edge_index) for t in range(h.size(-1))], dim=-1).relu()
        return self.head(self.time2(h).mean(-1))


class Siamese(nn.Module):
    """Two graphs, one score."""

    def __init__(self):
        super().__init__()
        self.gnn, self.head = GCNConv(4, 8), nn.Bilinear(8, 8, 1)

    def forward(self, x, edge_index, x_other, edge_index_other):
        a = self.gnn(x, edge_index).relu().mean(0, keepdim=True)
        b = self.gnn(x_other, edge_index_other).relu().mean(0, keepdim=True)
        return self.head(a, b)


class MultiTask(Two):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({"mutagenic": Linear(8, 2), "toxic": Linear(8, 1)})

    def forward(self, x, edge_index):
        h = self.embed(x, edge_index)
        return {name: head(h) for name, head in self.heads.items()}


class Lightning(nn.Module):
    """What a LightningModule has: a trainer that only exists while it trains, hyper-parameters, metrics, steps."""

    def __init__(self):
        super().__init__()
        self.model, self.hparams, self.criterion = Two(), {"lr": 0.01}, nn.CrossEntropyLoss()
        self._trainer, self.example_input_array = None, None

    @property
    def trainer(self):
        if self._trainer is None:
            raise RuntimeError("the module is not attached to a trainer")
        return self._trainer

    def log(self, *args, **kwargs):
        raise RuntimeError("no trainer")

    def training_step(self, batch, number):
        loss = self.criterion(self(batch.x, batch.edge_index), batch.y)
        self.log("loss", loss)
        return loss

    def forward(self, x, edge_index):
        return self.model(x, edge_index)


class GNNWithDict(nn.Module):
    """Takes everything in one dict."""

    def __init__(self):
        super().__init__()
        self.net = Two()

    def forward(self, inputs):
        return {"logits": self.net(inputs["x"], inputs["edge_index"])}


class KwargsOnly(Two):
    def forward(self, *, features, edge_index, **unused):
        return super().forward(features, edge_index)


class Varargs(Two):
    def forward(self, *args):
        x, edge_index = args
        return super().forward(x, edge_index)


class Positional(nn.Module):
    """Points and a feature of each."""

    def __init__(self):
        super().__init__()
        self.conv, self.lin = pyg.PointNetConv(pyg.MLP([4 + 3, 8], norm=None), pyg.MLP([8, 8], norm=None)), Linear(8, 3)

    def forward(self, x, pos, edge_index):
        return self.lin(self.conv(x, pos, edge_index))


class PPRGo(nn.Module):
    """The most important neighbors by a PageRank that is computed in the model."""

    def __init__(self):
        super().__init__()
        self.mlp = pyg.MLP([4, 8, 3], norm=None)

    def forward(self, x, edge_index):
        adj = to_dense_adj(edge_index, max_num_nodes=len(x))[0].to(x.dtype)
        walk = adj / adj.sum(1, keepdim=True)
        ppr = 0.15 * torch.linalg.inv(torch.eye(len(x), dtype=x.dtype) - 0.85 * walk)
        value, index = ppr.topk(4, dim=1)
        return (self.mlp(x)[index] * value.unsqueeze(-1)).sum(1)


class EGNN(nn.Module):
    """Features and positions, both updated."""

    def __init__(self):
        super().__init__()
        self.edge, self.node, self.coord = pyg.MLP([9, 8], norm=None), pyg.MLP([12, 8], norm=None), Linear(8, 1)
        self.head = Linear(8, 1)

    def forward(self, h, x, edge_index, batch):
        row, col = edge_index
        diff = x[row] - x[col]
        message = F.silu(self.edge(torch.cat([h[row], h[col], diff.pow(2).sum(-1, keepdim=True)], -1)))
        x = x + scatter(diff * self.coord(message), row, dim=0, dim_size=len(x), reduce="mean")
        h = self.node(torch.cat([h, scatter(message, row, dim=0, dim_size=len(h))], -1))
        return self.head(pyg.global_add_pool(h, batch)), x


class Entropy(Two):
    """Attention weights with an entropy, as losses are written."""

    def forward(self, x, edge_index):
        h = self.embed(x, edge_index)
        p = h.softmax(-1)
        return self.lin(h) - torch.xlogy(p, p).sum(-1, keepdim=True)


class TakeRows(Two):
    def forward(self, x, edge_index):
        out = super().forward(x, edge_index)
        return torch.take(out, torch.arange(out.numel())).view_as(out)


class GraphLevelTwoPools(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([GINConv(pyg.MLP([4, 8, 8], norm="batch_norm")), GINConv(pyg.MLP([8, 8, 8]))])
        self.lin = Linear(8 * 2 * 2, 2)

    def forward(self, x, edge_index, batch=None):
        outs = []
        for conv in self.convs:
            x = conv(x, edge_index)
            outs += [pyg.global_add_pool(x, batch), pyg.global_max_pool(x, batch)]
        return self.lin(torch.cat(outs, 1))
