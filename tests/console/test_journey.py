"""The demo's data, from the first sign-in to a verified ledger, in a real browser. Screenshots are saved;
the docs use them (TIDEGATE_SCREENSHOTS=docs/pictures regenerates them)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.console_service import OPEN, Console, on_loopback, wait_until

from tidegate import demo as samples
from tidegate.demo import history, soldiers
from tidegate.ledger.tokens import Tokens
from tidegate.service.access.permissions import ANALYST, OWNER, RESPONDENT
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.datasets import ServedDatasets
from tidegate.service.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.long  # the other files test each page in every run
FOR_DOCS = os.environ.get("TIDEGATE_SCREENSHOTS", "")
KEPT = Path(FOR_DOCS or Path(__file__).parents[2] / "build" / "screenshots")
SignIn = Callable[..., "Page"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """The demo's data sets with their history, served."""
    folder = tmp_path_factory.mktemp("demo")
    samples.write(folder)
    list(history.write(folder))
    settings = Settings(tuple(str(path) for path in samples.policies(folder).values()), **OPEN)
    datasets = ServedDatasets.from_files(settings.policies)
    stored_tokens = Tokens(datasets.ledger.store)
    tokens = {
        OWNER: make_token(stored_tokens, role=OWNER, name=history.OWNER)[0],
        ANALYST: make_token(stored_tokens, role=ANALYST, name=history.ANALYST, dataset="people", share="0.5")[0],
        RESPONDENT: make_token(
            stored_tokens, role=RESPONDENT, name=history.RESPONDENT, dataset="soldiers", record=soldiers.WAITS
        )[0],
    }
    with on_loopback(create_app(settings, datasets)) as address:
        yield Console(address, folder, None, datasets, tokens)


def save_screenshot(tab: Page, name: str, top: str = "h1") -> None:
    """Save a screenshot: the whole page as an artifact, one screen from `top` on for the docs."""
    KEPT.mkdir(parents=True, exist_ok=True)
    tab.locator(top).first.evaluate("place => place.scrollIntoView({block: 'start'})")
    tab.screenshot(path=str(KEPT / f"console-{name}.png"), full_page=not FOR_DOCS)


def test_query_moves_the_meter(demo: Console, sign_in: SignIn) -> None:
    tab = sign_in(demo, ANALYST, "/console/data/people/ask", viewport={"width": 1100, "height": 900})
    meter = tab.locator('[data-meter="age"]')
    before = float(str(meter.get_attribute("data-now")))
    tab.get_by_label("Statistic").select_option("mean")
    tab.get_by_label("Column", exact=True).select_option("hours")
    tab.locator("#epsilon-number").fill("0.1")
    tab.locator("#sentence", has_text="The mean of hours would cost 0.1").wait_for()
    assert float(str(meter.get_attribute("data-now"))) == before, "looking is free"
    save_screenshot(tab, "ask")
    tab.locator("#preview:not(.stale)").wait_for()
    tab.get_by_role("button", name="Run query", exact=True).click()
    if tab.locator("#confirm").is_visible():
        tab.get_by_role("button", name="Spend", exact=True).click()
    tab.locator("#told .answer").get_by_text("95% interval").wait_for()
    wait_until(tab, f"Number(document.querySelector('[data-meter=age]').dataset.now) > {before}")
    save_screenshot(tab, "answer")


def test_records_are_released_until_one_waits(demo: Console, sign_in: SignIn) -> None:
    tab = sign_in(demo, OWNER, "/console/data/soldiers/desks/headquarters", viewport={"width": 1100, "height": 900})
    wait_until(tab, "Number(document.getElementById('out').textContent.replace(',', '')) > 0", seconds=120)
    outcomes, waiting = "", int(tab.locator("#waiting").inner_text())
    for batch in range(10):
        keys = "\n".join(f"soldier {number:05d}" for number in range(2000 + 30 * batch, 2030 + 30 * batch))
        tab.get_by_label("Keys, one per line").fill(keys)
        with tab.expect_response("**/requests"):
            tab.get_by_role("button", name="Request records", exact=True).click()
        tab.locator("#outcomes tbody tr").nth(29).wait_for()
        outcomes = tab.locator("#outcomes").inner_text()
        if "waiting" in outcomes:
            break
    assert "waiting" in outcomes, outcomes
    wait_until(tab, f"Number(document.getElementById('waiting').textContent.replace(',', '')) > {waiting}")
    tab.locator("#exposure .plot svg:visible").wait_for()
    tab.wait_for_timeout(500)
    save_screenshot(tab, "release", "#exposure")


