"""The paper's table of accuracies."""

from ..recipes import PAPER_ACCURACY, Kind, recipe
from ..results.tables import Table, spread
from .page import Outcome
from .store import NODE_SETS, Bench

SPLITS = ("train", "val", "test")
KINDS: tuple[Kind, ...] = ("GCN", "GAT")
MODELS: tuple[tuple[str, Kind], ...] = (
    *((name, kind) for name in (*NODE_SETS, "mutag") for kind in KINDS),
    ("graph_sst2", "GCN"),
)


def run(bench: Bench) -> Outcome:
    """Train every model of every dataset and read off what it reaches."""
    rows, notes = [], []
    for name, kind in MODELS:
        results, dataset = [], None
        for seed in range(bench.seeds):
            try:
                _, dataset, result = bench.trained(name, kind, seed)
            except FileNotFoundError as error:
                notes.append(f"{name}, {kind}: left out, {error}")
                break
            results.append(result)
        if dataset is None:
            continue
        paper = PAPER_ACCURACY[dataset.name, kind]
        ours = [spread([getattr(result, f"{split}_accuracy") for result in results]) for split in SPLITS]
        rows.append((dataset.name, kind, *ours, *(f"{value:.2f}" for value in paper)))
        how = recipe(dataset, kind)
        if dataset.note:
            notes.append(f"{dataset.name}: {dataset.note}")
        if "degree" in dataset.features:
            notes.append(f"{dataset.name}, {kind}: features are {dataset.features}.")
        if how.weight_decay or how.first_l1:
            notes.append(
                f"{dataset.name}, {kind}: not the paper's settings: {how.epochs} epochs, learning rate {how.lr}, weight"
                f" decay {how.weight_decay}, L1 of the first layer {how.first_l1}; chosen by validation loss."
            )
    head = ("dataset", "model", "train", "validation", "test", "paper: train", "validation", "test")
    table = Table("Accuracy of the target models", head, tuple(rows), tuple(dict.fromkeys(notes)))
    about = (
        f"Mean ± standard deviation over {bench.seeds} seeds of the first weights; the data and their split are the"
        " same for all. The state of least validation loss is kept; neither test accuracy nor any explanation score"
        " affects that choice."
    )
    return Outcome("accuracy", "Accuracy (the paper's table of accuracies)", about, [table])
