"""Sessions of the console, and links that start one once. A cookie and a link are stored as hashes only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, bindparam, select

from tidegate.ledger import access
from tidegate.ledger.schema import links, signins
from tidegate.ledger.store import Store
from tidegate.ledger.tokens import StoredToken, find_in, passed, stamp

_BY_ID = select(signins).where(signins.c.id == bindparam("id"))
SHOWN = 16  # characters of a session's id that owners see


@dataclass(frozen=True)
class StoredSession:
    """A session. `renew` and `lapse` are times and `sealed` holds tokens of a provider; they are empty for other methods."""

    id: str
    token: str
    method: str
    started: str
    seen: str
    expires: str
    renew: str = ""
    lapse: str = ""
    sealed: str = ""

    def over(self, now: datetime) -> bool:
        """Return whether the session has ended, apart from its idle time."""
        return passed(self.expires, now) or passed(self.lapse, now)


class Sessions:
    """The sessions and links in a ledger's database. Several processes share them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def start(self, session: StoredSession, *, user: str) -> None:
        """Store a session and its entry; expired sessions are deleted."""
        with self._store.writing() as connection:
            _start(connection, session, user)

    def find(self, name: str) -> StoredSession | None:
        """Return the session with this id, unless it has expired."""
        with self._store.reading() as connection:
            row = connection.execute(_BY_ID, {"id": name}).mappings().first()
        session = _session_from(row) if row else None
        return None if session is None or session.over(datetime.now(UTC)) else session

    def all(self) -> list[tuple[StoredSession, StoredToken]]:
        """Return every session that has not expired, with its token; the latest first."""
        now = datetime.now(UTC)
        with self._store.reading() as connection:
            rows = connection.execute(select(signins).order_by(signins.c.started.desc(), signins.c.id)).mappings().all()
            sessions = [session for session in map(_session_from, rows) if not session.over(now)]
            pairs = [(session, find_in(connection, session.token)) for session in sessions]
        return [(session, token) for session, token in pairs if token is not None and not token.over(now)]

    def see(self, times: Mapping[str, datetime]) -> None:
        """Record the time of the last request of sessions, by id."""
        with self._store.writing() as connection:
            for name, moment in times.items():
                older = (signins.c.id == name) & (signins.c.seen < stamp(moment))
                connection.execute(signins.update().where(older).values(seen=stamp(moment)))

    def end(self, name: str, *, user: str = "") -> bool:
        """End a session; return whether there was one. If an owner ends it, `user` is their name and there is an entry."""
        with self._store.writing() as connection:
            row = connection.execute(_BY_ID, {"id": name}).mappings().first()
            connection.execute(signins.delete().where(signins.c.id == name))
            token = find_in(connection, row["token"]) if row else None
            if user and token is not None:
                access.note(connection, access.ENDED, user=user, name=token.name, token=token.id)
        return row is not None

    def claim_renewal(self, session: StoredSession, *, until: datetime) -> bool:
        """Return whether this process renews a session: of several that try, one does."""
        due = (signins.c.id == session.id) & (signins.c.renew == session.renew)
        with self._store.writing() as connection:
            claimed = connection.execute(signins.update().where(due).values(renew=stamp(until)))
        return bool(claimed.rowcount)

    def renew(self, name: str, *, renew: datetime, lapse: datetime, sealed: str) -> None:
        """Store that the provider confirmed a session."""
        values = {"renew": stamp(renew), "lapse": stamp(lapse), "sealed": sealed}
        with self._store.writing() as connection:
            connection.execute(signins.update().where(signins.c.id == name).values(**values))

    # One-time links

    def add_link(self, name: str, *, token: StoredToken, expires: datetime, user: str) -> None:
        """Store a link for a token by the hash of its secret; expired links are deleted."""
        with self._store.writing() as connection:
            connection.execute(links.delete().where(links.c.expires < stamp(datetime.now(UTC))))
            connection.execute(links.insert(), {"id": name, "token": token.id, "expires": stamp(expires)})
            access.note(connection, access.LINK, user=user, name=token.name, token=token.id)

    def use_link(self, name: str, session: StoredSession) -> StoredToken | None:
        """Start a session with a link; return the token of the link, or None if the link is not valid.

        Guarantee:
            Of all uses of a link, in all processes, one starts a session. The token of `session` is replaced by that of the link.
        """
        with self._store.writing() as connection:
            row = connection.execute(select(links).where(links.c.id == name)).mappings().first()
            connection.execute(links.delete().where(links.c.id == name))
            now = datetime.now(UTC)
            token = find_in(connection, row["token"]) if row and not passed(row["expires"], now) else None
            if token is None or token.over(now):
                return None
            _start(connection, StoredSession(**{**asdict(session), "token": token.id}), token.name)
        return token


def _start(connection: Connection, session: StoredSession, user: str) -> None:
    now = stamp(datetime.now(UTC))
    connection.execute(signins.delete().where(signins.c.expires < now))
    connection.execute(signins.insert(), asdict(session))
    access.note(connection, access.SIGN_IN, user=user, token=session.token, method=session.method)


def _session_from(row: Mapping[Any, Any]) -> StoredSession:
    return StoredSession(**{name: row[name] for name in StoredSession.__dataclass_fields__})
