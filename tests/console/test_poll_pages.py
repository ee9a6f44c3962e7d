"""The pages of polls: a draft that stays, what opens and what does not, codes that are shown once, results in words, accessibility."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from playwright.sync_api import expect
from support.browser import accessibility_faults
from support.console_service import Console
from support.poll_service import answer, canteen, poll_console

from tidegate.policy.toml import read_policy
from tidegate.service.access.permissions import ANALYST, OWNER

if TYPE_CHECKING:
    from playwright.sync_api import Page

SignIn = Callable[..., "Page"]
LIST, NEW, MENU = "/console/data/polls/polls", "/console/data/polls/new-poll", "/console/data/polls/polls/menu"
QUESTIONS: dict[str, Any] = {
    "often": {
        "text": {"en": "How often do you eat here?", "de": "Wie oft essen Sie hier?"},
        "options": {"never": {"en": "Never", "de": "Nie"}, "daily": {"en": "Daily", "de": "Täglich"}},
        "epsilon": 3,
    },
    "price": {
        "text": {"en": "What should a meal cost?", "de": "Was soll ein Essen kosten?"},
        "from": 0,
        "to": 20,
        "epsilon": 3,
    },
}
PEOPLE = 60


@pytest.fixture(scope="module")
def council(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """Three polls: `menu` is closed, with answers of 60 people; `canteen` is open by invitation, `street` to anyone."""
    with poll_console(tmp_path_factory.mktemp("council")) as running:
        with httpx.Client(
            base_url=running.address, headers={"Authorization": f"Bearer {running.tokens[OWNER]}"}
        ) as client:
            menu = canteen(poll="menu", access="open", questions=QUESTIONS, accept_error=True)
            for body in (menu, canteen(), canteen(poll="street", access="open", at_most=500)):
                assert client.post("/v1/data/polls/polls", json=body).status_code == 201
            survey = running.datasets["polls"].survey("menu")
            reports = [
                answer(survey, {"often": "daily" if n % 5 else "never", "price": 5 + n % 3}) for n in range(PEOPLE)
            ]
            assert survey.submit(reports).accepted == PEOPLE
            assert client.post("/v1/data/polls/collections/menu/closing", json={"version": 1}).status_code == 200
        yield running


def fill_poll(tab: Page, name: str = "Pool") -> None:
    """Fill in a poll in English: one question with two options."""
    tab.get_by_label("Who asks?").fill("Works council")
    for label, text in (
        ("Title", name),
        ("Purpose", "Plan"),
        ("Text of question 1", "Do you swim?"),
        ("Option 1", "Yes"),
        ("Option 2", "No"),
    ):
        tab.get_by_label(label, exact=True).fill(text)


def shown_body(tab: Page) -> dict[str, Any]:
    """Return the body of the next draft that the page requests."""
    with tab.expect_request("**/polls/drafts") as request:
        tab.get_by_label("People who will answer").fill("300")
    body: dict[str, Any] = json.loads(str(request.value.post_data))
    return body


# The builder


def test_draft_survives_a_reload_and_is_not_published(council: Console, sign_in: SignIn) -> None:
    before = (council.folder / "polls.toml").read_text("utf-8")
    tab = sign_in(council, OWNER, NEW)
    fill_poll(tab)
    expect(tab.locator("#section")).to_contain_text("[poll.pool]")
    tab.reload()
    expect(tab.get_by_label("Text of question 1")).to_have_value("Do you swim?")
    expect(tab.locator("#section")).to_contain_text("[poll.pool]")
    assert (council.folder / "polls.toml").read_text("utf-8") == before
    tab.get_by_role("button", name="Discard the draft").click()
    expect(tab.get_by_label("Who asks?")).to_have_value("")
    expect(tab.get_by_role("button", name="Open the poll")).to_be_disabled()


def test_missing_texts_are_listed_and_lead_to_their_fields(council: Console, sign_in: SignIn) -> None:
    tab = sign_in(council, OWNER, NEW)
    fill_poll(tab)
    tab.get_by_label("Languages", exact=True).select_option("fr")
    missing = tab.locator("#missing li")
    expect(missing).to_have_text(
        [
            "the title (fr)",
            "the purpose (fr)",
            "the text of question 1 (fr)",
            "option 1 of question 1 (fr)",
            "option 2 of question 1 (fr)",
        ]
    )
    missing.nth(3).get_by_role("link").click()
    expect(tab.get_by_label("Option 1, Français")).to_be_focused()
    expect(tab.get_by_role("button", name="Open the poll")).to_be_disabled()
    tab.get_by_role("button", name="Remove Français").click()
    expect(tab.get_by_role("button", name="Open the poll")).to_be_enabled()


def test_questions_of_every_kind_keep_their_order(council: Console, sign_in: SignIn) -> None:
    tab = sign_in(council, OWNER, NEW)
    fill_poll(tab)
    for number, kind in enumerate(("up to several answers", "any number of answers", "a number"), 2):
        tab.get_by_role("button", name=f"Add: {kind}").click()
        tab.get_by_label(f"Text of question {number}").fill(f"Text {number}?")
    for number in (2, 3):
        for option in (1, 2):
            tab.get_by_role("region", name=f"Question {number}").get_by_label(f"Option {option}", exact=True).fill(
                f"{3 - option}"
            )
    tab.get_by_role("button", name="Move question 4 up").click()
    expect(tab.get_by_label("Text of question 3")).to_be_focused()
    tab.get_by_role("button", name="Add an option to question 1").click()
    tab.get_by_label("Option 3", exact=True).fill("Never")
    tab.get_by_role("button", name="Remove option 2").first.click()
    expect(tab.get_by_label("a share of random answers")).to_be_disabled()
    questions = shown_body(tab)["questions"]
    assert list(questions) == ["do-you-swim", "text-2", "text-4", "text-3"]
    assert questions["do-you-swim"]["options"] == ["Yes", "Never"]
    assert (questions["text-2"]["choose"], questions["text-2"]["options"]) == (2, ["2", "1"])
    assert (questions["text-4"]["from"], questions["text-4"]["to"]) == ("0", "100")
    assert questions["text-3"]["choose"] == "any"
    expect(tab.locator("#ask-says")).to_contain_text("Each person answers 1 of 4")


@pytest.mark.long  # test_poll_journey.py keeps the claim
def test_wished_error_chooses_the_most_private_setting(council: Console, sign_in: SignIn) -> None:
    tab = sign_in(council, OWNER, NEW)
    fill_poll(tab)
    expect(tab.locator("#margin")).to_have_text("± 8.1 points")
    tab.get_by_label("Largest acceptable error").fill("15")
    expect(tab.locator("#loss")).to_have_text("One person reveals at most epsilon 1.")
    tab.get_by_label("People who will answer").fill("2000")
    expect(tab.locator("#loss")).to_have_text("One person reveals at most epsilon 0.5."), "more people, more privacy"
    tab.get_by_label("Largest acceptable error").fill("0.5")
    expect(tab.locator("#target-says")).to_contain_text("Ask more people")
    tab.get_by_label("Privacy and error").press("End")
    expect(tab.locator("#loss")).to_have_text("One person reveals at most epsilon 6.")
    expect(tab.get_by_label("Largest acceptable error")).to_have_value("")
    expect(tab.locator("#section")).to_contain_text("epsilon = 6")


@pytest.mark.long  # service/test_poll_routes.py keeps the claim
def test_poll_with_too_large_an_error_opens_only_if_it_is_accepted(council: Console, sign_in: SignIn) -> None:
    tab = sign_in(council, OWNER, NEW)
    fill_poll(tab, "Tiny poll")
    tab.get_by_label("People who will answer").fill("12")
    expect(tab.locator("#refused")).to_contain_text("above 10")
    expect(tab.get_by_role("button", name="Open the poll")).to_be_disabled()
    tab.get_by_label("Open the poll even though").check()
    tab.get_by_role("button", name="Open the poll").click()
    tab.wait_for_url("**/polls/tiny-poll/share")
    created = read_policy(council.folder / "polls.toml").polls["tiny-poll"]
    assert created.poll is not None
    assert (created.poll.accept_error, created.clients, created.poll.access) == (True, 12, "invited")
    tab.goto(council.address + NEW)
    expect(tab.get_by_label("Who asks?")).to_have_value(""), "the draft was opened"


@pytest.mark.parametrize(
    ("zone", "closes"),
    [("Europe/Berlin", "+02:00"), ("America/New_York", "-04:00"), ("Asia/Katmandu", "+05:45"), ("UTC", "Z")],
)
@pytest.mark.one_in(4)
def test_closing_time_has_the_offset_of_its_zone_on_that_day(
    council: Console, sign_in: SignIn, zone: str, closes: str
) -> None:
    tab = sign_in(council, OWNER, NEW)
    fill_poll(tab)
    tab.get_by_label("Closes", exact=True).fill("2099-07-01T18:30")
    tab.get_by_label("Time zone").select_option(zone)
    assert shown_body(tab)["closes"] == f"2099-07-01T18:30:00{closes}"


# Sharing


def test_codes_are_shown_once_and_the_page_warns_before_they_are_lost(council: Console, sign_in: SignIn) -> None:
    tab = sign_in(council, OWNER, f"{LIST}/canteen/share")
    tab.get_by_label("Number of new invitations").fill("0")
    tab.get_by_role("button", name="Create invitations").click()
    tab.get_by_text("Enter a whole number from 1 to 1,000.").wait_for()
    tab.get_by_label("Number of new invitations").fill("2")
    tab.get_by_role("button", name="Create invitations").click()
    codes = tab.locator(".slip-code")
    expect(codes).to_have_count(2)
    first = codes.first.inner_text()
    tab.get_by_label("Language of the slips").select_option("de")
    expect(tab.locator(".slip").first).to_contain_text("lädt Sie zu einer Umfrage ein")
    expect(codes.first).to_have_text(first)
    warned = []
    tab.on("dialog", lambda dialog: (warned.append(dialog.type), dialog.accept()))
    tab.reload()
    assert warned == ["beforeunload"]
    expect(tab.locator("#codes")).to_have_text("2")
    assert codes.count() == 0


def test_open_poll_has_one_link_and_a_warning(council: Console, sign_in: SignIn) -> None:
    tab = sign_in(council, OWNER, f"{LIST}/street/share", color_scheme="dark")
    assert "Anyone can answer any number of times" in tab.locator(".warning").last.inner_text()
    expect(tab.locator(".slip .qr-code")).to_have_count(1)
    assert tab.locator("#link").inner_text() == f"{council.address}/forms/polls/street"
    tab.emulate_media(media="print")
    colors = tab.locator(".slip").evaluate(
        "slip => [getComputedStyle(slip).color, getComputedStyle(slip).backgroundColor]"
    )
    assert colors == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"], "paper is white in dark mode too"
    assert not tab.get_by_role("button").first.is_visible()


# Status and results


def test_analyst_reads_the_status_but_cannot_close_or_share(council: Console, sign_in: SignIn) -> None:
    tab = sign_in(council, ANALYST, f"{LIST}/canteen")
    expect(tab.locator("#waiting")).to_have_text("fewer than 100")
    expect(tab.locator("#closes-in")).to_contain_text("13 days")
    assert tab.get_by_role("button", name="Close the poll now").count() == 0
    assert tab.get_by_role("link", name="Share").count() == 0


def test_results_state_differences_and_never_an_order_by_estimate(council: Console, sign_in: SignIn) -> None:
    tab = sign_in(council, ANALYST, f"{MENU}/results?lang=de")
    often = tab.locator("#result-often")
    assert often.locator("tbody td:first-child").all_text_contents() == ["Nie", "Täglich"], "the order of the poll"
    assert "Täglich is more frequent than Nie by" in often.inner_text()
    assert "are false" in often.inner_text()
    head = tab.locator("#record").inner_text()
    assert council.datasets.ledger.head() in head
    boxes = [tab.locator(part).bounding_box() for part in ("#local-loss", "#result-often")]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["y"] < boxes[1]["y"]
    for kind, start in (("JSON", b"{"), ("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        with tab.expect_download() as download:
            tab.locator("#downloads").get_by_role("link", name=kind).click()
        assert Path(download.value.path()).read_bytes().startswith(start)


def test_results_without_scripts_are_complete(council: Console, sign_in: SignIn) -> None:
    tab = sign_in(council, ANALYST, f"{MENU}/results", java_script_enabled=False)
    assert tab.locator("#result-often .plot svg").count() == 2
    assert tab.locator("#result-often tbody tr").count() == 2


def test_poll_without_answers_says_so_instead_of_bars(council: Console, sign_in: SignIn) -> None:
    tab = sign_in(council, ANALYST, f"{LIST}/street/results")
    assert "Too few answers to say." in tab.locator("#result-often").inner_text()
    assert tab.locator("#result-often svg").count() == 0


# All pages

PAGES = {
    "list": LIST,
    "builder": NEW,
    "status": f"{LIST}/canteen",
    "closed": MENU,
    "no results": f"{LIST}/street/results",
    "share": f"{LIST}/canteen/share",
    "results": f"{MENU}/results",
    "share open": f"{LIST}/street/share",
}
PHONE, DESK = (390, "light"), (1440, "dark")


@pytest.mark.one_in(11)  # 3 of 32 in every run
@pytest.mark.parametrize(("width", "scheme"), [PHONE, DESK, (390, "dark"), (1440, "light")])
@pytest.mark.parametrize("name", PAGES)
def test_page_is_accessible_and_fits(council: Console, sign_in: SignIn, name: str, width: int, scheme: str) -> None:
    tab = sign_in(council, OWNER, PAGES[name], viewport={"width": width, "height": 844}, color_scheme=scheme)
    if name == "builder":
        fill_poll(tab)
        tab.get_by_label("Languages", exact=True).select_option("de")
        expect(tab.locator("#missing li")).to_have_count(5)
    tab.wait_for_load_state("networkidle")
    assert accessibility_faults(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/data/polls/ask",
        "/data/polls/syntheses",
        "/data/polls/collections",
        "/data/polls/collections/menu",
        "/ledger",
        "/risk",
    ],
)
def test_other_pages_work_without_a_table(council: Console, path: str) -> None:
    headers = {"Authorization": f"Bearer {council.tokens[OWNER]}", "Accept": "text/html"}
    response = httpx.get(f"{council.address}/console{path}", headers=headers)
    assert response.status_code == 200
    assert "/console/data/polls/syntheses" not in response.text, "nothing to synthesize is offered"
