"""The part of the graph that a node's prediction is computed from, found by following the message passing."""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from .edges import find_edge_index
from .groups import Singles
from .inputs import ModelCall
from .neighbours import Incoming, Sampling, incoming
from .outputs import Level, as_table, find_batch
from .portions import leaves, mapped
from .replica import replicate, run_plain


@dataclass(frozen=True, kw_only=True)
class Outline:
    """How a model passes messages."""

    hops: int
    """How often: an upper bound of the depth of the computation graph."""
    flows: frozenset[str]
    output_layer: str
    """Where the last hidden representation can be read, as a probe: the input of the last layer, or its output
    where the last layer passes messages itself."""


@dataclass(frozen=True, kw_only=True)
class Trace(Outline):
    """What a plain forward pass showed."""

    output: Any


_OUTLINES: weakref.WeakKeyDictionary[nn.Module, Outline] = weakref.WeakKeyDictionary()


def last_outline(model: Any) -> Outline | None:
    """What the last trace of a model showed. The model may have been changed since, so it is no more than a guess."""
    return _OUTLINES.get(model) if isinstance(model, nn.Module) else None


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
    last = layers[-1] if layers else ""
    if isinstance(model, nn.Module):
        _OUTLINES[model] = Outline(hops=len(flows), flows=frozenset(flows), output_layer=last)
    return Trace(hops=len(flows), flows=frozenset(flows), output_layer=last, output=output)


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


def workplace(
    model: Any,
    call: ModelCall,
    seen: Trace,
    rows: Tensor,
    level: Level | None = None,
) -> Workplace:
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
    cut = _cut(model, call, seen, rows, links)
    return (
        Workplace(call, rows, receptive_field(model, call, seen, rows, seeds(rows, links)), n) if cut is None else cut
    )


@dataclass(frozen=True)
class Near:
    """A workplace for rows that only hear of what is near, and how near each of its nodes is."""

    work: Workplace
    distance: Tensor
    """Of each node of the call, in hops; more than the rounds for those that are too far."""
    rounds: int

    @property
    def groups(self) -> Singles:
        """All nodes within reach, each a group of its own."""
        asked = self.distance <= self.rounds
        return Singles(asked.nonzero().flatten(), asked)


def near(call: ModelCall, seen: Outline, rows: Tensor, level: Level) -> Near | None:
    """How near each node is to some rows; None where there are no messages to follow.

    Whether messages tell the whole truth is not put to the test here: who works with a focus finds out.
    """
    links = call.get("edge_label_index") if level == "edge" else None
    edge_index = find_edge_index(call)
    if level == "graph" or (level == "edge" and links is None) or edge_index is None or len(seen.flows) != 1:
        return None
    if not isinstance(call.x, Tensor) or not call.x.is_floating_point():
        return None
    n = len(call.x)
    ball = incoming(edge_index, n, next(iter(seen.flows))).ball(seeds(rows, links), seen.hops)
    distance = torch.full((n,), seen.hops + 1, device=rows.device)
    distance[ball.nodes] = ball.distance
    return Near(Workplace(call, rows, ball.nodes, n), distance, seen.hops)


def near_cut(
    model: Any, cutter: "Cutter", rows: Tensor, sampling: Sampling | None, admit: Callable[[ModelCall], None]
) -> tuple[Near, Tensor] | None:
    """The neighbourhood of some nodes as a call of its own, and their predictions; nothing else is ever touched.

    None if the model turns out to look at more than the messages that arrive in time. A cut that is too large can be
    refused, by an exception, before the model runs on it.
    """
    for hops in margins(model, cutter.rounds):
        cut = cutter.directed(rows, hops, sampling)
        work = cutter.workplace(cut, rows, None)
        admit(work.call)
        predictions = run_plain(model, work.call)[work.rows].reshape(len(rows), -1)
        if same_predictions(predictions, model, *cutter.disturbed(cut, rows, None, rim=True)):
            remember_margin(model, hops - cutter.rounds)
            return Near(work, cut.distance, cutter.rounds), predictions
    return None


