"""Events that others build on: the price of each, what its record keeps, and what is no event at all."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from tidegate.accounting import Amount, Event, Exponential, Filtered, FilteredGaussian, KNorm, Moments, event_from_dict

F = Fraction

# Never remove a line here: entries that were written must keep their price for ever.
RECORDED = {
    '{"kind": "filtered/1", "epsilon": "1/3", "times": 1}': "0.333333333333333333333333333334",
    '{"kind": "filtered/1", "epsilon": "1/4", "times": 3}': "0.75",
    '{"kind": "k-norm/1", "bounds": [1, 7], "steps": 3, "scale": "4"}': "0.75",
    '{"kind": "k-norm/1", "bounds": [2], "steps": 1, "scale": "3"}': "0.333333333333333333333333333334",
    '{"kind": "moments/1", "lowest": 0, "highest": 9, "rows": 1, "scales": ["2", "18", null], "grouped": false, "always": false}': "1",
    '{"kind": "moments/1", "lowest": 0, "highest": 9, "rows": 2, "scales": ["2", "18", null], "grouped": true, "always": false}': "4",
    '{"kind": "moments/1", "lowest": -3, "highest": 1, "rows": 1, "scales": [null, "8", null], "grouped": false, "always": true}': "0.5",
    '{"kind": "moments/1", "lowest": 0, "highest": 5, "rows": 1, "scales": [null, null, "100"], "grouped": false, "always": true}': "0.25",
}


@pytest.mark.parametrize("record", RECORDED)
def test_recorded_events_keep_their_price_and_form(record: str) -> None:
    event = event_from_dict(json.loads(record))
    assert str(event.price.pure) == RECORDED[record]
    assert event.to_dict() == json.loads(record)


@pytest.mark.parametrize(
    "event", [Filtered(F(1, 4)), FilteredGaussian(F(1, 9), F(2, 9), 3), KNorm((1, 2), 1, F(9)), KNorm((1,), 2, F(1, 9))]
)
def test_smallest_parameters_are_accepted(event: Event) -> None:
    assert event_from_dict(event.to_dict()) == event
    assert event.price.z > Amount(0)


@pytest.mark.parametrize(
    ("bounds", "steps", "scale"), [((), 1, 1), ((0,), 1, 1), ((3, 0), 1, 1), ((1,), 0, 1), ((1,), 1, 0), ((1,), 1, -2)]
)
def test_box_requires_bounds_steps_and_a_scale(bounds: tuple[int, ...], steps: int, scale: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        KNorm(bounds, steps, F(scale))


@pytest.mark.parametrize("times", [0, -1, True, 1.0, "2", None])
def test_filter_requires_a_whole_number_of_times(times: Any) -> None:
    with pytest.raises(ValueError, match="whole number"):
        Filtered(F(1), times)


@pytest.mark.parametrize("epsilon", [0, -1])
def test_filter_requires_a_positive_epsilon(epsilon: int) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        Filtered(F(epsilon))


@pytest.mark.parametrize(("sensitivity", "rate"), [(0, 1), (1, 0), (-1, 1)])
def test_selection_without_a_rate_is_refused(sensitivity: int, rate: int) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        Exponential(F(sensitivity), F(rate))


NOTHING = (None, None, None)
ONE = (None, F(1), None)


@pytest.mark.parametrize(
    ("lowest", "highest", "rows", "scales"),
    [(0, 9, 1, NOTHING), (0, 9, 1, (F(1), F(0), None)), (0, 9, 1, (F(1), F(-1), None)), (9, 8, 1, ONE), (0, 9, 0, ONE)],
)
def test_sums_require_bounds_rows_and_a_scale(lowest: int, highest: int, rows: int, scales: Any) -> None:
    with pytest.raises(ValueError, match="must be"):
        Moments(lowest, highest, rows, scales)


def test_sums_over_a_public_number_of_rows_have_one_cell() -> None:
    assert Moments(4, 4, 1, ONE, always=True).loss == 0
    for wrong in ({"scales": (F(1), F(1), None)}, {"scales": ONE, "grouped": True}):
        with pytest.raises(ValueError, match="number of rows is public"):
            Moments(0, 9, 1, always=True, **wrong)


@pytest.mark.parametrize("content", [None, [], {}, {"kind": None}, {"kind": []}, {"kind": "laplace"}])
def test_malformed_event_is_refused(content: Any) -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        event_from_dict(content)
