"""The site is whole: every link, anchor and picture leads somewhere, every page is in it, and nothing comes from elsewhere."""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path

import pytest
from making.pages import CHAPTERS, DOCS, all_pages, chapters
from making.site import build

LARGEST_PICTURE = 200_000


class Links(HTMLParser):
    """Where a page leads, what it shows, and the anchors that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.anchors: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.anchors += [told["id"]] if told.get("id") else []
        self.links += [(tag, told[name]) for name in ("href", "src") if told.get(name)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    build(folder)
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    found = {}
    for path in site.rglob("*.html"):
        found[path] = Links()
        found[path].feed(path.read_text("utf-8"))
    return found


def broken(pages: dict[Path, Links]) -> list[str]:
    """Links that lead nowhere."""
    found = []
    for path, page in pages.items():
        for _, link in page.links:
            if "://" in link or link.startswith(("data:", "mailto:")):
                continue
            place, _, anchor = link.partition("#")
            target = Path(os.path.normpath(path.parent / place)) if place else path
            if not target.is_file() or (anchor and anchor not in pages[target].anchors):
                found.append(f"{path.name}: {link}")
    return found


def test_every_link_anchor_and_picture_leads_somewhere(pages: dict[Path, Links]) -> None:
    assert not broken(pages)


def test_a_broken_link_and_a_broken_anchor_are_found(tmp_path: Path) -> None:
    page = Links()
    page.feed('<h1 id="a">A</h1><a href="#a"></a><a href="#b"></a><img src="none.png">')
    (tmp_path / "a.html").write_text("", "utf-8")
    assert broken({tmp_path / "a.html": page}) == ["a.html: #b", "a.html: none.png"]


def test_anchors_are_given_once_on_a_page(pages: dict[Path, Links]) -> None:
    for path, page in pages.items():
        twice = {anchor for anchor in page.anchors if page.anchors.count(anchor) > 1}
        assert not twice, (path.name, twice)


def test_scripts_styles_and_pictures_come_from_no_other_host(pages: dict[Path, Links]) -> None:
    for path, page in pages.items():
        assert not [link for tag, link in page.links if tag != "a" and "://" in link], path.name


def test_every_page_is_in_the_navigation() -> None:
    listed = {page.place for pages in chapters().values() for page in pages}
    assert {page.place for page in all_pages() if not page.place.startswith("gallery/")} <= listed
    missing = [name for names in CHAPTERS.values() for name in names if not (DOCS / name).exists()]
    assert not missing, "listed in docs/making/pages.py, and not there"


def test_pictures_are_small() -> None:
    for path in [*DOCS.rglob("*.png"), *DOCS.rglob("*.svg")]:
        assert path.stat().st_size < LARGEST_PICTURE, path.name
