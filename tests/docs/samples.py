"""Sample data that pages take for granted, named in a comment on them: ``<!-- sample: people -->``."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from docs.running import Reader
from making.blocks import blocks
from making.pages import DOCS

from tidegate.demo import write

SAMPLE = re.compile(r"<!-- sample: ([a-z-]+) -->")


def samples_of(page: str) -> list[str]:
    """The names of the samples that a page needs."""
    return SAMPLE.findall(page)


def put(name: str, folder: Path) -> None:
    """Put a sample's files into the folder that a page runs in."""
    FILES[name](folder)


def _tutorial(page: str, folder: Path) -> None:
    """What a tutorial writes: one source for it and for the guides that go on from there."""
    for block in blocks((DOCS / "tutorials" / page).read_text("utf-8")):
        if "file" in block.says:
            (folder / block.says["file"]).write_text(block.text, "utf-8")
    for script in folder.glob("make_*.py"):
        Reader(folder).follow(f"```sh\npython {script.name}\n```\n")


FILES = {
    "people": write,  # the demo's tables and policies
    "soldiers": write,
    "demo": lambda folder: write(folder / "tidegate-demo"),
    "first-release": partial(_tutorial, "first-release.md"),
    "staff": partial(_tutorial, "release.md"),
}
