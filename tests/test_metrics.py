import pytest
import torch
from helpers import EDGES, PAIR_EDGES, both_ways, features, net
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from torch_geometric.explain import Explainer, Explanation
from torch_geometric.explain import metric as pyg
from torch_geometric.explain.algorithm import DummyExplainer

from xdegree.baselines.instance import instance
from xdegree.metrics import (
    Fidelity,
    acc_against_sparsity,
    auc,
    average,
    fidelity,
    hop_controlled_auc,
    node_truth,
    stability,
    top_nodes,
)


@st.composite
def instances(draw):
    """Scores with many ties, and a truth with both classes."""
    rows = draw(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=40))
    scores, truth = zip(*rows, (0, True), (1, False), strict=True)
    return torch.tensor(scores, dtype=torch.float32) / 7, torch.tensor(truth)


@given(instances())
def test_auc_is_scikit_learns(instance):
    scores, truth = instance
    assert auc(scores, truth) == pytest.approx(roc_auc_score(truth.numpy(), scores.numpy()), abs=1e-12)


@given(instances())
def test_auc_turns_around_with_the_sign_and_the_truth(instance):
    scores, truth = instance
    assert auc(-scores, truth) == pytest.approx(1 - auc(scores, truth), abs=1e-12)
    assert auc(scores, ~truth) == pytest.approx(1 - auc(scores, truth), abs=1e-12)


def test_auc_by_hand():
    assert auc(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 1, 0])) == 1
    assert auc(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([0, 1, 0])) == 0.5
    assert auc(torch.tensor([2.0, 2.0, 1.0]), torch.tensor([0, 1, 0])) == 0.75
    assert auc(torch.tensor([4, 4, 4, 4]), torch.tensor([0, 1, 0, 1])) == 0.5
    assert auc(torch.tensor([float("inf"), 0, -float("inf")]), torch.tensor([1, 0, 0])) == 1


@pytest.mark.parametrize("truth", [[True, True, True], [False, False, False]])
def test_one_class_is_refused(truth):
    with pytest.raises(ValueError, match=rf"got {sum(truth)} true and {3 - sum(truth)} false"):
        auc(torch.rand(3), torch.tensor(truth))


def test_nan_and_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        auc(torch.tensor([1.0, float("nan")]), torch.tensor([True, False]))
    with pytest.raises(ValueError, match=r"got \[2\], \[3\]"):
        auc(torch.rand(2), torch.tensor([True, False, True]))


@given(instances(), st.integers(0, 5))
def test_distance_alone_scores_one_half_when_hops_are_controlled(case, seed):
    _, truth = case
    distance = torch.randint(0, 3, truth.shape, generator=torch.Generator().manual_seed(seed))
    try:
        assert hop_controlled_auc(-distance.float(), truth, distance) == 0.5
    except ValueError as error:
        assert "leave this instance out" in str(error)  # noqa: PT017 - no distance may have both classes


@given(instances())
def test_hop_controlled_auc_is_the_share_of_ordered_pairs(case):
    scores, truth = case
    distance = torch.arange(len(scores)) % 2
    pairs = [
        1.0 if scores[i] > scores[j] else 0.5 if scores[i] == scores[j] else 0.0
        for i in range(len(scores))
        for j in range(len(scores))
        if truth[i] and not truth[j] and distance[i] == distance[j]
    ]
    if pairs:
        assert hop_controlled_auc(scores, truth, distance) == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)
    assert hop_controlled_auc(scores, truth, torch.zeros_like(distance)) == pytest.approx(auc(scores, truth))


def test_an_average_skips_what_has_one_class_only_and_nothing_else():
    good, one_class = (torch.tensor([2.0, 1.0]), torch.tensor([1, 0])), (torch.tensor([2.0, 1.0]), torch.tensor([1, 1]))
    found = average(auc, [good, one_class, good])
    assert (found.values, found.skipped, found.mean) == ((1.0, 1.0), 1, 1.0)
    with pytest.raises(ValueError, match="NaN"):
        average(auc, [(torch.tensor([float("nan"), 1.0]), torch.tensor([1, 0]))])


def test_nodes_of_the_same_motif_are_true_among_those_that_can_contribute():
    one = instance(net(layers=1), features(), EDGES, index=5)
    among, true = node_truth(one, torch.tensor([-1] * 5 + [0] * 3 + [1] * 4), 5)
    assert among.tolist() == [4, 5, 6]
    assert true.tolist() == [False, True, True]


@pytest.mark.parametrize("level", ["node", "graph"])
def test_fidelity_by_hand_and_pygs(level):
    model, x = net(level=level), features()
    one = instance(model, x, EDGES, index=5 if level == "node" else None)
    group = torch.arange(12) % 3 == 0
    found = fidelity(one, group)

    def row(kept):
        output = model(torch.where(kept.unsqueeze(1), x, 0.0), EDGES)
        return output[5 if level == "node" else 0].detach()

    target = int(row(torch.ones(12, dtype=torch.bool)).argmax())
    whole, without, alone = (
        float(row(kept).softmax(0)[target]) for kept in (torch.ones(12, dtype=torch.bool), ~group, group)
    )
    assert found.plus == pytest.approx(whole - without, abs=1e-12)
    assert found.minus == pytest.approx(whole - alone, abs=1e-12)

    config = {"mode": "multiclass_classification", "task_level": level, "return_type": "raw"}
    explainer = Explainer(
        model, DummyExplainer(), explanation_type="model", node_mask_type="object", model_config=config
    )
    explanation = Explanation(
        x=x, edge_index=EDGES, node_mask=group.double().unsqueeze(1), target=model(x, EDGES).argmax(-1), _model_args=[]
    )
    if level == "node":
        explanation.index = 5
    assert pyg.fidelity(explainer, explanation) == (found.plus_changed, found.minus_changed)


