"""What a view draws on: where nodes stand, how their edges run, what they are called."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from torch import Tensor
from torch_geometric.data import Data

Point = tuple[float, float]
Edge = tuple[int, int]
"""The smaller end first: directions are not shown."""
Line = tuple[Point, ...]
Colours = Mapping[int, str]
EdgeColours = Mapping[Edge, str]


@dataclass(frozen=True)
class Canvas:
    """A graph that knows its places; what is drawn on it are colours of nodes and edges."""

    places: Mapping[int, Point]
    """Of the nodes that are shown, by their ids; y grows upwards."""
    paths: Mapping[Edge, tuple[Line, ...]]
    """How each edge runs, as polylines: one straight line, or an arc in one or more pieces."""
    labels: Mapping[int, str]
    """What a node is called."""

    kind: ClassVar[str] = "graph"
    """What is drawn: a graph, a molecule or a sentence."""
    node: ClassVar[str] = "node"
    """What a reader calls one of the nodes."""

    @property
    def box(self) -> tuple[float, float, float, float]:
        """The smallest x and y, the largest x and y."""
        x, y = zip(*self.places.values(), strict=True)
        return min(x), min(y), max(x), max(y)

    def name_of(self, node: int) -> str:
        """What a node is called where there is no picture: a number needs a word, a name that comes twice a number."""
        label = self.labels.get(node, str(node))
        if label.isdigit():
            return f"{self.node} {label}"
        return f"{label} ({node})" if label in self._repeated else label

    @cached_property
    def _repeated(self) -> set[str]:
        counted = Counter(self.labels.values())
        return {label for label, times in counted.items() if times > 1}

    def svg(self, nodes: Colours, edges: EdgeColours) -> str | None:  # noqa: ARG002
        """A still picture that fills the box, for those canvases that have one of their own kind."""
        return None


def node_names(data: Data) -> list[str] | None:
    """What the nodes are called: ``words`` or ``names``, where the graph has them."""
    for field_name in ("words", "names"):
        if field_name in data and len(data[field_name]) == data.num_nodes:
            return [str(name) for name in data[field_name]]
    return None


def graph_title(data: Data) -> str | None:
    """What a graph calls itself: its title or name, its SMILES, its words."""
    for field in ("title", "name", "smiles"):
        if isinstance(value := data.get(field), str) and value.strip():
            return value.strip()
    return " ".join(map(str, data.words)) if "words" in data else None


def edge_of(u: int, v: int) -> Edge:
    """The edge between two nodes, whatever its direction."""
    return (u, v) if u <= v else (v, u)


def edges_of(edge_index: Tensor, shown: Iterable[int] | None = None) -> list[Edge]:
    """Each edge once, in order of first appearance, without loops; only between shown nodes if those are given."""
    inside = None if shown is None else set(shown)
    pairs = (edge_of(u, v) for u, v in edge_index.T.tolist() if u != v)
    return list(dict.fromkeys(p for p in pairs if inside is None or (p[0] in inside and p[1] in inside)))
