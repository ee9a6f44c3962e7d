"""Repetition of a charged query, so that its stored answer is found and nothing is charged.

The ledger stores the charged noise (the event), not the rho, epsilon or error that it came from. This module finds a loss
with the same noise: the same query with the same noise is the same request.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidegate.accounting import ZERO, Amount, Event, Together, Unit, budget_of, event_from_dict
from tidegate.answer.query_json import query_from_dict, query_to_dict
from tidegate.answer.request import Query
from tidegate.answer.result import Answers
from tidegate.answer.run import PlannedRequest, plan_request
from tidegate.answer.spending import Planning, RequestedLoss
from tidegate.errors import TidegateError
from tidegate.ledger import Receipt
from tidegate.ledger.entry import canonical
from tidegate.policy import Policy

DIGITS = (2, 4, 6, 9, 12, 15, 20, 30)  # decimals of plausible requests: short ones read better
ROUNDED, STEPS = 2**10, 120  # the coarsest rounding is that of ranks: 1 in 2**12
ROUNDED_GRAINS = 1000  # the prices of the sums of one query are rounded up to a grain each


@dataclass(frozen=True)
class Again:
    """Queries that were charged together, and a loss that finds them."""

    queries: tuple[Query, ...]
    loss: Amount
    unit: Unit = "epsilon"
    planning: Planning = "one-by-one"

    def plan(self, policy: Policy) -> PlannedRequest:
        """Return the queries with the noise of the charge."""
        loss = RequestedLoss(self.loss.value, self.unit)
        return plan_request(self.queries, policy, loss=loss, planning=self.planning)

    def to_dict(self) -> dict[str, Any]:
        """Return the request in the form of the service."""
        plan = {"plan": self.planning} if self.planning != "one-by-one" else {}
        return {"questions": [query_to_dict(query) for query in self.queries], self.unit: str(self.loss), **plan}


def stored_answers(receipt: Receipt, again: Again, policy: Policy) -> Answers:
    """Return the stored answers of a charge: no row is read, and nothing is charged."""
    return again.plan(policy).read(receipt, receipt.stored)


def asked_again(body: Mapping[str, Any], policy: Policy) -> Again | None:
    """Return the request that finds a charge's stored answer; None if it was not a query, or would differ today.

    Guarantee:
        Under this policy, the request has the query and the event of the charge: `Session.answer` finds it and
        charges nothing.
    """
    if body["question"].get("verb") != "answer":
        return None
    asks, event = body["question"]["asks"], event_from_dict(body["event"])
    try:
        queries = tuple(query_from_dict(ask) for ask in asks)
        if canonical([query.question(policy) for query in queries]) != canonical(asks):
            return None
        planning: Planning = "auto" if "plan" in body["question"] else "one-by-one"
        loss = _loss(_Search(queries, policy, planning), event)
        if loss is not None and _Search(queries, policy, planning).plan(loss).identity() != body["question"]:
            return None  # another strategy with the same noise
    except TidegateError:  # a removed column, or a changed universe
        return None
    return Again(queries, loss, budget_of(policy).unit, planning) if loss is not None else None


@dataclass(frozen=True)
class _Search:
    """The plans of one request at different losses."""

    queries: tuple[Query, ...]
    policy: Policy
    planning: Planning

    @property
    def unit(self) -> Unit:
        return budget_of(self.policy).unit

    def plan(self, loss: Amount) -> PlannedRequest:
        return plan_request(
            self.queries, self.policy, loss=RequestedLoss(loss.value, self.unit), planning=self.planning
        )

    def event(self, loss: Amount) -> Event:
        return self.plan(loss).event


def _loss(search: _Search, event: Event) -> Amount | None:
    """Return a loss whose plan is this event. Noise is rounded up, so the price is slightly below the requested loss."""
    least = _least_loss(event, 1 if search.planning == "auto" else len(search.queries), search.unit)
    for digits in DIGITS:
        tried = Amount.up(Fraction(math.ceil(least.value * 10**digits), 10**digits))
        if search.event(tried) == event:
            return tried
    return _between(search, event, least)


def _least_loss(event: Event, count: int, unit: Unit) -> Amount:
    """Return a lower bound of the loss: every query has an equal part, and costs at most that, up to rounded grains."""
    parts = event.parts if isinstance(event, Together) and count > 1 else (event,)
    return Amount(max(1, len(parts) * (max(_cost(part, unit).grains for part in parts) - ROUNDED_GRAINS)))


def _cost(event: Event, unit: Unit) -> Amount:
    cost = event.price.z if unit == "z" else event.price.pure
    return ZERO if cost is None else cost


def _between(search: _Search, event: Event, least: Amount) -> Amount | None:
    """Search by bisection on the cost of the plan: more loss hardly ever means more noise."""
    low, high = least.grains, least.grains + least.grains // ROUNDED + 2
    for _ in range(STEPS):
        middle = Amount((low + high) // 2)
        planned = search.event(middle)
        if planned == event:
            return middle
        if high - low <= 1:
            return None
        low, high = (
            (middle.grains, high) if _cost(planned, search.unit) < _cost(event, search.unit) else (low, middle.grains)
        )
    return None
