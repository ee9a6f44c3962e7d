"""The ledger as streams: everything that `verify` and an export need, read row by row in constant memory.

All streams of one connection show the ledger at one moment, while others write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, Select, select

from tidegate.ledger import queries, schema
from tidegate.ledger.entry import Entry
from tidegate.ledger.queries import Snapshot

AT_ONCE = 1000  # rows in memory
_NAMES = tuple(Entry.__dataclass_fields__)
_ENTRIES = select(*(schema.entries.c[name] for name in _NAMES)).order_by(schema.entries.c.number)
_RESULTS = select(schema.results.c.number, schema.results.c.payload).order_by(schema.results.c.number)


def snapshot(connection: Connection, *, since: int = -1) -> Snapshot:
    """Return everything that `verify` needs as streams. `since` omits entries up to a number, and their results."""
    later = (schema.shares, schema.totals, schema.selection)
    has_shares, has_totals, has_selection = (connection.dialect.has_table(connection, table.name) for table in later)
    return Snapshot(
        Entries(connection, since=since),  # type: ignore[arg-type]
        Payloads(connection, since=since),  # type: ignore[arg-type]
        Rows(connection, queries.REQUESTS),  # type: ignore[arg-type]
        queries.counts(connection),
        queries.secrets(connection),
        queries.id_sums(connection),
        [(account, user, spent) for account, user, spent in connection.execute(select(schema.shares))]
        if has_shares
        else None,
        Rows(connection, select(schema.sources)) if has_shares else None,  # type: ignore[arg-type]
        [tuple(row) for row in connection.execute(select(schema.totals))] if has_totals else None,
        Rows(connection, select(schema.selection)) if has_selection else None,  # type: ignore[arg-type]
    )


class Entries:
    """Every entry in order. It can be read several times."""

    def __init__(self, connection: Connection, *, since: int = -1, account: str = "") -> None:
        self._connection, self._query = connection, _ENTRIES
        if since >= 0:
            self._query = self._query.where(schema.entries.c.number > since)
        if account:
            self._query = self._query.where(schema.entries.c.account == account)

    def __iter__(self) -> Iterator[Entry]:
        for row in _stream(self._connection, self._query):
            entry = object.__new__(Entry)  # a third of the time of Entry(*row)
            entry.__dict__.update(zip(_NAMES, row, strict=True))
            yield entry


class Rows:
    """The rows of a query as dictionaries. They can be read several times."""

    def __init__(self, connection: Connection, query: Select[Any]) -> None:
        self._connection, self._query = connection, query

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        names = [column.name for column in self._query.selected_columns]
        for row in _stream(self._connection, self._query):
            yield dict(zip(names, row, strict=True))


class Payloads:
    """The stored results, read once, beside the entries that they belong to.

    `pop` has to be called with rising numbers. What it passes over belongs to no entry, and iteration yields it.
    """

    def __init__(self, connection: Connection, *, since: int = -1) -> None:
        query = _RESULTS.where(schema.results.c.number > since) if since >= 0 else _RESULTS
        self._rows = iter(_stream(connection, query))
        self._next: Any = None
        self._unmatched: list[str] = []
        self._advance()

    def pop(self, number: int, default: Any = None) -> Any:
        """Return the result of an entry, or the default if it has none."""
        while self._next is not None and not self._is_after(number):
            stored, payload = self._next
            self._advance()
            if type(stored) is int and stored == number:
                return payload
            self._unmatched.append(repr(stored))
        return default

    def _is_after(self, number: int) -> bool:
        stored = self._next[0]
        return type(stored) is int and stored > number

    def _advance(self) -> None:
        self._next = next(self._rows, None)

    def __iter__(self) -> Iterator[str]:
        """Yield the numbers of the results that belong to no entry."""
        while self._next is not None:
            self._unmatched.append(repr(self._next[0]))
            self._advance()
        return iter(self._unmatched)


class Pairs(dict[Any, str]):
    """Results that are added while the entries are read."""


def _stream(connection: Connection, query: Select[Any]) -> Iterator[Any]:
    if connection.dialect.name == "sqlite":  # the driver's own rows take half the time
        compiled: Any = query.compile(dialect=connection.dialect)
        values = compiled.construct_params()
        cursor: Any = connection.connection.cursor()
        cursor.execute(str(compiled), [values[name] for name in compiled.positiontup or ()])
        while part := cursor.fetchmany(AT_ONCE):
            yield from part
        cursor.close()
        return
    for rows in connection.execute(query, execution_options={"yield_per": AT_ONCE}).partitions():
        yield from rows
