"""The steward's wizard in a real browser: from an upload to an analyst's answer, its errors at the fields, and its accessibility."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from service.processes import run_server
from support.axe import assert_accessible
from support.console_service import OPEN, Console, on_loopback

from tidegate.ledger.tokens import Tokens
from tidegate.service.access.permissions import OWNER
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Page

Visitor = Callable[..., "Page"]
TOWNS = ("Köln", "Bonn", "koeln", "")
HEADER = "\ufeffPatient ID;Age (years);Wohnort;amount_paid;admission date;is_smoker\n"
CSV = HEADER + "".join(
    f"p{n};{20 + n % 60};{TOWNS[n % 4]};{n % 9}.5;2024-0{1 + n % 9}-15;{'yes' if n % 2 else 'no'}\n" for n in range(400)
)


@pytest.fixture
def empty_console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_hashes: None) -> Iterator[Console]:
    """A service with an empty folder, and its owner's token."""
    monkeypatch.setenv("TIDEGATE_REGISTRY", "")
    app = create_app(Settings(folder=str(tmp_path / "gate"), **OPEN))
    token = make_token(Tokens(app.state.datasets.ledger.store), role=OWNER, name="olga")[0]
    with on_loopback(app) as address:
        yield Console(address, tmp_path, app, app.state.datasets, {OWNER: token})


def sign_in(tab: Page, link: str) -> None:
    tab.goto(link)
    tab.wait_for_url("**/console")


def upload(tab: Page, content: bytes | str, name: str = "visits.csv") -> None:
    data = content.encode() if isinstance(content, str) else content
    tab.locator("#file").set_input_files({"name": name, "mimeType": "text/csv", "buffer": data})
    tab.get_by_role("button", name="Upload", exact=True).click()


def start(tab: Page, address: str, content: str = CSV) -> None:
    """Start a draft and upload its table."""
    tab.goto(f"{address}/console/drafts")
    tab.get_by_role("button", name="Start with a table").click()
    tab.wait_for_url("**/source")
    upload(tab, content)
    tab.wait_for_url("**/people")


def fill_columns(tab: Page) -> None:
    tab.locator("#values-2").fill("Köln\nBonn")
    tab.locator("#from-4").fill("2024-01-01")
    tab.locator("#to-4").fill("2024-12-31")


def go_on(tab: Page, step: str) -> None:
    tab.get_by_role("button", name="Continue").click()
    tab.wait_for_url(f"**/{step}")


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])  # widths and themes
def test_steward_publishes_an_upload_and_an_analyst_gets_an_answer(
    empty_console: Console, visitor: Visitor, every: bool
) -> None:
    """Journey 1: no terminal is used after `tidegate serve`. Every state of every step is accessible."""
    steward = visitor(bypass_csp=True)
    sign_in(steward, empty_console.sign_in_link(OWNER))
    assert_accessible(steward, every=every)
    steward.get_by_role("link", name="Add a data set").click()
    steward.wait_for_url("**/console/drafts")
    assert_accessible(steward, every=every)
    steward.get_by_role("button", name="Start with a table").click()
    steward.wait_for_url("**/source")
    steward.get_by_role("button", name="Upload", exact=True).click()
    steward.get_by_text("Choose a file.").wait_for()
    assert_accessible(steward, every=every)
    upload(steward, b"\xff\xfe\0\0", "notes.csv")
    steward.get_by_text("is not UTF-8 text").wait_for()
    upload(steward, CSV)
    steward.wait_for_url("**/people")
    steward.locator("#name").fill("9 lives")
    steward.get_by_role("button", name="Continue").click()
    steward.locator("#name-error").wait_for()
    assert_accessible(steward, every=every)
    steward.locator("#name").fill("visits")
    go_on(steward, "columns")
    assert steward.locator("#kind-0").input_value() == "key"
    assert (steward.locator("#from-1").input_value(), steward.locator("#to-1").input_value()) == ("0", "120")
    assert steward.locator("#values-2").input_value() == "", "no label comes from the data"
    steward.get_by_role("button", name="Continue").click()
    steward.locator("#values-2-error").wait_for()
    assert_accessible(steward, every=every)
    fill_columns(steward)
    steward.locator("#toml", has_text="from = 2024-01-01").wait_for()
    steward.get_by_role("button", name="Check against the data").click()
    report = steward.locator("#report")
    report.get_by_text("For the owner, not for publication.").wait_for()
    assert "“koeln” (100; did you mean “Köln”?)" in report.inner_text()
    assert_accessible(steward, every=every)
    go_on(steward, "promise")
    steward.locator("#one_in").fill("500")
    steward.get_by_text("A random guess of").wait_for()
    assert_accessible(steward, every=every)
    steward.locator("#one_in").fill("20")
    steward.locator("#meaning").get_by_text("more than 1 chance in 20.").wait_for()
    steward.get_by_label("On average over the noise.").check()
    steward.locator("#meaning").get_by_text("1 chance in 20 on average.").wait_for()
    assert_accessible(steward, every=every)
    go_on(steward, "simulation")
    steward.locator("#assumed").fill("400")
    steward.get_by_role("button", name="Simulate").click()
    steward.locator("#accuracy").get_by_text("The mean of Age (years)", exact=True).wait_for()
    assert_accessible(steward, every=every)
    steward.get_by_role("button", name="Generate a synthetic table").click()
    steward.locator("#synthetic-summary").get_by_text("made from 400 generated rows").wait_for()
    assert steward.locator("#synthetic tbody tr").count() == 8
    assert steward.locator("#assumed").input_value() == "400"
    assert_accessible(steward, every=every)
    steward.get_by_role("link", name="Continue").click()
    steward.wait_for_url("**/publication")
    steward.locator("#analyst").fill("ana")
    steward.locator("#percent").fill("200")
    steward.get_by_role("button", name="Publish").click()
    steward.locator("#percent-error").wait_for()
    assert_accessible(steward, every=every)
    steward.locator("#percent").fill("50")
    steward.get_by_role("button", name="Publish").click()
    link = steward.locator("#link").inner_text()
    assert_accessible(steward, every=every)
    steward.reload()
    assert "tg_" not in steward.locator("main").inner_text(), "the token is shown once"

    analyst = visitor()
    sign_in(analyst, link)
    analyst.get_by_role("link", name="Query").first.click()
    analyst.locator("#what").select_option("mean")
    analyst.locator("#go:not([disabled])").wait_for()
    analyst.locator("#go").click()
    dialog = analyst.get_by_role("button", name="Spend")
    analyst.locator("#result:visible, #confirm[open]").first.wait_for()
    if dialog.is_visible():
        dialog.click()
    analyst.locator("#result .answer").wait_for()
    assert empty_console.datasets["visits"].session.account.spent.value > 0


