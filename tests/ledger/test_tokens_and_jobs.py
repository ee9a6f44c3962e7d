"""The service's data in the ledger's database, on both stores."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ledger.charges import at_once

from tidegate.errors import KeyReused
from tidegate.ledger import Ledger
from tidegate.ledger.jobs import DONE, RUNNING, Job, Jobs
from tidegate.ledger.tokens import StoredToken, Tokens, stamp

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def token(name: str, **other: str) -> StoredToken:
    fields = {"salt": "s", "hash": "h", "role": "owner", "name": "ana", "dataset": "", "record": "", "share": ""}
    return StoredToken(**{"id": name, **fields, "made": stamp(NOW), "expires": "", **other})  # type: ignore[arg-type]


def job(name: str, **other: Any) -> Job:
    return Job(
        **{"id": name, "dataset": "people", "who": "ana", "request": name, "wanted": "{}", "made": name, **other}
    )


def test_token_is_found_by_its_id_and_revoked_once(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    tokens = Tokens(ledger.store)
    tokens.add(token("a"))
    assert tokens.find("a") == token("a")
    assert tokens.find("b") is None
    assert tokens.revoke("a")
    assert not tokens.revoke("a"), "it is already revoked"
    assert tokens.all()[0].over(NOW)
    ledger.close()


def test_token_is_invalid_from_the_moment_of_its_expiry() -> None:
    expiring = token("a", expires=stamp(NOW))
    assert expiring.over(NOW)
    assert not expiring.over(NOW - timedelta(milliseconds=1))
    assert not token("a").over(NOW + timedelta(days=10_000))


def test_key_identifies_one_job(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    jobs = Jobs(ledger.store)
    assert jobs.add(job("1", request="key")).id == "1"
    assert jobs.add(job("2", request="key")).id == "1"
    with pytest.raises(KeyReused):
        jobs.add(job("3", request="key", wanted='{"other":1}'))
    ledger.close()


def test_job_belongs_to_one_worker_until_its_heartbeat_stops(ledger_url: str) -> None:
    ledgers = [Ledger(ledger_url) for _ in range(3)]
    Jobs(ledgers[0].store).add(job("1"))
    taken: list[Job] = []

    def work(number: int) -> None:
        next_job = Jobs(ledgers[number].store).take(f"w{number}", datasets=["people"], patience=60)
        taken.extend([next_job] if next_job else [])

    at_once(work, threads=3)
    assert [job.state for job in taken] == [RUNNING]
    jobs = Jobs(ledgers[0].store)
    assert jobs.take("other", datasets=["elsewhere"], patience=-1) is None
    again = jobs.take("later", datasets=["people"], patience=-1)
    assert again is not None
    assert not jobs.tell(taken[0], stage="late"), "the silent worker has lost the job"
    assert jobs.tell(again, state=DONE)
    stored = jobs.find("people", "1")
    assert stored is not None
    assert stored.state == DONE
    for ledger in ledgers:
        ledger.close()
