"""Polls for tests of the form, and what a respondent does with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.policy import Collection
from tidegate.policy.toml import parse_policy

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

HOLDER = "Works council"
HEAD = """
[poll.canteen]
holder = "Works council"
purpose = { en = "Plan the menu for spring", de = "Speiseplan für das Frühjahr" }
title = { en = "Canteen", de = "Kantine" }
access = "open"
closes = 2030-12-01T18:00:00+01:00
lifetime = 10
accept_error = true
repeats = "memoised"
ask = "all"
"""
OFTEN = """
[poll.canteen.questions.often]
text = { en = "How often do you eat here?", de = "Wie oft essen Sie hier?" }
options = { never = { en = "Never", de = "Nie" }, weekly = { en = "Weekly", de = "Jede Woche" }, daily = { en = "Daily", de = "Täglich" } }
random = "1/3"
"""
DISHES = """
[poll.canteen.questions.dishes]
text = { en = "Which of these do you like?", de = "Was davon mögen Sie?" }
options = ["Curry", "Pasta", "Sushi", "Pizza", "Tofu"]
choose = 2
epsilon = 1.5
"""
MINUTES = """
[poll.canteen.questions.minutes]
text = { en = "How many minutes do you wait?", de = "Wie viele Minuten warten Sie?" }
from = 0
to = 120
step = 5
epsilon = 2
"""


def read_poll(*parts: str, head: str = HEAD) -> Collection:
    """The poll of these parts of a policy file."""
    return parse_policy(head + "".join(parts)).collections["canteen"]


SHORT, LONG = read_poll(OFTEN), read_poll(OFTEN, DISHES, MINUTES)


def field(page: Page, name: str) -> Locator:
    """The field of a question, without its simulator."""
    return page.locator(f"[data-question={name}] > :first-child")


def open_poll(page: Page, address: str, *, button: str = "Send") -> Page:
    page.goto(address)
    page.get_by_role("button", name=button, exact=True).wait_for()
    return page


def answer(page: Page, often: str = "Weekly") -> None:
    field(page, "often").get_by_label(often).check()


def answer_all(page: Page) -> None:
    answer(page)
    field(page, "dishes").get_by_label("Sushi").check()
    field(page, "minutes").get_by_label("How many minutes").fill("17")


def press_send(page: Page, *, button: str = "Send") -> str:
    """Send, and return what the page then says."""
    page.get_by_role("button", name=button, exact=True).click()
    said = page.locator("#status .what, #sent h2, #problem .what")
    said.first.wait_for()
    return page.locator("#status, #sent, #problem").filter(visible=True).last.inner_text()
