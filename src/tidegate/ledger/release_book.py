"""The book of requests for records. Decision, queue, record and entry are committed together, or not at all.

with book.turn() as turn:                 no other process decides in the meantime
    rows = turn.since(seen)               decisions of others since the last read
    ...                                   decide
    turn.decide(requests, released)       one entry for the batch
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets as system
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from tidegate.errors import Infeasible, StalePolicy
from tidegate.ledger import queries
from tidegate.ledger.chain import SERVICE, add_result, append, commitment, create_secret, ends, unchanged
from tidegate.ledger.entry import DECIDED, DESK, WITHDRAWN, Entry, canonical, sha256
from tidegate.ledger.ledger import Ledger
from tidegate.ledger.replay import digest, remains
from tidegate.ledger.schema import LIVE, entries, requests, secrets
from tidegate.policy import Policy
from tidegate.policy.joins import refuse_untested_join

WAITING, RELEASED, WITHHELD, WITHDRAWN_STATE = "waiting", "released", "withheld", "withdrawn"
AT_ONCE = 400  # keys per statement
_OF_ACCOUNT = requests.c.account == bindparam("account")
_CHANGED = select(requests.c.number, requests.c.cells, requests.c.state).where(
    _OF_ACCOUNT, requests.c.entry > bindparam("seen")
)
_WAITING = (
    select(requests.c.number, requests.c.cells)
    .where(_OF_ACCOUNT, requests.c.state == WAITING)
    .order_by(requests.c.number)
)
_COUNTS = (
    select(requests.c.cells, func.count()).where(_OF_ACCOUNT, requests.c.state == RELEASED).group_by(requests.c.cells)
)
_LAST = select(  # two lookups in two indexes: both maxima at once would read every request
    select(func.max(requests.c.number)).where(_OF_ACCOUNT).scalar_subquery(),
    select(func.max(requests.c.entry)).where(_OF_ACCOUNT).scalar_subquery(),
)
_LEAVE = (
    requests.update()
    .where(requests.c.account == bindparam("of"), requests.c.number == bindparam("old"), requests.c.state == WAITING)
    .values(state=RELEASED, place=bindparam("at"), entry=bindparam("by"))
)
_ADD = requests.insert()


@dataclass(frozen=True)
class StoredRequest:
    """A stored request. `key` is the hash of the record's key; `record` is the record to release, as canonical JSON."""

    number: int
    key: str
    cells: str
    record: str
    state: str = WAITING
    place: int | None = None
    nonce: str = field(default_factory=lambda: system.token_hex(16))

    def shown(self, columns: Iterable[str]) -> dict[str, Any]:
        """Return the values of some columns; None for each if the content was deleted (`tidegate ledger expire`)."""
        record = json.loads(self.record) if self.record else None
        return {name: None if record is None else record[name] for name in columns}


