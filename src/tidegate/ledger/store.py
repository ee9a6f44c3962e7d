"""The storage of entries: one SQLite file or one Postgres database, behind the same few statements.

Every write happens in one serial transaction (SQLite: BEGIN IMMEDIATE; Postgres: an advisory lock), so that a total is
still true when the entry that depends on it is committed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from tidegate.errors import LedgerError, LedgerNewer, LedgerUnavailable
from tidegate.extras import require
from tidegate.ledger import access, file, merkle, queries, shares, sources, totals
from tidegate.ledger.chain import adopt, write_genesis
from tidegate.ledger.schema import REVISION
from tidegate.ledger.statements import Read, driver_of, read_all

WAITING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)  # another process is writing
BUSY_SECONDS = 60
CHECKPOINT_SECONDS = 2  # writers wait while a checkpoint waits for readers
HIDDEN = "at that address"
MIGRATIONS = Path(__file__).parent / "migrations"
READABLE = "0004"  # the oldest schema that can be read without migrating it


class Store:
    """A database with the ledger's tables."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        """Open, create or migrate the ledger at a path or URL. `read_only` neither creates nor migrates."""
        self.shown = _shown(url)
        parsed = _parse_address(url, read_only)
        self.path, self.created = file.path_of(parsed), False
        if self.path is not None:
            self.created = _prepare_file(self.path, parsed, read_only)
        self.engine = _engine(parsed, read_only, self.shown)
        self.sqlite = self.engine.dialect.name == "sqlite"
        self.after_commit: Callable[[], None] | None = None  # for checkpoints
        self._turn = threading.Lock()  # threads of one process queue here, fairly, instead of in SQLite's busy loop
        self.cache_turn = threading.Lock()  # for the ledger's cache of answered queries
        writable_path = None if read_only else self.path
        self.close = weakref.finalize(self, _close, self.engine, writable_path, file.identity_of(writable_path))
        _forget_after_fork(self)
        with self.reading() if read_only else self.writing() as connection:
            if not (read_only or self.sqlite):
                driver_of(connection).lock_table()
            if read_only:
                _refuse_other_schema(connection, self.shown)
            elif not self.sqlite and not schema_revision(connection):
                self.created = True
                _migrate(connection, self.shown)
                write_genesis(connection)
            else:
                _refuse_without_genesis(connection, self.shown)
                _upgrade(connection, self.shown)
            revision = schema_revision(connection)
            self.has_totals, self.has_partners = revision >= "0008", revision >= "0014"
        if self.path is not None:
            file.warn_wide(self.path)
        if self.created:
            file.LOG.info("Created a new ledger: %s", self.shown, extra={"created_ledger": self.shown})

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that no other writer overlaps. It commits at the end, or not at all."""
        with self.deciding([]) as (connection, _):
            yield connection

    @contextmanager
    def deciding(self, reads: Sequence[Read]) -> Iterator[tuple[Connection, list[list[Any]]]]:
        """Open a transaction like `writing`, with the rows of some statements at its beginning."""
        with self._turn, self._translate_errors(), self.engine.connect() as connection, connection.begin():
            if self.sqlite:
                rows = read_all(connection, reads)
            else:
                rows = driver_of(connection).begin_write(reads, seconds=BUSY_SECONDS)
            yield connection, rows
        if self.after_commit is not None:
            self.after_commit()
        file.LOG.debug("The transaction is committed.", extra={"is_committed": True})

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a consistent view for reading."""
        with self._translate_errors(), self.engine.connect() as connection:
            if self.sqlite:
                connection = connection.execution_options(tidegate_read=True)
            else:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin(), nullcontext() if self.sqlite else driver_of(connection).limited():
                yield connection

    @contextmanager
    def outside(self) -> Iterator[Connection]:
        """Open a connection whose statements commit one by one, without the ledger's lock: for what no entry depends on."""
        with self._translate_errors(), self.engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    def clock(self, connection: Connection) -> float:
        """Return the time in seconds of the epoch: the database's, so that machines with other clocks agree."""
        if self.sqlite:
            return time.time()
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())

    def forget_deleted(self) -> bool:
        """Remove the traces of deleted rows; return whether that was possible now (a long reader can prevent it).

        SQLite: the write-ahead log is copied into the database and truncated. Postgres: the waiting store is vacuumed; its
        write-ahead log cannot be cleared from here.
        """
        if self.sqlite:
            with self._translate_errors(), self.engine.connect() as connection:
                return _truncate_log(connection.connection)
        with self.outside() as connection:  # no vacuum inside a transaction
            connection.execute(text("VACUUM tidegate_waiting"))
        return True

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        problem: LedgerError | None = None
        try:
            yield
        except (SQLAlchemyError, self.engine.dialect.loaded_dbapi.Error) as error:
            problem = _problem(error, self.shown)
        if problem:
            raise problem from None


