"""Which reading ranks nodes best, under which options: the trial behind the defaults.

Every candidate ranks the nodes of the same right predictions of the same models, on sets whose truth is known. A
candidate is one rule for all columns, or one for nodes and another for graphs, which a user can tell apart without the
truth. A choice made on all columns is judged on columns that it was made on, so each dataset is also left out in turn.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, median, stdev
from typing import Any

from .. import recipes
from ..datasets import Dataset, toy_molecules
from ..models import Network
from ..recipes import Kind, Recipe
from ..results.tables import Table, spread
from ..training import TrainingResult
from .ablation import described
from .page import Outcome
from .rankings import HOPS, IG_STEPS, READINGS, SETTINGS, SIGNED, Case, cases, decomposed, others
from .store import NODE_SETS, Bench

TOY = "toy_molecules"
DATASETS = (*NODE_SETS, "mutag", "ba2motifs", TOY)
KINDS: tuple[Kind, ...] = ("GCN", "GAT", "GIN")
MOST = 20
"""Predictions that are explained of each model."""
QUICK = 4
QUICK_EPOCHS = 20
EPOCHS = {"mutag": 10}
"""At most, where the recipe has more and a model would take minutes."""
LEAST = 0.7
"""Validation accuracy below which a model has nothing to explain, and is left out."""
TOY_RECIPE = Recipe("GCN", 25, lr=0.01)
"""The one of the explorer's example."""
BY_TASK = (
    ("margin", "impact"),
    ("contribution", "impact"),
    ("contribution", "|contribution|"),
)
"""One reading for graphs, another for nodes."""
NAMED = (
    *("contribution: bounded", "impact: bounded", "contribution for graphs, impact for nodes: bounded"),
    *("|contribution|: bounded", "margin: bounded", "contribution for graphs, |contribution| for nodes: bounded"),
    *("contribution: paper", "impact: removal"),
)
"""Candidates that the shorter tables have in any case."""
_BY_TASK = NAMED[2]
PAIRS = (
    *(("contribution: bounded", "contribution: paper"), ("impact: bounded", "contribution: bounded")),
    *((_BY_TASK, "contribution: bounded"), (_BY_TASK, "impact: bounded"), (_BY_TASK, "impact: removal")),
    *(("contribution for graphs, impact for nodes: 4 steps, from the mean", _BY_TASK), ("|gradient|", _BY_TASK)),
    ("IG from the mean for graphs, IG norm from the mean for nodes", _BY_TASK),
)
"""Candidates that are compared column by column: a mean can be due to one column alone."""
BEST = 8
"""Further candidates in the shorter tables."""


@dataclass(frozen=True)
class Column:
    """A dataset and a kind of model: the AUC of every candidate in each seed."""

    dataset: str
    level: str
    kind: str
    seeds: tuple[dict[str, float], ...]
    models: tuple[dict[str, Any], ...]

    @property
    def title(self) -> str:
        """As tables call it."""
        return f"{self.dataset} {self.kind}"

    def auc(self, candidate: str) -> float:
        """The mean over seeds."""
        return fmean(seed[candidate] for seed in self.seeds)


def run(bench: Bench) -> Outcome:
    """Every candidate on every column; seeds one after another, so that few of them are a whole table already."""
    found: dict[tuple[str, Kind], list[dict[str, Any]]] = {}
    missing: dict[str, str] = {}
    for seed in range(bench.seeds):
        for name, kind in bench.bar([(n, k) for n in DATASETS for k in KINDS], f"defaults, seed {seed}", "model"):
            try:
                cell = _measured(bench, name, kind, seed)
            except (FileNotFoundError, ModuleNotFoundError) as error:
                missing[name] = str(error)
                continue
            found.setdefault((name, kind), []).append(cell)
    columns = [column for cells in found.values() if (column := _column(cells, bench.quick)) is not None]
    if not columns:
        raise FileNotFoundError(f"no model learnt anything, or no data were found: {missing}")
    return outcome(columns, list(found.values()), bench, missing)


