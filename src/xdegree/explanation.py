"""What an explanation is: frozen, with its settings, and able to save and show itself."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .options import Options

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.explain import Explanation as PyGExplanation

FORMAT = "xdegree.explanation/1"


@dataclass(frozen=True)
class Explanation:
    """Signed scores of nodes (and edges) for one prediction, in units of that prediction."""

    node_scores: Tensor
    """``[N]``; 0 outside the computation graph."""
    prediction: Tensor
    """The model's own output for what is explained, ``[C]``."""
    target: int
    """The class that is explained."""
    index: int
    """The node or graph that is explained."""
    nodes: Tensor
    """The nodes that can contribute: the computation graph of a node, or all nodes of a graph."""
    edge_index: Tensor | None = None
    edge_scores: Tensor | None = None
    """``[E]``, if they were asked for."""
    reading: str = "contribution"
    edges: str | None = None
    """How edges were scored: the ``"pair"`` of end points as one group, or the ``"mean"`` of their scores."""
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        """What views and files rely on."""
        n = len(self.node_scores) if self.node_scores.dim() == 1 else -1
        _require(n >= 0, "node_scores must be a vector")
        _require(self.nodes.dim() == 1 and _between(self.nodes, n), f"nodes must lie between 0 and {n - 1}")
        _require(self.prediction.dim() == 1, "prediction must be a vector")
        _require(0 <= self.target < len(self.prediction), f"target must lie between 0 and {len(self.prediction) - 1}")
        _require(0 <= self.index < max(n, 1), f"index must lie between 0 and {n - 1}")
        if self.edge_index is not None:
            edges = self.edge_index.dim() == 2 and len(self.edge_index) == 2 and _between(self.edge_index, n)
            _require(edges, f"edge_index must be [2, E] with nodes between 0 and {n - 1}")
        if self.edge_scores is not None:
            shape = None if self.edge_index is None else self.edge_index.shape[1:]
            _require(self.edge_scores.shape == shape, "edge_scores must have one score per edge of edge_index")

    def top(self, k: int = 5) -> list[tuple[int, float]]:
        """The k nodes with the largest scores by magnitude, signed, largest first."""
        order = sorted(self.nodes.tolist(), key=lambda node: (-abs(self.node_scores[node].item()), node))
        return [(node, self.node_scores[node].item()) for node in order[:k]]

    def __repr__(self) -> str:
        best = ", ".join(f"{node}: {score:+.4g}" for node, score in self.top(3))
        return (
            f"Explanation(index={self.index}, target={self.target}, reading={self.reading!r},"
            f" nodes={len(self.nodes)} of {len(self.node_scores)}, top={{{best}}})"
        )

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row per node that can contribute, sorted by magnitude (needs pandas)."""
        import pandas

        top = self.top(len(self.nodes))
        return pandas.DataFrame({"node": [n for n, _ in top], "score": [s for _, s in top]})

    def to_networkx(self) -> "networkx.DiGraph[int]":
        """The computation graph with a ``score`` on every node, and on every edge that has one (needs networkx)."""
        import networkx

        graph: networkx.DiGraph[int] = networkx.DiGraph(index=self.index, target=self.target, reading=self.reading)
        inside = set(self.nodes.tolist())
        graph.add_nodes_from((node, {"score": self.node_scores[node].item()}) for node in sorted(inside))
        if self.edge_index is not None:
            for number, (u, v) in enumerate(self.edge_index.t().tolist()):
                if u in inside and v in inside:
                    scored = {} if self.edge_scores is None else {"score": self.edge_scores[number].item()}
                    graph.add_edge(u, v, **scored)
        return graph

    def to_pyg(self) -> "PyGExplanation":
        """A ``torch_geometric.explain.Explanation`` with the same scores."""
        from torch_geometric.explain import Explanation as PyGExplanation

        masks = {"node_mask": self.node_scores.unsqueeze(-1), "edge_mask": self.edge_scores}
        return PyGExplanation(
            edge_index=self.edge_index,
            prediction=self.prediction,
            target=torch.tensor(self.target),
            index=self.index,
            num_nodes=len(self.node_scores),
            **{name: mask for name, mask in masks.items() if mask is not None},
        )

    def save(self, path: str | Path) -> Path:
        """Write a JSON file, whole or not at all."""
        path = Path(path)
        content = {
            "format": FORMAT,
            "dtype": str(self.node_scores.dtype).removeprefix("torch."),
            **{name: _plain(getattr(self, name)) for name in _TENSORS},
            **{name: getattr(self, name) for name in ("target", "index", "reading", "edges")},
            "options": self.options.to_dict(),
        }
        part = path.with_name(path.name + ".part")
        part.write_text(json.dumps(content))
        part.replace(path)
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Explanation":
        """Read what `save` wrote; anything else is an error that says what does not fit."""
        try:
            content = json.loads(Path(path).read_text())
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"{path} is no JSON file: {error}") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"{path} is no saved explanation (expected format {FORMAT!r})")
        try:
            return cls._from_content(content)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise ValueError(f"{path} is a broken explanation: {type(error).__name__}: {error}") from None

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> "Explanation":
        dtype = {"float32": torch.float32, "float64": torch.float64}[content["dtype"]]
        tensors = {name: _tensor(content[name], torch.long if name in _IDS else dtype) for name in _TENSORS}
        for name in ("node_scores", "prediction", "nodes"):
            _require(tensors[name] is not None, f"{name} must be a list of numbers")
        values = {name: content[name] for name in ("target", "index", "reading", "edges")}
        for name, kind in (("target", int), ("index", int), ("reading", str), ("edges", str | None)):
            _require(isinstance(values[name], kind), f"{name} must be {kind} (got {values[name]!r})")
        return cls(**tensors, **values, options=Options(**content["options"]))  # type: ignore[arg-type]


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _between(ids: Tensor, n: int) -> bool:
    return ids.numel() == 0 or (0 <= int(ids.min()) and int(ids.max()) < n)


_TENSORS = ("node_scores", "prediction", "nodes", "edge_index", "edge_scores")
_IDS = ("nodes", "edge_index")


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
        _require(whole.dtype == torch.long or not whole.numel(), "node ids must be whole numbers")
    return torch.tensor(numbers, dtype=dtype)


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(item) for item in value]
    return float(value) if isinstance(value, str) else value
