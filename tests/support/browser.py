"""The machine's own chromium for tests of pages. It connects to the pages under test only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# The headless shell is the same engine without the browser around it: a page takes half of the CPU time.
PROGRAMS = {"chromium-headless-shell": [], "chromium": ["--headless=new"]}
QUIET = [
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
    name = next((name for name in PROGRAMS if shutil.which(name)), None)
    if name is None:
        pytest.skip(
            "no chromium on this machine: pages and scripts cannot be run (apt install chromium-headless-shell)"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=shutil.which(name), args=[*PROGRAMS[name], *QUIET])
        yield running
        running.close()


@contextmanager
def visited(browser: Browser, **context: Any) -> Iterator[Page]:
    """A fresh tab of a fresh visitor. An error in a script, or one kept out by the page's policy, fails the test."""
    opened = browser.new_context(**context)
    tab = opened.new_page()
    wrong = errors_of(tab)
    yield tab
    opened.close()
    assert wrong == []


def errors_of(tab: Page) -> list[str]:
    """What goes wrong in a tab from now on: errors in scripts, and what the page's policy kept out."""
    wrong: list[str] = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda message: wrong.append(message.text) if is_refused_by_policy(message) else None)
    return wrong


class Visit:
    """Somebody who has signed in once and opens tab after tab: scripts and styles are fetched and compiled for the first alone.

    Every tab finds the cookies and the lasting stores as they were after the sign-in, whatever was done in the tabs before.
    """

    def __init__(self, browser: Browser, address: str, token: str, **context: Any) -> None:
        self.context = browser.new_context(**context)
        response = self.context.request.post(
            f"{address}/sign-in", data={"token": token}
        )  # sets the cookie, loads no page
        assert response.ok, response.text()
        self.cookies = self.context.cookies()

    @contextmanager
    def tab(self, address: str) -> Iterator[Page]:
        """A new tab. An error in a script, or one kept out by the page's policy, fails the test."""
        self.context.clear_cookies()
        self.context.add_cookies(self.cookies)  # type: ignore[arg-type]
        tab = self.context.new_page()
        wrong = errors_of(tab)
        tab.goto(address)
        yield tab
        if not tab.is_closed():
            tab.evaluate("localStorage.clear()")
        for page in self.context.pages:
            page.close()
        assert wrong == []


def is_refused_by_policy(message: Any) -> bool:
    """Whether the browser says that the Content-Security-Policy kept something out."""
    return message.type == "error" and "Content Security Policy" in message.text
