"""The part of the graph that a node's prediction is computed from, found by following the message passing."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import k_hop_subgraph

from .edges import find_edge_index
from .inputs import ModelCall
from .outputs import Level, as_table, find_batch
from .portions import leaves, mapped
from .replica import replicate, run_plain


@dataclass(frozen=True)
class Trace:
    """What a plain forward pass showed."""

    output: Any
    hops: int
    """How often messages were passed: an upper bound of the depth of the computation graph."""
    flows: frozenset[str]
    output_layer: str
    """Where the last hidden representation can be read, as a probe: the input of the last layer, or its output
    where the last layer passes messages itself."""


def trace(model: Any, call: ModelCall) -> Trace:
    """One plain forward pass that counts the message passing on the way."""
    flows: list[str] = []
    layers: list[str] = []
    replica = replicate(model)
    if isinstance(replica, nn.Module):
        inside: list[str] = []
        for path, module in replica.named_modules():
            if isinstance(module, MessagePassing):
                module.register_propagate_forward_pre_hook(lambda module, _: flows.append(module.flow))
            if isinstance(module, MessagePassing) or next(module.parameters(recurse=False), None) is not None:
                _watch(module, path, inside, layers)
    output = run_plain(replica, call)
    return Trace(output, len(flows), frozenset(flows), layers[-1] if layers else "")


def _watch(module: nn.Module, path: str, inside: list[str], layers: list[str]) -> None:
    """Note the outermost layers in the order in which they finish."""

    def enter(_module: nn.Module, _args: Any) -> None:
        inside.append(path)

    def leave(module: nn.Module, _args: Any, _output: Any) -> None:
        inside.pop()
        if not inside:
            layers.append(path if isinstance(module, MessagePassing) else f"{path}:input")

    module.register_forward_pre_hook(enter)
    module.register_forward_hook(leave)


@dataclass(frozen=True)
class Workplace:
    """Where explained rows are computed: the user's own call, or the computation graph cut out of it."""

    call: ModelCall
    rows: Tensor
    """The explained rows of this call's output."""
    field: Any
    """The nodes that can contribute, by their own ids; a dict by type where there are several."""
    num_nodes: int
    """Of the whole graph."""
    nodes: Tensor | None = None
    """The nodes of the cut by their own ids; None if nothing was cut."""
    edges: Tensor | None = None
    """The edges of the cut by their own ids; None if nothing was cut."""

    def groups(self, ids: Tensor) -> list[list[int]]:
        """Groups of nodes, ``[K, m]`` of their own ids (a node may stand twice), as this call numbers them."""
        if self.nodes is None:
            return [sorted(set(group)) for group in ids.tolist()]
        place = {own: here for here, own in enumerate(self.nodes.tolist())}
        return [sorted({place[node] for node in group}) for group in ids.tolist()]


def workplace(model: Any, call: ModelCall, seen: Trace, rows: Tensor, level: Level | None = None) -> Workplace:
    """The nodes that can contribute to some rows of the output, and the smallest call that gives these rows."""
    if not isinstance(call.x, Tensor):
        every = {kind: torch.arange(len(x), device=x.device) for kind, x in call.x.items()}
        return Workplace(call, rows, every, sum(len(x) for x in call.x.values()))
    n, level = len(call.x), level or as_table(seen.output, call).level
    if level == "graph" or n == 1:
        return Workplace(call, rows, _nodes_of_graphs(call, rows), n)
    links = call.get("edge_label_index") if level == "edge" else None
    if level == "edge" and links is None:
        return Workplace(call, rows, torch.arange(n, device=call.x.device), n)
    seeds = rows if links is None else links[:, rows].flatten().unique()
    field = receptive_field(model, call, seen, rows, seeds)
    if len(field) < n:
        for hops in (seen.hops, seen.hops + 1):
            cut = _cut_out(model, call, seen, rows, seeds, links, field, hops)
            if cut is not None:
                return cut
    return Workplace(call, rows, field, n)


def fields_of_rows(model: Any, call: ModelCall, seen: Trace, rows: list[int], level: Level) -> list[Tensor]:
    """The nodes that can contribute to each of several rows.

    That messages tell the whole truth is put to the test for one row that they leave something out of, and taken to
    hold for all.
    """
    if level == "graph":
        return [_nodes_of_graphs(call, torch.tensor([row])) for row in rows]
    links, edge_index = call.get("edge_label_index") if level == "edge" else None, find_edge_index(call)
    everything = torch.arange(len(call.x), device=call.x.device)
    if edge_index is None or (level == "edge" and links is None):
        return [everything] * len(rows)
    seeds = [torch.tensor([row]) if links is None else links[:, row].unique() for row in rows]
    fields = [_hops(call, edge_index, seen, seed, seen.hops)[0] for seed in seeds]
    number = next((i for i, field in enumerate(fields) if len(field) < len(everything)), 0)
    tested = receptive_field(model, call, seen, torch.tensor([rows[number]]), seeds[number])
    return fields if len(tested) == len(fields[number]) else [everything] * len(rows)


