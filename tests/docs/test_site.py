"""Sphinx builds the site without a warning; every link leads somewhere, and nothing is loaded from another host."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from docs.pages import DOCS, ROOT, all_pages
from markdown_it import MarkdownIt
from mdit_py_plugins.anchors import anchors_plugin

BUILT = pytest.mark.long  # Sphinx builds the site for 20 s; the links of its sources are tested in every run
LARGEST_PICTURE = 200_000
LARGEST_WAIT = 300  # seconds


class Links(HTMLParser):
    """The links of a page, the files that it loads, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.anchors: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.anchors += [values["id"]] if "id" in values else []
        self.links += [(tag, values[name]) for name in ("href", "src") if name in values]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the built site, as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("docs")
    source_paths = os.pathsep.join(str(ROOT / part) for part in ("src", "papers/src"))
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs", "-d", folder / "cache", ".", folder / "site"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": source_paths},
        capture_output=True,
        text=True,
        timeout=LARGEST_WAIT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    parsed = {}
    for path in site.rglob("*.html"):
        parsed[path] = Links()
        parsed[path].feed(path.read_text("utf-8"))
    return parsed


def broken_links(pages: dict[Path, Links]) -> list[str]:
    """Return the links that lead nowhere."""
    broken = []
    for path, page in pages.items():
        for _, link in page.links:
            if "://" in link or link.startswith(("data:", "mailto:")):
                continue
            address, _, anchor = link.partition("#")
            file = unquote(address.partition("?")[0])
            target = Path(os.path.normpath(path.parent / file)) if file else path
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].anchors):
                broken.append(f"{path.name}: {link}")
    return broken


def test_every_link_anchor_and_image_of_the_sources_exists() -> None:
    markdown = MarkdownIt("commonmark").enable("table").use(anchors_plugin, max_level=4)  # as myst_heading_anchors
    pages = {page: Links() for page in all_pages()}
    for path, page in pages.items():
        page.feed(markdown.render(path.read_text("utf-8")))
    assert sum(len(page.links) for page in pages.values()) > 300
    assert not broken_links(pages)


@BUILT
def test_every_link_anchor_and_image_exists(pages: dict[Path, Links]) -> None:
    assert not broken_links(pages)


def test_broken_link_and_broken_anchor_are_detected(tmp_path: Path) -> None:
    page = Links()
    page.feed('<h1 id="a">A</h1><a href="#a"></a><a href="#b"></a><img src="none.png">')
    (tmp_path / "a.html").write_text("", "utf-8")
    assert broken_links({tmp_path / "a.html": page}) == ["a.html: #b", "a.html: none.png"]


@BUILT
def test_anchors_are_unique_on_each_page(pages: dict[Path, Links]) -> None:
    for path, page in pages.items():
        repeated = {anchor for anchor in page.anchors if page.anchors.count(anchor) > 1}
        assert not repeated, (path.name, repeated)


@BUILT
def test_pages_load_nothing_from_other_hosts(pages: dict[Path, Links]) -> None:
    for path, page in pages.items():
        assert not [link for tag, link in page.links if tag != "a" and "://" in link], path.name


@BUILT
def test_first_page_links_to_the_documentation(site: Path) -> None:
    assert "url=docs/index.html" in (site / "index.html").read_text("utf-8")
    assert (site / "docs" / "index.html").is_file()


def test_images_are_small() -> None:
    for folder in (DOCS, ROOT / "papers" / "docs"):
        for path in [*folder.rglob("*.png"), *folder.rglob("*.svg")]:
            assert path.stat().st_size < LARGEST_PICTURE, path.name
