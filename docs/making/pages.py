"""Which pages there are, and their order in the navigation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

CHAPTERS: dict[str, list[str]] = {
    "Start": ["index.md", "tutorials/first-release.md", "promise.md"],
    "Tutorials": ["tutorials/answer.md", "tutorials/release.md", "tutorials/collect.md", "tutorials/synthesize.md"],
    "Guides": [
        "guides/which-rho.md",
        "guides/which-test.md",
        "guides/which-operator.md",
        "guides/postgres-and-spark.md",
        "guides/at-scale.md",
        "guides/bring-your-own.md",
    ],
    "In depth": [
        "policy.md",
        "answer.md",
        "release.md",
        "collect.md",
        "synthesize.md",
        "ledger.md",
        "tables.md",
        "service.md",
        "console.md",
        "audit.md",
    ],
    "Evidence": ["gallery/index.md", "reproduce.md", "figures.md", "benchmarks.md", "mutation.md"],
    "Reference": ["reference/api.md", "reference/cli.md"],
    "Inside": ["design.md", "learned.md", "../CONTRIBUTING.md", "../CHANGELOG.md"],
}
ROOT_PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "README.md")


@dataclass(frozen=True)
class Page:
    """A Markdown file and where its HTML goes."""

    source: Path
    place: str  # from the site's root, e.g. guides/which-rho.html

    @property
    def text(self) -> str:
        return self.source.read_text("utf-8")

    @property
    def title(self) -> str:
        """The first heading, without its explanation behind a colon."""
        heading = next((line for line in self.text.splitlines() if line.startswith("# ")), f"# {self.source.stem}")
        title = heading.removeprefix("# ").partition(":")[0].strip()
        return title.capitalize() if title.isupper() else title


def all_pages() -> list[Page]:
    """Every page: those of the navigation first, then those that nobody put there."""
    listed = [DOCS / name for names in CHAPTERS.values() for name in names]
    others = sorted(set(DOCS.rglob("*.md")) - set(listed))
    return [page_of(path.resolve()) for path in [*listed, *others] if path.exists()]


def chapters() -> dict[str, list[Page]]:
    """The navigation. A page that is not listed stands in the last chapter, so that none is lost."""
    listed = {chapter: [page_of((DOCS / name).resolve()) for name in names] for chapter, names in CHAPTERS.items()}
    known = {page.place for pages in listed.values() for page in pages}
    stray = [page for page in all_pages() if page.place not in known and not page.place.startswith("gallery/")]
    there = {chapter: [page for page in pages if page.source.exists()] for chapter, pages in listed.items()}
    return {**there, "Inside": [*there["Inside"], *stray]}


def page_of(source: Path) -> Page:
    """The page of a Markdown file under docs/ or in the root."""
    if source.is_relative_to(DOCS):
        return Page(source, source.relative_to(DOCS).with_suffix(".html").as_posix())
    return Page(source, f"{source.stem.lower()}.html")
