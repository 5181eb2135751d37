"""The explanation of one prediction, and what explanations of every kind have in common.

What was asked, how it was answered, and what single scores leave open.
"""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy
import torch
from torch import Tensor

from ..engine.options import Options
from ..model_call.call import Level
from .files import finite, read_json, write_json
from .tables import load_pandas

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.explain import Explanation as PyGExplanation

FORMAT = "xdegree.explanation/2"
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
        return self.output - self._start - self.total_scores

    @property
    def _start(self) -> float:
        """What the number that is explained is at the baseline."""
        return 0.0 if self.baseline_output is None else float(self.baseline_output[self.target])

    @property
    def hides_products(self) -> bool:
        """Whether most nodes have exactly 0 because products of two portions are background."""
        if not self.products or self.of != "node" or self.options.product != "target":
            return False
        scores = self._possible()
        return self.output != 0 and int((scores == 0).sum()) > len(scores) // 2

    @property
    def is_all_zero(self) -> bool:
        """Whether every score is exactly 0 in a model of products, although the explained output is not."""
        return bool(self.products) and self.output != 0 and not bool(self._possible().any())

    @property
    def _account(self) -> str:
        """What single scores add up to, and what they leave open, as a part of a description."""
        if self.residual is None:
            return ""
        start = "" if self.baseline_output is None else f", baseline={self._start:+.4g}"
        return f"{start}, scores={self.total_scores:+.4g}, residual={self.residual:+.4g} of {self.output:+.4g}"

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


