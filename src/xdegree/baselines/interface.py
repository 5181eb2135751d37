"""What every method takes and gives: an `Instance` in, `Scores` out."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.explain.algorithm.utils import set_masks

from .instance import Instance


@dataclass(frozen=True)
class Scores:
    """Scores of all nodes ``[N]`` and, where a method gives them, of all directed edges ``[E]``.

    Higher means more important; outside of the computation graph they are 0. Of a method that scores edges, a node has
    the best score of those that touch it: the paper does not say how edges give nodes, and the best edge does not
    reward a high degree as a sum does.
    """

    node: Tensor
    """``[N]``."""
    edge: Tensor | None = None
    """``[E]``, None where a method gives none."""

    def edges(self, edge_index: Tensor) -> Tensor:
        """Scores of edges; of a method that only scores nodes, the mean of both ends, as the paper says."""
        return self.node[edge_index].mean(0) if self.edge is None else self.edge


def edges_to_nodes(scores: Tensor, edge_index: Tensor, num_nodes: int) -> Tensor:
    """The best score of the edges at each node ``[num_nodes]``, 0 for nodes without edges."""
    ends, twice = edge_index.flatten(), scores.repeat(2)
    best = torch.full((num_nodes,), float("-inf"), dtype=scores.dtype, device=scores.device)
    best = best.scatter_reduce(0, ends, twice, "amax")
    return torch.where(best.isinf(), torch.zeros_like(best), best)


Method = Callable[[Instance], Scores]
"""A method, with its settings already chosen."""


def of_nodes(one: Instance, scores: Tensor) -> Scores:
    """Scores ``[n]`` of the nodes of the computation graph; 0 for those of it that cannot contribute."""
    inside = torch.zeros_like(scores)
    inside[one.local_field] = scores[one.local_field].detach()
    return Scores(node=one.of_nodes(inside))


def of_edges(one: Instance, scores: Tensor) -> Scores:
    """Scores ``[e]`` of the edges of the computation graph, nodes by the best of their edges."""
    best = edges_to_nodes(scores.detach(), one.edge_index, len(one.x))
    return Scores(node=of_nodes(one, best).node, edge=one.of_edges(scores.detach()))


def own_copy(model: nn.Module) -> nn.Module:
    """A copy to write to: some methods leave masks behind that silently break others on the same model."""
    twin = copy.deepcopy(model).eval()
    for parameter in twin.parameters():
        parameter.requires_grad_(False)
    return twin


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Random numbers of a seed inside, the global state as it was outside."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def with_edge_weights(one: Instance, weights: Tensor) -> Tensor:
    """The explained row with every message multiplied by its edge's weight ``[e]``, in every layer.

    Messages of self-loops that a layer adds have weight 1. A normalisation by degree or an attention sees the graph as
    it is.
    """
    twin = own_copy(one.model)
    set_masks(twin, weights, one.edge_index, apply_sigmoid=False)
    rows = len(one.x) if one.level == "node" else 1
    row: Tensor = twin(one.x, one.edge_index, **one.kwargs).reshape(rows, -1)[one.row]
    return row
