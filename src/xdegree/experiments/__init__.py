"""The paper's experiments, one file per table or figure: the ``run`` of each takes a `Bench` and gives an `Outcome`."""

from collections.abc import Callable
from importlib import import_module

from .page import Outcome, Picture, keep, write_page
from .store import Bench

EXPERIMENTS = {
    "accuracy": "accuracy",
    "auc": "auc",
    "auc-authors": "auc_authors",
    "ablation": "ablation",
    "efficiency": "efficiency",
    "mutag": "mutag",
    "sst": "sst",
    "qtime": "qtime",
    "acc-sparsity": "acc_sparsity",
    "subgraphx": "subgraphx",
    "forward": "forward",
}
"""The names that ``xdegree reproduce`` knows, in the order of the page, and their files."""


def experiment(name: str) -> Callable[[Bench], Outcome]:
    """The function that does an experiment; imported only now, as some need packages that others do not."""
    if name not in EXPERIMENTS:
        raise ValueError(f"name must be one of {tuple(EXPERIMENTS)} (got {name!r})")
    found: Callable[[Bench], Outcome] = import_module(f".{EXPERIMENTS[name]}", __name__).run
    return found


__all__ = ["Bench", "Outcome", "Picture", "EXPERIMENTS", "experiment", "keep", "write_page"]
