"""The page: milliseconds from a click on an atom until its numbers are shown, in a real browser.

The molecule has 30 atoms, the model is the paper's GCN with random weights. Clicks fall on one atom after another, and
the clock of the browser runs from the button's release to the first frame whose table counts that atom. Beside it
stand what the engine takes of that, what a question takes by itself over the wire, and a plain forward pass. The mark
is 200 ms, on an idle machine. Needs Playwright and Chromium (or the one that $XDEGREE_CHROMIUM names).
"""

import json
import logging
import os
import shutil
import statistics
import threading
import time
import urllib.request
from typing import Any

import torch
from measure import arguments, machine, verdict

MARK, CLICKS = 200.0, 15
SMILES = "CC(=O)Nc1ccc(cc1)C(=O)NCCO"
# Resolves with the milliseconds from the release of the button to the frame that shows so many atoms in group A.
WATCH = """(count) => new Promise((resolve) => {
  let start = 0;
  window.addEventListener("mouseup", () => { start = performance.now(); }, { capture: true, once: true });
  const look = () => {
    const row = document.querySelector("#row-a th");
    if (start && row && row.innerText === `Group A (${count})`) resolve(performance.now() - start);
    else requestAnimationFrame(look);
  };
  look();
})"""
PLACES = """() => {
  const found = [...document.querySelectorAll("#graph, #graph *")].find((element) => element._cyreg);
  const box = found.getBoundingClientRect();
  return found._cyreg.cy.nodes().map((node) => {
    const at = node.renderedPosition();
    return [box.left + at.x, box.top + at.y];
  });
}"""


def missing() -> str | None:
    """Why this cannot be measured here; None if it can."""
    try:
        import dash  # noqa: F401
        import playwright  # noqa: F401
        import rdkit  # noqa: F401
    except ModuleNotFoundError as error:
        return f"no {error.name}"
    return None if browser_path() else "no Chromium on the path, and none in $XDEGREE_CHROMIUM"


def browser_path() -> str | None:
    """The browser to start."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("XDEGREE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


def example() -> Any:
    """The molecule and the model as the page takes them."""
    from xdegree.datasets import molecule_of
    from xdegree.datasets.mutagenicity import ATOMS
    from xdegree.explorer.subject import Example, Item
    from xdegree.models import GCN

    torch.manual_seed(0)
    model = GCN(len(ATOMS), 2, level="graph").eval()
    return Example("one", "One", "", "molecule", model, [Item(SMILES, molecule_of(SMILES))], ("no", "yes"), ATOMS)


def clicks(address: str) -> tuple[list[float], list[dict[str, Any]]]:
    """Milliseconds of each click, and the questions that were sent to the server."""
    from playwright.sync_api import sync_playwright

    asked: list[dict[str, Any]] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path(), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.on("request", lambda request: asked.append(request.post_data_json) if request.post_data else None)
        page.goto(address)
        page.wait_for_selector("#prediction")
        page.wait_for_timeout(1500)
        page.evaluate(f"window.watch = {WATCH}; 0")  # 0: a function would be called
        took = []
        for count, (x, y) in enumerate(page.evaluate(PLACES)[: CLICKS + 1], 1):
            page.mouse.move(x, y)
            page.wait_for_timeout(400)
            page.evaluate(f"window.found = watch({count}); 0")
            page.mouse.click(x, y)
            took.append(page.evaluate("window.found"))
        browser.close()
    return took[1:], [question for question in asked if question.get("output") == "answer.children"]


def over_the_wire(address: str, question: dict[str, Any]) -> float:
    """Milliseconds of one question, asked without a browser."""
    body = json.dumps(question).encode()
    request = urllib.request.Request(f"{address}_dash-update-component", body, {"Content-Type": "application/json"})
    start = time.perf_counter()
    with urllib.request.urlopen(request) as answer:
        answer.read()
    return 1000 * (time.perf_counter() - start)


def milliseconds(job: Any, times: int = CLICKS) -> float:
    """The median of several calls, by the clock on the wall."""
    found = []
    for _ in range(times + 2):
        start = time.perf_counter()
        job()
        found.append(1000 * (time.perf_counter() - start))
    return statistics.median(found[2:])


def main() -> None:
    """Print the table."""
    arguments(__doc__)
    if why := missing():
        print(f"skipped: {why}")
        return
    from xdegree.explorer import make_app, server
    from xdegree.explorer.answers import Answers
    from xdegree.explorer.catalogue import Catalogue
    from xdegree.explorer.parse import Reference

    print(machine())
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    one = example()
    subject, answers = Catalogue([one]).subject(Reference("one", item=0)), Answers()
    data = subject.data
    listening = server(make_app([one]), port=0)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{listening.server_port}/"
    took, asked = clicks(address)
    with torch.no_grad():
        forward = milliseconds(lambda: one.model(data.x, data.edge_index))
    engine = milliseconds(lambda: answers.groups(subject, (0, 1, 2), ()))
    wire = milliseconds(lambda: over_the_wire(address, asked[-1]))
    listening.shutdown()
    click = statistics.median(took)
    rows = {"plain forward pass": forward, "engine": engine, "question over the wire": wire, "click to numbers": click}
    print(f"molecule  {SMILES}, {data.num_nodes} atoms; medians of {CLICKS}")
    for name, value in rows.items():
        print(f"{name:24} {value:8.1f} ms {value / forward:7.1f}x a forward pass")
    print(f"slowest click {max(took):.0f} ms; {len(asked)} questions for {CLICKS + 1} clicks")
    print(f"the median click {verdict(click, MARK)}")


if __name__ == "__main__":
    main()
