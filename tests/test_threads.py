"""Explaining in one thread leaves the others alone: random numbers, switches, and models that several share."""

import threading

import torch
from helpers import EDGES, assert_close, features, net, ready
from torch import nn

from xdegree import agglomerate, decompose, explain, prepare

X = features()


class Noisy(nn.Module):
    """Draws in every way that takes a generator, and in one that does not."""

    def __init__(self):
        super().__init__()
        self.inner, self.own = net(), torch.Generator().manual_seed(5)

    def forward(self, x, edge_index):
        noise = torch.rand(3, dtype=x.dtype) + torch.randn(3, dtype=x.dtype) + torch.randint(5, (3,))
        noise = noise + torch.empty(3, dtype=x.dtype).uniform_() + torch.rand(3, generator=self.own, dtype=x.dtype)
        noise = noise + torch.rand_like(noise) + torch.bernoulli(torch.full((3,), 0.5, dtype=x.dtype))
        return self.inner(x, edge_index) + noise[torch.randperm(3)]


def test_a_model_that_draws_gives_what_it_would_have_given():
    model = Noisy().eval()
    torch.manual_seed(3)
    before = torch.get_rng_state(), model.own.get_state()
    d = decompose(model, X, EDGES, groups=[[0], [1, 2]])
    e = explain(model, X, EDGES, index=5)
    agglomerate(model, X, EDGES, index=5, max_levels=1)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.equal(model.own.get_state(), before[1])
    own = model(X, EDGES)
    assert torch.equal(d.total, own)
    assert torch.equal(e.prediction, own[5])


def test_other_threads_draw_every_number_once():
    """The numbers that several threads draw from the global generator are those that one would have drawn."""
    model, drawn, done = Noisy().eval(), [], threading.Event()

    def draw():
        while not done.is_set():
            drawn.append(float(torch.rand((), dtype=torch.float64)))

    torch.manual_seed(0)
    thread = threading.Thread(target=draw, daemon=True)
    thread.start()
    try:
        for index in range(6):
            explain(model, X, EDGES, index=index)
    finally:
        done.set()
        thread.join()
    torch.manual_seed(0)
    expected = [float(torch.rand((), dtype=torch.float64)) for _ in drawn]
    assert drawn == expected


def test_several_threads_explain_one_model():
    model = net("gat")
    prepared = prepare(model, X, EDGES)
    expected = [explain(model, X, EDGES, index=index).node_scores for index in range(12)]
    found: dict[int, torch.Tensor] = {}

    def ask(start):
        for index in range(start, 12, 3):
            ask_one = prepared.explain if index % 2 else lambda index: explain(model, X, EDGES, index=index)
            found[index] = ask_one(index=index).node_scores

    threads = [threading.Thread(target=ask, args=(start,)) for start in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index in range(12):
        assert_close(found[index], expected[index])


class Holder:
    """Somebody's own object."""

    def __init__(self):
        self.count, self.values, self.tensor = 0, [1.0], torch.zeros(2)


class Remembers(nn.Module):
    """Writes to everything that it holds, whatever kind it is."""

    def __init__(self):
        super().__init__()
        self.conv = net()
        self.tensor, self.count, self.array = torch.zeros(3), 0, torch.zeros(2).numpy()
        self.holder, self.nested = Holder(), {"a": [torch.zeros(1), {"b": Holder()}]}
        self.alias = self.tensor
        self.register_buffer("seen", torch.zeros(()), persistent=False)

    def forward(self, x, edge_index):
        self.tensor += 1
        self.tensor.data.mul_(2)
        self.alias[0] = 7
        self.count += 1
        self.array[0] += 1
        self.holder.count += 1
        self.holder.values.append(2.0)
        self.holder.tensor.add_(1)
        self.nested["a"][0].add_(1)
        self.nested["a"][1]["b"].values.clear()
        self.nested["new"] = x
        self.seen += 1
        self.late = x
        return self.conv(x, edge_index) + self.alias.sum() * 0


def test_whatever_a_model_holds_stays_as_it_was():
    model = ready(Remembers())
    for ask in (
        lambda: explain(model, X, EDGES, index=3),
        lambda: explain(model, X, EDGES, index="all", of="edge"),
        lambda: decompose(model, X, EDGES, groups=[[0]]),
        lambda: prepare(model, X, EDGES).agglomerate(index=3),
    ):
        ask()
        held, inner = model.holder, model.nested["a"][1]["b"]
        assert model.tensor.tolist() == [0, 0, 0]
        assert model.alias is model.tensor
        assert (model.count, model.array.tolist(), float(model.seen)) == (0, [0, 0], 0)
        assert (held.count, held.values, held.tensor.tolist()) == (0, [1.0], [0, 0])
        assert (inner.values, model.nested["a"][0].tolist(), list(model.nested)) == ([1.0], [0], ["a"])
        assert not hasattr(model, "late")
