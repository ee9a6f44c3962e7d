"""The file of a SQLite ledger: its creation, permissions and completeness.

While a ledger is in use, its latest entries are in a second file, the write-ahead log (`people.ledger-wal`). SQLite treats
a copy of the main file alone as a complete database. So the main file records, in SQLite's `user_version`, whether entries
can be missing from it: it is marked as in use before the first entry is written to the log, and as whole after the log was
copied into it. A file that is marked as in use and has no log is refused.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy.engine import URL

from tidegate.errors import LedgerUnavailable

LOG = logging.getLogger("tidegate.ledger")
EARLIER, WHOLE, IN_USE, BACKUP = 0, 1, 2, 3  # user_version; earlier versions of Tidegate wrote none
PRIVATE = 0o600
OTHERS = stat.S_IRWXG | stat.S_IRWXO
_COMPANIONS = ("-wal", "-journal", ".reports", ".diaries")  # files that exist next to a ledger only
CLOSING = 1.0  # seconds that the last user of a ledger can need to mark its file after SQLite removed the log
_warned: set[str] = set()


def path_of(url: URL) -> Path | None:
    """Return the file of a SQLite address."""
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    named = url.database.removeprefix("file:")
    return Path(unquote(named.partition("?")[0]) if named != url.database else named)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, in one step; after a power failure it is the old one or the new one."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.new")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def log_of(path: Path) -> Path:
    """Return the write-ahead log of a ledger."""
    return Path(f"{path}-wal")


def mark_of(path: Path) -> int | None:
    """Return the mark in the main file itself, whatever the log holds; None if it is not a SQLite file.

    SQLite reads it, as an immutable file. NEVER open and close the file of a ledger in any other way: POSIX drops all locks
    that a process has on a file when the process closes any handle of it, also those of SQLite's open connections. Another
    process would then take itself for the last one, remove the log, and damage the ledger.
    """
    path.stat()
    if not os.access(path, os.R_OK):
        raise PermissionError(0, "Permission denied")
    address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
            return int(connection.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.DatabaseError:
        return None


def identity_of(path: Path | None) -> tuple[int, int] | None:
    """Return what identifies a file under whatever name; None where there is none."""
    with contextlib.suppress(OSError):
        if path is not None:
            status = path.stat()
            return status.st_dev, status.st_ino
    return None


def is_partial(path: Path) -> bool:
    """Return whether the latest entries were in a log that is missing."""
    return path.is_file() and mark_of(path) == IN_USE and not log_of(path).exists()


def _stays_partial(path: Path) -> bool:
    """Return whether a file is partial for longer than its last user needs between removing the log and marking the file."""
    until = time.monotonic() + CLOSING
    while (partial := is_partial(path)) and time.monotonic() < until:
        time.sleep(0.02)
    return partial


def refuse_missing(path: Path) -> None:
    """Refuse to create a ledger if a file next to its address shows that there was one."""
    for end in _COMPANIONS:
        if (beside := Path(f"{path}{end}")).exists():
            raise LedgerUnavailable(
                f"There is no ledger at {path}, but {beside.name} next to it belongs to one: the ledger was moved or deleted.",
                f"Move the ledger back, or restore a backup: tidegate ledger restore POLICY BACKUP. Only if nothing was ever "
                f"charged, delete {beside.name} to start again.",
            )


def refuse_partial(path: Path, *, read_only: bool) -> None:
    """Refuse a file that is empty, lacks its latest entries, or is a backup that would be charged.

    Raises:
        LedgerUnavailable: The message states what to do.
    """
    with readable(path):
        if path.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        if not path.exists():
            return  # SQLite reports it
        if path.stat().st_size == 0 and not log_of(path).exists():
            raise LedgerUnavailable(
                f"The file {path} is empty: it is not a ledger.",
                "Restore a backup: tidegate ledger restore POLICY BACKUP. Only if nothing was ever charged, delete the file "
                "to start again.",
            )
        mark = mark_of(path)
    if _stays_partial(path):
        raise LedgerUnavailable(
            f"{path} was copied without {path.name}-wal from a ledger in use: its latest entries are missing.",
            f"Copy {path.name}-wal as well, or restore a backup (tidegate ledger backup makes one while the ledger is in use). "
            "If you noted the newest head: tidegate ledger restore POLICY FILE --head HASH accepts the file if it has it.",
        )
    if mark == BACKUP and not read_only:
        raise backup_refusal(str(path))


def backup_refusal(shown: str) -> LedgerUnavailable:
    """Return the error for a file that must not be charged."""
    return LedgerUnavailable(
        f"{shown} is a backup, or was replaced by one: it can be read, but never charged.",
        f"Restore it: tidegate ledger restore POLICY {shown}. Restart every process that had it open.",
    )


def roll_back(path: Path) -> None:
    """Undo a transaction of a process that died: a reader cannot do so itself."""
    journal = Path(f"{path}-journal")
    if journal.exists() and os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        with (
            contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection,
            contextlib.suppress(sqlite3.Error),
        ):
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # problems are reported on opening


def create(path: Path, write: Callable[[Path], None]) -> bool:
    """Create a ledger completely or not at all; return whether this call created it.

    `write` fills a temporary file, which then gets its name in one step. Of several processes one wins.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.new")
    with readable(path):
        os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
        try:
            write(temporary)
            _sync(temporary)
            os.link(temporary, path)  # unlike a rename, this never replaces a file
        except FileExistsError:
            return False
        finally:
            remove(temporary)
        _sync(path.parent)
    return True


