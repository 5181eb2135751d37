"""A part of the graph as a call of its own, and the test that the rest of the graph does not matter for it."""

import weakref
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ..engine.portions import leaves, mapped
from ..model_call.call import ModelCall
from ..model_call.edges import find_edge_index
from .message_flow import Outline
from .neighbours import Incoming, Sampling


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
        if edge_index is None or not isinstance(call.x, Tensor) or not call.x.is_floating_point():
            return None
        if edge_index.shape[1] == len(call.x) or not _is_inside(edge_index, call):
            return None
        index = seen.incoming(call)
        return None if index is None else cls(call, edge_index, index, seen.hops)

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
        call = assembled(self.call, self.edge_index, cut.nodes, cut.edges, ends, own)
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
        call = assembled(self.call, self.edge_index, nodes, edges, ends, own)
        x = call.x
        high, low = x.amax(0), x.amin(0)
        inner = (cut.distance > self.rounds).nonzero().flatten() + 1
        other = x.clone()
        other[inner] = -2 * x[inner] - 1
        other[0], other[-1] = 2 * high.abs() + 1, -2 * low.abs() - 1
        return replace(call, args=_swapped(call.args, x, other), kwargs=_swapped(dict(call.kwargs), x, other)), there


def assembled(
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


def _is_inside(value: Any, call: ModelCall) -> bool:
    """Whether a value is an argument itself, not hidden in a Data object."""
    return any(leaf is value for leaf in leaves((call.args, dict(call.kwargs))))


_MARGINS: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
"""By how many hops more than it passes messages a model was last cut. It is only tried first, never believed."""


def margins(model: Any, hops: int) -> list[int]:
    """The hops to try."""
    last = _MARGINS.get(model, 0) if isinstance(model, nn.Module) else 0
    return [hops + last, hops + 1 - last]


def remember_margin(model: Any, margin: int) -> None:
    """Try this first next time."""
    if isinstance(model, nn.Module):
        _MARGINS[model] = margin
