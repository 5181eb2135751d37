"""DEGREE inside PyG's own explanation interface."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch_geometric.explain import ExplainerAlgorithm, Explanation, HeteroExplanation
from torch_geometric.explain.config import MaskType, ModelMode

from ..engine.options import Options
from ..engine.portions import mapped
from ..engine.process_state import Memory
from ..locality.parts import Place
from ..locality.prepared import PreparedCall
from ..model_call.call import is_edges
from ..model_call.split_points import find_source
from .decompose import whole_survey
from .objects import score_entries, score_objects, score_typed_entries
from .phantoms import warn_of_infinite
from .scores import EdgeScores, Question, Reader, Reading

MASK_ENTRIES = 2**26
"""Truth values in one mask of columns, at most."""


class DegreeExplainer(ExplainerAlgorithm):
    """``Explainer(model, DegreeExplainer(), …)``: PyG's interface with signed scores by decomposition.

    As in PyG, several rows (``index=[3, 17]``) or no ``index`` give one joint explanation: the sum over the rows.

    Args:
        reading, output, start, layer, options, memory: as in `xdegree.explain`.
        edge_scores: how ``edge_mask_type="object"`` is scored, ``"pair"`` or ``"mean"``.
    """

    def __init__(
        self,
        reading: Reading = "contribution",
        edge_scores: EdgeScores = "pair",
        layer: str | None = None,
        options: Options | None = None,
        memory: Memory = None,
        output: Any = None,
        start: Any = None,
    ) -> None:
        super().__init__()
        self.output, self.start = output, start
        if edge_scores is None:
            raise ValueError("edge_scores says how edges are scored, 'pair' or 'mean' (got None)")
        self.question = Question(
            reading=reading, edge_scores=edge_scores, layer=layer, options=Options.of(options), memory=memory
        )

    def supports(self) -> bool:
        """Every level, mode and return type; edges as objects."""
        return self.explainer_config.edge_mask_type in (None, MaskType.object)

    @torch.no_grad()
    def forward(
        self,
        model: torch.nn.Module,
        x: Any,
        edge_index: Any,
        *,
        target: Tensor,
        index: int | Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """The masks that the explainer was asked for."""
        prepared = PreparedCall.of(model, (x, edge_index), kwargs, start=self.start).of_part(self.output)
        self._check_kinds(x, prepared.call.x, edge_index)
        table = prepared.table(None)
        rows, classes, signs = self._explained(table.values, target, index)
        warn_of_infinite(table.values[rows])
        place = prepared.proven_place(rows, table.level)
        layer = self.question.layer or prepared.flow.output_layer
        q = self.question
        reader = Reader(prepared, place, q.reading, classes, layer, q.options, q.memory, table.level, signs)
        with whole_survey(model, prepared.call, find_source(prepared.call)):
            masks = self._masks(reader, edge_index)
        if not isinstance(x, dict):
            return Explanation(**{name: mask for name, mask in masks.items() if mask is not None}, scope=place.scope)
        found = HeteroExplanation()
        for name, mask in masks.items():
            if mask is not None:
                found.set_value_dict(name, mask)
        return found

    def _check_kinds(self, x: Any, rows: Any, edge_index: Any) -> None:
        """Masks by type need features by type, and those of edges a list of edges."""
        if isinstance(rows, Mapping) and not isinstance(x, dict):
            raise TypeError("nodes have several types here, but x is no dict by type; use xdegree.explain")
        edges = edge_index.values() if isinstance(edge_index, dict) else [edge_index]
        if self.explainer_config.edge_mask_type is not None and not all(is_edges(one) for one in edges):
            raise ValueError("edges are scored by edge_index [2, E]; for other adjacencies give edge_mask_type=None")

    def _masks(self, reader: Reader, edge_index: Any) -> dict[str, Any]:
        wanted = self.explainer_config
        masks: dict[str, Any] = {"node_mask": None, "edge_mask": None}
        if wanted.node_mask_type == MaskType.object or wanted.edge_mask_type is not None:
            edges = self.question.edge_scores if wanted.edge_mask_type is not None else None
            scores = score_objects(reader, edges, edge_index)
            masks["edge_mask"] = None if scores.edges is None else mapped(lambda s: s.sum(0), scores.edges)
            if wanted.node_mask_type == MaskType.object:
                masks["node_mask"] = mapped(lambda s: s.sum(0).unsqueeze(-1), scores.nodes)
        if wanted.node_mask_type in (MaskType.attributes, MaskType.common_attributes):
            masks["node_mask"] = self._feature_mask(reader)
        return masks

    def _explained(
        self, table: Tensor, target: Tensor, index: int | Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Rows, their classes and signs. Each output of a binary model stands for two classes: 0 is its negative."""
        device = table.device
        rows = torch.arange(len(table)) if index is None else torch.as_tensor(index).reshape(-1)
        if len(rows) and not (0 <= int(rows.min()) and int(rows.max()) < len(table)):
            raise ValueError(f"index is out of range: the model predicts rows 0 to {len(table) - 1} (got {index})")
        rows = rows.to(device)
        each, columns = rows.repeat_interleave(table.shape[1]), torch.arange(table.shape[1], device=device)
        columns = columns.repeat(len(rows))
        if self.model_config.mode == ModelMode.regression:
            return each, columns, None
        labels = target.reshape(-1).to(device)
        if self.model_config.mode == ModelMode.multiclass_classification:
            return rows, labels[rows] if len(labels) == len(table) else labels, None
        if len(labels) == table.numel():
            labels = labels.reshape(table.shape)[rows].flatten()
        return each, columns, torch.where(labels > 0, 1, -1)

    def _feature_mask(self, reader: Reader) -> Any:
        """Single features as groups, or the whole columns of them."""
        place = reader.place
        x, source = place.call.x, reader.source()
        if self.explainer_config.node_mask_type == MaskType.common_attributes:
            if isinstance(x, dict):
                return {kind: self._columns(reader, value, kind) for kind, value in x.items()}
            return self._columns(reader, x)
        if isinstance(x, dict):
            return mapped(lambda s: s.sum(0), score_typed_entries(reader, source))
        scores = score_entries(reader, source, place.here(place.field)).sum(0)
        return _spread(place, scores)

    def _columns(self, reader: Reader, x: Tensor, kind: str | None = None) -> Tensor:
        columns = (x != 0).any(0).nonzero().flatten()
        mask = x.new_zeros(1, x.shape[1])
        for chunk in columns.split(max(1, MASK_ENTRIES // max(1, x.numel()))):
            groups = torch.zeros(len(chunk), *x.shape, dtype=torch.bool, device=x.device)
            groups[torch.arange(len(chunk), device=x.device), :, chunk] = True
            mask[0, chunk] = reader.scores(groups if kind is None else {kind: groups})
        return mask


def _spread(place: Place, scores: Tensor) -> Tensor:
    """Scores of features in the numbering of the whole graph."""
    out = scores.new_zeros(place.num_nodes, scores.shape[1])
    out[slice(None) if place.nodes is None else place.nodes] = scores
    return out
