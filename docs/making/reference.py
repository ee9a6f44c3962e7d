"""The pages of docs/reference, from what the code says of itself. They are committed; a test fails where they are stale."""

from __future__ import annotations

from making.interface import api_page
from making.pages import DOCS
from making.terminal import cli_page

PAGES = {"api.md": api_page, "cli.md": cli_page}


def write_reference() -> None:
    """Write both pages."""
    folder = DOCS / "reference"
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (folder / name).write_text(page(), "utf-8")
