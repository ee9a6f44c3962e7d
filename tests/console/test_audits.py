"""Audits page: start an audit, follow it, cancel it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from support.axe import assert_accessible
from support.console_service import Console

from tidegate.service.access.permissions import OWNER

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_audit_is_started_and_cancelled_in_the_page(fresh_console: Console, sign_in: Callable[..., Page]) -> None:
    tab = sign_in(fresh_console, OWNER, "/console/data/people/audits")
    tab.get_by_text("No audits yet").wait_for()
    tab.get_by_label("Seconds for all attacks together").fill("0")
    tab.get_by_role("button", name="Start audit").click()
    tab.get_by_text("Enter a number above 0").wait_for()
    tab.get_by_label("Seconds for all attacks together").fill("5")
    tab.get_by_role("button", name="Start audit").click()
    tab.get_by_role("heading", name="Audit in progress").wait_for()
    assert_accessible(tab)
    tab.get_by_role("button", name="Cancel the audit").click()
    tab.get_by_role("heading", name="The audit was cancelled").wait_for()
    tab.locator("#earlier li[data-state=cancelled]").wait_for()
    assert_accessible(tab)
    assert tab.get_by_role("button", name="Start audit").is_enabled()
