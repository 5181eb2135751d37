"""Graphs with several types of nodes and edges."""

import json

import pytest
import torch
from helpers import assert_close, features, ready
from torch import nn
from torch_geometric.data import HeteroData
from torch_geometric.explain import Explainer
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    HANConv,
    HeteroConv,
    HGTConv,
    RGATConv,
    RGCNConv,
    SAGEConv,
    to_hetero,
    to_hetero_with_bases,
)

from xdegree import DegreeExplainer, HeteroExplanation, MissingRuleError, check, decompose, explain

pytestmark = pytest.mark.filterwarnings("ignore:There exist node types")
WRITES, WRITTEN, CITES = ("author", "writes", "paper"), ("paper", "written_by", "author"), ("paper", "cites", "paper")
SIZES = {"paper": 6, "author": 4}


def graph() -> HeteroData:
    data = HeteroData()
    for number, (kind, size) in enumerate(SIZES.items()):
        data[kind].x = features(size, 4, number)
    writes = torch.tensor([[0, 0, 1, 1, 2, 3, 3], [0, 1, 1, 2, 3, 4, 5]])
    data[WRITES].edge_index = writes
    data[WRITTEN].edge_index = writes.flip(0)
    data[CITES].edge_index = torch.tensor([[1, 2, 3, 5], [0, 1, 1, 4]])
    return data


DATA = graph()
X, EDGES = DATA.x_dict, DATA.edge_index_dict
KINDS = [WRITES, WRITTEN, CITES]


