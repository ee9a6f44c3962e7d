"""What was answered before: the ledger lists the least noisy answer to each question, so that a preview reads only those.

Counts of all rows, which other counts can be folded from, are kept: entries never change, so that each is parsed once.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from tidegate.ledger import Entry, Ledger
from tidegate.ledger.sources import name_of, parts_of

MOST_KEPT = 10_000  # counts of one account; the oldest are dropped first


@dataclass(frozen=True)
class Earlier:
    """One answered query from the ledger."""

    entry: int
    ask: dict[str, Any]
    event: Any
    stored: Any


class _Counts:
    """The counts of all rows of one account that this process has read."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._read = 0
        self._by_name: dict[str, Earlier] = {}

    def read(self, ledger: Ledger, account: str) -> list[Earlier]:
        """Read the answers since the last call, and return all."""
        with self._turn:
            for part, result, charge, stored in ledger.folding(account, since=self._read):
                answer = _answer(charge, part, stored)
                self._by_name.pop(name_of(answer.ask), None)
                self._by_name[name_of(answer.ask)] = answer
                self._read = result
                if len(self._by_name) > MOST_KEPT:
                    del self._by_name[next(iter(self._by_name))]
            return list(self._by_name.values())


@dataclass(frozen=True)
class Quietest:
    """The answer with the least noise to every query of an account."""

    _ledger: Ledger
    _account: str
    _read: _Counts

    def counts(self) -> list[Earlier]:
        """Return the counts and histograms of all rows."""
        return self._read.read(self._ledger, self._account)

    def of(self, question: dict[str, Any], *statistics: str) -> list[Earlier]:
        """Return the answers to this query with one of some statistics instead of its own."""
        names = [name_of({**question, "ask": statistic}) for statistic in statistics]
        rows = [row for name in names for row in self._ledger.sources(self._account, name)]
        answers = [_answer(charge, part, stored) for part, _, charge, stored in rows]
        return [answer for answer in answers if name_of(answer.ask) in names]  # whatever the list says


def _answer(charge: Entry, part: int, stored: Any) -> Earlier:
    ask, event = next((ask, event) for index, ask, event in parts_of(charge.content()) if index == part)
    return Earlier(charge.number, ask, event, stored["parts"][part])


_known: WeakKeyDictionary[Ledger, dict[str, _Counts]] = WeakKeyDictionary()
_turn = threading.Lock()


def _forget() -> None:
    """Clear the cache in a forked process: another thread can have been reading while it was copied."""
    global _turn
    _turn = threading.Lock()
    _known.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def earlier_answers(account: str, ledger: Ledger) -> Quietest:
    """Return the earlier answers of an account."""
    with _turn:
        counts = _known.setdefault(ledger, {}).setdefault(account, _Counts())
    return Quietest(ledger, account, counts)
