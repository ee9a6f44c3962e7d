"""Regressions in `answer`: sensitivity to one unit, results, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tidegate.accounting import KNorm, Together
from tidegate.answer import Query, mean, regression
from tidegate.answer.mechanisms.regression import Regressions, Sums
from tidegate.errors import Unsupported
from tidegate.policy import Category, Dataset, EachPerson, EachRow, Grid, Integer, Key, Loss, Policy, Unit
from tidegate.policy.predicates import col
from tidegate.session import Session
from tidegate.tables import open_table

ATTRIBUTES = {
    "who": Key(),
    "x": Grid("-1", "1.5", "0.5"),
    "z": Integer(0, 4, missing="lowest"),
    "y": Grid("0", "1", "0.25", missing="lowest"),
    "g": Category(("a", "b"), "value"),
}
QUERIES = [
    regression("y ~ x"),
    regression("y ~ z"),
    regression("x ~ z + y"),
    regression("y ~ x").where(col("g") == "a"),
]
UNITS = {"each row": EachRow(), "each person": EachPerson("who", 2)}
cells = st.tuples(
    st.sampled_from([None, -2.0, -1.0, -0.3, 0.0, 0.5, 1.5, 7.0]),
    st.sampled_from([None, 0, 1, 4, 9]),
    st.sampled_from([None, 0.0, 0.3, 1.0, 5.0]),
    st.sampled_from([None, "a", "b"]),
)


def policy(unit: Unit, rows: int = 4) -> Policy:
    return Policy(Dataset("d", unit=unit, rows=rows), ATTRIBUTES, None, Loss("9"))


def exact(query: Query, rows: list[tuple[Any, ...]], unit: Unit) -> list[int]:
    schema = pa.schema(
        [("who", pa.string()), ("x", pa.float64()), ("z", pa.int64()), ("y", pa.float64()), ("g", pa.string())]
    )
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    return Regressions().exact(query, open_table(policy(unit), table)).numbers[0].tolist()


def within(query: Query, first: list[int], other: list[int], unit: Unit) -> bool:
    bounds = Sums(query, policy(unit)).bounds
    return all(abs(a - b) <= bound for a, b, bound in zip(first, other, bounds, strict=True))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.says())
@settings(max_examples=8)
@given(data=st.data())
def test_one_row_moves_the_sums_within_their_box(query: Query, data: Any) -> None:
    rows = [(f"p{n}", *data.draw(cells)) for n in range(4)]
    other = [*rows[:-1], ("p9", *data.draw(cells))]
    assert within(query, exact(query, rows, EachRow()), exact(query, other, EachRow()), EachRow())


@pytest.mark.one_in(2)
@pytest.mark.parametrize("query", QUERIES[:2], ids=lambda query: query.says())
@settings(max_examples=8)
@given(data=st.data())
def test_one_person_moves_the_sums_within_their_box(query: Query, data: Any) -> None:
    others = [(f"p{n % 2}", *data.draw(cells)) for n in range(3)]
    own = [("me", *row) for row in data.draw(st.lists(cells, max_size=4))]
    another = [("you", *row) for row in data.draw(st.lists(cells, max_size=4))]
    unit = EachPerson("who", 2)
    assert within(query, exact(query, [*others, *own], unit), exact(query, [*others, *another], unit), unit)


def test_box_is_tight_for_one_row() -> None:
    """Each side is reached, so a missing or halved side would be detected."""
    query, corners = regression("y ~ z"), [("me", 0.0, z, y, "a") for z in (0, 2, 4) for y in (0.0, 0.5, 1.0)]
    sums = [exact(query, [row], EachRow()) for row in corners]
    spans = [max(c) - min(c) for c in zip(*sums, strict=True)]
    assert spans == list(Sums(query, policy(EachRow())).bounds)


def test_sums_use_centered_codes() -> None:
    """By hand: three rows; one has no x and is not counted."""
    rows = [("a", 1.5, 4, 1.0, "a"), ("b", -1.0, None, 0.25, "b"), ("c", None, 1, 0.5, "a")]
    # x: codes 5, 0 less 2; y: codes 4, 1 less 2
    assert exact(regression("y ~ x"), rows, EachRow()) == [2, 3 - 2, 2 - 1, 9 + 4, 6 + 2]
    # z (missing is lowest): codes 4, 0, 1 less 2; rows are public
    assert exact(regression("y ~ z"), rows, EachRow()) == [-1, 1, 4 + 4 + 1, 4 + 2 + 0]


@pytest.mark.parametrize("method", ["k-norm", "functional"])
@pytest.mark.parametrize("unit", UNITS)
def test_price_equals_the_requested_loss(method: Any, unit: str) -> None:
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(5)):
        event = Regressions().event(regression("y ~ x + z", method=method), policy(UNITS[unit]), epsilon=epsilon)
        assert isinstance(event, KNorm if method == "k-norm" else Together)
        assert epsilon * Fraction(999, 1000) < event.price.pure.value <= epsilon * Fraction(1000001, 1000000)


def line(count: int, seed: int = 3) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    age = random.integers(18, 90, count)
    hours = random.integers(0, 60, count)
    pay = 100 + 20 * age - 5 * hours + 50 * random.standard_normal(count)
    return [{"age": int(a), "hours": int(h), "pay": float(p)} for a, h, p in zip(age, hours, pay, strict=True)]


ROWS = line(4_000)
PEOPLE = {
    "age": Integer(18, 89, missing="lowest"),
    "hours": Integer(0, 59, missing="lowest"),
    "pay": Grid("0", "2500", "0.5", missing="lowest"),
}


@pytest.fixture
def open_session(tmp_path: Path) -> Callable[[], Session]:
    people = Policy(Dataset("people", unit=EachRow(), rows=4_000), PEOPLE, None, Loss("900"))
    return lambda: Session(people, table=pa.Table.from_pylist(ROWS), folder=tmp_path)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("answers", "fewest"), [(6, 3), pytest.param(20, 13, marks=pytest.mark.long)])
@pytest.mark.parametrize("method", ["k-norm", "functional"])
def test_answer_is_near_least_squares_within_its_interval(
    open_session: Callable[[], Session], method: Any, answers: int, fewest: int
) -> None:
    """The chance that a 95% interval fails 8 times of 20 is below 1e-5, 4 times of 6 below 1e-4, and there are six."""
    x = np.array([[1, row["age"], row["hours"]] for row in ROWS], float)
    best = np.linalg.lstsq(x, np.array([row["pay"] for row in ROWS]), rcond=None)[0]
    inside = np.zeros(3)
    with open_session() as session:
        for number in range(answers):
            answer = session.answer(tg.regression("pay ~ age + hours", method=method), epsilon=4 + number / 1000)
            assert answer.labels == {"term": ["(intercept)", "age", "hours"]}
            low, high = answer.interval(0.95)
            inside += (low <= best) & (best <= high)
            assert abs(answer.values[1] - 20) < 1.5
            assert abs(answer.values[2] + 5) < 1.5
    assert inside.min() >= fewest


def test_k_norm_is_more_accurate_than_the_functional_mechanism(open_session: Callable[[], Session]) -> None:
    """Half-widths of the interval of the slope, which both report for their own noise."""
    width = {}
    with open_session() as session:
        for method in ("k-norm", "functional"):
            answer = session.answer(tg.regression("pay ~ age", method=method), epsilon=1)
            low, high = answer.interval()
            width[method] = high[1] - low[1]
    assert width["k-norm"] < 0.8 * width["functional"]


def test_repeated_regression_and_preview_are_free(open_session: Callable[[], Session]) -> None:
    with open_session() as session:
        shown = session.preview(tg.regression("pay ~ age"), epsilon=1)
        assert "depends on the data" in str(shown) or shown.expected[0].caution
        assert not session.account.spent
        first = session.answer(tg.regression("pay ~ age"), epsilon=1)
        again = session.answer(tg.regression("pay~age"), epsilon=1)
        assert again.values.tolist() == first.values.tolist()
        assert float(session.account.spent) == pytest.approx(1)
        other = session.answer(tg.regression("pay ~ hours"), epsilon=1)
        assert float(session.account.spent) == pytest.approx(2)
        assert [row["term"] for row in other.rows()] == ["(intercept)", "hours"]
        assert "the regression of pay on hours" in str(other) or other.query.says() == "the regression of pay on hours"


@pytest.mark.parametrize("formula", ["y", "y ~", "~ x", "y ~ y", "y ~ x + x", "y ~ a + b + c + d + e + f", ""])
def test_invalid_formula_is_refused(formula: str) -> None:
    with pytest.raises(Unsupported, match="formula"):
        regression(formula)


def test_unsupported_regression_is_refused() -> None:
    with pytest.raises(Unsupported, match='"g" is a category'):
        regression("y ~ g").check(policy(EachRow()))
    with pytest.raises(Unsupported, match="cannot be grouped"):
        regression("y ~ x").by("g").check(policy(EachRow()))
    with pytest.raises(Unsupported, match="method"):
        regression("y ~ x", method="magic")  # type: ignore[arg-type]


def test_identity_of_other_queries_is_unchanged() -> None:
    """Queries that were answered before regressions existed must still be found in the ledger."""
    assert set(mean("x").question(policy(EachRow()))) == {
        "ask",
        "column",
        "by",
        "where",
        "share",
        "of",
        "unit",
        "rows",
        "edition",
    }
