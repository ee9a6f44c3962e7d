"""The machine's own chromium for tests of pages; it asks nobody but the pages under test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

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


@contextmanager
def launched() -> Iterator[Browser]:
    """A running browser; the tests say that they were skipped where the machine has none."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium on this machine: pages and scripts cannot be run (apt install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=QUIET)
        yield running
        running.close()


@contextmanager
def visited(browser: Browser, **context: Any) -> Iterator[Page]:
    """A fresh tab of a fresh visitor. An error in a script, or one kept out by the page's policy, fails the test."""
    opened = browser.new_context(**context)
    tab, wrong = opened.new_page(), []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda message: wrong.append(message.text) if is_refused_by_policy(message) else None)
    yield tab
    opened.close()
    assert wrong == []


def is_refused_by_policy(message: Any) -> bool:
    """Whether the browser says that the Content-Security-Policy kept something out."""
    return message.type == "error" and "Content Security Policy" in message.text
