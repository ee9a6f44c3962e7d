"""Witnesses: addresses outside of the ledger that hold its newest signed checkpoint.

A ledger that was cut off, restored from an old copy or written again still verifies by itself. It does not match a checkpoint
that was stored elsewhere. So a checkpoint goes to every witness after a commit, at most once a second, and when the ledger is
closed. A witness that cannot be reached is reported and never blocks a charge; the next commit sends the newest checkpoint.

The addresses are settings of the ledger, so that every process uses them. An entry records each change, with the public key.
A policy (`witness` in [dataset]), `--witness` and TIDEGATE_WITNESS add addresses; only `tidegate ledger witness --remove`
removes one. They are also compared before anything else, so that a ledger without any settings is refused as well.
"""

from __future__ import annotations

import logging
import os
import secrets as system
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from tidegate.accounting.budget import UNLIMITED
from tidegate.errors import LedgerBroken, LedgerUnavailable
from tidegate.ledger import checkpoint as notation
from tidegate.ledger import merkle, notes, queries, totals
from tidegate.ledger.chain import NOTHING, SERVICE, append, commitment
from tidegate.ledger.checkpoint import AccountTotal, Checkpoint, PublicKey, SigningKey
from tidegate.ledger.entry import WITNESSED, canonical
from tidegate.ledger.schema import entries, requests, secrets, witnesses
from tidegate.ledger.source_states import keyed
from tidegate.ledger.store import Store

LOG = logging.getLogger("tidegate.ledger")
VARIABLE = "TIDEGATE_WITNESS"
SECRET = "/witness"  # noqa: S105 - the name of the signing key among the secrets; no data set has a slash in its name
SECONDS = 1.0  # between two checkpoints
LATE = 120.0  # seconds after which an entry that a witness has not seen is reported
_ADDRESSES = select(witnesses.c.address).order_by(witnesses.c.address)


@dataclass(frozen=True)
class Standing:
    """The state of one witness: the number of entries that it has seen, or the problem with it."""

    address: str
    entries: int = 0
    problem: str = ""


def named_addresses(addresses: Iterable[str], folder: Path | None = None) -> tuple[str, ...]:
    """Return the addresses of a policy or an option, and those of TIDEGATE_WITNESS (separated by spaces)."""
    every = [*addresses, *os.environ.get(VARIABLE, "").split()]
    return tuple(dict.fromkeys(notes.absolute(address, folder or Path()) for address in every))


# The state of the ledger


def current(connection: Connection) -> Checkpoint:
    """Return the checkpoint of the ledger in the connection's view."""
    last = queries.last(connection)
    assert last is not None  # noqa: S101 - every ledger has a first entry
    size = last.number + 1
    names = connection.execute(select(totals.TABLE.c.account).order_by(totals.TABLE.c.account)).scalars().all()
    accounts = {name: _total(connection, name) for name in names}
    return Checkpoint(origin(connection), size, merkle.root(size, merkle.Nodes(connection)), last.hash, accounts)


def _total(connection: Connection, account: str) -> AccountTotal:
    head, state = queries.head(connection, account), totals.read(connection, account)
    last = connection.execute(select(func.max(requests.c.number)).where(requests.c.account == account)).scalar()
    unit = "z" if state.ceilings != UNLIMITED and state.ceilings.unit == "z" else "epsilon"
    return AccountTotal(head.spent if head else "0", unit, int(last or 0))


def origin(connection: Connection) -> str:
    """Return the name of the ledger in its checkpoints."""
    first = connection.execute(select(entries.c.hash).order_by(entries.c.number).limit(1)).scalar_one()
    return f"tidegate/{first[:32]}"


def public_keys(connection: Connection) -> list[PublicKey]:
    """Return every key that ever signed checkpoints of this ledger, latest first."""
    changes = queries.witness_changes(connection)
    return [PublicKey.parse(text) for text in dict.fromkeys(entry.content()["key"] for entry in reversed(changes))]


def signed(connection: Connection) -> str:
    """Return the signed checkpoint of the ledger in the connection's view."""
    secret = connection.execute(select(secrets.c.value).where(secrets.c.account == SECRET)).scalar()
    if secret is None:
        raise LedgerUnavailable(
            "The ledger has no signing key yet.",
            "Create one: tidegate ledger witness POLICY --add ADDRESS (or --new-key).",
        )
    return notation.sign(current(connection), SigningKey(origin(connection), secret))


# Settings


def configure(
    store: Store, *, add: Iterable[str] = (), remove: Iterable[str] = (), new_key: bool = False
) -> tuple[str, ...]:
    """Change the witnesses or the signing key; an entry records it. Return the addresses."""
    with store.writing() as connection:
        before = stored_addresses(connection)
        after = sorted((set(before) | set(add)) - set(remove))
        has_key = bool(connection.execute(select(secrets).where(secrets.c.account == SECRET)).first())
        if after == before and (has_key or not after) and not new_key:
            return tuple(before)
        if new_key or not has_key:
            connection.execute(delete(secrets).where(secrets.c.account == SECRET))
            connection.execute(insert(secrets), {"account": SECRET, "value": system.token_hex(32)})
        connection.execute(delete(witnesses))
        if after:
            connection.execute(insert(witnesses), [{"address": address} for address in after])
        note_settings(connection)
    return tuple(after)


