"""Two true answers to one question, and the probability of every report under each.

Reports with equal probabilities under both answers are one row. Everything comes from the operator's exact probabilities,
report by report; its shortcuts (gamma, epsilon, measures) are not trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import product
from math import comb, inf, log, prod
from typing import Any

import numpy as np

from tidegate.arrays import Floats
from tidegate.operators import BasketOperator, ChoiceOperator, Operator, PrivSet, Report
from tidegate.operators.basket_plans import SetOperator
from tidegate.operators.mask import FlipPlans
from tidegate.policy.attributes import Items, Numeric
from tidegate.policy.calendar import Moment, Timestamp
from tidegate.policy.categories import Category, Text
from tidegate.policy.collection import Question, operator_for

MOST_CELLS = 4_000_000  # reports times values up to which all are compared; above it, values are sampled over the range
SOME = 60  # sampled values
MOST_SAMPLED = 30_000_000  # reports times sampled values
MOST_CLASSES = 200  # members of a set up to which its exact probabilities are computed
LARGEST = 6  # items of a basket up to which pairs of baskets are compared


@dataclass(frozen=True)
class ValuePair:
    """Two true answers (codes), the probability of every class of reports under each, and the class of a report."""

    here: int
    there: int
    chances: Floats  # (classes, 2)
    class_of: Callable[[Report], int]

    @property
    def loss(self) -> float:
        """The largest ratio of the two probabilities, as a logarithm; infinite if a report rules an answer out."""
        seen = self.chances[self.chances.max(axis=1) > 0]
        low, high = seen.min(axis=1), seen.max(axis=1)
        return inf if (low == 0).any() else max(0.0, log(float((high / low).max())))

    @property
    def advantage(self) -> float:
        """How much more often the better guess is right than wrong for two equally likely answers: total variation."""
        return float(np.abs(self.chances[:, 0] - self.chances[:, 1]).sum() / 2)

    def log_ratios(self) -> Floats:
        """Return the log-likelihood ratio of every class for the first answer, clipped to 700."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.log(self.chances[:, 0]) - np.log(self.chances[:, 1])
        return np.asarray(np.clip(np.nan_to_num(ratios, nan=0.0, posinf=700.0, neginf=-700.0), -700, 700))


def value_pairs(question: Question, operator: Operator) -> list[ValuePair]:
    """Return pairs of true answers, the best distinguished first; empty if their reports cannot be enumerated."""
    if isinstance(operator, BasketOperator):
        pairs = list(_baskets(operator))
    elif isinstance(operator, ChoiceOperator):
        pairs = [_choices(operator)]
    elif operator.form == "set":
        pairs = _members(operator)
    else:
        pairs = [_codes(operator)]
    return sorted(pairs, key=lambda pair: (pair.loss, pair.advantage), reverse=True)


def plain_answer(question: Question) -> Any:
    """Return an answer that any device accepts: the first value, or the smallest basket."""
    operator = operator_for(question)
    if not isinstance(operator, BasketOperator) or operator.operator.fixed is not None:
        return answer_of(question, 0)
    return answer_of(question, (1 << operator.operator.sizes[0]) - 1)


def answer_of(question: Question, code: int) -> Any:
    """Return a value that a person would give and that has this code."""
    universe = question.universe
    if isinstance(universe, Text):
        return "a"  # texts are not enumerated
    if isinstance(universe, Items):
        return [word for item, word in enumerate(universe.vocabulary) if code >> item & 1]
    if isinstance(universe, Timestamp):
        return universe.first + timedelta(seconds=code * universe.step)  # two hours of a year share a label
    if isinstance(universe, Moment):
        return universe.label(code)
    if isinstance(universe, Numeric):
        return universe.value(universe.bin_starts()[code] if universe.cuts else code)
    values = universe.values if isinstance(universe, Category) else ()
    return values[code] if code < len(values) else None


# Numbers and single categories