def test_desk_of_a_hiding_promise_compares_both_kinds_of_promises(demo: Console, sign_in: SignIn) -> None:
    tab = sign_in(demo, OWNER, "/console/data/barracks/desks/headquarters", viewport={"width": 1100, "height": 900})
    tab.locator("#selections tbody tr").nth(4).wait_for()
    tab.get_by_role("button", name="Compare").click()
    tab.locator("#observers tbody tr").nth(3).wait_for(timeout=120_000)
    assert "all observers could be guessing" in tab.locator("#observers tbody tr").nth(3).inner_text()
    save_screenshot(tab, "hiding", "#observing")


def test_respondent_sees_the_status_of_their_request(demo: Console, sign_in: SignIn) -> None:
    tab = sign_in(demo, RESPONDENT, viewport={"width": 420, "height": 800})
    tab.get_by_label("Your name").fill(soldiers.WAITS)
    tab.get_by_role("button", name="Check status").click()
    tab.locator("#outcome").get_by_text("Your request is at position").wait_for()
    save_screenshot(tab, "record")


def test_true_answer_stays_in_the_form(demo: Console, visitor: Callable[..., Page]) -> None:
    tab, sent = visitor(viewport={"width": 420, "height": 800}), []
    tab.goto(f"{demo.address}/forms/shop/shoppers")
    icon = f"{demo.address}/static/gate.svg"  # fetched by the browser when it pleases; it carries nothing
    tab.on("request", lambda request: sent.append(request) if request.url != icon else None)
    tab.get_by_label("age").fill("77")
    tab.get_by_label("phone").check()
    for item in ("bread", "milk", "tea"):
        tab.get_by_label(item, exact=True).check()
    tab.get_by_role("button", name="Preview my report").click()
    preview = tab.locator("#preview")
    preview.wait_for()
    save_screenshot(tab, "form", "#preview")
    assert sent == [], "nothing is sent before the user sends it"
    survey = demo.datasets["shop"].survey("shoppers")
    before, waiting = survey.reports, survey._book.waiting
    with tab.expect_response("**/reports"):
        preview.get_by_role("button", name="Send").click()
    (posted,) = [request for request in sent if request.method == "POST"]
    report = json.loads(str(posted.post_data))["reports"][0]
    assert set(report["answers"]) == {"age", "pays", "basket"}
    assert '"77"' not in str(posted.post_data)
    assert not {"phone", "bread", "milk", "tea"} & set(words_of(report))
    assert all(request.url.startswith(demo.address) and "77" not in request.url.rpartition("/")[2] for request in sent)
    assert (survey.reports, survey._book.waiting) == (before, waiting + 1), "it is counted with its batch"


def words_of(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value."""
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from words_of(part)


def test_distribution_of_reports_is_estimated(demo: Console, sign_in: SignIn) -> None:
    tab = sign_in(demo, OWNER, "/console/data/shop/collections/shoppers", viewport={"width": 1100, "height": 900})
    tab.get_by_text("The mean age is").wait_for(timeout=120_000)
    tab.locator(".plot svg:visible").nth(1).wait_for()
    tab.wait_for_timeout(500)
    save_screenshot(tab, "collect", "#distribution-form")


def test_synthetic_table_is_created_and_its_quality_shown(demo: Console, sign_in: SignIn) -> None:
    tab = sign_in(demo, OWNER, "/console/data/people/syntheses", viewport={"width": 1100, "height": 900})
    tab.get_by_label("Exact value").fill("0.5")
    tab.get_by_role("button", name="Create the table for epsilon 0.5").click()
    tab.get_by_role("button", name="Spend", exact=True).click()  # more than a tenth of what is left
    download = tab.get_by_role("link", name="CSV").first
    download.wait_for(timeout=240_000)
    save_screenshot(tab, "synthesize")
    with tab.expect_download() as taken:
        download.click()
    assert Path(taken.value.path()).read_text("utf-8").startswith('"age","sex"')
    tab.get_by_role("link", name="quality").first.click()
    tab.locator(".plot svg:visible").first.wait_for(timeout=120_000)
    tab.wait_for_timeout(500)
    save_screenshot(tab, "quality")


def test_ledger_is_verified(demo: Console, sign_in: SignIn) -> None:
    tab = sign_in(demo, OWNER, "/console", viewport={"width": 1100, "height": 900})
    save_screenshot(tab, "overview")
    tab.get_by_role("link", name="Ledger", exact=True).click()
    tab.get_by_role("button", name="Verify all entries").click()
    tab.get_by_text("entries are valid").wait_for()
    save_screenshot(tab, "ledger")
    tab.goto(f"{demo.address}/console/risk")
    tab.locator(".plot svg:visible").first.wait_for()
    tab.wait_for_timeout(500)
    save_screenshot(tab, "risk")
