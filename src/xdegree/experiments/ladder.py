"""Ladders: from the plainest run to the final one, a cause at a time; and models that learned nothing, as a control."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..recipes import Kind
from ..results.tables import Table, spread
from . import others
from .store import NODE_SETS, Bench
from .tasks import DATASETS, KINDS, TITLES
from .variants import CONTROL_SEEDS, LADDER_SEEDS, STOPPED, Cell, Name, aucs, collected

FLOATS = "in floats"


@dataclass(frozen=True)
class Rung:
    """What is changed against the rung before, and how it is measured."""

    title: str
    which: Name
    reading: str
    protocol: str = "paper"
    options: str = "paper"
    final: bool = False
    """Whether all models are measured, not only the first."""


def rungs(name: str, kind: Kind, reading: str, fixed: str) -> list[Rung]:
    """The steps of a dataset and a column."""
    graph = name not in NODE_SETS
    found = [] if kind == "GCN" or graph else [Rung("GAT on one-hot degrees", "one-hot", FLOATS)]
    start = "graph convolution first (hybrid)" if found else "the paper's text, scores in floats"
    found.append(Rung(start, "plain", FLOATS))
    found.append(Rung("scores as a ratio", "plain", reading))
    found.append(Rung("batches of 128" if graph else "settings by validation loss", "chosen", reading, final=True))
    if not graph:
        found.append(Rung("a random split for each model", "own split", reading, final=True))
    last: Name = "own split"
    return [
        *found,
        Rung("the authors' protocol", last, reading, "authors", final=True),
        Rung(f"{fixed}, default options, instead", last, fixed, "authors", "default", final=True),
    ]


def table(bench: Bench, name: str, reading: str, fixed: str) -> Table:
    """Of one dataset: both columns of Table 1."""
    lines = []
    for kind in KINDS:
        before: float | None = None
        for rung in rungs(name, kind, reading, fixed):
            few = LADDER_SEEDS if name in NODE_SETS else CONTROL_SEEDS
            cells = collected(bench, name, kind, rung.which, rung.options, None if rung.final else few)
            values = aucs(cells, rung.protocol, rung.reading)
            gain = "" if before is None or not values else f"{fmean(values) - before:+.3f}"
            before = fmean(values) if values else before
            lines.append((kind, rung.title, _accuracy(cells), spread(values), gain, str(len(cells))))
    head = ("model", "one change at a time", "test accuracy", "AUC", "gain", "models")
    title = TITLES[DATASETS.index(name)]
    note = "A gain between rungs of few models and of more holds the difference of the models too."
    return Table(f"The ladder of {title}", head, tuple(lines), (note,))


def _accuracy(cells: Sequence[Cell]) -> str:
    return spread([cell["accuracy"] for cell in cells], 2)


def controls(bench: Bench, reading: str, fixed: str) -> Table:
    """What AUC says of models that have learned nothing, beside nearness without any model."""
    lines = []
    for name in NODE_SETS:
        if name not in DATASETS:
            continue
        hops = others.hop_distance(bench, name, authors=False)
        near = "–" if hops is None else f"{hops['auc']:.3f}"
        for kind in KINDS:
            found: list[tuple[str, Name]] = [
                ("first weights", "untrained"),
                (f"{STOPPED} epochs", "stopped"),
                ("trained", "chosen"),
            ]
            for label, which in found:
                papers = collected(bench, name, kind, which, "paper", CONTROL_SEEDS)
                ours = collected(bench, name, kind, which, "default", CONTROL_SEEDS)
                values = (
                    *(spread(aucs(papers, "paper", reading, value)) for value in ("auc", "hop_controlled")),
                    *(spread(aucs(ours, "paper", fixed, value)) for value in ("auc", "hop_controlled")),
                )
                lines.append((TITLES[DATASETS.index(name)], kind, label, _accuracy(papers), near, *values))
    head = (
        *("dataset", "model", "training", "test accuracy", "hop distance, no model", "the paper's reading"),
        *("hop-controlled", fixed, "hop-controlled"),
    )
    note = (
        "The protocol of the paper's text. Hop-controlled: motif against other nodes at the same distance only, where"
        " distance alone scores one half. An AUC that a model without training reaches says nothing about the method's"
        " view of what was learned."
    )
    return Table("Controls: untrained models and distance alone", head, tuple(lines), (note,))
