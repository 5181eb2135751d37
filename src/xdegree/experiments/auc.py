"""The paper's Table 1: how well each method finds the motif, for GCN and GAT, and how long it takes.

`protocol.py` says who is explained and what is true; the rows are other methods (`OTHERS`) and the readings of DEGREE
(`VARIANTS`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from .. import baselines
from ..baselines import Method, Scores
from ..baselines.instance import Instance, instance
from ..datasets import Dataset
from ..engine.options import Options
from ..models import Network
from ..recipes import Kind
from ..results.tables import Table, spread
from . import readings
from .page import Outcome
from .protocol import (
    MUTAGEN,
    NodeTruth,
    Quality,
    by_pair,
    drawn,
    edge_quality,
    explained_graphs,
    explained_nodes,
    pairs,
)
from .store import NODE_SETS, Bench, timed

DATASETS = (*NODE_SETS, "mutag")
TITLES = ("BA-Shapes", "BA-Community", "Tree-Cycles", "Tree-Grid", "MUTAG")
KINDS: tuple[Kind, ...] = ("GCN", "GAT")
TRAINING = 30
"""Instances that PGExplainer learns from; it is not judged on them."""


@dataclass(frozen=True)
class Other:
    """A method that is not ours: how it is made, on how many instances it is run (None: all), and where."""

    make: Callable[["Task"], Method]
    most: int | None = None
    kinds: tuple[Kind, ...] = KINDS
    datasets: tuple[str, ...] = DATASETS
    learns: bool = False
    """From the instances of `Task.training`, on which it is not judged."""


OTHERS: dict[str, Other] = {
    "random": Other(lambda _: baselines.random()),
    "hop distance, no model": Other(lambda _: baselines.hop_distance(), datasets=NODE_SETS),
    "GRAD, features": Other(lambda _: baselines.grad("node")),
    "GRAD, adjacency": Other(lambda _: baselines.grad("edge")),
    "gradient × input": Other(lambda _: baselines.grad_times_input()),
    "GAT attention": Other(lambda _: baselines.attention(), kinds=("GAT",)),
    "occlusion": Other(lambda _: baselines.occlusion(), 100),
    "integrated gradients": Other(lambda _: baselines.integrated_gradients(), 100),
    "GNNExplainer": Other(lambda _: baselines.gnn_explainer(), 20),
    "PGExplainer": Other(lambda task: baselines.pg_explainer(task.training, progress=False), learns=True),
    "GNN-LRP": Other(lambda _: baselines.gnn_lrp(), 100),
    "SubgraphX": Other(lambda _: baselines.subgraphx(), 10, datasets=("tree_cycles", "tree_grid", "mutag")),
    "DEGREE, contextual φ": Other(lambda _: baselines.contextual(), 10),
}
"""All but the readings that come from a single pass; the contextual score asks for contexts, so it is among these."""
QUICK = 5
"""Instances of each method with ``--quick``."""

VARIANTS: dict[str, tuple[Options, tuple[Kind, ...]]] = {
    "": (Options.paper(), KINDS),
    "ties first": (Options.paper(ties="first"), KINDS),
    "bias background": (Options.paper(bias="background"), KINDS),
    "attention whole": (Options.paper(attention="whole"), ("GAT",)),
    "attention whole, bias background": (Options.paper(attention="whole", bias="background"), ("GAT",)),
}
"""Options under which the readings are rows: the paper's, the authors' ties, and two choices of our own."""

PAPER: dict[str, tuple[str, ...]] = {
    "GRAD, adjacency": ("0.882", "0.750", "0.905", "0.612", "0.787"),
    "GAT attention": ("0.815", "0.739", "0.824", "0.667", "0.763"),
    "GNNExplainer": ("0.832", "0.750", "0.862", "0.842", "0.742"),
    "PGExplainer": ("0.963", "0.894", "0.960", "0.907", "0.836"),
}
PAPER_DEGREE: dict[Kind, tuple[tuple[float, float], ...]] = {
    "GCN": ((0.991, 0.005), (0.984, 0.005), (0.958, 0.004), (0.925, 0.040), (0.875, 0.028)),
    "GAT": ((0.990, 0.008), (0.982, 0.010), (0.919, 0.027), (0.935, 0.031), (0.863, 0.042)),
}
"""The paper's Table 1."""


