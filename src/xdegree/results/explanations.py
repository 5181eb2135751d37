"""The explanations of several predictions: a sequence, of nodes stored as a sparse matrix."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor

from .explanation import Asked, Explanation, at, spread
from .tables import load_pandas

if TYPE_CHECKING:
    import pandas


class Explanations(Sequence[Explanation]):
    """Explanations of several predictions, in the order in which they were asked for."""

    def __init__(self, found: Iterable[Explanation]) -> None:
        self._found = list(found)

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, number: int) -> Explanation: ...

    @overload
    def __getitem__(self, number: slice) -> list[Explanation]: ...

    def __getitem__(self, number: int | slice) -> Explanation | list[Explanation]:
        """One explanation, or a list of some."""
        return self._found[number]

    if not TYPE_CHECKING:  # or a type checker would believe that everything is there

        def __getattr__(self, name: str) -> Any:
            """Called for missing attributes: explain that this is a sequence of explanations, not one."""
            known = not name.startswith("_") and name in {*dir(Explanation), *Explanation.__dataclass_fields__}
            advice = f"; it holds {len(self)} explanations, take one: found[0].{name}" if known else ""
            raise AttributeError(f"{type(self).__name__} has no {name!r}{advice}", name=name, obj=self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)}, by {self[0].of}, reading={self[0].reading!r})"

    def _repr_html_(self) -> str:
        """How notebooks show it."""
        from .notebook import explanations_table

        return explanations_table(self)

    def to_dataframe(self) -> "pandas.DataFrame":
        """The tables of all explanations below each other, with what is explained and its class (needs pandas)."""
        pandas = load_pandas()
        tables = []
        for e in self:
            table = e.to_dataframe()
            table.insert(0, "index", e.index)
            table.insert(1, "target", e.target)
            tables.append(table)
        return pandas.concat(tables, ignore_index=True)


class HeteroExplanations(Explanations):
    """The same for graphs with several types of nodes."""

    if TYPE_CHECKING:

        def __getitem__(self, number: Any) -> Any:
            """One `HeteroExplanation`."""


@dataclass(frozen=True, eq=False, repr=False)
class NodeExplanations(Explanations, Asked):
    """Explanations of several predictions by the nodes that contribute to them, stored where they are not zero.

    Each `Explanation` is made when it is asked for, so that nothing of the size rows × nodes ever exists.
    """

    predictions: Tensor
    """``[rows, C]``: the model's own outputs."""
    targets: tuple[int, ...]
    """The class of each that is explained."""
    explained: tuple[int, ...]
    """The nodes, links or graphs that are explained."""
    num_nodes: int
    """Of the whole graph."""
    fields: Sequence[Tensor]
    """The nodes that can contribute to each."""
    row: Tensor
    """The number of the explained row, in order, of each score."""
    node: Tensor
    """The node, in order for each row, of each score."""
    scores: Tensor
    """The scores that are not zero, row after row."""
    class_scores: Tensor | None = None
    """The scores for every class, ``[scores, C]``."""
    edge_index: Tensor | Sequence[Tensor] | None = None
    """``[2, E]``: the edges of the whole graph; of one in stores those of each neighborhood, read when asked for."""
    edge_scores: Tensor | None = None
    """``[rows, E]``: of edges by their end points, if asked for."""
    sampling_error: Tensor | None = None
    """``[rows, C]``: the outputs with the sampled neighborhoods minus those with the full ones."""
    logits: Tensor | None = None
    """``[rows, C]``: what is explained instead of the predictions, as in `Explanation`."""
    baseline_output: Tensor | None = None
    """``[rows, C]``, as in `Explanation`."""

    @property
    def matrix(self) -> Tensor:
        """The scores as a sparse matrix (CSR), ``[rows, nodes]``: explained × contributing."""
        size = (len(self), self.num_nodes)
        return torch.sparse_csr_tensor(self._starts, self.node, self.scores, size, check_invariants=False)

    @property
    def outputs(self) -> Tensor:
        """``[rows, C]``: what is explained, the logits or the predictions."""
        return self.predictions if self.logits is None else self.logits

    @property
    def residuals(self) -> Tensor | None:
        """``[rows]``: what the single scores leave open of each output, as ``residual`` of one explanation."""
        if self.reading != "contribution":
            return None
        which = torch.arange(len(self), device=self.row.device), torch.tensor(self.targets, device=self.row.device)
        start = 0.0 if self.baseline_output is None else self.baseline_output[which]
        return (self.outputs[which] - start).index_add(0, self.row, self.scores.to(self.outputs.dtype), alpha=-1)

    @cached_property
    def _starts(self) -> Tensor:
        counts = torch.bincount(self.row, minlength=len(self))
        return torch.cat([counts.new_zeros(1), counts.cumsum(0)])

    def __len__(self) -> int:
        return len(self.explained)

    @overload
    def __getitem__(self, number: int) -> Explanation: ...

    @overload
    def __getitem__(self, number: slice) -> list[Explanation]: ...

    def __getitem__(self, number: int | slice) -> Explanation | list[Explanation]:
        """One explanation, with a score for every node."""
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        number, n = range(len(self))[number], self.num_nodes
        own = slice(int(self._starts[number]), int(self._starts[number + 1]))
        scores, nodes, edges = self.scores[own], self.node[own], self.edge_index
        return Explanation(
            prediction=self.predictions[number].clone(),
            target=self.targets[number],
            index=self.explained[number],
            num_nodes=n,
            nodes=self._contributing(number, own),
            node_scores=spread(scores, nodes, n),
            class_scores=None if self.class_scores is None else spread(self.class_scores[own], nodes, n),
            edge_index=edges if isinstance(edges, Tensor | None) else edges[number],
            edge_scores=None if self.edge_scores is None else self.edge_scores[number],
            sampling_error=None if self.sampling_error is None else self.sampling_error[number],
            logits=None if self.logits is None else self.logits[number],
            baseline_output=None if self.baseline_output is None else self.baseline_output[number],
            **self.asked,
        )

    def _contributing(self, number: int, own: slice) -> Tensor:
        """The nodes that can contribute: by the messages that are passed, and whoever contributes in another way."""
        field, scored = self.fields[number], self.node[own]
        return field if bool(torch.isin(scored, field).all()) else torch.cat([field, scored]).unique()

    def __repr__(self) -> str:
        return (
            f"Explanations({len(self)} × {self.num_nodes} nodes, {len(self.scores)} scores{at(self.level)},"
            f" reading={self.reading!r})"
        )

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row per score: what is explained, its class, the node, the score (needs pandas)."""
        pandas = load_pandas()
        which = self.row.tolist()
        return pandas.DataFrame(
            {
                "index": [self.explained[i] for i in which],
                "target": [self.targets[i] for i in which],
                "node": self.node.tolist(),
                "score": self.scores.tolist(),
            }
        )


def in_own_numbering(e: Explanation, batch: Any) -> Explanation:
    """The explanation of one graph of a batch in the numbering of that graph, as if it had been explained alone."""
    low, high = (int(batch.ptr[e.index + i]) for i in (0, 1))
    inside = None if e.edge_index is None else ((e.edge_index >= low) & (e.edge_index < high)).all(0)

    def nodes(value: Tensor | None) -> Tensor | None:
        return None if value is None else value[low:high]

    def edges(value: Tensor | None) -> Tensor | None:
        return None if value is None else value[inside]

    return replace(
        e,
        index=0,
        ids=None if e.ids is None else e.ids[low:high],
        num_nodes=high - low,
        nodes=torch.arange(high - low, device=e.nodes.device),
        node_scores=nodes(e.node_scores),
        class_scores=(edges if e.of == "edge" else nodes)(e.class_scores),
        feature_scores=nodes(e.feature_scores),
        edge_index=None if e.edge_index is None else e.edge_index[:, inside] - low,
        edge_scores=edges(e.edge_scores),
        edge_feature_scores=edges(e.edge_feature_scores),
    )
