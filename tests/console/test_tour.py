"""Every page for every role: its weight, where it loads from, console errors, and accessibility, in a real browser."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from console.samples import write_samples
from support.axe import THEMES, WIDTHS
from support.browser import accessibility_faults
from support.console_service import OPEN, RECORD, Console, on_loopback
from support.tour import DOCS, LARGEST, Stop, context_for, furnish, stops, visit

from tidegate.ledger.tokens import Tokens
from tidegate.service.access.permissions import ANALYST, OWNER, PUBLIC, RESPONDENT
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SLOTS = {"poll": "canteen", "draft": "0" * 20, "job": "0" * 20, "audit": "0" * 20, "promise": "headquarters"}
SLOTS |= {"item": "0" * 20, "answer": "0" * 64}
COMBINATIONS = list(product(WIDTHS, THEMES))


@contextmanager
def tour_console(folder: Path) -> Iterator[tuple[Console, list[Stop]]]:
    policies = tuple(write_samples(folder))
    app = create_app(Settings(policies, str(folder / "all.ledger"), folder=str(folder / "gate"), **OPEN))
    store = Tokens(app.state.datasets.ledger.store)
    tokens = {
        OWNER: make_token(store, role=OWNER, name="olga")[0],
        ANALYST: make_token(store, role=ANALYST, name="ana", share="1.5")[0],
        RESPONDENT: make_token(store, role=RESPONDENT, name="rosa", dataset="soldiers", record=RECORD)[0],
    }
    with on_loopback(app) as address:
        console = Console(address, folder, app, app.state.datasets, tokens)
        yield console, stops(furnish(console))


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Console, list[Stop]]]:
    with tour_console(tmp_path_factory.mktemp("tour")) as running:
        yield running


def check_pages(
    browser: Browser, tour: tuple[Console, list[Stop]], role: str, width: int, theme: str, *, only: tuple[str, ...] = ()
) -> list[str]:
    """Return the problems of all pages for one role, of refused pages too."""
    console, pages = tour
    problems = []
    for stop in pages:
        if only and stop.name not in only:
            continue
        options = {"viewport": {"width": width, "height": 900}, "color_scheme": theme, "bypass_csp": True}
        context = context_for(browser, console, role, **options)
        tab = context.new_page()
        load = visit(tab, console, stop.path)
        may = role in stop.rule.roles or role == PUBLIC  # who is not signed in is led to the sign-in page
        is_open = "/shop/" not in stop.path or PUBLIC in stop.rule.roles
        may = may and (role != RESPONDENT or is_open)  # a respondent's token is for another data set
        problems += [f"{stop.name}: {text}" for text in (*load.errors, *load.outside, *accessibility_faults(tab))]
        if load.status != (200 if may else 403) and not (role == RESPONDENT and stop.path == "/console"):
            problems.append(f"{stop.name}: status {load.status} for {role}")
        if load.size > LARGEST:
            problems.append(f"{stop.name}: {load.size:,} bytes")
        if tab.evaluate("document.documentElement.scrollWidth") > width:
            problems.append(f"{stop.name}: wider than {width} px")
        context.close()
    return problems


def test_pages_are_light_and_accessible_on_a_dark_phone(browser: Browser, tour: tuple[Console, list[Stop]]) -> None:
    only = tuple(stop.name for stop in tour[1][::6])  # all of them, in every width and theme, by the long test
    assert check_pages(browser, tour, OWNER, 390, "dark", only=only) == []


@pytest.mark.long_for(RESPONDENT, PUBLIC)
@pytest.mark.parametrize("role", [ANALYST, RESPONDENT, PUBLIC])
def test_refused_pages_are_accessible_and_without_errors(
    browser: Browser, tour: tuple[Console, list[Stop]], role: str
) -> None:
    only = ("overview", "desks", "ledger", "draft-columns", "record", "form")
    assert check_pages(browser, tour, role, 1440, "light", only=only) == []


@pytest.mark.long
@pytest.mark.parametrize(("width", "theme"), COMBINATIONS)
@pytest.mark.parametrize("role", [OWNER, ANALYST, RESPONDENT, PUBLIC])
def test_every_page_is_light_and_accessible_for_every_role(
    browser: Browser, tour: tuple[Console, list[Stop]], role: str, width: int, theme: str
) -> None:
    assert check_pages(browser, tour, role, width, theme) == []


def test_page_that_loads_too_much_is_noticed(
    browser: Browser, tour: tuple[Console, list[Stop]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "LARGEST", 10_000)
    assert any("bytes" in problem for problem in check_pages(browser, tour, OWNER, 390, "dark", only=("access",)))


def test_docs_show_every_page_with_its_weight() -> None:
    text = (DOCS / "console-pages.md").read_text("utf-8")
    for stop in stops(SLOTS):
        assert f"| [{stop.name}](#{stop.name}) |" in text, "run: make screenshots"
        assert (DOCS / "pictures" / f"console-{stop.name}.png").exists()
    assert sum(path.stat().st_size for path in (DOCS / "pictures").glob("console-*.png")) < 3_000_000
