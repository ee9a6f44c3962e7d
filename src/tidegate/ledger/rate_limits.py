"""Rate limits that all processes of a service share, in a ledger's Postgres database.

A name is stored as a keyed hash. The table is not logged, and rows that say nothing any more are deleted. A request takes no lock
of the ledger: each statement changes one row.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

from sqlalchemy import text

from tidegate.ledger.store import Store

NOW = "extract(epoch FROM clock_timestamp())"  # of the database: processes run on several machines
REFILLED = f"LEAST(:burst, stored.level + ({NOW} - stored.at) * :rate)"
GRANTED = f"LEAST(:count, FLOOR({REFILLED}))"
TAKE = text(
    f"""INSERT INTO tidegate_limits AS stored (name, level, at, granted) VALUES (:name, :burst - :count, {NOW}, :count)
    ON CONFLICT (name) DO UPDATE SET level = {REFILLED} - {GRANTED}, at = {NOW}, granted = {GRANTED}
    RETURNING granted, level"""  # noqa: S608  constants only
)
LEVEL = text(f"SELECT {REFILLED} FROM tidegate_limits AS stored WHERE name = :name")  # noqa: S608  constants only
DELETE = text(f"DELETE FROM tidegate_limits WHERE starts_with(name, :kind) AND at < {NOW} - :seconds")  # noqa: S608  constants only


class Grant(NamedTuple):
    """Requests that were granted, and the level of the bucket afterwards."""

    requests: int
    level: float


class SharedLimit:
    """Buckets of one kind: `rate` requests per second in the long run and `burst` at once, for all processes together."""

    def __init__(self, store: Store, secret: bytes, kind: str, *, rate: float, burst: float) -> None:
        self._store, self._kind = store, kind
        self._key = hmac.new(secret, b"tidegate limits", hashlib.sha256).digest()
        self._limits = {"rate": rate, "burst": burst}

    def take(self, name: str, count: int) -> Grant:
        """Take up to `count` requests from the bucket of a name."""
        with self._store.outside() as connection:
            row = connection.execute(TAKE, {**self._limits, "name": self._stored(name), "count": count}).one()
        return Grant(int(row.granted), float(row.level))

    def level(self, name: str) -> float:
        """Return the requests that are available, without taking any."""
        with self._store.outside() as connection:
            level = connection.execute(LEVEL, {**self._limits, "name": self._stored(name)}).scalar()
        return self._limits["burst"] if level is None else float(level)

    def forget_full(self) -> None:
        """Delete the buckets that are full again."""
        seconds = self._limits["burst"] / self._limits["rate"]
        with self._store.outside() as connection:
            connection.execute(DELETE, {"kind": f"{self._kind} ", "seconds": seconds})

    def _stored(self, name: str) -> str:
        return f"{self._kind} {hmac.new(self._key, name.encode(), hashlib.sha256).hexdigest()[:32]}"
