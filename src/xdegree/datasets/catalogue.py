"""All datasets by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from . import synthetic
from .dataset import Dataset, node_dataset
from .folder import data_folder
from .mutagenicity import mutag
from .released import RELEASED, ba2motifs, generated_ba2motifs, released
from .sst2 import graph_sst2

Origin = Literal["released", "generated", "any"]

_NODE_SETS: dict[str, tuple[str, Callable[..., Any], str]] = {
    "ba_shapes": ("BA-Shapes", synthetic.ba_shapes, "constant"),
    "ba_community": ("BA-Community", synthetic.ba_community, "generated from labels"),
    "tree_cycles": ("Tree-Cycles", synthetic.tree_cycles, "constant"),
    "tree_grid": ("Tree-Grid", synthetic.tree_grid, "constant"),
}
DATASETS = (*RELEASED, "ba2motifs", "mutag", "graph_sst2")


def load(name: str, *, seed: int = 0, origin: Origin = "any", root: Path | None = None, **options: Any) -> Dataset:
    """A dataset by name.

    Args:
        name: one of `DATASETS`.
        seed: draws what is generated and the split (released graphs for node classification bring their own).
        origin: of synthetic graphs: ``"released"`` from the data folder, ``"generated"`` by our own code, or ``"any"``:
            the released ones where the folder has them.
        root: the data folder; by default the one of `data_folder`.
        **options: for the generator of that dataset, or for `graph_sst2`.
    """
    if origin not in ("released", "generated", "any"):
        raise ValueError(f'origin is "released", "generated" or "any" (got {origin!r})')
    root = root or data_folder()
    if name in _NODE_SETS:
        title, generate, features = _NODE_SETS[name]
        there = (root / "synthetic" / f"{name}.npz").is_file()
        if origin == "released" or (origin == "any" and there and not options):
            return node_dataset(title, released(name, root), features)
        return node_dataset(title, generate(seed, **options), features, "generated, not the released graph")
    if name == "ba2motifs":
        there = (root / "ba2motifs" / "ba2motifs.npz").is_file()
        if origin == "released" or (origin == "any" and there and not options):
            return ba2motifs(seed, root)
        return generated_ba2motifs(seed, **options)
    if name == "mutag":
        return mutag(seed, root)
    if name == "graph_sst2":
        return graph_sst2(seed, root, **options)
    raise ValueError(f"name must be one of {DATASETS} (got {name!r})")
