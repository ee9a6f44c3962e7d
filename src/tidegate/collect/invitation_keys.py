"""The signer's side of invitations: a private key, blind signatures with it, and the verification of tokens.

The private key is a secret of the ledger (`ledger.invitations`). It is never in an entry, an export or a log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from tidegate.collect.blind_signatures import EXPONENT, LEAST_BITS, SALT, draw_unit, modulus_of
from tidegate.errors import Unsupported
from tidegate.extras import extra
from tidegate.operators.exact_draws import Bytes, SystemBytes

with extra("collect", "Signing invitations"):
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA384


@dataclass(frozen=True)
class InvitationKey:
    """A private key: its two primes. They are not shown."""

    p: int = field(repr=False)
    q: int = field(repr=False)

    @classmethod
    def generate(cls) -> InvitationKey:
        """Create a key with OpenSSL's generator."""
        numbers = rsa.generate_private_key(public_exponent=EXPONENT, key_size=LEAST_BITS).private_numbers()
        return cls(numbers.p, numbers.q)

    @classmethod
    def from_text(cls, text: str) -> InvitationKey:
        """Return the key of `text`."""
        p, q = (int(part, 16) for part in text.split(","))
        return cls(p, q)

    @property
    def text(self) -> str:
        """The key as a secret of the ledger."""
        return f"{self.p:x},{self.q:x}"

    @cached_property
    def modulus(self) -> int:
        return self.p * self.q

    @property
    def size(self) -> int:
        """The number of bytes of a signature."""
        return (self.modulus.bit_length() + 7) // 8

    @property
    def public(self) -> bytes:
        """The public key: the modulus."""
        return self.modulus.to_bytes(self.size, "big")

    def sign(self, blinded: bytes, source: Bytes | None = None) -> bytes:
        """Return the blind signature of a blinded message. The same message gives the same signature.

        Guarantee:
            The number that is raised to the private exponent is random, so that its time says nothing about the key. The
            result is checked before it is returned: a fault in one half of the computation would reveal the primes.

        Raises:
            Unsupported: The message is not a number below the modulus.
        """
        number, modulus = int.from_bytes(blinded, "big"), self.modulus
        if len(blinded) != self.size or not 0 < number < modulus:
            raise Unsupported(
                "The blinded message is not valid.", "Send as many bytes as the key has: a number below it."
            )
        factor = draw_unit(modulus, source or SystemBytes())
        hidden = self._power(number * pow(factor, EXPONENT, modulus) % modulus)
        signature = hidden * pow(factor, -1, modulus) % modulus
        if pow(signature, EXPONENT, modulus) != number:
            raise Unsupported(
                "The signature could not be computed.", "Try again. If it happens again, check the ledger."
            )
        return signature.to_bytes(self.size, "big")

    def _power(self, number: int) -> int:
        """Raise a number to the private exponent, modulo each prime."""
        at_p, at_q, inverse = self._halves
        low = pow(number % self.q, at_q, self.q)
        high = pow(number % self.p, at_p, self.p)
        return low + self.q * ((high - low) * inverse % self.p)

    @cached_property
    def _halves(self) -> tuple[int, int, int]:
        return pow(EXPONENT, -1, self.p - 1), pow(EXPONENT, -1, self.q - 1), pow(self.q, -1, self.p)


def verify(key: bytes, prepared: bytes, signature: bytes) -> bool:
    """Return whether a signature of a prepared message is valid under a public key."""
    try:
        _public_key(key).verify(signature, prepared, _PADDING, _HASH)
    except InvalidSignature:
        return False
    return True


@lru_cache(maxsize=64)
def _public_key(key: bytes) -> rsa.RSAPublicKey:
    return rsa.RSAPublicNumbers(EXPONENT, modulus_of(key)).public_key()


_HASH = SHA384()
_PADDING = padding.PSS(mgf=padding.MGF1(_HASH), salt_length=SALT)
