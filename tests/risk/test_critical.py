"""Chi-square critical values in many digits, and levels that are not valid."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from tidegate.errors import Unsupported
from tidegate.risk.critical import chi_square_critical


@pytest.mark.parametrize("freedom", [1, 2, 9, 45, 99, 99_000])
@pytest.mark.parametrize("significance", [0.5, 0.2, 0.05, 1e-6])
def test_critical_value_is_exceeded_with_the_stated_probability(freedom: int, significance: float) -> None:
    value = chi_square_critical(freedom, significance)
    with mpmath.workdps(30):
        tail = mpmath.gammainc(mpmath.mpf(freedom) / 2, mpmath.mpf(value) / 2, mpmath.inf, regularized=True)
    assert float(tail) == pytest.approx(significance, rel=1e-9)


def test_fraction_is_a_valid_level() -> None:
    assert chi_square_critical(9, Fraction(1, 5)) == chi_square_critical(9, 0.2)


@pytest.mark.parametrize("significance", [0, 1, -0.1, 1.5, float("nan")])
def test_level_outside_0_and_1_is_refused(significance: float) -> None:
    with pytest.raises(Unsupported, match="between 0 and 1"):
        chi_square_critical(9, significance)


def test_zero_degrees_of_freedom_are_refused() -> None:
    with pytest.raises(Unsupported, match="degree of freedom"):
        chi_square_critical(0, 0.2)