def test_characterisation_is_the_harmonic_mean():
    assert Fidelity(0.5, 0.5, 0, 0).characterisation == pytest.approx(0.5)
    assert Fidelity(1.0, 0.0, 0, 0).characterisation == pytest.approx(1)
    assert Fidelity(0.2, 0.4, 0, 0).characterisation == pytest.approx(2 / (1 / 0.2 + 1 / 0.6))
    assert Fidelity(-0.1, 0.4, 0, 0).characterisation == 0
    assert Fidelity(0.1, 1.0, 0, 0).characterisation == 0


def test_top_nodes_keeps_a_share_of_them():
    found = top_nodes(torch.tensor([1.0, 3.0, 3.0, 2.0]), [0.1, 0.5, 0.75, 1])
    assert found.int().tolist() == [[0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1]]
    with pytest.raises(ValueError, match=r"got \[0, 1.5\]"):
        top_nodes(torch.ones(3), [0, 0.5, 1.5])


def test_acc_is_the_share_of_unchanged_classes():
    model, x = net(level="graph"), features()
    graphs = [instance(model, x[:5], PAIR_EDGES[:, (PAIR_EDGES < 5).all(0)]), instance(model, x, EDGES)]
    masks = [top_nodes(torch.arange(float(one.num_nodes)), [0.2, 0.6, 1]) for one in graphs]
    slow = [
        [
            int(model(torch.where(kept.unsqueeze(1), one.x, 0.0), one.edge_index).argmax())
            == int(one.prediction.argmax())
            for kept in mask
        ]
        for one, mask in zip(graphs, masks, strict=True)
    ]
    assert acc_against_sparsity(graphs, masks) == torch.tensor(slow).double().mean(0).tolist()
    assert acc_against_sparsity(graphs, masks)[-1] == 1
    assert acc_against_sparsity(graphs, masks, max_nodes=5) == [float(hit) for hit in slow[0]]
    drawn = acc_against_sparsity(graphs, masks, draws=7, seed=1)
    assert drawn == acc_against_sparsity(graphs, masks, draws=7, seed=1)
    with pytest.raises(ValueError, match="no graphs"):
        acc_against_sparsity(graphs, masks, max_nodes=2)


def test_stability_is_torchmetrics_spearman_and_the_overlap_of_the_best():
    spearman = pytest.importorskip("torchmetrics").functional.spearman_corrcoef
    scores = torch.rand(3, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = [float(spearman(scores[i], scores[j])) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert stability(scores).correlation == pytest.approx(sum(expected) / 3)
    same = stability(torch.tensor([[3.0, 2, 1], [6.0, 4, 2]]), k=2)
    assert (same.correlation, same.overlap) == (pytest.approx(1), 1)
    other = stability(torch.tensor([[3.0, 2, 1], [1.0, 2, 3]]), k=2)
    assert (other.correlation, other.overlap) == (pytest.approx(-1), pytest.approx(1 / 3))
    assert stability(torch.ones(2, 4)).correlation == 1
    assert stability(torch.stack([torch.ones(4), torch.arange(4.0)])).correlation == 0
    with pytest.raises(ValueError, match="two or more rows"):
        stability(torch.ones(1, 4))


# Instances, on which the measures work


@pytest.mark.parametrize("kind", ["gcn", "gat", "sage"])
def test_an_instance_is_the_prediction_on_its_own_part_of_the_graph(kind):
    model, x = net(kind), features()
    one = instance(model, x, EDGES, index=1)
    torch.testing.assert_close(one.output(one.x), model(x, EDGES)[1])
    torch.testing.assert_close(one.outputs(one.x.repeat(3, 1, 1)), model(x, EDGES)[[1, 1, 1]])
    assert one.nodes is not None
    assert len(one.x) < 12
    assert one.of_nodes(torch.ones(len(one.x)))[one.nodes].all()
    assert one.of_nodes(torch.ones(len(one.x))).sum() == len(one.x)
    assert one.of_edges(torch.ones(one.edge_index.shape[1])).sum() == one.edge_index.shape[1]
    assert torch.equal(one.nodes[one.local_field], one.field)
    assert one.distance()[one.row] == 0
    assert one.of_nodes(one.distance())[3] == 2  # 1-2-3


def test_an_instance_of_a_graph_stacks_copies_where_the_model_knows_batches():
    x = features()
    kept = torch.rand(5, 12, generator=torch.Generator().manual_seed(0)) > 0.5
    model = net(level="graph")
    batched = instance(model, x, EDGES)

    class Alone(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x, edge_index):
            return self.inner(x, edge_index)

    torch.testing.assert_close(batched.masked(kept), instance(Alone(), x, EDGES).masked(kept))
    with pytest.raises(ValueError, match="not of graphs"):
        batched.distance()


def test_distance_to_what_is_apart_is_the_number_of_nodes():
    one = instance(net("sage"), features(4), both_ways([(0, 1), (2, 3)]), index=0)
    assert one.of_nodes(one.distance()).tolist()[:2] == [0, 1]
    with pytest.raises(ValueError, match="one prediction"):
        instance(net(), features(), EDGES, index=[1, 2])
