"""Pages that a command writes and the test suite compares."""

from pathlib import Path


def write_page(path: Path, text: str, summary: str, argv: list[str]) -> int:
    """Write a page and say so in a line, or with --check compare it; the exit code is 1 if it is out of date."""
    name = f"{path.parent.name}/{path.name}"
    if "--check" in argv:
        if path.read_text() != text:
            print(f"{name} is out of date; run: make coverage")
            return 1
        return 0
    path.write_text(text)
    print(f"{name}: {summary}")
    return 0
