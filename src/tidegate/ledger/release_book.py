"""The book of requests for records: decision, queue, record and entry are committed together, or not at all.

with book.turn(policy) as turn:           nobody else decides meanwhile
    rows = turn.since(seen)               what others decided since we last looked
    ...                                   decide
    turn.decide(asked, released)          one entry for the batch
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
from tidegate.ledger.chain import append, ends, unchanged
from tidegate.ledger.entry import DECIDED, DESK, WITHDRAWN, Entry, canonical, sha256
from tidegate.ledger.genesis import SERVICE, commitment, create_secret
from tidegate.ledger.ledger import ADD_RESULT, Ledger
from tidegate.ledger.replay_releases import digest, remains
from tidegate.ledger.schema import LIVE, requests, secrets
from tidegate.policy import Policy
from tidegate.policy.joins import refuse_untested_join

WAITING, RELEASED, TAKEN_BACK = "waiting", "released", "withdrawn"
AT_ONCE = 400  # keys looked up in one statement
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
class Asked:
    """A request as it is kept. `key` is the hash of the record's key; `record` is what leaves, as canonical JSON."""

    number: int
    key: str
    cells: str
    record: str
    state: str = WAITING
    place: int | None = None
    nonce: str = field(default_factory=lambda: system.token_hex(16))


class ReleaseBook:
    """The requests of one data set."""

    def __init__(self, ledger: Ledger, policy: Policy) -> None:
        self._store, self.policy, self.account = ledger.store, policy, policy.dataset.name

    def desk(self) -> tuple[Entry, Any] | None:
        """The entry that opened the desk and the plans in it; None where it was not opened yet."""
        with self._store.reading() as connection:
            entry = queries.desk(connection, self.account)
            return (entry, json.loads(queries.payload(connection, entry.number))) if entry else None

    def open_desk(self, plans: Any, desk: str, source: str = "") -> tuple[Entry, Any]:
        """Open a desk with these plans, unless others were recorded for the same policy meanwhile: they are used then.

        The entry names the desk and the columns that it releases, and holds a keyed hash of the source's address.
        """
        with self._store.writing() as connection:
            end, head = self._ends(connection)
            self._refuse_joins(connection, desk, source)
            found = queries.desk(connection, self.account)
            if found and found.policy == self.policy.fingerprint:
                plans = json.loads(queries.payload(connection, found.number))
                if self._has_opened(connection, desk, source):
                    return found, plans
            known = connection.execute(select(secrets.c.value).where(secrets.c.account == self.account)).scalar()
            secret = known or create_secret(connection, self.account)
            payload, columns = canonical(plans), list(self.policy.concealments[desk].releases)
            body = {"promises": sorted(plans), "sha256": sha256(payload), "desk": desk, "releases": columns}
            body["secret"] = commitment(self.account, secret)
            if source:
                body["source"] = key_hash(_secret(connection, self.account), source)
            names = {"request": f"desk/{end.number if end else 0}", "question": "", "body": canonical(body)}
            entry = append(connection, end, kind=DESK, amount="0", **names, **unchanged(head))
            connection.execute(ADD_RESULT, {"number": entry.number, "payload": payload})
        return entry, plans

    def has_opened(self, desk: str, source: str = "") -> bool:
        """Whether the ledger names this desk with all that it releases and with its source."""
        with self._store.reading() as connection:
            return self._has_opened(connection, desk, source)

    def refuse_joins(self, desk: str, source: str = "") -> None:
        """Refuse a desk whose columns would be joined with another's without a common test.

        Raises:
            Infeasible: No promise tests the columns of all open desks together, or another data set of this ledger has
                a desk over the same source: its records are not counted here.
        """
        with self._store.reading() as connection:
            self._refuse_joins(connection, desk, source)

    def _refuse_joins(self, connection: Connection, desk: str, source: str) -> None:
        refuse_untested_join(self.policy, desk, self._opened(connection))
        others = secrets.c.account.not_in((self.account, SERVICE))
        accounts = connection.execute(select(secrets.c.account).where(others)).scalars()
        for account in sorted(accounts) if source else ():
            if key_hash(_secret(connection, account), source) in _sources(queries.desks(connection, account)):
                raise Infeasible(
                    f'The data set "{account}" of this ledger has a release desk over the same source as "{self.account}". '
                    "Its records are not counted under the promises of this one, so both together are under no promise.",
                    f'Make all concealment promises in the same policy: that of "{account}".',
                )

    def _opened(self, connection: Connection) -> dict[str, set[str]]:
        """The columns of every desk that was opened. Entries of earlier versions do not name theirs: all of them count."""
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
        """What keys are hashed with. It never leaves the database: names are easily guessed."""
        with self._store.reading() as connection:
            return _secret(connection, self.account)

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """A transaction in which nobody else decides."""
        with self._store.writing() as connection:
            end, head = self._ends(connection)
            yield Turn(connection, self.account, end, head)

    @contextmanager
    def look(self) -> Iterator[View]:
        """A consistent view."""
        with self._store.reading() as connection:
            yield View(connection, self.account)

    def _ends(self, connection: Connection) -> tuple[Entry | None, Entry]:
        end, head = ends(connection, self.account)
        if head is None or head.policy != self.policy.fingerprint:
            raise StalePolicy(
                f'the policy of "{self.account}" is not the one in the ledger: somebody changed it meanwhile.',
                "Open the data set again.",
            )
        return end, head


