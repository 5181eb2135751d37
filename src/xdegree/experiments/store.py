"""Results that are kept as they come, so that a long experiment resumes where it stopped."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from ..datasets import Dataset, load
from ..models import Network
from ..recipes import Kind, trained
from ..results.files import write_json
from ..training import TrainingResult

T = TypeVar("T")
FORM = "xdegree-result-1"
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

    def cell(self, key: str, settings: dict[str, Any], compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """One result by its name, a path such as ``auc/ba_shapes-gcn-0/GRAD``: read if it is there, else computed.

        A result belongs to its settings: with other ones, or if the file is broken, it is computed anew.
        """
        path = self.folder / ("quick" if self.quick else "full") / f"{key}.json"
        kept = _read(path)
        if kept is not None and kept.get("format") == FORM and kept.get("settings") == settings:
            return dict(kept["result"])
        result = compute()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {"format": FORM, "settings": settings, "result": result})
        return result

    def trained(self, name: str, kind: Kind, seed: int) -> tuple[Network, Dataset, TrainingResult]:
        """The model that all experiments on this dataset share, the dataset as the model gets it, what it reaches."""
        return trained(self.dataset(name), kind, seed=seed, folder=self.folder / "models", progress=self.progress)

    def dataset(self, name: str) -> Dataset:
        """A dataset by its name; all results of a folder are of the same, as they are read again by that name alone."""
        dataset, path = load(name), self.folder / "data.json"
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
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(path, known | {name: now})
        return dataset

    def bar(self, items: Iterable[T], what: str, unit: str = "instance") -> Iterable[T]:
        """The same items under a progress bar."""
        return tqdm(items, desc=what, unit=unit, disable=None if self.progress else True, leave=False)


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
