"""Methods that learn a mask: GNNExplainer and PGExplainer, both PyG's own."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.explain import Explainer, GNNExplainer, PGExplainer
from tqdm import tqdm

from .instance import Instance
from .interface import Method, Scores, of_edges, of_nodes, own_copy, seeded


def _explainer(one: Instance, algorithm: Any, **masks: str) -> Explainer:
    """PyG's explainer of a copy of the model: GNNExplainer leaves its masks behind in the model."""
    return Explainer(
        own_copy(one.model),
        algorithm,
        explanation_type="phenomenon",  # so that the class can be chosen; for the predicted one it is the same
        model_config={"mode": "multiclass_classification", "task_level": one.level, "return_type": "raw"},
        **masks,
    )


def _single(one: Instance) -> Instance:
    """The same prediction in float32: the network of PGExplainer has no other type."""
    kwargs = {k: v.float() if isinstance(v, Tensor) and v.is_floating_point() else v for k, v in one.kwargs.items()}
    return replace(one, x=one.x.float(), kwargs=kwargs)


def _arguments(one: Instance) -> dict[str, Any]:
    """What PyG's explainers need: the class of each row, of which one counts."""
    rows = len(one.x) if one.level == "node" else 1
    target = torch.full((rows,), one.target, device=one.x.device)
    return {**one.kwargs, "target": target, **({"index": one.row} if one.level == "node" else {})}


def gnn_explainer(of: str = "edge", epochs: int = 100, lr: float = 0.01, seed: int = 0, **coeffs: float) -> Method:
    """GNNExplainer: a soft mask, learnt anew for every prediction.

    Args:
        of: ``"edge"``, a mask of edges; ``"node"``, a mask of nodes.
        epochs: of learning (PyG's default is 100).
        lr: learning rate (PyG's default is 0.01).
        seed: of the first mask.
        **coeffs: of PyG's `GNNExplainer`, such as ``edge_size=0.05``.
    """
    if of not in ("edge", "node"):
        raise ValueError(f'of is "edge" or "node" (got {of!r})')

    def method(one: Instance) -> Scores:
        algorithm = GNNExplainer(epochs=epochs, lr=lr, **coeffs)
        with seeded(seed):
            explainer = _explainer(one, algorithm, **{f"{of}_mask_type": "object"})
            found = explainer(one.x, one.edge_index, **_arguments(one))
        mask: Tensor = found[f"{of}_mask"]
        return of_edges(one, mask) if of == "edge" else of_nodes(one, mask.squeeze(-1))

    return method


def pg_explainer(
    training: Sequence[Instance],
    epochs: int = 30,
    lr: float = 0.003,
    seed: int = 0,
    progress: bool = True,
    **coeffs: Any,
) -> Method:
    """PGExplainer: one network that tells the mask of an edge from the embeddings of its ends, for all predictions.

    Args:
        training: the predictions that it learns from; for comparisons not those that are explained afterwards.
        epochs: over all of them.
        lr: learning rate (PyG's default is 0.003).
        seed: of its first weights and of its noise.
        progress: show a progress bar.
        **coeffs: of PyG's `PGExplainer`, such as ``edge_size=0.05`` or ``temp=[5.0, 2.0]``.
    """
    if not training:
        raise ValueError("PGExplainer learns from predictions, but got none")
    usable = [_single(one) for one in training if one.edge_index.shape[1]]
    with seeded(seed), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Converting a tensor with requires_grad")  # PyG reads off its loss so
        algorithm = PGExplainer(epochs=epochs, lr=lr)
        algorithm.coeffs = {**PGExplainer.coeffs, **coeffs}  # its own argument would change those of all others
        explainer = _explainer(usable[0], algorithm, edge_mask_type="object")
        explainer.model.float()
        for epoch in tqdm(range(epochs), desc="PGExplainer", unit="epoch", disable=None if progress else True):
            for one in usable:
                explainer.algorithm.train(epoch, explainer.model, one.x, one.edge_index, **_arguments(one))

    def method(one: Instance) -> Scores:
        with seeded(seed):
            found = explainer(_single(one).x, one.edge_index, **_arguments(_single(one)))
        return of_edges(one, found.edge_mask.to(one.x.dtype))

    return method
