"""Console pages with dates, times, booleans, decimals and text: inputs that fit, and queries that run."""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from console.test_ask import buy, fill_form, wait_for_preview
from playwright.sync_api import expect
from support.console_service import OPEN, Console, on_loopback
from typer.testing import CliRunner

from tidegate.cli.app import app
from tidegate.ledger.tokens import Tokens
from tidegate.service.access.permissions import OWNER
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.datasets import ServedDatasets
from tidegate.service.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROWS = 500
SignIn = Callable[..., "Page"]
POLICY = f"""\
version = 2

[dataset]
name   = "visits"
source = "visits.csv"
unit   = "row"
rows   = {ROWS}

[attributes]
visit   = {{ kind = "key" }}
joined  = {{ kind = "date", from = 2015-01-01, to = 2024-12-31, grid = "day" }}
seen    = {{ kind = "timestamp", from = 2024-01-01, to = 2024-12-31, grid = "hour" }}
opened  = {{ kind = "time", from = 08:00:00, to = 20:00:00, grid = "15-minutes" }}
married = {{ kind = "boolean" }}
price   = {{ kind = "decimal", from = "0.00", to = "50.00", step = "0.01" }}
coupon  = {{ kind = "text", buckets = 8 }}
note    = {{ kind = "text" }}

[promise.loss]
epsilon = 1000

[collection.habits]
questions.married = {{ attribute = "married", operator = "randomized-response", epsilon = 1 }}
"""


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    folder = tmp_path_factory.mktemp("kinds")
    draw = random.Random(1)
    rows = [
        f"v{n},{draw.randrange(2015, 2025)}-0{draw.randrange(1, 10)}-15,2024-0{draw.randrange(1, 10)}-10 1{n % 10}:30:00,"
        f"{draw.randrange(8, 20):02}:10:00,{'true' if n % 4 else 'false'},{draw.randrange(50)}.50,c{n % 5},text {n}"
        for n in range(ROWS)
    ]
    (folder / "visits.csv").write_text("visit,joined,seen,opened,married,price,coupon,note\n" + "\n".join(rows) + "\n")
    (folder / "visits.toml").write_text(POLICY)
    settings = Settings((str(folder / "visits.toml"),), str(folder / "all.ledger"), **OPEN)
    datasets = ServedDatasets.from_files(settings.policies, ledger=settings.ledger)
    tokens = {OWNER: make_token(Tokens(datasets.ledger.store), role=OWNER, name="olga")[0]}
    service = create_app(settings, datasets)
    with on_loopback(service) as address:
        running = Console(address, folder, service, datasets, tokens)
        yield running
        for visit in running.visits.values():
            visit.context.close()


ASK = "/console/data/visits/ask"
CONDITIONS = {
    "joined": ("date", "2020-01-01", lambda row: row["joined"] >= "2020-01-01"),
    "seen": ("datetime-local", "2024-07-01T12:00", lambda row: row["seen"] >= "2024-07-01 12"),
    "opened": ("time", "14:00", lambda row: row["opened"] >= "14:00"),
}


def count_matching(console: Console, holds: Callable[[dict[str, str]], bool]) -> int:
    header, *lines = (console.folder / "visits.csv").read_text().splitlines()
    return sum(holds(dict(zip(header.split(","), line.split(","), strict=True))) for line in lines)


def test_first_query_is_about_a_number_even_if_dates_come_first(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, "/console/data/visits/ask")
    expect(tab.locator("#column")).to_have_value("price")
    expect(tab.locator("#what")).to_have_value("mean")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("column", CONDITIONS)
def test_dates_and_times_have_their_own_inputs(column: str, console: Console, sign_in: SignIn) -> None:
    """The device is in another time zone; the answer's noise has scale 1/20: it rounds to the true count."""
    kind, value, holds = CONDITIONS[column]
    tab = sign_in(console, OWNER, ASK, timezone_id="Pacific/Kiritimati")
    fill_form(tab, what="count")
    tab.locator("#add-condition").click()
    tab.locator("#where .column").select_option(column)
    field = tab.locator("#where input.value")
    expect(field).to_have_attribute("type", kind)
    assert field.input_value() != ""  # a proposal in the middle of the range
    field.fill("")
    expect(tab.get_by_text("Enter a")).to_be_visible()
    field.fill(value)
    fill_form(tab, **{"epsilon-number": "20"})
    buy(tab)
    tab.locator("#told").wait_for()
    shown = tab.locator("#told").inner_text()
    command = tab.locator("pre", has_text="tidegate answer").last.text_content() or ""
    assert f"{column} >= '{value}'" in command
    expected = count_matching(console, holds)
    assert any(str(count) in shown.replace(",", "") for count in (expected - 1, expected, expected + 1)), shown
    if column == "joined":
        words = shlex.split(command.splitlines()[-1])[1:]
        words[1] = str(console.folder / "visits.toml")
        result = CliRunner().invoke(app, [*words, "--ledger", str(console.folder / "other.ledger")])
        assert result.exit_code == 0, (command, result.output)


def test_booleans_are_a_choice_and_groups(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, ASK)
    fill_form(tab, what="count")
    tab.locator("#add-condition").click()
    tab.locator("#where .column").select_option("married")
    options = tab.locator("#where select.value option").all_text_contents()
    assert options == ["false", "true"]
    tab.locator("#where select.value").select_option(label="true")
    wait_for_preview(tab)
    expect(tab.locator("#refused")).to_be_hidden()
    expect(tab.locator("pre", has_text="tidegate answer").last).to_contain_text("married = TRUE")
    boxes = tab.locator("#by input").evaluate_all("(boxes) => boxes.map((box) => box.value)")
    assert boxes == ["joined", "seen", "opened", "married", "price", "coupon"]


@pytest.mark.long  # answer/test_kinds.py keeps the claim
def test_mean_of_dates_is_shown_as_a_date(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, ASK)
    fill_form(tab, what="mean", column="joined")
    fill_form(tab, **{"epsilon-number": "50"})
    buy(tab)
    expect(tab.locator("#told")).to_contain_text(re.compile(r"20(17|18|19|20|21|22)-\d\d-\d\d"))


@pytest.mark.long  # answer/test_kinds.py counts rows by a word
def test_text_in_buckets_can_be_compared_with_a_word(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, ASK)
    fill_form(tab, what="count")
    tab.locator("#add-condition").click()
    tab.locator("#where .column").select_option("coupon")
    tab.locator("#where input.value").fill("c1")
    wait_for_preview(tab)
    expect(tab.locator("#refused")).to_be_hidden()


def test_other_pages_list_the_new_kinds(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, "/console/data/visits/syntheses")
    columns = tab.locator("#target option").all_text_contents()[1:]
    assert columns == ["joined", "seen", "opened", "married", "price"]
    tab = sign_in(console, OWNER, "/console/data/visits/collections")
    options = tab.locator("#attribute option").all_text_contents()
    assert "joined (3,653 days from 2015-01-01 to 2024-12-31)" in options
    assert "married (true or false)" in options
    assert not any(option.startswith(("note", "coupon", "visit")) for option in options)
