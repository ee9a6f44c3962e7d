"""What a request cost, and where that leaves everybody: shown with every result that was charged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidegate.accounting import Amount, Budget, budget_of, yes_no_certainty
from tidegate.ledger.ledger import Account, Receipt
from tidegate.policy import Policy


@dataclass(frozen=True)
class Charge:
    """What a request cost, and where that leaves everybody."""

    cost: Amount
    account: Account
    budget: Budget
    entry: str

    @classmethod
    def of(cls, receipt: Receipt, policy: Policy) -> Charge:
        """The charge that a receipt proves."""
        return cls(receipt.cost, receipt.account, budget_of(policy), receipt.entry.hash)

    def identification(self) -> dict[str, dict[str, float]]:
        """For each protected target: before this answer, after it, and the ceiling."""
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
        """The worst certainty of a yes/no question about one person: before this answer, after it, and with all."""
        before = Amount(self.account.spent.grains - self.cost.grains)
        losses = {"before": before, "after": self.account.spent, "ceiling": self.account.ceiling}
        return {name: float(yes_no_certainty(loss)) for name, loss in losses.items()}

    def says(self) -> str:
        """One line: ``cost 0.14, left 1.18     identification of age at most 0.026     yes/no certainty ...``."""
        risks = [f"identification of {name} at most {p['after']:.3g}" for name, p in self.identification().items()]
        risks += [f"yes/no certainty at most {self.yes_no()['after']:.3g}"] if risks else []
        return "     ".join(
            [f"cost {self.cost.say()}, left {self.account.left.say()}", *risks, f"entry {self.entry[:8]}"]
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "cost": str(self.cost),
            "spent": str(self.account.spent),
            "left": str(self.account.left),
            "identification": self.identification(),
            "yes_no": self.yes_no(),
            "entry": self.entry,
        }
