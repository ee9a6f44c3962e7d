"""The steps of an answer: check, charge, run, record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tidegate.accounting import Amount, Event, Together, budget_of
from tidegate.accounting.budget import SHORT
from tidegate.answer.comparison import number
from tidegate.answer.limits import check_limits, check_usefulness, condition_note, usefulness_note
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.request import Query
from tidegate.answer.result import Answer, Answers, Expected, Preview
from tidegate.answer.spending import Planning, RequestedLoss, error_of
from tidegate.answer.workloads import Strategy, plan_workload
from tidegate.errors import BudgetExceeded, TidegateError, Unsupported
from tidegate.ledger import Account, Charge, Ledger, Receipt
from tidegate.noise import Bits
from tidegate.policy import EachRow, Policy

if TYPE_CHECKING:
    from tidegate.tables import Table


def answer(
    queries: tuple[Query, ...],
    policy: Policy,
    open_table: Callable[[str], Table],
    ledger: Ledger,
    *,
    loss: RequestedLoss,
    bits: Bits,
    planning: Planning = "one-by-one",
    key: str = "",
    user: str = "",
    budget_share: Amount | None = None,
    anyway: bool = False,
) -> Answers:
    """Return the answers to a request, charged and recorded before they are returned."""
    planned = plan_request(queries, policy, loss=loss, planning=planning)
    ledger.open_account(policy)
    request_identity = planned.identity()
    receipt = ledger.asked_before(policy, question=request_identity, request=key)
    if receipt is None:
        check_limits(queries, policy)
        if not anyway and planned.strategy is None:
            check_usefulness(queries, policy, planned.events)
        # a source that cannot be read is found here, before anything is charged
        tables = {query.table: open_table(query.table) for query in queries}
        if isinstance(policy.dataset.unit, EachRow):  # means are divided by the number of rows, counts are at most that
            tables[""].check_rows()
        _rehearse(planned, tables)
        says = "; ".join(query.says() for query in queries)
        refused = None
        try:
            receipt = ledger.charge(
                policy, planned.event, question=request_identity, says=says, request=key, who=user, share=budget_share
            )
        except BudgetExceeded as error:
            refused = error
        if receipt is None:
            raise _with_advice(refused, queries, policy)
    stored = receipt.stored
    if stored is None:
        stored = receipt.record(receipt.run(lambda: planned.run(tables, bits)))
    return planned.read(receipt, stored)


@dataclass(frozen=True)
class PlannedRequest:
    """Queries with their noise: each with an event of its own, or all from one strategy."""

    queries: tuple[Query, ...]
    policy: Policy
    events: tuple[Event, ...]
    strategy: Strategy | None = None

    @property
    def event(self) -> Event:
        """The event that is charged."""
        if self.strategy is not None:
            return self.strategy.event
        return Together(self.events) if len(self.events) > 1 else self.events[0]

    def identity(self) -> dict[str, Any]:
        """Return the identity of the request in the ledger: its queries and their noise."""
        asks = [query.question(query.target(self.policy)) for query in self.queries]
        named = {"verb": "answer", "asks": asks, "event": self.event.to_dict()}
        return {**named, "plan": self.strategy.describe()} if self.strategy is not None else named

    def rehearse(self, tables: Mapping[str, Table]) -> None:
        """Run the engine's queries."""
        if self.strategy is not None:
            self.strategy.exact(tables[""])
            return
        for query in self.queries:
            mechanism_for(query).exact(query, tables[query.table])

    def run(self, tables: Mapping[str, Table], bits: Bits) -> dict[str, Any]:
        """Return the stored result: the exact integers of the tables, with noise."""
        if self.strategy is not None:
            return {"noisy": self.strategy.perturb(self.strategy.exact(tables[""]), bits=bits)}
        parts = []
        for query, event in zip(self.queries, self.events, strict=True):
            mechanism = mechanism_for(query)
            parts.append(mechanism.perturb(mechanism.exact(query, tables[query.table]), event, bits=bits))
        return {"parts": parts}

    def parts(self, stored: Any) -> list[Any]:
        """Return the part of a stored result that belongs to each query."""
        if self.strategy is None:
            return list(stored["parts"])
        return [estimated.to_stored() for estimated in self.strategy.estimate(stored["noisy"])]

    def read(self, receipt: Receipt, stored: Any) -> Answers:
        """Return the answers of a stored result."""
        charge = Charge.of(receipt, self.policy)
        pairs = zip(self.queries, self.events, self.parts(stored), strict=True)
        answers = (Answer(query, query.target(self.policy), event, part, charge) for query, event, part in pairs)
        return Answers(tuple(answers), charge)

    def expected(self, confidence: float, free: Sequence[str]) -> list[Expected]:
        """Return the error and the caution of every query."""
        target = {query: query.target(self.policy) for query in self.queries}
        if self.strategy is not None:
            errors: list[float | None] = [part.half_width(confidence) for part in self.strategy.expected()]
            cautions = [f"measured together: {self.strategy.name}"] * len(self.queries)
        else:
            pairs = list(zip(self.queries, self.events, strict=True))
            errors = [mechanism_for(q).error(q, target[q], event, confidence=confidence) for q, event in pairs]
            cautions = [mechanism_for(q).caution(q, target[q], event) for q, event in pairs]
            useless = [usefulness_note(q, target[q], event) for q, event in pairs]
            cautions = ["; ".join(filter(None, notes)) for notes in zip(useless, cautions, strict=True)]
        impossible = [condition_note(query, target[query]) for query in self.queries]
        cautions = ["; ".join(filter(None, notes)) for notes in zip(impossible, cautions, strict=True)]
        notes = free or [""] * len(self.queries)
        columns = zip(self.queries, self.events, errors, cautions, notes, strict=True)
        return [Expected(*column) for column in columns]


