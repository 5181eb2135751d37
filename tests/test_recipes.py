import re
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from xdegree.datasets import graph_dataset, load, node_dataset, one_hot_degree, resplit, tree_grid
from xdegree.models import GAT, GCN, HybridGAT, build
from xdegree.recipes import Recipe, candidates, plain, recipe, trained
from xdegree.training import train_graph


def cliques(count: int = 60):
    """Graphs of five nodes: paths of label 0 and cliques of label 1, all features equal."""
    pairs = {0: [(i, i + 1) for i in range(4)], 1: [(i, j) for i in range(5) for j in range(i)]}
    graphs = []
    for number in range(count):
        edges = torch.tensor(pairs[number % 2]).T
        edges = torch.cat([edges, edges.flip(0)], 1)
        graphs.append(Data(x=torch.ones(5, 2), edge_index=edges, y=torch.tensor([number % 2])))
    return graph_dataset("cliques", graphs, "constant", seed=0)


def small_grid():
    return node_dataset("Tree-Grid", tree_grid(motifs=2), "constant")


def test_graphs_are_learnt_in_batches_and_by_the_seed():
    data = one_hot_degree(cliques())
    model, again, other = (GCN(10, 2, level="graph") for _ in range(3))
    state = torch.get_rng_state()
    result = train_graph(model, data, epochs=20, batch_size=16, progress=False)
    assert torch.equal(torch.get_rng_state(), state)
    assert (result.train_accuracy, result.val_accuracy, result.test_accuracy) == (1, 1, 1)
    assert not model.training
    assert train_graph(again, data, epochs=20, batch_size=16, progress=False) == result
    assert torch.equal(model.lin2.weight, again.lin2.weight)
    train_graph(other, data, epochs=20, batch_size=16, seed=1, progress=False)
    assert not torch.equal(model.lin2.weight, other.lin2.weight)


def test_graphs_keep_the_state_of_minimum_validation_loss():
    data = one_hot_degree(cliques())
    for graph in data.part("val"):
        graph.y = 1 - graph.y  # the better it learns, the worse it does here
    short, long = GCN(10, 2, level="graph"), GCN(10, 2, level="graph")
    first = train_graph(short, data, epochs=6, progress=False)
    assert first.epoch < 6
    assert train_graph(long, data, epochs=15, progress=False) == first
    with pytest.raises(ValueError, match="empty: val, test"):
        train_graph(short, graph_dataset("few", data.graphs[:5], "constant", 0), progress=False)


def test_a_gat_cannot_learn_from_constant_features_and_can_from_degrees():
    data = cliques()
    blind = GAT(2, 2, level="graph").eval()
    outputs = torch.cat([blind(graph.x, graph.edge_index) for graph in data.graphs[:2]])
    torch.testing.assert_close(outputs[0], outputs[1])
    assert recipe(data, "GAT").degrees
    assert not recipe(data, "GCN").degrees
    seeing = one_hot_degree(data)
    assert seeing.graphs[0].x.argmax(1).tolist() == [1, 2, 2, 2, 1]
    assert seeing.graphs[1].x.argmax(1).tolist() == [4] * 5
    assert one_hot_degree(data, width=3).graphs[1].x.argmax(1).tolist() == [2] * 5
    assert (data.graphs[0].x == 1).all()  # the original stays
    assert seeing.features == "degree, one-hot"
    both = one_hot_degree(seeing, width=3)  # other features are kept
    assert both.num_features == 13
    assert torch.equal(both.graphs[0].x[:, :10], seeing.graphs[0].x)
    result = train_graph(GAT(10, 2, level="graph"), seeing, epochs=20, progress=False)
    assert result.test_accuracy == 1


def test_a_hybrid_tells_nodes_of_constant_features_apart():
    data = cliques()
    model = HybridGAT(2, 2, level="graph").eval()
    outputs = torch.cat([model(graph.x, graph.edge_index) for graph in data.graphs[:2]])
    assert not torch.allclose(outputs[0], outputs[1])
    assert [type(conv).__name__ for conv in model.convs] == ["GCNConv", "GATConv", "GATConv"]
    assert type(build(model.config)) is HybridGAT
    assert not recipe(data, "HybridGAT").degrees


