"""Choosing one of a public list, exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tidegate.noise.bernoulli import Ints, exp_minus_ratio
from tidegate.noise.bits import Bits, below

CHUNK = 4096


def exponential_choice(scores: Ints, rate: Fraction, *, bits: Bits) -> int:
    """Draw an index i with probability proportional to exp(rate * scores[i]).

    Guarantee  Exact for integer scores and a rational rate: propose uniformly, keep with a coin of probability
               exp(-rate * (best - score)). No floating point, no Gumbel noise.
    Needs      at least one score; rate > 0; (best - worst) * numerator and the denominator below 2**62.
    Reference  McSherry, Talwar 2007; the coin: Canonne, Kamath, Steinke 2020.
    """
    gaps = _gaps(scores)
    if rate <= 0 or int(gaps.max()) * rate.numerator >= 2**62 or rate.denominator > 2**62:
        raise ValueError("a positive rate is needed for which scores and rate fit into 62 bits")
    while True:
        proposals = below(gaps.size, size=min(CHUNK, 4 * gaps.size), bits=bits)
        kept = exp_minus_ratio(gaps[proposals] * rate.numerator, rate.denominator, bits=bits)
        if kept.any():
            return int(proposals[np.argmax(kept)])


def _gaps(scores: Ints) -> Ints:
    if scores.size == 0 or not np.issubdtype(scores.dtype, np.integer):
        raise ValueError("integer scores are needed, at least one")
    best, worst = int(scores.max()), int(scores.min())
    if best - worst >= 2**62:
        raise ValueError("scores span more than 62 bits")
    return (best - scores.astype(np.int64)).astype(np.int64)