@dataclass(frozen=True)
class Task:
    """One trained model, and what of it is explained."""

    model: Network
    dataset: Dataset
    authors: bool
    quick: bool

    @cached_property
    def explained(self) -> list[int]:
        """Ids of nodes or graphs."""
        if self.dataset.level == "graph":
            return explained_graphs(self.dataset)
        return explained_nodes(self.dataset, self.model, self.authors)

    @cached_property
    def training(self) -> list[Instance]:
        """What PGExplainer learns from."""
        return [self.instance(i) for i in self.learnt_from]

    @cached_property
    def learnt_from(self) -> list[int]:
        """Ids of `training`."""
        return drawn(self.explained, QUICK if self.quick else TRAINING, seed=1)

    @cached_property
    def _cut(self) -> dict[int, tuple[Instance, float]]:
        return {}

    def instance(self, i: int) -> Instance:
        """The prediction of a node or a graph, for its true class; cut out once for all methods."""
        if i not in self._cut:
            self._cut[i] = timed(lambda: self._made(i))
        return self._cut[i][0]

    def cutting(self, i: int) -> float:
        """The seconds that cutting out the computation graph took."""
        self.instance(i)
        return self._cut[i][1]

    def _made(self, i: int) -> Instance:
        if self.dataset.level == "graph":
            graph = self.dataset.graphs[i]
            return instance(self.model, graph.x, graph.edge_index, target=MUTAGEN)
        data = self.dataset.data
        return instance(self.model, data.x, data.edge_index, index=i, target=int(data.y[i]))

    def judge(self, ids: Sequence[int], found: Sequence[Tensor]) -> Quality:
        """Scores of nodes, or of the undirected edges of graphs, against the truth."""
        if self.dataset.level == "graph":
            return edge_quality([self.dataset.graphs[i] for i in ids], found)
        return NodeTruth(self.dataset.data, len(self.model.convs)).quality(ids, found)

    def items(self, i: int, scores: Scores) -> Tensor:
        """What is judged: a method's scores of nodes, or of undirected edges."""
        if self.dataset.level == "node":
            return scores.node.detach()
        graph = self.dataset.graphs[i]
        _, place, truth = pairs(graph)
        return by_pair(scores.edges(graph.edge_index).detach(), place, len(truth))


def run(bench: Bench) -> Outcome:
    """Every method on every dataset, for every seed."""
    return outcome(bench, authors=False)


def outcome(bench: Bench, authors: bool) -> Outcome:
    """The tables, by the paper's protocol or that of the authors' code."""
    tables = []
    for kind in KINDS:
        results = {name: collected(bench, name, kind, authors) for name in DATASETS}
        tables += [_auc_table(kind, results), _edges_table(kind, results["mutag"])]
        if not authors:
            tables += [_marks(kind, results), _controlled_table(kind, results), _seconds_table(kind, results)]
    name, title = ("auc-authors", "AUC by the authors' protocol") if authors else ("auc", "AUC (the paper's Table 1)")
    return Outcome(name, title, _about(bench, authors), tables)


Results = dict[str, list[dict[str, Any]]]
"""Row → what each seed gave."""


def collected(bench: Bench, name: str, kind: Kind, authors: bool = False) -> Results:
    """All rows of a dataset and a kind of model; empty if the data cannot be had."""
    found: Results = {}
    for seed in range(bench.seeds):
        try:
            model, dataset, _ = bench.trained(name, kind, seed)
        except FileNotFoundError:
            return {}
        task = Task(model, dataset, authors, bench.quick)
        place = f"auc{'-authors' if authors else ''}/{name}-{kind}-{seed}".lower()
        for row, other in chosen(name, kind, authors).items():
            cell = bench.cell(f"{place}/{_slug(row)}", {"most": other.most}, partial(_other, bench, task, other))
            found.setdefault(row, []).append(cell)
        for variant, (options, kinds) in VARIANTS.items():
            if kind in kinds and not (variant == "ties first" and dataset.level == "node"):
                compute = partial(of_degree, bench, task, options, messages=options == Options.paper())
                settings = {"options": options.to_dict()}
                cell = bench.cell(f"{place}/degree-{_slug(variant)}", settings, compute)
                for reading, value in cell.items():
                    found.setdefault(_named(reading, variant), []).append(value)
    return found


def chosen(name: str, kind: Kind, authors: bool) -> dict[str, Other]:
    """The other methods of a dataset; none by the authors' protocol, which is there to compare readings of DEGREE."""
    return {row: o for row, o in OTHERS.items() if name in o.datasets and kind in o.kinds and not authors}


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in text.lower()).strip("-") or "default"


