"""Stored tokens and sign-ins of the service: hashes, roles and times, never a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import bindparam, select

from tidegate.ledger.chain import SERVICE
from tidegate.ledger.schema import secrets, signins, tokens
from tidegate.ledger.store import Store

_BY_ID = select(tokens).where(tokens.c.id == bindparam("id"))
_SIGNED_IN = select(signins).where(signins.c.id == bindparam("id"))


@dataclass(frozen=True)
class StoredToken:
    """A stored token. `name` is the user in its entries; `dataset` is empty if it is for all data sets."""

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

    def over(self, now: datetime) -> bool:
        """Return whether the token is no longer valid."""
        return bool(self.revoked) or passed(self.expires, now)


class Tokens:
    """The tokens in a ledger's database. Several processes share them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, token: StoredToken) -> None:
        with self._store.writing() as connection:
            connection.execute(tokens.insert(), asdict(token))

    def find(self, name: str) -> StoredToken | None:
        """Return the token with this id."""
        with self._store.reading() as connection:
            row = connection.execute(_BY_ID, {"id": name}).mappings().first()
        return _token_from(row) if row else None

    def all(self) -> list[StoredToken]:
        """Return every token ever created, in order of creation."""
        with self._store.reading() as connection:
            rows = connection.execute(select(tokens).order_by(tokens.c.made, tokens.c.id)).mappings().all()
        return [_token_from(row) for row in rows]

    def revoke(self, name: str) -> bool:
        """Revoke a token immediately; return whether there was one to revoke."""
        open_still = (tokens.c.id == name) & (tokens.c.revoked == "")
        with self._store.writing() as connection:
            done = connection.execute(tokens.update().where(open_still).values(revoked=stamp(datetime.now(UTC))))
        return bool(done.rowcount)

    def secret(self) -> bytes:
        """Return the key of the hashes of respondents' record keys. Entry 0 commits to it."""
        with self._store.reading() as connection:
            value = connection.execute(select(secrets.c.value).where(secrets.c.account == SERVICE)).scalar_one()
        return bytes.fromhex(value)

    # Sign-ins

    def sign_in(self, name: str, *, token: str, expires: datetime) -> None:
        """Store a sign-in by the hash of its cookie; expired ones are deleted."""
        with self._store.writing() as connection:
            connection.execute(signins.delete().where(signins.c.expires < stamp(datetime.now(UTC))))
            connection.execute(signins.insert(), {"id": name, "token": token, "expires": stamp(expires)})

    def signed_in(self, name: str) -> str | None:
        """Return the token of a sign-in; None if it has expired."""
        with self._store.reading() as connection:
            row = connection.execute(_SIGNED_IN, {"id": name}).mappings().first()
        return row["token"] if row and not passed(row["expires"], datetime.now(UTC)) else None

    def sign_out(self, name: str) -> None:
        with self._store.writing() as connection:
            connection.execute(signins.delete().where(signins.c.id == name))


def stamp(moment: datetime) -> str:
    """Return a time in stored form: of fixed length, so that it sorts."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def passed(time: str, now: datetime) -> bool:
    """Return whether a stored time has passed; an empty one never has."""
    return bool(time) and datetime.fromisoformat(time) <= now


def _token_from(row: Mapping[Any, Any]) -> StoredToken:
    return StoredToken(**{name: row[name] for name in StoredToken.__dataclass_fields__})
