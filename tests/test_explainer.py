"""DegreeExplainer inside PyG's own Explainer."""

import pytest
import torch
from helpers import EDGES, PAIR_BATCH, PAIR_EDGES, assert_close, features, net, singles
from torch import nn
from torch_geometric.explain import Explainer, Explanation
from torch_geometric.explain.metric import (
    characterization_score,
    fidelity,
    groundtruth_metrics,
    unfaithfulness,
)

from xdegree import DegreeExplainer, Options, decompose, explain

X = features()


class Ending(nn.Module):
    """A model with the output that a return type promises."""

    def __init__(self, inner: nn.Module, return_type: str = "raw", binary: bool = False):
        super().__init__()
        self.inner, self.return_type, self.binary = inner, return_type, binary

    def forward(self, x, edge_index, batch=None):
        out = self.inner(x, edge_index, batch)
        if self.return_type == "probs":
            return out.sigmoid() if self.binary else out.softmax(-1)
        return out.log_softmax(-1) if self.return_type == "log_probs" else out


def explainer(
    model, algorithm=None, *, kind="model", level="node", mode="multiclass_classification", return_type="raw", **masks
):
    return Explainer(
        model,
        algorithm or DegreeExplainer(),
        explanation_type=kind,
        node_mask_type=masks.pop("node", "object"),
        edge_mask_type=masks.pop("edge", None),
        model_config={"mode": mode, "task_level": level, "return_type": return_type},
        **masks,
    )


@pytest.mark.parametrize("index", [5, torch.tensor(5), torch.tensor([5])])
def test_node_scores_are_those_of_explain(index):
    model = net("gat")
    e = explainer(model)(X, EDGES, index=index)
    expected = explain(model, X, EDGES, index=5)
    assert isinstance(e, Explanation)
    assert_close(e.node_mask, expected.node_scores.unsqueeze(-1))
    assert "edge_mask" not in e


def test_signed_scores_stay_signed():
    model = net("gat")
    worst = model(X, EDGES).argmin(-1)
    e = explainer(model, kind="phenomenon", edge="object")(X, EDGES, target=worst, index=5)
    expected = explain(model, X, EDGES, index=5, target=int(worst[5]), edge_scores="pair")
    assert_close(e.node_mask.squeeze(-1), expected.node_scores)
    assert_close(e.edge_mask, expected.edge_scores)
    assert e.node_mask.min() < 0
    assert e.edge_mask.min() < 0


@pytest.mark.parametrize("index", [torch.tensor([2, 7]), None])
def test_several_rows_are_explained_together(index):
    model = net()
    e = explainer(model)(X, EDGES, index=index)
    rows = range(12) if index is None else index.tolist()
    assert_close(e.node_mask.squeeze(-1), sum(explain(model, X, EDGES, index=row).node_scores for row in rows))


def test_a_phenomenon_is_explained_for_the_given_classes():
    model, labels = net(), torch.arange(12) % 3
    e = explainer(model, kind="phenomenon")(X, EDGES, target=labels, index=5)
    assert_close(e.node_mask.squeeze(-1), explain(model, X, EDGES, index=5, target=2).node_scores)
    e = explainer(model, kind="phenomenon")(X, EDGES, target=labels, index=torch.tensor([4, 6]))
    expected = [explain(model, X, EDGES, index=row, target=row % 3).node_scores for row in (4, 6)]
    assert_close(e.node_mask.squeeze(-1), sum(expected))
    e = explainer(model, kind="phenomenon")(X, EDGES, target=labels)
    assert_close(
        e.node_mask.squeeze(-1), sum(explain(model, X, EDGES, index=r, target=r % 3).node_scores for r in range(12))
    )


@pytest.mark.parametrize("kind", ["model", "phenomenon"])
@pytest.mark.parametrize("batched", [False, True])
def test_graphs(kind, batched):
    model = net("gat", "graph")
    args = {"batch": PAIR_BATCH} if batched else {}
    labels = torch.tensor([2, 1] if batched else [2])
    given = {"target": labels} if kind == "phenomenon" else {}
    index = 1 if batched else None
    e = explainer(model, kind=kind, level="graph")(X, PAIR_EDGES, index=index, **given, **args)
    target = int(labels[index or 0]) if kind == "phenomenon" else None
    assert_close(e.node_mask.squeeze(-1), explain(model, X, PAIR_EDGES, index=index, target=target, **args).node_scores)


