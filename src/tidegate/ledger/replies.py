"""Replies to requests with an idempotency key, so that a repeated request runs only once.

A reply can contain a secret that is shown once, such as a token. It is therefore sealed under the idempotency key, of which the
database has only a hash, and deleted after a day.
"""

from __future__ import annotations

import hashlib
import secrets
import time

from sqlalchemy import delete, select, update

from tidegate.errors import KeyInUse, KeyReused
from tidegate.extras import extra
from tidegate.ledger.schema import replies
from tidegate.ledger.store import Store

LIFETIME, PATIENCE = 24 * 3600.0, 60.0  # seconds that a reply is stored; seconds after which a silent request is dead
NONCE = 12  # bytes


class Replies:
    """The replies in a ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, owner: str, key: str, request: str) -> tuple[int, bytes] | None:
        """Reserve a key for a request, and return None; or return the status and the content of its stored reply.

        Raises:
            KeyReused: The key was used for another request.
            KeyInUse: A request with this key is running.
        """
        name, now = _name(owner, key), time.time()
        with self._store.writing() as connection:
            connection.execute(delete(replies).where(replies.c.at < now - LIFETIME))
            row = connection.execute(select(replies).where(replies.c.id == name)).mappings().first()
            if row is None:
                values = {"id": name, "request": request, "at": now, "status": 0, "content": b""}
                connection.execute(replies.insert(), values)
                return None
            is_dead = not row["status"] and row["at"] < now - PATIENCE
            if is_dead and row["request"] == request:
                connection.execute(update(replies).where(replies.c.id == name).values(at=now))
                return None
        if row["request"] != request:
            raise KeyReused("This idempotency key was used for another request.", "Use a new key for a new request.")
        if not row["status"]:
            raise KeyInUse("A request with this idempotency key is running.", "Send it again in a second.", seconds=1)
        return int(row["status"]), _open(owner, key, bytes(row["content"]))

    def finish(self, owner: str, key: str, status: int, content: bytes) -> None:
        """Store the reply of a request that was carried out."""
        values = {"status": status, "content": _seal(owner, key, content)}
        with self._store.writing() as connection:
            connection.execute(update(replies).where(replies.c.id == _name(owner, key)).values(**values))

    def release(self, owner: str, key: str) -> None:
        """Free the key of a request that was refused: nothing was done, so it can be sent again."""
        with self._store.writing() as connection:
            unfinished = (replies.c.id == _name(owner, key)) & (replies.c.status == 0)
            connection.execute(delete(replies).where(unfinished))


def _name(owner: str, key: str) -> str:
    return hashlib.sha256(f"reply {owner} {key}".encode()).hexdigest()


def _secret(owner: str, key: str) -> bytes:
    return hashlib.sha256(f"reply content {owner} {key}".encode()).digest()


def _seal(owner: str, key: str, content: bytes) -> bytes:
    with extra("witness", "Idempotency keys"):
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(NONCE)
    return nonce + AESGCM(_secret(owner, key)).encrypt(nonce, content, None)


def _open(owner: str, key: str, sealed: bytes) -> bytes:
    with extra("witness", "Idempotency keys"):
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(_secret(owner, key)).decrypt(sealed[:NONCE], sealed[NONCE:], None)
