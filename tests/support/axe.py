"""axe-core, the accessibility checker, in a page under test. It comes with a package of the group `dev`; nothing is loaded from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.browser import accessibility_faults

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTHS, THEMES = (390, 1440), ("light", "dark")


def assert_accessible(tab: Page, *, every: bool = False) -> None:
    """Fail if axe finds a violation, or if the page is wider than its window; `every`: in all widths and both themes."""
    combinations = [(width, theme) for width in WIDTHS for theme in THEMES]
    for width, theme in combinations if every else combinations[1:2]:  # a dark phone
        tab.set_viewport_size({"width": width, "height": 900})
        tab.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, (tab.url, width)
        problems = accessibility_faults(tab)
        assert not problems, (tab.url, width, theme, problems)
