"""The access of users to the service: hashes, roles and times, never a secret. Every change has an entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, bindparam, select

from tidegate.ledger import access
from tidegate.ledger.chain import SERVICE
from tidegate.ledger.schema import secrets, token_uses, tokens
from tidegate.ledger.store import Store

_BY_ID = select(tokens).where(tokens.c.id == bindparam("id"))


@dataclass(frozen=True)
class StoredToken:
    """The stored access of a user, usually a token. `name` is the user in entries.

    `dataset` is empty if it is for all data sets. Without a `hash` there is no token to send: the user signs in with an account of a
    provider (`identity`: issuer and subject), or with one-time links.
    """

    id: str
    salt: str
    hash: str
    role: str
    name: str
    dataset: str
    record: str
    share: str
    made: str
    expires: str
    revoked: str = ""
    maker: str = ""
    identity: str = ""

    def over(self, now: datetime) -> bool:
        """Return whether the token is no longer valid."""
        return bool(self.revoked) or passed(self.expires, now)


class Tokens:
    """The tokens in a ledger's database. Several processes share them."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def add(self, token: StoredToken) -> None:
        with self.store.writing() as connection:
            connection.execute(tokens.insert(), asdict(token))
            access.note_token(connection, access.CREATED, asdict(token), user=token.maker)

    def change(self, token: StoredToken, *, user: str) -> None:
        """Replace the role, name, data sets and share of a token. A revoked one stays revoked."""
        row = {name: value for name, value in asdict(token).items() if name != "revoked"}
        with self.store.writing() as connection:
            connection.execute(tokens.update().where(tokens.c.id == token.id).values(**row))
            access.note_token(connection, access.CHANGED, row, user=user)

    def find(self, name: str) -> StoredToken | None:
        """Return the token with this id."""
        with self.store.reading() as connection:
            return find_in(connection, name)

    def all(self) -> list[StoredToken]:
        """Return every token ever created, in order of creation."""
        with self.store.reading() as connection:
            rows = connection.execute(select(tokens).order_by(tokens.c.made, tokens.c.id)).mappings().all()
        return [_token_from(row) for row in rows]

    def revoke(self, name: str, *, user: str = "") -> bool:
        """Revoke a token immediately; return whether there was one to revoke."""
        with self.store.writing() as connection:
            stored, now = find_in(connection, name), stamp(datetime.now(UTC))
            if stored is None or stored.revoked:
                return False
            connection.execute(tokens.update().where(tokens.c.id == name).values(revoked=now))
            access.note_token(connection, access.REVOKED, asdict(stored), user=user, at=now)
        return True

    def secret(self) -> bytes:
        """Return the key of the hashes of respondents' record keys. Entry 0 commits to it."""
        with self.store.reading() as connection:
            value = connection.execute(select(secrets.c.value).where(secrets.c.account == SERVICE)).scalar_one()
        return bytes.fromhex(value)

    def uses(self) -> dict[str, str]:
        """Return the day of the last use of each token that was used."""
        with self.store.reading() as connection:
            return {row.token: row.day for row in connection.execute(select(token_uses))}

    def note_uses(self, names: Iterable[str], *, day: str) -> None:
        """Record that tokens were used on a day."""
        with self.store.writing() as connection:
            for name in names:
                connection.execute(token_uses.delete().where(token_uses.c.token == name))
                connection.execute(token_uses.insert(), {"token": name, "day": day})

    def note_refusals(self, counts: Mapping[str, int], *, since: datetime, networks: int, names: list[str]) -> None:
        """Append an entry with the totals of refusals since a moment."""
        facts: dict[str, Any] = {"counts": dict(counts), "since": stamp(since), "networks": networks, "names": names}
        with self.store.writing() as connection:
            access.note(connection, access.REFUSED, user="", **facts)


def find_in(connection: Connection, name: str) -> StoredToken | None:
    """Return the token with this id, in the connection's view."""
    row = connection.execute(_BY_ID, {"id": name}).mappings().first()
    return _token_from(row) if row else None


def stamp(moment: datetime) -> str:
    """Return a time in stored form: of fixed length, so that it sorts."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def passed(time: str, now: datetime) -> bool:
    """Return whether a stored time has passed; an empty one never has."""
    return bool(time) and datetime.fromisoformat(time) <= now


def _token_from(row: Mapping[Any, Any]) -> StoredToken:
    return StoredToken(**{name: row[name] for name in StoredToken.__dataclass_fields__})