def seeds(rows: Tensor, links: Tensor | None) -> Tensor:
    """The nodes that some rows of the output are about: themselves, or the end points of links."""
    return rows if links is None else links[:, rows].flatten().unique()


_MARGINS: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
"""By how many hops more than it passes messages a model was last cut. It is only tried first, never believed."""


def _cut(model: Any, call: ModelCall, seen: Trace, rows: Tensor, links: Tensor | None) -> Workplace | None:
    """The computation graph as a call of its own, tried and found to give the same predictions.

    Sums of messages need as many hops as there are layers; a norm by degree needs one more, so that the degrees
    of all nodes that contribute are complete. None where the arguments do not tell how to cut, or nothing is cut off.
    """
    cutter = Cutter.of(call, seen)
    if cutter is None:
        return None
    for hops in margins(model, seen.hops):
        cut = cutter.induced(seeds(rows, links), hops)
        if len(cut.nodes) == cutter.num_nodes:
            return None
        work = cutter.workplace(cut, rows, links)
        if same_predictions(seen.output[rows], model, *cutter.disturbed(cut, rows, links)):
            remember_margin(model, hops - seen.hops)
            return work
    return None


def margins(model: Any, hops: int) -> list[int]:
    """The hops to try."""
    last = _MARGINS.get(model, 0) if isinstance(model, nn.Module) else 0
    return [hops + last, hops + 1 - last]


def remember_margin(model: Any, margin: int) -> None:
    """Try this first next time."""
    if isinstance(model, nn.Module):
        _MARGINS[model] = margin


@dataclass(frozen=True)
class Cut:
    """A part of the graph."""

    nodes: Tensor
    """By their own ids, in order."""
    distance: Tensor
    """In hops from what is explained."""
    edges: Tensor
    """By their own ids, in order."""
    hops: int


@dataclass(frozen=True)
class Cutter:
    """Cuts a call down to a part of its graph."""

    call: ModelCall
    edge_index: Tensor
    index: Incoming
    rounds: int
    """How often messages are passed."""

    @classmethod
    def of(cls, call: ModelCall, seen: Outline) -> "Cutter | None":
        """None where the arguments do not tell how."""
        edge_index = find_edge_index(call)
        if edge_index is None or len(seen.flows) != 1 or not isinstance(call.x, Tensor):
            return None
        if not call.x.is_floating_point() or edge_index.shape[1] == len(call.x) or not _is_inside(edge_index, call):
            return None
        return cls(call, edge_index, incoming(edge_index, len(call.x), next(iter(seen.flows))), seen.hops)

    @property
    def num_nodes(self) -> int:
        """Of the whole graph."""
        return len(self.call.x)

    def directed(self, seeds: Tensor, hops: int, sampling: Sampling | None = None) -> Cut:
        """The edges along which messages arrive in time, and no others."""
        ball = self.index.ball(seeds, hops, sampling)
        return Cut(ball.nodes, ball.distance, ball.edges, hops)

    def induced(self, seeds: Tensor, hops: int) -> Cut:
        """All edges between the nodes, as those who look at the cut as a graph expect."""
        ball = self.index.ball(seeds, hops)
        return Cut(ball.nodes, ball.distance, self.index.among(ball.nodes), hops)

    def workplace(self, cut: Cut, rows: Tensor, links: Tensor | None) -> Workplace:
        """The cut as a call of its own."""
        ends = torch.searchsorted(cut.nodes, self.edge_index[:, cut.edges])
        own, there = _located(cut.nodes, rows, links, 0)
        call = _assembled(self.call, self.edge_index, cut.nodes, cut.edges, ends, own)
        field = cut.nodes[cut.distance <= self.rounds]
        return Workplace(call, there, field, self.num_nodes, cut.nodes, cut.edges)

    def disturbed(self, cut: Cut, rows: Tensor, links: Tensor | None, rim: bool = False) -> tuple[ModelCall, Tensor]:
        """The cut with all that must not matter changed: if the predictions stay, the rest of the graph is not needed.

        Nodes beyond the reach of messages get other features, and there are more nodes, before and behind, whose
        features are larger and smaller than all others, so that no mean, maximum or norm over the graph can miss them.
        Where the prediction on the whole graph is not known, these also send messages to the nodes at the rim, whose
        neighbours should not count any more, and hear of all nodes, which should not count for anybody else.
        """
        n, edges, stand_in = len(cut.nodes), cut.edges, cut.nodes[:1]
        ends = torch.searchsorted(cut.nodes, self.edge_index[:, edges]) + 1
        if rim and len(edges):
            outermost, every = (cut.distance == cut.hops).nonzero().flatten() + 1, torch.arange(1, n + 1).to(ends)
            stranger = torch.where(every % 2 == 0, 0, n + 1)
            sources = torch.cat([stranger[: len(outermost)], every])
            targets = torch.cat([outermost, stranger])
            pairs = torch.stack([sources, targets] if self.index.flow == "source_to_target" else [targets, sources])
            ends, edges = torch.cat([ends, pairs], 1), torch.cat([edges, edges[:1].expand(len(sources))])
        nodes = torch.cat([stand_in, cut.nodes, stand_in])
        own, there = _located(cut.nodes, rows, links, 1)
        call = _assembled(self.call, self.edge_index, nodes, edges, ends, own)
        x = call.x
        high, low = x.amax(0), x.amin(0)
        inner = (cut.distance > self.rounds).nonzero().flatten() + 1
        other = x.clone()
        other[inner] = -2 * x[inner] - 1
        other[0], other[-1] = 2 * high.abs() + 1, -2 * low.abs() - 1
        return replace(call, args=_swapped(call.args, x, other), kwargs=_swapped(dict(call.kwargs), x, other)), there


