"""The exact local loss of an operator on sets: the largest ratio of a report's probabilities under two baskets.

The probability of a report with b items under a basket of r items depends only on r and on q, the number of common items.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, comb, log

from tidegate.operators.basket_plans import SetOperator

STEP = Fraction(1, 1_000_000)  # losses are rounded up to multiples of this
CACHED = 256  # operators whose loss is cached: every client of a collection needs the same one


@lru_cache(maxsize=CACHED)
def basket_loss(operator: SetOperator) -> Fraction | None:
    """Return the largest epsilon of one report of a basket, rounded up to six decimals; None if it is unlimited.

    Guarantee:
        e**epsilon is at least `largest_ratio`, verified in exact arithmetic.

    Needs:
        If the size is sent in clear (`needs_size`), baskets of one size are compared: the loss does not cover the size.
    """
    ratio = largest_ratio(operator)
    return None if ratio is None else rounded_loss(ratio)


def rounded_loss(ratio: Fraction) -> Fraction:
    """Return the smallest epsilon of six decimals with e**epsilon at or above a ratio, verified in exact arithmetic."""
    loss = max(Fraction(0), ceil((logarithm(ratio) - 1e-9) / float(STEP)) * STEP)
    while ratio > exponential_below(loss):
        loss += STEP
    return loss


@lru_cache(maxsize=CACHED)
def largest_ratio(operator: SetOperator) -> Fraction | None:
    """Return gamma; None if some report is impossible under one basket and possible under another.

    If sizes are sent in clear, baskets of one size are compared; otherwise any two accepted baskets.
    """
    if operator.flip is not None:
        return _flip_ratio(operator)
    if operator.fixed is None:
        return _worst(
            [_window(operator, (size,), shown) for size in operator.sizes for shown in _report_sizes(operator, size)]
        )
    sizes = tuple(range(min(operator.fixed, operator.vocabulary_size) + 1))  # a larger basket is a mixture of these
    return _worst([_window(operator, sizes, shown) for shown in _report_sizes(operator, operator.fixed)])


def logarithm(ratio: Fraction) -> float:
    """Return the logarithm of any fraction above 0, also one that exceeds the largest float."""
    return log(ratio.numerator) - log(ratio.denominator)


def exponential_below(power: Fraction) -> Fraction:
    """Return a rational number just below e^power: the first terms of a series of positive terms, truncated to 80 bits."""
    term = total = Fraction(1)
    number = 1
    while term * 2**80 > total or number <= power:
        term = term * power / number
        total += term
        number += 1
        term, total = _short(term), _short(total)
    return total


def _short(number: Fraction) -> Fraction:
    """Round down to 160 bits after the point, so that terms stay short."""
    return Fraction(number.numerator * 2**160 // number.denominator, 2**160)


def _report_sizes(operator: SetOperator, size: int) -> range:
    """Return the report sizes that matter: one is enough if any number of items can be common."""
    if operator.vocabulary_size >= 2 * size:
        return range(size, size + 1)
    return range(operator.vocabulary_size + 1)


def _window(operator: SetOperator, sizes: tuple[int, ...], shown: int) -> list[Fraction]:
    """Return P(report | basket) of a report of `shown` items, for every basket size and possible number of common items.

    Common factors are left out: powers of insert and of 1 - insert that all of them share.
    """
    every = operator.vocabulary_size
    return [
        _likelihood(operator, size, common, shown)
        for size in sizes
        for common in range(max(0, size + shown - every), min(size, shown) + 1)
    ]


def _likelihood(operator: SetOperator, size: int, common: int, shown: int) -> Fraction:
    plan = operator.plan(size)
    if plan.insert in (0, 1):
        return operator.probability(range(shown), range(shown - common, shown - common + size))
    blanks = plan.size - size
    stays = sum((plan.kept(common + extra) * comb(blanks, extra) for extra in range(blanks + 1)), Fraction(0))
    return stays * ((1 - plan.insert) / plan.insert) ** common / (1 - plan.insert) ** size


def _worst(windows: list[list[Fraction]]) -> Fraction | None:
    worst = Fraction(1)
    for window in windows:
        if max(window) == 0:
            continue
        if min(window) == 0:
            return None
        worst = max(worst, max(window) / min(window))
    return worst


def _flip_ratio(operator: SetOperator) -> Fraction | None:
    """Return gamma of a per-item flip: the baskets differ in as many items as their sizes allow."""
    keep, insert = operator.flip or (Fraction(0), Fraction(0))
    if keep == insert:
        return Fraction(1)
    if min(keep, insert, 1 - keep, 1 - insert) == 0:
        return None
    shown, hidden = keep / insert, (1 - keep) / (1 - insert)
    mine, yours = max(shown, hidden), max(1 / shown, 1 / hidden)
    most, every = operator.largest, operator.vocabulary_size
    shares = [(alone, min(most, every - alone)) for alone in range(min(most, every) + 1)]
    ours, theirs = max(shares, key=lambda pair: pair[0] * log(mine) + pair[1] * log(yours))
    return mine**ours * yours**theirs
