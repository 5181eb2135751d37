"""Groups of edges on the explorer's page: what messages along them contribute, in both directions."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from explorer_pages import (
    BUSY,
    around,
    choose,
    choosing,
    click,
    click_edges,
    drawn,
    edges_of,
    nodes_of,
    place,
    predicted,
    row,
    said,
    until,
    upload,
)
from torch_geometric.data import Data

from xdegree import decompose, explain
from xdegree.explorer.answers import Answers
from xdegree.explorer.catalogue import Catalogue
from xdegree.explorer.parse import Reference
from xdegree.explorer.problem import Problem
from xdegree.explorer.server_state import Desk
from xdegree.explorer.subject import Example, Item
from xdegree.models import GCN

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytest_plugins = ["explorer_pages"]
pytestmark = BUSY


def columns(data: Data, *edges: str) -> list[int]:
    """Where a graph has some edges, in both directions."""
    ends = [{int(node) for node in edge.split("-")} for edge in edges]
    return [place for place, pair in enumerate(data.edge_index.t().tolist()) if set(pair) in ends]


def wanted(example: Example, data: Data, *groups: tuple[str, ...]) -> list[list[float]]:
    """What decompose says of some groups of edges, and of all other edges; the explained class first."""
    local = [columns(data, *group) for group in groups]
    rest = sorted(set(range(data.num_edges)) - {place for group in local for place in group})
    found = decompose(example.model, data.x, data.edge_index, groups=[*local, rest], of="edge").target[:, 0]
    first = predicted(example, data)
    return found[:, [first, *(c for c in range(found.shape[1]) if c != first)]].tolist()


def test_clicks_on_bonds_make_groups_and_their_contributions_are_those_of_decompose(
    shown: "Page", examples: list[Example]
) -> None:
    example, data = examples[0], examples[0].items[0].data
    click(shown, 3)
    said(shown, "#row-a", "Group A (1)")
    choosing(shown, "bonds")  # a group is either of atoms or of bonds
    shown.wait_for_selector("#row-a", state="detached")
    click_edges(shown, "5-6", "6-7")  # a single bond and a double one
    said(shown, "#row-a", "Group A (2)")
    edges_of(shown, ".in-a", ["5-6", "6-7"])
    shown.get_by_label("B", exact=True).first.check(force=True)
    click_edges(shown, "0-1")
    shown.wait_for_selector("#row-interaction")
    a, b = ("5-6", "6-7"), ("0-1",)
    found = wanted(example, data, a, b, (*a, *b))
    for name, numbers in zip(("a", "b", "together", "rest"), found, strict=True):
        assert row(shown, name) == pytest.approx(numbers, rel=1e-5, abs=1e-6), name
    left = [total - t - r for total, t, r in zip(row(shown, "total"), found[2], found[3], strict=True)]
    assert row(shown, "meeting") == pytest.approx(left, rel=1e-4, abs=1e-5)
    said(shown, "#row-rest", f"The rest ({data.num_edges // 2 - 3})")
    said(shown, "#row-meeting", "Joint effects, own features and biases")
    click(shown, 6)  # an atom is no bond: nothing changes
    click_edges(shown, "0-1")  # out again
    shown.wait_for_selector("#row-b", state="detached")
    edges_of(shown, ".in-a", ["5-6", "6-7"])
    choosing(shown, "atoms")
    shown.wait_for_selector("#row-a", state="detached")
    shown.get_by_label("A", exact=True).first.check(force=True)
    click_edges(shown, "0-1")  # nor is a bond an atom
    click(shown, 2)
    said(shown, "#row-a", "Group A (1)")
    nodes_of(shown, ".in-a", [2])


def test_pointing_at_an_edge_or_a_node_says_what_it_contributes(shown: "Page", examples: list[Example]) -> None:
    example, data = examples[0], examples[0].items[0].data
    first = predicted(example, data)
    for of, edge, name in (("atoms", "5-6", "C 5 – N 6"), ("bonds", "6-7", "N 6 – O 7")):
        choosing(shown, of)
        (x1, y1), (x2, y2) = (place(shown, int(end)) for end in edge.split("-"))
        shown.mouse.move((x1 + x2) / 2, (y1 + y2) / 2, steps=3)
        number = wanted(example, data, (edge,))[0][0]
        said(shown, "#first-hover", f"{name}: {number:+.3g}".replace("-", "−"))
        shown.mouse.move(*place(shown, 6), steps=3)
        e = explain(example.model, data.x, data.edge_index, target=first)
        said(shown, "#first-hover", f"N 6: {float(e.node_scores[6]):+.3g}".replace("-", "−"))
    shown.mouse.move(2, 2)
    until(shown, "document.querySelector('#first-hover').textContent === ''")


def test_a_lasso_takes_the_edges_between_nodes_within_it_and_the_list_takes_more(
    shown: "Page", examples: list[Example]
) -> None:
    example, data = examples[0], examples[0].items[0].data
    choosing(shown, "bonds")
    line, inside = around(shown, 5, 6)
    shown.mouse.move(*line[0])
    shown.mouse.down()
    for spot in line[1:]:
        shown.mouse.move(*spot, steps=4)
    shown.mouse.up()
    pairs = {tuple(sorted(pair)) for pair in data.edge_index.t().tolist() if set(pair) <= set(inside)}
    names = [f"{u}-{v}" for u, v in sorted(pairs)]
    assert "5-6" in names
    edges_of(shown, ".in-a", names)
    said(shown, "#row-a", f"Group A ({len(names)})")
    assert row(shown, "a") == pytest.approx(wanted(example, data, tuple(names))[0], rel=1e-5, abs=1e-6)
    shown.click("#clear")
    shown.wait_for_selector("#row-a", state="detached")
    shown.click("#group-b")
    shown.get_by_role("option", name="N 6 – O 8", exact=True).click()
    edges_of(shown, ".in-b", ["6-8"])
    said(shown, "#row-b", "Group B (1)")


def test_downloads_know_groups_of_edges(shown: "Page", examples: list[Example], tmp_path: Path) -> None:
    example, data = examples[0], examples[0].items[0].data
    choosing(shown, "bonds")
    click_edges(shown, "5-6", "6-7")
    said(shown, "#row-a", "Group A (2)")
    found = {}
    for name in ("json", "png", "report"):
        with shown.expect_download() as download:
            shown.click(f"#get-{name}")
        download.value.save_as(tmp_path / name)
        found[name] = (tmp_path / name).read_bytes()
    groups = json.loads(found["json"])["groups"]
    assert (groups["of"], groups["A"], groups["B"]) == ("edge", [[5, 6], [6, 7]], [])
    numbers = [groups["a"][c] for c in sorted(range(2), key=lambda c: c != predicted(example, data))]
    assert numbers == pytest.approx(wanted(example, data, ("5-6", "6-7"))[0], rel=1e-5, abs=1e-6)
    assert found["png"].startswith(b"\x89PNG")
    assert "<b>A: 2 edges</b>" in found["report"].decode()


def test_a_directed_graph_has_edges_of_one_direction(shown: "Page", examples: list[Example]) -> None:
    choose(shown, "example", "Graphs")
    drawn(shown, 6)
    graph = {"x": [[1, 0], [0, 1], [1, 1], [0, 2]], "edge_index": [[0, 1, 1, 2, 3], [1, 0, 2, 3, 3]]}
    upload(shown, "graph.json", json.dumps(graph).encode())
    drawn(shown, 4)
    choosing(shown, "edges")
    click_edges(shown, "0-1", "1-2")
    said(shown, "#row-a", "Group A (2)")
    said(shown, "#row-rest", "The rest (2)")  # 2 to 3, and 3 to itself, which is not drawn
    data = Data(x=torch.tensor(graph["x"]).float(), edge_index=torch.tensor(graph["edge_index"]))
    assert columns(data, "0-1", "1-2") == [0, 1, 2]
    for name, numbers in zip(("a", "rest"), wanted(examples[1], data, ("0-1", "1-2")), strict=True):
        assert row(shown, name) == pytest.approx(numbers, rel=1e-5, abs=1e-6), name


def a_node_of_a_path() -> Desk:
    torch.manual_seed(0)
    path = torch.arange(9)
    edges = torch.cat([torch.stack([path, path + 1]), torch.stack([path + 1, path])], 1)
    data = Data(x=torch.randn(10, 3).double(), edge_index=edges)
    model = GCN(3, 2).double().eval()
    return Desk(Catalogue([Example("path", "Path", "", "graph", model, [Item("5", data, 5)])]), Answers())


def test_edges_of_a_computation_graph_have_the_numbers_of_the_whole_one() -> None:
    desk = a_node_of_a_path()
    subject = desk.catalogue.subject(Reference("path", item=0))
    model, data = subject.one.model, subject.data
    groups = desk.groups(subject, ["4-5", "6-5"], ["3-4"])
    assert groups == (((4, 5), (5, 6)), ((3, 4),))
    answer = desk.answers.groups(subject, *groups)
    local = [columns(data, "4-5", "5-6"), columns(data, "3-4")]
    d = decompose(model, data.x, data.edge_index, groups=local, of="edge")
    found = torch.tensor([answer.a, answer.b], dtype=torch.double)
    torch.testing.assert_close(found, d.target[:, 5], rtol=1e-9, atol=1e-12)
    for c in range(2):
        assert answer.together[c] + answer.rest[c] + answer.meeting[c] == pytest.approx(answer.total[c], abs=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (["4-5"], [5], "list of their ends"),
        (["4"], None, "list of their ends"),
        (["4-5", {}], None, "list of their ends"),
        (["0-9"], None, r"Edge \(0, 9\) is not among"),
        (["4-5"], ["5-4"], r"Edge \(4, 5\) is in both groups"),
    ],
)
def test_what_is_no_group_of_edges_is_refused(a: object, b: object, message: str) -> None:
    desk = a_node_of_a_path()
    subject = desk.catalogue.subject(Reference("path", item=0))
    with pytest.raises(Problem, match=message):
        desk.answers.groups(subject, *desk.groups(subject, a, b))
