"""All readings of DEGREE from one pass: what the rows of the tables are."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from ..attribution.decompose import Decomposition, decompose
from ..attribution.explain import explain
from ..attribution.scores import share_of_probability
from ..baselines.instance import Instance
from ..engine.options import Options
from ..models import Network
from .protocol import MUTAGEN, by_pair, pairs

READINGS = ("probability", "logit", "|logit|", "strength", "strength at the head")
"""The paper's first: the softmax rule on the output.

Strength is the L1 norm of the target in the last hidden representation; at the head, in what the two linear layers
get: the last convolution after its ReLU, of graphs after the pooling.
"""
PROBES = {"strength": "lin2:input", "strength at the head": "lin1:input"}


def of_nodes(
    model: Network, data: Data, nodes: Sequence[int], classes: Sequence[int], options: Options
) -> dict[str, Tensor]:
    """Each reading ``[explained nodes, N]``, every node of the graph a group of one pass."""
    d = _decomposed(model, data, torch.eye(int(data.num_nodes or 0), dtype=torch.bool), options)
    rows = torch.tensor(list(nodes))
    found = _readings(d, rows, torch.tensor(list(classes)))
    return {name: scores.t() for name, scores in found.items()}


def of_groups(
    model: Network, graph: Data | Instance, groups: Tensor, row: int, label: int, options: Options
) -> dict[str, Tensor]:
    """Each reading ``[K]`` of some groups, for one row of the output."""
    found = _readings(_decomposed(model, graph, groups, options), torch.tensor([row]), torch.tensor([label]))
    return {name: scores[:, 0] for name, scores in found.items()}


def pair_groups(graph: Data) -> Tensor:
    """Both ends of each undirected edge as a group, then single nodes: ``[P + N, N]``."""
    ends, _, _ = pairs(graph)
    size, count = int(graph.num_nodes or 0), ends.shape[1]
    groups = torch.zeros(count + size, size, dtype=torch.bool)
    groups[torch.arange(count), ends[0]] = True
    groups[torch.arange(count), ends[1]] = True
    groups[count + torch.arange(size), torch.arange(size)] = True
    return groups


def of_pairs(model: Network, graph: Data, options: Options, authors: bool = False) -> dict[str, Tensor]:
    """Each reading ``[P]`` of the undirected edges of a molecule: both ends as one group, and the mean of both."""
    ends, _, truth = pairs(graph)
    d, count, found = _decomposed(model, graph, pair_groups(graph), options), len(truth), {}
    for name, scores in _readings(d, torch.tensor([0]), torch.tensor([MUTAGEN]), authors).items():
        single = scores[count:, 0]
        found[f"pair, {name}"] = scores[:count, 0]
        found[f"mean, {name}"] = single[ends].mean(0)
    return found


def _decomposed(model: Network, graph: Data | Instance, groups: Tensor, options: Options) -> Decomposition:
    probes = tuple(PROBES.values())
    return decompose(model, graph.x, graph.edge_index, groups=groups, probes=probes, options=options)


def of_messages(model: Network, graph: Data, options: Options) -> Tensor:
    """The contribution ``[P]`` of the messages along each edge, in all layers."""
    _, place, truth = pairs(graph)
    e = explain(model, graph.x, graph.edge_index, target=MUTAGEN, of="edge", options=options)
    return by_pair(e.edge_scores.abs(), place, len(truth))


def _readings(d: Decomposition, rows: Tensor, classes: Tensor, difference: bool = False) -> dict[str, Tensor]:
    """Each reading ``[K, rows]``."""
    total, target = d.total[rows], d.target[:, rows]
    probability = share_of_probability(total, target)
    found = {
        "probability": _of_class(probability, classes, difference),
        "logit": _of_class(target, classes, difference),
    }
    found["|logit|"] = found["logit"].abs()
    for name, probe in PROBES.items():
        found[name] = d.probes[probe].target[:, rows].abs().sum(-1)
    return found


def _of_class(table: Tensor, classes: Tensor, difference: bool) -> Tensor:
    """The column of each row's class; for two classes, if asked, minus the other's."""
    own = table[:, torch.arange(len(classes)), classes]
    return own - table[:, torch.arange(len(classes)), 1 - classes] if difference else own
