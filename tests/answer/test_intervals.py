"""A value is in its public range and in its own interval for any noise; the noisy number is stored next to it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.answer import Query, count, mean, regression, std, sum, variance
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.mechanisms.mechanism import clip_reading
from tidegate.answer.run import plan
from tidegate.answer.spending import RequestedLoss
from tidegate.policy import Category, Dataset, EachPerson, EachRow, Grid, Integer, Key, Loss, Policy, Unit
from tidegate.policy.predicates import col
from tidegate.session import Session

UNITS: list[Unit] = [EachRow(), EachPerson("person", 3)]
ASKED = [
    count(),
    count().by("sex"),
    sum("age"),
    sum("age").by("sex"),
    sum("debt"),
    sum("pay"),
    mean("age").by("sex"),
    mean("pay"),
    variance("pay"),
    std("age").where(col("sex") == "f"),
    regression("age ~ pay"),
    regression("age ~ pay + debt", method="functional"),
]
numbers = st.integers(-(10**7), 10**7)


def policy(rows: int | None, unit: Unit) -> Policy:
    attributes = {
        "person": Key(),
        "age": Integer(18, 90),
        "debt": Integer(-50, -1),
        "pay": Grid("-0.5", "9.5", "0.25", missing="lowest"),
        "sex": Category(("f", "m")),
    }
    return Policy(Dataset("people", unit=unit, rows=rows), attributes, None, Loss(100))


def stored_result(query: Query, event: Any, draw: Callable[[], int]) -> Any:
    """Return a stored result with arbitrary numbers."""
    shape = (2,) if query.groups else ()
    if query.statistic == "count":
        return {"cells": np.array([draw() for _ in range(int(np.prod(shape)))]).reshape(shape).tolist()}
    if query.statistic == "regression":
        return {"sums": [draw() for _ in (event.bounds if hasattr(event, "bounds") else event.parts)]}
    cells = [np.array([draw() for _ in range(int(np.prod(shape)))]).reshape(shape).tolist() for _ in event.scales]
    return {"moments": [cell if scale is not None else None for cell, scale in zip(cells, event.scales, strict=True)]}


@settings(max_examples=150, deadline=None)
@given(
    query=st.sampled_from(ASKED),
    unit=st.sampled_from(UNITS),
    rows=st.none() | st.integers(1, 10**6),
    epsilon=st.fractions("1/1000", 10),
    confidence=st.floats(0.5, 0.999),
    data=st.data(),
)
def test_value_is_always_in_its_interval(
    query: Query, unit: Unit, rows: int | None, epsilon: Fraction, confidence: float, data: Any
) -> None:
    people = policy(rows, unit)
    event = plan((query,), people, loss=RequestedLoss(epsilon))[0]
    stored = stored_result(query, event, lambda: data.draw(numbers))
    read = mechanism_for(query).read(query, people, event, stored, confidence=confidence)
    assert (read.low <= read.values).all()
    assert (read.values <= read.high).all()
    if query.statistic == "count":
        assert (read.low >= 0).all()
        assert rows is None or (read.high <= rows * unit.rows_per_person).all()


@given(
    noisy=st.floats(-1e9, 1e9),
    half=st.floats(0, 1e9),
    ends=st.tuples(st.none() | st.floats(-1e6, 0), st.none() | st.floats(0, 1e6)),
)
def test_projection_keeps_the_value_in_the_range_and_in_the_interval(
    noisy: float, half: float, ends: tuple[float | None, float | None]
) -> None:
    read = clip_reading(np.array(noisy), np.array(noisy - half), np.array(noisy + half), ends=ends)
    low, high = (-np.inf if ends[0] is None else ends[0]), (np.inf if ends[1] is None else ends[1])
    assert low <= read.low <= read.values <= read.high <= high
    assert read.noisy == noisy
    if low <= noisy <= high:
        assert read.values == noisy


def test_noisy_count_below_zero_is_projected_to_zero() -> None:
    read = clip_reading(np.array(-15), np.array(-35), np.array(5), ends=(0, None))
    assert (read.values, read.low, read.high, read.noisy) == (0, 0, 5, -15)


def test_answers_show_the_projected_value_and_keep_the_noisy_one(open_session: Callable[..., Session]) -> None:
    with open_session() as session:
        answer = session.answer(count().where(col("age") == 18).by("town"), epsilon="0.01", anyway=True)
        low, high = answer.interval()  # type: ignore[misc]
        assert (low <= answer.values).all()
        assert (answer.values <= high).all()
        assert answer.noisy.tolist() == answer.stored["cells"]
        assert [row["noisy"] for row in answer.rows()] == answer.stored["cells"]
        assert (answer.values == np.clip(answer.noisy, 0, 300)).all()
        session.answer(count().by("town", "sex"), epsilon="0.01", anyway=True)
        total = session.derive(count().by("sex"))
        assert total is not None
        assert (total.low <= total.values).all()
        assert (total.values <= total.high).all()
