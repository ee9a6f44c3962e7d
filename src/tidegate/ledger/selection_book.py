"""The book of hiding promises: the key of the choices, the openings, and the records that were in the table at that time.

A commitment to the key is in the ledger before the table is read. Entries contain public numbers and salted digests only: no
rank, no threshold, and no count of a single cell.
"""

from __future__ import annotations

import json
import secrets as system
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hmac import HMAC
from itertools import islice
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from tidegate.errors import Infeasible
from tidegate.ledger import queries
from tidegate.ledger.chain import append, commitment, create_secret, unchanged
from tidegate.ledger.entry import HIDING_KEY, HIDING_OPEN, Entry, canonical, sha256
from tidegate.ledger.ledger import Ledger
from tidegate.ledger.release_book import AT_ONCE, ReleaseBook, key_hash
from tidegate.ledger.schema import requests, secrets, selection
from tidegate.ledger.selections import GROUPS, KEY, key_commitment, stored_digest, stored_line
from tidegate.policy import Policy

PART = 20_000  # rows of one statement
_FIELDS = ("key", "epoch", "cell", "digest")
_OF_ACCOUNT = selection.c.account == bindparam("of")
_ROWS = select(*(selection.c[name] for name in _FIELDS)).where(_OF_ACCOUNT).order_by(selection.c.key)
_CUT = update(selection).where(_OF_ACCOUNT, selection.c.key == bindparam("cut")).values(digest="")


@dataclass(frozen=True)
class Selected:
    """A record of the snapshot. `digest` is that of the record if it was chosen for release; empty if not."""

    key: str
    epoch: int
    cell: int
    digest: str


@dataclass(frozen=True)
class Secret:
    """The key of the choices, and the groups that the owner named in private (None if there is no list)."""

    key: bytes
    groups: list[list[str]] | None


