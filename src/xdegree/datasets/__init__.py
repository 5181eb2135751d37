"""Graphs with a known reason: synthetic ones carry the ground truth of their labels, real ones where there is any."""

from .catalogue import DATASETS, load
from .dataset import Dataset, Stats, graph_dataset, node_dataset, one_hot_degree, resplit, table
from .folder import BrokenFileError, data_folder
from .molecule import molecule_of
from .mutagenicity import ATOMS, agreement, mutag, nitro_and_amino
from .released import RELEASED, ba2motifs, generated_ba2motifs, released
from .sst2 import graph_sst2, sentence_graphs
from .synthetic import ba_community, ba_shapes, tree_cycles, tree_grid
from .toy import toy_molecules, toy_sentences

__all__ = [
    "DATASETS",
    "load",
    "Dataset",
    "Stats",
    "graph_dataset",
    "node_dataset",
    "one_hot_degree",
    "resplit",
    "table",
    "ba_shapes",
    "ba_community",
    "tree_cycles",
    "tree_grid",
    "toy_molecules",
    "toy_sentences",
    "molecule_of",
    "ATOMS",
    "RELEASED",
    "released",
    "ba2motifs",
    "generated_ba2motifs",
    "mutag",
    "nitro_and_amino",
    "agreement",
    "graph_sst2",
    "sentence_graphs",
    "data_folder",
    "BrokenFileError",
]
