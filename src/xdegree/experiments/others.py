"""The other methods of Table 1, at their best: settings of their own literature, and on which instances each is run."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from math import nan
from typing import Any

from torch import Tensor

from .. import baselines
from ..baselines import Method
from ..recipes import Kind
from ..results.tables import Table, spread
from .page import Outcome
from .protocol import NodeTruth, drawn
from .store import NODE_SETS, Bench, timed
from .tasks import DATASETS, KINDS, QUICK, TITLES, TRAINING, Task
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
    "GAT attention": Other(_plain(baselines.attention), kinds=("GAT",)),
    "|IG|": Other(_plain(baselines.integrated_gradients, 25, "absolute")),
    "GNN-LRP": Other(_plain(baselines.gnn_lrp)),
    "PGExplainer": Other(
        lambda name, task: baselines.pg_explainer(task.training, progress=False, **PG_EXPLAINER[name]), learns=True
    ),
    "gradient × input": Other(_plain(baselines.grad_times_input)),
    "IG": Other(_plain(baselines.integrated_gradients, 25)),
    "occlusion": Other(_plain(baselines.occlusion)),
    "GNNExplainer": Other(lambda name, _: baselines.gnn_explainer(**GNN_EXPLAINER[name])),
    "IG, norm over classes": Other(_plain(baselines.integrated_gradients, 25, "norm")),
    "SubgraphX": Other(_plain(baselines.subgraphx), 10, datasets=("tree_cycles", "tree_grid", "mutag")),
    "DEGREE, contextual φ": Other(_plain(baselines.contextual), 10),
}
"""In the order in which they are run. The contextual score asks for contexts, so it is among these."""
PAPER: dict[str, tuple[str, ...]] = {
    "GRAD, adjacency": ("0.882", "0.750", "0.905", "0.612", "0.787"),
    "GAT attention": ("0.815", "0.739", "0.824", "0.667", "0.763"),
    "GNNExplainer": ("0.832", "0.750", "0.862", "0.842", "0.742"),
    "PGExplainer": ("0.963", "0.894", "0.960", "0.907", "0.836"),
}
"""The paper's Table 1."""


Found = dict[str, list[dict[str, Any]]]
"""Row → what each seed gave."""


def run(bench: Bench) -> Outcome:
    """Every method on the first model of every cell, row by row; interrupted, the tables show what was done."""
    tasks: dict[tuple[str, Kind, int], Task] = {}
    try:
        for row, name, kind in product(OTHERS, DATASETS, KINDS):
            found(bench, name, kind, (row,), tasks)
    except KeyboardInterrupt:
        print("interrupted: what is missing is not run; the same command resumes there", file=sys.stderr)
    tables = [table for kind in KINDS for table in tables_of(kind, {n: found(bench, n, kind) for n in DATASETS})]
    return Outcome("others", "Other methods on the models of Table 1", ABOUT, tables)


ABOUT = (
    f"Models explained: the first {SEEDS} of each cell of Table 1, by the authors' protocol; up to {MOST} instances"
    f" drawn at random, of SubgraphX and φ 10. PGExplainer learns from {TRAINING} others. SubgraphX is left out on the"
    " BA graphs, where it takes minutes per node. GNNExplainer and PGExplainer have the settings by dataset of the"
    " replication of PGExplainer by Holdijk et al. Methods that score edges give a node the best of its edges; those"
    " that score nodes give an edge the mean of its ends. Seconds are those of the processor, from the model and the"
    " graph to the scores, the cut of the computation graph included."
)


def found(
    bench: Bench,
    name: str,
    kind: Kind,
    rows: Sequence[str] | None = None,
    tasks: dict[tuple[str, Kind, int], Task] | None = None,
) -> Found:
    """What methods gave on the models of a cell: what is kept, and with `tasks`, which rows share, what is missing."""
    results: Found = {}
    for seed, row in product(range(min(bench.seeds, SEEDS)), OTHERS if rows is None else rows):
        other = OTHERS[row]
        if name not in other.datasets or kind not in other.kinds:
            continue
        settings = {"most": other.most, **_settings(row, name)}
        key = f"others/{name}-{kind}-{seed}/{_slug(row)}".lower()
        cell = bench.kept(key, settings)
        if cell is None and tasks is not None:
            if (name, kind, seed) not in tasks:
                model, dataset, _ = trained_as(bench, name, variant(name, kind, WHICH), seed)
                tasks[name, kind, seed] = Task(model, dataset, authors=True, quick=bench.quick)
            cell = bench.cell(key, settings, partial(_measured, bench, name, tasks[name, kind, seed], other))
        if cell is not None and cell["instances"]:
            results.setdefault(row, []).append(cell)
    return results


WHICH: Name = "own split"
NOTHING = "not run"
"""Said of what is missing, also where a model predicts no node to be in a motif, so that there is none to explain."""


def tables_of(kind: Kind, results: dict[str, Found]) -> list[Table]:
    """AUC, and processor seconds with the cut of the computation graph."""
    quality, seconds = [], []
    for row, other in OTHERS.items():
        if kind not in other.kinds:
            continue
        cells = [results[name].get(row, []) for name in DATASETS]
        missing = [NOTHING if name in other.datasets else "–" for name in DATASETS]
        counts = "/".join(str(each[0]["instances"]) for each in cells if each)
        aucs = (spread([one["auc"] for one in each]) if each else no for each, no in zip(cells, missing, strict=True))
        quality.append((row, *aucs, counts))
        if any(cells):
            seconds.append((row, *(spread([one["seconds"] for one in each], 4) for each in cells)))
        if row in PAPER:
            quality.append((f"{row}: the paper", *PAPER[row], ""))
    learnt = [results[name].get("PGExplainer", []) for name in DATASETS]
    if any(learnt):
        seconds.append(("PGExplainer, learning", *(spread([one["learning"] for one in each], 1) for each in learnt)))
    return [
        Table(f"Other methods, {kind}", ("method", *TITLES, "instances"), tuple(quality)),
        Table(f"Processor seconds per instance, {kind}", ("method", *TITLES), tuple(seconds)),
    ]


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
    learnt_from = set(task.learnt_from if other.learns else ())
    ids = drawn([i for i in task.explained if i not in learnt_from], QUICK if bench.quick else other.most)
    if not ids:  # a model that predicts no node to be in a motif, or so few that all are learnt from
        return asdict(task.judge([], [])) | {"seconds": nan, "learning": nan}
    method, learning = timed(lambda: other.make(name, task))
    scores: list[Tensor] = []
    seconds = 0.0
    for i in bench.bar(ids, f"{task.dataset.name} {type(task.model).__name__}"):
        one = task.instance(i)
        found, took = timed(partial(method, one))
        scores.append(task.items(i, found))
        seconds += took + task.cutting(i)
    return asdict(task.judge(ids, scores)) | {"seconds": seconds / len(ids), "learning": learning}
