"""Who left and who waits, as the entries say; and whether the requests stand as they do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.ledger.entry import canonical, sha256


@dataclass
class Releases:
    """The requests of one account as the replay has them."""

    left: dict[int, tuple[str, str, int]] = field(
        default_factory=dict
    )  # number -> key, hash of the record, entry; in order
    waiting: dict[int, tuple[str, str, int]] = field(default_factory=dict)  # number -> key, hash, entry
    withdrawn: dict[int, tuple[str, str, int]] = field(
        default_factory=dict
    )  # number -> key, hash of what remains, entry
    waited: dict[int, str] = field(default_factory=dict)  # number -> hash with which a record that left has waited
    live: set[str] = field(default_factory=set)  # keys that left or wait
    last: int = 0

    def decide(self, body: Any, entry: int) -> list[str]:
        """Take a batch of decisions; what is wrong with it."""
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
        """Take a withdrawal; what is wrong with it."""
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
    """Whether the requests stand as the entries say, nobody left without an entry, and every record is as it was."""
    found: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in requests:
        found.setdefault(row["account"], {})[row["number"]] = row
    wrong = []
    for account in {**releases, **found}:
        said, rows = releases.get(account, Releases()), found.get(account, {})
        stand = {number: _standing(row, said) for number, row in rows.items()}
        expected: dict[int, tuple[Any, ...]] = {
            **{n: ("released", *told, place, "") for place, (n, told) in enumerate(said.left.items(), 1)},
            **{n: ("waiting", *told, None, "") for n, told in said.waiting.items()},
            **{n: ("withdrawn", *told, None, "") for n, told in said.withdrawn.items()},
        }
        different = [n for n in {**expected, **stand} if expected.get(n) != stand.get(n)]
        wrong += [f"request {n} of {account} does not stand as its entries say." for n in sorted(different, key=str)]
    return wrong


def digest(row: Mapping[str, Any]) -> str:
    """The hash of a record and its cells. Of one that waits it is made with a nonce: few records would be hard to guess."""
    hidden = [row["nonce"]] if row["state"] == "waiting" else []
    return sha256(canonical([*hidden, row["cells"], row["record"]]))[:32]


def remains(row: Mapping[str, Any]) -> str:
    """The hash of what stays of a withdrawn request: its cells, hidden by the nonce. Its record is deleted."""
    return sha256(canonical([row["nonce"], row["cells"]]))[:32]


def _standing(row: Mapping[str, Any], said: Releases) -> tuple[Any, ...]:
    """A request as it is stored; the last field names what else is wrong with it."""
    number, state = row["number"], row["state"]
    if not all(isinstance(row[name], str) for name in ("key", "cells", "record", "nonce")):
        return "a field is not of its type", number
    if state == "withdrawn":
        covered = said.withdrawn.get(number, ("", "", 0))[1]
        hashed, odd = remains(row) if covered else "", row["record"] and "a record"
    else:
        hashed, hidden = digest(row), said.waited.get(number)
        odd = "another nonce" if hidden and hidden != digest({**row, "state": "waiting"}) else ""
    return state, row["key"], hashed, row["entry"], row["place"], odd
