"""Every block of Python on the pages runs, prints what the page says, and every command that they name exists."""

import ast
import inspect
import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
import torch

import xdegree
from xdegree import cli, decompose
from xdegree.engine.registry import RULES, unregister

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)
EVERYWHERE = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
ELSEWHERE = {"jobs.md": "test_jobs.py", "pictures.md": "test_pictures.py"}  # where their blocks run
FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")
TOLERANCE = 0.02
"""Of printed numbers: the last digit of a page, and what another processor makes of a training."""


def fences(page: Path) -> list[tuple[str, str]]:
    return [(m[2].strip(), inspect.cleandoc(m[3])) for m in FENCE.finditer(page.read_text())]


def of_language(page: Path, language: str) -> list[str]:
    return [code for found, code in fences(page) if found == language]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def with_python() -> list[Path]:
    return [page for page in PAGES if of_language(page, "python") and page.name not in ELSEWHERE]


@pytest.fixture
def own_rules():
    before = set(RULES)
    yield
    for key in set(RULES) - before:
        unregister(key)


@pytest.mark.parametrize("page", with_python(), ids=name_of)
def test_a_page_runs(page, tmp_path, monkeypatch, capsys, own_rules):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDEGREE_DATA", str(tmp_path))  # pages speak of generated data only
    names = {"__name__": "__main__"}
    blocks = [*fences(page), ("", "")]
    with torch.random.fork_rng():
        for (language, code), (after, expected) in pairwise(blocks):
            if language != "python":
                continue
            try:
                exec(compile(code, name_of(page), "exec"), names)
            except ModuleNotFoundError as error:
                if not (error.name or "").startswith("xdegree"):
                    pytest.skip(f"the page needs {error.name}: {error}")
                raise
            printed = capsys.readouterr().out
            if after == "text":
                assert_printed(printed, expected)


def assert_printed(printed: str, expected: str) -> None:
    message = f"printed:\n{printed}\nthe page:\n{expected}"
    words = [[word.strip() for word in NUMBER.split(text.strip())] for text in (printed, expected)]
    found = [[float(number) for number in NUMBER.findall(text)] for text in (printed, expected)]
    assert words[0] == words[1], message
    assert found[0] == pytest.approx(found[1], abs=TOLERANCE), message


@pytest.mark.parametrize("name", ELSEWHERE)
def test_pages_that_run_elsewhere(name):
    assert name in (ROOT / "tests" / ELSEWHERE[name]).read_text() or not (DOCS / name).exists()


def test_blocks_of_contributors_parse():
    blocks = of_language(ROOT / "CONTRIBUTING.md", "python")
    assert blocks
    for block in blocks:
        ast.parse(block)


# Commands.


def parses(command: str) -> None:
    """The command has all its options and choices, as its own parser says."""
    words = shlex.split(command, comments=True)
    words = words[: next((place for place, word in enumerate(words) if word in ("|", ">")), None)]
    if words[:3] == ["python", "-m", "xdegree"]:
        words = words[2:]
    if words[0] == "xdegree":
        try:
            cli._parser().parse_args(words[1:])
        except SystemExit as end:
            if end.code:
                raise AssertionError(f"xdegree does not understand: {command}") from end
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), command
    elif words[:2] == ["pip", "install"]:
        known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        for extras in re.findall(r"\[(.*?)\]", words[-1]):
            assert set(extras.split(",")) <= set(known), command
    elif words[0] == "python":
        assert (ROOT / words[1]).is_file(), command
    else:
        raise AssertionError(f"no test knows this command: {command}")


@pytest.mark.parametrize("page", EVERYWHERE, ids=name_of)
def test_commands_exist(page):
    for block in of_language(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            if line.split("#")[0].strip():
                parses(line)
    prose = FENCE.sub("", page.read_text())
    for command in re.findall(r"`((?:xdegree|make|pip install|python) [^`…]+)`", prose):
        words = command.split()
        if words[0] == "xdegree" and (len(words) == 2 or re.search(r"\b[A-Z]{2,}\b", command)):
            assert words[1] in {module.__name__.split(".")[-1] for module in cli.COMMANDS}, command
        else:
            parses(command)


@pytest.mark.parametrize("page", EVERYWHERE, ids=name_of)
def test_files_exist(page):
    for path in re.findall(r"`((?:src|tests|docs|examples|benchmarks)/[\w./-]+)`", page.read_text()):
        assert path == "docs/_build" or (ROOT / path).exists(), path  # that one is made by `make docs`


# Pages that say what the code says.


def test_every_public_name_is_in_the_reference():
    text = (DOCS / "api" / "xdegree.md").read_text()
    listed = re.findall(r"^\.\. auto(?:function|class|exception):: (\w+)(?:\(.*\))?$", text, re.MULTILINE)
    assert sorted(listed) == sorted(xdegree.__all__)


def test_the_signature_in_the_reference_is_the_one_of_the_code():
    """Written out there, or all its overloads would be shown."""
    text = (DOCS / "api" / "xdegree.md").read_text()
    names = {}
    exec(f"def explain({re.search(r'autofunction:: explain.(.*).$', text, re.MULTILINE)[1]}): ...", names)
    said, real = (inspect.signature(f).parameters.values() for f in (names["explain"], xdegree.explain))
    assert [(p.name, p.kind, p.default) for p in said] == [(p.name, p.kind, p.default) for p in real]


def test_every_experiment_is_on_the_map():
    text = (DOCS / "paper-to-code.md").read_text()
    from xdegree.experiments import EXPERIMENTS

    assert set(re.findall(r"`xdegree reproduce ([\w-]+)`", text)) == {*EXPERIMENTS, "all"}


def test_the_options_on_the_page_exist():
    calls = {call for page in PAGES for call in re.findall(r"Options\((\w+=\"[\w-]+\")\)", page.read_text())}
    assert calls
    for call in calls:
        name, value = call.replace('"', "").split("=")
        assert getattr(xdegree.Options(**{name: value}), name) == value


def numbers(cell: str) -> list[float]:
    return [float(number.replace("−", "-")) for number in cell.split(",")]


def table(text: str, head: str) -> list[list[str]]:
    lines = text.split(head)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_example_by_hand():
    """The two tables of the page, in float64, by the page's own model."""
    page = DOCS / "how-it-works.md"
    names = {}
    exec(of_language(page, "python")[0], names)
    model, x, edge_index, (a, b, c) = names["model"].double(), names["x"].double(), names["edge_index"], (0, 1, 2)
    modules = {"messages": "conv.aggr_module", "bias": "conv", "ReLU": "relu", "output": "out"}
    paper = xdegree.Options.paper()
    d = decompose(model, x, edge_index, groups=[[c]], probes=modules.values(), options=paper)
    rows = table(page.read_text(), "| step | γ, the target: c")
    assert [row[0] for row in rows] == list(modules)
    for step, *cells in rows:
        probe = d.probes[modules[step]]
        values = (probe.target[0, b], probe.background[0, b], probe.total[b])
        assert [numbers(cell) for cell in cells] == [pytest.approx(value.tolist(), abs=1e-12) for value in values]
    nodes = {"a": a, "b": b, "c": c}
    for group, cell in table(page.read_text(), "| group | contribution |"):
        members = [] if group == "no node" else [nodes[name] for name in group.split(", ")]
        target = decompose(model, x, edge_index, groups=[members], options=paper).target[0, b, 0]
        assert target.item() == pytest.approx(numbers(cell)[0], abs=1e-12)
