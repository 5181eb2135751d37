"""Still more models as strangers write them: logs, hooks, wrappers, tricks of training, whole pipelines."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from stranger_models import Two
from torch import nn
from torch.nn import Linear, Parameter
from torch.nn.utils import parametrizations
from torch_geometric.nn import GATConv, GCNConv, GraphConv, MessagePassing, SAGEConv
from torch_geometric.utils import scatter, softmax, spmm, to_dense_adj, to_dense_batch


class Logs(Two):
    """Numbers for people, which the output does not depend on."""

    def forward(self, x, edge_index):
        h = self.conv1(x, edge_index)
        self.log = [h.mean().item(), float(h.std()), h[0].tolist(), h.detach().cpu().numpy().max(), f"{h.sum():.3f}"]
        if h.norm().item() > 1e6:
            h = h / h.norm()
        return self.lin(self.conv2(h.relu(), edge_index))


class Hooked(Two):
    """Keeps activations by hooks, which close over the model or over a list."""

    def __init__(self):
        super().__init__()
        self.kept, seen = {}, []
        self.conv1.register_forward_hook(lambda _module, _args, out: self.kept.update(first=out.detach()))
        self.conv2.register_forward_hook(lambda _module, _args, out: seen.append(out.shape))


class GeniePath(nn.Module):
    """Attention in breadth, a recurrent layer in depth."""

    def __init__(self):
        super().__init__()
        self.lin1, self.breadth, self.lin2 = Linear(4, 8), nn.ModuleList([GATConv(8, 8), GATConv(8, 8)]), Linear(8, 3)
        self.depth = nn.ModuleList([nn.LSTM(8, 8, 1, bias=False), nn.LSTM(8, 8, 1, bias=False)])

    def forward(self, x, edge_index):
        x = self.lin1(x)
        h = c = torch.zeros(1, len(x), 8, dtype=x.dtype)
        for breadth, depth in zip(self.breadth, self.depth, strict=True):
            x, (h, c) = depth(torch.tanh(breadth(x, edge_index))[None, :], (h, c))
            x = x[0]
        return self.lin2(x)


class RevBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.conv = nn.LayerNorm(4), SAGEConv(4, 4)

    def forward(self, x, edge_index, dropout_mask=None):
        x = self.norm(x).relu()
        return self.conv(x if dropout_mask is None else x * dropout_mask, edge_index)


class RevGNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1, self.lin2, self.norm = Linear(4, 8), Linear(8, 3), nn.LayerNorm(8)
        self.convs = nn.ModuleList([pyg.GroupAddRev(RevBlock(), num_groups=2) for _ in range(2)])

    def forward(self, x, edge_index):
        x = self.lin1(x)
        mask = torch.zeros_like(x).bernoulli_(0.5) if self.training else None
        for conv in self.convs:
            x = conv(x, edge_index, mask)
        return self.lin2(self.norm(x).relu())


class Shadow(nn.Module):
    """Subgraphs around some nodes, side by side."""

    def __init__(self):
        super().__init__()
        self.conv, self.lin = SAGEConv(4, 8), Linear(16, 3)

    def forward(self, x, edge_index, batch, root_n_id):
        x = self.conv(x, edge_index).relu()
        return self.lin(torch.cat([x[root_n_id], pyg.global_mean_pool(x, batch)], dim=-1))


class Saint(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs, self.lin = nn.ModuleList([GraphConv(4, 8), GraphConv(8, 8)]), Linear(16, 3)

    def forward(self, x0, edge_index, edge_weight=None):
        x1 = self.convs[0](x0, edge_index, edge_weight).relu()
        x2 = self.convs[1](x1, edge_index, edge_weight).relu()
        return self.lin(torch.cat([x1, x2], dim=-1)).log_softmax(dim=-1)


class RandLA(MessagePassing):
    """Points: their places and distances beside their features, by attention for each channel."""

    def __init__(self):
        super().__init__(aggr="add")
        self.place, self.attention, self.lin = pyg.MLP([10, 4], norm=None), Linear(8, 8, bias=False), Linear(8, 3)

    def forward(self, x, pos, edge_index):
        return self.lin(self.propagate(edge_index, x=x, pos=pos))

    def message(self, x_j, pos_i, pos_j, index):
        offset = pos_j - pos_i
        distance = torch.sqrt((offset * offset).sum(1, keepdim=True))
        features = torch.cat([x_j, self.place(torch.cat([pos_i, pos_j, offset, distance], dim=1))], dim=1)
        return softmax(self.attention(features), index) * features


class SparseMax(nn.Module):
    """Sparse matrices that reduce by mean and by maximum."""

    def __init__(self):
        super().__init__()
        self.lin1, self.lin2 = Linear(4, 8), Linear(8, 3)

    def forward(self, x, adj_t):
        return self.lin2(spmm(adj_t, spmm(adj_t, self.lin1(x), "mean").relu(), "max"))


class Propagation(nn.Module):
    """A system of equations over the graph, as in personalised propagation without iterations."""

    def __init__(self):
        super().__init__()
        self.lin = Linear(4, 3)

    def forward(self, x, edge_index):
        adj = to_dense_adj(edge_index, max_num_nodes=len(x))[0].to(x.dtype)
        walk = adj / adj.sum(1, keepdim=True)
        return torch.linalg.solve(torch.eye(len(x), dtype=x.dtype) - 0.85 * walk, 0.15 * self.lin(x))


class FixedPoint(Two):
    """As many rounds as it takes."""

    def __init__(self):
        super().__init__()
        self.step = Linear(8, 8)

    def forward(self, x, edge_index):
        start = self.conv1(x, edge_index)
        z = torch.zeros_like(start)
        for _ in range(50):
            new = torch.tanh(0.05 * self.step(z) + start)
            if (new - z).norm() < 1e-6:
                break
            z = new
        return self.lin(self.conv2(z, edge_index))


class MedianScaled(Two):
    def forward(self, x, edge_index):
        out = super().forward(x, edge_index)
        return out / out.median()


class Masked(Two):
    """A masked autoencoder: a learned row instead of some nodes."""

    def __init__(self):
        super().__init__()
        self.token = Parameter(torch.rand(4))

    def forward(self, x, edge_index, mask):
        x = x.clone()
        x[mask] = self.token
        return super().forward(x, edge_index)


class InPlace(Two):
    def forward(self, x, edge_index):
        h = self.conv1(x, edge_index)
        h[h < 0] = 0
        h[:, 0] *= 2
        h.clamp_(max=3)
        return self.lin(self.conv2(h, edge_index))


class StraightThrough(Two):
    def forward(self, x, edge_index):
        h = self.embed(x, edge_index)
        return self.lin(h + (h.round() - h).detach())


class Phases(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.out, self.angle = Linear(4, 4), Linear(2, 3), Parameter(torch.rand(2))

    def forward(self, x, edge_index):
        h = torch.view_as_complex(self.lin(x).view(-1, 2, 2))
        h = h * torch.polar(torch.ones_like(self.angle), self.angle)
        return self.out(torch.zeros_like(h).index_add(0, edge_index[1], h[edge_index[0]]).abs())


class Scan(nn.Module):
    """A state that runs over the nodes of each graph."""

    def __init__(self):
        super().__init__()
        self.lin, self.decay, self.out = Linear(4, 8), Parameter(torch.rand(8)), Linear(8, 2)

    def forward(self, x, batch):
        h, mask = to_dense_batch(self.lin(x), batch)
        state = torch.zeros_like(h[:, 0])
        for t in range(h.size(1)):
            state = torch.where(mask[:, t : t + 1], torch.sigmoid(self.decay) * state + h[:, t], state)
        return self.out(state)


class SumOfEmbeddings(nn.Module):
    """Molecules of OGB: an embedding for each column of integers, without a module around them."""

    def __init__(self):
        super().__init__()
        self.atom = nn.ModuleList([nn.Embedding(7, 8) for _ in range(3)])
        self.conv, self.lin = GCNConv(8, 8), Linear(8, 2)

    def forward(self, batched_data):
        x = batched_data.x
        h = sum(table(x[:, column]) for column, table in enumerate(self.atom))
        return self.lin(pyg.global_add_pool(self.conv(h, batched_data.edge_index).relu(), batched_data.batch))


class EdgesOnly(nn.Module):
    """Proteins of OGB: nodes have only what their edges bring."""

    def __init__(self):
        super().__init__()
        self.conv, self.lin = GCNConv(2, 8), Linear(8, 3)

    def forward(self, edge_index, edge_attr, num_nodes):
        x = scatter(edge_attr, edge_index[1], 0, num_nodes, reduce="mean")
        return self.lin(self.conv(x, edge_index).relu())


class LinkMethods(nn.Module):
    """As in the examples of PyG: two methods and no forward."""

    def __init__(self):
        super().__init__()
        self.conv = GCNConv(4, 8)

    def encode(self, x, edge_index):
        return self.conv(x, edge_index).relu()

    def decode(self, z, pairs):
        return (z[pairs[0]] * z[pairs[1]]).sum(dim=-1)


class OpenEnded(Two):
    def forward(self, **inputs):
        return super().forward(inputs["x"], inputs["edge_index"])


class Parametrised(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.lin = GCNConv(4, 8), parametrizations.weight_norm(Linear(8, 3))

    def forward(self, x, edge_index):
        return self.lin(self.conv(x, edge_index).relu())


class Ensemble(nn.Module):
    """Stacked weights of several networks, by torch.func."""

    def __init__(self):
        super().__init__()
        self.conv, self.weight = GCNConv(4, 8), Parameter(torch.randn(5, 8, 3))

    def forward(self, x, edge_index):
        h = self.conv(x, edge_index).relu()
        return torch.vmap(lambda weight: h @ weight)(self.weight).mean(0)


class Categorical(Two):
    def forward(self, x, edge_index):
        return torch.distributions.Categorical(logits=super().forward(x, edge_index))


class OfRecord(Two):
    """Takes a named tuple, a dataclass or a namespace."""

    def forward(self, graph):
        return super().forward(graph.x, graph.edge_index)


class TwoGraphs(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Two()

    def forward(self, first, second):
        one, other = (self.net(data.x, data.edge_index).mean(0, keepdim=True) for data in (first, second))
        return F.cosine_similarity(one, other)


def record(x, edge_index):
    return SimpleNamespace(x=x, edge_index=edge_index)
