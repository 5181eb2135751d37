"""Every block of Python in the README runs, in order, and the examples do."""

import re
import runpy
from pathlib import Path

import pytest

import xdegree
from xdegree.registry import RULES, unregister

ROOT = Path(__file__).parent.parent


def test_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="the README draws a picture: pip install 'xdegree[plot]'")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 5
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        code = block.replace("data, seed=0)", "data, seed=0, epochs=20, progress=False)")
        exec(compile(code, "README.md", "exec"), names)
    assert (tmp_path / "why.png").stat().st_size > 10_000
    assert isinstance(names["e"], xdegree.Explanation)
    assert names["explanation"].node_mask.shape == (700, 1)


def test_an_example_adds_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    before = set(RULES)
    runpy.run_path(str(ROOT / "examples" / "add_a_rule.py"), run_name="__main__")
    for key in set(RULES) - before:
        unregister(key)
    printed = capsys.readouterr().out
    assert "example.squash" in printed
    assert "the laws hold" in printed
    assert "Explanation(index=2" in printed
