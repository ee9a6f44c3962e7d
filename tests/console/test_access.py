"""Access page: a token is created, shown once, signs in by its link, and stops working when it is revoked."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from support.console_service import Console
from typer.testing import CliRunner

from tidegate.accounting import budget_of
from tidegate.cli.app import app
from tidegate.service.access.permissions import OWNER

if TYPE_CHECKING:
    from playwright.sync_api import Page

SignIn = Callable[..., "Page"]
SCRIPT = "<script>document.title='taken'</script>"


def create_token(tab: Page, **fields: str) -> str:
    """Make a token and read the link that is shown this once."""
    for label, value in fields.items():
        field = tab.locator(f"#{label.replace('_', '-')}")
        field.select_option(value) if label in ("role", "token_dataset") else field.fill(value)
    tab.get_by_role("button", name="Create token").click()
    tab.locator("#made").get_by_text("This token is shown only once").wait_for()
    return tab.locator("#made .snippet code").first.inner_text()


def test_token_is_shown_once_and_its_link_signs_in(
    console: Console, sign_in: SignIn, visitor: Callable[..., Page]
) -> None:
    tab = sign_in(console, OWNER, "/console/access")
    link = create_token(tab, name="nina", token_dataset="people", share="0.5", days="7")
    other = visitor()
    other.goto(link)
    other.wait_for_url(f"{console.address}/console")
    assert "nina (analyst)" in other.locator(".who").inner_text()
    tab.reload()
    secret = link.split("_", 2)[2]
    assert secret not in tab.content()
    assert "nina" in tab.locator("#tokens tbody tr").first.inner_text()
    tab.locator("#tokens tr", has_text="nina").get_by_role("button", name="Revoke").click()
    tab.get_by_role("button", name="Cancel").click()
    other.reload()
    assert "nina (analyst)" in other.locator(".who").inner_text()
    tab.locator("#tokens tr", has_text="nina").get_by_role("button", name="Revoke").click()
    tab.get_by_role("dialog").get_by_text("Revoke the token of nina?").wait_for()
    tab.get_by_role("button", name="Revoke token").click()
    tab.locator("#tokens tr", has_text="nina").get_by_text("revoked now").wait_for()
    other.goto(f"{console.address}/console")
    assert "/console/sign-in" in other.url


@pytest.mark.long  # test_ledger.py has the same test
def test_stored_script_in_a_name_is_only_a_name(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, "/console/access")
    create_token(tab, name=SCRIPT)
    for _ in ("made now", "loaded anew"):
        tab.locator("#tokens tr", has_text=SCRIPT).first.wait_for()
        assert tab.locator("main script").count() == 0
        assert "taken" not in tab.title()
        tab.reload()
    tab.locator("#tokens tr", has_text=SCRIPT).get_by_role("button", name="Revoke").click()
    tab.get_by_role("dialog").get_by_text(SCRIPT).wait_for()
    tab.get_by_role("button", name="Cancel").click()


def test_respondent_token_needs_a_data_set_with_a_desk(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, "/console/access")
    assert tab.locator("#record-field").is_hidden()
    tab.get_by_label("Role").select_option("respondent")
    assert tab.locator("#token-dataset").input_value() == "soldiers"
    assert tab.locator("#share-field").is_hidden()
    token = create_token(tab, name="s12", record="s012").rpartition("#")[2]
    me = httpx.get(f"{console.address}/v1/me", headers={"Authorization": f"Bearer {token}"}).json()
    assert (me["role"], me["dataset"]) == ("respondent", "soldiers")


def test_refusal_is_shown_on_the_page(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, "/console/access")
    tab.get_by_role("button", name="Create token").click()
    tab.locator("#name-error", has_text="Enter a name.").wait_for()
    tab.locator("#name").fill("nina")
    tab.locator("#days").fill("99999")
    tab.get_by_role("button", name="Create token").click()
    tab.get_by_role("alert").locator(".what").wait_for()
    assert tab.locator("#made").is_hidden()


def test_budget_share_can_be_a_part_of_the_budget(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, "/console/access")
    tab.locator("#name").fill("nina")
    for data_set, share in (("", "25%"), ("people", "a lot"), ("people", "101%")):
        tab.locator("#token-dataset").select_option(data_set)
        assert tab.get_by_text("or as a part such as 25%").is_visible() == bool(data_set)
        tab.locator("#share").fill(share)
        tab.get_by_role("button", name="Create token").click()
        tab.locator("#share-error", has_text="one data set" if not data_set else "at most 100%").wait_for()
    token = create_token(tab, share="25%").rpartition("#")[2]
    share = httpx.get(f"{console.address}/v1/me", headers={"Authorization": f"Bearer {token}"}).json()["share"]
    limit = budget_of(console.datasets["people"].policy).ceiling.value
    assert 0.2499 * limit < Decimal(share) <= limit / 4


def test_sessions_fit_on_a_phone(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, "/console/access")
    tab.set_viewport_size({"width": 390, "height": 844})
    button = tab.locator("#sessions").get_by_role("button", name="End the session").first.bounding_box()
    assert button is not None
    assert button["x"] + button["width"] <= 390


def test_code_snippet_creates_the_same_token(console: Console, sign_in: SignIn, monkeypatch: Any) -> None:
    tab = sign_in(console, OWNER, "/console/access")
    create_token(tab, name="Ann O'Nym", token_dataset="people", share="0.25")
    python, command = (
        tab.locator(f".snippet[data-kind='{kind}'] code").inner_text() for kind in ("Python", "Command line")
    )
    result: dict[str, Any] = {}
    exec(python.replace("tg_...", console.tokens[OWNER]), result)
    settings = {name: result["token"][name] for name in ("role", "name", "dataset", "share")}
    assert settings == {"role": "analyst", "name": "Ann O'Nym", "dataset": "people", "share": "0.25"}
    me = httpx.get(f"{console.address}/v1/me", headers={"Authorization": f"Bearer {result['token']['token']}"})
    assert me.status_code == 401, "the last line revoked it"
    monkeypatch.chdir(console.folder)
    done = CliRunner().invoke(app, shlex.split(command.splitlines()[0])[1:])
    assert done.exit_code == 0, done.output
    assert "Ann O'Nym" in done.output


def test_new_analyst_has_one_data_set_and_a_limit_by_default(console: Console, sign_in: SignIn) -> None:
    tab = sign_in(console, OWNER, "/console/access")
    token = create_token(tab, name="nora").rpartition("#")[2]
    me = httpx.get(f"{console.address}/v1/me", headers={"Authorization": f"Bearer {token}"}).json()
    limit = budget_of(console.datasets[me["dataset"]].policy).ceilings.main.value
    assert 0.2499 * limit < Decimal(me["share"]) <= limit / 4
