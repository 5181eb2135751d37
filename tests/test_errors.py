"""Bad input gets an error that says what was given, what was expected and what to do, and no partial result."""

import copy
import json
import math
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from helpers import EDGES, features, net, ready
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN, BatchNorm, GCNConv

import xdegree
from xdegree import Explanation, LostPortionsError, MissingRuleError, Options, check, decompose, explain

X = features()


def says(error: pytest.ExceptionInfo, *words: str) -> None:
    missing = [word for word in words if word not in str(error.value)]
    assert not missing, f"{error.value!s} does not say {missing}"


@pytest.mark.parametrize(
    ("groups", "kind", "words"),
    [
        ([[0], [3, 12]], ValueError, ["group 1", "12", "0 to 11"]),
        ([[-1]], ValueError, ["group 0", "-1", "0 to 11"]),
        ([[0], [], [4, 7, 4]], ValueError, ["group 2", "[4]", "more than once"]),
        ([torch.tensor([2, 2])], ValueError, ["group 0", "[2]", "more than once"]),
        ([list(range(12, 40))], ValueError, ["12", "20 more", "0 to 11"]),
        ([], ValueError, ["empty list", "at least one group", "[[]]"]),
        ([0, 1], TypeError, ["group 0", "got 0", "[[0], [4, 7]]"]),
        (5, TypeError, ["lists of node ids", "int"]),
        ("01", TypeError, ["lists of node ids", "str"]),
        (["01"], TypeError, ["group 0", "'01'"]),
        ([[0.0]], TypeError, ["group 0", "integer node ids", "0.0"]),
        ([["a"]], TypeError, ["group 0", "integer node ids", "a"]),
        ([[[0], [1]]], TypeError, ["group 0", "[[0], [1]]", "a list of lists"]),
        (None, TypeError, ["groups is None", "[[0], [4, 7]]"]),
        ([[True, False]], TypeError, ["integer node ids", "True", "mask [K, N]"]),
        ([torch.tensor([0.5])], TypeError, ["integer node ids", "0.5"]),
        (torch.ones(1, 11, dtype=torch.bool), ValueError, ["[K, 12]", "[K, 12, 4]", "[1, 11]"]),
        (torch.ones(12, dtype=torch.bool), ValueError, ["[K, 12]", "[12]"]),
        (torch.ones(2, 12, 3, dtype=torch.bool), ValueError, ["[K, 12, 4]", "[2, 12, 3]"]),
        (torch.ones(2, 12, 4, 1), ValueError, ["[K, 12, 4]", "[2, 12, 4, 1]"]),
        (torch.zeros(0, 12), ValueError, ["at least one group", "[0, 12]"]),
        (torch.ones(1, 12, dtype=torch.long), TypeError, ["bool or float", "torch.int64", "mask.bool()"]),
        (torch.ones(1, 12, dtype=torch.complex64), TypeError, ["bool or float", "torch.complex64"]),
        (torch.full((1, 12), 1.5), ValueError, ["shares", "between 0 and 1"]),
        (torch.full((1, 12), -0.1), ValueError, ["shares", "between 0 and 1"]),
        (torch.full((1, 12), float("nan")), ValueError, ["shares", "between 0 and 1"]),
    ],
)
def test_groups(groups, kind, words):
    with pytest.raises(kind) as error:
        decompose(net(), X, EDGES, groups=groups)
    says(error, *words)


def spoilt(value: float) -> torch.Tensor:
    x = features()
    x[3, 1] = x[7, 0] = value
    return x


