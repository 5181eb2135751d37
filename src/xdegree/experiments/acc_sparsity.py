"""The paper's ACC against sparsity: how often the prediction stays when only the picked nodes keep their features."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from ..attribution.explain import explain
from ..baselines import Method, degree, gnn_lrp, grad, random, search
from ..baselines.instance import Instance, instance
from ..datasets import Dataset
from ..metrics import acc_against_sparsity, top_nodes
from ..results.tables import Table, spread
from ..subgraphs.agglomerate import agglomerate
from ..subgraphs.pick import pick_subgraph
from .page import Outcome, Picture
from .protocol import PAPER_RULES, drawn, explained_graphs
from .store import Bench, timed

SPARSITIES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SHARED, SHOWN, BY_MODEL = 20, (0.05, 0.1, 0.2, 0.3, 0.5), 0.1
"""Graphs that rows must have to be compared on the same ones, and the sparsities at which they are."""
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
    tree = agglomerate(one.model, one.x, one.edge_index, target=one.target, rising=True, options=PAPER_RULES)
    late = len(tree.levels)
    entry = torch.full((one.num_nodes,), late, dtype=torch.float64)
    for number in reversed(range(late)):
        for group in tree.levels[number]:
            entry[list(group.nodes)] = number
    alone = explain(one.model, one.x, one.edge_index, target=one.target, options=PAPER_RULES).node_scores.double()
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
        pick_subgraph(
            one.model,
            one.x,
            one.edge_index,
            target=one.target,
            size=size,
            objective="fidelity",
            beam=4,
            options=PAPER_RULES,
        )
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
    """A row of the table: how it picks nodes, and on how many graphs of each model.

    All rows have all models: a model that gives its most frequent class also to a graph without features keeps its
    predictions whatever is picked, and a row of that model alone would shine for no reason.
    """

    masks: Masks
    most: int = 100


CONTROL = "no node kept"
LINES: dict[str, Line] = {
    "DEGREE, agglomeration of what raises the class": Line(by_growth, 40),
    "DEGREE, largest contributions": Line(by_scores(degree(options=PAPER_RULES))),
    "xdegree, subgraph by fidelity": Line(by_fidelity, 8),
    "GNN-LRP": Line(by_scores(gnn_lrp())),
    "SubgraphX": Line(by_subgraphx, 20),
    "GRAD": Line(by_scores(grad("node"))),
    "random": Line(by_scores(random())),
    CONTROL: Line(nothing),
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
            own, picture = _of_dataset(bench, name)
        except FileNotFoundError as error:
            notes.append(f" {title}: left out, {error}.")
            continue
        tables += own
        pictures[f"acc-sparsity-{name.replace('_', '-')}"] = picture
    about = (
        "ACC is the share of graphs whose predicted class stays when the features of all nodes but the picked ones"
        " are set to 0, edges kept, as in the authors' code; sparsity is the share of nodes that is kept. Explained"
        f" is the predicted class. Models: GCN of seeds 0, 1, … ({bench.seeds} in all), the same for all methods;"
        " values are means over models, the band in the pictures is one standard deviation (the control has none)."
        " Graphs: of MUTAG the"
        " 1,015 mutagens with a marked group, of Graph-SST2 all sentences with word vectors, training graphs among"
        " them, as in the authors' code; each method on n of them for each model, drawn with seed 0, so that a row"
        " of fewer graphs has some of those of the others; the further tables compare on the same graphs. SubgraphX"
        " is our compact one with 10 rollouts, 6 children and 10 samples, one search per graph; it and the subgraph"
        " by fidelity may keep fewer nodes than allowed. Seconds are processor seconds per graph for all sparsities"
        f" together. The row of {DRAWS:,} draws takes graphs of at most {LARGEST} nodes with replacement, as the"
        " authors do. The authors' curve is of their own model; the paper's text says that DEGREE is competitive"
        " with GNN-LRP and SubgraphX, and faster." + "".join(notes)
    )
    return Outcome("acc-sparsity", "ACC against sparsity (the paper's figure)", about, tables, pictures)


def _of_dataset(bench: Bench, name: str) -> tuple[list[Table], Picture]:
    found = _measured(bench, name)
    rows = []
    for row, cells in found.items():
        seconds = f"{sum(cell['seconds'] for cell in cells) / len(cells):.3f}"
        rows.append(_row(row, cells[0]["count"], len(cells), [cell["acc"] for cell in cells], seconds))
        if row == DRAWN:
            values = [cell["drawn"] for cell in cells]
            rows.append(_row(f"… the same, {DRAWS:,} draws", cells[0]["drawn_from"], len(cells), values, ""))
    authors = ("–" if math.isnan(value) else f"{value:.3f}" for value in AUTHORS[name])
    rows.append(("authors' DEGREE", f"{DRAWS:,} draws", "1", *authors, ""))
    head = ("method", "n", "models", *(f"{s}" for s in SPARSITIES), "seconds")
    curves = {row: (SPARSITIES, [cell["acc"] for cell in cells]) for row, cells in found.items()}
    control = curves[CONTROL][1]
    curves[CONTROL] = (SPARSITIES, [[_mean(column) for column in zip(*control, strict=True)]])  # its band hides all
    curves["authors' DEGREE, their model"] = (SPARSITIES, [list(AUTHORS[name])])
    picture = Picture(_picture(curves, TITLES[name]), f"ACC against the share of nodes kept, {TITLES[name]}")
    table = Table(f"ACC against sparsity: {TITLES[name]}", head, tuple(rows))
    return [table, *shared_tables(TITLES[name], found)], picture


def _measured(bench: Bench, name: str) -> dict[str, list[dict[str, Any]]]:
    """What each model gave, by row."""
    trained = lru_cache(partial(bench.trained, name, "GCN"))  # all rows share them, and reading the data takes long
    found: dict[str, list[dict[str, Any]]] = {}
    for row, line in LINES.items():
        most = QUICK[line.most] if bench.quick else line.most
        settings = {"most": most, "sparsities": list(SPARSITIES), "kept": "hits of each graph"}
        slug = "".join(c if c.isalnum() else "-" for c in row.lower()).replace("--", "-")
        for seed in range(bench.seeds):
            compute = partial(_cell, bench, line, most, row, trained, seed)
            found.setdefault(row, []).append(bench.cell(f"acc-sparsity/{name}-{seed}/{slug}", settings, compute))
    return found


def shared_tables(title: str, found: dict[str, list[dict[str, Any]]]) -> list[Table]:
    """The same on the graphs that the rows have in common, with the spread over models, and model by model.

    Rows of few graphs are left out, as all others would be judged on those few.
    """
    fewest = min(SHARED, max(cells[0]["count"] for cells in found.values()))
    rows = {row: cells for row, cells in found.items() if cells[0]["count"] >= fewest}
    common = sorted(set.intersection(*({*cells[0]["hits"]} for cells in rows.values())))
    means = {
        row: [[_mean([cell["hits"][i][place] for i in common]) for cell in cells] for place in range(len(SPARSITIES))]
        for row, cells in rows.items()
    }
    places = [SPARSITIES.index(share) for share in SHOWN]
    spreads = tuple((row, *(spread(values[place], 2) for place in places)) for row, values in means.items())
    at = SPARSITIES.index(BY_MODEL)
    models = range(len(next(iter(rows.values()))))
    each = tuple((row, *(f"{value:.2f}" for value in values[at])) for row, values in means.items())
    note = (
        "A model that keeps its predictions when no node is kept keeps them whatever is picked: its column says little."
    )
    n = f"the same {len(common)} graphs in every row"
    return [
        Table(f"{title}, {n}: mean ± deviation over models", ("method", *map(str, SHOWN)), spreads),
        Table(
            f"{title}, {n}: sparsity {BY_MODEL}, by model", ("method", *(f"seed {m}" for m in models)), each, (note,)
        ),
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _row(name: str, count: int, models: int, values: list[list[float]], seconds: str) -> tuple[str, ...]:
    means = [_mean(column) for column in zip(*values, strict=True)]
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
    ids = drawn(graphs_of(dataset), most)
    for i in bench.bar(ids, f"{dataset.name}, seed {seed}: {row}", "graph"):
        graph = dataset.graphs[i]
        one = instance(model, graph.x, graph.edge_index)
        kept, spent = timed(partial(line.masks, one))
        ones.append(one)
        masks.append(kept)
        seconds += spent
    hits = [acc_against_sparsity([one], [kept]) for one, kept in zip(ones, masks, strict=True)]
    found = {
        "count": len(ones),
        "hits": {str(i): of_one for i, of_one in zip(ids, hits, strict=True)},
        "acc": [_mean(column) for column in zip(*hits, strict=True)],
        "seconds": seconds / len(ones),
    }
    if row == DRAWN:
        found["drawn"] = acc_against_sparsity(ones, masks, draws=DRAWS, max_nodes=LARGEST)
        found["drawn_from"] = sum(one.num_nodes <= LARGEST for one in ones)
    return found


def _picture(curves: dict[str, Any], title: str) -> Any:
    from ..plots import plot_curves
    from ..plots.style import new_axes

    axes = new_axes((9, 4.2))  # the names beside the curves are long
    return plot_curves(curves, xlabel="sparsity: share of nodes that is kept", ylabel="ACC", title=title, ax=axes)
