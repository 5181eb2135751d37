"""DEGREE inside PyG's own explanation interface."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.explain import ExplainerAlgorithm, Explanation, HeteroExplanation
from torch_geometric.explain.config import MaskType, ModelMode

from ..engine.options import Options
from ..engine.portions import mapped
from ..locality.computation_graph import workplace
from ..locality.message_flow import trace
from ..locality.subgraph_call import Workplace
from ..model_call.call import model_call, prepare
from ..model_call.memory import Memory
from ..model_call.outputs import as_table
from ..model_call.split_points import find_source
from .decompose import whole_survey
from .scores import (
    MASK_ENTRIES,
    Edges,
    Reader,
    Reading,
    check_choices,
    score_entries,
    score_objects,
    score_typed_entries,
)


class DegreeExplainer(ExplainerAlgorithm):
    """``Explainer(model, DegreeExplainer(), …)``: PyG's interface with signed scores by decomposition.

    As in PyG, several rows (``index=[3, 17]``) or no ``index`` give one joint explanation: the sum over the rows.

    Args:
        reading, layer, options, memory: as in `xdegree.explain`.
        edges: how ``edge_mask_type="object"`` is scored, ``"pair"`` or ``"mean"``.
    """

    def __init__(
        self,
        reading: Reading = "contribution",
        edges: Edges = "pair",
        layer: str | None = None,
        options: Options | None = None,
        memory: Memory = None,
    ) -> None:
        super().__init__()
        check_choices(reading, edges, memory)
        if edges is None:
            raise ValueError("edges says how edges are scored, 'pair' or 'mean' (got None)")
        self.reading: Reading = reading
        self.edges = edges
        self.layer = layer
        self.options = Options.of(options)
        self.memory = memory

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
        call = model_call(model, (x, edge_index), kwargs)
        prepare(model, call)
        seen = trace(model, call)
        table = as_table(seen.output, call)
        rows, classes, signs = self._explained(table.values, target, index)
        work = workplace(model, call, seen, rows)
        reader = Reader(self.reading, work.rows, classes, self.layer or seen.output_layer, self.options, signs)
        with whole_survey(model, call, find_source(model, call)):
            masks = self._masks(model, work, reader, edge_index)
        if not isinstance(x, dict):
            return Explanation(**{name: mask for name, mask in masks.items() if mask is not None})
        found = HeteroExplanation()
        for name, mask in masks.items():
            if mask is not None:
                found.set_value_dict(name, mask)
        return found

    def _masks(self, model: torch.nn.Module, work: Workplace, reader: Reader, edge_index: Any) -> dict[str, Any]:
        wanted = self.explainer_config
        masks: dict[str, Any] = {"node_mask": None, "edge_mask": None}
        if wanted.node_mask_type == MaskType.object or wanted.edge_mask_type is not None:
            edges = self.edges if wanted.edge_mask_type is not None else None
            scores = score_objects(model, work, reader, self.memory, edges, edge_index)
            masks["edge_mask"] = None if scores.edges is None else mapped(lambda s: s.sum(0), scores.edges)
            if wanted.node_mask_type == MaskType.object:
                masks["node_mask"] = mapped(lambda s: s.sum(0).unsqueeze(-1), scores.nodes)
        if wanted.node_mask_type in (MaskType.attributes, MaskType.common_attributes):
            masks["node_mask"] = self._feature_mask(model, work, reader)
        return masks

    def _explained(
        self, table: Tensor, target: Tensor, index: int | Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Rows, their classes and signs. A binary model has one output for two classes: class 0 is its negative."""
        rows = torch.arange(len(table)) if index is None else torch.as_tensor(index).reshape(-1)
        if len(rows) and not (0 <= int(rows.min()) and int(rows.max()) < len(table)):
            raise ValueError(f"index is out of range: the model predicts rows 0 to {len(table) - 1} (got {index})")
        if self.model_config.mode == ModelMode.regression:
            return rows.repeat_interleave(table.shape[1]), torch.arange(table.shape[1]).repeat(len(rows)), None
        labels = target.reshape(-1)
        labels = labels[rows] if len(labels) == len(table) else labels
        if self.model_config.mode == ModelMode.multiclass_classification:
            return rows, labels, None
        return rows, torch.zeros_like(rows), torch.where(labels > 0, 1, -1)

    def _feature_mask(self, model: torch.nn.Module, work: Workplace, reader: Reader) -> Any:
        """Single features as groups, or the whole columns of them."""
        x, source = work.call.x, find_source(model, work.call)
        if self.explainer_config.node_mask_type == MaskType.common_attributes:
            if isinstance(x, dict):
                return {kind: self._columns(model, work, reader, value, kind) for kind, value in x.items()}
            return self._columns(model, work, reader, x)
        if isinstance(x, dict):
            return mapped(lambda s: s.sum(0), score_typed_entries(model, work.call, reader, source, self.memory))
        here = torch.tensor(work.groups(work.field.unsqueeze(1)), device=x.device).flatten()
        scores = score_entries(model, work.call, reader, source, self.memory, here).sum(0)
        mask = x.new_zeros(work.num_nodes, x.shape[1])
        mask[slice(None) if work.nodes is None else work.nodes] = scores
        return mask

    def _columns(
        self, model: torch.nn.Module, work: Workplace, reader: Reader, x: Tensor, kind: str | None = None
    ) -> Tensor:
        columns = (x != 0).any(0).nonzero().flatten()
        mask = x.new_zeros(1, x.shape[1])
        for chunk in columns.split(max(1, MASK_ENTRIES // max(1, x.numel()))):
            groups = torch.zeros(len(chunk), *x.shape, dtype=torch.bool, device=x.device)
            groups[torch.arange(len(chunk)), :, chunk] = True
            mask[0, chunk] = reader.scores(model, work.call, groups if kind is None else {kind: groups}, self.memory)
        return mask
