"""SIGKILL at any moment: every acknowledged batch is counted once, and the ledger verifies."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from collect.report_processes import assert_counted, lines, submit_on
from collect.surveys import open_survey
from ledger.charges import PATIENCE
from ledger.children import Child

SEED = int.from_bytes(os.urandom(4)) if os.environ.get("TIDEGATE_SEED") == "fresh" else 20261117


def check(url: str, location: Path, out: Path) -> str:
    """Check the ledger after a kill. Return how far the batch in flight had come."""
    answered = list(lines(out))
    session, survey = open_survey(url, location)
    entries = [entry for entry in session.ledger.entries() if entry.kind == "reports"]
    assert [entry.request for entry in entries] == [f"batch {number}" for number in range(len(entries))]
    assert [line["entry"] for line in answered] == [entry.hash for entry in entries[: len(answered)]], (
        "acknowledged, but missing"
    )
    assert [line["accepted"] for line in answered] == [
        entry.content()["accepted"] for entry in entries[: len(answered)]
    ]
    assert len(entries) - len(answered) in (0, 1)
    assert_counted(session, survey, 0, len(entries) - 1)
    written = len(list(location.rglob("*.parquet")))
    session.close()
    if len(entries) > len(answered):
        return "committed"
    return "written" if written > len(entries) else "not written"


def kill_repeatedly(url: str, folder: Path, *, times: int) -> Counter[str]:
    """Start, kill at a random moment, check, start again with the batch that was in flight."""
    moments, phases, location, out = random.Random(SEED), Counter[str](), folder / "r", folder / "acknowledged.jsonl"
    longest = measure_three_batches(url, location, out)
    for _ in range(times):
        child = Child(submit_on, url, location, out, len(list(lines(out))))
        assert child.hear() == "ready"
        time.sleep(moments.uniform(0, longest))
        child.kill()
        phases[check(url, location, out)] += 1
    print(
        f"seed {SEED}, kills within {longest:.3f} s: {len(list(lines(out)))} batches acknowledged; in flight: {dict(phases)}"
    )
    return phases


def measure_three_batches(url: str, location: Path, out: Path) -> float:
    """The seconds that three batches take here: a kill in this span can hit every part of one."""
    child = Child(submit_on, url, location, out, 0)
    assert child.hear() == "ready"
    start = time.monotonic()
    while len(list(lines(out))) < 3:
        assert time.monotonic() < start + PATIENCE
        time.sleep(0.001)
    child.kill()
    return time.monotonic() - start


@pytest.mark.long_for("postgres")
@pytest.mark.parametrize("kills", [4, pytest.param(12, marks=pytest.mark.long)])
def test_kills_lose_no_report_and_count_none_twice(ledger_url: str, tmp_path: Path, kills: int) -> None:
    assert kill_repeatedly(ledger_url, tmp_path, times=kills).total() == kills


@pytest.mark.long
def test_200_kills_lose_no_report_and_count_none_twice(ledger_url: str, tmp_path: Path) -> None:
    phases = kill_repeatedly(ledger_url, tmp_path, times=200)
    assert min(phases[phase] for phase in ("not written", "written", "committed")) > 0, "a part was never hit"


def test_collection_opens_after_a_kill_during_opening(ledger_url: str, tmp_path: Path) -> None:
    moments, out = random.Random(SEED), tmp_path / "acknowledged.jsonl"
    for _ in range(5):
        child = Child(submit_on, ledger_url, tmp_path / "r", out, len(list(lines(out))))
        time.sleep(moments.uniform(0, 0.4))
        child.kill()
        check(ledger_url, tmp_path / "r", out)
