"""The other methods of Table 1, at their best: settings of their own literature, and on which instances each is run."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from torch import Tensor

from .. import baselines
from ..baselines import Method
from ..recipes import Kind
from .protocol import NodeTruth, drawn
from .store import NODE_SETS, Bench, timed
from .tasks import DATASETS, KINDS, QUICK, Task
from .variants import Name, trained_as, variant

SEEDS = 1
"""Models that other methods explain: the first of those that DEGREE explains."""
MOST = 100
"""Instances that most methods are run on, drawn at random: one call takes up to a second."""

GNN_EXPLAINER: dict[str, dict[str, Any]] = {
    "ba_shapes": {"lr": 0.005, "edge_size": 0.005},
    "ba_community": {"lr": 0.003, "edge_size": 0.05},
    "tree_cycles": {"lr": 0.003, "edge_size": 0.05},
    "tree_grid": {"lr": 0.01, "edge_size": 0.01},
    "mutag": {"lr": 0.003, "edge_size": 0.01, "epochs": 30},
}
PG_EXPLAINER: dict[str, dict[str, Any]] = {
    "ba_shapes": {"epochs": 10, "edge_size": 0.05, "temp": [5.0, 2.0], "bias": 0.0},
    "ba_community": {"epochs": 20, "edge_size": 0.05, "temp": [1.0, 1.0], "bias": 0.5},
    "tree_cycles": {"epochs": 20, "edge_size": 0.1, "edge_ent": 10.0, "temp": [1.0, 5.0], "bias": 0.0},
    "tree_grid": {"epochs": 30, "edge_size": 1.0, "temp": [5.0, 2.0], "bias": 0.0},
    "mutag": {"epochs": 30, "lr": 0.0003, "edge_size": 0.005, "temp": [5.0, 5.0], "bias": 0.0},
}
"""Both as in the replication of PGExplainer by Holdijk et al. (ML Reproducibility Challenge 2020), by dataset."""


@dataclass(frozen=True)
class Other:
    """A method that is not ours: how it is made, on how many instances it is run (None: all), and where."""

    make: Callable[[str, Task], Method]
    most: int | None = MOST
    kinds: tuple[Kind, ...] = KINDS
    datasets: tuple[str, ...] = DATASETS
    learns: bool = False
    """From the instances of `Task.training`, on which it is not judged."""


def _plain(make: Callable[..., Method], *args: Any, **settings: Any) -> Callable[[str, Task], Method]:
    return lambda _name, _task: make(*args, **settings)


HOPS = "hop distance, no model"
OTHERS: dict[str, Other] = {
    "random": Other(_plain(baselines.random)),
    "GRAD, features": Other(_plain(baselines.grad, "node")),
    "GRAD, adjacency": Other(_plain(baselines.grad, "edge")),
    "gradient × input": Other(_plain(baselines.grad_times_input)),
    "GAT attention": Other(_plain(baselines.attention), kinds=("GAT",)),
    "occlusion": Other(_plain(baselines.occlusion)),
    "IG": Other(_plain(baselines.integrated_gradients, 25)),
    "|IG|": Other(_plain(baselines.integrated_gradients, 25, "absolute")),
    "IG, norm over classes": Other(_plain(baselines.integrated_gradients, 25, "norm")),
    "GNN-LRP": Other(_plain(baselines.gnn_lrp)),
    "PGExplainer": Other(
        lambda name, task: baselines.pg_explainer(task.training, progress=False, **PG_EXPLAINER[name]), learns=True
    ),
    "GNNExplainer": Other(lambda name, _: baselines.gnn_explainer(**GNN_EXPLAINER[name])),
    "SubgraphX": Other(_plain(baselines.subgraphx), 10, datasets=("tree_cycles", "tree_grid", "mutag")),
    "DEGREE, contextual φ": Other(_plain(baselines.contextual), 10),
}
"""In the order of their price. The contextual score asks for contexts, so it is among these."""
PAPER: dict[str, tuple[str, ...]] = {
    "GRAD, adjacency": ("0.882", "0.750", "0.905", "0.612", "0.787"),
    "GAT attention": ("0.815", "0.739", "0.824", "0.667", "0.763"),
    "GNNExplainer": ("0.832", "0.750", "0.862", "0.842", "0.742"),
    "PGExplainer": ("0.963", "0.894", "0.960", "0.907", "0.836"),
}
"""The paper's Table 1."""


def judged(bench: Bench, name: str, kind: Kind, which: Name, authors: bool) -> dict[str, list[dict[str, Any]]]:
    """Each method on the models of a dataset: what each seed gave."""
    found: dict[str, list[dict[str, Any]]] = {}
    for seed in range(min(bench.seeds, SEEDS)):
        model, dataset, _ = trained_as(bench, name, variant(name, kind, which), seed)
        task = Task(model, dataset, authors, bench.quick)
        for row, other in OTHERS.items():
            if name in other.datasets and kind in other.kinds:
                settings = {"most": other.most, "authors": authors, **_settings(row, name)}
                key = f"others/{name}-{kind}-{which}-{seed}/{_slug(row)}".lower().replace(" ", "-")
                cell = bench.cell(key, settings, partial(_measured, bench, name, task, other))
                found.setdefault(row, []).append(cell)
    return found


def hop_distance(bench: Bench, name: str, authors: bool) -> dict[str, Any] | None:
    """Nearness alone, without a model's scores; by the authors' protocol a model says which nodes are explained."""
    if name not in NODE_SETS:
        return None

    def compute() -> dict[str, Any]:
        model, dataset, _ = trained_as(bench, name, variant(name, "GCN", "chosen"), 0)
        task = Task(model, dataset, authors, bench.quick)
        ids, truth = task.explained, NodeTruth.of(dataset, model, authors)
        return asdict(task.judge(ids, [-truth.distance(i).double() for i in ids]))

    return bench.cell(f"others/{name}-hops-{authors}".lower(), {}, compute)


def _settings(row: str, name: str) -> dict[str, Any]:
    return {"GNNExplainer": GNN_EXPLAINER, "PGExplainer": PG_EXPLAINER}.get(row, {}).get(name, {})


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in text.lower())


def _measured(bench: Bench, name: str, task: Task, other: Other) -> dict[str, Any]:
    """A method on its instances: quality, seconds per instance with the cut of the computation graph, and learning."""
    (method, learning) = timed(lambda: other.make(name, task))
    learnt_from = set(task.learnt_from if other.learns else ())
    ids = [i for i in task.explained if i not in learnt_from]
    ids = drawn(ids, QUICK if bench.quick else other.most)
    scores: list[Tensor] = []
    seconds = 0.0
    for i in bench.bar(ids, f"{task.dataset.name} {type(task.model).__name__}"):
        one = task.instance(i)
        found, took = timed(partial(method, one))
        scores.append(task.items(i, found))
        seconds += took + task.cutting(i)
    return asdict(task.judge(ids, scores)) | {"seconds": seconds / len(ids), "learning": learning}
