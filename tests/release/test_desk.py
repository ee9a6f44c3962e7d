"""The durable desk: releases are committed with their entries, restarts continue exactly, nothing is released twice."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from reference.release import ReferenceController
from release.settings import reference_tests

import tidegate as tg
from tidegate.demo import soldiers
from tidegate.errors import Infeasible, LedgerBroken, NotWaiting, PolicyLoosened, PolicyUnreadable, Unsupported
from tidegate.ledger import verify
from tidegate.release.result import Deferred, Refused, Released

TABLE = pa.table(soldiers.records())
NAMES = soldiers.records()["name"]


def shuffled_keys(count: int, *, seed: int = 1) -> list[str]:
    return random.Random(seed).sample(NAMES, count)


def open_session(url: str, **more: Any) -> tg.Session:
    return tg.open(soldiers.policy(**more), table=TABLE, ledger=url)


def holds(session: tg.Session) -> None:
    verdict = verify(*session.ledger.snapshot())
    assert verdict.problems == []


def test_released_records_are_true_coarse_and_committed_with_their_entry(ledger_url: str) -> None:
    with open_session(ledger_url) as session:
        desk = session.release("headquarters")
        outcomes = desk.request_many(shuffled_keys(300))
        left = {name: outcome.record for name, outcome in outcomes.items() if isinstance(outcome, Released)}
        truth = {row["name"]: row for row in TABLE.to_pylist()}
        for name, record in left.items():
            low, high = (int(age) for age in record["age"].split("-"))
            assert low <= truth[name]["age"] <= high
            assert (record["name"], record["location"]) == (name, truth[name]["location"])
        assert desk.counts().sum() == len(left) == desk.released()[1]
        assert desk.waiting == 300 - len(left) > 0
        holds(session)


@pytest.mark.parametrize("requests", [150, pytest.param(400, marks=pytest.mark.long)])
def test_desk_decides_like_the_literal_rescan(requests: int, tmp_path: Path) -> None:
    requested = shuffled_keys(requests, seed=3)
    with open_session(str(tmp_path / "s.ledger")) as session:
        desk = session.release("headquarters")
        reference = ReferenceController(
            reference_tests(desk.plans["headquarters"]), desk.plans["headquarters"].baseline, 5
        )
        truth = {row["name"]: row for row in TABLE.to_pylist()}
        for number, name in enumerate(requested):
            age = np.searchsorted(soldiers.STARTS, truth[name]["age"], side="right")
            reference.request(int(age), soldiers.LOCATIONS.index(truth[name]["location"]))
            if number % 50 == 49:  # in batches of 50 under one entry, half of them one by one
                batch = requested[number - 49 : number + 1]
                desk.request_many(batch[:25])
                for item in batch[25:]:
                    desk.request(item)
        assert desk.counts().tolist() == reference.counts
        assert [record["name"] for record in desk.released()[0]] == [requested[number] for number in reference.released]


def test_restarted_desk_continues_exactly(ledger_url: str, tmp_path: Path) -> None:
    requested = shuffled_keys(240, seed=5)
    with open_session(str(tmp_path / "whole.ledger")) as session:
        whole = session.release()
        whole.request_many(requested)
        expected = whole.released()[0]
    for start in range(0, 240, 60):
        with open_session(ledger_url) as session:
            session.release().request_many(requested[start : start + 60])
    with open_session(ledger_url) as session:
        assert session.release().released()[0] == expected
        holds(session)


@pytest.mark.parametrize("requests", [60, pytest.param(200, marks=pytest.mark.long)])
def test_two_desks_on_one_ledger_stay_consistent(ledger_url: str, requests: int, tmp_path: Path) -> None:
    requested = shuffled_keys(requests, seed=7)
    with open_session(str(tmp_path / "one.ledger")) as session:
        session.release().request_many(requested)
        expected = session.release().released()[0]
    with open_session(ledger_url) as here, open_session(ledger_url) as there:
        desks = [here.release(), there.release()]
        for number, name in enumerate(requested):
            desks[number % 2].request(name)
        assert desks[0].released()[0] == expected == desks[1].released()[0]
        assert desks[0].counts().tolist() == desks[1].counts().tolist()
        holds(here)


def test_repeated_request_returns_the_same_and_writes_nothing(ledger_url: str) -> None:
    with open_session(ledger_url) as session:
        desk = session.release()
        names = shuffled_keys(120)
        first = desk.request_many(names)
        head = session.ledger.head()
        again = desk.request_many(names)
        assert {n: type(o) for n, o in again.items()} == {n: type(o) for n, o in first.items()}
        assert session.ledger.head() == head


def test_waiting_request_has_a_position_and_can_be_withdrawn(ledger_url: str) -> None:
    with open_session(ledger_url) as session:
        desk = session.release()
        outcomes = desk.request_many(shuffled_keys(200))
        waiting = [name for name, outcome in outcomes.items() if isinstance(outcome, Deferred)]
        places = [desk.status(name).ahead for name in waiting]
        assert places == list(range(len(waiting)))
        desk.withdraw(waiting[0])
        assert isinstance(desk.status(waiting[0]), Refused)
        assert desk.status(waiting[1]).ahead == 0
        with pytest.raises(NotWaiting, match="was withdrawn"):
            desk.withdraw(waiting[0])
        left = next(name for name, outcome in outcomes.items() if isinstance(outcome, Released))
        with pytest.raises(NotWaiting, match="already released"):
            desk.withdraw(left)
        assert not isinstance(
            desk.request(waiting[0]), Refused
        )  # the record can be requested again, at the end of the queue
        assert desk.waiting >= len(waiting) - 1
        holds(session)


def test_concurrently_withdrawn_request_is_not_reported_as_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_session(str(tmp_path / "s.ledger")) as session:
        desk = session.release()
        outcomes = desk.request_many(shuffled_keys(200))
        name = next(name for name, outcome in outcomes.items() if isinstance(outcome, Deferred))
        read_status = desk.status

        def withdrawn_first(key: str | int) -> Any:
            desk.withdraw(key)
            return read_status(key)

        monkeypatch.setattr(desk, "status", withdrawn_first)
        assert isinstance(desk.request(name), Deferred)
        assert isinstance(read_status(name), Refused)


def test_records_after_a_cursor_are_listed_once(tmp_path: Path) -> None:
    with open_session(str(tmp_path / "s.ledger")) as session:
        desk = session.release()
        seen, cursor = [], 0
        for start in range(0, 200, 40):
            desk.request_many(shuffled_keys(200)[start : start + 40])
            records, cursor = desk.released(since=cursor)
            seen += records
        assert seen == desk.released()[0]
        pages, at = [], 0
        while page := desk.released(since=at, limit=7)[0]:
            pages += page
            at = desk.released(since=at, limit=7)[1]
        assert pages == seen


def test_invalid_keys_are_refused_individually(tmp_path: Path) -> None:
    rows = {"name": ["a", "b", "b", "c", "d"], "age": [30, 31, 32, 33, 34], "location": ["L1", "L1", "L2", "L9", "L1"]}
    session = tg.open(soldiers.policy(), table=pa.table(rows), ledger=str(tmp_path / "s.ledger"))
    outcomes = session.release().request_many(["a", "nobody", "b", "c", "d"])
    assert list(outcomes) == ["a", "nobody", "b", "c", "d"]
    assert [isinstance(outcome, Refused) for outcome in outcomes.values()] == [False, True, True, True, False]
    reasons = [outcome.reason for outcome in outcomes.values() if isinstance(outcome, Refused)]
    assert [reason.split()[0] for reason in reasons] == ["no", "several", "the"]
    assert not any("L9" in reason for reason in reasons)


def test_untested_column_is_refused() -> None:
    with pytest.raises(PolicyUnreadable, match=r'"rank" cannot be released .* no test covers it'):
        tg.Policy(
            tg.Dataset("soldiers"),
            {"age": tg.Integer(16, 60), "location": tg.Category(("L1", "L2")), "rank": tg.Category(("a", "b"))},
            concealments={"hq": tg.Concealment(reveals="age", about="location", releases=("age", "location", "rank"))},
        )


def test_baseline_is_taken_from_the_table_once_on_its_day(tmp_path: Path) -> None:
    url = str(tmp_path / "s.ledger")
    with pytest.raises(Infeasible, match="2999-01-01"):
        open_session(url, baseline=(), shares=(), baseline_from_table_on="2999-01-01").release()
    first = open_session(
        str(tmp_path / "t.ledger"), baseline=(), shares=(), baseline_from_table_on="2026-01-01"
    ).release()
    assert [int(10_000 * b) for b in first.plans["headquarters"].baseline] == list(soldiers.BASELINE)
    half = TABLE.slice(0, 5000)
    later = tg.open(first.policy, table=half, ledger=str(tmp_path / "t.ledger")).release()
    assert later.plans["headquarters"].baseline == first.plans["headquarters"].baseline


def test_baseline_that_lacks_a_declared_value_is_refused(tmp_path: Path) -> None:
    young = TABLE.filter(pa.compute.less(TABLE["age"], 50))
    policy = soldiers.policy(baseline=(), shares=(), baseline_from_table_on="2026-01-01")
    with pytest.raises(PolicyUnreadable, match="weight above 0"):
        tg.open(policy, table=young, ledger=str(tmp_path / "s.ledger")).release()
    with pytest.raises(PolicyUnreadable, match="weight 0 for value 10 of 10"):
        soldiers.policy(baseline=(*soldiers.BASELINE[:9], 0))


def test_nothing_is_released_without_a_promise_or_a_baseline(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match='Did you mean "headquarters"'):
        open_session(str(tmp_path / "s.ledger")).release("headquarter")
    with pytest.raises(Infeasible, match="no baseline for age"):
        open_session(str(tmp_path / "t.ledger"), baseline=(), shares=()).release()


def test_promise_of_an_open_desk_can_only_become_stricter(tmp_path: Path) -> None:
    url = str(tmp_path / "s.ledger")
    open_session(url).release().request_many(shuffled_keys(100))
    with pytest.raises(PolicyLoosened):
        open_session(url, significance="0.05").release()
    with pytest.raises(PolicyLoosened):
        open_session(url, baseline=(1,) * 10).release()
    stricter = open_session(url, significance="0.3", tests=("mutual-information", "kullback-leibler", "chi-square"))
    desk = stricter.release()
    before = desk.counts().sum()
    desk.request_many(shuffled_keys(300))
    assert desk.counts().sum() >= before
    holds(stricter)


def test_all_promises_of_a_policy_hold_together(tmp_path: Path) -> None:
    base = soldiers.policy()
    rows = {**soldiers.records(), "sex": ["f" if n % 7 < 2 else "m" for n in range(10_000)]}
    both = tg.Policy(
        base.dataset,
        {**base.attributes, "sex": tg.Category(("f", "m"))},
        concealments={
            **base.concealments,
            "mix": tg.Concealment(reveals="sex", about="location", baseline=(2, 5), tests="kullback-leibler"),
            "joined": tg.Concealment(
                reveals=("age", "sex"),
                about="location",
                baseline=[age * sex for age in soldiers.BASELINE for sex in (2, 5)],
                tests="kullback-leibler",
            ),
        },
    )
    session = tg.open(both, table=pa.table(rows), ledger=str(tmp_path / "s.ledger"))
    desk, other = session.release("headquarters"), session.release("mix")
    desk.request_many(shuffled_keys(150))
    for item in (desk, other, session.release("joined")):
        for readings in item.readings().values():
            assert all(reading.value < reading.critical for reading in readings)
    assert other.counts().sum() == desk.counts().sum() > 0
    assert set(other.released()[0][0]) == {"sex", "location"}
    holds(session)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("column", ["state", "key", "record", "waiting", "cells", "place", "gone", "added"])
def test_verify_detects_a_changed_request(tmp_path: Path, column: str) -> None:
    from sqlalchemy import text

    session = open_session(str(tmp_path / "s.ledger"))
    session.release().request_many(shuffled_keys(200))
    holds(session)
    changes = {
        "state": "UPDATE tidegate_requests SET state = 'released' WHERE state = 'waiting'",
        "key": "UPDATE tidegate_requests SET key = 'abc' WHERE number = 3",
        "record": "UPDATE tidegate_requests SET record = replace(record, 'L1', 'L2') WHERE state = 'released'",
        "waiting": "UPDATE tidegate_requests SET record = replace(record, 'L', 'M') WHERE state = 'waiting'",
        "cells": "UPDATE tidegate_requests SET cells = '1' WHERE number = 7",
        "place": "UPDATE tidegate_requests SET place = 1000 WHERE place = 2",
        "gone": "DELETE FROM tidegate_requests WHERE number = 5",
        "added": "INSERT INTO tidegate_requests SELECT account, 999, 'k', cells, state, 999, entry, record, nonce "
        "FROM tidegate_requests WHERE number = 3",
    }
    with session.ledger.store.engine.begin() as connection:
        connection.execute(text(changes[column]))
    with pytest.raises(LedgerBroken, match="differs from its entries"):
        verify(*session.ledger.snapshot()).refuse()
