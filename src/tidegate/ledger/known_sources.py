"""The sources that have an account, in this ledger and on this machine, so that a second account is noticed.

Two accounts over one source would spend its budget twice. The list in the ledger's database knows the accounts of this
ledger; the registry, a SQLite file of the user, knows those of other ledgers. Both hold keyed hashes of locations and
contents. A copy with one changed byte at another location is not recognized: this prevents mistakes, not a dishonest owner.
"""

from __future__ import annotations

import logging
import os
import secrets as system
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Column, ColumnElement, Connection, MetaData, Table, Text, create_engine, delete, or_, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from tidegate.accounting.budget import SHORT
from tidegate.errors import LedgerError, Unsupported
from tidegate.ledger import queries
from tidegate.ledger.chain import SERVICE
from tidegate.ledger.entry import OPENED
from tidegate.ledger.remarks import note_second_account
from tidegate.ledger.schema import known_sources, metadata, secrets
from tidegate.ledger.source_states import keyed
from tidegate.tables.source import SourceState

if TYPE_CHECKING:
    from tidegate.ledger.ledger import Ledger

LOG = logging.getLogger("tidegate.ledger")
VARIABLE, BESIDE_POLICY = "TIDEGATE_REGISTRY", "tidegate.registry"
_KEY = Table("registry_key", MetaData(), Column("value", Text, primary_key=True))
_SECONDS = 30


@dataclass(frozen=True)
class Claim:
    """An account that is to be opened over a source. `ledger` is the hash of the ledger's first entry."""

    location: str
    stamp: str
    digest: Callable[[], str]
    account: str
    ledger: str
    address: str  # the ledger's file, empty for a database


@dataclass(frozen=True)
class SourceGuard:
    """Refuses a second account over a source. `new_account` is the owner's reason for one."""

    location: str
    registry: Path | None
    new_account: str = ""

    def admit(self, ledger: Ledger, account: str, state: SourceState) -> Callable[[], None]:
        """Refuse a source that has another account; return the function that records the new one, once it is open.

        Raises:
            Unsupported: The source has an account elsewhere, and there is no reason for another one.
        """
        claim = _claim(ledger, account, self.location, state)
        registry = Registry(self.registry) if self.registry else None
        with ledger.store.reading() as connection:
            key = connection.execute(select(secrets.c.value).where(secrets.c.account == SERVICE)).scalar_one()
            other = find_other(connection, key, claim)
        other = other or (registry.find_other(claim) if registry else None)
        spent = _spent(ledger, claim, other) if other else None
        if other and spent is not None and not self.new_account:
            shown = Path(other.address).name if other.address else "a database"
            shown = "this ledger" if other.ledger == claim.ledger else shown
            raise Unsupported(
                f'This source has the account "{other.account}" in {shown}{spent}.',
                f'To continue with it, set name = "{other.account}"'
                + (f' and ledger = "{other.address}"' if other.address and other.ledger != claim.ledger else "")
                + ' in [dataset]. To open another account, state why: --new-account "REASON".',
            )

        def record() -> None:
            with ledger.store.reading() as connection:
                is_recorded = has(connection, key, claim)
            if not is_recorded:
                with suppress(LedgerError), ledger.store.writing() as connection:  # it can be read-only
                    put(connection, key, claim)
            if registry and (claim.address or not ledger.store.sqlite):
                registry.put(claim)
            if other and spent is not None:
                note_second_account(ledger.store, account, reason=self.new_account)

        return record


def _claim(ledger: Ledger, account: str, location: str, state: SourceState) -> Claim:
    with ledger.store.reading() as connection:
        first = connection.execute(queries.ALL.limit(1)).mappings().one()
    address = str(ledger.store.path.absolute()) if ledger.store.path else ""
    return Claim(location, state.stamp, state.digest, account, str(first["hash"]), address)


