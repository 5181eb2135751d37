"""The main job in one go: generate BA-Shapes, train the paper's GCN, explain it, and compare with what is known."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import k_hop_subgraph
from tqdm import tqdm

from . import Explanation, agglomerate, explain
from .datasets import ba_shapes
from .metrics import auc
from .models import GCN
from .plots import plot_graph
from .reports import report
from .training import train_node

ROLES = ("a base node", "the middle of a house", "the bottom of a house", "the top of a house")


def main(argv: Sequence[str] | None = None) -> None:
    """Run `python -m xdegree.demo`."""
    parser = argparse.ArgumentParser(prog="python -m xdegree.demo", description=__doc__)
    parser.add_argument(
        "--seed", type=int, default=0, help="of the graph and of the model's first weights (default: 0)"
    )
    parser.add_argument("--epochs", type=int, default=1000, help="of training (default: 1000, as in the paper)")
    parser.add_argument("--picture", type=Path, default=Path("xdegree-demo.png"), help="where to write it")
    parser.add_argument("--report", type=Path, default=Path("xdegree-demo.html"), help="where to write it")
    given = parser.parse_args(argv)

    data = ba_shapes(seed=given.seed)
    print(f"BA-Shapes: {data.num_nodes} nodes, {data.num_edges // 2} edges, {data.motif.max() + 1} houses")
    model = GCN(in_channels=data.num_features, out_channels=len(ROLES))
    trained = train_node(model, data, epochs=given.epochs, seed=given.seed)
    print(
        f"GCN: accuracy {trained.train_accuracy:.2f} train, {trained.val_accuracy:.2f} validation,"
        f" {trained.test_accuracy:.2f} test (epoch {trained.epoch}, of minimum validation loss)"
    )

    right = model(data.x, data.edge_index).argmax(-1) == data.y
    chosen = (right & data.test_mask & (data.motif >= 0)).nonzero().flatten().tolist()
    if not chosen:
        raise SystemExit(
            "No test node of a house is predicted correctly, so there is nothing to explain: train longer."
        )
    explanations = [
        explain(model, data.x, data.edge_index, index=node)
        for node in tqdm(chosen, desc="explaining", unit="node", disable=None)
    ]

    # One to look at: the one whose computation graph is of middle size.
    shown = sorted(explanations, key=lambda e: (len(e.nodes), e.index))[len(explanations) // 2]
    _print_nodes(shown, data)
    _print_auc(explanations, data, layers=len(model.convs))
    title = f"Why is node {shown.index} {ROLES[shown.target]}?"
    house = data.motif == data.motif[shown.index]
    plot_graph(shown, index=shown.index, truth=house, title=title).savefig(given.picture)
    print(f"\nPicture of node {shown.index}: {given.picture}")
    tree = agglomerate(model, data.x, data.edge_index, index=shown.index, seed=given.seed)
    page = report(
        shown,
        tree,
        classes=ROLES,
        truth=house.nonzero().flatten().tolist(),
        index=shown.index,
        title=title,
        settings={"model": "the paper's GCN on BA-Shapes", "seed": given.seed, "epochs": given.epochs},
    )
    print(f"Report of node {shown.index}, to open in a browser: {page.save(given.report)}")


def _print_nodes(e: Explanation, data: Data, count: int = 8) -> None:
    """The nodes that matter most for one prediction."""
    print(f"\nWhy does the model take node {e.index} for {ROLES[e.target]} (logit {e.prediction[e.target]:+.2f})?")
    print(f"What the nodes contribute to that logit, the {count} strongest of {len(e.nodes)} (* in its house):")
    for node, score in e.top(count, by="size"):
        mark = "*" if data.motif[node] == data.motif[e.index] else " "
        print(f"  {mark} node {node:3d}  {score:+8.3f}")
    print(
        f"Single scores add up to {e.total_scores:+.2f} of {e.output:+.2f}; the rest, {e.residual:+.2f}, are joint"
        " effects and biases."
    )


def _print_auc(explanations: Sequence[Explanation], data: Data, layers: int) -> None:
    """How well signed scores find the house, next to two rankings that need no trained model."""
    spread = propagation(data.edge_index, data.num_nodes, layers)
    results: dict[str, list[float]] = {"DEGREE": [], "minus hop distance": [], "propagation alone": []}
    for e in explanations:
        truth = (data.motif == data.motif[e.index])[e.nodes]
        hops = hops_from(e.index, data.edge_index, data.num_nodes, most=layers)
        for aucs, scores in zip(results.values(), (e.scores, -hops, spread[e.index]), strict=True):
            aucs.append(auc(scores[e.nodes], truth))
    print(
        f"\nNode AUC against the own house, mean over all {len(explanations)} test nodes of houses predicted correctly."
    )
    print(f"Ranked are all nodes within {layers} hops, the explained one included, by signed contribution:")
    for name, aucs in results.items():
        print(f"  {name:20}{sum(aucs) / len(aucs):.3f}")
    print(
        "The last two know the graph and no model: a high AUC on BA-Shapes does not show that a model was understood."
    )


def hops_from(index: int, edge_index: Tensor, num_nodes: int, most: int) -> Tensor:
    """Hops [N] from a node, `most` + 1 where they are more than that."""
    hops = torch.full((num_nodes,), most + 1)
    for count in range(most, -1, -1):
        hops[k_hop_subgraph(index, count, edge_index, num_nodes=num_nodes)[0]] = count
    return hops


def propagation(edge_index: Tensor, num_nodes: int, layers: int) -> Tensor:
    """What GCN layers without any weights carry to each node (row) from each node (column) [N, N].

    With constant features, a GCN that has learnt nothing ranks nodes in this order, so this is the ranking to beat.
    """
    (source, to), weight = gcn_norm(edge_index, num_nodes=num_nodes, dtype=torch.double)
    step = torch.zeros(num_nodes, num_nodes, dtype=torch.double)
    step[to, source] = weight
    return torch.linalg.matrix_power(step, layers)


if __name__ == "__main__":
    torch.set_num_threads(1)  # on so small a graph more threads gain nothing, and on a busy machine they lose much
    main()
