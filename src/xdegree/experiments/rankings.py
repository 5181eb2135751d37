"""Rankings of nodes that the trial of defaults compares: readings of decompositions, and other methods, by AUC."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from .. import baselines
from ..attribution.explain import explain
from ..attribution.scores import impact
from ..baselines.instance import Instance, instance
from ..datasets import Dataset
from ..engine.options import Options
from ..metrics import auc, average, node_truth
from ..model_call.split_points import mean_features
from ..models import Network
from .protocol import drawn, explained_graphs, explained_nodes

AT_ONCE = 10
"""Graphs that are explained in one pass, side by side."""
IG_STEPS = 25
"""Of integrated gradients."""


@dataclass(frozen=True)
class Setting:
    """How a prediction is decomposed; every field that matters is named, so that no default has a say."""

    options: Options
    baseline: Literal["zero", "mean"] = "zero"
    steps: int = 1


_OPTIONS = {
    "paper": Options.paper(),
    "both orders": Options.paper(activation="both-orders"),
    "both orders, attention whole": Options.paper(activation="both-orders", attention="whole"),
    "bounded": Options.paper(activation="both-orders", attention="whole", bound="output"),
    "removal": Options.paper(activation="target-last", bias="background", attention="whole"),
    "gate": Options.paper(activation="gate", attention="whole"),
}
SETTINGS: dict[str, Setting] = {
    **{name: Setting(options) for name, options in _OPTIONS.items()},
    **{f"{name}, from the mean": Setting(options, "mean") for name, options in _OPTIONS.items()},
    "4 steps": Setting(_OPTIONS["removal"], steps=4),
    "4 steps, from the mean": Setting(_OPTIONS["removal"], "mean", 4),
}
"""In several steps activations are taken target last and biases left to the background whatever the options say."""

READINGS = ("contribution", "|contribution|", "margin", "impact")
"""To the predicted class; its size; minus that to the runner-up; the norm over all classes, centred."""


def read(table: Tensor, prediction: Tensor) -> dict[str, Tensor]:
    """All readings ``[n]`` of contributions ``[n, C]`` to the classes of a prediction ``[C]``."""
    own, second = prediction.topk(2).indices.tolist()
    contribution = table[:, own]
    scores = (contribution, contribution.abs(), contribution - table[:, second], impact(table))
    return dict(zip(READINGS, scores, strict=True))


@dataclass(frozen=True)
class Case:
    """A prediction, right and explained for its class, with the nodes that compete and those of them that are true."""

    one: Instance
    place: int
    """Of the node or the graph."""
    field: Tensor
    truth: Tensor


def cases(model: Network, dataset: Dataset, most: int) -> list[Case]:
    """Up to so many predictions that are right: of a wrong one the truth is no reason.

    Of nodes in motifs, the nodes that messages reach compete and those of the same motif are true. Of graphs, all nodes
    compete: true are the motif, the ends of marked bonds of a mutagen, the atoms of a nitro group.
    """
    found = []
    if dataset.level == "node":
        data = dataset.data
        with torch.no_grad():
            right = model(data.x, data.edge_index).argmax(-1) == data.y
        nodes = [node for node in explained_nodes(dataset, model) if right[node]]
        for node in drawn(nodes, most):
            one = instance(model, data.x, data.edge_index, index=node)
            found.append(Case(one, node, *node_truth(one, data.motif, node)))
        return found
    for i in drawn(_graphs_with_truth(dataset), None if most is None else 2 * most):
        graph = dataset.graphs[i]
        one = instance(model, graph.x, graph.edge_index)
        if one.target == int(graph.y) and len(found) < most:
            found.append(Case(one, i, one.field, true_nodes(graph)))
    return found


def _graphs_with_truth(dataset: Dataset) -> list[int]:
    """Mutagens with a marked edge; else all graphs with a true node."""
    if dataset.name == "MUTAG":
        return explained_graphs(dataset)
    return [i for i, graph in enumerate(dataset.graphs) if bool(true_nodes(graph).any())]


def true_nodes(graph: Data) -> Tensor:
    """The nodes ``[N]`` that make the label of a graph: of a molecule with SMILES, its nitro group."""
    true = torch.zeros(int(graph.num_nodes or 0), dtype=torch.bool)
    if "smiles" in graph:
        true[_nitro_atoms(graph.smiles)] = True
    elif "motif" in graph:
        true |= graph.motif >= 0
    else:
        true[graph.edge_index[:, graph.edge_mask.bool()].flatten()] = True
    return true


def _nitro_atoms(smiles: str) -> list[int]:
    """RDKit numbers the atoms of a SMILES as `molecule_of` does."""
    from rdkit import Chem

    pattern = Chem.MolFromSmarts("[N+](=O)[O-]")
    matches = Chem.MolFromSmiles(smiles).GetSubstructMatches(pattern)
    return [atom for match in matches for atom in match]


def judge(cases: Sequence[Case], scores: Sequence[Tensor]) -> float:
    """The mean AUC of scores ``[N]`` of all nodes, for each prediction; those with nothing or all true are left out."""
    each = zip(cases, scores, strict=True)
    return average(auc, [(score[case.field].double(), case.truth) for case, score in each]).mean


def decomposed(cases: Sequence[Case], dataset: Dataset, settings: Mapping[str, Setting]) -> dict[str, dict[str, float]]:
    """The AUC of every reading under every setting; a mean that is zero is not asked for twice."""
    centred = any(bool(case.one.mean.any()) for case in cases)
    found: dict[str, dict[str, float]] = {}
    for name, setting in settings.items():
        same = name.removesuffix(", from the mean")
        if same in found and not centred:
            found[name] = found[same]
            continue
        tables = list(_tables(cases, dataset, setting))
        each = [read(table, case.one.prediction) for table, case in zip(tables, cases, strict=True)]
        found[name] = {reading: judge(cases, [scores[reading] for scores in each]) for reading in READINGS}
    return found


def _tables(cases: Sequence[Case], dataset: Dataset, setting: Setting) -> Iterator[Tensor]:
    """Contributions ``[N, C]`` of all nodes, for each prediction."""
    how: dict[str, Any] = {"options": setting.options, "steps": setting.steps}
    model = cases[0].one.model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of large residuals, which are not judged here
        if dataset.level == "node":
            data, nodes = dataset.data, [case.place for case in cases]
            found = explain(model, data.x, data.edge_index, index=nodes, baseline=setting.baseline, **how)
            yield from (one.class_scores for one in found)
            return
        for start in range(0, len(cases), AT_ONCE):
            yield from _side_by_side(cases[start : start + AT_ONCE], setting.baseline, how)


def _side_by_side(cases: Sequence[Case], baseline: str, how: dict[str, Any]) -> Iterator[Tensor]:
    """Of graphs, each measured from the mean of its own nodes if from any."""
    graphs = [Data(x=case.one.x, edge_index=case.one.edge_index) for case in cases]
    batch = Batch.from_data_list(graphs)
    start = torch.cat([_start(graph.x, baseline) for graph in graphs])
    found = explain(
        cases[0].one.model,
        *(batch.x, batch.edge_index),
        batch=batch.batch,
        index=list(range(len(graphs))),
        baseline=start,
        **how,
    )
    for place, one in enumerate(found):
        yield one.class_scores[batch.ptr[place] : batch.ptr[place + 1]]


def _start(x: Tensor, baseline: str) -> Tensor:
    return mean_features(x).expand_as(x) if baseline == "mean" else torch.zeros_like(x)


SIGNED = ("gradient × input", "occlusion", "IG", "IG from the mean")
"""Other methods whose scores have a sign; their sizes are candidates too."""
HOPS = "hop distance"


def others(cases: Sequence[Case], dataset: Dataset) -> dict[str, float]:
    """The AUC of every other method; graphs have no distances, so there all nodes tie."""
    methods = {
        "|gradient|": baselines.grad("node"),
        "gradient × input": baselines.grad_times_input(),
        "occlusion": baselines.occlusion(),
    }
    found = {name: [method(case.one).node for case in cases] for name, method in methods.items()}
    # Another order for each prediction: true nodes have the same places in many graphs.
    found["random"] = [baselines.random(case.place)(case.one).node for case in cases]
    found |= _integrated(cases, "zero")
    centred = _integrated(cases, "mean") if any(bool(case.one.mean.any()) for case in cases) else found
    found |= {f"{name} from the mean": centred[name] for name in ("IG", "IG norm")}
    found |= {f"|{name}|": [scores.abs() for scores in found[name]] for name in SIGNED}
    nearness = baselines.hop_distance()
    near = [nearness(case.one).node for case in cases] if dataset.level == "node" else None
    hops = 0.5 if near is None else judge(cases, near)
    return {**{name: judge(cases, scores) for name, scores in found.items()}, HOPS: hops}


def _integrated(cases: Sequence[Case], baseline: Literal["zero", "mean"]) -> dict[str, list[Tensor]]:
    """Integrated gradients of the predicted class, and the norm of those of all classes."""
    method = baselines.integrated_gradients(IG_STEPS, "signed", baseline)
    signed, norms = [], []
    for case in cases:
        each = [method(replace(case.one, target=target)).node for target in range(len(case.one.prediction))]
        table = torch.stack(each, 1)
        signed.append(table[:, case.one.target])
        norms.append(impact(table))
    return {"IG": signed, "IG norm": norms}
