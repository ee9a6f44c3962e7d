"""The book of a collection: counts, ids of reports and entry are committed together, or not at all.

book = Collected(ledger, collection, dataset="people")
book.open()                     an entry with the public description and what one person gives at most
book.commit(batch)              one entry for a batch; its segment is written before
book.counts()                   what was counted so far
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, select, text
from sqlalchemy.exc import IntegrityError

from tidegate.accounting.respondent import given_by_one
from tidegate.errors import KeyReused, PolicyLoosened, StalePolicy
from tidegate.ledger import reading
from tidegate.ledger.chain import append, ends, unchanged
from tidegate.ledger.entry import CLOSED, COLLECTING, REPORTED, Entry, canonical, entry_from, sha256
from tidegate.ledger.ledger import ADD_RESULT, Ledger
from tidegate.ledger.recount import counts_digest
from tidegate.ledger.schema import counts, entries
from tidegate.policy.collection import Collection

AT_ONCE = 10_000  # ids looked up in one statement
Ints = NDArray[np.int64]
_COUNTS = select(counts).where(counts.c.opened == bindparam("opened"))
_BATCHES = (
    select(entries)
    .where(
        entries.c.account == bindparam("account"),
        entries.c.kind == REPORTED,
        entries.c.number > bindparam("opened"),
    )
    .order_by(entries.c.number)
)
_ADD_COUNTS = counts.insert()
# Ids come by the hundred thousand: an array in one statement, or what the driver does best.
_KNOWN_ARRAY = text("SELECT id FROM tidegate_report_ids WHERE opened = :opened AND id = ANY(CAST(:ids AS bytea[]))")
_ADD_ARRAY = text("INSERT INTO tidegate_report_ids (opened, id) SELECT :opened, unnest(CAST(:ids AS bytea[]))")
_KNOWN_LIST = "SELECT id FROM tidegate_report_ids WHERE opened = ? AND id IN ({})"
_ADD_LIST = "INSERT INTO tidegate_report_ids (opened, id) VALUES (?, ?)"
_SET_COUNTS = (
    counts.update()
    .where(counts.c.opened == bindparam("of"), counts.c.question == bindparam("asked"))
    .values(reports=bindparam("all"), counts=bindparam("packed"))
)


class Overtaken(Exception):
    """Somebody else took one of these reports, or closed the collection, since we looked. Look again."""


@dataclass(frozen=True, eq=False)
class Batch:
    """What a batch brings: where its reports are, what they add to the counts, their ids, and what was refused.

    `given` is the SHA-256 of the ids as they came: the name of a batch stands for one list of reports.
    """

    name: str
    given: str
    segment: str
    sha256: str
    ids: Sequence[bytes]
    adds: Mapping[str, Ints]
    refused: Sequence[tuple[int, str]]  # place in the list, reason


@dataclass(frozen=True, eq=False)
class Counted:
    """The counts of one question: of each report code, or of the reports that hold each value."""

    reports: int
    counts: Ints


class Collected:
    """The account of one collection, in the version that the policy holds."""

    def __init__(self, ledger: Ledger, collection: Collection, *, dataset: str) -> None:
        self._store, self.collection = ledger.store, collection
        self.account = f"{dataset}/{collection.name}"  # no data set has a slash in its name

    def open(self, *, who: str = "") -> Entry:
        """The entry that opened this version; written now where it is new.

        Guarantee  A version has one description for ever: what a respondent was promised is in the chain before the first
                   report is taken.
        """
        with self._store.reading() as connection:
            if found := self._opened(connection):
                return found
        with self._store.writing() as connection:
            if found := self._opened(connection):
                return found
            gives = given_by_one(self.collection)
            body = {
                "description": self.collection.public_dict(),
                "gives": gives.to_dict(),
                "says": str(gives),
                "who": who,
            }
            return append(
                connection,
                reading.last(connection),
                account=self.account,
                kind=COLLECTING,
                policy=self.collection.fingerprint,
                request=f"version/{self.collection.version}",
                question="",
                amount="0",
                spent="0",
                ceiling="0",
                body=canonical(body),
            )

    def close(self, *, who: str = "") -> Entry:
        """Take no more reports in this version. It cannot be opened again."""
        opened = self.open()
        with self._store.writing() as connection:
            if found := self._closing(connection):
                return found
            end, head = ends(connection, self.account)
            found_counts = _counted(connection, opened.number)
            reports = next((counted.reports for counted in found_counts.values()), 0)
            names = {"request": self._closing_name, "question": "", "body": canonical({"reports": reports, "who": who})}
            return append(connection, end, kind=CLOSED, amount="0", **names, **unchanged(head or opened))

    @property
    def closed(self) -> bool:
        """Whether this version takes no more reports."""
        with self._store.reading() as connection:
            return self._closing(connection) is not None

    def earlier(self, name: str, given: str) -> tuple[Entry, list[tuple[int, str]]] | None:
        """The entry of a batch that was taken before, and what was refused of it."""
        with self._store.reading() as connection:
            found = reading.find(connection, self.account, REPORTED, name)
            if found is None:
                return None
            if found.question != given:
                raise KeyReused(
                    "this batch id was used for other reports.", "Give a new batch a new id, or leave the id out."
                )
            kept = found.content()["refused_sha256"]
            refused = json.loads(reading.payload(connection, found.number)) if kept else []
        return found, [(place, reason) for place, reason in refused]

    def known(self, ids: Sequence[bytes]) -> set[bytes]:
        """Which of some ids were taken before."""
        with self._store.reading() as connection:
            opened = self._opened(connection)
            return _known_ids(connection, opened.number, sorted(ids)) if opened else set()

    def commit(self, batch: Batch) -> Entry:
        """Commit a batch whose segment is in its place.

        Guarantee  Counts, ids and entry are there together, or none of them; a report id is counted once. Raises
                   `Overtaken`, with nothing written, where one of the ids was taken or the collection closed meanwhile.
        """
        opened = self.open()
        with self._store.writing() as connection:
            self._opened(connection)
            if self._closing(connection) or reading.find(connection, self.account, REPORTED, batch.name):
                raise Overtaken
            end, head = ends(connection, self.account)
            _add_ids(connection, opened.number, batch.ids)
            totals = _add_counts(connection, opened.number, batch)
            payload = canonical(list(map(list, batch.refused))) if batch.refused else ""
            body = {
                "opened": opened.number,
                "accepted": len(batch.ids),
                "refused": dict(Counter(reason for _, reason in batch.refused)),
                "refused_sha256": sha256(payload) if payload else "",
                "reports": next(iter(totals.values())).reports,
                "segment": batch.segment,
                "sha256": batch.sha256,
                "counts": counts_digest({name: _packed(total.counts) for name, total in totals.items()}),
            }
            names = {"request": batch.name, "question": batch.given, "body": canonical(body)}
            entry = append(connection, end, kind=REPORTED, amount="0", **names, **unchanged(head or opened))
            if payload:
                connection.execute(ADD_RESULT, {"number": entry.number, "payload": payload})
        return entry

    def counts(self) -> dict[str, Counted]:
        """What was counted of each question so far; empty where nothing was."""
        with self._store.reading() as connection:
            opened = self._opened(connection)
            return _counted(connection, opened.number) if opened else {}

    def batches(self) -> tuple[list[Entry], dict[str, Counted]]:
        """The entries of all batches of this version, and the counts at the same moment."""
        with self._store.reading() as connection:
            opened = self._opened(connection)
            if opened is None:
                return [], {}
            rows = connection.execute(_BATCHES, {"account": self.account, "opened": opened.number}).mappings()
            return [entry_from(dict(row)) for row in rows], _counted(connection, opened.number)

    def _opened(self, connection: Connection) -> Entry | None:
        """The entry that opened this version; a version that is not the latest, or was another then, is refused."""
        last = reading.collection(connection, self.account)
        version = last.content()["description"]["version"] if last else 0
        if last is None or version < self.collection.version:
            return None
        if version > self.collection.version:
            raise StalePolicy(
                f'version {version} of the collection "{self.collection.name}" is open; this policy holds version '
                f"{self.collection.version}.",
                "Use the newer policy; reports of older versions are no longer taken.",
            )
        if last.policy != self.collection.fingerprint:
            raise PolicyLoosened(
                f'the collection "{self.collection.name}" was published as version {version} with other questions.',
                f"Write version = {version + 1}, so that every client sees that it was changed; or restore the questions.",
            )
        return last

    @property
    def _closing_name(self) -> str:
        return f"closing/{self.collection.version}"

    def _closing(self, connection: Connection) -> Entry | None:
        return reading.find(connection, self.account, CLOSED, self._closing_name)


def _known_ids(connection: Connection, opened: int, ids: Sequence[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for start in range(0, len(ids), AT_ONCE):
        part = list(ids[start : start + AT_ONCE])
        if connection.dialect.name == "sqlite":
            rows = connection.exec_driver_sql(_KNOWN_LIST.format(",".join("?" * len(part))), (opened, *part))
        else:
            rows = connection.execute(_KNOWN_ARRAY, {"opened": opened, "ids": part})
        found |= {bytes(one) for (one,) in rows}
    return found


def _add_ids(connection: Connection, opened: int, ids: Iterable[bytes]) -> None:
    """In ascending order: three times as quick as at random, once there are a million. (No order of arrival, either.)"""
    taken = False
    try:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(_ADD_LIST, [(opened, one) for one in sorted(ids)])
        else:
            connection.execute(_ADD_ARRAY, {"opened": opened, "ids": sorted(ids)})
    except IntegrityError:
        taken = True
    if taken:
        raise Overtaken


def _add_counts(connection: Connection, opened: int, batch: Batch) -> dict[str, Counted]:
    before, many = _counted(connection, opened), len(batch.ids)
    after = {
        name: Counted(before[name].reports + many, before[name].counts + added) if before else Counted(many, added)
        for name, added in batch.adds.items()
    }
    if before:
        rows = [{"of": opened, "asked": n, "all": c.reports, "packed": _packed(c.counts)} for n, c in after.items()]
        connection.execute(_SET_COUNTS, rows)
    else:
        rows = [
            {"opened": opened, "question": n, "reports": c.reports, "counts": _packed(c.counts)}
            for n, c in after.items()
        ]
        connection.execute(_ADD_COUNTS, rows)
    return after


def _counted(connection: Connection, opened: int) -> dict[str, Counted]:
    rows = connection.execute(_COUNTS, {"opened": opened}).mappings()
    return {
        row["question"]: Counted(row["reports"], np.frombuffer(row["counts"], "<i8").astype(np.int64)) for row in rows
    }


def _packed(values: Ints) -> bytes:
    return np.ascontiguousarray(values, "<i8").tobytes()
