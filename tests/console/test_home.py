"""The steward's home and the policy page in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import httpx
import pytest
from support.axe import assert_accessible
from support.console_service import Console

from tidegate.service.access.permissions import ANALYST, OWNER

if TYPE_CHECKING:
    from playwright.sync_api import Page

SignIn = Callable[..., "Page"]


def ask(console: Console, role: str, epsilon: str) -> None:
    body = {"sql": "SELECT COUNT(*) FROM people WHERE age > 30", "epsilon": epsilon, "anyway": True}
    headers = {"Authorization": f"Bearer {console.tokens[role]}"}
    httpx.post(f"{console.address}/v1/data/people/answers", json=body, headers=headers).raise_for_status()


def test_owner_sees_who_spent_what_last_week(fresh_console: Console, sign_in: SignIn) -> None:
    """Journey 7: nobody adds up by hand, and every number leads to the entries that it adds up."""
    for role, epsilon in ((ANALYST, "0.1"), (ANALYST, "0.15"), (OWNER, "0.2")):
        ask(fresh_console, role, epsilon)
    tab = sign_in(fresh_console, OWNER, bypass_csp=True)
    card = tab.locator("#data-people")
    rows = [row.inner_text().split() for row in card.locator(".people tbody tr").all()]
    assert [row[:4] for row in rows] == [["ana", "0.25", "2", "0.25"], ["olga", "0.2", "1", "0.2"]]
    assert card.locator(".spending svg:visible").count() == 1
    assert_accessible(tab, every=True)
    card.get_by_role("link", name="ana").click()
    tab.wait_for_url("**/console/ledger?*who=ana*")
    assert tab.locator("#entries li").count() == 2
    assert all("ana queried" in text for text in tab.locator("#entries li").all_inner_texts())


@pytest.mark.long  # tests/service/test_home.py has all warnings
def test_warnings_lead_to_their_pages(fresh_console: Console, sign_in: SignIn) -> None:
    ask(fresh_console, OWNER, "0.1")
    tab = sign_in(fresh_console, OWNER, bypass_csp=True)
    warning = tab.locator(".alert", has_text="never verified")
    warning.get_by_role("link").click()
    tab.get_by_role("button", name="Verify all entries").click()
    tab.locator("#verdict").get_by_text("valid").wait_for()
    tab.goto(f"{fresh_console.address}/console")
    assert tab.locator(".alert", has_text="never verified").count() == 0
    assert tab.locator(".alert", has_text="never backed up").count() == 1


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])  # widths and themes
def test_policy_change_is_shown_before_it_is_saved(fresh_console: Console, sign_in: SignIn, every: bool) -> None:
    ask(fresh_console, OWNER, "0.2")
    tab = sign_in(fresh_console, OWNER, "/console/data/people/policy", bypass_csp=True)
    assert_accessible(tab, every=every)
    now = float(tab.locator("#one_in").input_value())
    tab.locator("#one_in").fill(f"{now / 2:g}")
    tab.locator("#form").get_by_role("button", name="Show what would change").click()
    refused = tab.locator("#preview")
    refused.get_by_text("can only become stricter").wait_for()
    assert refused.get_by_role("button", name="Save this policy").count() == 0
    assert_accessible(tab, every=every)
    tab.locator("#one_in").fill(f"{now + 1:g}")
    tab.locator("#form").get_by_role("button", name="Show what would change").click()
    tab.locator("#preview").get_by_text("never rises again").wait_for()
    assert_accessible(tab, every=every)
    tab.get_by_role("button", name="Save this policy").click()
    tab.locator("#saved").wait_for()
    assert tab.locator("#versions li").count() == 2
    tab.locator("#versions").get_by_text("Changed lines").click()
    assert "rho" in tab.locator("#versions .diff").inner_text()
    assert_accessible(tab, every=every)