@pytest.mark.parametrize(
    ("x", "kind", "words"),
    [
        (spoilt(float("nan")), ValueError, ["finite", "[3, 7]", "clean them"]),
        (spoilt(float("inf")), ValueError, ["finite", "[3, 7]", "clean them"]),
        (spoilt(-float("inf")), ValueError, ["finite", "[3, 7]"]),
        (torch.ones(12, 4, dtype=torch.long), TypeError, ["floating point", "torch.int64", "x.float()"]),
        (torch.ones(12, 4, dtype=torch.bool), TypeError, ["floating point", "torch.bool"]),
        (torch.tensor(1.0), ValueError, ["row per node"]),
        ([[1.0]], TypeError, ["node features", "list"]),
        (None, TypeError, ["node features", "NoneType"]),
    ],
)
@pytest.mark.parametrize("call", ["decompose", "explain", "check"])
def test_features(call, x, kind, words):
    extra = {"decompose": {"groups": [[0]]}, "explain": {"index": 0}, "check": {}}[call]
    with pytest.raises(kind) as error:
        getattr(xdegree, call)(net(), x, EDGES, **extra)
    says(error, *words)


def test_arguments_missing():
    with pytest.raises(TypeError) as error:
        decompose(net(), groups=[[0]])
    says(error, "arguments are missing", "(model, x, edge_index")


def test_data_without_what_the_model_needs():
    class Weighted(nn.Module):
        def forward(self, x, edge_index, edge_weight):
            return x

    with pytest.raises(TypeError, match="node features must be a float tensor") as error:
        decompose(net(), Data(edge_index=EDGES), groups=[[0]])
    says(error, "argument x", "NoneType", "start=")
    with pytest.raises(ValueError, match="edge_weight") as error:
        decompose(Weighted(), Data(x=X, edge_index=EDGES), groups=[[0]])
    says(error, "does not have", "edge_index", "edge_weight=")


class Dropping(nn.Module):
    def __init__(self, functional: bool):
        super().__init__()
        self.conv, self.functional = GCNConv(4, 3), functional
        self.drop = nn.Identity() if functional else nn.Dropout(0.5)

    def forward(self, x, edge_index):
        x = self.conv(x, edge_index)
        return F.dropout(x, training=self.training) if self.functional else self.drop(x)


@pytest.mark.parametrize("functional", [False, True])
@pytest.mark.parametrize("call", ["decompose", "explain", "check"])
def test_training_mode_with_dropout(functional, call):
    model = ready(Dropping(functional)).train()
    extra = {"decompose": {"groups": [[0]]}, "explain": {"index": 0}, "check": {}}[call]
    with pytest.raises((ValueError, RuntimeError)) as error:
        getattr(xdegree, call)(model, X, EDGES, **extra)
    says(error, "training mode", "model.eval()")
    assert model.training
    decompose(model.eval(), X, EDGES, groups=[[0]])


def test_training_mode_without_anything_random_is_fine():
    model = net().train()
    d = decompose(model, X, EDGES, groups=[[0]])
    assert torch.equal(d.total, model(X, EDGES))
    assert model.training


def test_batch_norm_in_training_mode():
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = BatchNorm(4)

        def forward(self, x, edge_index):
            return self.norm(x)

    model = ready(Normed()).train()
    with pytest.raises((MissingRuleError, LostPortionsError, ValueError)) as error:
        decompose(model, X, EDGES, groups=[[0]])
    says(error, "eval")
    assert model.norm.module.num_batches_tracked == 0


@pytest.mark.parametrize(
    "forward",
    [
        lambda x, edge_index: torch.zeros(12, 2),
        lambda x, edge_index: x.new_zeros(12, 2),
        lambda x, edge_index: x.argmax(-1),
        lambda x, edge_index: (x > 0).double(),
        lambda x, edge_index: "text",
    ],
)
def test_output_that_carries_nothing(forward):
    with pytest.raises(LostPortionsError) as error:
        decompose(forward, X, EDGES, groups=[[0]])
    says(error, "output", "no portions")


