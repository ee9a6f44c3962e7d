"""Rules in two lists: established at a false-discovery rate, and candidates that may be chance.

The confidence of A -> B exceeds c if D = s(A and B) - c s(A) is above 0. D is linear in the reports, so its error is exact, without a ratio:
Var D = e_AB^2 + c^2 e_A^2 - 2 c cov, from the same reports.

The family of tests is fixed before the data are seen: every ordered candidate of a size, C(d, k) (2^k - 2) of k among d items. Rules that
mining did not list count as tested with p = 1. The rate q is split over the sizes (`rates`), so that all lists together keep it.

Reference:
    Benjamini, Yekutieli 2001 (any dependence); 2005 (false coverage rate); Fieller 1954 (the interval of a ratio).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb, inf, log, sqrt
from typing import Any, Protocol

import numpy as np

from tidegate.arrays import Bools, Floats, Ints
from tidegate.exact import say
from tidegate.extras import extra

with extra("collect", "Mining randomized baskets"):
    from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]

RATE = 0.05
SAMPLED = 10_000  # rules of a family from which the expected number of false candidates is estimated
GRID = np.linspace(-10, 10, 101)  # of D in standard errors
STEPS = 400


class Source(Protocol):
    """Estimated supports of one set of reports."""

    vocabulary_size: int

    def count(self, itemsets: Ints) -> tuple[Floats, Floats]:
        """Return the estimated support of every row of item codes, and its standard error."""

    def covariance(self, parts: Ints, wholes: Ints) -> Floats:
        """Return the covariance of two estimated supports, row by row."""


class Sides(Protocol):
    """A rule: its two sides."""

    @property
    def given(self) -> tuple[int, ...]: ...
    @property
    def then(self) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class Verdict:
    """The test of one rule, and the interval of its confidence if it is established."""

    p_value: float
    established: bool
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Screening:
    """The tests of all rules.

    Args:
        rate: The false-discovery rate of the established rules, over all sizes together.
        tested: The number of tests of each size.
        expected_false: How many of the candidates are expected to be chance (an empirical-Bayes estimate).

    Guarantee:
        The expected share of false rules among the established ones is at most `rate`, for any dependence of the estimates
        and as far as D is normal. If no rule is true, the probability that any is established is at most `rate`. The intervals
        of established rules miss their confidences at an expected share of at most `rate`.
    """

    rate: float
    tested: Mapping[int, int]
    established: int
    candidates: int
    expected_false: float

    def __str__(self) -> str:
        tests = sum(self.tested.values())
        return (
            f"{_rules(self.established)} established (false-discovery rate {say(100 * self.rate)}%, {tests:,} tests); "
            f"{_rules(self.candidates)} may be chance, of which about {self.expected_false:,.0f} are expected to be false"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        tested = {str(size): count for size, count in self.tested.items()}
        numbers = {"established": self.established, "candidates": self.candidates}
        return {"rate": self.rate, "tested": tested, **numbers, "expected_false": self.expected_false}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Screening:
        """Return what `to_dict` wrote."""
        tested = {int(size): count for size, count in data["tested"].items()}
        return cls(data["rate"], tested, data["established"], data["candidates"], data["expected_false"])


@dataclass(frozen=True, eq=False)
class RuleTests:
    """D of some rules in standard errors, with the moments from which an interval follows."""

    scores: Floats
    whole: Floats
    part: Floats
    whole_error: Floats
    part_error: Floats
    together: Floats

    @property
    def p_values(self) -> Floats:
        return np.asarray(ndtr(-self.scores))


def screen(
    rules: Sequence[Sides], source: Source, *, min_confidence: float, largest: int | None = None, rate: float = RATE
) -> tuple[list[Verdict], Screening]:
    """Test all listed rules. `largest`, if it is set, must not depend on the data.

    Returns:
        The verdict on each rule, in their order, and a summary.
    """
    by_size: dict[int, list[int]] = defaultdict(list)
    for index, rule in enumerate(rules):
        by_size[len(rule.given) + len(rule.then)].append(index)
    verdicts: list[Verdict | None] = [None] * len(rules)
    tested, expected = {}, 0.0
    for size, indexes in sorted(by_size.items()):
        tested[size] = family_size(source.vocabulary_size, size)
        tests = score_rules(
            source,
            [rules[index].given for index in indexes],
            [_items(rules[index]) for index in indexes],
            min_confidence,
        )
        level = rate_of(size, largest, rate) / (tested[size] * harmonic(tested[size]))
        is_established = step_up(tests.p_values, level)
        low, high = fieller(tests, float(ndtri(1 - is_established.sum() * level / 2)) if is_established.any() else inf)
        for position, index in enumerate(indexes):
            ends = (float(low[position]), float(high[position])) if is_established[position] else (None, None)
            verdicts[index] = Verdict(float(tests.p_values[position]), bool(is_established[position]), *ends)
        if not is_established.all():
            family = score_rules(source, *_sample(source.vocabulary_size, size), min_confidence)
            expected += expected_false(family.scores, tests.scores[~is_established])
    complete = [verdict for verdict in verdicts if verdict is not None]
    established = sum(verdict.established for verdict in complete)
    return complete, Screening(rate, tested, established, len(complete) - established, expected)


def family_size(items: int, size: int) -> int:
    """Return the number of ordered candidates of a size: all ways to divide `size` of the items into two sides."""
    return comb(items, size) * int(2**size - 2)


def rate_of(size: int, largest: int | None, rate: float) -> float:
    """Return the part of the rate for rules of a size: a half for pairs, then halves of the rest; the last size gets all of it."""
    return rate / float(2 ** (size - 2 if size == largest else size - 1))


def harmonic(count: int) -> float:
    """Return 1 + 1/2 + ... + 1/count, rounded up."""
    if count <= 1000:
        return sum(1 / number for number in range(1, count + 1))
    return log(count) + 0.5772156649015329 + 1 / (2 * count)


def step_up(p_values: Floats, level: float) -> Bools:
    """Return which tests are rejected: the largest i with p_(i) <= i * level decides."""
    order = np.sort(p_values)
    below = np.flatnonzero(order <= level * np.arange(1, order.size + 1))
    return np.asarray(p_values <= (order[below[-1]] if below.size else -1.0))


def score_rules(
    source: Source, parts: Sequence[tuple[int, ...]], wholes: Sequence[tuple[int, ...]], confidence: float
) -> RuleTests:
    """Test s(whole) > confidence * s(part) for each pair of itemsets of one size; a variance of 0 or less gives a score of 0."""
    columns = np.zeros((5, len(parts)))
    for chosen in _by_length(parts):
        part, whole = np.array([parts[row] for row in chosen]), np.array([wholes[row] for row in chosen])
        columns[0:2, chosen], columns[2:4, chosen] = source.count(whole), source.count(part)
        columns[4, chosen] = source.covariance(part, whole)
    whole, whole_error, part, part_error, together = columns
    variance = whole_error**2 + (confidence * part_error) ** 2 - 2 * confidence * together
    deviation = np.sqrt(np.maximum(variance, 0))
    scores = np.divide(whole - confidence * part, deviation, out=np.zeros_like(whole), where=deviation > 0)
    return RuleTests(scores, whole, part, whole_error, part_error, together)


def fieller(tests: RuleTests, deviations: float) -> tuple[Floats, Floats]:
    """Return all confidences c with |s_AB - c s_A| within this many standard errors, clipped to [0, 1]."""
    if not np.isfinite(deviations):
        return np.zeros_like(tests.whole), np.ones_like(tests.whole)
    factor = deviations**2
    square = tests.part**2 - factor * tests.part_error**2
    middle = tests.whole * tests.part - factor * tests.together
    constant = tests.whole**2 - factor * tests.whole_error**2
    root = np.sqrt(np.maximum(middle**2 - square * constant, 0))
    is_bounded = square > 0
    divisor = np.where(is_bounded, square, 1.0)
    low = np.where(is_bounded, (middle - root) / divisor, 0.0)
    high = np.where(is_bounded, (middle + root) / divisor, 1.0)
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def expected_false(family: Floats, candidates: Floats) -> float:
    """Return how many candidates are expected to have D <= 0.

    The distribution of the true D in standard errors is estimated from the scores of the family by maximum likelihood on a grid; each
    candidate then has a posterior probability of D <= 0.
    """
    counts, edges = np.histogram(np.clip(family, GRID[0], GRID[-1]), bins=200, range=(GRID[0], GRID[-1]))
    likelihood = _normal((edges[:-1] + edges[1:]) / 2)
    weights = np.full(GRID.size, 1 / GRID.size)
    for _ in range(STEPS):
        weights = weights * (likelihood.T @ (counts / np.maximum(likelihood @ weights, 1e-300))) / counts.sum()
    posterior = _normal(np.clip(candidates, GRID[0], GRID[-1])) * weights
    return float((posterior[:, GRID <= 1e-9].sum(axis=1) / posterior.sum(axis=1)).sum())


def _normal(scores: Floats) -> Floats:
    return np.asarray(np.exp(-((scores[:, None] - GRID[None, :]) ** 2) / 2) / sqrt(2 * np.pi))


def _sample(items: int, size: int) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return parts and wholes of a family: all of a small family of pairs, else a sample that does not depend on the data."""
    if size == 2 and family_size(items, 2) <= SAMPLED:
        pairs = [(first, second) for first in range(items) for second in range(items) if first != second]
        return [(first,) for first, _ in pairs], [tuple(sorted(pair)) for pair in pairs]
    rng = np.random.default_rng(size)
    wholes = [tuple(sorted(rng.choice(items, size, replace=False).tolist())) for _ in range(SAMPLED // (size - 1))]
    parts = []
    for whole in wholes:
        inside = rng.permutation(size)[: rng.integers(1, size)]
        parts.append(tuple(whole[index] for index in np.sort(inside)))
    return parts, wholes


def _by_length(parts: Sequence[tuple[int, ...]]) -> Iterator[list[int]]:
    lengths: dict[int, list[int]] = defaultdict(list)
    for row, part in enumerate(parts):
        lengths[len(part)].append(row)
    yield from lengths.values()


def _items(rule: Sides) -> tuple[int, ...]:
    return tuple(sorted((*rule.given, *rule.then)))


def _rules(count: int) -> str:
    return "1 rule" if count == 1 else f"{count:,} rules"
