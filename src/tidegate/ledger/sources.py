"""The answers from which others can follow, found without reading the whole ledger.

Of the answers to one query only the one with the least noise is listed. That choice does not depend on their values, so its
interval keeps its confidence (the best looking of many intervals would not). The list follows from the entries; it is
written in the transaction that records an answer, and `verify` recomputes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

from sqlalchemy import Connection, bindparam, select

from tidegate.accounting import (
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    GaussianMoments,
    Moments,
    Together,
    event_from_dict,
)
from tidegate.ledger.entry import ANSWERED, CHARGED, Entry, canonical, entry_from, sha256
from tidegate.ledger.schema import entries, results, sources
from tidegate.ledger.scratch import Mapping
from tidegate.ledger.statements import Statement, write

LISTED = ("count", "histogram", "sum", "variance", "std")  # statistics from which others can follow
NOISY = (DiscreteLaplace, Moments, DiscreteGaussian, GaussianMoments)
Row = dict[str, Any]
_NAMES = ("account", "name", "charge", "result", "part", "noise", "folds")
_PUT = Statement(  # insert a source, or replace one that has more noise
    "INSERT INTO tidegate_sources (account, name, charge, result, part, noise, folds) "
    "VALUES ({0}, {0}, {0}, {0}, {0}, {0}, {0}) ON CONFLICT (account, name) DO UPDATE SET charge = excluded.charge, "
    "result = excluded.result, part = excluded.part, noise = excluded.noise, folds = excluded.folds "
    "WHERE excluded.noise < tidegate_sources.noise"
)
_ANSWERS = entries.alias()
_FOUND = (
    select(sources.c.part, sources.c.result, entries, results.c.payload)
    .join(entries, entries.c.number == sources.c.charge)
    .join(_ANSWERS, (_ANSWERS.c.number == sources.c.result) & (_ANSWERS.c.kind == ANSWERED))
    .join(results, results.c.number == sources.c.result)
    .where(_ANSWERS.c.request == entries.c.request, _ANSWERS.c.account == entries.c.account)
    .where(sources.c.account == bindparam("account"))
)
BY_NAME = _FOUND.where(sources.c.name == bindparam("name"))
FOLDING = _FOUND.where(sources.c.folds == 1, sources.c.result > bindparam("since")).order_by(sources.c.result)


def name_of(ask: dict[str, Any]) -> str:
    """Return the name of a query: the hash of its content."""
    return sha256(canonical(ask))


def noise_of(event: Any) -> Fraction:
    """Return the width of the noise of an event, to compare answers to one query."""
    if isinstance(event, DiscreteGaussian):
        return event.sigma
    if isinstance(event, GaussianMoments):
        return sum((sigma for sigma in event.sigmas if sigma is not None), Fraction(0))
    scales = event.scales if isinstance(event, Moments) else (event.scale,)
    return sum((scale for scale in scales if scale is not None), Fraction(0))


@lru_cache(maxsize=4096)
def read_event(text: str) -> Event:
    """Return the event of a canonical text. Most charges of a ledger have one of a few events."""
    return event_from_dict(json.loads(text))


@lru_cache(maxsize=4096)
def _noise(event: Event) -> float:
    return float(noise_of(event))


def parts_of(body: Any, text: str = "") -> Iterator[tuple[int, dict[str, Any], Any]]:
    """Yield the queries of a charge from which others can follow: index, query, event. `text` is its canonical event."""
    question = body["question"]
    asks = question.get("asks") if isinstance(question, dict) and question.get("verb") == "answer" else None
    if not asks or "plan" in question:  # measured together: the integers are not those of single queries
        return
    event = read_event(text or canonical(body["event"]))
    events: tuple[Event, ...] = event.parts if isinstance(event, Together) and len(asks) > 1 else (event,)
    for part, (ask, part_event) in enumerate(zip(asks, events, strict=True)):
        if ask["ask"] in LISTED and isinstance(part_event, NOISY):
            yield part, ask, part_event


def listed(body: Any, text: str = "") -> list[tuple[str, int, float, int]]:
    """Return the queries of a charge from which others can follow: name, index, noise, whether counts can be folded."""
    return [
        (
            name_of(ask),
            part,
            _noise(event),
            int(ask["ask"] in ("count", "histogram") and ask["where"] is None),
        )
        for part, ask, event in parts_of(body, text)
    ]


def rows_of(charge: Entry, result: int) -> list[Row]:
    """Return the rows that an answered charge adds."""
    return [_row(charge.account, charge.number, result, *query) for query in listed(charge.content())]


def _row(account: str, charge: int, result: int, name: str, part: int, noise: float, folds: int) -> Row:
    fields = (account, name, charge, result, part, noise, folds)
    return dict(zip(_NAMES, fields, strict=True))


def put(connection: Connection, charge: Entry, result: int) -> None:
    """List an answer, in the transaction that records it."""
    for row in rows_of(charge, result):
        write(connection, _PUT, tuple(row[name] for name in _NAMES))


@dataclass
class Sources:
    """The list that follows from the entries."""

    rows: Mapping = field(default_factory=Mapping)
    sizes: dict[str, int] = field(default_factory=dict)  # by account

    def add(self, account: str, charge: int, result: int, queries: Iterable[Any]) -> None:
        """Add the queries of an answered charge (see `listed`)."""
        for name, part, noise, folds in queries:
            key = f"{account}/{name}"
            before = self.rows.put(key, [charge, result, part, noise, folds])
            if before is None:
                self.sizes[account] = self.sizes.get(account, 0) + 1
            elif before[3] <= noise:
                self.rows[key] = before

    def compare(self, rows: Iterable[Any]) -> list[str]:
        """Return a problem for each listed answer that does not follow from the entries."""
        wrong, sizes = [], dict.fromkeys(self.sizes, 0)
        remaining = iter(rows)
        while part := [[row[column] for column in _NAMES] for row in islice(remaining, 500)]:
            expected = self.rows.get_all([f"{account}/{name}" for account, name, *_ in part])
            for row, fields in zip(part, expected, strict=True):
                sizes[row[0]] = sizes.get(row[0], 0) + 1
                if row[2:] != fields:
                    wrong.append(row[0])
        wrong += [account for account, size in sizes.items() if size < self.sizes.get(account, 0)]
        return [f"The list of answers of {account} does not follow from its entries." for account in wrong]


def rebuild(connection: Connection, ledger_entries: Iterable[Entry]) -> None:
    """List the answers of a ledger that has no list yet."""
    charges: dict[tuple[str, str], Entry] = {}
    for entry in ledger_entries:
        if entry.kind == CHARGED:
            charges[entry.account, entry.request] = entry
        elif entry.kind == ANSWERED and (entry.account, entry.request) in charges:
            put(connection, charges[entry.account, entry.request], entry.number)


def find(connection: Connection, statement: Any, **named: Any) -> Iterator[tuple[int, int, Entry, Any]]:
    """Yield the listed answers: index of the query, result entry, charge, stored result."""
    for row in connection.execute(statement, named).mappings():
        yield row["part"], row["result"], entry_from(dict(row)), json.loads(row["payload"])
