"""What is predicted beyond one class of one node: links, several rows, all classes, regression, many labels."""

import warnings
from collections.abc import Sequence

import pytest
import torch
from helpers import EDGES, assert_close, features, net, ready, singles
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_geometric.data import Data
from torch_geometric.explain import Explainer
from torch_geometric.nn import GAE, GCNConv, SAGEConv

from xdegree import DegreeExplainer, Options, decompose, explain
from xdegree.engine.portions import LostPortionsError

# Dot products by the paper's rule are tested here on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:most nodes that can contribute to this link:UserWarning")

X = features()
LINKS = torch.tensor([[0, 3, 5, 11], [1, 4, 9, 11]])


def reach(edge_index, seeds, hops) -> set[int]:
    found = set(seeds)
    for _ in range(hops):
        found |= {u for u, v in edge_index.t().tolist() if v in found}
    return found


class LinkPredictor(nn.Module):
    """Two convolutions and a decoder of pairs."""

    def __init__(self, decoder="dot", conv=GCNConv):
        super().__init__()
        self.conv1, self.conv2, self.decoder = conv(4, 6), conv(6, 5), decoder
        self.lin = nn.Linear(10, 3)

    def forward(self, x, edge_index, edge_label_index):
        z = self.conv2(self.conv1(x, edge_index).relu(), edge_index)
        source, end = z[edge_label_index[0]], z[edge_label_index[1]]
        if self.decoder == "dot":
            return (source * end).sum(-1)
        if self.decoder == "column":
            return (source * end).sum(-1, keepdim=True)
        return self.lin(torch.cat([source, end], -1))


def directly(model, row, target, *args, x=X):
    d = decompose(model, x, *args, groups=singles(len(x)))
    return d.target.reshape(len(x), d.total.shape[0], -1)[:, row, target]


# --- links


class LinearLinks(LinkPredictor):
    """Without ReLU and bias: what single nodes add to a dot product can be added up."""

    def forward(self, x, edge_index, edge_label_index):
        z = self.conv2(self.conv1(x, edge_index), edge_index)
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)


