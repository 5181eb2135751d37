"""Scores of all nodes, edges or features at once, each a group of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..engine.sparse_rows import Entries, NeedsWhole, TooMuch
from ..locality.parts import Place
from ..model_call.split_points import ArgumentSource, Source
from .scores import EdgeScores, PairScores, Reader


@dataclass(frozen=True)
class ObjectScores:
    """Scores of nodes and edges for every explained row, in the numbering of the whole graph."""

    nodes: Any
    """``[rows, N]``, or a dict of them by type."""
    edges: Any = None
    """``[rows, E]``, or a dict of them by type; None if they were not asked for."""
    classes: Any = None
    """``[rows, N, C]``: of the nodes, for all classes."""
    logits: Tensor | None = None
    """As in `RowScores`."""
    products: frozenset[str] = frozenset()
    """As in `RowScores`."""


def of_dense(scores: ObjectScores) -> PairScores:
    """Those of a table ``[rows, N]`` that are not zero."""
    nodes, classes = scores.nodes, scores.classes
    present = nodes != 0 if classes is None else (nodes != 0) | (classes != 0).any(-1)
    row, node = present.nonzero(as_tuple=True)
    table = None if classes is None else classes[row, node]
    return PairScores(row, node, nodes[row, node], table, scores.logits, scores.products)


def score_objects(reader: Reader, edge_scores: EdgeScores | None, edge_index: Any) -> ObjectScores:
    """Scores of all nodes and, if asked for, of edges by their end points, from one pass."""
    place, source = reader.place, reader.source()
    if edge_scores is not None and edge_index is None:
        raise ValueError(
            "edge_scores are read off the end points of edges, but no edge_index [2, E] is among the model's arguments"
        )
    if isinstance(place.field, Mapping):
        return _score_types(reader, edge_scores, edge_index, source)
    field, pairs, pair_of = place.field, *_pairs(edge_index if edge_scores else None, place.field)
    groups = singles_mask(place, field)
    if edge_scores == "pair" and len(pairs):
        both = torch.zeros(len(pairs), groups.shape[1], dtype=torch.bool, device=groups.device)
        both.scatter_(1, place.here(pairs), True)
        groups = torch.cat([groups, both])
    found = reader.by_row(source, groups)
    scores, table = found.scores, found.classes
    nodes = scores.new_zeros(scores.shape[1], place.num_nodes)
    nodes[:, field] = scores[: len(field)].t()
    classes = None
    if table is not None:
        classes = table.new_zeros(table.shape[1], place.num_nodes, table.shape[2])
        classes[:, field] = table[: len(field)].movedim(0, 1)
    of_edges = _edge_scores(edge_scores, edge_index, nodes, scores[len(field) :], pair_of)
    return ObjectScores(nodes, of_edges, classes, found.logits, found.products)


def singles_mask(place: Place, nodes: Tensor) -> Tensor:
    """Each of some nodes as a group of its own, a mask ``[K, N]`` in the numbering of the place's call."""
    mask = torch.zeros(len(nodes), len(place.call.x), dtype=torch.bool, device=nodes.device)
    mask[torch.arange(len(nodes), device=nodes.device), place.here(nodes)] = True
    return mask


AT_ONCE = 2**24
"""Numbers in the features of one pass of single features, at most."""


def score_entries(reader: Reader, source: Source, among: Tensor) -> Tensor:
    """Scores of single features, ``[rows, *features]``; of the rows in ``among``, of others 0.

    A feature that is 0 has nothing to contribute, so only the others are asked for.
    """
    features: Tensor = source.rows
    inside = torch.zeros(len(features), dtype=torch.bool, device=features.device)
    inside[among] = True
    chosen = (source.path.at(features)[1] != 0) & inside.reshape(-1, *[1] * (features.dim() - 1))
    follows = len(reader.classes) == 1 and source.what == "node" and isinstance(source, ArgumentSource)

    def ask(entries: Entries) -> Tensor:
        nonlocal follows
        if follows:
            try:
                return reader.followed(entries).unsqueeze(1)
            except NeedsWhole:
                follows = False
        return reader.by_row(source, entries).scores

    return _one_by_one(features, chosen, len(reader.classes), ask)


