"""Sampled claim: the variance of every estimate from a million reports is that of the formula, within 2%.

Counts of the reports of a million people are drawn from the exact channel, many times. The mean of S squared errors has a relative
standard deviation of about sqrt(2 / S), and up to twice as much where the errors of one poll are correlated: 0.3 to 0.6% in the long run
(tolerance 2%) and 2.2 to 4.5% in every run (tolerance 20%). Correct code fails with a probability below 1e-3 for one operator in a fresh
run. A poll has only one mean: its variance is computed from the channel without sampling as well.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from claims.probabilities import SEED

from tidegate.operators import (
    HashResponse,
    Hybrid,
    OneOption,
    Operator,
    Prefix,
    PrivSet,
    ProjectiveGeometry,
    Pure,
    RandomizedResponse,
    SubsetSelection,
    Unary,
)
from tidegate.operators.choice import ChoiceOperator, bits_of

pytestmark = pytest.mark.claim
F, PEOPLE = Fraction, 1_000_000
CATEGORIES: dict[str, Pure] = {
    "response": RandomizedResponse(20, epsilon=F(2)),
    "response, two layers": RandomizedResponse(20, epsilon=F(2), each=F(1)),
    "unary": Unary(8, epsilon=F(1)),
    "subset": SubsetSelection(8, epsilon=F(1)),
    "projective": ProjectiveGeometry(40, epsilon=F(1)),
    "projective, large prime": ProjectiveGeometry(40, epsilon=F(3)),
    "hash": HashResponse(20, epsilon=F(2)),
    "hash, two layers": HashResponse(20, epsilon=F(2), each=F(1)),
}
OPTIONS: dict[str, ChoiceOperator] = {
    "privset": PrivSet(5, epsilon=F(2), choose=2),
    "one option": OneOption(6, epsilon=F(1)),
}
RUNS = [pytest.param(4_000, 0.2), pytest.param(200_000, 0.02, marks=pytest.mark.long)]  # squares, tolerance


def drawn(channel: np.ndarray, truth: np.ndarray, runs: int, name: str) -> np.ndarray:
    """Counts of every report, one row for each poll."""
    expected = channel @ truth
    seed = list(f"{SEED}/{name}".encode())
    return np.random.default_rng(seed).multinomial(PEOPLE, expected / expected.sum(), runs)


def table(operator: Operator) -> np.ndarray:
    """The exact channel as floating-point numbers."""
    return np.array([[float(chance) for chance in row] for row in operator.exact_channel()])


def supports(operator: Pure, counts: np.ndarray) -> np.ndarray:
    """How many reports support each value; of sets, those that contain it."""
    if operator.form == "code":
        return np.array([operator.supports(row) for row in counts])
    contains = np.array([[value in report for value in range(operator.values)] for report in operator.reports()])
    return np.asarray(counts @ contains)


@pytest.mark.parametrize(("squares", "tolerance"), RUNS)
@pytest.mark.parametrize("name", CATEGORIES)
def test_variance_of_a_category_is_that_of_the_formula(name: str, squares: int, tolerance: float) -> None:
    operator = CATEGORIES[name]
    truth = np.arange(1, operator.values + 1) / np.arange(1, operator.values + 1).sum()
    counts = drawn(table(operator), truth, squares // operator.values, name)
    p, q = float(operator.p), float(operator.q)
    errors = (supports(operator, counts) / PEOPLE - q) / (p - q) - truth
    formula = np.array([operator.variance(share) + share * (1 - share) for share in truth])
    assert (errors**2 * PEOPLE / formula).mean() == pytest.approx(1, abs=tolerance)


@pytest.mark.parametrize(("squares", "tolerance"), RUNS)
@pytest.mark.parametrize("name", OPTIONS)
def test_variance_of_an_option_is_that_of_the_formula(name: str, squares: int, tolerance: float) -> None:
    operator = OPTIONS[name]
    sets = [value for value in range(operator.values) if value.bit_count() <= operator.choose]
    truth = np.array([1.0 + value for value in sets])
    truth /= truth.sum()
    counts = drawn(table(operator)[:, sets], truth, squares // operator.items, name)
    chosen = np.array([[option in bits_of(value) for option in range(operator.items)] for value in sets])
    by_code = counts
    if operator.form == "set":
        by_code = counts @ np.array(
            [[code in report for code in range(operator.report_size)] for report in operator.reports()]
        )
    seen = [operator.seen(row.tolist(), PEOPLE) for row in by_code]
    supporting, reports = (np.array([part[side] for part in seen]) for side in (0, 1))
    p, q = float(operator.p), float(operator.q)
    errors = (supporting / reports - q) / (p - q) - truth @ chosen
    formula = np.array([operator.share_variance(share) for share in truth @ chosen])
    assert (errors**2 * PEOPLE / formula).mean() == pytest.approx(1, abs=tolerance)


@pytest.mark.parametrize(("squares", "tolerance"), RUNS)
def test_variance_of_a_mean_is_that_of_the_formula(squares: int, tolerance: float) -> None:
    operator = Hybrid(11, epsilon=F(2))
    truth = np.arange(1, 12) / np.arange(1, 12).sum()
    channel = np.array([operator.column(value) for value in range(11)]).T
    scores, values = operator.scores(), np.arange(11)
    formula = sum(share * operator.noise_variance(value) for value, share in enumerate(truth))
    formula += truth @ values**2 - (truth @ values) ** 2
    expected = channel @ truth
    assert expected @ scores**2 - (expected @ scores) ** 2 == pytest.approx(formula, rel=1e-9)
    parts = [drawn(channel, truth, squares // 20, f"hybrid {part}") @ scores / PEOPLE for part in range(4)]
    ratio = np.concatenate(parts).var() * PEOPLE / formula
    assert ratio == pytest.approx(1, abs=2 * tolerance)  # of 40,000 or 800 polls: more than 5 standard errors


@pytest.mark.parametrize(("squares", "tolerance"), RUNS)
def test_variance_of_a_prefix_is_that_of_the_formula(squares: int, tolerance: float) -> None:
    operator = Prefix(epsilon=F(2), lengths=(4,))
    truth = np.arange(1, 17) / np.arange(1, 17).sum()
    [level], reports = operator.levels, list(operator.reports())
    counts = drawn(table(operator), truth, squares // 16, "prefix")
    points = np.array([operator.read(report)[1] for report in reports])
    vectors = np.array([operator.vector(value, level) for value in range(16)])
    holds = points @ vectors.T % operator.prime == 0
    p, q = float(level.p), float(level.q)
    errors = (counts @ holds / PEOPLE - q) / (p - q) - truth
    seen = q + (p - q) * truth
    assert (errors**2 * PEOPLE / (seen * (1 - seen) / (p - q) ** 2)).mean() == pytest.approx(1, abs=tolerance)