def _assembled(
    call: ModelCall,
    edge_index: Tensor,
    nodes: Tensor,
    edges: Tensor,
    ends: Tensor,
    links: tuple[Tensor, Tensor] | None = None,
) -> ModelCall:
    """The call with some nodes and edges, which may repeat; ends of edges and links (old, new) as it numbers them."""
    n, e = len(call.x), edge_index.shape[1]

    def part(value: Any) -> Any:
        if value is edge_index:
            return ends
        if links is not None and value is links[0]:
            return links[1]
        if isinstance(value, Tensor) and value.dim() and value.shape[0] in (n, e):
            return value[nodes] if value.shape[0] == n else value[edges]
        return value

    return replace(call, args=mapped(part, call.args), kwargs=mapped(part, dict(call.kwargs)))


def _located(
    nodes: Tensor, rows: Tensor, links: Tensor | None, offset: int
) -> tuple[tuple[Tensor, Tensor] | None, Tensor]:
    """Links (old, new) and rows of the output where nodes are numbered by their place, from an offset on."""
    if links is None:
        return None, torch.searchsorted(nodes, rows) + offset
    own = (links, torch.searchsorted(nodes, links[:, rows]) + offset)
    return own, torch.arange(len(rows), device=nodes.device)


def _swapped(value: Any, old: Tensor, new: Tensor) -> Any:
    return mapped(lambda item: new if item is old else item, value)


class Fields(Sequence[Tensor]):
    """The nodes within reach of each of several rows, found when they are asked for."""

    def __init__(
        self, index: Incoming, rounds: int, rows: list[int], links: Tensor | None, sampling: Sampling | None = None
    ) -> None:
        self._index, self._rounds, self._rows, self._links, self._sampling = index, rounds, rows, links, sampling

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: Any) -> Any:
        device = self._index.start.device
        nodes = seeds(torch.tensor([self._rows[number]], device=device), self._links)
        return self._index.ball(nodes, self._rounds, self._sampling).nodes


