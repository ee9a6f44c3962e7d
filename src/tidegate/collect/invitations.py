"""Invitations to a poll: codes that a holder mails, and the token that a device gets for one. Needs no third-party package.

A code is 128 random bits in readable groups. The device sends it once, with a blinded message, and gets a blind signature. The
token is the unblinded signature with the message; it goes into the report. The service cannot relate tokens to codes.

token = obtain(key, code, memory, sign)          {"nonce", "signature"}; `sign` asks the service

The memory has one record for each key, under token/FINGERPRINT (SHA-256 of the key), the same in every language:

    {"nonce", "blinded", "inverse"}      before the first request, so that a lost response can be requested again
    {"nonce", "signature"}               afterwards

`nonce` is 64 bytes in hexadecimal digits, the message that is signed: the random prefix of RFC 9474 and 32 random bytes. Other
bytes are base64url without padding.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tidegate.collect.blind_signatures import LEAST_BITS, blind, finalize, prepare
from tidegate.collect.memory import Memory, locked
from tidegate.errors import Unsupported
from tidegate.operators.exact_draws import Bytes, SystemBytes

if TYPE_CHECKING:
    from tidegate.ledger import Ledger

CODE_BYTES, NONCE_BYTES, KEY_BYTES = 16, 32, LEAST_BITS // 8
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32: no I, L, O, U
CODE_DIGITS, GROUP = 26, 4
ALIKE = str.maketrans("OIL", "011")
NONCE = re.compile(r"[0-9a-f]{128}")
SIGNATURE = re.compile(r"[A-Za-z0-9_-]{341}[AQgw]")  # 256 bytes; the last four bits are not used
# Reasons to refuse a report. They are stored in ledgers: never changes.
UNSIGNED = "its invitation is not valid: the signature is not one of this poll"
SPENT = "its invitation was used for another report"
FULL = "the poll has received as many reports as it accepts"

Sign = Callable[[str, str], str]  # from a code and a blinded message to the blind signature, all as text


def new_code(source: Bytes | None = None) -> str:
    """Return a new code: 128 random bits as 26 letters and digits in groups of four."""
    return _code_text((source or SystemBytes()).take(CODE_BYTES))


def _code_text(code: bytes) -> str:
    number = int.from_bytes(code, "big")
    digits = "".join(DIGITS[number >> 5 * position & 31] for position in reversed(range(CODE_DIGITS)))
    return "-".join(digits[start : start + GROUP] for start in range(0, CODE_DIGITS, GROUP))


def read_code(text: str) -> bytes:
    """Return the bits of a code. Case, spaces and hyphens do not matter; O is 0, and I and L are 1.

    Raises:
        Unsupported: It is not a code.
    """
    digits = re.sub(r"[\s-]", "", text).upper().translate(ALIKE)
    number = 0
    for digit in digits:
        number = number << 5 | max(0, DIGITS.find(digit))
    if len(digits) != CODE_DIGITS or set(digits) - set(DIGITS) or number >> 8 * CODE_BYTES:
        raise Unsupported(
            "This is not an invitation code.",
            "A code has 26 letters and digits in groups of four. Check it for typing errors.",
        )
    return number.to_bytes(CODE_BYTES, "big")


def code_hash(code: bytes) -> bytes:
    """Return the hash under which a service stores a code."""
    return hashlib.sha256(b"tidegate invitation\0" + code).digest()


def token_refusal(invitation: Any) -> str | None:
    """Return why the invitation of a report is malformed; None if it is well-formed. Its signature is not checked here."""
    if isinstance(invitation, Mapping) and set(invitation) == {"nonce", "signature"}:
        patterns = ((NONCE, invitation["nonce"]), (SIGNATURE, invitation["signature"]))
        if all(isinstance(text, str) and pattern.fullmatch(text) for pattern, text in patterns):
            return None
    return "malformed: the invitation has a nonce of 128 hexadecimal digits and a signature of 342 characters"


def obtain(key: str, code: str, memory: Memory, sign: Sign, *, source: Bytes | None = None) -> dict[str, str]:
    """Return the token of a poll's key for its report; the memory has it if it was obtained before.

    `sign` sends code and blinded message to the service and returns its signature.

    Guarantee:
        Message and blinding are in the memory before the request. After a lost response the same request is sent again, which
        the service answers with the same signature. The token is returned only if its signature is valid under `key`.
    """
    public = key_bytes(key)
    with locked(memory):
        record = _record(public, memory, source or SystemBytes())
    if "signature" not in record:
        answer = sign(format_code(code), record["blinded"])
        record = _finish(public, record, answer)
        with locked(memory):
            memory[_memory_key(public)] = record
    return {"nonce": record["nonce"], "signature": record["signature"]}


def _record(key: bytes, memory: Memory, source: Bytes) -> dict[str, str]:
    """Return what the memory has of a token; draw and store message and blinding if it has nothing."""
    name = _memory_key(key)
    if name not in memory:
        message = source.take(NONCE_BYTES)
        prepared = prepare(message, source)
        blinded, inverse = blind(key, prepared, source)
        hidden = to_text(inverse.to_bytes(len(key), "big"))
        memory[name] = {"nonce": prepared.hex(), "blinded": to_text(blinded), "inverse": hidden}
    record: dict[str, str] = dict(memory[name])
    return record


def _finish(key: bytes, record: Mapping[str, str], answer: str) -> dict[str, str]:
    prepared, inverse = bytes.fromhex(record["nonce"]), int.from_bytes(from_text(record["inverse"]), "big")
    return {"nonce": record["nonce"], "signature": to_text(finalize(key, prepared, from_text(answer), inverse))}


def format_code(text: str) -> str:
    """Return a code in the form in which it was created, however it was typed."""
    return _code_text(read_code(text))


def key_bytes(key: str) -> bytes:
    """Return the bytes of a poll's key.

    Raises:
        Unsupported: It is not a modulus of 2048 bits.
    """
    content = from_text(key)
    if len(content) != KEY_BYTES:
        raise Unsupported(
            "The invitation key of this poll is not valid.", "Ask the holder for a new link. Nothing was sent."
        )
    return content


def to_text(content: bytes) -> str:
    """Return bytes as base64url without padding."""
    return urlsafe_b64encode(content).decode().rstrip("=")


def from_text(text: str) -> bytes:
    """Return the bytes of base64url without padding.

    Raises:
        Unsupported: It is something else.
    """
    if isinstance(text, str) and re.fullmatch(r"[A-Za-z0-9_-]*", text) and len(text) % 4 != 1:
        content = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        if to_text(content) == text:  # one text for the same bytes
            return content
    raise Unsupported("This is not base64url text without padding.", "Send it as the documentation describes.")


def _memory_key(key: bytes) -> str:
    return f"token/{hashlib.sha256(key).hexdigest()}"


def create_key(ledger: Ledger, *, dataset: str, poll: str, user: str = "") -> str:
    """Create the key for the invitations of a poll that is not open yet; return the `invitation_key` for its description.

    A key that no version of the poll was opened with is returned again.
    """
    from tidegate.collect.invitation_keys import InvitationKey  # here: devices do not need it
    from tidegate.ledger.invitations import InvitationBook

    return InvitationBook(ledger, f"{dataset}/{poll}").create_key(lambda: InvitationKey.generate().text, user=user)
