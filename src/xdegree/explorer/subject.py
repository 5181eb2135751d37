"""What the page explains: a model with its predictions, and one of those, ready to be asked about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from ..baselines.instance import Instance, instance
from ..canvas import Canvas, graph_canvas, molecule_canvas, sentence_canvas
from .problem import MAX_CHOICES, MAX_SHOWN, Problem

LINE = 34.0
"""The length of a line of a sentence, in letter heights: what a phone can show in letters that can be read."""
Kind = Literal["graph", "molecule", "sentence"]


@dataclass(frozen=True)
class Item:
    """A prediction that the list offers: a graph, and the node in it if the model predicts nodes."""

    title: str
    data: Data
    index: int | None = None


@dataclass(frozen=True, eq=False)
class Example:
    """A trained model and predictions of it."""

    key: str
    title: str
    note: str
    """What a reader must know to judge what is shown: where the data come from, how good the model is."""
    kind: Kind
    model: nn.Module
    items: Sequence[Item]
    classes: tuple[str, ...] = ()
    """Names of the classes; numbers where there are none."""
    atoms: tuple[str, ...] = ()
    """What the features of a molecule's atoms are one-hot over; a SMILES is only understood where this is known."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the model, for its own graph only."""

    @property
    def choices(self) -> list[tuple[int, str]]:
        """The list of predictions, not longer than a browser can show."""
        return [(number, item.title) for number, item in enumerate(self.items[:MAX_CHOICES])]

    @property
    def width(self) -> int:
        """How many features a node has."""
        return int(self.items[0].data.x.shape[1])

    def like_its_own(self, data: Data) -> Data:
        """A graph from elsewhere with features of the type, and in the place, of the model's own."""
        data.x = data.x.to(self.items[0].data.x)
        data.edge_index = data.edge_index.to(data.x.device)
        return data


@dataclass(frozen=True, eq=False)
class Subject:
    """One prediction. It never changes, so what is computed about it may be kept and shared by all readers."""

    key: str
    title: str
    example: Example
    data: Data
    """The whole graph."""
    one: Instance
    """The prediction, cut to its computation graph."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """A name for each class of the prediction."""
        count, names = len(self.one.prediction), self.example.classes
        if count == 1 and not names:
            return ("output",)
        return tuple(names[i] if i < len(names) else f"class {i}" for i in range(count))

    @cached_property
    def nodes(self) -> list[int]:
        """The nodes that can contribute, by their own ids."""
        found: list[int] = self.one.field.tolist()
        return found

    @property
    def index(self) -> int | None:
        """The explained node; None for the prediction of a graph."""
        if self.one.level != "node":
            return None
        return self.one.row if self.one.nodes is None else int(self.one.nodes[self.one.row])

    def local(self, nodes: Sequence[int]) -> list[int]:
        """Nodes as the computation graph numbers them."""
        if self.one.nodes is None:
            return list(nodes)
        found: list[int] = torch.searchsorted(self.one.nodes, torch.tensor(nodes, dtype=torch.long)).tolist()
        return found

    def canvas(self, strength: Tensor) -> Canvas:
        """Where the nodes stand; of many only those with the largest strength ``[N]`` (and the explained one)."""
        if self.example.kind == "molecule":
            return molecule_canvas(graph=self.data, atoms=self.example.atoms)
        words = node_names(self.data)
        if self.example.kind == "sentence" and words is not None:
            return sentence_canvas(words, edge_index=self.data.edge_index, width=LINE)
        shown = self.nodes
        if len(shown) > MAX_SHOWN:
            order = sorted(shown, key=lambda node: (node != self.index, -float(strength[node])))
            shown = sorted(order[:MAX_SHOWN])
        names = {} if words is None else {node: words[node] for node in shown}
        return graph_canvas(self.data.edge_index, shown, names)


def node_names(data: Data) -> list[str] | None:
    """What the nodes are called: ``words`` or ``names``, where the graph has them."""
    for field_name in ("words", "names"):
        if field_name in data and len(data[field_name]) == data.num_nodes:
            return [str(name) for name in data[field_name]]
    return None


def subject_of(key: str, title: str, example: Example, data: Data, index: int | None, **kwargs: Any) -> Subject:
    """Run the model once and cut out what the prediction depends on."""
    try:
        with torch.no_grad():
            one = instance(example.model, data.x, data.edge_index, index=index, **kwargs)
    except (ValueError, TypeError, RuntimeError, IndexError) as error:
        raise Problem(f"The model cannot predict this: {str(error).splitlines()[0]}") from error
    if not one.prediction.isfinite().all():
        raise Problem("The model's prediction is not finite, so there is nothing to take apart.")
    return Subject(key, title, example, data, one, kwargs)
