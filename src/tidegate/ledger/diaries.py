"""The diaries of unfinished syntheses: what was learned under a charge, line by line, until its result is recorded.

A line is committed before the numbers in it are used, so any process on any machine can continue after a kill, with the same
numbers. One process at a time has the lease of a diary. It renews the lease while it works, and every line is written under it:
a process that has lost its lease writes nothing more. Lines are chained by hash from their charge on, and `verify` follows them.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select, update

from tidegate.errors import LedgerError, LedgerUnavailable
from tidegate.ledger import queries
from tidegate.ledger.chain import refuse_moved
from tidegate.ledger.entry import CHARGED, Entry, canonical, sha256
from tidegate.ledger.schema import diaries, entries, leases
from tidegate.ledger.store import Store

PATIENCE = 3_600.0  # seconds to wait for another process
PAUSE = 0.1  # seconds between two attempts
LEASE, BEAT = 20.0, 4.0  # seconds without a sign of life after which a lease is over; seconds between two signs
EXPIRED = "expired"  # the only key of the line that replaces a deleted diary


class DiaryLines:
    """The lines of one charge, under the lease of this process."""

    def __init__(self, store: Store, charge: Entry, owner: str) -> None:
        self._store, self._charge, self._owner = store, charge, owner
        with store.reading() as connection:
            rows = _rows(connection, charge.number)
        self.lines = [str(body) for body, _ in rows]
        self._last = rows[-1][1] if rows else charge.hash

    def append(self, *texts: str) -> None:
        """Write lines: all of them are committed when it returns, or none.

        Raises:
            LedgerUnavailable: The ledger cannot be written, or another process has taken over.
        """
        rows, last = [], self._last
        for number, body in enumerate(texts, start=len(self.lines)):
            last = _chained(last, number, body)
            rows.append({"charge": self._charge.number, "number": number, "body": body, "hash": last})
        with self._store.writing() as connection:
            refuse_moved(queries.last(connection), kind="diary")
            owner = connection.execute(select(leases.c.owner).where(leases.c.charge == self._charge.number)).scalar()
            if owner != self._owner:
                raise LedgerUnavailable(
                    "Another process has taken over this synthesis, because this one did not respond for a while.",
                    "Request the same tables again: they are returned at no cost once they are learned.",
                )
            connection.execute(insert(diaries), rows)
        self.lines += texts
        self._last = last


@contextmanager
def hold_diary(store: Store, charge: Entry, *, patience: float = PATIENCE) -> Iterator[DiaryLines]:
    """Hold the diary of a charge for this process alone. Waits while another process works on it.

    Raises:
        LedgerUnavailable: Another process was still at work after `patience` seconds.
    """
    owner, deadline = f"{_machine()}/{os.getpid()}/{secrets.token_hex(8)}", time.monotonic() + patience
    while not _take_lease(store, charge.number, owner):
        if time.monotonic() > deadline:
            raise LedgerUnavailable(
                f"Another process is working on this synthesis (entry {charge.number:,}).",
                "Wait until it has finished; the same request then returns its result at no cost.",
            )
        time.sleep(PAUSE)
    ended = threading.Event()
    mine = (leases.c.charge == charge.number) & (leases.c.owner == owner)

    def renew() -> None:
        while not ended.wait(BEAT):
            with suppress(LedgerError), store.writing() as connection:  # the next line reports what is wrong
                connection.execute(update(leases).where(mine).values(beat=store.clock(connection)))

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield DiaryLines(store, charge, owner)
    finally:
        ended.set()
        thread.join()
        with suppress(LedgerError), store.writing() as connection:  # otherwise it ends by itself
            connection.execute(delete(leases).where(mine))


def _take_lease(store: Store, charge: int, owner: str) -> bool:
    """Take the lease of a charge if it is free, over, or that of a process that has ended; return whether it was taken."""
    query = select(leases.c.owner, leases.c.beat).where(leases.c.charge == charge)

    def is_taken(connection: Connection) -> bool:
        row = connection.execute(query).first()
        return row is not None and store.clock(connection) - row.beat < LEASE and not _has_ended(row.owner)

    with store.reading() as connection:  # who waits must not hold up writers
        if is_taken(connection):
            return False
    with store.writing() as connection:
        if is_taken(connection):
            return False
        connection.execute(delete(leases).where(leases.c.charge == charge))
        connection.execute(insert(leases), {"charge": charge, "owner": owner, "beat": store.clock(connection)})
    return True


@lru_cache(maxsize=1)
def _machine() -> str:
    """Return a name of this machine and its process numbers: containers of one machine have numbers of their own."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}-{os.stat('/proc/self/ns/pid').st_ino}"
    return socket.gethostname().replace("/", "-")


