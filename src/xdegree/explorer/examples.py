"""The examples that come with the page: real data where the data folder has them, else data that are made up."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch.nn.functional import one_hot
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph

from ..checkpoints import BrokenCheckpointError
from ..datasets import ATOMS, Dataset, data_folder, graph_sst2, load, mutag, toy_molecules, toy_sentences
from ..datasets.folder import BrokenFileError, cache_folder
from ..datasets.sst2 import tree_edges
from ..recipes import Recipe, trained
from ..training import TrainingResult
from .cytoscape import shortened
from .subject import Example, Item

SHOWN = 60
"""Predictions of an example that the list offers."""


def ba_shapes(folder: Path | None, progress: bool, real: bool = True) -> Example:  # noqa: ARG001 (there is no other)
    """Houses on a random graph: which part of a house is a node?"""
    dataset = load("ba_shapes", seed=0, origin="generated")
    model, dataset, reached = trained(dataset, how=Recipe("GCN", 500, lr=0.01), folder=folder, progress=progress)
    data = dataset.data
    with torch.no_grad():
        sure, role = model(data.x, data.edge_index).softmax(-1).max(-1)
    right = role == data.y
    chosen = (right & data.test_mask & (data.motif >= 0)).nonzero().flatten().tolist()
    roles = ("base", "middle of a house", "bottom of a house", "top of a house")
    # What the model is sure of comes first, and neighborhoods that are neither trivial nor crowded.
    sizes = {node: len(k_hop_subgraph(node, len(model.convs), data.edge_index)[0]) for node in chosen}
    chosen.sort(key=lambda node: (float(sure[node]) < 0.8, abs(sizes[node] - 30), node))
    items = [
        Item(f"node {node}: {roles[int(data.y[node])]}, {sizes[node]} nodes within reach", data, node)
        for node in chosen[:SHOWN]
    ]
    note = f"80 houses on a random graph of 300 nodes, generated. {_model(reached)}"
    return Example("ba-shapes", "BA-Shapes", note, "graph", model, items, roles, about_model=_model(reached))


def molecules(folder: Path | None, progress: bool, real: bool = True) -> Example:
    """Mutagenicity if the data folder has it, else molecules put together from parts."""
    if real and (data_folder() / "mutagenicity" / "raw").is_dir():
        model, dataset, reached = trained(mutag(), how=Recipe("GCN", 12), folder=folder, progress=progress)
        items = [
            Item(f"molecule {number}, {_formula(graph)}", graph)
            for number, graph in _test(dataset, most=60)
            if int(graph.edge_mask.sum())
        ]
        note = f"Mutagenicity: molecules that do or do not change the DNA of bacteria. {_model(reached)}"
        classes = ("mutagen", "nonmutagen")
    else:
        model, dataset, reached = trained(
            toy_molecules(), how=Recipe("GCN", 25, lr=0.01), folder=folder, progress=progress
        )
        items = [Item(graph.smiles, graph) for _, graph in _test(dataset)]
        items.sort(key=lambda item: not item.title.startswith("c1ccc("))  # benzene rings first: easy to recognise
        note = f"Generated molecules, {dataset.note}. {_model(reached)}"
        classes = ("no nitro group", "nitro group")
    said = _model(reached)
    return Example("molecules", "Molecules", note, "molecule", model, items[:SHOWN], classes, ATOMS, about_model=said)


def sentences(folder: Path | None, progress: bool, real: bool = True) -> Example:
    """Sentences of SST-2 if the data folder has them, else sentences of a small grammar."""
    reader = None
    if real and any((data_folder() / name).is_dir() for name in ("graph_sst2_rebuilt", "Graph-SST2")):
        model, dataset, reached = trained(graph_sst2(limit=3000), folder=folder, progress=progress)
        note = f"Film reviews of SST-2 as dependency trees ({dataset.note or 'the original'}). {_model(reached)}"
    else:
        model, dataset, reached = trained(
            toy_sentences(), how=Recipe("GCN", 12, lr=0.01), folder=folder, progress=progress
        )
        note = f"Generated sentences, {dataset.note}. {_model(reached)}"
        reader = toy_reader(dataset.graphs)
    items = [Item(shortened(" ".join(graph.words), 70), graph) for _, graph in _test(dataset) if len(graph.words) > 3]
    classes = ("negative", "positive")
    return Example(
        *("sentences", "Sentences", note, "sentence", model, items[:SHOWN], classes),
        sentence=reader,
        about_model=_model(reached),
    )


def toy_reader(graphs: Sequence[Data]) -> Callable[[str], Data]:
    """How the model of generated sentences reads one: words one-hot, the last word of a clause its root.

    Clauses are joined by "and" or "but"; as in the grammar, the first word of a clause belongs to the second, all
    others to the adjective at its end, and the second clause to the first.
    """
    known = {word: graph.x[place].argmax() for graph in graphs for place, word in enumerate(graph.words)}

    def read(text: str) -> Data:
        words = text.lower().replace(",", " ").rstrip(" .!").split()
        if unknown := [word for word in words if word not in known]:
            raise ValueError(f"the model has never seen {', '.join(unknown)}; it knows {', '.join(sorted(known))}")
        heads, clauses = [0] * len(words), _clauses(words)
        for start, end in clauses:
            heads[start:end] = [min(start + 1, end - 1), *[end - 1] * (end - start - 1)]
        for start, end in clauses[1:]:
            heads[start - 1], heads[end - 1] = end - 1, clauses[0][1] - 1
        x = one_hot(torch.stack([known[word] for word in words]), graphs[0].x.shape[1]).float()
        return Data(x=x, edge_index=tree_edges(torch.tensor(heads)), words=words)

    return read


def _clauses(words: Sequence[str]) -> list[tuple[int, int]]:
    """Where clauses begin and end, without the words that join them."""
    joints = [place for place, word in enumerate(words) if word in ("and", "but")]
    spans = list(zip([0, *(place + 1 for place in joints)], [*joints, len(words)], strict=True))
    if any(start >= end for start, end in spans):
        raise ValueError("a clause on either side of “and” or “but” has no words")
    return spans


EXAMPLES: dict[str, Callable[[Path | None, bool, bool], Example]] = {
    "molecules": molecules,
    "ba-shapes": ba_shapes,
    "sentences": sentences,
}


def _test(dataset: Dataset, most: int = 10**6) -> Sequence[tuple[int, Data]]:
    """Graphs that the model has not learnt from, none too large to look at."""
    ids = dataset.splits["test"].tolist()
    return [(i, dataset.graphs[i]) for i in ids if int(dataset.graphs[i].num_nodes or 0) <= most]


def _formula(graph: Data) -> str:
    counts = torch.bincount(graph.x.argmax(1), minlength=len(ATOMS)).tolist()
    return "".join(f"{ATOMS[i]}{n if n > 1 else ''}" for i, n in enumerate(counts) if n)


def _model(reached: TrainingResult) -> str:
    return f"The model: the paper's GCN, {reached.test_accuracy:.0%} right on data it has not seen."


def prepared(
    names: Sequence[str], say: Callable[[str], None], folder: Path | None = None, progress: bool = True
) -> list[Example]:
    """Examples by name, trained where they have not been before.

    Args:
        names: of `EXAMPLES`, in the order in which the page lists them.
        say: told what is being done.
        folder: where models are kept; by default the user's cache folder, or nowhere if that cannot be written.
        progress: show progress bars.
    """
    folder = folder or _writable(cache_folder() / "explorer", say)
    found = []
    for number, name in enumerate(names, 1):
        say(f"[{number}/{len(names)}] {name}")
        try:
            found.append(EXAMPLES[name](folder, progress, True))
        except BrokenCheckpointError as error:
            say(f"{error}; for now it is trained without being kept")
            found.append(EXAMPLES[name](None, progress, True))
        except (FileNotFoundError, BrokenFileError) as error:  # as a download that was broken off leaves them
            say(f"{error}; generated data are shown instead")
            found.append(EXAMPLES[name](folder, progress, False))
    return found


def _writable(folder: Path, say: Callable[[str], None]) -> Path | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        say(f"models are not kept: {error}")
        return None
    return folder
