"""The sources that have an account, in this ledger and on this machine, so that a second account is noticed.

Two accounts over one source would spend its budget twice. The list in the ledger's database knows the accounts of this
ledger; the registry, a SQLite file of the user, knows those of other ledgers. Both hold keyed hashes of the names of a
source (`tidegate.tables.source.source_names`) and of its content. A copy in which the first rows differ, a view, and an
account of another user or machine are not recognized: this prevents mistakes, not a dishonest owner.

A second account needs a decision, which is an entry: a policy that says `shares_persons_with` (both are charged together,
see `tidegate.ledger.partners`), or a reason.
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
from tidegate.errors import LedgerError, SecondAccount, TableError
from tidegate.ledger import partners, queries
from tidegate.ledger.chain import SERVICE
from tidegate.ledger.entry import OPENED
from tidegate.ledger.remarks import note_second_account
from tidegate.ledger.schema import known_sources, metadata, secrets
from tidegate.ledger.source_states import keyed
from tidegate.policy import Policy
from tidegate.tables.source import SourceNames, SourceState

if TYPE_CHECKING:
    from tidegate.ledger.ledger import Ledger

LOG = logging.getLogger("tidegate.ledger")
VARIABLE, BESIDE_POLICY = "TIDEGATE_REGISTRY", "tidegate.registry"
_KEY = Table("registry_key", MetaData(), Column("value", Text, primary_key=True))
_SECONDS = 30


@dataclass(frozen=True)
class Claim:
    """An account that is to be opened over a source. `ledger` is the hash of the ledger's first entry."""

    names: SourceNames
    stamp: str
    digest: Callable[[], str]  # empty if the content is unknown
    account: str
    ledger: str
    address: str  # the ledger's file, empty for a database


@dataclass(frozen=True)
class SourceGuard:
    """Refuses a second account over a source. `new_account` is the owner's reason for one."""

    names: Callable[[], SourceNames]
    registry: Path | None
    new_account: str = ""

    def admit(self, ledger: Ledger, policy: Policy, state: SourceState | None) -> Callable[[], None]:
        """Refuse a source that has another account; return the function that records the new one, once it is open.

        Raises:
            SecondAccount: The source has an account elsewhere, and neither the policy nor a reason admits another one.
        """
        try:
            names = self.names()
        except (OSError, TableError):  # reading its rows reports that
            return lambda: None
        if state is None and not names.own[0].startswith(("postgresql:", "spark:")):  # a file that is gone
            return lambda: None
        account = policy.dataset.name
        claim = _claim(ledger, account, names, state or SourceState("", lambda: ""))
        registry = Registry(self.registry) if self.registry else None
        with ledger.store.reading() as connection:
            key = connection.execute(select(secrets.c.value).where(secrets.c.account == SERVICE)).scalar_one()
            known = find_others(connection, key, claim)
            _, group = partners.read(connection, account)
        known += registry.find_others(claim) if registry else []
        together = {*policy.dataset.shares_persons_with, *group}
        others = [
            (other, spent) for other in dict.fromkeys(known) if (spent := _spent(ledger, claim, other)) is not None
        ]
        separate = [pair for pair in others if pair[0].ledger != claim.ledger or pair[0].account not in together]
        if separate and not self.new_account:
            raise _refusal(claim, *separate[0])

        def record() -> None:
            with ledger.store.reading() as connection:
                is_recorded = has(connection, key, claim)
            if not is_recorded:
                with suppress(LedgerError), ledger.store.writing() as connection:  # it can be read-only
                    put(connection, key, claim)
            if registry and (claim.address or not ledger.store.sqlite):
                registry.put(claim)
            if separate:
                note_second_account(ledger.store, account, reason=self.new_account)

        return record


def _claim(ledger: Ledger, account: str, names: SourceNames, state: SourceState) -> Claim:
    with ledger.store.reading() as connection:
        first = connection.execute(queries.ALL.limit(1)).mappings().one()
    address = str(ledger.store.path.absolute()) if ledger.store.path else ""
    return Claim(names, state.stamp, state.digest, account, str(first["hash"]), address)


STATE_WHY = 'state why: --new-account "REASON", in Python new_account="REASON"'


def _refusal(claim: Claim, other: KnownAccount, spent: str) -> SecondAccount:
    shown = Path(other.address).name if other.address else "a database"
    is_here = other.ledger == claim.ledger
    where = f' and ledger = "{other.address}"' if other.address and not is_here else ""
    same_ledger = "" if is_here else ", in the same ledger"
    return SecondAccount(
        f'This source has the account "{other.account}" in {"this ledger" if is_here else shown}{spent}.',
        f'To continue with it, set name = "{other.account}"{where} in [dataset]. To charge two accounts together{same_ledger}, '
        f'set shares_persons_with = ["{other.account}"]. To open a separate account, {STATE_WHY}.',
    )


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
    """Return whether the account is recorded with all names and the present state of its source."""
    query = select(known_sources.c.location).where(*_own(claim), known_sources.c.stamp == keyed(key, claim.stamp))
    return {keyed(key, name) for name in claim.names.own} <= set(connection.execute(query).scalars())


def find_others(connection: Connection, key: str, claim: Claim) -> list[KnownAccount]:
    """Return the other accounts of the source; none if the owner accepted this one before."""
    if has(connection, key, claim):
        return []  # the content is not even read
    content = claim.digest()
    names = [keyed(key, name) for name in (*claim.names.own, *claim.names.shorter)]
    same: ColumnElement[bool] = known_sources.c.location.in_(names)
    if content:
        same = or_(same, known_sources.c.content == keyed(key, content))
    rows = list(connection.execute(select(known_sources).where(same)).mappings())
    if any((row["account"], row["ledger"]) == (claim.account, claim.ledger) for row in rows):
        return []
    return list(dict.fromkeys(KnownAccount(row["account"], row["ledger"], row["address"]) for row in rows))


def put(connection: Connection, key: str, claim: Claim) -> None:
    """Record the account of a source. Earlier sources of the account stay recorded."""
    if has(connection, key, claim):
        return
    names = [keyed(key, name) for name in claim.names.own]
    connection.execute(delete(known_sources).where(*_own(claim), known_sources.c.location.in_(names)))
    content = claim.digest()
    row = {"account": claim.account, "ledger": claim.ledger, "address": claim.address}
    row |= {"content": keyed(key, content) if content else "", "stamp": keyed(key, claim.stamp)}
    connection.execute(known_sources.insert(), [{**row, "location": name} for name in names])


def _own(claim: Claim) -> list[ColumnElement[bool]]:
    return [known_sources.c.account == claim.account, known_sources.c.ledger == claim.ledger]


class Registry:
    """The sources that have an account on this machine. If the file cannot be used, nothing is known."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def find_others(self, claim: Claim) -> list[KnownAccount]:
        others: list[KnownAccount] = []
        self._run(lambda connection, key: others.extend(find_others(connection, key, claim)))
        return others

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
