"""What readers bring along to the explorer's page: SMILES, sentences, graphs, a model of their own."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from explorer_pages import (
    ACID,
    BUSY,
    CY,
    SCRIPT,
    choose,
    click,
    drawn,
    said,
    until,
    upload,
)

from xdegree.explorer import make_app, server
from xdegree.explorer.user_model import own_example
from xdegree.factories import made_with_views

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytest_plugins = ["explorer_pages"]
pytestmark = BUSY


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


def test_uploads_are_read_strictly_and_a_script_in_a_name_stays_text(shown: "Page", tmp_path: Path) -> None:
    choose(shown, "example", "Graphs")
    drawn(shown, 6)
    said(shown, "#title", SCRIPT)
    shown.locator("#numbers").wait_for(state="hidden")  # which is for molecules
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
    own.locator("#sentence").wait_for(state="hidden")


@pytest.mark.parametrize("own", ["moods"], indirect=True)
def test_ones_own_sentences(own: "Page") -> None:
    drawn(own, 4)
    said(own, "#title", "three green trees here")
    own.fill("#sentence", "  we need more sleep please ")
    own.click("#sentence-go")
    drawn(own, 5)
    said(own, "#title", "we need more sleep please")
    until(own, f"{CY}._cyreg.cy.nodes('.word').length === 5")
    own.fill("#sentence", "x" * 1000)
    own.click("#sentence-go")
    said(own, "#own-said", "takes up to 600")
    own.locator("#smiles").wait_for(state="hidden")
