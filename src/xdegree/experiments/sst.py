"""The paper's figure of agglomerations on sentences: one wrong and one right prediction of Graph-SST2."""

from collections.abc import Iterable
from typing import Any

from torch import nn
from torch_geometric.data import Data

from ..canvas import sentence_canvas
from ..datasets import Dataset
from ..results.tables import Table
from ..results.tree import ExplanationTree
from ..subgraphs.agglomerate import agglomerate
from .mutagens import predictions
from .page import Outcome, Picture
from .panels import Row, plot_rows
from .protocol import PAPER_RULES
from .store import Bench

NEGATIVE = 0
WORDS_SHOWN = (12, 24)
TURNS = ("but", "though", "although", "if", "while", "despite", "yet")
"""Words that turn a sentence: the paper's two examples have one each."""
Q = 0.6
UNIT = "contribution to the class negative (logits): red raises it, blue lowers it; white is in no group"
PAPERS = (
    "maybe it 's asking too much , but if a movie is truly going to inspire me , i want a little more than this .",
    "though ford and neeson capably hold our interest , but its just not a thrilling movie",
)
"""The paper's two sentences, as the corpus has them: both negative, there the first is predicted wrong."""


def run(bench: Bench) -> Outcome:
    """Grow the trees of the chosen sentences."""
    model, dataset, result = bench.trained("graph_sst2", "GCN", 0)
    chosen = papers(dataset) or choose(model, dataset)
    pictures, tables = {}, []
    for name, i in chosen.items():
        graph = dataset.graphs[i]
        tree = agglomerate(model, graph.x, graph.edge_index, target=NEGATIVE, q=Q, options=PAPER_RULES)
        right = predictions(model, [graph]) == [NEGATIVE]
        title = f"sentence {i}, negative, predicted {'negative (right)' if right else 'positive (wrong)'}"
        row = Row(title, tree, sentence_canvas(graph.words, edge_index=graph.edge_index, width=80))
        figure = plot_rows([row], levels=4, across=False, unit=UNIT)
        said = "right" if right else "wrong"
        caption = f"Agglomeration of a sentence that is predicted {said}; red speaks for negative, blue against it"
        pictures[f"sst-{name}"] = Picture(figure, caption)
        tables.append(levels_table(title, graph, tree))
    about = (
        f"Data: Graph-SST2, {dataset.note or 'the original'}; {len(dataset.graphs):,} sentences with"
        f" {dataset.features}. Model: GCN of seed 0, test accuracy {result.test_accuracy:.2f} (paper: 0.88, with BERT's"
        f" vectors). Sentences: {_which(dataset)}. Scores are contributions"
        " to the logit of the class negative; trees by `agglomerate` with the paper's threshold and its rules, q ="
        f" {Q}, seed 0. The paper reads off its examples that clauses of opposite sentiment become separate groups of"
        " opposite sign before they meet; the tables show how far that is so here."
    )
    return Outcome("sst", "Agglomeration on sentences (the paper's figure)", about, tables, pictures)


def papers(dataset: Dataset) -> dict[str, int]:
    """The paper's own sentences, where the dataset has both; the second can be among those that are trained on."""
    found = {" ".join(graph.words): i for i, graph in enumerate(dataset.graphs) if len(graph.words) in LENGTHS}
    ids = [found.get(text) for text in PAPERS]
    return {} if None in ids else {f"paper-{n}": i for n, i in enumerate(ids, 1) if i is not None}


LENGTHS = {len(text.split()) for text in PAPERS}


def _which(dataset: Dataset) -> str:
    if papers(dataset):
        return (
            "the paper's two, of which it finds the first predicted wrong, the second, one of the phrases of the"
            " training split, predicted right"
        )
    low, high = WORDS_SHOWN
    return (
        f"of the test split, in the order of the dataset, the first negative one of {low} to {high} words with a word"
        f" that turns it ({', '.join(TURNS)}) that is predicted wrong, and the first that is predicted right (the first"
        " of any words where there is none); none was chosen by its looks. The paper's two are not among these"
        " sentences"
    )


def choose(model: nn.Module, dataset: Dataset) -> dict[str, int]:
    """The sentences that are shown: a wrong and a right prediction of a negative one."""
    low, high = WORDS_SHOWN
    ids = [i for i in dataset.splits["test"].tolist() if int(dataset.graphs[i].y) == NEGATIVE]
    ids = [i for i in ids if low <= len(dataset.graphs[i].words) <= high] or ids
    ids.sort(key=lambda i: not set(TURNS) & {word.lower() for word in dataset.graphs[i].words})
    said = dict(zip(ids, predictions(model, [dataset.graphs[i] for i in ids]), strict=True))
    found = {"wrong": [i for i in ids if said[i] != NEGATIVE], "right": [i for i in ids if said[i] == NEGATIVE]}
    return {name: some[0] for name, some in found.items() if some}


def levels_table(title: str, graph: Data, tree: ExplanationTree, most: int = 4) -> Table:
    """Each level in a line: its strongest groups with their scores."""
    rows: list[tuple[str, ...]] = []
    for name, level in [("single", tree.leaves), *((str(n), level) for n, level in enumerate(tree.levels))]:
        order = sorted(level, key=lambda group: (-abs(group.score), min(group.nodes)))
        said = ", ".join(f"“{phrase(graph, group.nodes)}” {group.score:+.2f}" for group in order[:most])
        for_it = sum(group.score > 0 for group in level)
        rows.append((name, str(len(level)), f"{for_it} / {len(level) - for_it}", said))
    head = ("level", "groups", "for / against negative", "strongest groups, contribution to the logit")
    return Table(f"Levels: {title}", head, tuple(rows), (f"The sentence: {' '.join(graph.words)}",))


def phrase(graph: Any, nodes: Iterable[int], most: int = 8) -> str:
    """Words in their order, an ellipsis where some are left out between them or at the end."""
    said: list[str] = []
    last = None
    for node in sorted(nodes):
        if last is not None and node > last + 1:
            said.append("…")
        said.append(graph.words[node])
        last = node
    return " ".join(said if len(said) <= most else [*said[:most], "…"])
