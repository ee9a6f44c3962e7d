"""Limits of requests and of wrong tokens: they never lock out a valid token, and processes share them on Postgres."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ledger.charges import at_once
from sqlalchemy import event, text
from starlette.testclient import TestClient
from support.service import RunningService, quiet_settings, run_service

from tidegate.errors import TooOften
from tidegate.ledger.rate_limits import SharedLimit
from tidegate.ledger.tokens import Tokens
from tidegate.service.access import tokens as slow
from tidegate.service.access.permissions import ANALYST, OWNER, RESPONDENT
from tidegate.service.access.rate_limits import Buckets, SharedBuckets


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def guess(service: RunningService, number: int, *, address: str = "testclient") -> int:
    """Return the status of a request with a wrong token."""
    client = TestClient(service.app, base_url="http://127.0.0.1", client=(address, 50_000))
    return int(client.get("/v1/me", headers=bearer(f"tg_{number:016x}_{'a' * 43}")).status_code)


# Limits


def test_bucket_allows_its_burst_and_then_its_rate() -> None:
    now = [0.0]
    bucket = Buckets(2, 3, clock=lambda: now[0])
    for _ in range(3):
        bucket.take("a")
    with pytest.raises(TooOften) as refused:
        bucket.take("a")
    assert refused.value.facts == {"seconds": 1}
    bucket.take("b")
    now[0] = 0.5
    bucket.take("a")
    assert not bucket.has("a")
    assert bucket.has("b")


def test_number_of_buckets_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.service.access.rate_limits.MOST_NAMES", 50)
    now = [0.0]
    bucket = Buckets(1, 2, clock=lambda: now[0])
    for number in range(1000):
        now[0] += 0.1
        bucket.take(f"{number}")
    assert len(bucket._levels) <= 52


def test_rate_limit_reports_when_to_retry(tmp_path: Path) -> None:
    settings = quiet_settings(caller_rate=0.001, caller_burst=3, address_rate=0.001, address_burst=2)
    with run_service(str(tmp_path / "all.ledger"), settings=settings) as service:
        assert [service.get("/v1/me", ANALYST).status_code for _ in range(4)] == [200, 200, 200, 429]
        assert service.get("/v1/me", OWNER).status_code == 200, "each token has its own"
        statuses = [service.client.get("/health").status_code for _ in range(3)]
        assert statuses == [200, 200, 429]
        again = service.client.get("/health")
        assert (again.json()["code"], int(again.headers["retry-after"]) > 1) == ("too-often", True)


def test_guesses_are_limited_before_the_slow_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with run_service(str(tmp_path / "all.ledger"), settings=quiet_settings(wrong_rate=0.001, wrong_burst=5)) as service:
        service.get("/v1/me", OWNER)
        done: list[int] = []
        true = slow.hash_secret
        monkeypatch.setattr(slow, "hash_secret", lambda *arguments, **cost: done.append(1) or true(*arguments, **cost))  # type: ignore[func-returns-value]
        guesses = [service.client.get("/v1/me", headers=bearer(f"tg_{n:016x}_{'a' * 43}")) for n in range(20)]
        assert [guess.status_code for guess in guesses] == [401] * 5 + [429] * 15
        assert len(done) == 5
        assert service.get("/v1/me", OWNER).status_code == 200, "a known caller is not locked out"


def test_invalid_tokens_never_lock_out_a_valid_one_from_the_same_address(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger"), settings=quiet_settings(wrong_rate=0.001, wrong_burst=5)) as service:
        for number in range(8):
            service.client.get("/v1/me", headers=bearer(f"tg_{number:016x}_{'a' * 43}"))
        assert service.get("/v1/me", ANALYST).status_code == 200, "a token that this process never saw before"
        signed = service.client.post("/v1/sign-in", json={"token": service.tokens[OWNER]})
        assert signed.status_code == 200, signed.text
        service.client.cookies.clear()
        known_id = service.tokens[RESPONDENT][:-1] + ("a" if service.tokens[RESPONDENT][-1] != "a" else "b")
        for wrong in (known_id, f"tg_{1:016x}_{'a' * 43}", "letmein"):
            assert service.client.get("/v1/me", headers=bearer(wrong)).status_code == 429, "wrong ones stay slowed down"
        assert service.get("/v1/me", RESPONDENT).status_code == 200


def test_revoked_token_is_not_hashed_for_a_slowed_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with run_service(str(tmp_path / "all.ledger"), settings=quiet_settings(wrong_rate=0.001, wrong_burst=2)) as service:
        Tokens(service.datasets.ledger.store).revoke(service.tokens[ANALYST][3:19])
        done: list[int] = []
        true = slow.hash_secret
        monkeypatch.setattr(slow, "hash_secret", lambda *arguments, **cost: done.append(1) or true(*arguments, **cost))  # type: ignore[func-returns-value]
        statuses = [service.get("/v1/me", ANALYST).status_code for _ in range(6)]
        assert (statuses, len(done)) == ([401, 401, 429, 429, 429, 429], 2)


def test_at_most_two_guesses_are_hashed_at_a_time(
    fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work, most, true = [0], [0], slow.hash_secret

    def count_call(*arguments: Any, **cost: Any) -> str:
        at_work[0] += 1
        most[0] = max(most[0], at_work[0])
        time.sleep(0.05)
        at_work[0] -= 1
        return true(*arguments, **cost)

    monkeypatch.setattr(slow, "hash_secret", count_call)
    wrong = bearer("tg_" + "0" * 16 + "_" + "a" * 43)
    at_once(lambda worker: fresh_service.client.get("/v1/me", headers=wrong), threads=8)
    assert most == [2]


def test_unknown_tokens_do_not_delay_a_valid_one(
    fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guesses from many addresses fill the queue of slow hashes; a token with a known id does not wait in it."""
    true, ended, started = slow.hash_secret, threading.Event(), threading.Semaphore(0)

    def wait_for_guesses(secret: str, salt: str, **cost: Any) -> str:
        if salt == slow.NO_TOKEN.salt:
            started.release()
            assert ended.wait(30)
        return true(secret, salt, **cost)

    monkeypatch.setattr(slow, "hash_secret", wait_for_guesses)
    wrong = bearer("tg_" + "0" * 16 + "_" + "a" * 43)
    threads = [threading.Thread(target=lambda: fresh_service.client.get("/v1/me", headers=wrong)) for _ in range(6)]
    for thread in threads:
        thread.start()
    started.acquire(timeout=30)
    try:
        assert fresh_service.get("/v1/me", ANALYST).status_code == 200
    finally:
        ended.set()
        for thread in threads:
            thread.join(30)


