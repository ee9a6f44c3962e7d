"""The folder of HTML pages: navigation, pictures, shown files, a search over headings. No script or font of another host."""

from __future__ import annotations

import json
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, Template
from markupsafe import Markup
from pygments.formatters import HtmlFormatter

from making.pages import DOCS, ROOT, Page, all_pages, chapters
from making.rendering import Heading, colours, render

HERE = Path(__file__).parent
LANGUAGES = {".py": "python", ".js": "javascript", ".json": "json", ".toml": "toml", ".md": "markdown"}


def build(folder: Path) -> int:
    """Write the site; returns how many pages it has."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    needed: set[str] = set()
    pages = {page: render(page, needed.add) for page in all_pages()}
    for page, (html, headings) in pages.items():
        _write(folder, page.place, title=page.title, content=html, headings=headings)
    for path in sorted(path for path in needed if (ROOT / path).is_file()):  # tests/docs/test_links.py names the others
        _show(folder, path)
    (folder / "style.css").write_text(_style(), "utf-8")
    (folder / "search.js").write_text(_search(pages), "utf-8")
    return len(pages)


def _write(folder: Path, place: str, *, title: str, content: str, headings: list[Heading]) -> None:
    up = os.path.relpath(".", os.path.dirname(place) or ".").replace(os.sep, "/") + "/"
    parts = [(anchor, text) for level, anchor, text in headings if level == 2]
    told: dict[str, Any] = {"title": title, "content": Markup(content), "up": up, "here": place, "parts": parts}  # noqa: S704
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_template().render(chapters=_navigation(), **told), "utf-8")


@cache
def _template() -> Template:
    return Environment(loader=FileSystemLoader(HERE), autoescape=True).get_template("page.html")


@cache
def _navigation() -> dict[str, list[tuple[str, str]]]:
    """Titles and places by chapter; read once, it stands on every page."""
    return {chapter: [(page.title, page.place) for page in pages] for chapter, pages in chapters().items()}


def _show(folder: Path, path: str) -> None:
    """A picture is copied; a file of the project becomes a page, so that links to it work without a repository."""
    source = ROOT / path
    if source.suffix in (".png", ".svg"):
        target = folder / source.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        return
    code = colours(source.read_text("utf-8"), LANGUAGES.get(source.suffix, "text"))
    content = f'<h1>{path}</h1><figure class="code"><pre><code>{code}</code></pre></figure>'
    _write(folder, f"source/{path}.html", title=path, content=content, headings=[])


def _style() -> str:
    light = HtmlFormatter(style="xcode").get_style_defs("figure.code")
    dark = HtmlFormatter(style="github-dark").get_style_defs("figure.code")
    own = (HERE / "style.css").read_text("utf-8")  # last, so that it wins over the colours' own backgrounds
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n{own}"


def _search(pages: dict[Page, tuple[str, list[Heading]]]) -> str:
    """Every heading and where it is, and the few lines that look through them."""
    found = [
        [text, page.title, page.place + (f"#{anchor}" if level > 1 else "")]
        for page, (_, headings) in pages.items()
        for level, anchor, text in headings
    ]
    return f"const HEADINGS = {json.dumps(found, ensure_ascii=False)};\n{(HERE / 'search.js').read_text('utf-8')}"
