"""A service on loopback, a real browser, and visitors who are signed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from support.browser import Visit, open_tab
from support.console_service import Console, console_in
from support.hashes import quick_hashes  # noqa: F401  a fixture

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SignIn = Callable[..., "Page"]


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """One service for all tests of a file."""
    with console_in(tmp_path_factory.mktemp("console")) as running:
        yield running


@pytest.fixture
def fresh_console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A service in which nothing has happened yet."""
    with console_in(tmp_path_factory.mktemp("fresh")) as running:
        yield running


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a tab without a sign-in: visitor()."""
    with ExitStack() as open_tabs:

        def open_visitor_tab(**context: Any) -> Page:
            return open_tabs.enter_context(open_tab(browser, **context))

        yield open_visitor_tab


@pytest.fixture
def sign_in(browser: Browser) -> Iterator[SignIn]:
    """Return a function that opens a signed-in tab: signed_in(console, "owner", "/console/ledger")."""
    with ExitStack() as open_tabs:

        def open_user_tab(console: Console, role: str, path: str = "/console", **context: Any) -> Page:
            home = "/console/record" if role == "respondent" else "/console"
            user = f"{role} {sorted(context.items())}"
            if user not in console.visits:
                console.visits[user] = Visit(browser, console.address, console.tokens[role], **context)
            address = console.address + (home if path == "/console" else path)
            return open_tabs.enter_context(console.visits[user].tab(address))

        yield open_user_tab
