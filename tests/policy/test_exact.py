"""Numbers as they were written, whatever their size."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from tidegate.exact import exact, say


@pytest.mark.parametrize("text", ["1e999999999", "1E+999999999", "1e-999999999", Decimal("1e99999"), "0e123456789012"])
def test_exponent_that_would_fill_the_memory_is_refused(text: str | Decimal) -> None:
    with pytest.raises(ValueError, match="finite number"):
        exact(text)


def test_sensible_exponents_are_exact() -> None:
    assert exact("1e-30") == Fraction(1, 10**30)
    assert exact(Decimal("2.5E+10")) == 25 * 10**9


@pytest.mark.parametrize(
    ("times", "power", "less", "exponent"), [(1, 400, 0, 400), (1, 400, 1, 399), (3, 5000, 0, 5000)]
)
def test_number_too_long_to_print_is_shown_as_a_power_of_ten(times: int, power: int, less: int, exponent: int) -> None:
    assert say(Fraction(times * 10**power - less)) == f"about 10^{exponent:,}"
