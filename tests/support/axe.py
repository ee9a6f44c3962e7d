"""axe-core, the accessibility checker, in a page under test. It comes with a package of the group `dev`; nothing is loaded from outside."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTHS, THEMES = (390, 1440), ("light", "dark")


@cache
def _script() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")


def violations(tab: Page) -> list[str]:
    """Return what axe finds in the page as it is now: the rule and the elements. Needs a context with `bypass_csp`."""
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(_script())
    result: Any = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']}: {node['html'][:120]} {node['failureSummary'][:200]}"
        for rule in result["violations"]
        for node in rule["nodes"]
    ]


def assert_accessible(tab: Page, *, every: bool = False) -> None:
    """Fail if axe finds a violation, or if the page is wider than its window; `every`: in all widths and both themes."""
    combinations = [(width, theme) for width in WIDTHS for theme in THEMES]
    for width, theme in combinations if every else combinations[1:2]:  # a dark phone
        tab.set_viewport_size({"width": width, "height": 900})
        tab.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, (tab.url, width)
        problems = violations(tab)
        assert not problems, (tab.url, width, theme, problems)
