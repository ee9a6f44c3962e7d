"""A kill before or after every commit, from the key to the close: the rest is done again, and one code counts once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from collect.invited import invited_report, open_invited, signed_token, token_of
from collect.surveys import open_survey, report
from ledger.children import Child

from tidegate.collect.memory import FileMemory
from tidegate.collect.run import Submitted
from tidegate.collect.survey import Survey
from tidegate.collect.validation import REPLAYED
from tidegate.errors import NotAllowed
from tidegate.ledger.store import Store

COMMITS = 7  # key, opening, codes, signature, report, close; each opening of the ledger is one more


def take_part(url: str, folder: Path) -> None:
    """Open a poll, create a code, get a token for it, send a report twice, close. Every part can be done again."""
    session, survey = open_invited(url, folder / "r")
    letter = folder / "letter.txt"
    if not letter.exists():  # codes that nobody has seen are lost, and stay unused
        code = survey.invite(1)[0]
        letter.write_text(code)
    if not survey.closed:
        token = token_of(survey, letter.read_text(), FileMemory(folder / "memory.json"))  # type: ignore[arg-type]
        for _ in range(2):
            [reason] = survey.receive([invited_report(0, survey, token)]).reasons
            assert reason in (None, REPLAYED), reason
    survey.close()
    session.close()


def take_part_until(pipe: Any, url: str, folder: Path, number: int, moment: str) -> None:
    """Do the same, and kill this process before or after its n-th commit."""
    kill_at(number, moment)
    pipe.send("ready")
    take_part(url, folder)
    pipe.send("done")


def kill_at(number: int, moment: str) -> None:
    right, commits = Store.writing, [0]

    @contextmanager
    def writing(self: Store) -> Iterator[Any]:
        with right(self) as connection:
            yield connection
            commits[0] += 1
            if commits[0] == number and moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
        if commits[0] == number and moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    Store.writing = writing  # type: ignore[method-assign]


def wait_for(child: Child) -> None:
    child.process.join(60)
    assert child.process.exitcode is not None


@pytest.mark.long  # test_kills_during_group_commits_lose_no_answered_report is in every run
@pytest.mark.parametrize("moment", ["after", "before"])
def test_kill_at_every_commit_counts_one_report(tmp_path: Path, moment: str) -> None:
    """Until a run is not killed any more, because it has fewer commits."""
    for number in range(1, 2 * COMMITS):
        folder = tmp_path / str(number)
        folder.mkdir()
        url = str(folder / "people.ledger")
        child = Child(take_part_until, url, folder, number, moment)
        assert child.hear() == "ready"
        child.process.join(60)
        if child.process.exitcode == 0:
            break
        assert child.process.exitcode == -signal.SIGKILL
        take_part(url, folder)
        session, survey = open_invited(url, folder / "r")
        assert (survey.reports, survey.closed) == (1, True)
        assert session.ledger.verify().problems == []
        session.close()
    assert COMMITS < number < 2 * COMMITS - 1


def receive_on(pipe: Any, url: str, location: Path, out: Path, first: int, clients: int) -> None:
    """Send reports one by one from several threads; append the number of each one that was answered."""
    stream = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    _, survey = open_survey(url, location)
    numbers, turn = iter(range(first, 10**9)), threading.Lock()
    pipe.send("ready")

    def send() -> None:
        while True:
            with turn:
                number = next(numbers)
            assert survey.receive([report(number)]).reasons in ((None,), (REPLAYED,))
            os.write(stream, f"{number}\n".encode())

    with ThreadPoolExecutor(clients) as pool:
        for _ in range(clients):
            pool.submit(send)


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.long)])
def test_kills_during_group_commits_lose_no_answered_report(ledger_url: str, tmp_path: Path, kills: int) -> None:
    """16 threads share transactions; whatever was answered waits, and counts once."""
    out = tmp_path / "answered.txt"
    out.touch()
    for turn in range(kills):
        before = len(out.read_text().splitlines())
        child = Child(receive_on, ledger_url, tmp_path / "r", out, turn * 100_000, 16)
        assert child.hear() == "ready"
        until = time.monotonic() + 30
        while len(out.read_text().splitlines()) < before + 50 and time.monotonic() < until:
            time.sleep(0.003)
        child.kill()
    session, survey = open_survey(ledger_url, tmp_path / "r")
    answered = {int(line) for line in out.read_text().splitlines()}
    assert len(answered) >= 50 * kills
    assert session.ledger.verify().problems == []
    again = survey.receive([report(number) for number in sorted(answered)])
    assert set(again.reasons) == {REPLAYED}
    survey.close()
    assert len(answered) <= survey.reports <= len(answered) + 16 * kills
    assert survey.verify() == []
    session.close()


def test_threads_race_for_one_token(ledger_url: str, tmp_path: Path) -> None:
    """16 reports with one token, all at once: one is accepted."""
    session, survey = open_invited(ledger_url, tmp_path)
    token = token_of(survey, survey.invite(1)[0])
    start = threading.Barrier(16)

    def send(number: int) -> Submitted:
        start.wait()
        return survey.receive([invited_report(number, survey, token)])

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(send, range(16)))
    assert sum(result.accepted for result in results) == 1
    assert session.ledger.verify().problems == []
    session.close()


def test_threads_race_for_one_code(ledger_url: str, tmp_path: Path) -> None:
    """8 devices use one code at once: one gets a token."""
    session, survey = open_invited(ledger_url, tmp_path)
    [code] = survey.invite(1)
    start = threading.Barrier(8)

    def obtain_token(_: int) -> bool:
        start.wait()
        try:
            token_of(survey, code)
        except NotAllowed as refused:
            return refused.facts["reason"] != "used"
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(obtain_token, range(8))) == 1
    session.close()


def test_two_processes_accept_a_token_once(ledger_url: str, tmp_path: Path) -> None:
    """Two surveys with their own connections: the ledger decides, not the memory of a process."""
    first, survey = open_invited(ledger_url, tmp_path)
    second, other = open_invited(ledger_url, tmp_path)
    surveys: list[Survey] = [survey, other]
    token = signed_token(b"one")
    start = threading.Barrier(2)

    def send(number: int) -> int:
        start.wait()
        return surveys[number].receive([invited_report(number, surveys[number], token)]).accepted

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(send, range(2))) == 1
    first.close()
    second.close()
