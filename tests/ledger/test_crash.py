"""SIGKILL at any moment: received answers are charged and stored, each request is charged once, the chain verifies."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from ledger.charges import PATIENCE, verify_clean
from ledger.children import Child
from ledger.requesters import epsilon, send_requests

from tidegate.accounting import ZERO, Amount
from tidegate.ledger import Entry, Ledger

SEED = int.from_bytes(os.urandom(4)) if os.environ.get("TIDEGATE_SEED") == "fresh" else 20261115


def received_answers(out: Path) -> list[dict[str, object]]:
    """Return the answers that the requester received before the kill."""
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def check(url: str, received: list[dict[str, object]]) -> str:
    """Check the ledger after a kill; return how far the request in flight had come."""
    ledger = Ledger(url)
    verdict, payloads = verify_clean(ledger), ledger.payloads()
    charged = _by_request(ledger, "charge")
    answered = _by_request(ledger, "result")
    ledger.close()
    for number, answer in enumerate(received):
        charge, result = charged[f"request {number}"], answered[f"request {number}"]
        assert answer["number"] == number
        assert answer["entry"] == charge.hash
        assert [answer["result"]] == json.loads(payloads[result.number])["parts"]
    assert set(charged) in (
        {f"request {n}" for n in range(len(received))},
        {f"request {n}" for n in range(len(received) + 1)},
    )
    prices = [Amount.parse(charged[f"request {number}"].amount) for number in range(len(charged))]
    assert all(ZERO < price <= Amount.up(epsilon(number)) for number, price in enumerate(prices))
    assert verdict.spent.get("people", ZERO) == sum(prices, ZERO)
    return {0: "not charged", 1: "charged", 2: "recorded"}[len(charged) + len(answered) - 2 * len(received)]


def _by_request(ledger: Ledger, kind: str) -> dict[str, Entry]:
    """Return the entries of a kind by request; fail if a request or a query has two."""
    of_kind = [entry for entry in ledger.entries("people") if entry.kind == kind]
    assert len({entry.request for entry in of_kind}) == len({entry.question for entry in of_kind}) == len(of_kind)
    return {entry.request: entry for entry in of_kind}


def kill_repeatedly(url: str, out: Path, *, times: int) -> Counter[str]:
    """Start, kill at a random moment, check, start again; each start repeats the request that was in flight."""
    moments, phases, longest = random.Random(SEED), Counter[str](), measure_three_answers(url, out)
    for _ in range(times):
        child = Child(send_requests, url, out, len(received_answers(out)))
        assert child.hear() == "ready"
        time.sleep(moments.uniform(0, longest))
        child.kill()
        phases[check(url, received_answers(out))] += 1
    print(
        f"seed {SEED}, kills within {longest:.3f} s: {len(received_answers(out))} answers received; in flight: {dict(phases)}"
    )
    return phases


def measure_three_answers(url: str, out: Path) -> float:
    """Return the seconds that three answers take here: a kill in this span can hit every part of a request."""
    child = Child(send_requests, url, out, 0)
    assert child.hear() == "ready"
    start = time.monotonic()
    while len(received_answers(out)) < 3:
        assert time.monotonic() < start + PATIENCE
        time.sleep(0.001)
    child.kill()
    return time.monotonic() - start


@pytest.mark.parametrize("kills", [4, pytest.param(12, marks=pytest.mark.long)])
def test_kills_lose_no_answer_and_charge_no_request_twice(ledger_url: str, tmp_path: Path, kills: int) -> None:
    assert kill_repeatedly(ledger_url, tmp_path / "received.jsonl", times=kills).total() == kills


@pytest.mark.long
def test_200_kills_lose_no_answer_and_charge_no_request_twice(ledger_url: str, tmp_path: Path) -> None:
    phases = kill_repeatedly(ledger_url, tmp_path / "received.jsonl", times=200)
    assert min(phases[phase] for phase in ("not charged", "charged", "recorded")) > 0, "a phase was never hit"


def test_kill_during_creation_leaves_a_ledger_that_opens(ledger_url: str, tmp_path: Path) -> None:
    moments = random.Random(SEED)
    for _ in range(6):
        child = Child(
            send_requests, ledger_url, tmp_path / "received.jsonl", len(received_answers(tmp_path / "received.jsonl"))
        )
        time.sleep(moments.uniform(0, 0.3))
        child.kill()
    check(ledger_url, received_answers(tmp_path / "received.jsonl"))
