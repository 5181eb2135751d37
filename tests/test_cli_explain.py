"""``xdegree explain``, and what it shares with ``xdegree report``."""

import json
import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from helpers import features, net
from test_docs_code import DOCS, assert_printed, fences
from torch import nn

from xdegree import Explanation, HeteroExplanation, explain
from xdegree.canvas import account_line
from xdegree.cli import main

PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
FACTORIES = """
import torch
from helpers import features, net
from torch import nn
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.nn import GCNConv, SAGEConv

PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])


class Numbers(nn.Module):
    def __init__(self, classes=2):
        super().__init__()
        torch.manual_seed(0)
        self.emb, self.conv = nn.Embedding(5, 3), GCNConv(3, classes)

    def forward(self, x, edge_index):
        return self.conv(x if x.is_floating_point() else self.emb(x), edge_index)


class Odd(Numbers):
    def forward(self, x, edge_index):
        return torch.special.i0(super().forward(x, edge_index))


class Typed(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = SAGEConv((3, 3), 2)

    def forward(self, x_dict, edge_index_dict):
        return self.conv((x_dict["a"], x_dict["b"]), edge_index_dict["a", "to", "b"])


def nodes():
    return net(), (features(4), PATH)


def graph():
    return net(level="graph"), (Data(x=features(4), edge_index=PATH),)


def graphs():
    return net(level="graph"), ([Data(x=features(4) * i, edge_index=PATH) for i in range(1, 4)],)


def batch():
    return net(level="graph"), (Batch.from_data_list(graphs()[1][0]),)


def nothing():
    return net(level="graph"), ([],)


def numbers():
    return Numbers(), (torch.arange(4), PATH)


def regression():
    return Numbers(1), (torch.ones(4, 3), PATH)


def odd():
    return Odd(), (torch.ones(4, 3), PATH)


class Links(Numbers):
    def forward(self, x, edge_index, edge_label_index):
        z = super().forward(x, edge_index)
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)


def links():
    return Links(), (torch.ones(4, 3), PATH, torch.tensor([[0, 1], [2, 3]]))


def typed():
    data = HeteroData()
    data["a"].x, data["b"].x = torch.ones(3, 3), torch.ones(2, 3)
    data["a", "to", "b"].edge_index = torch.tensor([[0, 1, 2], [0, 1, 1]])
    return Typed(), (data,)
"""


@pytest.mark.parametrize(
    ("factory", "count", "said"),
    [("nodes", 4, "node 1"), ("links", 2, "link 1"), ("graph", 1, "graph 0"), ("typed", 2, "node 1")],
)
def test_every_row_of_every_kind_of_output_is_explained_and_counted(factory, count, said, capsys):
    pytest.importorskip("plotly", reason='no plotly: pip install "xdegree[report]"')
    assert main(["explain", f"f.py:{factory}", "--index", said.split()[1]]) == 0
    assert f"explained   {said}, " in capsys.readouterr().out
    assert main(["report", "--many", f"f.py:{factory}", "--out", "many.html"]) == 0
    assert capsys.readouterr().out.startswith(f"many.html ({count} predictions, ")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "f.py").write_text(FACTORIES)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if re.fullmatch("f_[0-9a-f]{8}", name)]:
        del sys.modules[name]


def lines(capsys, *args):
    """What is printed, cut into cells."""
    assert main(["explain", *args]) == 0
    captured = capsys.readouterr()
    assert not captured.err
    return [re.split("  +", line) for line in captured.out.splitlines()]


def test_the_prediction_and_the_largest_scores(capsys):
    found = lines(capsys, "f.py:nodes", "--index", "1", "--top", "2")
    e = explain(net(), features(4), PATH, index=1)
    outputs = ", ".join(f"{value:+.4g}" for value in e.prediction.tolist())
    assert found == [
        ["prediction", f"class {e.target}, outputs {outputs}"],
        ["explained", f"node 1, class {e.target}, by node, reading contribution"],
        ["nodes", "4 of 4 can contribute"],
        ["scores", account_line(e)],
        [""],
        ["node", "score"],
        *([str(node), f"{score:+.4g}"] for node, score in e.top(2)),
    ]


@pytest.mark.parametrize(
    ("args", "explained", "head"),
    [
        (["nodes", "--index=1", "--of=edge", "--target=0"], "node 1, class 0, by edge", ["source", "to", "score"]),
        (["nodes", "--index=1", "--of=feature"], "by feature", ["node", "feature", "score"]),
        (["nodes", "--index=1", "--reading=strength"], "reading strength", ["node", "score"]),
        (["graph"], "graph 0, class", ["node", "score"]),
        (["graphs", "--index=2"], "graph 2, class", ["node", "score"]),
        (["batch", "--index=1"], "graph 1, class", ["node", "score"]),
        (["numbers", "--index=0"], "node 0, class", ["node", "score"]),
        (["numbers", "--index=0", "--start=emb"], "node 0, class", ["node", "score"]),
        (["regression", "--index=0"], "node 0, by node", ["node", "score"]),
        (["typed", "--index=1"], "node 1, class", ["type", "node", "score"]),
        (["typed", "--index=1", "--of=feature"], "by feature", ["type", "node", "feature", "score"]),
    ],
    ids=str,
)
def test_every_kind(capsys, args, explained, head):
    found = lines(capsys, f"f.py:{args[0]}", *args[1:])
    assert explained in found[1][1]
    assert found[found.index([""]) + 1] == head


