"""Attributes, units and promises: what they count and what they refuse."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import PolicyUnreadable, Unsupported
from tidegate.exact import exact, plain, say
from tidegate.policy import Category, Dataset, EachPerson, Grid, Identification, Integer, Key, Loss, Policy


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_float_stands_for_its_shortest_decimal(value: float) -> None:
    assert exact(value) == Fraction(repr(value))
    assert float(exact(value)) == value


@given(st.fractions())
def test_plain_form_is_exact(value: Fraction) -> None:
    assert exact(plain(value)) == value


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "a", "1/0", True, None, Decimal("nan")])
def test_invalid_number_is_refused(bad: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        exact(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Fraction(1, 16), "0.0625"),
        (2.3912, "2.39"),
        (48842, "48,842"),
        (0.1, "0.1"),
        (2**4000, "about 10^1,204"),
        (1e-9, "1e-09"),
    ],
)
def test_numbers_print_few_digits(value: float, said: str) -> None:
    assert say(value, 3) == said


def test_grid_counts_its_values_exactly() -> None:
    assert Grid("0", "1", "0.1").size == 11
    assert Grid("0", "1", "1/3").size == 4
    assert Grid(0, 99999, 1).size == 100_000
    with pytest.raises(PolicyUnreadable, match="does not reach"):
        Grid(0, 1, "0.3")


def test_bins_start_at_the_declared_cuts() -> None:
    assert Integer(16, 60, (18, 20)).bin_starts() == (0, 2, 4)
    assert Grid(0, 1, "0.25", ("0.3",)).bin_starts() == (0, 2)  # the first value not below the cut


@pytest.mark.parametrize("values", [(), ("a", 1), (1.5,), (True, 1)])
def test_category_of_mixed_or_no_values_is_refused(values: tuple[object, ...]) -> None:
    with pytest.raises(PolicyUnreadable):
        Category(values)  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [0, -1, 1.5, True])
def test_person_has_at_least_one_row(most: object) -> None:
    with pytest.raises(PolicyUnreadable, match="at_most"):
        EachPerson("person", most)  # type: ignore[arg-type]


def test_person_must_be_identified_by_a_key() -> None:
    with pytest.raises(PolicyUnreadable, match="not a key"):
        Policy(Dataset("d", unit=EachPerson("age", 2)), {"age": Integer(1, 9)})


def test_key_cannot_be_protected_or_grouped() -> None:
    attributes = {"person": Key(), "age": Integer(1, 9)}
    with pytest.raises(PolicyUnreadable, match="is a key"):
        Policy(Dataset("d"), attributes, Identification("0.5", protect=("person",)))
    with pytest.raises(Unsupported, match="names the person"):
        Policy(Dataset("d"), attributes).countable("person")


PERSONS = {
    "without a population": {"worlds": "persons"},
    "a population in worlds of values": {"worlds": "values", "population": 5, "protect": ("age",)},
    "a prior among persons": {"worlds": "persons", "population": 5000, "prior": {"age": "0.5"}},
    "a prior that does not sum to one": {"protect": ("age",), "prior": {"age": ("0.5", "0.4")}},
    "a negative number known": {"worlds": "persons", "population": 5000, "known": -1},
}


@pytest.mark.parametrize("case", PERSONS)
def test_meaningless_promise_is_refused(case: str) -> None:
    with pytest.raises(PolicyUnreadable):
        Identification("0.1", **PERSONS[case])  # type: ignore[arg-type]


def test_persons_need_a_public_number_of_rows_below_the_population() -> None:
    promise = Identification("0.1", worlds="persons", population=100)
    for rows in (None, 100, 200):
        with pytest.raises(PolicyUnreadable, match="population"):
            Policy(Dataset("d", rows=rows), {"age": Integer(1, 9)}, promise)


def test_prior_has_one_probability_per_value() -> None:
    promise = Identification("0.6", protect=("age",), prior={"age": ("0.5", "0.5")})
    with pytest.raises(PolicyUnreadable, match="2 probabilities for 9 values"):
        Policy(Dataset("d"), {"age": Integer(1, 9)}, promise)


@pytest.mark.parametrize("epsilon", [0, -1])
def test_loss_must_be_above_zero(epsilon: int) -> None:
    with pytest.raises(PolicyUnreadable):
        Loss(epsilon)


@pytest.mark.parametrize("name", ["", "1st", "a b", "x" * 64, "a/b"])
def test_data_set_needs_a_plain_name(name: str) -> None:
    with pytest.raises(PolicyUnreadable, match="name"):
        Dataset(name)
