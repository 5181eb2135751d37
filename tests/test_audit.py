"""`audit` and ``xdegree audit``: against calls by hand, on models whose truth is known, and for all kinds of tasks."""

import copy
import json
from typing import get_args

import pytest
import torch
from helpers import EDGES, features, net, ready
from test_removal import TYPED_EDGES, TYPED_X, Links, Typed
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from xdegree import Audit, audit, explain
from xdegree.auditing.measures import SHARES
from xdegree.baselines import Scores
from xdegree.cli import main
from xdegree.cli.audit import TASKS, WAYS
from xdegree.removal import WAY_NAMES, Removal, Task, Way

X = features()
QUICK = {"samples": 4, "progress": False}
FEW = ["contribution", "occlusion"]


class Sum(nn.Module):
    """A linear model: what a node contributes is what is lost without its features."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 1, bias=False)

    def forward(self, x, edge_index):
        return self.lin(x).sum(0, keepdim=True)


class Flat(nn.Module):
    """Nodes without edges."""

    def forward(self, x):
        return x.tanh().sum(0, keepdim=True)


def comparable(found: Audit) -> dict:
    content = found.to_dict()
    for one in content["methods"]:
        del one["seconds"]
    return content


def test_of_a_linear_model_every_signed_method_tells_exactly_what_is_lost():
    found = audit(ready(Sum()), X, EDGES, **QUICK)
    for name in ("contribution", "contribution, gated", "gradient x input", "occlusion", "integrated gradients"):
        one = found.method(name)
        assert one.ways["zero"].infidelity == pytest.approx(0, abs=1e-9), name
        assert one.ways["zero"].correlation == pytest.approx(1), name
        assert one.stability == pytest.approx(1), name
        assert one.ways["edges"].fidelity == pytest.approx(0), name  # edges do not matter to this model
    assert found.method("random").ways["zero"].infidelity > 0.05
    assert found.method("contribution").agreement["occlusion"] == pytest.approx(1)
    assert found.blank["zero"] == pytest.approx(0)


@pytest.mark.parametrize("level", ["node", "graph"])
def test_curves_are_the_calls_by_hand(level):
    model, index, row = (net(), 3, 3) if level == "node" else (net(level="graph"), None, 0)
    found = audit(model, X, EDGES, index=index, methods=FEW, ways=["zero"], **QUICK)
    e = explain(model, X, EDGES, index=index)
    order = e.nodes[torch.argsort(e.node_scores[e.nodes], descending=True, stable=True)]
    for number, share in enumerate(SHARES):
        best = order[: max(1, round(share * len(order)))]
        kept, dropped = torch.ones(12), torch.ones(12)
        kept[e.nodes] = 0
        kept[best], dropped[best] = 1, 0
        for side, mask in (("keep", kept), ("drop", dropped)):
            expected = model(X * mask[:, None], EDGES)[row].softmax(0)[e.target]
            curve = getattr(found.method("contribution").ways["zero"], side)
            assert curve[number] == pytest.approx(float(expected.detach())), (side, share)
    measures = found.method("contribution").ways["zero"]
    gaps = [a - b for a, b in zip(measures.keep, measures.drop, strict=True)]
    assert measures.fidelity == pytest.approx(sum(gaps) / len(gaps))
    assert found.whole == pytest.approx(float(model(X, EDGES)[row].softmax(0).max().detach()))


CASES = {
    "nodes": (lambda: net("gat"), (X, EDGES), {"index": [2, 5]}, "classification"),
    "graphs": (
        lambda: net(level="graph"),
        ([Data(x=X[:6], edge_index=EDGES[:, (EDGES < 6).all(0)]), Data(x=X, edge_index=EDGES)],),
        {},
        "classification",
    ),
    "regression": (lambda: net("sage", "graph", classes=1), (X, EDGES), {}, "regression"),
    "one logit": (lambda: net(classes=1), (X, EDGES), {"index": 4, "task": "binary"}, "binary"),
    "types": (lambda: ready(Typed()), (TYPED_X, TYPED_EDGES), {"index": [1, 2]}, "classification"),
    "links": (lambda: ready(Links()), (X, EDGES, torch.tensor([[0, 2], [5, 4]])), {"index": 1}, "regression"),
}


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_prediction(name):
    build, args, given, task = CASES[name]
    model = build()
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    found = audit(model, *args, methods=FEW, **given, **QUICK)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert (found.task, found.notes, list(found.blank)) == (task, (), list(get_args(Way)))
    assert [one.name for one in found.methods] == [*FEW, "random"]
    for one in found.methods:
        assert list(one.ways) == list(get_args(Way))
        for measures in one.ways.values():
            assert 0 <= measures.infidelity <= 1
            assert abs(measures.correlation) <= 1 + 1e-9
            assert len(measures.keep) == len(measures.drop) == len(found.shares)
    assert found.method("contribution").stability == pytest.approx(1, abs=1e-6)
    assert comparable(audit(model, *args, methods=FEW, **given, **QUICK)) == comparable(found)
    assert comparable(audit(model, *args, methods=FEW, seed=1, **given, **QUICK)) != comparable(found)


def test_numbers_that_depend_on_the_numbering_are_noticed():
    by_number = {"by number": lambda one: Scores(torch.arange(12.0))}
    found = audit(net(level="graph"), X, EDGES, methods=by_number, ways=["nodes"], **QUICK)
    assert found.method("by number").stability < 0.9


def test_robust_fidelity_removes_a_few_and_an_oracle_has_it():
    """Of a model that only looks at three nodes, the method that names them is more faithful than one that does not."""

    class Three(nn.Module):
        def forward(self, x, edge_index):
            return torch.stack([x[:3].sum(), -x[:3].sum()])[None]

    model, x = Three(), torch.ones(12, 2, dtype=torch.float64)
    right, wrong = torch.zeros(12), torch.zeros(12)
    right[:3], wrong[9:] = 1, 1
    methods = {"right": lambda one: Scores(right), "wrong": lambda one: Scores(wrong)}
    found = audit(model, x, EDGES, methods=methods, ways=["zero"], samples=40, progress=False)
    for measure in ("fidelity", "robust", "correlation"):
        good, bad = (getattr(found.method(name).ways["zero"], measure) for name in ("right", "wrong"))
        assert good > bad, measure
    assert found.method("right").ways["zero"].robust > 0
    assert found.method("right").ways["zero"].infidelity == pytest.approx(0, abs=1e-9)


def test_layers_that_keep_their_edges_see_what_is_cut():
    class Cached(nn.Module):
        def __init__(self, cached):
            super().__init__()
            self.conv = GCNConv(4, 2, cached=cached)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    plain, cached = ready(Cached(False)), ready(Cached(True))
    cached(X, EDGES)
    kept = (torch.arange(12) % 2 == 0)[None]
    for way in ("edges", "nodes"):
        assert torch.equal(
            Removal(cached, X, EDGES, index=2).predictions(kept, way),
            Removal(plain, X, EDGES, index=2).predictions(kept, way),
        )
    assert cached.conv.cached
    assert cached.conv._cached_edge_index is not None


def test_what_cannot_be_measured_is_noted_not_hidden():
    found = audit(Flat(), X, level="graph", methods=["contribution", "GRAD"], **QUICK)
    assert list(found.blank) == ["zero", "mean"]
    assert any(note.startswith('way "nodes": not possible, edges can be cut where') for note in found.notes)
    assert any(note.startswith("GRAD: not measured") for note in found.notes)
    assert "GRAD" not in [one.name for one in found.methods]
    assert all(note in found.text() for note in found.notes)


def test_what_methods_warn_of_is_one_line_in_the_result():
    class Scaled(nn.Module):
        """A unit that is 0 for these features, scaled by a million."""

        def forward(self, x, edge_index):
            return torch.cat([x.sum(0).relu() * 1e6, x.sum(0)])[None]

    found = audit(
        Scaled(), X - X.mean(0) - 0.1, EDGES, methods=["contribution, the paper's rules", "contribution"], **QUICK
    )
    said = [one for one in found.warnings if "contributions of up to" in one]
    assert len(said) == 1
    assert said[0].startswith("contribution, the paper's rules: ")
    assert said[0] in found.text()
    assert not found.notes


def test_wrong_requests_are_refused():
    model = net()
    for given, message in (
        ({"index": 3, "methods": ["magic"]}, "there is no method 'magic'"),
        ({"index": 3, "ways": ["colour"]}, "ways are some of"),
        ({"index": 3, "samples": 0}, "samples must be an integer of at least 1"),
        ({"index": []}, "empty list"),
        ({"index": 30}, "out of range"),
    ):
        with pytest.raises(ValueError, match=message):
            audit(model, X, EDGES, **{**QUICK, **given})
    with pytest.raises(ValueError, match="there are 1 graphs"):
        audit(net(level="graph"), [Data(x=X, edge_index=EDGES)], index=1, **QUICK)
    found = audit(model, X, EDGES, index=3, methods=FEW, ways=["zero"], **QUICK)
    with pytest.raises(ValueError, match="measure must be one of"):
        found.table("truth")
    with pytest.raises(ValueError, match="way must be one of"):
        found.plot("nodes")
    with pytest.raises(KeyError, match="was not audited"):
        found.method("magic")


def test_without_an_index_some_predictions_are_audited():
    found = audit(net(), X, EDGES, methods=["occlusion"], ways=["zero"], samples=1, progress=False)
    assert found.predictions == 12


def test_table_picture_and_json(tmp_path):
    found = audit(net(), X, EDGES, index=3, methods=FEW, **QUICK)
    table = found.table("correlation")
    assert table.head == ("method", *(f"features set to {b}" for b in ("zero", "the mean")), "edges cut",
                          "nodes removed", "agreement", "renumbered", "seconds")  # fmt: skip
    assert [row[0] for row in table.rows] == [*FEW, "random"]
    assert f"{found.method('occlusion').ways['edges'].correlation:.3f}" == table.rows[1][3]
    assert "not truth" in str(found)
    assert "| occlusion |" in found.table().markdown()
    figure = found.plot("edges")
    assert [len(ax.get_lines()) for ax in figure.axes] == [4, 4]
    assert set(WAY_NAMES) == set(get_args(Way))
    content = json.loads(found.save(tmp_path / "audit.json").read_text())
    assert content["format"] == "xdegree.audit/1"
    assert content["methods"][0]["ways"]["zero"]["fidelity"] == found.methods[0].ways["zero"].fidelity
    assert content["methods"][-1]["stability"] is None


FACTORY = """
import torch
from helpers import EDGES, features, net
from torch_geometric.data import Data


