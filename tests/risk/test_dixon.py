"""Dixon's critical values: by quadrature in another form, by sampling, and as printed."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from claims.probabilities import SEED, at_least
from reference.exposure import dixon_tail

from tidegate.errors import Unsupported
from tidegate.risk.dixon import PRINTED, dixon_critical


@pytest.mark.parametrize(("number", "significance"), [(4, 0.2), (5, 0.05), (10, 0.2), (40, 0.1)])
def test_critical_value_is_exceeded_with_the_stated_probability(number: int, significance: float) -> None:
    assert dixon_tail(dixon_critical(number, significance), number) == pytest.approx(significance, abs=2e-9)


@pytest.mark.parametrize("significance", [0.9, 0.2, 0.1, 0.01, 1e-4])
def test_three_distances_follow_the_closed_form(significance: float) -> None:
    """Dixon 1951: Q of three normal variables has the density 3 sqrt(3) / (2 pi (1 - q + q^2))."""
    q = dixon_critical(3, significance)
    tail = 3 / math.pi * (math.pi / 6 - math.atan((2 * q - 1) / math.sqrt(3)))
    assert tail == pytest.approx(significance, abs=2e-9)


ALPHA, DRAWS = 1e-7, 100_000


def count_exceeding(number: int, critical: float) -> int:
    seed = [number, *SEED.encode()]
    sample = np.sort(np.random.default_rng(seed).standard_normal((DRAWS, number)), axis=1)
    q = (sample[:, -1] - sample[:, -2]) / (sample[:, -1] - sample[:, 0])
    return int((q > critical).sum())


def is_unlikely(times: int, significance: float) -> bool:
    return at_least(times, DRAWS, significance) < ALPHA or at_least(DRAWS - times, DRAWS, 1 - significance) < ALPHA


@pytest.mark.one_in(2)
@pytest.mark.claim
@pytest.mark.parametrize("number", [3, 6, 20, 100])
def test_normal_samples_exceed_the_value_at_the_stated_rate(number: int) -> None:
    assert not is_unlikely(count_exceeding(number, dixon_critical(number, 0.2)), 0.2)
    assert is_unlikely(
        count_exceeding(number, dixon_critical(number + max(1, number // 6), 0.2)), 0.2
    )  # the next column's value


@pytest.mark.parametrize(("number", "value"), [(20, 0.1930), (50, 0.1380), (100, 0.1132), (1000, 0.0704)])
def test_critical_values_exist_for_any_number_of_distances(number: int, value: float) -> None:
    assert dixon_critical(number, 0.2) == pytest.approx(value, abs=5.1e-5)


def test_critical_values_fall_with_distances_and_levels() -> None:
    values = [[dixon_critical(number, level) for number in (3, 4, 8, 30, 10**4)] for level in (0.01, 0.1, 0.5)]
    assert (np.diff(values, axis=1) < 0).all()
    assert (np.diff(values, axis=0) < 0).all()


def test_printed_table_is_close_to_the_exact_values() -> None:
    for level, row in PRINTED.items():
        for number, value in enumerate(row, start=3):
            assert dixon_critical(number, level, table="printed") == value
            assert dixon_critical(number, Fraction(str(level)), table="printed") == value
            assert dixon_critical(number, level) == pytest.approx(value, abs=0.0025)


@pytest.mark.parametrize(("number", "significance"), [(11, 0.2), (5, 0.15)])
def test_printed_table_refuses_missing_entries(number: int, significance: float) -> None:
    with pytest.raises(Unsupported, match="printed table"):
        dixon_critical(number, significance, table="printed")


def test_two_distances_have_no_critical_value() -> None:
    with pytest.raises(Unsupported, match="three distinct"):
        dixon_critical(2, 0.2)
