"""Where nodes have no feature matrix, outputs have parts, and models keep or choose things: equal to the plain way.

Every hint of an error is followed here, and must arrive.
"""

import re
import warnings
from typing import Any

import example_graph_models as g
import example_models as m
import pytest
import stranger_inputs as i
import stranger_models as s
import torch
from example_calls import EXAMPLES, MISSES, Example, tried
from helpers import EDGES, PAIR_BATCH, PAIR_EDGES, assert_close, features, ready
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import EGConv, EquilibriumAggregation, GCNConv, LightGCN

from xdegree import Explanation, MissingRuleError, Options, check, decompose, explain, prepare
from xdegree.testing import check_laws

X, N = features(), 12
Z = torch.arange(N) * 5 % 7
POS = features(N, 3, seed=6)


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


QUICK = ("total", "nothing", "everything", "finite")
"""What one pass each shows; `make coverage` checks all laws."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
@pytest.mark.filterwarnings("ignore")
def test_calls_as_people_write_them(example: Example) -> None:
    assert bool(tried(example, QUICK)) == (example.name in MISSES), tried(example, QUICK)


def test_the_report_card_is_long_and_good() -> None:
    assert len({example.name for example in EXAMPLES}) == len(EXAMPLES) >= 150
    assert len(MISSES) <= 0.03 * len(EXAMPLES)


# --- rows of tables


@pytest.mark.parametrize("start", [None, "table", "table.weight"])
def test_a_table_equals_features(start: Any) -> None:
    """A table that is read whole gives what the same rows give as an argument."""
    model = ready(s.EmbeddingTable(N))
    e = explain(model, None, EDGES, index=5, start=start)
    own = explain(model.conv, model.table.weight.detach(), EDGES, index=5)
    assert_close(e.node_scores, own.node_scores)
    assert torch.equal(e.prediction, own.prediction)
    assert e.nodes.tolist() == own.nodes.tolist()


def test_the_module_and_the_parameter_themselves() -> None:
    model = ready(s.EmbeddingTable(N))
    named = explain(model, None, EDGES, index=5, start="table").node_scores
    for start in (model.table, model.table.weight):
        assert_close(explain(model, None, EDGES, index=5, start=start).node_scores, named)


def test_several_inputs_of_a_node_are_one() -> None:
    """A list of matrices is one wide matrix whose blocks meet their own weights."""
    model = ready(m.SIGN())
    xs = [X, 2 * X, X.flip(0)]
    e = explain(model, xs, index=5, of="feature")
    assert e.feature_scores.shape == (N, 12)
    d = decompose(model, xs, groups=[range(N), [5], []])
    assert_close(d.target[0], d.total)
    assert not d.target[2].any()


def test_a_layer_without_features_has_a_row_of_weights_per_node() -> None:
    """x=None stands for one-hot vectors: rows of the weights then say what columns of the unit matrix would."""
    model = ready(m.RGCN(N))
    types = torch.arange(EDGES.shape[1]) % 3
    d = decompose(model, EDGES, types, groups=[[4], [1, 2]])

    def one_hot(x, edge_index, edge_type):
        h = model.conv1(x, edge_index, edge_type).relu()
        return model.conv2(h, edge_index, edge_type).log_softmax(1)

    expected = decompose(one_hot, torch.eye(N), EDGES, types, groups=[[4], [1, 2]])
    assert_close(d.total, expected.total)
    assert_close(d.target, expected.target)


def test_large_graphs_are_cut_for_tables_too(monkeypatch) -> None:
    from helpers import as_large

    model = ready(s.EmbeddingTable(N))
    own = explain(model, None, EDGES, index=0)
    as_large(monkeypatch)
    e = explain(model, None, EDGES, index=0)
    assert_close(e.node_scores, own.node_scores)


def test_a_prepared_call_with_a_start() -> None:
    model = ready(s.EmbeddingTable(N))
    prepared = prepare(model, X, EDGES, start="table")
    assert_close(prepared.explain(index=3).node_scores, explain(model, X, EDGES, index=3, start="table").node_scores)
    plain = prepare(model, X, EDGES)
    assert_close(plain.explain(index=3, start="table").node_scores, prepared.explain(index=3).node_scores)


def test_a_stack_of_graphs_equals_single_ones() -> None:
    model = ready(i.DenseGraphs())
    x, adj = features(2 * 6).view(2, 6, 4), (features(6, 6, seed=3) > 0).double().expand(2, 6, 6).clone()
    e = explain(model, x, adj, index=1)
    one = explain(model, x[1:], adj[1:], index=0)
    assert_close(e.node_scores[6:], one.node_scores)
    assert not e.node_scores[:6].any()


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_features_equal_dense_ones(layout) -> None:
    model = ready(s.SparseFeatures())
    x, adj = X.relu(), (features(N, N, seed=3) > 0.5).double()
    d = decompose(model, x.to_sparse(layout=layout), adj, groups=[[0], [3, 4], []])
    own = decompose(model, x, adj, groups=[[0], [3, 4], []])
    assert torch.equal(d.total, model(x.to_sparse(layout=layout), adj))
    assert_close(d.target, own.target)


# --- parts of outputs


def test_only_what_reaches_the_part_needs_rules() -> None:
    model = ready(s.SideLoss())
    with pytest.raises(MissingRuleError) as error:
        decompose(model, X, EDGES, groups=[[0]])
    assert {missing.op.split(".")[1] for missing in error.value.missing} == {"i0", "_linalg_svd"}
    assert not check(model, X, EDGES).ok
    assert check(model, X, EDGES, output=0).ok
    d = decompose(model, X, EDGES, groups=[[0], [1, 2]], output=0)
    own = decompose(lambda x, e: model(x, e)[0], X, EDGES, groups=[[0], [1, 2]])
    assert_close(d.target, own.target)


def test_a_missing_rule_behind_a_choice_is_not_missed() -> None:
    """What is computed only to choose from needs no rule, whatever it is."""

    def model(x, edge_index):
        order = torch.special.i0(x[:, 0]).argsort()
        return x[order] + torch.special.i0(x).topk(2, 1).indices.to(x.dtype).sum(1, keepdim=True)

    d = decompose(model, X, EDGES, groups=[range(N)])
    assert d.target.isfinite().all()
    with pytest.raises(MissingRuleError, match="i0"):
        decompose(lambda x, e: x + 0 * torch.special.i0(x), X, EDGES, groups=[[0]])
    with pytest.raises(MissingRuleError, match="i0"):
        decompose(lambda x, e: torch.zeros_like(x).copy_(torch.special.i0(x)), X, EDGES, groups=[[0]])
    with pytest.warns(UserWarning, match="are taken as given"):
        decompose(lambda x, e: x * torch.special.i0(x).sum().item(), X, EDGES, groups=[[0]])


def test_an_unknown_part_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"output='logit' .*'logits', 'hidden'"):
        explain(ready(s.Named()), X, EDGES, index=5, output="logit")


# --- ids


def test_ids_of_texts_and_of_loaders(tmp_path) -> None:
    model, names = ready(s.Two()), [f"n{k}" for k in range(N)]
    e = explain(model, X, EDGES, index="n5", ids=names)
    own = explain(model, X, EDGES, index=5)
    assert [(int(name[1:]), score) for name, score in e.top(4)] == own.top(4)
    assert e.ids == tuple(names)
    assert Explanation.load(e.save(tmp_path / "e.json")).ids == e.ids
    assert explain(model, X, EDGES, index="n5", ids={n: k for k, n in enumerate(names)}).top(4) == e.top(4)
    edge, _ = explain(model, X, EDGES, index="n5", ids=names, of="edge").top(1)[0]
    assert edge[0] in names
    d = decompose(model, X, EDGES, groups=[["n0", "n3"]], ids=names)
    assert_close(d.target, decompose(model, X, EDGES, groups=[[0, 3]]).target)
    batch = Data(x=X, edge_index=EDGES, n_id=torch.arange(N) + 100)
    found = explain(ready(m.SAGE()), batch, index=0)
    assert found.ids == tuple(range(100, 100 + N))
    assert found.top(1)[0][0] < N
    with pytest.raises(ValueError, match="'nobody' is none of the ids"):
        explain(model, X, EDGES, index="nobody", ids=names)
    with pytest.raises(ValueError, match="12 different names"):
        explain(model, X, EDGES, index="n5", ids=names[:5])


# --- caches, gradients


def test_a_cache_of_other_features_is_refused_and_the_hint_helps() -> None:
    model = ready(m.SGC())
    with torch.no_grad():
        model(X + 1, EDGES)
    with pytest.raises(ValueError, match=r"'conv1'.*cached=True.*model\.conv1\._cached_x = None") as error:
        explain(model, X, EDGES, index=5)
    exec(re.search(r"(model\.\S+ = None)", str(error.value)).group(1))
    assert explain(model, X, EDGES, index=5).node_scores.any()
    assert model.conv1._cached_x is None
    with torch.no_grad():
        model(X, EDGES)
    kept = model.conv1._cached_x
    check_laws(model, X, EDGES, laws=["total"])
    assert model.conv1._cached_x is kept


def test_a_gradient_inside_is_refused_with_the_reason_and_the_hint_helps() -> None:
    model = ready(g.Forces())
    z, args = Z, (POS, PAIR_EDGES, PAIR_BATCH)
    with pytest.raises(MissingRuleError, match=r"gradient inside of its forward pass.*Explain the output"):
        explain(model, z, *args, index=0, start="embedding", output=1)
    assert explain(model, z, *args, index=0, start="embedding", output=0).node_scores.any()
    with pytest.raises(MissingRuleError, match="gradient inside of its forward pass"):
        decompose(ready(EquilibriumAggregation(4, 5, [6])), X, PAIR_BATCH, groups=[[0]])


# --- messages: each names its argument, and the step that it proposes works


def followed(message: str) -> Any:
    """The value that a message proposes for start or output."""
    return eval(re.search(r"(?:start|output)=('[^']*'|\d+|\([^)]*\))", message).group(1))


class TwoTables(nn.Module):
    """Two tables of the same size."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.conv = nn.Embedding(N, 8), nn.Embedding(N, 8), GCNConv(8, 3)

    def forward(self, edge_index):
        return self.conv(self.a.weight * self.b.weight, edge_index)


