"""What an experiment found, printed, kept as JSON, and written as pages."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..results.files import write_json
from ..results.tables import Table

FORM = "xdegree-outcome-2"
PAGES = "{pages}"
"""In what outcomes have for the first page: the folder of the other pages and the pictures."""


@dataclass(frozen=True)
class Picture:
    """A figure with a savefig (Matplotlib's or our own of molecules), and what it shows."""

    figure: Any
    caption: str


@dataclass(frozen=True)
class Outcome:
    """Tables and pictures of one experiment, and how they were obtained."""

    name: str
    title: str
    about: str
    """Settings, seeds, what was left out: all that a reader needs to judge the figures."""
    tables: Sequence[Table] = ()
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    """By the name of their files."""
    front: Sequence[str] = ()
    """What the first page of all results says of it, as Markdown."""

    def text(self) -> str:
        """For a terminal."""
        return "\n\n".join([f"== {self.title}", self.about, *(table.text() for table in self.tables)])


def keep(outcome: Outcome, folder: Path, command: str | None = None) -> list[Path]:
    """Write ``NAME.json``, with the command that made it, and each picture as PNG and SVG; returns those files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, picture in outcome.pictures.items():
        for kind in ("png", "svg"):
            files.append(folder / f"{name}.{kind}")
            picture.figure.savefig(files[-1])
    content = {
        "format": FORM,
        "name": outcome.name,
        "command": command or f"xdegree reproduce {outcome.name}",
        "front": list(outcome.front),
        "title": outcome.title,
        "about": outcome.about,
        "tables": [asdict(table) for table in outcome.tables],
        "pictures": {name: picture.caption for name, picture in outcome.pictures.items()},
    }
    write_json(folder / f"{outcome.name}.json", content)
    return files


def write_page(names: Sequence[str], folder: Path, page: Path, command: str) -> Path:
    """A first page that a reader finishes, and beside it one page for each outcome in a folder, with its pictures.

    The first page holds what outcomes have for it (`Outcome.front`) and links to the others, in the order of the names.
    """
    found = [json.loads(path.read_text()) for name in names if (path := folder / f"{name}.json").is_file()]
    kept = [one for one in found if one.get("format") == FORM]
    pages = page.parent / page.stem
    pages.mkdir(parents=True, exist_ok=True)
    for one in kept:
        (pages / f"{one['name']}.md").write_text("\n\n".join(_page(one, folder, pages)) + "\n")
    missing = [name for name in names if name not in {one["name"] for one in kept}]
    parts = ["# Results", f"Written by `{command}`; do not edit."]
    parts += [part.replace(PAGES, pages.name) for one in kept for part in one["front"]]
    parts += ["## All experiments", "\n".join(f"- [{one['title']}]({pages.name}/{one['name']}.md)" for one in kept)]
    if missing:
        commands = ", ".join(f"`xdegree reproduce {name}`" for name in missing)
        parts.append(f"Not run for this page: {commands}.")
    page.write_text("\n\n".join(parts) + "\n")
    return page


def _page(kept: dict[str, Any], folder: Path, pages: Path) -> list[str]:
    """The page of one outcome; its pictures are copied beside it."""
    parts = [f"# {kept['title']}", f"Written by `{kept['command']}`; do not edit.", kept["about"]]
    tables = [Table(**{k: _tuples(v) for k, v in table.items()}) for table in kept["tables"]]
    parts += [table.markdown().replace("### ", "## ", 1) for table in tables]
    for name, caption in kept["pictures"].items():
        (pages / f"{name}.png").write_bytes((folder / f"{name}.png").read_bytes())
        parts.append(f"![{caption}]({name}.png)\n\n*{caption}*")
    return parts


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value
