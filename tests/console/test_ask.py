"""Query page: the sliders move together, the shown price is charged, and charts claim no more than the noise supports."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from support.console_service import Console
from typer.testing import CliRunner

from tidegate.cli.app import app
from tidegate.service.access.permissions import ANALYST, OWNER

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

ASK = "/console/data/people/ask"
SignIn = Callable[..., "Page"]


def fill_form(tab: Page, **fields: str) -> None:
    """Fill in the form and wait for its preview; a field is the id of its input."""
    wait_for_preview(tab)
    for name, value in fields.items():
        field = tab.locator(f"#{name}")
        field.select_option(value) if name in ("what", "column") else field.fill(value)
    wait_for_preview(tab)


def wait_for_preview(tab: Page) -> None:
    """Wait until the preview matches the form."""
    tab.locator("#preview:not(.stale)").wait_for()


def button(tab: Page, name: str = "Run query") -> Locator:
    return tab.get_by_role("button", name=name, exact=True)


def buy(tab: Page) -> None:
    """Run the shown query; confirm a large charge."""
    wait_for_preview(tab)
    button(tab).click()
    if tab.locator("#confirm").is_visible():
        button(tab, "Spend").click()


def spent(console: Console) -> Fraction:
    return console.datasets["people"].session.account.spent.value


def numbers(tab: Page) -> tuple[float, float, float]:
    return tuple(float(tab.locator(f"#{name}-number").input_value()) for name in ("rho", "epsilon", "error"))  # type: ignore[return-value]


@pytest.mark.long
def test_slider_updates_the_other_two_and_the_chart_at_no_cost(console: Console, sign_in: SignIn) -> None:
    before = spent(console)
    tab = sign_in(console, OWNER, ASK)
    fill_form(tab, what="mean")
    fill_form(tab, **{"epsilon-number": "0.2"})
    rho, epsilon, error = numbers(tab)
    title = tab.locator("#picture h2").inner_text()
    assert title == f"The mean of age is within {error:g} of the true value with 95% confidence"
    expect(tab.locator("#picture .tg-wide .band path")).to_have_count(2)
    tab.locator("#error-slider").press("PageUp")
    wait_for_preview(tab)
    less_rho, less_epsilon, more_error = numbers(tab)
    assert more_error > error
    assert less_epsilon < epsilon
    assert less_rho < rho
    assert tab.locator("#picture h2").inner_text() != title
    assert "→" in tab.locator("[data-meter=person] [data-part=after]").inner_text()
    assert spent(console) == before


def test_query_moves_the_meter_and_repeating_it_is_free(fresh_console: Console, sign_in: SignIn) -> None:
    console = fresh_console
    tab = sign_in(console, ANALYST, ASK)
    tab.get_by_text("No queries yet").wait_for()
    fill_form(tab, what="mean")
    fill_form(tab, **{"rho-number": "0.00004"})
    before = tab.locator("[data-meter=person] rect.now").get_attribute("width")
    buy(tab)
    tab.get_by_text("95% interval").wait_for()
    tab.locator("#history li").wait_for()
    result = tab.locator("#told").inner_text()
    for words in ("Cost 0.", "→", "entry "):
        assert words in result
    assert float(tab.locator("[data-meter=person] rect.now").get_attribute("width") or 0) > float(before or 0)
    charged = spent(console)
    assert charged > 0
    tab.locator("#result").evaluate("place => { place.hidden = true; }")
    tab.get_by_role("button", name="Show again (free)").click()
    tab.get_by_text("Stored answer, free").wait_for()
    assert tab.locator("#told .answer strong").inner_text() in result
    assert spent(console) == charged


def test_refused_preview_shows_the_reason_and_disables_the_button(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, ASK)
    fill_form(tab, what="mean", **{"epsilon-number": "999"})
    tab.locator("#refused").get_by_text("The query costs 999").wait_for()
    assert button(tab).is_disabled()
    tab.locator("#rho-number").fill("0.0000001")
    tab.locator("#refused").get_by_text("cannot be promised").wait_for()
    assert tab.locator("#problem").is_hidden(), "what was only looked at raises no alarm"
    assert tab.locator(".broken").count() == 0
    tab.locator("#rho-number").fill("0.00004")
    tab.locator("#refused").wait_for(state="hidden")
    assert button(tab).is_enabled()


def test_unavailable_slider_shows_the_reason(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, ASK)
    tab.locator("#what").select_option("quantile")
    tab.get_by_text("depends on the data, or the query has several answers").wait_for()
    assert tab.locator("#error-slider").is_disabled()
    tab.locator("#picture").get_by_text("rows of the requested one, 95%").wait_for()


def test_grouped_answer_is_shown_as_a_table_and_a_chart(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, ASK)
    fill_form(tab, what="count")
    tab.get_by_role("checkbox", name="town").check()
    tab.get_by_role("button", name="Add condition").click()
    tab.get_by_label("Column of the condition").select_option("sex")
    fill_form(tab, **{"epsilon-number": "0.3"})
    tab.get_by_text("The number of rows where sex = 'female' by town would cost 0.3").wait_for()
    buy(tab)
    tab.locator("#answer-chart .tg-wide .interval circle").first.wait_for()
    expect(tab.locator("#told tbody tr")).to_have_count(4)
    expect(tab.locator("#answer-chart .tg-wide .interval g")).to_have_count(4)
    title = tab.locator("#answer-chart h3").inner_text()
    assert title == "The noise could explain all differences between groups" or " is higher than " in title
    tab.get_by_role("checkbox", name="town").uncheck()
    tab.locator("#where").get_by_role("button", name="Remove").click()


def test_large_answer_is_shown_in_pages_that_cost_nothing(fresh_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(fresh_console, OWNER, ASK)

    def with_three_cells(route: Any) -> None:
        route.continue_(url=f"{route.request.url}{'&' if '?' in route.request.url else '?'}limit=3")

    tab.route("**/data/people/answers*", with_three_cells)  # instead of 10,000
    fill_form(tab, what="count")
    tab.get_by_role("checkbox", name="town").check()
    fill_form(tab, **{"epsilon-number": "0.3"})
    buy(tab)
    tab.get_by_text("Numbers 1 to 3 of 4").wait_for()
    charged = spent(fresh_console)
    first = tab.locator("#told tbody").inner_text()
    assert button(tab, "Previous").is_disabled()
    button(tab, "Next").click()
    tab.get_by_text("Numbers 4 to 4 of 4").wait_for()
    expect(tab.locator("#told tbody tr")).to_have_count(1)
    assert button(tab, "Next").is_disabled()
    assert "Cost 0.3" in tab.locator("#told").inner_text(), "the charge of the answer, not of the page"
    button(tab, "Previous").click()
    tab.get_by_text("Numbers 1 to 3 of 4").wait_for()
    assert tab.locator("#told tbody").inner_text() == first
    assert spent(fresh_console) == charged == Fraction("0.3")


@pytest.mark.long  # answer/test_derive.py keeps the claim
def test_results_derived_from_earlier_answers_are_offered_free(fresh_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(fresh_console, OWNER, ASK)
    fill_form(tab, what="count")
    tab.get_by_role("checkbox", name="town").check()
    fill_form(tab, **{"epsilon-number": "0.4"})
    buy(tab)
    tab.locator("#history li").wait_for()
    before = spent(fresh_console)
    tab.get_by_role("checkbox", name="town").uncheck()
    tab.get_by_role("button", name="Add condition").click()
    tab.get_by_label("Column of the condition").select_option("town")
    tab.get_by_text("Known from earlier answers, free: the number of rows where town = 'Aby'").wait_for()
    tab.get_by_role("button", name="Use it (free)").click()
    tab.get_by_text("Derived from earlier answers, free.").wait_for()
    assert 200 < float(tab.locator("#told .answer strong").inner_text()) < 400
    assert spent(fresh_console) == before


def test_sql_is_previewed_and_unsupported_sql_shows_an_error(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, ASK)
    tab.get_by_role("radio", name="SQL").check()
    tab.get_by_role("textbox", name="SQL").fill("SELECT town, AVG(age) FROM people GROUP BY town")
    fill_form(tab, **{"epsilon-number": "1.5"})  # with less, it would be useless
    tab.get_by_text("The mean of age by town would cost").wait_for()
    tab.get_by_role("textbox", name="SQL").fill("SELECT * FROM people")
    tab.locator("#refused").get_by_text("Ask for statistics: SELECT").wait_for()


@pytest.mark.long  # answer/test_sql_results.py has the table
def test_sql_that_computes_with_answers_shows_its_table_and_the_cost_of_each_query(
    fresh_console: Console, sign_in: SignIn
) -> None:
    tab = sign_in(fresh_console, OWNER, ASK)
    tab.get_by_role("radio", name="SQL").check()
    share = "100.0 * COUNT(*) FILTER (WHERE sex = 'female') / COUNT(*) AS women"
    tab.get_by_role("textbox", name="SQL").fill(
        f"SELECT town, {share}, COUNT(*) AS n FROM people GROUP BY town ORDER BY town"
    )
    tab.get_by_text("the number of rows by town would cost").wait_for()
    tab.locator("#picture").get_by_text("cost, epsilon").wait_for(state="attached")
    buy(tab)
    table = tab.locator("#told table").first
    table.wait_for()
    headers = table.locator("th").all_inner_texts()
    assert headers == ["town", "women", "women: 95%", "n", "n: 95%"]
    towns = table.locator("tbody tr").all_inner_texts()
    assert [row.split()[0] for row in towns] == sorted(row.split()[0] for row in towns)
    tab.get_by_text("The 2 noisy answers behind it").click()
    assert tab.locator("#told details table").count() == 2


def test_public_number_of_rows_is_not_sold(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, ASK)
    tab.get_by_role("radio", name="SQL").check()
    tab.get_by_role("textbox", name="SQL").fill("SELECT COUNT(*) FROM people")
    tab.locator("#refused").get_by_text("The number of rows is public: 600.").wait_for()
    tab.get_by_role("radio", name="form").check()
    assert tab.locator("#what").input_value() == "mean", "the form does not start with a public number"
    tab.locator("#what").select_option("count")
    tab.locator("#refused").get_by_text("The number of rows is public: 600.").wait_for()
    assert button(tab).is_disabled()


def test_useless_query_is_refused_in_the_preview_with_the_epsilon_that_would_do(
    console: Console, sign_in: SignIn
) -> None:
    tab = sign_in(console, OWNER, ASK)
    fill_form(tab, what="mean", **{"epsilon-number": "0.001"})
    refusal = tab.locator("#refused", has_text="would be useless")
    refusal.wait_for()
    assert button(tab).is_disabled()
    better = refusal.inner_text().split("Request epsilon ")[1].split(" ")[0]
    fill_form(tab, **{"epsilon-number": better})
    expect(refusal).to_be_hidden()
    assert button(tab).is_enabled()


def test_code_snippet_runs_the_query_of_the_page(
    fresh_console: Console, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = fresh_console
    tab = sign_in(console, OWNER, ASK)
    tab.get_by_role("button", name="Add condition").click()
    fill_form(tab, what="mean", **{"error-number": "5"})
    tab.get_by_text("where age >= 54 would cost").wait_for()
    python, command = (
        tab.locator(f".snippet[data-kind='{kind}'] code").inner_text() for kind in ("Python", "Command line")
    )
    buy(tab)
    tab.locator("#history li").wait_for()
    charged = spent(console)
    result: dict[str, Any] = {}
    exec(python.replace("tg_...", console.tokens[OWNER]), result)
    assert str(result["answer"].cost) == "0", "the page already ran it"
    assert spent(console) == charged
    assert f"{result['answer'].value:.6g}"[:4] in tab.locator("#told").inner_text()
    monkeypatch.chdir(console.folder)
    for line in command.splitlines():
        words = shlex.split(line)
        output = CliRunner().invoke(app, words[1:])
        assert output.exit_code == 0, output.output
        assert "the mean of age where age >= 54" in output.output


def test_page_without_a_budget_explains_how_to_add_one(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, "/console/data/shop/ask")
    tab.get_by_text("This data set does not answer queries").wait_for()
    assert tab.locator("#ask").count() == 0


def test_analyst_sees_their_remaining_share(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, ANALYST, ASK)
    fill_form(tab, what="mean", **{"epsilon-number": "1.6"})
    tab.locator("#refused").get_by_text("your budget share has").wait_for()
    assert button(tab).is_disabled()
    fill_form(tab, what="mean", **{"epsilon-number": "0.2"})
    tab.locator("#sentence", has_text="would cost 0.2 of the 1.5 remaining.").wait_for()
