"""From portions to scores: the readings, and the groups whose scores make an explanation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from ..engine.options import Options
from ..engine.portions import Portions
from ..engine.sparse_rows import ActiveRows, NeedsWhole, SparseRows, TooMuch
from ..locality.computation_graph import Near
from ..locality.subgraph_call import Workplace
from ..model_call.call import ModelCall
from ..model_call.groups import Singles
from ..model_call.memory import Memory, budget, plain_size
from ..model_call.outputs import Level, as_table
from ..model_call.split_points import Source, find_source
from ..rules.attention import shared_softmax
from .decompose import AtRows, Decomposition, decompose_at, decompose_source

Reading = Literal["contribution", "probability", "strength"]
Edges = Literal["pair", "mean"]


@dataclass(frozen=True)
class PairScores:
    """Scores of single nodes for several explained rows, where they can be other than zero."""

    row: Tensor
    """The number of the explained row of each pair, in order."""
    node: Tensor
    """The node of each pair, in order for each row."""
    scores: Tensor
    classes: Tensor | None
    """``[pairs, C]``: for all classes."""

    @classmethod
    def joined(cls, parts: "list[PairScores]", starts: list[int]) -> "PairScores":
        """Those of some rows behind those of others, which start at these numbers."""
        if len(parts) == 1:
            return parts[0]
        row = torch.cat([part.row + start for part, start in zip(parts, starts, strict=True)])
        classes = [part.classes for part in parts if part.classes is not None]
        return cls(
            row,
            torch.cat([part.node for part in parts]),
            torch.cat([part.scores for part in parts]),
            torch.cat(classes) if classes else None,
        )

    @classmethod
    def of_groups(cls, parts: "list[PairScores]", num_nodes: int) -> "PairScores":
        """Those of some nodes among those of others, for the same rows."""
        if len(parts) == 1:
            return parts[0]
        found = cls.joined(parts, [0] * len(parts))
        order = torch.argsort(found.row * num_nodes + found.node)
        classes = None if found.classes is None else found.classes[order]
        return cls(found.row[order], found.node[order], found.scores[order], classes)

    @classmethod
    def of_dense(cls, nodes: Tensor, classes: Tensor | None) -> "PairScores":
        """Those of a table ``[rows, N]`` that are not zero."""
        present = nodes != 0 if classes is None else (nodes != 0) | (classes != 0).any(-1)
        row, node = present.nonzero(as_tuple=True)
        return cls(row, node, nodes[row, node], None if classes is None else classes[row, node])


@dataclass(frozen=True)
class Reader:
    """How the portions of a prediction become one number per group and explained row."""

    reading: Reading
    rows: Tensor
    """The rows of the output that are explained."""
    classes: Tensor
    """The class of each of these rows."""
    layer: str
    options: Options
    signs: Tensor | None = None
    """−1 for rows where less of the output is more of the class, as for class 0 of a binary model."""
    level: Level | None = None
    """What the rows are, where their number does not tell."""

    def scores(self, model: Any, call: ModelCall, groups: Any, memory: Memory) -> Tensor:
        """One number per group of nodes: the sum over the explained rows."""
        return self.by_row(model, call, find_source(model, call), groups, memory)[0].sum(1)

    def by_row(
        self, model: Any, call: ModelCall, source: Source, groups: Any, memory: Memory
    ) -> tuple[Tensor, Tensor | None]:
        """The scores ``[K, rows]``, and those of all classes ``[K, rows, classes]`` where the reading has classes."""
        probes = [self._layer()] if self.reading == "strength" else []
        d = decompose_source(model, call, source, groups, probes, self.options, memory)
        if self.reading == "strength":
            return self._strength(d, d.probes[probes[0]]), None
        target = self._probability(d) if self.reading == "probability" else d.target
        table = as_table(d.total, call, self.level).of(target)[:, self.rows]
        explained = table[:, torch.arange(len(self.rows)), self.classes]
        return (explained if self.signs is None else explained * self.signs), table

    def of_pairs(self, model: Any, work: Workplace, source: Source, groups: Singles, active: ActiveRows) -> PairScores:
        """The scores of single nodes where they can be other than zero."""
        probe = self._layer() if self.reading == "strength" else ""
        d = decompose_at(model, work.call, source, groups, self.rows, probe, self.options, active)
        return self.read(d, work, groups.nodes)

    def read(self, d: AtRows, work: Workplace, nodes: Tensor) -> PairScores:
        """The scores from the portions of single nodes."""
        pairs = d.target if d.probe is None else d.probe
        if self.reading == "probability":  # of which even those have a share of whom nothing arrives
            if len(self.rows) > 1:
                raise NeedsWhole
            code = torch.arange(pairs.groups, device=pairs.code.device)
            pairs = SparseRows(pairs.groups, 1, code, pairs.at(code))
        row, node = pairs.row, nodes[pairs.group]
        node = node if work.nodes is None else work.nodes[node]
        if self.reading == "strength":
            return PairScores(row, node, pairs.values.abs().flatten(1).sum(1), None)
        total = as_table(d.total, work.call, self.level).values[self.rows][row]
        table = pairs.values.reshape(len(row), total.shape[1])
        if self.reading == "probability":
            table = self._probability(Decomposition(total, table.unsqueeze(0)))[0]
        return PairScores(row, node, table[torch.arange(len(row)), self.classes[row]], table)

    def _layer(self) -> str:
        if not self.layer:
            raise ValueError(
                "the strength reading needs the last hidden representation, but no layer with parameters was called;"
                ' name the module to read with layer="…"'
            )
        return self.layer

    def _probability(self, d: Decomposition) -> Tensor:
        """The paper's softmax rule on the output; for a single output the probability is that of a sigmoid."""
        single = d.total.dim() < 2 or d.total.shape[-1] == 1
        total = d.total.sigmoid() if single else d.total.softmax(-1)
        return shared_softmax(total, Portions(d.total, d.target))

    def _strength(self, d: Decomposition, hidden: Decomposition) -> Tensor:
        """The L1 norm of the target in the last hidden representation, of the rows that are explained.

        Where that has other rows than the output (a layer before the pooling), all of it counts for every row.
        """
        size: Tensor = hidden.target.abs()
        if hidden.total.dim() > 1 and d.total.dim() > 1 and len(hidden.total) == len(d.total):
            return size[:, self.rows].flatten(2).sum(2)
        return size.flatten(1).sum(1, keepdim=True).expand(-1, len(self.rows))


