"""The time of a request, preview, charge or free repeat does not grow with the ledger. Measured in steps, not seconds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from ledger.charges import charge
from ledger.requesters import TABLE
from sqlalchemy import event as sql_event
from support.people import people_policy

import tidegate as tg
from tidegate.ledger import Entry, Ledger, verify
from tidegate.ledger.entry import canonical
from tidegate.ledger.release_book import View
from tidegate.ledger.schema import entries, requests
from tidegate.policy import Loss

FEW, MANY = 30, 3000
STEP = 50  # instructions of SQLite's machine between two calls of the counter
RICH = replace(people_policy(), identification=None, loss=Loss(1000))


@contextmanager
def steps(ledger: Ledger) -> Any:
    """Count the instructions of SQLite's virtual machine: each row that is read takes some."""
    count = [0]

    def tick() -> int:
        count[0] += 1
        return 0

    def watch(connection: Any, record: Any, proxy: Any) -> None:
        connection.set_progress_handler(tick, STEP)

    sql_event.listen(ledger.store.engine, "checkout", watch)
    try:
        yield count
    finally:
        sql_event.remove(ledger.store.engine, "checkout", watch)


def growth(tmp_path: Path, fill: Callable[[str, int], None], work: Callable[[Ledger], Any]) -> tuple[int, int]:
    """Return the steps of some work in a newly opened ledger, with few and with many past entries."""
    counts = []
    for number in (FEW, MANY):
        url = str(tmp_path / f"{number}.ledger")
        fill(url, number)
        ledger = Ledger(url)
        with steps(ledger) as count:
            work(ledger)
        counts.append(count[0])
        ledger.close()
    return counts[0], counts[1]


def write_answers(url: str, number: int) -> None:
    """Write answers to different queries by ten users."""
    ledger = Ledger(url)
    session = tg.open(RICH, table=TABLE, ledger=url)
    session.answer(tg.count().by("sex"), epsilon="0.1", user="ann")
    session.close()
    with ledger.store.writing() as connection:
        (first, second) = [e for e in ledger.entries("people") if e.kind in ("charge", "result")]
        assert (first.kind, second.kind) == ("charge", "result")
        last, rows = second, []
        for at in range(number):
            body = {**first.content(), "who": f"user {at % 10}"}
            body["question"] = {**body["question"], "n": at}
            copy = replace(first, body=canonical(body), request=f"r{at}", question=f"q{at}")
            for entry in (copy, replace(second, request=f"r{at}", question=f"q{at}")):
                last = _after(last, entry)
                rows.append(last.__dict__)
        connection.execute(entries.insert(), rows)
    ledger.close()


def _after(last: Entry, entry: Entry) -> Entry:
    return replace(entry, number=last.number + 1, previous=last.hash).sealed()


def test_first_preview_and_charge_read_no_more_in_a_large_ledger(tmp_path: Path) -> None:
    def work(ledger: Ledger) -> None:
        session = tg.open(RICH, table=TABLE, ledger=str(ledger.store.path))
        session.__dict__["ledger"] = ledger
        assert "from entry 2" in str(session.preview(tg.count().by("sex"), epsilon="0.01"))
        charge(ledger, RICH, "new", "0.1", who="ann", share=tg.accounting.Amount.up("1"))
        ledger.spent_by("people", "ann")

    small, large = growth(tmp_path, write_answers, work)
    assert small > 0
    assert large <= 1.5 * small


def write_requests(url: str, number: int) -> None:
    ledger = Ledger(url)
    rows = [
        {"account": "people", "number": n, "key": f"k{n}", "cells": "1", "state": "released", "place": n, "entry": n}
        | {"record": "{}", "nonce": ""}
        for n in range(1, number + 1)
    ]
    with ledger.store.writing() as connection:
        connection.execute(requests.insert(), rows)
    ledger.close()


def test_desk_request_reads_no_more_after_many_past_requests(tmp_path: Path) -> None:
    def work(ledger: Ledger) -> None:
        with ledger.store.reading() as connection:
            view = View(connection, "people")
            number, entry = view.last()
            assert number == entry >= FEW
            assert view.since(entry) == []
            assert view.find(["k7", "unknown"])["k7"].number == 7
            assert set(view.numbered([3, 4])) == {3, 4}
            assert view.waiting() == []

    small, large = growth(tmp_path, write_requests, work)
    assert large <= 1.5 * small + 2


@pytest.mark.parametrize("statement", ["last", "find", "numbered", "since"])
def test_plans_of_a_desk_request_use_an_index(tmp_path: Path, statement: str) -> None:
    ledger = Ledger(str(tmp_path / "a.ledger"))
    plans: list[str] = []

    def explain(connection: Any, cursor: Any, text: str, values: Any, context: Any, is_batch: Any) -> None:
        if "tidegate_requests" in text and not text.startswith("EXPLAIN"):
            driver = connection.connection.dbapi_connection
            plans.extend(row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {text}", values))

    sql_event.listen(ledger.store.engine, "before_cursor_execute", explain)
    with ledger.store.reading() as connection:
        view = View(connection, "people")
        getattr(view, statement)(*{"find": (["k"],), "numbered": ([1],), "since": (1,)}.get(statement, ()))
    used = [plan for plan in plans if "tidegate_requests" in plan]
    assert used
    expected = {"last": ("(account=?)",), "find": ("key=?",), "numbered": ("number=?",), "since": ("entry>?",)}
    assert all("SEARCH" in plan and any(part in plan for part in expected[statement]) for plan in used), plans
    ledger.close()


def test_policy_desk_and_collection_are_found_without_reading_the_account(tmp_path: Path) -> None:
    from tidegate.ledger import queries

    def work(ledger: Ledger) -> None:
        with ledger.store.reading() as connection:
            assert queries.last_policy(connection, "people")
            assert queries.desk(connection, "people") is None
            assert queries.collection(connection, "people") is None

    small, large = growth(tmp_path, write_answers, work)
    assert large <= 1.5 * small + 2


class Reads(dict[Any, Any]):
    """A dictionary that counts its reads."""

    count = 0

    def get(self, *arguments: Any) -> Any:
        Reads.count += 1
        return super().get(*arguments)

    def put(self, key: Any, value: Any) -> Any:
        before = self.get(key)
        self[key] = value
        return before

    def values(self) -> Any:
        for value in super().values():
            Reads.count += 1
            yield value


def test_verify_takes_constant_time_for_each_free_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = import_module("tidegate.ledger.verify")
    ledger = Ledger(str(tmp_path / "a.ledger"))
    ledger.open_account(RICH)
    for number in range(40):
        charge(ledger, RICH, number, "0.1")
    for number in range(40):
        charge(ledger, RICH, number, "0.1", request=f"again {number}")
    ledger_entries = list(ledger.entries())
    original = module._Replay.__init__

    def count_reads(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        self.charges, self.questions = Reads(), Reads()

    monkeypatch.setattr(module._Replay, "__init__", count_reads)
    assert verify(ledger_entries, {}).problems == []
    assert Reads.count <= 40 + 2 * 40
    ledger.close()


def test_totals_by_user_match_the_entries(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "a.ledger"))
    ledger.open_account(RICH)
    for number in range(30):
        charge(ledger, RICH, number % 20, "0.1", who=f"user {number % 3}")
    expected = {f"user {n}": 0 for n in range(3)}
    for entry in ledger.entries("people"):
        if entry.kind == "charge":
            expected[entry.content()["who"]] += 1
    for user, count in expected.items():
        assert ledger.spent_by("people", user) == tg.accounting.Amount.up(f"{count}/10")
    assert ledger.verify().problems == []
    ledger.close()
