import re

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

from xdegree import explain
from xdegree.datasets import ba_shapes
from xdegree.demo import hops_from, main, propagation
from xdegree.models import GCN


def test_the_demo_in_small(tmp_path, capsys):
    picture, report = tmp_path / "why.png", tmp_path / "why.html"
    main(["--epochs", "200", "--picture", str(picture), "--report", str(report)])
    printed = capsys.readouterr().out

    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in printed
    assert printed.strip().endswith(str(report))
    assert "the middle of a house" in report.read_text()
    assert "BA-Shapes: 700 nodes, 2238 edges, 80 houses" in printed
    data = ba_shapes(seed=0)
    index = int(re.search(r"take node (\d+) for the", printed)[1])
    assert data.motif[index] >= 0
    assert data.test_mask[index]
    rows = re.findall(r"^  ([* ]) node +(\d+) +([+-]\d+\.\d+)$", printed, re.MULTILINE)
    assert len(rows) == 8
    scores = [abs(float(score)) for _, _, score in rows]
    assert scores == sorted(scores, reverse=True)
    assert all((mark == "*") == bool(data.motif[int(node)] == data.motif[index]) for mark, node, _ in rows)
    names = ("DEGREE", "minus hop distance", "propagation alone")
    degree, distance, spread = (float(re.search(rf"^  {name} +(\d\.\d+)$", printed, re.MULTILINE)[1]) for name in names)
    assert 0.8 < degree <= 1
    assert 0.9 < distance < spread <= 1


def test_a_model_that_is_never_right_has_nothing_to_explain(tmp_path):
    with pytest.raises(SystemExit, match="train longer"):
        main(["--seed", "1", "--epochs", "1", "--picture", str(tmp_path / "why.png")])
    assert not list(tmp_path.iterdir())


def test_hops_are_shortest_paths_up_to_a_limit():
    edge_index = ba_shapes(seed=1).edge_index
    graph = to_networkx(Data(edge_index=edge_index, num_nodes=700))
    lengths = nx.single_source_shortest_path_length(graph, 432)
    expected = torch.tensor([min(lengths[node], 4) for node in range(700)])
    assert expected.unique().tolist() == [0, 1, 2, 3, 4]
    assert torch.equal(hops_from(432, edge_index, 700, most=3), expected)


def test_propagation_is_the_ranking_of_a_gcn_that_has_learnt_nothing():
    data = ba_shapes(seed=1)
    torch.manual_seed(0)
    model = GCN(10, 4).double().eval()
    e = explain(model, data.x.double(), data.edge_index, index=432)
    spread = propagation(data.edge_index, 700, layers=3)[432]
    assert torch.equal(spread.nonzero().flatten(), e.nodes.sort().values)
    gaps = spread[e.nodes].sort().values.diff()
    assert (gaps > 1e-9).sum() > 5  # a ranking that says something
    order = e.nodes[spread[e.nodes].argsort()]
    assert (e.node_scores[order].abs().diff() > -1e-12).all()
