"""A Postgres server that stops: one sentence, and after its restart nothing is lost or charged twice."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from ledger.charges import PATIENCE, charge, charges, has_one_sentence, open_ledger, verify_clean
from sqlalchemy import event
from support.people import people_policy

from tidegate.accounting import ZERO, Amount
from tidegate.errors import LedgerUnavailable
from tidegate.ledger import postgres, store

POLICY = people_policy()


@pytest.fixture
def admin(postgres_server: Any) -> Any:
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
        yield connection
        connection.execute("ALTER DATABASE ledgers ALLOW_CONNECTIONS true")


END = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s"


def test_restarted_server_loses_nothing(postgres_url: str, admin: Any) -> None:
    ledger = open_ledger(postgres_url)
    waiting = charge(ledger, POLICY, "charged, not yet recorded", "0.1")
    name = ledger.store.engine.url.database
    admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    assert admin.execute(END, [name]).fetchone()[0] > 0
    for attempt in (lambda: charge(ledger, POLICY, "more", "0.1"), lambda: waiting.record("late"), ledger.head):
        with pytest.raises(LedgerUnavailable) as refused:
            attempt()
        assert has_one_sentence(refused.value)
    admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    assert waiting.record("late") == "late"
    assert charge(ledger, POLICY, "before", "0.1").stored == "stored"
    assert charge(ledger, POLICY, "more", "0.1").cost == Amount.up("0.1")
    assert verify_clean(ledger).spent["people"] == Amount.up("0.3")
    ledger.close()


def test_backend_terminated_while_waiting_charges_nothing(postgres_url: str, admin: Any) -> None:
    ledger, refused = open_ledger(postgres_url), []
    name = ledger.store.engine.url.database

    def ask() -> None:
        try:
            charge(ledger, POLICY, "more", "0.1")
        except LedgerUnavailable as error:
            refused.append(error)

    with psycopg.connect(postgres_url) as holder:
        holder.execute(f"SELECT pg_advisory_xact_lock({postgres.LOCK})")
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        blocked = "SELECT pid FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
        while not (process := admin.execute(blocked, [name]).fetchone()):
            assert thread.is_alive()
        admin.execute("SELECT pg_terminate_backend(%s)", process)
        thread.join(PATIENCE)
    assert [has_one_sentence(error) for error in refused] == [True]
    assert len(charges(ledger)) == 1
    assert charge(ledger, POLICY, "more", "0.1").cost == Amount.up("0.1")
    assert verify_clean(ledger).spent["people"] == Amount.up("0.2")
    ledger.close()


def test_long_lock_is_reported_after_a_timeout(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_ledger(postgres_url)
    monkeypatch.setattr(store, "BUSY_SECONDS", 1)
    with psycopg.connect(postgres_url) as holder:
        holder.execute(
            "SET idle_in_transaction_session_timeout = '10s'"
        )  # a longer wait than announced would get the lock
        holder.execute(f"SELECT pg_advisory_xact_lock({postgres.LOCK})")
        with pytest.raises(LedgerUnavailable, match="locked by another process for more than 1 seconds") as refused:
            charge(ledger, POLICY, "more", "0.1")
    assert has_one_sentence(refused.value)
    assert charge(ledger, POLICY, "more", "0.1").cost == Amount.up("0.1")
    assert verify_clean(ledger).spent["people"] == Amount.up("0.2")
    ledger.close()


@pytest.mark.parametrize("committed", [False, True], ids=["before the commit", "after the commit"])
def test_backend_terminated_at_the_commit_charges_once(postgres_url: str, admin: Any, committed: bool) -> None:
    ledger = open_ledger(postgres_url)

    def end(connection: Any) -> None:
        driver = connection.connection.dbapi_connection
        number = driver.info.backend_pid
        if committed:  # the server has committed, but the client does not learn it
            driver.commit()
            driver.close()
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", [number])

    event.listen(ledger.store.engine, "commit", end, once=True)
    with pytest.raises(LedgerUnavailable):
        charge(ledger, POLICY, "more", "0.1")
    assert len(charges(ledger)) == 1 + committed
    assert charge(ledger, POLICY, "more", "0.1").cost == (ZERO if committed else Amount.up("0.1"))
    assert verify_clean(ledger).spent["people"] == Amount.up("0.2")
    ledger.close()
