"""Models of nodes, links and relations as people write them, after the kinds of PyG's examples."""

from itertools import pairwise

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import nn
from torch.nn import BatchNorm1d, Linear, Parameter, ReLU, Sequential
from torch_geometric.nn import (
    APPNP,
    MLP,
    AGNNConv,
    ClusterGCNConv,
    DNAConv,
    FiLMConv,
    GATConv,
    GCN2Conv,
    GCNConv,
    HANConv,
    HeteroConv,
    HGTConv,
    RGATConv,
    RGCNConv,
    SAGEConv,
    SGConv,
    SSGConv,
    TAGConv,
    TransformerConv,
)


class Cora(nn.Module):
    """Two layers of any convolution, dropout and log_softmax: gcn.py, gat.py, arma.py and their like."""

    def __init__(self, conv, hidden=8, classes=3):
        super().__init__()
        self.conv1, self.conv2 = conv(4, hidden), conv(hidden, classes)

    def forward(self, x, edge_index, edge_weight=None):
        extra = () if edge_weight is None else (edge_weight,)
        x = F.dropout(x, p=0.5, training=self.training)
        x = F.relu(self.conv1(x, edge_index, *extra))
        x = F.dropout(x, training=self.training)
        return F.log_softmax(self.conv2(x, edge_index, *extra), dim=1)


class GATHeads(nn.Module):
    def __init__(self, conv=GATConv):
        super().__init__()
        self.conv1 = conv(4, 8, heads=4, dropout=0.6)
        self.conv2 = conv(8 * 4, 3, heads=1, concat=False, dropout=0.6)

    def forward(self, x, edge_index):
        x = F.dropout(x, p=0.6, training=self.training)
        x = F.elu(self.conv1(x, edge_index))
        x = F.dropout(x, p=0.6, training=self.training)
        return self.conv2(x, edge_index)


class AGNN(nn.Module):
    """agnn.py: the data are a variable of the module that holds the class."""

    def __init__(self, data):
        super().__init__()
        self.data = data
        self.lin1, self.lin2 = Linear(4, 16), Linear(16, 3)
        self.prop1, self.prop2 = AGNNConv(requires_grad=False), AGNNConv(requires_grad=True)

    def forward(self):
        x = F.dropout(self.data.x, training=self.training)
        x = F.relu(self.lin1(x))
        x = self.prop1(x, self.data.edge_index)
        x = self.prop2(x, self.data.edge_index)
        return F.log_softmax(self.lin2(x), dim=1)


def tagcn_of(data):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = TAGConv(4, 16), TAGConv(16, 3)

        def forward(self):
            x, edge_index = data.x, data.edge_index
            x = F.relu(self.conv1(x, edge_index))
            x = F.dropout(x, training=self.training)
            return F.log_softmax(self.conv2(x, edge_index), dim=1)

    return Net()


class SGC(nn.Module):
    def __init__(self, cached=True, conv=SGConv):
        super().__init__()
        more = {"alpha": 0.1} if conv is SSGConv else {}
        self.conv1 = conv(4, 3, K=2, cached=cached, **more)

    def forward(self, x, edge_index):
        return F.log_softmax(self.conv1(x, edge_index), dim=1)


class SIGN(nn.Module):
    """sign.py: one linear layer per power of the adjacency, features as a list."""

    def __init__(self, k=2):
        super().__init__()
        self.lins = nn.ModuleList([Linear(4, 8) for _ in range(k + 1)])
        self.lin = Linear((k + 1) * 8, 3)

    def forward(self, xs):
        hs = [F.dropout(lin(x).relu(), p=0.5, training=self.training) for x, lin in zip(xs, self.lins, strict=True)]
        return self.lin(torch.cat(hs, dim=-1)).log_softmax(dim=-1)


class APPNPNet(nn.Module):
    def __init__(self, cached=False):
        super().__init__()
        self.lin1, self.lin2, self.prop1 = Linear(4, 16), Linear(16, 3), APPNP(5, 0.1, cached=cached)

    def forward(self, x, edge_index):
        x = F.relu(self.lin1(F.dropout(x, training=self.training)))
        return F.log_softmax(self.prop1(self.lin2(x), edge_index), dim=1)


class GCN2(nn.Module):
    def __init__(self, layers=3, cached=False):
        super().__init__()
        self.lins = nn.ModuleList([Linear(4, 8), Linear(8, 3)])
        self.convs = nn.ModuleList(
            [GCN2Conv(8, 0.1, 0.5, i + 1, shared_weights=True, normalize=True, cached=cached) for i in range(layers)]
        )

    def forward(self, x, edge_index):
        x = x_0 = self.lins[0](x).relu()
        for conv in self.convs:
            x = conv(F.dropout(x, training=self.training), x_0, edge_index).relu()
        return self.lins[1](x).log_softmax(dim=-1)