class View:
    """What can be read of the requests."""

    def __init__(self, connection: Connection, account: str) -> None:
        self._connection, self._account = connection, account

    def last(self) -> tuple[int, int]:
        """The last request number and the last entry that changed a request (0 where there is none)."""
        number, entry = self._connection.execute(_LAST, {"account": self._account}).one()
        return number or 0, entry or 0

    def counts(self) -> list[tuple[str, int]]:
        """How many records of each cell have left."""
        return [(cells, n) for cells, n in self._connection.execute(_COUNTS, {"account": self._account})]

    def waiting(self) -> list[tuple[int, str]]:
        """Who waits, oldest first: request number and cells."""
        return [(n, cells) for n, cells in self._connection.execute(_WAITING, {"account": self._account})]

    def since(self, seen: int) -> list[tuple[int, str, str]]:
        """Requests that changed after an entry: number, cells, state."""
        found = self._connection.execute(_CHANGED, {"account": self._account, "seen": seen})
        return [(number, cells, state) for number, cells, state in found]

    def find(self, keys: Sequence[str]) -> dict[str, Asked]:
        """The live requests of some keys."""
        return {row.key: row for row in self._among(requests.c.key, keys, LIVE)}

    def numbered(self, numbers: Iterable[int]) -> dict[int, Asked]:
        """The requests of some numbers."""
        return {row.number: row for row in self._among(requests.c.number, list(numbers))}

    def _among(self, column: Any, wanted: Sequence[Any], *conditions: Any) -> Iterator[Asked]:
        """The requests that hold one of some values in a column. (A partial index is used where its condition is given.)"""
        for start in range(0, len(wanted), AT_ONCE):
            query = select(requests).where(
                requests.c.account == self._account, column.in_(list(wanted[start : start + AT_ONCE])), *conditions
            )
            yield from map(_asked, self._connection.execute(query).mappings())

    def ahead(self, number: int) -> int:
        """How many wait before a request."""
        query = select(func.count()).where(
            requests.c.account == self._account, requests.c.state == WAITING, requests.c.number < number
        )
        return int(self._connection.execute(query).scalar_one())

    def released(self, since: int, limit: int | None) -> list[Asked]:
        """What left after a place in the order of release."""
        query = (
            select(requests)
            .where(requests.c.account == self._account, requests.c.place > since)
            .order_by(requests.c.place)
            .limit(limit)
        )
        return [_asked(row) for row in self._connection.execute(query).mappings()]


class Turn(View):
    """A view that may write, once."""

    def __init__(self, connection: Connection, account: str, end: Entry | None, head: Entry) -> None:
        super().__init__(connection, account)
        self._end, self._head = end, head

    def decide(self, asked: Sequence[Asked], left: Sequence[Asked], *, who: str = "") -> Entry:
        """Commit a batch: the new requests as they stand now, and those that waited and leave with their places.

        Guarantee  Every record that leaves or waits is named, by the hash of its key and of what it says, in this one entry.
        """
        gone = [request for request in (*asked, *left) if request.state == RELEASED]
        body = {
            "released": [[r.number, r.key, digest(r.__dict__)] for r in sorted(gone, key=_by_place)],
            "waiting": [[r.number, r.key, digest(r.__dict__)] for r in asked if r.state == WAITING],
            "who": who,
        }
        entry = self._append(DECIDED, body)
        if asked:
            rows = [{**r.__dict__, "account": self._account, "entry": entry.number} for r in asked]
            self._connection.execute(_ADD, rows)
        if left:
            rows = [{"of": self._account, "old": r.number, "at": r.place, "by": entry.number} for r in left]
            self._connection.execute(_LEAVE, rows)
        return entry

    def withdraw(self, request: Asked, *, who: str = "") -> Entry:
        """Take a waiting request back; its record is forgotten."""
        body = {"withdrawn": [request.number, request.key], "remains": remains(request.__dict__), "who": who}
        entry = self._append(WITHDRAWN, body)
        gone = requests.update().where(requests.c.account == self._account, requests.c.number == request.number)
        self._connection.execute(gone.values(state=TAKEN_BACK, entry=entry.number, record=""))
        return entry

    def _append(self, kind: str, body: Any) -> Entry:
        name = f"{kind}/{self._end.number + 1 if self._end else 1}"
        return append(
            self._connection,
            self._end,
            kind=kind,
            amount="0",
            request=name,
            question="",
            body=canonical(body),
            **unchanged(self._head),
        )


def key_hash(secret: bytes, key: str) -> str:
    """A record's key as it is kept and shown: nobody without the secret can tell whose it is."""
    return hmac.new(secret, key.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]


def _secret(connection: Connection, account: str) -> bytes:
    return bytes.fromhex(connection.execute(select(secrets.c.value).where(secrets.c.account == account)).scalar_one())


def _sources(desks: Iterable[Entry]) -> set[str]:
    """The hashed addresses that desks were opened over."""
    return {body["source"] for body in (entry.content() for entry in desks) if "source" in body}


def _asked(row: Any) -> Asked:
    return Asked(**{name: row[name] for name in Asked.__dataclass_fields__})


def _by_place(request: Asked) -> int:
    return request.place or 0