@pytest.mark.parametrize(
    "forward",
    [
        lambda x, edge_index: torch.tensor(x.tolist()),
        lambda x, edge_index: torch.from_numpy(x.detach().numpy()) * 2,
        lambda x, edge_index: x.long().double(),
    ],
)
def test_portions_that_leave_tensors(forward):
    with pytest.raises((MissingRuleError, LostPortionsError, RuntimeError, TypeError)) as error:
        decompose(forward, X, EDGES, groups=[[0]])
    assert isinstance(error.value, MissingRuleError | LostPortionsError), error.value


@pytest.mark.parametrize(
    "forward",
    [
        lambda x, edge_index: x * x.sum().item(),
        lambda x, edge_index: x * float(x.sum()),
        lambda x, edge_index: x * torch.tensor(x[0].tolist()),
        lambda x, edge_index: x + x.detach().numpy().mean(),
        lambda x, edge_index: x * len(f"{x.sum():.8f}{x.mean():.2e}".replace("0", "")),
    ],
)
def test_numbers_that_the_output_depends_on_are_taken_as_given(forward):
    with pytest.warns(UserWarning, match=r"test_errors.py:\d+.* and its output depends on them.*Keep them tensors"):
        d = decompose(forward, X, EDGES, groups=[[0], list(range(12))])
    assert torch.equal(d.total, forward(X, EDGES))
    with pytest.warns(UserWarning, match="are taken as given"):
        explain(forward, X, EDGES, index=3)