class Homogeneous(nn.Module):
    def __init__(self, conv=SAGEConv):
        super().__init__()
        self.first, self.second = conv((4, 4), 5), conv((5, 5), 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class Typed(nn.Module):
    """Two layers of types, a linear layer for papers."""

    def __init__(self, layer):
        super().__init__()
        self.first, self.second, self.lin = layer(4, 6), layer(6, 6), nn.Linear(6, 3)

    def forward(self, x_dict, edge_index_dict):
        x_dict = {kind: x.relu() for kind, x in self.first(x_dict, edge_index_dict).items()}
        return self.lin(self.second(x_dict, edge_index_dict)["paper"])


def hetero_conv(i, o):
    convs = {
        WRITES: SAGEConv((i, i), o),
        WRITTEN: GATConv((i, i), o, add_self_loops=False),
        CITES: GCNConv(i, o),
    }
    return HeteroConv(convs, aggr="sum")


class WithBases(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = to_hetero_with_bases(OneType(), DATA.metadata(), num_bases=3, in_channels={"x": 4})
        self.inner({k: x.float() for k, x in X.items()}, EDGES)  # makes its lazy parameters

    def forward(self, x_dict, edge_index_dict):
        return self.inner(x_dict, edge_index_dict)["paper"]


class OneType(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = SAGEConv((4, 4), 3)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


MODELS = {
    "HeteroConv": lambda: Typed(hetero_conv),
    "HGTConv": lambda: Typed(lambda i, o: HGTConv(i, o, DATA.metadata(), heads=2)),
    "HANConv": lambda: Typed(lambda i, o: HANConv(i, o, DATA.metadata(), heads=2)),
}
SINGLES = [{kind: [node]} for kind, size in SIZES.items() for node in range(size)]
EVERY_EDGE = [{kind: [edge]} for kind in KINDS for edge in range(EDGES[kind].shape[1])]


def model_of(name):
    return ready(MODELS[name]())


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_nodes_of_all_types(name):
    model = model_of(name)
    d = decompose(model, X, EDGES, groups=[*SINGLES, {}, {"paper": [0, 1], "author": [2]}])
    assert torch.equal(d.total, model(X, EDGES))
    assert not d.target[len(SINGLES)].any()
    e = explain(model, X, EDGES, index=1, edge_scores="pair")
    assert isinstance(e, HeteroExplanation)
    assert_close(e.node_scores["paper"], d.target[:6, 1, e.target])
    assert_close(e.node_scores["author"], d.target[6:10, 1, e.target])
    assert torch.equal(e.prediction, model(X, EDGES)[1])
    assert (e.index, e.target) == (1, int(e.prediction.argmax()))
    for kind in KINDS:
        groups = [
            {kind[0]: [u], kind[2]: [v]} if kind[0] != kind[2] else {kind[0]: sorted({u, v})}
            for u, v in EDGES[kind].t().tolist()
        ]
        assert_close(e.edge_scores[kind], decompose(model, X, EDGES, groups=groups).target[:, 1, e.target])


@pytest.mark.parametrize("name", MODELS)
def test_masks_by_type_equal_groups_by_type(name):
    model = model_of(name)
    masks = {"paper": torch.rand(3, 6) < 0.5, "author": torch.rand(3, 4) < 0.5}
    groups = [{kind: mask[k].nonzero().flatten().tolist() for kind, mask in masks.items()} for k in range(3)]
    d = decompose(model, X, EDGES, groups=masks)
    assert_close(d.target, decompose(model, X, EDGES, groups=groups).target)
    only = decompose(model, X, EDGES, groups={"author": masks["author"]})
    assert_close(only.target, decompose(model, X, EDGES, groups=[{"author": g["author"]} for g in groups]).target)
    whole = decompose(model, X, EDGES, groups={"author": torch.ones(1, 4, 4, dtype=torch.float64)})
    assert_close(whole.target, decompose(model, X, EDGES, groups=[{"author": range(4)}]).target)


def test_to_hetero_and_a_part_of_the_output():
    model = ready(to_hetero(Homogeneous(), DATA.metadata()))
    d = decompose(model, X, EDGES, groups=SINGLES)
    own = model(X, EDGES)
    for kind in SIZES:
        assert torch.equal(d.total[kind], own[kind])
        e = explain(model, X, EDGES, index=2, output=kind)
        both = torch.cat([e.node_scores["paper"], e.node_scores["author"]])
        assert_close(both, d.target[kind][:, 2, e.target])
    with pytest.raises(TypeError, match=r"with the parts \['paper', 'author'\].*output="):
        explain(model, X, EDGES, index=2)
    with pytest.raises(ValueError, match=r"output='venue' is no part .*\['paper', 'author'\]"):
        explain(model, X, EDGES, index=2, output="venue")


def test_bases():
    model = ready(WithBases())
    d = decompose(model, X, EDGES, groups=SINGLES)
    e = explain(model, X, EDGES, index=3)
    assert_close(torch.cat([e.node_scores["paper"], e.node_scores["author"]]), d.target[:, 3, e.target])


def test_hetero_data_in_place_of_dicts():
    model = model_of("HGTConv")
    e = explain(model, DATA, index=1)
    expected = explain(model, X, EDGES, index=1)
    named = explain(model, x_dict=X, edge_index_dict=EDGES, index=1)
    for kind in SIZES:
        assert_close(e.node_scores[kind], expected.node_scores[kind])
        assert_close(named.node_scores[kind], expected.node_scores[kind])
    typed = ready(to_hetero(Homogeneous(), DATA.metadata()))  # takes x and edge_index
    e = explain(typed, DATA, index=1, output="author")
    assert_close(e.node_scores["paper"], explain(typed, X, EDGES, index=1, output="author").node_scores["paper"])
    d = decompose(model, DATA, groups=[{"paper": [0]}])
    assert_close(d.target, decompose(model, X, EDGES, groups=[{"paper": [0]}]).target)
    assert check(model, DATA).ok


def test_several_rows():
    model = model_of("HANConv")
    for e in explain(model, X, EDGES, index=[0, 3]):
        one = explain(model, X, EDGES, index=e.index)
        for kind in SIZES:
            assert_close(e.node_scores[kind], one.node_scores[kind])
    assert [e.index for e in explain(model, X, EDGES, index="all")] == list(range(6))


@pytest.mark.parametrize("reading", ["probability", "strength"])
def test_readings(reading):
    e = explain(model_of("HeteroConv"), X, EDGES, index=1, reading=reading)
    assert all((s >= 0).all() for s in e.node_scores.values())
    assert any(s.any() for s in e.node_scores.values())


def test_a_row_per_node_without_classes():
    model = model_of("HGTConv")

    def squeezed(x_dict, edge_index_dict):
        return model(x_dict, edge_index_dict)[:, 0]

    e = explain(squeezed, X, EDGES, index=4)
    assert_close(e.node_scores["paper"], explain(model, X, EDGES, index=4, target=0).node_scores["paper"])


@pytest.mark.parametrize("name", [*MODELS, "to_hetero"])
@torch.no_grad()
def test_messages_by_type_of_edge(name):
    model = ready(to_hetero(Homogeneous(), DATA.metadata())) if name == "to_hetero" else model_of(name)
    d = decompose(model, X, EDGES, groups=[*EVERY_EDGE, {}, {CITES: range(4)}], of="edge")
    total, target = (d.total["paper"], d.target["paper"]) if name == "to_hetero" else (d.total, d.target)
    own = model(X, EDGES)
    assert torch.equal(total, own["paper"] if name == "to_hetero" else own)
    assert not target[len(EVERY_EDGE)].any()
    assert target[:7].any()
    assert target[-1].any()
    # Edge 5 → 4 of papers tells paper 4, whose author tells paper 5; nobody else hears of it.
    assert not target[len(EVERY_EDGE) - 1, [0, 1, 2, 3]].any()
    masks = {CITES: torch.ones(1, 4, dtype=torch.bool)}
    by_mask = decompose(model, X, EDGES, groups=masks, of="edge").target
    assert_close(by_mask["paper"] if name == "to_hetero" else by_mask, target[-1:])


def test_messages_of_a_sum_without_bias_add_up():
    model = ready(
        HeteroConv({k: SAGEConv((4, 4), 3, aggr="sum", bias=False, root_weight=False) for k in KINDS}, aggr="sum")
    )
    d = decompose(model, X, EDGES, groups=EVERY_EDGE, of="edge")
    for kind in SIZES:
        assert_close(d.target[kind].sum(0), d.total[kind])


def test_equal_edges_of_two_types_are_told_apart_by_the_name_of_the_layer():
    same = {("a", "to", "b"): EDGES[WRITES], ("a", "from", "b"): EDGES[WRITES]}
    x = {"a": X["author"], "b": X["paper"]}
    model = ready(
        HeteroConv({k: SAGEConv((4, 4), 3, aggr="sum", bias=False, root_weight=False) for k in same}, aggr="sum")
    )
    d = decompose(model, x, same, groups=[{kind: range(7)} for kind in same], of="edge")
    assert_close(d.target["b"].sum(0), d.total["b"])
    for number, kind in enumerate(same):
        key = "<" + "___".join(kind) + ">"
        layer = dict(model.convs.named_children())[key]
        assert_close(d.target["b"][number], layer((x["a"], x["b"]), same[kind]).detach())


def test_a_loop_on_a_type_is_not_an_edge_of_another():
    """Layers that add self-loops change their edges; they are known by the name of the layer then."""
    model = ready(HeteroConv({CITES: GATConv(4, 3), WRITES: SAGEConv((4, 4), 3)}, aggr="sum"))
    d = decompose(model, X, EDGES, groups=[{CITES: [0]}, {WRITES: [0]}], of="edge")
    assert d.target["paper"][0, 0].any()
    assert not d.target["paper"][0, 1:].any()
    assert d.target["paper"][1, 0].any()


@pytest.mark.parametrize("of", ["edge", "feature"])
def test_edges_and_features_in_explain(of):
    model = model_of("HeteroConv")
    e = explain(model, X, EDGES, index=1, of=of)
    if of == "edge":
        d = decompose(model, X, EDGES, groups=EVERY_EDGE, of="edge")
        assert_close(torch.cat([e.edge_scores[kind] for kind in KINDS]), d.target[:, 1, e.target])
        kind, number = e.top(1)[0][0]
        assert e.edge_scores[kind][number].item() == e.top(1)[0][1]
    else:
        for kind, x in X.items():
            masks = {kind: torch.eye(x.numel(), dtype=torch.bool).reshape(-1, *x.shape)}
            d = decompose(model, X, EDGES, groups=masks)
            assert_close(e.feature_scores[kind], d.target[:, 1, e.target].reshape(x.shape))
    assert repr(e)
    assert len(e.to_dataframe()) > 0


@pytest.mark.parametrize(
    ("groups", "of", "error", "message"),
    [
        ([{"venue": [0]}], "node", ValueError, r"types \['venue'\], but the model was given \['paper', 'author'\]"),
        ({"venue": torch.ones(1, 3)}, "node", ValueError, "venue"),
        ([{("paper", "likes", "paper"): [0]}], "edge", ValueError, "likes.*cites"),
        ([{"paper": [0]}], "edge", ValueError, "types"),
        ([{CITES: [4]}], "edge", ValueError, r"names edges \[4\], but ids go from 0 to 3"),
        ([{"author": [4]}], "node", ValueError, r"names nodes \[4\], but ids go from 0 to 3"),
        ([[0]], "node", TypeError, r"dicts by type"),
        ([], "node", ValueError, "empty"),
        (torch.ones(1, 6), "node", TypeError, "dicts by type"),
        ({"paper": torch.ones(2, 6), "author": torch.ones(3, 4)}, "node", ValueError, "same number of groups"),
        ({"paper": torch.ones(2, 5)}, "node", ValueError, r"\[K, 6\]"),
        ({"paper": [0]}, "node", TypeError, "mask"),
    ],
)
def test_groups_that_do_not_fit(groups, of, error, message):
    with pytest.raises(error, match=message):
        decompose(model_of("HeteroConv"), X, EDGES, groups=groups, of=of)


def test_inputs_that_do_not_fit():
    model = model_of("HeteroConv")
    with pytest.raises(TypeError, match="node features of type 'author' must be floating point"):
        explain(model, {**X, "author": X["author"].long()}, EDGES, index=1)
    with pytest.raises(ValueError, match="dict of node features is empty"):
        explain(model, {}, EDGES, index=1)
    with pytest.raises(ValueError, match="index is missing: the model predicts 6 nodes"):
        explain(model, X, EDGES)
    bad = {**X, "paper": X["paper"].clone().fill_(float("nan"))}
    with pytest.raises(ValueError, match="node features of type 'paper' must be finite"):
        explain(model, bad, EDGES, index=1)


def test_a_model_that_takes_the_data():
    model = model_of("HeteroConv")
    e = explain(lambda data: model(data.x_dict, data.edge_index_dict), DATA, index=1)
    own = explain(model, X, EDGES, index=1)
    assert {k: s.tolist() for k, s in e.node_scores.items()} == {k: s.tolist() for k, s in own.node_scores.items()}


def test_a_missing_rule_names_the_layer():
    class Odd(Typed):
        def forward(self, x_dict, edge_index_dict):
            return torch.special.i0(super().forward(x_dict, edge_index_dict))

    with pytest.raises(MissingRuleError, match="i0"):
        explain(ready(Odd(hetero_conv)), X, EDGES, index=1)
    assert not check(ready(Odd(hetero_conv)), X, EDGES).ok


@pytest.mark.parametrize("of", ["node", "edge", "feature"])
def test_save_and_load(tmp_path, of):
    e = explain(model_of("HGTConv"), X, EDGES, index=1, of=of)
    again = HeteroExplanation.load(e.save(tmp_path / "e.json"))
    assert (again.of, again.index, again.target, again.level, again.options) == (of, 1, e.target, "node", e.options)
    for before, after in ((e.scores, again.scores), (e.edge_index, again.edge_index)):
        assert list(before) == list(after)
        assert all(
            torch.equal(before[kind], after[kind]) and before[kind].dtype == after[kind].dtype for kind in before
        )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "xdegree.explanation/2"}, "no saved hetero explanation"),
        ({"prediction": None}, "broken.*prediction"),
        ({"target": 99}, "broken.*target"),
        ({"of": "atom"}, "broken.*of must be one of"),
        ({"node_scores": [["paper", "abc"]]}, "broken"),
        ({"node_scores": [[5, [1.0]]]}, "broken"),
        ({"edge_index": [[["a", "b"], [[0], [0]]]]}, "broken.*types"),
        ({"edge_index": [["a", [[0], [0]]]]}, "broken.*three names"),
        ({"edge_index": [[["a", "b", "c"], [0]]]}, "broken.*2, E"),
    ],
)
def test_broken_files(tmp_path, changes, words):
    path = explain(model_of("HGTConv"), X, EDGES, index=1).save(tmp_path / "e.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(ValueError, match=words):
        HeteroExplanation.load(path)


def test_without_types_for_pictures():
    e = explain(model_of("HGTConv"), X, EDGES, index=1, edge_scores="mean")
    flat = e.to_homogeneous()
    assert (flat.num_nodes, flat.target) == (10, e.target)
    assert e.names == [f"paper {i}" for i in range(6)] + [f"author {i}" for i in range(4)]
    assert torch.equal(flat.node_scores, torch.cat([e.node_scores["paper"], e.node_scores["author"]]))
    ends = [(e.names[u], e.names[v]) for u, v in flat.edge_index.t().tolist()]
    u, v = EDGES[WRITES][:, 0].tolist()
    assert (f"author {u}", f"paper {v}") in ends
    assert len(flat.edge_scores) == flat.edge_index.shape[1]
    with pytest.raises(ValueError, match="only scores of nodes"):
        explain(model_of("HGTConv"), X, EDGES, index=1, of="edge").to_homogeneous()


def test_results_in_other_forms():
    e = explain(model_of("HGTConv"), X, EDGES, index=1, edge_scores="mean")
    frame = e.to_dataframe()
    assert list(frame.columns) == ["type", "node", "score"]
    assert len(frame) == 10
    assert list(frame["score"].abs()) == sorted(frame["score"].abs(), reverse=True)
    pyg = e.to_pyg()
    for kind in SIZES:
        assert_close(pyg[kind].node_mask.squeeze(-1), e.node_scores[kind])
    assert_close(pyg[CITES].edge_mask, e.edge_scores[CITES])
    (kind, node), score = e.top(1)[0]
    assert f"{kind} {node}: {score:+.4g}" in repr(e)
    u, v = EDGES[WRITES][:, 0].tolist()
    assert_close(e.edge_scores[WRITES][0], (e.node_scores["author"][u] + e.node_scores["paper"][v]) / 2)


# --- relations as numbers on one type of nodes


RELATIONS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
RING = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7, 0]])