def test_addresses_of_one_ipv6_network_share_the_limit_of_wrong_tokens(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger"), settings=quiet_settings(wrong_rate=0.001, wrong_burst=3)) as service:
        statuses = [guess(service, n, address=f"2001:db8:0:1::{n + 1:x}") for n in range(5)]
        assert statuses == [401, 401, 401, 429, 429]
        assert guess(service, 9, address="2001:db8:0:2::1") == 401
        statuses = [guess(service, n, address=f"192.0.2.{n + 1}") for n in range(5)]
        assert statuses == [401] * 5, "an IPv4 address is one host"


def test_most_limited_names_are_remembered_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.service.access.rate_limits.MOST_NAMES", 50)
    bucket = Buckets(0.001, 3, clock=lambda: 0.0)
    for _ in range(3):
        bucket.take("guesser")
    for number in range(1_000):
        bucket.take(f"{number}")
    assert len(bucket._levels) <= 52
    assert not bucket.has("guesser"), "many other names do not set it free"


# Shared by all processes


@pytest.fixture
def two_services(postgres_url: str) -> Iterator[tuple[RunningService, RunningService]]:
    """Two services over one Postgres ledger, as two processes would run them, with small limits."""
    settings = quiet_settings(wrong_rate=0.001, wrong_burst=6, caller_rate=0.001, caller_burst=32)
    with (
        run_service(postgres_url, settings=settings) as first,
        run_service(postgres_url, settings=settings) as second,
    ):
        second.tokens.update(first.tokens)
        yield first, second


def statements_of(service: RunningService) -> list[str]:
    """Return a list that receives every statement about limits that a service sends from now on."""
    statements: list[str] = []

    def remember(connection: Any, cursor: Any, statement: str, *others: Any) -> None:
        if "tidegate_limits" in statement:
            statements.append(statement)

    event.listen(service.datasets.ledger.store.engine, "before_cursor_execute", remember)
    return statements


def test_processes_share_the_limit_of_wrong_tokens(two_services: tuple[RunningService, RunningService]) -> None:
    statuses = [guess(two_services[number % 2], number) for number in range(12)]
    assert statuses == [401] * 6 + [429] * 6
    for service in two_services:
        assert service.get("/v1/me", ANALYST).status_code == 200, "a valid token is never locked out"


def test_processes_share_the_limit_of_a_token(two_services: tuple[RunningService, RunningService]) -> None:
    statuses = [two_services[number % 2].get("/v1/me", ANALYST).status_code for number in range(40)]
    assert (statuses.count(200), statuses.count(429)) == (32, 8), "exactly the burst, by both together"
    assert two_services[0].get("/v1/me", OWNER).status_code == 200, "each token has its own"


def test_most_requests_read_no_shared_limit(two_services: tuple[RunningService, RunningService]) -> None:
    service = two_services[0]
    service.get("/v1/me", ANALYST)
    statements = statements_of(service)
    assert [service.get("/v1/me", ANALYST).status_code for _ in range(31)] == [200] * 31
    assert len(statements) == 15, "two at a time: a sixteenth of the burst"
    del statements[:]
    assert [service.get("/v1/me", ANALYST).status_code for _ in range(10)] == [429] * 10
    assert len(statements) == 1, "and a refused token is remembered"


def test_database_stores_no_name_of_a_limit(
    two_services: tuple[RunningService, RunningService], postgres_url: str
) -> None:
    service = two_services[0]
    guess(service, 1, address="192.0.2.7")
    service.get("/v1/me", ANALYST)
    service.client.get("/health")
    with service.datasets.ledger.store.reading() as connection:
        names = list(connection.execute(text("SELECT name FROM tidegate_limits")).scalars())
        persistence = connection.execute(
            text("SELECT relpersistence FROM pg_class WHERE relname = 'tidegate_limits'")
        ).scalar()
    assert sorted(name.partition(" ")[0] for name in names) == ["token", "wrong"], "no address without a wrong token"
    assert not any("192.0.2.7" in name or service.tokens[ANALYST][3:19] in name for name in names)
    assert persistence == "u", "the table is not in the database's log"


def test_full_buckets_are_deleted(two_services: tuple[RunningService, RunningService]) -> None:
    store = two_services[0].datasets.ledger.store
    limit = SharedLimit(store, b"secret", "fast", rate=1e6, burst=5)
    other = SharedLimit(store, b"secret", "slow", rate=1e-6, burst=5)
    for shared in (limit, other):
        assert shared.take("a", 3).requests == 3
    time.sleep(0.01)
    limit.forget_full()
    assert (limit.level("a"), other.level("a") < 3) == (5, True)
    with store.reading() as connection:
        names = list(connection.execute(text("SELECT name FROM tidegate_limits")).scalars())
    assert [name.partition(" ")[0] for name in names] == ["slow"]


def test_lease_ends_when_its_bucket_is_full_again(two_services: tuple[RunningService, RunningService]) -> None:
    now = [0.0]
    limit = SharedLimit(two_services[0].datasets.ledger.store, b"secret", "lease", rate=4, burst=8)
    bucket = SharedBuckets(limit, 4, 8, lease=4)
    bucket._clock = lambda: now[0]
    bucket.take("a")
    assert bucket.take_at_once("a")
    now[0] = 2.1
    assert not bucket.take_at_once("a"), "unused requests are not saved up"


def test_processes_that_share_a_file_have_limits_of_their_own(fresh_service: RunningService) -> None:
    assert type(fresh_service.app.state.guard._by_caller) is Buckets
