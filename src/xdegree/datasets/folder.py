"""Where data lie, and how files are read: a broken or partial one is reported by name, and nothing of it is used."""

import os
import sys
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class BrokenFileError(ValueError):
    """A data file that is there but cannot be used as it is; the message names it."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} {why}; delete it or put a whole one in its place")


def data_folder() -> Path:
    """The folder of the datasets: ``$XDEGREE_DATA`` if set, else that of `cache_folder`."""
    given = os.environ.get("XDEGREE_DATA")
    return Path(given) if given else cache_folder()


def cache_folder() -> Path:
    """``xdegree`` in the user's cache folder: for what can be made again."""
    if sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "xdegree"


def missing(path: Path, advice: str) -> FileNotFoundError:
    """The error for a file that is not there; `advice` says what to do."""
    return FileNotFoundError(
        f"{path} does not exist; {advice}. The data folder is $XDEGREE_DATA, else the user's cache."
    )


def read_npz(path: Path, keys: Sequence[str], advice: str) -> dict[str, Array]:
    """All named arrays of a file, read in full before any is used; pickled objects are refused."""
    if not path.is_file():
        raise missing(path, advice)
    try:
        # Opened here, because numpy leaves a file open that it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            found = {key: stored[key] for key in keys if key in stored}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise BrokenFileError(path, f"is not a whole .npz file ({error})") from error
    require(path, len(found) == len(keys), f"lacks {', '.join(key for key in keys if key not in found)}")
    return found


def read_numbers(path: Path, columns: int = 1) -> Array:
    """Integers from a text file, ``[rows]`` or ``[rows, columns]``, separated by commas."""
    try:
        numbers = np.loadtxt(path, delimiter="," if columns > 1 else None, dtype=np.int64, ndmin=2)
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise BrokenFileError(path, f"does not hold {columns} integers per line ({error})") from error
    if numbers.shape[1:] != (columns,):
        raise BrokenFileError(path, f"holds {numbers.shape[1]} numbers per line instead of {columns}")
    return numbers[:, 0] if columns == 1 else numbers


def require(path: Path, fits: bool, why: str) -> None:
    """Refuse a file whose contents do not fit together."""
    if not fits:
        raise BrokenFileError(path, why)
