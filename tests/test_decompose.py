"""Groups in all their forms, chunks, probes, and the ways in which models are called and written."""

import copy
import sys

import pytest
import torch
import torch.nn.functional as F
from helpers import CONVS, EDGES, PAIR_BATCH, PAIR_EDGES, assert_close, features, net, ready, singles
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import BatchNorm, GATConv, GATv2Conv, GCNConv, TransformerConv, global_max_pool
from torch_geometric.utils import scatter

from xdegree import Options, decompose
from xdegree.engine.portions import carries

X = features()
GROUPS = [[0], [4, 7], [], list(range(12)), [11, 2, 5]]


FORMS = ["tuples", "sets", "frozensets", "ranges", "tensors", "scalars", "dicts", "bool", "double", "float"]
FORMS += ["features", "shares"]


def mask_of(groups, nodes=12) -> torch.Tensor:
    mask = torch.zeros(len(groups), nodes, dtype=torch.bool)
    for number, group in enumerate(groups):
        mask[number, list(group)] = True
    return mask


@pytest.mark.parametrize(
    "groups",
    [
        tuple(tuple(group) for group in GROUPS),
        [set(group) for group in GROUPS],
        [frozenset(group) for group in GROUPS],
        [[0], [4, 7], range(0), range(12), iter([11, 2, 5])],
        [torch.tensor(group, dtype=torch.long) for group in GROUPS],
        [[torch.tensor(node) for node in group] for group in GROUPS],
        [dict.fromkeys(group) for group in GROUPS],
        mask_of(GROUPS),
        mask_of(GROUPS).double(),
        mask_of(GROUPS).float(),
        mask_of(GROUPS).unsqueeze(-1).expand(-1, -1, 4),
        mask_of(GROUPS).unsqueeze(-1).expand(-1, -1, 4).double(),
    ],
    ids=FORMS,
)
def test_forms_of_groups_agree(groups):
    model = net("gat")
    assert torch.equal(decompose(model, X, EDGES, groups=groups).target, expected_for_groups(model))


def expected_for_groups(model):
    return decompose(model, X, EDGES, groups=GROUPS).target


def test_groups_from_a_generator():
    model = net()
    d = decompose(model, X, EDGES, groups=(group for group in GROUPS))
    assert torch.equal(d.target, expected_for_groups(model))


def test_shares_and_features_are_linear_where_the_model_is():
    model = ready(GCNConv(4, 3, bias=False))
    shares = torch.rand(5, 12, generator=torch.Generator().manual_seed(0)).double()
    d = decompose(model, X, EDGES, groups=shares)
    assert_close(d.target, torch.stack([model(X * share.unsqueeze(-1), EDGES) for share in shares]))
    mask = torch.rand(5, 12, 4, generator=torch.Generator().manual_seed(1)).lt(0.5)
    d = decompose(model, X, EDGES, groups=mask)
    assert_close(d.target, torch.stack([model(X * one, EDGES) for one in mask]))


def test_features_of_other_shapes():
    vector = features(12, 1).squeeze(-1)
    d = decompose(lambda x: x * 3, vector, groups=singles())
    assert torch.equal(d.target, torch.diag(vector * 3))
    cube = features(12, 6).reshape(12, 2, 3)
    d = decompose(lambda x: x * 3, cube, groups=[[1]])
    assert torch.equal(d.target[0, 1], cube[1] * 3)
    assert d.target.abs().sum() == d.target[0, 1].abs().sum()


def test_background_is_the_rest_and_results_are_frozen():
    d = decompose(net(), X, EDGES, groups=GROUPS)
    assert torch.equal(d.background, d.total - d.target)
    with pytest.raises(AttributeError):
        d.total = None
    assert "(5, 12, 3)" in repr(d)


@pytest.fixture
def passes(monkeypatch):
    """The number of groups in each pass of a decomposition."""
    module = sys.modules[decompose.__module__]  # the name in the package is the function
    counted, one_pass = [], module.one_pass

    def count(model, call, source, share, *rest):
        counted.append(len(share))
        return one_pass(model, call, source, share, *rest)

    monkeypatch.setattr(module, "one_pass", count)
    return counted


