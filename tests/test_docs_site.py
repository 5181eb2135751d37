"""The pages build offline without a warning, and load nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXTERNAL = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=["'](?:https?:)?//[^"']+["']""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("sphinx", "furo", "myst_parser", "sphinx_copybutton"):
        pytest.importorskip(name, reason=f'the pages need {name}: pip install "xdegree[docs]"')
    folder = tmp_path_factory.mktemp("site")
    # As `make docs` does it; a process of its own, because Sphinx changes logging and warnings for good.
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "docs", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_every_page_is_there(site):
    pages = {p.relative_to(ROOT / "docs").with_suffix("") for p in (ROOT / "docs").rglob("*.md")}
    built = {p.relative_to(site).with_suffix("") for p in site.rglob("*.html")}
    assert {page for page in pages if "_build" not in page.parts} <= built


@pytest.mark.slow
def test_a_browser_loads_nothing_from_elsewhere(site):
    for page in site.rglob("*.html"):
        assert not EXTERNAL.search(page.read_text()), page.name
    for style in site.rglob("*.css"):
        assert not re.search(r"""(?:url\(|@import\s*)["']?(?:https?:)?//""", style.read_text()), style.name


@pytest.mark.slow
def test_the_first_page_is_the_promise_of_the_readme(site):
    text = (site / "index.html").read_text()
    assert "What did these nodes contribute to this prediction?" in text
    assert re.search(r'<img[^>]*src="_images/house\.png"', text)


@pytest.mark.slow
def test_signatures_link_to_the_names_they_use(site):
    text = (site / "api" / "xdegree.html").read_text()
    assert 'href="#xdegree.Options"' in text
    assert 'id="xdegree.Explanation.node_scores"' in text
