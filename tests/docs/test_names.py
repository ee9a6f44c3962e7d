"""Source files and Python names that a page quotes exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from docs.pages import ROOT, all_pages, name_of

FILE = re.compile(r"`([\w./-]+/[\w.-]*\.(?:py|json|js|toml|txt))`")
NAME = re.compile(r"`(tidegate(?:_papers)?(?:\.\w+)+)")
FOLDERS = (ROOT, ROOT / "src", ROOT / "src" / "tidegate", ROOT / "papers" / "src")
HISTORY = ROOT / "CHANGELOG.md"  # quotes names of earlier versions
PAGES = [page for page in all_pages() if page != HISTORY]


def missing_files(text: str) -> list[str]:
    """Return the quoted files that do not exist under the root or the sources."""
    return [path for path in FILE.findall(text) if not any((folder / path).is_file() for folder in FOLDERS)]


def missing_names(text: str) -> list[str]:
    """Return the quoted dotted names that cannot be imported."""
    return [name for name in NAME.findall(text) if not exists(name)]


def exists(name: str) -> bool:
    """Return whether a dotted name is a module or an attribute of one."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return bool(module) and exists(module) and hasattr(importlib.import_module(module), attribute)
    return True


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_and_names_on_a_page_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    assert not missing_files(text)
    assert not missing_names(text)


def test_missing_file_and_missing_name_are_detected() -> None:
    text = (
        "See `tables/nowhere.py`, `tables/guard.py`, `tidegate.nothing`, `tidegate.mean` and `tidegate.risk.baskets`."
    )
    assert missing_files(text) == ["tables/nowhere.py"]
    assert missing_names(text) == ["tidegate.nothing"]
