"""What an experiment found, printed, kept as JSON, and put together as one page."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..results.files import write_json
from ..results.tables import Table

FORM = "xdegree-outcome-1"


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

    def text(self) -> str:
        """For a terminal."""
        return "\n\n".join([f"== {self.title}", self.about, *(table.text() for table in self.tables)])


def keep(outcome: Outcome, folder: Path) -> list[Path]:
    """Write ``NAME.json`` and each picture as PNG and SVG; returns the pictures' files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, picture in outcome.pictures.items():
        for kind in ("png", "svg"):
            files.append(folder / f"{name}.{kind}")
            picture.figure.savefig(files[-1])
    content = {
        "format": FORM,
        "name": outcome.name,
        "title": outcome.title,
        "about": outcome.about,
        "tables": [asdict(table) for table in outcome.tables],
        "pictures": {name: picture.caption for name, picture in outcome.pictures.items()},
    }
    write_json(folder / f"{outcome.name}.json", content)
    return files


def write_page(names: Sequence[str], folder: Path, page: Path, command: str) -> Path:
    """One Markdown page of all outcomes in a folder, in the order of their names; pictures go beside it."""
    paths = [path for name in names if (path := folder / f"{name}.json").is_file()]
    title = "# Results" if len(paths) != 1 else f"# Results: {paths[0].stem}"
    parts = [title, f"Written by `{command}`; do not edit. Each section names the command that made it."]
    images = page.parent / page.stem
    for path in paths:
        parts += _section(json.loads(path.read_text()), folder, images)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(parts) + "\n")
    return page


def _section(kept: dict[str, Any], folder: Path, images: Path) -> list[str]:
    parts = [f"## {kept['title']}", f"`xdegree reproduce {kept['name']}`", kept["about"]]
    tables = [Table(**{k: _tuples(v) for k, v in table.items()}) for table in kept["tables"]]
    parts += [table.markdown() for table in tables]
    for name, caption in kept["pictures"].items():
        images.mkdir(parents=True, exist_ok=True)
        (images / f"{name}.png").write_bytes((folder / f"{name}.png").read_bytes())
        parts.append(f"![{caption}]({images.name}/{name}.png)\n\n*{caption}*")
    return parts


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value
