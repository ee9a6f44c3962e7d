"""Sign-in, the layout of every page, and what all pages have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import httpx
import pytest
from support.console_service import Console

from tidegate.service.access.permissions import OWNER, RULES
from tidegate.web.assets import served_files

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_visitor_signs_in_and_reaches_the_requested_page(console: Console, visitor: Callable[..., Page]) -> None:
    tab = visitor()
    tab.goto(f"{console.address}/console/ledger")
    assert "/console/sign-in?next=/console/ledger" in tab.url
    tab.get_by_label("Your token").fill(console.tokens[OWNER])
    tab.get_by_role("button", name="Sign in").click()
    tab.wait_for_url(f"{console.address}/console/ledger")


def test_invalid_token_shows_an_error(console: Console, visitor: Callable[..., Page]) -> None:
    tab = visitor()
    tab.goto(f"{console.address}/console/sign-in")
    tab.get_by_label("Your token").fill("tg_0123456789abcdef_" + "a" * 43)
    tab.get_by_role("button", name="Sign in").click()
    tab.get_by_role("alert").get_by_text("This token is not valid").wait_for()


def test_visitor_without_scripts_signs_in_without_a_token_in_any_url(
    console: Console, visitor: Callable[..., Page]
) -> None:
    tab, urls = visitor(java_script_enabled=False), []
    tab.on("request", lambda request: urls.append(request.url))
    tab.goto(f"{console.address}/console/ledger")
    tab.get_by_label("Your token").fill("tg_0123456789abcdef_" + "a" * 43)
    tab.get_by_role("button", name="Sign in").click()
    tab.get_by_role("alert").get_by_text("This token is not valid").wait_for()
    tab.get_by_label("Your token").fill(console.tokens[OWNER])
    tab.get_by_role("button", name="Sign in").click()
    tab.wait_for_url(f"{console.address}/console/ledger")
    assert not [address for address in urls if "tg_" in address]


def test_token_of_a_link_is_not_sent_in_a_url_or_kept_there(console: Console, visitor: Callable[..., Page]) -> None:
    tab, urls = visitor(), []
    tab.on("request", lambda request: urls.append(request.url))
    tab.goto(console.sign_in_link(OWNER))
    tab.wait_for_url(f"{console.address}/console")
    secret = console.tokens[OWNER].split("_", 2)[2]
    assert not [address for address in urls if secret in address and "#" not in address]
    tab.go_back()
    assert secret not in tab.url


def test_signed_out_user_has_no_access(console: Console, visitor: Callable[..., Page]) -> None:
    tab = visitor()
    tab.goto(console.sign_in_link(OWNER))  # a sign-in of its own: it ends here
    tab.wait_for_url(f"{console.address}/console")
    tab.get_by_role("button", name="Sign out").click()
    tab.wait_for_url("**/console/sign-in")
    tab.goto(f"{console.address}/console")
    assert "/console/sign-in" in tab.url


def test_theme_and_explanations_are_remembered(console: Console, sign_in: Callable[..., Page]) -> None:
    tab = sign_in(console, OWNER)
    assert tab.locator(".explain").first.is_visible()
    tab.get_by_role("button", name="Explanations").click()
    tab.get_by_role("button", name="Theme").click()
    tab.get_by_role("button", name="Theme").click()
    tab.reload()
    assert not tab.locator(".explain").first.is_visible()
    assert tab.locator("html").get_attribute("data-theme") == "dark"
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(20, 24, 26)"


def pages_of(role: str) -> list[str]:
    """Return all console pages that a role can see, with names filled in."""
    names = {"{name}": "people", "{promise}": "headquarters", "{collection}": "shoppers", "{job}": "0" * 20}
    problems = []
    for rule in RULES:
        if rule.method != "GET" or not rule.path.startswith("/console") or role not in rule.roles:
            continue
        path = rule.path
        if path.startswith("/console/sign-in/"):  # answers with another page, or with an error page
            continue
        if "{promise}" in path:
            path = path.replace("{name}", "soldiers")
        if "{collection}" in path:
            path = path.replace("{name}", "shop")
        if any(
            part in path for part in ("{job}", "{draft}", "{item}", "{answer}", "/polls/{collection}")
        ):  # other tests
            continue
        for slot, value in names.items():
            path = path.replace(slot, value)
        problems.append(path)
    return problems


@pytest.mark.one_in(5)
@pytest.mark.parametrize("path", pages_of(OWNER))
def test_page_fits_a_phone_and_links_to_its_json_version(
    console: Console, sign_in: Callable[..., Page], path: str
) -> None:
    tab = sign_in(console, OWNER, path, viewport={"width": 360, "height": 740})
    tab.wait_for_load_state("networkidle")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    assert tab.locator("h1").count() == 1
    unnamed = tab.evaluate(
        "[...document.querySelectorAll('input:not([type=hidden]),select,textarea')]"
        ".filter(e => !e.labels.length && !e.getAttribute('aria-label')).map(e => e.outerHTML)"
    )
    assert unnamed == []
    if path == "/console/sign-in":
        return
    twins = [item.get_attribute("href") for item in tab.locator("footer a", has_text="as JSON").all()]
    assert twins, "every page says where it is JSON"
    as_owner = {"Authorization": f"Bearer {console.tokens[OWNER]}"}
    for twin in twins:
        response = httpx.get(console.address + str(twin), headers=as_owner)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"].startswith("application/json")


def test_first_tab_stop_skips_to_the_content(console: Console, sign_in: Callable[..., Page]) -> None:
    tab = sign_in(console, OWNER)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to content"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "main"


def test_missing_page_is_an_error_page(console: Console, sign_in: Callable[..., Page]) -> None:
    tab = sign_in(console, OWNER, "/console/data/nowhere/ask")
    assert "no data set of that name" in tab.locator("main").inner_text()
    tab.goto(f"{console.address}/console/nothing")
    assert "page does not exist" in tab.locator("main").inner_text()


@pytest.mark.parametrize(
    "name", ["static/../pages.py", "static/%2e%2e/pages.py", "static/none.js", "client/%2e%2e/pages.py", "static/"]
)
def test_file_routes_serve_no_other_files(console: Console, name: str) -> None:
    response = httpx.get(f"{console.address}/{name}")
    assert response.status_code in (404, 422)
    assert "render" not in response.text


def test_every_file_is_served_and_cached(console: Console) -> None:
    with httpx.Client(base_url=console.address) as client:  # one for all: a client alone takes 25 ms
        for name, file in served_files().items():
            first = client.get(f"/{name}")
            assert (first.status_code, first.content) == (200, file.content)
            again = client.get(f"/{name}", headers={"If-None-Match": first.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
            assert "immutable" in client.get(f"/{name}?{file.tag}").headers["cache-control"]


def test_overview_shows_the_worst_yes_no_certainty(console: Console, sign_in: Callable[..., Page]) -> None:
    result = console.datasets["people"].session.account
    tab = sign_in(console, OWNER)
    shown = tab.locator("#data-people [data-figure=yes-no]")
    assert float(shown.inner_text()) == pytest.approx(1 / (1 + math.exp(-float(result.spent.value))), abs=1e-3)
    assert tab.locator("#data-people").get_by_text("worst yes/no certainty").is_visible()
    tab.goto(f"{console.address}/console/risk")
    tab.locator("#several").get_by_text("yes/no certainty at most").wait_for()
    tab.locator("#verdict").get_by_text("a yes/no question about one person").wait_for()