class ReleaseBook:
    """The requests of one data set."""

    def __init__(self, ledger: Ledger, policy: Policy) -> None:
        self._store, self.policy, self.account = ledger.store, policy, policy.dataset.name

    def desk(self) -> tuple[Entry, Any] | None:
        """Return the entry that opened the desk and its plans; None if it was not opened yet."""
        with self._store.reading() as connection:
            entry = queries.desk(connection, self.account)
            return (entry, json.loads(queries.payload(connection, entry.number))) if entry else None

    def open_desk(self, plans: Any, desk: str, source: str = "") -> tuple[Entry, Any]:
        """Open a desk with these plans, or with others that were recorded for the same policy in the meantime.

        The entry names the desk and the columns that it releases, and contains a keyed hash of the source's address.
        """
        with self._store.writing() as connection:
            end, head = self.ends(connection)
            self._refuse_joins(connection, desk, source)
            opened = queries.desk(connection, self.account)
            if opened and opened.policy == self.policy.fingerprint:
                plans = json.loads(queries.payload(connection, opened.number))
                if self._has_opened(connection, desk, source):
                    return opened, plans
            known = connection.execute(select(secrets.c.value).where(secrets.c.account == self.account)).scalar()
            secret = known or create_secret(connection, self.account)
            payload, columns = canonical(plans), list(self.policy.concealments[desk].releases)
            body = {"promises": sorted(plans), "sha256": sha256(payload), "desk": desk, "releases": columns}
            body["secret"] = commitment(self.account, secret)
            if source:
                body["source"] = key_hash(_secret(connection, self.account), source)
            names = {"request": f"desk/{end.number if end else 0}", "question": "", "body": canonical(body)}
            entry = append(connection, end, kind=DESK, amount="0", **names, **unchanged(head))
            add_result(connection, entry, payload)
        return entry, plans

    def has_opened(self, desk: str, source: str = "") -> bool:
        """Return whether the ledger names this desk with all its released columns and its source."""
        with self._store.reading() as connection:
            return self._has_opened(connection, desk, source)

    def refuse_joins(self, desk: str, source: str = "") -> None:
        """Refuse a desk whose columns could be joined with another's without a common test.

        Raises:
            Infeasible: No promise tests the columns of all open desks together, or another data set of this ledger has
                a desk over the same source: its records are not counted here.
        """
        with self._store.reading() as connection:
            self._refuse_joins(connection, desk, source)

    def _refuse_joins(self, connection: Connection, desk: str, source: str) -> None:
        refuse_untested_join(self.policy, desk, self._opened(connection))
        self.refuse_same_source(connection, source)

    def refuse_same_source(self, connection: Connection, source: str) -> None:
        """Refuse if another data set of this ledger releases records of the same source."""
        others = secrets.c.account.not_in((self.account, SERVICE))
        accounts = connection.execute(select(secrets.c.account).where(others)).scalars()
        for account in sorted(name for name in accounts if "/" not in name) if source else ():
            keys = queries.hiding_key(connection, account)
            opened = [*queries.desks(connection, account), *([keys] if keys else [])]
            if key_hash(_secret(connection, account), source) in _sources(opened):
                raise Infeasible(
                    f'The data set "{account}" of this ledger has a release desk over the same source as "{self.account}". '
                    "Its records are not counted under the promises of this one, so both together are under no promise.",
                    f'Make all promises for released records in the same policy: that of "{account}".',
                )

    def _opened(self, connection: Connection) -> dict[str, set[str]]:
        """Return the columns of every opened desk. Entries of earlier versions do not name theirs, so all of them count."""
        opened: dict[str, set[str]] = {}
        for entry in queries.desks(connection, self.account):
            body = entry.content()
            named = {body["desk"]: body["releases"]} if "desk" in body else self._earlier(body["promises"])
            for name, columns in named.items():
                opened.setdefault(name, set()).update(columns)
        return {name: columns for name, columns in opened.items() if name in self.policy.concealments}

    def _earlier(self, promises: Sequence[str]) -> dict[str, Sequence[str]]:
        return {name: self.policy.concealments[name].releases for name in promises if name in self.policy.concealments}

    def _has_opened(self, connection: Connection, desk: str, source: str) -> bool:
        columns = self._opened(connection).get(desk)
        if columns is None or not columns >= set(self.policy.concealments[desk].releases):
            return False
        sources = _sources(queries.desks(connection, self.account))
        return not source or key_hash(_secret(connection, self.account), source) in sources

    def secret(self) -> bytes:
        """Return the key of the hashes of record keys. It never leaves the database: names are easy to guess."""
        with self._store.reading() as connection:
            return _secret(connection, self.account)

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Open a transaction in which no other process decides."""
        with self._store.writing() as connection:
            end, head = self.ends(connection)
            yield Turn(connection, self.account, end, head)

    @contextmanager
    def look(self) -> Iterator[View]:
        """Open a consistent view."""
        with self._store.reading() as connection:
            yield View(connection, self.account)

    def ends(self, connection: Connection) -> tuple[Entry | None, Entry]:
        """Return the last entry of the chain and of the account; refuse if the policy was changed in the meantime."""
        end, head = ends(connection, self.account)
        if head is None or head.policy != self.policy.fingerprint:
            raise StalePolicy(
                f'The policy of "{self.account}" differs from the one in the ledger: it was changed in the meantime.',
                "Open the data set again.",
            )
        return end, head


class View:
    """A view of the requests for reading."""

    def __init__(self, connection: Connection, account: str) -> None:
        self._connection, self._account = connection, account

    def last(self) -> tuple[int, int]:
        """Return the last request number and the last entry that changed a request (0 if there is none)."""
        number, entry = self._connection.execute(_LAST, {"account": self._account}).one()
        return number or 0, entry or 0

    def counts(self) -> list[tuple[str, int]]:
        """Return the number of released records in each cell."""
        return [(cells, n) for cells, n in self._connection.execute(_COUNTS, {"account": self._account})]

    def waiting(self) -> list[tuple[int, str]]:
        """Return the waiting requests, oldest first: number and cells."""
        return [(n, cells) for n, cells in self._connection.execute(_WAITING, {"account": self._account})]

    def queue(self, after: int, limit: int, *, newest: bool = False) -> list[tuple[StoredRequest, str]]:
        """Return a page of the waiting requests after a number (0: from the start), each with the time since it waits."""
        number = requests.c.number
        query = (
            select(requests, entries.c.at)
            .join(entries, entries.c.number == requests.c.entry)
            .where(requests.c.account == self._account, requests.c.state == WAITING)
            .where(number < after if newest and after else number > (0 if newest else after))
            .order_by(number.desc() if newest else number)
            .limit(limit)
        )
        return [(_request_from(row), str(row["at"])) for row in self._connection.execute(query).mappings()]

    def since(self, seen: int) -> list[tuple[int, str, str]]:
        """Return the requests that changed after an entry: number, cells, state."""
        rows = self._connection.execute(_CHANGED, {"account": self._account, "seen": seen})
        return [(number, cells, state) for number, cells, state in rows]

    def find(self, keys: Sequence[str]) -> dict[str, StoredRequest]:
        """Return the live requests of some keys."""
        return {row.key: row for row in self._among(requests.c.key, keys, LIVE)}

    def numbered(self, numbers: Iterable[int]) -> dict[int, StoredRequest]:
        """Return the requests of some numbers."""
        return {row.number: row for row in self._among(requests.c.number, list(numbers))}

    def _among(self, column: Any, values: Sequence[Any], *conditions: Any) -> Iterator[StoredRequest]:
        """Yield the requests with one of some values in a column. (A condition allows the use of a partial index.)"""
        for start in range(0, len(values), AT_ONCE):
            query = select(requests).where(
                requests.c.account == self._account, column.in_(list(values[start : start + AT_ONCE])), *conditions
            )
            yield from map(_request_from, self._connection.execute(query).mappings())

    def count(self, state: str) -> int:
        """Return the number of requests in a state."""
        query = select(func.count()).where(requests.c.account == self._account, requests.c.state == state)
        return int(self._connection.execute(query).scalar_one())

    def last_place(self) -> int:
        """Return the number of released records."""
        query = select(func.max(requests.c.place)).where(requests.c.account == self._account)
        return int(self._connection.execute(query).scalar() or 0)

    @property
    def connection(self) -> Connection:
        return self._connection

    def ahead(self, number: int) -> int:
        """Return the number of requests that wait before a request."""
        query = select(func.count()).where(
            requests.c.account == self._account, requests.c.state == WAITING, requests.c.number < number
        )
        return int(self._connection.execute(query).scalar_one())

    def released(self, since: int, limit: int | None) -> list[StoredRequest]:
        """Return the records released after a position in the order of release."""
        query = (
            select(requests)
            .where(requests.c.account == self._account, requests.c.place > since)
            .order_by(requests.c.place)
            .limit(limit)
        )
        return [_request_from(row) for row in self._connection.execute(query).mappings()]


class Turn(View):
    """A view that can write. Everything that it writes is committed together."""

    def __init__(self, connection: Connection, account: str, end: Entry | None, head: Entry) -> None:
        super().__init__(connection, account)
        self._end, self._head = end, head

    def decide(
        self, new_requests: Sequence[StoredRequest], released_requests: Sequence[StoredRequest], *, user: str = ""
    ) -> Entry:
        """Commit a batch: the new requests with their states, and the waiting requests that are released.

        Guarantee:
            This one entry names every released record and every new waiting request, by the hashes of its key and
            its record. Of a withheld record it names the hash of the key only.
        """
        released = [request for request in (*new_requests, *released_requests) if request.state == RELEASED]
        body = {
            "released": [[r.number, r.key, digest(r.__dict__)] for r in sorted(released, key=_by_place)],
            "waiting": [[r.number, r.key, digest(r.__dict__)] for r in new_requests if r.state == WAITING],
            "who": user,
        }
        withheld = [[r.number, r.key] for r in new_requests if r.state == WITHHELD]
        entry = self._append(DECIDED, {**body, "withheld": withheld} if withheld else body)
        if new_requests:
            rows = [{**r.__dict__, "account": self._account, "entry": entry.number} for r in new_requests]
            self._connection.execute(_ADD, rows)
        if released_requests:
            rows = [
                {"of": self._account, "old": r.number, "at": r.place, "by": entry.number} for r in released_requests
            ]
            self._connection.execute(_LEAVE, rows)
        return entry

    def withdraw(self, request: StoredRequest, *, user: str = "") -> Entry:
        """Withdraw a waiting request and delete its record."""
        body = {"withdrawn": [request.number, request.key], "remains": remains(request.__dict__), "who": user}
        entry = self._append(WITHDRAWN, body)
        gone = requests.update().where(requests.c.account == self._account, requests.c.number == request.number)
        self._connection.execute(gone.values(state=WITHDRAWN_STATE, entry=entry.number, record=""))
        return entry

    def _append(self, kind: str, body: Any) -> Entry:
        name = f"{kind}/{self._end.number + 1 if self._end else 1}"
        self._end = append(
            self._connection,
            self._end,
            kind=kind,
            amount="0",
            request=name,
            question="",
            body=canonical(body),
            **unchanged(self._head),
        )
        return self._end


def key_hash(secret: bytes, key: str) -> str:
    """Return a record's key in stored form. Without the secret, it does not reveal the key."""
    return hmac.new(secret, key.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]


def _secret(connection: Connection, account: str) -> bytes:
    return bytes.fromhex(connection.execute(select(secrets.c.value).where(secrets.c.account == account)).scalar_one())


def _sources(desks: Iterable[Entry]) -> set[str]:
    """Return the hashed source addresses of the desks."""
    return {body["source"] for body in (entry.content() for entry in desks) if "source" in body}


def _request_from(row: Any) -> StoredRequest:
    return StoredRequest(**{name: row[name] for name in StoredRequest.__dataclass_fields__})


def _by_place(request: StoredRequest) -> int:
    return request.place or 0
