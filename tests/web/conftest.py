"""One real browser for all tests of pages and scripts, and a small site for the modules by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from browsing import visited
from web.serving import Site, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with visited(browser) as tab:
        yield tab


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with served() as running:
        yield running
