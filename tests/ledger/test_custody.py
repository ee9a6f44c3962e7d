"""A ledger over years: moved between stores, secrets replaced, contents deleted. It still verifies, and nothing is given back."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ledger.charges import charge
from ledger.full_ledger import SOLDIERS, write_everything
from support.people import people_policy

import tidegate as tg
from tidegate.demo import soldiers
from tidegate.errors import LedgerUnavailable, TidegateError
from tidegate.ledger import Ledger, explain_entries
from tidegate.ledger.retention import expire, rotate_secret
from tidegate.ledger.schema import metadata
from tidegate.ledger.tokens import StoredToken, Tokens
from tidegate.ledger.transfer import copy
from tidegate.release.result import Released

POLICY = people_policy()


def rows(url: str) -> dict[str, list[Any]]:
    ledger = Ledger(url, read_only=True)
    with ledger.store.reading() as connection:
        tables = {
            name: sorted(map(repr, connection.execute(table.select()))) for name, table in metadata.tables.items()
        }
    ledger.close()
    return tables


@pytest.mark.long_for("to SQLite")
@pytest.mark.parametrize("direction", ["to Postgres", "to SQLite"])
def test_moved_ledger_has_the_same_rows_and_only_the_new_one_can_be_charged(
    direction: str, tmp_path: Path, postgres_url: str
) -> None:
    path = str(tmp_path / "a.ledger")
    source, target = (path, postgres_url) if direction == "to Postgres" else (postgres_url, path)
    write_everything(source, tmp_path / "reports")
    spent = Ledger(source, read_only=True).account("people")
    copied = copy(source, target)
    before, after = rows(source), rows(target)
    *_, moved = Ledger(source, read_only=True).entries()
    arrived = [entry for entry in Ledger(target, read_only=True).entries() if entry.number > moved.number]
    assert (moved.kind, [entry.kind for entry in arrived]) == ("moved", ["arrival"])
    assert arrived[0].previous == moved.hash
    assert copied.head == arrived[0].hash
    for name in before:
        assert set(before[name]) <= set(after[name]), name
    assert Ledger(target, read_only=True).account("people") == spent
    ledger = Ledger(source)
    with pytest.raises(LedgerUnavailable, match="was moved to another store"):
        charge(ledger, POLICY, "new", "0.01")
    assert ledger.verify().problems == []
    ledger.close()
    ledger = Ledger(target)
    charge(ledger, POLICY, "new", "0.01").record([1])
    assert ledger.verify().problems == []
    assert sum("moved" in text for _, text in explain_entries(ledger.entries())) == 2
    ledger.close()


def test_interrupted_move_is_continued_and_never_leaves_two_ledgers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tidegate.ledger.transfer as module

    source, target = str(tmp_path / "a.ledger"), str(tmp_path / "b.ledger")
    ledger = Ledger(source)
    ledger.open_account(POLICY)
    charge(ledger, POLICY, "a", "0.1").record([1])
    ledger.close()

    def fail(*_: Any) -> None:
        raise LedgerUnavailable("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(module, "copy_rows", fail)
        with pytest.raises(LedgerUnavailable, match="disk is full"):
            copy(source, target)
    for url in (source, target):
        ledger = Ledger(url)
        with pytest.raises(TidegateError):
            charge(ledger, POLICY, "b", "0.1")
        ledger.close()
    with pytest.raises(LedgerUnavailable, match="moved to another store before"):
        copy(source, str(tmp_path / "c.ledger"))
    copy(source, target)
    assert Ledger(target, read_only=True).account("people").spent.value * 10 == 1  # type: ignore[union-attr]
    with pytest.raises(LedgerUnavailable, match="copied to this target before"):
        copy(source, target)


def test_target_with_entries_is_refused_and_the_source_stays_open(tmp_path: Path) -> None:
    for name in ("a", "b"):
        ledger = Ledger(str(tmp_path / name))
        ledger.open_account(POLICY)
        ledger.close()
    with pytest.raises(LedgerUnavailable, match="a ledger with entries"):
        copy(str(tmp_path / "a"), str(tmp_path / "b"))
    ledger = Ledger(str(tmp_path / "a"))
    charge(ledger, POLICY, "a", "0.1")
    ledger.close()


def test_replaced_secret_is_committed_and_revokes_tokens_of_respondents(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "a.ledger"))
    tokens = Tokens(ledger.store)
    before = tokens.secret()
    for name, record in (("r", "hash of a record"), ("a", "")):
        fields = ("salt", "hash", "respondent" if record else "analyst", name, "", record, "", "2026-01-01", "")
        tokens.add(StoredToken(name, *fields))
    assert rotate_secret(ledger) == 1
    assert tokens.secret() != before
    assert {token.id for token in tokens.all() if token.over(datetime.now(UTC))} == {"r"}
    assert ledger.verify().problems == []
    with ledger.store.writing() as connection:
        connection.exec_driver_sql(f"UPDATE tidegate_secrets SET value = '{before.hex()}' WHERE account = '/service'")
    assert "not the one that the entries commit to" in ledger.verify().problems[0]
    ledger.close()


def test_deleted_contents_are_gone_and_the_ledger_verifies(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    write_everything(str(path), tmp_path / "reports")
    ledger = Ledger(str(path), is_witnessed=False)
    with ledger.store.reading() as connection:
        query = "SELECT record FROM tidegate_requests WHERE state IN ('released', 'waiting')"
        records = [record for (record,) in connection.exec_driver_sql(query)]
    assert expire(ledger, date(2020, 1, 1)) == {"deleted": 0, "withdrawn": 0, "diaries": 0}
    with pytest.raises(TidegateError, match="is in the future"):
        expire(ledger, datetime.now(UTC).date() + timedelta(days=2))
    counts = expire(ledger, datetime.now(UTC).date() + timedelta(days=1), user="ann")
    assert counts["deleted"] + counts["withdrawn"] == len(records) > 0
    assert counts["deleted"]
    assert counts["withdrawn"]
    assert ledger.verify().problems == []
    ledger.close()
    content = path.read_bytes()
    assert not [record for record in records if record.encode() in content]
    ledger = Ledger(str(path), is_witnessed=False)
    with ledger.store.writing() as connection:  # what remains is still covered
        connection.exec_driver_sql("UPDATE tidegate_requests SET cells = '0' WHERE state = 'released'")
    assert len(ledger.verify().problems) >= counts["deleted"] - 50
    ledger.close()


def test_expired_record_stays_released_without_its_values(tmp_path: Path) -> None:
    url, names = str(tmp_path / "a.ledger"), random.Random(1).sample(soldiers.records()["name"], 300)
    with tg.open(soldiers.policy(), table=SOLDIERS, ledger=url) as session:
        desk = session.release("headquarters")
        desk.request_many(names)
        released = next(name for name in names if isinstance(desk.status(name), Released))
        expire(session.ledger, datetime.now(UTC).date() + timedelta(days=1))
    with tg.open(soldiers.policy(), table=SOLDIERS, ledger=url) as session:
        before = len(list(session.ledger.entries()))
        desk = session.release("headquarters")
        outcome = desk.request(released)
        assert isinstance(outcome, Released)
        assert set(outcome.record.values()) == {None}
        assert len(desk.released()[0]) > 0
        assert len(list(session.ledger.entries())) == before
        assert session.ledger.verify().problems == []
