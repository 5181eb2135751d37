"""The paper's table of dataset statistics."""

from ..results.tables import Table
from .page import Outcome
from .store import NODE_SETS, Bench

PAPER = {
    "ba_shapes": (700, 4_110, 1, 4),
    "ba_community": (1_400, 8_920, 1, 8),
    "tree_cycles": (871, 1_950, 1, 2),
    "tree_grid": (1_231, 3_410, 1, 2),
    "mutag": (131_488, 266_894, 4_337, 2),
    "graph_sst2": (714_325, 1_288_566, 70_042, 2),
}
"""Nodes, edges, graphs and labels, as the paper prints them."""
SETS = (*NODE_SETS, "mutag", "graph_sst2")
HEAD = ("dataset", "nodes", "edges", "graphs", "labels", "features")
ABOUT = (
    "Counted in the graphs that all experiments use, beside the paper's figures. An edge counts once in each direction,"
    " as there."
)


def run(bench: Bench) -> Outcome:
    """Count what every dataset holds."""
    rows, notes = [], []
    for name in SETS:
        paper = tuple(f"{count:,}" for count in PAPER[name])
        try:
            stats = bench.dataset(name).stats()
        except OSError as error:  # it is not there, or cannot be fetched
            rows.append((name, *["missing"] * (len(HEAD) - 1), *paper))
            notes.append(f"{name}: missing, {error}")
            continue
        counted = (f"{count:,}" for count in (stats.nodes, stats.edges, stats.graphs, stats.labels))
        rows.append((stats.name, *counted, stats.features, *paper))
        if stats.note:
            notes.append(f"{stats.name}: {stats.note}")
    head = (*HEAD, "paper: nodes", "edges", "graphs", "labels")
    table = Table("Statistics of the datasets", head, tuple(rows), tuple(notes))
    return Outcome("datasets", "Datasets (the paper's table of statistics)", ABOUT, [table])
