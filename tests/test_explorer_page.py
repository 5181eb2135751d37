"""The page in a real browser: what a reader clicks, types and downloads, and what a stranger tries."""

import json
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch_geometric.data import Data

from xdegree import Explanation, decompose, explain
from xdegree.baselines import METHODS
from xdegree.canvas import account_line

pytest.importorskip("dash", reason='no Dash: pip install "xdegree[explorer]"')
pytest.importorskip("rdkit", reason='no RDKit: pip install "xdegree[chem]"')

from xdegree.datasets import molecule_of
from xdegree.explorer import make_app, server
from xdegree.explorer.subject import Example, Item
from xdegree.explorer.user_model import own_example
from xdegree.factories import made_with_views
from xdegree.models import GCN

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.flaky(reruns=2, only_rerun=["TimeoutError", "never came true"])
"""A browser on a busy machine may miss a key or a click; what is wrong is wrong three times."""

ATOMS = ("C", "O", "H", "N")
NITRO, ACID = "c1ccccc1[N+](=O)[O-]", "CC(=O)O"
SCRIPT = "<img src=x onerror=alert(1)>"


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


def untrained(features: int, classes: int) -> tuple[GCN]:
    return (GCN(features, classes, level="graph").eval(),)


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
    """Wait until the nodes stand where they stood: the picture is fitted 100 ms after its last node came."""
    before = None
    for _ in range(100):
        now = [page.evaluate(f"{CY}._cyreg.cy.extent()"), page.evaluate(f"{CY}.getBoundingClientRect().toJSON()")]
        if now == before:
            return
        before = now
        page.wait_for_timeout(250)
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


def contributions(example: Example, data: Data, groups: list[list[int]], first: int) -> list[list[float]]:
    found = decompose(example.model, data.x, data.edge_index, groups=groups).target[:, 0]
    order = [first, *(c for c in range(found.shape[1]) if c != first)]
    return found[:, order].tolist()


def predicted(example: Example, data: Data) -> int:
    return int(example.model(data.x, data.edge_index).argmax())


def test_clicks_make_groups_and_their_contributions_are_those_of_decompose(
    shown: "Page", examples: list[Example]
) -> None:
    example, data = examples[0], examples[0].items[0].data
    click(shown, 6, 7)
    shown.get_by_label("B", exact=True).first.check(force=True)
    click(shown, 0)
    shown.wait_for_selector("#row-interaction")
    said(shown, "#row-a", "Group A (2)")
    rest = [n for n in range(14) if n not in (0, 6, 7)]
    wanted = contributions(example, data, [[6, 7], [0], [0, 6, 7], rest], predicted(example, data))
    for name, numbers in zip(("a", "b", "together", "rest"), wanted, strict=True):
        assert row(shown, name) == pytest.approx(numbers, rel=1e-5, abs=1e-6), name
    assert row(shown, "interaction") == pytest.approx(
        [t - a - b for a, b, t, _ in zip(*wanted, strict=True)], rel=1e-4, abs=1e-6
    )
    click(shown, 0)  # out again
    shown.wait_for_selector("#row-b", state="detached")
    shown.click("#clear")
    shown.wait_for_selector("#row-a", state="detached")
    said(shown, "#answer", "Click nodes")


def test_a_box_selects_all_nodes_in_it(shown: "Page") -> None:
    shown.get_by_text("Box", exact=True).click()
    until(shown, f"{CY}._cyreg.cy.boxSelectionEnabled()")
    spots = [place(shown, node) for node in (6, 7, 8)]
    left, top = min(x for x, _ in spots) - 20, min(y for _, y in spots) - 20
    right, bottom = max(x for x, _ in spots) + 20, max(y for _, y in spots) + 20
    inside = [n for n in range(14) if left < place(shown, n)[0] < right and top < place(shown, n)[1] < bottom]
    shown.mouse.move(left, top)
    shown.mouse.down()
    shown.mouse.move((left + right) / 2, (top + bottom) / 2)
    shown.mouse.move(right, bottom)
    shown.mouse.up()
    said(shown, "#row-a", f"Group A ({len(inside)})")
    assert {6, 7, 8} <= set(inside)


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


