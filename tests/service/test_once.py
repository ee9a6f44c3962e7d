"""Idempotency-Key: one effect and one reply for each key, also under concurrent requests, and no secret in the database."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from support.service import SECRET, RunningService, run_service

from tidegate.errors import KeyInUse, KeyReused
from tidegate.ledger import Ledger
from tidegate.ledger.replies import LIFETIME, PATIENCE, Replies
from tidegate.ledger.schema import replies
from tidegate.service.access.permissions import RULES

NEW = {"role": "analyst", "name": "bea", "dataset": "people"}
OWN_MECHANISM = ("/answers", "/syntheses", "/paid-quality")  # the ledger and the jobs record the key
NO_KEY = ("/sign-in", "/sign-out", "/reports", "/collections/{collection}/tokens")  # see docs/reference/http.md
READS = ("/previews", "/quotes", "/derivations", "/status", "/audits", "/check", "/drafts", "/code")


def send(service: RunningService, key: str, body: Any = NEW, path: str = "/v1/tokens", role: str = "owner") -> Any:
    return service.post(path, body, role, headers={"Idempotency-Key": key})


def test_every_post_that_changes_something_takes_a_key() -> None:
    posts = [rule for rule in RULES if rule.method == "POST" and rule.tag not in ("pages", "risk")]
    for rule in posts:
        is_read = rule.path.endswith(READS) and rule.path != "/v1/drafts"
        assert rule.once != (
            is_read or (rule.path.endswith((*OWN_MECHANISM, *NO_KEY)) and rule.path != "/v1/tokens")
        ), rule


def test_repeated_request_gets_the_same_reply_and_has_one_effect(fresh_service: RunningService) -> None:
    first, second = send(fresh_service, "k-1"), send(fresh_service, "k-1")
    assert (first.status_code, second.status_code, second.content) == (201, 201, first.content)
    assert ("idempotency-replayed" in first.headers, second.headers["idempotency-replayed"]) == (False, "true")
    assert [token["name"] for token in fresh_service.get("/v1/tokens").json()["tokens"]].count("bea") == 1
    other = send(fresh_service, "k-1", {**NEW, "name": "eve"})
    assert (other.status_code, other.json()["code"]) == (409, "key-reused")
    assert send(fresh_service, "k-2").json()["id"] != first.json()["id"]


def test_key_belongs_to_the_token(fresh_service: RunningService) -> None:
    fresh_service.tokens["otto"] = send(fresh_service, "a", {"role": "owner", "name": "olga"}).json()["token"]
    first, second = send(fresh_service, "same"), send(fresh_service, "same", role="otto")
    assert first.json()["id"] != second.json()["id"], "another token, even of the same name"


def test_refused_request_frees_its_key(fresh_service: RunningService) -> None:
    body = {"key": f"{SECRET}0003"}
    path = "/v1/data/people/desks/hq/withdrawals"
    assert send(fresh_service, "w", body, path).status_code == 409, "there is no such request yet"
    assert send(fresh_service, "w").status_code == 201
    assert send(fresh_service, "w", body, path).json()["code"] == "key-reused"


@pytest.mark.parametrize("key", ["x" * 101, "a b", "é".encode()])
def test_key_that_cannot_be_stored_is_refused(shared_service: RunningService, key: Any) -> None:
    refused = send(shared_service, key)
    assert (refused.status_code, refused.json()["code"]) == (422, "unsupported")


def test_database_contains_no_secret_and_no_key(fresh_service: RunningService, tmp_path: Path) -> None:
    token = send(fresh_service, "a-random-key").json()["token"]
    with fresh_service.datasets.ledger.store.reading() as connection:
        [row] = connection.execute(select(replies)).all()
    assert token.encode() not in bytes(row.content)
    assert "a-random-key" not in str(tuple(row))


def test_concurrent_requests_have_one_effect(ledger_url: str) -> None:
    with run_service(ledger_url) as service:
        with ThreadPoolExecutor(8) as pool:
            sent = list(pool.map(lambda _: send(service, "together"), range(8)))
        assert {response.status_code for response in sent} <= {201, 409}
        assert len({response.content for response in sent if response.status_code == 201}) == 1
        assert {response.json()["code"] for response in sent if response.status_code == 409} <= {"key-in-use"}
        assert [token["name"] for token in service.get("/v1/tokens").json()["tokens"]].count("bea") == 1


def test_key_of_a_dead_request_is_free_after_a_minute(ledger_url: str) -> None:
    ledger = Ledger(ledger_url)
    stored = Replies(ledger.store)
    assert stored.begin("t", "k", "request") is None
    with pytest.raises(KeyInUse):
        stored.begin("t", "k", "request")
    age(ledger, PATIENCE + 1)
    with pytest.raises(KeyReused):
        stored.begin("t", "k", "another")
    assert stored.begin("t", "k", "request") is None
    stored.finish("t", "k", 201, b"done")
    stored.release("t", "k")
    assert stored.begin("t", "k", "request") == (201, b"done"), "only an unfinished request frees its key"
    age(ledger, LIFETIME + 1)
    assert stored.begin("t", "k", "another") is None
    ledger.close()


def age(ledger: Ledger, seconds: float) -> None:
    with ledger.store.writing() as connection:
        connection.execute(update(replies).values(at=time.time() - seconds))
