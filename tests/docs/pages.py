"""The pages of the documentation as files of the repository."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GALLERY = ROOT / "papers" / "docs" / "gallery"
ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")


def all_pages() -> list[Path]:
    """Return every page: those of the documentation, of the papers, and in the root."""
    folders = (DOCS, ROOT / "papers" / "docs")
    return [
        *(ROOT / name for name in ROOT_PAGES),
        *(page for folder in folders for page in sorted(folder.rglob("*.md"))),
    ]


def name_of(page: Path) -> str:
    """Return the path of a page from the root."""
    return page.relative_to(ROOT).as_posix()
