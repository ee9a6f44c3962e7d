"""Statements that are sent in groups: few round trips, nothing half committed, and one lock for each ledger."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from ledger.charges import PATIENCE, charge, charges, open_ledger, verify_clean
from sqlalchemy import text
from support.people import people_policy

from tidegate.accounting import Amount
from tidegate.errors import LedgerUnavailable
from tidegate.ledger import Ledger, postgres, store
from tidegate.ledger.statements import Statement, read_all, write

POLICY = people_policy()
ADD = Statement("INSERT INTO tidegate_results (number, payload) VALUES ({0}, {0})")
READ = Statement("SELECT number, payload FROM tidegate_results WHERE number < {0} ORDER BY number")


@pytest.fixture
def ledger(postgres_url: str) -> Any:
    ledger = open_ledger(postgres_url)
    yield ledger
    ledger.close()


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of statements in each group that was sent."""
    sizes: list[int] = []
    exchange = postgres.LedgerConnection._exchange

    def count(connection: Any, before: Any, statements: Any, after: Any) -> Any:
        sizes.append(len(before) + len(statements) + len(after))
        return exchange(connection, before, statements, after)

    monkeypatch.setattr(postgres.LedgerConnection, "_exchange", count)
    return sizes


def test_charge_and_result_take_two_round_trips_each(ledger: Ledger, groups: list[int]) -> None:
    statements: list[str] = []
    execute = psycopg.Cursor.execute
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            psycopg.Cursor, "execute", lambda self, *a, **b: statements.append(a[0]) or execute(self, *a, **b)
        )
        charge(ledger, POLICY, "more", "0.1", request="key").record("result")
    assert groups == [9, 4, 5, 3], "begin, lock and read; write and commit"
    assert statements == [], "nothing is sent outside of a group"


def test_error_in_a_group_commits_nothing(ledger: Ledger) -> None:
    before = ledger.payloads()

    def write_conflict() -> None:
        with ledger.store.writing() as connection:
            for part in ((-1, "a"), (-1, "b"), (-2, "c")):
                write(connection, ADD, part)

    with pytest.raises(LedgerUnavailable):
        write_conflict()
    assert ledger.payloads() == before
    charge(ledger, POLICY, "more", "0.1")
    verify_clean(ledger)


def test_pending_writes_are_visible_to_every_later_statement(ledger: Ledger) -> None:
    with ledger.store.writing() as connection:
        write(connection, ADD, (-2, "a"))
        assert connection.execute(text("SELECT payload FROM tidegate_results WHERE number = -2")).scalar() == "a"
        write(connection, ADD, (-1, "quotes ' \" \\ $1 %s and ünïcode"))
        assert read_all(connection, [(READ, (0,))]) == [[(-2, "a"), (-1, "quotes ' \" \\ $1 %s and ünïcode")]]
        write(connection, Statement("DELETE FROM tidegate_results WHERE number < {0}"), (0,))
    verify_clean(ledger)


def test_rolled_back_writes_are_not_sent_later(ledger: Ledger) -> None:
    def write_and_fail() -> None:
        with ledger.store.writing() as connection:
            write(connection, ADD, (-1, "a"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    charge(ledger, POLICY, "more", "0.1")
    verify_clean(ledger)


def test_zero_byte_is_refused_instead_of_cut_off(ledger: Ledger) -> None:
    with pytest.raises(LedgerUnavailable), ledger.store.writing() as connection:
        write(connection, ADD, (-1, "a\0b"))
    verify_clean(ledger)


def test_statement_whose_preparation_fails_can_be_corrected(ledger: Ledger) -> None:
    """Of two statements that are prepared in one group, only the first exists on the server afterwards."""
    unknown = Statement("SELECT nothing FROM tidegate_results WHERE number = {0}")
    for _ in range(2):
        with pytest.raises(LedgerUnavailable), ledger.store.reading() as connection:
            read_all(connection, [(READ, (0,)), (unknown, (0,))])
    with ledger.store.reading() as connection:
        assert read_all(connection, [(READ, (0,)), (READ, (0,))]) == [[], []]


def test_interrupted_group_closes_its_connection(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(postgres, "_poll", interrupt)
        patch.setattr(postgres.LedgerConnection, "is_alive", lambda self: True)
        with pytest.raises(KeyboardInterrupt):
            charge(ledger, POLICY, "more", "0.1")
    assert len(charges(ledger)) == 1
    assert charge(ledger, POLICY, "more", "0.1").cost == Amount.up("0.1")
    verify_clean(ledger)


def test_large_group_is_sent_and_received_completely(ledger: Ledger) -> None:
    """Both sides would wait for each other if one only sent."""
    parts = [(-number, chr(97 + number % 26) * 300_000) for number in range(40, 0, -1)]
    with ledger.store.writing() as connection:
        for part in parts:
            write(connection, ADD, part)
        [first, second] = read_all(connection, [(READ, (0,)), (READ, (0,))])
        assert first == second == parts
        connection.execute(text("DELETE FROM tidegate_results WHERE number < 0"))
    verify_clean(ledger)


# The lock -----------------------------------------------------------------------------------------------------------


def in_schema(url: str, name: str, *others: str) -> str:
    path = ",".join((name, *others))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")
    return f"{url}&options=-csearch_path%3D{path}"


def test_ledgers_in_two_schemas_do_not_wait_for_each_other(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (open_ledger(in_schema(postgres_url, name)) for name in ("first", "second"))
    monkeypatch.setattr(store, "BUSY_SECONDS", 1)
    with first.store.writing():
        charge(second, POLICY, "more", "0.1")
        with pytest.raises(LedgerUnavailable, match="locked by another process"):
            charge(Ledger(in_schema(postgres_url, "first")), POLICY, "more", "0.1")
        assert first.account("people").spent == Amount.up("0.1"), "readers do not wait"
    for ledger in (first, second):
        verify_clean(ledger)
        ledger.close()


def test_every_address_of_a_ledger_has_the_same_lock(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table decides, not the search path that leads to it."""
    ledger, other = open_ledger(in_schema(postgres_url, "own")), Ledger(in_schema(postgres_url, "empty", "own"))
    monkeypatch.setattr(store, "BUSY_SECONDS", 1)
    with ledger.store.writing(), pytest.raises(LedgerUnavailable, match="locked by another process"):
        charge(other, POLICY, "more", "0.1")
    for opened in (ledger, other):
        opened.close()


def test_concurrent_creation_in_postgres_writes_one_genesis(postgres_url: str) -> None:
    """Creators have no table yet, and so no key of their own: they wait for each other."""
    start, ledgers = threading.Barrier(6), list[Ledger]()

    def create() -> None:
        start.wait()
        ledgers.append(Ledger(postgres_url))

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(ledgers) == 6
    assert sum(ledger.store.created for ledger in ledgers) == 1
    assert len({ledger.head() for ledger in ledgers}) == 1
    for ledger in ledgers:
        ledger.close()


def test_opener_that_waited_for_a_creator_takes_the_lock_of_the_new_table(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_ledger(postgres_url).close()
    seen: list[Any] = []

    def watch(connection: Any, shown: str) -> None:
        own = "FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        seen.extend(connection.execute(text(f"SELECT objid <> 0 {own} ORDER BY 1")).scalars())

    monkeypatch.setattr(store, "_upgrade", watch)
    monkeypatch.setattr(
        postgres, "_LOCK", "SELECT %s, pg_advisory_xact_lock(1953064037, 0)"
    )  # as if there was no table
    Ledger(postgres_url).close()
    assert seen == [False, True]
