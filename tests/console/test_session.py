"""Sessions in the browser: the idle timeout is announced and loses nothing, links work once, sessions can be ended, accounts sign in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from service.test_oidc import Gate, gate_in
from support.axe import assert_accessible
from support.console_service import Console, wait_until
from support.identity_provider import SECRET

from tidegate.ledger.schema import signins
from tidegate.ledger.tokens import stamp
from tidegate.service.access.permissions import OWNER

if TYPE_CHECKING:
    from playwright.sync_api import Page

SignIn = Callable[..., "Page"]
Visitor = Callable[..., "Page"]


def make_idle(console: Console) -> None:
    """Set the last requests of all sessions back, as if nobody had done anything for 31 minutes."""
    callers = console.app.state.guard.callers
    callers.activity.write()
    with console.datasets.ledger.store.engine.begin() as connection:
        past = stamp(datetime.now(UTC) - timedelta(minutes=31))
        connection.execute(signins.update().values(seen=past))
    callers.forget()


def open_access_page(console: Console, tab: Page) -> None:
    """Sign in and open the page of tokens, under a clock that the test moves."""
    tab.clock.install()
    tab.goto(console.sign_in_link(OWNER))
    tab.wait_for_url(f"{console.address}/console")
    tab.goto(f"{console.address}/console/access")
    tab.locator("#make").wait_for()


@pytest.mark.long  # test_request_after_the_end_of_a_session_keeps_what_was_typed is in every run
def test_idle_session_is_announced_and_keeps_what_was_typed(fresh_console: Console, visitor: Visitor) -> None:
    tab = visitor()
    open_access_page(fresh_console, tab)
    tab.locator("#name").fill("nina")
    notice = tab.locator("#session")
    tab.clock.fast_forward("28:40")
    notice.get_by_text("You will be signed out in about 1 minute because nothing happened").wait_for()
    assert_accessible(tab)
    notice.get_by_role("button", name="Stay signed in").click()
    notice.wait_for(state="hidden")
    make_idle(fresh_console)
    tab.clock.fast_forward("31:00")
    notice.get_by_text("You were signed out").wait_for()
    assert_accessible(tab)
    tab.get_by_role("button", name="Create token").click()
    assert tab.locator("#made").is_hidden(), "nothing was sent"
    assert tab.locator("#name").input_value() == "nina", "nothing is lost"
    with tab.context.expect_page() as opened:
        notice.get_by_role("link", name="Sign in in a new tab").click()
    other = opened.value
    other.get_by_label("Your token").fill(fresh_console.tokens[OWNER])
    other.get_by_role("button", name="Sign in").click()
    other.wait_for_url(f"{fresh_console.address}/console")
    other.close()
    tab.evaluate("dispatchEvent(new Event('focus'))")
    notice.wait_for(state="hidden")
    tab.get_by_role("button", name="Create token").click()
    tab.locator("#made").get_by_text("Token for nina").wait_for()


def test_request_after_the_end_of_a_session_keeps_what_was_typed(fresh_console: Console, visitor: Visitor) -> None:
    """An owner ended it: the page learns that from the refused request."""
    tab = visitor()
    open_access_page(fresh_console, tab)
    tab.locator("#name").fill("nina")
    make_idle(fresh_console)
    tab.get_by_role("button", name="Create token").click()
    tab.locator("#problem").get_by_text("What you typed is still on this page.").wait_for()
    assert tab.locator("#name").input_value() == "nina"


def test_typing_prolongs_a_session_and_an_open_page_does_not(fresh_console: Console, visitor: Visitor) -> None:
    tab = visitor()
    open_access_page(fresh_console, tab)
    requests: list[dict[str, str]] = []
    tab.on("request", lambda request: requests.append(request.headers) if request.url.endswith("/me") else None)
    tab.clock.fast_forward("10:00")
    assert requests == []
    tab.locator("#name").press("a")
    with tab.expect_response("**/me"):
        tab.clock.fast_forward("00:16")
    assert "x-unattended" not in requests[0]
    tab.clock.fast_forward("20:00")
    tab.evaluate("import('/static/api.js').then((api) => api.get('/v1/data'))")
    with tab.expect_request("**/data") as repeated:
        tab.evaluate("import('/static/api.js').then((api) => api.get('/v1/data'))")
    assert repeated.value.headers["x-unattended"] == "yes", "nobody touched the page for 20 minutes"
    tab.locator("#session").wait_for(state="hidden")


def test_link_for_a_colleague_works_once(console: Console, sign_in: SignIn, visitor: Visitor) -> None:
    tab = sign_in(console, OWNER, "/console/access")
    tab.locator("#name").fill("lina")
    tab.locator("#token-dataset").select_option("people")
    tab.get_by_role("button", name="Create sign-in link").click()
    tab.locator("#made").get_by_text("It works once, within 15 minutes").wait_for()
    link = tab.locator("#made .snippet code").inner_text()
    assert link.startswith(f"{console.address}/console/sign-in#tgl_")
    colleague = visitor()
    colleague.goto(link)
    colleague.wait_for_url(f"{console.address}/console")
    assert "lina (analyst)" in colleague.locator(".who").inner_text()
    late = visitor()
    late.goto(link)
    late.get_by_role("alert").get_by_text("This link is not valid: a link works once").wait_for()
    row = tab.locator("#tokens tr", has_text="lina")
    row.get_by_role("button", name="Sign-in link").click()
    tab.locator("#made code").get_by_text("#tgl_").wait_for()
    wait_until(tab, f"document.querySelector('#made code').textContent !== {link!r}")
    again = visitor()
    again.goto(tab.locator("#made .snippet code").inner_text())
    again.wait_for_url(f"{console.address}/console")


def test_owner_ends_a_session(console: Console, sign_in: SignIn, visitor: Visitor) -> None:
    other = visitor()
    other.goto(console.sign_in_link("analyst"))
    other.wait_for_url(f"{console.address}/console")
    tab = sign_in(console, OWNER, "/console/access")
    tab.locator("#sessions tr", has_text="ana").first.get_by_role("button", name="End the session of ana").click()
    tab.locator("#sessions tr", has_text="ana").first.get_by_text("ended now").wait_for()
    other.goto(f"{console.address}/console")
    assert "/console/sign-in" in other.url
    tab.goto(f"{console.address}/console/ledger?kind=access")
    tab.get_by_text("olga ended a session of ana.").wait_for()


@pytest.mark.long  # the tour of all pages (test_tour.py) is long as well
def test_access_page_is_accessible_in_every_width_and_theme(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, "/console/access")
    assert_accessible(tab, every=True)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEGATE_OIDC_SECRET", SECRET)
        with gate_in(tmp_path_factory.mktemp("gate")) as running:
            yield running


@pytest.mark.long  # tests/service/test_oidc.py signs in without a browser in every run
def test_user_signs_in_with_an_account_and_signs_out_everywhere(gate: Gate, visitor: Visitor) -> None:
    """The whole way in a real browser: our page, the provider's login form, its consent, our console, and back out."""
    gate.provider.set(groups={"olga": ["stewards"]}, names={"olga": "Olga Owner"})
    tab = visitor()
    tab.goto(f"{gate.address}/console/access")
    assert "next=/console/access" in tab.url
    assert_accessible(tab, every=True)
    tab.keyboard.press("Tab")
    tab.get_by_role("link", name="Sign in with Example University").focus()
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"{gate.provider.issuer}/**")
    tab.locator("input[name=login]").fill("olga")
    tab.locator("input[name=password]").fill("any")
    tab.locator("button[type=submit]").click()
    tab.get_by_role("button", name="Continue").click()
    tab.wait_for_url(f"{gate.address}/console/access")
    assert "Olga Owner (owner)" in tab.locator(".who").inner_text()
    assert "olga at " + gate.provider.issuer in tab.locator("#tokens").inner_text()
    tab.get_by_text("research: analyst of others, people, budget share 0.5").wait_for()
    assert_accessible(tab)
    tab.get_by_role("button", name="Sign out").click()
    tab.wait_for_url(f"{gate.provider.issuer}/session/end**")
    tab.locator("button[type=submit]", has_text="Yes").click()
    tab.wait_for_url(f"{gate.address}/console/sign-in**")
    tab.goto(f"{gate.address}/console")
    assert "/console/sign-in" in tab.url
