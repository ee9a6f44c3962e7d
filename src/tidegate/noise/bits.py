"""Sources of random bits: the operating system, and a seeded source for tests."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Words


class Bits(Protocol):
    """A source of independent fair bits."""

    def words(self, count: int) -> Words:
        """Return `count` independent, uniform 64-bit words."""
        ...


class SecureBits:
    """The operating system's cryptographic generator: the default, and the only source that a session uses.

    Guarantee:
        A source has no state: every word comes from a new request to the system, and no word is stored. A forked process,
        another thread and a later reader of this process's memory therefore cannot learn words from a source. Linux's
        generator is ChaCha20 that erases its key after each request; at 2.7 ns a byte (two-core machine), a draw of
        noise reads 4 to 12 bytes. A stream of our own would need all of this again: ChaCha20 in NumPy takes 6 times as
        long as the system, and compiled code loads for half a second.
    """

    def words(self, count: int) -> Words:
        return np.frombuffer(os.urandom(8 * count), dtype="<u8").astype(np.uint64)


class SeededBits:
    """A reproducible stream (SHAKE-256 of the seed and a counter). FOR TESTS ONLY: the seed reveals the noise."""

    def __init__(self, seed: int | str) -> None:
        self._seed, self._count = str(seed), 0

    def words(self, count: int) -> Words:
        self._count += 1
        stream = hashlib.shake_256(f"{self._seed}/{self._count}".encode()).digest(8 * count)
        return np.frombuffer(stream, dtype="<u8").astype(np.uint64)


def below(bound: int, *, size: int, bits: Bits) -> NDArray[np.int64]:
    """Draw `size` integers uniformly from 0 .. bound-1, exactly (rejection, no modulo bias).

    Needs:
        1 <= bound <= 2**62.
    """
    if not 1 <= bound <= 2**62:
        raise ValueError("The bound must be from 1 to 2**62.")
    width = (bound - 1).bit_length()
    if width == 0:
        return np.zeros(size, np.int64)
    return _fill(size, lambda count: _within(bits.words(count) >> np.uint64(64 - width), bound))


def below_any(bound: int, *, bits: Bits) -> int:
    """Draw one integer uniformly from 0 .. bound-1, exactly, for a bound of any size."""
    if bound <= 2**62:
        return int(below(bound, size=1, bits=bits)[0])
    width = (bound - 1).bit_length()
    count = -(-width // 64)
    while True:
        joined = 0
        for word in bits.words(count):
            joined = joined << 64 | int(word)
        drawn = joined >> (64 * count - width)
        if drawn < bound:
            return drawn


def _within(drawn: Words, bound: int) -> NDArray[np.int64]:
    return drawn[drawn < np.uint64(bound)].astype(np.int64)


def _fill(size: int, draw: Callable[[int], NDArray[np.int64]]) -> NDArray[np.int64]:
    parts, have = [], 0
    while have < size:
        part = draw(2 * (size - have) + 16)[: size - have]
        parts.append(part)
        have += part.size
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