def _measured(bench: Bench, name: str, kind: Kind, seed: int) -> dict[str, Any]:
    """What one model gives, kept in two parts."""
    model, dataset, result = _trained(bench, name, kind, seed)
    most = QUICK if bench.quick else MOST
    place = f"defaults/{name}-{kind}-{seed}".lower()
    settings: dict[str, Any] = {"most": most, "epoch": result.epoch, "val_loss": result.val_loss}
    explained = partial(cases, model, dataset, most)
    names = {setting: [s.options.to_dict(), s.baseline, s.steps] for setting, s in SETTINGS.items()}
    ours = bench.cell(f"{place}/xdegree", {**settings, "settings": names}, lambda: _ours(explained(), dataset))
    rest = bench.cell(f"{place}/others", {**settings, "steps": IG_STEPS}, lambda: _theirs(explained(), dataset))
    about = {"dataset": dataset.name, "kind": kind, "level": dataset.level, "instances": ours["instances"]}
    accuracy = {"val": result.val_accuracy, "test": result.test_accuracy, "epoch": result.epoch}
    return {**about, **accuracy, "xdegree": ours["auc"], "others": rest}


def _ours(explained: Sequence[Case], dataset: Dataset) -> dict[str, Any]:
    found = decomposed(explained, dataset, SETTINGS) if explained else {}
    return {"auc": found, "instances": len(explained)}


def _theirs(explained: Sequence[Case], dataset: Dataset) -> dict[str, Any]:
    return others(explained, dataset) if explained else {}


def _trained(bench: Bench, name: str, kind: Kind, seed: int) -> tuple[Network, Dataset, TrainingResult]:
    """By its recipe; with fewer epochs where they are limited, and then kept apart."""
    dataset = toy_molecules() if name == TOY else bench.dataset(name)
    how = replace(TOY_RECIPE, kind=kind) if name == TOY else recipes.recipe(dataset, kind)
    folder = bench.folder / "models"
    limit = QUICK_EPOCHS if bench.quick else EPOCHS.get(name, how.epochs)
    if how.epochs > limit:
        how, folder = replace(how, epochs=limit), folder / ("quick" if bench.quick else "defaults")
    return recipes.trained(dataset, kind, seed=seed, how=how, folder=folder, progress=bench.progress)


def _column(cells: Sequence[dict[str, Any]], quick: bool) -> Column | None:
    """The models of a column that learnt something; None if there is none."""
    kept = [cell for cell in cells if cell["instances"] and (quick or cell["val"] >= LEAST)]
    if not kept:
        return None
    first = kept[0]
    seeds = tuple(_candidates(cell) for cell in kept)
    return Column(first["dataset"], first["level"], first["kind"], seeds, tuple(kept))


def _candidates(cell: dict[str, Any]) -> dict[str, float]:
    """The AUC of every candidate with one model; those by task take the reading of the task."""
    graph = cell["level"] == "graph"
    found: dict[str, float] = {}
    for setting, by_reading in cell["xdegree"].items():
        found |= {f"{reading}: {setting}": by_reading[reading] for reading in READINGS}
        for pair in BY_TASK:
            found[f"{pair[0]} for graphs, {pair[1]} for nodes: {setting}"] = by_reading[pair[0] if graph else pair[1]]
    rest = cell["others"]
    sizes = [(name, f"|{name}|") for name in SIGNED] + [
        ("IG", "IG norm"),
        ("IG from the mean", "IG norm from the mean"),
    ]
    by_task = {f"{a} for graphs, {b} for nodes": rest[a if graph else b] for a, b in sizes}
    return {**found, **rest, **by_task}


def is_ours(candidate: str) -> bool:
    """Whether a candidate is a reading of a decomposition."""
    return ": " in candidate


@dataclass(frozen=True)
class Standing:
    """How a candidate fares over columns."""

    mean: float
    shortfall: float
    """The mean of what is missing to the best candidate of each column."""
    worst: Column
    by_seed: tuple[float, ...]
    """The mean over columns in each seed that all columns have."""


def standing(candidate: str, columns: Sequence[Column]) -> Standing:
    """Over all columns, each counting once."""
    values = [column.auc(candidate) for column in columns]
    short = [max(map(column.auc, column.seeds[0])) - value for column, value in zip(columns, values, strict=True)]
    worst = min(columns, key=lambda column: column.auc(candidate))
    every = range(min(len(column.seeds) for column in columns))
    by_seed = tuple(fmean(column.seeds[seed][candidate] for column in columns) for seed in every)
    return Standing(fmean(values), fmean(short), worst, by_seed)


