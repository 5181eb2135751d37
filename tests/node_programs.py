"""Random models that predict nodes: of layers that look at neighbors only, and of such that look at the whole graph."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from helpers import ready
from hypothesis import strategies as st
from programs import Draw, constant
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, GraphConv, SAGEConv
from torch_geometric.utils import degree, scatter

Layer = Callable[[Tensor, Tensor, Tensor], Tensor]
"""What a layer makes of the value, x and the edges."""


class Layers(nn.Module):
    """Layers one after the other; those that are modules are found by whoever looks for them."""

    def __init__(self, names: list[str], layers: list[Layer]) -> None:
        super().__init__()
        self.names, self.layers = names, layers
        self.held = nn.ModuleList([layer for layer in layers if isinstance(layer, nn.Module)])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = x
        for layer in self.layers:
            h = layer(h, x, edge_index)
        return h


class Conv(nn.Module):
    """A convolution as a layer."""

    def __init__(self, conv: nn.Module) -> None:
        super().__init__()
        self.conv = conv

    def forward(self, h: Tensor, _x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(h, edge_index)


def _mlp(i: int, o: int) -> nn.Module:
    return nn.Sequential(nn.Linear(i, o), nn.ReLU(), nn.Linear(o, o))


CONVS: dict[str, Callable[[int, int], nn.Module]] = {
    "GCNConv": GCNConv,
    "GCNConv without self-loops": lambda i, o: GCNConv(i, o, add_self_loops=False),
    "SAGEConv": SAGEConv,
    "SAGEConv max": lambda i, o: SAGEConv(i, o, aggr="max"),
    "GATConv": lambda i, o: GATConv(i, o, heads=2, concat=False),
    "GINConv": lambda i, o: GINConv(_mlp(i, o)),
    "GraphConv mean": lambda i, o: GraphConv(i, o, aggr="mean"),
}

LOCAL: dict[str, Layer] = {
    "relu": lambda h, x, e: h.relu(),
    "elu_": lambda h, x, e: F.elu(h.clone(), inplace=True),
    "layer_norm": lambda h, x, e: F.layer_norm(h, h.shape[-1:]),
    "normalize": lambda h, x, e: F.normalize(h, dim=-1),
    "cat x": lambda h, x, e: torch.cat([h, x], -1),
    "addmm": lambda h, x, e: torch.addmm(h.new_ones(()), h, torch.eye(h.shape[1], dtype=h.dtype) - 0.3),
    "reversed columns": lambda h, x, e: h.flip(-1) - 0.5 * h,
    "cumsum of columns": lambda h, x, e: h.cumsum(1),
    "heads": lambda h, x, e: h.view(len(h), -1, 1).relu().flatten(1) + h,
    "messages": lambda h, x, e: h + scatter(h[e[0]], e[1], 0, len(h), reduce="mean"),
    "constant rows": lambda h, x, e: torch.cat([h, torch.ones(len(h), 1, dtype=h.dtype)], -1),
    "zeros first": lambda h, x, e: torch.zeros_like(h).index_add_(0, torch.arange(len(h)), h),
    "dead": lambda h, x, e: h * (h > -0.2),
}


def _branch(h: Tensor, is_so: bool) -> Tensor:
    return h / 8 if is_so else h


def _by_degree(h: Tensor, e: Tensor, size: Callable[[Tensor], Tensor]) -> Tensor:
    """Messages whose weight is normalised over all edges."""
    weight = degree(e[0], len(h), dtype=h.dtype)[e[0]] + 1
    weight = weight / size(weight) if len(weight) else weight
    return h + scatter(weight.unsqueeze(1) * h[e[0]], e[1], 0, len(h))


GLOBAL: dict[str, Layer] = {
    "minus mean": lambda h, x, e: h - h.mean(0),
    "minus median": lambda h, x, e: h - h.median(0).values,
    "over max": lambda h, x, e: h / (h.abs().max() + 1),
    "over std": lambda h, x, e: (h - h.mean(0)) / (h.std(0, correction=0) + 1e-3),
    "min-max": lambda h, x, e: (h - h.amin(0)) / (h.amax(0) - h.amin(0) + 1),
    "softmax over nodes": lambda h, x, e: h.softmax(0) * h + h,
    "branch on max": lambda h, x, e: _branch(h, bool(x.max() > 1.5)),
    "branch on mean": lambda h, x, e: _branch(h, bool(x.mean() > 0)),
    "where on max": lambda h, x, e: torch.where(x.amax() > 1.5, h / 8, h),
    "clamp on an outlier": lambda h, x, e: h.clamp(-1, 1) if bool((x.abs() > 2).any()) else h,
    "branch on nodes": lambda h, x, e: _branch(h, len(x) > 9),
    "branch on edges": lambda h, x, e: _branch(h, e.shape[1] > 12),
    "over nodes": lambda h, x, e: h / len(h),
    "sum of all": lambda h, x, e: h + h.sum(0, keepdim=True),
    "max of all": lambda h, x, e: torch.cat([h, h.amax(0).expand_as(h)], -1),
    "sorted": lambda h, x, e: h + h.sort(0).values,
    "best rows": lambda h, x, e: h * (h[:, 0] >= h[:, 0].topk(max(1, len(h) // 2)).values[-1]).unsqueeze(1),
    "rolled": lambda h, x, e: h + h.roll(1, 0),
    "first node": lambda h, x, e: h - h[0],
    "last node": lambda h, x, e: h + 0.5 * h[-1:],
    "place": lambda h, x, e: h * torch.arange(1, len(h) + 1, dtype=h.dtype).unsqueeze(1),
    "place as bias": lambda h, x, e: h + torch.linspace(-1, 1, len(h), dtype=h.dtype).unsqueeze(1),
    "every second edge": lambda h, x, e: h + scatter(h[e[0, ::2]], e[1, ::2], 0, len(h)),
    "cumulated": lambda h, x, e: h.cumsum(0),
    "attention": lambda h, x, e: (h @ h.t() / 4).softmax(-1) @ h,
    "weights over max": lambda h, x, e: _by_degree(h, e, torch.amax),
    "weights over sum": lambda h, x, e: _by_degree(h, e, torch.sum),
}


class PerNode(nn.Module):
    """A parameter for each node, and one for each edge."""

    def __init__(self, nodes: int, edges: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.of_nodes = nn.Parameter(torch.randn(nodes, 1, generator=generator, dtype=torch.float64))
        self.of_edges = nn.Parameter(torch.randn(edges, 1, generator=generator, dtype=torch.float64))

    def forward(self, h: Tensor, _x: Tensor, edge_index: Tensor) -> Tensor:
        return h * self.of_nodes + scatter(h[edge_index[0]] * self.of_edges, edge_index[1], 0, len(h))


@dataclass(frozen=True)
class NodeModel:
    """A model with a graph; its text says what it consists of."""

    model: Layers
    x: Tensor
    edge_index: Tensor

    def __repr__(self) -> str:
        edges = list(map(tuple, self.edge_index.t().tolist()))
        return f"NodeModel(x={list(self.x.shape)}, edges={edges}, {' | '.join(self.model.names)})"


@st.composite
def node_graphs(draw: Draw) -> tuple[Tensor, Tensor]:
    """Sparse enough that neighborhoods leave something out; isolated nodes, duplicates and self-loops among them."""
    n, f = draw(st.integers(1, 14)), draw(st.integers(1, 3))
    ends = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=16))
    x = constant(draw, (n, f))
    if draw(st.integers(0, 3)) == 0:
        x[:, 0] = 1.0  # constant features
    return x, torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t().contiguous()


@st.composite
def node_models(draw: Draw, beyond: bool, most: int = 4) -> NodeModel:
    """Layers of neighbors; with ``beyond`` at least one that looks at the whole graph."""
    x, edge_index = draw(node_graphs())
    kinds = ["conv", "conv", "local"] if not beyond else ["conv", "local", "global"]
    drawn = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=most))
    if beyond and "global" not in drawn:
        drawn.insert(draw(st.integers(0, len(drawn))), "global")
    names, layers, h = [], [], x
    for kind in drawn:
        name, layer = _layer(draw, kind, h, edge_index)
        names.append(name)
        layers.append(layer)
        h = layer(h.clone(), x.clone(), edge_index).detach()
    return NodeModel(Layers(names, layers).eval().requires_grad_(False), x, edge_index)


def _layer(draw: Draw, kind: str, h: Tensor, edge_index: Tensor) -> tuple[str, Layer]:
    if kind == "conv":
        name = draw(st.sampled_from(sorted(CONVS)))
        return name, ready(Conv(CONVS[name](h.shape[1], 2)), draw(st.integers(1, 4)))
    if kind == "local":
        name = draw(st.sampled_from(sorted(LOCAL)))
        return name, LOCAL[name]
    name = draw(st.sampled_from([*sorted(GLOBAL), "a parameter per node"]))
    if name in GLOBAL:
        return name, GLOBAL[name]
    return name, PerNode(len(h), edge_index.shape[1], draw(st.integers(1, 4)))
