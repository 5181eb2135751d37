"""The models of Table 1 and of its ladders: which settings, which split, and how well each reading does on them."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

from torch import Tensor

from ..datasets import Dataset
from ..engine.options import Options
from ..models import Network
from ..recipes import Kind, Recipe, plain, recipe
from ..training import TrainingResult
from . import readings
from .protocol import drawn
from .store import Bench
from .tasks import QUICK, Task

Name = Literal["one-hot", "plain", "chosen", "own split", "untrained", "stopped"]
OPTIONS = {"paper": Options.paper(), "default": Options()}
PROTOCOLS = ("paper", "authors")
STOPPED = 3
"""Epochs of models that are stopped near chance."""
LADDER_SEEDS = 2
"""Models of the rungs that are not the final one."""
CONTROL_SEEDS = 1
"""Models of the controls, and of the rungs of MUTAG, where one takes minutes."""
Cell = dict[str, Any]
"""What one model gave: its accuracies, and by each protocol the quality of each reading."""


@dataclass(frozen=True)
class Variant:
    """Settings of a model, and whether each seed has a random split of its own."""

    kind: Kind
    how: Callable[[Dataset, Kind], Recipe] = recipe
    own_split: bool = False


def variant(name: str, kind: Kind, which: Name) -> Variant:
    """The model of a dataset and a column of Table 1: the GATs of nodes are hybrids, but for the rung before that."""
    own = "HybridGAT" if kind == "GAT" and name != "mutag" else kind
    found: dict[Name, Variant] = {
        "one-hot": Variant(kind, plain),
        "plain": Variant(own, plain),
        "chosen": Variant(own),
        "own split": Variant(own, own_split=name != "mutag"),
        "untrained": Variant(own, partial(_shortened, 0)),
        "stopped": Variant(own, partial(_shortened, STOPPED)),
    }
    return found[which]


def _shortened(epochs: int, dataset: Dataset, kind: Kind) -> Recipe:
    return replace(plain(dataset, kind), epochs=epochs)


def trained_as(bench: Bench, name: str, what: Variant, seed: int) -> tuple[Network, Dataset, TrainingResult]:
    """The model of a seed."""
    return bench.trained(name, what.kind, seed, what.how(bench.dataset(name), what.kind), what.own_split)


def collected(bench: Bench, name: str, kind: Kind, which: Name, options: str, seeds: int | None = None) -> list[Cell]:
    """What each seed gave; a model of a dataset whose split is random anyway has none of its own."""
    which = "chosen" if name == "mutag" and which == "own split" else which
    what, cells = variant(name, kind, which), []
    for seed in range(min(bench.seeds, seeds or bench.seeds)):
        settings = {
            "recipe": asdict(what.how(bench.dataset(name), what.kind)),
            "own split": what.own_split,
            "options": OPTIONS[options].to_dict(),
        }
        key = f"auc/{name}-{kind}-{which}-{seed}/{options}".lower().replace(" ", "-")
        cells.append(bench.cell(key, settings, partial(_cell, bench, name, what, seed, OPTIONS[options])))
    return cells


def _cell(bench: Bench, name: str, what: Variant, seed: int, options: Options) -> Cell:
    model, dataset, result = trained_as(bench, name, what, seed)
    return {"accuracy": result.test_accuracy, "training": asdict(result)} | of_degree(bench, model, dataset, options)


def of_degree(bench: Bench, model: Network, dataset: Dataset, options: Options) -> Cell:
    """How good all readings are by both protocols; None by the authors' if no node is explained by it."""
    tasks = {"paper": Task(model, dataset, False, bench.quick), "authors": Task(model, dataset, True, bench.quick)}
    ids = drawn(tasks["paper"].explained, QUICK if bench.quick else None)
    scores = _scores(bench, model, dataset, ids, options)
    found: Cell = {}
    for protocol, task in tasks.items():
        explained = set(task.explained)
        places = [place for place, i in enumerate(ids) if i in explained]
        some = [ids[place] for place in places]
        found[protocol] = (
            {
                reading: asdict(task.judge(some, [each[place] for place in places]))
                for reading, each in scores[protocol].items()
            }
            if some
            else None
        )
    return found


def _scores(
    bench: Bench, model: Network, dataset: Dataset, ids: list[int], options: Options
) -> dict[str, dict[str, Sequence[Tensor]]]:
    """By protocol and reading, the scores of each instance."""
    if dataset.level == "node":
        data = dataset.data
        found = readings.of_nodes(model, data, ids, data.y[ids].tolist(), options)
        each: dict[str, Sequence[Tensor]] = {reading: list(scores) for reading, scores in found.items()}
        return dict.fromkeys(PROTOCOLS, each)
    graphs = [dataset.graphs[i] for i in ids]
    both = list(bench.bar(readings.of_pairs(model, graphs, options), f"{dataset.name}, DEGREE"))
    return {
        protocol: {reading: [pair[place][reading] for pair in both] for reading in readings.READINGS}
        for place, protocol in enumerate(PROTOCOLS)
    }


def aucs(cells: Sequence[Cell], protocol: str, reading: str, value: str = "auc") -> list[float]:
    """Of each model that has any."""
    found = [cell[protocol][reading][value] for cell in cells if cell[protocol] is not None]
    return [one for one in found if one is not None]