def left_out(pool: Sequence[str], columns: Sequence[Column]) -> dict[str, tuple[str, float]]:
    """For each dataset: the candidate of the best mean AUC on the other datasets, and its mean AUC on this one."""
    found = {}
    for name in dict.fromkeys(column.dataset for column in columns):
        rest = [column for column in columns if column.dataset != name]
        own = [column for column in columns if column.dataset == name]
        if rest:
            chosen = max(pool, key=lambda candidate: fmean(column.auc(candidate) for column in rest))
            found[name] = (chosen, fmean(column.auc(chosen) for column in own))
    return found


def is_one_pass(candidate: str) -> bool:
    """Whether it is one in a single step."""
    return is_ours(candidate) and "4 steps" not in candidate


POOLS: dict[str, Callable[[str], bool]] = {
    "all candidates": lambda _: True,
    "xdegree": is_ours,
    "xdegree, one pass": is_one_pass,
    "xdegree, one pass, one reading for all": lambda c: is_one_pass(c) and "for nodes" not in c,
    "xdegree, one pass, contribution": lambda c: is_one_pass(c) and c.startswith("contribution: "),
    "other methods": lambda c: not is_ours(c),
}
"""Candidates among which a choice is made with a dataset left out."""


def outcome(
    columns: Sequence[Column], cells: Iterable[Sequence[dict[str, Any]]], bench: Bench, missing: dict[str, str]
) -> Outcome:
    """The tables from all columns."""
    ranked = {candidate: standing(candidate, columns) for candidate in columns[0].seeds[0]}
    order = sorted(ranked, key=lambda candidate: -ranked[candidate].mean)
    best = [c for c in order if is_ours(c) and c not in NAMED][:BEST]
    short = [c for c in order if c in NAMED or c in best or not is_ours(c)]
    tables = [
        _standings("The best candidates, the named ones and all other methods", short, ranked),
        _matrix(ranked),
        _left_out_table(order, columns),
        _pairs_table(columns),
        _columns_table([c for c in order if c in (*NAMED[:3], *best[:2], *_rivals(order))], columns),
        _models_table(cells),
        _settings_table(),
        _standings("All candidates", order, ranked),
    ]
    return Outcome(
        "defaults", "Which reading, which options: the trial of defaults", _about(bench, missing, len(order)), tables
    )


def _rivals(order: Sequence[str]) -> list[str]:
    best = [candidate for candidate in order if not is_ours(candidate)][:2]
    return [*best, "|gradient|", HOPS]


def _standings(title: str, candidates: Sequence[str], ranked: dict[str, Standing]) -> Table:
    rows = [
        (c, spread(s.by_seed), f"{s.shortfall:.3f}", f"{s.worst.auc(c):.3f}", s.worst.title)
        for c in candidates
        for s in (ranked[c],)
    ]
    head = ("candidate", "mean AUC", "mean shortfall", "worst", "in the column")
    return Table(title, head, tuple(rows))


def _matrix(ranked: dict[str, Standing]) -> Table:
    readings = (*READINGS, *(f"{a} for graphs, {b} for nodes" for a, b in BY_TASK))
    rows = [(name, *(f"{ranked[f'{reading}: {name}'].mean:.3f}" for reading in readings)) for name in SETTINGS]
    return Table("Mean AUC of every reading under every setting", ("setting", *readings), tuple(rows))


def _left_out_table(order: Sequence[str], columns: Sequence[Column]) -> Table:
    names = list(dict.fromkeys(column.dataset for column in columns))
    rows, notes = [], []
    for title, member in POOLS.items():
        found = left_out([c for c in order if member(c)], columns)
        if len(names) > 1:
            mean = fmean(value for _, value in found.values())
            rows.append((title, *(f"{found[name][1]:.3f}" for name in names), f"{mean:.3f}"))
            chosen: dict[str, list[str]] = {}
            for name in names:
                chosen.setdefault(found[name][0], []).append(name)
            said = "; ".join(f"“{c}” without {', '.join(without)}" for c, without in chosen.items())
            notes.append(f"Of {title}: {said}.")
    for candidate in NAMED:
        by_name = [fmean(c.auc(candidate) for c in columns if c.dataset == name) for name in names]
        rows.append((f"fixed: {candidate}", *(f"{value:.3f}" for value in by_name), f"{fmean(by_name):.3f}"))
    head = ("chosen among", *names, "mean")
    return Table("Chosen on the other datasets, judged on this one", head, tuple(rows), tuple(notes))


