"""Cached responses equal new ones: nothing was written to the account since."""

from __future__ import annotations

import json
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.service import RunningService, policy, run_service, table

from tidegate.service.response_cache import MOST_BYTES, ResponseCache, response_cache
from tidegate.session import Session

PREVIEW, ANSWER, DERIVE = (f"/v1/data/people/{name}" for name in ("previews", "answers", "derivations"))
COUNT = {"sql": "SELECT town, COUNT(*) FROM people GROUP BY town", "epsilon": "0.2", "anyway": True}
ROWS = {"sql": "SELECT COUNT(*) FROM people WHERE town = 'Aby'"}


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """Count the calls of a verb of the session."""
    calls: list[Any] = []
    plain = getattr(Session, name)

    def verb(self: Session, *args: Any, **named: Any) -> Any:
        calls.append(args)
        return plain(self, *args, **named)

    monkeypatch.setattr(Session, name, verb)
    return calls


def test_unchanged_response_is_not_computed_again(
    fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_service.post(ANSWER, COUNT)
    previews, answers = count_calls(monkeypatch, "preview"), count_calls(monkeypatch, "answer")
    assert len({fresh_service.post(PREVIEW, COUNT, role).content for role in ("owner", "analyst", "owner")}) == 1
    assert len({fresh_service.post(ANSWER, COUNT, role).content for role in ("owner", "analyst", "owner")}) == 1
    assert (len(previews), len(answers)) == (1, 1)
    fresh_service.post(PREVIEW, {**COUNT, "epsilon": "0.3"})
    assert len(previews) == 2, "another wish is another question"


def test_charge_by_any_process_invalidates_all_responses(fresh_service: RunningService, tmp_path: Path) -> None:
    before = fresh_service.post(PREVIEW, COUNT).json()
    address = fresh_service.datasets["people"].session.ledger_address
    with Session(policy(), table=table(), ledger=address, folder=tmp_path) as elsewhere:
        elsewhere.answer("SELECT AVG(age) FROM people", epsilon="0.5")
    after = fresh_service.post(PREVIEW, COUNT).json()
    assert (before["left"], after["left"]) == ("1000", "999.5")
    assert fresh_service.post(ANSWER, COUNT).json()["left"] == "999.3"
    assert (
        fresh_service.post(ANSWER, COUNT).json()["left"] == fresh_service.post(PREVIEW, COUNT).json()["left"] == "999.3"
    )


def test_charge_is_reported_once(fresh_service: RunningService) -> None:
    costs = [fresh_service.post(ANSWER, COUNT).json()["cost"] for _ in range(4)]
    assert costs == ["0.2", "0", "0", "0"]


def test_concurrent_queries_report_one_charge(fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both read the account before either is charged: the second response must not repeat the charge of the first."""
    both, plain = threading.Barrier(2), ResponseCache._read_head

    def wait_for_both(self: ResponseCache) -> str:
        head = plain(self)
        both.wait(20)
        return head

    fresh_service.get("/v1/data/people")  # which opens the account
    monkeypatch.setattr(ResponseCache, "_read_head", wait_for_both)
    costs: list[str] = []
    asks = [
        threading.Thread(target=lambda: costs.append(fresh_service.post(ANSWER, COUNT).json()["cost"]))
        for _ in range(2)
    ]
    for ask in asks:
        ask.start()
    for ask in asks:
        ask.join(30)
    assert sorted(costs) == ["0", "0.2"]
    assert Fraction(fresh_service.get("/v1/data/people").json()["account"]["spent"]) == Fraction("0.2")


def test_cached_paid_answer_is_detected(fresh_service: RunningService) -> None:
    """The planted fault of the two tests above: a paid answer cached under the entry before its own charge."""
    cache = response_cache(fresh_service.datasets["people"])
    fresh_service.get("/v1/data/people")
    head = cache._read_head()
    assert cache.response("q", lambda: {"cost": "0.2"}).body == b'{"cost":"0.2"}'
    assert cache._read_head() == head
    assert cache.response("q", lambda: {"cost": "0"}).body == b'{"cost":"0.2"}'
    assert cache.response("p", lambda: {"cost": "0.2"}, charges=True).body == b'{"cost":"0.2"}'
    assert cache.response("p", lambda: {"cost": "0"}, charges=True).body == b'{"cost":"0"}'


def test_key_is_recorded_although_the_answer_is_cached(fresh_service: RunningService) -> None:
    fresh_service.post(ANSWER, COUNT)
    fresh_service.post(ANSWER, COUNT)
    key = {"Idempotency-Key": "k"}
    assert fresh_service.post(ANSWER, COUNT, headers=key).json()["cost"] == "0"
    assert fresh_service.post(ANSWER, {**COUNT, "epsilon": "0.3"}, headers=key).json()["code"] == "key-reused"


def test_refusals_are_not_cached_and_shares_are_checked(tmp_path: Path) -> None:
    with run_service(str(tmp_path / "all.ledger"), share="0.2") as service:
        assert service.post(ANSWER, COUNT, "analyst").status_code == 200
        assert service.post(ANSWER, {**COUNT, "epsilon": "0.1"}, "owner").status_code == 200
        assert service.post(ANSWER, {**COUNT, "epsilon": "0.1"}, "analyst").json()["cost"] == "0", "it is public now"
        for _ in range(2):
            assert service.post(ANSWER, {**COUNT, "epsilon": "0.01"}, "analyst").status_code == 409


def test_lone_surrogates_are_refused(fresh_service: RunningService) -> None:
    for path in (PREVIEW, ANSWER, DERIVE):
        wish = {} if path == DERIVE else {"epsilon": 1}
        for where in ({"compare": ["town", "=", "\ud800"]}, {"compare": ["\ud800", "=", 1]}):
            body = {"questions": [{"ask": "count", "where": where}], **wish}
            response = fresh_service.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
            assert (response.status_code, response.json()["code"]) == (422, "unsupported"), response.text


def test_cache_size_is_limited(fresh_service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = response_cache(fresh_service.datasets["people"])
    fresh_service.get("/v1/data/people")
    monkeypatch.setattr("tidegate.service.response_cache.MOST_BYTES", 100)
    for number in range(50):
        cache.response(f"question {number}", lambda: {"text": "x" * 20})
        assert sum(len(request) + len(content) for request, content in cache._cached.items()) <= 100
    assert MOST_BYTES > 100


def test_derivations_are_free_and_null_if_there_is_none(fresh_service: RunningService) -> None:
    (content,) = fresh_service.post(DERIVE, ROWS, "analyst").json()["derivations"]
    assert content["derived"] is None
    body_values = fresh_service.post(ANSWER, COUNT).json()
    (content,) = fresh_service.post(DERIVE, ROWS, "analyst").json()["derivations"]
    derived = content["derived"]
    assert derived["values"] == next(row["count"] for row in body_values["rows"] if row["town"] == "Aby")
    assert (derived["cost"], derived["low"] <= derived["values"] <= derived["high"]) == ("0", True)
    assert fresh_service.get("/v1/data/people").json()["account"]["spent"] == "0.2"
    several = {"questions": [{"ask": "count", "by": ["town"]}, {"ask": "mean", "column": "age"}]}
    both = fresh_service.post(DERIVE, several).json()["derivations"]
    assert [item["derived"] is None for item in both] == [False, True]
    assert fresh_service.post(DERIVE, {"sql": "SELECT AVG(salary) FROM people"}).status_code == 422
    assert fresh_service.post(DERIVE, {**ROWS, "epsilon": 1}).status_code == 422
