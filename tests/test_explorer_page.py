"""Groups on the explorer's page: by clicks, box, lasso, keyboard and finger; two readers; a phone."""

from typing import TYPE_CHECKING

import pytest
from explorer_pages import (
    BUSY,
    CY,
    NITRO,
    around,
    click,
    contributions,
    drawn,
    nodes_of,
    opened,
    place,
    predicted,
    row,
    said,
    still,
    until,
)

from xdegree.explorer.subject import Example

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest_plugins = ["explorer_pages"]
pytestmark = BUSY


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
    until(shown, "!document.querySelector('.lasso')")
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
        until(small, "document.documentElement.scrollWidth === 390")
    said(small, "#second-caption", "gradient x input")
    boxes = [
        small.locator(f"#{name}").bounding_box() for name in ("graph", "first-caption", "second", "second-caption")
    ]
    tops = [box["y"] for box in boxes if box]
    assert tops == sorted(tops), "each legend stands below its own drawing, not below both"
    assert len(tops) == 4
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
