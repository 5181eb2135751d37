"""From portions to scores: the readings, and the explanation of one prediction."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from .computation_graph import Workplace, find_edge_index, trace, workplace
from .decompose import Decomposition, decompose, whole_survey
from .explanation import Explanation
from .groups import Groups
from .inputs import ModelCall, model_call, prepare
from .memory import Memory, budget
from .options import Options
from .outputs import as_table, as_tables, check_index, check_target
from .portions import Portions
from .registry import Call, aten
from .rules.attention import softmax

Reading = Literal["contribution", "probability", "strength"]
Edges = Literal["pair", "mean"]


def explain(
    model: Callable[..., Any],
    *args: Any,
    index: int | None = None,
    target: int | None = None,
    reading: Reading = "contribution",
    edges: Edges | None = None,
    layer: str | None = None,
    options: Options | None = None,
    memory: Memory = None,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Explanation:
    """Say what each node contributes to one prediction.

    For a node's prediction only its computation graph is worked on; outside of it scores are exactly 0. For
    the prediction of a graph all its nodes are scored.

    Args:
        model: a PyG model or any callable that computes with PyTorch.
        *args: the model's arguments, node features first, or a PyG ``Data`` in their place.
        index: the node (or, in a batch, the graph) that is explained.
        target: the class that is explained; the predicted one by default.
        reading: ``"contribution"``, signed and in units of the model's output; ``"probability"``, the share of the
            class probability by the paper's softmax rule; ``"strength"``, how much arrives in the last hidden
            representation, without sign.
        edges: score edges too: the ``"pair"`` of end points as one group (as the authors' code does) or the
            ``"mean"`` of the two end points' scores (as the paper says).
        layer: where ``"strength"`` is read, as a probe of `decompose`; found automatically by default.
        options: choices among rules; the paper's by default.
        memory: budget for the portions, as in `decompose`.
        model_kwargs: keyword arguments of the model whose names are taken by this function.
        **kwargs: all other keyword arguments of the model.
    """
    check_choices(reading, edges, memory)
    call = model_call(model, args, {**kwargs, **(model_kwargs or {})})
    options = Options.of(options)
    prepare(model, call)
    seen = trace(model, call)
    table = as_table(seen.output, call)
    index = check_index(index, table, call)
    target = check_target(target, table[index])
    work = workplace(model, call, seen, torch.tensor([index]))
    reader = Reader(reading, work.rows, torch.tensor([target]), layer or seen.output_layer, options)
    edge_index = find_edge_index(call)
    with whole_survey(model, call):
        node_scores, edge_scores = score_objects(model, work, reader, memory, edges, edge_index)
    return Explanation(
        node_scores=node_scores,
        prediction=table[index].clone(),
        target=target,
        index=index,
        nodes=work.field,
        edge_index=edge_index,
        edge_scores=edge_scores,
        reading=reading,
        edges=edges,
        options=options,
    )


@dataclass(frozen=True)
class Reader:
    """How the portions of a prediction become one number per group."""

    reading: Reading
    rows: Tensor
    """The rows of the output that are explained, together."""
    classes: Tensor
    """The class of each of these rows."""
    layer: str
    options: Options
    signs: Tensor | None = None
    """−1 for rows where less of the output is more of the class, as for class 0 of a binary model."""

    def scores(self, model: Any, call: ModelCall, groups: Groups, memory: Memory) -> Tensor:
        """One number per group."""
        probes = [self._layer()] if self.reading == "strength" else []
        d = decompose(
            model,
            *call.args,
            groups=groups,
            probes=probes,
            options=self.options,
            memory=memory,
            model_kwargs=call.kwargs,
        )
        if self.reading == "strength":
            return self._strength(d, d.probes[probes[0]])
        target = self._probability(d) if self.reading == "probability" else d.target
        explained = as_tables(target, d.total, call)[:, self.rows, self.classes]
        return (explained if self.signs is None else explained * self.signs).sum(1)

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
        return softmax(Call(aten._softmax.default, total, len(d.target), self.options), Portions(d.total, d.target))

    def _strength(self, d: Decomposition, hidden: Decomposition) -> Tensor:
        """The L1 norm of the target in the last hidden representation, of the rows that are explained."""
        rows_match = hidden.total.dim() > 1 and d.total.dim() > 1 and len(hidden.total) == len(d.total)
        target: Tensor = hidden.target[:, self.rows] if rows_match else hidden.target
        return target.abs().flatten(1).sum(1)


def score_objects(
    model: Any, work: Workplace, reader: Reader, memory: Memory, edges: Edges | None, edge_index: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Scores of all nodes and, if asked for, of all edges, from one pass."""
    field = work.field
    pairs, pair_of = _pairs(edge_index if edges else None, field)
    groups = [*work.groups(field.unsqueeze(1)), *(work.groups(pairs) if edges == "pair" else [])]
    scores = reader.scores(model, work.call, groups, memory) if groups else field.new_zeros(0, dtype=torch.float)
    node_scores = scores.new_zeros(work.num_nodes)
    node_scores[field] = scores[: len(field)]
    return node_scores, _edge_scores(edges, edge_index, node_scores, scores[len(field) :], pair_of)


def check_choices(reading: object, edges: object, memory: Memory) -> None:
    """Refuse unknown names before any work."""
    if reading not in get_args(Reading):
        raise ValueError(f"reading must be one of {get_args(Reading)} (got {reading!r})")
    if edges not in (None, *get_args(Edges)):
        raise ValueError(f"edges must be None or one of {get_args(Edges)} (got {edges!r})")
    budget(memory, torch.device("cpu"))


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
    edges: Edges | None, edge_index: Tensor | None, node_scores: Tensor, pair_scores: Tensor, pair_of: Tensor
) -> Tensor | None:
    if edges is None:
        return None
    if edge_index is None:
        raise ValueError(
            "edges are scored by their end points, but no edge_index [2, E] is among the model's arguments"
        )
    inside = pair_of >= 0
    scores = node_scores.new_zeros(edge_index.shape[1])
    scores[inside] = pair_scores[pair_of[inside]] if edges == "pair" else node_scores[edge_index[:, inside]].mean(0)
    return scores
