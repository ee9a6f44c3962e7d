"""Blind signatures equal the vectors of RFC 9474 and our own, `cryptography` agrees, and a faulty signer answers nothing."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from collect.invited import signing_key
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA384

from tidegate.collect.blind_signatures import EXPONENT, blind, encode, finalize, is_signed, prepare
from tidegate.collect.invitation_keys import InvitationKey, verify
from tidegate.collect.invitations import from_text, obtain
from tidegate.errors import Unsupported
from tidegate.operators.exact_draws import SeededBytes

OWN = json.loads((Path(__file__).parent / "token_vectors.json").read_text("utf-8"))


def rfc_vectors() -> list[dict[str, Any]]:
    """Return the vectors of RFC 9474, appendix A, all four variants, as published by github.com/cloudflare/blindrsa-ts."""
    path = Path(os.environ.get("TIDEGATE_DATA", "")) / "rfc9474.json"
    if not os.environ.get("TIDEGATE_DATA") or not path.exists():
        pytest.skip("TIDEGATE_DATA has no rfc9474.json (test_vectors_rfc9474.json of cloudflare/blindrsa-ts)")
    vectors: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
    return vectors


def test_all_variants_equal_the_vectors_of_the_rfc() -> None:
    vectors = rfc_vectors()
    assert len(vectors) == 4
    for vector in vectors:
        key = InvitationKey(int(vector["p"], 16), int(vector["q"], 16))
        prepared, salt, inverse = (
            bytes.fromhex(vector["input_msg"]),
            bytes.fromhex(vector["salt"]),
            int(vector["inv"], 16),
        )
        assert prepared == bytes.fromhex(vector["msg_prefix"] + vector["msg"])
        factor = pow(inverse, -1, key.modulus)
        assert blind(key.public, prepared, salt=salt, factor=factor) == (bytes.fromhex(vector["blinded_msg"]), inverse)
        if "encoded_msg" in vector:
            assert encode(prepared, salt, key.modulus.bit_length() - 1).hex() == vector["encoded_msg"]
        answer = key.sign(bytes.fromhex(vector["blinded_msg"]))
        assert answer.hex() == vector["blind_sig"]
        signature = finalize(key.public, prepared, answer, inverse, salt_size=len(salt))
        assert signature.hex() == vector["sig"]
        assert verify(key.public, prepared, signature) == (len(salt) == 48)


@pytest.mark.parametrize("vector", OWN["tokens"], ids=lambda vector: vector["seed"])
def test_tokens_equal_our_own_vectors(vector: dict[str, Any]) -> None:
    key, memory = InvitationKey.from_text(OWN["key"]), dict[str, Any]()

    def sign(code: str, blinded: str) -> str:
        assert (code, memory) == (vector["code"], {vector["place"]: vector["record"]})  # stored before it is sent
        assert key.sign(from_text(blinded)) == from_text(vector["answer"])
        return str(vector["answer"])

    token = obtain(OWN["public"], vector["code"], memory, sign, source=SeededBytes(vector["seed"]))
    assert token == vector["token"]
    assert memory == {vector["place"]: vector["token"]}
    assert verify(from_text(OWN["public"]), bytes.fromhex(token["nonce"]), from_text(token["signature"]))


def test_cryptography_and_our_verification_agree() -> None:
    """On signatures of both, and on 200 changed ones."""
    key, draw = signing_key(), random.Random(9474)
    prepared = prepare(b"message")
    blinded, inverse = blind(key.public, prepared)
    ours = finalize(key.public, prepared, key.sign(blinded), inverse)
    theirs = _private_key(key).sign(prepared, padding.PSS(padding.MGF1(SHA384()), 48), SHA384())
    for signature in (ours, theirs):
        assert verify(key.public, prepared, signature)
        assert is_signed(key.public, prepared, signature)
    for _ in range(200):
        changed = bytearray(ours)
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        assert not verify(key.public, prepared, bytes(changed))
        assert not is_signed(key.public, prepared, bytes(changed))
    for wrong in (b"", ours[:-1], ours + b"\0", b"\xff" * 256, bytes(256)):
        assert not verify(key.public, prepared, wrong)
        assert not is_signed(key.public, prepared, wrong)
    assert not verify(key.public, prepared + b"x", ours)
    assert not verify(signing_key(1).public, prepared, ours)


def _private_key(key: InvitationKey) -> rsa.RSAPrivateKey:
    d = pow(EXPONENT, -1, (key.p - 1) * (key.q - 1))
    halves = d % (key.p - 1), d % (key.q - 1), pow(key.q, -1, key.p)
    return rsa.RSAPrivateNumbers(key.p, key.q, d, *halves, rsa.RSAPublicNumbers(EXPONENT, key.modulus)).private_key()


def test_faulty_signer_answers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One wrong half of the computation would give a number from which the primes follow."""
    key = InvitationKey(signing_key().p, signing_key().q)
    right = key._power
    monkeypatch.setattr(InvitationKey, "_power", lambda self, number: right(number) + key.q)
    with pytest.raises(Unsupported, match="could not be computed"):
        key.sign(bytes(255) + b"\x02")


def test_signer_raises_a_random_number_to_the_private_exponent(monkeypatch: pytest.MonkeyPatch) -> None:
    key, numbers = InvitationKey(signing_key().p, signing_key().q), list[int]()
    right = key._power
    monkeypatch.setattr(InvitationKey, "_power", lambda self, number: numbers.append(number) or right(number))
    answers = {key.sign(bytes(255) + b"\x02") for _ in range(5)}
    assert len(answers) == 1
    assert len(set(numbers)) == 5
    assert 2 not in numbers


@pytest.mark.parametrize("blinded", [b"", bytes(256), b"\xff" * 256, bytes(255), bytes(257)], ids=len)
def test_message_that_is_no_unit_is_not_signed(blinded: bytes) -> None:
    with pytest.raises(Unsupported):
        signing_key().sign(blinded)


def test_answer_of_another_key_is_not_used() -> None:
    prepared = prepare(b"message")
    blinded, inverse = blind(signing_key().public, prepared)
    with pytest.raises(Unsupported, match="does not match the key"):
        finalize(
            signing_key().public, prepared, signing_key(1).sign((int.from_bytes(blinded) >> 1).to_bytes(256)), inverse
        )


def test_private_key_is_not_shown() -> None:
    key = signing_key()
    assert f"{key.p:x}"[:12] not in repr(key)
    assert str(key.p)[:12] not in repr(key)
