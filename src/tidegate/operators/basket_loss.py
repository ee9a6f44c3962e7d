"""The exact local loss of an operator on sets: the largest ratio of a report's probabilities under two baskets.

Of a report with b items the probability under a basket of r items depends on r and on q, how many are common, alone.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, comb, log

from tidegate.operators.basket_plans import SetOperator

STEP = Fraction(1, 1_000_000)  # losses are told in these
CACHED = 256  # operators whose loss is remembered: every client of a collection asks for the same one


@lru_cache(maxsize=CACHED)
def basket_loss(operator: SetOperator) -> Fraction | None:
    """What a report of a basket gives away at most: epsilon, rounded up to six decimals; None where it is unlimited.

    Guarantee:
        e**epsilon is at least `largest_ratio`: verified in whole numbers.

    Needs:
        Where the size is sent in clear (`needs_size`), baskets of one size are compared: the size is outside of it.
    """
    ratio = largest_ratio(operator)
    if ratio is None:
        return None
    loss = max(Fraction(0), ceil((logarithm(ratio) - 1e-9) / float(STEP)) * STEP)
    while ratio > exponential_below(loss):
        loss += STEP
    return loss


@lru_cache(maxsize=CACHED)
def largest_ratio(operator: SetOperator) -> Fraction | None:
    """Gamma; None where some report is impossible under one basket and possible under another.

    Where sizes are told, baskets of one size are compared (a size in clear is outside of it); else any two that are taken.
    """
    if operator.flip is not None:
        return _flip_ratio(operator)
    if operator.fixed is None:
        return _worst([_window(operator, (size,), said) for size in operator.sizes for said in _said(operator, size)])
    sizes = tuple(range(min(operator.fixed, operator.vocabulary_size) + 1))  # a larger one is a mixture of these
    return _worst([_window(operator, sizes, said) for said in _said(operator, operator.fixed)])


def logarithm(ratio: Fraction) -> float:
    """Of any fraction above 0, also one that no float can hold."""
    return log(ratio.numerator) - log(ratio.denominator)


def exponential_below(power: Fraction) -> Fraction:
    """A rational number just below e^power: the first terms of a series of positive terms, cut off to 80 bits."""
    term = total = Fraction(1)
    number = 1
    while term * 2**80 > total or number <= power:
        term = term * power / number
        total += term
        number += 1
        term, total = _short(term), _short(total)
    return total


def _short(number: Fraction) -> Fraction:
    """Rounded down to 160 bits behind the point: terms stay short."""
    return Fraction(number.numerator * 2**160 // number.denominator, 2**160)


def _said(operator: SetOperator, size: int) -> range:
    """Report sizes that matter: if any number of items can be common, one report shows all."""
    if operator.vocabulary_size >= 2 * size:
        return range(size, size + 1)
    return range(operator.vocabulary_size + 1)


def _window(operator: SetOperator, sizes: tuple[int, ...], said: int) -> list[Fraction]:
    """P(report | basket) of a report of `said` items, for every basket size and number of common items that can be.

    But for what all of them share: insert to the number of items said, 1 - insert to that of the others.
    """
    every = operator.vocabulary_size
    return [
        _likelihood(operator, size, common, said)
        for size in sizes
        for common in range(max(0, size + said - every), min(size, said) + 1)
    ]


def _likelihood(operator: SetOperator, size: int, common: int, said: int) -> Fraction:
    plan = operator.plan(size)
    if plan.insert in (0, 1):
        return operator.probability(range(said), range(said - common, said - common + size))
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
    """Items of one basket alone count by keep, those of the other alone by insert: as many as the sizes allow."""
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
