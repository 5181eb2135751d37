"""In many steps scores are integrated gradients and add up, whatever a model computes: over all rules, and models.

K steps are a Riemann sum of the integral, so what they miss falls with 1/K where the function is smooth.
"""

import pytest
import torch
from helpers import EDGES, as_large, features, ready
from rule_cases import RULE_CASES, RuleCase
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves
from torch_geometric.nn import (
    FiLMConv,
    GATv2Conv,
    GCNConv,
    InstanceNorm,
    LayerNorm,
    ResGatedGraphConv,
    SAGEConv,
    TransformerConv,
)

from xdegree import Options, decompose, explain

STEPS = 24
SPLIT = Options(attention="split")
NO_DERIVATIVE = (  # autograd refuses them, or is wrong for part of a source
    *("scatter_add: onto portions, part of the source", "scatter_add: into a part", "scatter_reduce: sum into a part"),
    *("scatter_reduce: max into a part", "structural: detach", "structural: detach_copy"),
)
STEEP = (
    *("activation: hardshrink", "activation: threshold", "distance: remainder", "distance: fmod", "magnitude: tan"),
    *("div: plain numerator", "extreme: amin of ties", "group_norm: affine"),
)
"""With a jump or a pole on the way the sum is right, but it takes more steps to be the integral, or all of them."""


def first(output) -> Tensor:
    return next(t for t in tree_leaves(output) if isinstance(t, Tensor) and t.is_floating_point())


def integral(f, x: Tensor, baseline: Tensor, points: int = 24) -> Tensor:
    """Integrated gradients ``[N]`` of a number, by the midpoint rule."""
    total = torch.zeros_like(x)
    for point in range(points):
        at = (baseline + (point + 0.5) / points * (x - baseline)).requires_grad_()
        total += torch.autograd.grad(f(at), at)[0]
    return ((x - baseline) * total / points).sum(1)


@pytest.mark.parametrize("case", RULE_CASES, ids=lambda case: f"{case.rule}: {case.name}")
@pytest.mark.filterwarnings("ignore")
def test_every_rule_in_many_steps_is_the_integral(case: RuleCase) -> None:
    x, noise = (torch.randn(6, 4, generator=torch.Generator().manual_seed(seed)).double() for seed in (3, 5))
    x = x.abs() + 0.3 if case.positive else x
    baseline = x * 0.5 + 0.1 * noise.abs()
    output, start = first(case.function(x.clone())), first(case.function(baseline.clone()))
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).double()
    asked = {"baseline": baseline, "steps": STEPS, "options": SPLIT}
    found = first(decompose(case.function, x, groups=torch.eye(6).bool(), **asked).target)
    scores, change = (found * weights).reshape(6, -1).sum(1), ((output - start) * weights).sum()
    size = 0.15 * float(scores.abs().sum()) + 1e-2
    assert float(scores.sum()) == pytest.approx(float(change.detach()), abs=size)
    if f"{case.rule}: {case.name}" not in NO_DERIVATIVE + STEEP:
        expected = integral(lambda at: (first(case.function(at * 1.0)) * weights).sum(), x, baseline)
        torch.testing.assert_close(scores.detach(), expected, rtol=0, atol=size)


class Network(nn.Module):
    """A convolution, perhaps a norm, and what reads the nodes."""

    def __init__(self, conv: nn.Module, norm: nn.Module | None = None) -> None:
        super().__init__()
        self.conv, self.norm, self.out = conv, norm or nn.Identity(), nn.Linear(8, 3)
        ready(self)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.out(self.norm(self.conv(x, edge_index).tanh()))


class Linked(Network):
    """The product of the two ends of a link."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
        h = self.conv(x, edge_index).tanh()
        return (h[edge_label_index[0]] * h[edge_label_index[1]]).sum(-1)


class Ended(Network):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x, edge_index).softmax(-1)


MODELS = {
    "attention": lambda: Network(GATv2Conv(4, 8)),
    "dot products": lambda: Network(TransformerConv(4, 8)),
    "gates": lambda: Network(ResGatedGraphConv(4, 8)),
    "factors": lambda: Network(FiLMConv(4, 8)),
    "length one": lambda: Network(SAGEConv(4, 8, normalize=True)),
    "norm of nodes": lambda: Network(GCNConv(4, 8), LayerNorm(8, mode="node")),
    "norm of the graph": lambda: Network(GCNConv(4, 8), InstanceNorm(8)),
    "softmax": lambda: Ended(GCNConv(4, 8)),
}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_models_that_multiply_and_normalise_add_up(name, large, monkeypatch) -> None:
    if large:
        as_large(monkeypatch)
    model, x, baseline = MODELS[name](), features(), features(seed=8) / 2
    asked = {"index": 5, "target": 1, "baseline": baseline, "logits": False, "options": SPLIT}
    expected = integral(lambda at: model(at, EDGES)[5, 1], x, baseline)
    one, other = (explain(model, x, EDGES, steps=steps, **asked) for steps in (4, 24))
    torch.testing.assert_close(other.node_scores, expected, rtol=0, atol=0.1 * float(expected.abs().sum()))
    assert abs(other.residual) < 0.1 * float(expected.abs().sum())
    d = decompose(model, x, EDGES, groups=torch.eye(12).bool(), baseline=baseline, steps=4, options=SPLIT)
    torch.testing.assert_close(d.target[:, 5, 1], one.node_scores, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("options", [Options(), Options.paper(), Options(product="target", bias="background")], ids=str)
def test_links_add_up_under_all_options(options) -> None:
    """Steps choose among the rules themselves, and say so."""
    model, x, links = Linked(GCNConv(4, 8)), features(), torch.tensor([[0, 3], [7, 8]])
    e = explain(model, x, EDGES, edge_label_index=links, index=1, steps=24, options=options)
    expected = integral(lambda at: model(at, EDGES, links)[1], x, torch.zeros_like(x))
    torch.testing.assert_close(e.node_scores, expected, rtol=0, atol=0.1 * float(expected.abs().sum()))
    assert e.options.loses


def test_attention_that_is_taken_as_given_is_in_the_residual() -> None:
    """By default the weights of neighbors stand still in each step: the scores are what the values alone add."""
    model, x, baseline = MODELS["attention"](), features(), features(seed=8) / 2
    whole, split = (
        explain(model, x, EDGES, index=5, target=1, baseline=baseline, steps=24, options=Options(attention=attention))
        for attention in ("whole", "split")
    )
    change = float((model(x, EDGES) - model(baseline, EDGES)).detach()[5, 1])
    for e in (whole, split):
        assert e.total_scores + e.residual == pytest.approx(change)
    assert abs(split.residual) < 0.5 * abs(whole.residual)
