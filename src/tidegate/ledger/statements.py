"""Statements of every charge, sent by the driver: SQLAlchemy takes longer to prepare one than a database to run it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

Values = tuple[Any, ...]


class Statement:
    """A statement with the placeholders of each driver. Write them as ``{0}``."""

    def __init__(self, text: str) -> None:
        self.sqlite, self.postgresql = text.format("?"), text.format("%s")


Read = tuple[Statement, Values]


def read_all(connection: Connection, reads: Sequence[Read]) -> list[list[Any]]:
    """Return the rows of several statements; in Postgres they take one round trip."""
    driver = driver_of(connection)
    if connection.dialect.name != "sqlite":
        return driver.read_all(reads)  # type: ignore[no-any-return]
    return [driver.execute(statement.sqlite, values).fetchall() for statement, values in reads]


def write(connection: Connection, statement: Statement, values: Values) -> None:
    """Run a statement that returns nothing; in Postgres at the latest with the next one, or with the commit."""
    driver = driver_of(connection)
    if connection.dialect.name != "sqlite":
        driver.write_later(statement.postgresql, values)
    else:
        driver.execute(statement.sqlite, values)


def driver_of(connection: Connection) -> Any:
    """Return the driver's connection (`sqlite3`, or `tidegate.ledger.postgres.LedgerConnection`)."""
    return connection.connection.dbapi_connection
