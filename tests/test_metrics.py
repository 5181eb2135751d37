import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from xdegree.metrics import auc


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