@dataclass(frozen=True)
class Explanation(Accounted):
    """Signed scores for one prediction, in units of that prediction."""

    num_nodes: int
    """Of the whole graph."""
    nodes: Tensor
    """The nodes that can contribute: the computation graph of a node or link, or all nodes of a graph."""
    # In truth "| None". With Any instead, who asks for nodes, as is usual, need not prove to a type checker that they
    # are there, and what is no method of a tensor is still found.
    node_scores: Tensor | Any = None
    """``[N]``; 0 outside the computation graph. None if something else than nodes was scored."""
    class_scores: Tensor | None = None
    """``[N, C]``, or ``[E, C]`` of edges: the same for every class."""
    edge_index: Tensor | None = None
    """``[2, E]``: the edges of the whole graph, as the model got them."""
    edge_scores: Tensor | None = None
    """``[E]``: of the messages along edges (``of="edge"``), or by their end points."""
    feature_scores: Tensor | None = None
    """``[N, F]``, of single features of nodes."""
    edge_feature_scores: Tensor | None = None
    """``[E]`` or ``[E, D]``, of edge weights or of single features of edges."""
    sampling_error: Tensor | None = None
    """``[C]``: the output with a sampled neighborhood, which the scores are of, minus the model's own output."""

    def __post_init__(self) -> None:
        """What views and files rely on."""
        n, e = self.num_nodes, None if self.edge_index is None else self.edge_index.shape[-1]
        super().__post_init__()
        require(self.index >= 0 and n >= 0, "index and num_nodes must not be negative")
        require(self.nodes.dim() == 1 and _between(self.nodes, n), f"nodes must lie between 0 and {n - 1}")
        if self.edge_index is not None:
            # Whether its nodes are between 0 and n - 1 is asked of files only: it takes a look at all edges.
            require(self.edge_index.dim() == 2 and len(self.edge_index) == 2, "edge_index must be [2, E]")
        each = e if self.of == "edge" else n
        for name, rows in (("node", n), ("class", each), ("feature", n), ("edge", e), ("edge_feature", e)):
            scores = getattr(self, f"{name}_scores")
            fits = scores is None or (scores.dim() > 0 and len(scores) == rows)
            require(fits, f"{name}_scores must have one row per {'edge' if rows is e else 'node'} ({rows})")
        require(self.node_scores is None or self.node_scores.dim() == 1, "node_scores must be a vector")
        require(self.scores is not None, f"{self.of}_scores is missing")

    def _each(self) -> Tensor:
        scores: Tensor = self.scores
        return scores.flatten()

    def _possible(self) -> Tensor:
        return self._each()[self.nodes] if self.of == "node" else self._each()

    def top(self, k: int = 5, by: Literal["sign", "impact", "size"] | None = None) -> list[tuple[Any, float]]:
        """What matters most: k nodes, edges (u, v) or places, each with its signed score.

        Nodes that have texts as `ids` are named by them. The place of a feature is (node, feature), that of an edge
        feature (edge, feature).

        Args:
            k: how many.
            by: ``"sign"``, what speaks most for the class first; ``"impact"``, how much the classes are moved against
                each other; ``"size"``, the magnitude of the score. By default nodes are ranked by sign where a graph is
                classified and by impact where a node or link is (which is closest to known truths, see the trial of
                defaults in the docs), all else by size.
        """
        check_count(k)
        require(by in (None, "sign", "impact", "size"), f'by must be "sign", "impact" or "size" (got {by!r})')
        flat = self.scores.flatten()
        possible = self.nodes if self.of == "node" else flat.nonzero().flatten()
        order = possible[torch.argsort(self._weights(by)[possible], descending=True, stable=True)][:k].tolist()
        return [(self._name(place), flat[place].item()) for place in order]

    def _weights(self, by: str | None) -> Tensor:
        """What `top` ranks by, for every score."""
        classified = self.of == "node" and self.reading == "contribution" and len(self.prediction) > 1
        by = by or ("size" if not classified else "sign" if self.level == "graph" else "impact")
        flat = self.scores.flatten()
        if by == "impact" and self.class_scores is not None:
            return torch.linalg.vector_norm(self.class_scores - self.class_scores.mean(1, keepdim=True), dim=1)
        return flat if by == "sign" else flat.abs()

    def _name(self, place: int) -> Any:
        if self.of == "edge":
            assert self.edge_index is not None
            return tuple(self._id(node) for node in self.edge_index[:, place].tolist())
        width = self.scores.shape[1] if self.scores.dim() > 1 else None
        if width is not None:
            node, feature = divmod(place, width)
            return (self._id(node) if self.of == "feature" else node), feature
        return self._id(place) if self.of == "node" else place

    def _id(self, node: int) -> Any:
        """What a node is called: by its text, if it has one, else by its number."""
        return self.ids[node] if self.ids is not None and isinstance(self.ids[node], str) else node

    def __repr__(self) -> str:
        best = ", ".join(f"{name}: {score:+.4g}" for name, score in self.top(3))
        return (
            f"Explanation(index={self.index}{at(self.level)}, target={self.target}, reading={self.reading!r},"
            f" nodes={len(self.nodes)} of {self.num_nodes}, top={{{best}}}{self._account}, scope={self.scope!r})"
        )

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row per node (edge, feature) that can contribute, in the order of `top` (needs pandas)."""
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
        return write_json(path, self.content())

    def content(self) -> dict[str, Any]:
        """What `save` writes, as plain values."""
        own = {name: plain(getattr(self, name)) for name in _TENSORS}
        return {**self._content(FORMAT), **own, "num_nodes": self.num_nodes}

    @classmethod
    def load(cls, path: str | Path) -> "Explanation":
        """Read what `save` wrote; anything else is an error that says what does not fit."""
        return read_json(path, FORMAT, "explanation", cls._from_content)

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> "Explanation":
        common, dtype = read_common(content)
        tensors: dict[str, Any] = {
            name: read_tensor(content[name], torch.long if name in IDS else dtype) for name in _TENSORS
        }
        require(tensors["nodes"] is not None, "nodes must be a list of numbers")
        edges, n = tensors["edge_index"], read_value(content, "num_nodes", int)
        require(edges is None or _between(edges, n), f"edge_index must have nodes between 0 and {n - 1}")
        return cls(**common, **tensors, num_nodes=n)


_TENSORS = (
    *("nodes", "node_scores", "class_scores", "edge_index"),
    *("edge_scores", "feature_scores", "edge_feature_scores", "sampling_error"),
)


def spread(scores: Tensor, nodes: Tensor, size: int) -> Tensor:
    """Scores of some nodes in a table of all, ``[size, …]``, where the others have 0.

    NumPy takes zeros from the system, which makes them where they are looked at: of a million nodes only a few are.
    """
    lazily = type(scores) is Tensor and scores.device.type == "cpu" and scores.dtype in (torch.float32, torch.float64)
    shape = (size, *scores.shape[1:])
    name = str(scores.dtype).removeprefix("torch.")
    out = torch.from_numpy(numpy.zeros(shape, name)) if lazily else scores.new_zeros(shape)
    out[nodes] = scores
    return out


def _between(ids: Tensor, n: int) -> bool:
    return ids.numel() == 0 or (0 <= int(ids.min()) and int(ids.max()) < n)
