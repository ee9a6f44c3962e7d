"""Blind RSA signatures for invitations: RSABSSA-SHA384-PSS-Randomized. Needs no third-party package.

prepared = prepare(nonce)                          a random prefix and the message: this is what is signed
blinded, inverse = blind(key, prepared)            the signer sees only `blinded`, which is uniform whatever the message is
signature = finalize(key, prepared, answer, inverse)    checked before it is returned

`key` is the modulus, big endian, without leading zeros: 256 bytes for the keys of polls. The exponent is always 65537. The
module `invitation_keys` has the signer's side.

Salt and factor can be passed in for the other variants of the RFC and for test vectors: a salt of no bytes is PSSZERO, and
a message that was not prepared is Deterministic.

Reference: F. Denis, F. Jacobs, C. A. Wood, "RSA Blind Signatures", RFC 9474; PSS as in RFC 8017, section 9.1.
"""

from __future__ import annotations

import hashlib
import hmac
import math

from tidegate.errors import Unsupported
from tidegate.operators.exact_draws import Bytes, SystemBytes, below

LEAST_BITS, EXPONENT = 2048, 65537
PREFIX, SALT, DIGEST = 32, 48, 48  # bytes: the random prefix of a message, the salt, SHA-384
TRAILER = 0xBC


def prepare(message: bytes, source: Bytes | None = None) -> bytes:
    """Return a message with its random prefix of 32 bytes: the bytes that are signed and verified."""
    return (source or SystemBytes()).take(PREFIX) + message


def blind(
    key: bytes,
    prepared: bytes,
    source: Bytes | None = None,
    *,
    salt: bytes | None = None,
    factor: int | None = None,
) -> tuple[bytes, int]:
    """Return the blinded message for the signer, and the inverse of the blinding factor, which stays secret.

    Guarantee:
        The blinded message is uniform over the units modulo the key, whatever the message is: for every blinded message
        and every message there is exactly one factor.
    """
    modulus, random_bytes = modulus_of(key), source or SystemBytes()
    chosen_salt = random_bytes.take(SALT) if salt is None else salt
    encoded = int.from_bytes(encode(prepared, chosen_salt, modulus.bit_length() - 1), "big")
    chosen_factor = draw_unit(modulus, random_bytes) if factor is None else factor
    if math.gcd(encoded, modulus) != 1:  # the message would factor the key: probability below 2**-1000
        raise Unsupported("The invitation key is not valid.", "Ask the holder for a new link. Nothing was sent.")
    blinded = blind_number(encoded, chosen_factor, modulus)
    return blinded.to_bytes(len(key), "big"), pow(chosen_factor, -1, modulus)


def finalize(key: bytes, prepared: bytes, blind_signature: bytes, inverse: int, *, salt_size: int = SALT) -> bytes:
    """Return the signature of a prepared message from the signer's response.

    Raises:
        Unsupported: The response is not a signature under this key.
    """
    modulus = modulus_of(key)
    answer = int.from_bytes(blind_signature, "big")
    signature = unblind_number(answer, inverse, modulus).to_bytes(len(key), "big")
    if (
        len(blind_signature) != len(key)
        or answer >= modulus
        or not is_signed(key, prepared, signature, salt_size=salt_size)
    ):
        raise Unsupported(
            "The service's signature does not match the key of this poll. It was not used.",
            "Ask the holder for help: a service that signs with several keys could tell people apart.",
        )
    return signature


def is_signed(key: bytes, prepared: bytes, signature: bytes, *, salt_size: int = SALT) -> bool:
    """Return whether a signature is valid. Servers use `invitation_keys.verify`, which does the same and is faster."""
    modulus = modulus_of(key)
    number = int.from_bytes(signature, "big")
    if len(signature) != len(key) or number >= modulus:
        return False
    bits = modulus.bit_length() - 1
    length = (bits + 7) // 8
    encoded = pow(number, EXPONENT, modulus)
    return encoded.bit_length() <= 8 * length and _matches(prepared, encoded.to_bytes(length, "big"), bits, salt_size)


def blind_number(number: int, factor: int, modulus: int, exponent: int = EXPONENT) -> int:
    """Return a number under a blinding factor. All arithmetic that hides a message from the signer is here."""
    return number * pow(factor, exponent, modulus) % modulus


def unblind_number(answer: int, inverse: int, modulus: int) -> int:
    """Return the signer's answer without the blinding factor, given its inverse."""
    return answer * inverse % modulus


def modulus_of(key: bytes) -> int:
    """Return the modulus of a public key.

    Raises:
        Unsupported: It has fewer than 2048 bits, is even, or starts with a zero.
    """
    modulus = int.from_bytes(key, "big")
    if modulus.bit_length() < LEAST_BITS or modulus.bit_length() != 8 * len(key) or modulus % 2 == 0:
        raise Unsupported(
            "The invitation key is not valid: it must be an RSA modulus of at least 2,048 bits.",
            "Ask the holder for a new link. Nothing was sent.",
        )
    return modulus


def draw_unit(modulus: int, source: Bytes) -> int:
    """Draw a uniform number from 1 .. modulus-1 that has an inverse."""
    while True:
        number = below(modulus, source)
        if math.gcd(number, modulus) == 1:
            return number


def encode(message: bytes, salt: bytes, bits: int) -> bytes:
    """Return the PSS encoding of a message, `bits` long (EMSA-PSS-ENCODE with SHA-384 and MGF1)."""
    length = (bits + 7) // 8
    digest = _salted_digest(message, salt)
    padded = bytes(length - len(salt) - DIGEST - 2) + b"\x01" + salt
    masked = _masked(padded, digest, 8 * length - bits)
    return masked + digest + bytes([TRAILER])


def _matches(message: bytes, encoded: bytes, bits: int, salt_size: int) -> bool:
    """Return whether an encoding is one of this message (EMSA-PSS-VERIFY)."""
    spare = 8 * len(encoded) - bits
    masked, digest = encoded[: -DIGEST - 1], encoded[-DIGEST - 1 : -1]
    if encoded[-1] != TRAILER or masked[0] >> (8 - spare):
        return False
    padded = _masked(masked, digest, spare)
    start = len(padded) - salt_size - 1
    if any(padded[:start]) or padded[start] != 1:
        return False
    return hmac.compare_digest(_salted_digest(message, padded[start + 1 :]), digest)


def _salted_digest(message: bytes, salt: bytes) -> bytes:
    return hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()


def _masked(content: bytes, seed: bytes, spare: int) -> bytes:
    """Return content under the mask of a seed (MGF1), without its `spare` highest bits."""
    blocks = range((len(content) + DIGEST - 1) // DIGEST)
    mask = b"".join(hashlib.sha384(seed + number.to_bytes(4, "big")).digest() for number in blocks)[: len(content)]
    masked = bytes(a ^ b for a, b in zip(content, mask, strict=True))
    return bytes([masked[0] & (0xFF >> spare)]) + masked[1:]
