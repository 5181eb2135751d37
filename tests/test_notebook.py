"""The notebook of the examples: it runs, and what its cells return shows itself."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbconvert", reason="no nbconvert: pip install nbconvert ipykernel")
pytest.importorskip("ipykernel", reason="no ipykernel: pip install nbconvert ipykernel")
pytest.importorskip("rdkit", reason='no RDKit: pip install "xdegree[chem]"')

NOTEBOOK = Path(__file__).parents[1] / "examples" / "tour.ipynb"


def convert(*options: str) -> None:
    """In a process of its own: its warnings are not ours, and a kernel needs a clean start."""
    done = subprocess.run([sys.executable, "-m", "nbconvert", *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("notebook")
    convert("--to", "notebook", "--execute", str(NOTEBOOK), "--output-dir", str(folder))
    return folder / NOTEBOOK.name


def outputs(path: Path) -> list[tuple[str, dict]]:
    """The source of each cell of code with what its last line showed."""
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    return [
        ("".join(cell["source"]), {kind: data for out in cell["outputs"] for kind, data in out.get("data", {}).items()})
        for cell in cells
    ]


def test_it_is_stored_without_outputs():
    assert not any(cell.get("outputs") for cell in json.loads(NOTEBOOK.read_text())["cells"])


def test_every_cell_shows_what_it_returns(ran):
    for source, shown in outputs(ran):
        last = source.rstrip().splitlines()[-1]
        if last.startswith(("report", "decompose(")) or "index=[" in last:
            assert "".join(shown["text/html"]).startswith("<iframe" if last.startswith("report") else "<table"), last
        else:
            assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG"), last
        assert len("".join(shown["text/plain"])) < 300, last


def test_no_cell_prints_warnings_or_bars(ran):
    cells = json.loads(ran.read_text())["cells"]
    streams = [out for cell in cells for out in cell.get("outputs", []) if out["output_type"] == "stream"]
    printed = ["".join(out["text"]) for out in streams]
    known = ("IProgress not found",)  # torch_geometric imports tqdm in the way that asks for widgets
    assert not [text for text in printed if not any(said in text for said in known)], printed


def test_reports_are_pages_of_bounded_height_in_a_browser(ran, page, tmp_path):
    convert("--to", "html", str(ran), "--output-dir", str(tmp_path))
    page.route(re.compile("^https?:"), lambda route: route.fulfill(body=""))  # nbconvert adds scripts for formulas
    page.goto((tmp_path / f"{NOTEBOOK.stem}.html").as_uri(), wait_until="domcontentloaded")
    frames = page.locator("iframe")
    for number in range(frames.count()):
        frames.nth(number).scroll_into_view_if_needed()
        frames.nth(number).content_frame.locator("body[data-ready]").wait_for(timeout=60_000)
        assert frames.nth(number).bounding_box()["height"] < 700
    assert frames.count() > 0