HINTS = {
    "two places": (g.MiniSchNet, (Z, POS, PAIR_EDGES, PAIR_BATCH), {"index": 0}, "start"),
    "two embeddings": (s.TokenGraph, (Z, PAIR_EDGES, PAIR_BATCH), {"index": 0}, "start"),
    "two tables": (TwoTables, (EDGES,), {"index": 0}, "start"),
    "several outputs": (s.Named, (X, EDGES), {"index": 5}, "output"),
    "nested outputs": (s.Nested, (X, EDGES), {"index": 5}, "output"),
    "a dataclass": (s.AsDataclass, (X, EDGES), {"index": 5}, "output"),
    "losses": (g.DiffPool, (X, PAIR_EDGES, PAIR_BATCH), {"index": 0}, "output"),
}


@pytest.mark.parametrize("name", HINTS)
def test_hints_arrive(name: str) -> None:
    build, args, ask, argument = HINTS[name]
    model = ready(build())
    with pytest.raises(TypeError, match=f"{argument}=") as error:
        explain(model, *args, **ask)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert explain(model, *args, **ask, **{argument: followed(str(error.value))}) is not None


def test_what_start_cannot_name() -> None:
    model = ready(s.EmbeddingTable(N))
    for start, said in (
        ("tabel", "start names 'tabel', but the model's modules are .* reads .* arguments"),
        ({}, "start is an empty dict"),
    ):
        with pytest.raises(ValueError, match=said):
            explain(model, X, EDGES, index=5, start=start)
    with pytest.raises(TypeError, match="start names a module, a parameter or an argument"):
        explain(model, X, EDGES, index=5, start=3)


def test_integers_without_a_table_start_at_the_first_layer() -> None:
    model = ready(i.OneHot())
    e = explain(model, Z, EDGES, index=5)
    own = explain(model.conv, nn.functional.one_hot(Z, 7).double(), EDGES, index=5)
    assert_close(e.node_scores, own.node_scores)


@pytest.mark.parametrize(
    "model", [m.FiLM, m.DNA, lambda: m.Cora(lambda a, b: EGConv(a, b, num_heads=1))], ids=["film", "dna", "egc"]
)
def test_zeros_by_products_are_said(model) -> None:
    """Where most nodes that can contribute have exactly 0 by the paper's product, a warning says so and helps."""
    net = ready(model())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        e = explain(net, X, EDGES, index=5, options=Options.paper())
    silent = e.hides_products and not any("exactly 0" in str(one.message) for one in said)
    assert not silent
    zeros = int((e.node_scores[e.nodes] == 0).sum())
    assert e.hides_products == (zeros > len(e.nodes) // 2)


def test_light_gcn_says_links() -> None:
    e = explain(ready(LightGCN(N, 8, 2)), EDGES, index=3)
    assert e.level == "link"
