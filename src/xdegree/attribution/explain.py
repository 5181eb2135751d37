"""Explain predictions: what each node, edge or feature contributes."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, overload

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from ..engine.options import Options
from ..engine.process_state import Memory, budget
from ..engine.sparse_rows import NeedsWhole, TooMuch
from ..locality.message_flow import Balls, Sampling
from ..locality.parts import Place
from ..locality.prepared import BEYOND, Model, PreparedCall
from ..model_call.call import Level, Table, check_rows, find_edge_index, short
from ..model_call.groups import by_ids, ids_of
from ..model_call.split_points import Of
from ..results.explanation import Explanation, spread
from ..results.explanations import Explanations, NodeExplanations, in_own_numbering
from ..results.hetero import HeteroExplanation
from .decompose import chosen_options, path_of, path_options, whole_survey
from .phantoms import warn_of_infinite
from .scores import Classes, EdgeScores, PairScores, Question, Reader, Reading, chosen_classes

FEW = 1 / 4
"""The share of all rows up to which it pays to follow the messages to each of them."""
LARGE = 2**16
"""Nodes and edges from which on rows are explained a few at a time, never all in one pass."""
AT_ONCE = 64
"""Rows that are explained together in a large graph: what they share pays, and it fits into caches."""


# Type checkers know the answer by the features and the index; what PyG's untyped objects stand in for, they do not.
# Each lists the most used arguments again: what only stood in **kwargs would be neither checked nor offered.
@overload
def explain(
    model: Callable[..., Any],
    x: Tensor,
    *args: Any,
    index: int | None = None,
    target: int | None = None,
    of: Of = "node",
    reading: Reading = "contribution",
    edge_scores: EdgeScores | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> Explanation: ...


@overload
def explain(
    model: Callable[..., Any],
    x: Tensor,
    *args: Any,
    index: Sequence[int] | Literal["all"],
    target: Classes = None,
    of: Of = "node",
    reading: Reading = "contribution",
    edge_scores: EdgeScores | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> Explanations: ...


@overload
def explain(
    model: Callable[..., Any],
    x: Mapping[str, Tensor],
    *args: Any,
    index: int | None = None,
    target: int | None = None,
    of: Of = "node",
    reading: Reading = "contribution",
    edge_scores: EdgeScores | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> HeteroExplanation: ...


@overload
def explain(
    model: Model,
    *args: Any,
    index: Any = None,
    target: Classes = None,
    of: Of = "node",
    reading: Reading = "contribution",
    edge_scores: EdgeScores | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> Any: ...


def explain(
    model: Model,
    *args: Any,
    index: Any = None,
    target: Classes = None,
    of: Of = "node",
    reading: Reading = "contribution",
    edge_scores: EdgeScores | None = None,
    level: Level | None = None,
    output: Any = None,
    start: Any = None,
    layer: str | None = None,
    options: Options | None = None,
    memory: Memory = None,
    baseline: Any = "zero",
    steps: int = 1,
    logits: bool = True,
    num_neighbors: int | None = None,
    seed: int = 0,
    trust_neighborhood: bool = False,
    ids: Any = None,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Say what each node (or edge, or feature) contributes to a prediction.

    The model runs once, plain, on the whole graph. For the prediction of a node or a link, only its neighborhood is
    decomposed if that gives the model's own output, else the whole graph; ``scope`` of the explanation says which. For
    the prediction of a graph all its nodes are scored. To ask many questions about one graph, see `prepare`.

    Args:
        model: a PyG model or any callable that computes with PyTorch, or what `prepare` returned.
        *args: the model's arguments, node features first, or a PyG ``Data``, ``HeteroData`` or ``Batch`` instead; or
            PyG's stores ``(feature_store, graph_store)``, of which only the neighborhood of each node is read, so that
            the explanation is not verified.
        index: the node, link or graph that is explained, by its row in the output. A list, or ``"all"``, gives a
            sequence of explanations, one each, from shared work. A ``Batch`` without index gives one explanation per
            graph, in the numbering of that graph.
        target: the class (or the output of a regression) that is explained; the largest output by default. For several
            rows one for all, or a list or tensor with one for each.
        of: what is scored: every ``"node"``; every ``"edge"``, by the messages that travel along it in all layers;
            every single ``"feature"`` of every node; every ``"edge_feature"`` in ``edge_attr`` or ``edge_weight``.
        reading: ``"contribution"``, signed and in units of the output; ``"impact"``, how much the classes are moved
            against each other, without sign; ``"probability"``, the share of the class probability, which ranks as
            the paper's softmax rule; ``"strength"``, how much arrives in the last hidden representation, without sign.
        edge_scores: with nodes, score edges by their end points too: the ``"pair"`` as one group (as the authors' code
            does) or the ``"mean"`` of the two scores (as the paper says).
        level: what the rows of the output are, ``"node"``, ``"link"`` (by ``edge_label_index``) or ``"graph"``;
            found by their number by default.
        output: which part of the output is explained, for models that return several: a key, a position, the name of a
            field, or a tuple of them, one per level. What does not reach it needs no rules.
        start: where the rows of nodes are, if not in ``x``: a module (its name or itself), whose output is split; the
            name of a parameter, a buffer or an argument; a tensor; a list of these; or a dict of them by type of node.
            Found automatically where there is only one candidate.
        layer: where ``"strength"`` is read, as a probe of `decompose`; found automatically by default.
        options: choices among rules; with the default, a group and all the rest add up to the output.
        memory: budget for the portions, as in `decompose`.
        baseline: what features are measured from, ``"zero"``, ``"mean"`` or a tensor, as in `decompose`.
        steps: in how many steps the way from the baseline is split, as in `decompose`. With many, the scores of all
            nodes add up to the output beyond that of the baseline.
        logits: whether a model that ends with a softmax, log_softmax or sigmoid is explained at what that is applied
            to; ``prediction`` stays the model's own output.
        num_neighbors: maximum number of in-neighbors per node; larger neighborhoods are sampled uniformly. The scores
            are those of the sampled graph; ``sampling_error`` says by how much its output differs from the model's own.
        seed: of the sample.
        trust_neighborhood: for graphs too large for one plain pass: take it on trust that nodes outside of the
            neighborhood do not affect a node's prediction. The explanation then says that it is not verified.
        ids: what you call the nodes: a list in their order, or a mapping from each id to its row. ``index`` of a node
            is then an id, and the explanation has them as ``ids``. ``n_id`` of a loader's batch is kept there too.
        model_kwargs: keyword arguments of the model whose names are taken by this function.
        **kwargs: all other keyword arguments of the model.

    Returns:
        An `Explanation`, or a `HeteroExplanation` for several types of nodes. For several rows an `Explanations`, a
        sequence of them.
    """
    given = {**kwargs, **(model_kwargs or {})}
    prepared = PreparedCall.of(model, args, given, trust_neighborhood, start)
    options = chosen_options(options, of)
    path = path_of(prepared, baseline, steps, of)
    prepared = prepared.of_part(output)
    question = Question(target, reading, edge_scores, of, layer, options, memory, logits, path)
    _check_layer(prepared.model, layer)
    sampling = None if num_neighbors is None else _sampling(num_neighbors, seed)
    table = prepared.table(level)
    batch = prepared.call.data
    each = isinstance(batch, Batch) and table.level == "graph" and index is None
    names = _names(prepared, ids)
    if ids is not None and table.level == "node":
        index = by_ids(index, names)
    rows, single = check_rows("all" if each else index, table)
    with whole_survey(prepared.model, prepared.sample, prepared.source(of)):
        found = Answer(prepared, question, table, rows, sampling, names).explanations(single)
    _warn(found)
    if each:
        return Explanations([in_own_numbering(e, batch) for e in found])
    return found[0] if single else found