def score_pairs(model: Any, near: Near, reader: Reader, memory: Memory) -> PairScores:
    """Scores of all nodes within reach, from a pass that works on what matters for the explained rows only.

    Raises `NeedsWhole` if the model does not allow that, and `TooMuch` if several rows are too many at once; the
    nodes that contribute to a single row are taken in as many parts as the budget asks for.
    """
    work, source = near.work, find_source(model, near.work.call)
    if work.call.x.dim() < 2:
        raise NeedsWhole
    allowed = budget(memory, work.call.x.device)
    limit = max(
        1, allowed // 8, allowed - 3 * plain_size(model, work.call) // 2
    )  # the model's own values need room too
    every = near.groups
    parts: list[PairScores] = []
    waiting = [every.nodes]
    while waiting:
        nodes = waiting.pop()
        active = ActiveRows(near.distance, near.rounds, limit if len(nodes) > 1 else None)
        try:
            parts.append(reader.of_pairs(model, work, source, Singles(nodes, every.asked), active))
        except TooMuch as error:
            if len(reader.rows) > 1:
                raise
            waiting += nodes.split(max(1, int(len(nodes) / (1.2 * error.factor))))
    return PairScores.of_groups(parts, work.num_nodes)


def check_choices(reading: object, edges: object, memory: Memory) -> None:
    """Refuse unknown names before any work."""
    if reading not in get_args(Reading):
        raise ValueError(f"reading must be one of {get_args(Reading)} (got {reading!r})")
    if edges not in (None, *get_args(Edges)):
        raise ValueError(f"edges must be None or one of {get_args(Edges)} (got {edges!r})")
    if memory is not None:
        budget(memory, torch.device("cpu"))


