"""Ledger page: described and filtered entries, verification, escaped names, separate entries per user."""

from __future__ import annotations

import contextlib
import io
import shlex
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from support.console_service import Console
from typer.testing import CliRunner

from tidegate.cli.app import app
from tidegate.ledger import verify_export
from tidegate.ledger.tokens import Tokens
from tidegate.service.access.permissions import ANALYST, OWNER
from tidegate.service.access.tokens import make_token

if TYPE_CHECKING:
    from playwright.sync_api import Page

SignIn = Callable[..., "Page"]
SCRIPT = "<script>alert(1)</script>"


def ask(console: Console, epsilon: str, *, token: str = "", **question: Any) -> None:
    body = {"questions": [question or {"ask": "count"}], "epsilon": epsilon, "anyway": True}
    response = httpx.post(
        f"{console.address}/v1/data/people/answers",
        json=body,
        headers=bearer(token or console.tokens[OWNER]),
        timeout=60,
    )
    assert response.status_code == 200, response.text


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def entries(console: Console, query: str, token: str = "") -> dict[str, Any]:
    response = httpx.get(
        f"{console.address}/v1/ledger/entries?{query}", headers=bearer(token or console.tokens[OWNER]), timeout=60
    )
    assert response.status_code == 200, response.text
    return dict(response.json())


def analyst(console: Console, name: str) -> str:
    return make_token(Tokens(console.datasets.ledger.store), role=ANALYST, name=name, dataset="people")[0]


@pytest.fixture(scope="module")
def shared_console(console: Console) -> Console:
    """A console with some entries of three users."""
    ask(console, "0.01")
    ask(console, "0.02", ask="mean", column="age")
    ask(console, "0.03", token=analyst(console, SCRIPT), ask="max", column="age")
    ask(console, "0.04", token=analyst(console, "ANA"), ask="count", by=["town"])
    return console


