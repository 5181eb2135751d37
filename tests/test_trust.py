"""What makes an answer one to trust: logits behind a softmax, what is left open, baselines, steps, impact, warnings."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from helpers import CONVS, EDGES, as_large, assert_close, features, net, ready, singles
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer
from torch_geometric.nn import FiLMConv, GCNConv, SAGEConv, to_hetero

from xdegree import DegreeExplainer, Explanation, Options, agglomerate, decompose, explain, interaction
from xdegree.engine.portions import LostPortionsError

X = features()


def from_the_largest(h):
    return h - h.amax(1, keepdim=True)


def adding_up(p):
    return p / p.sum(-1, keepdim=True)


LASTS = {
    "log_softmax": lambda h: F.log_softmax(h, dim=1),
    "log_softmax, last dim": lambda h: h.log_softmax(-1),
    "softmax": lambda h: torch.softmax(h, -1),
    "module": nn.LogSoftmax(dim=-1),
    "sigmoid": torch.sigmoid,
    "in place": lambda h: h.sigmoid_(),
    "logsigmoid": F.logsigmoid,
    "reshaped": lambda h: torch.softmax(h, -1).reshape(len(h), 3).clone(),
    "some rows": lambda h: torch.softmax(h, -1)[torch.arange(len(h))],
    "by hand": lambda h: h - h.logsumexp(-1, keepdim=True),
    "by hand, from the largest": lambda h: (z := from_the_largest(h)) - z.exp().sum(1).log()[:, None],
    "quotient": lambda h: adding_up(h.exp()),
    "quotient, from the largest": lambda h: adding_up(from_the_largest(h).exp()),
}


class Ended(nn.Module):
    """A network with a last step."""

    def __init__(self, last, kind="gcn", **sizes):
        super().__init__()
        self.inner, self.last = net(kind, **sizes), last

    def forward(self, x, edge_index):
        return self.last(self.inner(x, edge_index))


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch) -> str:
    if request.param == "large":
        as_large(monkeypatch)
    return request.param


# Behind the softmax.


@pytest.mark.parametrize(("last", "kind"), [*[(last, "gcn") for last in LASTS], ("softmax", "gat"), ("module", "gin")])
def test_a_last_softmax_is_left_out(last, kind, size):
    inner, model = net(kind), Ended(LASTS[last], kind).eval()
    with torch.no_grad():
        own, logits = model(X, EDGES), inner(X, EDGES)
    e, expected = explain(model, X, EDGES, index=5), explain(inner, X, EDGES, index=5)
    assert_close(e.prediction, own[5])
    assert_close(e.logits, logits[5])
    assert e.target == expected.target
    assert_close(e.class_scores, expected.class_scores)
    assert e.residual == pytest.approx(expected.residual, abs=1e-9)
    for of in ("edge", "feature"):
        got = explain(model, X, EDGES, index=5, of=of)
        assert_close(got.scores, explain(inner, X, EDGES, index=5, of=of).scores)
        assert_close(got.logits, logits[5])
    for one, other in zip(explain(model, X, EDGES, index="all"), explain(inner, X, EDGES, index="all"), strict=True):
        assert_close(one.node_scores, other.node_scores)
        assert_close(one.logits, logits[one.index])


@pytest.mark.parametrize("last", LASTS)
def test_decompose_shows_both(last):
    model = Ended(LASTS[last]).eval()
    d, inner = decompose(model, X, EDGES, groups=singles()), decompose(net(), X, EDGES, groups=singles())
    with torch.no_grad():
        assert torch.equal(d.total, model(X, EDGES))
    assert torch.equal(d.logits.total, inner.total)
    assert_close(d.logits.target, inner.target)
    assert inner.logits is None
    parts = decompose(model, X, EDGES, groups=singles(), memory=20_000)
    assert_close(parts.logits.target, inner.target)


def test_the_last_step_can_be_explained_too():
    model = Ended(LASTS["log_softmax"]).eval()
    e = explain(model, X, EDGES, index=5, logits=False)
    d = decompose(model, X, EDGES, groups=singles())
    assert e.logits is None
    assert_close(e.class_scores, d.target[:, 5])


def test_a_softmax_within_the_model_is_no_last_step():
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.lin = net(), nn.Linear(3, 3)

        def forward(self, x, edge_index):
            h = self.inner(x, edge_index)
            return self.lin(torch.softmax(h, -1)) + h.sigmoid()

    model = ready(Gated())
    assert decompose(model, X, EDGES, groups=[[0]]).logits is None
    assert explain(model, X, EDGES, index=5).logits is None


@pytest.mark.parametrize("return_type", ["raw", "probs", "log_probs"])
def test_pyg_explainer_for_every_return_type(return_type):
    last = {"raw": nn.Identity(), "probs": nn.Softmax(-1), "log_probs": nn.LogSoftmax(-1)}[return_type]
    config = {"mode": "multiclass_classification", "task_level": "node", "return_type": return_type}
    explainer = Explainer(
        Ended(last).eval(), DegreeExplainer(), explanation_type="model", node_mask_type="object", model_config=config
    )
    expected = explain(net(), X, EDGES, index=5).node_scores
    assert_close(explainer(X, EDGES, index=5).node_mask[:, 0], expected)


def test_groups_are_explained_there_too():
    model, inner = Ended(LASTS["log_softmax"]).eval(), net()
    assert agglomerate(model, X, EDGES, index=5).levels == agglomerate(inner, X, EDGES, index=5).levels
    asked = {"index": 5, "a": [4], "b": [6]}
    assert interaction(model, X, EDGES, **asked) == pytest.approx(interaction(inner, X, EDGES, **asked), abs=1e-9)


@pytest.mark.parametrize("attention", ["split", "whole"])
def test_softmax_taken_as_a_whole_is_no_loss(attention):
    model, options = Ended(LASTS["softmax"], "gat").eval(), Options(attention=attention)
    e = explain(model, X, EDGES, index=5, options=options)
    assert_close(e.class_scores, explain(net("gat"), X, EDGES, index=5, options=options).class_scores)


# What is left open.


def test_the_account_of_an_explanation(tmp_path):
    e = explain(net(), X, EDGES, index=5)
    assert e.output == pytest.approx(float(e.prediction[e.target]))
    assert e.total_scores == pytest.approx(float(e.node_scores.sum()))
    assert e.output == pytest.approx(e.total_scores + e.residual)
    assert f"{e.residual:+.4g}" in repr(e)
    again = Explanation.load(e.save(tmp_path / "e.json"))
    assert (again.residual, again.products) == (e.residual, e.products)
    for reading in ("impact", "strength", "probability"):
        assert explain(net(), X, EDGES, index=5, reading=reading).residual is None


def test_a_large_residual_is_said():
    def squared(x, edge_index):
        return x.sum(0, keepdim=True) ** 2

    nearly_cancelling = X - X.mean(0) + 0.01
    with pytest.warns(UserWarning, match="joint effects and biases"):
        explain(squared, nearly_cancelling, EDGES, options=Options.paper(bias="background"))


def test_nothing_is_said_of_a_plain_linear_model():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explain(ready(GCNConv(4, 3, bias=False)), X, EDGES, index=5)


class Product(nn.Module):
    """Neighbors matter only through one factor of a product."""

    def __init__(self, how):
        super().__init__()
        self.conv, self.lin, self.how = SAGEConv(4, 3, root_weight=False), nn.Linear(4, 3), how

    def forward(self, x, edge_index):
        gate, value = self.conv(x, edge_index), self.lin(x)
        ways = {
            "*": lambda: gate * value,
            "sigmoid": lambda: gate.sigmoid() * value,
            "matmul": lambda: (gate.unsqueeze(1) @ value.unsqueeze(2)).squeeze(1).expand(-1, 3),
            "einsum": lambda: torch.einsum("nc,nc->nc", gate, value),
            "glu": lambda: F.glu(torch.cat([value, gate], 1), 1),
            "film": lambda: torch.addcmul(value, gate, value) - value,
        }
        return ways[self.how]()


@pytest.mark.parametrize("how", ["*", "matmul", "einsum", "film"])
def test_products_that_hide_neighbors_are_said(how, size):
    with pytest.warns(UserWarning, match=r"multiplies what arrives.*product=\"share\""):
        explain(ready(Product(how)), X, EDGES, index=5, options=Options.paper(bias="background"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        e = explain(ready(Product(how)), X, EDGES, index=5, options=Options(product="share", bias="background"))
    assert (e.node_scores[[4, 6]] != 0).all()


def test_layers_that_modulate_say_so():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        e = explain(ready(FiLMConv(4, 3)), X, EDGES, index=5, options=Options.paper())
    hidden = int((e.node_scores[e.nodes] == 0).sum()) > len(e.nodes) // 2
    assert hidden == any("multiplies" in str(one.message) for one in said)


def test_outputs_that_are_not_finite_are_said():
    model = net()
    with torch.no_grad():
        model.lin2.bias[0] = float("nan")
    with pytest.warns(UserWarning, match="is not finite"):
        explain(model, X, EDGES, index=5)


def test_outputs_that_are_not_finite_are_said_wherever_they_are():
    """Not only of the first row, and by every function."""
    inner = net()

    def model(x, edge_index):
        return torch.where(torch.arange(len(x)).unsqueeze(1) == 7, torch.inf, inner(x, edge_index))

    questions = {
        "a list": lambda: explain(model, X, EDGES, index=[5, 7, 6]),
        "all": lambda: explain(model, X, EDGES, index="all"),
        "features": lambda: explain(model, X, EDGES, index=[5, 7], of="feature"),
        "groups": lambda: decompose(model, X, EDGES, groups=[[1]]),
        "a tree": lambda: agglomerate(model, X, EDGES, index=7, max_levels=1),
        "an interaction": lambda: interaction(model, X, EDGES, index=7, a=[1], b=[2]),
    }
    for name, ask in questions.items():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ask()
        assert any("is not finite" in str(one.message) for one in said), name
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explain(model, X, EDGES, index=[5, 6])


def test_what_several_rows_leave_open():
    found = explain(net(), X, EDGES, index=[5, 0, 9])
    assert_close(found.residuals, torch.tensor([e.residual for e in found], dtype=torch.float64))
    assert explain(net(), X, EDGES, index=[5, 0], reading="impact").residuals is None


BEHIND = {
    "log": lambda h: h.softmax(-1).log(),
    "small number": lambda h: (h.softmax(-1) + 1e-12).log(),
    "clamp": lambda h: h.softmax(-1).clamp(1e-7, 1 - 1e-7),
    "cast": lambda h: h.softmax(-1).float(),
    "scale": lambda h: 100 * h.softmax(-1),
    "cat": lambda h: torch.cat([h[:6].softmax(-1), h[6:].softmax(-1)]),
    "stack": lambda h: torch.stack([h.softmax(-1)])[0],
    "exp": lambda h: h.log_softmax(-1).exp(),
    "index": lambda h: h.sigmoid()[torch.arange(len(h))],
    "gather": lambda h: h.log_softmax(-1).gather(1, torch.arange(3).expand(len(h), 3)),
    "made to add up again": lambda h: adding_up(h.softmax(-1) + 1e-3),
    "no and yes": lambda h: 1 - torch.cat([1 - h[:, :1].sigmoid(), 1 - h[:, 1:].sigmoid()], 1),
}


@pytest.mark.parametrize("kind", BEHIND)
def test_what_comes_behind_the_last_softmax(kind):
    """A logarithm, a cast, a number against zeros: the logits are still what is explained."""
    inner = net()

    def model(x, edge_index):
        return BEHIND[kind](inner(x, edge_index))

    expected = decompose(inner, X, EDGES, groups=singles()).target
    for e in (explain(model, X, EDGES, index=5), *explain(model, X, EDGES, index="all")):
        assert_close(e.class_scores, expected[:, e.index])
        assert_close(e.logits, inner(X, EDGES)[e.index].detach())
    assert explain(model, X, EDGES, index=5, of="feature").logits is not None


ENSEMBLES = {
    "mean": lambda h, g: (h.softmax(-1) + g.softmax(-1)) / 2,
    "weights": lambda h, g: 0.3 * h.softmax(-1) + 0.7 * g.softmax(-1),
    "stack": lambda h, g: torch.stack([h.softmax(-1), g.softmax(-1)]).mean(0),
    "product": lambda h, g: h.softmax(-1) * g.softmax(-1),
    "difference": lambda h, g: h.softmax(-1) - g.softmax(-1),
}


@pytest.mark.parametrize("kind", ENSEMBLES)
def test_no_member_of_an_ensemble_stands_for_all(kind):
    """Probabilities of two networks have no logits in common: they are split only where that is asked for."""
    one, other = net(), net("sage")

    def model(x, edge_index):
        return ENSEMBLES[kind](one(x, edge_index), other(x, edge_index))

    with pytest.raises(LostPortionsError, match=r"several softmaxes.*attention=.split"):
        explain(model, X, EDGES, index=5)
    e = explain(model, X, EDGES, index=5, options=Options(attention="split"))
    assert e.logits is None
    assert e.output == pytest.approx(float(model(X, EDGES).detach()[5, e.target]))


def test_a_mean_taken_off_each_row_is_no_softmax():
    inner = net()
    e = explain(lambda x, edge_index: (h := inner(x, edge_index)) - h.mean(-1, keepdim=True), X, EDGES, index=5)
    assert e.logits is None


def test_a_scaled_sigmoid_is_a_regression():
    """Ratings from 1 to 5 are explained in their own units."""
    inner = net(classes=1)
    e = explain(lambda x, edge_index: 1 + 4 * inner(x, edge_index).sigmoid(), X, EDGES, index=5)
    assert e.logits is None


@pytest.mark.parametrize("f", [lambda h: h.softmax(-1), lambda h: h.softmax(-1).log(), lambda h: (h.softmax(-1), h)])
def test_a_last_softmax_itself_is_split_by_the_papers_rule(f):
    """Attention is taken as given by default; a softmax that is the output is no attention."""
    inner = net()
    d = decompose(lambda x, edge_index: f(inner(x, edge_index)), X, EDGES, groups=singles())
    z = decompose(inner, X, EDGES, groups=singles())
    total, target = (d.total[0], d.target[0]) if isinstance(d.total, tuple) else (d.total, d.target)
    assert_close(target, total * torch.sigmoid(z.target.abs() - (z.total - z.target).abs()))
    if not isinstance(d.total, tuple):
        e = explain(lambda x, edge_index: f(inner(x, edge_index)), X, EDGES, index=5, logits=False)
        assert_close(e.class_scores[e.nodes], d.target[e.nodes, 5])  # nothing at all has a share by that rule


# Baselines and steps.


@pytest.mark.parametrize("kind", CONVS)
def test_one_step_from_zero_is_the_plain_answer(kind, size):
    plain = explain(net(kind), X, EDGES, index=5)
    zeros = explain(net(kind), X, EDGES, index=5, baseline=torch.zeros(4, dtype=torch.float64))
    assert torch.equal(explain(net(kind), X, EDGES, index=5, baseline="zero", steps=1).class_scores, plain.class_scores)
    assert_close(zeros.class_scores, plain.class_scores)
    d = decompose(net(kind), X, EDGES, groups=[[0], [4, 5]])
    assert torch.equal(decompose(net(kind), X, EDGES, groups=[[0], [4, 5]], steps=1).target, d.target)


def integrated_gradients(model, x, baseline, index, target, steps=200):
    """By the trapezoidal rule, ``[N, F]``."""
    total = torch.zeros_like(x)
    for step in range(steps):
        at = (baseline + (step + 0.5) / steps * (x - baseline)).requires_grad_()
        total += torch.autograd.grad(model(at, EDGES)[index, target], at)[0]
    return (x - baseline) * total / steps


@pytest.mark.filterwarnings("ignore:single scores add up to")
@pytest.mark.parametrize("kind", CONVS)
@pytest.mark.parametrize("baseline", ["zero", "mean", "tensor"])
def test_many_steps_are_integrated_gradients(kind, baseline):
    model, options = net(kind), Options(attention="whole")
    if kind == "gat":  # attention is taken as given: hold it still for the comparison
        for conv in model.convs:
            nn.init.zeros_(conv.att_src)
            nn.init.zeros_(conv.att_dst)
    given = {"zero": "zero", "mean": "mean", "tensor": features(seed=8)}[baseline]
    b = {"zero": torch.zeros(4).double(), "mean": X.mean(0), "tensor": features(seed=8)}[baseline].expand_as(X)
    asked = {"index": 5, "target": 1, "options": options, "baseline": given}
    expected = integrated_gradients(model, X, b, 5, 1).sum(1)
    errors = [
        float((explain(model, X, EDGES, steps=steps, **asked).node_scores - expected).abs().max())
        for steps in (1, 4, 32)
    ]
    assert errors[2] < errors[1] / 3 or errors[1] < 1e-9
    assert errors[2] < 0.2 * float(expected.abs().max())
    e = explain(model, X, EDGES, steps=32, **asked)
    with torch.no_grad():
        difference = float((model(X, EDGES) - model(b, EDGES))[5, 1])
    assert e.output - float(e.baseline_output[1]) == pytest.approx(difference)
    assert abs(e.residual) < 0.2 * float(expected.abs().sum())
    assert e.total_scores == pytest.approx(difference - e.residual)


def test_groups_and_features_in_steps():
    model = net()
    d = decompose(model, X, EDGES, groups=[[3], [5, 6], list(range(12))], baseline="mean", steps=64)
    ig = integrated_gradients(model, X, X.mean(0).expand_as(X), 5, 1)
    expected = torch.stack([ig[3].sum(), ig[5].sum() + ig[6].sum(), ig.sum()])
    torch.testing.assert_close(d.target[:, 5, 1], expected, rtol=0.05, atol=0.02)
    e = explain(model, X, EDGES, index=5, target=1, of="feature", baseline="mean", steps=64)
    torch.testing.assert_close(e.feature_scores, ig, rtol=0.1, atol=0.02)


def test_groups_grow_from_a_baseline_in_steps():
    model, path = net(), {"baseline": "mean", "steps": 8}
    d = decompose(model, X, EDGES, groups=[[4], [5, 6], [4, 5, 6]], **path)
    f = d.target[:, 5, int(d.total[5].argmax())]
    got = interaction(model, X, EDGES, index=5, a=[4], b=[5, 6], **path)
    assert got == pytest.approx(float(f[2] - f[0] - f[1]), abs=1e-9)
    tree = agglomerate(model, X, EDGES, index=5, **path)
    alone = {next(iter(group.nodes)): group.score for group in tree.leaves}
    assert alone[4] == pytest.approx(float(f[0]), abs=1e-9)


def test_columns_that_do_not_vary_keep_zero():
    x = X.clone()
    x[:, 2] = 3.0
    d = decompose(lambda x: x, x, groups=[[0]], baseline="mean")
    expected = x[0] - x.mean(0)
    expected[2] = 3.0
    assert_close(d.target[0, 0], expected)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"steps": 0}, "steps must be an integer, at least 1"),
        ({"steps": 2.0}, "steps must be an integer"),
        ({"baseline": "median"}, "baseline must be"),
        ({"baseline": torch.zeros(7)}, r"must broadcast to the features \[12, 4\]"),
        ({"baseline": None}, "baseline must be"),
        ({"steps": 4, "of": "edge"}, "not for messages"),
    ],
)
def test_baselines_and_steps_that_cannot_be(asked, said):
    with pytest.raises(ValueError, match=said):
        explain(net(), X, EDGES, index=5, **asked)


def test_steps_on_a_graph_with_types():
    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = SAGEConv((-1, -1), 3)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    model = to_hetero(Linear(), (["a", "b"], [("a", "to", "b"), ("b", "to", "a")]))
    x = {"a": X[:5].float(), "b": X[5:].float()}
    edges = {("a", "to", "b"): torch.tensor([[0, 1, 4], [2, 3, 6]]), ("b", "to", "a"): torch.tensor([[2, 3], [0, 1]])}
    with torch.no_grad():
        model(x, edges)
    model.eval()
    e = explain(model, x, edges, index=0, output="a", baseline="mean", steps=4)
    assert e.residual == pytest.approx(0, abs=1e-4)  # a linear model


# Impact.


def test_impact_is_the_norm_of_what_moves_classes_against_each_other(size):
    e = explain(net(), X, EDGES, index=5)
    centred = e.class_scores - e.class_scores.mean(1, keepdim=True)
    got = explain(net(), X, EDGES, index=5, reading="impact")
    assert_close(got.node_scores, centred.norm(dim=1))
    assert_close(explain(net(), X, EDGES, index=[5, 6], reading="impact")[0].node_scores, got.node_scores)
    one = explain(net(classes=1), X, EDGES, index=5)
    assert_close(explain(net(classes=1), X, EDGES, index=5, reading="impact").node_scores, one.node_scores.abs())


def test_the_mean_of_a_batch_is_that_of_each_graph():
    """So that a graph's scores do not depend on what it is batched with."""
    model = net(level="graph")
    graphs = [Data(features(n, 4, seed=n) + n, edge_index=EDGES[:, (n > EDGES).all(0)]) for n in (5, 8)]
    found = explain(model, Batch.from_data_list(graphs), baseline="mean", steps=4)
    for e, graph in zip(found, graphs, strict=True):
        alone = explain(model, graph.x, graph.edge_index, baseline="mean", steps=4, target=e.target)
        assert_close(e.node_scores, alone.node_scores, atol=1e-9)


@pytest.mark.parametrize("bad", [torch.full((4,), torch.nan), torch.zeros(4, device="meta")])
def test_a_baseline_is_made_of_numbers(bad):
    with pytest.raises(ValueError, match="finite numbers"):
        explain(net(), X, EDGES, index=5, baseline=bad)
