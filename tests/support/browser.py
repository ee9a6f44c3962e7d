"""The machine's own chromium for tests of pages. It connects to the pages under test only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
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
def launch_browser() -> Iterator[Browser]:
    """Run a browser. Tests are skipped with a message if the machine has none."""
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
def open_tab(browser: Browser, **context: Any) -> Iterator[Page]:
    """Open a tab for a new visitor. A script error or a violation of the page's policy fails the test."""
    visitor = browser.new_context(**context)
    tab = visitor.new_page()
    wrong = errors_of(tab)
    yield tab
    visitor.close()
    assert wrong == []


def errors_of(tab: Page) -> list[str]:
    """Return a list that collects script errors and policy violations of a tab."""
    wrong: list[str] = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda message: wrong.append(message.text) if is_refused_by_policy(message) else None)
    return wrong


class Visit:
    """A user who signs in once and opens several tabs: only the first one fetches and compiles scripts and styles.

    Every tab starts with the cookies and the local storage as they were after the sign-in.
    """

    def __init__(self, browser: Browser, address: str, token: str, **context: Any) -> None:
        self.context = browser.new_context(**context)
        response = self.context.request.post(
            f"{address}/v1/sign-in", data={"token": token}
        )  # sets the cookie, loads no page
        assert response.ok, response.text()
        self.cookies = self.context.cookies()

    @contextmanager
    def tab(self, address: str) -> Iterator[Page]:
        """Open a tab. A script error or a violation of the page's policy fails the test."""
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
    """Return whether the Content-Security-Policy blocked something."""
    return message.type == "error" and "Content Security Policy" in message.text


def accessibility_faults(tab: Page) -> list[str]:
    """Return what axe-core finds in the page as it is now: rule, elements, and the reason."""
    script = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    tab.evaluate(f"if (!window.axe) {{ {script} }}")
    violations = tab.evaluate("axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations)")
    return [
        f"{rule['id']} at {node['target']}: {node['failureSummary']}" for rule in violations for node in rule["nodes"]
    ]
