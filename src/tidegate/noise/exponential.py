"""Choosing one of a public list, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Ints
from tidegate.noise.bernoulli import exp_minus_ratio
from tidegate.noise.bits import Bits, below

CHUNK = 4096


def exponential_choice(scores: Ints, rate: Fraction, *, bits: Bits) -> int:
    """Draw an index i with probability proportional to exp(rate * scores[i]).

    Guarantee  Exact for integer scores and a rational rate: propose uniformly, keep with a coin of probability
               exp(-rate * (best - score)). No floating point, no Gumbel noise.
    Needs      at least one integer score; 0 < rate, its denominator at most 2**62. Whether it runs never depends on
               the scores.
    Reference  McSherry, Talwar 2007; the coin: Canonne, Kamath, Steinke 2020.
    """
    gaps = _gaps(scores)
    if rate <= 0 or rate.denominator > 2**62:
        raise ValueError("a positive rate with a denominator up to 2**62 is needed")
    while True:
        proposals = below(gaps.size, size=min(CHUNK, 4 * gaps.size), bits=bits)
        kept = exp_minus_ratio(gaps[proposals], rate, bits=bits)
        if kept.any():
            return int(proposals[np.argmax(kept)])


def _gaps(scores: Ints) -> NDArray[Any]:
    """How far each score is below the best: 64-bit where that fits, else Python's own integers."""
    if scores.size == 0 or not np.issubdtype(scores.dtype, np.integer):
        raise ValueError("integer scores are needed, at least one")
    wide = scores.astype(object)
    gaps = int(scores.max()) - (scores.astype(np.int64) if _fits(scores) else wide)
    return np.asarray(gaps)


def _fits(scores: Ints) -> bool:
    return int(scores.min()) > -(2**61) and int(scores.max()) < 2**61
