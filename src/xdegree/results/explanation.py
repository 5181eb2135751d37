"""The explanation of one prediction."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

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
COMMON: dict[str, Any] = {
    "target": int,
    "index": int,
    "reading": str,
    "of": str,
    "edge_scoring": str | None,
    "level": str | None,
    "scope": str | None,
}
"""What every kind has that is no tensor, and its type in files."""
IDS = ("nodes", "edge_index")
"""The tensors of integers."""


def require(holds: bool, what: str) -> None:
    """What views and files rely on."""
    if not holds:
        raise ValueError(what)


def check_common(e: Any) -> None:
    """What views and files rely on, of every kind of explanation."""
    require(e.prediction.dim() == 1, "prediction must be a vector")
    require(0 <= e.target < len(e.prediction), f"target must lie between 0 and {len(e.prediction) - 1}")
    known = {
        "level": (None, *get_args(Level)),
        "reading": READINGS,
        "of": OF,
        "edge_scoring": EDGE_SCORINGS,
    }
    for name, allowed in known.items():
        require(getattr(e, name) in allowed, f"{name} must be one of {allowed} (got {getattr(e, name)!r})")


def check_count(k: object) -> None:
    """How many of the largest scores are wanted."""
    if not isinstance(k, int) or k < 0:
        raise ValueError(f"k is how many scores are wanted, an integer (got {k!r})")


def at(level: str | None) -> str:
    """The level as a part of a description."""
    return "" if level is None else f", level={level!r}"


def explained_output(e: Any) -> float:
    """The number that is explained: the class's logit or output."""
    return float((e.prediction if e.logits is None else e.logits)[e.target])


def left_open(e: Any) -> float | None:
    """What single scores leave open of it, beyond the baseline's; None for readings that are no parts of it."""
    if e.reading != "contribution":
        return None
    start = 0.0 if e.baseline_output is None else float(e.baseline_output[e.target])
    return explained_output(e) - start - e.total_scores


def account(e: Any) -> str:
    """What single scores add up to, and what they leave open, as a part of a description."""
    if e.residual is None:
        return ""
    return f", scores={e.total_scores:+.4g}, residual={e.residual:+.4g} of {e.output:+.4g}"


def read_dtype(content: dict[str, Any]) -> torch.dtype:
    """Of the scores in a file."""
    known = {"float32": torch.float32, "float64": torch.float64}
    require(content["dtype"] in known, f"dtype must be one of {tuple(known)} (got {content['dtype']!r})")
    return known[content["dtype"]]


