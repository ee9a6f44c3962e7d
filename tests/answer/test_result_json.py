"""The JSON of an answer has the noisy integers of the ledger, and no exact number."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tidegate.accounting import Together, event_from_dict
from tidegate.answer import Answer, Answers, Preview, Query, count, histogram, mean, median, quantile, regression, std
from tidegate.answer import sum as total
from tidegate.answer.derive import Derived
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.run import plan
from tidegate.answer.spending import RequestedLoss
from tidegate.noise import SeededBits
from tidegate.session import Session

NOISY = [
    count(),
    count().by("sex", "town"),
    histogram("age").by("sex"),
    total("pay"),
    mean("pay"),
    mean("age").by("sex"),
    std("pay").by("town"),
    regression("pay ~ age"),
]
CHOSEN = [median("age"), quantile("pay", Fraction(1, 4)).by("sex")]  # a value of a public list, not a sum with noise
KEYS = {"count": "cells", "histogram": "cells", "regression": "sums", "quantile": "codes"}


def integers(value: Any) -> Iterator[int]:
    """Yield every number of nested lists; None marks a missing part of an event."""
    if isinstance(value, np.ndarray):
        yield from integers(value.tolist())
    elif isinstance(value, list | tuple):
        for part in value:
            yield from integers(part)
    elif value is not None:
        yield int(value)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("query", [*NOISY, *CHOSEN], ids=lambda query: query.says())
def test_result_matches_the_ledger_and_the_charged_event(open_session: Callable[..., Session], query: Query) -> None:
    with open_session() as session:
        data = session.answer(query, epsilon=1).to_dict()
        entries = {entry.kind: entry for entry in session.ledger.entries("people")}
        stored = session.ledger.asked_before(session.policy, question=entries["charge"].content()["question"]).stored  # type: ignore[union-attr]
        assert stored == {"parts": [data["result"]]}
        assert data["event"] == entries["charge"].content()["event"]
        assert data["cost"] == entries["charge"].amount == str(event_from_dict(data["event"]).price.pure)
        assert list(data["result"]) == [KEYS.get(query.statistic, "moments")]


@pytest.mark.parametrize("query", NOISY, ids=lambda query: query.says())
def test_result_contains_no_exact_number(open_session: Callable[..., Session], query: Query) -> None:
    with open_session(epsilon="1") as session:
        [event] = plan(
            [query], session.policy, loss=RequestedLoss(Fraction(1, 10**7))
        )  # noise of many millions in every number
        mechanism = mechanism_for(query)
        computed = mechanism.exact(query, session.table)
        exact = list(integers(computed.numbers))
        noisy = [
            list(integers(list(mechanism.perturb(computed, event, bits=SeededBits(seed)).values()))) for seed in (1, 2)
        ]
        assert len(noisy[0]) == len(exact) > 0, "nothing beside the numbers that get noise"
        assert all(abs(first - second) > 100 for first, second in zip(noisy[0], exact, strict=True))
        assert all(first != second for first, second in zip(*noisy, strict=True)), "no number is without noise"


@pytest.mark.parametrize("query", CHOSEN, ids=lambda query: query.says())
def test_quantiles_have_one_code_per_group(open_session: Callable[..., Session], query: Query) -> None:
    with open_session() as session:
        answer = session.answer(query, epsilon="0.01", anyway=True)
        codes = list(integers(answer.to_dict()["result"]["codes"]))
        assert len(codes) == answer.values.size
        assert all(0 <= code < session.policy.attribute(query.column).size for code in codes)


def test_results_survive_json(open_session: Callable[..., Session]) -> None:
    def again(value: Any) -> Any:
        return json.loads(json.dumps(value))

    with open_session(epsilon="9") as session:
        queries = [*NOISY, *CHOSEN]
        several = session.answer(queries, epsilon=5)
        copy = Answers.from_dict(again(several.to_dict()), session.policy)
        assert (copy.to_dict(), str(copy), copy.cost) == (several.to_dict(), str(several), several.cost)
        assert Together(tuple(answer.event for answer in copy)).price.pure == several.cost
        for first, second in zip(several, copy, strict=True):
            assert (second.query, second.event, second.stored) == (first.query, first.event, first.stored)
            assert second._repr_html_() == first._repr_html_()
        answer = session.answer(count().by("sex"), epsilon=1)
        assert Answer.from_dict(again(answer.to_dict()), session.policy) == answer
        before = session.preview(queries, rho=None, epsilon=1)
        assert Preview.from_dict(again(before.to_dict()), session.policy) == before
        derived = session.derive(count())
        assert derived is not None
        assert str(Derived.from_dict(again(derived.to_dict()))) == str(derived)
