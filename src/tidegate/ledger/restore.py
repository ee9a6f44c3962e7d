"""Restore: a backup replaces a ledger, and no budget is restored.

restore("people.backup", "people.ledger")           refused if the ledger has entries that the backup lacks
restore(..., write_off=True)                        the charges of those entries are charged again
"""

from __future__ import annotations

import contextlib
import os
import secrets as system
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection

from tidegate.accounting import ZERO, Amount
from tidegate.errors import LedgerError, LedgerUnavailable
from tidegate.ledger import file, partners, queries, recovery, shares, totals, witness
from tidegate.ledger.backup import Copied, copy_file, copy_rows, mark, verify_file
from tidegate.ledger.chain import append
from tidegate.ledger.entry import CREATED, DECIDED, OPENED, Entry
from tidegate.ledger.ledger import Ledger
from tidegate.ledger.schema import metadata
from tidegate.ledger.store import complete, schema_revision
from tidegate.ledger.verify import Verdict
from tidegate.policy import Policy
from tidegate.policy.toml import policy_from_dict


def restore(
    source: str | Path,
    address: str,
    *,
    head: str = "",
    write_off: bool = False,
    witnesses: Sequence[str] = (),
    policies: Sequence[Policy] = (),
) -> Copied:
    """Replace a ledger by a backup, or create it from the backup if it no longer exists.

    Args:
        head: The newest head that you noted. The backup must contain it.
        write_off: Accept a backup that lacks entries of the ledger at `address`. Their charges are charged again, so that
            no account and no user regains budget.
        witnesses: Addresses of checkpoints, in addition to those in the settings of the backup and of the replaced ledger. A
            backup with fewer entries than they have seen is written off up to their totals, or refused.
        policies: Policies of accounts that the backup lacks.

    Guarantee:
        The backup is verified before anything is changed. At any moment the ledger is the old one or the new one; a
        replaced SQLite file is stored next to it, marked so that it is never charged.

    Raises:
        LedgerBroken: The backup does not verify.
        LedgerUnavailable: The ledger has newer entries, is another ledger, is in use, or cannot be read.
    """
    origin = Path(source).expanduser()
    if not origin.exists():
        raise LedgerUnavailable(f"There is no backup at {origin}.", "Name the file that tidegate ledger backup wrote.")
    if not head:
        file.refuse_partial(origin, read_only=True)
    if "://" in address and not address.startswith("sqlite"):
        return _restore_database(origin, address, recovery.Options(head, write_off, witnesses, policies))
    path = Path(address.removeprefix("sqlite:///")).expanduser()
    temporary = path.with_name(f".{path.name}.{system.token_hex(6)}.new")
    with _cleanup(temporary):
        os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, file.PRIVATE))
        copy_file(origin, temporary)
        mark(temporary, file.WHOLE)
        verdict = verify_file(temporary, head=head)
        if head and file.is_partial(origin) and verdict.head != head:
            file.refuse_partial(origin, read_only=True)
        with _locked_file(path, same=path.exists() and origin.samefile(path)) as connection:
            newest = _newest(path) if connection else None
            stored = _stored_witnesses(path) if connection else ()
            options = recovery.Options(head, write_off, (*witnesses, *stored), policies)
            charged, now = _bring_up(temporary, newest, verdict, options)
            aside = ""
            if connection is not None:
                aside = str(path.with_name(f"{path.name}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"))
                os.link(path, aside)
                connection.execute(
                    f"PRAGMA user_version = {file.BACKUP}"
                )  # a process that waits for this file must not charge it
                connection.execute("COMMIT")
            file.replace(temporary, path)
    recovery.announce(str(path), options)
    return Copied(str(path), now.entries, now.head, path.stat().st_size, charged, aside)


def _restore_database(origin: Path, address: str, options: recovery.Options) -> Copied:
    """Restore in one transaction: the database contains the old ledger or the new one."""
    verify_file(origin, head=options.head)
    ledger, stored = Ledger(address, is_witnessed=False), Ledger(str(origin), read_only=True)
    try:
        with ledger.store.writing() as target, stored.store.reading() as source:
            newest = None if ledger.store.created else _known(queries.every(target))
            options = replace(options, witnesses=(*options.witnesses, *witness.stored_addresses(target)))
            _refuse_newer(queries.every(source), newest, write_off=options.write_off)
            for table in reversed(metadata.sorted_tables):
                target.execute(table.delete())
            copy_rows(source, target)
            complete(target, since=schema_revision(source))
            charged = _write_off(target, newest) if newest else {}
            charged |= recovery.write_off(target, options)
        now = ledger.verify()
    finally:
        ledger.close()
        stored.close()
    now.refuse()
    recovery.announce(address, options)
    return Copied(ledger.store.shown, now.entries, now.head, written_off=charged)


