"""Exact sums of amounts, for any size and order."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.accounting import FREE, Amount, DiscreteLaplace, Exponential, Together, event_from_dict
from tidegate.accounting.amount import GRAINS

amounts = st.builds(Amount, st.integers(0, 10**40))
positive = st.fractions(Fraction(1, 10**9), 10**6)
events = st.one_of(
    st.builds(DiscreteLaplace, positive, positive), st.builds(Exponential, positive, positive, st.booleans())
)


@given(amounts)
def test_amount_survives_its_text(amount: Amount) -> None:
    assert Amount.parse(str(amount)) == amount


@pytest.mark.parametrize(
    "text", ["0.10", "1e-3", "-1", "1/2", " 1", "01", "0.0000000000000000000000000000001", "nan", ""]
)
def test_inexact_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        Amount.parse(text)


@given(st.fractions(0, 10**6))
def test_charges_are_rounded_up_and_limits_down(value: Fraction) -> None:
    assert Amount.down(value).value <= value <= Amount.up(value).value
    assert Amount.up(value).grains - Amount.down(value).grains == (0 if (value * GRAINS).denominator == 1 else 1)


@given(amounts, st.floats(min_value=5e-324, max_value=1e-300))
def test_smallest_charge_is_never_lost(spent: Amount, tiny: float) -> None:
    assert spent + Amount.up(tiny) > spent


@given(st.lists(events, max_size=8), st.randoms())
def test_price_does_not_depend_on_the_order_of_events(batch: list[DiscreteLaplace], shuffle) -> None:
    mixed = list(batch)
    shuffle.shuffle(mixed)
    price, total = Together(tuple(batch)).price, sum((event.price for event in mixed), FREE)
    assert price == Together(tuple(mixed)).price
    assert (price.pure, price.zcdp) == (total.pure, total.zcdp)
    choices = [event for event in batch if isinstance(event, Exponential)]
    assert price.z == (total.zcdp if len(set(choices)) < len(choices) else total.z)


@given(st.recursive(events, lambda inner: st.builds(Together, st.lists(inner, max_size=3).map(tuple)), max_leaves=6))
def test_stored_event_keeps_its_price(event: DiscreteLaplace) -> None:
    again = event_from_dict(event.to_dict())
    assert again == event
    assert again.price == event.price


def test_event_of_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        event_from_dict({"kind": "discrete-laplace/2"})


# Never remove a line here: entries that were written must keep their price forever.
RECORDED = {
    '{"kind": "discrete-laplace/1", "sensitivity": "2", "scale": "20/3"}': "0.3",
    '{"kind": "exponential/1", "sensitivity": "1", "rate": "1/8", "one_sided": false}': "0.25",
    '{"kind": "exponential/1", "sensitivity": "1", "rate": "1/8", "one_sided": true}': "0.125",
    '{"kind": "together/1", "parts": [{"kind": "discrete-laplace/1", "sensitivity": "1", "scale": "3"}]}': "0.333333333333333333333333333334",
}


@pytest.mark.parametrize("record", RECORDED)
def test_recorded_events_keep_their_price(record: str) -> None:
    import json

    assert str(event_from_dict(json.loads(record)).price.pure) == RECORDED[record]


@pytest.mark.parametrize("wrong", [(0, 1), (1, 0), (-1, 1)])
def test_noise_of_size_zero_is_refused(wrong: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        DiscreteLaplace(Fraction(wrong[0]), Fraction(wrong[1]))


def test_pure_loss_has_its_price_in_every_unit() -> None:
    price = event_from_dict({"kind": "discrete-laplace/1", "sensitivity": "3", "scale": "2"}).price
    assert price.to_dict() == {"pure": "1.5", "zcdp": "1.125", "z": "0.28125"}