class SelectionBook:
    """The selections of one data set."""

    def __init__(self, ledger: Ledger, policy: Policy) -> None:
        self._store, self._desk = ledger.store, ReleaseBook(ledger, policy)
        self.account = policy.dataset.name

    def secret(self) -> Secret | None:
        """Return the key and the private list; None before the first opening."""
        with self._store.reading() as connection:
            return self._secret(connection)

    def _secret(self, connection: Connection) -> Secret | None:
        names = (self.account + KEY, self.account + GROUPS)
        rows = connection.execute(select(secrets).where(secrets.c.account.in_(names))).all()
        stored = {str(name): str(value) for name, value in rows}
        if names[0] not in stored:
            return None
        return Secret(bytes.fromhex(stored[names[0]]), read_groups(stored.get(names[1], "")))

    def commit_key(self, groups: Sequence[Sequence[str]] | None, source: str = "") -> Secret:
        """Create the key with its entry, or return the one that was created before.

        The list of groups can be corrected with another entry, as long as no selection is open. The key stays the same.

        Raises:
            Infeasible: A record was requested before, other groups were named when the selection opened, or another data
                set of this ledger releases records of the same source.
        """
        with self._store.writing() as connection:
            end, head = self._desk.ends(connection)
            known = self._secret(connection)
            if known is not None and (groups is None or _sorted(groups) == known.groups):
                return known
            if known is not None and queries.hiding_openings(connection, self.account):
                raise Infeasible(
                    "Other sensitive groups were named when the selection was first opened. The hidden groups cannot "
                    "change: two different sets would have the sensitive ones in common.",
                    "Leave out the list of sensitive groups.",
                )
            self._desk.refuse_same_source(connection, source)
            if connection.execute(select(requests.c.number).where(requests.c.account == self.account).limit(1)).first():
                raise Infeasible(
                    f'Records of "{self.account}" were requested before the hiding promise was made.',
                    "Open a new data set under another name.",
                )
            key = known.key.hex() if known else create_secret(connection, self.account + KEY)
            body = {"key": key_commitment(key), "groups": self._store_groups(connection, groups)}
            body["secret"] = commitment(self.account, self._account_secret(connection))
            if source:
                body["source"] = key_hash(bytes.fromhex(self._account_secret(connection)), source)
            self._append(connection, end, head, HIDING_KEY, body, f"hiding-key/{end.number + 1 if end else 1}")
            created = self._secret(connection)
        assert created is not None  # noqa: S101  (written above)
        return created

    def _store_groups(self, connection: Connection, groups: Sequence[Sequence[str]] | None) -> str:
        if groups is None:
            return ""
        value = f"{system.token_hex(16)}{canonical(_sorted(groups))}"
        connection.execute(delete(secrets).where(secrets.c.account == self.account + GROUPS))
        connection.execute(insert(secrets), {"account": self.account + GROUPS, "value": value})
        return sha256(value)

    def _account_secret(self, connection: Connection) -> str:
        """Return the secret of the hashes of record keys, which is created if there is none."""
        known = connection.execute(select(secrets.c.value).where(secrets.c.account == self.account)).scalar()
        return str(known) if known else create_secret(connection, self.account)

    def openings(self) -> list[Entry]:
        """Return the entries of all openings in order."""
        with self._store.reading() as connection:
            return queries.hiding_openings(connection, self.account)

    def open(self, body: Mapping[str, Any], rows: Iterable[Selected]) -> Entry:
        """Store the records of a new selection with its entry.

        Raises:
            Infeasible: Another process opened it in the meantime.
        """
        with self._store.writing() as connection:
            end, head = self._desk.ends(connection)
            epochs = [entry.content()["epoch"] for entry in queries.hiding_openings(connection, self.account)]
            if body["epoch"] != max(epochs, default=0) + 1:
                raise Infeasible("Another process opened this selection in the meantime.", "Nothing needs to be done.")
            stored = self._insert(connection, body["epoch"], rows)
            return self._append(
                connection, end, head, HIDING_OPEN, {**body, "stored": stored}, f"hiding/{body['epoch']}"
            )

    def _insert(self, connection: Connection, epoch: int, rows: Iterable[Selected]) -> str:
        """Insert the rows, sorted by key; return their digest."""
        total, remaining = self._digest(connection), iter(rows)
        while part := list(islice(remaining, PART)):
            connection.execute(insert(selection), [{"account": self.account, **row.__dict__} for row in part])
            for row in part:
                total.update(stored_line(row.__dict__))
        return total.hexdigest()

    def _digest(self, connection: Connection) -> HMAC:
        known = self._secret(connection)
        assert known is not None  # noqa: S101  (the key is committed before anything is selected)
        return stored_digest(known.key)

    def cut(self, body: Mapping[str, Any], unchosen: Sequence[str]) -> Entry:
        """Lower the quotas of an open selection: these records, which were not released yet, never will be."""
        with self._store.writing() as connection:
            end, head = self._desk.ends(connection)
            for start in range(0, len(unchosen), PART):
                part = unchosen[start : start + PART]
                connection.execute(_CUT, [{"of": self.account, "cut": key} for key in part])
            total = self._digest(connection)
            for row in _stored_rows(connection, self.account):
                if row["epoch"] == body["epoch"]:
                    total.update(stored_line(row))
            name, content = f"hiding-cut/{end.number + 1 if end else 1}", {**body, "stored": total.hexdigest()}
            return self._append(connection, end, head, HIDING_OPEN, content, name)

    def _append(self, connection: Connection, end: Entry | None, head: Entry, kind: str, body: Any, name: str) -> Entry:
        fields = {"request": name, "question": "", "body": canonical(body)}
        return append(connection, end, kind=kind, amount="0", **fields, **unchanged(head))

    def find(self, connection: Connection, keys: Sequence[str]) -> dict[str, Selected]:
        """Return the selected records of some keys: one lookup in the primary key each."""
        selected: dict[str, Selected] = {}
        for start in range(0, len(keys), AT_ONCE):
            part = list(keys[start : start + AT_ONCE])
            query = select(*(selection.c[name] for name in _FIELDS)).where(
                selection.c.account == self.account, selection.c.key.in_(part)
            )
            selected |= {row.key: Selected(**row._mapping) for row in connection.execute(query)}
        return selected

    def rows(self) -> list[Selected]:
        """Return every record of every snapshot, by key."""
        with self._store.reading() as connection:
            return [Selected(**row) for row in _stored_rows(connection, self.account)]

    def released(self) -> set[str]:
        """Return the key hashes of the released records."""
        query = select(requests.c.key).where(requests.c.account == self.account, requests.c.state == "released")
        with self._store.reading() as connection:
            return set(connection.execute(query).scalars())


def read_groups(value: str) -> list[list[str]] | None:
    """Return the private list of groups from its stored form: a nonce of 32 characters and canonical JSON."""
    return json.loads(value[32:]) if value else None


def _sorted(groups: Sequence[Sequence[str]]) -> list[list[str]]:
    return sorted(list(group) for group in groups)


def _stored_rows(connection: Connection, account: str) -> Iterator[dict[str, Any]]:
    rows = connection.execution_options(yield_per=10_000).execute(_ROWS, {"of": account})
    for row in rows.mappings():
        yield dict(row)
