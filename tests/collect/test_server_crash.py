"""SIGKILL at any moment: what was told is counted, what is counted is counted once, and the record holds."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from collect.report_processes import held, lines, submit_on
from collect.surveys import opened
from ledger.charges import PATIENCE
from ledger.children import Child

SEED = int.from_bytes(os.urandom(4)) if os.environ.get("TIDEGATE_SEED") == "fresh" else 20261117


def check(url: str, place: Path, out: Path) -> str:
    """All that must hold after a kill. Says how far the batch in flight had come."""
    told = list(lines(out))
    session, survey = opened(url, place)
    entries = [entry for entry in session.ledger.entries() if entry.kind == "reports"]
    assert [entry.request for entry in entries] == [f"batch {number}" for number in range(len(entries))]
    assert [line["entry"] for line in told] == [entry.hash for entry in entries[: len(told)]], "told, but not there"
    assert [line["accepted"] for line in told] == [entry.content()["accepted"] for entry in entries[: len(told)]]
    assert len(entries) - len(told) in (0, 1)
    held(session, survey, 0, len(entries) - 1)
    written = len(list(place.rglob("*.parquet")))
    session.close()
    if len(entries) > len(told):
        return "committed"
    return "written" if written > len(entries) else "not written"


def killed(url: str, folder: Path, *, times: int) -> Counter[str]:
    """Start, kill at a random moment, check, start again with the batch that was in flight."""
    moments, phases, place, out = random.Random(SEED), Counter[str](), folder / "r", folder / "told.jsonl"
    longest = three_batches(url, place, out)
    for _ in range(times):
        child = Child(submit_on, url, place, out, len(list(lines(out))))
        assert child.hear() == "ready"
        time.sleep(moments.uniform(0, longest))
        child.kill()
        phases[check(url, place, out)] += 1
    print(f"seed {SEED}, kills within {longest:.3f} s: {len(list(lines(out)))} batches told; in flight: {dict(phases)}")
    return phases


def three_batches(url: str, place: Path, out: Path) -> float:
    """The seconds that three batches take here: a kill in this span can hit every part of one."""
    child = Child(submit_on, url, place, out, 0)
    assert child.hear() == "ready"
    start = time.monotonic()
    while len(list(lines(out))) < 3:
        assert time.monotonic() < start + PATIENCE
        time.sleep(0.001)
    child.kill()
    return time.monotonic() - start


def test_12_kills_lose_no_report_and_count_none_twice(ledger_url: str, tmp_path: Path) -> None:
    assert killed(ledger_url, tmp_path, times=12).total() == 12


@pytest.mark.long
def test_150_kills_lose_no_report_and_count_none_twice(ledger_url: str, tmp_path: Path) -> None:
    phases = killed(ledger_url, tmp_path, times=150)
    assert min(phases[phase] for phase in ("not written", "written", "committed")) > 0, "a part was never hit"


def test_collection_opens_after_a_kill_during_opening(ledger_url: str, tmp_path: Path) -> None:
    moments, out = random.Random(SEED), tmp_path / "told.jsonl"
    for _ in range(5):
        child = Child(submit_on, ledger_url, tmp_path / "r", out, len(list(lines(out))))
        time.sleep(moments.uniform(0, 0.4))
        child.kill()
        check(ledger_url, tmp_path / "r", out)