@pytest.mark.parametrize("kind", CONVS)
@pytest.mark.parametrize("memory", [1, 30_000, "60KB", "0.1 MiB"])
def test_chunks_do_not_change_the_answer(kind, memory, passes):
    model, groups = net(kind, level="graph"), [*singles(), *GROUPS]
    whole = decompose(model, X, EDGES, groups=groups, probes=["lin1"])
    assert passes == [17]
    cut = decompose(model, X, EDGES, groups=groups, probes=["lin1"], memory=memory)
    assert len(passes) > 2
    assert sum(passes[1:]) == 17
    assert memory != 1 or passes[1:] == [1] * 17
    assert torch.equal(cut.total, whole.total)
    assert_close(cut.target, whole.target)
    assert_close(cut.probes["lin1"].target, whole.probes["lin1"].target)


def test_chunks_of_tuples(passes):
    def model(x, edge_index):
        return {"a": x * 2, "b": (x.sum(), 7, "text", edge_index)}

    whole = decompose(model, X, EDGES, groups=singles())
    cut = decompose(model, X, EDGES, groups=singles(), memory=1)
    assert len(passes) == 13
    assert torch.equal(cut.target["a"], whole.target["a"])
    assert_close(cut.target["b"][0], whole.target["b"][0])


def test_totals_are_computed_once():
    calls = []

    def model(x, edge_index):
        calls.append(len(x))
        return x * 2

    decompose(model, X, EDGES, groups=singles())
    assert len(calls) == 1


def test_probes_are_what_the_modules_put_out():
    model = net()
    probes, paper = ["convs.0", "convs.1", "lin1", "lin2", "lin2:input", ""], Options.paper()
    d = decompose(model, X, EDGES, groups=GROUPS, probes=probes, options=paper)
    first = decompose(model.convs[0], X, EDGES, groups=GROUPS, options=paper)
    assert torch.equal(d.probes["convs.0"].total, first.total)
    assert torch.equal(d.probes["convs.0"].target, first.target)
    assert torch.equal(d.probes["lin2"].target, d.target)
    assert torch.equal(d.probes[""].target, d.target)
    hidden = d.probes["lin1"]
    assert torch.equal(d.probes["lin2:input"].total, hidden.total.relu())
    assert torch.equal(d.probes["lin2:input"].target, hidden.target.relu())
    assert_close(d.probes["convs.1"].background, d.probes["convs.1"].total - d.probes["convs.1"].target)


def test_one_probe_as_text():
    d = decompose(net(), X, EDGES, groups=GROUPS, probes="lin1")
    assert list(d.probes) == ["lin1"]


def test_probes_are_not_changed_by_what_comes_later():
    class InPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 3)

        def forward(self, x):
            return self.second(self.first(x).relu_())

    model = ready(InPlace())
    d = decompose(model, X, groups=GROUPS, probes=["first"])
    expected = decompose(model.first, X, groups=GROUPS)
    assert torch.equal(d.probes["first"].total, expected.total)
    assert torch.equal(d.probes["first"].target, expected.target)


def test_a_module_that_is_called_twice_or_shared():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 4)
            self.same = self.lin

        def forward(self, x):
            return self.same(self.lin(x).relu())

    model = ready(Twice())
    d = decompose(model, X, groups=GROUPS, probes=["lin"])
    assert torch.equal(d.total, model(X))
    assert torch.equal(d.probes["lin"].target, d.target)


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", CONVS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_total_is_the_models_own_output_bit_for_bit(kind, level, dtype):
    model, x = net(kind, level, dtype=dtype), features(dtype=dtype)
    args = (x, PAIR_EDGES, PAIR_BATCH) if level == "graph" else (x, EDGES)
    d = decompose(model, *args, groups=GROUPS)
    with torch.no_grad():
        assert torch.equal(d.total, model(*args))
    assert d.target.dtype == d.total.dtype == dtype
    assert d.target.shape == (5, *d.total.shape)
    assert type(d.total) is type(d.target) is torch.Tensor


