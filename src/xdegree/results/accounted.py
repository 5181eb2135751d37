"""What explanations of every kind have in common: what was asked, how, and what single scores leave open."""

from dataclasses import dataclass, field, fields
from typing import Any, get_args

import torch
from torch import Tensor

from ..engine.options import Options
from ..model_call.call import Level
from .files import finite

OF = ("node", "edge", "feature", "edge_feature")
"""What can be scored."""
READINGS = ("contribution", "impact", "probability", "strength")
EDGE_SCORINGS = (None, "pair", "mean")
IDS = ("nodes", "edge_index")
"""The tensors of integers."""
VALUES: dict[str, Any] = {
    "target": int,
    "index": int,
    "reading": str,
    "of": str,
    "edge_scoring": str | None,
    "level": str | None,
    "steps": int,
    "scope": str | None,
}
"""What every kind has that is no tensor, and its type in files."""


def require(holds: bool, what: str) -> None:
    """What views and files rely on."""
    if not holds:
        raise ValueError(what)


def check_count(k: object) -> None:
    """How many of the largest scores are wanted."""
    if not isinstance(k, int) or k < 0:
        raise ValueError(f"k is how many scores are wanted, an integer (got {k!r})")


def at(level: str | None) -> str:
    """The level as a part of a description."""
    return "" if level is None else f", level={level!r}"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was asked, and how it was answered."""

    reading: str = "contribution"
    """What a score is: ``"contribution"``, ``"impact"``, ``"probability"`` or ``"strength"``."""
    of: str = "node"
    """What was scored: every ``"node"``, ``"edge"``, ``"feature"`` or ``"edge_feature"``."""
    edge_scoring: str | None = None
    """How edges were scored by their end points: the ``"pair"`` as one group, or the ``"mean"`` of their scores."""
    options: Options = field(default_factory=Options)
    """The choices among rules that made the scores."""
    level: Level | None = None
    """What is explained: a ``"node"``, a ``"link"`` or a ``"graph"``; None where it is not known."""
    steps: int = 1
    """In how many steps the way from the baseline was split."""
    products: tuple[str, ...] = ()
    """The modules that multiply what arrives from nodes by what arrives from nodes."""
    scope: str | None = None
    """What was decomposed, and whether it was checked against the model: the neighborhood or the whole graph."""
    ids: tuple[Any, ...] | None = None
    """What the user calls the nodes, in their order: ``ids=``, or ``n_id`` of a loader's batch."""

    @property
    def asked(self) -> dict[str, Any]:
        """All of this by name, for an explanation of another kind."""
        return {one.name: getattr(self, one.name) for one in fields(Asked)}


