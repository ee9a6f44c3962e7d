"""A replay of releases from the entries, and a comparison with the stored requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.ledger.entry import canonical, sha256


@dataclass
class Releases:
    """The requests of one account in the replay."""

    left: dict[int, tuple[str, str, int]] = field(
        default_factory=dict
    )  # number -> key, hash of the record, entry; in order
    waiting: dict[int, tuple[str, str, int]] = field(default_factory=dict)  # number -> key, hash, entry
    withdrawn: dict[int, tuple[str, str, int]] = field(
        default_factory=dict
    )  # number -> key, hash of what remains, entry
    waited: dict[int, str] = field(default_factory=dict)  # number -> hash of a released record while it was waiting
    live: set[str] = field(default_factory=set)  # keys of released records and waiting requests
    last: int = 0

    def decide(self, body: Any, entry: int) -> list[str]:
        """Replay a batch of decisions; return its problems."""
        wrong = []
        for number, key, said in body["released"]:
            waited, hidden, _ = self.waiting.pop(number, (None, "", 0))
            new = waited is None and number > self.last and number not in self.left and key not in self.live
            if not new and waited != key:
                wrong.append(f"request {number:,} leaves, but its record left before, was withdrawn, or is another's")
            if hidden:
                self.waited[number] = hidden
            self.left[number] = key, said, entry
            self.live.add(key)
        for number, key, said in body["waiting"]:
            if number <= self.last or number in self.left or number in self.waiting or key in self.live:
                wrong.append(f"request {number:,} waits anew, but was decided before")
            self.waiting[number] = key, said, entry
            self.live.add(key)
        self.last = max([self.last, *(number for number, *_ in (*body["released"], *body["waiting"]))])
        return wrong

    def withdraw(self, body: Any, entry: int) -> list[str]:
        """Replay a withdrawal; return its problems."""
        number, key = body["withdrawn"]
        wrong = (
            []
            if self.waiting.pop(number, (None, "", 0))[0] == key
            else [f"request {number:,} is withdrawn, but does not wait"]
        )
        self.withdrawn[number] = key, body.get("remains", ""), entry
        self.live.discard(key)
        return wrong


def compare(releases: Mapping[str, Releases], requests: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a problem for each request that differs from the entries: its state, its entry, or its record."""
    rows_by_account: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in requests:
        rows_by_account.setdefault(row["account"], {})[row["number"]] = row
    wrong = []
    for account in {**releases, **rows_by_account}:
        replayed, rows = releases.get(account, Releases()), rows_by_account.get(account, {})
        stored = {number: _standing(row, replayed) for number, row in rows.items()}
        expected: dict[int, tuple[Any, ...]] = {
            **{n: ("released", *fields, position, "") for position, (n, fields) in enumerate(replayed.left.items(), 1)},
            **{n: ("waiting", *fields, None, "") for n, fields in replayed.waiting.items()},
            **{n: ("withdrawn", *fields, None, "") for n, fields in replayed.withdrawn.items()},
        }
        different = [n for n in {**expected, **stored} if expected.get(n) != stored.get(n)]
        wrong += [f"request {n} of {account} does not stand as its entries say." for n in sorted(different, key=str)]
    return wrong


def digest(row: Mapping[str, Any]) -> str:
    """Return the hash of a record and its cells. For a waiting request it includes a nonce: records are easy to guess."""
    hidden = [row["nonce"]] if row["state"] == "waiting" else []
    return sha256(canonical([*hidden, row["cells"], row["record"]]))[:32]


def remains(row: Mapping[str, Any]) -> str:
    """Return the hash of the rest of a withdrawn request: its cells, hidden by the nonce. Its record is deleted."""
    return sha256(canonical([row["nonce"], row["cells"]]))[:32]


def _standing(row: Mapping[str, Any], replayed: Releases) -> tuple[Any, ...]:
    """Return a request as stored; the last field names another problem."""
    number, state = row["number"], row["state"]
    if not all(isinstance(row[name], str) for name in ("key", "cells", "record", "nonce")):
        return "a field is not of its type", number
    if state == "withdrawn":
        covered = replayed.withdrawn.get(number, ("", "", 0))[1]
        hashed, odd = remains(row) if covered else "", row["record"] and "a record"
    else:
        hashed, hidden = digest(row), replayed.waited.get(number)
        odd = "another nonce" if hidden and hidden != digest({**row, "state": "waiting"}) else ""
    return state, row["key"], hashed, row["entry"], row["place"], odd
