"""More models as strangers write them: stacks of graphs, loaders, integers, records, habits."""

from typing import Any

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from example_graph_models import PointDGCNN
from example_models import SAGE
from stranger_models import ParameterTable, Two
from torch import nn
from torch.nn import Linear, Parameter
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn import GCNConv, HeteroConv, SAGEConv, TransformerConv
from torch_geometric.nn.models.tgn import IdentityMessage, LastAggregator, TGNMemory
from torch_geometric.utils import softmax


class OneHot(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GCNConv(7, 3)

    def forward(self, x, edge_index):
        return self.conv(F.one_hot(x, 7).to(torch.get_default_dtype()), edge_index)


class DenseNet(nn.Module):
    """A stack of graphs with adjacency matrices."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = pyg.DenseGCNConv(4, 8), pyg.DenseSAGEConv(8, 3)

    def forward(self, x, adj):
        return self.conv2(self.conv1(x, adj).relu(), adj)


class DenseGraphs(DenseNet):
    def forward(self, x, adj, mask=None):
        return super().forward(x, adj).mean(1)


class DenseAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.lin = pyg.DenseGATConv(4, 8, heads=2, concat=False), Linear(8, 3)

    def forward(self, x, adj, mask=None):
        return self.lin(self.conv(x, adj, mask)).log_softmax(-1)


class Static(nn.Module):
    """Several moments of the same graph at once, [moments, nodes, features]."""

    def __init__(self):
        super().__init__()
        self.conv = GCNConv(4, 3)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


class SampledSAGE(nn.Module):
    """The older way of sampling: a list of bipartite graphs, one per layer."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([SAGEConv(4, 8), SAGEConv(8, 3)])

    def forward(self, x, adjs):
        for i, (edge_index, _, size) in enumerate(adjs):
            x = self.convs[i]((x, x[: size[1]]), edge_index)
            if i != len(self.convs) - 1:
                x = F.relu(x)
        return x


class Seeds(nn.Module):
    def __init__(self):
        super().__init__()
        self.gnn = SAGE()

    def forward(self, batch):
        return self.gnn(batch.x, batch.edge_index)[: batch.batch_size]


class Points(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = PointDGCNN()

    def forward(self, data):
        return self.net(data.pos, data.batch)


class Checkpointed(Two):
    def __init__(self, reentrant=False):
        super().__init__()
        self.reentrant = reentrant

    def forward(self, x, edge_index):
        return self.lin(checkpoint(self.embed, x, edge_index, use_reentrant=self.reentrant))


class Reversal(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, x):
        return x.view_as(x) * 1.0

    @staticmethod
    def backward(_ctx: Any, grad):
        return -grad


class Adversarial(Two):
    def forward(self, x, edge_index):
        return self.lin(Reversal.apply(self.embed(x, edge_index)))


class NoGradient(Two):
    @torch.no_grad()
    def forward(self, x, edge_index):
        return super().forward(x, edge_index)


class Inference(Two):
    def forward(self, x, edge_index):
        with torch.inference_mode():
            return super().forward(x, edge_index)


class LoopOverGraphs(Two):
    def forward(self, x, edge_index, batch):
        h = self.embed(x, edge_index)
        return self.lin(torch.stack([h[batch == g].mean(0) for g in range(int(batch.max()) + 1)]))


class AllLayers(Two):
    def forward(self, x, edge_index):
        a = self.conv1(x, edge_index)
        b = self.conv2(a.relu(), edge_index)
        return [a, b, self.lin(b)]


class IntoData(Two):
    def forward(self, data):
        data.x = self.embed(data.x, data.edge_index)
        data.pred = self.lin(data.x)
        return data


class WithLabels(Two):
    """As GraphGym: predictions and the true labels."""

    def forward(self, batch):
        return super().forward(batch.x, batch.edge_index), batch.y


class Keeps(Two):
    def forward(self, x, edge_index):
        self.h = self.embed(x, edge_index)
        return self.lin(self.h)


class HeteroTables(nn.Module):
    """Movies have features, users an embedding, a parameter or ids."""

    def __init__(self, types, kind="embedding", target="movie"):
        super().__init__()
        if kind == "parameter":
            self.emb = nn.ParameterDict({"user": Parameter(torch.randn(5, 8))})
        else:
            self.emb = nn.ModuleDict({"user": nn.Embedding(5, 8)})
        self.lin = nn.ModuleDict({"movie": Linear(4, 8)})
        self.conv, self.out = HeteroConv({key: SAGEConv((8, 8), 8) for key in types}), Linear(8, 2)
        self.kind, self.target = kind, target

    def forward(self, x_dict, edge_index_dict):
        table = self.emb["user"]
        user = table if self.kind == "parameter" else table(x_dict["user"]) if self.kind == "ids" else table.weight
        x_dict = {"user": user, "movie": self.lin["movie"](x_dict["movie"])}
        return self.out(self.conv(x_dict, edge_index_dict)[self.target])


class HeteroTaking(nn.Module):
    def __init__(self, types, target="movie", collect=False):
        super().__init__()
        self.conv, self.out = HeteroConv({key: SAGEConv((4, 4), 8) for key in types}), Linear(8, 2)
        self.target, self.collect = target, collect

    def forward(self, data):
        x_dict = data.collect("x") if self.collect else data.x_dict
        return self.out(self.conv(x_dict, data.edge_index_dict)[self.target])


class TGNOfPyG(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = TGNMemory(20, 2, 8, 6, IdentityMessage(2, 8, 6), LastAggregator())
        self.memory.memory.normal_()
        self.conv, self.lin = TransformerConv(8, 4, heads=2), Linear(8, 1)

    def forward(self, n_id, edge_index):
        z, _last_update = self.memory(n_id)
        return self.lin(self.conv(z, edge_index))


class DictTaking(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Two()

    def forward(self, inputs):
        return {"logits": self.net(inputs["x"], inputs["edge_index"])}


class TupleTaking(DictTaking):
    def forward(self, inputs):
        x, edge_index = inputs
        return self.net(x, edge_index)


class OneFeature(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GCNConv(1, 3)

    def forward(self, x, edge_index):
        return self.conv(x.view(-1, 1), edge_index)


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.conv = nn.EmbeddingBag(10, 8), GCNConv(8, 3)

    def forward(self, words, edge_index):
        return self.conv(self.bag(words), edge_index)


class DeepTable(nn.Module):
    def __init__(self, num_nodes):
        super().__init__()
        self.gnn, self.lin = nn.ModuleDict({"enc": ParameterTable(num_nodes)}), Linear(3, 2)

    def forward(self, edge_index):
        return self.lin(self.gnn["enc"](edge_index))


class Pretrained(nn.Module):
    def __init__(self, x):
        super().__init__()
        self.emb, self.conv = nn.Embedding.from_pretrained(x), GCNConv(4, 3)

    def forward(self, edge_index):
        return self.conv(self.emb(torch.arange(self.emb.num_embeddings)), edge_index)


class TwoSides(nn.Module):
    """A bipartite layer with both sides as arguments, or as a pair."""

    def __init__(self, pair=False):
        super().__init__()
        self.conv, self.lin, self.pair = SAGEConv((4, 3), 8), Linear(8, 2), pair

    def forward(self, x_src, x_dst, edge_index=None):
        x, edge_index = (x_src, x_dst) if self.pair else ((x_src, x_dst), edge_index)
        return self.lin(self.conv(x, edge_index))


class Density(Two):
    def forward(self, x, edge_index):
        h = super().forward(x, edge_index)
        return torch.distributions.Normal(h, h.exp())


class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.nets = nn.ModuleList([Two() for _ in range(3)])

    def forward(self, x, edge_index):
        return torch.stack([net(x, edge_index) for net in self.nets]).mean(0)


class EinsumAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.a = Parameter(torch.randn(4, 2, 3)), Parameter(torch.randn(2, 3))

    def forward(self, x, edge_index):
        h = torch.einsum("nf,fhc->nhc", x, self.w)
        score = (h * self.a).sum(-1)
        e = F.leaky_relu(score[edge_index[0]] + score[edge_index[1]])
        e = softmax(e, edge_index[1], num_nodes=len(x)).unsqueeze(-1)
        return torch.zeros_like(h).index_add(0, edge_index[1], h[edge_index[0]] * e).mean(1)


class NumpyInside(Two):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index) * float(edge_index.numpy().max())


class Standardised(Two):
    def forward(self, x, edge_index):
        return super().forward((x - x.mean(0)) / x.std(0), edge_index)


class UnitLength(Two):
    def forward(self, x, edge_index):
        return F.normalize(super().forward(x, edge_index), p=2, dim=-1)


class SelfGated(Two):
    def forward(self, x, edge_index):
        h = self.embed(x, edge_index)
        return self.lin(h * torch.sigmoid(h))


class Flags(Two):
    def forward(self, x, edge_index, edge_weight=None, batch=None, return_hidden=False):
        h = self.embed(x, edge_index)
        return (self.lin(h), h) if return_hidden else self.lin(h)