def test_attributes_are_single_features():
    model, x = net(), X.clone()
    x[3] = 0
    e = explainer(model, node="attributes")(x, EDGES, index=5)
    mask = torch.eye(48, dtype=torch.bool).reshape(48, 12, 4)
    target = int(model(x, EDGES)[5].argmax())
    expected = decompose(model, x, EDGES, groups=mask).target[:, 5, target].reshape(12, 4)
    assert_close(e.node_mask, expected)
    assert not e.node_mask[3].any()


def test_common_attributes_are_whole_columns():
    model, x = net("gat"), X.clone()
    x[:, 2] = 0
    e = explainer(model, node="common_attributes")(x, EDGES, index=5)
    mask = torch.zeros(4, 12, 4, dtype=torch.bool)
    mask[torch.arange(4), :, torch.arange(4)] = True
    target = int(model(x, EDGES)[5].argmax())
    assert_close(e.node_mask, decompose(model, x, EDGES, groups=mask).target[:, 5, target].unsqueeze(0))
    assert e.node_mask.shape == (1, 4)


@pytest.mark.parametrize("node", [None, "object", "attributes", "common_attributes"])
@pytest.mark.parametrize("edges", ["pair", "mean"])
def test_edges(node, edges):
    model = net()
    e = explainer(model, DegreeExplainer(edge_scores=edges), node=node, edge="object")(X, EDGES, index=5)
    expected = explain(model, X, EDGES, index=5, edge_scores=edges)
    assert_close(e.edge_mask, expected.edge_scores)
    shape = {"object": (12, 1), "attributes": (12, 4), "common_attributes": (1, 4)}.get(node)
    if node is None:
        assert "node_mask" not in e
    else:
        assert e.node_mask.shape == shape
    if node == "object":
        assert_close(e.node_mask.squeeze(-1), expected.node_scores)


@pytest.mark.parametrize("return_type", ["raw", "probs", "log_probs"])
@pytest.mark.parametrize("level", ["node", "graph"])
def test_return_types(return_type, level):
    model = Ending(net("gcn", level), return_type).eval()
    e = explainer(model, level=level, return_type=return_type)(X, EDGES, index=5 if level == "node" else None)
    row = 5 if level == "node" else 0
    d = decompose(model, X, EDGES, groups=singles())
    shown = d if return_type == "raw" else d.logits
    expected = shown.target[:, row, int(d.total[row].argmax())]
    nodes = explain(model, X, EDGES, index=row).nodes
    assert_close(e.node_mask.squeeze(-1)[nodes], expected[nodes])


@pytest.mark.parametrize("return_type", ["raw", "probs"])
@pytest.mark.parametrize("shape", ["[N, 1]", "[N]"])
def test_binary_models_have_one_output_for_two_classes(return_type, shape):
    class Squeezed(Ending):
        def forward(self, *args):
            out = super().forward(*args)
            return out.squeeze(-1) if shape == "[N]" else out

    model = Squeezed(net(classes=1), return_type, binary=True).eval()
    asked = explainer(model, mode="binary_classification", return_type=return_type)
    raw = model.inner(X, EDGES).flatten()
    for row in (int(raw.argmax()), int(raw.argmin())):
        assert raw.max() > 0 > raw.min()
        plain = explain(model, X, EDGES, index=row).node_scores
        assert_close(asked(X, EDGES, index=row).node_mask.squeeze(-1), plain if raw[row] > 0 else -plain)


def test_binary_rows_of_both_classes_add_up_with_their_signs():
    model = net(classes=1)
    raw = model(X, EDGES).flatten()
    rows = torch.tensor([int(raw.argmax()), int(raw.argmin())])
    e = explainer(model, mode="binary_classification")(X, EDGES, index=rows)
    up, down = (explain(model, X, EDGES, index=int(row)).node_scores for row in rows)
    assert_close(e.node_mask.squeeze(-1), up - down)


def test_regression():
    model = net(classes=1)
    e = explainer(model, mode="regression")(X, EDGES, index=5)
    assert_close(e.node_mask.squeeze(-1), explain(model, X, EDGES, index=5).node_scores)
    wide = net(classes=2)
    e = explainer(wide, mode="regression")(X, EDGES, index=5)
    assert_close(e.node_mask.squeeze(-1), sum(explain(wide, X, EDGES, index=5, target=t).node_scores for t in (0, 1)))
    targets = torch.zeros(12, 1, dtype=torch.float64)
    e = explainer(model, kind="phenomenon", mode="regression")(X, EDGES, target=targets, index=5)
    assert_close(e.node_mask.squeeze(-1), explain(model, X, EDGES, index=5).node_scores)


