"""What was answered before, kept so that a preview need not read it all again.

Entries never change, so that each is parsed once. Of the answers to one question only the one with the least noise is
kept: which one that is does not depend on what they say, and so its interval holds as often as it promises (the best
looking of many intervals would not).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from weakref import WeakKeyDictionary

from tidegate.accounting import DiscreteLaplace, Event, Moments, Together, event_from_dict
from tidegate.ledger import Entry, Ledger
from tidegate.ledger.entry import canonical, sha256

MOST_KEPT = 10_000  # questions of one account; the first asked are forgotten first
KEPT = ("count", "histogram", "sum", "variance", "std")  # what something else can follow from


@dataclass(frozen=True)
class Earlier:
    """One answered question, as the ledger has it."""

    entry: int
    ask: dict[str, Any]
    event: Any
    stored: Any

    @property
    def noise(self) -> Fraction:
        """How wide its noise is; to compare answers to one question."""
        event = self.event
        scales = event.scales if isinstance(event, Moments) else (event.scale,)
        return sum((scale for scale in scales if scale is not None), Fraction(0))


class Quietest:
    """Of every question of an account the answer with the least noise."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._read = 0
        self._best: dict[str, Earlier] = {}
        self._counts: dict[str, Earlier] = {}  # those of all rows: others can be folded from them

    def read(self, account: str, ledger: Ledger) -> None:
        """Take in what was answered since."""
        with self._turn:
            for entry, stored in ledger.answered(account, since=self._read):
                self._read += 1
                for one in answers(entry, stored):
                    self._keep(one)

    def _keep(self, one: Earlier) -> None:
        name = _name(one.ask)
        held = self._best.get(name)
        if held is not None and held.noise <= one.noise:
            return
        self._best[name] = one
        if one.ask["ask"] in ("count", "histogram") and one.ask["where"] is None:
            self._counts[name] = one
        if len(self._best) > MOST_KEPT:
            oldest = next(iter(self._best))
            del self._best[oldest]
            self._counts.pop(oldest, None)

    def counts(self) -> list[Earlier]:
        """Counts and histograms of all rows."""
        with self._turn:
            return list(self._counts.values())

    def of(self, asked: dict[str, Any], *statistics: str) -> list[Earlier]:
        """The answers to exactly this question, but for its statistic: one of those named."""
        names = [_name({**asked, "ask": statistic}) for statistic in statistics]
        with self._turn:
            return [self._best[name] for name in names if name in self._best]


def answers(entry: Entry, stored: Any) -> Iterator[Earlier]:
    """The answers of one entry that something else can follow from."""
    body = entry.content()
    if body["question"].get("verb") != "answer":
        return
    asks = body["question"]["asks"]
    event = event_from_dict(body["event"])
    events: tuple[Event, ...] = event.parts if isinstance(event, Together) and len(asks) > 1 else (event,)
    for ask, one, part in zip(asks, events, stored["parts"], strict=True):
        if ask["ask"] in KEPT and isinstance(one, DiscreteLaplace | Moments):
            yield Earlier(entry.number, ask, one, part)


def _name(ask: dict[str, Any]) -> str:
    return sha256(canonical(ask))


_known: WeakKeyDictionary[Ledger, dict[str, Quietest]] = WeakKeyDictionary()
_turn = threading.Lock()


def _forget() -> None:
    """A forked process starts with nothing: another thread may have been reading while it was copied."""
    global _turn
    _turn = threading.Lock()
    _known.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def earlier_answers(account: str, ledger: Ledger) -> Quietest:
    """What was answered of an account up to now."""
    with _turn:
        found = _known.setdefault(ledger, {}).setdefault(account, Quietest())
    found.read(account, ledger)
    return found
