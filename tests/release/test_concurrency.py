"""Many threads and processes at one desk: nothing is lost or released twice, and all outcomes are true."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
from ledger.charges import PATIENCE, at_once
from release.requests import SHUFFLED, Book, as_sent, assert_agrees, assert_repeatable, checked_book, open_session
from release.settings import random_plan, skewed_requests
from support.forkserver import WarmForkserver

from tidegate.errors import NotWaiting
from tidegate.ledger.entry import DECIDED
from tidegate.policy.concealment import TESTS
from tidegate.release.desk import Desk
from tidegate.release.gate import BLOCK_ABOVE, Gate
from tidegate.release.result import Deferred, Released

NAMES = SHUFFLED[:160]
Story = list[tuple[str, dict[str, Any]]]  # the requested record and the returned outcome


@pytest.fixture(scope="module")
def forkserver() -> Iterator[WarmForkserver]:
    with WarmForkserver() as warm:
        yield warm


def requester(desk: Desk, worker: int, *, asks: int = 8) -> Story:
    """Request names that others request too, one or several at a time; check the status; withdraw some."""
    chance, story, seen = random.Random(f"requester {worker}"), [], 0
    for turn in range(asks):
        names = chance.sample(NAMES, chance.choice([1, 2, 9]))
        outcomes = desk.request_many(names) if turn % 2 else {name: desk.request(name) for name in names[:3]}
        story += list(as_sent(outcomes).items())
        out = int(desk.counts().sum())
        assert out >= seen, "a record came back"
        seen = out
        assert desk.waiting >= 0
        waits = [name for name, outcome in outcomes.items() if isinstance(outcome, Deferred)]
        if waits and turn % 3 == 2:
            story += withdraw_and_request(desk, waits[0])
    return story


def withdraw_and_request(desk: Desk, name: str) -> Story:
    try:
        desk.withdraw(name)
    except NotWaiting:  # released meanwhile, or withdrawn by another requester
        return []
    outcome = desk.request(name)
    assert isinstance(outcome, Released | Deferred)
    return [(name, outcome.to_dict())]


def assert_all_agree(book: Book, stories: list[Story]) -> None:
    """Assert that every outcome is in the book, and that every requester is in it."""
    for story in stories:
        for name, outcome in story:
            assert_agrees(book, name, outcome)
        assert {name for name, _ in story} <= set(book.live) | {book.names[r["key"]] for r in book.rows.values()}
    assert len(stories) > 1
    kinds = Counter(outcome["outcome"] for story in stories for _, outcome in story)
    assert min(kinds["released"], kinds["deferred"]) > 0, "nothing was tested"
    askers = Counter(name for story in stories for name in {name for name, _ in story})
    assert max(askers.values()) > 1, "they did not overlap"


@pytest.mark.long_for("postgres")
@pytest.mark.parametrize("threads", [5, pytest.param(16, marks=pytest.mark.long)])
def test_desks_in_threads_are_served_as_one_queue(ledger_url: str, threads: int) -> None:
    stories: list[Story] = []

    def work(worker: int) -> None:
        with open_session(ledger_url) as session:
            stories.append(requester(session.release(), worker))

    at_once(work, threads=threads)
    with open_session(ledger_url) as session:
        book = checked_book(session)
        assert_all_agree(book, stories)
        assert_repeatable(session, book, NAMES)
    assert len(stories) == threads


@pytest.mark.long_for("postgres")
@pytest.mark.parametrize("threads", [5, pytest.param(16, marks=pytest.mark.long)])
def test_requesters_can_share_a_desk(ledger_url: str, threads: int) -> None:
    stories: list[Story] = []
    with open_session(ledger_url) as session:
        desk = session.release()
        at_once(lambda worker: stories.append(requester(desk, worker, asks=12)), threads=threads)
        alone = desk.counts().tolist(), desk.waiting
        with open_session(ledger_url) as other:
            book = checked_book(other)
            assert_all_agree(book, stories)
            assert_repeatable(other, book, NAMES)
            fresh = other.release()
            assert (fresh.counts().tolist(), fresh.waiting) == alone
    assert len(stories) == threads


@pytest.mark.parametrize("block_above", [0, BLOCK_ABOVE], ids=["in blocks", "in one piece"])
@pytest.mark.parametrize("tests", [("mutual-information",), ("kullback-leibler",), TESTS], ids="+".join)
def test_synchronized_gates_decide_as_one(tests: tuple[str, ...], block_above: int) -> None:
    """A desk applies the decisions of other desks and then decides as if it had made all of them."""
    for seed in range(6):
        chance = np.random.default_rng([seed, 12])
        plan = random_plan(tests, chance)
        alone, gates = Gate(plan, block_above=block_above), [Gate(plan, block_above=block_above) for _ in range(3)]
        waits: dict[int, int] = {}
        for number, (x, y) in enumerate(skewed_requests(plan, 300, chance)):
            cell, turn = alone.cell(x, y), int(chance.integers(3))
            expected = alone.decide(np.array([cell]), np.array([number])).released.tolist()
            assert gates[turn].decide(np.array([cell]), np.array([number])).released.tolist() == expected
            waits[number] = cell
            left = {gone: waits.pop(gone) for gone in expected}
            for other in (gate for gate in gates if gate is not gates[turn]):
                follow(other, number, cell, left)
            if waits and chance.random() < 0.1:
                gone = int(chance.choice(list(waits)))
                cell = waits.pop(gone)
                assert all(gate.withdraw(gone, cell) for gate in (alone, *gates))
        assert len({gate.waiting for gate in (alone, *gates)}) == 1


def follow(gate: Gate, number: int, cell: int, left: dict[int, int]) -> None:
    """Apply decisions in the order of their numbers, as a desk reads them."""
    for gone in sorted(left):
        gate.withdraw(gone, left[gone])
        gate.grant(left[gone])
    if number not in left:
        gate.enqueue(number, cell)


def wait_until(holds: Callable[[], bool]) -> None:
    end = monotonic() + PATIENCE
    while not holds():
        assert monotonic() < end, "deadlock"
        sleep(0.001)


def ask_in_a_process(url: str, folder: Path, worker: int) -> None:
    with open_session(url) as session:
        desk = session.release()
        (folder / f"ready {worker}").touch()
        wait_until(lambda: (folder / "go").exists())
        story = requester(desk, worker)
    (folder / f"story {worker}").write_text(json.dumps(story))


@pytest.mark.long_for("sqlite")
@pytest.mark.parametrize("processes", [3, pytest.param(6, marks=pytest.mark.long)])
def test_processes_with_one_ledger_are_served_as_one_queue(
    forkserver: WarmForkserver, ledger_url: str, tmp_path: Path, processes: int
) -> None:
    children = [forkserver.fork(ask_in_a_process, ledger_url, tmp_path, worker) for worker in range(processes)]
    wait_until(lambda: len(list(tmp_path.glob("ready *"))) == processes)
    (tmp_path / "go").touch()
    for child in children:
        forkserver.join(child)
    stories = [json.loads((tmp_path / f"story {worker}").read_text()) for worker in range(processes)]
    with open_session(ledger_url) as session:
        book = checked_book(session)
        assert_all_agree(book, stories)
        assert_repeatable(session, book, NAMES)


def test_requests_that_arrive_together_share_a_commit(tmp_path: Path) -> None:
    """Each of them has its own entry and its own user; a request during a commit waits for the next one."""
    with open_session(str(tmp_path / "s.ledger")) as session:
        desk = session.release()
        commits, writing = [0], session.ledger.store.writing

        @contextmanager
        def slow_writing() -> Iterator[Any]:
            with writing() as connection:
                yield connection
                commits[0] += 1
                sleep(0.2)  # the others arrive meanwhile

        session.ledger.store.writing = slow_writing
        at_once(lambda worker: desk.request(NAMES[worker], user=f"user {worker}"), threads=16)
        users = Counter(entry.content()["who"] for entry in session.ledger.entries() if entry.kind == DECIDED)
    assert users == {f"user {worker}": 1 for worker in range(16)}
    assert commits[0] <= 4, "every request had its own commit"
