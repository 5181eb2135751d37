"""The fingerprint sees all that an answer depends on, is the same in every process, and names what it cannot see."""

import collections
import dataclasses
import decimal
import enum
import fractions
import functools
import os
import pathlib
import re
import subprocess
import sys
import threading
import types
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GCNConv, Linear, MessagePassing

from xdegree.model_call.fingerprint import Hasher, fingerprint


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Config:
    width: int = 3


class Slotted:
    __slots__ = ("a",)

    def __init__(self, a):
        self.a = a


class Point(NamedTuple):
    x: int
    y: int


EYE = torch.eye(4)
GRAPH = Data(x=EYE, edge_index=torch.tensor([[0, 1], [1, 2]]))

PAIRS = {
    "integers": (3, 4),
    "an integer and a float": (1, 1.0),
    "a bool and an integer": (True, 1),
    "text and bytes": ("a", b"a"),
    "complex": (1 + 2j, 1 - 2j),
    "NumPy integers": (np.int64(3), np.int64(4)),
    "NumPy types": (np.int64(3), np.int32(3)),
    "float32": (np.float32(0.1), np.float32(0.2)),
    "a pattern": (re.compile("a"), re.compile("a", re.IGNORECASE)),
    "a function of NumPy": (np.add, np.multiply),
    "arrays": (np.arange(3), np.arange(3)[::-1]),
    "arrays of objects": (np.array(["a", None], object), np.array(["b", None], object)),
    "sets": ({"a", "b"}, {"a", "c"}),
    "frozen sets": (frozenset([1]), frozenset([2])),
    "lists": ([1, [2]], [[1], 2]),
    "a list and a tuple": ([1], (1,)),
    "dicts": ({"a": 1}, {"a": 2}),
    "the order of a dict": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "named tuples": (Point(1, 2), Point(2, 1)),
    "data classes": (Config(3), Config(4)),
    "slots": (Slotted(1), Slotted(2)),
    "enums": (Colour.RED, Colour.BLUE),
    "decimals": (decimal.Decimal("0.1"), decimal.Decimal("0.2")),
    "fractions": (fractions.Fraction(1, 3), fractions.Fraction(2, 3)),
    "paths": (pathlib.PurePosixPath("a"), pathlib.PurePosixPath("b")),
    "deques": (collections.deque([1]), collections.deque([2])),
    "counters": (collections.Counter("a"), collections.Counter("b")),
    "read-only dicts": (types.MappingProxyType({"a": 1}), types.MappingProxyType({"a": 2})),
    "partial functions": (functools.partial(torch.relu, 1), functools.partial(torch.relu, 2)),
    "slices": (slice(1), slice(2)),
    "dtypes": (torch.float32, torch.float64),
    "generators of numbers": (np.random.default_rng(0), np.random.default_rng(1)),
    "tensors": (torch.zeros(2), torch.tensor([0.0, 1e-30])),
    "shapes": (torch.zeros(2, 3), torch.zeros(3, 2)),
    "negative zero": (torch.tensor(0.0), torch.tensor(-0.0)),
    "half precision": (torch.ones(2).bfloat16(), 2 * torch.ones(2).bfloat16()),
    "conjugates": (torch.tensor([1j]), torch.tensor([1j]).conj()),
    "sparse entries": (EYE.to_sparse(), (2 * EYE).to_sparse()),
    "sparse rows": (EYE.to_sparse_csr(), EYE.flip(0).to_sparse_csr()),
    "sparse columns": (EYE.to_sparse_csc(), EYE.flip(0).to_sparse_csc()),
    "sparse blocks": (EYE.to_sparse_bsr((2, 2)), EYE.flip(0).to_sparse_bsr((2, 2))),
    "layouts": (EYE, EYE.to_sparse()),
    "edges of PyG": (EdgeIndex([[0, 1], [1, 0]]), EdgeIndex([[0, 0], [1, 0]])),
    "graphs": (GRAPH, Data(x=EYE, edge_index=GRAPH.edge_index.flip(0))),
    "graphs of several types": (HeteroData(a={"x": EYE}), HeteroData(b={"x": EYE})),
    "classes": (Config, Slotted),
    "functions": (lambda x: x + 1, lambda x: x + 2),
    "library functions": (torch.relu, torch.tanh),
    "built-in functions": (sum, max),
}


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("name", PAIRS)
def test_different_values_differ(name):
    one, other = PAIRS[name]
    hasher = Hasher()
    assert hasher.digest(one) != hasher.digest(other)
    assert hasher.digest([one]) == fingerprint([one])
    assert hasher.unseen == []


