"""A ledger with entries of every kind, and ways to tamper with it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from uuid import uuid4

from hypothesis import assume
from hypothesis import strategies as st
from ledger.charges import charge
from support.people import people_policy

from tidegate.ledger import Entry, Ledger, Verdict, verify
from tidegate.policy import Dataset, Policy

FIELDS = tuple(field.name for field in fields(Entry))
TEXTS = tuple(name for name in FIELDS if name != "number")


@dataclass(frozen=True)
class Record:
    """The contents of a ledger, in memory and as a file."""

    path: Path
    entries: tuple[Entry, ...]
    payloads: dict[int, str]
    lines: bytes

    def verify(self, entries: Any, payloads: dict[int, str] | None = None, *, head: str = "") -> Verdict:
        return verify(entries, self.payloads if payloads is None else payloads, head=head)

    @contextmanager
    def open_copy(self, *, loose: bool = False) -> Iterator[Forged]:
        """Open a copy to tamper with. A `loose` copy has no types, keys or constraints."""
        path = self.path.with_name(f"{uuid4().hex}.ledger")
        shutil.copy(self.path, path)
        sql = sqlite3.connect(path, isolation_level=None)
        sql.execute("PRAGMA synchronous = OFF")
        try:
            if loose:
                _loosen(sql)
            yield Forged(path, sql)
        finally:
            sql.close()
            path.unlink()


@dataclass(frozen=True)
class Forged:
    """A copy of the record's file, with a connection to change it."""

    path: Path
    sql: sqlite3.Connection

    def run(self, statement: str, *values: Any) -> None:
        self.sql.execute(statement, values)

    @property
    def holds(self) -> bool:
        """Whether `verify` accepts the copy."""
        ledger = Ledger(str(self.path), read_only=True)
        try:
            return verify(ledger.entries(), ledger.payloads()).holds
        finally:
            ledger.close()


def _loosen(sql: sqlite3.Connection) -> None:
    for table in ("tidegate_entries", "tidegate_results"):
        names = ", ".join(row[1] for row in sql.execute(f"PRAGMA table_info({table})"))
        sql.execute(f"CREATE TABLE loose ({names})")
        sql.execute(f"INSERT INTO loose SELECT {names} FROM {table}")
        sql.execute(f"DROP TABLE {table}")
        sql.execute(f"ALTER TABLE loose RENAME TO {table}")


def write(url: str) -> Ledger:
    """Write fourteen entries: two accounts, a changed policy, charges with and without results, and a fresh answer."""
    ledger, people = Ledger(url), people_policy()
    stricter = people_policy(rho="0.09")
    others = Policy(Dataset("others"), people.attributes, people.identification)
    ledger.open_account(people)
    charge(ledger, people, "a", "0.1", says="die Zahl der Bürger", who="Zoë").record({"cells": [12, 30], "é": "ü"})
    late = charge(ledger, people, "b", "0.2", request="key b")
    ledger.open_account(others)
    charge(ledger, others, "a", "0.1").record({"cells": [5]})
    ledger.open_account(stricter)
    charge(ledger, stricter, "c", "1/3", who="Ann").record({"cells": [12, 30], "é": "ü"})
    late.record({"cells": []})
    charge(ledger, stricter, "a", "0.1", request="once more", fresh=True)
    charge(ledger, others, "d", "1e-30").record("nothing")
    return ledger


@st.composite
def edits(draw: st.DrawFn, text: str) -> str:
    """Draw the text with one character changed, inserted or deleted."""
    at = draw(st.integers(0, len(text)))
    new = draw(
        st.sampled_from(["", "0", "1", " ", "a", "\n", "\\", '"']) | st.characters(codec="utf-8", min_codepoint=1)
    )
    changed = text[:at] + new + text[at + draw(st.integers(0, 1)) :]
    assume(changed != text)
    return changed
