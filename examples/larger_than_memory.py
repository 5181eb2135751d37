"""Explain nodes of a graph that is larger than memory: PyG's stores over files that are mapped into memory.

    python examples/larger_than_memory.py [--nodes N] [--folder FOLDER]

A graph is written block by block: the features of all nodes, and their incoming edges sorted by receiver (CSC), so that
who sends messages to a node stands in one place. Then two stores open the files, and nodes are explained. Only their
neighborhoods are read.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import EdgeAttr, FeatureStore, GraphStore, TensorAttr
from torch_geometric.nn import SAGEConv

import xdegree

FEATURES, CLASSES, DEGREE = 16, 4, 10
BLOCK, AT_ONCE = 100_000, 256


class MappedFeatures(FeatureStore):
    """A file NAME.npy for each tensor.

    It is mapped anew for every few hundred rows, which come in order: what was read before takes no memory.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.__dict__["folder"] = Path(folder)  # a feature store takes attributes for views of its tensors

    def _get_tensor(self, attr: TensorAttr) -> Tensor:
        rows = np.asarray(attr.index)
        parts = np.array_split(rows, len(rows) // AT_ONCE + 1)
        return torch.from_numpy(np.concatenate([self._mapped(attr)[part] for part in parts]))

    def _mapped(self, attr: TensorAttr) -> np.ndarray[Any, Any]:
        return np.load(self.folder / f"{attr.attr_name}.npy", mmap_mode="r")

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        return self._mapped(attr).shape

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        """What a model may ask for, by the names of its arguments."""
        return [TensorAttr(group_name=None, attr_name="x")]

    def _put_tensor(self, *_: Any) -> bool:
        raise NotImplementedError("the files are written once")

    _remove_tensor = _put_tensor


class MappedEdges(GraphStore):
    """The senders of all messages, sorted by receiver, and where those of each receiver begin (CSC)."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.row, self.colptr = (_mapped(Path(folder) / f"{name}.npy") for name in ("row", "colptr"))

    def _get_edge_index(self, _: EdgeAttr) -> tuple[Tensor, Tensor]:
        return self.row, self.colptr

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """One type of edges, in one layout."""
        size = len(self.colptr) - 1
        return [EdgeAttr(edge_type=None, layout="csc", size=(size, size))]

    def _put_edge_index(self, *_: Any) -> bool:
        raise NotImplementedError("the files are written once")

    _remove_edge_index = _put_edge_index


def _mapped(path: Path) -> Tensor:
    """A tensor whose memory is the file; "c" because PyTorch warns of arrays that it must not write to."""
    return torch.from_numpy(np.load(path, mmap_mode="c"))


class Sage(nn.Module):
    """Two layers of GraphSAGE."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(FEATURES, 32), SAGEConv(32, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of all nodes."""
        out: Tensor = self.second(self.first(x, edge_index).relu(), edge_index)
        return out


def write_graph(folder: Path, nodes: int) -> None:
    """A random graph with ten incoming edges per node, on average: a few nodes of every block have hundreds."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)

    def opened(name: str, kind: type, *shape: int) -> Any:
        return np.lib.format.open_memmap(folder / f"{name}.npy", mode="w+", dtype=kind, shape=shape)

    x, row = opened("x", np.float32, nodes, FEATURES), opened("row", np.int32, DEGREE * nodes)
    colptr = opened("colptr", np.int64, nodes + 1)
    for low in range(0, nodes, BLOCK):
        count = min(BLOCK, nodes - low)
        x[low : low + count] = draw.standard_normal((count, FEATURES), dtype=np.float32)
        row[DEGREE * low : DEGREE * (low + count)] = draw.integers(nodes, size=DEGREE * count)
        share = draw.pareto(2.5, size=count) + 0.5
        degrees = draw.multinomial(DEGREE * count, share / share.sum())
        colptr[low + 1 : low + count + 1] = DEGREE * low + np.cumsum(degrees)


def stored(folder: Path) -> tuple[nn.Module, tuple[Any, ...]]:
    """The model (with random weights) and the stores, as `xdegree job` takes them from a factory."""
    torch.manual_seed(0)
    return Sage().eval(), ((MappedFeatures(folder), MappedEdges(folder)),)


def main(argv: list[str] | None = None) -> None:
    """Write a graph, open it, explain two of its nodes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000, help="of the graph (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="for the files (default: one that is removed)")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        write_graph(folder, given.nodes)
        size = sum(file.stat().st_size for file in folder.glob("*.npy"))
        print(f"{given.nodes:,} nodes and {DEGREE * given.nodes:,} edges in files of {size / 1e6:,.0f} MB")
        model, (stores,) = stored(folder)
        prepared = xdegree.prepare(model, stores)
        for node in (0, given.nodes - 1):
            e = prepared.explain(index=node)
            print(f"node {node}: class {e.target}, {len(e.nodes)} of {e.num_nodes:,} nodes were read ({e.scope})")
            for name, score in e.top(3):
                print(f"  node {name:>9} {score:+.3f}")


if __name__ == "__main__":
    main()
