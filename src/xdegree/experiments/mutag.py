"""The paper's figure of agglomerations on MUTAG: one right and two wrong predictions, and its claims counted."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from ..attribution.decompose import decompose
from ..canvas import molecule_canvas
from ..datasets import ATOMS, Dataset
from ..datasets.mutagenicity import MUTAGEN
from ..results.tables import Table, spread
from ..results.tree import ExplanationTree, Group
from ..subgraphs.agglomerate import agglomerate
from .mutagens import formula, marked_atoms, other_hydrogens, predictions, ring_carbons
from .page import Outcome, Picture
from .panels import Row, plot_rows
from .protocol import PAPER_RULES, drawn, explained_graphs
from .store import Bench

ATOMS_SHOWN = (12, 30)
Q = 0.6
MOLECULES = 300
"""Of the 1,015 mutagens with a marked group, for the counts."""


def run(bench: Bench) -> Outcome:
    """Grow the trees of the chosen molecules, and count over all mutagens what the paper says of its examples."""
    model, dataset, result = bench.trained("mutag", "GCN", 0)
    chosen = choose(model, dataset)
    trees = {
        i: agglomerate(model, *_inputs(dataset.graphs[i]), target=MUTAGEN, q=Q, options=PAPER_RULES) for i in chosen
    }
    rows = [
        Row(
            f"graph {i}, a mutagen, predicted {_said(said)}",
            trees[i],
            molecule_canvas(graph=dataset.graphs[i], atoms=ATOMS),
        )
        for i, said in chosen.items()
    ]
    tables = [claims(bench)]
    tables += [levels_table(row.title, dataset.graphs[i], trees[i]) for i, row in zip(chosen, rows, strict=True)]
    low, high = ATOMS_SHOWN
    blank = [Data(x=torch.zeros_like(g.x), edge_index=g.edge_index) for g in (dataset.graphs[i] for i in chosen)]
    default = sum(label == MUTAGEN for label in predictions(model, blank)) if blank else 0
    about = (
        f"Model: GCN of seed 0 (test accuracy {result.test_accuracy:.3f}); with all features set to 0 it still says"
        f" mutagen for {default} of the {len(chosen)} molecules shown, which is then no merit of any atom. Molecules:"
        f" of the test split, in the order of the dataset, the first mutagen of {low} to {high} atoms with a nitro or"
        " amino group that is predicted right, and the first two that are predicted wrong; none was chosen by its"
        " looks. Scores are contributions to the logit of the class mutagen, also where the model predicts the other"
        " one: red speaks for mutagenic, blue against it, white is in no group. Trees by `agglomerate` with the"
        f" paper's threshold and its rules, q = {Q}, seed 0; pictures show single atoms and up to five levels, tables"
        " all of them. The paper tells of its right example that NO2 is moderately positive, hydrogens and the ring"
        " are negative, and that NO2 joined with the ring is strongly positive; the first table asks how often this"
        " is so. Left out: the appendix's further examples; its rule of choice is not known."
    )
    caption = "Single atoms and levels of the agglomeration, left to right; red speaks for mutagenic, blue against it"
    picture = Picture(
        plot_rows(rows, unit="contribution to mutagen (logits): red raises it, blue lowers it; white is in no group"),
        caption,
    )
    return Outcome("mutag", "Agglomeration on MUTAG (the paper's figure)", about, tables, {"mutag": picture})


def choose(model: nn.Module, dataset: Dataset, wrong: int = 2) -> dict[int, int]:
    """The molecules that are shown, with their predicted classes: the right one first."""
    low, high = ATOMS_SHOWN
    tested = set(dataset.splits["test"].tolist())
    ids = [i for i in explained_graphs(dataset) if i in tested]
    ids = [i for i in ids if low <= (dataset.graphs[i].num_nodes or 0) <= high]
    found = dict(zip(ids, predictions(model, [dataset.graphs[i] for i in ids]), strict=True))
    right = [i for i in ids if found[i] == MUTAGEN][:1]
    others = [i for i in ids if found[i] != MUTAGEN][:wrong]
    return {i: found[i] for i in (*right, *others)}


def _said(label: int) -> str:
    return "mutagen (right)" if label == MUTAGEN else "nonmutagen (wrong)"


def _inputs(graph: Data) -> tuple[Any, Any]:
    return graph.x, graph.edge_index


def levels_table(title: str, graph: Data, tree: ExplanationTree, most: int = 4) -> Table:
    """Each level in a line: its strongest groups as formulas with their scores, and what its merges did together."""
    marked = set(marked_atoms(graph))
    rows = [("single", str(len(tree.leaves)), str(len(tree.leaves)), _strongest(graph, tree.leaves, marked, most), "")]
    for number, level in enumerate(tree.levels):
        merges = [merge for merge in tree.merges if merge.level == number]
        strongest = max(merges, key=lambda merge: abs(merge.interaction), default=None)
        joint = "" if strongest is None else f"{strongest.interaction:+.2f} in {formula(graph, strongest.union.nodes)}"
        covered = sum(len(group.nodes) for group in level)
        rows.append((str(number), str(len(level)), str(covered), _strongest(graph, level, marked, most), joint))
    head = ("level", "groups", "atoms in them", "strongest groups, contribution to the logit", "strongest interaction")
    note = "* has an atom of a nitro or amino group"
    return Table(f"Levels: {title}", head, tuple(rows), (note,))


def _strongest(graph: Data, level: Sequence[Group], marked: set[int], most: int) -> str:
    order = sorted(level, key=lambda group: (-abs(group.score), min(group.nodes)))
    said = [f"{formula(graph, g.nodes)}{'*' if g.nodes & marked else ''} {g.score:+.2f}" for g in order[:most]]
    return ", ".join(said) + (", …" if len(order) > most else "")


PARTS = {
    "nitro and amino groups": "moderately positive",
    "carbons in rings": "negative",
    "other hydrogens": "negative",
    "groups and rings together": "strongly positive",
    "… minus the sum of both": "positive",
}
"""What the paper's text says of the parts of its right example."""