@pytest.mark.parametrize("kind", ["gcn", "gat"])
def test_data_and_batch_in_place_of_tensors(kind):
    model = net(kind, "graph")
    expected = decompose(model, X, PAIR_EDGES, PAIR_BATCH, groups=GROUPS).target
    batch = Batch.from_data_list(
        [
            Data(x=X[:5], edge_index=PAIR_EDGES[:, (PAIR_EDGES < 5).all(0)]),
            Data(x=X[5:], edge_index=PAIR_EDGES[:, (PAIR_EDGES >= 5).all(0)] - 5),
        ]
    )
    assert_close(decompose(model, batch, groups=GROUPS).target, expected)
    assert torch.equal(
        decompose(model, Data(x=X, edge_index=PAIR_EDGES, batch=PAIR_BATCH), groups=GROUPS).target, expected
    )
    one = decompose(model, X, EDGES, groups=GROUPS).target
    assert torch.equal(decompose(model, Data(x=X, edge_index=EDGES), groups=GROUPS).target, one)


def test_data_and_keyword_arguments():
    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GCNConv(4, 3)

        def forward(self, x, edge_index, edge_weight=None, scale=1.0):
            return self.conv(x, edge_index, edge_weight) * scale

    model, weight = ready(Weighted()), torch.rand(EDGES.shape[1]).double()
    expected = decompose(model, X, EDGES, weight, 2.0, groups=GROUPS).target
    data = Data(x=X, edge_index=EDGES, edge_weight=weight)
    for got in (
        decompose(model, X, EDGES, edge_weight=weight, scale=2.0, groups=GROUPS),
        decompose(model, x=X, edge_index=EDGES, edge_weight=weight, scale=2.0, groups=GROUPS),
        decompose(model, data, scale=2.0, groups=GROUPS),
        decompose(model, Data(x=X, edge_index=EDGES), edge_weight=weight, scale=2.0, groups=GROUPS),
    ):
        assert torch.equal(got.target, expected)