def listed_values(operator: Operator) -> list[int]:
    """Return all values, or values spread over the range if reports times values are too many."""
    if operator.report_size * operator.values <= MOST_CELLS:
        return list(range(operator.values))
    count = max(2, min(SOME, MOST_SAMPLED // operator.report_size))
    listed = {*map(int, np.linspace(0, operator.values - 1, count))}
    return sorted(listed | ({1, operator.values - 2} if count == SOME else set()))


def channel_table(operator: Operator, values: list[int]) -> Floats:
    """Return P(report | value), (reports, values), for operators whose report is a code."""
    if operator.report_size * len(values) <= 20_000:
        return np.array([[float(operator.probability(z, v)) for v in values] for z in range(operator.report_size)])
    return np.stack([operator.column(value) for value in values], axis=1)


def _codes(operator: Operator) -> ValuePair:
    values = listed_values(operator)
    table = channel_table(operator, values)
    here, there = _farthest(table)
    return ValuePair(values[here], values[there], table[:, [here, there]], lambda report: _code(report))


def _farthest(table: Floats) -> tuple[int, int]:
    """Return the two columns that a report distinguishes best; of several such pairs, one whose reports differ most."""
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


# Categories reported as sets


def _members(operator: Operator) -> list[ValuePair]:
    """Return the first two values: sets with the same of them, and as many others, are equally likely under both."""
    if operator.values > MOST_CLASSES:
        return []
    others = operator.values - 2
    classes = list(product((0, 1), (0, 1), range(others + 1)))
    chances = [[_class(operator, value, first, second, more) for value in (0, 1)] for first, second, more in classes]
    indexes = {key: index for index, key in enumerate(classes)}

    def class_of(report: Report) -> int:
        members = set(report) if isinstance(report, list) else set()
        return indexes.get((int(0 in members), int(1 in members), len(members - {0, 1})), -1)

    return [ValuePair(0, 1, np.array(chances), class_of)]


def _class(operator: Operator, value: int, first: int, second: int, more: int) -> float:
    report = [*([0] if first else []), *([1] if second else []), *range(2, 2 + more)]
    if not operator.accepts(report):
        return 0.0
    return float(comb(operator.values - 2, more) * operator.probability(report, value))


# Chosen options


def _choices(operator: ChoiceOperator) -> ValuePair:
    """Compare as many options as possible with none."""
    here, there = range(operator.choose), range(0)
    if isinstance(operator, PrivSet):
        return _padded_choices(operator, here, there)
    codes = range(operator.report_size)
    chances = [[float(operator.probability_of(z, basket)) for basket in (here, there)] for z in codes]
    return ValuePair(_bits(here), _bits(there), np.array(chances), _code)


def _padded_choices(operator: PrivSet, here: range, there: range) -> ValuePair:
    """Sets with as many of the choices, of the blanks and of the other options are equally likely under both."""
    groups = (here, range(operator.items, operator.report_size), range(operator.choose, operator.items))
    counts = [range(min(len(group), operator.size) + 1) for group in groups]
    classes = [cls for cls in product(*counts) if sum(cls) == operator.size]
    chances = []
    for cls in classes:
        report = sorted(code for group, count in zip(groups, cls, strict=True) for code in group[:count])
        ways = prod(comb(len(group), count) for group, count in zip(groups, cls, strict=True))
        chances.append([float(ways * operator.probability_of(report, basket)) for basket in (here, there)])
    indexes = {cls: index for index, cls in enumerate(classes)}

    def class_of(report: Report) -> int:
        members = report if isinstance(report, list) else []
        return indexes.get(tuple(sum(code in group for code in members) for group in groups), -1)

    return ValuePair(_bits(here), _bits(there), np.array(chances), class_of)


# Baskets


def _baskets(operator: BasketOperator) -> Iterator[ValuePair]:
    """Yield baskets that share no item, or all but one; of one size if sizes are sent, otherwise also of two."""
    sizes = [size for size in _sizes(operator) if size <= LARGEST]
    sizes_are_sent = operator.operator.needs_size
    for first in sizes:
        for second in sizes:
            for common in {0, min(first, second) - 1, min(first, second)}:
                apart = first + second - common  # items in either
                if (
                    common >= 0
                    and apart > common
                    and (first == second or not sizes_are_sent)
                    and apart <= operator.items
                ):
                    yield _two_baskets(operator, first, second, common)


def _sizes(operator: BasketOperator) -> list[int]:
    fixed = operator.operator.fixed
    return [size for size in operator.operator.taken_sizes if fixed is None or size <= 2 * fixed]


def _two_baskets(operator: BasketOperator, first: int, second: int, common: int) -> ValuePair:
    """Compare two baskets. Items of neither are added independently of the basket, so the vocabulary leaves them out."""
    items = first + second - common
    here, there = range(first), range(first - common, items)
    small = shrink(operator.operator, items, (first, second))
    counts = (first - common, common, second - common)
    classes = list(product(*(range(count + 1) for count in counts)))
    starts = (0, first - common, first)
    chances = [[_chance(small, cls, starts, counts, basket) for basket in (here, there)] for cls in classes]
    indexes = {key: index for index, key in enumerate(classes)}

    def class_of(report: Report) -> int:
        members = [item for item in report if item < items] if isinstance(report, list) else []
        seen = [
            sum(start <= item < start + count for item in members) for start, count in zip(starts, counts, strict=True)
        ]
        return indexes.get((seen[0], seen[1], seen[2]), -1)

    return ValuePair(_bits(here), _bits(there), np.array(chances), class_of)


def shrink(operator: SetOperator, items: int, sizes: Iterable[int]) -> SetOperator:
    """Return the same operator on the first few items, for baskets of these sizes."""
    if operator.flip is not None:
        return replace(operator, vocabulary_size=items, plans=FlipPlans(*operator.flip, min(items, max(sizes))))
    plans = operator.plans if operator.fixed is not None else {size: operator.plans[size] for size in sizes}
    return replace(operator, vocabulary_size=items, plans=plans)


def _chance(
    small: SetOperator, cls: tuple[int, ...], starts: tuple[int, ...], counts: tuple[int, ...], basket: range
) -> float:
    """Return the probability of all reports of a class."""
    ways = prod(comb(count, seen) for count, seen in zip(counts, cls, strict=True))
    report = [item for start, count in zip(starts, cls, strict=True) for item in range(start, start + count)]
    return float(ways * small.probability(report, basket))


def _bits(basket: range) -> int:
    return sum(1 << item for item in basket)
