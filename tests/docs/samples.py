"""Sample data that pages need, named in a comment on the page: ``<!-- sample: people -->``."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from _ext.blocks import blocks
from docs.pages import DOCS
from docs.reader import Reader

from tidegate.demo import write

SAMPLE = re.compile(r"<!-- sample: ([a-z-]+) -->")


def samples_of(page: str) -> list[str]:
    """Return the names of the samples that a page needs."""
    return SAMPLE.findall(page)


def put(name: str, folder: Path) -> None:
    """Put a sample's files into the folder that a page runs in."""
    FILES[name](folder)


def _tutorial(page: str, folder: Path) -> None:
    """Write the files of a tutorial, which the guides that follow it use as well."""
    for block in blocks((DOCS / "tutorials" / page).read_text("utf-8")):
        if "file" in block.options:
            (folder / block.options["file"]).write_text(block.text, "utf-8")
    for script in folder.glob("make_*.py"):
        Reader(folder).follow(f"```sh\npython {script.name}\n```\n")


FILES = {
    "people": write,  # the demo's tables and policies
    "soldiers": write,
    "demo": lambda folder: write(folder / "tidegate-demo"),
    "first-release": partial(_tutorial, "first-release.md"),
    "staff": partial(_tutorial, "release.md"),
}