def _bring_up(
    temporary: Path, newest: _Newest | None, verdict: Verdict, options: recovery.Options
) -> tuple[dict[str, str], Verdict]:
    """Migrate the copy, write off missing charges, and verify it again."""
    with contextlib.closing(Ledger(str(temporary), is_witnessed=False)) as ledger:
        with ledger.store.writing() as connection:
            own = [entry for entry in queries.every(connection) if entry.number <= verdict.entries]
            _refuse_newer(own, newest, write_off=options.write_off)
            charged = _write_off(connection, newest) if newest else {}
            charged |= recovery.write_off(connection, options)
        now = ledger.verify()
    now.refuse()
    mark(temporary, file.WHOLE)
    return charged, now


# What is newer


@dataclass(frozen=True)
class _Newest:
    """The state of the replaced ledger: totals are the highest in any of its entries."""

    entries: list[Entry]
    spent: dict[str, Amount]
    by: dict[tuple[str, str], Amount]

    @property
    def last(self) -> Entry:
        return self.entries[-1]


def _known(entries: list[Entry]) -> _Newest:
    spent: dict[str, Amount] = {}
    by: shares.Totals = {}
    for entry in entries:
        with contextlib.suppress(
            ValueError, ArithmeticError, LookupError, TypeError
        ):  # a ledger that was tampered with
            total = Amount.parse(entry.spent)
            spent[entry.account] = max(spent.get(entry.account, ZERO), total)
            shares.add(by, entry)
    return _Newest(entries, spent, by)


def _stored_witnesses(path: Path) -> tuple[str, ...]:
    """Return the witnesses of the replaced ledger: a backup from before they were added must not lose them."""
    with (
        contextlib.suppress(sqlite3.Error),  # an earlier schema, or a damaged file
        contextlib.closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?immutable=1", uri=True)) as connection,
    ):
        return tuple(str(address) for (address,) in connection.execute("SELECT address FROM tidegate_witnesses"))
    return ()


def _newest(path: Path) -> _Newest | None:
    """Return the state of the ledger at a path, read while no other process can change it."""
    problem = None
    try:
        with contextlib.closing(
            sqlite3.connect(f"file:{quote(str(path.absolute()))}?immutable=1", uri=True)
        ) as connection:
            connection.row_factory = sqlite3.Row
            rows = connection.execute("SELECT * FROM tidegate_entries ORDER BY number").fetchall()
        entries = [Entry(**{name: row[name] for name in Entry.__dataclass_fields__}) for row in rows]
    except (sqlite3.Error, TypeError, IndexError) as error:
        problem = _unreadable(path, type(error).__name__)
    if problem:
        raise problem
    return _known(entries) if entries else None


def _refuse_newer(own: list[Entry], newest: _Newest | None, *, write_off: bool) -> None:
    """Refuse a backup of another ledger, and one that lacks entries unless they are written off."""
    if newest is None or not newest.entries:
        return
    if newest.entries[0].hash != own[0].hash and newest.entries[0].kind == CREATED:
        if len(newest.entries) == 1:
            return  # a new ledger in which nothing was charged
        raise LedgerUnavailable(
            "The backup is of another ledger: their first entries differ.",
            "Move the other ledger to another folder first, and keep it.",
        )
    known = {entry.hash for entry in own}
    lacking = [entry for entry in newest.entries if entry.hash not in known]
    if not lacking:
        return
    if not write_off:
        raise LedgerUnavailable(
            f"The ledger has {len(lacking):,} entries that the backup lacks, up to entry {newest.last.number:,} "
            f"({newest.last.hash[:12]}); the backup ends with entry {own[-1].number:,}.",
            "Keep the ledger, or restore with --write-off, which repeats the charges of these entries.",
        )
    if released := [entry for entry in lacking if entry.kind == DECIDED]:
        raise LedgerUnavailable(
            f"The ledger has {len(released):,} release decisions that the backup lacks. Released records cannot be written off: "
            "they would be treated as if they were still secret.",
            "Keep the ledger, or make a newer backup of it.",
        )


