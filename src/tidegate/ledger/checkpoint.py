"""Signed checkpoints of a ledger, in the form that transparency logs and their witnesses use.

    tidegate/3f0c...            origin: the ledger, by the hash of its first entry
    1204                        number of entries, with entry 0
    q0Zl...=                    root of the Merkle tree
    head 91ab...                hash of the last entry
    account ["people","1.2","epsilon",17]      total of an account, its unit, and its last request for a record

    — tidegate/3f0c... mL3x...=                signature (Ed25519)

Reference:
    C2SP tlog-checkpoint (https://c2sp.org/tlog-checkpoint) and signed-note (https://c2sp.org/signed-note). `head` and `account`
    are extension lines, which other tools ignore.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.errors import LedgerBroken
from tidegate.extras import extra
from tidegate.ledger.entry import canonical

ED25519 = b"\x01"
MOST_BYTES = 1_000_000  # of a note
_DASH = "— "


@dataclass(frozen=True)
class AccountTotal:
    """What an account had spent at a checkpoint, in its unit, and the number of its last request for a record."""

    spent: str
    unit: str
    requests: int


@dataclass(frozen=True)
class Checkpoint:
    """The state of a ledger: the number of its entries, the root of their Merkle tree, and the totals."""

    origin: str
    size: int
    root: bytes
    head: str = ""
    accounts: Mapping[str, AccountTotal] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text that is signed."""
        lines = [self.origin, str(self.size), base64.b64encode(self.root).decode()]
        lines += [f"head {self.head}"] if self.head else []
        for name, total in sorted(self.accounts.items()):
            lines.append(f"account {canonical([name, total.spent, total.unit, total.requests])}")
        return "".join(f"{line}\n" for line in lines)


class SigningKey:
    """An Ed25519 key with a name. `secret` is its seed in hexadecimal."""

    def __init__(self, name: str, secret: str) -> None:
        with extra("witness", "Signing checkpoints"):
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(secret))
        self.public = PublicKey(name, self._key.public_key().public_bytes_raw())

    def sign(self, text: str) -> str:
        """Return the signature line of a text."""
        signature = base64.b64encode(self.public.id + self._key.sign(text.encode())).decode()
        return f"{_DASH}{self.public.name} {signature}\n"


@dataclass(frozen=True)
class PublicKey:
    """The public part of a key: ``name+id+base64``, as other tools read it."""

    name: str
    raw: bytes

    @property
    def id(self) -> bytes:
        """The first four bytes of the hash of name and key: they select the key of a signature."""
        return hashlib.sha256(self.name.encode() + b"\n" + ED25519 + self.raw).digest()[:4]

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(ED25519 + self.raw).decode()}"

    @classmethod
    def parse(cls, text: str) -> PublicKey:
        """Return the key of a text. Raises LedgerBroken if it is not one."""
        name, _, rest = text.strip().partition("+")
        key_id, _, encoded = rest.partition("+")
        raw = decode(encoded)
        key = cls(name, raw[1:])
        if not name or len(raw) != 33 or raw[:1] != ED25519 or key.id.hex() != key_id:
            raise LedgerBroken(
                "The text is not a public key of a ledger.", "Use the key that `tidegate ledger witness` shows."
            )
        return key

    def has_signed(self, text: str, signature: bytes) -> bool:
        """Return whether a signature of a text is of this key."""
        with extra("witness", "Verifying checkpoints"):
            from cryptography.exceptions import InvalidSignature
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, text.encode())
        except InvalidSignature:
            return False
        return True


def sign(checkpoint: Checkpoint, *keys: SigningKey) -> str:
    """Return the signed note of a checkpoint."""
    return checkpoint.text + "\n" + "".join(key.sign(checkpoint.text) for key in keys)


def parse(note: str) -> Checkpoint:
    """Return the checkpoint of a note without verifying its signatures.

    Raises:
        LedgerBroken: The text is not a checkpoint.
    """
    text, _ = _split(note)
    origin, size, root, *others = text.split("\n")[:-1] if text.count("\n") >= 3 else ("", "", "")
    hashed = decode(root)
    if not origin or not size.isdecimal() or size != str(int(size)) or len(hashed) != 32:
        raise _malformed()
    head, accounts = "", dict[str, AccountTotal]()
    for line in others:
        kind, _, value = line.partition(" ")
        if kind == "head":
            head = value
        elif kind == "account":
            name, total = _read_account(value)
            accounts[name] = total
    return Checkpoint(origin, int(size), hashed, head, accounts)


def verify_note(note: str, keys: Iterable[PublicKey]) -> Checkpoint:
    """Return the checkpoint of a note that one of the keys has signed.

    Raises:
        LedgerBroken: The text is not a checkpoint, or none of the keys has signed it.
    """
    checkpoint = parse(note)
    text, signatures = _split(note)
    for key in keys:
        if any(name == key.name and raw[:4] == key.id and key.has_signed(text, raw[4:]) for name, raw in signatures):
            return checkpoint
    raise LedgerBroken(
        f"The checkpoint of {checkpoint.size:,} entries is not signed by a known key of this ledger.",
        "It was changed, it belongs to another ledger, or it is newer than the last change of the signing key that this copy of "
        "the ledger contains. Do not overwrite it before you know which.",
    )


def _split(note: str) -> tuple[str, list[tuple[str, bytes]]]:
    """Return the text of a note, and the name and the content of each signature."""
    text, blank, lines = note.rpartition("\n\n")
    if not blank or not lines.endswith("\n"):
        raise _malformed()
    signatures = []
    for line in lines[:-1].split("\n"):
        name, _, encoded = line.removeprefix(_DASH).partition(" ")
        raw = decode(encoded)
        if not line.startswith(_DASH) or not name or len(raw) < 5:
            raise _malformed()
        signatures.append((name, raw))
    return text + "\n", signatures


def _read_account(value: str) -> tuple[str, AccountTotal]:
    try:
        name, spent, unit, requests = json.loads(value)
        total: Any = AccountTotal(spent, unit, requests)
    except (ValueError, TypeError, RecursionError):
        total = None
    if total is None or not all(isinstance(part, str) for part in (name, spent, unit)) or type(requests) is not int:
        raise _malformed()
    return name, total


def decode(text: str) -> bytes:
    """Return the bytes of a base64 text; none if it is not the one text that encodes them."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
    return raw if base64.b64encode(raw).decode() == text else b""


def _malformed() -> LedgerBroken:
    return LedgerBroken("The text is not a signed checkpoint.", "Check the address of the witness.")
