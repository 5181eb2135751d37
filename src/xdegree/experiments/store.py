"""Results that are kept as they come, so that a long experiment resumes where it stopped."""

import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from ..datasets import Dataset, load, resplit
from ..datasets.word_vectors import find_vectors
from ..models import Network
from ..recipes import Kind, Recipe, recipe, trained
from ..results.files import write_json
from ..training import TrainingResult

T = TypeVar("T")
FORM = "xdegree-result-1"
QUICK_EPOCHS = {"node": 20, "graph": 1}
"""With ``--quick``."""
NODE_SETS = ("ba_shapes", "ba_community", "tree_cycles", "tree_grid")


@dataclass(frozen=True)
class Bench:
    """Where an experiment works, and how thoroughly."""

    folder: Path
    """For results and trained models; what is there already is not computed again."""
    seeds: int = 5
    """Models that are trained for each dataset, from seeds 0, 1, …"""
    quick: bool = False
    """Few instances, to see that everything works; such results are kept apart from the full ones."""
    progress: bool = True
    """Progress bars."""
    log: bool = False
    """A line on the standard error for each result, where there are no bars."""
    _read: dict[str, Dataset] = field(default_factory=dict, repr=False, compare=False)
    """Datasets that were read already: some take seconds."""

    def cell(self, key: str, settings: dict[str, Any], compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """One result by its name, a path such as ``auc/ba_shapes-gcn-0/GRAD``: read if it is there, else computed.

        A result belongs to its settings: with other ones, or if the file is broken, it is computed anew.
        """
        kept = self.kept(key, settings)
        if kept is not None:
            return kept
        start = time.monotonic()
        result = compute()
        if self.log:
            print(f"{key}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {"format": FORM, "settings": settings, "result": result})
        return result

    def kept(self, key: str, settings: dict[str, Any]) -> dict[str, Any] | None:
        """The result if it is there, whole and of the same settings."""
        kept = _read(self._path(key))
        if kept is not None and kept.get("format") == FORM and kept.get("settings") == settings:
            return dict(kept["result"])
        return None

    def _path(self, key: str) -> Path:
        return self.folder / ("quick" if self.quick else "full") / f"{key}.json"

    def trained(
        self, name: str, kind: Kind, seed: int, how: Recipe | None = None, own_split: bool = False
    ) -> tuple[Network, Dataset, TrainingResult]:
        """The model that all experiments on this dataset share, the dataset as the model gets it, what it reaches.

        Others have settings of their own (`how`), or a random split for each seed (`own_split`).
        """
        dataset, folder = self.dataset(name), self.folder / "models"
        if own_split:
            dataset = resplit(dataset, seed)
        if self.quick:
            usual = how or recipe(dataset, kind)
            how = replace(usual, epochs=min(usual.epochs, QUICK_EPOCHS[dataset.level]))
        return trained(dataset, kind, seed=seed, how=how, folder=folder, progress=self.progress)

    def dataset(self, name: str) -> Dataset:
        """A dataset by its name; all results of a folder are of the same, as they are read again by that name alone."""
        if name in self._read:
            return self._read[name]
        dataset, path = _loaded(name, self.quick), self._path("data")
        known, now = _read(path) or {}, asdict(dataset.stats())
        then = known.get(name, now)
        if then != now:
            others = [key for key in now if then.get(key) != now[key]]
            changed = "; ".join(f"{key} {then.get(key)!r}, now {now[key]!r}" for key in others)
            raise ValueError(
                f"{self.folder} holds results of another {dataset.name} ({changed}); take another folder, or let"
                " $XDEGREE_DATA name the same data as then"
            )
        if name not in known:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, known | {name: now})
        self._read[name] = dataset
        return dataset

    def bar(self, items: Iterable[T], what: str, unit: str = "instance") -> Iterable[T]:
        """The same items under a progress bar."""
        return tqdm(items, desc=what, unit=unit, disable=None if self.progress else True, leave=False)


def _loaded(name: str, quick: bool) -> Dataset:
    """A dataset by its name; all sentences if they have vectors and there is time."""
    full = name == "graph_sst2" and not quick and find_vectors() is not None
    return load(name, vectors="full") if full else load(name)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text())
    except (FileNotFoundError, UnicodeDecodeError, json.JSONDecodeError):
        return None
    return content if isinstance(content, dict) else None


def timed(compute: Callable[[], T]) -> tuple[T, float]:
    """A result and the processor seconds that it took: unlike wall time, these do not depend on other programs."""
    start = time.process_time()
    result = compute()
    return result, time.process_time() - start
