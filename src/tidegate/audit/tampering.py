"""The ledger: somebody changes the record behind our back. Every change must be found, exactly, with no chance in it.

The user's own ledger is read once and copied in memory; where there is none, a small one is made up. `verify` sees the
copies. Who makes all hashes anew, or cuts off the tail, is found by a head that was noted elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tidegate.accounting import Amount
from tidegate.audit.answers.ask import FrontDoor
from tidegate.audit.answers.situations import situations
from tidegate.audit.fake_data import ceiling_of, table_of
from tidegate.audit.finding import Clock, Finding
from tidegate.ledger import Entry, Ledger, verify
from tidegate.ledger.entry import CHARGED
from tidegate.ledger.queries import Snapshot
from tidegate.policy import Policy

Entries = list[Entry]
Payloads = dict[int, str]
Verifier = Callable[..., Any]
EACH, FEW = 40, 8  # tries of one kind; where time runs out
KNOWS = "the whole database, with write access; where the head is noted elsewhere, they can also recompute every hash"
TEXTS = tuple(name for name in Entry.__dataclass_fields__ if name != "number")


@dataclass(frozen=True)
class Copy:
    """What a ledger holds, in memory."""

    entries: Entries
    payloads: Payloads
    requests: list[dict[str, Any]]
    counts: list[dict[str, Any]]
    rest: tuple[Any, ...] = ()  # secrets, report ids, totals by name, and the list of answers

    @classmethod
    def of(cls, snapshot: Snapshot) -> Copy:
        return cls(*snapshot[:4], rest=tuple(snapshot[4:]))

    @property
    def head(self) -> str:
        return self.entries[-1].hash

    def problems(
        self, check: Verifier, *, entries: Any = None, payloads: Any = None, noted: bool = False, rest: Any = ()
    ) -> list[str]:
        told = self.entries if entries is None else entries
        kept = self.payloads if payloads is None else payloads
        verdict = check(told, kept, self.requests, self.counts, *rest, head=self.head if noted else "")
        return list(verdict.problems)


def attack_ledger(
    policy: Policy, *, alpha: float, seconds: float, seed: int, address: str = "", check: Verifier = verify
) -> list[Finding]:
    """Every way to change a record that we can think of, on a copy of the ledger at an address (or of a made-up one)."""
    clock, random = Clock(seconds), np.random.default_rng([seed, 13])
    copy, where = _copied(address), "a copy of the ledger"
    if copy is None or not any(entry.number for entry in copy.entries):
        copy, where = made_up(policy), "a simulated ledger (no ledger exists yet)"
    if copy is None:
        return []
    found = [_as_it_is(copy, where, check, clock)]
    if found[0].broken:
        return found
    for name, forge in FORGERIES.items():
        found.append(_tried(name, forge, copy, where, check, random, clock))
    return found


def _as_it_is(copy: Copy, where: str, check: Verifier, clock: Clock) -> Finding:
    problems = copy.problems(check, noted=True, rest=copy.rest)
    many = "1 entry" if len(copy.entries) == 1 else f"{len(copy.entries):,} entries"
    says = f"{many} of {where}: " + (problems[0] if problems else "every check passed.")
    return _finding("the record as it is", says, broken=bool(problems), tries=1, seconds=clock.spent)


def _tried(
    name: str, forge: Forgery, copy: Copy, where: str, check: Verifier, random: np.random.Generator, clock: Clock
) -> Finding:
    """One kind of forgery, many times. Its words say whether it takes a noted head to be found."""
    pace = Clock(0)
    missed = tries = 0
    for _ in range(EACH):
        forged = forge(copy, random)
        if forged is None:
            continue
        tries += 1
        missed += not copy.problems(check, entries=forged[0], payloads=forged[1], noted=name in WITH_HEAD)
        if clock.over and tries >= FEW:
            break
    how = " with the head noted elsewhere" if name in WITH_HEAD else ""
    says = f"{tries} forgeries of {where}{how}: " + (f"{missed} were not detected." if missed else "all were detected.")
    if not tries:
        return replace(_finding(name, "there was nothing of this kind to forge.", broken=False), verdict="not tried")
    return _finding(name, says, broken=missed > 0, tries=tries, seconds=pace.spent)


def _finding(attack: str, says: str, *, broken: bool, tries: int = 0, seconds: float = 0.0) -> Finding:
    promise = "`tidegate ledger verify` detects any change to the record"
    verdict: Any = "broken" if broken else "held"
    return Finding("ledger", promise, attack, KNOWS, says[0].upper() + says[1:], verdict, tries=tries, seconds=seconds)


# Forgeries: the entries and stored results after a change, or None where there is nothing to change

Forgery = Callable[[Copy, np.random.Generator], tuple[Entries, Payloads] | None]


def one_character(copy: Copy, random: np.random.Generator) -> tuple[Entries, Payloads] | None:
    """One character of one field of one entry."""
    entries = list(copy.entries)
    at, field = int(random.integers(len(entries))), str(random.choice(TEXTS))
    change: dict[str, Any] = {field: _edited(getattr(entries[at], field), random)}
    entries[at] = replace(entries[at], **change)
    return entries, copy.payloads


def a_result(copy: Copy, random: np.random.Generator) -> tuple[Entries, Payloads] | None:
    """One character of a stored result."""
    if not copy.payloads:
        return None
    number = int(random.choice(list(copy.payloads)))
    return copy.entries, {**copy.payloads, number: _edited(copy.payloads[number], random)}


def taken_out(copy: Copy, random: np.random.Generator) -> tuple[Entries, Payloads] | None:
    """An entry is gone, the others are numbered anew."""
    if len(copy.entries) < 2:
        return None
    at = int(random.integers(len(copy.entries) - 1))
    rest = [*copy.entries[:at], *(replace(one, number=one.number - 1) for one in copy.entries[at + 1 :])]
    return rest, _renumbered(copy.payloads, copy.entries[at].number)


def swapped(copy: Copy, random: np.random.Generator) -> tuple[Entries, Payloads] | None:
    """Two entries change places and numbers."""
    if len(copy.entries) < 2:
        return None
    one, other = (int(at) for at in random.choice(len(copy.entries), 2, replace=False))
    entries = list(copy.entries)
    entries[one], entries[other] = (
        replace(copy.entries[other], number=copy.entries[one].number),
        replace(copy.entries[one], number=copy.entries[other].number),
    )
    return entries, copy.payloads


def cheaper(copy: Copy, random: np.random.Generator) -> tuple[Entries, Payloads] | None:
    """A charge and the totals after it are written smaller, and every hash is made anew: the price of its event shows it."""
    charges = [at for at, one in enumerate(copy.entries) if one.kind == CHARGED]
    if not charges:
        return None
    at = int(random.choice(charges))
    less = Amount.parse(copy.entries[at].amount).grains // 2
    entries = list(copy.entries)
    entries[at] = replace(entries[at], amount=str(Amount(less)))
    for place in range(at, len(entries)):
        if entries[place].account == entries[at].account:
            spent = Amount(max(0, Amount.parse(entries[place].spent).grains - less))
            entries[place] = replace(entries[place], spent=str(spent))
    return list(_sealed(entries)), copy.payloads


def cut_off(copy: Copy, random: np.random.Generator) -> tuple[Entries, Payloads] | None:
    """The last entries are gone, as if they had never been."""
    kept = int(random.integers(len(copy.entries)))
    gone = copy.entries[kept].number
    return copy.entries[:kept], {n: payload for n, payload in copy.payloads.items() if n < gone}


def written_anew(copy: Copy, random: np.random.Generator) -> tuple[Entries, Payloads] | None:
    """A time is changed and every hash after it made anew: consistent in itself."""
    entries = list(copy.entries)
    at = int(random.integers(len(entries)))
    entries[at] = replace(entries[at], at=f"{entries[at].at} ")
    return list(_sealed(entries)), copy.payloads


FORGERIES: dict[str, Forgery] = {
    "one character of an entry": one_character,
    "one character of a stored result": a_result,
    "an entry removed": taken_out,
    "two entries swapped": swapped,
    "a charge reduced, hashes recomputed": cheaper,
    "the tail cut off": cut_off,
    "everything rewritten": written_anew,
}
WITH_HEAD = ("the tail cut off", "everything rewritten")


def _edited(text: str, random: np.random.Generator) -> str:
    """The text with one character changed, or put in where it is empty."""
    if not text:
        return "x"
    at = int(random.integers(len(text)))
    return text[:at] + ("1" if text[at] != "1" else "2") + text[at + 1 :]


def _sealed(entries: Entries) -> Iterator[Entry]:
    previous = entries[0].previous
    for entry in entries:
        sealed = replace(entry, previous=previous).sealed()
        previous = sealed.hash
        yield sealed


def _renumbered(payloads: Mapping[int, str], gone: int) -> Payloads:
    return {n - (n > gone): payload for n, payload in payloads.items() if n != gone}


def _copied(address: str) -> Copy | None:
    """The ledger at an address, read only; None where there is none."""
    if not address or ("://" not in address and not Path(address).exists()):
        return None
    ledger = Ledger(address, read_only=True)
    try:
        return Copy.of(ledger.snapshot())
    finally:
        ledger.close()


def made_up(policy: Policy) -> Copy | None:
    """A few answers about a made-up data set; None where nothing can be asked."""
    found = situations(policy)
    if not found:
        return None
    copied = found[0].policy
    with TemporaryDirectory() as folder:
        front = FrontDoor(copied, Path(folder))
        try:
            table = table_of(copied, found[0].world(found[0].special).units)
            for _ in range(3):
                front.ask(table, found[0].questions()[:2], epsilon=ceiling_of(copied).value / 4)
            return Copy.of(front.snapshot())
        finally:
            front.close()