class Own(MessagePassing):
    factor = 1.0

    def __init__(self):
        super().__init__(aggr="add")

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=helper(x)) * self.factor


def helper(x):
    return x * TABLE["scale"]


TABLE = {"scale": 2.0}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.own = GCNConv(3, 3), Own()
        self.register_buffer("mask", torch.ones(3), persistent=False)
        self.plain, self.gain, self.names, self.parent = torch.zeros(2), np.float32(1), {"a", "b"}, [self]
        self.act = lambda x: x * self.gain

    def forward(self, x, edge_index):
        return self.act(self.own(self.conv(x, edge_index), edge_index)) * self.mask


CHANGES = {
    "a parameter": lambda net: net.conv.lin.weight.data.add_(1e-6),
    "a buffer": lambda net: net.mask.add_(1e-6),
    "a plain tensor": lambda net: net.plain.add_(1),
    "a NumPy number": lambda net: setattr(net, "gain", np.float32(2)),
    "a set": lambda net: net.names.add("c"),
    "an attribute of a layer": lambda net: setattr(net.conv, "add_self_loops", False),
    "another layer": lambda net: setattr(net, "more", nn.ReLU()),
    "the order of layers": lambda net: net._modules.update({"conv": net._modules.pop("conv")}),
    "a hook": lambda net: net.conv.register_forward_hook(lambda module, args, output: 2 * output),
    "a method of one object": lambda net: setattr(net, "forward", lambda x, edge_index: x),
}


@pytest.mark.parametrize("bind", [types.MethodType, functools.partial], ids=["method", "partial"])
def test_another_function_bound_under_the_same_name(bind):
    def bound(function):
        net = Net()
        net.forward = bind(function, net)
        return fingerprint(net)

    assert bound(lambda self, x, edge_index: x) == bound(lambda self, x, edge_index: x)
    assert bound(lambda self, x, edge_index: x) != bound(lambda self, x, edge_index: 2 * x)


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_model_differs(name):
    net = Net()
    before = fingerprint(net)
    assert fingerprint(Net()) == before
    CHANGES[name](net)
    assert fingerprint(net) != before


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        (Own, "factor", 3.0),
        (Own, "forward", lambda self, x, edge_index: x),
        (sys.modules[__name__], "TABLE", {"scale": 3.0}),
        (sys.modules[__name__], "helper", lambda x: x),
        (Linear, "forward", lambda self, x: x),  # of a library
    ],
)
def test_changed_code_differs(monkeypatch, place, name, value):
    before = fingerprint(Net())
    monkeypatch.setattr(place, name, value)
    assert fingerprint(Net()) != before


def test_another_process_gets_the_same(tmp_path):
    (tmp_path / "test_fingerprint.py").write_text(pathlib.Path(__file__).read_text())
    code = "import test_fingerprint as t; print(t.fingerprint(t.Net()), t.fingerprint(t.PAIRS['sets'][0]))"
    said = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_a_run_of_the_model_changes_nothing_else():
    net = Net()
    before = fingerprint(net)
    net(torch.eye(3), torch.tensor([[0, 1], [1, 2]]))
    assert fingerprint(net) == before


def test_what_cannot_be_seen_is_named():
    net, hasher = Net(), Hasher()
    net.lock, net.settings = threading.Lock(), {"steps": (i for i in range(3))}
    hasher.digest(net, "net")
    assert hasher.unseen == ["net.lock (_thread.lock)", "net.settings.steps (builtins.generator)"]
    assert hasher.packages == {"numpy", "torch", "torch_geometric"}
    deep = []
    for _ in range(10**4):
        deep = [deep]
    hasher = Hasher()
    assert hasher.digest(deep, "deep")
    assert hasher.unseen == ["deep (builtins.list)"]


@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_sparse_matrix_is_read_by_its_entries():
    n = 10**7  # n × n would not fit into any memory
    ends = torch.arange(5).repeat(2, 1)
    one = torch.sparse_coo_tensor(ends, torch.ones(5), (n, n))
    other = torch.sparse_coo_tensor(ends, torch.arange(5.0), (n, n))
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one.to_sparse_csr()) != fingerprint(other.to_sparse_csr())
