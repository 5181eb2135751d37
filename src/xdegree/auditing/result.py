"""The result of an audit: plain numbers that show themselves as tables, as a picture and as JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..removal import WAY_NAMES, Way
from ..results.files import write_json
from ..results.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = "xdegree.audit/1"
Measure = Literal["fidelity", "robust", "infidelity", "correlation"]
TITLES: dict[Measure, str] = {
    "fidelity": "Best nodes kept minus best nodes dropped, mean over shares (higher is better)",
    "robust": "Robust fidelity: a few random nodes of the best, minus a few of the rest (higher is better)",
    "correlation": "Rank correlation of a group's score with what its removal does to the output (1 is best)",
    "infidelity": "Infidelity of a group's score to what its removal does, at its best scale (0 is best, 1 is none)",
}
CAVEATS = (
    "Fidelity is not truth: it says what the model does on graphs that it was not trained on, not what is right.",
    "Scores without a sign are compared with the size of changes, which grow with the group: judge them by random too.",
    "A method that is no better than the random ranking found nothing by that measure.",
    "Where the blank graph has nearly the same prediction, taking nodes away that way tells little.",
)


@dataclass(frozen=True)
class Measures:
    """One method under one way of taking nodes away, as means over the predictions."""

    keep: tuple[float, ...]
    """What is measured with only the best nodes, by share."""
    drop: tuple[float, ...]
    """What is measured without the best nodes, by share."""
    fidelity: float
    """Mean over shares of how much more it falls by dropping the best nodes than by keeping nothing else."""
    robust: float
    """The same for a few nodes at a time, drawn at random."""
    infidelity: float
    """0 where scores of groups are proportional to what the output loses without them, 1 where they tell nothing."""
    correlation: float
    """Spearman's, of the same two."""


@dataclass(frozen=True)
class MethodAudit:
    """What an audit found about one method."""

    name: str
    ways: Mapping[Way, Measures]
    """By way of taking away."""
    agreement: Mapping[str, float]
    """Rank correlation with every other method."""
    stability: float
    """Rank correlation with its own scores when the nodes are numbered otherwise."""
    seconds: float
    """For one prediction."""

    @property
    def mean_agreement(self) -> float:
        """With the other methods, the random ranking left out."""
        values = [value for name, value in self.agreement.items() if name != "random" and not isnan(value)]
        return sum(values) / len(values) if values else float("nan")


@dataclass(frozen=True)
class Audit:
    """How well the scores of several methods tell what a model does without the nodes that they name."""

    methods: tuple[MethodAudit, ...]
    """The random ranking is one of them."""
    shares: tuple[float, ...]
    """Of the nodes that compete, how many the curves keep or drop."""
    task: str
    """``"classification"``, ``"binary"`` or ``"regression"``."""
    predictions: int
    """How many were audited."""
    whole: float
    """What is measured of the whole graph: the probability of the class, or the number of a regression."""
    blank: Mapping[Way, float]
    """The same with all nodes that compete taken away, by way."""
    random_spread: Mapping[Way, float]
    """Standard deviation of the fidelity of single random rankings, by way."""
    seed: int
    samples: int
    notes: tuple[str, ...] = ()
    """What could not be measured, and why."""
    warnings: tuple[str, ...] = ()
    """What methods warned of."""

    def method(self, name: str) -> MethodAudit:
        """What was found about a method."""
        found = next((one for one in self.methods if one.name == name), None)
        if found is None:
            raise KeyError(f"{name!r} was not audited; audited were {[one.name for one in self.methods]}")
        return found

    def table(self, measure: Measure = "fidelity") -> Table:
        """One measure of all methods under all ways, with what else is known of the methods."""
        if measure not in TITLES:
            raise ValueError(f"measure must be one of {tuple(TITLES)} (got {measure!r})")
        head = ("method", *(WAY_NAMES[way] for way in self.blank), "agreement", "renumbered", "seconds")
        rows = []
        for one in self.methods:
            cells = [_number(getattr(one.ways[way], measure)) if way in one.ways else "–" for way in self.blank]
            if one.name == "random" and measure == "fidelity":
                cells = [f"{c} ± {self.random_spread[w]:.3f}" for c, w in zip(cells, self.blank, strict=True)]
            rest = (_number(one.mean_agreement), _number(one.stability), f"{one.seconds:.3f}")
            rows.append((one.name, *cells, *rest))
        return Table(TITLES[measure], head, tuple(rows), (self._controls(), *self.notes, *self.warnings))

    def _controls(self) -> str:
        what = "number" if self.task == "regression" else "probability"
        blanks = ", ".join(f"{WAY_NAMES[way]} {_number(value)}" for way, value in self.blank.items())
        return f"{what} of the whole graph {_number(self.whole)}; of a blank one: {blanks}"

    def text(self) -> str:
        """All tables, for a terminal."""
        kind = "prediction" if self.predictions == 1 else "predictions"
        head = f"{self.predictions} {kind} ({self.task}), {self.samples} random draws, seed {self.seed}"
        tables = [self.table(measure) for measure in TITLES]
        bare = [Table(t.title, t.head, t.rows).text() for t in tables]
        return "\n\n".join([head, *bare, "\n".join((self._controls(), *self.notes, *self.warnings, *CAVEATS))])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Audit({len(self.methods)} methods, {self.predictions} predictions, {self.task})"

    def _repr_png_(self) -> bytes | None:
        """How notebooks show it: as a picture, where the extra for plots is installed, else as text."""
        from ..results.notebook import shown

        return shown(self.plot)

    def plot(self, way: Way | None = None) -> "Figure":
        """Curves of what is measured when the best nodes are kept, and when they are dropped (needs ``[plot]``).

        Args:
            way: of taking nodes away; the last that was possible by default.
        """
        from ..plots.audits import plot_audit

        return plot_audit(self, way)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; what is not a number is None."""
        content: dict[str, Any] = _plain({"format": FORMAT, **asdict(self), "caveats": CAVEATS})
        return content

    def save(self, path: str | Path) -> Path:
        """Write a JSON file, whole or not at all."""
        return write_json(path, self.to_dict())


def _number(value: float) -> str:
    return "–" if isnan(value) else f"{value:.3f}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and isnan(value) else value
