"""Models of graphs, molecules, points and time as people write them, after the kinds of PyG's examples."""

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import nn
from torch.nn import BatchNorm1d, Linear, ReLU, Sequential
from torch_geometric.nn import (
    MLP,
    ASAPooling,
    EdgeConv,
    GCNConv,
    GINConv,
    GINEConv,
    GPSConv,
    GraphConv,
    JumpingKnowledge,
    NNConv,
    PNAConv,
    PointNetConv,
    Set2Set,
    TransformerConv,
    dense_diff_pool,
    global_add_pool,
    global_max_pool,
    global_mean_pool,
)
from torch_geometric.utils import scatter, to_dense_adj, to_dense_batch


class GraphUNetNet(nn.Module):
    def __init__(self, num_nodes):
        super().__init__()
        self.unet = pyg.GraphUNet(4, 8, 3, depth=2, pool_ratios=[max(2, num_nodes // 2) / num_nodes, 0.5])

    def forward(self, x, edge_index):
        return F.log_softmax(self.unet(x, edge_index), dim=1)


class DiffPool(nn.Module):
    """proteins_diff_pool.py, with its two losses."""

    def __init__(self, nodes=7):
        super().__init__()
        self.gnn_pool, self.gnn_embed = pyg.DenseSAGEConv(4, 3), pyg.DenseSAGEConv(4, 8)
        self.gnn_embed2 = pyg.DenseSAGEConv(8, 8)
        self.lin1, self.lin2 = Linear(8, 8), Linear(8, 2)

    def forward(self, x, edge_index, batch):
        x, mask = to_dense_batch(x, batch)
        adj = to_dense_adj(edge_index, batch).to(x.dtype)
        s, z = self.gnn_pool(x, adj, mask), self.gnn_embed(x, adj, mask).relu()
        x, adj, l1, e1 = dense_diff_pool(z, adj, s, mask)
        x = self.gnn_embed2(x, adj).relu().mean(dim=1)
        return F.log_softmax(self.lin2(self.lin1(x).relu()), dim=-1), l1, e1


class MinCut(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.pool1 = GCNConv(4, 8), Linear(8, 3)
        self.conv2, self.lin = pyg.DenseGraphConv(8, 8), Linear(8, 2)

    def forward(self, x, edge_index, batch):
        x = F.relu(self.conv1(x, edge_index))
        x, mask = to_dense_batch(x, batch)
        adj = to_dense_adj(edge_index, batch).to(x.dtype)
        x, adj, mc1, o1 = pyg.dense_mincut_pool(x, adj, self.pool1(x), mask)
        x = self.conv2(x, adj).mean(dim=1)
        return F.log_softmax(self.lin(x), dim=-1), mc1, o1


class Hierarchical(nn.Module):
    """proteins_topk_pool.py, sag pool and asap: pooling between convolutions, read out at each level."""

    def __init__(self, pool):
        super().__init__()
        self.conv1, self.pool1 = GraphConv(4, 8), pool(8)
        self.conv2, self.pool2 = GraphConv(8, 8), pool(8)
        self.lin1, self.lin2 = Linear(16, 8), Linear(8, 2)

    def forward(self, data):
        x, edge_index, batch = data.x, data.edge_index, data.batch
        outs = []
        for conv, pool in ((self.conv1, self.pool1), (self.conv2, self.pool2)):
            x = F.relu(conv(x, edge_index))
            x, edge_index, _, batch, *_ = pool(x, edge_index, None, batch)
            outs.append(torch.cat([global_max_pool(x, batch), global_mean_pool(x, batch)], dim=1))
        x = F.relu(self.lin1(sum(outs)))
        return F.log_softmax(self.lin2(x), dim=-1)


class ASAP(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.pool, self.conv2 = GraphConv(4, 8), ASAPooling(8, 0.8), GraphConv(8, 8)
        self.jump, self.lin = JumpingKnowledge("cat"), Linear(16, 2)

    def forward(self, x, edge_index, batch):
        x = F.relu(self.conv1(x, edge_index))
        xs = [global_mean_pool(x, batch)]
        x, edge_index, edge_weight, batch, _ = self.pool(x, edge_index, None, batch)
        x = F.relu(self.conv2(x, edge_index, edge_weight))
        xs.append(global_mean_pool(x, batch))
        return F.log_softmax(self.lin(self.jump(xs)), dim=-1)


class SortPoolDGCNN(nn.Module):
    """SEAL's DGCNN: k may be beyond the size of the graph."""

    def __init__(self, k=30, features=4):
        super().__init__()
        self.convs = nn.ModuleList([GCNConv(features, 8), GCNConv(8, 8), GCNConv(8, 1)])
        self.pool = pyg.SortAggregation(k)
        total = 8 * 2 + 1
        self.conv1 = nn.Conv1d(1, 16, total, total)
        self.maxpool1d = nn.MaxPool1d(2, 2)
        self.conv2 = nn.Conv1d(16, 32, 5, 1)
        self.mlp = MLP([int((k - 2) / 2 + 1 - 5 + 1) * 32, 16, 1], dropout=0.5, norm=None)

    def forward(self, x, edge_index, batch):
        xs = [x]
        for conv in self.convs:
            xs += [conv(xs[-1], edge_index).tanh()]
        x = self.pool(torch.cat(xs[1:], dim=-1), batch).unsqueeze(1)
        x = self.maxpool1d(self.conv1(x).relu())
        x = self.conv2(x).relu()
        return self.mlp(x.view(x.size(0), -1))


class SEAL(nn.Module):
    """seal_link_pred.py: labels of nodes are looked up, beside features."""

    def __init__(self, max_z=10):
        super().__init__()
        self.z_embedding = nn.Embedding(max_z, 8)
        self.gnn = SortPoolDGCNN(k=10, features=12)

    def forward(self, z, x, edge_index, batch):
        return self.gnn(torch.cat([self.z_embedding(z), x], dim=-1), edge_index, batch)


class NNConvQM9(nn.Module):
    """qm9_nn_conv.py: an edge network, a GRU and Set2Set."""

    def __init__(self, dim=8):
        super().__init__()
        self.lin0 = Linear(4, dim)
        self.conv = NNConv(dim, dim, Sequential(Linear(2, 16), ReLU(), Linear(16, dim * dim)), aggr="mean")
        self.gru, self.set2set = nn.GRU(dim, dim), Set2Set(dim, processing_steps=3)
        self.lin1, self.lin2 = Linear(2 * dim, dim), Linear(dim, 1)

    def forward(self, data):
        out = F.relu(self.lin0(data.x))
        h = out.unsqueeze(0)
        for _ in range(3):
            m = F.relu(self.conv(out, data.edge_index, data.edge_attr))
            out, h = self.gru(m.unsqueeze(0), h)
            out = out.squeeze(0)
        out = self.set2set(out, data.batch)
        return self.lin2(F.relu(self.lin1(out))).view(-1)


class MiniSchNet(nn.Module):
    """As SchNet: atoms are looked up, distances filter the messages."""

    def __init__(self, hidden=8, gaussians=6):
        super().__init__()
        self.embedding = nn.Embedding(10, hidden)
        self.register_buffer("offset", torch.linspace(0, 3, gaussians))
        self.mlp = Sequential(Linear(gaussians, hidden), nn.Softplus(), Linear(hidden, hidden))
        self.lin1, self.lin2 = Linear(hidden, hidden), Linear(hidden, 1)

    def forward(self, z, pos, edge_index, batch=None):
        h = self.embedding(z)
        row, col = edge_index
        weight = (pos[row] - pos[col]).norm(dim=-1)
        attr = torch.exp(-0.5 * (weight.view(-1, 1) - self.offset.view(1, -1)) ** 2)
        message = h[row] * self.mlp(attr)
        h = h + scatter(self.lin1(message), col, dim=0, dim_size=len(h), reduce="sum").tanh()
        return global_add_pool(self.lin2(h), batch)


class Forces(MiniSchNet):
    """Energy and forces: a gradient inside of the model."""

    def forward(self, z, pos, edge_index, batch=None):
        pos = pos.requires_grad_(True)
        energy = super().forward(z, pos, edge_index, batch)
        force = -torch.autograd.grad(energy.sum(), pos, create_graph=self.training)[0]
        return energy, force


class AngularNet(nn.Module):
    """As DimeNet: messages live on edges and pass over triplets with the angle between them."""

    def __init__(self, hidden=8):
        super().__init__()
        self.emb, self.lin_e = nn.Embedding(10, hidden), Linear(2 * hidden + 1, hidden)
        self.lin_a, self.lin_m, self.out = Linear(1, hidden), Linear(hidden, hidden), Linear(hidden, 1)

    def forward(self, z, pos, edge_index, batch=None):
        i, j = edge_index
        vec = pos[j] - pos[i]
        dist = vec.pow(2).sum(-1, keepdim=True).sqrt()
        h = self.emb(z)
        m = F.silu(self.lin_e(torch.cat([h[i], h[j], dist], dim=-1)))
        kj, ji = (j.view(-1, 1) == i.view(1, -1)).nonzero().t()
        cos = (vec[kj] * vec[ji]).sum(-1, keepdim=True) / (dist[kj] * dist[ji])
        m = m + scatter(self.lin_m(m)[kj] * F.silu(self.lin_a(cos)), ji, dim=0, dim_size=len(m))
        return global_add_pool(scatter(self.out(m), i, dim=0, dim_size=len(z)), batch)


class PointNetPlus(nn.Module):
    """pointnet2: sampling and balls from the positions, written with plain tensors."""

    def __init__(self):
        super().__init__()
        self.conv1 = PointNetConv(Sequential(Linear(3, 8), ReLU(), Linear(8, 8)), add_self_loops=False)
        self.lin = Linear(8 + 3, 3)

    def forward(self, pos, batch):
        idx = torch.arange(0, len(pos), 2)
        dist = torch.cdist(pos, pos[idx]) + 1e6 * (batch.view(-1, 1) != batch[idx].view(1, -1))
        src, dst = (dist < 2.0).nonzero().t()
        x = self.conv1((None, None), (pos, pos[idx]), torch.stack([src, dst]))
        x = torch.cat([x, pos[idx]], dim=1)
        return self.lin(global_max_pool(x, batch[idx]))


def knn_graph(x, k, batch):
    """Neighbors by plain tensors, as where torch-cluster is missing."""
    far = batch.view(-1, 1) != batch.view(1, -1)
    dist = torch.cdist(x, x).masked_fill(far, float("inf")).fill_diagonal_(float("inf"))
    nearest = dist.topk(k, largest=False).indices
    return torch.stack([nearest.reshape(-1), torch.arange(len(x)).repeat_interleave(k)])


class PointDGCNN(nn.Module):
    """dgcnn_classification.py: the graph is found anew in each layer."""

    def __init__(self, k=3):
        super().__init__()
        self.conv1 = EdgeConv(MLP([2 * 3, 8, 8], norm=None), aggr="max")
        self.conv2 = EdgeConv(MLP([2 * 8, 8], norm=None), aggr="max")
        self.lin1, self.mlp, self.k = Linear(16, 8), MLP([8, 8, 3], norm=None), k

    def forward(self, pos, batch):
        x1 = self.conv1(pos, knn_graph(pos, self.k, batch))
        x2 = self.conv2(x1, knn_graph(x1, self.k, batch))
        out = self.lin1(torch.cat([x1, x2], dim=1))
        return F.log_softmax(self.mlp(global_max_pool(out, batch)), dim=1)


class GPS(nn.Module):
    """graph_gps.py: looked up atoms and bonds, positional encodings."""

    def __init__(self, channels=8):
        super().__init__()
        self.node_emb, self.pe_lin, self.pe_norm = nn.Embedding(10, channels - 2), Linear(3, 2), BatchNorm1d(3)
        self.edge_emb = nn.Embedding(4, channels)
        self.convs = nn.ModuleList(
            [
                GPSConv(
                    channels, GINEConv(Sequential(Linear(channels, channels), ReLU())), heads=2, attn_type="multihead"
                )
                for _ in range(2)
            ]
        )
        self.mlp = Sequential(Linear(channels, 4), ReLU(), Linear(4, 1))

    def forward(self, x, pe, edge_index, edge_attr, batch):
        x = torch.cat((self.node_emb(x.squeeze(-1)), self.pe_lin(self.pe_norm(pe))), 1)
        edge_attr = self.edge_emb(edge_attr)
        for conv in self.convs:
            x = conv(x, edge_index, batch, edge_attr=edge_attr)
        return self.mlp(global_add_pool(x, batch))


class PNANet(nn.Module):
    def __init__(self, deg):
        super().__init__()
        self.node_emb, self.edge_emb = nn.Embedding(21, 8), nn.Embedding(4, 6)
        aggregators, scalers = ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"]
        self.conv = PNAConv(8, 8, aggregators, scalers, deg, edge_dim=6, towers=2, divide_input=False)
        self.norm = pyg.BatchNorm(8)
        self.mlp = Sequential(Linear(8, 4), ReLU(), Linear(4, 1))

    def forward(self, x, edge_index, edge_attr, batch):
        x = self.node_emb(x.squeeze())
        x = F.relu(self.norm(self.conv(x, edge_index, self.edge_emb(edge_attr))))
        return self.mlp(global_add_pool(x, batch))


class AtomEncoder(nn.Module):
    """As OGB's: the sum of an embedding for each column."""

    def __init__(self, dims=(5, 4, 3), width=8):
        super().__init__()
        self.atom_embedding_list = nn.ModuleList([nn.Embedding(d, width) for d in dims])

    def forward(self, x):
        out = 0
        for i in range(x.shape[1]):
            out = out + self.atom_embedding_list[i](x[:, i])
        return out


class OGBMol(nn.Module):
    def __init__(self):
        super().__init__()
        self.atom_encoder = AtomEncoder()
        self.conv = GINConv(Sequential(Linear(8, 8), BatchNorm1d(8), ReLU(), Linear(8, 8)), train_eps=True)
        self.graph_pred_linear = Linear(8, 2)

    def forward(self, batched_data):
        x, edge_index, batch = batched_data.x, batched_data.edge_index, batched_data.batch
        h = F.relu(self.conv(self.atom_encoder(x), edge_index))
        return self.graph_pred_linear(global_mean_pool(h, batch))


class Memory(nn.Module):
    """As TGN's: the state of nodes and when they were last seen."""

    def __init__(self, num_nodes, dim=8):
        super().__init__()
        self.register_buffer("memory", torch.randn(num_nodes, dim))
        self.register_buffer("last_update", torch.arange(num_nodes))

    def forward(self, n_id):
        return self.memory[n_id], self.last_update[n_id]


class TGN(nn.Module):
    def __init__(self, num_nodes):
        super().__init__()
        self.memory = Memory(num_nodes)
        self.time_enc = pyg.TemporalEncoding(4)
        self.conv = TransformerConv(8, 4, heads=2, dropout=0.1, edge_dim=4 + 2)
        self.lin_src, self.lin_dst, self.lin_final = Linear(8, 8), Linear(8, 8), Linear(8, 1)

    def forward(self, n_id, edge_index, t, msg, src, dst):
        x, last_update = self.memory(n_id)
        rel_t = (last_update[edge_index[0]] - t).to(x.dtype)
        attr = torch.cat([self.time_enc(rel_t), msg], dim=-1)
        z = self.conv(x, edge_index, attr)
        return self.lin_final((self.lin_src(z[src]) + self.lin_dst(z[dst])).relu())


class GConvGRU(nn.Module):
    """Snapshots over time through a recurrent cell, as torch-geometric-temporal does."""

    def __init__(self, hidden=8):
        super().__init__()
        self.conv_z, self.conv_r, self.conv_h = (GCNConv(4 + hidden, hidden) for _ in range(3))
        self.lin, self.hidden = Linear(hidden, 1), hidden

    def forward(self, x_seq, edge_index):
        h = x_seq.new_zeros(x_seq.size(0), self.hidden)
        for t in range(x_seq.size(1)):
            xh = torch.cat([x_seq[:, t], h], dim=-1)
            z, r = torch.sigmoid(self.conv_z(xh, edge_index)), torch.sigmoid(self.conv_r(xh, edge_index))
            c = torch.tanh(self.conv_h(torch.cat([x_seq[:, t], r * h], dim=-1), edge_index))
            h = z * h + (1 - z) * c
        return self.lin(F.relu(h))
