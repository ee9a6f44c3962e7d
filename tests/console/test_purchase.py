"""Only a price on the screen is charged: Enter, slow previews, invalid fields, Back, two tabs, old quotes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from console.test_ask import ASK, button, buy, fill_form, spent, wait_for_preview
from support.console_service import Console

from tidegate.ledger.entry import CHARGED
from tidegate.ledger.explain import page
from tidegate.service.access.permissions import ANALYST, OWNER
from tidegate.service.quotes import quote_secret, read_quote

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

SignIn = Callable[..., "Page"]
ANSWERS, QUOTES = "**/data/people/answers", "**/data/people/quotes"


def charges(console: Console) -> int:
    return len(page(console.datasets.ledger, dataset="people", kind=CHARGED, limit=100))


def cost(tab: Page) -> Fraction:
    return Fraction(tab.locator("[data-figure=cost]").get_attribute("title") or "")


def test_enter_shows_the_price_and_only_the_button_charges(fresh_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(fresh_console, OWNER, ASK)
    fill_form(tab, what="mean")
    tab.locator("#epsilon-number").fill("0.123")
    tab.locator("#epsilon-number").press("Enter")
    assert tab.evaluate("document.activeElement.id") == "preview"
    wait_for_preview(tab)
    assert tab.locator("[data-figure=cost]").inner_text() == "0.123"
    for _ in range(3):
        tab.locator("#rho-number").press("Enter")
    wait_for_preview(tab)
    assert spent(fresh_console) == 0
    shown = cost(tab)
    buy(tab)
    tab.locator("#history li").wait_for()
    assert spent(fresh_console) == shown == Fraction("0.123")


@pytest.mark.long  # test_button_is_disabled_until_the_price_is_shown holds a preview back as well
def test_slow_preview_never_charges_an_old_price(fresh_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(fresh_console, OWNER, ASK)
    fill_form(tab, what="mean", **{"epsilon-number": "0.1"})

    def delay(route: Route) -> None:
        time.sleep(4)
        route.continue_()

    tab.route(QUOTES, delay)
    tab.locator("#epsilon-number").fill("0.15")
    tab.locator("#epsilon-number").press("Enter")
    button(tab).dblclick(force=True)
    assert spent(fresh_console) == 0
    assert tab.locator("#preview.stale [data-figure=cost]").inner_text() == "0.1", "the old price is dimmed"
    tab.locator("#preview:not(.stale)").wait_for(timeout=20_000)
    assert tab.locator("#epsilon-number").input_value() == "0.15", "the query is not lost"
    assert spent(fresh_console) == 0
    tab.unroute(QUOTES)
    buy(tab)
    tab.locator("#history li").wait_for()
    assert (charges(fresh_console), spent(fresh_console)) == (1, Fraction("0.15"))


def test_button_is_disabled_until_the_price_is_shown(fresh_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(fresh_console, OWNER, ASK)
    fill_form(tab, what="mean", **{"epsilon-number": "0.1"})
    blocked: list[Route] = []
    tab.route(QUOTES, lambda route: blocked.append(route))
    tab.locator("#epsilon-number").fill("3")
    assert button(tab).is_disabled()
    assert tab.locator("#preview.stale [data-figure=cost]").inner_text() == "0.1", "the old price, dimmed"
    button(tab).click(force=True)
    tab.wait_for_timeout(300)  # past the pause after a change, so that the request is out
    assert len(blocked) == 1
    assert button(tab).is_disabled()
    tab.locator("#epsilon-number").fill("0.2")
    tab.wait_for_timeout(300)
    blocked[0].continue_()
    tab.wait_for_timeout(300)
    assert button(tab).is_disabled(), "the price of an earlier query does not apply"
    blocked[1].continue_()
    wait_for_preview(tab)
    assert cost(tab) == Fraction("0.2")
    assert spent(fresh_console) == 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize("field", ["epsilon", "rho", "error"])
def test_invalid_number_shows_an_error_and_charges_nothing(console: Console, sign_in: SignIn, field: str) -> None:
    tab = sign_in(console, OWNER, ASK)
    fill_form(tab, what="mean", **{"epsilon-number": "0.1"})
    before = spent(console)
    sent: list[str] = []
    tab.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    input_field = tab.locator(f"#{field}-number")
    for wrong in ("", "0", "-1", "e"):
        input_field.fill("")
        sent.clear()  # of the valid number before
        input_field.press_sequentially(wrong) if wrong else None
        tab.locator(f"#wish-{field}").get_by_text("Enter a number above 0.").wait_for()
        assert input_field.get_attribute("aria-invalid") == "true"
        input_field.press("Enter")
        button(tab).click(force=True)
        tab.wait_for_timeout(300)
        assert button(tab).is_disabled()
        assert sent == []
        assert spent(console) == before
        input_field.fill("0.00004" if field == "rho" else "2")
        wait_for_preview(tab)
        assert tab.locator(".field-error").count() == 0
        assert button(tab).is_enabled()


def test_empty_condition_or_quantile_shows_an_error(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, ASK)
    tab.get_by_role("button", name="Add condition").click()
    tab.get_by_label("Value to compare with").fill("")
    tab.locator(".condition").get_by_text("Enter a number.").wait_for()
    assert button(tab).is_disabled()
    tab.get_by_label("Value to compare with").fill("40")
    tab.locator("#what").select_option("quantile")
    wait_for_preview(tab)
    for wrong in ("", "0", "1"):
        tab.locator("#share").fill(wrong)
        tab.get_by_text("Enter a number between 0 and 1.").wait_for()
        assert button(tab).is_disabled()


@pytest.mark.long  # test_ended_session_keeps_the_query restores a query as well
def test_back_and_reload_restore_the_query(fresh_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(fresh_console, OWNER, ASK)
    fill_form(tab, what="mean")
    tab.get_by_role("checkbox", name="town").check()
    tab.get_by_role("button", name="Add condition").click()
    tab.get_by_label("Column of the condition").select_option("sex")
    tab.get_by_label("Value to compare with").select_option("male")
    fill_form(tab, **{"epsilon-number": "1.5"})
    sentence = "The mean of age where sex = 'male' by town would cost 1.5"
    address = tab.url
    ways: dict[str, Callable[[], object]] = {
        "reload": tab.reload,
        "back": lambda: (tab.goto(f"{fresh_console.address}/console/risk"), tab.go_back()),
        "link": lambda: (tab.goto(f"{fresh_console.address}/console"), tab.goto(address)),
    }
    for leave in ways.values():
        leave()
        tab.get_by_text(sentence).wait_for()
        wait_for_preview(tab)
        assert tab.locator("#what").input_value() == "mean"
        assert tab.get_by_role("checkbox", name="town").is_checked()
        assert tab.get_by_label("Column of the condition").input_value() == "sex"
        assert tab.get_by_label("Value to compare with").locator("option:checked").inner_text() == "male"
        assert tab.locator("#epsilon-number").input_value() == "1.5"
    buy(tab)
    tab.locator("#told").get_by_text("The mean of age where sex = 'male' by town").wait_for()
    assert spent(fresh_console) == Fraction("1.5")


@pytest.mark.long  # test_ask.py repeats a query at no cost
def test_repeated_query_is_free_and_shows_its_date(fresh_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(fresh_console, OWNER, ASK)
    fill_form(tab, what="mean", **{"epsilon-number": "0.1"})
    buy(tab)
    tab.locator("#history li").wait_for()
    tab.reload()
    tab.get_by_text("The mean of age: answered on").wait_for()
    wait_for_preview(tab)
    assert tab.locator("[data-figure=cost]").inner_text() == "free"
    assert tab.locator("#rho-number").input_value() != ""
    button(tab, "Show answer").click()
    tab.get_by_text("Stored answer, free").wait_for()
    assert spent(fresh_console) == Fraction("0.1")
    fill_form(tab, **{"epsilon-number": "0.2"})
    assert button(tab).is_enabled(), "another price is another question"


@pytest.mark.long  # service/test_answers.py refuses an expired quote
def test_expired_quote_charges_nothing_and_is_renewed(fresh_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(fresh_console, OWNER, ASK)
    secret = quote_secret(fresh_console.app.state.guard.callers.secret())

    def expire_quote(route: Route) -> None:
        result = route.fetch()
        content = result.json()
        content["quote"] = replace(read_quote(content["quote"], secret), expires=int(time.time()) - 1).sign(secret)
        route.fulfill(response=result, json=content)

    tab.route(QUOTES, expire_quote)
    fill_form(tab, what="mean", **{"epsilon-number": "0.1"})
    tab.unroute(QUOTES)
    button(tab).click()
    tab.locator("#problem").get_by_text("This quote has expired, so nothing was charged.").wait_for()
    wait_for_preview(tab)
    assert spent(fresh_console) == 0
    buy(tab)
    tab.locator("#history li").wait_for()
    assert spent(fresh_console) == Fraction("0.1")
    assert tab.locator("#problem").is_hidden()


def test_double_click_is_one_charge(fresh_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(fresh_console, OWNER, ASK)
    fill_form(tab, what="mean", **{"epsilon-number": "0.1"})
    sent: list[Any] = []
    tab.on("request", lambda request: sent.append(request) if request.url.endswith("/answers") else None)
    button(tab).dblclick()
    tab.locator("#history li").wait_for()
    wait_for_preview(tab)
    assert len(sent) == 1
    assert (charges(fresh_console), spent(fresh_console)) == (1, Fraction("0.1"))


@pytest.mark.long  # test_double_click_is_one_charge and ledger/test_concurrency.py keep the claim
def test_two_tabs_with_the_same_query_are_charged_once(fresh_console: Console, sign_in: SignIn) -> None:
    tabs = [sign_in(fresh_console, role, ASK) for role in (OWNER, ANALYST)]
    for tab in tabs:
        fill_form(tab, what="mean", **{"epsilon-number": "0.1"})
    for tab in tabs:
        assert cost(tab) == Fraction("0.1")
        button(tab).click()
    for tab in tabs:
        tab.locator("#told .answer").wait_for()
    assert (charges(fresh_console), spent(fresh_console)) == (1, Fraction("0.1"))


def test_lost_answer_is_fetched_again_at_no_cost(fresh_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(fresh_console, OWNER, ASK)
    fill_form(tab, what="mean", **{"epsilon-number": "0.1"})

    def lose_response(route: Route) -> None:
        route.fetch()
        route.abort()

    tab.route(ANSWERS, lose_response)
    button(tab).click()
    tab.get_by_text("The service cannot be reached").wait_for()
    assert charges(fresh_console) == 1
    tab.unroute(ANSWERS)
    button(tab).click()
    tab.locator("#told .answer").wait_for()
    assert (charges(fresh_console), spent(fresh_console)) == (1, Fraction("0.1"))


def test_large_charge_needs_confirmation(fresh_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(fresh_console, ANALYST, ASK)
    fill_form(tab, what="mean", **{"epsilon-number": "0.5"})
    button(tab).click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_text("This costs epsilon 0.5.").wait_for()
    dialog.get_by_text("1.5 is remaining; 1 would remain afterwards.").wait_for()
    dialog.get_by_text("2 more queries of this size would fit.").wait_for()
    assert tab.evaluate("document.activeElement.textContent") == "Cancel"
    tab.keyboard.press("Enter")
    dialog.wait_for(state="hidden")
    assert spent(fresh_console) == 0
    button(tab).click()
    button(tab, "Spend").click()
    tab.locator("#history li").wait_for()
    assert spent(fresh_console) == Fraction("0.5")
    fill_form(tab, what="sum", **{"epsilon-number": "0.5"})
    button(tab).click()
    dialog.get_by_text("1 more query of this size would fit.").wait_for()


def test_ended_session_keeps_the_query(fresh_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(fresh_console, OWNER, ASK)
    fill_form(tab, what="mean")
    tab.context.clear_cookies()
    tab.locator("#epsilon-number").fill("0.17")
    tab.wait_for_url("**/console/sign-in?next=**")
    tab.get_by_label("Token").fill(fresh_console.tokens[OWNER])
    tab.get_by_role("button", name="Sign in").click()
    tab.get_by_text("The mean of age would cost 0.17").wait_for()
    assert tab.url.startswith(f"{fresh_console.address}{ASK}")
    assert spent(fresh_console) == 0