def _names(prepared: PreparedCall, ids: Any) -> tuple[Any, ...] | None:
    """What the user calls the nodes."""
    x = prepared.call.x
    if ids is None:
        kept = getattr(prepared.call.data, "n_id", None)
        plain = isinstance(x, Tensor) and isinstance(kept, Tensor) and kept.shape == x.shape[:1]
        return tuple(kept.tolist()) if plain and isinstance(kept, Tensor) else None
    if not isinstance(x, Tensor):
        raise TypeError("ids are for graphs with one type of nodes; translate those of several types yourself")
    return ids_of(ids, len(x))


def _check_layer(model: Any, layer: str | None) -> None:
    if layer is None:
        return
    known = [name for name, _ in model.named_modules() if name] if isinstance(model, nn.Module) else []
    if str(layer).removesuffix(":input") not in known:
        raise ValueError(f"layer names {layer!r}, but the model's modules are {short(known)}")


def _sampling(num_neighbors: Any, seed: Any) -> Sampling:
    for name, value, least in (("num_neighbors", num_neighbors, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least} (got {value!r})")
    return Sampling(num_neighbors, seed)


@dataclass(frozen=True)
class Answer:
    """What is asked of some rows of the output of a prepared call, and how it is answered."""

    prepared: PreparedCall
    question: Question
    table: Table
    rows: list[int]
    sampling: Sampling | None = None
    ids: tuple[Any, ...] | None = None

    @property
    def level(self) -> Level:
        """What the rows are."""
        return self.table.level

    def explanations(self, single: bool) -> Sequence[Any]:
        """One explanation for each row."""
        plain = self.question.of == "node" and isinstance(self.prepared.call.x, Tensor)
        parts = self._near() if plain and self._follows_messages else None
        if parts is not None:
            return self.of_nodes(parts, single)
        from .dense import DenseAnswer

        whole = DenseAnswer(self.prepared, self.question, self.table, self.rows, self.sampling, self.ids)
        return self.of_nodes([whole.of_all_nodes()], single) if plain else whole.of_entries()

    def tensor(self, rows: list[int]) -> Tensor:
        """Row numbers as a tensor on the device of the output."""
        return torch.tensor(rows, device=self.table.values.device)

    @property
    def _follows_messages(self) -> bool:
        """Whether messages are followed to the rows: few of them, or of a graph too large for one pass over all."""
        prepared, edges = self.prepared, find_edge_index(self.prepared.call)
        if self.sampling is not None or prepared.trust:
            return True
        if not self.question.is_plain or self.level == "graph" or prepared.incoming is None or edges is None:
            return False
        large = len(prepared.call.x) + edges.shape[1] >= LARGE
        return large or len(self.rows) <= max(1, FEW * len(self.table.values))

    def _near(self) -> "list[Part] | None":
        """A few rows at a time, by the messages that reach them; None if the model does more than pass messages."""
        asked = list(zip(self.rows, self.question.targets(len(self.rows)), strict=True))
        edges = find_edge_index(self.prepared.call)
        large = edges is not None and len(self.prepared.call.x) + edges.shape[1] >= LARGE
        size = AT_ONCE if large else len(asked)
        waiting, done = [asked[i : i + size] for i in range(0, len(asked), size)], []
        while waiting:
            some = waiting.pop(0)
            try:
                done.append(self._followed([row for row, _ in some], [target for _, target in some]))
            except TooMuch:
                if len(some) == 1:
                    raise
                waiting = [some[: len(some) // 2], some[len(some) // 2 :], *waiting]
            except NeedsWhole:
                if self.sampling is not None or self.prepared.trust:
                    raise ValueError(
                        "num_neighbors and trust_neighborhood, and graphs in stores, are for single nodes that are"
                        " explained by nodes, of a model that passes messages along edge_index and looks at nothing"
                        " else; this is another question or another model"
                    ) from None
                return None
        return done

    def _followed(self, rows: list[int], targets: list[Any]) -> "Part":
        prepared, question = self.prepared, self.question
        if not question.is_plain or prepared.incoming is None or self.level == "graph":
            raise NeedsWhole
        limit = budget(question.memory, self.table.values.device) / 2 if len(rows) > 1 else None
        place = prepared.place(self.tensor(rows), self.level, self.sampling, limit)
        predictions = self._predictions(place, rows)
        classes = chosen_classes(targets, predictions)
        pairs = question.reader(prepared, place, classes, self.level).of_pairs()
        error = None if self.sampling is None or place.output is None else place.output - predictions
        fields = [place.field] if len(rows) == 1 else self.balls(rows)
        reader = question.reader(prepared, place, classes, self.level)
        base = self.baseline(reader)
        return Part(rows, predictions, classes, pairs, fields, place.scope, sampling_error=error, baseline=base)

    def baseline(self, reader: Reader) -> Tensor | None:
        """What is explained at the baseline, where that is not just zeros in one step."""
        return None if reader.path.is_trivial else reader.output_at(0, self.question.of)

    def _predictions(self, place: Place, rows: list[int]) -> Tensor:
        """The model's own; on trust those of the neighborhood, of all neighbors."""
        if not self.prepared.trust:
            return self.table.values[rows]
        full = place if self.sampling is None else self.prepared.place(self.tensor(rows), self.level)
        assert full.output is not None
        return full.output

    def balls(self, rows: list[int]) -> Balls:
        """The nodes within reach of the messages to each row."""
        assert self.prepared.incoming is not None
        links = self.prepared.call.get("edge_label_index") if self.level == "link" else None
        return Balls(self.prepared.incoming, self.prepared.flow.rounds, rows, links, self.sampling)

    @cached_property
    def classes(self) -> list[int]:
        """The class of each row that is explained."""
        return chosen_classes(self.question.targets(len(self.rows)), self.table.values[self.rows])

    # What the user gets.

    def common(self) -> dict[str, Any]:
        """What all explanations of this question have in common."""
        q = self.question
        options = path_options(q.options, q.path)
        return {
            "reading": q.reading,
            "edge_scoring": q.edge_scores,
            "options": options,
            "level": self._stated_level,
            "steps": q.path.steps,
            "ids": self.ids,
        }

    def of_nodes(self, parts: "list[Part]", single: bool) -> Sequence[Explanation]:
        """One explanation for each row, from the scores of nodes."""
        part, call = Part.joined(parts), self.prepared.call
        edges = self.prepared.edges_among(part.fields)
        known = {
            **self.common(),
            "num_nodes": call.num_nodes,
            "edge_index": edges[0] if single and not isinstance(edges, Tensor | None) else edges,
            "scope": part.scope,
            "products": tuple(sorted(part.pairs.products)),
        }
        if not single:
            return NodeExplanations(
                predictions=part.predictions,
                targets=tuple(part.classes),
                explained=tuple(part.rows),
                fields=part.fields,
                row=part.pairs.row,
                node=part.pairs.node,
                scores=part.pairs.scores,
                class_scores=part.pairs.classes,
                edge_scores=part.edge_scores,
                sampling_error=part.sampling_error,
                logits=part.pairs.logits,
                baseline_output=part.baseline,
                **known,
            )
        pairs, n = part.pairs, len(call.x)
        one = Explanation(
            prediction=part.predictions[0].clone(),
            target=part.classes[0],
            index=part.rows[0],
            nodes=part.fields[0],
            node_scores=spread(pairs.scores, pairs.node, n),
            class_scores=None if pairs.classes is None else spread(pairs.classes, pairs.node, n),
            edge_scores=None if part.edge_scores is None else part.edge_scores[0],
            sampling_error=None if part.sampling_error is None else part.sampling_error[0],
            logits=None if pairs.logits is None else pairs.logits[0].clone(),
            baseline_output=None if part.baseline is None else part.baseline[0],
            **known,
        )
        return [one]

    @property
    def _stated_level(self) -> Level | None:
        """What the rows are, as far as it is known: with several types their number has to fit to one of them."""
        x = self.prepared.call.x
        fits = not isinstance(x, Mapping) or any(len(v) == len(self.table.values) for v in x.values())
        return self.level if fits or self.level == "link" else None


@dataclass(frozen=True)
class Part:
    """Scores of nodes for some rows of the output, in the numbering of the whole graph."""

    rows: list[int]
    predictions: Tensor
    classes: list[int]
    pairs: PairScores
    fields: Sequence[Tensor]
    scope: str
    edge_scores: Tensor | None = None
    sampling_error: Tensor | None = None
    baseline: Tensor | None = None

    @classmethod
    def joined(cls, parts: "list[Part]") -> "Part":
        """The answers for some rows and for others; the scope is that of the least checked."""
        if len(parts) == 1:
            return parts[0]
        starts = [sum(len(part.rows) for part in parts[:number]) for number in range(len(parts))]
        errors = [part.sampling_error for part in parts if part.sampling_error is not None]
        baselines = [part.baseline for part in parts if part.baseline is not None]
        scopes = {part.scope for part in parts}
        return cls(
            [row for part in parts for row in part.rows],
            torch.cat([part.predictions for part in parts]),
            [c for part in parts for c in part.classes],
            PairScores.joined([part.pairs for part in parts], starts),
            [field for part in parts for field in part.fields],
            BEYOND if BEYOND in scopes else parts[0].scope,
            sampling_error=torch.cat(errors) if errors else None,
            baseline=torch.cat(baselines) if baselines else None,
        )


def _warn(found: Sequence[Any]) -> None:
    """Say what makes scores hard to trust, where the explanation that leaves most open shows it."""
    e = found[_most_doubtful(found)]
    if not bool(e.prediction.isfinite().all()):
        warn_of_infinite(e.prediction, f"the model's output for row {e.index}")
        return
    if e.hides_products:
        said = (
            "most nodes that can contribute have exactly 0. The model multiplies what arrives from nodes by other such"
            f" values{_where(e.products)}: a node that reaches only one of the two factors contributes nothing by"
            ' the paper\'s rule; with options=Options(product="share") it contributes half of the mixed terms'
        )
    elif e.is_all_zero:
        said = (
            f"every score is exactly 0, but the explained output is {e.output:+.3g}: the model multiplies what arrives"
            f" from nodes{_where(e.products)}, and none contributes alone. Scores of groups (decompose, agglomerate)"
            " show what they do together; so does leaving some out (xdegree.removal)"
        )
    elif e.residual is not None and abs(e.residual) > FAR * _largest_output(e):
        said = (
            f"single scores add up to {e.total_scores:+.3g}, but the explained output is {e.output:+.3g}: the rest,"
            f" {e.residual:+.3g}, are joint effects and biases. Scores of groups (decompose, agglomerate) show joint"
            " effects; in more steps (steps=16) less is left open"
        )
    else:
        return
    warnings.warn(said, stacklevel=3)


def _most_doubtful(found: Sequence[Any]) -> int:
    """The number of an explanation whose output is not finite, or else of the one that leaves most of it open."""
    if len(found) == 1:
        return 0
    if isinstance(found, NodeExplanations):
        largest = found.outputs.abs().amax(1)
        left = torch.zeros_like(largest) if found.residuals is None else found.residuals.abs()
    else:
        largest = torch.tensor([_largest_output(e) for e in found], dtype=torch.float64)
        left = torch.tensor([abs(e.residual or 0.0) for e in found], dtype=torch.float64)
    doubt = torch.where(largest.isfinite(), left / largest.clamp(min=torch.finfo(largest.dtype).tiny), torch.inf)
    return int(doubt.nan_to_num(torch.inf).argmax())


FAR = 3.0
"""How many times larger than the largest output what is left open may be without a warning."""


def _largest_output(e: Any) -> float:
    return float((e.prediction if e.logits is None else e.logits).abs().max())


def _where(modules: Sequence[str]) -> str:
    named = [repr(module) for module in modules if module]
    return f" (in {', '.join(named[:3])})" if named else ""