class Logging(nn.Module):
    """Numbers for people, for branches and for a side loss; the output depends on none of them."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.log = GCNConv(4, 5), GCNConv(5, 3), []

    def forward(self, x, edge_index):
        h = self.conv1(x, edge_index)
        self.log += [h.mean().item(), float(h.std()), h[0].tolist(), h.detach().numpy().max(), f"{h.sum():.3f} {h}"]
        if h.norm().item() > 1e6 or math.isnan(float(h.min())):
            h = h / 2
        assert np.isfinite(np.asarray(h)).all()
        out = self.conv2(h.relu(), edge_index)
        return out, torch.tensor(out.abs().mean().item())


def test_numbers_that_are_only_looked_at_do_not_matter():
    model = ready(Logging())
    found = explain(model, X, EDGES, index=3, output=0)
    quiet = explain(lambda x, e: model.conv2(model.conv1(x, e).relu(), e), X, EDGES, index=3)
    assert torch.allclose(found.node_scores, quiet.node_scores, rtol=1e-12)
    assert not model.log
    assert check(model, X, EDGES, output=0).ok


@pytest.mark.parametrize("kind", ["parameter", "buffer"])
def test_portions_written_into_the_models_own_memory(kind):
    class Remembers(nn.Module):
        def __init__(self):
            super().__init__()
            memory = torch.zeros(12, 4, dtype=torch.float64)
            if kind == "buffer":
                self.register_buffer("memory", memory)
            else:
                self.memory = nn.Parameter(memory, requires_grad=False)

        def forward(self, x, edge_index):
            self.memory.copy_(x)
            return self.memory * 2

    model = Remembers()
    with pytest.raises(LostPortionsError) as error:
        decompose(model, X, EDGES, groups=[[0]])
    says(error, "plain tensor", "(12, 4)", "Clone it")
    assert torch.equal(model.memory, torch.zeros_like(model.memory))


@pytest.mark.parametrize("probes", [["convs.9"], ["lin1", "nothing:input"], "nope"])
def test_probes_that_do_not_exist(probes):
    with pytest.raises(ValueError, match="probes") as error:
        decompose(net(), X, EDGES, groups=[[0]], probes=probes)
    says(error, "convs.0", "lin2", "convs.9" if probes == ["convs.9"] else "no")


def test_probes_that_are_not_called():
    model = net()
    model.spare = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="spare") as error:
        decompose(model, X, EDGES, groups=[[0]], probes=["lin1", "spare"])
    says(error, "did not call")


def test_probe_on_a_plain_function():
    with pytest.raises(ValueError, match="probes"):
        decompose(lambda x, edge_index: x, X, EDGES, groups=[[0]], probes=["lin1"])


@pytest.mark.parametrize(
    ("index", "kind", "words"),
    [
        (None, ValueError, ["index is missing", "12 nodes", "0 to 11"]),
        (12, ValueError, ["index 12", "0 to 11"]),
        (-1, ValueError, ["index -1", "0 to 11"]),
        (1.0, TypeError, ["integer", "1.0"]),
        (True, TypeError, ["integer", "True"]),
        ("3", TypeError, ["integer", "'3'"]),
        ([3, 4.0], TypeError, ["integer", "[3, 4.0]"]),
        ([3, 12], ValueError, ["index 12", "0 to 11"]),
        ([], ValueError, ["empty list"]),
        (torch.tensor(3.5), TypeError, ["integer", "3.5"]),
        (torch.arange(12) < 3, TypeError, ["mask.nonzero().flatten()"]),
    ],
)
def test_index(index, kind, words):
    with pytest.raises(kind) as error:
        explain(net(), X, EDGES, index=index)
    says(error, *words)


def test_numbers_of_numpy_are_numbers():
    assert explain(net(), X, EDGES, index=np.int64(3), target=np.int64(1)).target == 1
    assert [e.index for e in explain(net(), X, EDGES, index=np.array([3, 4]))] == [3, 4]


def test_a_call_for_one_row_does_not_offer_several():
    with pytest.raises(ValueError, match="the one node that is explained, index=0 to 11"):
        xdegree.agglomerate(net(), X, EDGES)
    with pytest.raises(TypeError, match=r"0 to 11 \(got 'all'\)"):
        xdegree.agglomerate(net(), X, EDGES, index="all")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((X, EDGES.t()), ["edge_index is [28, 2] instead of [2, E]", "edge_index.t()"]),
        ((X, EDGES.double()), ["edge_index is torch.float64", "edge_index.long()"]),
        ((X, torch.ones(12, 12, dtype=torch.float64)), ["[12, 12] instead of [2, E]", "nonzero().t()"]),
        ((X, EDGES.numpy()), ["edge_index is a ndarray", "torch.tensor"]),
        ((X, EDGES + 1), ["names nodes 1 to 12", "rows 0 to 11"]),
        ((X[:10], EDGES), ["names nodes 0 to 11", "rows 0 to 9"]),
        ((X.float(), EDGES), ["x is torch.float32", "weights are torch.float64", "x.to(torch.float64)"]),
        ((X[:, 0], EDGES), ["x is [12] instead of [nodes, features]"]),
        ((X,), ["missing a required argument: 'edge_index'"]),
        ((X, EDGES, 5), ["an integer is among them", "index="]),
        ((X, EDGES, torch.zeros(5, dtype=torch.long)), ["batch names the graph of each node", "[12]", "[5]"]),
    ],
)
@pytest.mark.parametrize("call", ["decompose", "explain", "check"])
def test_arguments_that_the_model_itself_cannot_take(call, args, words):
    model = net(level="graph") if len(args) == 3 else net()
    extra = {"decompose": {"groups": [[0]]}, "explain": {"index": 0}, "check": {}}[call]
    with pytest.raises(ValueError, match="cannot be called with these arguments") as error:
        getattr(xdegree, call)(model, *args, **extra)
    says(error, *words)
    assert error.value.__cause__ is not None  # the model's own words


def test_the_same_after_a_call_that_was_right():
    model = net()
    explain(model, X, EDGES, index=0)
    with pytest.raises(ValueError, match="rows 0 to 9"):
        explain(model, X[:10], EDGES, index=0)


def test_edge_weights_of_another_graph():
    model = GCN(4, 8, 2, 2).double().eval()
    with pytest.raises(ValueError, match=r"edge features are \[3\], but edge_index has 28 edges"):
        explain(model, X, EDGES, edge_weight=torch.ones(3, dtype=torch.float64), index=0)


def test_several_taken_for_one():
    several = explain(net(), X, EDGES, index=[0, 1])
    for name in ("node_scores", "top", "save"):
        with pytest.raises(AttributeError, match=rf"it holds 2 explanations, take one: found\[0\].{name}"):
            getattr(several, name)
    with pytest.raises(AttributeError, match=r"has no 'nothing'$"):
        several.nothing  # noqa: B018
    assert copy.deepcopy(several).explained == (0, 1)
    assert pickle.loads(pickle.dumps(several)).explained == (0, 1)


def test_too_few_features_for_a_model_of_pyg():
    model = GCN(3, 8, 2, 2).double().eval()
    with pytest.raises(ValueError, match="x has 4 features per node, the model expects 3"):
        explain(model, X, EDGES, index=0)


def test_an_error_of_the_model_itself_stays_what_it_is():
    def broken(x, edge_index):
        raise RuntimeError("something of its own")

    with pytest.raises(RuntimeError, match="something of its own"):
        explain(broken, X, EDGES, index=0)


def test_a_keyword_that_nobody_knows():
    with pytest.raises(ValueError, match="unexpected keyword argument 'idx'") as error:
        explain(net(), X, EDGES, idx=3)
    says(error, "x, edge_index, batch", "go to the model")


@pytest.mark.parametrize("model", [None, GCNConv, {"weight": X}, X])
def test_something_else_than_a_model(model):
    with pytest.raises(TypeError, match="the first argument is the model"):
        explain(model, X, EDGES, index=0)


@pytest.mark.parametrize(
    ("first", "words"), [([Data(x=X, edge_index=EDGES)], "Batch.from_data_list"), ((X, EDGES), "one by one")]
)
def test_arguments_in_a_list(first, words):
    with pytest.raises(TypeError, match=words):
        explain(net(), first, index=0)


@pytest.mark.parametrize("given", [{"num_neighbors": 0}, {"num_neighbors": 2.5}, {"num_neighbors": 3, "seed": "a"}])
def test_neighbors_and_their_seed(given):
    with pytest.raises(ValueError, match="must be an integer of at least"):
        explain(net(), X, EDGES, index=0, **given)


def test_how_many_scores():
    e = explain(net(), X, EDGES, index=0)
    for k in ("3", -1, 2.0):
        with pytest.raises(ValueError, match="how many scores"):
            e.top(k)


def test_places_where_nothing_can_be_saved(tmp_path):
    e = explain(net(), X, EDGES, index=0)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*none.*make it first"):
        e.save(tmp_path / "none" / "e.json")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        e.save(tmp_path)


def test_index_of_graphs():
    model, batch = net(level="graph"), torch.tensor([0] * 5 + [1] * 7)
    with pytest.raises(ValueError, match="index is missing") as error:
        explain(model, X, EDGES, batch)
    says(error, "2 graphs")
    with pytest.raises(ValueError, match="out of range") as error:
        explain(model, X, EDGES, batch, index=2)
    says(error, "graphs 0 to 1")


@pytest.mark.parametrize(
    ("target", "kind", "words"),
    [
        (3, ValueError, ["target 3", "0 to 2"]),
        (-1, ValueError, ["target -1", "0 to 2"]),
        (0.0, TypeError, ["integer", "0.0"]),
        (False, TypeError, ["integer", "False"]),
        (torch.tensor([0, 1]), ValueError, ["2 classes", "one class for all"]),
        ([[0]], TypeError, ["integer", "[0]"]),
    ],
)
def test_target(target, kind, words):
    with pytest.raises(kind) as error:
        explain(net(), X, EDGES, index=0, target=target)
    says(error, *words)


@pytest.mark.parametrize("call", ["decompose", "explain", "check"])
@pytest.mark.parametrize("moved", ["x", "edge_index", "model"])
def test_devices(call, moved):
    model, x, edge_index = net(), X, EDGES
    if moved == "model":
        model = model.to("meta")
    elif moved == "x":
        x = x.to("meta")
    else:
        edge_index = edge_index.to("meta")
    extra = {"decompose": {"groups": [[0]]}, "explain": {"index": 0}, "check": {}}[call]
    with pytest.raises(ValueError, match="different devices") as error:
        getattr(xdegree, call)(model, x, edge_index, **extra)
    says(error, "meta", "cpu", ".to(device)")


def test_devices_of_masks():
    with pytest.raises(ValueError, match="device") as error:
        decompose(net(), X, EDGES, groups=torch.ones(1, 12, dtype=torch.bool, device="meta"))
    says(error, "meta", "cpu")


class Exotic(nn.Module):
    """Two operations without a rule, in two places."""

    def __init__(self):
        super().__init__()
        self.conv = GCNConv(4, 4)
        self.inner = Zeta()

    def forward(self, x, edge_index):
        x = self.conv(x, edge_index)
        return self.inner(x) + torch.linalg.det(x[:4])


class Zeta(nn.Module):
    def forward(self, x):
        return torch.special.zeta(x.abs() + 2, 3.0)


@pytest.mark.parametrize("call", ["decompose", "explain"])
def test_all_missing_rules_at_once(call):
    model = ready(Exotic())
    extra = {"decompose": {"groups": [[0]]}, "explain": {"index": 0}}[call]
    with pytest.raises(MissingRuleError) as error:
        getattr(xdegree, call)(model, X, EDGES, **extra)
    says(error, "2 operation(s)", "special_zeta", "det", "'inner'", "in the model itself", "[12, 4]", "[4, 4]")
    says(error, "@xdegree.rule(torch.ops.aten.special_zeta)", "xdegree.check")
    assert [missing.module for missing in error.value.missing] == ["inner", ""]


def test_check_lists_missing_rules_without_raising():
    report = check(ready(Exotic()), X, EDGES)
    assert not report.ok
    assert {missing.op.split(".")[1] for missing in report.missing} == {"special_zeta", "_linalg_det"}
    assert "MISSING" in str(report)
    assert check(net(), X, EDGES).ok


def test_missing_rule_of_a_custom_operation():
    library = torch.library.Library("xdegree_test_errors", "DEF")
    library.define("twist(Tensor x) -> Tensor")
    library.impl("twist", lambda x: x.flip(0) * 3, "CPU")
    with pytest.raises(MissingRuleError, match="xdegree_test_errors") as error:
        decompose(torch.ops.xdegree_test_errors.twist, X, groups=[[0]])
    says(error, "twist", "[12, 4]", "torch.ops.xdegree_test_errors.twist")


@pytest.mark.parametrize("field", ["ties", "bias", "activation"])
def test_options(field):
    with pytest.raises(ValueError, match=f"Options.{field}") as error:
        Options(**{field: "nonsense"})
    says(error, "one of", "share" if field != "activation" else "target-first", "'nonsense'")


def test_options_of_another_name_or_type():
    with pytest.raises(TypeError, match="tie"):
        Options(tie="share")
    with pytest.raises(AttributeError):
        Options().ties = "first"
    with pytest.raises(TypeError, match="Options"):
        decompose(net(), X, EDGES, groups=[[0]], options={"ties": "first"})


@pytest.mark.parametrize("memory", ["lots", "2 TBs", "-1GB", "", 0, -5, True, 1.5, "0GB"])
def test_memory(memory):
    with pytest.raises((ValueError, TypeError), match="memory") as error:
        decompose(net(), X, EDGES, groups=[[0]], memory=memory)
    says(error, "bytes", repr(memory) if memory != "0GB" else "0")


@pytest.mark.parametrize(("name", "value"), [("reading", "loudness"), ("edge_scores", "sum"), ("edge_scores", True)])
def test_choices_of_explain(name, value):
    with pytest.raises(ValueError, match=name) as error:
        explain(net(), X, EDGES, index=0, **{name: value})
    says(error, "one of", repr(value))


def test_edges_without_edge_index():
    with pytest.raises(ValueError, match="edge_index"):
        explain(ready(nn.Linear(4, 2)), X, index=0, edge_scores="pair")


@pytest.mark.parametrize("layer", ["convs.7", 3])
def test_layer_that_does_not_exist(layer):
    with pytest.raises((ValueError, TypeError)) as error:
        explain(net(), X, EDGES, index=0, reading="strength", layer=layer)
    says(error, str(layer))


def test_strength_without_any_layer():
    with pytest.raises(ValueError, match="strength") as error:
        explain(lambda x, edge_index: x * 2, X, EDGES, index=0, reading="strength")
    says(error, 'layer="…"')


@pytest.mark.parametrize("output", [lambda x: (x, x), lambda x: {"a": x, "b": x}, lambda x: x.argmax(1)])
def test_explain_needs_one_float_tensor(output):
    with pytest.raises(TypeError, match="one float tensor"):
        explain(lambda x, edge_index: output(x), X, EDGES, index=0)


def saved(tmp_path, **changes):
    path = explain(net(), X, EDGES, index=5, edge_scores="pair").save(tmp_path / "e.json")
    content = json.loads(path.read_text())
    for name, value in changes.items():
        if value is DELETE:
            del content[name]
        else:
            content[name] = value
    path.write_text(json.dumps(content))
    return path


DELETE = object()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "xdegree.explanation/99"}, ["no saved explanation", "xdegree.explanation/2"]),
        ({"format": DELETE}, ["no saved explanation"]),
        ({"node_scores": DELETE}, ["broken", "node_scores"]),
        ({"node_scores": None}, ["broken", "node_scores"]),
        ({"node_scores": [[1.0]]}, ["broken", "node_scores"]),
        ({"node_scores": "abc"}, ["broken"]),
        ({"node_scores": ["abc"] * 12}, ["broken"]),
        ({"node_scores": [{}] * 12}, ["broken"]),
        ({"nodes": [99]}, ["broken", "between 0 and 11"]),
        ({"nodes": [-1]}, ["broken", "between 0 and 11"]),
        ({"nodes": None}, ["broken", "nodes"]),
        ({"nodes": [0.5]}, ["broken"]),
        ({"prediction": None}, ["broken", "prediction"]),
        ({"edge_scores": [1.0]}, ["broken", "edge_scores"]),
        ({"edge_index": None}, ["broken", "edge_scores"]),
        ({"edge_index": [1, 2, 3]}, ["broken"]),
        ({"edge_index": [[99] * 28, [0] * 28]}, ["broken"]),
        ({"dtype": "float8"}, ["broken", "float8"]),
        ({"target": "first"}, ["broken", "target"]),
        ({"target": 17}, ["broken", "target"]),
        ({"index": None}, ["broken", "index"]),
        ({"index": -1}, ["broken", "index"]),
        ({"reading": 5}, ["broken", "reading"]),
        ({"options": {"ties": "never"}}, ["broken", "ties"]),
        ({"options": {"other": 1}}, ["broken", "other"]),
        ({"options": None}, ["broken"]),
    ],
)
def test_broken_files(tmp_path, changes, words):
    path = saved(tmp_path, **changes)
    with pytest.raises(ValueError, match=r"e\.json") as error:
        Explanation.load(path)
    says(error, *words)


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b"null", b"\xff\xfe\x00", b'"text"', b"[" * 100_000])
def test_files_that_are_no_explanation(tmp_path, content):
    path = tmp_path / "e.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"e\.json"):
        Explanation.load(path)


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone\.json"):
        Explanation.load(tmp_path / "gone.json")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16])
def test_edges_in_integers_that_pytorch_does_not_gather_by(dtype):
    with pytest.raises(ValueError, match=rf"edge_index is {dtype}.*edge_index.long\(\)"):
        explain(net("sage"), X, EDGES.to(dtype), index=5)
