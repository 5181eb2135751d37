"""What tests need beyond the repository: data folders and a browser. Tests skip, with the reason, without them."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

if TYPE_CHECKING:
    from job_crew import Crews, Place
    from playwright.sync_api import Browser, Page

    from xdegree import Explanation, ExplanationTree

# The graphs of tests are small: more threads gain nothing, and on a busy machine they lose much by waiting.
torch.set_num_threads(1)
pytest.register_assert_rewrite("explorer_pages")  # fixtures and helpers of the files that name it as their plugin

FOLDERS = {"data": "XDEGREE_DATA", "fixtures": "XDEGREE_FIXTURES"}


def folder(marker: str) -> Path | None:
    path = os.environ.get(FOLDERS[marker])
    return Path(path) if path and Path(path).is_dir() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for marker, variable in FOLDERS.items():
            if item.get_closest_marker(marker) and folder(marker) is None:
                item.add_marker(pytest.mark.skip(reason=f"${variable} does not name a folder"))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real datasets; only for tests marked `data`."""
    path = folder("data")
    assert path is not None, "mark this test with `data`"
    return path


@pytest.fixture(scope="session")
def fixtures_folder() -> Path:
    """The authors' own numbers; only for tests marked `fixtures`."""
    path = folder("fixtures")
    assert path is not None, "mark this test with `fixtures`"
    return path


BROWSER = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """A real headless Chromium: the one that $XDEGREE_CHROMIUM names, or the one on the path."""
    api = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("XDEGREE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("no Chromium: apt install chromium, or name one in $XDEGREE_CHROMIUM")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(BROWSER))
        yield started
        started.close()


@pytest.fixture
def page(browser: "Browser") -> "Iterator[Page]":
    """A new window of laptop size; what the page logs as an error, or throws, fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    context.set_default_timeout(60_000)  # for busy machines
    opened, complaints = context.new_page(), []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    yield opened
    context.close()
    assert not complaints, complaints


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Iterator[Place]":
    """A folder with the models of jobs, whose module has a name of its own: a process imports a module once."""
    from job_crew import MODELS, Place

    module = f"job_models_{os.urandom(4).hex()}"
    (tmp_path / f"{module}.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    yield Place(tmp_path, module)
    sys.modules.pop(module, None)


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Crews]":
    """Jobs run in this process; gives the crews that there were, and lets a test decide the fate of workers."""
    from job_crew import Crews

    crews = Crews()
    monkeypatch.setattr("xdegree.jobs.start.Processes", crews.hired)
    monkeypatch.setattr("xdegree.jobs.scheduler.PAUSE", 0)
    monkeypatch.setattr("xdegree.fork_server.start", lambda: "spawn")  # no worker will be forked
    yield crews
    assert all(crew.closed for crew in crews)


@pytest.fixture(scope="session")
def of_node() -> "tuple[Explanation, ExplanationTree]":
    """A node with its scores, those of its edges, and its tree."""
    from helpers import EDGES, features, net

    from xdegree import agglomerate, explain

    model, x = net(), features()
    return explain(model, x, EDGES, index=5, edge_scores="pair"), agglomerate(model, x, EDGES, index=5, q=0.8)


@pytest.fixture(scope="session")
def of_graph() -> "tuple[Explanation, ExplanationTree]":
    """A graph of four nodes in a row, with its scores and its tree."""
    from helpers import PATH, features, net

    from xdegree import agglomerate, explain

    model, x = net(level="graph"), features(4)
    return explain(model, x, PATH), agglomerate(model, x, PATH)
