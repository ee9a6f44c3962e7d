"""A data set under the average guarantee: amounts in Z, the guarantee in plain words, and the budget by share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from console.snippets import run_command, run_python, shown_code
from console.test_ask import buy, fill_form, wait_for_preview
from console.test_risk import SLOW
from playwright.sync_api import expect
from support.console_service import Console, console_in

from tidegate.service.access.permissions import ANALYST, OWNER

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request

SignIn = Callable[..., "Page"]
ASK, TABLES = "/console/data/incomes/ask", "/console/data/incomes/syntheses"
PAGES = ["/console", ASK, TABLES, "/console/ledger", "/console/access", "/console/risk"]
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}}
OVERFLOWING = """[...document.querySelectorAll('main *')].filter(one => {
  if (one.closest('.scroll, pre, select, svg, [hidden], dialog, details:not([open])') || one.matches('input, textarea')) return false;
  return one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && getComputedStyle(one).overflowX === 'visible' && getComputedStyle(one).display !== 'inline';
}).map(one => one.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def average(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with console_in(tmp_path_factory.mktemp("average"), average=True) as running:
        yield running


def account(console: Console) -> Any:
    return console.datasets["incomes"].session.account


def sent(tab: Page, path: str) -> list[dict[str, Any]]:
    """Return a list that collects the bodies of all requests to a path."""
    bodies: list[dict[str, Any]] = []

    def collect(request: Request) -> None:
        if request.method == "POST" and request.url.endswith(path):
            bodies.append(json.loads(request.post_data or "{}"))

    tab.on("request", collect)
    return bodies


def test_query_is_priced_and_charged_in_z(average: Console, sign_in: SignIn) -> None:
    tab = sign_in(average, ANALYST, ASK)
    quotes, previews = sent(tab, "/quotes"), sent(tab, "/previews")
    fill_form(tab, what="mean", **{"z-number": "0.01"})
    tab.get_by_text("The mean of age would cost Z 0.01 of the").wait_for()
    assert quotes
    assert previews
    assert not [body for body in quotes + previews if "epsilon" in body]
    assert tab.locator("#epsilon-number").count() == 0
    assert tab.locator("[data-figure=part]").inner_text() == "Z, 8.56% of the limit"
    assert "z=0.01" in shown_code(tab, "Python")
    now, after = tab.locator("[data-figure=at-delta]").inner_text().split(" → ")
    assert float(now) < float(after) < 5.03
    before = account(average).spent
    buy(tab)
    tab.locator("#told").get_by_text("Cost Z 0.01, ").wait_for()
    assert float(account(average).spent.value - before.value) == pytest.approx(0.01, rel=1e-6)
    tab.locator("#history li").get_by_text("cost Z 0.01").wait_for()
    wait_for_preview(tab)
    expect(tab.locator("[data-figure=cost]")).to_have_text("free")
    assert tab.locator("[data-figure=at-delta]").inner_text() == f"{after} → {after}"


@pytest.mark.long  # test_query_is_priced_and_charged_in_z keeps the unit
def test_rho_and_error_set_the_loss_too(average: Console, sign_in: SignIn) -> None:
    tab = sign_in(average, OWNER, ASK)
    fill_form(tab, what="mean", **{"rho-number": "0.02"})
    by_rho = float(tab.locator("#z-number").input_value())
    assert 0 < by_rho < 0.02
    fill_form(tab, **{"error-number": "0.5"})
    assert float(tab.locator("#z-number").input_value()) > by_rho
    tab.locator("#z-number").fill("9")
    tab.locator("#refused").get_by_text("The query costs Z 9, but only").wait_for()
    tab.locator("#refused").get_by_text("Set Z to at most").wait_for()


@pytest.mark.long  # test_purchase.py confirms a large charge
def test_large_charge_is_confirmed_in_z(average: Console, sign_in: SignIn) -> None:
    tab = sign_in(average, OWNER, ASK)
    fill_form(tab, what="sum", **{"z-number": "0.05"})
    tab.get_by_role("button", name="Run query", exact=True).click()
    tab.get_by_role("dialog").get_by_text("This costs Z 0.05.").wait_for()
    tab.get_by_role("button", name="Cancel").click()


@pytest.mark.long
def test_error_chart_has_the_noise_of_the_answer(average: Console, sign_in: SignIn) -> None:
    """Normal noise: 99% are within 2.576 / 1.960 of the 95% error; Laplace noise would reach 1.537 times as far."""
    tab = sign_in(average, OWNER, ASK)
    fill_form(tab, what="mean", **{"z-number": "0.02"})
    reach = dict(row.locator("td").all_text_contents() for row in tab.locator("#picture tbody tr").all())
    assert float(reach["99%"]) / float(reach["95%"]) == pytest.approx(2.5758 / 1.9600, rel=1e-2)


def test_guarantee_is_explained_beside_the_promise(average: Console, sign_in: SignIn) -> None:
    for path in ("/console", ASK, TABLES):
        tab = sign_in(average, OWNER, path)
        card = tab.locator("#data-incomes" if path == "/console" else "main")
        assert card.locator("[data-part=guarantee]").inner_text() == "on average over the noise"
        card.locator(".means summary").first.click()
        limits = card.locator(".means li").all_inner_texts()
        assert len(limits) == 4
        for limit, words in zip(
            limits, ("can exceed rho", "chosen before", "(epsilon, delta) is larger", "many answers"), strict=True
        ):
            assert words in limit
    worst = sign_in(average, OWNER, "/console").locator("#data-people")
    assert worst.locator("[data-part=guarantee]").inner_text() == "for every response"
    worst.locator(".means summary").click()
    assert "whatever the answers turn out to be" in worst.locator(".means").inner_text()
    assert worst.locator(".means li").count() == 0


def test_overview_shows_z_and_warns_only_above_09(average: Console, sign_in: SignIn) -> None:
    tab = sign_in(average, OWNER)
    card = tab.locator("#data-incomes")
    assert card.locator("dd").first.inner_text().endswith(" Z")
    assert "limit 0.737" in card.locator("dd", has=tab.locator("[data-figure=yes-no]")).inner_text()
    assert card.get_by_text("yes/no certainty, on average").is_visible()
    assert "limit 5.02" in card.locator("dd", has=tab.locator("[data-figure=at-delta]")).inner_text()
    assert card.locator(".warning").count() == 0
    people = tab.locator("#data-people")
    assert "certainty up to 0.999176" in people.locator(".warning").inner_text()
    assert people.locator("[data-figure=at-delta]").count() == 0


def test_ledger_and_access_name_the_unit(average: Console, sign_in: SignIn) -> None:
    tab = sign_in(average, OWNER, "/console/ledger")
    rows = tab.locator("section[aria-label=Totals] tbody tr").all_inner_texts()
    assert {row.split("\t")[0].replace("\n", " ") for row in rows} == {"incomes in Z", "people in epsilon"}
    tab = sign_in(average, OWNER, "/console/access")
    assert "0.05 Z" in tab.locator("#tokens tr", has_text="ana").inner_text()
    for name, unit in {"": "the unit of each data set", "incomes": "Z", "people": "epsilon"}.items():
        tab.locator("#token-dataset").select_option(name)
        assert tab.locator("#share-unit").inner_text() == unit
    tab.locator("#token-dataset").select_option("incomes")
    tab.locator("#name").fill("zoe")
    tab.locator("#share").fill("0.01")
    tab.get_by_role("button", name="Create token").click()
    expect(tab.locator("#tokens tbody tr").first).to_contain_text("0.01 Z")


@pytest.mark.long  # test_tables_are_priced_by_z_and_by_epsilon_with_delta is cheaper
def test_tables_are_created_by_share(average: Console, sign_in: SignIn) -> None:
    tab = sign_in(average, OWNER, TABLES)
    assert tab.locator("input[name=by]").evaluate_all("all => all.map(one => one.value)") == [
        "share",
        "rho",
        "z",
        "epsilon",
    ]
    tab.locator("#budget").fill("0.1")
    tab.get_by_role("button", name="Create the table for Z 0.01168").wait_for()
    assert "--share 0.1" in shown_code(tab, "Command line")
    before = account(average).spent
    tab.locator("#start").click()
    if tab.locator("#confirm").is_visible():
        tab.get_by_role("dialog").get_by_text("This costs Z 0.01168.").wait_for()
        tab.get_by_role("button", name="Spend", exact=True).click()
    done = tab.locator("#earlier li[data-state=done]", has_text="1 table, 0.1 of the total budget")
    done.wait_for(timeout=SLOW)
    ceiling = float(account(average).ceiling.value)
    assert float(account(average).spent.value - before.value) == pytest.approx(0.1 * ceiling, rel=1e-6)
    done.locator("details.paid summary").click()
    done.get_by_label("Epsilon of the noise").fill("0.2")
    done.get_by_role("button", name="Spend Z 0.0025 and measure").click()
    done.locator("[data-part=told]").get_by_text("cost").wait_for()
    paid = float(account(average).spent.value - before.value) - 0.1 * ceiling
    assert 0.002 < paid <= 0.0025


def test_tables_are_priced_by_z_and_by_epsilon_with_delta(average: Console, sign_in: SignIn) -> None:
    tab = sign_in(average, OWNER, TABLES)
    previews = sent(tab, "/previews")
    assert tab.locator("#delta").is_hidden()
    tab.get_by_label("Z: the privacy loss per table").check()
    tab.locator("#budget").fill("0.002")
    tab.get_by_role("button", name="Create the table for Z 0.002").wait_for()
    assert (
        "loses at most Z 0.002 (epsilon 0.421 at delta = 1e-06) about one row"
        in tab.locator("#preview [data-part=promise]").inner_text()
    )
    assert "--z 0.002" in shown_code(tab, "Command line")
    tab.get_by_label("epsilon and delta").check()
    tab.locator("#budget").fill("0.5")
    tab.locator("#delta").fill("0.00001")
    tab.locator("#code code", has_text="--epsilon 0.5 --delta 0.00001").wait_for(state="attached")
    assert {name: previews[-1][name] for name in ("epsilon", "delta")} == {"epsilon": "0.5", "delta": "0.00001"}
    tab.locator("#delta").fill("0")
    tab.locator("#wanted").get_by_text("Enter a number above 0.").wait_for()
    assert tab.locator("#start").is_disabled()


@pytest.mark.long  # test_ask.py runs its snippets in every run
def test_code_snippets_of_an_average_data_set_run(average: Console, sign_in: SignIn) -> None:
    tab = sign_in(average, OWNER, ASK)
    fill_form(tab, what="mean", **{"z-number": "0.001"})
    rows = run_python(shown_code(tab, "Python"), average.tokens[OWNER])
    assert 18 <= rows[0]["mean"] <= 90
    preview = shown_code(tab, "Command line").splitlines()[0]
    assert "Z 0.001" in run_command(preview, average.folder)
    tab = sign_in(average, OWNER, TABLES)
    tab.locator("#budget").fill("0.02")
    tab.locator("#code code", has_text="--share 0.02").wait_for()
    assert "would cost" in run_command(shown_code(tab, "Command line"), average.folder, "--preview")


@pytest.mark.long
def test_lab_shows_both_readings_of_a_promised_attribute(average: Console, sign_in: SignIn) -> None:
    """Income 0..1,000,000 at rho 0.05: within 5,000 allows epsilon 1.65 and Z 0.1734."""
    tab = sign_in(average, ANALYST, "/console/risk")
    tab.get_by_label("Attribute").select_option(label="incomes: income (promised)")
    tab.locator("#verdict", has_text="on average among 100 possible values allows a total loss of Z 0.173").wait_for(
        timeout=SLOW
    )
    assert (tab.locator("#guarantee").input_value(), tab.locator("#within").input_value()) == ("average", "5000")
    assert tab.locator("#loss").input_value() == "0.1734"
    rows = {row.split("\t")[0]: row.split("\t")[1:] for row in tab.locator("#readings tbody tr").all_inner_texts()}
    assert rows["limit of the total loss"] == ["epsilon 1.651", "Z 0.1734"]
    assert rows["yes/no certainty at most"] == ["0.839", "0.786"]
    assert rows["error of each of 100 answers"] == ["85.7", "8.49"]
    tab.locator("#errors h3", has_text="needs less noise").wait_for()
    tab.locator("#errors .tg-wide .line").first.wait_for(state="attached")
    tab.locator("#code-conversion code", has_text="--guarantee average").wait_for(state="attached")
    with tab.expect_response("**/risk/meaning?*"):
        tab.locator("#loss").fill("0.1")
    tab.locator("#verdict", has_text="A total loss of Z 0.1 limits").wait_for()
    tab.locator("#code-conversion code", has_text="--z 0.1").wait_for(state="attached")
    expect(tab.locator("#several th").nth(1)).to_have_text("total loss, Z")
    with tab.expect_response("**/risk/meaning?*"):
        tab.locator("#guarantee").select_option("worst-case")
    tab.locator("#verdict", has_text="total loss of epsilon").wait_for()
    expect(tab.locator("#several th").nth(1)).to_have_text("total loss, epsilon")


@pytest.mark.one_in(7)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_page_fits_a_phone(average: Console, sign_in: SignIn, path: str, scheme: str) -> None:
    tab = sign_in(average, OWNER, path, **PHONE, color_scheme=scheme)
    messages: list[str] = []
    tab.on("console", lambda message: messages.append(message.text) if message.type in ("error", "warning") else None)
    tab.reload()
    tab.wait_for_load_state("networkidle")
    for summary in tab.locator("details.means summary, #check summary").all():
        summary.click()
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert tab.evaluate(OVERFLOWING) == []
    assert messages == []


@pytest.mark.long  # answer/test_workloads.py keeps the claim
def test_several_statements_are_planned_together(average: Console, sign_in: SignIn) -> None:
    """Forty ranges in one request: the plan is part of the quote, and all answers are charged once."""
    tab = sign_in(average, OWNER, ASK)
    quotes = sent(tab, "/quotes")
    tab.locator("input[name=form][value=sql]").check()
    ranges = [f"SELECT COUNT(*) FROM incomes WHERE age BETWEEN {low} AND {low + 20}" for low in range(20, 60)]
    tab.locator("#sql").fill("; ".join(ranges))
    tab.locator("#z-number").fill("0.005")
    tab.locator("#together").check()
    wait_for_preview(tab)
    assert quotes[-1]["plan"] == "auto"
    tab.get_by_text("40 queries together would cost Z 0.005").wait_for()
    tab.get_by_text("40 answers from one measurement (").wait_for()
    assert "Expected errors, 95%: " in tab.locator("#picture").inner_text()
    assert tab.locator("#picture tbody tr").count() == 40
    assert 'plan="auto"' in shown_code(tab, "Python")
    before = account(average).spent
    buy(tab)
    tab.locator("#told").get_by_text("Cost Z 0.00").wait_for()
    assert float(account(average).spent.value - before.value) == pytest.approx(0.005, rel=1e-3)
