"""What the explorer's page shows: prediction, scores, levels, two methods, legends, dark mode, downloads."""

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from explorer_pages import (
    BUSY,
    CY,
    choose,
    click,
    contributions,
    nodes_of,
    opened,
    predicted,
    said,
    until,
)

from xdegree import Explanation, explain
from xdegree.baselines import METHODS
from xdegree.canvas import account_line
from xdegree.explorer.subject import Example

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest_plugins = ["explorer_pages"]
pytestmark = BUSY


def test_the_prediction_is_shown_with_all_classes(looked: "Page", examples: list[Example]) -> None:
    data = examples[0].items[0].data
    logits = examples[0].model(data.x, data.edge_index)[0].detach()
    titles = looked.locator("#prediction .logit").evaluate_all("(cells) => cells.map((c) => Number(c.title))")
    assert titles == pytest.approx(sorted(logits.tolist(), reverse=True), rel=1e-6)
    said(looked, "#prediction .chosen .share", f"{float(logits.softmax(0).max()):.1%}")


def test_the_legend_names_the_class_that_is_asked_about(looked: "Page", examples: list[Example]) -> None:
    names = ("no", "yes")
    explained = predicted(examples[0], examples[0].items[0].data)
    for name in (names[1 - explained], names[explained]):  # the page is left as it was
        choose(looked, "target", name)
        said(looked, "#first-caption", f"contribution to “{name}” (logits): red raises “{name}”, blue lowers it")
        said(looked, "#account", f"the prediction for “{name}” is")


def test_a_row_of_the_list_lights_its_atom(looked: "Page", examples: list[Example]) -> None:
    data = examples[0].items[0].data
    e = explain(examples[0].model, data.x, data.edge_index)
    rows = looked.locator("#scores button")
    listed = rows.evaluate_all("(rows) => rows.map((row) => Number(row.dataset.node))")
    assert listed == [node for node, _ in e.top(14, by="size")]
    text = looked.inner_text("#account")
    assert text.lower().startswith(account_line(e, ("no", "yes"), node="atom")[:20])
    rows.nth(2).click()
    nodes_of(looked, ".lit", [listed[2]])
    rows.nth(0).click()
    nodes_of(looked, ".lit", [listed[0]])
    rows.nth(0).click()
    nodes_of(looked, ".lit", [])


def test_atoms_have_charges_and_numbers_as_the_reader_likes(looked: "Page") -> None:
    labels = f"{CY}._cyreg.cy.nodes().map((n) => n.data('label')).join()"
    until(looked, f"{labels}.includes('N⁺')")
    until(looked, f"{labels}.includes('O⁻')")
    assert not looked.evaluate(f"/[0-9]/.test({labels})")
    numbers = looked.locator("#numbers label").filter(has_text="Atom numbers")
    charges = looked.locator("#numbers label").filter(has_text="Charges")
    numbers.click()
    until(looked, f"{labels}.includes('N⁺ 6')")
    charges.click()
    until(looked, f"{labels}.includes('N 6') && !{labels}.includes('⁺')")
    numbers.click()
    charges.click()
    until(looked, f"{labels}.includes('N⁺') && !/[0-9]/.test({labels})")


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
    said(shown, "#second-caption", "gradient x input, in its own unit: red for positive, blue for negative scores")
    choose(shown, "second-method", "attention")
    said(shown, "#second-said", "attention layers")


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


def test_the_page_has_a_language_and_a_dark_side(browser: "Browser", address: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="dark")
    page = context.new_page()
    opened(page, address)
    assert page.get_attribute("html", "lang") == "en"
    light = "(where) => getComputedStyle(document.querySelector(where)).backgroundColor.match(/\\d+/g).map(Number)"
    for where in ("body", ".card", "#item"):
        until(page, f"Math.max(...({light})('{where}').slice(0, 3)) < 80")
    ink = page.evaluate("getComputedStyle(document.querySelector('#title')).color.match(/\\d+/g).map(Number)")
    assert min(ink[:3]) > 180
    context.close()