def test_shared_products_add_up_and_strict_ones_lose_what_reaches_one_side_only():
    model = ready(LinearLinks(conv=lambda a, b: GCNConv(a, b, bias=False)))
    pairs = torch.tensor([[0, 3], [1, 9]])
    shared = decompose(model, X, EDGES, pairs, groups=singles(len(X)), options=Options(product="share"))
    torch.testing.assert_close(shared.target.sum(0), shared.total, rtol=0, atol=1e-12)
    everything = decompose(model, X, EDGES, pairs, groups=[range(len(X)), []], options=Options(product="share"))
    torch.testing.assert_close(everything.target[0], everything.total, rtol=0, atol=1e-12)
    assert torch.equal(everything.target[1], torch.zeros(2, dtype=torch.float64))
    apart = torch.tensor([[0], [1]])
    no_edges = torch.zeros(2, 0, dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = explain(model, X, no_edges, apart, index=0, options=Options.paper())
    half = explain(model, X, no_edges, apart, index=0, options=Options(product="share"))
    assert not alone.node_scores.any()
    torch.testing.assert_close(half.node_scores[:2], half.prediction.expand(2) / 2, rtol=0, atol=1e-12)


def test_a_dot_product_by_the_paper_s_rule_gets_a_hint():
    apart, no_edges = torch.tensor([[0], [1]]), torch.zeros(2, 0, dtype=torch.long)
    with pytest.warns(UserWarning, match=r"only one of the two factors .*Options\(product=\"share\"\)") as found:
        explain(ready(LinkPredictor()), X, no_edges, apart, options=Options.paper())
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explain(ready(LinkPredictor()), X, no_edges, apart, options=Options(product="share"))
        explain(ready(LinkPredictor()), X, no_edges, apart, reading="strength")
        explain(ready(LinkPredictor("mlp")), X, no_edges, apart)


@pytest.mark.parametrize("decoder", ["dot", "column", "mlp"])
@pytest.mark.parametrize("positional", [True, False])
@pytest.mark.parametrize("row", range(4))
def test_a_link_equals_the_decomposition_of_the_whole_graph(decoder, positional, row):
    model = ready(LinkPredictor(decoder))
    args, kwargs = ((LINKS,), {}) if positional else ((), {"edge_label_index": LINKS})
    e = explain(model, X, EDGES, *args, index=row, **kwargs)
    assert_close(e.node_scores, directly(model, row, e.target, EDGES, LINKS))
    assert (e.index, e.target) == (row, int(e.prediction.argmax()))
    assert_close(e.prediction, model(X, EDGES, LINKS).reshape(4, -1)[row].detach(), atol=0)
    assert set(e.nodes.tolist()) == reach(EDGES, LINKS[:, row].tolist(), 2)
    assert e.node_scores.any()


def test_several_links_at_once():
    model = ready(LinkPredictor())
    for found in (
        explain(model, X, EDGES, LINKS, index="all"),
        explain(model, X, EDGES, edge_label_index=LINKS, index=range(4)),
    ):
        assert [e.index for e in found] == [0, 1, 2, 3]
        for e in found:
            one = explain(model, X, EDGES, LINKS, index=e.index)
            assert_close(e.node_scores, one.node_scores)
            assert torch.equal(e.nodes, one.nodes)


def test_one_link_needs_no_index():
    model = ready(LinkPredictor())
    e = explain(model, X, EDGES, LINKS[:, 2:3])
    assert_close(e.node_scores, explain(model, X, EDGES, LINKS, index=2).node_scores)


def test_links_in_data():
    model = ready(LinkPredictor())
    data = Data(x=X, edge_index=EDGES, edge_label_index=LINKS)
    assert_close(explain(model, data, index=1).node_scores, explain(model, X, EDGES, LINKS, index=1).node_scores)


@pytest.mark.parametrize("count", [12, EDGES.shape[1]])
def test_as_many_links_as_nodes_or_edges(count):
    model = ready(LinkPredictor())
    links = torch.stack([torch.arange(count) % 12, torch.arange(count) * 5 % 12])
    e = explain(model, X, EDGES, links, index=7)
    assert_close(e.node_scores, directly(model, 7, 0, EDGES, links))
    e = explain(model, X, EDGES, links, index=7, of="edge")
    d = decompose(model, X, EDGES, links, groups=[[i] for i in range(EDGES.shape[1])], of="edge")
    assert_close(e.edge_scores, d.target[:, 7])


@pytest.mark.parametrize("decoder", ["dot", "mlp"])
def test_edges_features_and_readings_of_a_link(decoder):
    model = ready(LinkPredictor(decoder, SAGEConv))
    e = explain(model, X, EDGES, LINKS, index=1, of="edge")
    d = decompose(model, X, EDGES, LINKS, groups=[[i] for i in range(EDGES.shape[1])], of="edge")
    assert_close(e.edge_scores, d.target.reshape(EDGES.shape[1], 4, -1)[:, 1, e.target])
    e = explain(model, X, EDGES, LINKS, index=1, of="feature")
    mask = torch.eye(48, dtype=torch.bool).reshape(48, 12, 4)
    d = decompose(model, X, EDGES, LINKS, groups=mask)
    assert_close(e.feature_scores, d.target.reshape(48, 4, -1)[:, 1, e.target].reshape(12, 4))
    pair = explain(model, X, EDGES, LINKS, index=1, edge_scores="pair")
    assert pair.edge_scores.any()
    strong = explain(model, X, EDGES, LINKS, index=1, reading="strength")
    assert (strong.node_scores >= 0).all()
    assert strong.node_scores.any()


@pytest.mark.parametrize("name", ["pairs", "edge_label_index"])
def test_links_by_another_name_and_a_given_level(name):
    model = ready(LinkPredictor())

    def renamed(x, edge_index, pairs):
        return model(x, edge_index, pairs)

    asked = renamed if name == "pairs" else model
    e = explain(asked, X, EDGES, LINKS, index=1, level="link")
    assert_close(e.node_scores, directly(model, 1, 0, EDGES, LINKS))


def test_a_decoder_of_its_own():
    """GAE: the encoder gives the embeddings, the decoder the pairs."""
    model = ready(GAE(GCNConv(4, 5)))

    def predict(x, edge_index, edge_label_index):
        return model.decode(model.encode(x, edge_index), edge_label_index)

    e = explain(predict, X, EDGES, LINKS, index=1)
    assert 0 < e.prediction[0] < 1
    d = decompose(predict, X, EDGES, LINKS, groups=singles())
    assert_close(e.node_scores, d.logits.target[:, 1])


class Dropping(LinkPredictor):
    """A decoder that takes the values out of the tensors."""

    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x, edge_index, edge_label_index):
        z = self.conv2(self.conv1(x, edge_index).relu(), edge_index)
        if self.how == "labels":
            z = (z > 0).to(z.dtype)
        elif self.how == "rebuilt":
            z = torch.ones(len(z), 5, dtype=z.dtype)
        else:
            z = torch.tensor(z.tolist(), dtype=z.dtype)
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("labels", LostPortionsError),
        ("rebuilt", LostPortionsError),
        ("lists", (LostPortionsError, NotImplementedError)),
    ],
)
def test_a_decoder_that_drops_the_portions(how, error):
    model = ready(Dropping(how))
    with pytest.raises(error, match="lost"):
        explain(model, X, EDGES, LINKS, index=1)
    with pytest.raises(error, match="lost"):
        decompose(model, X, EDGES, LINKS, groups=[[0]])


