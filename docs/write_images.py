"""Run the blocks of the pages that show pictures where the images are, and take the report's portrait in a browser.

``python docs/write_images.py`` writes the images of all pages, ``… how-to/node.md`` those of one.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import torch

DOCS = Path(__file__).parent
PAGES = (
    "../README.md",
    "pictures.md",
    "get-started.md",
    *(f"how-to/{name}.md" for name in ("node", "molecule", "sentence", "link", "hetero")),
)
PORTRAITS = {"report.png", "explorer.png"}
"""Taken in a browser: here, and by write_explorer.py."""
BROWSER = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def images(page: str) -> set[str]:
    return set(re.findall(r"\((?:\.\./|docs/)?images/([\w-]+\.png)\)", (DOCS / page).read_text()))


def portrait(report: Path, image: Path) -> None:
    from playwright.sync_api import sync_playwright

    path = os.environ.get("XDEGREE_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(BROWSER))
        page = browser.new_page(viewport={"width": 1100, "height": 760})
        page.goto(report.resolve().as_uri())
        page.wait_for_selector("body[data-ready]")
        for _ in range(2):
            page.click("#on")
        page.wait_for_timeout(500)
        page.screenshot(path=image)
        browser.close()


def main(pages: list[str]) -> None:
    torch.set_num_threads(1)
    os.chdir(DOCS / "images")
    for page in pages or PAGES:
        names: dict[str, object] = {"__name__": "__main__"}
        for block in blocks(page):
            exec(compile(block, page, "exec"), names)  # noqa: S102
        report = Path("report.html")
        if report.is_file():
            portrait(report, Path("report.png"))
            report.unlink()
        for name in sorted(images(page)):
            print(f"{page}: {name}, {Path(name).stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
