import numpy as np
import pytest
import torch
from torch_geometric.utils import contains_self_loops, is_undirected

from xdegree.datasets import ba_shapes


@pytest.mark.parametrize("random_edges", [0.0, 0.01, 0.1])
def test_ba_shapes_has_the_counts_of_its_recipe(random_edges):
    data = ba_shapes(random_edges=random_edges)
    edges = 5 + 5 * 294 + 80 * (6 + 1)  # a star, then five links per new node; houses, each with one link to the base
    assert data.validate()
    assert data.x.shape == (700, 10)
    assert (data.x == 1).all()
    assert data.edge_index.shape == (2, 2 * (edges + int(random_edges * edges)))
    assert data.y.bincount().tolist() == [300, 160, 160, 80]


def test_ba_shapes_is_simple_undirected_and_sorted():
    data = ba_shapes()
    assert is_undirected(data.edge_index)
    assert not contains_self_loops(data.edge_index)
    assert data.is_coalesced()


def test_ba_shapes_base_grows_by_preferential_attachment():
    data = ba_shapes(random_edges=0)
    both = (data.motif[data.edge_index] < 0).all(0)
    degree = data.edge_index[0, both].bincount(minlength=300)
    assert degree.min() >= 1
    assert (degree[6:] >= 5).all()
    assert degree[:30].double().mean() > 2 * degree[-30:].double().mean()  # the old are rich


def test_ba_shapes_truth_is_the_six_edges_of_each_house():
    data = ba_shapes(random_edges=0.5)  # so many that some fall inside houses, where they are not true
    row, col = data.edge_index
    house = data.motif[row]
    assert data.motif[:300].tolist() == [-1] * 300
    assert data.motif[300:].bincount().tolist() == [5] * 80
    assert (house[data.edge_mask] == data.motif[col][data.edge_mask]).all()
    assert house[data.edge_mask].bincount().tolist() == [12] * 80
    inside = (house >= 0) & (house == data.motif[col])
    assert inside.sum() > data.edge_mask.sum()
    # middle-middle, middle-bottom, bottom-bottom and middle-top are the edges of a house
    pairs = {tuple(sorted(pair)) for pair in data.y[data.edge_index[:, data.edge_mask]].T.tolist()}
    assert pairs == {(1, 1), (1, 2), (2, 2), (1, 3)}


def test_ba_shapes_hangs_each_house_on_a_base_node_of_its_own():
    data = ba_shapes(random_edges=0)
    row, col = data.edge_index
    links = (data.motif[row] >= 0) & (data.motif[col] < 0)
    assert links.sum() == 80
    assert data.motif[row[links]].unique().numel() == 80
    assert col[links].unique().numel() == 80
    assert (data.y[row[links]] == 1).all()


def test_ba_shapes_splits_every_node_once():
    data = ba_shapes()
    masks = torch.stack([data.train_mask, data.val_mask, data.test_mask])
    assert masks.sum(1).tolist() == [560, 70, 70]
    assert (masks.sum(0) == 1).all()


def test_ba_shapes_depends_on_the_seed_alone():
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002 - the legacy state is what must stay as it was
    before, legacy = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    first, again, other = ba_shapes(seed=5), ba_shapes(seed=5), ba_shapes(seed=6)
    assert torch.equal(torch.get_rng_state(), before)
    assert np.random.get_state()[1].tolist() == legacy  # noqa: NPY002
    assert all(torch.equal(first[key], again[key]) for key in first.keys())  # noqa: SIM118 - iterates over pairs
    assert not torch.equal(first.edge_index, other.edge_index)
    assert not torch.equal(first.train_mask, other.train_mask)


@pytest.mark.parametrize("random_edges", [-0.1, 1.5])
def test_ba_shapes_refuses_what_is_no_share(random_edges):
    with pytest.raises(ValueError, match=rf"between 0 and 1 \(got {random_edges}\)"):
        ba_shapes(random_edges=random_edges)


@pytest.mark.data
def test_ba_shapes_with_one_percent_has_the_counts_of_the_released_graph(data_folder):
    released = np.load(data_folder / "synthetic" / "ba_shapes.npz", allow_pickle=False)
    data = ba_shapes(random_edges=0.01)
    assert data.edge_index.shape == released["edge_index"].shape
    assert sorted(data.y.bincount().tolist()) == sorted(np.bincount(released["y"]).tolist())
