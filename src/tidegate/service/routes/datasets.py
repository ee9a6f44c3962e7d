"""Data sets: public facts, promises, accounts. Locations and passwords are never included."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from tidegate.accounting import Amount, budget_of, epsilon_at_delta
from tidegate.accounting.average import shown_epsilon
from tidegate.accounting.explain import explain
from tidegate.ledger import Account
from tidegate.policy.tables import public_content
from tidegate.service.access.callers import Caller
from tidegate.service.datasets import ServedDataset
from tidegate.service.models.access import DatasetList, DatasetView
from tidegate.service.routes.dependencies import CurrentCaller, Described, Served, router

routes = router()


@routes.get("/data", response_model=DatasetList)
def list_data(request: Request, caller: CurrentCaller) -> Described:
    visible = [served for name, served in request.app.state.datasets.items() if caller.can_use(name)]
    return {"datasets": [summary(served, caller) for served in visible]}


@routes.get("/data/{name}", response_model=DatasetView)
def describe_data(served: Served, caller: CurrentCaller) -> Described:
    policy = served.policy
    return {
        **summary(served, caller),
        "policy": policy.public_dict(),
        **({"references": public_content(policy)} if policy.tables else {}),
        "findings": [finding.to_dict() for finding in explain(policy)],
    }


def summary(served: ServedDataset, caller: Caller) -> Described:
    """Return a summary of a data set: its account, desks and collections."""
    policy = served.policy
    answers = bool(policy.identification or policy.loss)
    return {
        "name": served.name,
        "fingerprint": policy.fingerprint,
        "edition": policy.dataset.edition,
        "rows": policy.dataset.rows,
        "promise": str(policy.identification or policy.loss or ""),
        "account": account_of(served, caller) if answers else None,
        "warnings": [finding.to_dict() for finding in explain(policy) if finding.warning],
        "desks": list(policy.release_promises),
        "collections": list(policy.collections),
        "polls": list(policy.polls),
        "only_polls": policy.is_for_polls,
    }


def account_of(served: ServedDataset, caller: Caller) -> Described:
    """Return the spent and remaining budget, its meaning for each protected attribute, and the caller's budget share."""
    account, budget = served.session.account, budget_of(served.policy)
    targets = {
        target.name: {"now": float(target.identification(account.totals)), "ceiling": float(target.rho)}
        for target in budget.targets
    }
    amounts = {"spent": account.spent, "left": account.left, "ceiling": account.ceiling}
    values: dict[str, Any] = {name: str(amount) for name, amount in amounts.items()}
    values |= {"unit": account.unit, "guarantee": budget.guarantee, "spent_by_unit": account.totals.to_dict()}
    values |= {"epsilon_at_delta": shown_epsilon(account.totals), "epsilon_at_delta_limit": _limit(account)}
    values["yes_no"] = {"now": budget.yes_no(account.totals), "ceiling": account.yes_no_limit(budget)}
    return {**values, "identification": targets, "own": _own(served, caller)}


def _limit(account: Account) -> float | None:
    """Return epsilon at delta = 1e-6 when the budget is used up, at most; None if the limit is a pure epsilon."""
    return epsilon_at_delta(Amount(4 * account.ceiling.grains)) if account.unit == "z" else None


def _own(served: ServedDataset, caller: Caller) -> Described:
    spent = served.session.ledger.spent_by(served.name, caller.name)
    if caller.share is None:
        return {"share": None, "spent": str(spent), "left": None}
    return {"share": str(caller.share), "spent": str(spent), "left": str(caller.share.minus(spent))}
