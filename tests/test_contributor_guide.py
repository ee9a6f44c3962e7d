"""The contributor guide names files and folders that exist, and has a walk for each kind of addition."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
PATH = re.compile(r"`((?:src|tests|docs|papers|locks)/[\w./-]*|[\w-]+\.(?:md|toml|cff))`|\]\(([^)#:]+)\)")
WALKS = [
    "Add an operator of collect",
    "Add a test of release",
    "Add a statistic of answer",
    "Add a route of the service",
    "Add a page of the console",
]


def named_paths(text: str) -> list[str]:
    """Return the paths in backticks and in links."""
    return [quoted or linked for quoted, linked in PATH.findall(text)]


def test_every_path_in_the_guide_exists() -> None:
    assert not [path for path in named_paths(TEXT) if not (ROOT / path).exists()]


def test_missing_path_is_detected() -> None:
    text = "Edit `src/tidegate/nowhere.py`, then [the page](docs/none.md), then `Makefile` with `make help`."
    assert named_paths(text) == ["src/tidegate/nowhere.py", "docs/none.md"]


def test_each_walk_goes_from_source_through_tests_to_documentation() -> None:
    sections = re.split(r"^### ", TEXT.partition("## Five walks")[2].partition("\n## ")[0], flags=re.MULTILINE)[1:]
    assert [section.splitlines()[0] for section in sections] == WALKS
    for section in sections:
        folders = {path.partition("/")[0] for path in named_paths(section)}
        assert {"src", "tests", "docs"} <= folders, section.splitlines()[0]
        assert named_paths(section)[0].startswith("src/tidegate/")
