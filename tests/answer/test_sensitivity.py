"""Replacing one row, or a person with all their rows, never changes the answers by more than the charge."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from answer.worlds import Outputs, Row
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.accounting import Together
from tidegate.answer import Query, count, histogram, max, mean, median, min, quantile, std, sum, variance
from tidegate.policy import Category, Dataset, EachPerson, EachRow, Grid, Identification, Key, Policy, Unit
from tidegate.policy.predicates import col

COLUMNS = ("who", "x", "g")
ATTRIBUTES = {"who": Key(), "x": Grid("-1", "1.5", "0.5", ("0",)), "g": Category(("a", "b"), "value")}
QUERIES = [
    count().where(col("x") >= 0),
    count().by("g"),
    histogram("x").by("g"),
    sum("x"),
    sum("x").by("g"),
    mean("x"),
    mean("x").where(col("g") == "a"),
    mean("x").by("g"),
    variance("x"),
    std("x").by("g"),
    median("x"),
    quantile("x", "0.9").where(col("g") != "b"),
    median("x").by("g"),
    min("x"),
    max("x"),
]
cells = st.tuples(st.sampled_from([None, -2.0, -1.0, -0.3, 0.0, 0.5, 1.5, 7.0]), st.sampled_from([None, "a", "b", "c"]))


def log_ratio(outputs: Outputs, before: list[Row], after: list[Row]) -> float:
    """Return the largest log ratio of the probabilities of any response."""
    (numbers, chosen), (other_numbers, otherwise) = outputs._exact(tuple(before)), outputs._exact(tuple(after))
    scales = np.array(outputs._scales(), float)
    laplace = (
        float((np.abs(np.array(numbers, float) - np.array(other_numbers, float)) / scales).sum())
        if scales.size
        else 0.0
    )
    choices = [float(np.abs(a - b).max()) for a, b in zip(chosen, otherwise, strict=True)]
    return laplace + float(np.sum(choices))


def policy(unit: Unit) -> Policy:
    return Policy(Dataset("d", unit=unit, rows=4), ATTRIBUTES, Identification("0.5", protect=("x",)))


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.says())
@settings(max_examples=12)
@given(data=st.data())
def test_one_row_moves_an_answer_by_no_more_than_its_price(query: Query, data: Any) -> None:
    rows = [(f"p{n}", *data.draw(cells)) for n in range(4)]
    other = [*rows[:-1], ("p9", *data.draw(cells))]
    outputs = Outputs((query,), policy(EachRow()), COLUMNS, Fraction(1))
    assert log_ratio(outputs, rows, other) <= float(Together(outputs.events).price.pure) + 1e-9


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.says())
@settings(max_examples=12)
@given(data=st.data())
def test_one_person_moves_an_answer_by_no_more_than_its_price(query: Query, data: Any) -> None:
    others = [(f"p{n % 2}", *data.draw(cells)) for n in range(3)]
    own = [("me", *row) for row in data.draw(st.lists(cells, max_size=4))]
    another = [("you", *row) for row in data.draw(st.lists(cells, max_size=4))]
    outputs = Outputs((query,), policy(EachPerson("who", 2)), COLUMNS, Fraction(1))
    assert log_ratio(outputs, [*others, *own], [*others, *another]) <= float(Together(outputs.events).price.pure) + 1e-9


def test_missing_bound_of_a_person_is_detected() -> None:
    """Planted fault: a person with four rows is counted as if each row were another person."""
    outputs = Outputs((count().by("g"),), policy(EachRow()), COLUMNS, Fraction(1))
    before, after = [("me", 0.0, "a")] * 4, [("you", 0.0, "b")] * 4
    assert log_ratio(outputs, before, after) > float(Together(outputs.events).price.pure)
