"""The paper's ACC against sparsity: how often the prediction stays when only the picked nodes keep their features."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from ..agglomerate import agglomerate
from ..baselines import Method, degree, gnn_lrp, grad, random, search
from ..datasets import Dataset
from ..explain import explain
from ..instance import Instance, instance
from ..metrics import acc_against_sparsity, top_nodes
from ..pick import pick_subgraph
from ..tables import Table
from .page import Outcome, Picture
from .protocol import drawn, explained_graphs
from .store import Bench, timed

SPARSITIES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
DRAWS, LARGEST = 1000, 200
"""How the authors measure: so many draws with replacement, larger graphs left out."""
AUTHORS = {
    "mutag": (math.nan, math.nan, 0.919, 0.925, 0.923, 0.937, 0.925, 0.930, 0.935, 0.958, 1.0),
    "graph_sst2": (math.nan, math.nan, 0.676, 0.804, 0.881, 0.923, 0.960, 0.978, 0.989, 1.0, 1.0),
}
"""What the authors' code plots for DEGREE; the paper has it as a picture."""
TITLES = {"mutag": "MUTAG", "graph_sst2": "Graph-SST2 (rebuilt)"}
Masks = Callable[[Instance], Tensor]
"""The nodes that are kept, ``[S, N]``, one row for each sparsity."""


def by_scores(method: Method) -> Masks:
    """The nodes that score best."""
    return lambda one: top_nodes(method(one).node, SPARSITIES)


def by_growth(one: Instance) -> Tensor:
    """In the order in which an agglomeration takes nodes in that accepts only what raises the class; then the others.

    This is how the paper says that it changed its method for this figure. Nodes of one level, and those that were never
    taken in, come in the order of their contributions.
    """
    tree = agglomerate(one.model, one.x, one.edge_index, target=one.target, rising=True)
    late = len(tree.levels)
    entry = torch.full((one.num_nodes,), late, dtype=torch.float64)
    for number in reversed(range(late)):
        for group in tree.levels[number]:
            entry[list(group.nodes)] = number
    alone = explain(one.model, one.x, one.edge_index, target=one.target).node_scores.double()
    step = 2 * float(alone.abs().max()) + 1  # levels weigh more than any contribution
    return top_nodes(alone - step * entry, SPARSITIES)


def by_subgraphx(one: Instance) -> Tensor:
    """The best of the subgraphs, of at most so many nodes, that one search down to the smallest size meets."""
    sizes = _sizes(one)
    found = search(one, max_nodes=sizes[0])
    return _masks(one, [found.best(size) for size in sizes])


def by_fidelity(one: Instance) -> Tensor:
    """xdegree's connected subgraph that the prediction depends on most: the only row that is led by masked outputs."""
    picked = [
        pick_subgraph(one.model, one.x, one.edge_index, target=one.target, size=size, objective="fidelity", beam=4)
        for size in _sizes(one)
    ]
    return _masks(one, [found.nodes for found in picked])


def nothing(one: Instance) -> Tensor:
    """A control: how often the class is the one that the model gives to a graph without any features."""
    return torch.zeros(len(SPARSITIES), one.num_nodes, dtype=torch.bool)


def _sizes(one: Instance) -> list[int]:
    return [max(1, round(share * one.num_nodes)) for share in SPARSITIES]


def _masks(one: Instance, groups: Sequence[frozenset[int]]) -> Tensor:
    """What is kept; all nodes where the sparsity is 1, whatever a method prefers."""
    masks = torch.zeros(len(SPARSITIES), one.num_nodes, dtype=torch.bool)
    for number, (share, nodes) in enumerate(zip(SPARSITIES, groups, strict=True)):
        masks[number, list(nodes) if share < 1 else slice(None)] = True
    return masks


@dataclass(frozen=True)
class Line:
    """A row of the table: how it picks nodes, on how many graphs, and whether of all models."""

    masks: Masks
    most: int = 100
    every_seed: bool = True


LINES: dict[str, Line] = {
    "DEGREE, agglomeration of what raises the class": Line(by_growth, 40, every_seed=False),
    "DEGREE, largest contributions": Line(by_scores(degree())),
    "xdegree, subgraph by fidelity": Line(by_fidelity, 8, every_seed=False),
    "GNN-LRP": Line(by_scores(gnn_lrp())),
    "SubgraphX": Line(by_subgraphx, 20, every_seed=False),
    "GRAD": Line(by_scores(grad("node"))),
    "random": Line(by_scores(random())),
    "no node kept": Line(nothing),
}
DRAWN = "DEGREE, largest contributions"
"""The row that is also measured the authors' way."""
QUICK = {100: 20, 40: 5, 20: 2, 8: 1}
"""Graphs of each row with ``--quick``."""