def read_values(content: dict[str, Any], kinds: dict[str, Any]) -> dict[str, Any]:
    """What is no tensor, each of its kind."""
    for name, kind in kinds.items():
        require(isinstance(content[name], kind), f"{name} must be {kind} (got {content[name]!r})")
    return {name: content[name] for name in kinds}


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
    # In truth "| None". With Any instead, who asks for nodes, as is usual, need not prove to a type checker that they
    # are there, and what is no method of a tensor is still found.
    node_scores: Tensor | Any = None
    """``[N]``; 0 outside the computation graph. None if something else than nodes was scored."""
    class_scores: Tensor | None = None
    """``[N, C]``: the same for every class."""
    edge_index: Tensor | None = None
    """``[2, E]``: the edges of the whole graph, as the model got them."""
    edge_scores: Tensor | None = None
    """``[E]``: of the messages along edges (``of="edge"``), or by their end points."""
    feature_scores: Tensor | None = None
    """``[N, F]``, of single features of nodes."""
    edge_feature_scores: Tensor | None = None
    """``[E]`` or ``[E, D]``, of edge weights or of single features of edges."""
    reading: str = "contribution"
    """What a score is: ``"contribution"``, ``"impact"``, ``"probability"`` or ``"strength"``."""
    of: str = "node"
    """What was scored: every ``"node"``, ``"edge"``, ``"feature"`` or ``"edge_feature"``."""
    edge_scoring: str | None = None
    """How edges were scored by their end points: the ``"pair"`` as one group, or the ``"mean"`` of their scores."""
    options: Options = field(default_factory=Options)
    """The choices among rules that made the scores."""
    sampling_error: Tensor | None = None
    """``[C]``: the output with a sampled neighborhood, which the scores are of, minus the model's own output."""
    level: Level | None = None
    """What is explained: a ``"node"``, a ``"link"`` or a ``"graph"``; None where it is not known."""
    logits: Tensor | None = None
    """``[C]``: what the last softmax or sigmoid was applied to, if that is explained instead of the prediction."""
    baseline_output: Tensor | None = None
    """``[C]``: what is explained with the features of the baseline; None for one step from zero."""
    steps: int = 1
    """In how many steps the way from the baseline was split."""
    products: tuple[str, ...] = ()
    """The modules that multiply what arrives from nodes by what arrives from nodes."""
    scope: str | None = None
    """What was decomposed, and whether it was checked against the model: the neighborhood or the whole graph."""

    def __post_init__(self) -> None:
        """What views and files rely on."""
        n, e = self.num_nodes, None if self.edge_index is None else self.edge_index.shape[-1]
        check_common(self)
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
        require(self.of in OF and getattr(self, f"{self.of}_scores") is not None, f"{self.of}_scores is missing")

    @property
    def output(self) -> float:
        """The number that is explained: the class's logit or output."""
        return explained_output(self)

    @property
    def total_scores(self) -> float:
        """What the single scores add up to."""
        return float(self.scores.sum())

    @property
    def residual(self) -> float | None:
        """What the single scores leave open of the output (beyond the baseline's): joint effects and biases.

        None for readings that are no parts of the output.
        """
        return left_open(self)

    @property
    def hides_products(self) -> bool:
        """Whether most nodes have exactly 0 because products of two portions are background."""
        if not self.products or self.of != "node" or self.options.product != "target":
            return False
        return self.output != 0 and int((self.scores[self.nodes] == 0).sum()) > len(self.nodes) // 2

    @property
    def scores(self) -> Tensor:
        """The scores of what was explained: of nodes, edges, features or edge features."""
        scores: Tensor = getattr(self, f"{self.of}_scores")
        return scores

    def top(self, k: int = 5, by: Literal["sign", "impact", "size"] | None = None) -> list[tuple[Any, float]]:
        """What matters most: k nodes, edges (u, v) or places, each with its signed score.

        The place of a feature is (node, feature), that of an edge feature (edge, feature).

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
            return tuple(self.edge_index[:, place].tolist())
        width = self.scores.shape[1] if self.scores.dim() > 1 else None
        return place if width is None else divmod(place, width)

    def __repr__(self) -> str:
        best = ", ".join(f"{name}: {score:+.4g}" for name, score in self.top(3))
        return (
            f"Explanation(index={self.index}{at(self.level)}, target={self.target}, reading={self.reading!r},"
            f" nodes={len(self.nodes)} of {self.num_nodes}, top={{{best}}}{account(self)}, scope={self.scope!r})"
        )

    def _repr_png_(self) -> bytes | None:
        """How notebooks show it: as a picture, where the extra for plots is installed, else as text."""
        from .notebook import picture

        return picture(self)

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
        content = {
            "format": FORMAT,
            "dtype": str(self.scores.dtype).removeprefix("torch."),
            **{name: plain(getattr(self, name)) for name in _TENSORS},
            **{name: getattr(self, name) for name in _VALUES},
            "products": list(self.products),
            "options": self.options.to_dict(),
        }
        return write_json(path, content)

    @classmethod
    def load(cls, path: str | Path) -> "Explanation":
        """Read what `save` wrote; anything else is an error that says what does not fit."""
        return read_json(path, FORMAT, "explanation", cls._from_content)

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> "Explanation":
        dtype = read_dtype(content)
        tensors = {name: read_tensor(content[name], torch.long if name in IDS else dtype) for name in _TENSORS}
        for name in ("prediction", "nodes"):
            require(tensors[name] is not None, f"{name} must be a list of numbers")
        values = read_values(content, _VALUES)
        edges, n = tensors["edge_index"], values["num_nodes"]
        require(edges is None or _between(edges, n), f"edge_index must have nodes between 0 and {n - 1}")
        products = content["products"]
        require(isinstance(products, list) and all(isinstance(p, str) for p in products), "products must be names")
        return cls(**tensors, **values, products=tuple(products), options=Options.paper(**content["options"]))  # type: ignore[arg-type]


_TENSORS = (
    *("prediction", "nodes", "node_scores", "class_scores"),
    *("edge_index", "edge_scores", "feature_scores", "edge_feature_scores", "sampling_error"),
    *("logits", "baseline_output"),
)
_VALUES = {**COMMON, "num_nodes": int, "steps": int}


def _between(ids: Tensor, n: int) -> bool:
    return ids.numel() == 0 or (0 <= int(ids.min()) and int(ids.max()) < n)
