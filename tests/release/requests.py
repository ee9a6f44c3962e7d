"""Invariants of a book of requests, with concurrent requesters and killed processes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa

import tidegate as tg
from tidegate.demo import soldiers
from tidegate.ledger import Entry, verify
from tidegate.ledger.entry import DECIDED, WITHDRAWN
from tidegate.release.desk import Desk
from tidegate.release.gate import Controller
from tidegate.release.result import Deferred, Outcome, Refused, Released

RECORDS = soldiers.records()
TABLE = pa.table(RECORDS)
TRUTH = {name: (age, at) for name, age, at in zip(*RECORDS.values(), strict=True)}
Row = dict[str, Any]


def _eager(chance: random.Random) -> list[str]:
    """Return names in the order of their requests, with all of the headquarters', so that many must wait."""
    telling = [name for name, (_, location) in TRUTH.items() if location == "L2"]
    others = [name for name, (_, location) in TRUTH.items() if location != "L2"]
    return chance.sample(names := [*telling, *chance.sample(others, 2700)], len(names))


SHUFFLED = _eager(random.Random(20261116))


def open_session(url: str) -> tg.Session:
    return tg.open(soldiers.policy(), table=TABLE, ledger=url)


@cache
def cell_of(name: str) -> int:
    """Return the cell of a soldier, from the table."""
    age, location = TRUTH[name]
    return soldiers.LOCATIONS.index(location) * 10 + int(np.searchsorted(soldiers.STARTS, age, side="right"))


@dataclass(frozen=True)
class Book:
    """A ledger at one moment: its entries and its requests, by number and by name."""

    entries: list[Entry]
    rows: dict[int, Row]
    names: dict[str, str]  # hash of the key -> name
    plans: dict[str, Any]

    @cached_property
    def live(self) -> dict[str, Row]:
        """The waiting and released requests, by name."""
        return {self.names[row["key"]]: row for row in self.rows.values() if row["state"] != "withdrawn"}

    def in_state(self, state: str) -> list[int]:
        return [number for number, row in self.rows.items() if row["state"] == state]


def checked_book(session: tg.Session) -> Book:
    """Return the book of a ledger after checking all invariants."""
    desk = session.release()
    snapshot = session.ledger.snapshot()
    assert verify(*snapshot).problems == []
    names = {desk._state.hash(name): name for name in SHUFFLED}
    book = Book(snapshot[0], {row["number"]: row for row in snapshot[2]}, names, desk.plans)
    assert sorted(book.rows) == list(range(1, len(book.rows) + 1)), "a number is missing"
    assert len(book.live) == len(book.rows) - len(book.in_state("withdrawn")), "a key is waiting or released twice"
    assert_literal_replay(book)
    assert_counts(book, desk)
    return book


def assert_literal_replay(book: Book) -> None:
    """Assert that a gate in memory releases the same requests in the same order."""
    controller, last = Controller(list(book.plans.values())), 0
    left: list[int] = []
    for entry in book.entries:
        body = entry.content()
        if entry.kind == DECIDED:
            result = [number for number, *_ in body["released"]]
            new = sorted(n for n in (*result, *(n for n, *_ in body["waiting"])) if n > last)
            assert new == list(range(last + 1, last + 1 + len(new))), "numbers follow the decisions"
            cells = np.array([[cell_of(book.names[book.rows[n]["key"]])] for n in new], np.int64).reshape(-1, 1)
            assert controller.decide(cells, np.array(new, np.int64)).released.tolist() == result
            left, last = left + result, last + len(new)
        elif entry.kind == WITHDRAWN:
            number = body["withdrawn"][0]
            assert controller.withdraw(number, (cell_of(book.names[book.rows[number]["key"]]),))
    gone = sorted(book.in_state("released"), key=lambda number: book.rows[number]["place"])
    assert gone == left
    assert len(set(left)) == len(left), "a record was released twice"
    assert controller.waiting == len(book.in_state("waiting"))
    for number in book.in_state("waiting"):
        assert controller.withdraw(number, (cell_of(book.names[book.rows[number]["key"]]),)), "the queue is not intact"


def assert_counts(book: Book, desk: Desk) -> None:
    """Assert that counts match the released records, and that these are true."""
    records, cursor = desk.released()
    counts = np.zeros((5, 10), np.int64)
    for record in records:
        counts.ravel()[cell_of(record["name"])] += 1
        low, high = (int(age) for age in record["age"].split("-"))
        assert low <= TRUTH[record["name"]][0] <= high
        assert record["location"] == TRUTH[record["name"]][1]
    assert desk.counts().tolist() == counts.T.tolist()
    assert cursor == len(records) == len(book.in_state("released"))
    assert desk.waiting == len(book.in_state("waiting"))


def assert_agrees(book: Book, name: str, outcome: dict[str, Any]) -> None:
    """Assert that the outcome a requester received is in the book; a released record stays released and has its entry."""
    row = book.rows[outcome["number"]]
    assert book.names[row["key"]] == name
    if outcome["outcome"] == "released":
        assert row["state"] == "released", "a record was released without its entry"
        assert json.loads(row["record"]) == outcome["record"]
        assert outcome["record"]["name"] == name


def assert_repeatable(session: tg.Session, book: Book, names: Iterable[str]) -> None:
    """Assert that repeated requests return what is in the book and write nothing."""
    head, desk = session.ledger.head(), session.release()
    requested = [name for name in dict.fromkeys(names) if name in book.live]
    for name, outcome in desk.request_many(requested).items():
        row = book.live[name]
        assert isinstance(outcome, Released if row["state"] == "released" else Deferred)
        assert outcome.number == row["number"]
    assert session.ledger.head() == head


def as_sent(outcomes: dict[str, Outcome]) -> dict[str, dict[str, Any]]:
    """Return outcomes as they are sent."""
    assert not any(isinstance(outcome, Refused) for outcome in outcomes.values())
    return {name: outcome.to_dict() for name, outcome in outcomes.items()}