@pytest.mark.long  # test_every_step_works_without_scripts is in every run
def test_draft_is_resumed_at_any_step_and_its_policy_can_be_downloaded(
    empty_console: Console, visitor: Visitor
) -> None:
    tab = visitor()
    sign_in(tab, empty_console.sign_in_link(OWNER))
    start(tab, empty_console.address)
    go_on(tab, "columns")
    fill_columns(tab)
    go_on(tab, "promise")
    tab.goto(f"{empty_console.address}/console/drafts")
    assert "Promise" in tab.locator(".drafts").inner_text()
    tab.get_by_role("link", name="visits").click()
    tab.wait_for_url("**/promise")
    with tab.expect_download() as download:
        tab.get_by_role("link", name="Download the policy").click()
    assert download.value.suggested_filename == "visits.toml"
    assert 'values = ["Köln", "Bonn"]' in Path(download.value.path()).read_text("utf-8")
    tab.goto(f"{empty_console.address}/console/drafts")
    tab.get_by_role("button", name="Delete the draft visits").click()
    tab.get_by_text("No drafts yet").wait_for()
    assert not list((empty_console.folder / "gate" / "data").iterdir())


def test_kind_of_a_column_decides_its_fields_by_keyboard(empty_console: Console, visitor: Visitor) -> None:
    tab = visitor()
    sign_in(tab, empty_console.sign_in_link(OWNER))
    start(tab, empty_console.address)
    go_on(tab, "columns")
    column = tab.locator(".column", has_text="is_smoker")
    assert column.locator("[data-part=values]").is_hidden()
    column.locator("select").first.select_option("category")
    assert column.locator("[data-part=values]").is_visible()
    column.locator("select").first.select_option("leave-out")
    assert column.locator("[data-part=values]").is_hidden()
    tab.locator("#toml", has_text="is_smoker").wait_for(state="detached")
    column.locator("select").first.focus()
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent").strip() == "Continue", "hidden fields are skipped"


def test_every_step_works_without_scripts(empty_console: Console, visitor: Visitor) -> None:
    tab = visitor(java_script_enabled=False)
    (empty_console.folder / "gate" / "data" / "visits.csv").write_text(CSV)
    tab.goto(f"{empty_console.address}/console/sign-in")
    tab.get_by_label("Your token").fill(empty_console.tokens[OWNER])
    tab.get_by_role("button", name="Sign in").click()
    tab.goto(f"{empty_console.address}/console/drafts")
    tab.get_by_role("button", name="Start with a table").click()
    tab.get_by_label("File in the data folder").select_option("visits.csv")
    tab.get_by_role("button", name="Use this file").click()
    tab.wait_for_url("**/people")
    go_on(tab, "columns")
    fill_columns(tab)
    tab.get_by_role("button", name="Check against the data").click()
    assert "For the owner, not for publication." in tab.locator("#report").inner_text()
    go_on(tab, "promise")
    assert "1 chance in 20" in tab.locator("#meaning").inner_text()
    go_on(tab, "simulation")
    tab.get_by_role("link", name="Continue").click()
    tab.locator("#analyst").fill("ana")
    tab.get_by_role("button", name="Publish").click()
    assert "/console/sign-in#tg_" in tab.locator("#link").inner_text()


