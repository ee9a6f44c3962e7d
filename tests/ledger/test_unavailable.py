"""A ledger that is away, locked, read-only or from the future: one sentence, nothing charged, nothing lost."""

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
from ledger.charges import charge, one_sentence, opened, verified
from sqlalchemy import text
from support.people import people_policy

from tidegate.accounting import Amount
from tidegate.errors import LedgerNewer, LedgerUnavailable
from tidegate.ledger import Ledger, explain_entries
from tidegate.ledger import store as storing
from tidegate.ledger.schema import metadata

POLICY = people_policy()


# schema -------------------------------------------------------------------------------------------------------------


def test_migrations_make_exactly_the_schema(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    with ledger.store.engine.connect() as connection:
        options = {"version_table": "tidegate_version", "compare_type": True, "compare_server_default": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
    ledger.close()


def test_a_ledger_of_a_newer_version_is_refused_and_left_alone(ledger_url: str) -> None:
    ledger = opened(ledger_url)
    with ledger.store.engine.begin() as connection:
        connection.execute(text("UPDATE tidegate_version SET version_num = '9999'"))
    with pytest.raises(LedgerNewer, match="9999"):
        Ledger(ledger_url)
    with pytest.raises(LedgerUnavailable):
        Ledger(ledger_url, read_only=True)
    assert verified(ledger).entries == 3
    ledger.close()


# files --------------------------------------------------------------------------------------------------------------


def test_a_file_that_can_never_be_written_is_not_waited_for(tmp_path: Path) -> None:
    """Only another process at work is: the pause until then is as long as a minute."""
    path, began = tmp_path / "plain.ledger", time.monotonic()
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE other (name TEXT)")
    with pytest.raises(LedgerUnavailable):
        Ledger(f"sqlite:///file:{path}?mode=ro&uri=true")
    assert time.monotonic() - began < storing.BUSY_SECONDS / 2


def test_a_read_only_ledger_cannot_be_charged_but_shown_and_verified(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    opened(str(path)).close()
    with pytest.raises(LedgerUnavailable, match="read-only") as refused:
        charge(Ledger(f"sqlite:///file:{path}?mode=ro&uri=true"), POLICY, "more", "0.1")
    assert one_sentence(refused.value)
    ledger = Ledger(str(path), read_only=True)
    with pytest.raises(LedgerUnavailable, match="read-only"):
        charge(ledger, POLICY, "more", "0.1")
    assert (
        len([sentence for _, sentence in explain_entries(ledger.entries())]) == verified(ledger).entries + 1 == 4
    )  # and entry 0
    ledger.close()


def test_a_locked_file_is_told_in_one_sentence_and_works_again_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "BUSY_SECONDS", 1)
    path = tmp_path / "people.ledger"
    ledger, other = opened(str(path)), sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for attempt in (lambda: charge(ledger, POLICY, "more", "0.1"), lambda: Ledger(str(path))):
        with pytest.raises(LedgerUnavailable, match="has been locked by another process") as refused:
            attempt()
        assert one_sentence(refused.value)
    assert ledger.account("people").spent == Amount.up("0.1"), "it can still be read"
    other.execute("ROLLBACK")
    other.close()
    assert charge(ledger, POLICY, "more", "0.1").cost == Amount.up("0.1")
    assert verified(ledger).spent["people"] == Amount.up("0.2")
    ledger.close()


def test_who_reads_does_not_hold_up_who_is_charged_and_a_charge_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "BUSY_SECONDS", 1)
    ledger, other = opened(str(tmp_path / "a.ledger")), Ledger(str(tmp_path / "a.ledger"))
    with other.store.reading() as connection:
        connection.execute(text("SELECT * FROM tidegate_entries")).first()
        assert charge(ledger, POLICY, "more", "0.1").cost == Amount.up("0.1")
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2  # FULL: each commit waits for the disk
    ledger.close()
    other.close()


def test_a_file_that_another_process_holds_before_it_is_a_ledger_is_waited_for_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "BUSY_SECONDS", 1)
    path = tmp_path / "people.ledger"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE held (number)")
    other.execute("BEGIN EXCLUSIVE")
    lets_go = threading.Timer(15, other.execute, ["ROLLBACK"])  # who waits longer than said gets the file
    lets_go.start()
    with pytest.raises(LedgerUnavailable, match="has been locked by another process") as refused:
        Ledger(str(path))
    assert one_sentence(refused.value)
    lets_go.cancel()
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
    opened(str(path / "people.ledger")).close()
    content = (path / "people.ledger").read_bytes()
    (path / "people.ledger").write_bytes(content[: len(content) // 2])
    return str(path / "people.ledger")


PLACES = {
    no_folder: "nowhere does not exist",
    a_folder: "cannot be opened|does not answer",
    not_a_database: "is not a ledger, or its file is damaged",
    half_a_file: "is not a ledger, or its file is damaged",
}


@pytest.mark.parametrize("make", PLACES)
def test_a_place_that_holds_no_ledger_is_told_in_one_sentence(tmp_path: Path, make: Callable[[Path], str]) -> None:
    url = make(tmp_path)
    for read_only in (False, True):
        with pytest.raises(LedgerUnavailable, match=PLACES[make]) as refused:
            Ledger(url, read_only=read_only)
        assert one_sentence(refused.value)


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
def test_an_error_never_holds_the_password(url: str) -> None:
    for read_only in (False, True):
        with pytest.raises(LedgerUnavailable) as refused:
            Ledger(url, read_only=read_only)
        assert one_sentence(refused.value)
        written = [str(refused.value), str(refused.value.to_dict()), *causes(refused.value)]
        assert not [text for text in written if "s3cret" in text]


def causes(error: BaseException | None) -> list[str]:
    """The texts of an error and of all that it carries along."""
    if error is None:
        return []
    return ["".join(traceback.format_exception_only(error)), *causes(error.__cause__), *causes(error.__context__)]


def test_a_path_may_hold_any_sign(tmp_path) -> None:
    folder = tmp_path / "ann@home #1"
    folder.mkdir()
    Ledger(str(folder / "people.ledger")).close()
    Ledger(str(folder / "people.ledger"), read_only=True).close()
