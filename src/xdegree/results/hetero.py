"""The explanation of one prediction on a graph with several types of nodes and edges."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .explanation import IDS, Accounted, Explanation, at, check_count, plain, read_common, read_tensor, require
from .files import read_json, write_json
from .tables import load_pandas

if TYPE_CHECKING:
    import pandas
    from torch_geometric.explain import HeteroExplanation as PyGHeteroExplanation

FORMAT = "xdegree.hetero-explanation/2"


@dataclass(frozen=True)
class HeteroExplanation(Accounted):
    """Signed scores for one prediction on a graph with several types of nodes and edges."""

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

    def __post_init__(self) -> None:
        """What views and files rely on."""
        super().__post_init__()
        for kind, ends in (self.edge_index or {}).items():
            require(len(kind) == 3, f"types of edges have three names (got {kind!r})")
            require(ends.dim() == 2 and len(ends) == 2, f"edge_index of {kind} must be [2, E]")
            for name in ("edge_scores", "edge_feature_scores"):
                scores = (getattr(self, name) or {}).get(kind)
                require(scores is None or len(scores) == ends.shape[1], f"{name} of {kind} must have a row per edge")

    def _each(self) -> Tensor:
        return torch.cat([scores.flatten() for scores in self.scores.values()])

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
            f" top={{{best}}}{self._account})"
        )

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
        return write_json(path, self.content())

    def content(self) -> dict[str, Any]:
        """What `save` writes, as plain values."""
        typed = {name: _plain_types(getattr(self, name)) for name in _TYPED}
        return {**self._content(FORMAT), **typed}

    @classmethod
    def load(cls, path: str | Path) -> "HeteroExplanation":
        """Read what `save` wrote; anything else is an error that says what does not fit."""
        return read_json(path, FORMAT, "hetero explanation", cls._from_content)

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> "HeteroExplanation":
        common, dtype = read_common(content)
        return cls(**common, **{name: _types(content[name], torch.long if name in IDS else dtype) for name in _TYPED})  # type: ignore[arg-type]

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
            **{**self.asked, "level": None},
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