@pytest.mark.parametrize("reading", ["probability", "strength"])
def test_readings_and_options(reading):
    model, options = net(), Options(bias="background")
    e = explainer(model, DegreeExplainer(reading=reading, options=options, memory="10MB"))(X, EDGES, index=5)
    assert_close(
        e.node_mask.squeeze(-1), explain(model, X, EDGES, index=5, reading=reading, options=options).node_scores
    )
    e = explainer(model, DegreeExplainer(reading="strength", layer="convs.0"))(X, EDGES, index=5)
    assert_close(
        e.node_mask.squeeze(-1), explain(model, X, EDGES, index=5, reading="strength", layer="convs.0").node_scores
    )


def test_bad_choices_of_the_explainer():
    for bad in ({"reading": "loudness"}, {"edge_scores": "sum"}, {"memory": "lots"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            explainer(net(), DegreeExplainer(**bad), edge="object")(X, EDGES, index=5)


@pytest.mark.parametrize(
    "unsupported",
    [{"edge": "attributes"}, {"edge": "common_attributes"}],
)
def test_what_it_does_not_support_is_refused(unsupported):
    with pytest.raises(ValueError, match=r"does not support|edge_mask_type"):
        explainer(net(), **unsupported)


@pytest.mark.parametrize("index", [12, -13, torch.tensor([3, 40])])
def test_rows_out_of_range(index):
    with pytest.raises((ValueError, IndexError), match=r"out of range|out of bounds"):
        explainer(net())(X, EDGES, index=index)


@pytest.mark.parametrize("training", [True, False])
def test_the_model_keeps_its_mode(training):
    model = net().train(training)
    explainer(model)(X, EDGES, index=5)
    assert model.training is training


@pytest.mark.parametrize(
    ("threshold", "kept"),
    [(("topk", 3), 3), (("topk_hard", 3), 3), (("hard", 0.1), None)],
)
def test_thresholds(threshold, kept):
    model = net()
    plain = explainer(model, edge="object")(X, EDGES, index=5)
    e = explainer(model, edge="object", threshold_config=threshold)(X, EDGES, index=5)
    if kept is None:
        assert torch.equal(e.node_mask, (plain.node_mask > 0.1).double())
        return
    chosen = e.node_mask.squeeze(-1).nonzero().flatten()
    assert set(chosen.tolist()) <= set(plain.node_mask.squeeze(-1).topk(kept).indices.tolist())
    assert len(chosen) == kept
    if threshold[0] == "topk":
        assert torch.equal(e.node_mask[chosen], plain.node_mask[chosen])


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", ["model", "phenomenon"])
def test_metrics_of_pyg(level, kind):
    model = net("gat", level)
    labels = model(X, EDGES).argmax(-1)
    given = {"target": labels} if kind == "phenomenon" else {}
    asked = explainer(model, kind=kind, level=level, node="object", edge="object")
    e = asked(X, EDGES, index=5 if level == "node" else None, **given)
    positive, negative = fidelity(asked, e)
    assert 0 <= positive <= 1
    assert 0 <= negative <= 1
    score = characterization_score(torch.tensor([0.5]), torch.tensor([0.25]))
    assert torch.isfinite(score).all()
    assert 0 <= unfaithfulness(asked, e) <= 1
    by_feature = explainer(model, kind=kind, level=level, node="attributes", edge="object")
    e = by_feature(X, EDGES, index=5 if level == "node" else None, **given)
    assert 0 <= unfaithfulness(by_feature, e, top_k=3) <= 1


def test_ground_truth_metrics_rank_by_score():
    e = explainer(net())(X, EDGES, index=5)
    scores = e.node_mask.squeeze(-1)
    truth = torch.zeros(12)
    truth[scores.topk(3).indices] = 1
    assert groundtruth_metrics(scores.sigmoid(), truth, metrics="auroc") == pytest.approx(1.0)


def test_float32_models():
    model, x = net(dtype=torch.float32), features(dtype=torch.float32)
    e = explainer(model, node="attributes", edge="object")(x, EDGES, index=5)
    assert e.node_mask.dtype == e.edge_mask.dtype == torch.float32
    assert e.validate()
