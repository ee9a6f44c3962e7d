"""SIGKILL at any moment: what left is charged and stored, what is charged is charged once, the chain holds."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from ledger.charges import PATIENCE, verified
from ledger.children import Child
from ledger.requesters import ask_on, epsilon

from tidegate.accounting import ZERO, Amount
from tidegate.ledger import Entry, Ledger

SEED = int.from_bytes(os.urandom(4)) if os.environ.get("TIDEGATE_SEED") == "fresh" else 20261115


def what_left(out: Path) -> list[dict[str, object]]:
    """The answers that got out of the process before it was killed."""
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def check(url: str, left: list[dict[str, object]]) -> str:
    """All that must hold after a kill. Says how far the request in flight had come."""
    ledger = Ledger(url)
    verdict, payloads = verified(ledger), ledger.payloads()
    charged = _by_request(ledger, "charge")
    answered = _by_request(ledger, "result")
    ledger.close()
    for number, told in enumerate(left):
        charge, result = charged[f"request {number}"], answered[f"request {number}"]
        assert told["number"] == number
        assert told["entry"] == charge.hash
        assert [told["result"]] == json.loads(payloads[result.number])["parts"]
    assert set(charged) in ({f"request {n}" for n in range(len(left))}, {f"request {n}" for n in range(len(left) + 1)})
    prices = [Amount.parse(charged[f"request {number}"].amount) for number in range(len(charged))]
    assert all(ZERO < price <= Amount.up(epsilon(number)) for number, price in enumerate(prices))
    assert verdict.spent.get("people", ZERO) == sum(prices, ZERO)
    return {0: "not charged", 1: "charged", 2: "recorded"}[len(charged) + len(answered) - 2 * len(left)]


def _by_request(ledger: Ledger, kind: str) -> dict[str, Entry]:
    """The entries of a kind by their request; fails where a request or a question has two."""
    found = [entry for entry in ledger.entries("people") if entry.kind == kind]
    assert len({entry.request for entry in found}) == len({entry.question for entry in found}) == len(found)
    return {entry.request: entry for entry in found}


def killed(url: str, out: Path, *, times: int) -> Counter[str]:
    """Start, kill at a random moment, check, start again; each start takes up the request that was in flight."""
    moments, phases, longest = random.Random(SEED), Counter[str](), three_answers(url, out)
    for _ in range(times):
        child = Child(ask_on, url, out, len(what_left(out)))
        assert child.hear() == "ready"
        time.sleep(moments.uniform(0, longest))
        child.kill()
        phases[check(url, what_left(out))] += 1
    print(f"seed {SEED}, kills within {longest:.3f} s: {len(what_left(out))} answers left; in flight: {dict(phases)}")
    return phases


def three_answers(url: str, out: Path) -> float:
    """The seconds that three answers take on this machine: a kill in this span can hit every part of a request."""
    child = Child(ask_on, url, out, 0)
    assert child.hear() == "ready"
    start = time.monotonic()
    while len(what_left(out)) < 3:
        assert time.monotonic() < start + PATIENCE
        time.sleep(0.001)
    child.kill()
    return time.monotonic() - start


def test_12_kills_lose_no_answer_and_charge_no_request_twice(ledger_url: str, tmp_path: Path) -> None:
    assert killed(ledger_url, tmp_path / "left.jsonl", times=12).total() == 12


@pytest.mark.long
def test_200_kills_lose_no_answer_and_charge_no_request_twice(ledger_url: str, tmp_path: Path) -> None:
    phases = killed(ledger_url, tmp_path / "left.jsonl", times=200)
    assert min(phases[phase] for phase in ("not charged", "charged", "recorded")) > 0, "a part was never hit"


def test_a_process_killed_while_it_creates_the_ledger_leaves_one_that_opens(ledger_url: str, tmp_path: Path) -> None:
    moments = random.Random(SEED)
    for _ in range(6):
        child = Child(ask_on, ledger_url, tmp_path / "left.jsonl", len(what_left(tmp_path / "left.jsonl")))
        time.sleep(moments.uniform(0, 0.3))
        child.kill()
    check(ledger_url, what_left(tmp_path / "left.jsonl"))