@dataclass(frozen=True)
class ObjectScores:
    """Scores of nodes and edges for every explained row, in the numbering of the whole graph."""

    nodes: Any
    """``[rows, N]``, or a dict of them by type."""
    edges: Any = None
    """``[rows, E]``, or a dict of them by type; None if they were not asked for."""
    classes: Any = None
    """``[rows, N, C]``: of the nodes, for all classes."""

    def inside(self, fields: Sequence[Tensor]) -> "ObjectScores":
        """Without the shares of nodes outside of a row's own field, which the probability gives to everybody."""
        mask = torch.zeros(self.nodes.shape, dtype=torch.bool, device=self.nodes.device)
        for number, field in enumerate(fields):
            mask[number, field] = True
        classes = None if self.classes is None else self.classes * mask.unsqueeze(2)
        return ObjectScores(self.nodes * mask, self.edges, classes)


def score_objects(
    model: Any,
    work: Workplace,
    reader: Reader,
    memory: Memory,
    edges: Edges | None,
    edge_index: Any,
    start: str | None = None,
) -> ObjectScores:
    """Scores of all nodes and, if asked for, of edges by their end points, from one pass."""
    source = find_source(model, work.call, start=start)
    if edges is not None and edge_index is None:
        raise ValueError(
            "edges are scored by their end points, but no edge_index [2, E] is among the model's arguments"
        )
    if isinstance(work.field, Mapping):
        return _score_types(model, work, reader, memory, edges, edge_index, source)
    field, pairs, pair_of = work.field, *_pairs(edge_index if edges else None, work.field)
    groups = [*work.groups(field.unsqueeze(1)), *(work.groups(pairs) if edges == "pair" else [])]
    scores, table = reader.by_row(model, work.call, source, groups, memory)
    nodes = scores.new_zeros(scores.shape[1], work.num_nodes)
    nodes[:, field] = scores[: len(field)].t()
    classes = None
    if table is not None:
        classes = table.new_zeros(table.shape[1], work.num_nodes, table.shape[2])
        classes[:, field] = table[: len(field)].movedim(0, 1)
    return ObjectScores(nodes, _edge_scores(edges, edge_index, nodes, scores[len(field) :], pair_of), classes)


MASK_ENTRIES = 2**26
"""Truth values in one mask of features, at most."""


def score_entries(model: Any, call: ModelCall, reader: Reader, source: Source, memory: Memory, among: Tensor) -> Tensor:
    """Scores of single features, ``[rows, *features]``; of the rows in ``among``, of others 0.

    A feature that is 0 has nothing to contribute, so only the others are asked for.
    """
    features: Tensor = source.rows
    inside = torch.zeros(len(features), dtype=torch.bool, device=features.device)
    inside[among] = True
    chosen = (features != 0) & inside.reshape(-1, *[1] * (features.dim() - 1))
    return _one_by_one(features, chosen, len(reader.rows), lambda g: reader.by_row(model, call, source, g, memory)[0])


def score_typed_entries(
    model: Any, call: ModelCall, reader: Reader, source: Source, memory: Memory
) -> dict[Any, Tensor]:
    """The same for several types."""

    def ask(kind: Any) -> Callable[[Tensor], Tensor]:
        return lambda groups: reader.by_row(model, call, source, {kind: groups}, memory)[0]

    return {kind: _one_by_one(x, x != 0, len(reader.rows), ask(kind)) for kind, x in source.rows.items()}


