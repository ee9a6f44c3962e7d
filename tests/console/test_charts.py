"""Charts in the console: values by pointer and keyboard, a size that fits the screen, and the table of numbers."""

from __future__ import annotations

import pytest
from console.conftest import SignIn
from playwright.sync_api import expect
from support.console_service import Console

from tidegate.service.access.permissions import OWNER

PAGE = "/console/risk"
SLOW = 60_000


def test_values_are_read_with_arrow_keys_and_with_the_pointer(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, PAGE, viewport={"width": 1280, "height": 900})
    plot = tab.locator("#curve .plot")
    plot.locator("svg:visible").wait_for(timeout=SLOW)
    plot.focus()
    tab.keyboard.press("ArrowRight")
    expect(plot.get_by_role("status")).to_contain_text("total loss, epsilon 0: at most 0.010101")
    tab.keyboard.press("ArrowLeft")
    expect(plot.get_by_role("status")).to_contain_text("here")
    tab.keyboard.press("Escape")
    expect(plot.get_by_role("status")).to_have_count(0)
    plot.locator("[data-tip*='here']:visible").hover()
    expect(plot.get_by_role("status")).to_contain_text("here")
    assert plot.locator("title").count() == 0, "the browser would show a second tip"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "shown"), [(1280, "tg-wide"), (390, "tg-narrow")])
def test_chart_fits_the_screen_and_follows_the_theme(
    console: Console, sign_in: SignIn, width: int, shown: str, scheme: str
) -> None:
    tab = sign_in(console, OWNER, PAGE, viewport={"width": width, "height": 900}, color_scheme=scheme)
    drawing = tab.locator("#curve .plot svg:visible")
    drawing.wait_for(timeout=SLOW)
    assert tab.locator(f"#curve .{shown} svg").is_visible()
    box = drawing.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    ink = drawing.locator("text").first.evaluate("text => getComputedStyle(text).fill")
    dark = sum(map(int, ink.removeprefix("rgb(").removesuffix(")").split(","))) < 384
    assert dark == (scheme == "light")
    tab.locator("#curve summary").click()
    assert tab.locator("#curve table tbody tr").count() == 11