def claims(bench: Bench) -> Table:
    """How often the signs that the paper reads off one molecule hold, over mutagens and models."""
    found = []
    for seed in range(bench.seeds):
        settings = {"seed": seed, "molecules": 20 if bench.quick else MOLECULES}
        found.append(bench.cell(f"mutag/claims-{seed}", settings, partial(_claims, bench, **settings)))
    rows = [
        (part, spread([f["mean"][part] for f in found], 2), spread([f["positive"][part] for f in found], 2), paper)
        for part, paper in PARTS.items()
    ]
    head = ("part of the molecule", "contribution, mean", "share of molecules where it is positive", "paper's example")
    note = (
        f"GCN, {len(found)} seeds (mean ± standard deviation), {found[0]['count']} mutagens with a marked group and a"
        " carbon ring, right and wrong predictions, logit of mutagen minus logit of nonmutagen."
    )
    return Table("What the parts of a mutagen contribute", head, tuple(rows), (note,))


def _claims(bench: Bench, seed: int, molecules: int) -> dict[str, Any]:
    model, dataset, _ = bench.trained("mutag", "GCN", seed)
    values = []
    for i in bench.bar(drawn(explained_graphs(dataset), molecules), f"parts of mutagens, seed {seed}", "molecule"):
        graph = dataset.graphs[i]
        marked, ring, hydrogens = marked_atoms(graph), ring_carbons(graph), other_hydrogens(graph)
        if ring:
            values.append(_parts(model, graph, [marked, ring, hydrogens, [*marked, *ring]]))
    every = torch.tensor(values, dtype=torch.float64)
    means, positive = every.mean(0).tolist(), (every > 0).double().mean(0).tolist()
    return {
        "count": len(values),
        "mean": dict(zip(PARTS, means, strict=True)),
        "positive": dict(zip(PARTS, positive, strict=True)),
    }


def _parts(model: nn.Module, graph: Data, groups: list[list[int]]) -> list[float]:
    with torch.no_grad():
        d = decompose(model, *_inputs(graph), groups=groups, options=PAPER_RULES)
        logits = d.target.reshape(len(groups), -1).double()
    marked, ring, hydrogens, both = (logits[:, MUTAGEN] - logits[:, 1 - MUTAGEN]).tolist()
    return [marked, ring, hydrogens, both, both - marked - ring]
