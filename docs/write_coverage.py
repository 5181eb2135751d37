"""Write docs/coverage.md from the tables that the test suite checks, and run the report card.

``make coverage`` runs it; with ``--check`` it only says whether the page is up to date.
"""

import contextlib
import importlib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pages import write_page

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "coverage.md"
LAWS = {
    "total": "the total is not bit for bit the model's own: a fused kernel is taken apart, the last bits differ",
    "nothing": "a softmax is itself an output, and by the paper's rule nothing has a share of it",
    "everything": (
        "all nodes together do not contribute everything: a softmax is shared, something besides the nodes contributes,"
        " or a bias meets zeros"
    ),
    "renumber": "the model itself depends on the order of the nodes",
}


def page() -> str:
    """The whole page."""
    with tests():
        pyg, other = importlib.import_module("pyg_cases"), importlib.import_module("torch_cases")
        card = importlib.import_module("example_calls")
    import torch
    import torch_geometric

    covered = {p: sorted({c.name for c in pyg.CASES if c.package == p}) for p in pyg.PACKAGES}
    exported = {p: len(pyg.exported(p)) for p in pyg.PACKAGES}
    total, whole = sum(len(names) for names in covered.values()), sum(exported.values())
    releases = f"PyG {torch_geometric.__version__} and PyTorch {torch.__version__.split('+')[0]}"
    lines = [
        "# Coverage",
        "",
        "Written by `make coverage` from the tables in `tests/pyg_cases.py` and `tests/torch_cases.py`; do not edit.",
        "",
        f"**{total} of the {whole} names that the sub-packages of `torch_geometric.nn` export decompose**",
        f"({releases}). A covered name is run by the test suite, in float64, on the laws of",
        "[CONTRIBUTING.md](../CONTRIBUTING.md). A name that is neither covered nor listed with a reason fails the",
        "suite, so a class that a new release adds is noticed. Nothing is lost in silence: what has no rule raises",
        "`MissingRuleError` and names the operation.",
        "",
        "| sub-package of `torch_geometric.nn` | covered | exported |",
        "| --- | ---: | ---: |",
        *(f"| `{p}` | {len(covered[p])} | {exported[p]} |" for p in pyg.PACKAGES),
        f"| all | {total} | {whole} |",
        "",
        f"In {len(pyg.CASES)} calls, as many layers have variants. Beside them {len(other.CASES)} calls of PyTorch:",
        "",
        "| PyTorch | calls |",
        "| --- | ---: |",
        *(f"| {kind} | {count} |" for kind, count in sorted(Counter(c.package for c in other.CASES).items())),
        "",
        "## Models as people write them",
        "",
        f"`make coverage` also runs a report card: {len(card.EXAMPLES)} calls of `explain` on models written as in",
        "PyG's examples and as strangers write them (`tests/example_calls.py`): tables instead of features, other",
        "inputs and outputs, caches, wrappers. A call works if its scores are finite, not all 0, and obey the laws.",
        f"{len(card.EXAMPLES) - len(card.MISSES)} of {len(card.EXAMPLES)} do; the suite runs them too.",
        "",
        "| kind | calls |",
        "| --- | ---: |",
        *(f"| {kind} | {len(calls)} |" for kind, calls in card.KINDS.items()),
        "",
        *([*(f"- `{name}`: {why}" for name, why in card.MISSES.items()), ""] if card.MISSES else []),
        "Tried with PyTorch 2.13.0, the only release at hand, and PyG 2.8.1 and 2.7.0; the private parts of PyTorch",
        "that the engine leans on stand in `src/xdegree/engine/torch_private.py`.",
        "",
        "## Not covered",
        "",
        "| sub-package | name | why |",
        "| --- | --- | --- |",
        *(f"| `{p}` | `{n}` | {why} |" for p, names in pyg.NOT_COVERED.items() for n, why in names.items()),
        "",
        "## Refused",
        "",
        "Operations that raise `MissingRuleError` (and are `MISSING` in the report of `xdegree check`) where portions",
        "meet them:",
        "",
        "| what | operation | why |",
        "| --- | --- | --- |",
        *(f"| {r.what} | `{r.op}` | {r.reason} |" for r in other.REFUSED),
        "",
        "## Laws that a layer cannot obey",
        "",
        "The suite fails if a layer obeys `nothing` or `everything` after all and is still listed here. A layer may",
        "have several variants in the tests, of which one is enough to be listed.",
        "",
        "| law | reason | layers and models |",
        "| --- | --- | --- |",
        *(f"| {law} | {why} | {_breakers(pyg.CASES, law)} |" for law, why in LAWS.items()),
        "",
    ]
    return "\n".join(lines)


def _breakers(cases: list, law: str) -> str:
    names = sorted({case.name for case in cases if law not in case.laws})
    return ", ".join(f"`{name}`" for name in names) or "none"


@contextlib.contextmanager
def tests() -> Iterator[None]:
    """With the tables of the suite at hand."""
    sys.path.insert(0, str(ROOT / "tests"))
    try:
        yield
    finally:
        sys.path.remove(str(ROOT / "tests"))


def report_card() -> None:
    """Run all calls as people write them, and print how many work, with the reason of each miss."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with tests():
            card = importlib.import_module("example_calls")
            misses = {example.name: why for example in card.EXAMPLES if (why := card.tried(example))}
    finally:
        torch.set_default_dtype(before)
    for name, why in misses.items():
        print(f"  {name}: {why}")
    print(f"report card: {len(card.EXAMPLES) - len(misses)} of {len(card.EXAMPLES)} calls work and obey the laws")


def main(argv: list[str]) -> int:
    """Write the page, or with --check compare it."""
    text = page()
    done = write_page(PAGE, text, text.split("**")[1], argv)
    if "--check" not in argv:
        report_card()
    return done


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
