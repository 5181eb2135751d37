"""Write docs/benchmarks.md: run the benchmarks and keep what they print, with the machine's description.

    python docs/write_benchmarks.py [--quick] [NAME …]

With names, only those are run again. Run it on a quiet machine; it takes some minutes.
What cannot be run here, for want of data or a browser, says so.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
SCRIPTS = ("engine", "cora", "sparse", "growth", "stores", "pick", "jobs", "explorer")
QUICKER = ("engine", "cora", "sparse", "growth", "stores", "pick")
"""Those that have ``--quick``."""

PREFACE = """\
# Benchmarks

Written by `make bench` from what the scripts in `benchmarks/` print; do not edit. Every table is of one run, and every
figure that has a mark to reach stands beside it.
"""


def title_of(name: str) -> str:
    """The first line of a benchmark's description."""
    return (ROOT / "benchmarks" / f"{name}.py").read_text().split('"""')[1].strip().splitlines()[0]


def section(name: str, options: list[str]) -> str:
    """What one benchmark printed, below the first line of its description."""
    script, title = ROOT / "benchmarks" / f"{name}.py", title_of(name)
    options = options if name in QUICKER else []
    if name in ("jobs", "pick") and not os.environ.get("XDEGREE_DATA"):
        return f"## {title}\n\nLeft out: $XDEGREE_DATA names no folder of data.\n"
    command = [sys.executable, str(script), *options]
    made = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own script)
    if made.returncode:
        raise SystemExit(f"benchmarks/{name}.py failed:\n{made.stderr}")
    shown = " ".join([f"python benchmarks/{name}.py", *options])
    return f"## {title}\n\n`{shown}`\n\n```text\n{made.stdout.rstrip()}\n```\n"


def before(page: str) -> dict[str, str]:
    """The sections that the page has, by their titles."""
    parts = page.split("\n## ")[1:]
    return {part.partition("\n")[0]: f"## {part.rstrip()}\n" for part in parts}


def main(given: list[str]) -> int:
    """Write the page."""
    options = [one for one in given if one.startswith("--")]
    chosen = [one for one in given if one not in options] or SCRIPTS
    parts = before(PAGE.read_text()) if PAGE.exists() else {}
    for name in chosen:
        print(f"benchmarks/{name}.py …", flush=True)
        parts[title_of(name)] = section(name, options)
        print(parts[title_of(name)], flush=True)
    known = [parts[title] for title in map(title_of, SCRIPTS) if title in parts]
    PAGE.write_text("\n".join([PREFACE, *known]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