def plan_request(
    queries: Sequence[Query], policy: Policy, *, loss: RequestedLoss, planning: Planning = "one-by-one"
) -> PlannedRequest:
    """Return queries with their noise. planning="auto": all from one strategy, if that has less error."""
    if planning not in ("one-by-one", "auto"):
        raise Unsupported('`plan` must be "one-by-one" or "auto".')
    events = plan(queries, policy, loss=loss)
    if planning == "auto" and not policy.tables:
        check_limits(queries, policy)
        strategy = plan_workload(queries, policy, loss)
        if strategy is not None:
            return PlannedRequest(tuple(queries), policy, (strategy.event,) * len(queries), strategy)
    return PlannedRequest(tuple(queries), policy, events)


def plan(queries: Sequence[Query], policy: Policy, *, loss: RequestedLoss) -> tuple[Event, ...]:
    """Return the event of each query, for equal parts of the loss."""
    if not queries:
        raise Unsupported("The request contains no queries.", "Add at least one, for example count().")
    for query in queries:
        query.check(query.target(policy))
    part = loss.part(len(queries))
    try:
        return tuple(part.event(query, policy) for query in queries)
    except (ValueError, ZeroDivisionError):
        pass
    unit = SHORT[loss.unit]
    raise Unsupported(f"{unit} is too small: its noise would exceed 64-bit integers.", f"Use a larger {unit}.")


def preview(
    queries: tuple[Query, ...],
    policy: Policy,
    account: Account,
    *,
    loss: RequestedLoss,
    confidence: float,
    planning: Planning = "one-by-one",
    free: Sequence[str] = (),
) -> Preview:
    """Return the exact charge of `answer`, without reading a row or spending anything."""
    planned = plan_request(queries, policy, loss=loss, planning=planning)
    check_limits(queries, policy)
    expected = planned.expected(confidence, free)
    return Preview(tuple(expected), planned.event.price, account, budget_of(policy), confidence)


def _rehearse(planned: PlannedRequest, tables: Mapping[str, Table]) -> None:
    """Run the engine's queries on no rows. A failure here has a public reason, before the charge."""
    empty, problem = {name: table.without_rows() for name, table in tables.items()}, ""
    try:
        planned.rehearse(empty)
    except TidegateError:
        raise
    except Exception as error:  # of a library that builds or compiles the query
        says = "; ".join(query.says() for query in planned.queries)
        problem = f"{says[0].upper()}{says[1:]} cannot be computed by {next(iter(tables.values())).engine} ({type(error).__name__})."
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
    return BudgetExceeded(refused.what, f"{refused.do.rstrip('.')}{means}.", **refused.facts)
