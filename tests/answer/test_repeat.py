"""A charge can be repeated from the ledger alone: the loss that leads to the same noise is recovered."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tidegate.accounting import Together
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.repeat import asked_again
from tidegate.answer.request import Query
from tidegate.answer.run import plan
from tidegate.answer.spending import RequestedLoss, resolve_loss
from tidegate.ledger.entry import canonical
from tidegate.policy import Category, Dataset, Integer, Loss, Policy

ATTRIBUTES: dict[str, Any] = {
    "age": Integer(18, 57, bins=(28, 38)),
    "hours": Integer(0, 60),
    "town": Category(("A", "B")),
}
POLICY = Policy(Dataset("people", rows=400), ATTRIBUTES, loss=Loss("1000"))
QUERIES = (
    tg.count(),
    tg.mean("age").where((tg.col("age") >= 30) | (tg.col("town") == "A")).by("town"),
    tg.quantile("age", "0.9"),
    tg.variance("hours"),
    tg.sum("hours").by("town"),
    tg.min("age").by("town"),
    tg.histogram("age"),
    tg.regression("age ~ hours"),
    tg.regression("age ~ hours", method="functional"),
)


def charge_body(queries: tuple[Query, ...], epsilon: Fraction, policy: Policy = POLICY) -> dict[str, Any]:
    """Return the body of a charge, as the ledger returns it."""
    events = plan(queries, policy, loss=RequestedLoss(epsilon))
    event = Together(events) if len(events) > 1 else events[0]
    question = {"verb": "answer", "asks": [query.question(policy) for query in queries], "event": event.to_dict()}
    body: dict[str, Any] = json.loads(canonical({"question": question, "event": event.to_dict()}))
    return body


losses = st.one_of(
    st.fractions(Fraction(1, 1000), 20, max_denominator=10**12),
    st.decimals("0.001", 20, places=4).map(Fraction),
    st.decimals("0.001", 20, places=30).map(Fraction),
)


@settings(deadline=None, max_examples=60)
@given(queries=st.lists(st.sampled_from(QUERIES), min_size=1, max_size=4), epsilon=losses)
def test_repeated_query_has_the_same_identity_and_noise(queries: list[Query], epsilon: Fraction) -> None:
    body = charge_body(tuple(queries), epsilon)
    again = asked_again(body, POLICY)
    assert again is not None
    assert charge_body(again.queries, again.loss.value) == body


def test_short_loss_is_recovered_in_its_short_form() -> None:
    again = asked_again(charge_body((tg.mean("age"), tg.count()), Fraction("0.3")), POLICY)
    assert again is not None
    assert again.to_dict()["epsilon"] == "0.3"


@pytest.mark.parametrize(
    ("queries", "epsilon"),
    [
        ((tg.count(), tg.quantile("age", "0.9")), "1.3717"),  # the rank is rounded by more than the last digit
        ((tg.regression("age ~ hours", method="functional"),), "12.5111"),  # each sum is rounded up to a grain
    ],
    ids=["a coarse part", "rounded grains"],
)
def test_loss_is_recovered_despite_rounded_prices(queries: tuple[Query, ...], epsilon: str) -> None:
    again = asked_again(charge_body(queries, Fraction(epsilon)), POLICY)
    assert again is not None
    assert again.to_dict()["epsilon"] == epsilon


@pytest.mark.parametrize(
    "other",
    [
        Policy(Dataset("people", rows=401), ATTRIBUTES, loss=Loss("1000")),
        Policy(Dataset("people", rows=400), {**ATTRIBUTES, "age": Integer(18, 58)}, loss=Loss("1000")),
        Policy(Dataset("people", rows=400), {"town": ATTRIBUTES["town"]}, loss=Loss("1000")),
    ],
    ids=["other rows", "another universe", "a missing column"],
)
def test_query_that_a_changed_policy_alters_is_not_repeated(other: Policy) -> None:
    assert asked_again(charge_body((tg.mean("age"),), Fraction(1)), other) is None


def test_synthesis_is_not_repeated_as_a_query() -> None:
    assert asked_again({"question": {"verb": "synthesize"}, "event": {}}, POLICY) is None


@pytest.mark.parametrize("error", [5, 6, 6.066, 10, 17.5, 30, 100])
@pytest.mark.parametrize("query", [tg.count(), tg.count().by("town"), tg.sum("age")], ids=Query.says)
def test_request_by_error_is_planned_within_that_error(query: Query, error: float) -> None:
    loss = resolve_loss((query,), POLICY, error=error)
    (event,) = plan((query,), POLICY, loss=loss)
    expected_error = mechanism_for(query).error(query, POLICY, event, confidence=0.95)
    assert expected_error is not None
    assert expected_error <= error
