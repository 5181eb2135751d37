"""What an explanation is: frozen, with its settings, and able to save and show itself."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, overload

import torch
from torch import Tensor

from .files import read_json, require, write_json
from .options import Options
from .outputs import Level
from .tables import load_pandas

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.explain import Explanation as PyGExplanation
    from torch_geometric.explain import HeteroExplanation as PyGHeteroExplanation

FORMAT = "xdegree.explanation/1"
HETERO_FORMAT = "xdegree.hetero-explanation/1"
_OF = ("node", "edge", "feature", "edge_feature")


@dataclass(frozen=True)
class Explanation:
    """Signed scores for one prediction, in units of that prediction."""

    prediction: Tensor
    """The model's own output for what is explained, ``[C]``."""
    target: int
    """The class that is explained."""
    index: int
    """The node, link or graph that is explained: its row in the output."""
    num_nodes: int
    """Of the whole graph."""
    nodes: Tensor
    """The nodes that can contribute: the computation graph of a node or link, or all nodes of a graph."""
    node_scores: Tensor | Any = None  # not "| None": who asks for nodes, as is usual, need not prove that it is there
    """``[N]``; 0 outside the computation graph. None if something else than nodes was scored."""
    class_scores: Tensor | None = None
    """``[N, C]``: the same for every class."""
    edge_index: Tensor | None = None
    """``[2, E]``: the edges of the whole graph, as the model got them."""
    edge_scores: Tensor | None = None
    """``[E]``: of the messages along edges (``of="edge"``), or by their end points (``edges=…``)."""
    feature_scores: Tensor | None = None
    """``[N, F]``, of single features of nodes."""
    edge_feature_scores: Tensor | None = None
    """``[E]`` or ``[E, D]``, of edge weights or of single features of edges."""
    reading: str = "contribution"
    """What a score is: ``"contribution"``, ``"probability"`` or ``"strength"``."""
    of: str = "node"
    """What was scored: every ``"node"``, ``"edge"``, ``"feature"`` or ``"edge_feature"``."""
    edges: str | None = None
    """How edges were scored by their end points: the ``"pair"`` as one group, or the ``"mean"`` of their scores."""
    options: Options = field(default_factory=Options)
    """The choices among rules that made the scores."""
    sampling_error: Tensor | None = None
    """``[C]``: the output with a sampled neighbourhood, which the scores are of, minus the model's own output."""
    level: Level | None = None
    """What is explained: a ``"node"``, a link (``"edge"``) or a ``"graph"``; None where an older file does not say."""

    def __post_init__(self) -> None:
        """What views and files rely on."""
        n, e = self.num_nodes, None if self.edge_index is None else self.edge_index.shape[-1]
        require(self.prediction.dim() == 1, "prediction must be a vector")
        require(0 <= self.target < len(self.prediction), f"target must lie between 0 and {len(self.prediction) - 1}")
        require(self.index >= 0 and n >= 0, "index and num_nodes must not be negative")
        require(self.nodes.dim() == 1 and _between(self.nodes, n), f"nodes must lie between 0 and {n - 1}")
        if self.edge_index is not None:
            # Whether its nodes are between 0 and n - 1 is asked of files only: it takes a look at all edges.
            require(self.edge_index.dim() == 2 and len(self.edge_index) == 2, "edge_index must be [2, E]")
        for name, rows in (("node", n), ("class", n), ("feature", n), ("edge", e), ("edge_feature", e)):
            scores = getattr(self, f"{name}_scores")
            fits = scores is None or (scores.dim() > 0 and len(scores) == rows)
            require(fits, f"{name}_scores must have one row per {'edge' if rows is e else 'node'} ({rows})")
        require(self.node_scores is None or self.node_scores.dim() == 1, "node_scores must be a vector")
        require(self.of in _OF and getattr(self, f"{self.of}_scores") is not None, f"{self.of}_scores is missing")
        require(self.level in (None, *get_args(Level)), f"level must be one of {get_args(Level)} (got {self.level!r})")

    @property
    def scores(self) -> Tensor:
        """The scores of what was explained: of nodes, edges, features or edge features."""
        scores: Tensor = getattr(self, f"{self.of}_scores")
        return scores

    def top(self, k: int = 5) -> list[tuple[Any, float]]:
        """The k largest scores by magnitude, signed, largest first, each with its node, its edge (u, v), or its place.

        The place of a feature is (node, feature), that of an edge feature (edge, feature).
        """
        _check_count(k)
        flat = self.scores.flatten()
        possible = self.nodes if self.of == "node" else flat.nonzero().flatten()
        order = possible[torch.argsort(flat[possible].abs(), descending=True, stable=True)][:k].tolist()
        return [(self._name(place), flat[place].item()) for place in order]

    def _name(self, place: int) -> Any:
        if self.of == "edge":
            assert self.edge_index is not None
            return tuple(self.edge_index[:, place].tolist())
        width = self.scores.shape[1] if self.scores.dim() > 1 else None
        return place if width is None else divmod(place, width)

    def __repr__(self) -> str:
        best = ", ".join(f"{name}: {score:+.4g}" for name, score in self.top(3))
        return (
            f"Explanation(index={self.index}{_at(self.level)}, target={self.target}, reading={self.reading!r},"
            f" nodes={len(self.nodes)} of {self.num_nodes}, top={{{best}}})"
        )

    def _repr_png_(self) -> bytes | None:
        """How notebooks show it: as a picture, where the extra for plots is installed, else as text."""
        from .notebook import picture

        return picture(self)

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row per node (edge, feature) that can contribute, sorted by magnitude (needs pandas)."""
        pandas = load_pandas()
        top = self.top(self.scores.numel())
        return pandas.DataFrame({self.of: [name for name, _ in top], "score": [score for _, score in top]})

    def to_networkx(self) -> "networkx.DiGraph[int]":
        """The computation graph with a ``score`` on every node, and on every edge that has one (needs networkx)."""
        import networkx

        graph: networkx.DiGraph[int] = networkx.DiGraph(index=self.index, target=self.target, reading=self.reading)
        inside = set(self.nodes.tolist())
        for node in sorted(inside):
            graph.add_node(node, **({} if self.node_scores is None else {"score": self.node_scores[node].item()}))
        if self.edge_index is not None:
            for number, (u, v) in enumerate(self.edge_index.t().tolist()):
                if u in inside and v in inside:
                    scored = {} if self.edge_scores is None else {"score": self.edge_scores[number].item()}
                    graph.add_edge(u, v, **scored)
        return graph

    def to_pyg(self) -> "PyGExplanation":
        """A ``torch_geometric.explain.Explanation`` with the same scores."""
        from torch_geometric.explain import Explanation as PyGExplanation

        nodes = None if self.node_scores is None else self.node_scores.unsqueeze(-1)
        masks = {
            "node_mask": nodes if self.feature_scores is None else self.feature_scores,
            "edge_mask": self.edge_scores,
        }
        return PyGExplanation(
            edge_index=self.edge_index,
            prediction=self.prediction,
            target=torch.tensor(self.target),
            index=self.index,
            num_nodes=self.num_nodes,
            **{name: mask for name, mask in masks.items() if mask is not None},
        )

    def save(self, path: str | Path) -> Path:
        """Write a JSON file, whole or not at all."""
        content = {
            "format": FORMAT,
            "dtype": str(self.scores.dtype).removeprefix("torch."),
            **{name: _plain(getattr(self, name)) for name in _TENSORS},
            **{name: getattr(self, name) for name in _VALUES},
            "options": self.options.to_dict(),
        }
        return write_json(path, content)

    @classmethod
    def load(cls, path: str | Path) -> "Explanation":
        """Read what `save` wrote; anything else is an error that says what does not fit."""
        return read_json(path, FORMAT, "explanation", cls._from_content)

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> "Explanation":
        dtype = _dtype(content)
        content = {**_ADDED_LATER, **content}
        tensors = {name: _tensor(content[name], torch.long if name in _IDS else dtype) for name in _TENSORS}
        for name in ("prediction", "nodes"):
            require(tensors[name] is not None, f"{name} must be a list of numbers")
        values = _values(content, _VALUES)
        edges, n = tensors["edge_index"], values["num_nodes"]
        require(edges is None or _between(edges, n), f"edge_index must have nodes between 0 and {n - 1}")
        return cls(**tensors, **values, options=Options(**content["options"]))  # type: ignore[arg-type]


def _check_count(k: object) -> None:
    if not isinstance(k, int) or k < 0:
        raise ValueError(f"k is how many scores are wanted, a whole number (got {k!r})")


def _at(level: str | None) -> str:
    return "" if level is None else f", level={level!r}"


def _between(ids: Tensor, n: int) -> bool:
    return ids.numel() == 0 or (0 <= int(ids.min()) and int(ids.max()) < n)


_TENSORS = (
    *("prediction", "nodes", "node_scores", "class_scores"),
    *("edge_index", "edge_scores", "feature_scores", "edge_feature_scores", "sampling_error"),
)
_COMMON: dict[str, Any] = {
    "target": int,
    "index": int,
    "reading": str,
    "of": str,
    "edges": str | None,
    "level": str | None,
}
_VALUES = {**_COMMON, "num_nodes": int}
_IDS = ("nodes", "edge_index")
_ADDED_LATER = {"sampling_error": None, "level": None}


def _dtype(content: dict[str, Any]) -> torch.dtype:
    known = {"float32": torch.float32, "float64": torch.float64}
    require(content["dtype"] in known, f"dtype must be one of {tuple(known)} (got {content['dtype']!r})")
    return known[content["dtype"]]


def _values(content: dict[str, Any], kinds: dict[str, Any]) -> dict[str, Any]:
    for name, kind in kinds.items():
        require(isinstance(content[name], kind), f"{name} must be {kind} (got {content[name]!r})")
    return {name: content[name] for name in kinds}


def _plain(tensor: Tensor | None) -> Any:
    """Lists of numbers; JSON has no infinities, so those become text."""
    return None if tensor is None else _finite(tensor.tolist())


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value if math.isfinite(value) else str(value)


def _tensor(value: Any, dtype: torch.dtype) -> Tensor | None:
    if value is None:
        return None
    numbers = _number(value)
    if dtype == torch.long:
        whole = torch.tensor(numbers)
        require(whole.dtype == torch.long or not whole.numel(), "node ids must be whole numbers")
    return torch.tensor(numbers, dtype=dtype)


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(item) for item in value]
    return float(value) if isinstance(value, str) else value


@dataclass(frozen=True, eq=False)
class Explanations(Sequence[Explanation]):
    """Explanations of several predictions by the nodes that contribute to them, stored where they are not zero.

    A sequence of `Explanation`, each made when it is asked for, so that nothing of the size rows × nodes ever exists.
    """

    predictions: Tensor
    """``[rows, C]``: the model's own outputs."""
    targets: tuple[int, ...]
    """The class of each that is explained."""
    explained: tuple[int, ...]
    """The nodes, links or graphs that are explained."""
    num_nodes: int
    """Of the whole graph."""
    fields: Sequence[Tensor]
    """The nodes that can contribute to each."""
    row: Tensor
    """The number of the explained row, in order, of each score."""
    node: Tensor
    """The node, in order for each row, of each score."""
    scores: Tensor
    """The scores that are not zero, row after row."""
    class_scores: Tensor | None = None
    """The scores for every class, ``[scores, C]``."""
    edge_index: Tensor | None = None
    """``[2, E]``: the edges of the whole graph."""
    edge_scores: Tensor | None = None
    """``[rows, E]``: of edges by their end points, if asked for."""
    sampling_error: Tensor | None = None
    """``[rows, C]``: the outputs with the sampled neighbourhoods minus those with the full ones."""
    reading: str = "contribution"
    """What a score is, as in `Explanation`."""
    edges: str | None = None
    """How edges were scored, as in `Explanation`."""
    options: Options = field(default_factory=Options)
    """The choices among rules that made the scores."""
    level: Level | None = None
    """What is explained: nodes, links (``"edge"``) or graphs."""

    @property
    def matrix(self) -> Tensor:
        """The scores as a sparse matrix (CSR), ``[rows, nodes]``: explained × contributing."""
        size = (len(self), self.num_nodes)
        return torch.sparse_csr_tensor(self._starts, self.node, self.scores, size, check_invariants=False)

    @cached_property
    def _starts(self) -> Tensor:
        counts = torch.bincount(self.row, minlength=len(self))
        return torch.cat([counts.new_zeros(1), counts.cumsum(0)])

    def __len__(self) -> int:
        return len(self.explained)

    @overload
    def __getitem__(self, number: int) -> Explanation: ...

    @overload
    def __getitem__(self, number: slice) -> list[Explanation]: ...

    def __getitem__(self, number: int | slice) -> Explanation | list[Explanation]:
        """One explanation, with a score for every node."""
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        own = slice(int(self._starts[number]), int(self._starts[number + 1]))
        return Explanation(
            prediction=self.predictions[number].clone(),
            target=self.targets[number],
            index=self.explained[number],
            num_nodes=self.num_nodes,
            nodes=self.fields[number],
            node_scores=self._spread(self.scores[own], self.node[own]),
            class_scores=None if self.class_scores is None else self._spread(self.class_scores[own], self.node[own]),
            edge_index=self.edge_index,
            edge_scores=None if self.edge_scores is None else self.edge_scores[number],
            sampling_error=None if self.sampling_error is None else self.sampling_error[number],
            reading=self.reading,
            edges=self.edges,
            options=self.options,
            level=self.level,
        )

    if not TYPE_CHECKING:  # or a type checker would believe that everything is there

        def __getattr__(self, name: str) -> Any:
            """Called for what is not there: say so to whoever takes several explanations for one."""
            known = hasattr(Explanation, name)
            advice = f"; it holds {len(self)} explanations, take one: found[0].{name}" if known else ""
            raise AttributeError(f"Explanations has no {name!r}{advice}", name=name, obj=self)

    def _spread(self, scores: Tensor, nodes: Tensor) -> Tensor:
        out = scores.new_zeros(self.num_nodes, *scores.shape[1:])
        out[nodes] = scores
        return out

    def __repr__(self) -> str:
        return (
            f"Explanations({len(self)} × {self.num_nodes} nodes, {len(self.scores)} scores{_at(self.level)},"
            f" reading={self.reading!r})"
        )

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row per score: what is explained, its class, the node, the score (needs pandas)."""
        pandas = load_pandas()
        which = self.row.tolist()
        return pandas.DataFrame(
            {
                "index": [self.explained[i] for i in which],
                "target": [self.targets[i] for i in which],
                "node": self.node.tolist(),
                "score": self.scores.tolist(),
            }
        )


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
    edges: str | None = None
    """How edges were scored by their end points, as in `Explanation`."""
    options: Options = field(default_factory=Options)
    """The choices among rules that made the scores."""
    level: Level | None = None
    """What is explained, as in `Explanation`."""

    def __post_init__(self) -> None:
        """What views and files rely on."""
        require(self.prediction.dim() == 1, "prediction must be a vector")
        require(0 <= self.target < len(self.prediction), f"target must lie between 0 and {len(self.prediction) - 1}")
        require(self.of in _OF, f"of must be one of {_OF} (got {self.of!r})")
        require(self.level in (None, *get_args(Level)), f"level must be one of {get_args(Level)} (got {self.level!r})")
        for kind, ends in (self.edge_index or {}).items():
            require(len(kind) == 3, f"types of edges have three names (got {kind!r})")
            require(ends.dim() == 2 and len(ends) == 2, f"edge_index of {kind} must be [2, E]")
            for name in ("edge_scores", "edge_feature_scores"):
                scores = (getattr(self, name) or {}).get(kind)
                require(scores is None or len(scores) == ends.shape[1], f"{name} of {kind} must have a row per edge")

    @property
    def scores(self) -> Mapping[Any, Tensor]:
        """The scores of what was explained, by type: of nodes, edges, features or edge features."""
        scores: Mapping[Any, Tensor] = getattr(self, f"{self.of}_scores")
        return scores

    def top(self, k: int = 5) -> list[tuple[tuple[Any, ...], float]]:
        """The k largest scores by magnitude, signed, largest first, as (type, number) or (type, number, feature)."""
        _check_count(k)
        every = [
            ((kind, *place.tolist()), value.item())
            for kind, s in self.scores.items()
            for place, value in zip(torch.ones_like(s).nonzero(), s.flatten(), strict=True)
        ]
        return sorted(every, key=lambda item: -abs(item[1]))[:k]

    def __repr__(self) -> str:
        best = ", ".join(f"{' '.join(map(str, place))}: {score:+.4g}" for place, score in self.top(3))
        return (
            f"HeteroExplanation(index={self.index}{_at(self.level)}, target={self.target}, reading={self.reading!r},"
            f" top={{{best}}})"
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
        content = {
            "format": HETERO_FORMAT,
            "dtype": str(self.prediction.dtype).removeprefix("torch."),
            "prediction": _plain(self.prediction),
            **{name: _plain_types(getattr(self, name)) for name in _TYPED},
            **{name: getattr(self, name) for name in _COMMON},
            "options": self.options.to_dict(),
        }
        return write_json(path, content)

    @classmethod
    def load(cls, path: str | Path) -> "HeteroExplanation":
        """Read what `save` wrote; anything else is an error that says what does not fit."""
        return read_json(path, HETERO_FORMAT, "hetero explanation", cls._from_content)

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> "HeteroExplanation":
        dtype = _dtype(content)
        typed = {name: _types(content[name], torch.long if name in _IDS else dtype) for name in _TYPED}
        prediction = _tensor(content["prediction"], dtype)
        require(prediction is not None and prediction.dim() == 1, "prediction must be a list of numbers")
        values = _values(content, _COMMON)
        return cls(prediction=prediction, **typed, **values, options=Options(**content["options"]))  # type: ignore[arg-type]

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
            reading=self.reading,
            edges=self.edges,
            options=self.options,
        )


_TYPED = ("node_scores", "edge_index", "edge_scores", "feature_scores", "edge_feature_scores")


def _plain_types(tensors: Mapping[Any, Tensor] | None) -> Any:
    """Pairs of a type and its numbers: a type of edges is no name, so it cannot be a key."""
    return None if tensors is None else [[kind, _plain(tensor)] for kind, tensor in tensors.items()]


def _types(pairs: Any, dtype: torch.dtype) -> dict[Any, Tensor] | None:
    if pairs is None:
        return None
    found: dict[Any, Tensor] = {}
    for kind, numbers in pairs:
        names = [kind] if isinstance(kind, str) else kind
        fits = all(isinstance(name, str) for name in names) and (isinstance(kind, str) or len(kind) == 3)
        tensor = _tensor(numbers, dtype)
        require(fits and tensor is not None, f"types are names or lists of three (got {kind!r})")
        assert tensor is not None
        found[kind if isinstance(kind, str) else tuple(kind)] = tensor
    return found
