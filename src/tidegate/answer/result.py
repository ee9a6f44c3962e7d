"""What is given back: the value, how wrong it may be, what it cost, and what that means."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting import Amount, Budget
from tidegate.ledger import Account
from tidegate.noise import noise_quantile


@dataclass(frozen=True)
class Answer:
    """A noisy answer. `values` has one axis per grouped column; `labels` names the cells along each."""

    says: str
    values: NDArray[np.int64]
    labels: dict[str, list[Any]]
    scale: Fraction
    cost: Amount
    account: Account
    budget: Budget
    entry: str

    @property
    def value(self) -> Any:
        """The one number, where nothing was grouped; else the array."""
        return self.values.item() if self.values.ndim == 0 else self.values

    def error(self, confidence: float = 0.95) -> int:
        """The noise of one number is at most this, with the given confidence."""
        return noise_quantile(self.scale, confidence)

    def interval(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """Where the true value lies, with the given confidence (of the noise; for each number on its own)."""
        return self.value - self.error(confidence), self.value + self.error(confidence)

    def identification(self) -> dict[str, float]:
        """For each protected target, the probability of identification that all answers so far allow."""
        return {name: float(p) for name, p in self.budget.identification(self.account.spent).items()}

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per cell, with its labels."""
        names = list(self.labels)
        return [
            {
                **{name: self.labels[name][i] for name, i in zip(names, place, strict=True)},
                "count": int(number),
            }
            for place, number in np.ndenumerate(self.values)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return {
            "question": self.says,
            "values": self.values.tolist(),
            "labels": self.labels,
            "error_95": self.error(),
            "cost": str(self.cost),
            "spent": str(self.account.spent),
            "left": str(self.account.left),
            "identification": self.identification(),
            "entry": self.entry,
        }

    def __str__(self) -> str:
        shown = f"{self.value:,}" if self.values.ndim == 0 else f"{self.values.size:,} numbers"
        risks = "".join(f"     identification of {name} at most {p:.3g}" for name, p in self.identification().items())
        cost = f"cost {self.cost.say()}, left {self.account.left.say()}"
        return f"{shown}   (noise: within {self.error():,}, 95%)     {cost}{risks}     entry {self.entry[:8]}"


@dataclass(frozen=True)
class Preview:
    """What a question would cost and how wrong its answer may be. Nothing was read, nothing was spent."""

    says: str
    cost: Amount
    error_95: int
    account: Account
    budget: Budget

    @property
    def fits(self) -> bool:
        return self.cost <= self.account.left

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        after = {name: float(p) for name, p in self.budget.identification(self.account.spent + self.cost).items()}
        return {
            "question": self.says,
            "cost": str(self.cost),
            "left": str(self.account.left),
            "fits": self.fits,
            "error_95": self.error_95,
            "identification_after": after,
        }

    def __str__(self) -> str:
        risks = "; ".join(
            f"identification of {name} at most {p:.3g} afterwards"
            for name, p in self.to_dict()["identification_after"].items()
        )
        left = f"(left {self.account.left.say()}{'' if self.fits else ': too much'})"
        return (
            f"would cost   epsilon {self.cost.say()} {left}{'; ' + risks if risks else ''}\n"
            f"would be     within {self.error_95:,} of the true number 95 times in 100\n"
            "nothing was asked, nothing was spent."
        )
