"""The paper's experiments, one file per table or figure: the ``run`` of each takes a `Bench` and gives an `Outcome`."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .page import Outcome, Picture, keep, write_page

if TYPE_CHECKING:
    from .store import Bench

EXPERIMENTS = {
    "auc": "auc",
    "accuracy": "accuracy",
    "datasets": "datasets",
    "others": "others",
    "reading": "fixed_reading",
    "ablation": "ablation",
    "defaults": "defaults",
    "efficiency": "efficiency",
    "mutag": "mutag",
    "sst": "sst",
    "qtime": "qtime",
    "acc-sparsity": "acc_sparsity",
    "subgraphx": "subgraphx",
    "forward": "forward",
}
"""The names that ``xdegree reproduce`` knows, in the order of the page, and their files."""


def __getattr__(name: str) -> Any:
    """`Bench` only when it is used: it loads PyTorch, and help needs the names of the experiments alone."""
    if name != "Bench":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(".store", __name__).Bench


def experiment(name: str) -> "Callable[[Bench], Outcome]":
    """The function that does an experiment; imported only now, as some need packages that others do not."""
    if name not in EXPERIMENTS:
        raise ValueError(f"name must be one of {tuple(EXPERIMENTS)} (got {name!r})")
    found: Callable[[Bench], Outcome] = import_module(f".{EXPERIMENTS[name]}", __name__).run
    return found


__all__ = ["Bench", "Outcome", "Picture", "EXPERIMENTS", "experiment", "keep", "write_page"]