def note_settings(connection: Connection) -> None:
    """Append an entry with the public key, and keyed hashes of the addresses."""
    value = connection.execute(select(secrets.c.value).where(secrets.c.account == SECRET)).scalar_one()
    public, end = SigningKey(origin(connection), value).public, queries.last(connection)
    salt = connection.execute(select(secrets.c.value).where(secrets.c.account == SERVICE)).scalar_one()
    addresses = [keyed(salt, address) for address in stored_addresses(connection)]
    body = {"key": str(public), "secret": commitment(SECRET, value), "addresses": sorted(addresses)}
    name = f"witness/{end.number + 1 if end else 0}"
    append(connection, end, kind=WITNESSED, request=name, body=canonical(body), **NOTHING)


def stored_addresses(connection: Connection) -> list[str]:
    """Return the addresses in the ledger's settings. A ledger of an earlier schema has none."""
    has_table = connection.dialect.has_table(connection, witnesses.name)
    return [str(address) for address in connection.execute(_ADDRESSES).scalars()] if has_table else []


# Comparison


def compare(connection: Connection, note: str, address: str) -> Checkpoint:
    """Return the checkpoint of a witness, after comparing it with the ledger.

    Raises:
        LedgerUnavailable: The ledger is behind the witness, or the checkpoint is of another ledger.
        LedgerBroken: The ledger has other entries than the witness has seen, or no known key has signed the checkpoint.
    """
    seen, where = notation.parse(note), notes.shown(address)
    last = queries.last(connection)
    size = last.number + 1 if last else 0
    if seen.origin != origin(connection):
        raise LedgerUnavailable(
            f"The witness {where} has a checkpoint of another ledger, with {seen.size:,} entries: this one is new, or was exchanged.",
            "Restore the ledger that belongs to the witness: tidegate ledger restore POLICY BACKUP. If this ledger is the right "
            "one, name another address for its witness.",
        )
    if seen.size > size:
        raise LedgerUnavailable(
            f"The ledger ends with entry {size - 1:,}, but the witness {where} has seen it up to entry {seen.size - 1:,}: the "
            "latest entries are missing.",
            "Restore a newer copy. If there is none, restore this one with --write-off --witness ADDRESS, which charges every "
            "account up to its witnessed total.",
        )
    if merkle.root(seen.size, merkle.Nodes(connection)) != seen.root:
        raise LedgerBroken(
            f"The first {seen.size:,} entries of the ledger are not those that the witness {where} has seen: there are two "
            "versions of this ledger (a fork), or it was written again.",
            "Keep both as evidence, and answer nothing until you know which one is right.",
        )
    return notation.verify_note(note, public_keys(connection))


def refuse_missing(path: Path | None, addresses: Sequence[str]) -> None:
    """Refuse to create a ledger if a witness has seen one."""
    if path is None or path.exists() or not addresses:
        return
    for address in addresses:
        seen = _read_quietly(address)
        if seen is not None:
            raise LedgerUnavailable(
                f"There is no ledger at {path}, but the witness {notes.shown(address)} has seen one up to "
                f"entry {notation.parse(seen).size - 1:,}: it was moved or deleted.",
                "Move the ledger back, or restore a backup: tidegate ledger restore POLICY BACKUP.",
            )


def _read_quietly(address: str) -> str | None:
    try:
        return notes.read(address)
    except notes.Unreachable as error:
        LOG.warning("The witness %s cannot be reached (%s).", notes.shown(address), error)
    return None


def standings(connection: Connection) -> list[Standing]:
    """Return the state of every witness of the ledger, as it is now."""
    result = []
    for address in stored_addresses(connection):
        where = notes.shown(address)
        try:
            note = notes.read(address)
            seen = compare(connection, note, address).size if note is not None else 0
            result.append(Standing(where, seen, "" if note is not None else "it has no checkpoint yet"))
        except notes.Unreachable as error:
            result.append(Standing(where, problem=f"it cannot be reached ({error})"))
        except (LedgerUnavailable, LedgerBroken) as error:
            result.append(Standing(where, problem=error.what))
    return result


