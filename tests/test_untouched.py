"""Model, inputs and global switches are as before: after success, after an exception, among threads."""

import copy
import threading
from contextlib import suppress

import pytest
import torch
import torch_geometric.utils
from helpers import EDGES, assert_close, features, net, ready, singles
from torch import nn
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from xdegree import LostPortionsError, MissingRuleError, Options, check, decompose, explain

X = features()


class Everything(nn.Module):
    """Whatever a forward pass could leave traces in: a cache, a buffer, an attribute, a draw of random numbers."""

    def __init__(self):
        super().__init__()
        self.cached = GCNConv(4, 4, cached=True)
        self.gat = GATConv(4, 4)
        self.out = nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros(()))
        self.last = None
        self.kept = []
        self.fail = ""

    def forward(self, x, edge_index):
        self.calls += 1
        x = self.gat(self.cached(x, edge_index).relu(), edge_index)
        self.last = x
        if self.fail == "raise":
            raise ZeroDivisionError
        if self.fail == "rule":
            x = torch.special.zeta(x.abs() + 2, 3.0)
        return self.out(x + torch.rand(()))


def switches() -> list:
    return [
        torch.backends.mha.get_fastpath_enabled(),
        torch._C._get_mkldnn_enabled(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch._C._len_torch_dispatch_stack(),
        torch.get_default_dtype(),
        torch_geometric.utils.softmax.__code__,
        torch_geometric.utils.softmax.__defaults__,
        torch.get_rng_state().tolist(),
    ]


def state_of(model: nn.Module) -> list:
    """Everything that hangs on the modules, tensors by identity and content."""
    found = []
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            found.append((path, name, id(value), repr(sorted(value)) if isinstance(value, dict) else repr(value)))
        found += [
            (path, name, id(p), p.tolist(), p.requires_grad) for name, p in module.named_parameters(recurse=False)
        ]
        found += [(path, name, id(b), b.tolist()) for name, b in module.named_buffers(recurse=False)]
    return found


CALLS = {
    "decompose": lambda model: decompose(model, X, EDGES, groups=singles(), probes=["gat"]),
    "cut": lambda model: decompose(model, X, EDGES, groups=singles(), memory=50_000),
    "explain": lambda model: explain(model, X, EDGES, index=3, reading="strength", edge_scores="pair"),
    "check": lambda model: check(model, X, EDGES),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fail", ["", "raise", "rule"])
@pytest.mark.parametrize("grad", [True, False])
def test_everything_is_as_before(call, fail, grad):
    model = ready(Everything())
    model.fail = fail
    seen = []
    model.gat.register_forward_hook(lambda module, args, out: seen.append(type(out).__name__))
    expected = {"": None, "raise": ZeroDivisionError, "rule": None if call == "check" else MissingRuleError}[fail]
    with torch.set_grad_enabled(grad):
        before, globally = state_of(model), switches()
        if expected is None:
            CALLS[call](model)
        else:
            with pytest.raises(expected):
                CALLS[call](model)
        assert switches() == globally
        assert state_of(model) == before
    assert seen  # the user's own hook went on working


@pytest.mark.parametrize("mode", ["train", "mixed", "eval"])
def test_modes_of_all_modules_stay(mode):
    model = net("gat").train(mode != "eval")
    if mode == "mixed":
        model.convs[1].eval()
    before = [module.training for module in model.modules()]
    decompose(model, X, EDGES, groups=[[0]])
    explain(model, X, EDGES, index=0)
    assert [module.training for module in model.modules()] == before


@pytest.mark.parametrize("fastpath", [True, False])
@pytest.mark.parametrize("onednn", [True, False])
def test_switches_that_the_user_has_set_stay(fastpath, onednn):
    before = torch.backends.mha.get_fastpath_enabled(), torch._C._get_mkldnn_enabled()
    try:
        torch.backends.mha.set_fastpath_enabled(fastpath)
        torch._C._set_mkldnn_enabled(onednn)
        decompose(ready(Everything()), X, EDGES, groups=[[0]])
        assert (torch.backends.mha.get_fastpath_enabled(), torch._C._get_mkldnn_enabled()) == (fastpath, onednn)
    finally:
        torch.backends.mha.set_fastpath_enabled(before[0])
        torch._C._set_mkldnn_enabled(before[1])


def test_an_empty_cache_stays_empty():
    model = ready(GCNConv(4, 3, cached=True))
    d = decompose(model, X, EDGES, groups=singles())
    assert model._cached_edge_index is None
    assert torch.equal(d.target, decompose(uncached(model), X, EDGES, groups=singles()).target)


def test_a_full_cache_stays_and_is_used():
    model = ready(GCNConv(4, 3, cached=True))
    other = EDGES[:, :6]
    with torch.no_grad():
        model(X, other)
    cache = model._cached_edge_index
    entries = [entry.clone() for entry in cache]
    d = decompose(model, X, EDGES, groups=singles())
    assert model._cached_edge_index is cache
    assert all(torch.equal(a, b) for a, b in zip(cache, entries, strict=True))
    assert torch.equal(d.total, model(X, EDGES))
    torch.testing.assert_close(d.target, decompose(uncached(model), X, other, groups=singles()).target)


def uncached(model: GCNConv) -> GCNConv:
    plain = copy.deepcopy(model)
    plain.cached = False
    plain._cached_edge_index = None
    return plain


def test_explain_with_a_full_cache():
    model = ready(GCNConv(4, 3, cached=True))
    with torch.no_grad():
        model(X, EDGES)
    e = explain(model, X, EDGES, index=5)
    expected = decompose(uncached(model), X, EDGES, groups=singles()).target[:, 5, e.target]
    torch.testing.assert_close(e.node_scores, expected, rtol=0, atol=1e-12)


def test_containers_on_the_model_keep_no_portions():
    class Collects(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 3)
            self.list, self.dict, self.set = [], {}, set()

        def forward(self, x, edge_index):
            self.list.append(x)
            self.dict["x"] = x
            self.set.add(x)
            self.dict.setdefault("deep", []).append(x)
            return self.lin(x)

    model = ready(Collects())
    decompose(model, X, EDGES, groups=[[0]])
    decompose(model, X, EDGES, groups=[[0]])
    assert (model.list, model.dict, model.set) == ([], {}, set())


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        self.seen += 1
        return x * 2


class Refers(nn.Module):
    """Modules that it does not own: in lists, dicts and objects, one of which leads back to it."""

    def __init__(self):
        super().__init__()
        self.conv, self.plain, self.named = GCNConv(4, 3), [Counting()], {"a": (Counting(),)}
        self.plain[0].owner = [self]

    def forward(self, x, edge_index):
        return self.conv(self.named["a"][0](self.plain[0](x)), edge_index)


def test_modules_that_the_model_only_refers_to():
    model = ready(Refers())
    d = decompose(model, X, EDGES, groups=singles())
    assert_close(d.total, model.conv(X * 4, EDGES).detach())
    assert_close(explain(model, X, EDGES, index=3).class_scores, d.target[:, 3])
    for module in (model.plain[0], model.named["a"][0]):
        assert module.calls == int(module.seen) == 0


def test_inputs_are_not_modified():
    class Reckless(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 3)

        def forward(self, x, edge_index, edge_weight):
            x.relu_()
            x[0] = 7.0
            edge_weight.mul_(2)
            edge_index.clamp_(max=5)
            return self.lin(x) * edge_weight.sum()

    model, x, edge_index, weight = ready(Reckless()), features(), EDGES.clone(), torch.ones(EDGES.shape[1]).double()
    mask = torch.eye(12, dtype=torch.float64)
    for call in (
        lambda: decompose(model, x, edge_index, weight, groups=mask),
        lambda: explain(model, x, edge_index, weight, index=1),
        lambda: check(model, x, edge_index, weight),
    ):
        call()
        assert torch.equal(x, X)
        assert torch.equal(edge_index, EDGES)
        assert torch.equal(weight, torch.ones_like(weight))
        assert torch.equal(mask, torch.eye(12, dtype=torch.float64))


def test_results_share_no_memory_with_inputs_or_parameters():
    x = features()
    d = decompose(lambda x, edge_index: x, x, EDGES, groups=singles())
    d.total.zero_()
    d.target.zero_()
    assert torch.equal(x, X)
    model = net()
    e = explain(model, x, EDGES, index=0)
    assert e.edge_index is None or e.edge_index.data_ptr() == EDGES.data_ptr() or torch.equal(e.edge_index, EDGES)
    assert not e.node_scores.requires_grad
    assert not e.prediction.requires_grad


def test_features_that_require_gradients():
    x = features().requires_grad_()
    d = decompose(net(), x, EDGES, groups=[[0], [1]])
    assert x.requires_grad
    assert x.grad is None
    assert not d.target.requires_grad
    assert not d.total.requires_grad


def together(jobs: list) -> list:
    """Run jobs at the same moment, each in a thread of its own; their results or exceptions."""
    barrier, results = threading.Barrier(len(jobs)), [None] * len(jobs)

    def work(number: int, job) -> None:
        barrier.wait()
        try:
            results[number] = job()
        except Exception as error:  # noqa: BLE001
            results[number] = error

    threads = [threading.Thread(target=work, args=(number, job)) for number, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("kind", ["gcn", "gat"])
def test_two_threads_explain_the_same_model(kind):
    model, globally = net(kind), switches()
    before = state_of(model)
    groups = [singles(), [[0, 1], [4, 7, 9]]]
    options = [Options(), Options(bias="background", activation="both-orders")]
    expected = [
        decompose(model, X, EDGES, groups=g, options=o, probes=["convs.1"])
        for g, o in zip(groups, options, strict=True)
    ]
    for _ in range(30):
        jobs = [
            lambda g=g, o=o: decompose(model, X, EDGES, groups=g, options=o, probes=["convs.1"])
            for g, o in zip(groups, options, strict=True)
        ]
        for got, alone in zip(together(jobs), expected, strict=True):
            assert torch.equal(got.total, alone.total)
            assert torch.equal(got.target, alone.target)
            assert torch.equal(got.probes["convs.1"].target, alone.probes["convs.1"].target)
    assert switches() == globally
    assert state_of(model) == before


def test_threads_that_fail_disturb_nobody():
    good, bad, globally = net("gat"), ready(Everything()), switches()
    bad.fail = "raise"
    expected = explain(good, X, EDGES, index=4).node_scores
    for _ in range(15):
        got, error = together(
            [lambda: explain(good, X, EDGES, index=4), lambda: decompose(bad, X, EDGES, groups=singles())]
        )
        assert torch.equal(got.node_scores, expected)
        assert isinstance(error, ZeroDivisionError)
    assert switches() == globally


def test_a_plain_run_in_another_thread_gives_plain_results():
    class Waits(nn.Module):
        """Stops in the middle of a decomposition until the other thread is done."""

        def __init__(self):
            super().__init__()
            self.conv = GATConv(4, 3)

        def forward(self, x, edge_index):
            reached.set()
            assert done.wait(20)
            return self.conv(x, edge_index)

    reached, done = threading.Event(), threading.Event()
    model, plain = ready(Waits()), net("gat")
    with torch.no_grad():
        expected = plain(X, EDGES)
        logits = torch_geometric.utils.softmax(X, torch.arange(12) // 3)
    results, answer = [], []

    def other() -> None:
        reached.wait(20)
        try:
            results.append(torch.is_grad_enabled())
            results.append(plain(X, EDGES).detach())
            results.append(torch_geometric.utils.softmax(X, torch.arange(12) // 3))
            results.append(torch.zeros(3))
        finally:
            done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with suppress(AssertionError):
        answer.append(decompose(model, X, EDGES, groups=[[0]]))
    thread.join()
    assert results[0] is True
    assert torch.equal(results[1], expected)
    assert torch.equal(results[2], logits)
    assert type(results[3]) is torch.Tensor
    done.set()
    assert torch.equal(answer[0].target, decompose(model, X, EDGES, groups=[[0]]).target)


def test_random_state_stays_without_the_models_help():
    model, state = net("gat"), torch.get_rng_state()
    explain(model, X, EDGES, index=0, edge_scores="pair")
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("call", ["decompose", "explain", "check"])
def test_random_state_is_put_back_after_random_models(call):
    def noisy(x, edge_index):
        return x * 2 + torch.randn(4).to(x)

    torch.manual_seed(3)
    state = torch.get_rng_state()
    {
        "decompose": lambda: decompose(noisy, X, EDGES, groups=[[0]]),
        "explain": lambda: explain(noisy, X, EDGES, index=0),
        "check": lambda: check(noisy, X, EDGES),
    }[call]()
    assert torch.equal(torch.get_rng_state(), state)


def test_portions_that_a_hook_keeps_do_not_work_outside():
    kept = []
    model = net()
    model.lin1.register_forward_hook(lambda module, args, out: kept.append(out))
    decompose(model, X, EDGES, groups=[[0]])
    with pytest.raises(RuntimeError, match="outside of the run"):
        kept[0] + 1
    assert torch.equal(kept[0].total, decompose(model, X, EDGES, groups=[[0]], probes=["lin1"]).probes["lin1"].total)


def test_a_parameter_written_with_portions_is_refused_and_unharmed():
    class Overwrites(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(12, 4).double())

        def forward(self, x, edge_index):
            self.weight.data.add_(x)
            return self.weight * 1

    model = Overwrites()
    with pytest.raises(LostPortionsError):
        decompose(model, X, EDGES, groups=[[0]])
    assert torch.equal(model.weight, torch.zeros(12, 4).double())


def test_running_twice_gives_the_same_bits():
    model = net("gat")
    first, second = (decompose(model, X, EDGES, groups=singles()) for _ in range(2))
    assert torch.equal(first.target, second.target)


def test_gcn_norm_is_not_left_with_portions():
    decompose(net(), X, EDGES, groups=[[0]])
    _, weight = gcn_norm(EDGES, None, 12)
    assert type(weight) is torch.Tensor