def test_entries_have_descriptions_and_stored_script_is_only_a_name(shared_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(shared_console, OWNER, "/console/ledger")
    tab.get_by_text(f"{SCRIPT} queried the highest of age: 0.03 charged").wait_for()
    assert tab.locator("main script").count() == 0
    assert tab.locator("#entries li").first.inner_text().startswith(str(len(entries(shared_console, "")["entries"])))
    tab.goto(f"{shared_console.address}/console/data/people/ask")
    tab.locator("#history").get_by_text(f"{SCRIPT} queried").wait_for()
    assert tab.locator("#history script").count() == 0


@pytest.mark.long
def test_filter_is_in_the_url_and_matches_text_kinds_and_users(shared_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(shared_console, OWNER, "/console/ledger")
    tab.get_by_label("Kind").select_option("charge")
    tab.get_by_label("User", exact=True).fill(SCRIPT)
    tab.get_by_role("button", name="Filter").click()
    tab.wait_for_url("**kind=charge**")
    assert tab.locator("#entries li").count() == 1
    assert tab.get_by_label("User", exact=True).input_value() == SCRIPT
    tab.get_by_label("User", exact=True).fill("")
    tab.get_by_label("Text", exact=True).fill("MEAN of age")
    tab.get_by_role("button", name="Filter").click()
    tab.wait_for_url("**text=MEAN**")
    assert "the mean of age" in tab.locator("#entries li").inner_text()
    tab.get_by_label("Text", exact=True).fill("nobody asked this")
    tab.get_by_role("button", name="Filter").click()
    tab.get_by_text("No matching entries").wait_for()


def test_form_that_is_sent_before_its_script_is_loaded_waits_for_it(shared_console: Console, sign_in: SignIn) -> None:
    tab, scripts = sign_in(shared_console, OWNER, "/console"), list[Any]()
    tab.route("**/static/ledger.js*", lambda route: scripts.append(route))
    with tab.expect_request("**/static/ledger.js*"):
        tab.goto(f"{shared_console.address}/console/ledger", wait_until="commit")
    tab.get_by_role("button", name="Verify all entries").click()
    (script,) = scripts
    script.continue_()
    tab.get_by_text("entries are valid").wait_for()
    assert len(scripts) == 1, "the page was not loaded again"


@pytest.mark.parametrize("newest", ["true", "false"])
def test_pages_of_a_search_list_every_match_once_in_order(shared_console: Console, newest: str) -> None:
    for query in ("", "kind=charge", "text=queried", f"who={SCRIPT}"):
        whole = entries(shared_console, f"{query}&newest={newest}&limit=1000")["entries"]
        pages: list[Any] = []
        cursor: str | None = ""
        while cursor is not None:
            page = entries(shared_console, f"{query}&newest={newest}&limit=2&cursor={cursor}")
            pages, cursor = pages + page["entries"], page["next"]
        assert pages == whole
        assert whole, query


def test_user_names_are_case_sensitive(shared_console: Console) -> None:
    assert [entry["amount"] for entry in entries(shared_console, "who=ANA")["entries"]] == ["0.04"]
    assert entries(shared_console, "who=ana")["entries"] == []
    mine = httpx.get(f"{shared_console.address}/v1/data/people/history", headers=bearer(shared_console.tokens[ANALYST]))
    assert mine.json()["questions"] == [], "ana ran no query, but ANA did"


def test_owner_of_one_data_set_sees_no_other_entries(shared_console: Console) -> None:
    token = make_token(Tokens(shared_console.datasets.ledger.store), role=OWNER, name="otto", dataset="soldiers")[0]
    assert entries(shared_console, "text=age", token)["entries"] == []
    assert entries(shared_console, "who=olga", token)["entries"] == []


def test_ledger_is_verified_with_a_noted_head(shared_console: Console, sign_in: SignIn) -> None:
    tab = sign_in(shared_console, OWNER, "/console/ledger")
    head = tab.locator("#head").inner_text()
    ask(shared_console, "0.05")
    tab.get_by_label("Head that you noted earlier").fill(head)
    tab.get_by_role("button", name="Verify all entries").click()
    tab.locator("#verdict").get_by_text("entries are valid.").wait_for()
    tab.locator("#verdict").get_by_text("The head that you noted is one of them.").wait_for()
    assert tab.locator(".broken").count() == 0
    tab.get_by_label("Head that you noted earlier").fill("0" * 63 + "1")
    tab.get_by_role("button", name="Verify all entries").click()
    tab.locator("#verdict .broken").wait_for()
    tab.locator("#verdict").get_by_text("or the head was copied incorrectly").wait_for()
    assert not any(text.rstrip().endswith("·") for text in tab.locator("#entries li .quiet").all_inner_texts())
    tab.get_by_label("Head that you noted earlier").fill("not a head")
    tab.get_by_role("button", name="Verify all entries").click()
    tab.locator("#verdict").get_by_text("64 hexadecimal digits").wait_for()


def test_changed_entry_is_shown_in_red(fresh_console: Console, sign_in: SignIn) -> None:
    ask(fresh_console, "0.05")
    with contextlib.closing(sqlite3.connect(fresh_console.folder / "all.ledger")) as file:
        triggers = file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            file.execute(f'DROP TRIGGER "{name}"')
        file.execute("UPDATE tidegate_entries SET amount = '0.01' WHERE kind = 'charge'")
        file.commit()
    tab = sign_in(fresh_console, OWNER, "/console/ledger")
    tab.get_by_role("button", name="Verify all entries").click()
    tab.locator("#verdict .broken").get_by_text("The ledger is not valid").wait_for()
    red = tab.locator("#verdict .broken").evaluate("place => getComputedStyle(place).color")
    assert red in ("rgb(179, 38, 30)", "rgb(255, 138, 128)")
    assert tab.locator("#verdict li").count() >= 1


def test_downloaded_export_verifies_elsewhere(shared_console: Console, sign_in: SignIn, tmp_path: Any) -> None:
    tab = sign_in(shared_console, OWNER, "/console/ledger")
    with tab.expect_download() as download:
        tab.get_by_role("link", name="Export the ledger").click()
    download.value.save_as(tmp_path / "ledger.jsonl")
    assert verify_export(tmp_path / "ledger.jsonl").problems == []


def test_code_snippet_reads_verifies_and_exports(shared_console: Console, sign_in: SignIn, monkeypatch: Any) -> None:
    tab = sign_in(shared_console, OWNER, "/console/ledger")
    python, command = (
        tab.locator(f".snippet[data-kind='{kind}'] code").inner_text() for kind in ("Python", "Command line")
    )
    monkeypatch.chdir(shared_console.folder)
    for name in ("people", "soldiers"):  # the policies name no ledger: on the command line it is said
        policy = shared_console.folder / f"{name}.toml"
        policy.write_text(
            policy.read_text("utf-8").replace('unit   = "row"', 'unit   = "row"\nledger = "all.ledger"'), "utf-8"
        )
    result: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(python, result)
    assert "olga queried the number of rows" in said.getvalue()
    for line in command.splitlines():
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
