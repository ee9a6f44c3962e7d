"""What would list every basket is refused for a real vocabulary, and does not hang."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tidegate.collect.measures import measure
from tidegate.errors import Unsupported
from tidegate.operators.basket_plans import SizePlan
from tidegate.operators.select_a_size import SelectASize, select_a_size

OPERATOR = SelectASize(
    select_a_size({1: SizePlan.rounded(1, (Fraction(1, 4), Fraction(3, 4)), Fraction(1, 16))}, vocabulary_size=500)
)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: OPERATOR.exact_channel(),
        lambda: OPERATOR.channel_array(),
        lambda: measure(OPERATOR),
        lambda: OPERATOR.likelihoods([1, 2]),
    ],
)
def test_listing_every_basket_is_refused(ask: Callable[[], Any]) -> None:
    with pytest.raises(Unsupported):
        ask()


def test_loss_of_a_basket_operator_needs_no_enumeration() -> None:
    assert OPERATOR.gamma is not None
    assert OPERATOR.gamma > 1
