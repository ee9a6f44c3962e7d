"""The channel of an operator as plain data, from which reconstruction builds a matrix or products by FFT."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.arrays import Floats

LONGEST_DENSE = 512  # values; beyond, products by FFT are cheaper (100 values: 10 against 43 us; 400: 521 against 160)


@dataclass(frozen=True, eq=False)
class ChannelSpec:
    """P(report | value): `matrix` (reports, values), or shifted copies of a kernel: kernel[s - j] + background[s].

    Args:
        clipped: The number of reports at either end that are never sent. The first or last possible report is sent instead.
    """

    values: int
    matrix: Floats | None = None
    kernel: Floats | None = None
    background: Floats | None = None
    clipped: int = 0


@dataclass(frozen=True)
class Support:
    """Probabilities that a report supports the true category, a false one, and two at once."""

    true: float
    false: float
    pair_with_true: float
    pair_without: float

    @classmethod
    def response(cls, categories: int, *, epsilon: float) -> Support:
        """Randomized response: the true category e^epsilon times as often as any other."""
        false = 1 / (exp(epsilon) + categories - 1)
        return cls(exp(epsilon) * false, false, 0.0, 0.0)

    @classmethod
    def unary(cls, *, epsilon: float) -> Support:
        """Optimized unary encoding (Wang et al. 2017): the true bit is set with probability 1/2."""
        true, false = 0.5, 1 / (exp(epsilon) + 1)
        return cls(true, false, true * false, false**2)

    @classmethod
    def bits(cls, true: float, false: float) -> Support:
        """Any unary encoding whose bits are drawn independently."""
        return cls(true, false, true * false, false**2)

    @classmethod
    def subset(cls, categories: int, size: int, *, epsilon: float) -> Support:
        """Subset selection (Ye & Barg 2018): a set of `size`; sets with the true category are e^epsilon times as likely."""
        n, w = categories, size
        true = w * exp(epsilon) / (w * exp(epsilon) + n - w)
        others = true * (w - 1) + (1 - true) * w  # expected number of false categories in a report
        pairs = true * (w - 1) * (w - 2) + (1 - true) * w * (w - 1)
        without = pairs / ((n - 1) * (n - 2)) if n > 2 else 0.0
        return cls(true, others / (n - 1), true * (w - 1) / (n - 1), without)
