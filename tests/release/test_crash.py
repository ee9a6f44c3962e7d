"""SIGKILL at any moment: released records have entries, none is released twice, and the queue continues."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ledger.charges import PATIENCE
from release.marks import (
    BETWEEN,
    COMMITTING,
    DECIDING,
    LOOKING_UP,
    ON_ITS_WAY,
    PHASES,
    WARMING_UP,
    WRITING,
    Marks,
    ask_on,
    read_log,
)
from release.requests import SHUFFLED, Book, assert_agrees, assert_repeatable, checked_book, open_session
from support.forkserver import WarmForkserver

from tidegate.demo import soldiers
from tidegate.release.desk import Desk
from tidegate.release.gate import Controller
from tidegate.release.result import Deferred

SEED = int.from_bytes(os.urandom(4)) if os.environ.get("TIDEGATE_SEED") == "fresh" else 20261116
WINDOW = 0.25  # seconds: a few requests


@pytest.fixture(scope="module")
def forkserver() -> Iterator[WarmForkserver]:
    with WarmForkserver() as warm:
        yield warm


def check(url: str, out: Path, phase: int, before: Book | None = None) -> Book:
    """Assert all invariants after a kill in a phase; `before` is the state after the previous kill."""
    lines = read_log(out)
    with open_session(url) as session:
        book = checked_book(session)
        for line in lines:
            for name, result in line.get("told", {}).items():
                assert_agrees(book, name, result)
        if lines and "told" not in lines[-1]:
            assert_in_flight_is_atomic(book, lines, phase, before)
        assert_repeatable(session, book, [name for line in lines[-60:] for name in line["names"]])
    return book


def assert_in_flight_is_atomic(book: Book, lines: list[dict[str, Any]], phase: int, before: Book | None = None) -> None:
    """Assert that the killed request was committed completely or not at all, and not at all before its write."""
    known: set[str] = set()
    for line in lines[:-1]:
        known = known - set(line["names"]) if line["kind"] == "withdrawal" else known | set(line["names"])
    names, withdrawal = lines[-1]["names"], lines[-1]["kind"] == "withdrawal"
    done = {(name in book.live) != withdrawal for name in names if withdrawal or name not in known}
    assert len(done) <= 1, "half of a batch was committed"
    again = withdrawal and before is not None and names[0] not in before.live  # it was withdrawn before an earlier kill
    if phase in (DECIDING, WRITING) and not again:
        assert True not in done, "it was there before it was committed"
    if phase == ON_ITS_WAY:
        assert False not in done, "an outcome was reported but is not in the book"


def kill_repeatedly(forkserver: WarmForkserver, url: str, folder: Path, *, times: int) -> Counter[str]:
    """Start, kill at a random moment, check, start again. Every second kill is aimed at a phase of a request."""
    moments, result = random.Random(SEED), Counter[str]()
    book: Book | None = None
    out, marks = folder / "said.jsonl", Marks(folder / "marks")
    for kill in range(times):
        marks.phase = WARMING_UP
        child = forkserver.fork(ask_on, url, out, folder / "marks", SEED)
        wait_for_phase(marks, range(WARMING_UP))
        if kill % 2:
            time.sleep(moments.uniform(0, WINDOW))
        else:
            wait_for_phase(marks, [moments.choice([DECIDING, WRITING, COMMITTING, ON_ITS_WAY])])
            time.sleep(moments.choice([0, moments.uniform(0, 0.002)]))
        forkserver.kill(child)
        result[PHASES[marks.phase]] += 1
        book = check(url, out, marks.phase, book)
    kinds = Counter(line["kind"] for line in read_log(out) if "told" in line)
    states = Counter(row["state"] for row in book.rows.values()) if book else Counter()
    print(f"seed {SEED}: {times} kills, {dict(result)}; done {dict(kinds)}; requests {dict(states)}")
    return result


def wait_for_phase(marks: Marks, phases: Any) -> None:
    """Wait until a child is in one of some phases."""
    end = time.monotonic() + PATIENCE
    while marks.phase not in phases:
        assert time.monotonic() < end, "it never came so far"


@pytest.mark.long_for("postgres")
@pytest.mark.parametrize("kills", [4, pytest.param(12, marks=pytest.mark.long)])
def test_kills_leave_no_record_without_its_entry_and_none_twice(
    forkserver: WarmForkserver, ledger_url: str, tmp_path: Path, kills: int
) -> None:
    assert kill_repeatedly(forkserver, ledger_url, tmp_path, times=kills).total() == kills


@pytest.mark.long
def test_200_kills_leave_no_record_without_its_entry_and_none_twice(
    forkserver: WarmForkserver, ledger_url: str, tmp_path: Path
) -> None:
    result = kill_repeatedly(forkserver, ledger_url, tmp_path, times=200)
    for phase in (LOOKING_UP, DECIDING, WRITING, COMMITTING, ON_ITS_WAY):
        assert result[PHASES[phase]] > 0, f"never hit while {PHASES[phase]}"
    assert result[PHASES[BETWEEN]] < 100


def test_desk_opens_after_a_kill_during_opening(forkserver: WarmForkserver, ledger_url: str, tmp_path: Path) -> None:
    moments = random.Random(SEED)
    out, marks = tmp_path / "said.jsonl", Marks(tmp_path / "marks")
    for _ in range(6):
        marks.phase = WARMING_UP
        child = forkserver.fork(ask_on, ledger_url, out, tmp_path / "marks", SEED)
        time.sleep(moments.uniform(0, 0.2))
        forkserver.kill(child)
        check(ledger_url, out, marks.phase)


# The checks detect planted faults


def fewer_tests(desk: Desk) -> None:
    """Decide by looser rules than the promise."""
    plan = desk.plans["headquarters"]
    desk._state.controller = Controller(
        [replace(plan, promise=soldiers.concealment(tests="chi-square", significance="0.01"))]
    )


def forgets_the_queue(desk: Desk) -> None:
    """Never check waiting requests again."""
    desk._state.controller.load = lambda counts, queue: Controller.load(desk._state.controller, counts, ())  # type: ignore[method-assign]


@pytest.mark.parametrize("fault", [fewer_tests, forgets_the_queue])
def test_replay_detects_a_wrong_decision(tmp_path: Path, fault: Callable[[Desk], None]) -> None:
    url = str(tmp_path / "s.ledger")
    for start in range(0, 320, 20):  # a new desk each time, as after a kill
        with open_session(url) as session:
            desk = session.release()
            fault(desk)
            desk.request_many(SHUFFLED[start : start + 20])
    with open_session(url) as session, pytest.raises(AssertionError):
        checked_book(session)


def test_record_returned_before_its_commit_is_detected(tmp_path: Path) -> None:
    with open_session(str(tmp_path / "s.ledger")) as session:
        outcomes = session.release().request_many(SHUFFLED[:60])
        book = checked_book(session)
        waits, number = next((name, o.number) for name, o in outcomes.items() if isinstance(o, Deferred))
        record = {"outcome": "released", "number": number, "record": {"name": waits}}
        with pytest.raises(AssertionError, match="without its entry"):
            assert_agrees(book, waits, record)
        with pytest.raises(KeyError):
            assert_agrees(book, SHUFFLED[70], {"outcome": "deferred", "number": 61})
        batch = {"kind": "batch", "names": [SHUFFLED[59], SHUFFLED[60]]}
        with pytest.raises(AssertionError, match="half of a batch"):
            assert_in_flight_is_atomic(book, [batch], LOOKING_UP)
        with pytest.raises(AssertionError, match="before it was committed"):
            assert_in_flight_is_atomic(book, [{"kind": "request", "names": [SHUFFLED[3]]}], WRITING)
        with pytest.raises(AssertionError, match="is not in the book"):
            assert_in_flight_is_atomic(book, [{"kind": "request", "names": [SHUFFLED[99]]}], ON_ITS_WAY)