def test_a_lasso_selects_the_nodes_within_it_and_no_others(shown: "Page") -> None:
    line, inside = around(shown, 1, 7)
    assert {1, 7} <= set(inside)
    assert len(inside) < 6
    shown.mouse.move(*line[0])
    shown.mouse.down()
    for spot in line[1:]:
        shown.mouse.move(*spot, steps=4)
    until(shown, "document.querySelector('.lasso polygon').points.length > 8")
    shown.mouse.up()
    nodes_of(shown, ".in-a", inside)
    said(shown, "#row-a", f"Group A ({len(inside)})")
    assert shown.locator(".lasso").count() == 0
    click(shown, inside[0])  # a click is no lasso: out of the group again
    said(shown, "#row-a", f"Group A ({len(inside) - 1})")
    shown.get_by_text("Move", exact=True).click()
    until(shown, f"{CY}._cyreg.cy.userPanningEnabled()")
    before = place(shown, 0)
    middle = shown.evaluate(f"(({CY}).getBoundingClientRect().left + 12)"), line[0][1]
    shown.mouse.move(*middle)
    shown.mouse.down()
    shown.mouse.move(middle[0] + 40, middle[1], steps=4)
    shown.mouse.up()
    until(shown, f"Math.abs({CY}._cyreg.cy.nodes()[0].renderedPosition('x') - {before[0]}) > 0")
    said(shown, "#row-a", f"Group A ({len(inside) - 1})")


def test_groups_can_be_made_by_keyboard(shown: "Page") -> None:
    shown.locator("#group-a").focus()
    shown.keyboard.press("Enter")
    # Each key is for what has the focus, and the list moves it in its own time: wait as a person would look.
    until(shown, "document.activeElement.type === 'search'")
    shown.keyboard.type("N 6")
    until(shown, "document.querySelectorAll('.dash-dropdown-content [role=option]').length === 1")
    shown.keyboard.press("ArrowDown")
    until(shown, "document.activeElement.type === 'checkbox'")
    shown.keyboard.press("Space")
    shown.wait_for_selector("#row-a")
    nodes_of(shown, ".in-a", [6])
    shown.keyboard.press("Escape")
    until(shown, "!document.querySelector('.dash-dropdown-content')")
    # The list gives the focus back when it likes, so it is asked for until it stays.
    focus = "document.querySelector('#view input').focus()"
    outline = "getComputedStyle(document.querySelector('#view label')).outlineStyle"
    until(shown, f"({focus}, document.activeElement.closest('#view') && {outline} === 'solid')")


def test_the_prediction_is_shown_with_all_classes(shown: "Page", examples: list[Example]) -> None:
    data = examples[0].items[0].data
    logits = examples[0].model(data.x, data.edge_index)[0].detach()
    titles = shown.locator("#prediction .logit").evaluate_all("(cells) => cells.map((c) => Number(c.title))")
    assert titles == pytest.approx(sorted(logits.tolist(), reverse=True), rel=1e-6)
    share = f"{float(logits.softmax(0).max()):.1%}"
    assert shown.inner_text("#prediction .chosen .share") == share


def test_the_slider_moves_through_the_levels_and_play_plays_them(shown: "Page") -> None:
    shown.get_by_text("Growing groups").click()
    shown.wait_for_selector("#growth-said .lead")
    said(shown, "#growth-said .lead", "Level 1 of")
    until(shown, "Number(document.querySelector('#level').max) >= 1")
    shown.locator("#level").focus()
    shown.keyboard.press("End")
    said(shown, "#growth-said .lead", "1 group, 14 of 14")
    until(shown, f"{CY}._cyreg.cy.edges('.inside').length === 14")
    shown.click("#play")
    said(shown, "#growth-said .lead", "Level 1 of")
    until(shown, "Number(document.querySelector('#level').value) > 0")


def test_two_methods_are_compared(shown: "Page") -> None:
    shown.get_by_text("Compare", exact=True).click()
    said(shown, "#compare-said", "Spearman")
    second = CY.replace("#graph", "#second")
    until(shown, f"{second} && {second}._cyreg.cy.nodes().length === 14")
    said(shown, "#second-caption", "gradient x input, in its own unit")
    choose(shown, "second-method", "attention")
    said(shown, "#second-said", "attention layers")


