"""Targets that may only become attention weights are made when asked for, from what was there when they were left."""

import pytest
import torch
from helpers import features
from torch import nn
from torch_geometric.nn import GATConv, GATv2Conv, SuperGATConv, TransformerConv

from xdegree import Options, decompose, explain
from xdegree.engine import registry
from xdegree.engine.run import Run

X = features()
EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 3], [1, 2, 3, 4, 5, 0, 3, 1]])
GROUPS = [[0], [1, 2], [3, 4, 5], []]


def writes_an_operand(x):
    scores = x * 2
    x = x.clone().add_(1) * 1
    y = x + scores
    x.mul_(3)  # y was made before
    return y + x


def writes_a_factor(x):
    weight = torch.ones_like(x[:1]) * 2
    y = x * weight
    weight.fill_(100.0)
    return y + weight


def writes_a_row(x):
    x = x.clone()
    y = x * 2
    x[0] = 7.0
    return y + x


def writes_a_result(x):
    y = x * 2
    z = y + 1
    y.sub_(x)
    return z * 1 + y


def writes_with_out(x):
    buffer = torch.zeros_like(x)
    y = x + buffer
    torch.mul(x, 5, out=buffer)
    return y + buffer


def changes_a_shape(x):
    y = x * 2
    z = y + x
    y.t_()
    return z + y.t()


def waits_for_long(x):
    for _ in range(500):
        x = x * 1.001
    return x


PROGRAMS = [
    writes_an_operand,
    writes_a_factor,
    writes_a_row,
    writes_a_result,
    writes_with_out,
    changes_a_shape,
    waits_for_long,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_what_is_written_in_between_changes_nothing(program, monkeypatch):
    later = decompose(program, X, groups=GROUPS)
    monkeypatch.setattr(Run, "_later", None)
    monkeypatch.setattr(registry, "_SCHEMAS", {})
    monkeypatch.setattr(registry, "SCORING", frozenset())
    at_once = decompose(program, X, groups=GROUPS)
    assert torch.equal(later.total, at_once.total)
    assert torch.equal(later.target, at_once.target)


class Attending(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, edge_index):
        return self.layer(x, edge_index)


@pytest.mark.parametrize("layer", [GATConv, GATv2Conv, SuperGATConv, TransformerConv])
def test_what_attention_is_made_of_is_never_asked_for(layer, monkeypatch):
    torch.manual_seed(0)
    model = Attending(layer(X.shape[1], 4, heads=2)).double().eval()
    asked, rule = [], Run._rule
    monkeypatch.setattr(Run, "_rule", lambda run, func, *args: asked.append(str(func)) or rule(run, func, *args))
    x = X.double()
    whole = decompose(model, x, EDGES, groups=GROUPS)
    few = len(asked)
    decompose(model, x, EDGES, groups=GROUPS, options=Options(attention="split"))
    assert few < len(asked) - few
    e = explain(model, x, EDGES, index=3, target=1)
    single = decompose(model, x, EDGES, groups=[[node] for node in range(len(x))])
    assert torch.allclose(e.scores, single.target[:, 3, 1])
    assert whole.target.requires_grad is False
