"""The same numbers on every device; on CUDA where there is one."""

import pytest
import torch
from helpers import CONVS, EDGES, PAIR_BATCH, PAIR_EDGES, as_large, features, net

from xdegree import agglomerate, check, decompose, explain

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is there")),
]
X = features()
SOME = [[0], [3, 4], [], list(range(12))]


def same(got: torch.Tensor, expected: torch.Tensor, device: str) -> None:
    """On the device that was asked for, and up to its own rounding what the CPU gives."""
    assert got.device.type == device
    torch.testing.assert_close(got.cpu(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", CONVS)
def test_decompose(kind, device):
    there = net(kind).to(device)
    d = decompose(there, X.to(device), EDGES.to(device), groups=SOME)
    expected = decompose(net(kind), X, EDGES, groups=SOME)
    same(d.total, expected.total, device)
    same(d.target, expected.target, device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", CONVS)
@pytest.mark.parametrize("large", [False, True])
def test_explain(kind, device, large, monkeypatch):
    if large:
        as_large(monkeypatch)
    there, x, edge_index = net(kind).to(device), X.to(device), EDGES.to(device)
    for _ in range(2):  # the second time by what is known from the first
        e = explain(there, x, edge_index, index=5)
        same(e.node_scores, explain(net(kind), X, EDGES, index=5).node_scores, device)
    same(explain(there, x, edge_index, index="all").matrix.to_dense()[5], e.node_scores.cpu(), device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("of", ["edge", "feature"])
def test_edges_and_features(of, device):
    e = explain(net().to(device), X.to(device), EDGES.to(device), index=5, of=of)
    same(e.scores, explain(net(), X, EDGES, index=5, of=of).scores, device)


@pytest.mark.parametrize("device", DEVICES)
def test_graphs(device):
    model, inputs = net("gin", "graph"), (X, PAIR_EDGES, PAIR_BATCH)
    found = explain(net("gin", "graph").to(device), *[value.to(device) for value in inputs], index="all")
    for e, expected in zip(found, explain(model, *inputs, index="all"), strict=True):
        same(e.node_scores, expected.node_scores, device)


@pytest.mark.parametrize("device", DEVICES)
def test_sampling(device):
    e = explain(net("sage").to(device), X.to(device), EDGES.to(device), index=3, num_neighbors=2, seed=4)
    same(e.node_scores, explain(net("sage"), X, EDGES, index=3, num_neighbors=2, seed=4).node_scores, device)


@pytest.mark.parametrize("device", DEVICES)
def test_trees_and_surveys(device):
    there, x, edge_index = net().to(device), X.to(device), EDGES.to(device)
    assert check(there, x, edge_index).ok
    tree = agglomerate(there, x, edge_index, index=5, q=0.6, seed=0)
    expected = agglomerate(net(), X, EDGES, index=5, q=0.6, seed=0)
    assert [[set(nodes) for nodes, _ in level] for level in tree.levels] == [
        [set(nodes) for nodes, _ in level] for level in expected.levels
    ]