def test_a_smiles_is_explained_and_a_wrong_one_leaves_the_page_intact(shown: "Page") -> None:
    shown.fill("#smiles", "CCN")
    shown.keyboard.press("Enter")
    drawn(shown, 10)
    said(shown, "#title", "CCN")
    for wrong, why in (("c1cc", "cannot read"), ("[U]", "never seen U"), ("<script>alert(1)</script>", "cannot read")):
        shown.fill("#smiles", wrong)
        shown.click("#smiles-go")
        said(shown, "#own-said", why)
        assert shown.inner_text("#title") == "CCN"
    click(shown, 0)
    shown.wait_for_selector("#row-a")
    choose(shown, "item", ACID)
    drawn(shown, 8)
    until(shown, "document.querySelector('#own-said').innerText === ''")


def upload(page: "Page", name: str, content: bytes) -> None:
    page.locator("#upload input").set_input_files({"name": name, "mimeType": "application/json", "buffer": content})


def test_uploads_are_read_strictly_and_a_script_in_a_name_stays_text(shown: "Page", tmp_path: Path) -> None:
    choose(shown, "example", "Graphs")
    drawn(shown, 6)
    said(shown, "#title", SCRIPT)
    click(shown, 0)
    shown.wait_for_selector("#row-a")
    said(shown, "#group-a", SCRIPT)
    graph: dict[str, Any] = {"x": [[1, 2], [3, 4]], "edge_index": [[0, 1], [1, 0]], "names": [SCRIPT, "</script>"]}
    upload(shown, "mine.json", json.dumps({**graph, "title": SCRIPT * 2}).encode())
    drawn(shown, 2)
    said(shown, "#title", SCRIPT)
    large = json.dumps({**graph, "x": [[0, 0]] * 2000, "names": [""] * 2000}).encode()
    for content, why in (
        (b"\x80\x04\x95pickle", "no text"),
        (b"{", "no JSON"),
        (json.dumps({**graph, "x": [[1]]}).encode(), "must have 2 features"),
        (large, "2,000 nodes; the page takes up to 1,000"),
        (b" " * 1_500_000, "takes up to 1 MB"),
    ):
        upload(shown, "bad.json", content)
        said(shown, "#own-said", why)
    assert shown.evaluate(f"{CY}._cyreg.cy.nodes().length") == 2
    assert shown.locator("img[src=x]").count() == 0


def test_downloads(shown: "Page", examples: list[Example], tmp_path: Path) -> None:
    click(shown, 6)
    shown.wait_for_selector("#row-a")
    files = {}
    for name, ending in (("json", "json"), ("report", "html"), ("png", "png")):
        with shown.expect_download() as waiting:
            shown.click(f"#get-{name}")
        files[name] = tmp_path / f"it.{ending}"
        waiting.value.save_as(files[name])
        assert waiting.value.suggested_filename == f"xdegree.{ending}"
    data = examples[0].items[0].data
    e = Explanation.load(files["json"])
    single = contributions(examples[0], data, [[n] for n in range(14)], e.target)
    assert e.node_scores.tolist() == pytest.approx([numbers[0] for numbers in single], rel=1e-4, abs=1e-6)
    assert json.loads(files["json"].read_text())["groups"]["A"] == [6]
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    assert "<html" in files["report"].read_text()


