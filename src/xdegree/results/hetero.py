"""The explanation of one prediction on a graph with several types of nodes and edges."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..engine.options import Options
from ..model_call.call import Level
from .explanation import (
    COMMON,
    IDS,
    Explanation,
    account,
    at,
    check_common,
    check_count,
    explained_output,
    left_open,
    plain,
    read_dtype,
    read_tensor,
    read_values,
    require,
)
from .files import read_json, write_json
from .tables import load_pandas

if TYPE_CHECKING:
    import pandas
    from torch_geometric.explain import HeteroExplanation as PyGHeteroExplanation

FORMAT = "xdegree.hetero-explanation/2"


@dataclass(frozen=True)
class HeteroExplanation:
    """Signed scores for one prediction on a graph with several types of nodes and edges."""

    prediction: Tensor
    """The model's own output for what is explained, ``[C]``."""
    target: int
    """The class that is explained."""
    index: int
    """What is explained: its row in the output."""
    node_scores: Mapping[str, Tensor] | None = None
    """By type of node, ``[N]`` each."""
    edge_index: Mapping[Any, Tensor] | None = None
    """By type of edge, ``[2, E]`` each."""
    edge_scores: Mapping[Any, Tensor] | None = None
    """By type of edge, ``[E]`` each: of the messages along them (``of="edge"``), or by their end points."""
    feature_scores: Mapping[str, Tensor] | None = None
    """By type of node, ``[N, F]`` each."""
    edge_feature_scores: Mapping[Any, Tensor] | None = None
    """By type of edge, ``[E]`` or ``[E, D]`` each."""
    reading: str = "contribution"
    """What a score is, as in `Explanation`."""
    of: str = "node"
    """What was scored, as in `Explanation`."""
    edge_scoring: str | None = None
    """How edges were scored by their end points, as in `Explanation`."""
    options: Options = field(default_factory=Options)
    """The choices among rules that made the scores."""
    level: Level | None = None
    """What is explained, as in `Explanation`."""
    logits: Tensor | None = None
    """``[C]``, as in `Explanation`."""
    baseline_output: Tensor | None = None
    """``[C]``, as in `Explanation`."""
    steps: int = 1
    """In how many steps the way from the baseline was split."""
    products: tuple[str, ...] = ()
    """As in `Explanation`."""
    scope: str | None = None
    """What was decomposed, as in `Explanation`."""

    def __post_init__(self) -> None:
        """What views and files rely on."""
        check_common(self)
        for kind, ends in (self.edge_index or {}).items():
            require(len(kind) == 3, f"types of edges have three names (got {kind!r})")
            require(ends.dim() == 2 and len(ends) == 2, f"edge_index of {kind} must be [2, E]")
            for name in ("edge_scores", "edge_feature_scores"):
                scores = (getattr(self, name) or {}).get(kind)
                require(scores is None or len(scores) == ends.shape[1], f"{name} of {kind} must have a row per edge")

    @property
    def output(self) -> float:
        """The number that is explained, as in `Explanation`."""
        return explained_output(self)

    @property
    def residual(self) -> float | None:
        """What the single scores leave open, as in `Explanation`."""
        return left_open(self)

    @property
    def total_scores(self) -> float:
        """What the single scores of all types add up to."""
        return float(sum(s.sum() for s in self.scores.values()))

    @property
    def hides_products(self) -> bool:
        """As in `Explanation`."""
        if not self.products or self.of != "node" or self.options.product != "target":
            return False
        scores = torch.cat([s.flatten() for s in self.scores.values()])
        return self.output != 0 and int((scores == 0).sum()) > len(scores) // 2

    @property
    def scores(self) -> Mapping[Any, Tensor]:
        """The scores of what was explained, by type: of nodes, edges, features or edge features."""
        scores: Mapping[Any, Tensor] = getattr(self, f"{self.of}_scores")
        return scores

    def top(self, k: int = 5) -> list[tuple[tuple[Any, ...], float]]:
        """The k largest scores by magnitude, signed, largest first, as (type, number) or (type, number, feature)."""
        check_count(k)
        every = [
            ((kind, *place.tolist()), value.item())
            for kind, s in self.scores.items()
            for place, value in zip(torch.ones_like(s).nonzero(), s.flatten(), strict=True)
        ]
        return sorted(every, key=lambda item: -abs(item[1]))[:k]

    def __repr__(self) -> str:
        best = ", ".join(f"{' '.join(map(str, place))}: {score:+.4g}" for place, score in self.top(3))
        return (
            f"HeteroExplanation(index={self.index}{at(self.level)}, target={self.target}, reading={self.reading!r},"
            f" top={{{best}}}{account(self)})"
        )

    def _repr_png_(self) -> bytes | None:
        """How notebooks show it: as a picture, where the extra for plots is installed, else as text."""
        from .notebook import picture

        return picture(self)

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row per node (edge, feature), sorted by magnitude (needs pandas)."""
        pandas = load_pandas()
        top = self.top(sum(s.numel() for s in self.scores.values()))
        names = ["edge" if "edge" in self.of else "node", *(["feature"] if top and len(top[0][0]) == 3 else [])]
        return pandas.DataFrame([(*place, score) for place, score in top], columns=["type", *names, "score"])

    def to_pyg(self) -> "PyGHeteroExplanation":
        """A ``torch_geometric.explain.HeteroExplanation`` with the same scores."""
        from torch_geometric.explain import HeteroExplanation as PyGHeteroExplanation

        found = PyGHeteroExplanation()
        if self.feature_scores is not None:
            found.set_value_dict("node_mask", dict(self.feature_scores))
        elif self.node_scores is not None:
            found.set_value_dict("node_mask", {kind: s.unsqueeze(-1) for kind, s in self.node_scores.items()})
        if self.edge_index is not None:
            found.set_value_dict("edge_index", dict(self.edge_index))
        if self.edge_scores is not None:
            found.set_value_dict("edge_mask", dict(self.edge_scores))
        return found

    def save(self, path: str | Path) -> Path:
        """Write a JSON file, whole or not at all; types of edges are lists of three names in it."""
        content = {
            "format": FORMAT,
            "dtype": str(self.prediction.dtype).removeprefix("torch."),
            "prediction": plain(self.prediction),
            "logits": plain(self.logits),
            "baseline_output": plain(self.baseline_output),
            "steps": self.steps,
            "products": list(self.products),
            **{name: _plain_types(getattr(self, name)) for name in _TYPED},
            **{name: getattr(self, name) for name in COMMON},
            "options": self.options.to_dict(),
        }
        return write_json(path, content)

    @classmethod
    def load(cls, path: str | Path) -> "HeteroExplanation":
        """Read what `save` wrote; anything else is an error that says what does not fit."""
        return read_json(path, FORMAT, "hetero explanation", cls._from_content)

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> "HeteroExplanation":
        dtype = read_dtype(content)
        typed = {name: _types(content[name], torch.long if name in IDS else dtype) for name in _TYPED}
        prediction = read_tensor(content["prediction"], dtype)
        require(prediction is not None and prediction.dim() == 1, "prediction must be a list of numbers")
        values = read_values(content, {**COMMON, "steps": int, "products": list})
        more = {name: read_tensor(content[name], dtype) for name in ("logits", "baseline_output")}
        values["products"] = tuple(values["products"])
        return cls(prediction=prediction, **more, **typed, **values, options=Options.paper(**content["options"]))  # type: ignore[arg-type]

    @property
    def names(self) -> list[str]:
        """The nodes of all types one after another, as ``"author 0"``: see `to_homogeneous`."""
        return [f"{kind} {number}" for kind, s in (self.node_scores or {}).items() for number in range(len(s))]

    def to_homogeneous(self) -> Explanation:
        """The same scores on a graph without types, for pictures and reports: types are numbered one after another."""
        if self.of != "node" or self.node_scores is None:
            raise ValueError(f"only scores of nodes become those of one graph (got of={self.of!r})")
        first, count = {}, 0
        for kind, scores in self.node_scores.items():
            first[kind], count = count, count + len(scores)
        ends = [e + torch.tensor([[first[u]], [first[v]]]) for (u, _, v), e in (self.edge_index or {}).items()]
        return Explanation(
            prediction=self.prediction,
            target=self.target,
            index=self.index,
            num_nodes=count,
            nodes=torch.arange(count),
            node_scores=torch.cat(list(self.node_scores.values())),
            edge_index=torch.cat(ends, 1) if ends else None,
            edge_scores=torch.cat(list(self.edge_scores.values())) if self.edge_scores else None,
            logits=self.logits,
            baseline_output=self.baseline_output,
            steps=self.steps,
            products=self.products,
            reading=self.reading,
            edge_scoring=self.edge_scoring,
            scope=self.scope,
            options=self.options,
        )


_TYPED = ("node_scores", "edge_index", "edge_scores", "feature_scores", "edge_feature_scores")


def _plain_types(tensors: Mapping[Any, Tensor] | None) -> Any:
    """Pairs of a type and its numbers: a type of edges is no name, so it cannot be a key."""
    return None if tensors is None else [[kind, plain(tensor)] for kind, tensor in tensors.items()]


def _types(pairs: Any, dtype: torch.dtype) -> dict[Any, Tensor] | None:
    if pairs is None:
        return None
    found: dict[Any, Tensor] = {}
    for kind, numbers in pairs:
        names = [kind] if isinstance(kind, str) else kind
        fits = all(isinstance(name, str) for name in names) and (isinstance(kind, str) or len(kind) == 3)
        tensor = read_tensor(numbers, dtype)
        require(fits and tensor is not None, f"types are names or lists of three (got {kind!r})")
        assert tensor is not None
        found[kind if isinstance(kind, str) else tuple(kind)] = tensor
    return found
