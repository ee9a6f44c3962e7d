"""Many requesters and SIGKILL at a hiding desk: quotas stay exact, nobody is released twice, nobody gets a second chance."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ledger.charges import PATIENCE, at_once
from release.requests import RECORDS, TABLE
from support.forkserver import WarmForkserver

import tidegate as tg
from tidegate.demo import soldiers
from tidegate.ledger import verify
from tidegate.release.hiding_desk import HidingDesk
from tidegate.release.result import Outcome, Released, Withheld

SEED = int.from_bytes(os.urandom(4)) if os.environ.get("TIDEGATE_SEED") == "fresh" else 20261117
NAMES = random.Random(3).sample(RECORDS["name"], 10_000)
POLICY = soldiers.hiding_policy(
    mix=("0.015", "0.03", "0.08", "0.065", "0.105", "0.115", "0.045", "0.007", "0.003", "0")
)


@pytest.fixture(scope="module")
def forkserver() -> Iterator[WarmForkserver]:
    with WarmForkserver() as warm:
        yield warm


def open_session(url: str) -> tg.Session:
    return tg.open(POLICY, table=TABLE, ledger=url)


def as_sent(outcomes: dict[str, Outcome]) -> dict[str, Any]:
    return {name: outcome.to_dict() for name, outcome in outcomes.items()}


def assert_exact(url: str, reported: dict[str, Any], *, everyone: bool = True) -> None:
    """Assert that the ledger holds, that what was reported is still the outcome, and that quotas are met by everyone."""
    with open_session(url) as session:
        assert verify(*session.ledger.snapshot()).problems == []
        desk = session.release()
        assert as_sent(desk.request_many(list(reported))) == reported
        if everyone:
            outcomes = desk.request_many(NAMES)
            assert all(isinstance(outcome, Released | Withheld) for outcome in outcomes.values())
            quotas = desk.selections[0].quotas
            assert desk.counts().T.tolist() == [list(row or ()) for row in quotas.by_group]
            names = [record["name"] for record in desk.released()[0]]
            assert len(names) == len(set(names)) == sum(quotas.chosen)
            assert verify(*session.ledger.snapshot()).problems == []


def request_some(desk: HidingDesk, worker: int, *, turns: int) -> dict[str, Any]:
    """Request names that others request too, one or several at a time."""
    chance, outcomes = random.Random(f"requester {worker}"), {}
    for turn in range(turns):
        names = chance.sample(NAMES[:400], chance.choice([1, 2, 9]))
        some = desk.request_many(names, user=f"u{worker}") if turn % 2 else {names[0]: desk.request(names[0])}
        for name, outcome in as_sent(some).items():
            assert outcomes.setdefault(name, outcome) == outcome
    return outcomes


@pytest.mark.long  # test_16_requesters_at_one_desk_share_commits is in every run
def test_16_requesters_at_16_desks_get_the_same_outcomes(ledger_url: str) -> None:
    with open_session(ledger_url) as session:
        session.open_release()
    reported: list[dict[str, Any]] = []

    def work(worker: int) -> None:
        with open_session(ledger_url) as session:
            reported.append(request_some(session.release(), worker, turns=6))

    at_once(work, threads=16)
    together = {name: outcome for outcomes in reported for name, outcome in outcomes.items()}
    assert all(together[name] == outcome for outcomes in reported for name, outcome in outcomes.items())
    assert len(reported) == 16
    assert_exact(ledger_url, together)


def test_16_requesters_at_one_desk_share_commits(ledger_url: str) -> None:
    reported: list[dict[str, Any]] = []
    with open_session(ledger_url) as session:
        session.open_release()
        desk = session.release()
        at_once(lambda worker: reported.append(request_some(desk, worker, turns=12)), threads=16)
        users = {entry.content()["who"] for entry in session.ledger.entries() if entry.kind == "release"}
        assert len(users) > 10  # every request keeps the name of its user
    together = {name: outcome for outcomes in reported for name, outcome in outcomes.items()}
    assert all(together[name] == outcome for outcomes in reported for name, outcome in outcomes.items())
    assert_exact(ledger_url, together, everyone=False)


def request_on(url: str, log: Path, start: int) -> None:
    """Request names one by one and in batches; write each outcome to a log after it was returned."""
    stream = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    session = open_session(url)
    desk, chance = session.release(), random.Random(start)
    os.write(stream, b"{}\n")
    while True:
        names = chance.sample(NAMES, chance.choice([1, 1, 5, 40]))
        os.write(stream, (json.dumps(as_sent(desk.request_many(names))) + "\n").encode())


def lines_of(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def kill_repeatedly(forkserver: WarmForkserver, url: str, folder: Path, times: int) -> dict[str, Any]:
    """Start, kill at a random moment, check that what was reported stays; return all reported outcomes."""
    with open_session(url) as session:
        session.open_release()
    moments, log, reported = random.Random(SEED), folder / "outcomes.jsonl", {}
    for kill in range(times):
        written = lines_of(log) + (1 if kill % 2 else 2)  # it has started, or it has also reported an outcome
        child = forkserver.fork(request_on, url, log, SEED + kill)
        end = time.monotonic() + PATIENCE
        while lines_of(log) < written:
            assert time.monotonic() < end, "it never came so far"
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 0.1))
        forkserver.kill(child)
        *lines, torn = log.read_text("utf-8").split("\n")
        os.truncate(log, log.stat().st_size - len(torn.encode()))  # killed while it wrote this line
        for line in lines:
            for name, outcome in json.loads(line).items():
                assert reported.setdefault(name, outcome) == outcome, "an outcome changed"
    return reported


@pytest.mark.long_for("postgres")
def test_kills_leave_quotas_exact_and_nobody_twice(forkserver: WarmForkserver, ledger_url: str, tmp_path: Path) -> None:
    reported = kill_repeatedly(forkserver, ledger_url, tmp_path, times=4)
    assert reported
    assert_exact(ledger_url, reported)


@pytest.mark.long
def test_200_kills_leave_quotas_exact_and_nobody_twice(
    forkserver: WarmForkserver, ledger_url: str, tmp_path: Path
) -> None:
    assert_exact(ledger_url, kill_repeatedly(forkserver, ledger_url, tmp_path, times=200))


def open_it(url: str) -> None:
    with open_session(url) as session:
        session.open_release()


@pytest.mark.long_for("postgres")
@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.long)])
def test_killed_opening_continues_with_the_same_key(forkserver: WarmForkserver, ledger_url: str, kills: int) -> None:
    moments = random.Random(SEED)
    with open_session(ledger_url) as session:
        assert session.account.name  # creates the ledger
    for _ in range(kills):
        child = forkserver.fork(open_it, ledger_url)
        time.sleep(moments.uniform(0, 0.6))
        try:
            forkserver.kill(child)
        except (AssertionError, ProcessLookupError):
            break  # it was open already
    with open_session(ledger_url) as session:
        kinds = [entry.kind for entry in session.ledger.entries()]
        if "hiding-open" not in kinds:
            session.open_release()
        kinds = [entry.kind for entry in session.ledger.entries()]
        assert (kinds.count("hiding-key"), kinds.count("hiding-open")) == (1, 1)
    assert_exact(ledger_url, {})
