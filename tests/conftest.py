"""Folders that are not in the repository: tests marked `data` or `fixtures` skip, with the reason, without them."""

import os
from pathlib import Path

import pytest
import torch

# The graphs of tests are small: more threads gain nothing, and on a busy machine they lose much by waiting.
torch.set_num_threads(1)

FOLDERS = {"data": "XDEGREE_DATA", "fixtures": "XDEGREE_FIXTURES"}


def folder(marker: str) -> Path | None:
    path = os.environ.get(FOLDERS[marker])
    return Path(path) if path and Path(path).is_dir() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for marker, variable in FOLDERS.items():
            if item.get_closest_marker(marker) and folder(marker) is None:
                item.add_marker(pytest.mark.skip(reason=f"${variable} does not name a folder"))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real datasets; only for tests marked `data`."""
    path = folder("data")
    assert path is not None, "mark this test with `data`"
    return path


@pytest.fixture(scope="session")
def fixtures_folder() -> Path:
    """The authors' own numbers; only for tests marked `fixtures`."""
    path = folder("fixtures")
    assert path is not None, "mark this test with `fixtures`"
    return path