def remove(temporary: Path) -> None:
    """Remove a temporary file that did not become a ledger, with SQLite's files next to it."""
    for end in ("", "-wal", "-shm", "-journal"):
        Path(f"{temporary}{end}").unlink(missing_ok=True)


def replace(temporary: Path, path: Path) -> None:
    """Move a finished file into place, over another one, in one step."""
    _sync(temporary)
    os.replace(temporary, path)
    _sync(path.parent)


def warn_wide(path: Path) -> None:
    """Log a warning, once, if other users of this machine can read a ledger."""
    for sentence in wide(path):
        if sentence not in _warned:
            _warned.add(sentence)
            LOG.warning("%s", sentence)


def wide(path: Path) -> list[str]:
    """Return a warning if other users of this machine can read or write a file of a ledger."""
    if os.name != "posix":
        return []
    for file in (path, log_of(path), Path(f"{path}-shm")):
        with contextlib.suppress(FileNotFoundError):
            mode = stat.S_IMODE(file.stat().st_mode)
            if mode & OTHERS:
                return [
                    f"Other users of this machine can open {file} (mode {mode:04o}), which contains secrets and waiting records. "
                    f"Run: chmod 600 {path}*"
                ]
    return []


# The mark, while the ledger is used


def begin(connection: Any, path: Path, *, seconds: float, shown: str) -> None:
    """Begin a write transaction after the main file is marked as in use.

    Both the database and the header of its main file must have the mark: a process that died between the two steps of
    `mark_in_use` leaves it in the log only.
    """
    while True:
        connection.execute("BEGIN IMMEDIATE")
        mark = connection.execute("PRAGMA user_version").fetchone()[0]
        if mark == IN_USE and mark_of(path) == IN_USE:
            return
        connection.execute("ROLLBACK")
        if mark == BACKUP:
            raise backup_refusal(shown)
        mark_in_use(connection, seconds=seconds)


def mark_in_use(connection: Any, *, seconds: float) -> None:
    """Mark the main file: entries can be in the log. Wait for readers that started earlier."""
    connection.execute(f"PRAGMA user_version = {IN_USE}")
    until = time.monotonic() + seconds
    while connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()[0]:
        if time.monotonic() > until:
            raise sqlite3.OperationalError("database is locked")
        time.sleep(0.01)


def settle(path: Path) -> None:
    """Copy the log into the main file and mark it as whole. If another process uses the ledger, it will do so.

    The mark is read from the database, not from the header of the main file: the log can contain a newer one, which
    SQLite copies into the main file when the last connection is closed.
    """
    if path.exists() and log_of(path).exists():
        _mark_whole(path)


def settle_closed(path: Path) -> None:
    """Mark a file as whole after this process closed its last connection.

    While that connection was open, only SQLite could remove the log, and SQLite copies all of it into the main file first.
    This happens when another process held the lock during `settle` and was killed before the connection was closed.
    """
    if is_partial(path):
        _mark_whole(path)


def _mark_whole(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
        try:
            if connection.execute("PRAGMA user_version").fetchone()[0] == IN_USE:
                connection.execute(f"PRAGMA user_version = {WHOLE}")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.DatabaseError as error:
            # locked, no space, damaged: the mark stays, and the next opening reports it
            LOG.debug("%s stays in its log (%s)", path, error.sqlite_errorname)


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Report an error of the file system as one about the ledger."""
    problem = ""
    try:
        yield
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise LedgerUnavailable(
            f"The ledger {path} cannot be opened: {problem}.", "Check the path and its permissions."
        )


def _sync(path: Path) -> None:
    if os.name == "posix" or path.is_file():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
