"""An answer that says no more than the middle of its public range is refused before the charge, unless asked for anyway."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tidegate.accounting import budget_of
from tidegate.answer.limits import check_usefulness, condition_note, usefulness_note
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.mechanisms.mechanism import rows_per_cell
from tidegate.answer.run import plan
from tidegate.answer.spending import RequestedLoss
from tidegate.errors import Unsupported
from tidegate.policy.predicates import holds
from tidegate.session import Session

ATTRIBUTES = {
    "age": tg.Integer(18, 90),
    "pay": tg.Grid("0", "9", "0.25", missing="lowest"),
    "sex": tg.Category(("f", "m")),
}
QUERIES = [
    tg.count().where(tg.col("age") >= 30),
    tg.count().by("sex"),
    tg.histogram("age"),
    tg.mean("age"),
    tg.mean("pay"),
    tg.mean("age").by("sex"),
    tg.median("age"),
    tg.quantile("pay", "0.9").by("sex"),
    tg.min("age"),
    tg.max("pay"),
]


def policy(rows: int | None = 1000, *, guarantee: str = "worst-case") -> tg.Policy:
    promise: Any = {"loss": tg.Loss(100)}
    if guarantee == "average":
        promise = {"identification": tg.Identification("0.5", protect=("age",), guarantee="average")}
    return tg.Policy(tg.Dataset("people", rows=rows), ATTRIBUTES, **promise)


def is_refused(query: tg.Query, people: tg.Policy, loss: RequestedLoss) -> str:
    events = plan((query,), people, loss=loss)
    try:
        check_usefulness((query,), people, events)
    except Unsupported as error:
        assert usefulness_note(query, people, events[0])
        return f"{error.what} {error.do}"
    assert not usefulness_note(query, people, events[0])
    return ""


@settings(max_examples=150, deadline=None)
@given(query=st.sampled_from(QUERIES), rows=st.integers(1, 10**5), epsilon=st.fractions("1/10000", 20))
def test_refusal_is_exactly_where_the_error_reaches_half_of_the_range(
    query: tg.Query, rows: int, epsilon: Fraction
) -> None:
    people, mechanism = policy(rows), mechanism_for(query)
    event = plan((query,), people, loss=RequestedLoss(epsilon))[0]
    cells = 2 if query.groups else 1
    half: float = {"count": rows, "histogram": rows}.get(query.statistic, rows / cells) / 2
    if query.statistic == "mean":
        half = {"age": 72, "pay": 9}[query.column] / 2
    width = mechanism.error(query, people, event, confidence=0.95)
    if width is None:
        width = mechanism.rank_error(query, people, event)  # type: ignore[attr-defined]
    assert bool(is_refused(query, people, RequestedLoss(epsilon))) == (width >= half)


@pytest.mark.parametrize("guarantee", ["worst-case", "average"])
@pytest.mark.parametrize("query", QUERIES, ids=tg.Query.says)
def test_proposed_loss_gives_a_twentieth_of_the_range(query: tg.Query, guarantee: str) -> None:
    people = policy(guarantee=guarantee)
    unit = budget_of(people).unit
    text = is_refused(query, people, RequestedLoss(Fraction(1, 10**6 if unit == "z" else 2000), unit))
    proposed = re.search(rf"Request {'Z' if unit == 'z' else 'epsilon'} ([0-9.]+) for an error of 1/20", text)
    assert proposed, text
    event = plan((query,), people, loss=RequestedLoss(Fraction(Decimal(proposed[1])), unit))[0]
    mechanism = mechanism_for(query)
    width = mechanism.error(query, people, event, confidence=0.95)
    extent = {"age": 72.0, "pay": 9.0}[query.column] if query.statistic == "mean" else 1000.0
    if width is None:
        width, extent = mechanism.rank_error(query, people, event), 500.0 if query.groups else 1000.0  # type: ignore[attr-defined]
    assert 0.8 <= 20 * width / extent <= 1.02


def orders(records: int | None, at_most: int = 8) -> tg.Policy:
    dataset = tg.Dataset("orders", unit=tg.EachPerson("customer", at_most), rows=1000, records=records)
    return tg.Policy(dataset, {"customer": tg.Key(), **ATTRIBUTES}, loss=tg.Loss(100))


@pytest.mark.parametrize("query", [tg.mean("age"), tg.mean("pay").by("sex"), tg.median("age")], ids=tg.Query.says)
def test_records_of_persons_change_expected_errors_only(query: tg.Query) -> None:
    loss = RequestedLoss(Fraction(20))
    without, with_records = plan((query,), orders(None), loss=loss), plan((query,), orders(4000), loss=loss)
    assert without == with_records, "the noise and the price are the same"
    mechanism = mechanism_for(query)
    errors = [mechanism.error(query, orders(records), without[0], confidence=0.95) for records in (None, 4000)]
    if query.statistic == "mean":
        assert errors[0] is not None
        assert errors[1] is not None
        assert errors[1] == pytest.approx(errors[0] / 4, rel=0.05)
    without_records, with_4000 = rows_per_cell(query, orders(None)), rows_per_cell(query, orders(4000))
    assert without_records is not None
    assert with_4000 == 4 * without_records
    assert rows_per_cell(query, orders(4000, at_most=2)) == 2 * without_records, "at most as many as are counted"
    assert rows_per_cell(query, orders(500)) == without_records / 2, "some persons have no row"


def test_mean_of_persons_is_not_refused_if_its_records_make_it_useful() -> None:
    query, loss = tg.mean("age").by("sex"), RequestedLoss(Fraction(1, 4))
    assert "would be useless" in is_refused(query, orders(None), loss)
    assert not is_refused(query, orders(7000), loss)


def test_nothing_is_refused_where_the_number_of_rows_is_not_public() -> None:
    assert not any(is_refused(query, policy(None), RequestedLoss(Fraction(1, 1000))) for query in QUERIES)


@pytest.mark.parametrize(
    "ask", [lambda query: query, lambda query: "SELECT AVG(age) FROM people"], ids=["query", "SQL"]
)
def test_refusal_charges_nothing_and_can_be_overridden(
    open_session: Callable[..., Session], ask: Callable[[Any], Any]
) -> None:
    with open_session() as session:
        question = ask(tg.mean("age"))
        assert "useless, because the error" in str(session.preview(question, epsilon="0.01"))
        with pytest.raises(Unsupported, match="would be useless: its error of"):
            session.answer(question, epsilon="0.01")
        assert str(session.account.spent) == "0"
        first = session.answer(question, epsilon="0.01", anyway=True)
        assert str(session.account.spent) == "0.01"
        assert session.answer(question, epsilon="0.01").value == first.value, "a stored answer is free"


def test_counts_of_many_small_cells_have_a_caution() -> None:
    query, people = tg.histogram("age"), policy()
    precise, noisy = (plan((query,), people, loss=RequestedLoss(Fraction(epsilon)))[0] for epsilon in ("1", "0.1"))
    assert mechanism_for(query).caution(query, people, precise) == ""
    assert mechanism_for(query).caution(query, people, noisy) == (
        "the error of 60 exceeds the average of 13.7 rows in each of 73 cells"
    )


def test_proposal_above_the_whole_budget_names_wider_groups_instead() -> None:
    columns = {"day": tg.Date(date(2022, 1, 1), date(2024, 12, 31)), "amount": tg.Integer(0, 5000)}
    people = tg.Policy(tg.Dataset("people", rows=5000), columns, loss=tg.Loss("1.5"))
    text = is_refused(tg.mean("amount").by("day"), people, RequestedLoss(Fraction(1, 10)))
    assert (
        "Even the whole budget, epsilon 1.5, does not give an error of 1/20 of the range. Use fewer or wider groups"
        in text
    )
    assert "Request epsilon" not in text


SMALL = tg.Policy(
    tg.Dataset("people", rows=50),
    {"age": tg.Integer(0, 5), "day": tg.Date(date(2024, 1, 1), date(2024, 1, 3)), "sex": tg.Category(("f", "m"))},
    loss=tg.Loss(1),
)
AGE, DAY, SEX = tg.col("age"), tg.col("day"), tg.col("sex")
NEVER = [
    DAY >= "2030-01-01",
    DAY < "2024-01-01",
    AGE == 2.5,
    AGE.between(4, 2),
    (AGE > 5) | (AGE < 0),
    (SEX == "f") & (DAY > "2024-01-03"),
    (SEX == "f") & AGE.between(3, 2),
]
SOMETIMES = [DAY == "2024-01-03", AGE >= 5, AGE.between(2, 2) & (SEX == "m"), (AGE > 9) | (SEX == "f"), AGE.missing()]


@pytest.mark.parametrize("condition", [*NEVER, *SOMETIMES], ids=lambda condition: condition.says())
def test_condition_that_no_declared_value_satisfies_has_a_caution(condition: Any) -> None:
    codes = {name: [None, *range(attribute.size)] for name, attribute in SMALL.attributes.items()}
    rows = [dict(zip(codes, row, strict=True)) for row in product(*codes.values())]
    assert any(holds(condition, SMALL, row) for row in rows) == (condition in SOMETIMES)
    assert bool(condition_note(tg.count().where(condition), SMALL)) == (condition in NEVER)


@pytest.mark.parametrize("text", ["day >= '2030-01-01'", "age BETWEEN 4 AND 2", "age % 7 = 6", "UPPER(sex) = 'X'"])
def test_answer_to_such_a_condition_is_refused_at_no_cost_unless_insisted_upon(text: str, tmp_path: Path) -> None:
    table = pa.table({"age": [1] * 50, "day": [date(2024, 1, 1)] * 50, "sex": ["f"] * 50})
    with Session(SMALL, table=table, folder=tmp_path) as session:
        sql = f"SELECT COUNT(*) FROM people WHERE {text}"
        with pytest.raises(Unsupported, match="no value that the policy declares satisfies the condition"):
            session.answer(sql, epsilon="0.5")
        assert not session.account.spent.grains
        preview, answer = session.preview(sql, epsilon="0.5"), session.answer(sql, epsilon="0.5", anyway=True)
    assert preview.expected[0].caution == answer.caution == "no value that the policy declares satisfies the condition"
