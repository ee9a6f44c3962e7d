"""The desk of a hiding promise: the owner opens the selection in the page, and each request is released or withheld at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import httpx
import pytest
from console.snippets import run_python, shown_code
from support.console_service import OPEN, Console, on_loopback

from tidegate.ledger.tokens import Tokens
from tidegate.release.hiding import read_selections
from tidegate.release.result import Withheld
from tidegate.service.access.permissions import OWNER, RESPONDENT
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.datasets import ServedDatasets
from tidegate.service.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Page

DESK, API = "/console/data/guards/desks/headquarters", "/v1/data/guards/desks/headquarters"
PEOPLE, LATE = 600, "g600"
PATIENT = 90_000  # milliseconds: the first simulation compiles
SignIn = Callable[..., "Page"]
POLICY = """\
version = 1

[dataset]
name   = "guards"
source = "guards.csv"
unit   = "row"

[attributes]
name     = { kind = "key" }
age      = { kind = "integer", from = 18, to = 57, bins = [28, 38, 48], missing = "dropped" }
location = { kind = "category", values = ["L1", "L2", "L3", "L4"], missing = "dropped" }

[promise.hiding.headquarters]
reveals  = ["age"]
about    = ["location"]
releases = ["name", "age", "location"]
mix      = "table"
among    = 2
"""


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    folder = tmp_path_factory.mktemp("hiding")
    rows = [f"g{n:03d},{18 + n // 4 * 7 % 40},L{n % 4 + 1}" for n in range(PEOPLE)]
    (folder / "guards.csv").write_text("\n".join(["name,age,location", *rows]) + "\n", "utf-8")
    (folder / "guards.toml").write_text(POLICY, "utf-8")
    settings = Settings((str(folder / "guards.toml"),), str(folder / "all.ledger"), **OPEN)
    datasets = ServedDatasets.from_files(settings.policies, ledger=settings.ledger)
    tokens = {OWNER: make_token(Tokens(datasets.ledger.store), role=OWNER, name="olga")[0]}
    app = create_app(settings, datasets)
    with on_loopback(app) as address:
        running = Console(address, folder, app, datasets, tokens)
        yield running
        for visit in running.visits.values():
            visit.context.close()


def state(console: Console) -> dict:
    token = {"Authorization": f"Bearer {console.tokens[OWNER]}"}
    return dict(httpx.get(console.address + API, headers=token, timeout=60).json())


def shows(tab: Page, selector: str, number: int) -> None:
    tab.locator(selector, has_text=re.compile(rf"^{number:,}$")).wait_for()


def test_owner_opens_the_selection_and_requests_records_on_a_narrow_screen(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, DESK, viewport={"width": 390, "height": 844}, color_scheme="dark")
    assert tab.get_by_role("button", name="Request records").is_hidden()
    assert "--sensitive-file private.txt" in shown_code(tab, "Command line")

    tab.get_by_label("Sensitive groups of location, one per line").fill("L2")
    tab.get_by_role("button", name="Open selection").click()
    assert "never released" in tab.get_by_role("dialog").inner_text()
    assert tab.evaluate("document.activeElement.textContent") == "Cancel", "Enter alone opens nothing"
    tab.keyboard.press("Enter")
    tab.get_by_role("dialog").wait_for(state="hidden")
    assert state(console)["open"] is False
    tab.get_by_role("button", name="Open selection").click()
    tab.keyboard.press("Shift+Tab")
    tab.keyboard.press("Enter")
    tab.locator("#opened-now", has_text="Selection 1 is open").wait_for()
    opened = state(console)
    assert opened["open"]
    assert "L2" not in tab.get_by_role("textbox").first.input_value()
    quotas = tab.locator("#selections tbody tr").all_inner_texts()
    assert sum("\tall" in row for row in quotas) == 2, "the groups that are not hidden are released in full"
    assert len(quotas) == 4
    assert "2 of 4 groups" in tab.locator("#says-first").inner_text()

    keys = [f"g{n:03d}" for n in range(60)]
    tab.get_by_label("Keys, one per line").fill("\n".join([*keys, "nobody"]))
    tab.get_by_role("button", name="Request records").click()
    tab.locator("#summary", has_text="61 keys").wait_for()
    result = state(console)
    released = sum(result["out_in_all"].values())
    assert 0 < released < len(keys)
    assert released + result["withheld"] == len(keys)
    assert f"{released} released, {result['withheld']} withheld, 1 refused" in tab.locator("#summary").inner_text()
    shows(tab, "#out", released)
    shows(tab, "#withheld", result["withheld"])
    tab.locator("#released tbody tr").first.wait_for()
    rows = tab.locator("#outcomes tbody tr").all_inner_texts()
    withheld = next(row.split("\t")[0] for row in rows if "withheld" in row)
    tab.get_by_label("Keys, one per line").fill(withheld)
    tab.get_by_role("button", name="Check status").click()
    tab.locator("#summary", has_text="1 key: 1 withheld").wait_for()
    assert tab.get_by_role("button", name="Withdraw").count() == 0
    assert run_python(shown_code(tab, "Python"), console.tokens[OWNER]).to_dict()["outcome"] == "withheld"

    tab.get_by_role("button", name="Open next selection").click()
    tab.get_by_role("dialog").get_by_role("button", name="Open selection").click()
    tab.get_by_role("alert").get_by_text("no records that were added").wait_for()

    tab.get_by_label("Number of pairs").fill("3")
    tab.get_by_role("button", name="Compare").click()
    tab.locator("#observed", has_text="3 pairs of 600 records").wait_for(timeout=PATIENT)
    controls = [row.split("\t")[0] for row in tab.locator("#observers tbody tr").all_inner_texts()]
    assert controls == ["no control", "Kullback-Leibler test", "all 5 tests", "hiding"]
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def withheld_key(console: Console) -> str:
    """Return the key of a withheld record. The selection is opened unless another test has done it."""
    served = console.datasets["guards"]
    if not read_selections(served.session.ledger, served.policy):
        served.session.open_release(sensitive=["L2"])
    outcomes = served.desk("headquarters").request_many(f"g{n:03d}" for n in range(60))
    return next(key for key, outcome in outcomes.items() if isinstance(outcome, Withheld))


def test_respondent_sees_that_their_record_is_withheld_or_not_chosen_yet(console: Console, visitor: SignIn) -> None:
    withheld = withheld_key(console)
    with (console.folder / "guards.csv").open("a", encoding="utf-8") as file:
        file.write(f"{LATE},30,L1\n")
    tokens = Tokens(console.datasets.ledger.store)
    for key, title, says in (
        (withheld, "Withheld", "requesting again changes nothing"),
        (LATE, "Not chosen yet", "once the data holder has opened the next selection"),
    ):
        token = make_token(tokens, role=RESPONDENT, name=key, dataset="guards", record=key)[0]
        tab = visitor()
        tab.goto(f"{console.address}/console/sign-in#{token}")
        tab.wait_for_url(f"{console.address}/console/record")
        tab.get_by_label("Your name").fill(key)
        tab.get_by_role("button", name="Request my record").click()
        tab.get_by_role("heading", name=title).wait_for()
        assert says in tab.locator("#outcome").inner_text()
        assert tab.get_by_role("button", name="Withdraw").is_hidden()
