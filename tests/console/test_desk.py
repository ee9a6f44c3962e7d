"""The release desk: records are requested until one waits, with live charts; the code snippets do the same."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from console.snippets import run_command, run_python, shown_code
from support.axe import assert_accessible
from support.console_service import Console, wait_until

from tidegate.release.result import Refused
from tidegate.service.access.permissions import OWNER

if TYPE_CHECKING:
    from playwright.sync_api import Page

DESK, API = "/console/data/soldiers/desks/headquarters", "/v1/data/soldiers/desks/headquarters"
PATIENT = 90_000  # milliseconds: the first opening compiles
SignIn = Callable[..., "Page"]


def open_desk(console: Console, sign_in: SignIn, **context: object) -> Page:
    tab = sign_in(console, OWNER, DESK, **context)
    tab.locator("#watched h3").first.wait_for(timeout=PATIENT)
    return tab


def ask(tab: Page, keys: list[str], button: str = "Request records") -> None:
    tab.get_by_label("Keys, one per line").fill("\n".join(keys))
    tab.get_by_role("button", name=button, exact=True).click()
    tab.locator("#summary", has_text=f"{len(keys):,} key").wait_for(timeout=PATIENT)


def state(console: Console) -> dict:
    token = {"Authorization": f"Bearer {console.tokens[OWNER]}"}
    return dict(httpx.get(console.address + API, headers=token, timeout=60).json())


def shows(tab: Page, selector: str, number: int) -> None:
    """Wait until an element shows a number: the page can still show an earlier state."""
    tab.locator(selector, has_text=re.compile(rf"^{number:,}$")).wait_for(timeout=PATIENT)


def names(*numbers: int) -> list[str]:
    return [f"s{number:03d}" for number in numbers]


def test_exposure_chart_follows_releases_until_one_waits(fresh_console: Console, sign_in: SignIn) -> None:
    tab = open_desk(fresh_console, sign_in)
    assert tab.locator("#exposure h3").inner_text() == "No records released yet, so there is no exposure"
    assert tab.locator("#queue").inner_text() == "No requests are waiting."
    assert tab.locator("#exposure .plot").inner_text() == "No records released yet."
    ask(tab, names(*range(120)))
    tab.locator("#exposure h3", has_text="Exposure stays below its critical value").wait_for(timeout=PATIENT)
    result = state(fresh_console)
    assert result["waiting"] > 0, "some must wait, or this shows nothing"
    shows(tab, "#out", sum(result["out_in_all"].values()))
    shows(tab, "#waiting", result["waiting"])
    assert f"L3 {result['asked_for']['L3'] - result['out_in_all']['L3']}" in tab.locator("#queue").inner_text()
    assert "100%" not in tab.locator("#exposure h3").inner_text(), "what is below its limit is not said to be at it"
    rows = tab.locator("#outcomes tbody tr").all_inner_texts()
    assert any("released (request" in row for row in rows)
    assert any("waiting: request" in row for row in rows)
    assert "Of L3" in tab.locator("#shares h3").inner_text()
    tab.locator("#exposure summary").click()
    assert tab.locator("#exposure tbody tr").count() == sum(len(test) for test in result["tests"].values())


def test_queue_names_the_test_that_holds_each_record(fresh_console: Console, sign_in: SignIn) -> None:
    fresh_console.datasets["soldiers"].desk("headquarters").request_many(names(*range(300)))
    tab = open_desk(fresh_console, sign_in)
    waiting = state(fresh_console)["waiting"]
    assert waiting > 20, "two pages are needed"
    assert tab.locator(".headline").inner_text() == f"Released {300 - waiting}, waiting {waiting}"
    rows = tab.locator("#waiting-requests tbody tr")
    rows.first.wait_for()
    assert rows.count() == 20
    assert "kullback-leibler, L3" in rows.first.inner_text()
    first = rows.first.inner_text()
    tab.get_by_role("button", name="above its limit").click()
    assert tab.locator("#waiting-requests th[aria-sort=descending]").inner_text() == "above its limit"
    assert tab.locator("#waiting-requests td:last-child").first.inner_text() == "just reaches it"
    tab.get_by_role("button", name="waiting since").click()
    tab.locator("#waiting-requests th[aria-sort=ascending]", has_text="waiting since").wait_for()
    assert rows.first.inner_text() == first
    tab.get_by_role("button", name="Next page").click()
    tab.get_by_role("button", name="Previous page").wait_for()
    wait_until(tab, f"document.querySelector('#waiting-requests tbody tr').innerText !== {json.dumps(first)}")
    assert_accessible(tab)


def test_card_shows_the_last_simulation(console: Console, sign_in: SignIn) -> None:
    tab = open_desk(console, sign_in)
    card = tab.locator("#verdict")
    assert "No simulation of this policy has run yet." in card.inner_text()
    tab.get_by_label("Number of pairs").fill("2")
    tab.get_by_label("Records per data set").fill("60")
    card.get_by_role("button", name="Simulate observers").click()
    card.locator('[data-part="verdict"]', has_text="simulated observers").wait_for(timeout=PATIENT)
    shown = card.locator('[data-part="verdict"]').inner_text()
    tab.reload()
    assert card.locator('[data-part="verdict"]').inner_text() == shown, "the service renders it"


@pytest.mark.long  # test_record.py has the same test
def test_waiting_request_shows_its_position_and_is_withdrawn(console: Console, sign_in: SignIn) -> None:
    tab = open_desk(console, sign_in)
    ask(tab, names(*range(100)))
    rows = tab.locator("#outcomes tbody tr").all_inner_texts()
    waits = next(row.split("\t")[0] for row in rows if "waiting" in row)
    ask(tab, [waits], "Check status")
    assert "position 1 in the queue" in tab.locator("#outcomes tbody").inner_text()
    ask(tab, [waits], "Withdraw")
    assert "1 withdrawn" in tab.locator("#summary").inner_text()
    ask(tab, [waits], "Withdraw")
    assert "is not waiting" in tab.locator("#outcomes tbody").inner_text()
    ask(tab, ["<script>alert(1)</script>"])
    assert "no record has this key" in tab.locator("#outcomes tbody").inner_text()


@pytest.mark.long
def test_requests_of_others_update_the_chart(console: Console, sign_in: SignIn) -> None:
    tab = open_desk(console, sign_in)
    tab.wait_for_load_state("networkidle")
    before = tab.locator("#out").inner_text()
    console.datasets["soldiers"].desk("headquarters").request_many(names(*range(200, 240)), user="another")
    tab.locator("#out").filter(has_not_text=before).wait_for(timeout=20_000)
    shows(tab, "#out", sum(state(console)["out_in_all"].values()))


def test_hidden_tab_sends_no_requests(console: Console, sign_in: SignIn) -> None:
    tab, urls = open_desk(console, sign_in), []
    tab.wait_for_load_state("networkidle")
    tab.evaluate(
        "() => { Object.defineProperty(document, 'hidden', { get: () => true });"
        " document.dispatchEvent(new Event('visibilitychange')); }"
    )
    tab.wait_for_timeout(500)
    tab.on("request", lambda request: urls.append(request.url))
    tab.wait_for_timeout(4500)
    assert urls == []


def test_file_of_keys_is_requested_and_released_records_are_paged(
    console: Console, sign_in: SignIn, tmp_path: Path
) -> None:
    (tmp_path / "keys.txt").write_text("name\r\n" + "\r\n".join(names(*range(60, 130))) + "\n", "utf-8")
    tab = open_desk(console, sign_in)
    tab.get_by_label("Or a file with keys").set_input_files(tmp_path / "keys.txt")
    tab.locator("#code", has_text="request_many").wait_for()
    tab.get_by_role("button", name="Request records", exact=True).click()
    tab.locator("#summary", has_text="70 keys").wait_for(timeout=PATIENT)
    tab.locator("#released tbody tr").first.wait_for()
    first = tab.locator("#released tbody").inner_text()
    tab.get_by_role("button", name="Later").click()
    tab.get_by_role("button", name="Earlier").wait_for()
    for _ in range(200):  # the button appears before the rows
        if tab.locator("#released tbody").inner_text() != first:
            break
        tab.wait_for_timeout(50)
    assert tab.locator("#released tbody").inner_text() != first
    tab.get_by_role("button", name="Earlier").click()
    tab.get_by_role("button", name="Earlier").wait_for(state="hidden")
    assert tab.locator("#released tbody").inner_text() == first
    with tab.expect_download() as file:
        tab.get_by_role("link", name="Download CSV").click()
    rows = list(csv.DictReader(file.value.path().open(encoding="utf-8")))
    assert len(rows) == sum(state(console)["out_in_all"].values())
    assert set(rows[0]) == {"name", "age", "location"}


@pytest.mark.long
def test_tests_are_described_and_observers_simulated(console: Console, sign_in: SignIn) -> None:
    tab = open_desk(console, sign_in)
    for test in ("mutual-information", "kullback-leibler"):
        section = tab.locator("#watched section", has=tab.get_by_role("heading", name=test))
        assert "Misses:" in section.inner_text()
    tab.get_by_label("Pairs of data sets").fill("3")
    tab.get_by_label("Records per data set").fill("60")
    tab.get_by_label("Distribution of values").fill("1, 1, 2")
    tab.get_by_role("button", name="Simulate", exact=True).click()
    tab.get_by_role("alert").get_by_text("4 weights").wait_for(timeout=PATIENT)
    tab.get_by_label("Distribution of values").fill("1, 1, 2, 6")
    tab.get_by_role("button", name="Simulate", exact=True).click()
    tab.locator("#observed", has_text="3 pairs of 60 records").wait_for(timeout=PATIENT)
    assert tab.get_by_role("alert").is_hidden()
    assert tab.locator("#observers tbody tr").count() > 5
    assert run_python(shown_code(tab, "Python"), console.tokens[OWNER])


@pytest.mark.long  # test_exposure_chart_follows_releases_until_one_waits shows them
def test_single_measure_is_shown_with_its_critical_value(console: Console, sign_in: SignIn) -> None:
    tab = open_desk(console, sign_in)
    ask(tab, names(*range(40)))
    tab.get_by_label("Show").select_option("kullback-leibler, L1")
    tab.locator("#exposure svg:visible .quiet-text", has_text="Kullback-Leibler").wait_for(timeout=PATIENT)


KEYS = ["s140", 'o\'neil "the" $(boss) `x`', "ÅSA 7", "-k"]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("key", KEYS)
def test_code_snippet_requests_the_entered_key(console: Console, sign_in: SignIn, key: str) -> None:
    tab = open_desk(console, sign_in)
    ask(tab, [key])
    by_python = run_python(shown_code(tab, "Python"), console.tokens[OWNER])
    ask(tab, [key], "Check status")
    looked = run_python(shown_code(tab, "Python"), console.tokens[OWNER])
    assert type(by_python) is (Refused if key != "s140" else type(looked))
    assert json.dumps(key, ensure_ascii=False) in shown_code(tab, "Python")


@pytest.mark.parametrize("key", [pytest.param("s150", marks=pytest.mark.long), 'o\'neil "the" $(boss) `x`'])
def test_command_line_requests_the_entered_key(console: Console, sign_in: SignIn, key: str) -> None:
    tab = open_desk(console, sign_in)
    ask(tab, [key])
    command = shown_code(tab, "Command line")
    assert command.startswith("tidegate release soldiers.toml headquarters --key ")
    status = 0 if key == "s150" else 2  # every requested record was refused
    content = json.loads(run_command(command, console.folder, "--ledger", "all.ledger", "--json", status=status))
    assert content["asked"] == 1
    assert (content["refused"] == 1) == (key != "s150")


def test_desk_works_by_keyboard_alone(console: Console, sign_in: SignIn) -> None:
    tab = open_desk(console, sign_in)
    tab.get_by_label("Keys, one per line").focus()
    tab.keyboard.type("s160")
    tab.keyboard.press("Tab")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Request records"
    tab.keyboard.press("Enter")
    tab.locator("#summary", has_text="1 key:").wait_for(timeout=PATIENT)