class Relational(nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.first, self.second = conv(4, 5, 3), conv(5, 3, 3)

    def forward(self, x, edge_index, edge_type):
        return self.second(self.first(x, edge_index, edge_type).relu(), edge_index, edge_type)


@pytest.mark.parametrize("conv", [RGCNConv, RGATConv])
def test_relations(conv):
    model, x = ready(Relational(conv)), features(8)
    e = explain(model, x, RING, RELATIONS, index=4)
    d = decompose(model, x, RING, RELATIONS, groups=[[n] for n in range(8)])
    assert_close(e.node_scores, d.target[:, 4, e.target])
    assert {2, 3, 4} <= set(e.nodes.tolist())
    assert set(e.node_scores.nonzero().flatten().tolist()) <= {2, 3, 4}
    e = explain(model, x, RING, RELATIONS, index=4, of="edge")
    by_type = [(RELATIONS == kind).nonzero().flatten().tolist() for kind in range(3)]
    d = decompose(model, x, RING, RELATIONS, groups=by_type, of="edge")
    assert not d.target[RELATIONS[4], 4].any()  # the two edges that arrive at node 4 are of other types
    assert e.edge_scores.nonzero().flatten().tolist() == [2, 3]


# --- PyG's own interface


def explainer(model, node="object", edge="object", mode="multiclass_classification", kind="model"):
    return Explainer(
        model,
        DegreeExplainer(),
        explanation_type=kind,
        node_mask_type=node,
        edge_mask_type=edge,
        model_config={"mode": mode, "task_level": "node", "return_type": "raw"},
    )


@pytest.mark.parametrize("name", MODELS)
def test_pygs_explainer(name):
    model = model_of(name)
    found = explainer(model)(X, EDGES, index=1)
    expected = explain(model, X, EDGES, index=1, edge_scores="pair")
    for kind in SIZES:
        assert_close(found[kind].node_mask.squeeze(-1), expected.node_scores[kind])
    for kind in KINDS:
        assert_close(found[kind].edge_mask, expected.edge_scores[kind])
    assert found.validate()
    phenomenon = explainer(model, kind="phenomenon")(X, EDGES, target=torch.full((6,), 2), index=1)
    other = explain(model, X, EDGES, index=1, target=2)
    assert_close(phenomenon["paper"].node_mask.squeeze(-1), other.node_scores["paper"])


def test_what_pyg_does_with_the_result():
    """Its metrics are not made for several types (they look for arguments that its own class does not keep)."""
    found = explainer(model_of("HGTConv"))(X, EDGES, index=1)
    kept = found.get_explanation_subgraph()
    assert int((found["paper"].node_mask > 0).sum()) <= kept["paper"].num_nodes <= 6
    assert kept.node_types == list(SIZES)


@pytest.mark.parametrize("node", ["attributes", "common_attributes"])
def test_features_in_pygs_explainer(node):
    model = model_of("HeteroConv")
    found = explainer(model, node=node, edge=None)(X, EDGES, index=1)
    for kind, x in X.items():
        assert found[kind].node_mask.shape == (x.shape if node == "attributes" else (1, 4))
    if node == "attributes":
        expected = explain(model, X, EDGES, index=1, of="feature")
        assert_close(found["paper"].node_mask, expected.feature_scores["paper"])
