"""What each choice among the rules does, on validation instances, and a way to choose without ground truth.

A user has no ground truth, but has the model. So: draw random groups of nodes, see how far the explained output falls
when their features are set to 0, and prefer the options whose contributions rank the groups in the same order. Whether
that finds the options of the best AUC is reported, not assumed.
"""

from functools import partial
from itertools import product
from typing import Any, get_args

import torch
from torch import Tensor

from ..baselines.instance import Instance
from ..engine.options import Attention, Bias, Options, Ties
from ..metrics import stability
from ..recipes import Kind
from ..results.tables import Table, spread
from . import readings
from .page import Outcome
from .protocol import drawn
from .store import Bench
from .tasks import DATASETS, KINDS, QUICK, TITLES, Task

GROUPS = 40
"""Random groups per instance."""
ORDERS = ("target-first", "both-orders", "target-last")
"""Of the telescoping sum, which the paper names; the gate is no such order."""
MOST = 10
"""Validation instances per model."""


def choices(kind: Kind, level: str) -> list[Options]:
    """All combinations that make a difference: ties only where there is a pooling, attention only in a GAT."""
    attentions = get_args(Attention) if kind == "GAT" else ("split",)
    ties = get_args(Ties) if level == "graph" else ("share",)
    combinations = product(attentions, ties, get_args(Bias), ORDERS)
    return [Options.paper(attention=a, ties=t, bias=b, activation=f) for a, t, b, f in combinations]


def described(options: Options) -> str:
    """The fields that are not the paper's choice."""
    other = [f"{k}={v}" for k, v in options.to_dict().items() if v != Options.paper().to_dict()[k]]
    return ", ".join(other) or "the paper's"


def run(bench: Bench) -> Outcome:
    """Every combination of options on every dataset, and what the label-free choice picks."""
    tables, picks = [], []
    for kind in KINDS:
        found = {name: _collected(bench, name, kind) for name in DATASETS}
        tables += [_table(kind, found, value, title) for value, title in VALUES.items()]
        picks += [_pick(kind, title, found[name]) for name, title in zip(DATASETS, TITLES, strict=True) if found[name]]
    head = ("dataset", "model", "chosen without ground truth", "its AUC", "the paper's options", "best options", "AUC")
    note = (
        "AUC of strength at the head; chosen: the options of the highest mean agreement; best: of the highest AUC,"
        " which needs the ground truth."
    )
    tables.append(Table("A choice without ground truth", head, tuple(picks), (note,)))
    few = QUICK if bench.quick else MOST
    about = (
        f"Mean ± standard deviation over {bench.seeds} models. Only validation instances: up to {few} motif nodes or"
        f" marked mutagens of the validation split. Agreement is Spearman's correlation, over {GROUPS} random groups"
        " per instance, between a group's contribution to the logit and how far the logit falls when the features of"
        " the group are set to 0. Options that are not named are the paper's."
    )
    return Outcome("ablation", "What the options do, and a label-free way to choose", about, tables)


VALUES = {"logit": "AUC by |logit|", "strength": "AUC by strength at the head", "agreement": "Agreement with blanking"}
Found = dict[str, list[dict[str, float]]]
"""Options, described → what each seed gave."""


def _collected(bench: Bench, name: str, kind: Kind) -> Found:
    found: Found = {}
    for seed in range(bench.seeds):
        try:
            model, dataset, _ = bench.trained(name, kind, seed)
        except FileNotFoundError:
            return {}
        task = Task(model, dataset, authors=False, quick=bench.quick)
        settings: dict[str, Any] = {"most": MOST, "groups": GROUPS}
        cell = bench.cell(f"ablation/{name}-{kind}-{seed}".lower(), settings, partial(_measured, bench, task, kind))
        for options, values in cell.items():
            found.setdefault(options, []).append(values)
    return found


def _measured(bench: Bench, task: Task, kind: Kind) -> dict[str, Any]:
    """AUC in both readings and agreement, for every combination of options."""
    validation = set(task.dataset.splits["val"].tolist())
    ids = drawn([i for i in task.explained if i in validation], QUICK if bench.quick else MOST)
    instances = [task.instance(i) for i in ids]
    groups = [random_groups(one, seed) for seed, one in enumerate(instances)]
    falls = [fall(one, mask) for one, mask in zip(instances, groups, strict=True)]
    found = {}
    for options in bench.bar(choices(kind, task.dataset.level), f"{task.dataset.name} {kind}", "option"):
        asked = [_asked(task, i, mask, options) for i, mask in zip(ids, groups, strict=True)]
        agreements = [agreement(sizes, drop) for (_, _, sizes), drop in zip(asked, falls, strict=True)]
        found[described(options)] = {
            "logit": task.judge(ids, [logit for logit, _, _ in asked]).auc,
            "strength": task.judge(ids, [strength for _, strength, _ in asked]).auc,
            "agreement": sum(agreements) / len(agreements),
        }
    return found


def _asked(task: Task, i: int, groups: Tensor, options: Options) -> tuple[Tensor, Tensor, Tensor]:
    """In one pass: the items that are judged, by |logit| and by strength, and the contributions of random groups."""
    one = task.instance(i)
    node = task.dataset.level == "node"
    items = torch.eye(len(one.x), dtype=torch.bool) if node else readings.pair_groups(task.dataset.graphs[i])
    found = readings.of_groups(task.model, one, torch.cat([items, groups]), one.row, one.target, options)
    count = len(items)
    logit, strength = found["|logit|"][:count], found["strength at the head"][:count]
    if node:
        logit, strength = one.of_nodes(logit), one.of_nodes(strength)
    return logit, strength, found["logit"][len(items) :]


def random_groups(one: Instance, seed: int, count: int = GROUPS) -> Tensor:
    """Masks ``[count, n]`` of random nodes that can contribute, from one of them to half of them."""
    generator = torch.Generator().manual_seed(seed)
    field = one.local_field
    masks = torch.zeros(count, len(one.x), dtype=torch.bool)
    for mask in masks:
        size = int(torch.randint(1, max(2, len(field) // 2 + 1), (), generator=generator))
        mask[field[torch.randperm(len(field), generator=generator)[:size]]] = True
    return masks


def fall(one: Instance, groups: Tensor) -> Tensor:
    """How far ``[count]`` the explained output falls when the features of each group are set to 0."""
    return one.prediction[one.target] - one.masked(~groups)[:, one.target]


def agreement(contributions: Tensor, falls: Tensor) -> float:
    """Whether the contributions of groups have the order of what the model does without them: 1 if they do."""
    return stability(torch.stack([contributions.double(), falls.double()])).correlation


def _table(kind: Kind, found: dict[str, Found], value: str, title: str) -> Table:
    names = dict.fromkeys(options for cells in found.values() for options in cells)
    lines = [
        (options, *(spread([cell[value] for cell in found[name].get(options, [])]) for name in DATASETS))
        for options in names
    ]
    return Table(f"{title}, {kind}", ("options", *TITLES), tuple(lines))


def _pick(kind: Kind, title: str, found: Found) -> tuple[str, ...]:
    def mean(options: str, value: str) -> float:
        return sum(cell[value] for cell in found[options]) / len(found[options])

    chosen = max(found, key=lambda options: mean(options, "agreement"))
    best = max(found, key=lambda options: mean(options, "strength"))
    auc = {options: f"{mean(options, 'strength'):.3f}" for options in found}
    return title, kind, chosen, auc[chosen], auc[described(Options.paper())], best, auc[best]
