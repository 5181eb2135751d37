"""A call of a model with its plain forward pass: which part of the graph an answer needs, and the proof of it.

The part is cut out first and becomes a call of its own. Its output for the explained rows is compared with the model's
own; where the two differ, or other operations ran, the model looks at more than the messages that reach a row, and the
whole call is used.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Union

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from ..engine.portions import leaves
from ..engine.sparse_rows import TooMuch
from ..model_call.call import (
    Level,
    ModelCall,
    Table,
    as_table,
    find_batch,
    find_edge_index,
    find_edges,
    is_stores,
    model_call,
    only_part,
)
from ..model_call.callables import as_module
from ..model_call.shadow_model import Plain, Sizes, check_call, shadow_of
from ..model_call.split_points import Of, Source, find_source, located
from .contents import checksum, contents, edge_marks
from .message_flow import Incoming, MessageFlow, Sampling, watched_pass
from .parts import ROUNDING, Place, Seen, flow_of_a_few, of_a_few, same_sizes, subgraph_call
from .stores import EdgesAmong, StoredCall

SMALL = 2**13
"""Nodes and edges up to which nothing is cut out: that would cost more than it saves."""
MOST = 1 / 2
"""The share of all nodes above which a part saves nothing."""

WHOLE = "whole graph"
BEYOND = "whole graph: the model looks beyond the neighborhood"
VERIFIED = "neighborhood, verified"
UNVERIFIED = "neighborhood, not verified"
SAMPLED = "sampled neighborhood"


Model = Union[Callable[..., Any], "PreparedCall"]
"""What may stand in the place of a model: itself, or what was prepared with its arguments."""


class StaleError(RuntimeError):
    """The model, the features or the edges changed after they were prepared."""


class PreparedCall:
    """A call of a model, its plain forward pass, and the index of its edges.

    Args:
        model: the user's model.
        call: its arguments.
        trust: do without the pass over the whole graph; neighborhoods are then not verified.
    """

    def __init__(self, model: Any, call: ModelCall, trust: bool = False) -> None:
        check_call(model, call)
        self.model, self.call, self.trust = model, call, trust or isinstance(call, StoredCall)
        self.margin = int(_divides_by_degrees(model))
        """Hops that a cut needs beyond the rounds of messages: 1 where layers look at the degrees of neighbors."""
        self._marks: dict[str, Any] | None = None
        self._sources: dict[Of, Source] = {}

    @classmethod
    def of(
        cls, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], trust: bool = False, start: Any = None
    ) -> "PreparedCall":
        """The user's model and its arguments; or, in the place of the model, what was prepared before."""
        if not isinstance(model, PreparedCall):
            stored = bool(args) and is_stores(args[0])
            call = StoredCall.of(model, args[0], args[1:], kwargs) if stored else model_call(model, args, kwargs)
            module = model if isinstance(model, nn.Module) else as_module(model)
            return cls(module, call, trust).from_start(start)
        if args or kwargs:
            raise TypeError(
                "the model's arguments were given to prepare() already"
                f" (got {len(args)} more and {sorted(kwargs)}); prepare another call for other arguments"
            )
        return model if start is None else model.from_start(start)

    def from_start(self, start: Any) -> "PreparedCall":
        """The same with the rows of nodes where ``start`` says, or in the only place where they can be."""
        if isinstance(self.call, StoredCall):
            if start is None:
                return self
            raise TypeError("start is for graphs in memory; of a graph in stores, features x are explained")
        call = located(self.model, replace(self.call, spots=None), start)
        if call.spots is None and self.call.spots is None:
            return self
        other = copy(self)
        other.call, other._sources = call, {}
        other.__dict__.pop("incoming", None)  # it knows the number of nodes
        return other

    @cached_property
    def sample(self) -> ModelCall:
        """A call that can be run to see what the model does: of a graph in stores a handful of nodes."""
        return of_a_few(self.call) if isinstance(self.call, StoredCall) else self.call

    @property
    def whole_call(self) -> ModelCall:
        """The call, for questions about the whole graph; an error if that is in stores."""
        if isinstance(self.call, StoredCall):
            raise TypeError(StoredCall.REFUSAL)
        return self.call

    @cached_property
    def _pass(self) -> tuple[Any, MessageFlow]:
        """The plain forward pass, made when it is first needed; on trust, one over a handful of nodes."""
        if self.trust:
            return None, flow_of_a_few(self.model, self.call)
        rows = None if self._is_small or not isinstance(self.call.x, Tensor) else len(self.call.x)
        return watched_pass(self.model, replace(self.call, part=None), rows)

    @property
    def output(self) -> Any:
        """All that the model returned; None on trust."""
        return self._pass[0]

    @property
    def flow(self) -> MessageFlow:
        """How messages were passed on the way."""
        return self._pass[1]

    @cached_property
    def _sizes(self) -> Sizes:
        """Of all rows on the way; in a small graph they are seldom needed, and then cost a pass of their own."""
        if not self._is_small:
            return self.flow.sizes
        seen = self._seen(self.call)
        return {} if seen is None else seen.sizes

    def source(self, of: Of = "node") -> Source:
        """Where portions start; features are checked once."""
        if of not in self._sources:
            self._sources[of] = find_source(self.sample, of)
        return self._sources[of]

    def of_part(self, part: Any) -> "PreparedCall":
        """The same for another part of the output; by default for the only one that can be explained."""
        if part is None and not self.trust:
            part = only_part(self.output)
        if part == self.call.part:
            return self
        other = copy(self)
        other.call = self.call.of_part(part)
        return other

    def table(self, level: Level | None) -> Table:
        """The model's own output, with a row for each prediction."""
        if self.output is not None:
            return as_table(self.call.picked(self.output), self.call, level)
        if level not in (None, "node"):
            raise ValueError(f"on trust, or from stores, single nodes are explained (got level={level!r})")
        rows = self.call.x.new_zeros(1, 1, dtype=torch.get_default_dtype()).expand(len(self.call.x), 1)
        return as_table(rows, self.call, "node")

    @cached_property
    def incoming(self) -> Incoming | None:
        """Who receives messages from whom; None where edges are unknown, or messages go in no or both directions."""
        edges, x = find_edge_index(self.call), self.call.x
        if edges is None or self.flow.direction is None or not isinstance(x, Tensor) or self.call.is_stack:
            return None
        if isinstance(self.call, StoredCall):
            return self.call.stores.incoming(self.flow.direction)
        if edges.numel() and not (0 <= int(edges.min()) and int(edges.max()) < len(x)):
            return None
        return Incoming(edges, len(x), self.flow.direction)

    def edges_among(self, fields: Sequence[Tensor]) -> Any:
        """The edges that results show: all of them; of a graph in stores those between the nodes of each field."""
        if not isinstance(self.call, StoredCall):
            return find_edges(self.call)
        assert self.incoming is not None
        return EdgesAmong(self.incoming, fields)

    # Where rows are computed.

    def place(
        self,
        rows: Tensor,
        level: Level,
        sampling: Sampling | None = None,
        limit: float | None = None,
        dense: bool = False,
        induced: bool = False,
    ) -> Place:
        """The call that some rows are computed by: their neighborhood if that gives the model's own output.

        Args:
            rows: of the model's output.
            level: what the rows are.
            sampling: of the neighbors of hubs.
            limit: in bytes; a part that is too large for several rows at once is refused by `TooMuch`.
            dense: whether the work grows with all nodes of the part, so that even little is worth cutting off.
            induced: whether the part has all edges between its nodes, also those whose messages arrive too late.
        """
        self.check_unchanged()
        seeds = self._seeds(rows, level)
        if seeds is None:
            return self._all(rows, level)
        if sampling is not None or self.trust:
            return self._on_trust(rows, seeds, level, sampling, limit, induced)
        if self._is_small and not dense:
            return self._followed(rows, seeds, level, WHOLE)
        own, most = self._own(rows, level), len(self.call.x) - 1 if dense else MOST * len(self.call.x)
        for margin in (self.margin, 1 - self.margin):
            part = self._part(rows, seeds, level, margin, None, limit, induced)
            if len(part.call.x) > most:
                return self._followed(rows, seeds, level, WHOLE)
            output = self._proven_output(part, level, own, seeds)
            if output is not None:
                self.margin = margin
                return replace(part, output=output, scope=VERIFIED)
        self._refuse_if_changed()
        return self._followed(rows, seeds, level, BEYOND)

    def proven_place(self, rows: Tensor, level: Level, induced: bool = False) -> Place:
        """The same for passes that do not follow messages: the nodes that are left out are shown not to contribute.

        Features that must not matter become NaN, which no arithmetic forgets: if the predictions stay, there is no way
        from these features to them.
        """
        place = self.place(rows, level, dense=True, induced=induced)
        if self.trust or not isinstance(place.field, Tensor):
            return place
        if place.nodes is not None and not self._holds_in_general(place, rows, level):
            return self._all(rows, level, BEYOND)
        if len(place.field) == place.num_nodes or self.is_closed(place.field, rows, level):
            return place
        return self._all(rows, level, BEYOND)

    def _holds_in_general(self, part: Place, rows: Tensor, level: Level) -> bool:
        """Whether a part gives the model's output for other features too: where many are equal, it may by chance."""
        x, seeds = self.call.x, self._seeds(rows, level)
        noise = torch.rand(x.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(x)
        other = x * (1 + noise) + noise
        whole, alone = self._seen(self.call, (x, other)), self._seen(part.call, (part.call.x, other[part.nodes]))
        if whole is None or alone is None or seeds is None:
            return False
        own, here = whole.table(level), alone.table(level)
        same = own is not None and here is not None and agree(here[part.rows], own[rows])
        return same and same_sizes(alone.sizes, part.here(seeds), whole.sizes, seeds)

    def is_closed(self, field: Tensor, rows: Tensor, level: Level) -> bool:
        """Whether no other nodes than these affect some rows of the output."""
        x = self.call.x
        if not isinstance(x, Tensor) or not x.is_floating_point():
            return False
        poisoned = torch.full_like(x, torch.nan)
        poisoned[field] = x[field]
        seen = self._seen(self.call, (x, poisoned))
        values = None if seen is None else seen.table(level)
        return values is not None and agree(values[rows], self._own(rows, level))

    def _seeds(self, rows: Tensor, level: Level) -> Tensor | None:
        """The nodes that some rows are about: themselves, or the ends of links; None where messages do not tell."""
        if level == "graph" or self.incoming is None:
            return None
        links = self.call.get("edge_label_index") if level == "link" else None
        if level == "link":
            return None if links is None else links[:, rows].flatten().unique()
        return rows

    @property
    def _is_small(self) -> bool:
        edges = find_edge_index(self.call)
        return len(self.call.x) + (0 if edges is None else edges.shape[1]) <= SMALL

    def _own(self, rows: Tensor, level: Level) -> Tensor:
        return self.table(level).values[rows]

    def _all(self, rows: Tensor, level: Level, scope: str = WHOLE) -> Place:
        """The user's own call; of a batch of graphs only the nodes of the explained ones, if they are enough."""
        x = self.call.x
        if not isinstance(x, Tensor):
            kinds = {kind: torch.arange(len(value), device=value.device) for kind, value in x.items()}
            return Place(self.call, rows, self._own(rows, level), scope, kinds, sum(map(len, kinds.values())))
        batch = find_batch(self.call) if level == "graph" and scope is WHOLE else None
        if batch is None:
            field = torch.arange(len(x), device=x.device)
        else:
            field = torch.isin(batch, rows.to(batch.device)).nonzero().flatten()
        return Place(self.call, rows, self._own(rows, level), scope, field, len(x))

    def _followed(self, rows: Tensor, seeds: Tensor, level: Level, scope: str) -> Place:
        """The user's own call, with the distance of each node."""
        assert self.incoming is not None
        if not self._is_small:
            self._refuse_if_changed()
        rounds, output = self.flow.rounds, self._own(rows, level)
        distance = self.incoming.distances(seeds, rounds)
        near = (distance <= rounds).nonzero().flatten()
        return Place(self.call, rows, output, scope, near, len(distance), distance=distance, rounds=rounds)

    def _part(
        self,
        rows: Tensor,
        seeds: Tensor,
        level: Level,
        margin: int,
        sampling: Sampling | None,
        limit: float | None,
        induced: bool = False,
    ) -> Place:
        """The edges along which messages arrive in time, and the nodes that they connect, as a call of their own."""
        assert self.incoming is not None
        edge_index, rounds = find_edge_index(self.call), self.flow.rounds
        assert edge_index is not None
        ball = self.incoming.ball(seeds, rounds + margin, sampling)
        edges, ends = ball.edges, self.incoming.as_given(ball.ends)
        kept = self._marks is not None and not isinstance(self.call, StoredCall)
        if kept and not torch.equal(edge_index[:, edges].long(), ends):
            self._refuse_if_changed()
        if induced:
            edges, ends = self.incoming.among(ball.nodes)
        ends = torch.searchsorted(ball.nodes, ends)
        links = self.call.get("edge_label_index") if level == "link" else None
        own = None if links is None else torch.searchsorted(ball.nodes, links[:, rows])
        call = subgraph_call(self.call, edge_index, ball.nodes, edges, ends, own)
        if limit is not None and len(rows) > 1 and (wanted := call.plain_size(self.model)) > limit:
            raise TooMuch(wanted / limit)
        there = torch.searchsorted(ball.nodes, rows) if links is None else torch.arange(len(rows), device=rows.device)
        field = ball.nodes[ball.distance <= rounds]
        scope = UNVERIFIED if sampling is None else SAMPLED
        n = len(self.call.x)
        return Place(call, there, None, scope, field, n, ball.nodes, edges, ball.distance, rounds)

    def _on_trust(
        self,
        rows: Tensor,
        seeds: Tensor,
        level: Level,
        sampling: Sampling | None,
        limit: float | None,
        induced: bool = False,
    ) -> Place:
        """A neighborhood that is not compared with the model: with one hop more only if that changes the output.

        Whether it does, a few of the rows tell: one hop more may be ten times as much to read and to compute.
        """

        def tried(rows: Tensor, seeds: Tensor | None, margin: int) -> tuple[Place, Tensor | None]:
            assert seeds is not None
            part = self._part(rows, seeds, level, margin, sampling, limit, induced)
            return part, self._output_of(part, level)

        if self.margin == 0:
            few = rows[:FEW]
            outputs = [tried(few, self._seeds(few, level), margin)[1] for margin in (0, 1)]
            if outputs[0] is None or outputs[1] is None or not agree(outputs[0], outputs[1]):
                self.margin = 1
        part, output = tried(rows, seeds, self.margin)
        if output is None:
            raise ValueError(
                "the model cannot be run on a neighborhood alone, so it cannot be taken on trust or sampled: explain it"
                " on the whole graph"
            )
        return replace(part, output=output)

    def _output_of(self, part: Place, level: Level) -> Tensor | None:
        """The explained rows of a part's own output; None if the model does not run on it."""
        seen = self._seen(part.call)
        values = None if seen is None else seen.table(level)
        return None if values is None else values[part.rows]

    def _proven_output(self, part: Place, level: Level, own: Tensor, seeds: Tensor) -> Tensor | None:
        """The same; None also if it is not the model's own output, or was not computed in the same way."""
        seen = self._seen(part.call)
        values = None if seen is None or seen.operations != self.flow.operations else seen.table(level)
        if seen is None or values is None or not agree(values[part.rows], own):
            return None
        return values[part.rows] if same_sizes(seen.sizes, part.here(seeds), self._sizes, seeds) else None

    def _seen(self, call: ModelCall, *replaced: tuple[Any, Any]) -> Seen | None:
        """A plain pass; None if it fails: a model that is made for the whole graph may do so in any way."""
        try:
            with torch.no_grad(), Plain(call.random_states, len(call.x)) as plain:
                output = call.run(shadow_of(self.model), *replaced)
        except Exception:  # noqa: BLE001
            return None
        return Seen(call, output, plain.operations, plain.sizes)

    # Whether what was prepared is still what it was.

    def remember(self) -> None:
        """Note what the model, the features and the edges are, for an object that is asked several times."""
        self._marks = {name: checksum(value) for name, value in contents(self.model, self.call)}
        self._seen_edges = edge_marks(self.call, self.incoming)

    def check_unchanged(self) -> None:
        """Raise if the edges are no longer those of the index, however they were written to."""
        if self._marks is not None and not torch.equal(edge_marks(self.call, self.incoming), self._seen_edges):
            self._refuse_if_changed()

    def confirm(self, place: Place, output: Tensor) -> None:
        """Raise if a pass over portions gave another output than the plain one: something was changed in between."""
        if place.output is not None and not agree(output, place.output) and place.output.isfinite().all():
            self._refuse_if_changed()
            raise StaleError(
                "the model gives another output each time it is called on the same arguments; make it deterministic"
                " (is a random number drawn outside of PyTorch, or an attribute changed?) and explain it again"
            )

    def confirm_output(self, output: Any) -> None:
        """The same for all rows of all parts."""
        parts = zip(leaves(output), leaves(self.output), strict=False)
        if not all(torch.equal(a, b) for a, b in parts if isinstance(a, Tensor) and isinstance(b, Tensor)):
            self._refuse_if_changed()

    def _refuse_if_changed(self) -> None:
        if self._marks is None:
            return
        changed = [name for name, value in contents(self.model, self.call) if self._marks.get(name) != checksum(value)]
        if changed:
            raise StaleError(f"{', '.join(changed[:4])} changed after prepare(); call xdegree.prepare again")


FEW = 8
"""Rows that show whether their neighborhood is large enough."""


def _divides_by_degrees(model: Any) -> bool:
    """Whether layers are likely to, as a GCN: a guess that saves a pass where it is right."""
    layers = (m for m in model.modules() if isinstance(m, MessagePassing)) if isinstance(model, nn.Module) else ()
    return any(getattr(layer, "normalize", False) is True for layer in layers)


def agree(output: Tensor, own: Tensor) -> bool:
    """Whether two outputs are the same up to rounding, row by row."""
    if output.shape != own.shape:
        return False
    allowed = min(0.05, ROUNDING * torch.finfo(own.dtype).eps)
    return bool(((output - own).abs() <= allowed * own.abs().amax(1, keepdim=True)).all())
