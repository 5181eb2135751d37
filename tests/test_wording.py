"""What views say in words: which output, what colours mean, and what scores add up to."""

import re
from dataclasses import replace

import pytest
import torch
from helpers import EDGES, features, net

from xdegree import agglomerate, explain
from xdegree.canvas import account, account_line, alike, output_name, scale_of, signs_line, unit_of


@pytest.mark.parametrize("of", ["node", "edge", "feature"])
@pytest.mark.parametrize("target", [0, 1, 2])
def test_parts_and_rest_are_the_prediction_of_the_explained_class(of, target):
    e = explain(net(), features(), EDGES, index=5, target=target, of=of)
    found = account(e)
    assert found.parts == pytest.approx(float(e.scores.sum()))
    assert found.prediction == pytest.approx(float(e.prediction[target]))
    assert found.parts + found.rest == pytest.approx(found.prediction)
    line = account_line(e)
    assert line.startswith(f"single {of}s add up to ")
    assert f"the prediction for class {target} is " in line
    parts, prediction, rest = (float(n.replace("−", "-")) for n in re.findall(r"(?:up to|is) ([+−]?[\d.]+)", line))
    assert (parts, prediction) == pytest.approx((found.parts, found.prediction), rel=0.02)
    assert parts + rest == pytest.approx(prediction, abs=1e-9), "the printed numbers add up"


def test_a_probability_is_accounted_for_as_a_probability():
    e = explain(net(), features(), EDGES, index=5, reading="probability")
    assert account(e).prediction == pytest.approx(float(e.prediction.softmax(0)[e.target]))
    one = explain(net(level="graph", classes=1), features(), EDGES, reading="probability")
    assert account(one).prediction == pytest.approx(float(one.prediction.sigmoid()))


def test_norms_do_not_add_up():
    e = explain(net(), features(), EDGES, index=5, reading="strength")
    assert account(e) is None
    assert account_line(e) == ""
    assert "blue" not in signs_line(e)


def test_a_tree_is_accounted_for_by_its_nodes_and_by_its_levels():
    tree = agglomerate(net(level="graph"), features(), EDGES)
    assert account(tree).parts == pytest.approx(sum(leaf.score for leaf in tree.leaves))
    for level in tree.levels:
        assert account(tree, level).parts == pytest.approx(sum(group.score for group in level))
    assert account_line(tree, level=tree.levels[-1]).startswith("this group adds up to ")


def test_the_only_output_is_no_class():
    e = explain(net(level="graph", classes=1), features(), EDGES)
    assert unit_of(e) == "contribution to the output (its own unit)"
    assert signs_line(e) == "red raises the output, blue lowers it"
    assert "class" not in account_line(e)
    assert signs_line(e, ["solubility"]) == "red raises solubility, blue lowers it"


def test_classes_have_their_names():
    e = replace(explain(net(), features(), EDGES, index=5), target=1)
    assert output_name(e) == "class 1"
    assert unit_of(e, ["a", "b", "c"]) == "contribution to “b” (logits)"


def test_plain_numbers_claim_nothing():
    assert unit_of(torch.zeros(3)) == "score"
    assert account_line(torch.zeros(3)) == ""


@pytest.mark.parametrize(
    ("outputs", "scale"),
    [
        ([1.0, -2.0], "logits"),
        ([0.25, 0.75], "probability"),
        (torch.tensor([1.0, -2.0, 0.5]).log_softmax(0).tolist(), "log-probability"),
        ([0.25], "its own unit"),
        ([0.25, 0.25], "logits"),
    ],
)
def test_the_scale_of_outputs(outputs, scale):
    assert scale_of(outputs) == scale


def test_numbers_are_rounded_alike():
    assert alike([-12.345, 1.0, 0.001]) == ["−12.3", "+1.0", "0.0"]
    assert alike([0.00123, -0.0004]) == ["+0.00123", "−0.00040"]
    assert alike([1234.5, -0.4]) == ["+1234", "0"]
    assert alike([0.0]) == ["0.00"]
    assert alike([]) == []
