"""Whatever a model ends with, all numbers that a view shows beside each other are of one unit, and add up."""

import re

import pytest
import torch
from helpers import EDGES, features
from torch import nn
from torch_geometric.nn import GCNConv

from xdegree import ExplanationTree, agglomerate, explain
from xdegree.canvas import account, account_line, shares_of
from xdegree.reports import report, report_many

ENDS = {
    "none": lambda x: x,
    "log_softmax": lambda x: x.log_softmax(-1),
    "softmax": lambda x: x.softmax(-1),
    "sigmoid": lambda x: x.sigmoid(),
}


class Ending(nn.Module):
    def __init__(self, end: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.end = GCNConv(4, 8), GCNConv(8, 3), ENDS[end]

    def forward(self, x, edge_index):
        return self.end(self.second(self.first(x, edge_index).relu(), edge_index))


@pytest.fixture(scope="module", params=ENDS)
def asked(request):
    model = Ending(request.param).double().eval()
    x = features().double()
    return request.param, model, x, explain(model, x, EDGES, index=5), agglomerate(model, x, EDGES, index=5)


def test_a_tree_and_an_explanation_speak_of_the_same_number(asked, tmp_path):
    end, _, _, e, tree = asked
    assert account(tree).prediction == pytest.approx(e.output)
    assert account(tree).rest == pytest.approx(e.residual)
    assert account_line(tree) == account_line(e)
    assert f"the {'prediction' if end == 'none' else 'logit'} for class" in account_line(e)
    assert account(tree, tree.levels[-1]).rest == pytest.approx(0, abs=1e-9), "all nodes together"
    assert ExplanationTree.load(tree.save(tmp_path / "tree.json")) == tree


def test_a_tree_starts_where_its_baseline_starts(asked):
    _, model, x, _, _ = asked
    how = {"index": 5, "baseline": "mean", "steps": 3}
    assert account_line(agglomerate(model, x, EDGES, **how)) == account_line(explain(model, x, EDGES, **how))


def test_shares_are_those_of_the_models_own_softmax(asked):
    end, model, x, e, _ = asked
    own = model(x, EDGES)[5].detach()
    wanted = {"none": own.softmax(0), "log_softmax": own.exp(), "softmax": own}
    if end == "sigmoid":
        assert shares_of(e) is None, "each class by itself"
    else:
        assert shares_of(e) == pytest.approx(wanted[end].tolist())


def test_a_report_shows_what_scores_are_parts_of(asked):
    end, _, _, e, tree = asked
    table = re.search(r'id="prediction">(.*?)</section>', report(e, tree).html, re.DOTALL)[1]
    assert ("logit" in table) == (end != "none")
    assert ("softmax" in table) == (end != "sigmoid")
    row = re.search(r"class='explained'.*?</tr>", table)[0]
    assert f"{e.output:+.1f}"[:3].replace("-", "−") in row
    page = report_many([e, e]).html
    assert f'"{e.level} 5",{e.target},{float(f"{e.output:.5g}")}' in page


def test_the_explorer_answers_in_one_unit(asked):
    pytest.importorskip("dash", reason='no Dash: pip install "xdegree[explorer]"')
    pytest.importorskip("rdkit", reason='no RDKit: pip install "xdegree[chem]"')
    from xdegree.explorer import panels
    from xdegree.explorer.answers import Answers
    from xdegree.explorer.catalogue import Catalogue
    from xdegree.explorer.parse import Reference
    from xdegree.explorer.user_model import own_example

    _, model, x, e, _ = asked
    subject = Catalogue([own_example(model, (x, EDGES), {})]).subject(Reference("own", item=5))
    answers = Answers()
    found = answers.groups(subject, [4], [6])
    assert found.a[e.target] == pytest.approx(float(e.node_scores[4]))
    assert found.total[e.target] == pytest.approx(e.output)
    assert answers.grown(subject, e.target).tree.levels[-1][0].score == pytest.approx(e.output)
    listed = panels.prediction(subject, e.logits, e.target).children
    shown = [row.children[-1].title for row in listed if row.className == "chosen"]
    assert [float(text) for text in shown] == pytest.approx([e.output])
