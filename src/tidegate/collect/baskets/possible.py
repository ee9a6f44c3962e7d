"""How many items a report can have: what no basket gives was not sent by a client.

All items are treated alike, so that whether a report can happen depends on how many items it names, and not on which.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate

from tidegate.policy.setplans import SetOperator, SizePlan

Span = tuple[int, int]  # from and to, both possible, and all between


def possible_counts(operator: SetOperator, size: int | None = None) -> tuple[bool, ...]:
    """Of every number of items, 0 to all of the vocabulary, whether a report can have so many: of baskets of one size, or
    of any that is taken."""
    steps = [0] * (operator.vocabulary_size + 2)
    for low, high in _spans(operator, size):
        steps[low] += 1
        steps[high + 1] -= 1
    return tuple(open_spans > 0 for open_spans in accumulate(steps[:-1]))


def _spans(operator: SetOperator, size: int | None) -> Iterator[Span]:
    items = operator.vocabulary_size
    if operator.flip is not None:
        stay, come = operator.flip
        for held in operator.sizes if size is None else (size,):
            (least, most), (few, many) = _of(stay, held), _of(come, items - held)
            yield least + few, most + many
    elif operator.fixed is not None:
        plan = operator.plans[operator.fixed]
        for held in range(min(plan.size, items) + 1):  # larger baskets are cut down to one of these
            yield from _planned(plan, held, items)
    else:
        for held in operator.sizes if size is None else (size,):
            yield from _planned(operator.plans[held], held, items)


def _planned(plan: SizePlan, held: int, items: int) -> Iterator[Span]:
    """Of a basket with `held` items, and blanks up to the size of the plan."""
    few, many = _of(plan.insert, items - held)
    for kept, chance in enumerate(plan.keep):
        if chance:
            yield max(0, kept - (plan.size - held)) + few, min(kept, held) + many


def _of(chance: Fraction, coins: int) -> Span:
    """How many of some coins can show heads."""
    return (coins if chance == 1 else 0), (0 if chance == 0 else coins)