def _has_ended(owner: str) -> bool:
    """Return whether a process is known to have ended: it ran on this machine and does not exist anymore."""
    machine, process, _ = owner.rsplit("/", 2)
    if machine != _machine() or os.name != "posix":
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def delete_diary(store: Store, charge: int) -> None:
    """Delete the diary of a charge whose result is recorded."""
    with store.reading() as connection:
        if connection.execute(select(diaries.c.number).where(diaries.c.charge == charge).limit(1)).first() is None:
            return
    with store.writing() as connection:
        connection.execute(delete(diaries).where(diaries.c.charge == charge))


def expire_diaries(connection: Connection, account: str, moment: str, day: str) -> list[int]:
    """Delete what unfinished syntheses of an account had learned if they were charged before a moment; return the charges.

    One line stays in place of each diary, so that nothing is ever learned a second time under its charge.
    """
    query = (
        select(diaries.c.charge, entries.c.hash)
        .join(entries, entries.c.number == diaries.c.charge)
        .where(entries.c.account == account, entries.c.at < moment, diaries.c.number == 0)
        .where(~diaries.c.body.startswith(f'{{"{EXPIRED}"'))
        .order_by(diaries.c.charge)
    )
    charges = [(int(number), str(hashed)) for number, hashed in connection.execute(query)]
    line = canonical({EXPIRED: day})
    for number, hashed in charges:
        connection.execute(delete(diaries).where(diaries.c.charge == number))
        row = {"charge": number, "number": 0, "body": line, "hash": _chained(hashed, 0, line)}
        connection.execute(insert(diaries), row)
    return [number for number, _ in charges]


def accounts_with_diaries(connection: Connection) -> list[str]:
    """Return the accounts with unfinished syntheses."""
    query = select(entries.c.account).join(diaries, diaries.c.charge == entries.c.number).distinct()
    return [str(name) for name in connection.execute(query).scalars()]


def problems(connection: Connection) -> list[str]:
    """Return a problem for each diary that does not follow from its charge. A ledger of an earlier schema has none."""
    if not connection.dialect.has_table(connection, diaries.name):
        return []
    wrong = []
    for number in connection.execute(select(diaries.c.charge).distinct().order_by(diaries.c.charge)).scalars().all():
        charge = queries.numbered(connection, number)
        if charge is None or charge.kind != CHARGED:
            wrong.append(f"A diary belongs to no charge (number {number}).")
        elif not _follows(charge, _rows(connection, number)):
            wrong.append(f"The diary of entry {charge.number:,} was changed: its lines do not follow from each other.")
    return wrong


def _rows(connection: Connection, charge: int) -> Sequence[tuple[str, str]]:
    query = select(diaries.c.body, diaries.c.hash, diaries.c.number)
    rows = connection.execute(query.where(diaries.c.charge == charge).order_by(diaries.c.number)).all()
    return [(row.body, row.hash) if row.number == index else ("", "") for index, row in enumerate(rows)]


def _follows(charge: Entry, rows: Sequence[tuple[str, str]]) -> bool:
    last = charge.hash
    for number, (body, hashed) in enumerate(rows):
        last = _chained(last, number, body)
        if last != hashed:
            return False
    return True


def _chained(last: str, number: int, body: str) -> str:
    return sha256(f"{last}\n{number}\n{body}")
