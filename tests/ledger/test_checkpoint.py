"""Signed checkpoints: the form of C2SP notes, verified with another Ed25519 call, and every change detected."""

from __future__ import annotations

import base64
import hashlib

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import LedgerBroken
from tidegate.ledger.checkpoint import AccountTotal, Checkpoint, PublicKey, SigningKey, parse, sign, verify_note

SECRET = "11" * 32
ACCOUNTS = {"people": AccountTotal("1.25", "epsilon", 17), "others": AccountTotal("0", "z", 0)}
CHECKPOINT = Checkpoint("tidegate/ab", 1204, bytes(range(32)), "f" * 64, ACCOUNTS)
KEY = SigningKey("tidegate/ab", SECRET)
NOTE = sign(CHECKPOINT, KEY)

# The example of https://c2sp.org/signed-note: a note of a Go checksum database test, with the key of golang.org/x/mod.
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_NOTE = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n\n"
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)


def test_note_has_the_form_of_c2sp() -> None:
    text, _, signature = NOTE.rpartition("\n\n")
    assert text.split("\n") == [
        "tidegate/ab",
        "1204",
        base64.b64encode(bytes(range(32))).decode(),
        f"head {'f' * 64}",
        'account ["others","0","z",0]',
        'account ["people","1.25","epsilon",17]',
    ]
    dash, name, encoded = signature.rstrip("\n").split(" ")
    raw = base64.b64decode(encoded)
    key = base64.b64decode(str(KEY.public).split("+")[2])
    assert (dash, name, len(raw), key[:1]) == ("—", "tidegate/ab", 68, b"\x01")
    assert raw[:4] == hashlib.sha256(b"tidegate/ab\n" + key).digest()[:4]
    Ed25519PublicKey.from_public_bytes(key[1:]).verify(raw[4:], f"{text}\n".encode())
    with pytest.raises(InvalidSignature):
        Ed25519PublicKey.from_public_bytes(key[1:]).verify(raw[4:], text.encode())


def test_key_and_signature_of_another_implementation_are_accepted() -> None:
    """Key and note of the documentation of golang.org/x/mod/sumdb/note."""
    key = PublicKey.parse(GO_KEY)
    assert str(key) == GO_KEY
    text, _, line = GO_NOTE.rpartition("\n\n")
    raw = base64.b64decode(line.split(" ")[2])
    assert raw[:4] == key.id
    assert key.has_signed(text + "\n", raw[4:])
    assert not key.has_signed(text, raw[4:])


def test_note_is_read_back() -> None:
    assert parse(NOTE) == verify_note(NOTE, [KEY.public]) == CHECKPOINT
    assert verify_note(sign(CHECKPOINT, SigningKey("other", "22" * 32), KEY), [KEY.public]) == CHECKPOINT
    foreign = NOTE.replace("\nhead", "\nsomething else\nhead")
    assert parse(foreign).accounts == ACCOUNTS
    assert PublicKey.parse(str(KEY.public)) == KEY.public


@given(st.integers(0, len(NOTE) - 1), st.characters(codec="utf-8", min_codepoint=32))
def test_changed_character_is_detected(position: int, character: str) -> None:
    changed = NOTE[:position] + character + NOTE[position + 1 :]
    if changed == NOTE:
        return
    with pytest.raises(LedgerBroken):
        verify_note(changed, [KEY.public])


@pytest.mark.parametrize("other", [SigningKey("tidegate/ab", "22" * 32), SigningKey("tidegate/cd", SECRET)])
def test_note_of_another_key_is_refused(other: SigningKey) -> None:
    with pytest.raises(LedgerBroken, match="not signed by a known key"):
        verify_note(NOTE, [other.public])
    with pytest.raises(LedgerBroken):
        verify_note(NOTE, [])


@pytest.mark.parametrize(
    "text", ["", "\n\n", "a\nb\nc\n\n", NOTE[:-1], NOTE.replace("1204", "01204"), NOTE.replace("1204", "-4"), "x" * 100]
)
def test_text_that_is_not_a_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(LedgerBroken):
        parse(text)


@pytest.mark.parametrize("text", ["", "a", "a+b+c", str(KEY.public)[:-4], str(KEY.public).replace("ab+", "ac+")])
def test_text_that_is_not_a_key_is_refused(text: str) -> None:
    with pytest.raises(LedgerBroken, match="not a public key"):
        PublicKey.parse(text)