def test_links_that_do_not_fit():
    model = ready(LinkPredictor())
    with pytest.raises(ValueError, match=r"the model predicts 4 links; say which one"):
        explain(model, X, EDGES, LINKS)
    with pytest.raises(ValueError, match="index 4 is out of range: the model predicts links 0 to 3"):
        explain(model, X, EDGES, LINKS, index=4)
    with pytest.raises(ValueError, match="level='node' means 12 rows"):
        explain(model, X, EDGES, LINKS, index=1, level="node")
    with pytest.raises(ValueError, match="level must be one of"):
        explain(model, X, EDGES, LINKS, index=1, level="pair")


@st.composite
def odd_links(draw):
    nodes = draw(st.integers(1, 6))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=10))
    links = draw(st.lists(st.tuples(node, node), min_size=1, max_size=7))
    row, seed = draw(st.integers(0, len(links) - 1)), draw(st.integers(0, 99))
    as_index = [torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t() for pairs in (edges, links)]
    return features(nodes, 4, seed), *as_index, row, seed


@pytest.mark.parametrize("decoder", ["dot", "mlp"])
@settings(max_examples=15, deadline=None, derandomize=True)
@given(drawn=odd_links())
def test_odd_links(decoder, drawn):
    x, edge_index, links, row, seed = drawn
    model = ready(LinkPredictor(decoder, SAGEConv), seed)
    e = explain(model, x, edge_index, links, index=row)
    assert_close(e.node_scores, directly(model, row, e.target, edge_index, links, x=x))
    inside = reach(edge_index, links[:, row].tolist(), 2)
    assert not e.node_scores[[node for node in range(len(x)) if node not in inside]].any()
    every = explain(model, x, edge_index, links, index="all")
    assert_close(every[row].node_scores, e.node_scores)
    assert set(every[row].nodes.tolist()) == set(e.nodes.tolist())


def test_links_in_pygs_explainer():
    model = ready(LinkPredictor())
    asked = Explainer(
        model,
        DegreeExplainer(),
        explanation_type="model",
        node_mask_type="object",
        edge_mask_type="object",
        model_config={"mode": "regression", "task_level": "edge", "return_type": "raw"},
    )
    e = asked(X, EDGES, edge_label_index=LINKS, index=1)
    expected = explain(model, X, EDGES, LINKS, index=1, edge_scores="pair")
    assert_close(e.node_mask.squeeze(-1), expected.node_scores)
    assert_close(e.edge_mask, expected.edge_scores)


# --- several rows, one explanation each


@pytest.mark.parametrize("kind", ["gcn", "gat"])
@pytest.mark.parametrize("index", [[3, 7, 11], (7,), range(2, 5), torch.tensor([0, 11]), "all"])
def test_several_rows_equal_one_by_one(kind, index):
    model = net(kind)
    found = explain(model, X, EDGES, index=index, edge_scores="pair")
    rows = range(12) if isinstance(index, str) else [int(i) for i in index]
    assert isinstance(found, Sequence)
    assert [e.index for e in found] == list(rows)
    for e in found:
        one = explain(model, X, EDGES, index=e.index, edge_scores="pair")
        assert_close(e.node_scores, one.node_scores)
        assert torch.equal(e.nodes, one.nodes)
        assert torch.equal(e.prediction, one.prediction)
        assert e.target == one.target
        assert_close(e.class_scores, one.class_scores)
        inside = torch.isin(EDGES, e.nodes).all(0)
        assert_close(e.edge_scores[inside], one.edge_scores[inside])


@pytest.mark.parametrize("of", ["edge", "feature"])
@pytest.mark.parametrize("reading", ["contribution", "strength"])
def test_several_rows_of_edges_and_features(of, reading):
    model = net("gcn")
    for e in explain(model, X, EDGES, index=[2, 9], of=of, reading=reading):
        one = explain(model, X, EDGES, index=e.index, of=of, reading=reading)
        assert_close(e.scores, one.scores)
        assert torch.equal(e.nodes, one.nodes)