@dataclass(frozen=True)
class Accounted(Asked):
    """One prediction, and what single scores leave open of it."""

    prediction: Tensor
    """The model's own output for what is explained, ``[C]``."""
    target: int
    """The class that is explained."""
    index: int
    """The node, link or graph that is explained: its row in the output."""
    logits: Tensor | None = field(default=None, kw_only=True)
    """``[C]``: what the last softmax or sigmoid was applied to, if that is explained instead of the prediction."""
    baseline_output: Tensor | None = field(default=None, kw_only=True)
    """``[C]``: what is explained with the features of the baseline; None for one step from zero."""

    def __post_init__(self) -> None:
        """What views and files rely on."""
        require(self.prediction.dim() == 1, "prediction must be a vector")
        require(0 <= self.target < len(self.prediction), f"target must lie between 0 and {len(self.prediction) - 1}")
        known = {
            "level": (None, *get_args(Level)),
            "reading": READINGS,
            "of": OF,
            "edge_scoring": EDGE_SCORINGS,
        }
        for name, allowed in known.items():
            require(getattr(self, name) in allowed, f"{name} must be one of {allowed} (got {getattr(self, name)!r})")

    @property
    def scores(self) -> Any:
        """The scores of what was explained: of nodes, edges, features or edge features."""
        return getattr(self, f"{self.of}_scores")

    def _each(self) -> Tensor:
        """All scores, in a row."""
        raise NotImplementedError

    def _possible(self) -> Tensor:
        """The scores of all that can contribute; those of all else are 0."""
        return self._each()

    @property
    def output(self) -> float:
        """The number that is explained: the class's logit or output."""
        return float((self.prediction if self.logits is None else self.logits)[self.target])

    @property
    def total_scores(self) -> float:
        """What the single scores add up to."""
        return float(self._possible().sum())

    @property
    def residual(self) -> float | None:
        """What the single scores leave open of the output (beyond the baseline's): joint effects and biases.

        None for readings that are no parts of the output.
        """
        if self.reading != "contribution":
            return None
        start = 0.0 if self.baseline_output is None else float(self.baseline_output[self.target])
        return self.output - start - self.total_scores

    @property
    def hides_products(self) -> bool:
        """Whether most nodes have exactly 0 because products of two portions are background."""
        if not self.products or self.of != "node" or self.options.product != "target":
            return False
        scores = self._possible()
        return self.output != 0 and int((scores == 0).sum()) > len(scores) // 2

    @property
    def _account(self) -> str:
        """What single scores add up to, and what they leave open, as a part of a description."""
        if self.residual is None:
            return ""
        return f", scores={self.total_scores:+.4g}, residual={self.residual:+.4g} of {self.output:+.4g}"

    def _repr_png_(self) -> bytes | None:
        """How notebooks show it: as a picture, where the extra for plots is installed, else as text."""
        from .notebook import picture

        return picture(self)  # type: ignore[arg-type]

    def _content(self, file_format: str) -> dict[str, Any]:
        """What stands in files of every kind."""
        return {
            "format": file_format,
            "dtype": str(self._each().dtype).removeprefix("torch."),
            **{name: plain(getattr(self, name)) for name in ("prediction", "logits", "baseline_output")},
            **{name: getattr(self, name) for name in VALUES},
            "products": list(self.products),
            "ids": None if self.ids is None else list(self.ids),
            "options": self.options.to_dict(),
        }


def read_common(content: dict[str, Any]) -> tuple[dict[str, Any], torch.dtype]:
    """What stands in files of every kind, each of its type, and the type of the scores."""
    known = {"float32": torch.float32, "float64": torch.float64}
    require(content["dtype"] in known, f"dtype must be one of {tuple(known)} (got {content['dtype']!r})")
    dtype = known[content["dtype"]]
    names = ("prediction", "logits", "baseline_output")
    found: dict[str, Any] = {name: read_tensor(content[name], dtype) for name in names}
    require(found["prediction"] is not None, "prediction must be a list of numbers")
    for name, kind in VALUES.items():
        found[name] = read_value(content, name, kind)
    products = content["products"]
    require(isinstance(products, list) and all(isinstance(p, str) for p in products), "products must be names")
    ids = content.get("ids")
    require(ids is None or isinstance(ids, list), "ids must be a list")
    found["ids"] = None if ids is None else tuple(ids)
    return {**found, "products": tuple(products), "options": Options.paper(**content["options"])}, dtype


def read_value(content: dict[str, Any], name: str, kind: Any) -> Any:
    """What is no tensor."""
    require(isinstance(content[name], kind), f"{name} must be {kind} (got {content[name]!r})")
    return content[name]


def plain(tensor: Tensor | None) -> Any:
    """A tensor as lists of numbers."""
    return None if tensor is None else finite(tensor.tolist())


def read_tensor(value: Any, dtype: torch.dtype) -> Tensor | None:
    """What `plain` made of a tensor, as a tensor again."""
    if value is None:
        return None
    numbers = _number(value)
    if dtype == torch.long:
        ids = torch.tensor(numbers)
        require(ids.dtype == torch.long or not ids.numel(), "node ids must be integers")
    return torch.tensor(numbers, dtype=dtype)


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(item) for item in value]
    return float(value) if isinstance(value, str) else value
