"""Who left and who waits, as the entries say; and whether the requests stand as they do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.ledger.entry import canonical, sha256


@dataclass
class Releases:
    """The requests of one account as the replay has them."""

    left: dict[int, tuple[str, str]] = field(default_factory=dict)  # number -> key, hash of the record; in order
    waiting: dict[int, tuple[str, str]] = field(default_factory=dict)  # number -> key, hash
    withdrawn: dict[int, str] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)  # keys that left or wait
    last: int = 0

    def decide(self, body: Any) -> list[str]:
        """Take a batch of decisions; what is wrong with it."""
        wrong = []
        for number, key, said in body["released"]:
            waited, _ = self.waiting.pop(number, (None, ""))
            new = waited is None and number > self.last and number not in self.left and key not in self.live
            if not new and waited != key:
                wrong.append(f"request {number:,} leaves, but its record left before, was withdrawn, or is another's")
            self.left[number] = key, said
            self.live.add(key)
        for number, key, said in body["waiting"]:
            if number <= self.last or number in self.left or number in self.waiting or key in self.live:
                wrong.append(f"request {number:,} waits anew, but was decided before")
            self.waiting[number] = key, said
            self.live.add(key)
        self.last = max([self.last, *(number for number, *_ in (*body["released"], *body["waiting"]))])
        return wrong

    def withdraw(self, body: Any) -> list[str]:
        """Take a withdrawal; what is wrong with it."""
        number, key = body["withdrawn"]
        wrong = (
            []
            if self.waiting.pop(number, (None, ""))[0] == key
            else [f"request {number:,} is withdrawn, but does not wait"]
        )
        self.withdrawn[number] = key
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
        stand = {number: _standing(row) for number, row in rows.items()}
        expected: dict[int, tuple[Any, ...]] = {
            **{n: ("released", *told, place) for place, (n, told) in enumerate(said.left.items(), 1)},
            **{n: ("waiting", *told, None) for n, told in said.waiting.items()},
            **{n: ("withdrawn", key, "", None) for n, key in said.withdrawn.items()},
        }
        different = [n for n in {**expected, **stand} if expected.get(n) != stand.get(n)]
        wrong += [f"request {n:,} of {account} does not stand as its entries say." for n in sorted(different)]
    return wrong


def digest(row: Mapping[str, Any]) -> str:
    """The hash of a record and its cells. Of one that waits it is made with a nonce: few records would be hard to guess."""
    hidden = [row["nonce"]] if row["state"] == "waiting" else []
    return sha256(canonical([*hidden, row["cells"], row["record"]]))[:32]


def _standing(row: Mapping[str, Any]) -> tuple[Any, ...]:
    said = digest(row) if row["state"] != "withdrawn" else ""
    return row["state"], row["key"], said, row["place"]