def near_fields(call: ModelCall, seen: Outline, rows: list[int], level: Level) -> Sequence[Tensor]:
    """The nodes within reach of the messages, where these are known to tell the whole truth."""
    links, edge_index = call.get("edge_label_index") if level == "edge" else None, find_edge_index(call)
    assert edge_index is not None
    return Fields(incoming(edge_index, len(call.x), next(iter(seen.flows))), seen.hops, rows, links)


def tiny_outline(model: Any, call: ModelCall) -> Outline | None:
    """How a model passes messages, from a pass on a handful of nodes; None unless it predicts nodes."""
    edge_index, n = find_edge_index(call), len(call.x)
    if edge_index is None or not edge_index.shape[1]:
        return None
    edges = torch.arange(min(8, edge_index.shape[1]), device=edge_index.device)
    nodes = edge_index[:, edges].unique()
    ends = torch.searchsorted(nodes, edge_index[:, edges])
    seen = trace(model, _assembled(call, edge_index, nodes, edges, ends))
    of_nodes = isinstance(seen.output, Tensor) and seen.output.dim() > 0 and len(seen.output) == len(nodes) < n
    return seen if of_nodes and len(seen.flows) == 1 else None


def fields_of_rows(model: Any, call: ModelCall, seen: Trace, rows: list[int], level: Level) -> Sequence[Tensor]:
    """The nodes that can contribute to each of several rows.

    That messages tell the whole truth is put to the test for one row that they leave something out of, and taken to
    hold for all.
    """
    if level == "graph":
        return [_nodes_of_graphs(call, torch.tensor([row])) for row in rows]
    links, edge_index = call.get("edge_label_index") if level == "edge" else None, find_edge_index(call)
    everything = torch.arange(len(call.x), device=call.x.device)
    if edge_index is None or len(seen.flows) != 1 or (level == "edge" and links is None):
        return [everything] * len(rows)
    fields = Fields(incoming(edge_index, len(call.x), next(iter(seen.flows))), seen.hops, rows, links)
    number = next((i for i, field in enumerate(fields) if len(field) < len(everything)), 0)
    row = torch.tensor([rows[number]], device=everything.device)
    tested = receptive_field(model, call, seen, row, seeds(row, links))
    return fields if len(tested) == len(fields[number]) else [everything] * len(rows)


def graphs_are_apart(model: Any, call: ModelCall, seen: Trace, batch: Tensor) -> bool:
    """Whether no graph of a batch has a say in the prediction of another: other features there change nothing here."""
    graphs = torch.arange(int(batch.max()) + 1, device=batch.device)
    for parity in (0, 1):
        probe = call.x.clone()
        probe[batch % 2 != parity] = 2 * probe[batch % 2 != parity] + 1
        same = graphs[graphs % 2 == parity]
        if len(same) and not same_predictions(seen.output[same], model, call, same, (call.x, probe)):
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
    field = incoming(edge_index, n, next(iter(seen.flows))).ball(seeds, seen.hops).nodes
    if len(field) == n:
        return field
    other = 2 * call.x + 1
    other[::2] *= -1  # smaller here and larger there, so that no maximum or minimum hides the change
    probes = [other] if n - len(field) >= 16 else [other, -other]
    for probe in probes:
        probe[field] = call.x[field]
    same = all(same_predictions(seen.output[rows], model, call, rows, (call.x, probe)) for probe in probes)
    return field if same else everything


def same_predictions(before: Tensor, model: Any, call: ModelCall, there: Tensor, *replaced: tuple[Any, Any]) -> bool:
    """Whether another call gives the same predictions in some rows, up to rounding."""
    try:
        again = run_plain(model, call, *replaced)[there]
    except (RuntimeError, IndexError, ValueError, TypeError, AssertionError):
        return False  # the model is made for the whole graph
    again = again.reshape(before.shape)
    return bool((again - before).abs().max() <= 64 * torch.finfo(before.dtype).eps * before.abs().max())


def _is_inside(value: Any, call: ModelCall) -> bool:
    """Whether a value is an argument itself, not hidden in a Data object."""
    return any(leaf is value for leaf in leaves((call.args, dict(call.kwargs))))