def _close(engine: Engine, path: Path | None, identity: tuple[int, int] | None) -> None:
    """Close the database. The main file of a SQLite ledger is completed before SQLite removes the log."""
    if path is not None:
        file.settle(path)
    engine.dispose()
    if path is not None and file.identity_of(path) == identity:  # nobody put another file into its place
        file.settle_closed(path)


def _prepare_file(path: Path, url: URL, read_only: bool) -> bool:
    """Create the file of a ledger if there is none, refuse an incomplete one; return whether it was created."""
    with file.readable(path):
        exists = path.exists()
    if exists or read_only or "mode" in url.query:
        file.refuse_partial(path, read_only=read_only)
        if read_only:
            file.roll_back(path)
        return False
    file.refuse_missing(path)
    return file.create(path, write_new)


def write_new(path: Path) -> None:
    """Write the tables and the genesis entry of a new ledger into an empty file."""
    engine = create_engine(URL.create("sqlite", database=str(path)), hide_parameters=True)
    event.listen(engine, "connect", lambda connection, record: setattr(connection, "isolation_level", None))
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.begin() as connection:
            _migrate(connection, str(path))
            write_genesis(connection)
            connection.exec_driver_sql(f"PRAGMA user_version = {file.WHOLE}")
    except (SQLAlchemyError, sqlite3.Error) as error:
        problem = _problem(error, str(path))
    else:
        return
    finally:
        engine.dispose()
    raise problem


def _upgrade(connection: Connection, shown: str) -> None:
    """Migrate an older ledger. Its entries stay; totals that earlier versions did not have are computed from them."""
    before = schema_revision(connection)
    _migrate(connection, shown)
    complete(connection, since=before)


def complete(connection: Connection, *, since: str) -> None:
    """Add what a ledger of schema `since` lacks: commitments to secrets and tokens, totals, the list of answers."""
    entries = queries.every(connection) if since < "0008" else []
    if since < "0008":
        totals.rebuild(connection, entries)
    if since < "0005":
        shares.rebuild(connection, entries)
        sources.rebuild(connection, entries)
    if since < "0012":
        merkle.rebuild(connection)
    if since < "0005":
        adopt(connection)
    if since < "0017":
        access.adopt_tokens(connection)


def _parse_address(url: str, read_only: bool) -> URL:
    problem = ""
    try:
        parsed = make_url(url) if "://" in url else _file_url(Path(url).expanduser(), read_only)
        if _shown(url) == HIDDEN:  # part of an unquoted password is in the host name, which the driver would quote
            raise ValueError("not an address")
        name = parsed.get_backend_name()
        if name == "sqlite" and parsed.database in (None, "", ":memory:"):
            raise ValueError("a ledger in memory is not durable")
        if name in ("postgresql", "postgres"):
            require("postgres", "A ledger in Postgres")
            return parsed.set(drivername="postgresql+psycopg")
        if name == "sqlite" and (parsed.host or parsed.username):  # sqlite://somewhere/people is no path
            raise ValueError("not an address")
        if name == "sqlite":
            return parsed
        problem = f"A ledger must be a SQLite file or a Postgres database, not {name}."
    except (SQLAlchemyError, ValueError):
        problem = "The URL of the ledger is not valid."
    raise LedgerUnavailable(problem, "Write a path such as people.ledger, or postgresql://host/database.")


def file_of(url: str) -> Path | None:
    """Return the file of a SQLite ledger; None for a database, or an address that is not valid."""
    try:
        return file.path_of(make_url(url)) if "://" in url else Path(url).expanduser()
    except (SQLAlchemyError, ValueError):
        return None


def _engine(parsed: URL, read_only: bool, shown: str) -> Engine:
    problem = ""
    options = {"pool_timeout": BUSY_SECONDS, "max_overflow": 0, "hide_parameters": True}
    try:
        if parsed.get_backend_name() == "sqlite":
            return _sqlite(create_engine(parsed, pool_size=8, **options), parsed, read_only, shown)
        from tidegate.ledger.postgres import open_engine

        return open_engine(parsed, pool_size=16, **options)
    except (SQLAlchemyError, ValueError):
        problem = "The URL of the ledger is not valid."
    raise LedgerUnavailable(problem, "Write a path such as people.ledger, or postgresql://host/database.")


def _file_url(path: Path, read_only: bool) -> URL:
    with file.readable(path):
        has_folder = path.parent.is_dir()
    if not has_folder:
        raise LedgerUnavailable(
            f"The ledger's folder {path.parent} does not exist.", "Create it, or name another ledger."
        )
    if not read_only:
        return URL.create("sqlite", database=str(path))
    if not path.exists():
        raise LedgerUnavailable(f"There is no ledger at {path}.", "The first query creates it.")
    fixed = not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists()  # a copy on a read-only disk
    query = {"mode": "ro", "uri": "true", **({"immutable": "1"} if fixed else {})}
    return URL.create("sqlite", database=f"file:{quote(str(path.absolute()))}", query=query)