def _spent(ledger: Ledger, claim: Claim, other: KnownAccount) -> str | None:
    """Return what another account has spent, to follow its name; None if nothing was ever asked of it."""
    from tidegate.ledger.ledger import Ledger

    if other.ledger == claim.ledger:
        return _spent_in(ledger, other.account)
    try:
        opened = Ledger(other.address, read_only=True) if other.address and Path(other.address).exists() else None
        if opened is None:
            return ", which cannot be read now"
        try:
            return _spent_in(opened, other.account)
        finally:
            opened.close()
    except LedgerError:
        return ", which cannot be read now"


def _spent_in(ledger: Ledger, name: str) -> str | None:
    account = ledger.account(name)
    if account is None or not (account.spent or any(entry.kind != OPENED for entry in ledger.entries(name))):
        return None
    return f" with {SHORT[account.unit]} {account.spent.say()} spent"


@dataclass(frozen=True)
class KnownAccount:
    """An account that a source has already."""

    account: str
    ledger: str
    address: str


def registry_path(folder: Path) -> Path | None:
    """Return the registry: of TIDEGATE_REGISTRY (none if it is empty), beside the policy, or the user's own."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named) if named else None
    if (folder / BESIDE_POLICY).exists():
        return folder / BESIDE_POLICY
    state = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(state) if state else Path.home() / ".local" / "state") / "tidegate" / "sources.registry"


def has(connection: Connection, key: str, claim: Claim) -> bool:
    """Return whether the account is recorded with the present state of its source."""
    stamp = connection.execute(select(known_sources.c.stamp).where(*_own(key, claim))).scalar()
    return bool(stamp == keyed(key, claim.stamp))


def find_other(connection: Connection, key: str, claim: Claim) -> KnownAccount | None:
    """Return another account of the source; None if there is none, or if the owner accepted this one before."""
    if has(connection, key, claim):
        return None  # the content is not even read
    location, content = keyed(key, claim.location), keyed(key, claim.digest())
    same = or_(known_sources.c.location == location, known_sources.c.content == content)
    rows = list(connection.execute(select(known_sources).where(same)).mappings())
    if any((row["account"], row["ledger"]) == (claim.account, claim.ledger) for row in rows):
        return None
    return KnownAccount(rows[0]["account"], rows[0]["ledger"], rows[0]["address"]) if rows else None


def put(connection: Connection, key: str, claim: Claim) -> None:
    """Record the account of a source."""
    if has(connection, key, claim):
        return
    connection.execute(delete(known_sources).where(*_own(key, claim)))
    row = {"location": keyed(key, claim.location), "account": claim.account, "ledger": claim.ledger}
    row |= {"content": keyed(key, claim.digest()), "stamp": keyed(key, claim.stamp), "address": claim.address}
    connection.execute(known_sources.insert(), row)


def _own(key: str, claim: Claim) -> list[ColumnElement[bool]]:
    names = {"location": keyed(key, claim.location), "account": claim.account, "ledger": claim.ledger}
    return [known_sources.c[name] == value for name, value in names.items()]


class Registry:
    """The sources that have an account on this machine. If the file cannot be used, nothing is known."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def find_other(self, claim: Claim) -> KnownAccount | None:
        other: list[KnownAccount | None] = []
        self._run(lambda connection, key: other.append(find_other(connection, key, claim)))
        return other[0] if other else None

    def put(self, claim: Claim) -> None:
        self._run(lambda connection, key: put(connection, key, claim))

    def _run(self, work: Callable[[Connection, str], None]) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite would let others read it
            engine = create_engine(f"sqlite:///{self.path}", poolclass=NullPool, connect_args={"timeout": _SECONDS})
            with engine.begin() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                metadata.create_all(connection, tables=[known_sources])
                _KEY.metadata.create_all(connection)
                key = connection.execute(select(_KEY.c.value)).scalar()
                if key is None:
                    key = system.token_hex(32)
                    connection.execute(_KEY.insert(), {"value": key})
                work(connection, key)
            return
        except (OSError, SQLAlchemyError) as error:
            problem = type(error).__name__
        LOG.warning("The registry of sources %s cannot be used (%s).", self.path, problem)
