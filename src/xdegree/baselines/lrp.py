"""GNN-LRP (Schnake et al.), compact: the relevance of walks, summed over the walks that visit a node or use an edge.

A walk goes through the layers, from an input node to the node that is predicted (or that wins the pooling), along an
edge or a self-loop per layer. Its relevance is what layer-wise relevance propagation hands back along it. Sums over
walks need no list of walks: those that avoid a node are what remains when the node is closed in every layer.

Simplifications. It is for the networks of `xdegree.models` (GCN, GAT of one head, hybrids). Attention counts as a
constant, as usual. Biases keep their share of relevance, so walks sum to the output exactly only without biases.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from ..models import GAT, GCN, HybridGAT
from .instance import Instance
from .interface import Method, Scores, of_edges, of_nodes

AT_ONCE = 2**24
"""Numbers in a batch of closed nodes or edges at most."""


@dataclass(frozen=True)
class Layer:
    """One convolution as relevance sees it: who sends how much to whom, and the weights by the γ-rule."""

    links: Tensor
    """``[2, m]``, from and to, self-loops included."""
    share: Tensor
    """``[m]``, how much of the sender arrives."""
    weight: Tensor
    """``[in, out]``, w + γ·max(w, 0)."""
    inputs: Tensor
    """``[n, in]``"""
    sums: Tensor
    """``[n, out]``, the denominators."""


def gnn_lrp(of: str = "node", gamma: float = 1.0) -> Method:
    """Relevance of nodes (of all walks that visit them) or of edges (of all walks along them, in either direction).

    Args:
        of: ``"node"`` or ``"edge"``.
        gamma: of the γ-rule in the first layer, falling evenly to 0 behind the last convolution; the two linear layers
            at the end have 0.
    """
    if of not in ("edge", "node"):
        raise ValueError(f'of is "edge" or "node" (got {of!r})')

    @torch.no_grad()
    def method(one: Instance) -> Scores:
        layers, top = walk_layers(one, gamma)
        return _of_nodes(one, layers, top) if of == "node" else _of_edges(one, layers, top)

    return method


def _of_nodes(one: Instance, layers: list[Layer], top: Tensor) -> Scores:
    places, n = one.local_field, len(one.x)
    total = passed_back(layers, top.unsqueeze(0)).sum()
    scores = top.new_zeros(n)
    for part in places.split(_at_once(layers, n)):
        opened = torch.ones(len(part), n, 1, dtype=top.dtype, device=top.device)
        opened[torch.arange(len(part)), part] = 0
        scores[part] = total - passed_back(layers, top.unsqueeze(0) * opened, opened=opened).sum((1, 2))
    return of_nodes(one, scores)


def _of_edges(one: Instance, layers: list[Layer], top: Tensor) -> Scores:
    ends = one.edge_index.sort(0).values
    pairs, which = ends.unique(dim=1, return_inverse=True)
    total = passed_back(layers, top.unsqueeze(0)).sum()
    parts = []
    for u, v in zip(*(side.split(_at_once(layers, len(one.x))) for side in pairs), strict=True):
        parts.append(total - passed_back(layers, top.expand(len(u), -1, -1), without=(u, v)).sum((1, 2)))
    return of_edges(one, torch.cat(parts)[which] if parts else top.new_zeros(0))


def _at_once(layers: list[Layer], n: int) -> int:
    return max(1, AT_ONCE // (n * max(max(layer.weight.shape) for layer in layers)))


def passed_back(
    layers: list[Layer],
    relevance: Tensor,
    opened: Tensor | None = None,
    without: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Relevance ``[K, n, out]`` behind the last convolution, handed back to the input ``[K, n, in]``.

    Args:
        layers: the convolutions.
        relevance: K different ones at once.
        opened: ``[K, n, 1]``, 0 for nodes that no walk may visit.
        without: for each of the K the two ends of an edge that no walk may use, in neither direction.
    """
    n = relevance.shape[1]
    number = torch.arange(len(relevance), device=relevance.device)
    for layer in reversed(layers):
        sums = layer.sums
        ratio = relevance / torch.where(sums >= 0, sums.clamp(min=1e-9), sums.clamp(max=-1e-9))
        sender, receiver = layer.links
        arriving = layer.share.unsqueeze(-1) * ratio[:, receiver]
        back = torch.zeros_like(ratio).index_add_(1, sender, arriving)
        if without is not None:
            share = torch.zeros(n, n, dtype=relevance.dtype, device=relevance.device)
            share[sender, receiver] = layer.share
            for a, b in (without, without[::-1]):
                apart = (a != b).to(relevance.dtype)
                back[number, a] -= (apart * share[a, b]).unsqueeze(-1) * ratio[number, b]
        relevance = layer.inputs * (back @ layer.weight.t())
        relevance = relevance if opened is None else relevance * opened
    return relevance


def walk_layers(one: Instance, gamma: float) -> tuple[list[Layer], Tensor]:
    """The convolutions of a model, and the relevance ``[n, width]`` of its last hidden nodes for the class."""
    model = one.model
    if not isinstance(model, GCN | GAT | HybridGAT):
        raise TypeError(f"GNN-LRP is for the networks of xdegree.models (got {type(model).__name__})")
    h, layers = one.x, list[Layer]()
    for number, conv in enumerate(model.convs):
        assert isinstance(conv, GCNConv | GATConv)
        links, share = _links(conv, h, one.edge_index)
        falling = gamma * (1 - number / len(model.convs))
        weight, bias = _raised(conv.lin.weight.t(), falling), _raised(conv.bias, falling)
        mixed = torch.zeros_like(h).index_add_(0, links[1], share.unsqueeze(-1) * h[links[0]])
        layers.append(Layer(links, share, weight, h, mixed @ weight + bias))
        h = conv(h, one.edge_index).relu()
    return layers, _top(model, one, h)


def _links(conv: GCNConv | GATConv, h: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
    if isinstance(conv, GCNConv):
        links, share = gcn_norm(edge_index, None, len(h), add_self_loops=conv.add_self_loops, dtype=h.dtype)
        return links, share
    _, (links, alpha) = conv(h, edge_index, return_attention_weights=True)
    return links, alpha.squeeze(-1)


def _raised(weight: Tensor, gamma: float) -> Tensor:
    return weight + gamma * weight.clamp(min=0)


def _top(model: GCN | GAT | HybridGAT, one: Instance, h: Tensor) -> Tensor:
    """Relevance from the output back to the last hidden nodes: linear layers with γ = 0, winners of the pool."""
    pooled = h[one.row] if one.level == "node" else h.max(0).values
    hidden = model.lin1(pooled)
    start = torch.zeros_like(one.prediction)
    start[one.target] = one.prediction[one.target]
    middle = _linear(model.lin2, hidden.relu(), start)
    relevance = _linear(model.lin1, pooled, middle)
    top = torch.zeros_like(h)
    if one.level == "node":
        top[one.row] = relevance
    else:
        wins = (h == pooled).to(h.dtype)  # several winners share
        top = wins / wins.sum(0) * relevance
    return top


def _linear(layer: nn.Linear, inputs: Tensor, relevance: Tensor) -> Tensor:
    """R_a = Σ_b h_a w_ab / z_b R_b, with z the whole sum, bias included."""
    sums = layer(inputs)
    ratio = relevance / torch.where(sums >= 0, sums.clamp(min=1e-9), sums.clamp(max=-1e-9))
    return inputs * (ratio @ layer.weight)