def _sqlite(engine: Engine, parsed: URL, read_only: bool, shown: str) -> Engine:
    path = file.path_of(parsed) or Path()

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        if read_only:
            return
        _write_ahead(connection)
        connection.execute(
            "PRAGMA synchronous = FULL"
        )  # a returned answer must have its entry, even after a power failure
        connection.execute("PRAGMA secure_delete = ON")  # deleted rows are overwritten, not only unlinked

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        if connection.get_execution_options().get("tidegate_read"):
            driver.execute("BEGIN")
        else:
            file.begin(driver, path, seconds=BUSY_SECONDS, shown=shown)

    return engine


def _write_ahead(connection: Any) -> None:
    """Set the journal mode while several processes create one file: SQLite's busy timeout does not cover this change."""
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
    """Copy SQLite's write-ahead log into the database and truncate it; return whether no reader prevented it."""
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
    """Return the address without user, password and options, any of which can be secret."""
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


def _problem(error: Exception, shown: str) -> LedgerError:
    """Return an error for a failure of the database; its own message can contain values and is withheld."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    words = type(error).__name__.lower() if isinstance(cause, SQLAlchemyError) else str(cause).lower()
    if "readonly" in words or "read-only" in words:
        return LedgerUnavailable(
            f"The ledger {shown} is read-only, so nothing was charged.",
            "Make the file and its folder writable.",
        )
    if "locked" in words or "busy" in words or "lock timeout" in words:
        return LedgerUnavailable(
            f"The ledger {shown} has been locked by another process for more than {BUSY_SECONDS} seconds.",
            "Try again: the same query is charged once.",
        )
    if "is full" in words or "no space left" in words or "disk full" in words or "quota exceeded" in words:
        return LedgerUnavailable(
            f"The disk of the ledger {shown} is full, so the entry was not written.",
            "Free some space, then try again: the same query is charged once.",
        )
    if "disk i/o error" in words:
        return LedgerUnavailable(
            f"The disk of the ledger {shown} cannot be written or read (disk I/O error), so the entry was not written.",
            "Check that the disk is neither full nor damaged, then try again: the same query is charged once.",
        )
    if "not a database" in words or "malformed" in words:
        return LedgerUnavailable(
            f"{shown} is not a ledger, or its file is damaged.",
            "Restore it from a backup; never overwrite it with a new ledger.",
        )
    if "unable to open" in words:
        return LedgerUnavailable(f"The ledger {shown} cannot be opened.", "Check the path and its permissions.")
    return LedgerUnavailable(
        f"The ledger {shown} does not respond ({type(error).__name__}).",
        "Check that the database is running, then try again: the same query is charged once.",
    )


def _migrate(connection: Connection, shown: str) -> None:
    revision = schema_revision(connection)
    if revision == REVISION:
        return
    if revision > REVISION:
        raise LedgerNewer(
            f"The ledger {shown} has schema {revision}, and this Tidegate supports up to {REVISION}.",
            "Upgrade Tidegate. Nothing was changed.",
        )
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _refuse_other_schema(connection: Connection, shown: str) -> None:
    if not READABLE <= (revision := schema_revision(connection)) <= REVISION:
        raise LedgerUnavailable(
            f"{shown} is not a ledger of schema {REVISION}.",
            "Open it with the Tidegate that wrote it."
            if revision > REVISION
            else "Check the path, or run a query to create it.",
        )


def _refuse_without_genesis(connection: Connection, shown: str) -> None:
    """Refuse a database without entries: every ledger has a first entry, so it was lost, or this is not a ledger."""
    if schema_revision(connection) and queries.last(connection) is not None:
        return
    raise LedgerUnavailable(
        f"{shown} contains no ledger: the entry that is written at creation is missing.",
        "It can be an incomplete copy; restore a backup: tidegate ledger restore POLICY BACKUP. Only if nothing was ever "
        "charged, delete it to start again.",
    )


def schema_revision(connection: Connection) -> str:
    if not connection.dialect.has_table(connection, "tidegate_version"):
        return ""
    return str(connection.execute(text("SELECT version_num FROM tidegate_version")).scalar() or "")


def _forget_after_fork(store: Store) -> None:
    """Discard connections in a forked child: it must not use its parent's."""
    reference = weakref.ref(store)

    def forget() -> None:
        if store_in_child := reference():
            store_in_child.engine.dispose(close=False)
            store_in_child._turn, store_in_child.cache_turn = threading.Lock(), threading.Lock()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)
