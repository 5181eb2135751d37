"""The synthetic datasets in the versions that were released and that the paper used, read from the data folder.

The original files are pickles, which can run code when they are opened, so they are not downloaded: the folder
holds the same arrays as ``.npz``.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from .dataset import SPLITS, Dataset, graph_dataset
from .folder import Array, data_folder, read_npz, require
from .synthetic import CYCLE, HOUSE, barabasi_albert

RELEASED = ("ba_shapes", "ba_community", "tree_cycles", "tree_grid")
_KEYS = ("edge_index", "x", "y", *(f"{split}_mask" for split in SPLITS), "edge_gt")


def released(name: str, root: Path | None = None) -> Data:
    """One of the four released graphs, with the released split, in the form of `ba_shapes`.

    The file marks true edges in one direction only; here both directions are marked, and the connected parts of the
    true edges are the motifs.

    Args:
        name: one of `RELEASED`.
        root: the data folder; by default the one of `data_folder`.
    """
    if name not in RELEASED:
        raise ValueError(f"name must be one of {RELEASED} (got {name!r})")
    path = (root or data_folder()) / "synthetic" / f"{name}.npz"
    stored = read_npz(path, _KEYS, f"`xdegree.datasets.{name}(seed)` generates a graph of the same kind")
    x, y = torch.from_numpy(stored["x"]).float(), torch.from_numpy(stored["y"]).long()
    edge_index, truth = torch.from_numpy(stored["edge_index"]).long(), torch.from_numpy(stored["edge_gt"]) != 0
    masks = {f"{split}_mask": torch.from_numpy(stored[f"{split}_mask"]) for split in SPLITS}
    require(path, edge_index.dim() == 2 and len(edge_index) == 2, "has an edge_index that is not [2, E]")
    require(path, edge_index.shape[1] == len(truth), "marks another number of edges than it has")
    require(
        path, bool(len(x)) and all(len(rows) == len(x) for rows in (y, *masks.values())), "has rows of unequal count"
    )
    require(path, 0 <= int(edge_index.min()) and int(edge_index.max()) < len(x), "has edges to nodes that do not exist")
    edge_mask = _both_directions(path, edge_index, truth, len(x))
    return Data(
        x=x, edge_index=edge_index, y=y, **masks, edge_mask=edge_mask, motif=_parts(edge_index[:, edge_mask], len(x))
    )


def _both_directions(path: Path, edge_index: Tensor, truth: Tensor, nodes: int) -> Tensor:
    """Mark the reverse of every marked edge."""
    there, back = edge_index[0] * nodes + edge_index[1], edge_index[1] * nodes + edge_index[0]
    require(path, bool(torch.isin(back[truth], there).all()), "lacks the reverse of some edges")
    return truth | torch.isin(there, back[truth])


def _parts(edges: Tensor, nodes: int) -> Tensor:
    """The number of each node's connected part, -1 for nodes without edges: labels spread until nothing changes."""
    label = torch.arange(nodes)
    while True:
        spread = label.scatter_reduce(0, edges[1], label[edges[0]], "amin")
        if torch.equal(spread, label):
            break
        label = spread
    found = torch.full((nodes,), -1)
    inside = edges.unique()
    found[inside] = label[inside].unique(return_inverse=True)[1]
    return found


def ba2motifs(seed: int = 0, root: Path | None = None) -> Dataset:
    """BA-2Motifs as released: 1,000 graphs of 25 nodes, label 0 with a five-cycle (nodes 20 to 24), 1 with a house.

    Args:
        seed: draws the split.
        root: the data folder; by default the one of `data_folder`.
    """
    path = (root or data_folder()) / "ba2motifs" / "ba2motifs.npz"
    keys = ("edge_index", "edge_ptr", "x_value", "x_shape", "y", "edge_gt")
    stored = read_npz(path, keys, "`xdegree.datasets.generated_ba2motifs(seed)` generates graphs of the same kind")
    nodes, width = (int(size) for size in stored["x_shape"])
    edge_index, ptr = stored["edge_index"].astype(np.int64), stored["edge_ptr"].astype(np.int64)
    require(path, edge_index.shape[:1] == (2,) and edge_index.shape[1:] == stored["edge_gt"].shape, "has unequal edges")
    require(path, len(ptr) == len(stored["y"]) + 1 and ptr[0] == 0 and ptr[-1] == edge_index.shape[1], "is cut wrongly")
    require(path, bool((np.diff(ptr) >= 0).all()), "is cut wrongly")
    require(path, 0 <= edge_index.min() and edge_index.max() < nodes, "has edges to nodes that do not exist")
    graphs = [
        _two_motifs(edge_index[:, a:b], stored["edge_gt"][a:b] != 0, int(y), nodes, width, float(stored["x_value"]))
        for a, b, y in zip(ptr[:-1], ptr[1:], stored["y"], strict=True)
    ]
    return graph_dataset("BA-2Motifs", graphs, "constant", seed)


def generated_ba2motifs(seed: int = 0, count: int = 1000) -> Dataset:
    """BA-2Motifs by our own code: a Barabási-Albert tree of 20 nodes, and a five-cycle or a house on one of them."""
    rng = np.random.default_rng(seed)
    cycle = (*CYCLE.edges[:4], (0, 4))
    graphs = []
    for number in range(count):
        label = int(number >= count // 2)
        motif = [(20 + u, 20 + v) for u, v in (HOUSE.edges if label else cycle)]
        edges = [*barabasi_albert(20, 1, rng), (int(rng.integers(20)), 20), *motif]
        both = np.array([*edges, *[(v, u) for u, v in edges]]).T
        true = np.array([edge in motif for edge in edges] * 2)
        graphs.append(_two_motifs(both, true, label, 25, 10, 0.1))
    return graph_dataset("BA-2Motifs", graphs, "constant", seed, "generated, not the released graphs")


def _two_motifs(edge_index: Array, truth: Array, label: int, nodes: int, width: int, value: float) -> Data:
    motif = torch.full((nodes,), -1)
    motif[20:] = 0
    return Data(
        x=torch.full((nodes, width), value),
        edge_index=torch.from_numpy(np.ascontiguousarray(edge_index)),
        y=torch.tensor([label]),
        edge_mask=torch.from_numpy(np.ascontiguousarray(truth)),
        motif=motif,
    )
