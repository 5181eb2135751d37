"""Take the portraits of the explorer in a browser, for docs/explorer.md: ``python docs/write_explorer.py``."""

import logging
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import torch
from write_images import BROWSER

from xdegree.explorer import examples, make_app, server

IMAGES = Path(__file__).parent / "images"
CY = "[...document.querySelectorAll('#graph, #graph *')].find((e) => e._cyreg)"
NITRO, RING = (4, 5, 6), (0, 1)


def click(page: Any, *nodes: int) -> None:
    for node in nodes:
        spot = page.evaluate(
            f"""(node) => {{
              const box = {CY}.getBoundingClientRect();
              const at = {CY}._cyreg.cy.nodes().filter((n) => n.data("node") === node).renderedPosition();
              return [box.left + at.x, box.top + at.y];
            }}""",
            node,
        )
        page.mouse.click(*spot)
        page.wait_for_timeout(400)


def opened(browser: Any, address: str, width: int, height: int) -> Any:
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(address)
    page.wait_for_selector("#scores")
    page.wait_for_timeout(1500)
    return page


def grouped(page: Any) -> None:
    """Two groups of atoms of the first molecule."""
    click(page, *NITRO)
    page.get_by_label("B", exact=True).first.check(force=True)
    click(page, *RING)
    page.wait_for_selector("#row-interaction")
    page.wait_for_timeout(800)


def portraits(browser: Any, address: str) -> None:
    wide = opened(browser, address, 1280, 1415)
    grouped(wide)
    wide.screenshot(path=IMAGES / "explorer.png")
    wide.click("#clear")
    wide.get_by_text("Growing groups").click()
    wide.wait_for_selector("#growth-said .lead")
    wide.locator("#level").focus()
    for _ in range(2):
        wide.keyboard.press("ArrowRight")
        wide.wait_for_timeout(800)
    wide.locator(".drawing").screenshot(path=IMAGES / "explorer-growth.png")
    wide.get_by_text("Compare", exact=True).click()
    wide.locator("#compare-said").filter(has_text="Spearman").wait_for()
    wide.wait_for_timeout(1000)
    wide.locator(".drawing").screenshot(path=IMAGES / "explorer-compare.png")
    wide.get_by_text("Contributions", exact=True).click()
    wide.click("#example")
    wide.get_by_role("option", name="Sentences", exact=True).click()
    wide.wait_for_timeout(2000)
    wide.locator(".drawing").screenshot(path=IMAGES / "explorer-sentence.png")
    small = opened(browser, address, 390, 1990)
    small.screenshot(path=IMAGES / "explorer-phone.png")


def main() -> None:
    from playwright.sync_api import sync_playwright

    torch.set_num_threads(1)
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    found = examples.prepared(["molecules", "sentences"], print)
    listening = server(make_app(found), port=0)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    try:
        with sync_playwright() as playwright:
            path = os.environ.get("XDEGREE_CHROMIUM") or shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=path, args=list(BROWSER))
            portraits(browser, f"http://127.0.0.1:{listening.server_port}/")
            browser.close()
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


if __name__ == "__main__":
    main()
