"""Entropy privacy: Pi(X) = 2**h(X), its value after the report, and the fraction that is lost.

Pi(X) is the length of an interval over which a uniform value would be equally uncertain. Pi(X|Z) = 2**h(X|Z), and the loss
is P(X|Z) = 1 - Pi(X|Z) / Pi(X) = 1 - 2**-I(X;Z).

Reference:
    Agrawal, Aggarwal 2001 (PODS).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidegate.arrays import Floats


@dataclass(frozen=True)
class EntropyPrivacy:
    """The entropy before a report, the information in the report (both in bits), and the privacy they correspond to."""

    before: float
    information: float  # I(X;Z)

    @property
    def privacy_before(self) -> float:
        """Pi(X)."""
        return float(2**self.before)

    @property
    def privacy_after(self) -> float:
        """Pi(X|Z)."""
        return float(2 ** (self.before - self.information))

    @property
    def loss(self) -> float:
        """P(X|Z)."""
        return float(1 - 2**-self.information)


def entropy_bits(probabilities: Floats) -> float:
    """Return Shannon's entropy of a distribution (0 log 0 is 0)."""
    some = probabilities[probabilities > 0]
    return float(-(some * np.log2(some)).sum())


def entropy_privacy(channel: Floats, prior: Floats, *, step: float = 1.0) -> EntropyPrivacy:
    """Return the privacy of a value with `prior` after a report through `channel`; `step` is the width of one value."""
    reports = channel @ prior
    noise = sum(float(p) * entropy_bits(column) for p, column in zip(prior, channel.T, strict=True))
    information = max(0.0, entropy_bits(reports) - noise)  # I(X;Z) = H(Z) - H(Z|X)
    return EntropyPrivacy(entropy_bits(prior) + math.log2(step), information)


def uniform_in_uniform(length: float, *, half_width: float, pieces: int = 1) -> EntropyPrivacy:
    """Return the privacy of a value uniform on pieces of `length` each, with uniform noise on [-half_width, half_width].

    Needs:
        2 half_width >= length, and pieces so far apart that a report identifies its piece.

        Erratum:
            For pieces [0,1] and [4,5] and half_width 1 the survey prints Pi(X|Z) = 0.84 and a loss of 0.58: it treats
            h(X|Z) = -1/4, which is in nats, as bits. Correct: -1/(4 ln 2) bits, 0.7788 and 0.6106.
    """
    left = math.log2(length) - length / (4 * half_width * math.log(2))
    before = math.log2(pieces * length)
    return EntropyPrivacy(before, before - left)


def gaussian_in_gaussian(deviation: float, *, sigma: float) -> EntropyPrivacy:
    """Return the privacy of a Gaussian value in Gaussian noise: a loss of 1 - 1 / sqrt(1 + deviation**2 / sigma**2)."""
    before = 0.5 * math.log2(2 * math.pi * math.e * deviation**2)
    return EntropyPrivacy(before, 0.5 * math.log2(1 + deviation**2 / sigma**2))
