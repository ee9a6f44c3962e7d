"""The states of sources that answers describe. Entries contain an index 1, 2, 3; its identity stays here.

An identity is an HMAC under a salt of its own, because a plain hash would let anyone who knows all rows but one try every
candidate for it. Neither is exported. The fact and the time of a change are public.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, bindparam, select

from tidegate.errors import TableError
from tidegate.ledger.schema import source_states
from tidegate.ledger.store import Store
from tidegate.tables.source import SourceState

_OF_ACCOUNT = source_states.c.account == bindparam("account")
_ALL = select(source_states).where(_OF_ACCOUNT).order_by(source_states.c.number.desc())
_RESTAMP = (
    source_states.update()
    .where(source_states.c.account == bindparam("of"), source_states.c.number == bindparam("old"))
    .values(stamp=bindparam("now"))
)

ReadState = Callable[[], SourceState | None]


class SourceStates:
    """The sources of a ledger's accounts that sessions of this process read."""

    def __init__(self, store: Store) -> None:
        self._store, self._turn = store, threading.Lock()
        self._readers: dict[str, ReadState] = {}
        self._known: dict[str, tuple[str, int]] = {}

    def watch(self, account: str, read: ReadState) -> None:
        """Read the state of an account's source by this function from now on."""
        self._readers[account] = read

    def read(self, account: str) -> SourceState | None:
        """Return the current state of an account's source; None if it is unknown."""
        reader = self._readers.get(account)
        with suppress(OSError, TableError):  # the source is gone; reading its rows reports that
            return reader() if reader else None
        return None

    def state(self, account: str) -> tuple[int, bool] | None:
        """Return the index of the current source state and whether it is exact; None if it is unknown."""
        state = self.read(account)
        with suppress(OSError, TableError):
            return (self._index(account, state), state.is_exact) if state else None
        return None

    def _index(self, account: str, state: SourceState) -> int:
        with self._turn:
            stamp, known = self._known.get(account, ("", 0))
            if known and stamp == state.stamp:
                return known
            with self._store.reading() as connection:
                latest = _latest(connection, account)
            if latest and hmac.compare_digest(keyed(latest["salt"], state.stamp), latest["stamp"]):
                number = int(latest["number"])
            else:
                number = self._note(account, state)
            self._known[account] = (state.stamp, number)
            return number

    def _note(self, account: str, state: SourceState) -> int:
        """Read the content, and find it among the recorded states, or record it as a new one."""
        content = state.digest()
        with self._store.writing() as connection:
            rows = list(connection.execute(_ALL, {"account": account}).mappings())
            for row in rows:
                if hmac.compare_digest(keyed(row["salt"], content), row["identity"]):
                    stamp = keyed(row["salt"], state.stamp)
                    connection.execute(_RESTAMP, {"of": account, "old": row["number"], "now": stamp})
                    return int(row["number"])
            salt, number = secrets.token_hex(32), int(rows[0]["number"]) + 1 if rows else 1
            hashes = {"identity": keyed(salt, content), "stamp": keyed(salt, state.stamp)}
            connection.execute(source_states.insert(), {"account": account, "number": number, "salt": salt, **hashes})
            return number


def _latest(connection: Connection, account: str) -> Any:
    return connection.execute(_ALL.limit(1), {"account": account}).mappings().first()


def keyed(salt: str, text: str) -> str:
    """Return the keyed hash of a text. A plain one would let others try candidates."""
    return hmac.new(bytes.fromhex(salt), text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()
