"""Where entries are kept: one SQLite file or one Postgres database, behind the same few statements.

Every write happens in one serial transaction (SQLite: BEGIN IMMEDIATE; Postgres: an advisory lock), so that a total
that was read is still true when the entry that depends on it is committed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from tidegate.errors import LedgerError, LedgerNewer, LedgerUnavailable
from tidegate.ledger.schema import REVISION

WAITING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)  # somebody else is at it
BUSY_SECONDS = 60
CHECKPOINT_SECONDS = 2  # writers wait while a checkpoint waits for readers
LOCK = 0x74696465  # "tide": the advisory lock of the ledger in its database
HIDDEN = "at that address"
MIGRATIONS = Path(__file__).parent / "migrations"


class Store:
    """A database with the ledger's tables."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        """Open, create or migrate the ledger at a path or URL. `read_only` neither creates nor migrates."""
        self.shown = _shown(url)
        self.engine = _engine(url, read_only)
        self.sqlite = self.engine.dialect.name == "sqlite"
        self._turn = threading.Lock()  # threads of one process queue here, fairly, and not in SQLite's busy loop
        self.cache_turn = threading.Lock()  # for what the ledger remembers of answered questions
        _forget_after_fork(self)
        with self.reading() if read_only else self.writing() as connection:
            if not read_only:
                _migrate(connection, self.shown)
            elif _revision(connection) != REVISION:
                raise LedgerUnavailable(
                    f"{self.shown} is not a ledger of schema {REVISION}.",
                    "Open it with the Tidegate that wrote it.",
                )

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that no other writer overlaps. It commits at the end, or not at all."""
        with self._turn, self._told(), self.engine.connect() as connection:
            if not self.sqlite:  # after the lock, each statement must see what others have committed before it
                connection = connection.execution_options(isolation_level="READ COMMITTED")
            with connection.begin():
                if not self.sqlite:
                    connection.execute(text(f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'"))
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
                yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A consistent view for reading."""
        with self._told(), self.engine.connect() as connection:
            if self.sqlite:
                connection = connection.execution_options(tidegate_read=True)
            else:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    def forget_deleted(self) -> bool:
        """Remove the traces of deleted rows; return whether that was possible now (a long reader can prevent it).

        SQLite: the write-ahead log is copied into the database and truncated. Postgres: the waiting store is vacuumed; its
        own write-ahead log is not reached from here.
        """
        with self._told(), self.engine.connect() as connection:
            if self.sqlite:
                return _truncate_log(connection.connection)
            outside = connection.execution_options(isolation_level="AUTOCOMMIT")  # no vacuum inside a transaction
            outside.execute(text("VACUUM tidegate_waiting"))
            return True

    @contextmanager
    def _told(self) -> Iterator[None]:
        problem: LedgerError | None = None
        try:
            yield
        except SQLAlchemyError as error:
            problem = _problem(error, self.shown)
        if problem:
            raise problem from None

    def close(self) -> None:
        self.engine.dispose()


def _engine(url: str, read_only: bool) -> Engine:
    problem = ""
    try:
        parsed = make_url(url) if "://" in url else _file_url(Path(url).expanduser(), read_only)
        if _shown(url) == HIDDEN:  # an unquoted password spills into the host's name, which the driver would quote
            raise ValueError("not an address")
        options = {"pool_timeout": BUSY_SECONDS, "max_overflow": 0, "hide_parameters": True}
        if parsed.get_backend_name() in ("postgresql", "postgres"):
            return create_engine(
                parsed.set(drivername="postgresql+psycopg"), pool_size=16, pool_pre_ping=True, **options
            )
        if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
            raise ValueError("a ledger in memory is no record")
        if parsed.get_backend_name() == "sqlite":
            return _sqlite(create_engine(parsed, pool_size=8, **options), read_only)
        problem = f"a ledger is a SQLite file or a Postgres database, not {parsed.get_backend_name()}."
    except (SQLAlchemyError, ValueError):
        problem = "the ledger's address is not understood."
    raise LedgerUnavailable(problem, "Write a path such as people.ledger, or postgresql://host/database.")


