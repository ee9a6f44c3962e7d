"""The story of an answer: check, charge, run, record."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.accounting import Budget, DiscreteLaplace, budget_of
from tidegate.answer.mechanisms.count import noisy_counts
from tidegate.answer.request import Count
from tidegate.answer.result import Answer, Preview
from tidegate.errors import Unsupported
from tidegate.ledger import Account, Ledger, Receipt
from tidegate.noise import Bits, noise_quantile
from tidegate.policy import Policy
from tidegate.policy.exact import Number, exact
from tidegate.tables import Table


def answer(
    request: Count, table: Table, ledger: Ledger, *, epsilon: Number, bits: Bits, key: str = "", who: str = ""
) -> Answer:
    """The answer to a request, charged and recorded before it leaves."""
    policy = table.policy
    event = _event(request, policy, epsilon)
    ledger.open_account(policy)
    asked = {**request.question(policy), "event": event.to_dict()}
    receipt = ledger.charge(policy, event, question=asked, says=request.says(), request=key, who=who)
    found = receipt.stored
    if found is None:
        found = receipt.record(noisy_counts(request, table, event, bits=bits))
    return _answer(request, found, receipt, budget_of(policy))


def preview(request: Count, policy: Policy, account: Account, *, epsilon: Number) -> Preview:
    """What `answer` would charge. Reads no row and spends nothing."""
    event = _event(request, policy, epsilon)
    return Preview(request.says(), event.price, noise_quantile(event.scale, 0.95), account, budget_of(policy))


def _event(request: Count, policy: Policy, epsilon: Number) -> DiscreteLaplace:
    request.check(policy)
    wanted = _positive(epsilon)
    try:
        return request.event(policy, epsilon=wanted)
    except ValueError:
        pass
    raise Unsupported(
        "epsilon is too small: its noise would be larger than 64-bit integers.", "Ask with a larger epsilon."
    )


def _positive(epsilon: Number) -> Fraction:
    try:
        value = exact(epsilon)
    except (TypeError, ValueError):
        value = Fraction(0)
    if value <= 0:
        raise Unsupported(
            "epsilon must be a number above 0.", "Ask with epsilon=0.1, say; preview shows what that means."
        )
    return value


def _answer(request: Count, found: Any, receipt: Receipt, budget: Budget) -> Answer:
    values = np.array(found["cells"], np.int64)
    return Answer(
        says=request.says(),
        values=values,
        labels=found["labels"],
        scale=Fraction(found["scale"]),
        cost=receipt.cost,
        account=receipt.account,
        budget=budget,
        entry=receipt.entry.hash,
    )
