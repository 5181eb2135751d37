"""Graphs that are larger than memory, in PyG's feature and graph stores: only neighborhoods are ever read.

The call of the model consists of stand-ins, tensors of the right shape without memory. What a part of the graph needs
is read from the stores in their place.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.graph_store import EdgeLayout
from torch_geometric.index import ptr2index

from ..model_call.call import ModelCall, model_call, short
from .message_flow import Incoming

PREFERRED = (EdgeLayout.CSC, EdgeLayout.COO, EdgeLayout.CSR)
"""The layout by which edges are numbered, if there are several; PyG's own loaders choose the same."""
MANY = 10**7
"""Edges from which on it is worth a word that all of them are read."""


@dataclass(frozen=True)
class StoredCall(ModelCall):
    """A call on a graph in stores; it cannot be run itself, only parts of it can."""

    stores: Any = None
    """A `Stores`."""

    REFUSAL: ClassVar = (
        "this question needs the whole graph, but the graph is in stores, of which only the neighborhoods of single"
        " nodes are read; ask about a node with explain or agglomerate, or read the graph into memory"
    )

    @classmethod
    def of(cls, model: Any, stores: tuple[Any, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> "StoredCall":
        """Each parameter of the model gets what the stores have by its name."""
        found = Stores(*stores)
        call = model_call(model, (found.stand_in, *args), kwargs)
        return cls(call.args, call.kwargs, call.names, call.part, call.data, call.random_states, stores=found)

    def run(self, _model: Any, *_replaced: tuple[Any, Any]) -> NoReturn:
        """Refuse: stand-ins have no values."""
        raise TypeError(self.REFUSAL)

    def rows_of(self, value: Tensor, rows: Tensor) -> Tensor:
        """Read some rows of what a tensor stands for; of the user's own tensors take them."""
        read = self.stores.readers.get(id(value))
        return value[rows] if read is None else read(rows)

    def mapped(self, f: Callable[[str, Any], Any]) -> ModelCall:
        """An ordinary call: f puts values in the place of all stand-ins."""
        found = super().mapped(f)
        return ModelCall(found.args, found.kwargs, found.names, found.part, None, found.random_states)


@dataclass
class Stores:
    """A feature store and a graph store with one type of nodes and edges, of any backend."""

    features: Any
    graph: Any
    stand_in: Any = field(init=False)
    """A ``Data`` object with a stand-in for every tensor in the stores."""
    readers: dict[int, Callable[[Tensor], Tensor]] = field(init=False, default_factory=dict)
    """How rows are read, by the id of the stand-in."""

    def __post_init__(self) -> None:
        for store in (self.features, self.graph):
            if (count := getattr(store, "num_partitions", 1)) > 1:
                raise ValueError(
                    f"{type(store).__name__} is one of {count} partitions; give stores that answer for all nodes, as"
                    " docs/jobs.md shows"
                )
        self.layout, self.ends = self._opened()
        found = {attr.attr_name: (attr, self._size(attr)) for attr in self._attributes()}
        if "x" not in found:
            raise ValueError(f"the feature store has no node features x (it has {sorted(found)})")
        self.num_nodes = found["x"][1][0]
        row, pointers = self.ends if self.layout is EdgeLayout.CSC else self.ends[::-1]
        self.num_edges = len(row)
        if self.layout is not EdgeLayout.COO and len(pointers) != self.num_nodes + 1:
            raise ValueError(
                f"the {self.layout.value.upper()} layout of the graph store is for {len(pointers) - 1} nodes, but x has"
                f" {self.num_nodes} rows"
            )
        values = {name: self._standing_in(attr, size) for name, (attr, size) in found.items()}
        self.stand_in = Data(edge_index=torch.zeros(2, 1, dtype=torch.long).expand(2, self.num_edges), **values)

    def _opened(self) -> tuple[EdgeLayout, Any]:
        """The edges as they are stored; a backend that maps a file into memory reads nothing yet."""
        known = {attr.layout: attr for attr in reversed(self.graph.get_all_edge_attrs())}
        types = {attr.edge_type for attr in self.graph.get_all_edge_attrs()}
        if len(types) != 1:
            got = f"several: {short(sorted(map(str, types)))}" if types else "none"
            raise ValueError(f"the graph store must have one type of edges (got {got})")
        layout = next(one for one in PREFERRED if one in known)
        return layout, tuple(map(torch.as_tensor, self.graph.get_edge_index(copy(known[layout]))))

    def _attributes(self) -> list[Any]:
        """All that the feature store has, of nodes and of edges."""
        found = [copy(attr) for attr in self.features.get_all_tensor_attrs()]
        for attr in found:
            if not attr.is_set("group_name"):
                attr.group_name = None
        if isinstance(self.features, Data):  # lists what nodes have only
            edge_attr = [name for name in self.features.keys() if self.features.is_edge_attr(name)]  # noqa: SIM118
            kind = self.features._tensor_attr_cls
            found += [kind(attr_name=name) for name in edge_attr if name != "edge_index"]
        types = {attr.group_name for attr in found if not isinstance(attr.group_name, tuple)}
        if len(types) > 1:
            raise ValueError(
                f"the feature store must have one type of nodes (got several: {short(sorted(map(str, types)))})"
            )
        return found

    def _size(self, attr: Any) -> tuple[int, ...]:
        whole = copy(attr)
        whole.index = None
        return tuple(self.features.get_tensor_size(whole) or (0,))

    def _standing_in(self, attr: Any, size: tuple[int, ...]) -> Tensor:
        def read(rows: Tensor) -> Tensor:
            asked = copy(attr)
            asked.index = rows
            found = torch.as_tensor(self.features.get_tensor(asked))
            if len(found) != len(rows):
                raise ValueError(
                    f"the feature store gave {len(found)} rows of {attr.attr_name!r} where {len(rows)} were asked for"
                )
            return found

        first = read(torch.zeros(min(1, size[0]), dtype=torch.long))
        stand_in = torch.zeros(1, dtype=first.dtype).reshape([1] * len(size)).expand(size)
        self.readers[id(stand_in)] = read
        return stand_in

    def sampled(self, count: int = 64) -> dict[str, Tensor]:
        """Some rows of everything, evenly spread, by name: two graphs that differ there are not the same."""
        found = {
            name: self.readers[id(value)](_spread(len(value), count))
            for name, value in self.stand_in
            if name != "edge_index"
        }
        return {**found, **{f"edges[{i}]": ends[_spread(len(ends), count)] for i, ends in enumerate(self.ends)}}

    def first_edges(self, count: int) -> Tensor:
        """``[2, count]``: the ends of the first edges."""
        row, col = self.ends
        first = torch.arange(min(count, self.num_edges))
        match self.layout:
            case EdgeLayout.CSC:
                return torch.stack([row[first].long(), torch.searchsorted(col, first.to(col), right=True) - 1])
            case EdgeLayout.CSR:
                return torch.stack([torch.searchsorted(row, first.to(row), right=True) - 1, col[first].long()])
        return torch.stack([row[first], col[first]]).long()

    def incoming(self, direction: str) -> Incoming:
        """The edges by the node that they bring messages to: as they are stored, if they are sorted by it."""
        row, col = self.ends
        if self.layout is EdgeLayout.CSC and direction == "source_to_target":
            return Incoming.of_sorted(col, row, end=1)
        if self.layout is EdgeLayout.CSR and direction == "target_to_source":
            return Incoming.of_sorted(row, col, end=0)
        if self.num_edges >= MANY:
            wanted = "CSC" if direction == "source_to_target" else "CSR"
            warnings.warn(
                f"the graph store has no {wanted} layout, by which the neighbors of a node are found in one place: all"
                f" {self.num_edges} edges are read into memory and sorted",
                stacklevel=2,
            )
        row = ptr2index(row) if self.layout is EdgeLayout.CSR else row
        col = ptr2index(col) if self.layout is EdgeLayout.CSC else col
        edges = torch.stack([row.long(), col.long()])
        if edges.numel() and not (0 <= int(edges.min()) and int(edges.max()) < self.num_nodes):
            raise ValueError(f"the graph store names nodes beyond the {self.num_nodes} rows of x")
        return Incoming(edges, self.num_nodes, direction)


def _spread(size: int, count: int) -> Tensor:
    return torch.linspace(0, max(0, size - 1), min(size, count), dtype=torch.float64).long()


class EdgesAmong(Sequence[Tensor]):
    """The edges between the nodes of each of several neighborhoods, read when they are asked for."""

    def __init__(self, incoming: Incoming, fields: Sequence[Tensor]) -> None:
        self._incoming, self._fields = incoming, fields

    def __len__(self) -> int:
        return len(self._fields)

    def __getitem__(self, number: Any) -> Any:
        return self._incoming.among(self._fields[number])[1]