def test_edges_have_a_table_of_their_own(capsys):
    found = lines(capsys, "f.py:nodes", "--index", "1", "--edge-scores", "pair", "--top", "1")
    assert [line for line in found if line[-1] == "score"] == [["node", "score"], ["node", "node", "score"]]
    every = lines(capsys, "f.py:nodes", "--index", "1", "--edge-scores", "pair")
    pairs = [tuple(sorted(line[:2])) for line in every if len(line) == 3 and line[0] != "node"]
    assert len(pairs) == len(set(pairs)) == 3, "both directions are one pair"


def test_a_regression_has_no_class(capsys):
    found = dict(line for line in lines(capsys, "f.py:regression", "--index", "1") if len(line) == 2)
    assert "class" not in found["scores"] + found["explained"]
    assert "the rest (joint effects and biases) is" in found["scores"]


def test_a_wrong_option_is_named_with_its_value(capsys):
    assert main(["explain", "f.py:nodes", "--index", "1", "--option", "foo=bar"]) == 2
    assert "'foo=bar'" in (said := capsys.readouterr().err)
    assert "ties" in said


def test_futures_of_other_packages_stay_off_the_screen(folder):
    """As a user runs it: the tests' own filters make warnings errors."""
    factory = (folder / "f.py").read_text()
    (folder / "g.py").write_text(f"{factory}\nimport warnings\nwarnings.warn('soon', FutureWarning)\n")
    command = [sys.executable, "-m", "xdegree", "explain", "g.py:nodes", "--index", "1"]
    helpers = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **helpers})
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_json_is_what_save_writes_and_report_reads(capsys, folder):
    pytest.importorskip("plotly", reason='pip install "xdegree[report]"')
    asked = ["explain", "f.py:nodes", "--index", "1", "--option", "ties=first"]
    assert main([*asked, "--json", "--out", "why.json"]) == 0
    captured = capsys.readouterr()
    assert captured.out == (folder / "why.json").read_text() + "\n"
    assert captured.err == "saved: why.json (a page of it: xdegree report why.json)\n"
    assert Explanation.load("why.json").options.ties == "first"
    assert main(["report", "why.json", "--json", "--out", "why.html"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["out"], told["index"], told["bytes"]) == ("why.html", 1, (folder / "why.html").stat().st_size)
    assert told["prediction"] == Explanation.load("why.json").prediction.tolist()


def test_graphs_with_types_are_saved_too(capsys):
    assert main(["explain", "f.py:typed", "--index", "1", "--out", "why.json"]) == 0
    assert HeteroExplanation.load("why.json").index == 1


def test_weights_and_evaluation(capsys):
    other = net(seed=3)
    torch.save(other.state_dict(), "state.pt")
    found = lines(capsys, "f.py:nodes", "--index", "1", "--weights", "state.pt")
    [(node, score)] = explain(other, features(4), PATH, index=1).top(1)
    assert found[6] == [str(node), f"{score:+.4g}"]
    torch.save(nn.Linear(1, 1).state_dict(), "other.pt")
    assert main(["explain", "f.py:nodes", "--index", "1", "--weights", "other.pt"]) == 2
    assert "other.pt does not fit the model" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["explain", "report"])
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nodes"], "index is missing: the model predicts 4 nodes; say which one by --index"),
        (["nodes", "--index=4"], "index 4 is out of range: the model predicts nodes 0 to 3"),
        (["nodes", "--index=0", "--target=9"], "target 9 is out of range: the model has the classes 0 to "),
        (["nodes", "--index=0", "--option=tie=first"], "did you mean 'ties'?"),
        (["nodes", "--index=0", "--option=ties=last"], "Options.ties must be one of"),
        (["nodes", "--index=0", "--out=no/why"], "there is no folder no"),
        (["graphs"], "the factory hands over 3 graphs: choose one, --index 0 to 2"),
        (["graphs", "--index=3"], "index 3 is out of range: the factory hands over 3 graphs"),
        (["nothing"], "index 0 is out of range: the factory hands over 0 graphs"),
        (["batch"], "there are 3 predictions: choose one, --index 0 to 2"),
        (["odd", "--index=0"], "no rule for 1 operation(s)"),
    ],
    ids=str,
)
def test_what_cannot_be_explained(capsys, folder, command, args, message):
    before = sorted(folder.iterdir())
    assert main([command, f"f.py:{args[0]}", *args[1:]]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"xdegree {command}: ")
    assert message in captured.err
    assert not captured.out
    assert "Traceback" not in captured.err
    assert [path for path in sorted(folder.iterdir()) if path.suffix] == [path for path in before if path.suffix]


def test_the_page_says_what_is_printed(capsys, folder):
    blocks = fences(DOCS / "how-to" / "command-line.md")
    (folder / "my_models.py").write_text(next(code for language, code in blocks if language == "python"))
    commands = {code: text for (first, code), (second, text) in pairwise(blocks) if (first, second) == ("sh", "text")}
    assert commands
    for command, text in commands.items():
        assert main(shlex.split(command)[1:]) == 0
        assert_printed(capsys.readouterr().out, text)
