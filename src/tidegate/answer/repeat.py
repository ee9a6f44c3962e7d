"""How a charged question is asked again, so that its stored answer is found and nothing is charged.

The ledger keeps the noise that was charged (the event), not the rho, epsilon or error that it came from. A loss that leads to
the same noise is found here: the same question with the same noise is the same request.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidegate.accounting import Amount, Event, Together, event_from_dict
from tidegate.answer.query_json import query_from_dict, query_to_dict
from tidegate.answer.request import Query
from tidegate.answer.run import plan
from tidegate.errors import TidegateError
from tidegate.ledger.entry import canonical
from tidegate.policy import Policy

DIGITS = (2, 4, 6, 9, 12, 15, 20, 30)  # decimals that somebody may have asked with: a short one reads better
ROUNDED, STEPS = 2**10, 120  # the coarsest rounding is that of ranks: 1 part in 2**12


@dataclass(frozen=True)
class Again:
    """Questions that were charged together, and the loss with which they are found."""

    queries: tuple[Query, ...]
    epsilon: Amount

    def to_dict(self) -> dict[str, Any]:
        """The request, as the service reads it."""
        return {"questions": [query_to_dict(query) for query in self.queries], "epsilon": str(self.epsilon)}


def asked_again(body: Mapping[str, Any], policy: Policy) -> Again | None:
    """The request that finds a charge's stored answer; None where it was no question, or would be another one today.

    Guarantee  Asked under this policy, it has the question and the event of the charge: `Session.answer` finds it and
               charges nothing.
    """
    if body["question"].get("verb") != "answer":
        return None
    asks, event = body["question"]["asks"], event_from_dict(body["event"])
    try:
        queries = tuple(query_from_dict(ask) for ask in asks)
        if canonical([query.question(policy) for query in queries]) != canonical(asks):
            return None
        loss = _loss(queries, policy, event)
    except TidegateError:  # a column that is gone, a universe that is another
        return None
    return Again(queries, loss) if loss is not None else None


def _loss(queries: tuple[Query, ...], policy: Policy, event: Event) -> Amount | None:
    """A loss that is planned as this event. Noise is rounded up, so the price is at most a little below what was asked."""
    price = event.price.value
    for digits in DIGITS:
        tried = Amount.up(Fraction(math.ceil(price * 10**digits), 10**digits))
        if _planned(queries, policy, tried) == event:
            return tried
    return _between(queries, policy, event)


def _between(queries: tuple[Query, ...], policy: Policy, event: Event) -> Amount | None:
    """More loss never means more noise, so the interval can be halved by what the plan costs."""
    low, high = event.price.grains, event.price.grains + event.price.grains // ROUNDED + 2
    for _ in range(STEPS):
        middle = Amount((low + high) // 2)
        planned = _planned(queries, policy, middle)
        if planned == event:
            return middle
        if high - low <= 1:
            return None
        low, high = (middle.grains, high) if planned.price < event.price else (low, middle.grains)
    return None


def _planned(queries: tuple[Query, ...], policy: Policy, loss: Amount) -> Event:
    events = plan(queries, policy, epsilon=loss.value)
    return Together(events) if len(events) > 1 else events[0]