def test_model_that_takes_data():
    class OnData(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GCNConv(4, 3)

        def forward(self, data):
            return self.conv(data.x, data.edge_index) * data.scale

    model, data = ready(OnData()), Data(x=X, edge_index=EDGES, scale=2.0)
    expected = decompose(model.conv, X, EDGES, groups=GROUPS).target * 2
    assert_close(decompose(model, data, groups=GROUPS).target, expected)
    assert torch.equal(data.x, X)
    assert type(data.x) is torch.Tensor


def test_names_that_collide_go_through_model_kwargs():
    def model(x, groups, memory=1.0):
        return x * groups * memory

    d = decompose(model, X, groups=GROUPS, model_kwargs={"groups": 3.0, "memory": 2.0})
    assert torch.equal(d.total, X * 6)
    assert_close(d.target, decompose(lambda x: x * 6, X, groups=GROUPS).target)


def test_outputs_in_containers():
    model = net()

    def several(x, edge_index):
        logits = model(x, edge_index)
        return logits, {"sum": logits.sum(0), "edges": edge_index, "nothing": None}

    d = decompose(several, X, EDGES, groups=GROUPS)
    logits = decompose(model, X, EDGES, groups=GROUPS)
    assert torch.equal(d.target[0], logits.target)
    assert_close(d.target[1]["sum"], logits.target.sum(1))
    assert torch.equal(d.total[1]["edges"], EDGES)
    assert_close(d.background[0], logits.background)


ORDERS = ("target-first", "target-last", "both-orders")


def test_options_reach_the_rules():
    model = net()
    default = decompose(model, X, EDGES, groups=GROUPS).target
    others = (Options(bias="background"), Options.paper(), *(Options.paper(activation=order) for order in ORDERS))
    for options in others:
        assert not torch.allclose(decompose(model, X, EDGES, groups=GROUPS, options=options).target, default)
    assert torch.equal(decompose(model, X, EDGES, groups=GROUPS, options=Options()).target, default)


def test_eval_mode_of_dropout_and_batch_norm():
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.drop = GCNConv(4, 4), BatchNorm(4), nn.Dropout(0.5)

        def forward(self, x, edge_index):
            return F.dropout(self.drop(self.norm(self.conv(x, edge_index))), training=self.training)

    model = ready(Normed())
    model.norm.module.running_mean.normal_()
    model.norm.module.running_var.uniform_(0.5, 2)
    d = decompose(model, X, EDGES, groups=[[], range(12)])
    assert torch.equal(d.total, model(X, EDGES))
    assert not d.target[0].any()
    assert_close(d.target[1], d.total)


# Ways of writing the same function; each pair must have the same target.
def clean_relu(x, edge_index):
    return x.relu() * 2


def inplace_relu(x, edge_index):
    x.relu_()
    return x.mul_(2)


def clean_rows(x, edge_index):
    return torch.cat([x[:6] * 2, torch.zeros_like(x[6:])])


def rows_into_new_zeros(x, edge_index):
    out = x.new_zeros(x.shape)
    out[torch.arange(6)] = x[:6] * 2
    return out


def rows_into_torch_zeros(x, edge_index):
    out = torch.zeros(12, 4, dtype=x.dtype)
    out[:6] = x[:6] * 2
    return out


def rows_through_a_view(x, edge_index):
    out = torch.zeros_like(x)
    half = out.view(-1)[:24].view(6, 4)
    half.copy_(x[:6])
    half.mul_(2)
    return out


def rows_through_narrow(x, edge_index):
    out = torch.empty_like(x)
    out.zero_()
    out.narrow(0, 0, 6).add_(x[:6], alpha=2)
    return out


def rows_by_mask(x, edge_index):
    out = torch.full_like(x, 0.0)
    keep = torch.arange(12) < 6
    out[keep] += 2 * x[keep]
    return out


def rows_by_columns(x, edge_index):
    out = x.new_zeros(12, 4)
    for column in range(4):
        out[:6, column] = 2 * x[:6, column]
    return out


def rows_by_transposed_view(x, edge_index):
    out = x.new_zeros(4, 12)
    out.t()[:6] = 2 * x[:6]
    return out.t()


def rows_by_out_argument(x, edge_index):
    out = torch.zeros_like(x)
    torch.mul(x[:6], 2, out=out[:6])
    return out


def rows_by_masked_fill(x, edge_index):
    return (x * 2).masked_fill_((torch.arange(12) >= 6).unsqueeze(1), 0.0)


def rows_through_a_clone(x, edge_index):
    out = x.clone()
    out[:6] *= 2
    out[6:] = 0
    return out


def rows_through_chunks(x, edge_index):
    out = x * 2
    _, second = out.chunk(2)
    second.zero_()
    return out


def clean_sum(x, edge_index):
    return scatter(x[edge_index[0]], edge_index[1], dim=0, dim_size=12, reduce="sum")


def sum_by_index_add(x, edge_index):
    return x.new_zeros(x.shape).index_add_(0, edge_index[1], x[edge_index[0]])


def sum_by_torch_zeros(x, edge_index):
    out = torch.zeros(12, 4, dtype=torch.float64)
    out.index_add_(0, edge_index[1], x.index_select(0, edge_index[0]))
    return out


def sum_by_scatter_add(x, edge_index):
    index = edge_index[1].unsqueeze(1).expand(-1, 4)
    return torch.zeros_like(x).scatter_add_(0, index, x[edge_index[0]])


def sum_by_index_put(x, edge_index):
    return torch.zeros_like(x).index_put_((edge_index[1],), x[edge_index[0]], accumulate=True)


def sum_by_loop(x, edge_index):
    out = torch.zeros_like(x)
    for source, target in edge_index.t().tolist():
        out[target] += x[source]
    return out


def sum_by_matrix(x, edge_index):
    adjacency = torch.zeros(12, 12, dtype=x.dtype)
    adjacency.index_put_((edge_index[1], edge_index[0]), torch.ones(edge_index.shape[1], dtype=x.dtype))
    return adjacency @ x


def sum_by_sparse_matrix(x, edge_index):
    ones = torch.ones(edge_index.shape[1], dtype=x.dtype)
    return torch.sparse_coo_tensor(edge_index.flip(0), ones, (12, 12)).coalesce() @ x


@pytest.mark.parametrize(
    ("written", "clean"),
    [
        (inplace_relu, clean_relu),
        *[(f, clean_rows) for n, f in sorted(globals().items()) if n.startswith("rows_")],
        *[(f, clean_sum) for n, f in sorted(globals().items()) if n.startswith("sum_")],
    ],
    ids=lambda f: f.__name__,
)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_ways_of_writing_the_same(written, clean):
    got, expected = (decompose(f, X, EDGES, groups=GROUPS) for f in (written, clean))
    assert_close(got.total, clean(X, EDGES))
    assert_close(got.target, expected.target)
    assert torch.equal(got.total, written(X.clone(), EDGES))


class Embedded(nn.Module):
    """Portions are added in place to what the model looked up or computed without them."""

    def __init__(self, way: str):
        super().__init__()
        self.way, self.embedding, self.lin = way, nn.Embedding(12, 4), nn.Linear(4, 4)

    def forward(self, x, edge_index):
        ids = torch.arange(12)
        base = {
            "lookup": lambda: self.embedding(ids),
            "index": lambda: self.embedding.weight[ids],
            "linear": lambda: self.lin(x.new_zeros(x.shape)),
            "arange": lambda: torch.arange(48).double().reshape(12, 4),
            "clone": self.embedding.weight.clone,
            "sum": lambda: self.embedding.weight + 0,
        }[self.way]()
        base += x
        return base


@pytest.mark.parametrize("way", ["lookup", "index", "linear", "arange", "clone", "sum"])
def test_portions_added_in_place_to_a_plain_result(way):
    model = ready(Embedded(way))
    d = decompose(model, X, EDGES, groups=GROUPS)
    base = model(torch.zeros_like(X), EDGES).detach()
    assert_close(d.target, decompose(lambda x, edge_index: x + base, X, EDGES, groups=GROUPS).target)


@pytest.mark.parametrize("make", ["new_zeros", "zeros", "zeros_like", "new_ones"])
def test_a_degree_vector_stays_plain(make):
    def model(x, edge_index):
        deg = {
            "new_zeros": lambda: x.new_zeros(12),
            "zeros": lambda: torch.zeros(12, dtype=x.dtype),
            "zeros_like": lambda: torch.zeros_like(x[:, 0]),
            "new_ones": lambda: x.new_ones(12) - 1,
        }[make]()
        ones = x.new_ones(edge_index.shape[1])
        deg.scatter_add_(0, edge_index[1], ones)
        inverse = deg.pow(-0.5)
        inverse.masked_fill_(inverse == float("inf"), 0.0)
        seen.append(carries(inverse))
        norm = inverse[edge_index[0]] * inverse[edge_index[1]]
        return x.new_zeros(12, 4).index_add_(0, edge_index[1], x[edge_index[0]] * norm.unsqueeze(-1))

    seen = []
    d = decompose(model, X, EDGES, groups=singles())
    assert seen == [False]
    assert_close(d.target, torch.stack([model(X * one.unsqueeze(-1), EDGES) for one in torch.eye(12).double()]))
    assert_close(d.target.sum(0), d.total)


def test_random_numbers_in_the_forward_pass():
    def model(x, edge_index):
        return x @ torch.rand(4, 3, dtype=x.dtype) + torch.randn_like(x)[:, :3] * 0 + torch.randint(3, ())

    torch.manual_seed(5)
    expected = model(X, EDGES)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    d = decompose(model, X, EDGES, groups=GROUPS)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(d.total, expected)
    cut = decompose(model, X, EDGES, groups=GROUPS, memory=1)
    assert torch.equal(cut.total, expected)
    assert_close(cut.target, d.target)


def test_values_decide_branches_and_positions():
    def model(x, edge_index):
        x = x * 2 if bool(x.sum() > 0) else x * 3
        order = x[:, 0].argsort()
        return torch.where(x > 0, x, x * 0.5)[order][x.shape[0] // 2 :]

    d = decompose(model, X, EDGES, groups=[[], range(12), [3]])
    assert torch.equal(d.total, model(X, EDGES))
    assert_close(d.target[1], d.total)
    assert not d.target[0].any()


@pytest.mark.parametrize("layer", ["transformer", "gru", "lstm", "attention"])
def test_fused_layers_are_taken_apart(layer):
    class Fused(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = {
                "transformer": lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True),
                "gru": lambda: nn.GRU(4, 4, batch_first=True),
                "lstm": lambda: nn.LSTM(4, 4, batch_first=True),
                "attention": lambda: nn.MultiheadAttention(4, 2, batch_first=True),
            }[layer]()

        def forward(self, x):
            x = x.unsqueeze(0)
            out = self.inner(x, x, x) if layer == "attention" else self.inner(x)
            return (out[0] if isinstance(out, tuple) else out).squeeze(0)

    model = ready(Fused())
    d = decompose(model, X, groups=GROUPS)
    with torch.no_grad():
        assert_close(d.total, model(X))
    assert d.target.isfinite().all()


def test_replicated_inner_references():
    """A module that reaches its parent or siblings by an attribute works on the same stand-in."""

    class Inner(nn.Module):
        def forward(self, x):
            return self.owner[0].lin(x) * self.scale

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.inner = nn.Linear(4, 3), Inner()
            self.inner.owner, self.inner.scale = [self], 2.0
            self.activation = self.step

        def step(self, x):
            return x.relu() * self.inner.scale

        def forward(self, x):
            return self.activation(self.inner(x))

    model = ready(Outer())
    d = decompose(model, X, groups=GROUPS, probes=["lin"])
    assert torch.equal(d.total, model(X))
    assert_close(d.target, decompose(lambda x: (model.lin(x) * 2).relu() * 2, X, groups=GROUPS).target)


def test_sequential_and_functional_models():
    model = ready(nn.Sequential(nn.Linear(4, 5), nn.ReLU(inplace=True), nn.Linear(5, 2)))
    d = decompose(model, X, groups=GROUPS)
    assert torch.equal(d.target, decompose(lambda x: model[2](F.relu(model[0](x))), X, groups=GROUPS).target)


def test_pooling_ties_are_shared_or_go_to_the_first():
    x = torch.ones(3, 1, dtype=torch.float64)

    def model(x, edge_index):
        return global_max_pool(x, None)

    shared = decompose(model, x, EDGES[:, :0], groups=singles(3)).target
    first = decompose(model, x, EDGES[:, :0], groups=singles(3), options=Options(ties="first")).target
    assert_close(shared.flatten(), torch.full((3,), 1 / 3, dtype=torch.float64))
    assert first.flatten().tolist() == [1.0, 0.0, 0.0]


def test_features_that_require_gradients_bring_no_graph():
    x = X.clone().requires_grad_()
    d = decompose(net(), x, EDGES, groups=[[0]])
    assert not d.total.requires_grad
    assert not d.target.requires_grad


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:UserWarning")
def test_compiled_models_are_taken_as_they_were_written():
    plain = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).double().eval()
    expected = decompose(plain, X, groups=GROUPS).target
    inner = torch.nn.Sequential(torch.compile(plain[:2], backend="eager"), plain[2]).eval()
    in_place = copy.deepcopy(plain)
    in_place.compile(backend="eager")
    for model in (torch.compile(plain, backend="eager"), inner, in_place):
        torch.testing.assert_close(decompose(model, X, groups=GROUPS).target, expected, rtol=0, atol=1e-12)


def test_lazy_layers_must_know_their_width():
    with pytest.raises(ValueError, match="run it once"):
        decompose(GCNConv(-1, 3), X, EDGES, groups=[[0]])


def test_half_precision_agrees_roughly():
    model = net("gcn", level="graph")
    exact = decompose(model, X, EDGES, groups=GROUPS).target
    half = decompose(copy.deepcopy(model).bfloat16(), X.bfloat16(), EDGES, groups=GROUPS)
    assert half.target.dtype == torch.bfloat16
    torch.testing.assert_close(half.target.double(), exact, rtol=0.1, atol=0.1 * exact.abs().max().item())


@pytest.mark.parametrize("conv", [GATConv(4, 3), GATv2Conv(4, 3, heads=2), TransformerConv(4, 3)], ids=str)
def test_attention_taken_as_a_whole_gives_all_nodes_everything(conv: nn.Module) -> None:
    d = decompose(ready(conv), X, EDGES, groups=[range(12), []], options=Options(attention="whole"))
    assert_close(d.target[0], d.total)
    assert not d.target[1].any()


def test_attention_taken_as_a_whole_weighs_values_as_they_are() -> None:
    model = ready(GATConv(4, 3, bias=False))
    d = decompose(model, X, EDGES, groups=singles(), options=Options(attention="whole"))
    out, (edges, attention) = model(X, EDGES, return_attention_weights=True)
    value, expected = model.lin(X), torch.zeros(12, *out.shape, dtype=out.dtype)
    for (u, v), weight in zip(edges.t().tolist(), attention.flatten(), strict=True):
        expected[u, v] += weight * value[u]
    assert_close(d.target, expected.detach())


def test_a_softmax_as_output_is_split_even_where_attention_is_taken_as_given() -> None:
    d = decompose(lambda x: torch.softmax(x, 1), X, groups=[[0]], options=Options(attention="whole"))
    split = decompose(lambda x: torch.softmax(x, 1), X, groups=[[0]], options=Options(attention="split"))
    assert_close(d.target, split.target)
    assert torch.equal(d.logits.target[0, 0], X[0])


@pytest.mark.parametrize("block", [1, 7, 64])
@pytest.mark.parametrize("conv", CONVS)
def test_work_in_blocks_changes_nothing(conv: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, halves = net(conv), torch.rand(9, 12, generator=torch.Generator().manual_seed(0)) < 0.5
    expected = decompose(model, X, EDGES, groups=halves).target
    for module in ("engine.portions", "rules.common"):
        monkeypatch.setattr(f"xdegree.{module}.BLOCK", block)
    assert_close(decompose(model, X, EDGES, groups=halves).target, expected)


@pytest.mark.parametrize("attends", [False, True])
def test_messages_that_are_not_written_out_survive_a_write_into_what_they_read(attends: bool) -> None:
    weight = features(EDGES.shape[1], 1)

    def model(x: torch.Tensor, edge_index: torch.Tensor, early: bool) -> torch.Tensor:
        value, attention = x.clone(), x[edge_index[1]].sigmoid() if attends else weight
        view = value[:, :2]
        message = attention * value.index_select(0, edge_index[0])
        if early:
            message = message + 0
        view.mul_(3)
        return scatter(message, edge_index[1], dim_size=len(x)) + view.sum() * 0

    halves = torch.rand(9, 12, generator=torch.Generator().manual_seed(0)) < 0.5
    lazy, written = (decompose(model, X, EDGES, early, groups=halves).target for early in (False, True))
    assert_close(lazy, written)


@pytest.mark.parametrize("conv", CONVS)
def test_inference_mode_changes_nothing(conv: str) -> None:
    """In it, PyTorch hands over composite operations in one piece."""
    model = net(conv)
    expected = decompose(model, X, EDGES, groups=GROUPS)
    with torch.inference_mode():
        found = decompose(model, X, EDGES, groups=GROUPS)
    assert torch.equal(found.total, expected.total)
    assert torch.equal(found.target, expected.target)


@pytest.mark.parametrize(
    "f",
    [
        F.selu,
        F.relu6,
        F.logsigmoid,
        lambda x: x.diff(dim=0),
        lambda x: x.repeat_interleave(2, 0),
        lambda x: x.flatten(),
    ],
)
def test_composites_in_inference_mode_are_taken_apart(f) -> None:
    expected = decompose(f, X, groups=GROUPS)
    with torch.inference_mode():
        assert torch.equal(decompose(f, X, groups=GROUPS).target, expected.target)


def test_several_outs_are_written_with_their_portions() -> None:
    def written(x: torch.Tensor) -> torch.Tensor:
        values, places = torch.empty_like(x), torch.empty(x.shape, dtype=torch.long)
        torch.sort(x, 0, out=(values, places))
        return values + x.gather(0, places)

    expected = decompose(lambda x: x.sort(0).values + x.gather(0, x.sort(0).indices), X, groups=GROUPS)
    assert_close(decompose(written, X, groups=GROUPS).target, expected.target)


def test_writing_in_place_keeps_the_dtype() -> None:
    d = decompose(lambda x: x.float().clone().mul_(x), X, groups=GROUPS)
    assert d.total.dtype == d.target.dtype == torch.float32


@pytest.mark.parametrize("f", [F.gelu, lambda x: F.conv1d(x[None], torch.ones(3, 12, 3)), lambda x: F.gelu(x) @ x.t()])
def test_totals_of_single_precision_are_the_models_own(f) -> None:
    """Kernels of oneDNN are off during a run, but for totals whose last bits they decide."""
    x = features(12, 300, dtype=torch.float32)
    before = torch._C._get_mkldnn_enabled()
    assert torch.equal(decompose(f, x, groups=[[0], [1, 2]]).total, f(x))
    assert torch._C._get_mkldnn_enabled() is before
