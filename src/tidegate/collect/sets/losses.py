"""The exact local loss of an operator on sets: the largest ratio of a report's probabilities under two baskets.

Of a report with b items the probability under a basket of r items depends on r and on q, how many are common, alone.
"""

from __future__ import annotations

from fractions import Fraction
from math import log

from tidegate.collect.sets.plan import SetOperator


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


def _said(operator: SetOperator, size: int) -> range:
    """Report sizes that matter: if any number of items can be common, one report shows all."""
    if operator.vocabulary_size >= 2 * size:
        return range(size, size + 1)
    return range(operator.vocabulary_size + 1)


def _window(operator: SetOperator, sizes: tuple[int, ...], said: int) -> list[Fraction]:
    """P(report | basket) of a report of `said` items, for every basket size and number of common items that can be."""
    every = operator.vocabulary_size
    return [
        operator.probability(range(said), range(said - common, said - common + size))
        for size in sizes
        for common in range(max(0, size + said - every), min(size, said) + 1)
    ]


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