def _file_url(path: Path, read_only: bool) -> URL:
    if not path.parent.is_dir():
        raise LedgerUnavailable(
            f"the ledger's folder {path.parent} does not exist.", "Create it, or name another ledger."
        )
    if not read_only:
        return URL.create("sqlite", database=str(path))
    if not path.exists():
        raise LedgerUnavailable(f"there is no ledger at {path}.", "It is made by the first question that is asked.")
    fixed = not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists()  # a copy on a read-only disk
    query = {"mode": "ro", "uri": "true", **({"immutable": "1"} if fixed else {})}
    return URL.create("sqlite", database=f"file:{quote(str(path.absolute()))}", query=query)


def _sqlite(engine: Engine, read_only: bool) -> Engine:
    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        if read_only:
            return
        _write_ahead(connection)
        connection.execute(
            "PRAGMA synchronous = FULL"
        )  # an answer that left must have its entry, also after a power cut
        connection.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten, and not only unlinked

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        reading = connection.get_execution_options().get("tidegate_read")
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def _write_ahead(connection: Any) -> None:
    """Several processes that create one file at once: SQLite's own waiting does not cover this change of mode."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in WAITING or time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


def _truncate_log(connection: Any) -> bool:
    """Copy SQLite's write-ahead log into the database and truncate it; whether no reader was in the way."""
    connection.execute(f"PRAGMA busy_timeout = {CHECKPOINT_SECONDS * 1000}")
    try:
        is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in WAITING:
            raise
        is_busy = 1
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    return not is_busy


def _shown(url: str) -> str:
    """The address without user, password and options, any of which may be secret."""
    if "://" not in url:
        return url
    try:
        parsed = make_url(url)
        port = f":{parsed.port}" if parsed.port else ""
    except (SQLAlchemyError, ValueError):
        return HIDDEN
    if parsed.get_backend_name() == "sqlite":
        return str(parsed.database)
    if "@" in f"{parsed.host}{parsed.database}":  # part of a password that was not quoted
        return HIDDEN
    return f"{parsed.get_backend_name()}://{parsed.host or ''}{port}/{parsed.database or ''}"


def _problem(error: SQLAlchemyError, shown: str) -> LedgerError:
    """One sentence for a failure of the database; its own text may hold the statement's values and stays out."""
    words = str(error.orig).lower() if isinstance(error, DBAPIError) and error.orig else type(error).__name__.lower()
    if "readonly" in words or "read-only" in words:
        return LedgerUnavailable(
            f"the ledger {shown} is read-only, so nothing was charged.",
            "Make the file and its folder writable.",
        )
    if "locked" in words or "busy" in words or "lock timeout" in words:
        return LedgerUnavailable(
            f"the ledger {shown} is locked by another process for more than {BUSY_SECONDS} seconds.",
            "Try again; asking the same question twice is charged once.",
        )
    if "not a database" in words or "malformed" in words:
        return LedgerUnavailable(
            f"{shown} is not a ledger, or its file is damaged.",
            "Restore it from a copy; never write a new one over it.",
        )
    if "unable to open" in words:
        return LedgerUnavailable(f"the ledger {shown} cannot be opened.", "Check the path and its permissions.")
    return LedgerUnavailable(
        f"the ledger {shown} does not answer ({type(error).__name__}).",
        "Check that the database runs, then ask again: the same question is charged once.",
    )


def _migrate(connection: Connection, shown: str) -> None:
    found = _revision(connection)
    if found == REVISION:
        return
    if found > REVISION:
        raise LedgerNewer(
            f"the ledger {shown} has schema {found}; this Tidegate knows {REVISION}.",
            "Upgrade Tidegate; nothing was changed.",
        )
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _revision(connection: Connection) -> str:
    if not connection.dialect.has_table(connection, "tidegate_version"):
        return ""
    return str(connection.execute(text("SELECT version_num FROM tidegate_version")).scalar() or "")


def _forget_after_fork(store: Store) -> None:
    """A forked child must not use its parent's connections."""
    reference = weakref.ref(store)

    def forget() -> None:
        if found := reference():
            found.engine.dispose(close=False)
            found._turn, found.cache_turn = threading.Lock(), threading.Lock()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)
