"""Exact selection from a public list by the exponential mechanism or by permute-and-flip.

Permute-and-flip is never worse than the exponential mechanism at the same loss.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.arrays import Ints
from tidegate.noise.bernoulli import exp_minus_ratio
from tidegate.noise.bits import Bits, below

CHUNK = 4096
AT_ONCE = 2**16  # proposals for many choices


def exponential_choice(scores: Ints, rate: Fraction, *, bits: Bits) -> int:
    """Draw an index i with probability proportional to exp(rate * scores[i]).

    Guarantee:
        Exact for integer scores and a rational rate: propose uniformly, accept with a coin of probability
        exp(-rate * (best - score)). No floating point, no Gumbel noise.

    Needs:
        At least one integer score; 0 < rate, its denominator at most 2**62. Whether the call succeeds never
        depends on the scores.

    Reference:
        McSherry, Talwar 2007; the coin: Canonne, Kamath, Steinke 2020.
    """
    gaps = _gaps(scores)
    if rate <= 0 or rate.denominator > 2**62:
        raise ValueError("The rate must be positive, with a denominator of at most 2**62.")
    while True:
        proposals = below(gaps.size, size=min(CHUNK, 4 * gaps.size), bits=bits)
        accepted = exp_minus_ratio(gaps[proposals], rate, bits=bits)
        if accepted.any():
            return int(proposals[np.argmax(accepted)])


def exponential_choices(scores: Ints, rate: Fraction, *, size: int, bits: Bits) -> Ints:
    """Draw `size` independent indices, each as `exponential_choice` does, in a few vectorized calls.

    Guarantee:
        Exact, like a single choice: every index takes its own first accepted proposal.
    """
    gaps = _gaps(scores)
    if rate <= 0 or rate.denominator > 2**62:
        raise ValueError("The rate must be positive, with a denominator of at most 2**62.")
    chosen = np.empty(size, np.int64)
    waiting = np.arange(size)
    while waiting.size:
        each = max(1, min(4 * gaps.size, AT_ONCE // waiting.size))
        proposals = below(gaps.size, size=waiting.size * each, bits=bits)
        accepted = exp_minus_ratio(gaps[proposals], rate, bits=bits).reshape(waiting.size, each)
        done = accepted.any(axis=1)
        first = proposals.reshape(waiting.size, each)[done, np.argmax(accepted[done], axis=1)]
        chosen[waiting[done]] = first
        waiting = waiting[~done]
    return chosen


def _gaps(scores: Ints) -> NDArray[Any]:
    """Return each score's distance from the best: 64-bit if it fits, otherwise Python integers."""
    if scores.size == 0 or not np.issubdtype(scores.dtype, np.integer):
        raise ValueError("At least one score is required, and all scores must be integers.")
    wide = scores.astype(object)
    gaps = int(scores.max()) - (scores.astype(np.int64) if _fits(scores) else wide)
    return np.asarray(gaps)


def _fits(scores: Ints) -> bool:
    return int(scores.min()) > -(2**61) and int(scores.max()) < 2**61


FINEST = 2**62  # limit of a rate's denominator


def permute_and_flip(scores: Ints, rate: Fraction, *, bits: Bits) -> int:
    """Return the index that permute-and-flip selects.

    In random order, each index is accepted with probability exp(-rate * (best - score)). All coins are thrown at once: the
    first head in a random order is distributed as a head drawn uniformly from all heads.

    Guarantee:
        Pure loss 2 * rate * s if one unit changes every score by at most s (rate * s if it can change them in one
        direction only). Exact for integer scores and a rational rate: no floating point is used.

    Needs:
        At least one integer score; 0 <= rate, its denominator at most 2**62; `rate_for` returns such a rate.

    Reference:
        McKenna, Sheldon 2020, arXiv:2010.12603, Algorithm 1; the coin: Canonne, Kamath, Steinke 2020.
    """
    gaps = _gaps(scores)
    if rate < 0 or rate.denominator > FINEST:
        raise ValueError("The rate must be at least 0, with a denominator of at most 2**62.")
    heads = np.flatnonzero(exp_minus_ratio(gaps, rate, bits=bits))
    return int(heads[below(heads.size, size=1, bits=bits)[0]])


def rate_for(sensitivity: int, epsilon: Fraction) -> Fraction:
    """Return a rate that costs at most `epsilon`: epsilon / (2 sensitivity), rounded down if it does not fit."""
    rate = epsilon / (2 * sensitivity)
    return rate if rate.denominator <= FINEST else Fraction(math.floor(rate * FINEST), FINEST)