@pytest.mark.long  # the journey above publishes to one process; tests/service/test_folder.py has two without a browser
def test_published_data_set_is_served_by_every_worker(tmp_path: Path, visitor: Visitor, monkeypatch: Any) -> None:
    monkeypatch.setenv("TIDEGATE_REGISTRY", "")
    with run_server(tmp_path, "--folder", str(tmp_path / "gate"), "--workers", "2") as (url, _):
        token = (tmp_path / "log").read_text().partition("/console/sign-in#")[2].split()[0]
        tab = visitor(viewport={"width": 390, "height": 800}, color_scheme="dark")
        sign_in(tab, f"{url}/console/sign-in#{token}")
        start(tab, url)
        go_on(tab, "columns")
        fill_columns(tab)
        go_on(tab, "promise")
        go_on(tab, "simulation")
        tab.get_by_role("link", name="Continue").click()
        tab.locator("#analyst").fill("ana")
        tab.get_by_role("button", name="Publish").click()
        analyst = tab.locator("#link").inner_text().rpartition("#")[2]
        for _ in range(20):  # a new connection each time: both workers answer
            response = httpx.get(f"{url}/v1/data/visits", headers={"Authorization": f"Bearer {analyst}"})
            assert response.status_code == 200, response.text


TRIAL = "\r\n".join(
    [
        "\ufeffNr;Geburtsdatum;Ort;Betrag;Status;Betrag;Gewicht;Notiz",
        *(
            f"{1000 + n};{1 + n % 28:02d}.{1 + n % 12:02d}.{1950 + n % 50};{('Köln', 'köln ', 'BONN', '')[n % 4]};"
            f"1.{n % 900:03d},50;{('offen', 'Offen ', 'ERLEDIGT')[n % 3]};{'NA' if n % 9 == 1 else f'{n % 7},5'};{50 + n % 40} kg;{'' if n % 2 else 'Müller, krank'}"
            for n in range(400)
        ),
    ]
)


@pytest.mark.long
def test_messy_file_reaches_an_answer_without_a_terminal(empty_console: Console, visitor: Visitor) -> None:
    """A file with a byte order mark, a repeated name, decimal commas, dates with points, units, NA, blanks and mixed case."""
    steward = visitor()
    sign_in(steward, empty_console.sign_in_link(OWNER))
    steward.goto(f"{empty_console.address}/console/drafts")
    steward.get_by_role("button", name="Start with a table").click()
    upload(steward, TRIAL, "Liste März.csv")
    steward.get_by_text("a name is missing or repeated").wait_for()
    labels = ("Numbers are written as", "NA, N/A", "Numbers have a unit", "Remove spaces", "Labels are the same")
    for label in (*labels, "Column names can be"):
        steward.get_by_label(label).check()
    steward.get_by_role("button", name="Upload", exact=True).click()
    steward.wait_for_url("**/people")
    go_on(steward, "columns")
    kinds = [steward.locator(f"#kind-{index}").input_value() for index in range(8)]
    assert kinds == ["key", "date", "category", "number", "category", "number", "integer", "text"]
    for field, text in {"from-1": "1.1.1950", "to-1": "31.12.1999", "values-2": "Köln\nBonn", "to-3": "2.000"}.items():
        steward.locator(f"#{field}").fill(text)
    for field, text in {"values-4": "offen\nerledigt", "from-6": "0", "to-6": "200"}.items():
        steward.locator(f"#{field}").fill(text)
    steward.get_by_role("button", name="Continue").click()
    steward.locator("#to-3-error", has_text="separators of thousands").wait_for()
    steward.locator("#to-3").fill("2000")
    steward.get_by_role("button", name="Check against the data").click()
    steward.locator("#report", has_text="The data fits the columns.").wait_for()
    go_on(steward, "promise")
    go_on(steward, "simulation")
    steward.get_by_role("link", name="Continue").click()
    steward.locator("#analyst").fill("Ana Müller")
    steward.get_by_role("button", name="Publish").click()
    analyst = visitor()
    sign_in(analyst, steward.locator("#link").inner_text())
    analyst.get_by_role("link", name="Query").first.click()
    analyst.locator("#go:not([disabled])").click()
    analyst.locator("#result .answer, #confirm[open]").first.wait_for()
    if analyst.get_by_role("button", name="Spend").is_visible():
        analyst.get_by_role("button", name="Spend").click()
    analyst.locator("#result .answer").wait_for()
