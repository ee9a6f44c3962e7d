"""The cost of a request and the resulting risks: shown with every charged result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.accounting import Amount, Budget, budget_of, yes_no_certainty
from tidegate.ledger.ledger import Account, Receipt, SourceChange
from tidegate.policy import Policy


@dataclass(frozen=True)
class Charge:
    """The cost of a request, the account after it, and the resulting risks."""

    cost: Amount
    account: Account
    budget: Budget
    entry: str
    stored: str = ""  # time at which the result was stored, in ISO form; empty for a new one
    source: SourceChange = "unknown"

    @classmethod
    def of(cls, receipt: Receipt, policy: Policy) -> Charge:
        """Return the charge that a receipt proves."""
        stored = "" if receipt.fresh or receipt.stored is None else receipt.entry.at
        return cls(receipt.cost, receipt.account, budget_of(policy), receipt.entry.hash, stored, receipt.source)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy) -> Charge:
        """Return the charge that `to_dict` wrote."""
        account = account_from_dict(data, policy)
        cost, stored = Amount.parse(data["cost"]), data["stored"] or ""
        return cls(cost, account, budget_of(policy), data["entry"], stored, data["source"])

    def identification(self) -> dict[str, dict[str, float]]:
        """Return the identification of each protected target: before this answer, after it, and its limit."""
        before = Amount(self.account.spent.grains - self.cost.grains)
        return {
            target.name: {
                "before": float(target.identification(before)),
                "after": float(target.identification(self.account.spent)),
                "ceiling": float(target.rho),
            }
            for target in self.budget.targets
        }

    def yes_no(self) -> dict[str, float]:
        """Return the worst certainty of a yes/no question about one person: before this answer, after it, at the limit."""
        before = Amount(self.account.spent.grains - self.cost.grains)
        losses = {"before": before, "after": self.account.spent, "ceiling": self.account.ceiling}
        return {name: float(yes_no_certainty(loss)) for name, loss in losses.items()}

    def says(self) -> str:
        """Return ``cost 0.14, 1.18 remaining     identification of age at most 0.026     yes/no certainty ...``.

        For a stored answer, add its date, and a line on its source if that changed.
        """
        risks = [f"identification of {name} at most {p['after']:.3g}" for name, p in self.identification().items()]
        risks += [f"yes/no certainty at most {self.yes_no()['after']:.3g}"] if risks else []
        cost = f"cost {self.cost.say()}, {self.account.left.say()} remaining"
        parts = [*stored_in_words(self.stored), cost, *risks, f"entry {self.entry[:8]}"]
        return "\n".join(["     ".join(parts), *source_in_words(self.stored, self.source)])

    def to_dict(self) -> dict[str, Any]:
        return {
            "cost": str(self.cost),
            "spent": str(self.account.spent),
            "left": str(self.account.left),
            "ceiling": str(self.account.ceiling),
            "policy": self.account.policy,
            "identification": self.identification(),
            "yes_no": self.yes_no(),
            "entry": self.entry,
            "stored": self.stored or None,
            "source": self.source,
        }


def account_from_dict(data: Mapping[str, Any], policy: Policy) -> Account:
    """Return the account of a result's JSON: its keys `spent`, `ceiling` and `policy` (the fingerprint)."""
    name, spent, ceiling = policy.dataset.name, Amount.parse(data["spent"]), Amount.parse(data["ceiling"])
    return Account(name, spent, ceiling, data["policy"])


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