def test_a_row_may_be_asked_for_twice_and_a_class_for_all():
    model = net()
    first, second = explain(model, X, EDGES, index=[5, 5], target=2)
    assert torch.equal(first.node_scores, second.node_scores)
    assert first.target == second.target == 2


def test_several_rows_come_from_one_pass():
    passes = []

    class Watched(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = net()

        def forward(self, x, edge_index):
            passes.append(type(x).__name__)
            return self.inner(x, edge_index)

    explain(Watched().eval(), X, EDGES, index=[3, 7, 11])
    assert passes.count("Portions") == 1


@pytest.mark.parametrize(
    ("index", "error"),
    [([3, 12], ValueError), ([], ValueError), ([1.5], TypeError), ("some", TypeError), ([True], TypeError)],
)
def test_rows_that_cannot_be(index, error):
    with pytest.raises(error, match="index"):
        explain(net(), X, EDGES, index=index)


# --- classes, regression, labels


@pytest.mark.parametrize("reading", ["contribution", "probability"])
def test_all_classes_at_once(reading):
    model = net("gat")
    e = explain(model, X, EDGES, index=5, reading=reading)
    assert e.class_scores.shape == (12, 3)
    for target in range(3):
        one = explain(model, X, EDGES, index=5, target=target, reading=reading)
        assert_close(e.class_scores[:, target], one.node_scores)
    assert_close(e.class_scores[:, e.target], e.node_scores, atol=0)
    if reading == "contribution":
        assert_close(e.class_scores, decompose(model, X, EDGES, groups=singles()).target[:, 5])


@pytest.mark.parametrize("level", ["node", "graph"])
def test_all_classes_of_edges(level):
    model, index = net("gat", level), 5 if level == "node" else 0
    e = explain(model, X, EDGES, index=index, of="edge")
    groups = [[edge] for edge in range(EDGES.shape[1])]
    assert_close(e.class_scores, decompose(model, X, EDGES, groups=groups, of="edge").target[:, index])
    assert_close(e.class_scores[:, e.target], e.edge_scores, atol=0)
    (u, v), score = e.top(1, by="impact")[0]
    centred = e.class_scores - e.class_scores.mean(1, keepdim=True)
    best = int(centred.norm(dim=1).argmax())
    assert ([u, v], score) == (EDGES[:, best].tolist(), float(e.edge_scores[best]))
    assert explain(model, X, EDGES, index=index, of="edge", reading="strength").class_scores is None


def test_the_strength_reading_has_no_classes():
    assert explain(net(), X, EDGES, index=5, reading="strength").class_scores is None


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("shape", ["[N, 1]", "[N]"])
def test_regression_with_one_output(level, shape):
    inner = net("gcn", level, classes=1)
    model = inner if shape == "[N, 1]" else lambda x, edge_index: inner(x, edge_index).squeeze(-1)
    row = 5 if level == "node" else 0
    e = explain(model, X, EDGES, index=row)
    assert_close(e.node_scores, decompose(inner, X, EDGES, groups=singles()).target[:, row, 0])
    assert e.target == 0
    assert_close(e.prediction, inner(X, EDGES)[row].detach())


def test_regression_with_several_outputs():
    model = net(classes=4)
    full = decompose(model, X, EDGES, groups=singles()).target[:, 5]
    for target in range(4):
        assert_close(explain(model, X, EDGES, index=5, target=target).node_scores, full[:, target])


def test_binary_and_many_labels():
    inner = net(classes=3)
    labels = explain(lambda x, e: inner(x, e).sigmoid(), X, EDGES, index=5, target=1)
    d = decompose(lambda x, e: inner(x, e).sigmoid(), X, EDGES, groups=singles())
    assert_close(labels.node_scores, d.logits.target[:, 5, 1])
    assert 0 < labels.prediction[1] < 1
    binary = net(classes=1)
    e = explain(binary, X, EDGES, index=5, reading="probability")
    assert (e.node_scores >= 0).all()
    assert e.node_scores.max() > 0


def test_a_class_that_does_not_exist():
    for target, error in ((3, ValueError), (-1, ValueError), ("a", TypeError), (True, TypeError)):
        with pytest.raises(error, match="target"):
            explain(net(), X, EDGES, index=5, target=target)