def _pairs_table(columns: Sequence[Column]) -> Table:
    rows = []
    for first, second in PAIRS:
        gains = [column.auc(first) - column.auc(second) for column in columns]
        error = stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
        counts = (sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains))
        most = max(zip(gains, columns, strict=True), key=lambda pair: abs(pair[0]))
        by = (f"{fmean(gains):+.3f} ± {error:.3f}", f"{median(gains):+.3f}", "{} : {}".format(*counts))
        rows.append((first, second, *by, f"{most[0]:+.3f}, {most[1].title}"))
    head = (
        "first",
        "second",
        "gain of the first, mean ± standard error",
        "median",
        "better : worse",
        "largest gain or loss",
    )
    return Table("Compared column by column", head, tuple(rows))


def _columns_table(candidates: Sequence[str], columns: Sequence[Column]) -> Table:
    rows = [(column.title, *(spread([seed[c] for seed in column.seeds], 2) for c in candidates)) for column in columns]
    return Table("AUC in every column", ("column", *candidates), tuple(rows))


def _models_table(cells: Iterable[Sequence[dict[str, Any]]]) -> Table:
    rows = []
    for models in cells:
        first = models[0]
        accuracy = [spread([model[split] for model in models]) for split in ("val", "test")]
        counts = ", ".join(str(model["instances"]) for model in models)
        used = sum(model["val"] >= LEAST for model in models)
        rows.append((f"{first['dataset']} {first['kind']}", *accuracy, counts, f"{used} of {len(models)}"))
    head = ("column", "validation accuracy", "test accuracy", "explained predictions, by seed", "models that count")
    note = f"A model whose validation accuracy is below {LEAST} does not count."
    return Table("The models", head, tuple(rows), (note,))


def _settings_table() -> Table:
    rows = [(name, described(s.options), s.baseline, str(s.steps)) for name, s in SETTINGS.items()]
    notes = (
        "Options that are not named are the paper's, `Options.paper()`.",
        "In several steps activations are taken target last and biases left to the background in any case.",
        "The mean is that of the nodes of the graph; where features are constant it counts as zero.",
        '`product="share"` is not tried: with attention whole these models multiply no portions, it changes nothing.',
        "What is called bounded here is, with that, `Options()`.",
    )
    return Table("The settings", ("setting", "options", "baseline", "steps"), tuple(rows), notes)


def _about(bench: Bench, missing: dict[str, str], count: int) -> str:
    most = QUICK if bench.quick else MOST
    how = (
        f"Seeds of the first weights: {bench.seeds}. Models are trained by their recipes"
        f" ({_epochs(bench)}) and kept at their least validation loss, which neither test accuracy nor any explanation"
        f" affects. Of each model up to {most} right predictions are explained, for the predicted class: nodes of"
        " motifs, mutagens with marked bonds, all graphs of BA-2Motifs, toy molecules with a nitro group. AUC is of"
        " single nodes: those that messages reach compete, those of the own motif, at a marked bond, or in the nitro"
        " group are true. Mean AUC: over columns (a dataset and a kind of model), ± standard deviation over seeds;"
        " shortfall: to the best of all candidates in the column."
    )
    what = (
        "Readings: the contribution to the predicted class, its size, its margin over the contribution to the"
        " runner-up, and the impact (norm over all classes, centred). What the settings are called is listed below."
        f" Integrated gradients (IG) have {IG_STEPS} steps. Hop distance ties all nodes of a graph prediction. Edges,"
        " regressions, links and other layers were not tried."
    )
    caution = (
        f"{count} candidates are compared, so the first of a table is first by hindsight; what such a choice is worth"
        " on data that it was not made on is the table of datasets left out. A random order has 0.5 in the long run:"
        " what is printed for it shows the noise that so few predictions leave."
    )
    parts = [how, what, caution]
    if missing:
        parts.append("Left out: " + "; ".join(f"{name}, {reason}" for name, reason in missing.items()) + ".")
    return "\n\n".join(parts)


def _epochs(bench: Bench) -> str:
    if bench.quick:
        return f"at most {QUICK_EPOCHS} epochs"
    return "at most " + ", ".join(f"{count} epochs on {name.upper()}" for name, count in EPOCHS.items())
