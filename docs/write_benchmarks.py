"""Write docs/benchmarks.md: run the benchmarks and keep what they print, with the machine's description.

    python docs/write_benchmarks.py [--quick]

Run it on a quiet machine; it takes some minutes. What cannot be run here, for want of data or a browser, says so.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
SCRIPTS = ("engine", "sparse", "growth", "pick", "jobs", "explorer")
QUICKER = ("engine", "sparse", "growth", "pick")
"""Those that have ``--quick``."""

PREFACE = """\
# Benchmarks

Written by `make bench` from what the scripts in `benchmarks/` print; do not edit. Every table is of one run, and every
figure that has a mark to reach stands beside it.
"""


def section(name: str, options: list[str]) -> str:
    """What one benchmark printed, below the first line of its description."""
    script = ROOT / "benchmarks" / f"{name}.py"
    title = script.read_text().split('"""')[1].strip().splitlines()[0]
    options = options if name in QUICKER else []
    if name in ("jobs", "pick") and not os.environ.get("XDEGREE_DATA"):
        return f"## {title}\n\nLeft out: $XDEGREE_DATA names no folder of data.\n"
    command = [sys.executable, str(script), *options]
    made = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own script)
    if made.returncode:
        raise SystemExit(f"benchmarks/{name}.py failed:\n{made.stderr}")
    shown = " ".join([f"python benchmarks/{name}.py", *options])
    return f"## {title}\n\n`{shown}`\n\n```text\n{made.stdout.rstrip()}\n```\n"


def main(options: list[str]) -> int:
    """Write the page."""
    parts = []
    for name in SCRIPTS:
        print(f"benchmarks/{name}.py …", flush=True)
        parts.append(section(name, options))
        print(parts[-1], flush=True)
    PAGE.write_text("\n".join([PREFACE, *parts]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
