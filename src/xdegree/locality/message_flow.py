"""How a model passes messages, seen on a plain forward pass, and which nodes receive messages from which."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from ..engine.torch_private import OpOverload
from ..model_call.call import ModelCall, short
from ..model_call.shadow_model import Plain, Sizes, shadow_of


@dataclass(frozen=True)
class MessageFlow:
    """How a model passes messages."""

    rounds: int
    """How often: an upper bound of the depth of the computation graph."""
    direction: str | None
    """PyG's ``flow``; None if no messages were seen, or some went one way and some the other."""
    output_layer: str
    """Where the last hidden representation can be read, as a probe: the input of the last layer, or its output
    where the last layer passes messages itself."""
    operations: list[OpOverload]
    """All operations of the pass, in order."""
    sizes: Sizes
    """As in `Plain`; of no rows unless they were asked for."""


def watched_pass(model: Any, call: ModelCall, rows: int | None = None) -> tuple[Any, MessageFlow]:
    """One plain forward pass: its output (all parts of it), and how messages were passed on the way."""
    flows: list[str] = []
    layers: list[str] = []
    shadow = shadow_of(model)
    if isinstance(shadow, nn.Module):
        inside: list[str] = []
        for path, module in shadow.named_modules():
            if isinstance(module, MessagePassing):
                module.register_propagate_forward_pre_hook(lambda module, _: flows.append(module.flow))
            layer = isinstance(module, MessagePassing) or next(module.parameters(recurse=False), None) is not None
            if layer and not isinstance(module, torch.jit.ScriptModule):  # which takes no hooks
                _watch(module, path, inside, layers)
    with torch.no_grad(), Plain(call.random_states, rows) as plain:
        output = call.run(shadow)
    direction = flows[0] if len(set(flows)) == 1 else None
    return output, MessageFlow(len(flows), direction, layers[-1] if layers else "", plain.operations, plain.sizes)


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
class Sampling:
    """A limit on the in-neighbors of a node, for hubs: some of them, drawn uniformly."""

    num_neighbors: int
    seed: int


@dataclass(frozen=True)
class Ball:
    """What lies within some hops of some nodes, against the direction of the messages."""

    nodes: Tensor
    """In order."""
    distance: Tensor
    """Of each of them, in hops."""
    edges: Tensor
    """All edges into nodes that are nearer than the last hop, in order."""
    ends: Tensor
    """``[2, edges]``: sender and receiver of each."""


