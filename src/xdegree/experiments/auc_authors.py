"""Table 1 once more, by the protocol of the authors' code."""

from .auc import outcome
from .page import Outcome
from .store import Bench


def run(bench: Bench) -> Outcome:
    """DEGREE's readings by the authors' protocol."""
    return outcome(bench, authors=True)
