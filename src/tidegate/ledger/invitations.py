"""Invitations in the ledger: the signing key of a collection, its single-use codes, and the spent tokens.

book = InvitationBook(ledger, "people/canteen")
book.create_key(generate)              an entry with the public key; the private key is a secret of the ledger
book.add(key, hashes)                  new codes, with an entry that has their number
book.use(key, code, blinded, ...)      a code is used for one blinded message, once

An entry for each used code would have the time at which a person fetched their token, so there is none. What is stored of a
code still follows from something: its hash is part of a digest in the entry that created it, and signature and blinded
message belong together under the public key.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from tidegate.ledger import queries
from tidegate.ledger.chain import append, ends, unchanged
from tidegate.ledger.entry import COLLECTING, INVITATION_KEY, INVITED, REPORTED, Entry, canonical, entry_from
from tidegate.ledger.replay import IdSum
from tidegate.ledger.schema import entries, invitations, secrets, spent_tokens, waiting

if TYPE_CHECKING:
    from tidegate.ledger.ledger import Ledger

EXPONENT = 65537  # of every key
NAMES = "/invitations/"  # in the names of keys, between the account and a hash of the public key
AT_ONCE = 10_000  # rows in one statement
_FRESH = {"policy": "", "spent": "0", "ceiling": "0"}  # of an account without entries
_SECRET = select(secrets.c.value).where(secrets.c.account == bindparam("name"))
_CODE = select(invitations).where(invitations.c.key == bindparam("name"), invitations.c.code == bindparam("hash"))
_CODES = select(invitations.c.code).where(invitations.c.key == bindparam("name"))
_USE = (
    update(invitations)
    .where(invitations.c.key == bindparam("name"), invitations.c.code == bindparam("hash"))
    .values(blinded=bindparam("message"), signature=bindparam("answer"))
)
_SPENT = select(spent_tokens.c.nonce).where(
    spent_tokens.c.key == bindparam("name"), spent_tokens.c.nonce.in_(bindparam("nonces", expanding=True))
)
_WAITING = select(spent_tokens.c.nonce).where(spent_tokens.c.key == bindparam("name"), spent_tokens.c.entry == 0)
_SETTLE = (
    update(spent_tokens)
    .where(spent_tokens.c.key == bindparam("name"), spent_tokens.c.entry == 0)
    .values(entry=bindparam("batch"))
)


@dataclass(frozen=True)
class StoredCode:
    """A code as it is stored: the hash of the blinded message that it was used for, and the blind signature."""

    blinded: bytes
    signature: bytes

    @property
    def is_used(self) -> bool:
        return bool(self.blinded)


class InvitationBook:
    """The invitations of one collection (`account` is the data set and the collection's name). `key` is a public key."""

    def __init__(self, ledger: Ledger, account: str) -> None:
        self._store, self.account = ledger.store, account

    def create_key(self, generate: Callable[[], str], *, user: str = "") -> str:
        """Create a key with its entry and return the public part. A key that no version has used yet is returned again.

        `generate` returns a new private key: two primes in hexadecimal, separated by a comma.

        Guarantee:
            The private key is stored before the public one is known to anyone. It is a secret of the ledger and in no entry.
        """
        with self._store.reading() as connection:
            if unused := self._unused_key(connection):
                return unused
        value = generate()  # outside the transaction: it takes up to a second
        with self._store.writing() as connection:
            if unused := self._unused_key(connection):
                return unused
            public = public_key(value)
            connection.execute(secrets.insert(), {"account": key_name(self.account, public), "value": value})
            self._append(connection, INVITATION_KEY, {"key": public, "who": user})
        return public

    def private_key(self, key: str) -> str | None:
        """Return the private key of a public one; None if it was not created in this ledger."""
        with self._store.reading() as connection:
            value = connection.execute(_SECRET, {"name": key_name(self.account, key)}).scalar()
        return None if value is None else str(value)

    def add(self, key: str, hashes: Sequence[bytes], *, user: str = "") -> Entry:
        """Add the hashes of new codes. The entry has their number, and a digest of all codes of this key."""
        name = key_name(self.account, key)
        with self._store.writing() as connection:
            total = _sum_of(connection, _CODES, name)
            total.add(hashes)
            rows = [{"key": name, "code": code, "blinded": b"", "signature": b""} for code in sorted(hashes)]
            connection.execute(insert(invitations), rows)
            body = {"key": key, "count": len(hashes), "codes": total.size, "sum": total.text, "who": user}
            return self._append(connection, INVITED, body)

    def find(self, key: str, code: bytes) -> StoredCode | None:
        """Return what is stored of a code, by its hash."""
        with self._store.reading() as connection:
            return self._find(connection, key, code)

    def use(
        self, key: str, code: bytes, *, blinded: bytes, signature: bytes, refuse: Callable[[Connection], None]
    ) -> bytes:
        """Mark a code as used for a blinded message; return its signature, which is that of the first use.

        Args:
            code: The hash of the code.
            refuse: Raises if no code can be used now; it is called inside the transaction.

        Raises:
            CodeRefused: The code does not exist, or was used for another blinded message.
        """
        hashed = hashlib.sha256(blinded).digest()
        with self._store.writing() as connection:
            refuse(connection)
            stored = self._find(connection, key, code)
            if stored is None or (stored.is_used and stored.blinded != hashed):
                raise CodeRefused(is_used=stored is not None)
            if stored.is_used:
                return stored.signature
            named = {"name": key_name(self.account, key), "hash": code, "message": hashed, "answer": signature}
            connection.execute(_USE, named)
        return signature

    def counts(self, key: str) -> tuple[int, int]:
        """Return the number of codes, and of those that were used. For decisions only: show the second one rounded."""
        name = key_name(self.account, key)
        query = select(func.count()).where(invitations.c.key == name)
        with self._store.reading() as connection:
            return int(connection.execute(query).scalar_one()), _used(connection, name)

    def _find(self, connection: Connection, key: str, code: bytes) -> StoredCode | None:
        named = {"name": key_name(self.account, key), "hash": code}
        row = connection.execute(_CODE, named).mappings().first()
        return StoredCode(bytes(row["blinded"]), bytes(row["signature"])) if row else None

    def _unused_key(self, connection: Connection) -> str | None:
        """Return the last key if no version of the collection was opened with it."""
        created = queries.invitation_keys(connection, self.account)
        opened = {_key_in(entry.content()) for entry in queries.collections(connection, self.account)}
        last = created[-1].content()["key"] if created else ""
        return last if last and last not in opened else None

    def _append(self, connection: Connection, kind: str, body: Mapping[str, Any]) -> Entry:
        end, head = ends(connection, self.account)
        fields = unchanged(head) if head else {"account": self.account, **_FRESH}
        name = f"{kind}/{end.number + 1 if end else 1}"
        return append(connection, end, kind=kind, amount="0", request=name, question="", body=canonical(body), **fields)


class CodeRefused(Exception):
    """A code that does not exist, or that was used for another blinded message."""

    def __init__(self, *, is_used: bool) -> None:
        super().__init__("The code cannot be used.")
        self.is_used = is_used


# Spent tokens, inside the caller's transaction. `name` is that of the key, `nonces` are hashes.


def known_tokens(connection: Connection, name: str, nonces: Sequence[bytes]) -> set[bytes]:
    """Return the tokens that were spent before."""
    spent: set[bytes] = set()
    for start in range(0, len(nonces), AT_ONCE):
        rows = connection.execute(_SPENT, {"name": name, "nonces": list(nonces[start : start + AT_ONCE])})
        spent |= {bytes(nonce) for (nonce,) in rows}
    return spent


def spend_tokens(connection: Connection, name: str, nonces: Iterable[bytes]) -> None:
    """Store tokens with their reports, in the order of their hashes."""
    rows = [{"key": name, "nonce": nonce, "entry": 0} for nonce in sorted(nonces)]
    if rows:
        connection.execute(insert(spent_tokens), rows)


def waiting_tokens(connection: Connection, name: str) -> IdSum:
    """Return number and digest of the tokens whose reports wait."""
    return _sum_of(connection, _WAITING, name)


def settle_tokens(connection: Connection, name: str, entry: int) -> None:
    """Assign the tokens of all waiting reports to the entry that counts them."""
    connection.execute(_SETTLE, {"name": name, "batch": entry})


def _sum_of(connection: Connection, query: Any, name: str) -> IdSum:
    """Return the digest of the hashes that a query under a key returns."""
    total = IdSum()
    for part in connection.execute(query, {"name": name}).partitions(AT_ONCE):
        total.add(bytes(hashed) for (hashed,) in part)
    return total


# Keys


def key_name(account: str, key: str) -> str:
    """Return the name of a key in this ledger: that of its secret, its codes and its tokens."""
    return f"{account}{NAMES}{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def key_commitment(name: str, value: str) -> str | None:
    """Return what an entry has of the private key of invitations: the public key. None for other secrets."""
    return public_key(value) if NAMES in name else None


def public_key(value: str) -> str:
    """Return the public part of a private key (base64url); empty if it was not written by this ledger."""
    try:
        p, q = (int(part, 16) for part in value.split(","))
        modulus = p * q
        return urlsafe_b64encode(modulus.to_bytes((modulus.bit_length() + 7) // 8, "big")).decode().rstrip("=")
    except (ValueError, OverflowError):
        return ""


def modulus_in(key: str) -> int:
    """Return the modulus of a public key."""
    return int.from_bytes(urlsafe_b64decode(key + "=" * (-len(key) % 4)), "big")


def _key_in(body: Any) -> str:
    """Return the public key in the body of an entry that opened a collection; empty if it has none."""
    return str(body["description"].get("poll", {}).get("invitation_key", ""))


# Verification


@dataclass
class ReplayedKey:
    """The invitations under one key, as the entries have them."""

    key: str
    codes: int = 0
    sum: str = ""
    is_own: bool = False  # the private key is in this ledger
    batches: dict[int, tuple[int, str]] = field(default_factory=dict)  # entry -> number and digest of its tokens
    waiting: str = ""  # the name of the waiting reports of the latest version with this key


def problems(connection: Connection) -> list[str]:
    """Compare codes and spent tokens with the entries; return the problems."""
    if not connection.dialect.has_table(connection, invitations.name):  # an earlier ledger that is only read
        return []
    replayed = _replay(connection)
    try:
        return [*_code_problems(connection, replayed), *_token_problems(connection, replayed)]
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return ["The invitations cannot be read."]


def _replay(connection: Connection) -> dict[str, ReplayedKey]:
    """Return the invitations of every key by its name."""
    replayed: dict[str, ReplayedKey] = {}
    current: dict[str, str] = {}  # account -> the name of its key
    kinds = (INVITATION_KEY, INVITED, COLLECTING, REPORTED)
    query = select(entries).where(entries.c.kind.in_(kinds)).order_by(entries.c.number)
    for row in connection.execute(query).mappings():
        entry = entry_from(dict(row))
        try:
            _replay_entry(entry, replayed, current)
        except (LookupError, TypeError, ValueError, AttributeError):
            continue  # `verify` reports an entry that cannot be read
    return replayed


def _replay_entry(entry: Entry, replayed: dict[str, ReplayedKey], current: dict[str, str]) -> None:
    body = entry.content()
    if entry.kind == REPORTED:
        if "tokens" in body:
            replayed[current[entry.account]].batches[entry.number] = body["tokens"]["count"], body["tokens"]["sum"]
        return
    key = _key_in(body) if entry.kind == COLLECTING else body["key"]
    name = key_name(entry.account, key)
    if entry.kind == COLLECTING:
        current[entry.account] = name
        if not key:
            return
    state = replayed.setdefault(name, ReplayedKey(key))
    if entry.kind == INVITATION_KEY:
        state.is_own = True
    elif entry.kind == INVITED:
        state.codes, state.sum = body["codes"], body["sum"]
    else:
        state.waiting = f"{entry.account}/{body['description']['version']}"


def _code_problems(connection: Connection, replayed: Mapping[str, ReplayedKey]) -> Iterator[str]:
    sums: dict[Any, IdSum] = {}
    rows = connection.execution_options(yield_per=AT_ONCE).execute(select(invitations))
    for part in rows.partitions(AT_ONCE):
        _add(sums, ((row.key, row.code) for row in part))
        for row in part:
            state = replayed.get(row.key)
            if state is not None and not _belong(state.key, bytes(row.blinded), bytes(row.signature)):
                yield f"The signature of a code of {row.key} is not that of its blinded message."
    for name in {**sums, **{name: 0 for name, state in replayed.items() if state.codes}}:
        total, state = sums.get(name, IdSum()), replayed.get(name)
        if state is None or total.size != state.codes or total.text != state.sum:
            yield f"The invitation codes of {name} differ from the entries that created them."


def _add(sums: dict[Any, IdSum], rows: Iterable[tuple[Any, bytes]]) -> None:
    """Add hashes to the digests of their groups."""
    groups: dict[Any, list[bytes]] = {}
    for group, hashed in rows:
        groups.setdefault(group, []).append(bytes(hashed))
    for group, hashes in groups.items():
        sums.setdefault(group, IdSum()).add(hashes)


def _belong(key: str, blinded: bytes, signature: bytes) -> bool:
    """Return whether a blind signature is that of a blinded message, or both are empty."""
    if not blinded or not signature:
        return blinded == signature
    modulus = modulus_in(key)
    number = pow(int.from_bytes(signature, "big"), EXPONENT, modulus)
    message = number.to_bytes((modulus.bit_length() + 7) // 8, "big")
    return hashlib.sha256(message).digest() == blinded


def _token_problems(connection: Connection, replayed: Mapping[str, ReplayedKey]) -> Iterator[str]:
    sums: dict[Any, IdSum] = {}
    rows = connection.execution_options(yield_per=AT_ONCE).execute(select(spent_tokens))
    for part in rows.partitions(AT_ONCE):
        _add(sums, (((row.key, row.entry), row.nonce) for row in part))
    by_key: dict[str, dict[int, IdSum]] = {}
    for (name, entry), total in sums.items():
        by_key.setdefault(name, {})[entry] = total
    for name in {**replayed, **by_key}:
        state, by_entry = replayed.get(name, ReplayedKey("")), by_key.get(name, {})
        uncounted = by_entry.pop(0, IdSum()).size
        spent = uncounted + sum(total.size for total in by_entry.values())
        checks = (
            ("belong to no key of a collection", bool(state.key)),
            ("differ from the batches of their reports", _pairs(by_entry) == state.batches),
            ("are not one for each waiting report", uncounted == _waiting_reports(connection, state.waiting)),
            ("are more than the used codes", not state.is_own or spent <= _used(connection, name)),
        )
        yield from (f"The spent tokens of {name} {problem}." for problem, holds in checks if not holds)


def _pairs(sums: Mapping[int, IdSum]) -> dict[int, tuple[int, str]]:
    return {entry: (total.size, total.text) for entry, total in sums.items()}


def _waiting_reports(connection: Connection, name: str) -> int:
    query = select(func.count()).select_from(waiting).where(waiting.c.collection == name)
    return int(connection.execute(query).scalar_one())


def _used(connection: Connection, name: str) -> int:
    query = select(func.count()).where(invitations.c.key == name, func.length(invitations.c.blinded) > 0)
    return int(connection.execute(query).scalar_one())
