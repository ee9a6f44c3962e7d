"""One real browser for all tests of pages and scripts, and a small site for the modules by themselves."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from web.serving import Site, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

QUIET = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The machine's own chromium; it asks nobody but the pages under test."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium on this machine: pages and scripts cannot be run (apt install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=QUIET)
        yield running
        running.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh tab of a fresh visitor. An error in a script fails the test."""
    context = browser.new_context()
    tab, wrong = context.new_page(), []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda message: wrong.append(message.text) if is_refused_by_policy(message) else None)
    yield tab
    context.close()
    assert wrong == []


def is_refused_by_policy(message: Any) -> bool:
    """Whether the browser says that the Content-Security-Policy kept something out."""
    return message.type == "error" and "Content Security Policy" in message.text


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with served() as running:
        yield running
