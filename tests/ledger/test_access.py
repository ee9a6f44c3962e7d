"""Access in the ledger: every change of a token, every link and every sign-in has an entry, on both stores."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ledger.charges import at_once, charge
from ledger.test_tokens_and_jobs import token
from sqlalchemy import text
from support.people import people_policy

from tidegate.ledger import Ledger, explain_entries, export_lines
from tidegate.ledger.backup import verify_export
from tidegate.ledger.retention import rotate_secret
from tidegate.ledger.sessions import Sessions, StoredSession
from tidegate.ledger.tokens import Tokens, stamp


def session(name: str, *, minutes: float = 60, **other: str) -> StoredSession:
    now = datetime.now(UTC)
    times = {"started": stamp(now), "seen": stamp(now), "expires": stamp(now + timedelta(minutes=minutes))}
    return StoredSession(**{"id": name, "token": "a", "method": "token", **times, **other})


def sentences(ledger: Ledger) -> list[str]:
    return [says for entry, says in explain_entries(ledger.entries()) if entry.kind == "access"]


@pytest.fixture
def ledger(ledger_url: str) -> Any:
    opened = Ledger(ledger_url)
    Tokens(opened.store).add(token("a", maker="olga"))
    yield opened
    opened.close()


def test_changes_of_tokens_are_entries_with_the_name_of_the_maker(ledger: Ledger, tmp_path: Path) -> None:
    tokens = Tokens(ledger.store)
    long_share = "0.500000000000000000000000000001"
    tokens.change(token("a", role="analyst", dataset="people,shop", share=long_share, maker="olga"), user="oskar")
    assert tokens.revoke("a", user="otto")
    assert not tokens.revoke("a", user="otto"), "it is already revoked"
    assert sentences(ledger) == [
        "olga created the access a of ana (owner of all data sets).",
        "oskar changed the access a of ana (analyst of people,shop), with the budget share 0.5.",
        "otto revoked the access a of ana (analyst of people,shop), with the budget share 0.5.",
    ]
    assert ledger.verify().problems == []
    export = tmp_path / "ledger.jsonl"
    export.write_text("".join(f"{line}\n" for line in export_lines(ledger)))
    assert verify_export(export).holds


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE tidegate_tokens SET role = 'analyst'", "The token a was changed outside of Tidegate."),
        ("UPDATE tidegate_tokens SET identity = 'me'", "The token a was changed outside of Tidegate."),
        ("UPDATE tidegate_tokens SET id = 'b'", "The token a was deleted outside of Tidegate."),
        ("UPDATE tidegate_tokens SET revoked = ''", "The token a was changed outside of Tidegate."),
        ("DELETE FROM tidegate_tokens", "The token a was deleted outside of Tidegate."),
    ],
)
def test_token_that_was_changed_behind_the_ledger_is_reported(ledger: Ledger, change: str, problem: str) -> None:
    Tokens(ledger.store).revoke("a")
    with ledger.store.engine.begin() as forger:
        forger.execute(text(change))
    assert problem in ledger.verify().problems


def test_rotation_of_the_secret_revokes_respondents_in_the_entries_too(ledger: Ledger) -> None:
    Tokens(ledger.store).add(token("r", role="respondent", record="hash"))
    assert rotate_secret(ledger) == 1
    assert ledger.verify().problems == []


def test_access_entries_do_not_change_accounts(ledger: Ledger) -> None:
    policy = people_policy()
    ledger.open_account(policy)
    charge(ledger, policy, "a", "0.1")
    before = ledger.account("people")
    Sessions(ledger.store).start(session("s"), user="ana")
    assert ledger.account("people") == before
    receipt = charge(ledger, policy, "b", "0.2")
    assert str(receipt.account.spent) == "0.3"
    assert ledger.verify().problems == []


def test_session_ends_by_expiry_lapse_or_sign_out(ledger: Ledger) -> None:
    sessions, past = Sessions(ledger.store), stamp(datetime.now(UTC) - timedelta(seconds=1))
    sessions.start(session("open"), user="ana")
    sessions.start(session("lapsed", lapse=past), user="ana")
    sessions.start(session("expired", minutes=-1), user="ana")
    assert sessions.find("open")
    assert sessions.find("lapsed") is None
    assert sessions.find("expired") is None
    assert [listed.id for listed, _ in sessions.all()] == ["open"]
    assert sessions.end("open", user="olga")
    assert sessions.find("open") is None
    assert not sessions.end("open")
    assert sentences(ledger)[-1] == "olga ended a session of ana."


def test_time_of_a_session_only_rises(ledger: Ledger) -> None:
    sessions, now = Sessions(ledger.store), datetime.now(UTC)
    sessions.start(session("s"), user="ana")
    later = now + timedelta(minutes=5)
    sessions.see({"s": later})
    sessions.see({"s": now})
    stored = sessions.find("s")
    assert stored is not None
    assert stored.seen == stamp(later)


def test_one_process_renews_a_session(ledger_url: str) -> None:
    ledgers = [Ledger(ledger_url) for _ in range(3)]
    due = session("s", renew=stamp(datetime.now(UTC)))
    Sessions(ledgers[0].store).start(due, user="ana")
    claims: list[bool] = []
    until = datetime.now(UTC) + timedelta(minutes=15)
    at_once(lambda number: claims.append(Sessions(ledgers[number].store).claim_renewal(due, until=until)), threads=3)
    assert sorted(claims) == [False, False, True]
    for opened in ledgers:
        opened.close()


def test_link_starts_one_session_however_often_it_is_used(ledger: Ledger, ledger_url: str) -> None:
    ledgers = [Ledger(ledger_url) for _ in range(4)]
    soon = datetime.now(UTC) + timedelta(minutes=15)
    ana = Tokens(ledger.store).find("a")
    assert ana is not None
    for attempt in range(5):
        Sessions(ledger.store).add_link("l", token=ana, expires=soon, user="olga")
        results: list[Any] = []

        def use(number: int, results: list[Any] = results, attempt: int = attempt) -> None:
            own = session(f"{attempt}/{number}", token="", method="link")
            results.append(Sessions(ledgers[number].store).use_link("l", own))

        at_once(use, threads=4)
        assert [result.name for result in results if result] == ["ana"]
        assert sum(name.id.startswith(f"{attempt}/") for name, _ in Sessions(ledger.store).all()) == 1
    assert sentences(ledger)[-2:] == [
        "olga created a one-time sign-in link for ana (access a).",
        "ana signed in with a one-time link.",
    ]
    for opened in ledgers:
        opened.close()


def test_expired_link_and_link_of_a_revoked_token_are_refused(ledger: Ledger) -> None:
    sessions, now = Sessions(ledger.store), datetime.now(UTC)
    ana = Tokens(ledger.store).find("a")
    assert ana is not None
    sessions.add_link("late", token=ana, expires=now - timedelta(seconds=1), user="olga")
    assert sessions.use_link("late", session("s")) is None
    sessions.add_link("l", token=ana, expires=now + timedelta(minutes=15), user="olga")
    Tokens(ledger.store).revoke("a")
    assert sessions.use_link("l", session("s")) is None
    assert sessions.all() == []


def test_refusals_are_one_entry_with_totals(ledger: Ledger) -> None:
    since = datetime(2026, 11, 18, 4, tzinfo=UTC)
    Tokens(ledger.store).note_refusals({"token": 1200, "permission": 2}, since=since, networks=3, names=["ana"])
    assert sentences(ledger)[-1] == (
        "Access was refused since 2026-11-18T04:00:00: 2 requests without permission, 1,200 invalid tokens, "
        "from 3 networks. Users: ana."
    )
    assert ledger.verify().problems == []


def test_access_entry_with_an_unknown_action_is_reported(ledger: Ledger) -> None:
    from tidegate.ledger.chain import NOTHING, append
    from tidegate.ledger.queries import last

    with ledger.store.writing() as connection:
        body = '{"action":"granted","who":"eve"}'
        append(connection, last(connection), kind="access", request="x", body=body, **NOTHING)
    assert ledger.verify().problems == ["Entry 2: it cannot be read (KeyError)."]