class DNA(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1 = Linear(4, 8)
        self.convs = nn.ModuleList([DNAConv(8, heads=2, groups=2, dropout=0.8) for _ in range(2)])
        self.lin2 = Linear(8, 3)

    def forward(self, x, edge_index):
        x = F.relu(self.lin1(x))
        x_all = x.view(-1, 1, 8)
        for conv in self.convs:
            x = F.relu(conv(x_all, edge_index)).view(-1, 1, 8)
            x_all = torch.cat([x_all, x], dim=1)
        return torch.log_softmax(self.lin2(x_all[:, -1]), dim=1)


class FiLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([FiLMConv(4, 8), FiLMConv(8, 8), FiLMConv(8, 3, act=None)])
        self.norms = nn.ModuleList([BatchNorm1d(8), BatchNorm1d(8)])

    def forward(self, x, edge_index):
        for conv, norm in zip(self.convs[:-1], self.norms, strict=True):
            x = F.dropout(norm(conv(x, edge_index)), p=0.1, training=self.training)
        return self.convs[-1](x, edge_index)


class UniMP(nn.Module):
    """unimp_arxiv.py: labels are masked and added to the features."""

    def __init__(self):
        super().__init__()
        self.label = pyg.MaskLabel(3, 4)
        self.convs = nn.ModuleList(
            [TransformerConv(4, 4, heads=2, beta=True), TransformerConv(8, 3, concat=False, beta=True)]
        )
        self.norms = nn.ModuleList([nn.LayerNorm(8)])

    def forward(self, x, y, edge_index, label_mask):
        x = self.label(x, y, label_mask)
        x = self.norms[0](self.convs[0](x, edge_index)).relu()
        return self.convs[1](x, edge_index)


class RGCN(nn.Module):
    """rgcn.py: no features at all, the first layer has a row of weights for each node."""

    def __init__(self, num_nodes, conv=RGCNConv, bases=None):
        super().__init__()
        self.conv1 = conv(num_nodes, 8, 3, num_bases=bases)
        self.conv2 = conv(8, 3, 3, num_bases=bases)

    def forward(self, edge_index, edge_type):
        x = F.relu(self.conv1(None, edge_index, edge_type))
        return F.log_softmax(self.conv2(x, edge_index, edge_type), dim=1)


class RGAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.lin = RGATConv(4, 8, 3), RGATConv(8, 8, 3), Linear(8, 3)

    def forward(self, x, edge_index, edge_type):
        x = self.conv1(x, edge_index, edge_type).relu()
        return F.log_softmax(self.lin(self.conv2(x, edge_index, edge_type).relu()), dim=-1)


class RGCNEncoder(nn.Module):
    """rgcn_link_pred.py: entities are rows of a parameter."""

    def __init__(self, num_nodes, hidden=8, relations=3):
        super().__init__()
        self.node_emb = Parameter(torch.empty(num_nodes, hidden))
        self.conv1, self.conv2 = (RGCNConv(hidden, hidden, relations, num_blocks=2) for _ in range(2))
        nn.init.xavier_uniform_(self.node_emb)

    def forward(self, edge_index, edge_type):
        x = self.conv1(self.node_emb, edge_index, edge_type).relu_()
        return self.conv2(F.dropout(x, p=0.2, training=self.training), edge_index, edge_type)


class DistMult(nn.Module):
    def __init__(self, relations=3, hidden=8):
        super().__init__()
        self.rel_emb = Parameter(torch.empty(relations, hidden))
        nn.init.xavier_uniform_(self.rel_emb)

    def forward(self, z, edge_index, edge_type):
        return torch.sum(z[edge_index[0]] * self.rel_emb[edge_type] * z[edge_index[1]], dim=1)


class KGLink(nn.Module):
    def __init__(self, num_nodes):
        super().__init__()
        self.encoder, self.decoder = RGCNEncoder(num_nodes), DistMult()

    def forward(self, edge_index, edge_type, edge_label_index, edge_label_type):
        return self.decoder(self.encoder(edge_index, edge_type), edge_label_index, edge_label_type)


class HGT(nn.Module):
    def __init__(self, metadata, target):
        super().__init__()
        self.lin_dict = nn.ModuleDict({kind: pyg.Linear(-1, 8) for kind in metadata[0]})
        self.convs = nn.ModuleList([HGTConv(8, 8, metadata, 2) for _ in range(2)])
        self.lin, self.target = Linear(8, 3), target

    def forward(self, x_dict, edge_index_dict):
        x_dict = {kind: self.lin_dict[kind](x).relu_() for kind, x in x_dict.items()}
        for conv in self.convs:
            x_dict = conv(x_dict, edge_index_dict)
        return self.lin(x_dict[self.target])


class HAN(nn.Module):
    def __init__(self, metadata, target):
        super().__init__()
        self.han_conv, self.lin, self.target = (
            HANConv(4, 8, heads=2, dropout=0.6, metadata=metadata),
            Linear(8, 3),
            target,
        )

    def forward(self, x_dict, edge_index_dict):
        return self.lin(self.han_conv(x_dict, edge_index_dict)[self.target])


class HeteroGNN(nn.Module):
    """hetero_conv_dblp.py: one convolution per type of edge; one type has no features but an embedding."""

    def __init__(self, metadata, sizes, target, layers=2):
        super().__init__()
        self.embs = nn.ModuleDict({kind: nn.Embedding(size, 4) for kind, size in sizes.items()})
        self.convs = nn.ModuleList(
            [HeteroConv({kind: SAGEConv((-1, -1), 8) for kind in metadata[1]}, aggr="sum") for _ in range(layers)]
        )
        self.lin, self.target = Linear(8, 3), target

    def forward(self, x_dict, edge_index_dict):
        x_dict = {**x_dict, **{kind: emb.weight for kind, emb in self.embs.items()}}
        for conv in self.convs:
            x_dict = {key: F.leaky_relu(x) for key, x in conv(x_dict, edge_index_dict).items()}
        return self.lin(x_dict[self.target])


class ItemGNNEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = SAGEConv((-1, -1), 8), SAGEConv((-1, -1), 8)

    def forward(self, x, edge_index):
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


class MovieLens(nn.Module):
    """The tutorial on links between users and movies: users have an embedding, movies features and one; one Data in."""

    def __init__(self, metadata, users, movies):
        super().__init__()
        self.movie_lin = Linear(4, 8)
        self.user_emb, self.movie_emb = nn.Embedding(users, 8), nn.Embedding(movies, 8)
        self.gnn = pyg.to_hetero(ItemGNNEncoder(), metadata=metadata)

    def forward(self, data):
        x_dict = {
            "user": self.user_emb(data["user"].node_id),
            "movie": self.movie_lin(data["movie"].x) + self.movie_emb(data["movie"].node_id),
        }
        x_dict = self.gnn(x_dict, data.edge_index_dict)
        user, movie = data["user", "rates", "movie"].edge_label_index
        return (x_dict["user"][user] * x_dict["movie"][movie]).sum(dim=-1)


class GNNEncoder(nn.Module):
    def __init__(self, hidden=8, out=8):
        super().__init__()
        self.conv1, self.conv2 = SAGEConv((-1, -1), hidden), SAGEConv((-1, -1), out)

    def forward(self, x, edge_index):
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


class EdgeDecoder(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.lin1, self.lin2 = Linear(2 * hidden, hidden), Linear(hidden, 1)

    def forward(self, z_dict, edge_label_index):
        row, col = edge_label_index
        z = torch.cat([z_dict["user"][row], z_dict["movie"][col]], dim=-1)
        return self.lin2(self.lin1(z).relu()).view(-1)


class HeteroLinks(nn.Module):
    """hetero_link_pred.py."""

    def __init__(self, metadata):
        super().__init__()
        self.encoder, self.decoder = pyg.to_hetero(GNNEncoder(), metadata, aggr="sum"), EdgeDecoder()

    def forward(self, x_dict, edge_index_dict, edge_label_index):
        return self.decoder(self.encoder(x_dict, edge_index_dict), edge_label_index)


class MetaPathRows(nn.Module):
    """metapath2vec: a table for all types, rows of one type between two numbers."""

    def __init__(self, sizes):
        super().__init__()
        self.start, self.end, count = {}, {}, 0
        for kind, size in sizes.items():
            self.start[kind], count = count, count + size
            self.end[kind] = count
        self.embedding = nn.Embedding(count + 1, 8, sparse=True)
        self.classify = Linear(8, 3)

    def forward(self, node_type, batch=None):
        emb = self.embedding.weight[self.start[node_type] : self.end[node_type]]
        return self.classify(emb if batch is None else emb.index_select(0, batch))


class Node2VecRows(nn.Module):
    def __init__(self, num_nodes, dim=8):
        super().__init__()
        self.embedding = nn.Embedding(num_nodes, dim)
        self.lin = Linear(dim, 3)

    def forward(self, batch=None):
        emb = self.embedding.weight
        return self.lin(emb if batch is None else emb.index_select(0, batch))


class MatrixFactorization(nn.Module):
    def __init__(self, users, items, dim=8):
        super().__init__()
        self.user_emb, self.item_emb = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.user_bias, self.item_bias = nn.Embedding(users, 1), nn.Embedding(items, 1)

    def forward(self, user, item):
        dot = (self.user_emb(user) * self.item_emb(item)).sum(-1)
        return dot + self.user_bias(user).squeeze(-1) + self.item_bias(item).squeeze(-1)


class NCF(nn.Module):
    def __init__(self, users, items, dim=8):
        super().__init__()
        self.user, self.item = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.mlp = MLP([2 * dim, 16, 8, 1], norm=None)

    def forward(self, user, item):
        return self.mlp(torch.cat([self.user(user), self.item(item)], dim=-1)).view(-1)


class LinkNet(nn.Module):
    """link_pred.py: encode and decode in one forward."""

    def __init__(self, conv=GCNConv):
        super().__init__()
        self.conv1, self.conv2 = conv(4, 16), conv(16, 8)

    def encode(self, x, edge_index):
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)

    def decode(self, z, edge_label_index):
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(dim=-1)

    def forward(self, x, edge_index, edge_label_index):
        return self.decode(self.encode(x, edge_index), edge_label_index)


class MLPLinks(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = pyg.GraphSAGE(4, 8, 2)
        self.predictor = Sequential(Linear(16, 8), ReLU(), Linear(8, 1))

    def forward(self, x, edge_index, edge_label_index):
        h = self.encoder(x, edge_index)
        src, dst = edge_label_index
        return torch.sigmoid(self.predictor(torch.cat([h[src], h[dst]], dim=-1))).squeeze()


class EdgeClassifier(nn.Module):
    """A class for every edge of the graph."""

    def __init__(self):
        super().__init__()
        self.conv = SAGEConv(4, 8)
        self.head = Linear(8 * 2 + 2, 2)

    def forward(self, x, edge_index, edge_attr):
        h = self.conv(x, edge_index).relu()
        return self.head(torch.cat([h[edge_index[0]], h[edge_index[1]], edge_attr], dim=1))


class VariationalEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv_mu, self.conv_logstd = GCNConv(4, 16), GCNConv(16, 8), GCNConv(16, 8)

    def forward(self, x, edge_index):
        x = self.conv1(x, edge_index).relu()
        return self.conv_mu(x, edge_index), self.conv_logstd(x, edge_index)


class VGAE(nn.Module):
    """autoencoder.py, with the loss as a second output."""

    def __init__(self):
        super().__init__()
        self.encoder = VariationalEncoder()

    def forward(self, x, edge_index, edge_label_index):
        mu, logstd = self.encoder(x, edge_index)
        kl = -0.5 * torch.mean(torch.sum(1 + 2 * logstd - mu**2 - logstd.exp() ** 2, dim=1))
        return (mu[edge_label_index[0]] * mu[edge_label_index[1]]).sum(1), kl


class DGIEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.prelu = GCNConv(4, 8), nn.PReLU(8)

    def forward(self, x, edge_index):
        return self.prelu(self.conv(x, edge_index))


class SAGE(nn.Module):
    """ogbn_products_sage.py."""

    def __init__(self, layers=2):
        super().__init__()
        sizes = [4, *[8] * (layers - 1), 3]
        self.convs = nn.ModuleList([SAGEConv(a, b) for a, b in pairwise(sizes)])

    def forward(self, x, edge_index):
        for i, conv in enumerate(self.convs):
            x = conv(x, edge_index)
            if i != len(self.convs) - 1:
                x = F.dropout(x.relu_(), p=0.5, training=self.training)
        return x


class BatchTaking(nn.Module):
    """A model of a loader's batch: seeds first."""

    def __init__(self):
        super().__init__()
        self.gnn = SAGE()

    def forward(self, batch):
        return self.gnn(batch.x, batch.edge_index)


class LabelProp(nn.Module):
    def __init__(self):
        super().__init__()
        self.lp = pyg.LabelPropagation(3, 0.9)

    def forward(self, y, edge_index):
        return self.lp(y, edge_index)


class ClusterGCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([ClusterGCNConv(4, 8), ClusterGCNConv(8, 3)])

    def forward(self, x, edge_index):
        return self.convs[1](F.relu(self.convs[0](x, edge_index)), edge_index).log_softmax(-1)
