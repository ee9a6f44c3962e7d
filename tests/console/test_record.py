"""The respondent's page: their own record is released immediately or later, and its key stays in the tab."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from support.console_service import RECORD, Console

from tidegate.ledger.tokens import Tokens
from tidegate.service.access.permissions import RESPONDENT
from tidegate.service.access.tokens import make_token

if TYPE_CHECKING:
    from playwright.sync_api import Page

PATIENT = 90_000
SignIn = Callable[..., "Page"]
BESIDE = "Your record will be released once doing so reveals no more about a group than the policy allows. You can withdraw the request."


def ask(tab: Page, key: str) -> None:
    tab.get_by_label("Your name").fill(key)
    tab.get_by_role("button", name="Request my record").click()


def waiting_key(console: Console, *, numbers: range = range(100, 220)) -> str:
    """Return the key of a soldier whose request is waiting, with a token for it."""
    desk = console.datasets["soldiers"].desk("headquarters")
    outcomes = desk.request_many([f"s{number:03d}" for number in numbers])
    key = next(key for key, outcome in outcomes.items() if outcome.to_dict()["outcome"] == "deferred")
    stored_tokens = Tokens(console.datasets.ledger.store)
    token = make_token(stored_tokens, role=RESPONDENT, name="rolf", dataset="soldiers", record=key)[0]
    console.tokens["waiting"] = token
    return key


def come_in(console: Console, visitor: SignIn, token: str, **context: object) -> Page:
    tab = visitor(**context)
    tab.goto(f"{console.address}/console/sign-in#{token}")
    tab.wait_for_url(f"{console.address}/console/record")
    return tab


def test_harmless_record_is_released_immediately(fresh_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(fresh_console, RESPONDENT)
    ask(tab, RECORD)
    tab.get_by_role("heading", name="Released").wait_for(timeout=PATIENT)
    rows = tab.locator("#outcome tbody tr").all_inner_texts()
    assert rows[0].split("\t") == ["name", RECORD]
    assert len(rows) == 3
    assert tab.get_by_role("button", name="Withdraw").is_hidden()


def test_waiting_request_shows_its_position_and_can_be_withdrawn(fresh_console: Console, visitor: SignIn) -> None:
    key = waiting_key(fresh_console)
    tab = come_in(fresh_console, visitor, fresh_console.tokens["waiting"])
    ask(tab, key)
    tab.get_by_role("heading", name="Waiting").wait_for(timeout=PATIENT)
    assert tab.locator('[data-part="says"]').inner_text() == f"Your request is at position 1 in the queue. {BESIDE}"
    tab.reload()
    tab.get_by_role("heading", name="Waiting").wait_for(timeout=PATIENT)
    assert tab.get_by_label("Your name").input_value() == key, "entered once per tab"
    tab.get_by_role("button", name="Withdraw request").click()
    tab.get_by_role("heading", name="Withdrawn").wait_for()
    tab.get_by_role("button", name="Check status").click()
    tab.get_by_role("heading", name="Not requested").wait_for()


def test_key_is_in_no_url_cookie_or_permanent_storage(fresh_console: Console, sign_in: SignIn) -> None:
    tab, urls = sign_in(fresh_console, RESPONDENT), []
    tab.on("request", lambda request: urls.append(request.url))
    ask(tab, RECORD)
    tab.get_by_role("heading", name="Released").wait_for(timeout=PATIENT)
    assert urls
    assert not [address for address in urls if RECORD in address]
    assert RECORD not in tab.evaluate("JSON.stringify(Object.entries(localStorage))")
    assert RECORD in tab.evaluate("JSON.stringify(Object.entries(sessionStorage))")
    assert RECORD not in str(tab.context.cookies())
    again = tab.context.new_page()
    again.goto(f"{fresh_console.address}/console/record")
    assert again.get_by_label("Your name").input_value() == "", "another tab asks again"


def test_other_record_is_refused_and_its_key_is_not_stored(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, RESPONDENT)
    ask(tab, "s008")
    tab.get_by_role("alert").get_by_text("This token is for another record").wait_for(timeout=PATIENT)
    assert tab.locator("#outcome").is_hidden()
    assert tab.evaluate("sessionStorage.length") == 0


def test_respondent_sees_only_their_record_page(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, RESPONDENT, viewport={"width": 360, "height": 740})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    assert tab.get_by_role("navigation").get_by_role("link").count() == 0
    tab.goto(f"{console.address}/console")
    assert tab.url.endswith("/console/record")
    for page in ("data/soldiers/desks/headquarters", "data/soldiers/collections", "ledger"):
        tab.goto(f"{console.address}/console/{page}")
        assert "does not permit" in tab.locator("main").inner_text()


@pytest.mark.long
def test_waiting_respondent_sees_the_release_automatically(fresh_console: Console, visitor: SignIn) -> None:
    """Two other released records make this one harmless, and it is released too."""
    key = waiting_key(fresh_console, numbers=range(4))
    tab = come_in(fresh_console, visitor, fresh_console.tokens["waiting"])
    ask(tab, key)
    tab.get_by_role("heading", name="Waiting").wait_for(timeout=PATIENT)
    fresh_console.datasets["soldiers"].desk("headquarters").request_many([f"s{number:03d}" for number in range(4, 12)])
    tab.get_by_role("heading", name="Released").wait_for(timeout=30_000)
    assert tab.locator("#outcome tbody tr").first.inner_text().split("\t") == ["name", key]
