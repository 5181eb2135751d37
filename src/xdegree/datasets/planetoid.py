"""Citation networks with their standard splits: Cora, Citeseer."""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from .folder import data_folder, read_npz, require

KEYS = ("edge_index", "y", "x_indptr", "x_indices", "x_data", "x_shape", "train_mask", "val_mask", "test_mask")


def planetoid(name: str, root: Path | None = None) -> Data:
    """A citation network: words of papers [N, F] (rows sum to 1), citations, topics, and the standard masks.

    Read from ``node_graphs/<name>.npz`` in the data folder; where that is absent, by PyG's ``Planetoid``, which
    downloads it there.
    """
    root = root or data_folder()
    path = root / "node_graphs" / f"{name.lower()}.npz"
    data = load_npz_graph(path) if path.is_file() else _downloaded(name, root)
    data.x = data.x / data.x.sum(1, keepdim=True).clamp(min=1)
    return data


def load_npz_graph(path: Path) -> Data:
    """One graph from an ``.npz`` file whose features are the parts of a CSR matrix."""
    stored = read_npz(path, KEYS, "give a file of a graph")
    edge_index, y = stored["edge_index"].astype(np.int64), stored["y"].astype(np.int64)
    starts, columns = stored["x_indptr"].astype(np.int64), stored["x_indices"].astype(np.int64)
    require(path, stored["x_shape"].shape == (2,), "does not say the shape of its features")
    nodes, width = (int(size) for size in stored["x_shape"])
    fits = y.shape == (nodes,) and edge_index.ndim == 2 and len(edge_index) == 2 and starts.shape == (nodes + 1,)
    fits = fits and bool((np.diff(starts) >= 0).all()) and starts[0] == 0 and starts[-1] == len(columns)
    for ids, count in ((edge_index, nodes), (columns, width)):
        fits = fits and (ids.size == 0 or (ids.min() >= 0 and ids.max() < count))
    masks = {key: stored[key] for key in KEYS if key.endswith("_mask")}
    fits = fits and all(mask.shape == (nodes,) and mask.dtype == bool for mask in masks.values())
    fits = fits and stored["x_data"].shape in ((1,), columns.shape)
    require(path, fits, "has arrays that do not fit together")
    x = np.zeros((nodes, width), dtype=np.float32)
    x[np.repeat(np.arange(nodes), np.diff(starts)), columns] = stored["x_data"]
    parts = {"x": x, "edge_index": edge_index, "y": y, **masks}
    return Data(**{key: torch.from_numpy(np.ascontiguousarray(part)) for key, part in parts.items()})


def _downloaded(name: str, root: Path) -> Data:
    from torch_geometric.datasets import Planetoid

    folder = root / "planetoid"
    try:
        return Planetoid(str(folder), name)[0]
    except Exception as error:
        raise FileNotFoundError(
            f"{name} is neither in {root / 'node_graphs'} nor could it be downloaded to {folder} ({error}); put"
            f" {name.lower()}.npz there and name the folder above it in $XDEGREE_DATA, or try again with internet"
        ) from error