def nodes():
    return net(), (features(), EDGES)


def graphs():
    return net(level="graph"), ([Data(x=features(seed=i), edge_index=EDGES) for i in range(3)],)
"""


@pytest.fixture
def factory(tmp_path, monkeypatch):
    (tmp_path / "audited.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    return "audited.py"


def test_the_command(factory, capsys, tmp_path):
    few = ["--method", "contribution", "--method", "occlusion", "--way", "zero", "--samples", "3"]
    given = [f"{factory}:nodes", "--index", "3", "--index", "5", *few]
    assert main(["audit", *given, "--out", "a.json", "--picture", "a.png"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("2 predictions (classification), 3 random draws, seed 0")
    assert (tmp_path / "a.png").stat().st_size > 1000
    assert main(["audit", *given, "--json", "--quiet"]) == 0
    content, saved = json.loads(capsys.readouterr().out), json.loads((tmp_path / "a.json").read_text())
    assert content["blank"] == saved["blank"]
    assert main(["audit", f"{factory}:graphs", *few, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["predictions"] == 3
    assert main(["audit", f"{factory}:graphs", "--method", "magic"]) == 2
    assert "there is no method 'magic'" in capsys.readouterr().err


def test_the_command_knows_the_choices_of_the_library():
    assert (TASKS, WAYS) == (get_args(Task), get_args(Way))
