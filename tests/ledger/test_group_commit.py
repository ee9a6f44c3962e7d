"""Requests of many threads share commits; one that fails fails alone."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tidegate.errors import LedgerUnavailable
from tidegate.ledger.group_commit import GroupCommit


class Recorder:
    """Decides groups: the first one waits until the others have arrived."""

    def __init__(self, expected: int) -> None:
        self.groups: list[list[int]] = []
        self.arrived, self._expected = threading.Semaphore(0), expected

    def decide(self, requests: list[int]) -> Sequence[int]:
        if not self.groups:
            self.groups.append(list(requests))
            for _ in range(self._expected):
                assert self.arrived.acquire(timeout=20)
        else:
            self.groups.append(list(requests))
        if any(request < 0 for request in requests):
            raise ZeroDivisionError
        return [2 * request for request in requests]


def submit_together(recorder: Recorder, commits: GroupCommit[int, int], others: list[int]) -> list[int | BaseException]:
    """Submit request 0, and the others while it is being decided; return outcomes and errors in order."""

    def submit(request: int) -> int | BaseException:
        try:
            return commits.submit(request)
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(others) + 1) as pool:
        first = pool.submit(submit, 0)
        while not recorder.groups:
            pass
        rest = [pool.submit(submit, request) for request in others]
        while len(commits._pending) < len(others):
            pass
        for _ in others:
            recorder.arrived.release()
        return [first.result(), *(later.result() for later in rest)]


def test_requests_that_arrive_during_a_commit_share_the_next_one() -> None:
    recorder = Recorder(9)
    outcomes = submit_together(recorder, GroupCommit(recorder.decide), list(range(1, 10)))
    assert outcomes == [2 * request for request in range(10)]
    assert [len(group) for group in recorder.groups] == [1, 9]


def test_failing_request_does_not_fail_the_others() -> None:
    recorder = Recorder(5)
    outcomes = submit_together(recorder, GroupCommit(recorder.decide), [1, -1, 2, 3, 4])
    assert isinstance(outcomes[2], ZeroDivisionError)
    assert [outcome for outcome in outcomes if isinstance(outcome, int)] == [0, 2, 4, 6, 8]


def test_unusable_ledger_fails_every_request_once() -> None:
    recorder, problem = Recorder(3), LedgerUnavailable("The disk is full.")
    calls: list[int] = []

    def decide(requests: list[int]) -> Sequence[int]:
        calls.append(len(requests))
        if len(calls) > 1:
            raise problem
        return recorder.decide(requests)

    outcomes = submit_together(recorder, GroupCommit(decide), [1, 2, 3])
    assert outcomes == [0, problem, problem, problem]
    assert calls == [1, 3]


def test_group_has_a_largest_size() -> None:
    recorder = Recorder(7)
    outcomes = submit_together(recorder, GroupCommit(recorder.decide, most=3), list(range(1, 8)))
    assert outcomes == [2 * request for request in range(8)]
    assert [len(group) for group in recorder.groups] == [1, 3, 3, 1]


def test_thread_that_is_interrupted_leaves_the_queue_usable() -> None:
    calls: list[int] = []

    def decide(requests: list[int]) -> Sequence[int]:
        calls.append(len(requests))
        if len(calls) == 1:
            raise KeyboardInterrupt
        return requests

    commits = GroupCommit(decide)
    with pytest.raises(KeyboardInterrupt):
        commits.submit(1)
    assert commits.submit(2) == 2