def _one_by_one(features: Tensor, chosen: Tensor, rows: int, ask: Callable[[Tensor], Tensor]) -> Tensor:
    """Answers ``[K, rows]`` for every chosen entry as a group of its own, as ``[rows, *features]``; 0 for others."""
    found = features.new_zeros(rows, features.numel())
    entries = chosen.reshape(-1).nonzero().flatten()
    for chunk in entries.split(max(1, MASK_ENTRIES // max(1, features.numel()))) if len(entries) else ():
        mask = torch.zeros(len(chunk), features.numel(), dtype=torch.bool, device=features.device)
        mask[torch.arange(len(chunk)), chunk] = True
        found[:, chunk] = ask(mask.reshape(len(chunk), *features.shape)).t()
    return found.reshape(rows, *features.shape)


def score_typed_edges(model: Any, call: ModelCall, reader: Reader, source: Source, memory: Memory) -> dict[Any, Tensor]:
    """Scores of the messages along single edges of all types, ``[rows, E]`` each."""
    counts = {kind: len(rows) for kind, rows in source.rows.items()}
    groups = [{kind: [edge]} for kind, count in counts.items() for edge in range(count)]
    scores = reader.by_row(model, call, source, groups or [{}], memory)[0].t()[:, : len(groups)]
    return dict(zip(counts, scores.split(list(counts.values()), 1), strict=True))


def score_edges(model: Any, call: ModelCall, reader: Reader, source: Source, memory: Memory, among: Tensor) -> Tensor:
    """Scores of the messages along single edges, ``[rows, E]``; of the edges in ``among``, of others 0."""
    found = torch.zeros(len(reader.rows), len(source.rows), dtype=call.x.dtype, device=call.x.device)
    if len(among):
        groups = [[edge] for edge in among.tolist()]
        found[:, among] = reader.by_row(model, call, source, groups, memory)[0].t()
    return found


def _score_types(
    model: Any, work: Workplace, reader: Reader, memory: Memory, edges: Edges | None, edge_index: Any, source: Source
) -> ObjectScores:
    """The same for several types of nodes and edges."""
    singles = [{kind: [node]} for kind, ids in work.field.items() for node in ids.tolist()]
    pairs = []
    if edges == "pair":
        pairs = [
            {u: [a, b]} if u == v and a != b else {u: [a]} if u == v else {u: [a], v: [b]}
            for (u, _, v), ends in edge_index.items()
            for a, b in ends.t().tolist()
        ]
    scores = reader.by_row(model, work.call, source, singles + pairs, memory)[0].t()
    sizes = [len(ids) for ids in work.field.values()]
    nodes = dict(zip(work.field, scores[:, : len(singles)].split(sizes, 1), strict=True))
    if edges is None:
        return ObjectScores(nodes)
    if edges == "mean":
        means = {kind: (nodes[kind[0]][:, e[0]] + nodes[kind[2]][:, e[1]]) / 2 for kind, e in edge_index.items()}
        return ObjectScores(nodes, means)
    counts = [e.shape[1] for e in edge_index.values()]
    return ObjectScores(nodes, dict(zip(edge_index, scores[:, len(singles) :].split(counts, 1), strict=True)))


def _pairs(edge_index: Tensor | None, field: Tensor) -> tuple[Tensor, Tensor]:
    """The end points of all edges inside the field, each pair once, and which pair an edge belongs to (−1: none)."""
    if edge_index is None:
        return field.new_empty(0, 2), field.new_empty(0)
    inside = torch.isin(edge_index, field).all(0)
    ends = edge_index[:, inside].sort(0).values.t()
    pairs, which = ends.unique(dim=0, return_inverse=True)
    pair_of = edge_index.new_full((edge_index.shape[1],), -1)
    pair_of[inside] = which
    return pairs, pair_of


def _edge_scores(
    edges: Edges | None, edge_index: Tensor | None, nodes: Tensor, pairs: Tensor, pair_of: Tensor
) -> Tensor | None:
    if edges is None or edge_index is None:
        return None
    inside = pair_of >= 0
    scores = nodes.new_zeros(len(nodes), edge_index.shape[1])
    if edges == "pair":
        scores[:, inside] = pairs.t()[:, pair_of[inside]]
    else:
        scores[:, inside] = nodes[:, edge_index[:, inside]].mean(1)
    return scores
