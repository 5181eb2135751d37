"""Tables as text for a terminal, as Markdown for a page, and as pandas' own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """Cells that are text already, with what a reader must know of them."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """For a terminal: columns aligned."""
        return "\n".join([*([self.title, ""] if self.title else []), aligned([self.head, *self.rows]), *self.notes])

    def markdown(self) -> str:
        """For a page."""
        lines = [self.head, tuple("---" for _ in self.head), *self.rows]
        table = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        notes = "\n".join(f"- {note}" for note in self.notes)
        return "\n\n".join(part for part in (f"### {self.title}" if self.title else "", table, notes) if part)


def aligned(lines: Sequence[tuple[str, ...]]) -> str:
    """Lines of cells with the columns below each other."""
    wide = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, wide, strict=True)).rstrip() for line in lines)


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± standard deviation (of the sample) of what several seeds gave; the mean alone of one value."""
    if not values:
        return "–"
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.{digits}f}"
    deviation = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def load_pandas() -> Any:
    """The package, which is no dependency, or an error that says how to get it."""
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("to_dataframe needs pandas: pip install pandas", name=error.name) from error
    return pandas
