"""MUTAG as the paper means it: the 4,337 molecules of the TU dataset Mutagenicity, with their NO2 and NH2 groups."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from .dataset import Dataset, graph_dataset
from .folder import data_folder, missing, read_numbers, require

ATOMS = ("C", "O", "Cl", "H", "N", "F", "Br", "S", "P", "I", "Na", "K", "Li", "Ca")
OXYGEN, HYDROGEN, NITROGEN = ATOMS.index("O"), ATOMS.index("H"), ATOMS.index("N")
MUTAGEN = 0
"""The label of mutagens; 1 is that of nonmutagens."""


def mutag(seed: int = 0, root: Path | None = None) -> Dataset:
    """The molecules with one-hot atoms, labels (0 mutagen), and the edges of NO2 and NH2 groups as truth.

    Read from ``mutagenicity/raw`` in the data folder, which is not written to; where that is absent, PyG's
    ``TUDataset`` downloads the files there first. Hydrogens are nodes.

    Args:
        seed: draws the split.
        root: the data folder; by default the one of `data_folder`.
    """
    raw = _raw_folder(root or data_folder())
    atoms = torch.from_numpy(read_numbers(raw / "Mutagenicity_node_labels.txt"))
    edges = torch.from_numpy(read_numbers(raw / "Mutagenicity_A.txt", 2)).t() - 1
    graph = torch.from_numpy(read_numbers(raw / "Mutagenicity_graph_indicator.txt")) - 1
    labels = torch.from_numpy(read_numbers(raw / "Mutagenicity_graph_labels.txt"))
    bonds = torch.from_numpy(read_numbers(raw / "Mutagenicity_edge_labels.txt"))
    _check(raw, atoms, edges, graph, labels, bonds)
    truth = nitro_and_amino(atoms, edges)
    sizes = torch.bincount(graph, minlength=len(labels))
    counts = torch.bincount(graph[edges[0]], minlength=len(labels)).tolist()
    parts = zip(
        one_hot(atoms, len(ATOMS)).float().split(sizes.tolist()),
        edges.split(counts, 1),
        bonds.split(counts),
        truth.split(counts),
        (sizes.cumsum(0) - sizes).tolist(),
        labels,
        strict=True,
    )
    graphs = [
        Data(x=x, edge_index=(ends - first).contiguous(), y=y.reshape(1), edge_mask=true, bond=bond + 1)
        for x, ends, bond, true, first, y in parts
    ]
    return graph_dataset("MUTAG", graphs, "atoms, one-hot", seed)


def nitro_and_amino(atoms: Tensor, edges: Tensor) -> Tensor:
    """The N-O edges of nitro groups and the N-H edges of amino groups, both directions, ``[E]``.

    Such a group is a nitrogen with three neighbors, exactly two of which are oxygens (or hydrogens), while the
    third is no oxygen: nitrates (O-NO2) and aminooxy groups (O-NH2) are other groups.
    """
    source, to = edges

    def count(atom: int) -> Tensor:
        return torch.bincount(source[atoms[to] == atom], minlength=len(atoms))

    oxygens, hydrogens = count(OXYGEN), count(HYDROGEN)
    three = (atoms == NITROGEN) & (torch.bincount(source, minlength=len(atoms)) == 3)
    nitro, amino = three & (oxygens == 2), three & (hydrogens == 2) & (oxygens == 0)

    def out(nitrogen: Tensor, other: Tensor) -> Tensor:
        return (nitro[nitrogen] & (atoms[other] == OXYGEN)) | (amino[nitrogen] & (atoms[other] == HYDROGEN))

    return out(source, to) | out(to, source)


@dataclass(frozen=True)
class Agreement:
    """How two sets of true edges compare: directed edges in both, in one of them only, and in all."""

    both: int
    """Edges that both call true."""
    ours_only: int
    """Edges that only ours does."""
    given_only: int
    """Edges that only the file does."""
    edges: int
    """All of them."""


def agreement(dataset: Dataset, root: Path | None = None) -> Agreement:
    """Compare our NO2 and NH2 edges with the file ``Mutagenicity_edge_gt.txt``, where the data folder has it."""
    path = (root or data_folder()) / "mutagenicity" / "raw" / "Mutagenicity_edge_gt.txt"
    if not path.is_file():
        raise missing(path, "it does not come with the download, only with other releases of the data")
    given = torch.from_numpy(read_numbers(path)) != 0
    ours = torch.cat([graph.edge_mask for graph in dataset.graphs])
    require(path, len(given) == len(ours), f"marks {len(given)} edges instead of {len(ours)}")
    return Agreement(int((ours & given).sum()), int((ours & ~given).sum()), int((given & ~ours).sum()), edges=len(ours))


def _raw_folder(root: Path) -> Path:
    """The folder of the raw files, downloaded if there is none; a partial download leaves nothing behind."""
    raw = root / "mutagenicity" / "raw"
    if raw.is_dir():
        return raw
    from torch_geometric.datasets import TUDataset

    raw.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=raw.parent) as scratch:
        try:
            TUDataset(scratch, "Mutagenicity")
        except Exception as error:
            raise FileNotFoundError(
                f"Mutagenicity is neither in {raw} nor could it be downloaded ({error}); put its files there, name the"
                " folder above in $XDEGREE_DATA, or try again with internet"
            ) from error
        (Path(scratch) / "Mutagenicity" / "raw").replace(raw)
    return raw


def _check(raw: Path, atoms: Tensor, edges: Tensor, graph: Tensor, labels: Tensor, bonds: Tensor) -> None:
    """Whether the files fit together, each complaint with the name of the file that does not."""

    def file(name: str) -> Path:
        return raw / f"Mutagenicity_{name}.txt"

    ends = edges.flatten()
    require(file("node_labels"), 0 <= int(atoms.min()) and int(atoms.max()) < len(ATOMS), "names an unknown atom")
    require(file("graph_indicator"), len(graph) == len(atoms), f"has {len(graph)} nodes instead of {len(atoms)}")
    require(file("graph_indicator"), bool((graph.diff() >= 0).all() and graph[0] == 0), "is not in order")
    require(file("graph_labels"), len(labels) == int(graph.max()) + 1, f"has {len(labels)} labels, not one per graph")
    require(file("graph_labels"), bool(((labels == 0) | (labels == 1)).all()), "has labels other than 0 and 1")
    require(file("A"), 0 <= int(ends.min()) and int(ends.max()) < len(atoms), "has edges to nodes that do not exist")
    ordered = bool((graph[edges[0]].diff() >= 0).all() and (graph[edges[0]] == graph[edges[1]]).all())
    require(file("A"), ordered, "is not in the order of the graphs")
    require(file("edge_labels"), len(bonds) == edges.shape[1], f"has {len(bonds)} edges instead of {edges.shape[1]}")
