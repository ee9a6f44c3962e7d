"""A ledger that is missing, locked, read-only or newer: one sentence, nothing charged, nothing lost."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from ledger.charges import charge, has_one_sentence, open_ledger, verify_clean
from sqlalchemy import text
from support.people import people_policy
from support.shortcuts import full_migrations  # noqa: F401  a fixture

from tidegate.accounting import Amount
from tidegate.errors import LedgerNewer, LedgerUnavailable
from tidegate.ledger import Ledger, explain_entries, store
from tidegate.ledger.schema import metadata

POLICY = people_policy()


# schema -------------------------------------------------------------------------------------------------------------


def test_migrations_create_exactly_the_schema(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    with ledger.store.engine.connect() as connection:
        options = {"version_table": "tidegate_version", "compare_type": True, "compare_server_default": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
    ledger.close()


def test_ledger_of_a_newer_version_is_refused_unchanged(ledger_url: str) -> None:
    ledger = open_ledger(ledger_url)
    with ledger.store.engine.begin() as connection:
        connection.execute(text("UPDATE tidegate_version SET version_num = '9999'"))
    with pytest.raises(LedgerNewer, match="9999"):
        Ledger(ledger_url)
    with pytest.raises(LedgerUnavailable):
        Ledger(ledger_url, read_only=True)
    assert verify_clean(ledger).entries == 3
    ledger.close()


# files --------------------------------------------------------------------------------------------------------------


def test_read_only_file_is_refused_without_waiting(tmp_path: Path) -> None:
    """Only a lock of another process is worth the wait of up to a minute."""
    path, began = tmp_path / "plain.ledger", time.monotonic()
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE other (name TEXT)")
    with pytest.raises(LedgerUnavailable):
        Ledger(f"sqlite:///file:{path}?mode=ro&uri=true")
    assert time.monotonic() - began < store.BUSY_SECONDS / 2


def test_read_only_ledger_can_be_verified_but_not_charged(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    open_ledger(str(path)).close()
    with pytest.raises(LedgerUnavailable, match="read-only") as refused:
        charge(Ledger(f"sqlite:///file:{path}?mode=ro&uri=true"), POLICY, "more", "0.1")
    assert has_one_sentence(refused.value)
    ledger = Ledger(str(path), read_only=True)
    with pytest.raises(LedgerUnavailable, match="read-only"):
        charge(ledger, POLICY, "more", "0.1")
    assert (
        len([sentence for _, sentence in explain_entries(ledger.entries())]) == verify_clean(ledger).entries + 1 == 4
    )  # with entry 0
    ledger.close()


def test_locked_file_is_reported_and_works_again_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "BUSY_SECONDS", 1)
    path = tmp_path / "people.ledger"
    ledger, other = open_ledger(str(path)), sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for attempt in (lambda: charge(ledger, POLICY, "more", "0.1"), lambda: Ledger(str(path))):
        with pytest.raises(LedgerUnavailable, match="has been locked by another process") as refused:
            attempt()
        assert has_one_sentence(refused.value)
    assert ledger.account("people").spent == Amount.up("0.1"), "it can still be read"
    other.execute("ROLLBACK")
    other.close()
    assert charge(ledger, POLICY, "more", "0.1").cost == Amount.up("0.1")
    assert verify_clean(ledger).spent["people"] == Amount.up("0.2")
    ledger.close()


def test_readers_do_not_block_charges_and_charges_reach_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BUSY_SECONDS", 1)
    ledger, other = open_ledger(str(tmp_path / "a.ledger")), Ledger(str(tmp_path / "a.ledger"))
    with other.store.reading() as connection:
        connection.execute(text("SELECT * FROM tidegate_entries")).first()
        assert charge(ledger, POLICY, "more", "0.1").cost == Amount.up("0.1")
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2  # FULL: each commit waits for the disk
    ledger.close()
    other.close()


def test_file_locked_before_it_is_a_ledger_is_reported_after_a_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BUSY_SECONDS", 1)
    path = tmp_path / "people.ledger"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE other (number)")
    other.execute("BEGIN EXCLUSIVE")
    unlock_later = threading.Timer(15, other.execute, ["ROLLBACK"])  # a longer wait than announced would get the file
    unlock_later.start()
    with pytest.raises(LedgerUnavailable, match="has been locked by another process") as refused:
        Ledger(str(path))
    assert has_one_sentence(refused.value)
    unlock_later.cancel()
    other.execute("ROLLBACK")
    other.close()
    with pytest.raises(LedgerUnavailable, match="contains no ledger"):
        Ledger(str(path))


def no_folder(path: Path) -> str:
    return str(path / "nowhere" / "people.ledger")


def a_folder(path: Path) -> str:
    return str(path)


def not_a_database(path: Path) -> str:
    (path / "people.ledger").write_text("a text file, and a long one at that " * 100)
    return str(path / "people.ledger")


def half_a_file(path: Path) -> str:
    open_ledger(str(path / "people.ledger")).close()
    content = (path / "people.ledger").read_bytes()
    (path / "people.ledger").write_bytes(content[: len(content) // 2])
    return str(path / "people.ledger")


UNUSABLE = {
    no_folder: "nowhere does not exist",
    a_folder: "cannot be opened|does not answer",
    not_a_database: "is not a ledger, or its file is damaged",
    half_a_file: "is not a ledger, or its file is damaged",
}


@pytest.mark.parametrize("create", UNUSABLE)
def test_path_without_a_ledger_is_reported_in_has_one_sentence(tmp_path: Path, create: Callable[[Path], str]) -> None:
    url = create(tmp_path)
    for read_only in (False, True):
        with pytest.raises(LedgerUnavailable, match=UNUSABLE[create]) as refused:
            Ledger(url, read_only=read_only)
        assert has_one_sentence(refused.value)


# addresses ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3cret@/people?host=/nowhere",
        "postgresql://ann:s3cret@127.0.0.1:1/people",
        "postgres://ann:s3cret@127.0.0.1:1/people?connect_timeout=1&nonsense=1",
        "postgresql+psycopg2://ann:s3cret@127.0.0.1:1/people",
        "mysql://ann:s3cret@127.0.0.1:1/people",
        "nonsense://ann:s3cret@127.0.0.1:1/people",
        "sqlite://ann:s3cret@somewhere/people",
        "://ann:s3cret@somewhere/people",
        "postgresql://127.0.0.1:1/people?user=ann&password=s3cret",
        "postgresql://127.0.0.1:1/people?sslpassword=s3cret",
        "postgresql://ann:x@s3cret@127.0.0.1:1/people",
        "postgresql://ann:s3cret@127.0.0.1:port/people",
        "postgresql://ann:s3cret/people",
    ],
)
def test_errors_never_contain_the_password(url: str) -> None:
    for read_only in (False, True):
        with pytest.raises(LedgerUnavailable) as refused:
            Ledger(url, read_only=read_only)
        assert has_one_sentence(refused.value)
        written = [str(refused.value), str(refused.value.to_dict()), *error_texts(refused.value)]
        assert not [text for text in written if "s3cret" in text]


def error_texts(error: BaseException | None) -> list[str]:
    """Return the texts of an error and of all its causes."""
    if error is None:
        return []
    return [
        "".join(traceback.format_exception_only(error)),
        *error_texts(error.__cause__),
        *error_texts(error.__context__),
    ]


def test_path_can_contain_any_character(tmp_path) -> None:
    folder = tmp_path / "ann@home #1"
    folder.mkdir()
    Ledger(str(folder / "people.ledger")).close()
    Ledger(str(folder / "people.ledger"), read_only=True).close()
