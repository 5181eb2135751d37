"""What views say in words: which output, what colours mean, and what scores add up to."""

import re
from dataclasses import replace

import pytest
import torch
from helpers import EDGES, features, net

from xdegree import agglomerate, explain
from xdegree.canvas import account, account_line, alike, output_name, scale_of, signs_line, unit_of
from xdegree.plots import plot_waterfall

pytestmark = pytest.mark.filterwarnings("ignore:single scores add up")


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


@pytest.mark.parametrize("reading", ["impact", "probability", "strength"])
def test_readings_that_are_no_parts_of_the_output_do_not_add_up(reading):
    e = explain(net(), features(), EDGES, index=5, reading=reading)
    assert account(e) is None
    assert account_line(e) == ""


def test_logits_behind_a_softmax_are_what_is_explained():
    model = net(level="graph")
    probable = lambda x, edge_index: model(x, edge_index).softmax(-1)
    e = explain(probable, features(), EDGES)
    assert e.logits is not None
    assert unit_of(e) == f"contribution to class {e.target} (logits)"
    assert account(e).rest == pytest.approx(e.residual)
    assert account(e).prediction == pytest.approx(float(model(features(), EDGES)[0, e.target].detach()))


def test_a_baseline_is_where_scores_start():
    e = replace(explain(net(), features(), EDGES, index=5), baseline_output=torch.tensor([0.5, 0.25, 1.0]).double())
    found = account(e)
    assert found.rest == pytest.approx(e.residual)
    assert f"beyond the baseline's {alike([found.start])[0]}" in account_line(e)
    assert plot_waterfall(e).axes[0].get_yticklabels()[0].get_text() == "baseline"


@pytest.mark.parametrize("reading", ["impact", "strength"])
def test_unsigned_readings_have_no_blue(reading):
    e = explain(net(), features(), EDGES, index=5, reading=reading)
    assert "blue" not in signs_line(e)
    assert unit_of(e).startswith(reading)


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
