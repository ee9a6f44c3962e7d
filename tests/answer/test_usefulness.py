"""An answer that says no more than the middle of its public range is refused before the charge, unless asked for anyway."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tidegate.accounting import budget_of
from tidegate.answer.limits import check_usefulness, usefulness_note
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.run import plan
from tidegate.answer.spending import RequestedLoss
from tidegate.errors import Unsupported
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