@pytest.mark.parametrize("kind", ["GCN", "HybridGAT"])
@pytest.mark.parametrize("name", ["ba_shapes", "ba_community", "tree_cycles", "tree_grid"])
def test_what_is_used_is_one_of_the_settings_that_were_compared(name, kind):
    dataset = load(name, origin="generated")
    compared = candidates(dataset, kind)
    assert recipe(dataset, kind) in compared
    assert plain(dataset, kind) in compared
    assert len(set(compared)) == len(compared)


def test_another_split_has_the_same_graph_and_other_masks():
    grid = small_grid()
    other = resplit(grid, 3)
    assert torch.equal(other.data.edge_index, grid.data.edge_index)
    assert other.note == "random split 3"
    sizes = [int(other.data[f"{split}_mask"].sum()) for split in ("train", "val", "test")]
    assert sum(sizes) == len(grid.data.y)
    assert sizes[1] == sizes[2] == len(grid.data.y) // 10
    assert torch.equal(other.data.val_mask.nonzero().flatten(), other.splits["val"])
    assert not torch.equal(other.data.train_mask, resplit(grid, 4).data.train_mask)
    graphs = resplit(cliques(), 1)
    assert not torch.equal(graphs.splits["test"], cliques().splits["test"])


def test_models_of_other_settings_or_splits_are_kept_beside_each_other(tmp_path):
    grid, how = small_grid(), Recipe("GCN", 2)
    for data, settings in ((grid, how), (grid, replace(how, weight_decay=0.1)), (resplit(grid, 1), how)):
        trained(data, how=settings, folder=tmp_path, progress=False)
    assert len(list(tmp_path.iterdir())) == 3


def test_an_untrained_model_has_its_first_weights():
    grid = small_grid()
    model, _, result = trained(grid, how=Recipe("GCN", 0), seed=4, progress=False)
    again, _, _ = trained(grid, how=Recipe("GCN", 0), seed=4, progress=False)
    assert result.epoch == 0
    assert not model.training
    assert torch.equal(model.lin1.weight, again.lin1.weight)
    assert not model.convs[0].cached


def test_recipes_are_the_papers():
    shapes, grid = load("ba_shapes", origin="generated"), small_grid()
    assert plain(shapes) == Recipe("GCN", epochs=1000)
    assert recipe(shapes) == replace(plain(shapes), weight_decay=5e-4)
    assert recipe(shapes, "GAT") == Recipe("GAT", epochs=200, degrees=True)
    assert recipe(grid).layers == 4
    assert recipe(shapes, "GIN") == Recipe("GIN", epochs=500)
    with pytest.raises(ValueError, match=r"\('GCN', 'GAT', 'HybridGAT', 'GIN'\)"):
        recipe(grid, "SAGE")


def test_a_trained_model_is_kept_and_found_again(tmp_path):
    data, how = small_grid(), Recipe("GAT", epochs=3, layers=2, degrees=True)
    model, seen, result = trained(data, "GAT", how=how, folder=tmp_path / "models", progress=False)
    assert seen.num_features == 10
    (path,) = (tmp_path / "models").iterdir()
    assert re.fullmatch(r"tree-grid-gat-0-[0-9a-f]{8}\.safetensors", path.name)
    again, _, same = trained(data, how=how, folder=tmp_path / "models", progress=False)
    assert same == result
    assert torch.equal(again.lin1.weight, model.lin1.weight)
    longer = replace(how, epochs=4)
    assert trained(data, "GAT", how=longer, folder=tmp_path / "models", progress=False)[2] != result  # trained anew
    with pytest.raises(ValueError, match="for a GAT"):
        trained(data, "GCN", how=how)


def test_a_network_is_built_again_from_its_config():
    model = GAT(7, 3, hidden=5, layers=2, level="graph")
    assert build(model.config).config == model.config
    with pytest.raises(ValueError, match="kind"):
        build({"kind": "Transformer"})
