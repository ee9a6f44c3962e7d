"""SIGKILL at any moment of a synthesis: one charge, and written numbers stay as written."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from ledger.charges import PATIENCE, charges, verify_clean
from ledger.children import Child
from support.diaries import diary_lines
from support.towns import open_session
from synthesize.paused_run import LIMIT, PAUSE, Slow, synthesize_on

SEED = int.from_bytes(os.urandom(4)) if os.environ.get("TIDEGATE_SEED") == "fresh" else 20261115


def written_steps(url: str) -> dict[int, list[dict[str, Any]]]:
    """Return the steps in the diaries after a kill, by table."""
    steps: dict[int, list[dict[str, Any]]] = {0: [], 1: [], 2: []}
    for content in diary_lines(url):
        if "table" in content:
            steps[content.pop("table")].append(content)
    return steps


def kill_once(url: str, folder: Path, number: int, lines: int, later: float) -> str:
    """Kill a synthesis shortly after a number of lines was written, resume it, and check everything."""
    child = Child(synthesize_on, url, folder, number)
    assert child.hear() == "ready"
    until = time.monotonic() + PATIENCE
    while len(diary_lines(url)) < lines and not child.pipe.poll(0):
        assert time.monotonic() < until
        time.sleep(0.001)
    time.sleep(later)
    child.kill()
    before = written_steps(url)
    with open_session(folder, ledger=url, epsilon=LIMIT) as session:
        charged, answered = len(charges(session.ledger)), len(session.ledger.answered("people"))
        tables = session.synthesize(epsilon=number, tables=3, model=Slow())
        assert len(charges(session.ledger)) == number, "one charge for each of the requests so far"
        assert str(tables.cost) == (str(3 * number) if charged < number else "0")
        for index, table in enumerate(tables):
            steps = [step.to_dict() for step in table.steps]
            assert steps[: len(before[index])] == before[index]
            assert len(steps) == 4
        assert verify_clean(session.ledger).holds
        assert not any(written_steps(url).values())
    if answered == number:
        return "recorded"
    return "not charged" if charged < number else f"{sum(map(len, before.values()))} written"


def kill_repeatedly(url: str, folder: Path, *, lines: Iterable[int]) -> Counter[str]:
    """Kill one synthesis after each number of lines."""
    moments, phases = random.Random(SEED), Counter[str]()
    for number, count in enumerate(lines, start=1):
        phases[kill_once(url, folder, number, count, moments.uniform(0, 2 * PAUSE))] += 1
    print(f"seed {SEED}: {dict(phases)}")
    return phases


@pytest.mark.long_for("postgres")
def test_kills_at_several_moments_waste_nothing_and_change_no_number(ledger_url: str, tmp_path: Path) -> None:
    phases = kill_repeatedly(ledger_url, tmp_path, lines=[1, 9, 13])
    assert len(phases) >= 2, "the kills hit too few places"


@pytest.mark.long
def test_200_kills_waste_nothing_and_change_no_number(ledger_url: str, tmp_path: Path) -> None:
    """A diary has a line about the facts, and three tables of four numbers; then comes the record."""
    phases = kill_repeatedly(ledger_url, tmp_path, lines=islice(cycle(range(15)), 200))
    assert phases.total() == 200
    assert len(phases) >= 10
    assert phases["recorded"]
    assert phases["not charged"]
