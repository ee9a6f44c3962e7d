"""The cost of a request and the resulting risks: shown with every charged result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidegate.accounting import FREE, ZERO, Amount, Budget, Price, budget_of
from tidegate.accounting.budget import PREFIX
from tidegate.ledger import totals
from tidegate.ledger.account import Account
from tidegate.ledger.ledger import Receipt, SourceChange
from tidegate.policy import Policy


@dataclass(frozen=True)
class Charge:
    """The cost of a request, the account after it, and the resulting risks."""

    cost: Amount
    price: Price
    account: Account
    budget: Budget
    entry: str
    stored: str = ""  # time at which the result was stored, in ISO form; empty for a new one
    source: SourceChange = "unknown"

    @classmethod
    def of(cls, receipt: Receipt, policy: Policy) -> Charge:
        """Return the charge that a receipt proves."""
        stored = "" if receipt.fresh or receipt.stored is None else receipt.entry.at
        cost, budget = receipt.cost, budget_of(policy)
        return cls(cost, receipt.price, receipt.account, budget, receipt.entry.hash, stored, receipt.source)

    @classmethod
    def nothing(cls, account: Account, policy: Policy) -> Charge:
        """Return the charge of public numbers: nothing, without an entry."""
        return cls(ZERO, FREE, account, budget_of(policy), "")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy) -> Charge:
        """Return the charge that `to_dict` wrote."""
        account = account_from_dict(data, policy)
        cost, stored = Amount.parse(data["cost"]), data["stored"] or ""
        price = Price.from_dict(data["cost_by_unit"])
        return cls(cost, price, account, budget_of(policy), data["entry"], stored, data["source"])

    @property
    def _before(self) -> Price:
        return self.account.exposure.minus(self.price)

    def identification(self) -> dict[str, dict[str, float]]:
        """Return the identification of each protected target: before this answer, after it, and its limit."""
        return {
            target.name: {
                "before": float(target.identification(self._before)),
                "after": float(target.identification(self.account.exposure)),
                "ceiling": float(target.rho),
            }
            for target in self.budget.targets
        }

    def yes_no(self) -> dict[str, float]:
        """Return the worst certainty of a yes/no question about one person: before this answer, after it, at the limit."""
        losses = {"before": self._before, "after": self.account.exposure}
        certainty = {name: self.budget.yes_no(loss) for name, loss in losses.items()}
        return {**certainty, "ceiling": self.account.yes_no_limit(self.budget)}

    def says(self) -> str:
        """Return ``cost 0.14, 1.18 remaining     identification of age at most 0.026     yes/no certainty ...``.

        For a stored answer, add its date, and a line on its source if that changed.
        """
        risks = [f"identification of {name} at most {p['after']:.3g}" for name, p in self.identification().items()]
        risks += [f"yes/no certainty at most {self.yes_no()['after']:.3g}"] if risks else []
        cost = f"cost {PREFIX[self.account.unit]}{self.cost.say()}, {self.account.left.say()} remaining"
        entry = [f"entry {self.entry[:8]}"] if self.entry else ["public, so nothing was charged"]
        parts = [*stored_in_words(self.stored), cost, *risks, *entry]
        return "\n".join(["     ".join(parts), *source_in_words(self.stored, self.source)])

    def to_dict(self) -> dict[str, Any]:
        return {
            "cost": str(self.cost),
            "spent": str(self.account.spent),
            "left": str(self.account.left),
            "ceiling": str(self.account.ceiling),
            "policy": self.account.policy,
            **self.account.in_all_units(self.price, after=self.account.totals),
            "guarantee": self.budget.guarantee,
            "identification": self.identification(),
            "yes_no": self.yes_no(),
            "entry": self.entry,
            "stored": self.stored or None,
            "source": self.source,
        }


def account_from_dict(data: Mapping[str, Any], policy: Policy) -> Account:
    """Return the account of a result's JSON: its keys `spent`, `ceiling`, `spent_by_unit` and `policy` (the fingerprint)."""
    name, spent, ceiling = policy.dataset.name, Amount.parse(data["spent"]), Amount.parse(data["ceiling"])
    limits = budget_of(policy).ceilings
    lowered = replace(limits, z=ceiling) if limits.unit == "z" else replace(limits, pure=ceiling)
    own = Price.from_dict(data["spent_by_unit"])
    group: tuple[tuple[str, totals.Totals], ...] = ()
    if "spent_on_persons" in data:  # with accounts that share persons, which the result does not list
        others = Price.from_dict(data["spent_on_persons"]).minus(own)
        group = (("", totals.Totals(others)),)
    left = Amount.parse(data["left"]) if "left" in data else None
    is_limited = left is not None and (bool(group) or left < ceiling.minus(spent))  # by others, or by a budget share
    return Account(name, spent, ceiling, data["policy"], own, lowered, group, left if is_limited else None)


def stored_in_words(at: str) -> list[str]:
    """Return ``stored answer of 2026-11-16 09:12 UTC``, if there is one."""
    return [f"stored answer of {minute(at)}"] if at else []


def source_in_words(at: str, source: str) -> list[str]:
    """Return a note on a stored answer whose source has changed."""
    if not at or source not in ("changed", "may have changed"):
        return []
    change = "has changed" if source == "changed" else "may have changed"
    return [
        f"This answer describes the source as of {minute(at)}. The source {change} since. "
        "To get a new answer, which is charged, set `edition` in [dataset] to another text."
    ]


def minute(at: str) -> str:
    """Return the time of an entry to the minute."""
    return f"{at[:16].replace('T', ' ')} UTC"