def test_nothing_is_loaded_from_elsewhere(page: "Page", address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    opened(page, address)
    page.get_by_text("Compare", exact=True).click()
    said(page, "#compare-said", "Spearman")
    elsewhere = [url for url in asked if not url.startswith((address, "data:", "blob:"))]
    assert len(asked) > 10
    assert not elsewhere


def test_two_readers_do_not_see_each_others_choices(browser: "Browser", shown: "Page", address: str) -> None:
    page = shown
    other = browser.new_context(viewport={"width": 390, "height": 800})
    second = other.new_page()
    opened(second, address)
    click(page, 6, 7)
    said(page, "#row-a", "Group A (2)")
    second.fill("#smiles", "CCN")
    second.keyboard.press("Enter")
    drawn(second, 10)
    assert second.locator("#row-a").count() == 0
    assert page.inner_text("#title") == NITRO
    assert "Group A (2)" in page.inner_text("#row-a")
    page.reload()
    said(page, "#answer", "Click nodes")
    assert page.locator("#row-a").count() == 0
    other.close()


def test_the_page_fits_a_phone(browser: "Browser", address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True)
    small = context.new_page()
    opened(small, address)
    small.locator("#graph").scroll_into_view_if_needed()
    still(small)
    small.touchscreen.tap(*place(small, 6))
    said(small, "#row-a", "Group A (1)")
    for view, shows, text in (("Growing groups", "#growth-said .lead", "Level"), ("Compare", "#compare-said", "Spear")):
        small.get_by_text(view, exact=True).click()
        said(small, shows, text)
        assert small.evaluate("document.documentElement.scrollWidth") == 390
    context.close()


def test_a_finger_draws_a_lasso_too(browser: "Browser", address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True)
    small = context.new_page()
    opened(small, address)
    small.locator("#graph").scroll_into_view_if_needed()
    still(small)
    line, inside = around(small, 1, 7)
    finger = context.new_cdp_session(small)
    for kind, spots in (("touchStart", line[:1]), *(("touchMove", [spot]) for spot in line[1:]), ("touchEnd", [])):
        points = [{"x": x, "y": y} for x, y in spots]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    nodes_of(small, ".in-a", inside)
    said(small, "#row-a", f"Group A ({len(inside)})")
    context.close()


def test_what_one_brings_along_stays_in_the_list(shown: "Page") -> None:
    shown.fill("#smiles", "CCN")
    shown.click("#smiles-go")
    drawn(shown, 10)
    said(shown, "#item", "yours: CCN")
    said(shown, "#note", "Your molecule, 10 atoms.")
    choose(shown, "item", ACID)
    drawn(shown, 8)
    graph = {"x": [[1, 0, 0, 0]] * 3, "edge_index": [[0, 1, 2], [1, 0, 2]], "title": "three"}
    upload(shown, "mine.json", json.dumps(graph).encode())
    drawn(shown, 3)
    said(shown, "#note", "Not drawn: 1 edge from a node to itself.")
    said(shown, "#note", "An uploaded graph of 3 nodes and 3 edges")
    choose(shown, "item", "yours: CCN")
    drawn(shown, 10)
    said(shown, "#title", "CCN")
    choose(shown, "example", "Graphs")
    drawn(shown, 6)
    choose(shown, "example", "Molecules")
    drawn(shown, 14)
    choose(shown, "item", "yours: three")
    drawn(shown, 3)


def test_a_row_of_the_list_lights_its_atom(shown: "Page", examples: list[Example]) -> None:
    data = examples[0].items[0].data
    e = explain(examples[0].model, data.x, data.edge_index)
    rows = shown.locator("#scores button")
    listed = rows.evaluate_all("(rows) => rows.map((row) => Number(row.dataset.node))")
    assert listed == [node for node, _ in e.top(14, by="size")]
    text = shown.inner_text("#account")
    assert text.lower().startswith(account_line(e, ("no", "yes"))[:20])
    rows.nth(2).click()
    nodes_of(shown, ".lit", [listed[2]])
    rows.nth(0).click()
    nodes_of(shown, ".lit", [listed[0]])
    rows.nth(0).click()
    nodes_of(shown, ".lit", [])


def test_atoms_have_charges_and_numbers_if_asked(shown: "Page") -> None:
    labels = f"{CY}._cyreg.cy.nodes().map((n) => n.data('label')).join()"
    until(shown, f"{labels}.includes('N⁺')")
    until(shown, f"{labels}.includes('O⁻')")
    assert not shown.evaluate(f"/[0-9]/.test({labels})")
    shown.locator("#numbers label").click()
    until(shown, f"{labels}.includes('N⁺ 6')")
    choose(shown, "example", "Graphs")
    drawn(shown, 6)
    assert not shown.locator("#numbers").is_visible()


def test_the_legend_names_the_class_that_is_asked_about(shown: "Page") -> None:
    for name in ("yes", "no"):
        choose(shown, "target", name)
        said(shown, "#first-caption", f"contribution to “{name}” (logits): red raises “{name}”, blue lowers it")
        said(shown, "#account", f"the prediction for “{name}” is")


def test_the_page_has_a_language_and_a_dark_side(browser: "Browser", address: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="dark")
    page = context.new_page()
    opened(page, address)
    assert page.get_attribute("html", "lang") == "en"
    light = "(where) => getComputedStyle(document.querySelector(where)).backgroundColor.match(/\\d+/g).map(Number)"
    for where in ("body", ".card", "#item"):
        assert max(page.evaluate(light, where)[:3]) < 80, where
    ink = page.evaluate("getComputedStyle(document.querySelector('#title')).color.match(/\\d+/g).map(Number)")
    assert min(ink[:3]) > 180
    context.close()


def test_what_is_stale_is_dimmed_while_methods_are_asked(
    shown: "Page", examples: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown.get_by_text("Compare", exact=True).click()
    said(shown, "#compare-said", "Spearman")
    waiting, go = threading.Event(), threading.Event()
    scores = METHODS["gradient x input"]

    def slow() -> Any:
        waiting.set()
        go.wait(60)
        return scores()

    monkeypatch.setitem(METHODS, "gradient x input", slow)
    before = shown.inner_text("#target")
    choose(shown, "target", "no" if before == "yes" else "yes")
    assert waiting.wait(60)
    until(shown, "document.querySelector('#dimmed').className === 'stale'")
    until(shown, "Number(getComputedStyle(document.querySelector('#dimmed')).opacity) < 0.5")
    go.set()
    said(shown, "#compare-said", "Spearman")
    until(shown, "document.querySelector('#dimmed').className === ''")


FACTORY = """
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, global_add_pool
from torch_geometric.utils import from_smiles


class Net(nn.Module):
    def __init__(self, width, outputs):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.out = GCNConv(width, 8), nn.Linear(8, outputs)

    def forward(self, data):
        return self.out(global_add_pool(self.conv(data.x, data.edge_index).relu(), data.batch))


def molecule(smiles):
    data = from_smiles(smiles)
    data.x = data.x.float()
    return data


def sentence(text):
    words = text.split()
    path = torch.arange(len(words) - 1)
    edges = torch.stack([path, path + 1])
    x = torch.tensor([[len(word), word.count("e")] for word in words]).float()
    return Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], 1), words=words)


def solubility():
    return Net(9, 1), ([molecule(s) for s in ("CCO", "c1ccccc1")],)


def moods():
    return Net(2, 2), ([sentence("three green trees here"), sentence("a b")],), {}, {"sentence": sentence}
"""


@pytest.fixture
def own(tmp_path: Path, page: "Page", request: pytest.FixtureRequest) -> "Iterator[Page]":
    """The page of a model of one's own, as the command makes it of a factory."""
    (tmp_path / "mine.py").write_text(FACTORY)
    (model, args, kwargs), views = made_with_views(f"{tmp_path / 'mine.py'}:{request.param}")
    listening = server(make_app([own_example(model, args, kwargs, views=views)]), port=0)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    page.set_default_timeout(60_000)
    page.goto(f"http://127.0.0.1:{listening.server_port}/")
    page.wait_for_selector("#scores")
    yield page
    page.goto("about:blank")
    listening.shutdown()
    thread.join()
    listening.server_close()


@pytest.mark.parametrize("own", ["solubility"], indirect=True)
def test_ones_own_molecules_and_smiles(own: "Page") -> None:
    drawn(own, 3)
    said(own, "#title", "CCO")
    said(own, "#first-caption", "contribution to the output (its own unit): red raises the output, blue lowers it")
    assert "class" not in own.inner_text("main").lower()
    own.fill("#smiles", "CC(=O)[O-]")
    own.keyboard.press("Enter")
    drawn(own, 4)
    until(own, f"{CY}._cyreg.cy.nodes().map((n) => n.data('label')).join() === 'C,C,O,O⁻'")
    said(own, "#note", "Your molecule, 4 atoms. Net, ")
    click(own, 2, 3)
    said(own, "#row-a", "Group A (2)")
    assert not own.locator("#sentence").is_visible()


@pytest.mark.parametrize("own", ["moods"], indirect=True)
def test_ones_own_sentences(own: "Page") -> None:
    drawn(own, 4)
    said(own, "#title", "three green trees here")
    own.fill("#sentence", "  we need more sleep please ")
    own.click("#sentence-go")
    drawn(own, 5)
    said(own, "#title", "we need more sleep please")
    assert own.evaluate(f"{CY}._cyreg.cy.nodes('.word').length") == 5
    own.fill("#sentence", "x" * 1000)
    own.click("#sentence-go")
    said(own, "#own-said", "takes up to 600")
    assert not own.locator("#smiles").is_visible()
