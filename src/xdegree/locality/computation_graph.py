"""The part of the graph that a node's prediction is computed from, found by following the message passing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..model_call.call import ModelCall
from ..model_call.edges import find_edge_index
from ..model_call.groups import Singles
from ..model_call.outputs import Level, as_table, find_batch
from ..model_call.shadow_model import run_plain
from .message_flow import Outline, Trace, trace
from .neighbours import Incoming, Sampling
from .subgraph_call import Cutter, Workplace, assembled, margins, remember_margin


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
    links = _links(call, level)
    if level == "edge" and links is None:
        return Workplace(call, rows, torch.arange(n, device=call.x.device), n)
    cut = _cut(model, call, seen, rows, links)
    if cut is not None:
        return cut
    return Workplace(call, rows, receptive_field(model, call, seen, rows, seeds(rows, links)), n)


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

    Whether messages tell the whole truth is not put to the test here: who works with a active finds out.
    """
    links = _links(call, level)
    if level == "graph" or (level == "edge" and links is None):
        return None
    if not isinstance(call.x, Tensor) or not call.x.is_floating_point():
        return None
    index, n = seen.incoming(call), len(call.x)
    if index is None:
        return None
    ball = index.ball(seeds(rows, links), seen.hops)
    distance = torch.full((n,), seen.hops + 1, device=rows.device)
    distance[ball.nodes] = ball.distance
    return Near(Workplace(call, rows, ball.nodes, n), distance, seen.hops)


def near_cut(
    model: Any, cutter: Cutter, rows: Tensor, sampling: Sampling | None, admit: Callable[[ModelCall], None]
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


def _links(call: ModelCall, level: Level) -> Tensor | None:
    """The links whose rows are explained, ``[2, L]``, if that is what they are."""
    return call.get("edge_label_index") if level == "edge" else None


def seeds(rows: Tensor, links: Tensor | None) -> Tensor:
    """The nodes that some rows of the output are about: themselves, or the end points of links."""
    return rows if links is None else links[:, rows].flatten().unique()


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
    index = seen.incoming(call)
    assert index is not None
    return Fields(index, seen.hops, rows, _links(call, level))


def tiny_outline(model: Any, call: ModelCall) -> Outline | None:
    """How a model passes messages, from a pass on a handful of nodes; None unless it predicts nodes."""
    edge_index, n = find_edge_index(call), len(call.x)
    if edge_index is None or not edge_index.shape[1]:
        return None
    edges = torch.arange(min(8, edge_index.shape[1]), device=edge_index.device)
    nodes = edge_index[:, edges].unique()
    ends = torch.searchsorted(nodes, edge_index[:, edges])
    seen = trace(model, assembled(call, edge_index, nodes, edges, ends))
    of_nodes = isinstance(seen.output, Tensor) and seen.output.dim() > 0 and len(seen.output) == len(nodes) < n
    return seen if of_nodes and len(seen.flows) == 1 else None


def fields_of_rows(model: Any, call: ModelCall, seen: Trace, rows: list[int], level: Level) -> Sequence[Tensor]:
    """The nodes that can contribute to each of several rows.

    That messages tell the whole truth is put to the test for one row that they leave something out of, and taken to
    hold for all.
    """
    if level == "graph":
        return [_nodes_of_graphs(call, torch.tensor([row])) for row in rows]
    links, index = _links(call, level), seen.incoming(call)
    everything = torch.arange(len(call.x), device=call.x.device)
    if index is None or (level == "edge" and links is None):
        return [everything] * len(rows)
    fields = Fields(index, seen.hops, rows, links)
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
    n = len(call.x)
    everything = torch.arange(n, device=call.x.device)
    index = seen.incoming(call) if call.x.is_floating_point() else None
    if index is None:
        return everything
    field = index.ball(seeds, seen.hops).nodes
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