class Witnesses:
    """The witnesses of an open ledger. A thread sends checkpoints while the process lives; `close` sends the last one."""

    def __init__(self, store: Store, addresses: Sequence[str] = ()) -> None:
        """Compare the ledger with its witnesses, and add the named ones to its settings.

        Raises:
            LedgerUnavailable, LedgerBroken: The ledger does not match a witness.
        """
        self._store, self._turn, self._wake = store, threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._is_due = self._is_closed = False
        self._problems: dict[str, str] = {}
        self._reached: dict[str, tuple[int, float]] = {}  # by shown address: the entries that it has seen, and when
        with store.reading() as connection:
            stored, last = stored_addresses(connection), queries.last(connection)
            self.addresses = tuple(dict.fromkeys((*stored, *addresses)))
            for address in self.addresses:
                note = _read_quietly(address)
                seen = compare(connection, note, address).size if note is not None else 0
                self._is_due |= seen <= (last.number if last else 0)
                self._reached[notes.shown(address)] = seen, time.monotonic()
        if self.addresses:
            store.after_commit = self.notify
        if set(addresses) - set(stored):
            configure(store, add=addresses)

    def add(self, addresses: Sequence[str]) -> None:
        """Add addresses to the settings."""
        if set(addresses) - set(self.addresses):
            self._store.after_commit = self.notify
            self.addresses = configure(self._store, add=addresses)

    def notify(self) -> None:
        """Send a checkpoint soon. The commit does not wait for it."""
        self._is_due = True
        self._renew_after_fork()
        if self._thread is None or not self._thread.is_alive():
            self._wake = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._wake,), daemon=True, name="witness")
            self._thread.start()

    def _run(self, wake: threading.Event) -> None:
        while not wake.wait(SECONDS):
            if self._is_due:
                self.send()

    def close(self) -> None:
        """Send the last checkpoint, and stop."""
        if self._is_closed or not self.addresses:
            return
        self._is_closed = True
        self._renew_after_fork()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(2 * notes.SECONDS * len(self.addresses))
        if self._is_due:
            self.send()

    def _renew_after_fork(self) -> None:
        """Replace the lock and the thread in a forked process: those of its parent do not work there."""
        if self._process != os.getpid():
            self._process, self._turn, self._thread = os.getpid(), threading.Lock(), None

    def send(self) -> list[Standing]:
        """Send the newest checkpoint to every witness that has not seen it; return their states."""
        with self._turn:
            self._is_due = False
            self._refresh()
            result = []
            for address in self.addresses:
                try:
                    result.append(self._send(address))
                except Exception as error:  # whatever fails here must not stop a charge
                    result.append(Standing(notes.shown(address), problem=_problem(error)))
                self._report(result[-1])
            self._is_due |= any(standing.problem for standing in result)
            return result

    def _refresh(self) -> None:
        """Use the addresses that are in the settings now: another process can have added or removed some."""
        try:
            with self._store.reading() as connection:
                stored = tuple(stored_addresses(connection))
        except LedgerUnavailable:  # the addresses of before are tried, and report it
            return
        added = set(stored) - set(self.addresses)
        self._reached |= {notes.shown(address): (0, time.monotonic()) for address in added}
        self.addresses = stored
        if added:
            self._store.after_commit = self.notify

    def _send(self, address: str) -> Standing:
        note = notes.read(address)
        with self._store.reading() as connection:
            seen = compare(connection, note, address) if note is not None else None
            newest = signed(connection)
        size = notation.parse(newest).size
        if seen is None or seen.size < size:
            notes.write(address, newest)
        return Standing(notes.shown(address), size)

    def _report(self, standing: Standing) -> None:
        if not standing.problem:
            self._reached[standing.address] = standing.entries, time.monotonic()
        before = self._problems.get(standing.address, "")
        self._problems[standing.address] = standing.problem
        if standing.problem and standing.problem != before:
            LOG.warning(
                "No checkpoint was sent to the witness %s: %s. Charges continue, and it is tried again.",
                standing.address,
                standing.problem.rstrip("."),
            )
        elif before and not standing.problem:
            LOG.info("The witness %s has the newest checkpoint again.", standing.address)

    @property
    def problems(self) -> dict[str, str]:
        """The witnesses that the last checkpoint did not reach, with the reasons."""
        used = set(map(notes.shown, self.addresses))
        return {address: problem for address, problem in self._problems.items() if problem and address in used}

    def states(self) -> list[Standing]:
        """Return the state of every witness as this process knows it, without asking the witness."""
        if not self.addresses:
            return []
        with self._store.reading() as connection:
            last = queries.last(connection)
        size, now, states = last.number + 1 if last else 0, time.monotonic(), []
        for where in map(notes.shown, self.addresses):
            seen, at = self._reached.get(where, (0, now))
            problem = self._problems.get(where, "")
            if not problem and seen < size and now - at > LATE:
                problem = f"it has not seen the newest {size - seen:,} entries"
            states.append(Standing(where, seen, problem))
        return states


def _problem(error: Exception) -> str:
    if isinstance(error, notes.Unreachable):
        return f"it cannot be reached ({error})"
    return str(getattr(error, "what", "")) or type(error).__name__


def problems(connection: Connection) -> list[str]:
    """Return a problem if the settings are not those of the last entry about them."""
    changes = queries.witness_changes(connection)
    expected: list[Any] = changes[-1].content()["addresses"] if changes else []
    salt = connection.execute(select(secrets.c.value).where(secrets.c.account == SERVICE)).scalar()
    stored = stored_addresses(connection)
    try:
        hashed = sorted(keyed(str(salt), address) for address in stored) if stored else []
    except ValueError:  # the secret was changed, which is reported
        hashed = []
    return [] if hashed == expected else ["The addresses of the witnesses are not those that the entries record."]
