"""The explorer's page in a real browser: a server with two small examples, and what tests do on the page.

Test files take the fixtures by ``pytest_plugins``; each of them has a server of its own, so that they can run side by
side.
"""

import math
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import torch
from torch_geometric.data import Data

from xdegree import decompose

pytest.importorskip("dash", reason='no Dash: pip install "xdegree[explorer]"')
pytest.importorskip("rdkit", reason='no RDKit: pip install "xdegree[chem]"')

from xdegree.datasets import molecule_of
from xdegree.explorer import make_app, server
from xdegree.explorer.subject import Example, Item
from xdegree.models import GCN

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

BUSY = pytest.mark.flaky(reruns=2, only_rerun=["TimeoutError", "never came true"])
"""A browser on a busy machine may miss a key or a click; what is wrong is wrong three times."""
ATOMS = ("C", "O", "H", "N")
NITRO, ACID = "c1ccccc1[N+](=O)[O-]", "CC(=O)O"
SCRIPT = "<img src=x onerror=alert(1)>"


def untrained(features: int, classes: int) -> tuple[GCN]:
    return (GCN(features, classes, level="graph").eval(),)


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    torch.manual_seed(0)
    molecules = [Item(smiles, molecule_of(smiles, ATOMS)) for smiles in (NITRO, ACID)]
    path = torch.arange(5)
    edges = torch.stack([path, path + 1])
    graph = Data(
        x=torch.randn(6, 2),
        edge_index=torch.cat([edges, edges.flip(0)], 1),
        names=[SCRIPT, "b", "c", "d", "e", "f"],
    )
    return [
        Example("molecules", "Molecules", "not trained", "molecule", *untrained(4, 2), molecules, ("no", "yes"), ATOMS),
        Example("graphs", "Graphs", SCRIPT, "graph", *untrained(2, 3), [Item(SCRIPT, graph)]),
    ]


@pytest.fixture(scope="module")
def address(examples: list[Example]) -> Iterator[str]:
    listening = server(make_app(examples), port=0)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{listening.server_port}/"
    listening.shutdown()
    thread.join()
    listening.server_close()


