"""All readings of DEGREE from one pass: what the rows of the tables are."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import k_hop_subgraph

from ..attribution.decompose import decompose
from ..attribution.decomposition import Decomposition
from ..attribution.scores import impact, share_of_probability
from ..baselines.instance import Instance
from ..engine.options import Options
from ..models import Network
from .protocol import MUTAGEN, pairs

READINGS = ("probability", "in floats", "logit", "|logit|", "impact", "strength", "strength at the head")
"""The paper's first: the softmax rule on the output, as a ratio; *in floats* as the authors' code computes it.

Strength is the L1 norm of the target in the last hidden representation; at the head, in what the two linear layers
get: the last convolution after its ReLU, of graphs after the pooling.
"""
PROBES = {"strength": "lin2:input", "strength at the head": "lin1:input"}
AT_ONCE = 10
"""Molecules in one pass, side by side."""


def of_nodes(
    model: Network, data: Data, nodes: Sequence[int], classes: Sequence[int], options: Options
) -> dict[str, Tensor]:
    """Each reading ``[explained nodes, N]``: every node that reaches them a group, for all others one that is empty."""
    rows, n = torch.tensor(list(nodes)), int(data.num_nodes or 0)
    near, *_ = k_hop_subgraph(rows, len(model.convs), data.edge_index, num_nodes=n)
    groups = torch.zeros(len(near) + 1, n, dtype=torch.bool)
    groups[torch.arange(len(near)), near] = True
    found = _readings(_decomposed(model, data, groups, options), rows, torch.tensor(list(classes)))
    place = torch.full((n,), len(near)).index_copy(0, near, torch.arange(len(near)))
    return {name: scores[place].t() for name, scores in found.items()}


def of_groups(
    model: Network, graph: Data | Instance, groups: Tensor, row: int, label: int, options: Options
) -> dict[str, Tensor]:
    """Each reading ``[K]`` of some groups, for one row of the output."""
    found = _readings(_decomposed(model, graph, groups, options), torch.tensor([row]), torch.tensor([label]))
    return {name: scores[:, 0] for name, scores in found.items()}


def pair_groups(graph: Data) -> Tensor:
    """Both ends of each undirected edge as a group ``[P, N]``."""
    ends, _, _ = pairs(graph)
    groups = torch.zeros(ends.shape[1], int(graph.num_nodes or 0), dtype=torch.bool)
    return groups.scatter(1, ends.t(), value=True)


def of_pairs(
    model: Network, graphs: Sequence[Data], options: Options
) -> Iterator[tuple[dict[str, Tensor], dict[str, Tensor]]]:
    """Each reading ``[P]`` of the undirected edges of molecules, both ends as one group: by the paper and the authors.

    The paper's scores are those of the class mutagen, the authors' that minus those of the other class.
    """
    for start in range(0, len(graphs), AT_ONCE):
        some = graphs[start : start + AT_ONCE]
        batch = Batch.from_data_list([Data(x=graph.x, edge_index=graph.edge_index) for graph in some])
        masks = [pair_groups(graph) for graph in some]
        d = _decomposed(model, batch, torch.block_diag(*masks).bool(), options, batch=batch.batch)
        at = 0
        for row, mask in enumerate(masks):
            own = slice(at, at + len(mask))
            at += len(mask)
            yield tuple(  # type: ignore[misc]
                {name: scores[:, 0] for name, scores in found.items()}
                for found in (
                    _readings(d, torch.tensor([row]), torch.tensor([MUTAGEN]), difference, own)
                    for difference in (False, True)
                )
            )


def _decomposed(
    model: Network, graph: Data | Instance, groups: Tensor, options: Options, **kwargs: Any
) -> Decomposition:
    probes = tuple(PROBES.values())
    return decompose(model, graph.x, graph.edge_index, groups=groups, probes=probes, options=options, **kwargs)


def in_floats(total: Tensor, target: Tensor) -> Tensor:
    """The paper's softmax rule as the authors' code has it, p · σ(|γ| − |β|): small γ are absorbed by rounding."""
    return total.softmax(-1) * (target.abs() - (total - target).abs()).sigmoid()


def _readings(
    d: Decomposition, rows: Tensor, classes: Tensor, difference: bool = False, groups: slice = slice(None)
) -> dict[str, Tensor]:
    """Each reading ``[K, rows]``."""
    total, target = d.total[rows], d.target[groups][:, rows]
    found = {
        "probability": _of_class(share_of_probability(total, target), classes, difference),
        "in floats": _of_class(in_floats(total, target), classes, difference),
        "logit": _of_class(target, classes, difference),
        "impact": impact(target),
    }
    found["|logit|"] = found["logit"].abs()
    for name, probe in PROBES.items():
        found[name] = d.probes[probe].target[groups][:, rows].abs().sum(-1)
    return found


def _of_class(table: Tensor, classes: Tensor, difference: bool) -> Tensor:
    """The column of each row's class; for two classes, if asked, minus the other's."""
    own = table[:, torch.arange(len(classes)), classes]
    return own - table[:, torch.arange(len(classes)), 1 - classes] if difference else own
