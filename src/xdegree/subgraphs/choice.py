"""What may be chosen for which prediction: nodes or edges, by the ids that the user knows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.utils import is_undirected

from ..attribution.decompose import path_of
from ..attribution.phantoms import warn_of_infinite
from ..attribution.scores import Question, Reader, Reading, chosen_classes
from ..engine.options import Options
from ..engine.process_state import Memory
from ..locality.parts import Place, subgraph_call
from ..locality.prepared import PreparedCall, agree
from ..model_call.call import Level, as_table, check_index, find_batch, find_edge_index, short
from ..model_call.shadow_model import run_plain
from ..model_call.split_points import TRIVIAL, mean_features
from ..removal import Removal, Task
from ..results.subgraph import Chosen, Overlap
from .adjacency import Adjacency, Bits
from .contextual import edges_inside, listed
from .games import Units


@dataclass(frozen=True)
class Choice:
    """What a choice is made among, for which row of which call."""

    prepared: PreparedCall
    question: Question
    place: Place
    level: Level
    index: int
    target: int
    units: Units

    @classmethod
    def of(
        cls,
        prepared: PreparedCall,
        of: Chosen,
        index: Any,
        target: Any,
        reading: Reading,
        layer: str | None,
        options: Options | None,
        memory: Memory,
        baseline: Any,
        steps: int,
        directed: bool | None,
    ) -> "Choice":
        """Everything is checked before any work."""
        call = prepared.whole_call  # of which what is removed is replaced by the mean
        if not isinstance(call.x, Tensor):
            raise NotImplementedError(
                "subgraphs are picked in a graph with one type of nodes; with several use decompose with groups by type"
            )
        if of == "edge" and find_edge_index(call) is None:
            raise ValueError('of="edge" needs an edge_index [2, E] among the model\'s arguments')
        path = path_of(prepared, baseline, steps) if of == "node" else TRIVIAL
        if of == "edge" and (steps != 1 or not isinstance(baseline, str) or baseline != "zero"):
            raise ValueError("baseline and steps are for features of nodes, not for messages along edges")
        question = Question(target, reading, of=of, layer=layer, options=Options.of(options), memory=memory, path=path)
        table = prepared.table(None)
        index = check_index(index, table)
        place = _one_graph(prepared, index, table.level)
        predictions = table.values[[index]] if place.output is None else place.output
        warn_of_infinite(predictions[0], f"the model's output for row {index}")
        [chosen] = chosen_classes([target], predictions)
        units = Units.nodes(place) if of == "node" else _edges(place, directed)
        if not units.count:
            raise ValueError(f"no {of} can contribute to this prediction")
        return cls(prepared, question, place, table.level, index, chosen, units)

    def removal(self, task: Task | None) -> Removal:
        """Predictions without a part; a single output is taken for a logit if nothing is said of it."""
        place = self.place
        if task is None and place.output is not None:
            task = "classification" if place.output.shape[1] > 1 else "binary"
        mean = None if self.level == "graph" else mean_features(self.prepared.call.x)
        return Removal.at(self.prepared.model, place, self.target, task, self.level, mean)

    @property
    def reader(self) -> Reader:
        """Of the user's reading and options."""
        return self.question.reader(self.prepared, self.place, [self.target], self.level)

    def by(self, options: Options) -> Reader:
        """Of contributions by other rules."""
        plain = Question(self.target, of=self.question.of, options=options, memory=self.question.memory)
        return plain.reader(self.prepared, self.place, [self.target], self.level)

    def around(self, graph: Tensor | None, needed: bool) -> Callable[[Bits], Bits] | None:
        """Which units touch a group from outside; None where there are no edges, if they are not needed."""
        if self.units.of == "edge":
            return self.units.around
        if not needed and graph is None and find_edge_index(self.prepared.call) is None:
            return None
        return Adjacency(edges_inside(graph, self.prepared, self.place.field), self.units.count).around

    def nodes_of(self, group: Bits) -> frozenset[int]:
        """The nodes of a choice, or those that it touches, by the ids that the user knows."""
        nodes = self.units.ends[:, self.units.rows([group])[0]].unique()
        return frozenset((nodes if self.place.nodes is None else self.place.nodes[nodes]).tolist())

    def edges_of(self, group: Bits) -> frozenset[int]:
        """The edges of a choice, or those between its nodes, by the ids that the user knows."""
        ends, rows = find_edge_index(self.place.call), self.units.rows([group])[0]
        if ends is None:
            return frozenset()
        inside = rows if self.units.of == "edge" else rows[ends[0]] & rows[ends[1]]
        edges = inside.nonzero().flatten()
        return frozenset((edges if self.place.edges is None else self.place.edges[edges]).tolist())

    def bits(self, ids: Any, what: str) -> Bits:
        """A set of the user's ids, without those that cannot contribute."""
        of, known = self.units.of, listed(ids, what)
        edges = find_edge_index(self.prepared.call)
        count = self.place.num_nodes if of == "node" or edges is None else edges.shape[1]
        if outside := [one for one in known if not 0 <= one < count]:
            raise ValueError(f"{what} names {of}s {short(outside)}, but ids go from 0 to {count - 1}")
        own = self.place.nodes if of == "node" else self.place.edges
        wanted = torch.tensor(sorted(set(known)), dtype=torch.long, device=self.units.of_row.device)
        if own is None:
            return self.units.of_rows(wanted)
        there = torch.searchsorted(own, wanted).clamp(max=len(own) - 1)
        return self.units.of_rows(there[own[there] == wanted])

    def overlap(self, best: Bits, truth: Any) -> Overlap:
        """With a known motif, of which only what can be chosen counts."""
        marked = isinstance(truth, Tensor) and truth.dtype == torch.bool
        motif = self.bits(truth.nonzero() if marked else truth, "truth")
        both = (best & motif).bit_count()
        recall = both / motif.bit_count() if motif else 0.0
        return Overlap(both / best.bit_count(), recall, motif.bit_count() / self.units.count)


def _one_graph(prepared: PreparedCall, index: int, level: Level) -> Place:
    """The part of the call that the prediction needs; of a batch only the explained graph, if that gives the same."""
    rows = torch.tensor([index], device=prepared.call.x.device)
    place = prepared.proven_place(rows, level, induced=True)
    batch, ends = find_batch(place.call), find_edge_index(place.call)
    if level != "graph" or batch is None or ends is None or len(place.field) == place.num_nodes:
        return place
    edges = torch.isin(ends, place.field).all(0).nonzero().flatten()
    here = torch.searchsorted(place.field, ends[:, edges])
    alone = subgraph_call(place.call, ends, place.field, edges, here, None, torch.zeros_like(place.field))
    try:
        values = as_table(run_plain(prepared.model, alone), alone, level).values
    except (RuntimeError, IndexError, ValueError):  # it was given something about all graphs
        return place
    assert place.output is not None
    if not agree(values, place.output):
        return place
    first = torch.zeros_like(rows)
    return replace(place, call=alone, rows=first, output=values, nodes=place.field, edges=edges)


def _edges(place: Place, directed: bool | None) -> Units:
    """The edges that can be chosen: one by one if the user says so, or if some have no reverse of the same features."""
    ends, call = find_edge_index(place.call), place.call
    assert ends is not None
    if directed is None:
        found = [call.get(name) for name in ("edge_attr", "edge_weight")]
        features = [value for value in found if isinstance(value, Tensor) and len(value) == ends.shape[1]]
        directed = not is_undirected(ends, features, num_nodes=len(call.x))
    return Units.edges(ends, place.here(place.field), directed)
