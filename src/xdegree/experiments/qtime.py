"""The paper's 3-D figure: seconds per agglomeration against q and the size of the molecule."""

from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import Any

from torch import nn
from torch_geometric.data import Data

from ..results.tables import Table
from ..subgraphs.agglomerate import agglomerate
from .page import Outcome, Picture
from .protocol import PAPER_RULES
from .store import Bench, timed

SIZES = (10, 20, 30, 40, 60, 80)
QS = (0.2, 0.4, 0.6, 0.8, 1.0)
MOLECULES = 3


def run(bench: Bench) -> Outcome:
    """Grow trees of molecules of each size, with each q."""
    sizes, count = (SIZES[:3], 2) if bench.quick else (SIZES, MOLECULES)
    model, dataset, _ = bench.trained("mutag", "GCN", 0)
    cells = {}
    for size in sizes:
        settings = {"size": size, "molecules": count, "qs": list(QS), "seed": 0}
        cells[size] = bench.cell(
            f"qtime/atoms-{size}", settings, partial(_measure, bench, model, dataset.graphs, size, count)
        )
    seconds = {size: [median(cell["seconds"][str(q)]) for q in QS] for size, cell in cells.items()}
    levels = {size: [median(cell["levels"][str(q)]) for q in QS] for size, cell in cells.items()}
    head = ("atoms", *(f"q = {q}" for q in QS), "levels, from q = 0.2 to 1")
    rows = [
        (_range(cells[size]["atoms"]), *(f"{s:.3f}" for s in seconds[size]), " ".join(f"{n:g}" for n in levels[size]))
        for size in sizes
    ]
    table = Table("Processor seconds per tree, median over molecules", head, tuple(rows), (_trend(seconds),))
    about = (
        f"Model: GCN of seed 0. For each size the {count} molecules of MUTAG whose number of atoms is nearest to it,"
        " in the order of the dataset; every tree is grown once, with all levels, by `agglomerate` with the paper's"
        " threshold, for the predicted class, seed 0, after one that is not counted. Seconds are processor seconds"
        " of one thread. The paper shows this as a picture and states no numbers, so there is none to compare with."
        " To be expected is growth with the number of atoms, and with q: a small q takes many nodes at a time and"
        " needs fewer levels."
    )
    picture = Picture(_surface(seconds), "Processor seconds per tree against q and the number of atoms")
    return Outcome("qtime", "Time of the agglomeration (the paper's 3-D figure)", about, [table], {"qtime": picture})


def of_size(graphs: Sequence[Data], size: int, count: int) -> list[Data]:
    """The molecules of that size, or of the sizes nearest to it, earlier ones first."""
    return sorted(graphs, key=lambda graph: abs((graph.num_nodes or 0) - size))[:count]


def _measure(bench: Bench, model: nn.Module, molecules: Sequence[Data], size: int, count: int) -> dict[str, Any]:
    graphs = of_size(molecules, size, count)
    agglomerate(model, graphs[0].x, graphs[0].edge_index, options=PAPER_RULES)  # the first call looks rules up
    seconds, levels = {}, {}
    for q in bench.bar(QS, f"trees of {size} atoms", "q"):
        grown = [
            timed(partial(agglomerate, model, graph.x, graph.edge_index, q=q, options=PAPER_RULES)) for graph in graphs
        ]
        seconds[str(q)] = [spent for _, spent in grown]
        levels[str(q)] = [len(tree.levels) for tree, _ in grown]
    return {"atoms": [graph.num_nodes for graph in graphs], "seconds": seconds, "levels": levels}


def _range(atoms: Sequence[int]) -> str:
    return f"{min(atoms)}" if min(atoms) == max(atoms) else f"{min(atoms)} to {max(atoms)}"


def _trend(seconds: dict[int, list[float]]) -> str:
    """Whether the paper's trends hold, in numbers."""
    sizes, middle = sorted(seconds), QS.index(0.6)
    growth = seconds[sizes[-1]][middle] / seconds[sizes[0]][middle]
    slower = [seconds[size][-1] / seconds[size][0] for size in sizes]
    return (
        f"From {sizes[0]} to {sizes[-1]} atoms the time grows {growth:.1f} times (q = 0.6); from q = {QS[0]} to"
        f" {QS[-1]} it grows {min(slower):.1f} to {max(slower):.1f} times, by size."
    )


def _surface(seconds: dict[int, list[float]]) -> Any:
    from ..plots import plot_surface

    heights = list(seconds.values())
    return plot_surface(QS, list(seconds), heights, xlabel="q", ylabel="atoms", zlabel="processor seconds per tree")
