"""A poll from the builder to the CSV file: a steward, three phones, a second answer, a forged report, and the results."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from support.browser import open_tab
from support.console_service import Console
from support.poll_service import answer, poll_console

from tidegate.collect.polls.respondent_texts import form_texts
from tidegate.service.access.permissions import OWNER

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

SignIn = Callable[..., "Page"]
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "locale": "en-US",
    "has_touch": True,
    "is_mobile": True,
}
INVITED, PHONES = 34, 3
HOLDER, TEXTS = "Works council", form_texts("en")
LEAST = 30  # reports, below which nothing is said


@pytest.fixture
def council(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with poll_console(tmp_path_factory.mktemp("council")) as running:
        yield running


def build_poll(tab: Page) -> None:
    """Write a poll of one question in two languages, from nothing, and open it."""
    tab.get_by_role("link", name="New poll").click()
    tab.get_by_label("Who asks?").fill(HOLDER)
    tab.get_by_label("Languages", exact=True).select_option("de")
    for label, english, german in (
        ("Title", "Canteen", "Kantine"),
        ("Purpose", "Plan the menu for spring", "Speiseplan für das Frühjahr"),
        ("Text of question 1", "Do you eat here every week?", "Essen Sie jede Woche hier?"),
        ("Option 1", "Yes", "Ja"),
        ("Option 2", "No", "Nein"),
    ):
        tab.get_by_label(f"{label}, English").fill(english)
        tab.get_by_label(f"{label}, Deutsch").fill(german)
    tab.get_by_label("a share of random answers").check()
    tab.get_by_label("People who will answer").fill("250")
    tab.get_by_label("Largest acceptable error").fill("10")
    expect(tab.locator("#margin")).to_have_text("± 9.3 points")
    expect(tab.locator("#sentences")).to_contain_text("Of 100 people who mean “No”, about 17 send “Yes”.")
    expect(tab.locator("#wording")).to_contain_text("Bei 1 oder 2 sendet es")
    tab.get_by_role("button", name="Open the poll").click()
    tab.wait_for_url("**/polls/canteen/share")


def print_slips(tab: Page) -> list[str]:
    """Create invitations, print them, and return their links."""
    tab.get_by_label("Number of new invitations").fill(str(INVITED))
    tab.get_by_role("button", name="Create invitations").click()
    expect(tab.locator(".slip")).to_have_count(INVITED)
    printed = tab.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == -(-INVITED // 8), "eight slips on a sheet of A4"
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Download codes (CSV)").click()
    lines = list(csv.DictReader(Path(download.value.path()).read_text("utf-8").splitlines()))
    assert [line["code"] for line in lines] == tab.locator(".slip-code").all_inner_texts()
    return [line["link"] for line in lines]


def send(phone: Page, link: str, choice: str = "Yes") -> None:
    phone.goto(link)
    phone.locator("#code").get_by_text(TEXTS["code.good"]).wait_for()
    choose(phone, choice)


def choose(phone: Page, choice: str) -> None:
    phone.locator("#questions").get_by_label(choice, exact=True).first.check()
    phone.get_by_role("button", name="Send", exact=True).click()


def forge(route: Route) -> None:
    """Change the signature of a report on its way."""
    content = json.loads(str(route.request.post_data))
    signature = content["reports"][0]["invitation"]["signature"]
    content["reports"][0]["invitation"]["signature"] = ("B" if signature[0] == "A" else "A") + signature[1:]
    route.continue_(post_data=json.dumps(content))


@pytest.mark.long  # test_poll_pages.py and tests/web/test_form_poll.py have its parts in every run
def test_poll_from_builder_to_csv(council: Console, browser: Browser, sign_in: SignIn) -> None:
    steward = sign_in(council, OWNER, "/console", viewport={"width": 1280, "height": 900})
    steward.get_by_role("link", name="polls", exact=True).first.click()
    build_poll(steward)
    links = print_slips(steward)

    with open_tab(browser, **PHONE) as first:
        send(first, links[0])
        first.locator("#sent").get_by_text(TEXTS["sent.title"]).wait_for()
        first.goto("about:blank")
        first.goto(links[0])  # again on the same phone, with another answer
        first.get_by_role("button", name="Send", exact=True).wait_for()
        choose(first, "No")
        first.get_by_text(TEXTS["refused.once"]).first.wait_for()
        assert first.evaluate("document.documentElement.scrollWidth") <= 390
    with open_tab(browser, **PHONE) as second:
        send(second, links[1], "No")
        second.locator("#sent").get_by_text(TEXTS["sent.title"]).wait_for()
    with open_tab(browser, **PHONE) as twice:
        twice.goto(links[0])  # the first person again, with another phone
        twice.get_by_text(TEXTS["code.used"].format(holder=HOLDER)).wait_for()
    with open_tab(browser, **PHONE) as forger:
        forger.route("**/reports", forge)
        send(forger, links[2])
        forger.get_by_text("Your report was refused").first.wait_for()

    survey = council.datasets["polls"].survey("canteen")
    others = [link.partition("#code=")[2] for link in links[PHONES:]]
    reports = [
        answer(survey, {survey.client().asked[0]: "yes" if i % 3 else "no"}, code) for i, code in enumerate(others)
    ]
    assert sum(survey.receive(reports[start : start + 30]).accepted for start in (0, 30)) == len(others)

    steward.get_by_role("link", name="Status", exact=True).click()
    expect(steward.locator("#used")).to_have_text("fewer than 100")
    steward.get_by_role("button", name="Close the poll now").click()
    steward.get_by_role("dialog").get_by_role("button", name="Close the poll").click()
    expect(steward.locator("#state")).to_have_text("closed")
    counted = 2 + len(others)
    assert counted >= LEAST
    expect(steward.locator("#reports")).to_have_text(str(counted))
    with open_tab(browser, **PHONE) as late:
        late.goto(links[3])
        late.get_by_text("closed").first.wait_for()
        assert late.get_by_role("button", name="Send", exact=True).count() == 0

    steward.get_by_role("link", name="Results", exact=True).click()
    steward.get_by_role("heading", name="Do you eat here every week?").wait_for()
    assert f"{counted} people were asked and counted" in steward.locator("main").inner_text()
    assert "epsilon 1.61" in steward.locator("#local-loss").inner_text(), "the local loss is said first"
    steward.get_by_role("link", name="Deutsch").click()
    steward.get_by_role("heading", name="Essen Sie jede Woche hier?").wait_for()
    with steward.expect_download() as download:
        steward.locator("#downloads").get_by_role("link", name="CSV").click()
    rows = list(csv.DictReader(Path(download.value.path()).read_text("utf-8").splitlines()))
    assert [(row["option"], row["label"], row["reports"]) for row in rows] == [
        ("yes", "Ja", str(counted)),
        ("no", "Nein", str(counted)),
    ]
    assert sum(float(row["share"]) for row in rows) == pytest.approx(1)
    assert all(0 <= float(row["low"]) <= float(row["share"]) <= float(row["high"]) <= 1 for row in rows)
    steward.goto(f"{council.address}/console/ledger")
    steward.get_by_role("button", name="Verify all entries").click()
    steward.get_by_text("entries are valid").wait_for()