class Incoming:
    """The edges of a graph by the node that they bring messages to."""

    def __init__(self, edge_index: Tensor, num_nodes: int, flow: str) -> None:
        self.end = int(flow == "source_to_target")
        """The row of ``edge_index`` with the nodes that receive the messages."""
        self._sources, self._receivers, self._num_nodes = edge_index[1 - self.end], edge_index[self.end], num_nodes

    # Sorted when they are first asked for: a small graph is looked at as a whole.

    @cached_property
    def order(self) -> Tensor | None:
        """The id of each edge; None where they are sorted already."""
        return torch.argsort(self._receivers, stable=True)

    @cached_property
    def source(self) -> Tensor:
        """The sender of each edge."""
        return self._sources[self.order].long()

    @cached_property
    def start(self) -> Tensor:
        """Where the edges into each node start, and where the last ones end."""
        counts = torch.bincount(self._receivers, minlength=self._num_nodes)
        return torch.cat([counts.new_zeros(1), counts.cumsum(0)])

    @classmethod
    def of_sorted(cls, start: Tensor, source: Tensor, end: int) -> "Incoming":
        """Edges that are sorted already (CSC), wherever they are: only what is asked for is read."""
        found = cls.__new__(cls)
        found.start, found.source, found.end, found.order = start, source, end, None
        return found

    def into(self, nodes: Tensor, sampling: Sampling | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The edges into some nodes, where they come from, and which of the nodes they reach."""
        first = self.start[nodes].long()
        counts = self.start[nodes + 1].long() - first
        which = torch.repeat_interleave(torch.arange(len(nodes), device=nodes.device), counts)
        begin = counts.cumsum(0) - counts
        nth = torch.arange(len(which), device=nodes.device) - begin[which]
        place = first[which] + nth
        if sampling is not None and bool((counts > sampling.num_neighbors).any()):
            # Sorted by a number drawn for each edge, the first of each node are a uniform sample, which depends neither
            # on other nodes nor on the order of the work.
            order = torch.argsort(_drawn(self._ids(place), sampling.seed))
            order = order[torch.argsort(which[order], stable=True)]
            kept = order[nth < sampling.num_neighbors]
            place, which = place[kept], which[kept]
        sources = self.source[place].long()
        if self.order is None and len(sources):  # never looked at as a whole
            low, high, n = int(sources.min()), int(sources.max()), len(self.start) - 1
            if low < 0 or high >= n:
                raise ValueError(f"the edges into nodes {short(nodes.tolist())} come from {low} to {high} of {n} nodes")
        return self._ids(place), sources, nodes[which]

    def _ids(self, place: Tensor) -> Tensor:
        return place if self.order is None else self.order[place]

    def ball(self, seeds: Tensor, hops: int, sampling: Sampling | None = None) -> Ball:
        """Everything within some hops of the seeds."""
        nodes = torch.unique(seeds)
        distance, frontier, found = torch.zeros_like(nodes), nodes, [nodes.new_empty(3, 0)]
        for hop in range(1, hops + 1):
            edges, sources, receivers = self.into(frontier, sampling)
            found.append(torch.stack([edges, sources, receivers]))
            met = torch.unique(sources)
            frontier = met[~is_among(nodes, met)]
            nodes, order = torch.cat([nodes, frontier]).sort()
            distance = torch.cat([distance, torch.full_like(frontier, hop)])[order]
            if not len(frontier):
                break
        edges, order = torch.cat(found, 1)[0].sort()
        return Ball(nodes, distance, edges, torch.cat(found, 1)[1:, order])

    def distances(self, seeds: Tensor, hops: int) -> Tensor:
        """Of all nodes to the nearest seed, against the direction of the messages; one more than ``hops`` beyond."""
        distance = torch.full((self._num_nodes,), hops + 1, device=seeds.device)
        distance[seeds] = 0
        for hop in range(1, hops + 1):
            sources = self._sources[distance[self._receivers] < hop]
            distance[sources[distance[sources] > hop]] = hop
        return distance

    def among(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """All edges between some nodes, which are in order, and their ends as ``edge_index`` has them."""
        edges, sources, receivers = self.into(nodes)
        inside = is_among(nodes, sources).nonzero().flatten()
        edges, order = edges[inside].sort()
        return edges, self.as_given(torch.stack([sources, receivers])[:, inside[order]])

    def as_given(self, ends: Tensor) -> Tensor:
        """Senders and receivers in the order of the rows of ``edge_index``."""
        return ends if self.end == 1 else ends.flip(0)


def is_among(known: Tensor, wanted: Tensor) -> Tensor:
    """Whether values are among sorted ones."""
    if not len(known):
        return torch.zeros_like(wanted, dtype=torch.bool)
    return known[torch.searchsorted(known, wanted).clamp_(max=len(known) - 1)] == wanted


def _drawn(ids: Tensor, seed: int) -> Tensor:
    """A number for each id that looks random, the same wherever it is asked for (the mixing step of splitmix64)."""
    z = ids * -7046029254386353131 + (seed * 2654435769 % 2**62)
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):
        z = (z ^ ((z >> shift) & (2 ** (64 - shift) - 1))) * factor
    return z ^ ((z >> 31) & (2**33 - 1))


class Balls(Sequence[Tensor]):
    """The nodes within reach of each of several rows, found when they are asked for."""

    def __init__(
        self, index: Incoming, rounds: int, rows: list[int], links: Tensor | None, sampling: Sampling | None
    ) -> None:
        self._index, self._rounds, self._rows, self._links, self._sampling = index, rounds, rows, links, sampling

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: Any) -> Any:
        row = self._rows[number]
        nodes = torch.tensor([row], device=self._index.start.device)
        nodes = nodes if self._links is None else self._links[:, row].unique()
        return self._index.ball(nodes, self._rounds, self._sampling).nodes
