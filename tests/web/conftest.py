"""One real browser for all tests of pages and scripts, the real service, and a small site for the modules by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from support.browser import open_tab
from support.form_service import FormService, Site, form_service, serve_site

from tidegate.policy import Category, Collection, Question

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FIRST = Collection("first", {"dvd": Question("dvd", Category(("no", "yes")), "randomized-response", epsilon=1)})


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with open_tab(browser) as tab:
        yield tab


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with serve_site() as running:
        yield running


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FormService]:
    with form_service(tmp_path_factory.mktemp("forms"), FIRST) as running:
        yield running


@pytest.fixture(scope="module")
def tab(browser: Browser, site: Site) -> Iterator[Page]:
    """One page for all that needs no page."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site.address}/blank")
    yield page
    context.close()
