"""DEGREE inside PyG's own explanation interface."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.explain import ExplainerAlgorithm, Explanation
from torch_geometric.explain.config import MaskType, ModelMode, ModelTaskLevel

from .computation_graph import Workplace, trace, workplace
from .decompose import whole_survey
from .inputs import ModelCall, prepare
from .memory import Memory
from .options import Options
from .outputs import as_table
from .scores import Edges, Reader, Reading, check_choices, score_objects


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
        self.reading: Reading = reading
        self.edges = edges
        self.layer = layer
        self.options = Options.of(options)
        self.memory = memory

    def supports(self) -> bool:
        """Node and graph level, every mode and return type; edges as objects."""
        edge_type = self.explainer_config.edge_mask_type
        return self.model_config.task_level != ModelTaskLevel.edge and edge_type in (None, MaskType.object)

    @torch.no_grad()
    def forward(
        self,
        model: torch.nn.Module,
        x: Tensor,
        edge_index: Tensor,
        *,
        target: Tensor,
        index: int | Tensor | None = None,
        **kwargs: Any,
    ) -> Explanation:
        """The masks that the explainer was asked for."""
        call = ModelCall((x, edge_index), kwargs)
        prepare(model, call)
        seen = trace(model, call)
        rows, classes, signs = self._explained(as_table(seen.output, call), target, index)
        work = workplace(model, call, seen, rows)
        reader = Reader(self.reading, work.rows, classes, self.layer or seen.output_layer, self.options, signs)
        with whole_survey(model, call):
            node_mask, edge_mask = self._masks(model, work, reader, edge_index)
        return Explanation(**{n: m for n, m in (("node_mask", node_mask), ("edge_mask", edge_mask)) if m is not None})

    def _masks(
        self, model: torch.nn.Module, work: Workplace, reader: Reader, edge_index: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        wanted = self.explainer_config
        node_mask, edge_mask = None, None
        if wanted.node_mask_type == MaskType.object or wanted.edge_mask_type is not None:
            edges = self.edges if wanted.edge_mask_type is not None else None
            node_mask, edge_mask = score_objects(model, work, reader, self.memory, edges, edge_index)
            node_mask = node_mask.unsqueeze(-1)
        if wanted.node_mask_type != MaskType.object:
            node_mask = self._feature_mask(model, work, reader)
        return node_mask, edge_mask

    def _explained(
        self, table: Tensor, target: Tensor, index: int | Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Rows, their classes and signs. A binary model has one output for two classes: class 0 is its negative."""
        rows = torch.arange(len(table)) if index is None else torch.as_tensor(index).reshape(-1)
        if self.model_config.mode == ModelMode.regression:
            return rows.repeat_interleave(table.shape[1]), torch.arange(table.shape[1]).repeat(len(rows)), None
        labels = target.reshape(-1)
        labels = labels[rows] if len(labels) == len(table) else labels
        if self.model_config.mode == ModelMode.multiclass_classification:
            return rows, labels, None
        return rows, torch.zeros_like(rows), torch.where(labels > 0, 1, -1)

    def _feature_mask(self, model: torch.nn.Module, work: Workplace, reader: Reader) -> Tensor | None:
        """Single features as groups; one that is 0 has nothing to contribute, so only the others are asked for."""
        kind, x = self.explainer_config.node_mask_type, work.call.x
        if kind is None:
            return None
        if kind == MaskType.common_attributes:
            columns = (x != 0).any(0).nonzero()
            entries = columns.new_tensor([[-1, column] for column in columns.flatten().tolist()]).reshape(-1, 2)
            mask = x.new_zeros(1, x.shape[1])
            mask[0, columns.flatten()] = self._entry_scores(model, work, reader, entries)
            return mask
        here = torch.tensor(work.groups(work.field.unsqueeze(1)), device=x.device).flatten()
        entries = (x[here] != 0).nonzero()
        mask = x.new_zeros(work.num_nodes, x.shape[1])
        entries_here = torch.stack([here[entries[:, 0]], entries[:, 1]], 1)
        mask[work.field[entries[:, 0]], entries[:, 1]] = self._entry_scores(model, work, reader, entries_here)
        return mask

    def _entry_scores(self, model: torch.nn.Module, work: Workplace, reader: Reader, entries: Tensor) -> Tensor:
        """The score of each entry (row, column) of the features; row −1 stands for the whole column."""
        x = work.call.x
        size = max(1, MASK_ENTRIES // max(1, x.numel()))
        scores = [x.new_zeros(0)]
        for chunk in entries.split(size):
            mask = torch.zeros(len(chunk), *x.shape, dtype=torch.bool, device=x.device)
            for number, (row, column) in enumerate(chunk.tolist()):
                mask[number, slice(None) if row < 0 else row, column] = True
            scores.append(reader.scores(model, work.call, mask, self.memory))
        return torch.cat(scores)


MASK_ENTRIES = 2**26
"""Truth values in one mask of features, at most."""
