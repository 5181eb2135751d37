"""Every block of docs/pictures.md runs, in order, and pages show the images that they make."""

import importlib.util
import re
from pathlib import Path

import pytest

from xdegree.reports import HtmlReport

DOCS = Path(__file__).parent.parent / "docs"


def load():
    spec = importlib.util.spec_from_file_location("write_images", DOCS / "write_images.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


writer = load()


@pytest.mark.slow
def test_the_page_runs_and_makes_its_images(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in writer.blocks("pictures.md"):
        quick = block.replace("data, seed=0)", "data, seed=0, epochs=20, progress=False)")
        for epochs in ("25, lr", "12, lr"):
            quick = quick.replace(epochs, "2, lr")
        exec(compile(quick, "pictures.md", "exec"), names)
    made = {path.name for path in tmp_path.glob("*.png")}
    assert made == writer.images("pictures.md") - writer.PORTRAITS
    assert isinstance(names["page"], HtmlReport)
    assert (tmp_path / "report.html").stat().st_size < 5_000_000


@pytest.mark.parametrize("page", writer.PAGES)
def test_a_page_shows_the_images_that_it_makes(page):
    """That the blocks of the other pages run is tested with all pages."""
    made = set(re.findall(r'savefig\(\s*"([\w-]+\.png)"', "".join(writer.blocks(page))))
    assert writer.images(page) - writer.PORTRAITS == made
    for name in writer.images(page):
        assert 5_000 < (DOCS / "images" / name).stat().st_size < 250_000, name