def score_typed_entries(reader: Reader, source: Source) -> dict[Any, Tensor]:
    """The same for several types."""

    def ask(kind: Any) -> Callable[[Entries], Tensor]:
        return lambda entries: reader.by_row(source, {kind: entries.mask(source.rows[kind])}).scores

    return {
        kind: _one_by_one(x, source.path.at(x, kind)[1] != 0, len(reader.classes), ask(kind))
        for kind, x in source.rows.items()
    }


def _one_by_one(features: Tensor, chosen: Tensor, rows: int, ask: Callable[[Entries], Tensor]) -> Tensor:
    """Answers ``[K, rows]`` for every chosen entry as a group of its own, as ``[rows, *features]``; 0 for others."""
    found = features.new_zeros(rows, features.numel())
    entries = chosen.reshape(-1).nonzero().flatten()
    waiting = list(entries.split(max(1, AT_ONCE // max(1, features[:1].numel())))) if len(entries) else []
    while waiting:
        some = waiting.pop()
        try:
            found[:, some] = ask(Entries(some)).t()
        except TooMuch:
            if len(some) == 1:
                raise
            waiting += some.chunk(2)
    return found.reshape(rows, *features.shape)


def score_typed_edges(reader: Reader, source: Source) -> dict[Any, Tensor]:
    """Scores of the messages along single edges of all types, ``[rows, E]`` each."""
    counts = {kind: len(rows) for kind, rows in source.rows.items()}
    groups = [{kind: [edge]} for kind, count in counts.items() for edge in range(count)]
    scores = reader.by_row(source, groups or [{}]).scores.t()[:, : len(groups)]
    return dict(zip(counts, scores.split(list(counts.values()), 1), strict=True))


def score_edges(reader: Reader, source: Source, among: Tensor) -> tuple[Tensor, Tensor | None]:
    """Scores of the messages along single edges, ``[rows, E]``, and for all classes, ``[rows, E, C]``.

    Of the edges in ``among``; of others 0. Readings without classes give None.
    """
    x, rows = reader.place.call.x, len(reader.classes)
    scores = torch.zeros(rows, len(source.rows), dtype=x.dtype, device=x.device)
    if not len(among):
        return scores, None
    found = reader.by_row(source, [[edge] for edge in among.tolist()])
    scores[:, among] = found.scores.t()
    if found.classes is None:
        return scores, None
    classes = scores.new_zeros(*scores.shape, found.classes.shape[-1])
    classes[:, among] = found.classes.movedim(0, 1)
    return scores, classes


def _score_types(reader: Reader, edges: EdgeScores | None, edge_index: Any, source: Source) -> ObjectScores:
    """The same for several types of nodes and edges."""
    field = reader.place.field
    singles = [{kind: [node]} for kind, ids in field.items() for node in ids.tolist()]
    pairs = []
    if edges == "pair":
        pairs = [
            {u: [a, b]} if u == v and a != b else {u: [a]} if u == v else {u: [a], v: [b]}
            for (u, _, v), ends in edge_index.items()
            for a, b in ends.t().tolist()
        ]
    found = reader.by_row(source, singles + pairs)
    scores = found.scores.t()
    sizes = [len(ids) for ids in field.values()]
    nodes = dict(zip(field, scores[:, : len(singles)].split(sizes, 1), strict=True))
    if edges is None:
        return ObjectScores(nodes, logits=found.logits, products=found.products)
    if edges == "mean":
        means = {kind: (nodes[kind[0]][:, e[0]] + nodes[kind[2]][:, e[1]]) / 2 for kind, e in edge_index.items()}
        return ObjectScores(nodes, means, None, found.logits, found.products)
    counts = [e.shape[1] for e in edge_index.values()]
    each = dict(zip(edge_index, scores[:, len(singles) :].split(counts, 1), strict=True))
    return ObjectScores(nodes, each, None, found.logits, found.products)


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
    edges: EdgeScores | None, edge_index: Tensor | None, nodes: Tensor, pairs: Tensor, pair_of: Tensor
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
