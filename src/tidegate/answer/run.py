"""The steps of an answer: check, charge, run, record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from tidegate.accounting import Amount, Event, Together, budget_of
from tidegate.accounting.budget import SHORT
from tidegate.answer.comparison import number
from tidegate.answer.limits import check_limits
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.request import Query
from tidegate.answer.result import Answer, Answers, Expected, Preview
from tidegate.answer.spending import RequestedLoss, error_of
from tidegate.errors import BudgetExceeded, TidegateError, Unsupported
from tidegate.ledger import Account, Charge, Ledger
from tidegate.noise import Bits
from tidegate.policy import EachRow, Policy
from tidegate.tables import Table


def answer(
    queries: tuple[Query, ...],
    policy: Policy,
    open_table: Callable[[], Table],
    ledger: Ledger,
    *,
    loss: RequestedLoss,
    bits: Bits,
    key: str = "",
    user: str = "",
    budget_share: Amount | None = None,
) -> Answers:
    """Return the answers to a request, charged and recorded before they are returned."""
    events = plan(queries, policy, loss=loss)
    together = Together(events) if len(events) > 1 else events[0]
    ledger.open_account(policy)
    request_identity = identity(queries, policy, together)
    receipt = ledger.asked_before(policy, question=request_identity, request=key)
    if receipt is None:
        check_limits(queries, policy)
        table = open_table()  # a source that cannot be read is found here, before anything is charged
        if isinstance(policy.dataset.unit, EachRow):  # means are divided by the number of rows, counts are at most that
            table.check_rows()
        _rehearse(queries, table)
        says = "; ".join(query.says() for query in queries)
        refused = None
        try:
            receipt = ledger.charge(
                policy, together, question=request_identity, says=says, request=key, who=user, share=budget_share
            )
        except BudgetExceeded as error:
            refused = error
        if receipt is None:
            raise _with_advice(refused, queries, policy)
    stored = receipt.stored
    if stored is None:
        parts = [_noisy(query, table, event, bits) for query, event in zip(queries, events, strict=True)]
        stored = receipt.record({"parts": parts})
    charge = Charge.of(receipt, policy)
    pairs = zip(queries, events, stored["parts"], strict=True)
    return Answers(tuple(Answer(query, policy, event, part, charge) for query, event, part in pairs), charge)


def identity(queries: Sequence[Query], policy: Policy, event: Event) -> dict[str, Any]:
    """Return the identity of a request in the ledger: its queries and their noise."""
    return {"verb": "answer", "asks": [query.question(policy) for query in queries], "event": event.to_dict()}


def plan(queries: Sequence[Query], policy: Policy, *, loss: RequestedLoss) -> tuple[Event, ...]:
    """Return the event of each query, for equal parts of the loss."""
    if not queries:
        raise Unsupported("The request contains no queries.", "Add at least one, for example count().")
    for query in queries:
        query.check(policy)
    part = loss.part(len(queries))
    try:
        return tuple(part.event(query, policy) for query in queries)
    except (ValueError, ZeroDivisionError):
        pass
    unit = SHORT[loss.unit]
    raise Unsupported(
        f"{unit} is too small: its noise would be larger than 64-bit integers.", f"Request a larger {unit}."
    )


def preview(
    queries: tuple[Query, ...],
    policy: Policy,
    account: Account,
    *,
    loss: RequestedLoss,
    confidence: float,
    free: Sequence[str] = (),
) -> Preview:
    """Return the exact charge of `answer`, without reading a row or spending anything."""
    events = plan(queries, policy, loss=loss)
    check_limits(queries, policy)
    expected = []
    for index, (query, event) in enumerate(zip(queries, events, strict=True)):
        mechanism = mechanism_for(query)
        error = mechanism.error(query, policy, event, confidence=confidence)
        caution = mechanism.caution(query, policy, event)
        expected.append(Expected(query, event, error, caution, free[index] if free else ""))
    return Preview(tuple(expected), Together(events).price, account, budget_of(policy), confidence)


def _noisy(query: Query, table: Table, event: Event, bits: Bits) -> dict[str, Any]:
    """Return the stored result of one query: the exact integers of the table, with noise."""
    mechanism = mechanism_for(query)
    return mechanism.perturb(mechanism.exact(query, table), event, bits=bits)


def _rehearse(queries: Sequence[Query], table: Table) -> None:
    """Run the engine's queries on no rows. A failure here has a public reason, before the charge."""
    empty, problem = table.without_rows(), ""
    for query in queries:
        try:
            mechanism_for(query).exact(query, empty)
        except TidegateError:
            raise
        except Exception as error:  # of a library that builds or compiles the query
            problem = f"{query.says()[0].upper()}{query.says()[1:]} cannot be computed by {table.engine} ({type(error).__name__})."
    if problem:
        raise Unsupported(problem, "Nothing was charged. Ask in a simpler form, or check the columns' types.")


def _with_advice(refused: BudgetExceeded | None, queries: tuple[Query, ...], policy: Policy) -> BudgetExceeded:
    """Return the refusal with the nearest request that fits, and its error."""
    if refused is None:
        raise ValueError("A refusal is required.")
    left = Fraction(refused.facts["left"])
    if refused.facts.get("ceiling") == "0":
        return refused  # the policy promises nothing, so the ledger is empty
    remaining = RequestedLoss(left, budget_of(policy).unit)
    worth = left > Fraction(1, 10**6) and len(queries) == 1 and refused.facts.get("unit", "epsilon") == remaining.unit
    error: Any = error_of(queries[0], policy, remaining, 0.95) if worth else None
    means = f" (its error would be at most {number(error)} with 95% confidence)" if error is not None else ""
    return BudgetExceeded(
        refused.what,
        f"{refused.do.rstrip('.')}{means}{', or' if left else ';'} see what was spent: tidegate ledger show POLICY",
        **refused.facts,
    )