def _named(reading: str, variant: str) -> str:
    """The name of a row; edges of molecules are pairs unless it says otherwise."""
    reading = reading.removeprefix("pair, ")
    if reading.startswith(("mean, ", "messages, ")):
        reading = f"{EDGES} {reading}"
    return ", ".join(part for part in ("DEGREE", reading, variant) if part)


EDGES = "edges by"
PAPERS = "DEGREE, probability"
"""The row that is the paper's own reading."""


def _other(bench: Bench, task: Task, other: Other) -> dict[str, Any]:
    """A method on its instances: quality, and seconds per instance with what learning took."""
    (method, learning) = timed(lambda: other.make(task))
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


def of_degree(bench: Bench, task: Task, options: Options, messages: bool = False) -> dict[str, Any]:
    """How good all readings are, of molecules those by messages only if asked: they take another pass.

    The seconds are those of what gives them all.
    """
    ids = drawn(task.explained, QUICK if bench.quick else None)
    (found, seconds) = timed(lambda: _all_readings(bench, task, ids, options, messages))
    return {
        reading: asdict(task.judge(ids, scores)) | {"seconds": seconds / len(ids), "learning": 0.0}
        for reading, scores in found.items()
    }


def _all_readings(
    bench: Bench, task: Task, ids: list[int], options: Options, messages: bool
) -> dict[str, Sequence[Tensor]]:
    if task.dataset.level == "node":
        data = task.dataset.data
        found_at_once = readings.of_nodes(task.model, data, ids, data.y[ids].tolist(), options)
        return {reading: list(scores) for reading, scores in found_at_once.items()}
    found: dict[str, list[Tensor]] = {}
    for i in bench.bar(ids, f"MUTAG {type(task.model).__name__}, DEGREE"):
        graph = task.dataset.graphs[i]
        scores = readings.of_pairs(task.model, graph, options, task.authors)
        if messages:
            scores["messages, |logit|"] = readings.of_messages(task.model, graph, options)
        for reading, values in scores.items():
            found.setdefault(reading, []).append(values)
    return dict(found)


def _rows(results: dict[str, Results]) -> list[str]:
    """All rows in their order, those of others first."""
    own = [row for found in results.values() for row in found if row not in OTHERS and EDGES not in row]
    return [*(row for row in OTHERS if any(row in found for found in results.values())), *dict.fromkeys(own)]


def _cells(results: dict[str, Results], row: str, value: Callable[[dict[str, Any]], float | None], digits: int) -> Any:
    for name in DATASETS:
        values = [value(cell) for cell in results[name].get(row, [])]
        yield spread([v for v in values if v is not None], digits)


def _auc_table(kind: Kind, results: dict[str, Results]) -> Table:
    lines = []
    for row in _rows(results):
        counts = [results[name][row][0]["instances"] for name in DATASETS if row in results[name]]
        lines.append((row, *_cells(results, row, lambda cell: cell["auc"], 3), "/".join(map(str, counts))))
        if row in PAPER:
            lines.append((f"{row}: the paper", *PAPER[row], ""))
    theirs = tuple(f"{mean:.3f} ± {sd:.3f}" for mean, sd in PAPER_DEGREE[kind])
    lines.append((f"DEGREE({kind}): the paper", *theirs, ""))
    skipped = {t: results[n][PAPERS][0]["skipped"] for n, t in zip(DATASETS, TITLES, strict=True) if results[n]}
    notes = [f"Instances where all or nothing is true were left out: {_listed(skipped)} (first seed)."]
    notes += [f"{TITLES[DATASETS.index(name)]}: no data." for name in DATASETS if not results[name]]
    return Table(f"AUC, {kind}", ("method", *TITLES, "instances"), tuple(lines), tuple(notes))


