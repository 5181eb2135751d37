"""Run the blocks of docs/pictures.md where its images are, and take the report's portrait in a browser."""

import os
import re
import shutil
from pathlib import Path

import torch

DOCS = Path(__file__).parent
PAGE = DOCS / "pictures.md"
BROWSER = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def images() -> set[str]:
    return set(re.findall(r"\(images/([\w-]+\.png)\)", PAGE.read_text()))


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


def main() -> None:
    torch.set_num_threads(1)
    os.chdir(DOCS / "images")
    names: dict[str, object] = {}
    for block in blocks():
        exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102
    portrait(Path("report.html"), Path("report.png"))
    Path("report.html").unlink()
    for name in sorted(images()):
        print(f"{name}: {Path(name).stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
