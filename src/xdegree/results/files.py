"""Results as files: written whole or not at all, and read strictly."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def write_json(path: str | Path, content: dict[str, Any]) -> Path:
    """Write a JSON file, whole or not at all."""
    return write_text(path, json.dumps(content))


def write_text(path: str | Path, text: str) -> Path:
    """Write a file beside its place and move it there when it is whole."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}, so {path} cannot be saved; make it first")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
    return path


def read_json(path: str | Path, form: str, what: str, build: Callable[[dict[str, Any]], T]) -> T:
    """Read what `write_json` wrote of some form; anything else is an error that says what does not fit."""
    try:
        content = json.loads(Path(path).read_text())
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON file: {error}") from None
    if not isinstance(content, dict) or content.get("format") != form:
        raise ValueError(f"{path} is no saved {what} (expected format {form!r})")
    try:
        return build(content)
    except KeyError as error:
        raise ValueError(f"{path} is a broken {what}: {error} is missing") from None
    except (TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise ValueError(f"{path} is a broken {what}: {type(error).__name__}: {error}") from None


def finite(value: Any) -> Any:
    """A number, or lists of them, as JSON has them: it knows no infinities, so those become text."""
    if isinstance(value, list):
        return [finite(item) for item in value]
    return value if math.isfinite(value) else str(value)
