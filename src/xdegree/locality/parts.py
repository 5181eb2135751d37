"""A part of a graph as a call of its own, and whether it went through the model as the whole did."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..engine.torch_private import OpOverload
from ..model_call.call import Level, ModelCall, as_table, find_batch, find_edge_index
from ..model_call.shadow_model import Sizes
from .message_flow import MessageFlow, watched_pass
from .stores import StoredCall

ROUNDING = 512
"""Units in the last place by which the output of a part may differ from the model's own."""
FIRST = 8
"""Edges that show what a model does."""


@dataclass(frozen=True)
class Place:
    """Where explained rows are computed: the user's own call, or a part of its graph as a call of its own."""

    call: ModelCall
    rows: Tensor
    """The explained rows of this call's output."""
    output: Tensor | None
    """``[rows, C]``: what this call gives for them, without portions."""
    scope: str
    """What was worked on and whether it was checked, for the user."""
    field: Any
    """The nodes that can contribute, by their own ids; a dict by type where there are several."""
    num_nodes: int
    """Of the whole graph."""
    nodes: Tensor | None = None
    """The nodes of the part by their own ids; None for the user's own call."""
    edges: Tensor | None = None
    """The edges of the part by their own ids; None for the user's own call."""
    distance: Tensor | None = None
    """Of each node of the call, in hops from what is explained; None where messages cannot be followed."""
    rounds: int = 0
    """How often messages are passed."""

    def here(self, ids: Tensor) -> Tensor:
        """Nodes as this call numbers them."""
        return ids if self.nodes is None else torch.searchsorted(self.nodes, ids)


@dataclass(frozen=True)
class Seen:
    """What a plain pass gave, and how."""

    call: ModelCall
    output: Any
    operations: list[OpOverload]
    sizes: Sizes

    def table(self, level: Level) -> Tensor | None:
        """The output with a row for each prediction; None if it has another form."""
        try:
            return as_table(self.output, self.call, level).values
        except (TypeError, ValueError):
            return None


def same_sizes(here: Sizes, rows: Tensor, own: Sizes, own_rows: Tensor) -> bool:
    """Whether some rows had the same sizes on the way through two passes, up to the rounding of what came before."""
    both = [number for number in own if number in here]
    if not both:
        return True
    a, b = (torch.stack([t[number][r].double() for number in both]) for t, r in ((here, rows), (own, own_rows)))
    allowed = min(0.05, ROUNDING * max(torch.finfo(own[number].dtype).eps for number in both))
    scale = b.nan_to_num(0.0, 0.0).cummax(0).values
    return bool((((a - b).abs() <= allowed * scale) | (a == b) | (a.isnan() & b.isnan())).all())


def subgraph_call(
    call: ModelCall,
    edge_index: Tensor,
    nodes: Tensor,
    edges: Tensor,
    ends: Tensor,
    links: Tensor | None,
    batch: Tensor | None = None,
) -> ModelCall:
    """The call with some of its nodes and edges; the ends of edges and links, and the batch, as it numbers them.

    What has a row per node or edge is told by its length, where both are the same by its name. A wrong guess gives
    another output, or none, and that is noticed.
    """
    n, e, old_links = len(call.x), edge_index.shape[1], call.get("edge_label_index")
    old_batch = None if batch is None else find_batch(call)

    def part(name: str, value: Any) -> Any:
        if value is edge_index:
            return ends
        if links is not None and value is old_links:
            return links
        if old_batch is not None and value is old_batch:
            return batch
        if name == "num_nodes" and isinstance(value, int):
            return len(nodes)
        if batch is not None and name in ("batch_size", "num_graphs") and isinstance(value, int):
            return max(value, int(batch.max()) + 1 if len(batch) else 0)
        if isinstance(value, Tensor) and value.dim() and value.shape[0] in (n, e):
            of_edges = value.shape[0] == e and (n != e or name.startswith("edge"))
            return call.rows_of(value, edges if of_edges else nodes)
        return value

    return call.mapped(part).of_nodes(nodes)


def of_a_few(call: ModelCall) -> ModelCall:
    """The call on the first few edges and their ends."""
    edge_index = find_edge_index(call)
    if edge_index is None or not edge_index.shape[1] or not isinstance(call.x, Tensor):
        raise ValueError("trust_neighborhood needs node features x and an edge_index [2, E] with at least one edge")
    ends = call.stores.first_edges(FIRST) if isinstance(call, StoredCall) else edge_index[:, :FIRST].contiguous()
    edges, nodes = torch.arange(ends.shape[1], device=edge_index.device), ends.unique()
    return subgraph_call(call, edge_index, nodes, edges, torch.searchsorted(nodes, ends), None)


def flow_of_a_few(model: Any, call: ModelCall) -> MessageFlow:
    """How messages are passed, from a pass on a handful of nodes."""
    few = of_a_few(call)
    output, flow = watched_pass(model, few)
    if not isinstance(output, Tensor) or not output.dim() or len(output) != len(few.x) or flow.direction is None:
        raise ValueError(
            "trust_neighborhood is for models that predict nodes by passing messages along edge_index; this one"
            " gives something else on a neighborhood"
        )
    return flow
