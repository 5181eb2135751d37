"""The command: what it prints, where it looks, and its exit codes."""

import json
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
import torch

from xdegree.cli import main

GOOD = """
import torch
from torch import nn
from torch_geometric.nn import GCNConv

X, EDGES = torch.randn(4, 3), torch.tensor([[0, 1, 2], [1, 2, 3]])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.conv, self.drop = nn.Embedding(5, 3), GCNConv(3, 2), nn.Dropout(0.5)

    def forward(self, x, edge_index, scale=1.0):
        if not x.is_floating_point():
            x = self.emb(x)
        return self.drop(self.conv(x, edge_index)).relu() * scale


class Odd(Net):
    def forward(self, x, edge_index):
        return torch.special.i0(super().forward(x, edge_index))


class Dense(nn.Module):
    def forward(self, x, edge_index):
        return x.relu()


def good():
    return Net(), (X, EDGES)


def keywords():
    return Net(), [X], {"edge_index": EDGES, "scale": 2.0}


def odd():
    return Odd(), (X, EDGES)


def numbers():
    return Net(), (torch.arange(4), EDGES)


def dense():
    return Dense(), (X, EDGES)


def plain():
    return (lambda x: x * 2), (X,)


def nothing():
    return None


def half():
    return Net(), X


def eager(path):
    return Net(), (X, EDGES)


def broken():
    raise RuntimeError("no data here")


def wrong_shape():
    return Net(), (X[:, :2], EDGES)


NUMBER = 3
"""


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A module of the user in the current folder."""
    (tmp_path / "some_models.py").write_text(GOOD)
    (tmp_path / "bad_syntax.py").write_text("def f(:\n")
    (tmp_path / "needs_more.py").write_text("import not_installed\n")
    (tmp_path / "ends.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("some_models", "bad_syntax", "needs_more"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "name", ["some_models:good", "some_models:keywords", "some_models.py:good", "./some_models.py:plain"]
)
def test_every_operation_has_a_rule(models, capsys, name):
    path = list(sys.path)
    assert main(["check", name]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("operation")
    assert printed.endswith("every operation has a rule\n")
    assert sys.path == path


def test_a_missing_rule(models, capsys):
    assert main(["check", "some_models:odd"]) == 1
    printed = capsys.readouterr().out
    assert "aten.i0.default" in printed
    assert "MISSING" in printed


def test_json(models, capsys):
    assert main(["check", "some_models:odd", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert [m["op"] for m in report["missing"]] == ["aten.i0.default"]
    assert {"op": "aten.relu.default", "module": "", "rule": "activation", "count": 1} in report["rows"]
    assert main(["check", "some_models:good", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["missing"] == []


def test_where_portions_start(models, capsys):
    assert main(["check", "some_models:numbers"]) == 0  # the only embedding is found
    assert main(["check", "some_models:numbers", "--start", "emb"]) == 0
    assert main(["check", "some_models:good", "--of", "edge"]) == 0
    capsys.readouterr()
    assert main(["check", "some_models:dense", "--of", "edge"]) == 2
    assert "found no messages" in capsys.readouterr().err
    assert main(["check", "some_models:good", "--of", "edge_feature"]) == 2
    assert "edge_attr" in capsys.readouterr().err


def test_weights(models, capsys):
    from torch import nn

    weights = {"emb.weight": torch.zeros(5, 3), "conv.bias": torch.zeros(2), "conv.lin.weight": torch.zeros(2, 3)}
    torch.save(weights, "state.pt")
    assert main(["check", "some_models:good", "--weights", "state.pt"]) == 0
    torch.save({"other": torch.zeros(1)}, "other.pt")
    torch.save(nn.Linear(1, 1), "whole.pt")
    (models / "broken.pt").write_bytes(b"PK\\x03\\x04 cut off")
    capsys.readouterr()
    for file, message in {
        "none.pt": "there is no file none.pt",
        "other.pt": "other.pt does not fit the model",
        "whole.pt": "whole.pt is no state dict that can be read safely",
        "broken.pt": "it must be written by torch.save(model.state_dict(), …)",
    }.items():
        assert main(["check", "some_models:good", "--weights", file]) == 2
        assert message in capsys.readouterr().err
    assert main(["check", "some_models:plain", "--weights", "state.pt"]) == 2
    assert "--weights is for modules" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("some_models", "MODULE:FACTORY, as some_models:factory (got 'some_models')"),
        (":good", "MODULE:FACTORY, as my_models.py:factory (got ':good')"),
        ("some_models:", "MODULE:FACTORY, as some_models:factory"),
        ("absent:good", "absent cannot be imported: there is no such module"),
        ("some_model:good", "did you mean 'some_models.py'?"),
        ("./some_models:good", "name a file with its ending, ./some_models.py"),
        ("needs_more:good", "needs_more cannot be imported: ModuleNotFoundError: No module named 'not_installed'"),
        ("ends.py:good", "ends.py cannot be imported: SystemExit: 3"),
        ("bad_syntax:f", "bad_syntax cannot be imported: SyntaxError"),
        ("absent.py:good", "there is no file absent.py"),
        ("some_modles.py:good", "there is no file some_modles.py; did you mean 'some_models.py'?"),
        ("some_models:goood", "did you mean 'good'?"),
        ("some_models:absent", "has no function 'absent' (it has ['Dense', 'Net'"),
        ("some_models:NUMBER", "has no function 'NUMBER'"),
        ("some_models:nothing", "must return (model, args) or (model, args, kwargs) (got NoneType)"),
        ("some_models:half", "a model, a tuple and a dict (got (Net, Tensor))"),
        ("some_models:broken", "some_models:broken failed: RuntimeError: no data here"),
        ("some_models:eager", "argument: 'path' (it is called without arguments)"),
        ("some_models:wrong_shape", "the model cannot be surveyed"),
    ],
)
def test_what_cannot_be_done(models, capsys, name, message):
    assert main(["check", name]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("xdegree check: ")
    assert not captured.out


def test_as_a_command(models):
    done = subprocess.run(
        [sys.executable, "-m", "xdegree", "check", "some_models:odd"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "aten.i0.default" in done.stdout) == (1, True)


def test_the_command_is_installed():
    [script] = entry_points(group="console_scripts", name="xdegree")
    assert script.load() is main


def test_a_factory_may_import_its_neighbors_when_it_is_called(tmp_path, capsys):
    (tmp_path / "beside.py").write_text("import torch\nX = torch.eye(3)\n")
    text = "def factory():\n    from beside import X\n    return (lambda x: x @ x), (X,)\n"
    (tmp_path / "later.py").write_text(text)
    assert main(["check", f"{tmp_path / 'later.py'}:factory"]) == 0
    assert "aten.mm" in capsys.readouterr().out


def test_files_of_the_same_name_are_told_apart(tmp_path, capsys):
    for folder, operation in (("a", "relu"), ("b", "tanh")):
        (tmp_path / folder).mkdir()
        text = f"import torch\n\n\ndef factory():\n    return torch.{operation}, (torch.eye(3),)\n"
        (tmp_path / folder / "net.py").write_text(text)
        assert main(["check", f"{tmp_path / folder / 'net.py'}:factory"]) == 0
        assert f"aten.{operation}" in capsys.readouterr().out