@pytest.fixture(scope="module")
def window(browser: "Browser") -> "Iterator[BrowserContext]":
    """One for all tests, so that the scripts of Dash are fetched once; what a page shows is its own all the same."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    yield context
    context.close()


@pytest.fixture
def shown(window: "BrowserContext", address: str) -> "Iterator[Page]":
    """The page as it opens; what it logs as an error, or throws, fails the test."""
    page, complaints = window.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    opened(page, address)
    yield page
    page.close()
    assert not complaints, complaints


@pytest.fixture(scope="module")
def looked(window: "BrowserContext", address: str) -> "Iterator[Page]":
    """One page for all tests that leave it as it was: to open one takes longer than to look at it."""
    page, complaints = window.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    opened(page, address)
    yield page
    page.close()
    assert not complaints, complaints


def opened(page: "Page", address: str) -> None:
    page.set_default_timeout(60_000)  # for busy machines
    page.goto(address)
    page.wait_for_selector("#prediction")
    drawn(page, 14)


CY = "[...document.querySelectorAll('#graph, #graph *')].find((e) => e._cyreg)"


def drawn(page: "Page", count: int) -> None:
    """Wait until so many nodes are drawn, and stand still."""
    until(page, f"{CY} && {CY}._cyreg.cy.nodes().length === {count}")
    still(page)


def still(page: "Page") -> None:
    """Wait until the nodes stand where they stood twice: the picture is fitted 100 ms after its last node came."""
    before: list[object] = []
    for _ in range(200):
        now = [page.evaluate(f"{CY}._cyreg.cy.extent()"), page.evaluate(f"{CY}.getBoundingClientRect().toJSON()")]
        before = [*before, now] if not before or now == before[0] else [now]
        if len(before) == 3:
            return
        page.wait_for_timeout(110)
    raise AssertionError("the picture never stood still")


def until(page: "Page", condition: str) -> None:
    """Ask again and again: Playwright's own way to wait evaluates text, which the page's policy forbids."""
    for _ in range(600):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(80)
    raise AssertionError(f"never came true: {condition}")


def nodes_of(page: "Page", condition: str, wanted: list[int]) -> None:
    """Wait until just these nodes of the drawing are so."""
    found = f"{CY}._cyreg.cy.nodes('{condition}').map((n) => n.data('node')).sort((a, b) => a - b)"
    until(page, f"{found}.join() === '{','.join(map(str, wanted))}'")


def said(page: "Page", where: str, text: str) -> None:
    """Wait until a part of the page says something."""
    page.locator(where).filter(has_text=text).first.wait_for()


def place(page: "Page", node: int) -> tuple[float, float]:
    x, y = page.evaluate(
        f"""(node) => {{
          const box = {CY}.getBoundingClientRect();
          const at = {CY}._cyreg.cy.nodes().filter((n) => n.data("node") === node).renderedPosition();
          return [box.left + at.x, box.top + at.y];
        }}""",
        node,
    )
    return x, y


def around(page: "Page", u: int, v: int) -> tuple[list[tuple[float, float]], list[int]]:
    """A narrow line around all that lies between two nodes, and the nodes within it."""
    (x1, y1), (x2, y2) = place(page, u), place(page, v)
    long = math.dist((x1, y1), (x2, y2))
    along, across = ((x2 - x1) / long, (y2 - y1) / long), ((y1 - y2) / long, (x2 - x1) / long)

    def corner(s: float, t: float) -> tuple[float, float]:
        return x1 + s * along[0] + t * across[0], y1 + s * along[1] + t * across[1]

    inside = []
    for node in range(14):
        x, y = (a - b for a, b in zip(place(page, node), (x1, y1), strict=True))
        s, t = x * along[0] + y * along[1], x * across[0] + y * across[1]
        inside += [node] if -12 < s < long + 12 and abs(t) < 12 else []
    return [corner(-12, -12), corner(long + 12, -12), corner(long + 12, 12), corner(-12, 12)], inside


def choosing(page: "Page", words: str) -> None:
    """Let clicks choose atoms, bonds or edges, and wait until the drawing knows it."""
    page.get_by_text(words, exact=True).click()
    said(page, "#hint", f"Click {words}")
    edges = "true" if words in ("bonds", "edges") else "false"
    until(page, f"{CY}._cyreg.cy.edges('[edge]').every((e) => e.selectable() === {edges})")


def click(page: "Page", *nodes: int) -> None:
    for node in nodes:
        page.mouse.click(*place(page, node))


def row(page: "Page", name: str) -> list[float]:
    """The exact numbers of a row, the explained class first."""
    cells = page.locator(f"#row-{name} td")
    return [float(cells.nth(i).get_attribute("title") or "nan") for i in range(cells.count())]


def choose(page: "Page", name: str, text: str) -> None:
    page.click(f"#{name}")
    page.get_by_role("option", name=text, exact=True).click()


def upload(page: "Page", name: str, content: bytes) -> None:
    page.locator("#upload input").set_input_files({"name": name, "mimeType": "application/json", "buffer": content})


def contributions(example: Example, data: Data, groups: list[list[int]], first: int) -> list[list[float]]:
    found = decompose(example.model, data.x, data.edge_index, groups=groups).target[:, 0]
    order = [first, *(c for c in range(found.shape[1]) if c != first)]
    return found[:, order].tolist()


def predicted(example: Example, data: Data) -> int:
    return int(example.model(data.x, data.edge_index).argmax())


def click_edges(page: "Page", *edges: str) -> None:
    """Click into the middle of edges, each named by its ends."""
    for edge in edges:
        (x1, y1), (x2, y2) = (place(page, int(node)) for node in edge.split("-"))
        page.mouse.click((x1 + x2) / 2, (y1 + y2) / 2)


def edges_of(page: "Page", condition: str, wanted: list[str]) -> None:
    """Wait until just these edges of the drawing are so."""
    found = f"{CY}._cyreg.cy.edges('{condition}').map((n) => n.data('edge')).sort()"
    until(page, f"{found}.join() === '{','.join(sorted(wanted))}'")
