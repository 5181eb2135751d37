import numpy as np
import pytest
import torch
from torch_geometric.nn import GATConv, GCNConv, GINConv

from xdegree.models import GAT, GCN, GIN

MODELS = pytest.mark.parametrize(("model_class", "conv_class"), [(GCN, GCNConv), (GAT, GATConv), (GIN, GINConv)])
EDGES = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])


def widths(conv):
    if isinstance(conv, GINConv):
        return conv.nn[0].in_features, conv.nn[-1].out_features
    return conv.in_channels, conv.out_channels


@MODELS
def test_layers_have_the_widths_of_the_paper(model_class, conv_class):
    model = model_class(in_channels=7, out_channels=3)
    assert [type(conv) for conv in model.convs] == [conv_class] * 3
    assert [widths(conv) for conv in model.convs] == [(7, 20), (20, 20), (20, 20)]
    assert (model.lin1.in_features, model.lin1.out_features) == (20, 20)
    assert (model.lin2.in_features, model.lin2.out_features) == (20, 3)
    assert len(model_class(7, 3, layers=4).convs) == 4


@MODELS
def test_nodes_get_the_composition_of_the_layers(model_class, conv_class):
    torch.manual_seed(0)
    model, x = model_class(7, 3, hidden=6, layers=2), torch.randn(5, 7)
    hidden = model.convs[1](model.convs[0](x, EDGES).relu(), EDGES).relu()
    assert torch.equal(model(x, EDGES), model.lin2(model.lin1(hidden).relu()))


@MODELS
def test_graphs_are_pooled_by_the_maximum(model_class, conv_class):
    torch.manual_seed(0)
    model, x = model_class(7, 3, level="graph"), torch.randn(5, 7)
    both = model(x, EDGES, torch.tensor([0, 0, 0, 1, 1]))
    first, second = model(x[:3], EDGES[:, :4]), model(x[3:], EDGES[:, 4:] - 3)
    assert both.shape == (2, 3)
    torch.testing.assert_close(both, torch.cat([first, second]))


@MODELS
def test_an_unknown_level_is_refused(model_class, conv_class):
    with pytest.raises(ValueError, match=r'"node" or "graph" \(got \'edge\'\)'):
        model_class(7, 3, level="edge")


@pytest.mark.fixtures
@pytest.mark.parametrize(
    ("name", "model_class", "level"),
    [
        ("gcn_node", GCN, "node"),
        ("gcn_node_const", GCN, "node"),
        ("gat_node", GAT, "node"),
        ("gat_node_const", GAT, "node"),
        ("gcn_graph_maxpool", GCN, "graph"),
    ],
)
def test_with_the_authors_weights_the_logits_are_the_authors(fixtures_folder, name, model_class, level):
    stored = np.load(fixtures_folder / f"{name}.npz", allow_pickle=False)
    x, edges = torch.from_numpy(stored["x"]).double(), torch.from_numpy(stored["edge_index"])
    logits = torch.from_numpy(stored["logits64"])
    model = model_class(x.shape[1], logits.shape[1], level=level).double()
    model.load_state_dict(
        {key.removeprefix("pyg/"): torch.from_numpy(stored[key]) for key in stored if key.startswith("pyg/")}
    )
    torch.testing.assert_close(model(x, edges, torch.from_numpy(stored["batch"])), logits, rtol=0, atol=1e-11)
