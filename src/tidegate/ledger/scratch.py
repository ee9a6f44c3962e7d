"""Mappings that can be larger than the memory: the latest items are in memory, the others in a temporary SQLite file.

`verify` needs to know every earlier request of a ledger. In a ledger with a million entries, that is more than fits into
the memory of a small machine. Small ledgers never write the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

from tidegate.errors import LedgerUnavailable
from tidegate.ledger.entry import canonical

AT_ONCE = 16_000  # items of one mapping in memory
LONGEST = 40  # bytes of a key that is stored as it is
_HASHED = b"\xff"  # in no text in UTF-8
_CACHE_KB = 12_000
_first = itemgetter(0)
_CREATE = (
    "CREATE TABLE IF NOT EXISTS items (mapping INTEGER, key BLOB, value TEXT, PRIMARY KEY (mapping, key)) WITHOUT ROWID"
)
_READ = "SELECT value FROM items WHERE mapping = ? AND key = ?"
_ITEMS = "SELECT key, value FROM items WHERE mapping = ? ORDER BY key"
_DELETE = "DELETE FROM items WHERE mapping = ? AND key = ?"
_COUNT = "SELECT count(*) FROM items WHERE mapping = ?"


class Scratch:
    """A temporary database for several mappings. It is deleted when it is closed."""

    def __init__(self, path: Path | None = None) -> None:
        """Start empty, or with the content of a file of `save`, which is not changed."""
        self._mappings: dict[str, Mapping] = {}
        self._path = path

    @cached_property
    def connection(self) -> sqlite3.Connection:
        connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for setting in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{_CACHE_KB}"):
            connection.execute(f"PRAGMA {setting}")
        if self._path is not None:
            with contextlib.closing(_open(self._path)) as stored:
                stored.backup(connection)
        connection.execute(_CREATE)
        connection.execute("CREATE TABLE IF NOT EXISTS names (id INTEGER PRIMARY KEY, name TEXT UNIQUE)")
        return connection

    @property
    def is_stored(self) -> bool:
        """Whether there is anything outside of the memory."""
        return "connection" in self.__dict__ or self._path is not None

    def mapping(self, name: str) -> Mapping:
        """Return the mapping of a name; the same one each time."""
        if name not in self._mappings:
            self._mappings[name] = Mapping(self, name)
        return self._mappings[name]

    def save(self, path: Path) -> None:
        """Write all mappings into a new file that only its owner can read.

        Raises:
            LedgerUnavailable: The file exists, or cannot be written.
        """
        problem = ""
        try:
            for mapping in self._mappings.values():
                mapping.flush()
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as stored:
                self.connection.backup(stored)
        except (OSError, sqlite3.Error) as error:
            problem = getattr(error, "strerror", "") or type(error).__name__
        if problem:
            raise LedgerUnavailable(f"Cannot write {path}: {problem}.", "Name a new file.")

    def close(self) -> None:
        if "connection" in self.__dict__:
            self.connection.close()


class Mapping:
    """A mapping from texts to JSON values. `get`, `in` and assignment take constant memory."""

    def __init__(self, scratch: Scratch | None = None, name: str = "") -> None:
        self._scratch, self.name = scratch or Scratch(), name
        self._latest: dict[bytes, Any] = {}
        self._stored = self._count() if self._scratch.is_stored else 0
        self._fresh = 0  # items in memory that are not in the file
        self._filter = None if self._stored else Filter()

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key. Assign it again after you have changed it."""
        short = _short(key)
        value = self._latest.get(short)
        if value is not None:
            return value
        stored = self._read(short) if self._stored else None
        return default if stored is None else json.loads(stored)

    def get_all(self, keys: Sequence[str]) -> list[Any]:
        """Return the values of up to 500 keys, in their order; None for a key that is not there."""
        shorts = [_short(key) for key in keys]
        values: dict[bytes, Any] = {}
        if self._stored:
            query = f"SELECT key, value FROM items WHERE mapping = ? AND key IN ({','.join('?' * len(shorts))})"  # noqa: S608
            values = dict(self._scratch.connection.execute(query, (self._id, *shorts)))
            values = {key: json.loads(value) for key, value in values.items()}
        return [self._latest.get(short) or values.get(short) for short in shorts]

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __setitem__(self, key: str, value: Any) -> None:
        """Set the value of a key. It must not be None."""
        self.put(key, value)

    def put(self, key: str, value: Any) -> Any:
        """Set the value of a key; return the one before, or None."""
        short = _short(key)
        before, stored = self._latest.get(short), None
        if before is None:
            stored = self._read(short) if self._stored else None
            self._fresh += stored is None
        self._latest[short] = value
        if len(self._latest) >= AT_ONCE:
            self.flush()
        return before if stored is None else json.loads(stored)

    def pop(self, key: str) -> None:
        """Remove a key, if it is there."""
        short = _short(key)
        is_latest = self._latest.pop(short, None) is not None
        if self._stored and self._read(short) is not None:
            self._scratch.connection.execute(_DELETE, (self._id, short))
            self._stored -= 1
        elif is_latest:
            self._fresh -= 1

    def __len__(self) -> int:
        return self._stored + self._fresh

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield every key with its value. Do not change the mapping meanwhile. Keys of more than 40 bytes are hashes here."""
        if not self._stored:
            yield from ((_shown(key), value) for key, value in self._latest.items())
            return
        self.flush()
        rows = self._scratch.connection.execute(_ITEMS, (self._id,))
        yield from ((_shown(key), json.loads(value)) for key, value in rows)

    def flush(self) -> None:
        """Write the latest items into the file."""
        rows = [(self._id, key, canonical(value)) for key, value in sorted(self._latest.items(), key=_first)]
        connection = self._scratch.connection
        connection.execute("BEGIN")
        connection.executemany("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", rows)
        connection.execute("COMMIT")
        self._stored, self._fresh = self._stored + self._fresh, 0
        if self._filter is not None:
            self._filter.add(self._latest)
        self._latest.clear()

    def _read(self, key: bytes) -> str | None:
        if self._filter is not None and key not in self._filter:
            return None
        row = self._scratch.connection.execute(_READ, (self._id, key)).fetchone()
        return row[0] if row else None

    @cached_property
    def _id(self) -> int:
        """The number of this mapping in the file: shorter than its name."""
        connection = self._scratch.connection
        connection.execute("INSERT OR IGNORE INTO names (name) VALUES (?)", (self.name,))
        return int(connection.execute("SELECT id FROM names WHERE name = ?", (self.name,)).fetchone()[0])

    def _count(self) -> int:
        return int(self._scratch.connection.execute(_COUNT, (self._id,)).fetchone()[0])


def _short(key: str) -> bytes:
    """Return a key as it is stored. Long ones are hashed: a smaller file is several times as fast."""
    encoded = key.encode("utf-8", "surrogatepass")
    if len(encoded) <= LONGEST:
        return encoded
    return _HASHED + hashlib.blake2b(encoded, digest_size=24).digest()


def _shown(key: bytes) -> str:
    return key.hex() if key.startswith(_HASHED) else key.decode("utf-8", "surrogatepass")


class Filter:
    """A set of keys that can contain others by mistake (a Bloom filter): it saves most lookups of new keys."""

    BITS = 24
    MASK = (1 << BITS) - 1

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, keys: Iterable[bytes]) -> None:
        bits = self._bits = self._bits or bytearray(1 << (self.BITS - 3))
        mask = self.MASK
        for key in keys:
            hashed = hash(key)
            first, second, third = hashed & mask, hashed >> 20 & mask, hashed >> 40 & mask
            bits[first >> 3] |= 1 << (first & 7)
            bits[second >> 3] |= 1 << (second & 7)
            bits[third >> 3] |= 1 << (third & 7)

    def __contains__(self, key: bytes) -> bool:
        bits, hashed = self._bits, hash(key)
        if not bits:
            return False
        first, second = hashed & self.MASK, (hashed >> 20) & self.MASK
        third = (hashed >> 40) & self.MASK
        return bool(
            bits[first >> 3] >> (first & 7) & bits[second >> 3] >> (second & 7) & bits[third >> 3] >> (third & 7) & 1
        )


def _open(path: Path) -> sqlite3.Connection:
    problem = ""
    try:
        if not path.is_file():
            raise FileNotFoundError
        connection = sqlite3.connect(f"file:{path.absolute()}?mode=ro", uri=True)
        connection.execute("SELECT count(*) FROM items").fetchone()
    except (OSError, sqlite3.Error) as error:
        problem = type(error).__name__
    else:
        return connection
    raise LedgerUnavailable(
        f"{path} is not a file of `tidegate ledger verify --save` ({problem}).", "Verify without --since."
    )
