"""The paper's table of accuracies, and the settings that validation loss chose."""

from collections.abc import Sequence
from statistics import fmean

from ..datasets import Dataset
from ..models import Network
from ..recipes import PAPER_ACCURACY, Kind, Recipe, candidates, plain, recipe
from ..results.tables import Table, spread
from ..training import TrainingResult, graph_accuracy
from .page import Outcome
from .store import NODE_SETS, Bench
from .variants import LADDER_SEEDS

SPLITS = ("train", "val", "test")
SEARCHED: tuple[Kind, ...] = ("GCN", "HybridGAT")
MODELS: tuple[tuple[str, Kind], ...] = (
    *((name, kind) for name in NODE_SETS for kind in SEARCHED),
    *(("mutag", kind) for kind in ("GCN", "GAT")),
    *(("graph_sst2", kind) for kind in ("GCN", "GAT")),
)
SEEDS = {"graph_sst2": 1}
"""Models of sets that take minutes each; else as many as are asked for."""
TOLERANCE = 0.03
"""How far a test accuracy may be from the paper's without a word."""


def run(bench: Bench) -> Outcome:
    """Train every model of every dataset and read off what it reaches; interrupted, the rest is not run."""
    search, rows, notes, off = _search(bench), [], [], []
    missing: list[str] = []
    for name, kind in MODELS:
        try:
            found = [] if missing else [bench.trained(name, kind, seed) for seed in range(_seeds(bench, name))]
        except FileNotFoundError as error:
            notes.append(f"{name}, {kind}: left out, {error}")
            continue
        except KeyboardInterrupt:
            found = []
        if not found:
            missing.append(f"{name}, {kind}")
            continue
        dataset, results = found[0][1], [result for _, _, result in found]
        ours = [spread([getattr(result, f"{split}_accuracy") for result in results]) for split in SPLITS]
        paper = PAPER_ACCURACY.get((dataset.name, "GAT" if kind == "HybridGAT" else kind))
        said = ("–",) * len(SPLITS) if paper is None else tuple(f"{value:.2f}" for value in paper)
        rows.append((dataset.name, kind, *ours, *said, str(len(results))))
        notes += _notes(dataset, kind, found)
        test = fmean(result.test_accuracy for result in results)
        if paper is not None and abs(test - paper[-1]) > TOLERANCE:
            reason = REASONS.get((dataset.name, kind), "The cause is not known.")
            off.append(f"{dataset.name}, {kind}: {test:.2f}, the paper {paper[-1]:.2f}. {reason}")
    notes += off + [f"Not run: {one}." for one in missing]
    head = ("dataset", "model", "train", "validation", "test", "paper: train", "validation", "test", "models")
    tables = [Table("Accuracy of the target models", head, tuple(rows), tuple(dict.fromkeys(notes)))]
    tables.append(search)
    about = (
        "Mean ± standard deviation over seeds of the first weights; the data and their split are the same for all. The"
        " state of least validation loss is kept, and settings are chosen by validation loss as well; neither test"
        " accuracy nor any explanation score affects a choice."
    )
    within = sum(row[5] != "–" for row in rows) - len(off)
    front = [f"**The models.** {within} of {within + len(off)} test accuracies are within {TOLERANCE} of the paper's."]
    if off:
        front += ["Not so:", "\n".join(f"- {one}" for one in off)]
    front += [note for note in notes if "accuracy" in note and note not in off]
    return Outcome("accuracy", "Accuracy (the paper's table of accuracies)", about, tables, front=front)


def _seeds(bench: Bench, name: str) -> int:
    return min(bench.seeds, SEEDS.get(name, bench.seeds))


def _notes(dataset: Dataset, kind: Kind, found: Sequence[tuple[Network, Dataset, TrainingResult]]) -> list[str]:
    """What a reader must know of one row."""
    notes = [f"{dataset.name}: {dataset.note}"] if dataset.note else []
    for name, ids in dataset.held_out.items():
        graphs = [dataset.graphs[i] for i in ids.tolist()]
        reached = spread([graph_accuracy(model, graphs) for model, _, _ in found])
        test = spread([result.test_accuracy for _, _, result in found])
        notes.append(
            f"{dataset.name}, {kind}: accuracy {test} on held-out phrases, which share words with those trained on,"
            f" and {reached} on the {name}, {len(graphs):,} sentences."
        )
    return notes


REASONS: dict[tuple[str, Kind], str] = {
    ("BA-Shapes", "HybridGAT"): (
        "No setting that was compared reaches more, and the loss still falls after 1,000 epochs; the output that is"
        " stored in the authors' notebook, 0.72 at epoch 206, is what a hybrid has then."
    ),
    ("BA-Community", "HybridGAT"): (
        "Eight of its ten features are noise; a sparse first layer helps the GCN and hardly the hybrid. No setting that"
        " was compared reaches the paper's."
    ),
    ("Tree-Cycles", "HybridGAT"): "No setting that was compared reaches more.",
    ("Tree-Grid", "GCN"): "The released split: on random ones the same settings reach the paper's (see Table 1).",
    ("Tree-Grid", "HybridGAT"): "Better than the paper's: trained for 1,000 epochs, which validation loss prefers.",
    ("MUTAG", "GAT"): "Batches of 128; the authors kept their model by test accuracy, ours is kept by validation loss.",
}
"""Where the paper's accuracy is not reached, as far as the search shows why."""


def _search(bench: Bench) -> Table:
    """The mean validation loss of every setting that was compared, the least one marked."""
    lines = []
    for name in NODE_SETS:
        if not any(name == known for known, _ in MODELS):
            continue
        for kind in SEARCHED:
            dataset = bench.dataset(name)
            losses: dict[Recipe, list[TrainingResult]] = {
                how: [bench.trained(name, kind, seed, how)[2] for seed in range(min(bench.seeds, LADDER_SEEDS))]
                for how in candidates(dataset, kind)
            }
            best = min(losses, key=lambda how: fmean(result.val_loss for result in losses[how]))
            for how, results in losses.items():
                marks = [mark for mark, one in (("least", best), ("used", recipe(dataset, kind))) if how == one]
                reached = spread([result.test_accuracy for result in results], 2)
                loss = spread([result.val_loss for result in results])
                lines.append((dataset.name, kind, _described(dataset, how), loss, reached, ", ".join(marks)))
    head = ("dataset", "model", "settings", "validation loss", "test accuracy", "")
    note = f"{min(bench.seeds, LADDER_SEEDS)} models of each. Test accuracy is shown, not looked at."
    return Table("Settings compared by validation loss", head, tuple(lines), (note,))


def _described(dataset: Dataset, how: Recipe) -> str:
    usual = plain(dataset, how.kind)
    said = [f"weight decay {how.weight_decay:g}"]
    if how.epochs != usual.epochs:
        said.append(f"{how.epochs:,} epochs")
    if how.first_l1:
        said.append(f"learning rate {how.lr:g}, L1 of the first layer {how.first_l1:g}")
    return ", ".join(said)
