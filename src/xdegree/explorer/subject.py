"""What the page explains: a model with its predictions, and one of those, ready to be asked about."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeGuard

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from ..baselines.instance import Instance, instance
from ..canvas import (
    Canvas,
    Edge,
    edge_of,
    graph_canvas,
    molecule_canvas,
    neighborhood,
    node_names,
    sentence_canvas,
)
from .problem import MAX_CHOICES, Problem

LINE = 34.0
"""The length of a line of a sentence, in letter heights: what a phone can show in letters that can be read."""
Kind = Literal["graph", "molecule", "sentence"]
Chosen = Sequence[int] | Sequence[Edge]
"""A group: of nodes, or of edges."""


@dataclass(frozen=True)
class Item:
    """A prediction that the list offers: a graph, and the node in it if the model predicts nodes."""

    title: str
    data: Data
    index: int | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the model, for this graph."""


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
    """Further arguments of the model, whatever the graph is."""
    molecule: Callable[[str], Data] | None = None
    """Reads a SMILES as the model reads molecules; by default one-hot over `atoms`, where those are known."""
    sentence: Callable[[str], Data] | None = None
    """Reads a sentence as the model reads sentences: a graph with its ``words``."""
    about_model: str = ""
    """What a reader must know of the model alone."""

    @property
    def reads_molecules(self) -> bool:
        """Whether users can type a SMILES."""
        return self.molecule is not None or bool(self.atoms)

    @property
    def choices(self) -> list[tuple[int, str]]:
        """The list of predictions, not longer than a browser can show."""
        return [(number, item.title) for number, item in enumerate(self.items[:MAX_CHOICES])]

    @property
    def width(self) -> int:
        """How many features a node has."""
        return int(self.items[0].data.x.shape[1])

    def like_its_own(self, data: Data) -> Data:
        """A graph from elsewhere whose tensors have the type, and are in the place, of the model's own."""
        own = self.items[0].data
        for name in data.keys():  # noqa: SIM118 (a Data object is no dict)
            if isinstance(data[name], Tensor):
                like = own[name] if isinstance(own.get(name), Tensor) else None
                data[name] = data[name].to(own.x.device, None if like is None else like.dtype)
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
    note: str = ""
    """What it is: where the data come from, how good the model is."""

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """A name for each class of the prediction."""
        count, names = len(self.one.prediction), self.example.classes
        if count == 1 and not names:
            return ("output",)
        return tuple(names[i] if i < len(names) else f"class {i}" for i in range(count))

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the classes as far as they have any; None where they are only numbers."""
        return self.classes if self.example.classes else None

    @cached_property
    def nodes(self) -> list[int]:
        """The nodes that can contribute, by their own ids."""
        found: list[int] = self.one.field.tolist()
        return found

    @cached_property
    def edges(self) -> Mapping[Edge, Sequence[int]]:
        """The edges that can contribute, and where the computation graph has them: both directions, and repeats."""
        ids = self.one.edge_index if self.one.nodes is None else self.one.nodes[self.one.edge_index]
        found: dict[Edge, list[int]] = {}
        for place, (u, v) in enumerate(ids.t().tolist()):
            found.setdefault(edge_of(u, v), []).append(place)
        return found

    @property
    def index(self) -> int | None:
        """The explained node; None for the prediction of a graph."""
        if self.one.level != "node":
            return None
        return self.one.row if self.one.nodes is None else int(self.one.nodes[self.one.row])

    def local(self, group: Chosen) -> list[int]:
        """Nodes, or edges, as the computation graph numbers them."""
        if of_edges(group):
            return [place for edge in group for place in self.edges[edge]]
        nodes: Any = group
        if self.one.nodes is None:
            return list(nodes)
        found: list[int] = torch.searchsorted(self.one.nodes, torch.tensor(nodes, dtype=torch.long)).tolist()
        return found

    def canvas(self, strength: Tensor) -> Canvas:
        """Where the nodes stand: as a molecule or a sentence if the graph is one, else as a graph.

        Of more nodes than can be drawn, only the strongest by `strength` ``[N]``, and the ways between them.
        """
        found = self._molecule() or self._sentence()
        if found is not None:
            return found
        shown = neighborhood(self.data.edge_index, self.nodes, strength, self.index)
        words = node_names(self.data)
        names = {} if words is None else {node: words[node] for node in shown}
        return graph_canvas(self.data.edge_index, shown, names)

    def _molecule(self) -> Canvas | None:
        """As its SMILES says, if that has as many atoms as the graph has nodes; else as its one-hot atoms say."""
        count, atoms = len(self.data.x), self.example.atoms
        if isinstance(smiles := self.data.get("smiles"), str):
            try:
                return molecule_canvas(smiles, num_nodes=count)
            except ValueError:
                return None
        one_hot = bool(atoms) and is_one_hot(self.data.x[:, : len(atoms)])
        return molecule_canvas(graph=self.data, atoms=atoms) if one_hot else None

    def _sentence(self) -> Canvas | None:
        words = node_names(self.data) if self.example.kind == "sentence" or "words" in self.data else None
        return None if words is None else sentence_canvas(words, edge_index=self.data.edge_index, width=LINE)


def of_edges(group: Chosen) -> TypeGuard[Sequence[Edge]]:
    """Whether a group is one of edges; an empty one is of either."""
    return any(isinstance(item, tuple) for item in group)


def is_one_hot(x: Tensor) -> bool:
    """Whether every row has a single 1 and else zeros."""
    return bool(((x == 0) | (x == 1)).all() and (x.sum(1) == 1).all())


def not_drawn(data: Data, canvas: Canvas) -> str:
    """What of a graph its drawing leaves out, in words; empty where it leaves out nothing."""
    pairs = list(zip(*data.edge_index.tolist(), strict=True))
    distinct = set(pairs)
    again = len(pairs) - len(distinct)
    loops = sum(u == v for u, v in distinct)
    one_way = sum((v, u) not in distinct for u, v in distinct if u != v)
    left = [
        (loops, f"{loops} edge{'s' * (loops > 1)} from a node to itself"),
        (one_way, f"the direction of {one_way} edge{'s' * (one_way > 1)}"),
        (again, f"{again} repeated edge{'s' * (again > 1)}"),
        (data.edge_attr is not None and canvas.kind != "molecule", "features of edges"),
    ]
    said = ", ".join(text for count, text in left if count)
    unknown = canvas.kind == "molecule" and not {"smiles", "bond", "edge_attr"} & set(data.keys())
    orders = "The graph holds no bond orders, so all bonds are drawn single." if unknown else ""
    return (f"Not drawn: {said}. " if said else "") + orders


def subject_of(
    key: str, title: str, example: Example, data: Data, index: int | None, note: str, **kwargs: Any
) -> Subject:
    """Run the model once and cut out what the prediction depends on."""
    try:
        with torch.no_grad():
            one = instance(example.model, data.x, data.edge_index, index=index, **kwargs)
    except (ValueError, TypeError, RuntimeError, IndexError) as error:
        raise Problem(f"The model cannot predict this: {str(error).splitlines()[0]}") from error
    if not one.prediction.isfinite().all():
        raise Problem("The model's prediction is not finite, so there is nothing to take apart.")
    return Subject(key, title, example, data, one, kwargs, note)