def graphs_are_apart(model: Any, call: ModelCall, seen: Trace, batch: Tensor) -> bool:
    """Whether no graph of a batch has a say in the prediction of another: other features there change nothing here."""
    graphs = torch.arange(int(batch.max()) + 1, device=batch.device)
    for parity in (0, 1):
        probe = call.x.clone()
        probe[batch % 2 != parity] = 2 * probe[batch % 2 != parity] + 1
        same = graphs[graphs % 2 == parity]
        if len(same) and not _same_rows(seen.output, same, model, call, same, (call.x, probe)):
            return False
    return True


def _nodes_of_graphs(call: ModelCall, graphs: Tensor) -> Tensor:
    batch = find_batch(call)
    if batch is not None:
        return torch.isin(batch, graphs.to(batch.device)).nonzero().flatten()
    return torch.arange(len(call.x), device=call.x.device)


def receptive_field(model: Any, call: ModelCall, seen: Trace, rows: Tensor, seeds: Tensor) -> Tensor:
    """The nodes within reach of the messages; all nodes where that is not the whole truth.

    A model may mix nodes without messages (a global pooling, a norm over the graph, attention among all), so the
    claim is put to the test: other features outside must not change the prediction.
    """
    edge_index, n = find_edge_index(call), len(call.x)
    everything = torch.arange(n, device=call.x.device)
    if edge_index is None or len(seen.flows) != 1 or not call.x.is_floating_point():
        return everything
    field = _hops(call, edge_index, seen, seeds, seen.hops)[0]
    if len(field) == n:
        return field
    other = 2 * call.x + 1
    other[::2] *= -1  # smaller here and larger there, so that no maximum or minimum hides the change
    probes = [other] if n - len(field) >= 16 else [other, -other]
    for probe in probes:
        probe[field] = call.x[field]
    same = all(_same_rows(seen.output, rows, model, call, rows, (call.x, probe)) for probe in probes)
    return field if same else everything


def _same_rows(
    output: Tensor, rows: Tensor, model: Any, call: ModelCall, there: Tensor, *replaced: tuple[Any, Any]
) -> bool:
    """Whether another call gives the same predictions, up to rounding."""
    try:
        again = run_plain(model, call, *replaced)[there]
    except (RuntimeError, IndexError, ValueError, TypeError, AssertionError):
        return False  # the model is made for the whole graph
    before = output[rows]
    return bool((again - before).abs().max() <= 64 * torch.finfo(output.dtype).eps * before.abs().max())


def _cut_out(
    model: Any,
    call: ModelCall,
    seen: Trace,
    rows: Tensor,
    seeds: Tensor,
    links: Tensor | None,
    field: Tensor,
    hops: int,
) -> Workplace | None:
    """The computation graph as a call of its own, tried and found to give the same predictions.

    Sums of messages need as many hops as there are layers; a norm by degree needs one more, so that the degrees
    of all nodes that contribute are complete. None where the arguments do not tell how to cut.
    """
    edge_index, n = find_edge_index(call), len(call.x)
    if edge_index is None or edge_index.shape[1] == n or not _is_inside(edge_index, call):
        return None
    e = edge_index.shape[1]
    nodes, kept = _hops(call, edge_index, seen, seeds, hops)
    if len(nodes) == n:
        return None
    place = edge_index.new_full((n,), -1)
    place[nodes] = torch.arange(len(nodes), device=nodes.device)

    def shrink(value: Any) -> Any:
        if value is edge_index:
            return place[edge_index[:, kept]]
        if links is not None and value is links:
            return place[links[:, rows]]
        if isinstance(value, Tensor) and value.dim() and value.shape[0] in (n, e):
            return value[nodes] if value.shape[0] == n else value[kept]
        return value

    smaller = replace(call, args=mapped(shrink, call.args), kwargs=mapped(shrink, dict(call.kwargs)))
    there = place[rows] if links is None else torch.arange(len(rows), device=rows.device)
    if not _same_rows(seen.output, rows, model, smaller, there):
        return None
    return Workplace(smaller, there, field, n, nodes, kept.nonzero().flatten())


def _is_inside(value: Any, call: ModelCall) -> bool:
    """Whether a value is an argument itself, not hidden in a Data object."""
    return any(leaf is value for leaf in leaves((call.args, dict(call.kwargs))))


def _hops(call: ModelCall, edge_index: Tensor, seen: Trace, seeds: Tensor, hops: int) -> tuple[Tensor, Tensor]:
    flow = next(iter(seen.flows), "source_to_target")
    nodes, _, _, kept = k_hop_subgraph(seeds, hops, edge_index, num_nodes=len(call.x), flow=flow)
    return nodes, kept
