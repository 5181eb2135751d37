"""From portions to scores: what is asked, the readings, and the groups whose scores make an explanation."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from ..engine.masked_rows import Masks
from ..engine.options import Options
from ..engine.process_state import Memory, budget
from ..engine.registry import aten, op_schema
from ..engine.sparse_rows import ActiveRows, Entries, NeedsWhole, Singles, SparseRows, TooMuch, coalesced
from ..locality.parts import Place
from ..locality.prepared import PreparedCall
from ..model_call.call import Level, as_table, check_target, plain_number
from ..model_call.split_points import TRIVIAL, Of, Path, Source, find_source
from .decompose import AtRows, decompose_at, decompose_source, one_pass, path_options, source_shares
from .decomposition import Decomposition

Reading = Literal["contribution", "impact", "probability", "strength"]
EdgeScores = Literal["pair", "mean"]
Classes = int | Sequence[int] | Tensor | None
"""The class that is explained: one for all rows, one for each, or None for the predicted ones."""


LAST = 6
"""Operations at the end of a pass among which a last softmax is looked for; a few may move its result."""
LITTLE = 2**28
"""Bytes of a pass, if every group reached every node and edge, that are there on any machine."""


@dataclass(frozen=True)
class Question:
    """The arguments of `explain`, and of functions that grow groups, that are about the answer, not about the model."""

    target: Classes = None
    reading: Reading = "contribution"
    edge_scores: EdgeScores | None = None
    of: Of = "node"
    layer: str | None = None
    options: Options = field(default_factory=Options)
    memory: Memory = None
    logits: bool = True
    """Whether a last softmax or sigmoid is left out: its input is explained."""
    path: Path = TRIVIAL

    def __post_init__(self) -> None:
        """Refuse unknown names before any work."""
        for name, allowed in (("reading", get_args(Reading)), ("edge_scores", (None, *get_args(EdgeScores)))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed} (got {getattr(self, name)!r})")
        if self.memory is not None:
            budget(self.memory, torch.device("cpu"))

    @property
    def is_plain(self) -> bool:
        """Whether single nodes are scored, and nothing else."""
        return self.of == "node" and self.edge_scores is None

    def targets(self, rows: int) -> list[Any]:
        """What the user said of the class of each of the explained rows."""
        target = plain_number(self.target)
        if isinstance(target, str) or not isinstance(target, Iterable):
            return [target] * rows
        each = [plain_number(one) for one in target]
        if len(each) != rows:
            raise ValueError(
                f"target names {len(each)} classes, but {rows} predictions are explained; name one class for all, or a"
                " list with one for each"
            )
        return each

    def reader(self, prepared: PreparedCall, place: Place, classes: list[int], level: Level) -> "Reader":
        """How portions are read at some place."""
        layer = self.layer or prepared.flow.output_layer
        which = torch.tensor(classes, device=place.rows.device)
        path = self.path.of_nodes(place.nodes) if self.of != "edge_feature" else self.path.of_nodes(place.edges)
        options = path_options(self.options, path)
        return Reader(
            prepared, place, self.reading, which, layer, options, self.memory, level, logits=self.logits, path=path
        )


def chosen_classes(targets: Sequence[Any], predictions: Tensor) -> list[int]:
    """The class of each prediction that is explained."""
    return [check_target(target, prediction) for target, prediction in zip(targets, predictions, strict=True)]


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
    logits: Tensor | None = None
    """``[rows, C]``: what is explained, where that is the input of a last softmax or sigmoid."""
    products: frozenset[str] = frozenset()
    """The modules that multiply one portion by another."""

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
            _all_logits(parts) if starts != [0] * len(parts) else parts[0].logits,
            frozenset().union(*(part.products for part in parts)),
        )

    @classmethod
    def of_groups(cls, parts: "list[PairScores]", num_nodes: int) -> "PairScores":
        """Those of some nodes among those of others, for the same rows."""
        if len(parts) == 1:
            return parts[0]
        found = cls.joined(parts, [0] * len(parts))
        order = torch.argsort(found.row * num_nodes + found.node)
        classes = None if found.classes is None else found.classes[order]
        return replace(found, row=found.row[order], node=found.node[order], scores=found.scores[order], classes=classes)


def _all_logits(parts: "list[PairScores]") -> Tensor | None:
    known = [part.logits for part in parts if part.logits is not None]
    return torch.cat(known) if len(known) == len(parts) else None


@dataclass(frozen=True)
class Reader:
    """How the portions of a prediction become one number per group and explained row."""

    prepared: PreparedCall
    place: Place
    reading: Reading
    classes: Tensor
    """The class of each explained row."""
    layer: str
    options: Options
    memory: Memory
    level: Level
    signs: Tensor | None = None
    """−1 for rows where less of the output is more of the class, as for class 0 of a binary model."""
    logits: bool = True
    """Whether a last softmax or sigmoid is left out: its input is explained."""
    path: Path = TRIVIAL

    def source(self, of: Of = "node") -> Source:
        """Where portions start, in the call of this place."""
        return find_source(self.place.call, of, self.path)

    def scores(self, groups: Any) -> Tensor:
        """One number per group of nodes: the sum over the explained rows."""
        return self.by_row(self.source(), groups).scores.sum(1)

    def by_row(self, source: Source, groups: Any) -> "RowScores":
        """The scores of groups for each explained row."""
        model, call, rows = self.prepared.model, self.place.call, self.place.rows
        probes = [self._layer()] if self.reading == "strength" else []
        d = decompose_source(model, call, source, groups, probes, self.options, self.memory)
        table = as_table(d.total, call, self.level)
        if source.path.step == source.path.steps:
            self.prepared.confirm(self.place, table.values[rows])
        shown = d.logits if self.logits and d.logits is not None else d
        above = as_table(shown.total, call, self.level).values[rows] if shown is not d else None
        if self.reading == "strength":
            return RowScores(self._strength(d, d.probes[probes[0]]), None, above, d.products)
        target = share_of_probability(shown.total, shown.target) if self.reading == "probability" else shown.target
        found = as_table(shown.total, call, self.level).of(target)[:, rows]
        return RowScores(self._of_classes(found), found, above, d.products)

    def _of_classes(self, table: Tensor) -> Tensor:
        """The score of each row's class from those of all classes, ``[K, rows, C]``."""
        if self.reading == "impact":
            return impact(table)
        rows = self.place.rows
        explained = table[:, torch.arange(len(rows), device=rows.device), self.classes]
        return explained if self.signs is None else explained * self.signs

    def output_at(self, step: int, of: Of = "node") -> Tensor:
        """``[rows, C]``: what is explained, at a step of the path; the baseline's at 0."""
        source = self.source(of).on(replace(self.path, step=step))
        nothing: list[Any] = [{}] if isinstance(source.rows, Mapping) else [[]]
        model, call = self.prepared.model, self.place.call
        share = source_shares(source, nothing)
        d = one_pass(model, call, source, share, (), self.options)
        shown = d.logits if self.logits and d.logits is not None else d
        return as_table(shown.total, call, self.level).values[self.place.rows]

    def before_the_end(self, outputs: Tensor, of: Of = "node") -> Tensor | None:
        """``[rows, C]``: what is explained instead of these outputs, where a last softmax or sigmoid is left out."""
        last = self.prepared.flow.operations[-LAST:]
        by_hand = {op.overloadpacket for op in last} & {aten.sub, aten.div}
        if not self.logits or not (by_hand or any(op_schema(op).squashes for op in last)):
            return None
        found = self.output_at(self.path.steps, of)
        return None if torch.allclose(found, outputs.to(found.dtype)) else found

    def of_pairs(self) -> PairScores:
        """The scores of single nodes where they can be other than zero, from a pass that follows the messages.

        Raises `NeedsWhole` if the model does something else than pass messages and treat rows one by one, and `TooMuch`
        if several rows are too many at once; the nodes that contribute to a single row are taken in as many parts as
        the budget asks for.
        """
        place, x = self.place, self.place.call.x
        if place.distance is None or x.dim() < 2 or not x.is_floating_point():
            raise NeedsWhole
        asked = place.distance <= place.rounds
        source, parts, waiting = self.source(), [], [asked.nonzero().flatten()]
        limit = self._limit(len(waiting[0]))
        while waiting:
            nodes = waiting.pop()
            active = ActiveRows(place.distance, place.rounds, limit if len(nodes) > 1 else None)
            try:
                parts.append(self._some_pairs(source, Singles(nodes, asked), active))
            except TooMuch as error:
                if len(place.rows) > 1:
                    raise
                waiting += nodes.split(max(1, int(len(nodes) / (1.2 * error.factor))))
        return PairScores.of_groups(parts, place.num_nodes)

    def followed(self, groups: Masks | Entries) -> Tensor:
        """The scores of groups, from a pass that follows the messages to a single explained row.

        Raises `NeedsWhole` and `TooMuch` as `of_pairs` does.
        """
        place, x = self.place, self.place.call.x
        if place.distance is None or x.dim() < 2 or not x.is_floating_point() or self.signs is not None:
            raise NeedsWhole
        active = ActiveRows(place.distance, place.rounds, self._limit(len(groups)))
        found = self._some_pairs(self.source(), groups, active)
        return found.scores.new_zeros(len(groups)).index_add_(0, found.node, found.scores)

    def _limit(self, groups: int) -> int | None:
        """Bytes that the pairs of a pass may take; None where they are few: asking the system takes milliseconds."""
        size = self.place.call.plain_size(self.prepared.model)
        if self.memory is None and size * groups < LITTLE:
            return None
        allowed = budget(self.memory, self.place.call.x.device)
        return max(1, allowed // 8, allowed - 3 * size // 2)  # the model's own values need room too

    def _some_pairs(self, source: Source, groups: Singles | Masks | Entries, active: ActiveRows) -> PairScores:
        """In one pass for each step of the path."""
        place, model = self.place, self.prepared.model
        probe = self._layer() if self.reading == "strength" else ""
        found = []
        for step in range(1, self.path.steps + 1):
            split = source.on(replace(self.path, step=step))
            now = copy(active)
            d = decompose_at(model, place.call, split, groups, place.rows, probe, self.options, now, self.logits)
            if now.left:
                raise NeedsWhole
            found.append(d)
        d = found[-1] if len(found) == 1 else _summed(found)
        table = as_table(d.total, place.call, self.level)
        self.prepared.confirm(place, table.values[place.rows])
        shown = table if d.logits is None else as_table(d.logits, place.call, self.level)
        return self._read(d, shown.values[place.rows], groups.nodes if isinstance(groups, Singles) else None)

    def _read(self, d: AtRows, total: Tensor, nodes: Tensor | None) -> PairScores:
        """Scores by the node that each group consists of, or by the number of the group."""
        above = None if d.logits is None else total
        pairs = d.target if d.probe is None else d.probe
        row, node = pairs.row, pairs.group
        if nodes is not None:
            node = nodes[node] if self.place.nodes is None else self.place.nodes[nodes[node]]
        if self.reading == "strength":
            return PairScores(row, node, pairs.values.abs().flatten(1).sum(1), None, above, d.products)
        table = pairs.values.reshape(len(row), total.shape[1])
        if self.reading == "probability":
            table = share_of_probability(total[row], table)
        if self.reading == "impact":
            scores = impact(table)
        else:
            scores = table[torch.arange(len(row), device=row.device), self.classes[row]]
        return PairScores(row, node, scores, table, above, d.products)

    def _layer(self) -> str:
        if not self.layer:
            raise ValueError(
                "the strength reading needs the last hidden representation, but no layer with parameters was called;"
                ' name the module to read with layer="…"'
            )
        return self.layer

    def _strength(self, d: Decomposition, hidden: Decomposition) -> Tensor:
        """The L1 norm of the target in the last hidden representation, of the rows that are explained.

        Where that has other rows than the output (a layer before the pooling), all of it counts for every row.
        """
        rows, size = self.place.rows, hidden.target.abs()
        if hidden.total.dim() > 1 and d.total.dim() > 1 and len(hidden.total) == len(d.total):
            return size[:, rows].flatten(2).sum(2)
        return size.flatten(1).sum(1, keepdim=True).expand(-1, len(rows))


@dataclass(frozen=True)
class RowScores:
    """Scores of groups for some rows of the output."""

    scores: Tensor
    """``[K, rows]``."""
    classes: Tensor | None
    """``[K, rows, C]``: for all classes, where the reading has classes."""
    logits: Tensor | None = None
    """``[rows, C]``: what is explained, where that is the input of a last softmax or sigmoid."""
    products: frozenset[str] = frozenset()
    """The modules that multiply one portion by another."""


def _summed(steps: list[AtRows]) -> AtRows:
    """The targets of all steps added up; the totals are those of the last."""

    def added(parts: list[SparseRows]) -> SparseRows:
        code, values = (torch.cat([getattr(part, name) for part in parts]) for name in ("code", "values"))
        return coalesced(parts[0].groups, parts[0].size, code, values)

    last = steps[-1]
    probe = None if last.probe is None else added([step.probe for step in steps if step.probe is not None])
    return replace(last, target=added([step.target for step in steps]), probe=probe)


def impact(table: Tensor) -> Tensor:
    """How much a group moves the classes against each other: the norm of its contributions ``[…, C]``, centred.

    What is added to all classes alike changes no prediction. Of a single output it is the magnitude.
    """
    centred = table - table.mean(-1, keepdim=True) if table.shape[-1] > 1 else table
    return torch.linalg.vector_norm(centred, dim=-1)


def share_of_probability(total: Tensor, target: Tensor) -> Tensor:
    """The share of the class probability, p · clip(γ / T, 0, 1) with T the output; of a single output p is a sigmoid.

    In exact arithmetic this ranks as the paper's softmax rule on the output does, p · σ(|γ| − |T − γ|), where small γ
    are absorbed by rounding.
    """
    single = total.dim() < 2 or total.shape[-1] == 1
    chance = total.sigmoid() if single else total.softmax(-1)
    share = torch.where(total == 0, torch.zeros_like(target), target / total)
    return chance * share.clamp(0, 1)
