"""Collections: created with the adviser, watched, estimated, closed; the code snippets do the same."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from console.snippets import run_command, run_python, shown_code
from playwright.sync_api import expect
from support.console_service import Console

from tidegate.policy.toml import read_policy
from tidegate.service.access.permissions import ANALYST, OWNER

if TYPE_CHECKING:
    from playwright.sync_api import Page

LIST, PAGE = "/console/data/shop/collections", "/console/data/shop/collections/shoppers"
PATIENT = 90_000
SignIn = Callable[..., "Page"]


def send(console: Console, count: int, collection: str = "shoppers") -> None:
    """Send the randomized answers of `count` people; old people live in Aby."""
    survey, chance, reports = console.datasets["shop"].survey(collection), random.Random(5), []
    for _ in range(count):
        age = chance.choice([20, 50, 55])
        true = {"age": age, "town": "Aby" if age > 30 else "Berg", "basket": ["milk", "bread"][: 1 + (age > 30)]}
        reports.append(survey.client(memory={}).randomize({name: true[name] for name in survey.collection.questions}))
    assert survey.submit(reports).accepted == count


def advise(tab: Page, attribute: str) -> None:
    tab.get_by_label("1. Attribute").select_option(attribute)
    tab.get_by_role("button", name="Compare operators").click()


def take(tab: Page, operator: str, attribute: str) -> None:
    tab.get_by_role("button", name=f"Select {operator} for {attribute}").first.click(timeout=PATIENT)
    tab.locator("#questions li", has_text=f"{attribute} by {operator}").wait_for()
    tab.locator("#section", has_text=f"questions.{attribute}").wait_for()


def test_adviser_creates_a_collection_that_accepts_reports(fresh_console: Console, sign_in: SignIn) -> None:
    file = fresh_console.folder / "shop.toml"
    before = file.read_text("utf-8")
    tab = sign_in(fresh_console, OWNER, LIST)
    advise(tab, "age")
    take(tab, "square-wave", "age")
    tab.get_by_label("no privacy breach").check()
    advise(tab, "town")
    take(tab, "subset", "town")
    advise(tab, "basket")
    take(tab, "cut-and-paste", "basket")
    tab.get_by_label("Name", exact=True).fill("guests")
    tab.locator("#section", has_text="[collection.guests]").wait_for()
    assert file.read_text("utf-8") == before, "advice makes nothing"
    section = tab.locator("#section").inner_text()
    tab.get_by_role("button", name="Create collection").click()
    tab.wait_for_url(f"{fresh_console.address}{LIST}/guests")
    assert file.read_text("utf-8") == f"{before}\n{section}"
    assert set(read_policy(file).collections["guests"].questions) == {"age", "town", "basket"}
    assert "No reports have been counted yet" in tab.locator("#nothing").inner_text()
    send(fresh_console, 3, "guests")
    tab.locator("#reports", has_text="3").wait_for(timeout=20_000)
    tab.locator("#arriving h3", has_text="3 reports were counted").wait_for()


@pytest.mark.long_for("Command line")
@pytest.mark.parametrize("kind", ["Python", "Command line"])
def test_code_snippet_creates_the_same_collection(fresh_console: Console, sign_in: SignIn, kind: str) -> None:
    tab = sign_in(fresh_console, OWNER, LIST)
    advise(tab, "town")
    take(tab, "randomized-response", "town")
    tab.get_by_label("Name", exact=True).fill("guests")
    tab.locator("#code", has_text="guests").wait_for()
    if kind == "Python":
        run_python(shown_code(tab, kind), fresh_console.tokens[OWNER])
    else:
        run_command(shown_code(tab, kind), fresh_console.folder, "--ledger", "all.ledger")
    created = read_policy(fresh_console.folder / "shop.toml").collections["guests"]
    assert (str(created.questions["town"]), created.clients) == ("town by randomized-response with epsilon 1", 5000)
    tab.goto(f"{fresh_console.address}{LIST}/guests")
    assert tab.locator("h1").inner_text() == "guests"


@pytest.mark.long  # test_adviser_creates_a_collection_that_accepts_reports keeps the claim
def test_only_a_drafted_collection_is_created_and_only_by_the_button(fresh_console: Console, sign_in: SignIn) -> None:
    before = (fresh_console.folder / "shop.toml").read_text("utf-8")
    tab = sign_in(fresh_console, OWNER, LIST)
    for wrong in ("", "0", "-1"):
        tab.locator("#epsilon").fill(wrong)
        advise(tab, "town")
        tab.locator("#advise").get_by_text("Enter a number above 0.").wait_for()
    tab.locator("#epsilon").fill("1")
    advise(tab, "town")
    take(tab, "unary", "town")
    tab.get_by_label("Name", exact=True).fill("guests")
    tab.get_by_label("Name", exact=True).press("Enter")
    tab.locator("#section", has_text="[collection.guests]").wait_for()
    tab.route("**/drafts", lambda route: None)
    tab.get_by_label("Name", exact=True).fill("others")
    make = tab.get_by_role("button", name="Create collection")
    assert make.is_disabled(), "its draft is not there yet"
    make.click(force=True)
    tab.locator("#clients").fill("0")
    tab.locator("#advise").get_by_text("Enter a number above 0.").wait_for()
    assert make.is_disabled()
    assert (fresh_console.folder / "shop.toml").read_text("utf-8") == before


@pytest.mark.long  # service/test_collection_drafts.py keeps the claim
def test_existing_collection_name_is_refused(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, LIST)
    advise(tab, "town")
    take(tab, "unary", "town")
    tab.get_by_label("Name", exact=True).fill("shoppers")
    tab.get_by_role("button", name="Create collection").click()
    tab.get_by_role("alert").get_by_text("This data set already has a collection of that name").wait_for()
    tab.get_by_role("button", name="Remove town").click()
    assert tab.get_by_role("button", name="Create collection").is_hidden()


def test_analyst_can_read_but_not_create(console: Console, visitor: SignIn) -> None:
    from tidegate.ledger.tokens import Tokens
    from tidegate.service.access.tokens import make_token

    stored_tokens = Tokens(console.datasets.ledger.store)
    tab = visitor()
    tab.goto(f"{console.address}/console/sign-in#{make_token(stored_tokens, role=ANALYST, name='adam')[0]}")
    tab.wait_for_url(f"{console.address}/console")
    tab.goto(console.address + LIST)
    assert tab.locator("#advise").count() == 0
    tab.goto(console.address + PAGE)
    assert tab.locator("#closing").count() == 0


def test_page_without_collections_explains_how_to_create_one(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, "/console/data/people/collections")
    assert "No collections yet" in tab.locator(".empty").inner_text()
    assert tab.locator("#advise").is_visible()


def test_estimate_has_a_band_and_a_title_with_the_finding(fresh_console: Console, sign_in: SignIn) -> None:
    send(fresh_console, 400)
    tab = sign_in(fresh_console, OWNER, PAGE)
    tab.locator("#sure", has_text="From 400 reports").wait_for(timeout=PATIENT)
    tab.get_by_label("Question").first.select_option("town")
    result = run_python(shown_code(tab, "Python"), fresh_console.tokens[OWNER])
    expect(tab.locator("#distribution h3")).to_have_text(re.compile(re.escape(result.finding)), timeout=PATIENT)
    assert "town" in result.finding or "is more frequent than" in result.finding
    content = json.loads(
        run_command(shown_code(tab, "Command line"), fresh_console.folder, "--ledger", "all.ledger", "--json")
    )
    assert result.masses.tolist() == content["masses"]
    tab.get_by_label("Question").first.select_option("age")
    tab.get_by_label("Method").select_option("em")
    tab.locator("#sure", has_text="has no error bounds").wait_for(timeout=PATIENT)
    assert 'method="em"' in shown_code(tab, "Python")
    assert shown_code(tab, "Command line").endswith("--method em")
    assert run_python(shown_code(tab, "Python"), fresh_console.tokens[OWNER]).method.startswith("em")


@pytest.mark.long  # compiles kernels of another folder
def test_tree_is_shown_as_nested_lists(fresh_console: Console, sign_in: SignIn) -> None:
    send(fresh_console, 600)
    tab = sign_in(fresh_console, OWNER, PAGE)
    tab.get_by_label("Strategy").select_option("by-class")
    assert tab.get_by_label("Predict").locator("option").all_inner_texts() == ["town"], "a class is a category"
    tab.get_by_role("button", name="Grow tree").click()
    tab.locator("#tree-says", has_text="town from age").wait_for(timeout=PATIENT)
    lines = tab.locator("#tree li").all_inner_texts()
    assert any("Aby" in line for line in lines)
    expect(tab.locator("#tree > ul > li"), "both sides of the first split").to_have_count(2)
    result = run_python(shown_code(tab, "Python"), fresh_console.tokens[OWNER])
    expect(tab.locator("#tree li")).to_have_count(len(result.lines()))


@pytest.mark.long  # compiles kernels of another folder
def test_rules_follow_the_slider(fresh_console: Console, sign_in: SignIn) -> None:
    with (fresh_console.folder / "shop.toml").open("a", encoding="utf-8") as file:
        file.write(
            '\n[collection.carts]\nquestions.basket = { attribute = "basket", operator = "mask", keep = 0.95 }\n'
        )
    send(fresh_console, 500, "carts")
    tab = sign_in(fresh_console, OWNER, f"{LIST}/carts")
    tab.get_by_role("button", name="Find rules").click()
    tab.locator("#rules tbody tr", has_text="bread").first.wait_for(timeout=PATIENT)
    result = run_python(shown_code(tab, "Python"), fresh_console.tokens[OWNER])
    expect(tab.locator("#rules tbody tr")).to_have_count(len(result.rules))
    tab.get_by_label("of all baskets").fill("99")
    tab.locator("#rules-say", has_text="in at least 93% of").wait_for(timeout=PATIENT)
    assert "--min-support 0.93" in shown_code(tab, "Command line")


def test_collection_is_closed_permanently_after_a_confirmation(fresh_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(fresh_console, OWNER, PAGE)
    tab.get_by_role("button", name="Close collection").click()
    tab.wait_for_timeout(300)
    assert not fresh_console.datasets["shop"].survey("shoppers").closed, "the box was not ticked"
    tab.get_by_label("Close version 1 permanently").check()
    tab.get_by_role("button", name="Close collection").click()
    tab.locator("#closed", has_text="accepts no more reports").wait_for()
    assert fresh_console.datasets["shop"].survey("shoppers").closed
    urls: list[str] = []
    tab.wait_for_timeout(2500)
    tab.on("request", lambda request: urls.append(request.url))
    tab.wait_for_timeout(3000)
    assert urls == [], "a closed collection is not polled"
    tab.reload()
    assert tab.locator("#closing").is_hidden()


@pytest.mark.long
def test_page_links_to_the_form(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, PAGE)
    with tab.expect_popup() as form:
        tab.get_by_role("link", name="Open the form").click()
    form.value.get_by_text("This page randomizes your answers").wait_for()
    assert "no report changes the odds" in tab.locator("main").inner_text()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", [LIST, PAGE])
def test_pages_fit_a_phone(console: Console, sign_in: SignIn, path: str, scheme: str) -> None:
    tab = sign_in(console, OWNER, path, viewport={"width": 360, "height": 740}, color_scheme=scheme)
    if path == LIST:
        advise(tab, "town")
        take(tab, "subset", "town")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
