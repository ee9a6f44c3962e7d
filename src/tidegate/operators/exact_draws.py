"""Randomness on the device, in pure Python: a stream of bytes, exact draws from it, and exact powers of e.

The stream is read front to back, and every draw documents how many bytes it takes, so that another language reproduces a
report byte for byte from the same stream:

    below(n)    k = the fewest bytes that hold n - 1; read k bytes, big endian, as x; if x >= n * floor(256**k / n)
                discard them and read k more; else x mod n. Nothing is read if n is 1.
    coin(c)     six bytes, big endian, as x: heads if x < c. Its probability is exactly c / 2**48.

`exp_below` and `exp_minus` are powers of e in integer arithmetic, over 2**PLACES: the same digits on every machine.

All probabilities on the device are integers over 2**48 = `WHOLE`: six bytes, and exact in a 64-bit float as well.
"""

from __future__ import annotations

import hashlib
import os
from fractions import Fraction
from typing import Protocol

COIN_BYTES = 6
WHOLE = 1 << (8 * COIN_BYTES)
PLACES = 128
ONE = 1 << PLACES  # of fixed-point numbers


class Bytes(Protocol):
    """A source of independent, uniform bytes."""

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes of the stream."""
        ...


class SystemBytes:
    """The operating system's cryptographic generator, which clients use."""

    def take(self, count: int) -> bytes:
        return os.urandom(count)


class SeededBytes:
    """SHA-256 of the seed and a counter, block after block. FOR TESTS ONLY: the seed reveals the true values.

    Block i is SHA-256(seed in UTF-8, a slash, i in decimal), i = 0, 1, 2, ...
    """

    def __init__(self, seed: str) -> None:
        self._seed, self._block, self._left = seed, 0, b""

    def take(self, count: int) -> bytes:
        while len(self._left) < count:
            self._left += hashlib.sha256(f"{self._seed}/{self._block}".encode()).digest()
            self._block += 1
        taken, self._left = self._left[:count], self._left[count:]
        return taken


def below(bound: int, source: Bytes) -> int:
    """Draw an integer uniformly from 0 .. bound-1, exactly (rejection, no modulo bias)."""
    if bound < 1:
        raise ValueError("`bound` must be 1 or more.")
    size = ((bound - 1).bit_length() + 7) // 8
    last = 256**size // bound * bound
    while True:
        drawn = int.from_bytes(source.take(size), "big")
        if drawn < last:
            return drawn % bound


def coin(heads: int, source: Bytes) -> bool:
    """Draw True with probability exactly heads / 2**48."""
    return draw_whole(source) < heads


def draw_whole(source: Bytes) -> int:
    """Draw an integer uniformly from 0 .. 2**48-1."""
    return int.from_bytes(source.take(COIN_BYTES), "big")


def exp_below(power: Fraction) -> int:
    """Return a fixed-point number at most e**power, with a relative error of at most 2**-100.

    Guarantee:
        Never above e**power: the terms of the series are positive, and each is rounded down.

    Needs:
        0 <= power <= 100.
    """
    if not 0 <= power <= 100:
        raise ValueError("`power` must be from 0 to 100.")
    total = term = ONE
    step = 1
    while term:
        term = term * power.numerator // (power.denominator * step)
        total += term
        step += 1
    return total


def exp_minus(power: Fraction) -> int:
    """Return e**-power as a fixed-point number, rounded down from the inverse of `exp_below`; 0 for powers above 100."""
    return ONE * ONE // exp_below(power) if power <= 100 else 0
