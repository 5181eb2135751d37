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
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
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
        scores, nodes, edge_index = tensors["node_scores"], tensors["nodes"], tensors["edge_index"]
        if scores is None or scores.dim() != 1 or nodes is None or nodes.dim() != 1:
            raise ValueError("node_scores and nodes must be lists of numbers")
        if len(nodes) and not (0 <= int(nodes.min()) and int(nodes.max()) < len(scores)):
            raise ValueError(f"nodes must lie between 0 and {len(scores) - 1}")
        if tensors["edge_scores"] is not None and (
            edge_index is None or edge_index.shape[1] != len(tensors["edge_scores"])
        ):
            raise ValueError("edge_scores does not fit edge_index")
        values = {name: content[name] for name in ("target", "index", "reading", "edges")}
        if not all(isinstance(values[name], int) for name in ("target", "index")):
            raise ValueError("target and index must be whole numbers")
        return cls(**tensors, **values, options=Options(**content["options"]))  # type: ignore[arg-type]


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
    return None if value is None else torch.tensor(_number(value), dtype=dtype)


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(item) for item in value]
    return float(value) if isinstance(value, str) else value