def _write_off(connection: Connection, newest: _Newest) -> dict[str, str]:
    """Charge every account, and every user, up to its total in the newest state."""
    charged = {}
    for account, total in newest.spent.items():
        head = _same_policy(connection, account, newest)
        if head is None:
            continue
        spent, most = Amount.parse(head.spent), Amount.parse(head.ceiling)
        missing = Amount(max(0, min(total, most).grains - spent.grains))
        by = _parts(connection, account, newest)
        if not missing and not by:
            continue
        charged[account] = recovery.charge_again(
            connection, head, missing, by, newest=(newest.last.number, newest.last.hash)
        )
    return charged


def _same_policy(connection: Connection, account: str, newest: _Newest) -> Entry | None:
    """Reopen the newest policy of an account and return its last entry; None if the account has no policy."""
    policies = [entry for entry in newest.entries if entry.account == account and entry.kind == OPENED]
    head = queries.head(connection, account)
    if not policies:
        return None
    latest = policies[-1]
    if head is not None and head.policy == latest.policy:
        return head
    after = totals.read(connection, account).after(latest)
    totals.put(connection, account, after)
    partners.put(connection, account, policy_from_dict(latest.content()["policy"]).dataset.shares_persons_with)
    return append(
        connection,
        queries.last(connection),
        account=account,
        kind=OPENED,
        policy=latest.policy,
        request=f"{latest.policy}/{head.number if head else 0}",
        question="",
        amount="0",
        spent=head.spent if head else "0",
        ceiling=str(after.ceilings.main),
        body=latest.body,
    )


def _parts(connection: Connection, account: str, newest: _Newest) -> dict[str, Amount]:
    parts = {}
    for (of, user), total in newest.by.items():
        spent = shares.spent_by(connection, account, user) if of == account else total
        if of == account and total > spent:
            parts[user] = total.minus(spent)
    return parts


# Files


@contextlib.contextmanager
def _locked_file(path: Path, *, same: bool) -> Iterator[Any]:
    """Open the ledger at a path exclusively, with everything in its main file; None if there is none."""
    if not path.exists():
        if file.log_of(path).exists():  # SQLite would apply it to the backup
            raise LedgerUnavailable(
                f"There is no ledger at {path}, but its write-ahead log {path.name}-wal exists and can contain newer entries.",
                f"Move {path.name}-wal to another folder, keep it, and restore again.",
            )
        yield None
        return
    problem: LedgerError | None = None
    connection = None
    try:
        if file.is_partial(path) and not same:
            raise sqlite3.DatabaseError("its write-ahead log is gone")
        connection = sqlite3.connect(path, isolation_level=None, timeout=5)
        state = connection.execute("PRAGMA user_version").fetchone()[0]
        if state == file.IN_USE:
            connection.execute(f"PRAGMA user_version = {file.WHOLE}")
        mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[
            0
        ]  # only where no other process has it open
        if mode != "delete":
            raise sqlite3.OperationalError("database is locked")
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        problem = LedgerUnavailable(
            f"The ledger {path} is in use by another process.", "Stop the service and all other processes first."
        )
    except sqlite3.DatabaseError as error:
        problem = _unreadable(path, type(error).__name__)
    try:
        if problem:
            raise problem
        yield connection
    finally:
        if connection is not None:
            connection.close()


def _unreadable(path: Path, why: str) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"The ledger {path} cannot be read ({why}), so its entries beyond the backup are unknown.",
        "Move it with all its companion files to another folder, keep it, and restore again.",
    )


@contextlib.contextmanager
def _cleanup(temporary: Path) -> Iterator[None]:
    problem = ""
    try:
        yield
    except OSError as error:
        problem = error.strerror or type(error).__name__
    except sqlite3.Error as error:
        problem = f"{type(error).__name__}, the disk is probably full"
    finally:
        file.remove(temporary)
    if problem:
        raise LedgerUnavailable(f"The ledger cannot be written: {problem}.", "Check the folder and its permissions.")
