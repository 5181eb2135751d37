"""Every block of Python in the README runs, in order, and the examples do."""

import ast
import re
import runpy
from pathlib import Path

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.data import Batch, Data, HeteroData

import xdegree
from xdegree.engine.registry import RULES, unregister

ROOT = Path(__file__).parent.parent


def test_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="the README draws a picture: pip install 'xdegree[plot]'")
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 5
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = ""
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
        printed += capsys.readouterr().out
    assert (tmp_path / "house.png").stat().st_size > 10_000
    assert isinstance(names["e"], xdegree.Explanation)
    assert names["explanation"].node_mask.shape == (140, 1)
    said = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    top, promised = (ast.literal_eval(line.strip()) for line in (printed, said[0]))
    assert [node for node, _ in top] == [node for node, _ in promised]
    assert [score for _, score in top] == pytest.approx([score for _, score in promised], abs=0.02)


class Tasks:
    """What the table of tasks on the first page speaks of, in small."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.x, self.edge_index = torch.randn(700, 4), torch.randint(700, (2, 1400))
        self.model, self.weighted = pyg.GCN(4, 8, 2, 3), pyg.GCNConv(4, 3)
        self.weight, self.pairs = torch.rand(1400), torch.tensor([[0, 5], [1, 7]])
        self.linked, self.of_graphs, self.regression = Linked(), OfGraphs(), pyg.GCN(4, 8, 2, 1)
        self.data = Data(x=self.x[:5], edge_index=torch.randint(5, (2, 12)))
        self.typed = HeteroData()
        self.typed["paper"].x, self.typed["author"].x = torch.randn(5, 4), torch.randn(3, 4)
        self.typed["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 2, 2], [0, 1, 2, 3]])
        self.typed["paper", "by", "author"].edge_index = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 2]])
        self.hetero = Typed(self.typed.metadata())
        self.embedded, self.numbers = Embedded(), torch.arange(700) % 9


class Linked(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = pyg.GCNConv(4, 8)

    def forward(self, x, edge_index, edge_label_index):
        z = self.conv(x, edge_index)
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)


class OfGraphs(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.lin = pyg.GCNConv(4, 8), nn.Linear(8, 2)

    def forward(self, x, edge_index, batch):
        return self.lin(pyg.global_mean_pool(self.conv(x, edge_index).relu(), batch))


class Typed(nn.Module):
    def __init__(self, metadata):
        super().__init__()
        self.conv = pyg.HGTConv(4, 6, metadata, heads=2)

    def forward(self, x_dict, edge_index_dict):
        return self.conv(x_dict, edge_index_dict)["paper"]


class Embedded(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.conv = nn.Embedding(9, 4), pyg.GCNConv(4, 3)

    def forward(self, x, edge_index):
        return self.conv(self.emb(x), edge_index)


def table_of_tasks() -> list[str]:
    table = (ROOT / "docs" / "get-started.md").read_text().split("| to explain | one line |")[1].split("\n\n")[0]
    return re.findall(r"\| `(.+)` \|", table)


@pytest.mark.parametrize("line", table_of_tasks())
def test_the_table_of_tasks(line: str) -> None:
    public = {"explain": xdegree.explain, "decompose": xdegree.decompose, "Options": xdegree.Options, "Batch": Batch}
    names = {**public, **vars(Tasks())}
    for value in names.values():
        if isinstance(value, nn.Module):
            value.eval()
    found = eval(line, names)
    if isinstance(found, list):
        assert len(found) in (2, 3)
    assert found is not None


def test_the_count_in_the_readme_is_the_one_of_the_docs() -> None:
    counts = [
        re.search(r"(\d+) of the (\d+) names", (ROOT / page).read_text()).groups()
        for page in ("README.md", "docs/coverage.md")
    ]
    assert counts[0] == counts[1]


def test_an_example_adds_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    before = set(RULES)
    runpy.run_path(str(ROOT / "examples" / "add_a_rule.py"), run_name="__main__")
    for key in set(RULES) - before:
        unregister(key)
    printed = capsys.readouterr().out
    assert "example.squash" in printed
    assert "the laws hold" in printed
    assert "Explanation(index=2" in printed