def _edges_table(kind: Kind, found: Results) -> Table:
    """MUTAG once more: edges as pairs, by the mean of their ends, by the messages along them."""
    means = {row.replace(f"{EDGES} mean, ", ""): cells for row, cells in found.items() if f"{EDGES} mean" in row}
    messages = {row.replace(f"{EDGES} messages, ", ""): cells for row, cells in found.items() if "messages" in row}
    rows = [
        (row, *(spread([cell["auc"] for cell in way.get(row, [])]) for way in (found, means, messages)))
        for row in means
    ]
    return Table(
        f"AUC of the edges of MUTAG, {kind}",
        ("reading", "both ends as one group", "mean of both ends", "messages along the edge"),
        tuple(rows),
    )


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _controlled_table(kind: Kind, results: dict[str, Results]) -> Table:
    synthetic = {name: results[name] if name in NODE_SETS else {} for name in DATASETS}
    lines = [
        (row, *list(_cells(synthetic, row, lambda cell: cell["hop_controlled"], 3))[: len(NODE_SETS)])
        for row in _rows(synthetic)
    ]
    about = "Motif against other nodes at the same distance only: distance alone, without a model, scores one half."
    return Table(f"Hop-controlled AUC, {kind}", ("method", *TITLES[: len(NODE_SETS)]), tuple(lines), (about,))


def _seconds_table(kind: Kind, results: dict[str, Results]) -> Table:
    lines = [(row, *_cells(results, row, lambda cell: cell["seconds"], 4)) for row in _rows(results)]
    lines.append(
        ("PGExplainer, learning", *_cells(results, "PGExplainer", lambda cell: cell["learning"], 1)),
    )
    note = (
        "DEGREE's readings come together from one pass (for molecules one pass each), whose time is divided by the"
        " number of instances; the others, φ included, are asked instance by instance, cutting out the computation"
        " graph included."
    )
    return Table(f"Processor seconds per instance, {kind}", ("method", *TITLES), tuple(lines), (note,))


def _mean(cells: Iterable[dict[str, Any]]) -> float:
    values = torch.tensor([cell["auc"] for cell in cells], dtype=torch.float64)
    return float(values.mean())


def _marks(kind: Kind, results: dict[str, Results]) -> Table:
    """Whether the paper's figure is met by its own reading, and the best of the others by our best."""
    lines = []
    for name, title, (paper, sd) in zip(DATASETS, TITLES, PAPER_DEGREE[kind], strict=True):
        found = {row: _mean(cells) for row, cells in results[name].items()}
        if not found:
            continue
        reading = found[PAPERS]
        ours = max((row for row in found if row.startswith("DEGREE")), key=found.__getitem__)
        theirs = max((row for row in found if not row.startswith("DEGREE")), key=found.__getitem__)
        met = reading >= paper - sd
        ahead = round(found[ours], 3) >= round(found[theirs], 3)
        lines.append(
            (
                title,
                f"{reading:.3f}",
                f"{paper:.3f} ± {sd:.3f}",
                "met" if met else "missed",
                f"{found[ours]:.3f} ({ours})",
                f"{found[theirs]:.3f} ({theirs})",
                "met" if ahead else "missed",
            )
        )
    head = ("dataset", "the paper's reading", "paper", "mark", "best reading", "best other method", "mark")
    note = "The best reading is picked by AUC, after the fact; a user without ground truth cannot pick so."
    return Table(f"Marks, {kind}", head, tuple(lines), (note,))


def _about(bench: Bench, authors: bool) -> str:
    if authors:
        return (
            "The readings of DEGREE once more, by the protocol of the authors' code (`xdegree.experiments.protocol`):"
            " fewer nodes of the trees are explained, and scores of MUTAG are those of class 0 minus class 1. Mean ±"
            f" standard deviation over {bench.seeds} models per dataset, chosen by validation loss, not by test loss as"
            " theirs. Other methods are left out."
        )
    limited = ", ".join(f"{row} {other.most}" for row, other in OTHERS.items() if other.most is not None)
    few = f"with --quick {QUICK} of each" if bench.quick else f"but for so many, drawn at random: {limited}"
    return (
        f"Protocol of the paper (`xdegree.experiments.protocol`). Mean ± standard deviation over {bench.seeds} models"
        " per dataset, of seeds 0, 1, …, each kept at its least validation loss; all methods explain the same models."
        f" All instances of a dataset are explained, {few}. SubgraphX is left out on the BA graphs, where it takes"
        " minutes per node, and runs elsewhere with far fewer samples than its authors'; PGExplainer learns from"
        f" {QUICK if bench.quick else TRAINING} instances that it is not judged on. Methods that score edges give a"
        " node the best of its edges; those that score nodes give an edge the mean of its ends. GATs get one-hot"
        " degrees where features are constant. How much these figures depend on how long the models were trained is"
        " another section, `xdegree reproduce epochs`."
    )
