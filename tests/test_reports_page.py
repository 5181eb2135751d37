"""The report in a real browser: what a reader sees, points at and presses."""

import pytest
import torch
from helpers import EDGES, PATH, features, holds, net, reads, until

from xdegree import Explanation, agglomerate, explain
from xdegree.canvas import account_line, alike, graph_canvas, molecule_canvas, sentence_canvas, signed_colour
from xdegree.reports import report
from xdegree.results.tree import Group

EVIL = "<img src=x onerror=\"document.title='broken in'\">"


@pytest.fixture
def opened(page, tmp_path):
    """Open a report from disk; anything that it asks of the network fails the test."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))

    def open_(made, **size):
        if size:
            page.set_viewport_size(size)
        page.goto(made.save(tmp_path / "why.html").as_uri())
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        return page

    yield open_
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]


def drawn(page):
    """The nodes as the drawing library has them: the last of its traces."""
    return page.evaluate(
        "() => { const d = find('picture').data.at(-1);"
        " return {text: d.hovertext, colour: d.marker.color, symbol: d.marker.symbol, line: d.marker.line.width,"
        " opacity: d.marker.opacity}; }"
    )


def test_nodes_have_their_colours_and_say_their_scores(opened, of_node):
    e, tree = of_node
    nodes = sorted(e.nodes.tolist())
    page = opened(report(e, tree, truth=[4]))
    seen = drawn(page)
    most = max(float(e.node_scores.abs().max()), float(e.edge_scores.abs().max()))
    assert seen["colour"] == [signed_colour(float(e.node_scores[n]), most) for n in nodes]
    assert [n for n, symbol in zip(nodes, seen["symbol"], strict=True) if symbol == "diamond"] == [5]
    assert [n for n, line in zip(nodes, seen["line"], strict=True) if line > 2] == [4]
    assert seen["text"][nodes.index(5)].startswith("node 5: ")
    reads(page, "#most", f"+{most:.3g}")
    assert page.inner_text("#unit") == (
        f"contribution to class {e.target} (logits): red raises class {e.target}, blue lowers it"
    )


def test_hovering_shows_a_score_and_zoom_survives_a_change_of_level(opened, of_node):
    e, tree = of_node
    page = opened(report(e, tree))
    place = page.evaluate(
        "() => { const d = find('picture'), a = d._fullLayout, n = d.data.at(-1), b = d.getBoundingClientRect();"
        " return [b.x + a.xaxis._offset + a.xaxis.d2p(n.x[0]), b.y + a.yaxis._offset + a.yaxis.d2p(n.y[0])]; }"
    )
    page.mouse.move(*place)
    page.wait_for_selector(".hoverlayer text")
    assert page.text_content(".hoverlayer").startswith(f"node {min(e.nodes.tolist())}: ")
    before = page.evaluate("() => find('picture')._fullLayout.xaxis.range")
    box = page.locator("#picture").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.evaluate("() => { find('picture').on('plotly_relayout', () => { window.rested = true; }); }")
    page.mouse.wheel(0, -300)
    page.wait_for_function("before => find('picture').layout.xaxis.range[0] > before + 1e-6", arg=before[0])
    page.wait_for_function("() => window.rested")  # the library takes note of a zoom when the wheel has come to rest
    zoomed = page.evaluate("() => find('picture')._fullLayout.xaxis.range")
    page.click("#on")
    assert page.evaluate("() => find('picture')._fullLayout.xaxis.range") == pytest.approx(zoomed)


def test_the_slider_goes_through_the_levels(opened, of_node):
    e, tree = of_node
    nodes = sorted(e.nodes.tolist())
    page = opened(report(e, tree))
    assert page.get_attribute("#level", "max") == str(len(tree.levels))
    reads(page, "#caption", "Every node by itself")
    most = max(abs(group.score) for level in tree.levels for group in level)
    page.focus("#level")
    for number, level in enumerate(tree.levels):
        page.keyboard.press("ArrowRight")
        reads(page, "#caption", f"Level {number + 1} of {len(tree.levels)}: {len(level)} group")
        inside = {node: signed_colour(group.score, most) for group in level for node in group.nodes}
        wanted = [inside.get(node, "#ffffff") for node in nodes]
        until(page, lambda wanted=wanted: drawn(page)["colour"] == wanted, f"the colours of level {number}")
    page.click("#back")
    until(page, lambda: page.input_value("#level") == str(len(tree.levels) - 1), "one level back")


def test_a_group_of_the_table_is_shown_in_the_drawing(opened, of_node):
    e, tree = of_node
    nodes = sorted(e.nodes.tolist())
    page = opened(report(e, tree, groups={"A": Group(frozenset({5, 6}), -3.0)}))
    button = page.locator("button.group").first
    assert button.inner_text() == "A 5, 6"
    button.click()
    until(page, lambda: button.get_attribute("aria-pressed") == "true", "the button is pressed")
    reads(page, "#caption", "A, 2 nodes: −3")
    opacity = drawn(page)["opacity"]
    assert [node for node, seen in zip(nodes, opacity, strict=True) if seen == 1] == [5, 6]
    button.click()
    reads(page, "#caption", "Every node by itself")


@pytest.mark.parametrize("kind", ["molecule", "sentence"])
def test_molecules_and_sentences_are_drawn_as_such(opened, of_graph, kind):
    e, tree = of_graph
    on = (
        molecule_canvas("CCOC")
        if kind == "molecule"
        else sentence_canvas(["a", "very", "good", "film"], edge_index=PATH)
    )
    page = opened(report(e, tree, on=on))
    assert f"for this {kind}?" in page.inner_text("h1")
    first = page.locator("#picture .imagelayer image, #picture image").first.get_attribute("href")
    assert first.startswith("data:image/")
    assert ["C 0", "C 1", "O 2", "C 3"] == [t.split(":")[0] for t in drawn(page)["text"]] or kind == "sentence"
    page.click("#on")
    page.wait_for_function(
        "first => document.querySelector('#picture image').getAttribute('href') !== first", arg=first
    )


def test_a_long_sentence_has_shorter_lines_on_a_phone(opened):
    words = [f"word{i}" for i in range(30)]
    e = Explanation(torch.tensor([1.0, 0.0]), 0, 0, 30, torch.arange(30), node_scores=torch.linspace(-1, 1, 30))
    on = sentence_canvas(words, heads=[-1, *range(29)])
    page = opened(report(e, on=on), width=390, height=844)
    page.wait_for_function(f"() => find('picture').layout.images[0].sizex < {on.size[0] / 1.5}")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.wait_for_function(f"() => find('picture').layout.images[0].sizex > {on.size[0] - 1}")


def test_text_of_users_is_text(opened, of_graph):
    e, tree = of_graph
    evil = [EVIL, "</script><script>document.title='broken in'</script>", "{{library}}", "a & b"]
    on = sentence_canvas(evil, edge_index=PATH)
    page = opened(report(e, tree, on=on, classes=evil[:3], title=EVIL, settings={EVIL: EVIL}))
    page.click("button.group")
    page.click("#on")
    assert page.title() == EVIL
    assert page.locator("h1").inner_text() == EVIL
    holds(page, "img", 0)
    assert "a & b" in page.inner_text("#nodes")
    assert page.locator("#settings th", has_text="<img src=x").count() == 1


def test_names_of_nodes_are_text_in_the_drawing(opened, of_graph):
    e, tree = of_graph
    on = graph_canvas(PATH, range(4), {0: EVIL, 1: "<b>bold</b>"})
    page = opened(report(e, tree, on=on))
    holds(page, "#picture img", 0)
    assert page.locator("#picture text", has_text="<b>bold</b>").count() == 1
    assert page.title() != "broken in"


def test_an_old_browser_still_shows_the_tables(page, tmp_path, of_node):
    page.add_init_script("delete window.DecompressionStream")
    page.goto(report(*of_node).save(tmp_path / "why.html").as_uri())
    page.wait_for_selector("#problem:not([hidden])")
    assert "browser of 2023" in page.inner_text("#problem")
    assert page.is_visible("#prediction table")


def test_each_view_has_the_unit_of_its_own_result(opened):
    e = explain(net(), features(), EDGES, index=5, reading="strength")
    tree = agglomerate(net(), features(), EDGES, index=5)
    page = opened(report(e, tree))
    reads(page, "#unit", "strength")
    page.click("#on")
    reads(page, "#unit", f"contribution to class {tree.target} (logits): red raises")
    alone = {min(leaf.nodes): leaf.score for leaf in tree.leaves}
    said = {text.split(":")[0].split("<")[0]: text for text in drawn(page)["text"]}
    for node, score in alone.items():
        assert f"{score:+.3g}".replace("-", "−") in said[f"node {node}"]


def test_the_page_says_how_much_of_the_prediction_is_explained(opened, of_node):
    e, tree = of_node
    page = opened(report(e, tree, classes=["red", "green", "blue"]))
    line = account_line(e, ["red", "green", "blue"])
    assert line[0].upper() + line[1:] in page.inner_text("#meaning")
    assert f"Red raises “{['red', 'green', 'blue'][e.target]}”, blue lowers it." in page.inner_text("#meaning")
    page.click("#on")
    line = account_line(tree, ["red", "green", "blue"], tree.levels[0])
    reads(page, "#account", f"{line[0].upper()}{line[1:]}.")


def test_a_regression_has_no_classes_and_without_a_tree_there_are_no_levels(opened):
    e = explain(net(level="graph", classes=1), features(4), PATH)
    page = opened(report(e))
    value = alike(e.prediction.tolist())[0]
    reads(page, "h1", f"Why {value} for this graph?")
    assert "Red raises the output, blue lowers it." in page.inner_text("#meaning")
    assert "class" not in page.inner_text("main").lower()
    assert not page.is_visible("#level")
    assert not page.is_visible("#groups")
    assert report(e, classes=["solubility"]).title == f"Why solubility {value} for this graph?"


BROKEN = """() => [...document.querySelectorAll("#settings th, #settings td")].flatMap((cell) => {
  const found = [];
  const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode;
    for (const word of node.data.matchAll(/[^\\s]+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) found.push(word[0]);
    }
  }
  return found;
})"""
"""Words of the settings that go over two lines."""


def test_nothing_sticks_out_of_the_page_and_no_word_of_the_settings_is_broken(opened, of_node):
    e, tree = of_node
    labels = {n: f"a node with a very long name, number {n}" for n in e.nodes.tolist()}
    on = graph_canvas(EDGES, e.nodes.tolist(), labels)
    path = "/home/somebody/a_project/models/network.py:factory"
    page = opened(report(e, tree, on=on, classes=["x" * 60, "y", "z"], settings={"source": path}))
    for width in (320, 390, 1000, 1366):
        page.set_viewport_size({"width": width, "height": 800})
        wide = "() => document.documentElement.scrollWidth"
        until(page, lambda most=width, wide=wide: page.evaluate(wide) <= most, f"fits {width}")
        assert not [word for word in page.evaluate(BROKEN) if "x" * 60 not in word], width


def test_in_a_notebook_it_is_a_frame_of_bounded_height(page, of_node, tmp_path):
    made = report(*of_node)
    assert len(repr(made)) < 120
    cell = made._repr_html_()
    assert cell.startswith("<iframe")
    assert "height:640px" in cell
    (tmp_path / "cell.html").write_text(f"<meta charset='utf-8'>{cell}")
    page.goto((tmp_path / "cell.html").as_uri())
    page.frame_locator("iframe").locator("body[data-ready]").wait_for(timeout=60_000)
    assert "for node 5?" in page.frame_locator("iframe").locator("h1").inner_text()


def test_a_printed_drawing_covers_nothing(opened, of_node):
    page = opened(report(*of_node))
    page.emulate_media(media="print")
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    picture, caption = (page.locator(where).first.bounding_box() for where in ("#picture .main-svg", "#caption"))
    assert picture["width"] <= 640
    assert picture["y"] + picture["height"] <= caption["y"] + 1
    page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    page.wait_for_function("() => find('picture').querySelector('.main-svg').getBoundingClientRect().width > 640")
