"""Two true answers to one question, and how likely every report is under each: what an attacker compares.

Reports that say the same about the two are one row. Everything comes from the operator's own exact probabilities, looked
up report by report; none of its shortcuts (gamma, epsilon, measures) is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import comb, inf, log, prod
from typing import Any

import numpy as np

from tidegate.arrays import Floats
from tidegate.operators import BasketOperator, Operator, Report
from tidegate.operators.basket_plans import SetOperator
from tidegate.operators.mask import FlipPlans
from tidegate.policy.attributes import Category, Items, Numeric
from tidegate.policy.collection import Question, operator_for

MOST_CELLS = 4_000_000  # reports times values that are all compared; above it, values are spread over the range
SOME = 60  # values that stand for all where there are more
MOST_CLASSES = 200  # members of a set up to which its exact probabilities are looked up
LARGEST = 6  # items of a basket up to which pairs of baskets are compared


@dataclass(frozen=True)
class Twosome:
    """Two true answers (codes), the chance of every class of reports under each, and the class of a report."""

    here: int
    there: int
    chances: Floats  # (classes, 2)
    place: Callable[[Report], int]

    @property
    def loss(self) -> float:
        """The largest ratio of the two chances, as a logarithm; infinite where one report rules an answer out."""
        seen = self.chances[self.chances.max(axis=1) > 0]
        low, high = seen.min(axis=1), seen.max(axis=1)
        return inf if (low == 0).any() else max(0.0, log(float((high / low).max())))

    @property
    def advantage(self) -> float:
        """How much more often the better guess is right than wrong, of two equally likely answers: total variation."""
        return float(np.abs(self.chances[:, 0] - self.chances[:, 1]).sum() / 2)

    def favours(self) -> Floats:
        """For every class the logarithm of how much it speaks for the first answer, kept within 700."""
        with np.errstate(divide="ignore", invalid="ignore"):
            told = np.log(self.chances[:, 0]) - np.log(self.chances[:, 1])
        return np.asarray(np.clip(np.nan_to_num(told, nan=0.0, posinf=700.0, neginf=-700.0), -700, 700))


def twosomes(question: Question, operator: Operator) -> list[Twosome]:
    """Pairs of true answers, the one that a report tells apart best first; empty where their reports cannot be listed."""
    if isinstance(operator, BasketOperator):
        found = list(_baskets(operator))
    elif operator.form == "set":
        found = _members(operator)
    else:
        found = [_codes(operator)]
    return sorted(found, key=lambda pair: (pair.loss, pair.advantage), reverse=True)


def plain_answer(question: Question) -> Any:
    """An answer that any device takes: the first value, or the smallest basket."""
    operator = operator_for(question)
    if not isinstance(operator, BasketOperator) or operator.operator.fixed is not None:
        return answer_of(question, 0)
    return answer_of(question, (1 << operator.operator.sizes[0]) - 1)


def answer_of(question: Question, code: int) -> Any:
    """A value that a person would give and that has this code."""
    universe = question.universe
    if isinstance(universe, Items):
        return [word for item, word in enumerate(universe.vocabulary) if code >> item & 1]
    if isinstance(universe, Numeric):
        return universe.value(universe.bin_starts()[code] if universe.cuts else code)
    values = universe.values if isinstance(universe, Category) else ()
    return values[code] if code < len(values) else None


# Numbers and single categories


def listed_values(operator: Operator) -> list[int]:
    """All values, or some spread over the range where reports times values are too many."""
    if operator.report_size * operator.values <= MOST_CELLS:
        return list(range(operator.values))
    return sorted({*map(int, np.linspace(0, operator.values - 1, SOME)), 1, operator.values - 2})


def table_of(operator: Operator, values: list[int]) -> Floats:
    """P(report | value), (reports, values), for operators whose report is a code."""
    if operator.report_size * len(values) <= 20_000:
        return np.array([[float(operator.probability(z, v)) for v in values] for z in range(operator.report_size)])
    return np.stack([operator.column(value) for value in values], axis=1)


def _codes(operator: Operator) -> Twosome:
    values = listed_values(operator)
    table = table_of(operator, values)
    here, there = _farthest(table)
    return Twosome(values[here], values[there], table[:, [here, there]], lambda report: _code(report))


def _farthest(table: Floats) -> tuple[int, int]:
    """The two columns that some report tells apart best; of several such pairs one whose reports differ most."""
    high, low = table.max(axis=1), table.min(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(high > 0, high / low, 0.0)
    best = (
        np.flatnonzero(ratios >= ratios.max() * (1 - 1e-12))
        if np.isfinite(ratios.max())
        else np.flatnonzero(np.isinf(ratios))
    )
    pairs = {(int(table[z].argmax()), int(table[z].argmin())) for z in best[:: max(1, best.size // 200)]}
    return max(pairs, key=lambda pair: float(np.abs(table[:, pair[0]] - table[:, pair[1]]).sum()))


def _code(report: Report) -> int:
    return report if isinstance(report, int) else -1


# Categories that are reported as sets


def _members(operator: Operator) -> list[Twosome]:
    """The first two values: sets that hold the same of them, and as many others, are equally likely under both."""
    if operator.values > MOST_CLASSES:
        return []
    others = operator.values - 2
    classes = list(product((0, 1), (0, 1), range(others + 1)))
    chances = [[_class(operator, value, first, second, more) for value in (0, 1)] for first, second, more in classes]
    places = {one: place for place, one in enumerate(classes)}

    def place(report: Report) -> int:
        held = set(report) if isinstance(report, list) else set()
        return places.get((int(0 in held), int(1 in held), len(held - {0, 1})), -1)

    return [Twosome(0, 1, np.array(chances), place)]


def _class(operator: Operator, value: int, first: int, second: int, more: int) -> float:
    one = [*([0] if first else []), *([1] if second else []), *range(2, 2 + more)]
    if not operator.accepts(one):
        return 0.0
    return float(comb(operator.values - 2, more) * operator.probability(one, value))


# Baskets


def _baskets(operator: BasketOperator) -> Iterator[Twosome]:
    """Baskets that have nothing in common, or all but one item; of one size where sizes are told, else also of two."""
    sizes = [size for size in _sizes(operator) if size <= LARGEST]
    told = operator.operator.needs_size
    for one in sizes:
        for other in sizes:
            for common in {0, min(one, other) - 1, min(one, other)}:
                apart = one + other - common  # items of either
                if common >= 0 and apart > common and (one == other or not told) and apart <= operator.items:
                    yield _two_baskets(operator, one, other, common)


def _sizes(operator: BasketOperator) -> list[int]:
    fixed = operator.operator.fixed
    return [size for size in operator.operator.taken_sizes if fixed is None or size <= 2 * fixed]


def _two_baskets(operator: BasketOperator, one: int, other: int, common: int) -> Twosome:
    """The items of neither come in by coins that are the same for both: they are left out of the vocabulary."""
    held = one + other - common
    here, there = range(one), range(one - common, held)
    small = shrunk(operator.operator, held, (one, other))
    counts = (one - common, common, other - common)
    classes = list(product(*(range(count + 1) for count in counts)))
    starts = (0, one - common, one)
    chances = [[_chance(small, cls, starts, counts, basket) for basket in (here, there)] for cls in classes]
    places = {cls: place for place, cls in enumerate(classes)}

    def place(report: Report) -> int:
        said = [item for item in report if item < held] if isinstance(report, list) else []
        seen = [
            sum(start <= item < start + count for item in said) for start, count in zip(starts, counts, strict=True)
        ]
        return places.get((seen[0], seen[1], seen[2]), -1)

    return Twosome(_bits(here), _bits(there), np.array(chances), place)


def shrunk(operator: SetOperator, items: int, sizes: Iterable[int]) -> SetOperator:
    """The same operator on the first few items, for baskets of these sizes; what it does with other items is left out."""
    if operator.flip is not None:
        return replace(operator, vocabulary_size=items, plans=FlipPlans(*operator.flip, min(items, max(sizes))))
    plans = operator.plans if operator.fixed is not None else {size: operator.plans[size] for size in sizes}
    return replace(operator, vocabulary_size=items, plans=plans)


def _chance(
    small: SetOperator, cls: tuple[int, ...], starts: tuple[int, ...], counts: tuple[int, ...], basket: range
) -> float:
    """Of all reports of a class."""
    ways = prod(comb(count, seen) for count, seen in zip(counts, cls, strict=True))
    one = [item for start, many in zip(starts, cls, strict=True) for item in range(start, start + many)]
    return float(ways * small.probability(one, basket))


def _bits(basket: range) -> int:
    return sum(1 << item for item in basket)
