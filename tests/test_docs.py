"""The pages that are written by a command say what the code says."""

import importlib.util
import re
from pathlib import Path

import pytest
import torch
import torch_geometric

import xdegree.rules  # noqa: F401  (registers them all)
from xdegree.engine.registry import RULES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def script(name: str):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["write_coverage", "write_rules"])
def test_a_page_is_up_to_date(name, capsys):
    releases = f"PyG {torch_geometric.__version__} and PyTorch {torch.__version__.split('+')[0]}"
    if releases not in (DOCS / "coverage.md").read_text():
        pytest.skip(f"the pages were written with other releases than {releases}")
    assert script(name).main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", ["write_coverage", "write_rules"])
def test_a_page_that_is_not_is_reported(name, tmp_path, monkeypatch, capsys):
    module = script(name)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "page", lambda: "**new**")
    monkeypatch.setattr(module, "PAGE", tmp_path / "page.md")
    (tmp_path / "page.md").write_text("old")
    assert module.main(["--check"]) == 1
    assert "make coverage" in capsys.readouterr().out
    assert module.main([]) == 0
    assert (tmp_path / "page.md").read_text() == "**new**"


def test_every_rule_is_on_its_page():
    text = (DOCS / "rules.md").read_text()
    named = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert named == {rule.__name__ for rule in RULES.values() if rule.__module__.startswith("xdegree.")}


def test_the_count_is_the_one_of_the_table():
    text = (DOCS / "coverage.md").read_text()
    covered, exported = map(int, re.search(r"\*\*(\d+) of the (\d+) names", text).groups())
    rows = re.findall(r"^\| `[\w.]+` \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    assert covered == sum(int(c) for c, _ in rows)
    assert exported == sum(int(e) for _, e in rows)
    listed = text.split("## Not covered")[1].split("## Refused")[0].count("\n| `")
    assert covered + listed == exported


# Words that have a plainer one: integer, receives messages from, unattributed or background, resume, similar, affects.
RIDDLES = re.compile(
    r"whole numbers?\b|\bhears? of|\bnobody|\bgone on\b|goes on where|\bkin\b|\bno say\b|\blends\b|neighbour"
    r"|meets? nothing",
    re.IGNORECASE,
)
WRITTEN = ("results.md", "defaults.md", "benchmarks.md")
"""Pages that long runs print."""


def texts() -> list[Path]:
    made = {"_build", "results"}
    pages = [path for path in DOCS.rglob("*.md") if not made & set(path.parts) and path.name not in WRITTEN]
    sources = [path for path in (ROOT / "src").rglob("*.*") if path.suffix in (".py", ".html", ".js")]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages, *sources]


def test_plain_words():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if RIDDLES.search(line)
    ]
    assert not found, "\n".join(found)