def run(bench: Bench) -> Outcome:
    """Every row on both datasets."""
    tables, pictures, notes = [], {}, []
    for name, title in TITLES.items():
        try:
            table, picture = _of_dataset(bench, name)
        except FileNotFoundError as error:
            notes.append(f" {title}: left out, {error}.")
            continue
        tables.append(table)
        pictures[f"acc-sparsity-{name.replace('_', '-')}"] = picture
    about = (
        "ACC is the share of graphs whose predicted class stays when the features of all nodes but the picked ones"
        " are set to 0, edges kept, as in the authors' code; sparsity is the share of nodes that is kept. Explained"
        f" is the predicted class. Models: GCN of seeds 0, 1, … ({bench.seeds} in all) where the column says so, else"
        " of seed 0; values are means over models, the band in the pictures is one standard deviation. Graphs: of"
        " MUTAG the 1,015 mutagens with a marked group, of Graph-SST2 all sentences with word vectors, training"
        " graphs among them, as in the authors' code; each method on n of them, drawn with seed 0. SubgraphX is our"
        " compact one with 10 rollouts, 6 children and 10 samples, one search per graph; it and the subgraph by"
        " fidelity may keep fewer nodes than allowed. Seconds are processor seconds per graph for all sparsities"
        f" together. The row of {DRAWS:,} draws takes graphs of at most {LARGEST} nodes with replacement, as the"
        " authors do. The authors' curve is of their own model; the paper's text says that DEGREE is competitive"
        " with GNN-LRP and SubgraphX, and faster." + "".join(notes)
    )
    return Outcome("acc-sparsity", "ACC against sparsity (the paper's figure)", about, tables, pictures)


def _of_dataset(bench: Bench, name: str) -> tuple[Table, Picture]:
    rows, curves = [], {}
    trained = lru_cache(partial(bench.trained, name, "GCN"))  # all rows share them, and reading the data takes long
    for row, line in LINES.items():
        seeds = range(bench.seeds if line.every_seed else 1)
        most = QUICK[line.most] if bench.quick else line.most
        settings: dict[str, Any] = {"most": most, "sparsities": list(SPARSITIES)}
        slug = "".join(c if c.isalnum() else "-" for c in row.lower()).replace("--", "-")
        cells = [
            bench.cell(
                f"acc-sparsity/{name}-{seed}/{slug}", settings, partial(_cell, bench, line, most, row, trained, seed)
            )
            for seed in seeds
        ]
        if line.masks is not nothing:
            curves[row] = (SPARSITIES, [cell["acc"] for cell in cells])
        seconds = sum(cell["seconds"] for cell in cells) / len(cells)
        rows.append(_row(row, cells[0]["count"], len(cells), [cell["acc"] for cell in cells], f"{seconds:.3f}"))
        if row == DRAWN:
            values = [cell["drawn"] for cell in cells]
            rows.append(_row(f"… the same, {DRAWS:,} draws", cells[0]["drawn_from"], len(cells), values, ""))
    rows.append(
        ("authors' DEGREE", f"{DRAWS:,} draws", "1", *("–" if math.isnan(v) else f"{v:.3f}" for v in AUTHORS[name]), "")
    )
    curves["authors' DEGREE, their model"] = (SPARSITIES, [list(AUTHORS[name])])
    head = ("method", "n", "models", *(f"{s}" for s in SPARSITIES), "seconds")
    return Table(f"ACC against sparsity: {TITLES[name]}", head, tuple(rows)), Picture(
        _picture(curves, TITLES[name]), f"ACC against the share of nodes that is kept, {TITLES[name]}"
    )


def _row(name: str, count: int, models: int, values: list[list[float]], seconds: str) -> tuple[str, ...]:
    means = [sum(column) / len(column) for column in zip(*values, strict=True)]
    return (name, f"{count:,}", str(models), *(f"{mean:.3f}" for mean in means), seconds)


def graphs_of(dataset: Dataset) -> list[int]:
    """The graphs that are explained."""
    if dataset.name == "MUTAG":
        return explained_graphs(dataset)
    return list(range(len(dataset.graphs)))


def _cell(
    bench: Bench, line: Line, most: int, row: str, trained: Callable[[int], tuple[Any, Dataset, Any]], seed: int
) -> dict[str, Any]:
    model, dataset, _ = trained(seed)
    ones, masks, seconds = [], [], 0.0
    for i in bench.bar(drawn(graphs_of(dataset), most), f"{dataset.name}, seed {seed}: {row}", "graph"):
        graph = dataset.graphs[i]
        one = instance(model, graph.x, graph.edge_index)
        kept, spent = timed(partial(line.masks, one))
        ones.append(one)
        masks.append(kept)
        seconds += spent
    found = {"count": len(ones), "acc": acc_against_sparsity(ones, masks), "seconds": seconds / len(ones)}
    if row == DRAWN:
        found["drawn"] = acc_against_sparsity(ones, masks, draws=DRAWS, max_nodes=LARGEST)
        found["drawn_from"] = sum(one.num_nodes <= LARGEST for one in ones)
    return found


def _picture(curves: dict[str, Any], title: str) -> Any:
    from ..plots import plot_curves
    from ..plots.style import new_axes

    axes = new_axes((9, 4.2))  # the names beside the curves are long
    return plot_curves(curves, xlabel="sparsity: share of nodes that is kept", ylabel="ACC", title=title, ax=axes)
