"""Markdown to HTML: headings with anchors, links between pages, code in colours."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from making.blocks import said
from making.pages import ROOT, ROOT_PAGES, Page, page_of

COLOURS = HtmlFormatter(nowrap=True, cssclass="code")
LEXERS = {"console": "console", "sh": "bash", "output": "text", "": "text"}
Heading = tuple[int, str, str]  # level, anchor, text


def render(page: Page, needs: Callable[[str], None] = lambda path: None) -> tuple[str, list[Heading]]:
    """A page as HTML and its headings. `needs` is told of every other file that a link shows (from the root)."""
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    reader.add_render_rule("fence", _fence)
    tokens = reader.parse(page.text)
    headings = _anchored(tokens)
    for token in tokens:
        for child in token.children or ():
            for name in ("href", "src"):
                if isinstance(target := child.attrs.get(name), str):
                    child.attrs[name] = linked(page, target, needs)
    html = reader.renderer.render(tokens, reader.options, {})
    return html.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>"), headings


def slug(text: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip())


def linked(page: Page, target: str, needs: Callable[[str], None]) -> str:
    """Where a link leads in the site: to a page, a picture, or a file of the project shown as a page."""
    path, _, anchor = target.partition("#")
    if not path or "://" in path or path.startswith("mailto:"):
        return target
    behind = f"#{anchor}" if anchor else ""
    there = (page.source.parent / path).resolve()
    inside = there.relative_to(ROOT).as_posix()
    if there.suffix == ".md" and (inside.startswith("docs/") or inside in ROOT_PAGES[:2]):
        return _from(page.place, page_of(there).place) + behind
    needs(inside)
    shown = inside.removeprefix("docs/") if there.suffix in (".png", ".svg") else f"source/{inside}.html"
    return _from(page.place, shown) + behind


def colours(code: str, language: str) -> str:
    """Code with a class for each kind of word."""
    try:
        lexer = get_lexer_by_name(LEXERS.get(language, language), stripnl=False)
    except ClassNotFound:
        return escape(code)
    return str(highlight(code, lexer, COLOURS))


def _fence(renderer: Any, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    token = tokens[place]
    language, says = said(token.info)
    name = f"<figcaption>{escape(says['file'])}</figcaption>" if "file" in says else ""
    kind = f" {language}" if language else ""
    return f'<figure class="code{kind}">{name}<pre><code>{colours(token.content, language)}</code></pre></figure>\n'


def _anchored(tokens: list[Token]) -> list[Heading]:
    """Give every heading its anchor; a second one of the same name gets a number."""
    seen: dict[str, int] = {}
    found = []
    for token, inline in pairwise(tokens):
        if token.type != "heading_open":
            continue
        text = "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))
        anchor = slug(text)
        seen[anchor] = seen.get(anchor, -1) + 1
        anchor += f"-{seen[anchor]}" if seen[anchor] else ""
        token.attrs["id"] = anchor
        found.append((int(token.tag[1]), anchor, text))
    return found


def _from(place: str, target: str) -> str:
    return os.path.relpath(target, os.path.dirname(place) or ".").replace(os.sep, "/")
