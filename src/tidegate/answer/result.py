"""Answers and previews: the value, its error, its cost, and the resulting risks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting import Amount, Budget, Event, Price, budget_of, event_from_dict
from tidegate.accounting.budget import SHORT
from tidegate.answer.comparison import Comparison, compare, number
from tidegate.answer.mechanisms import mechanism_for, read_stored
from tidegate.answer.mechanisms.mechanism import Reading, axes_of
from tidegate.answer.query_json import query_from_dict, query_to_dict
from tidegate.answer.request import Query
from tidegate.charts import Chart
from tidegate.ledger import Account, Charge
from tidegate.ledger.charge import account_from_dict
from tidegate.policy import EachPerson, Policy


@dataclass(frozen=True)
class Answer:
    """A noisy answer. `values` has one axis per grouped column (and one for a histogram's bins).

    Guarantee:
        A value lies in its public range and in its interval. `noisy` is the number before that.
    """

    query: Query
    policy: Policy
    event: Event
    stored: Any
    charge: Charge

    def _read(self, confidence: float) -> Reading:
        return read_stored(self.query, self.policy, self.event, self.stored, confidence=confidence)

    @property
    def values(self) -> NDArray[Any]:
        return self._read(0.95).values

    @property
    def noisy(self) -> Any:
        """The numbers before they were clipped to their public range: unbiased, for further arithmetic."""
        noisy = self._read(0.95).noisy
        return noisy.item() if noisy.ndim == 0 else noisy

    @property
    def value(self) -> Any:
        """The number if there is only one, otherwise the array."""
        return self.values.item() if self.values.ndim == 0 else self.values

    @property
    def labels(self) -> dict[str, list[Any]]:
        """The labels of the cells along each axis."""
        return {axis.name: [label_of(label) for label in axis.labels()] for axis in axes_of(self.query, self.policy)}

    def interval(self, confidence: float = 0.95) -> tuple[Any, Any] | None:
        """Where the true value lies with the given confidence: of the noise alone, for each number on its own. None for
        quantiles, whose error is one of rank (see `caution`)."""
        read = self._read(confidence)
        if read.low is None or read.high is None:
            return None
        return (read.low.item(), read.high.item()) if read.values.ndim == 0 else (read.low, read.high)

    @property
    def caution(self) -> str:
        """A note for the reader."""
        notes = [mechanism_for(self.query).caution(self.query, self.policy, self.event)]
        if isinstance(self.policy.dataset.unit, EachPerson):
            notes.append(
                f"a person counts with at most {self.policy.dataset.unit.at_most} rows, so those with more are undercounted"
            )
        return "; ".join(text for text in notes if text)

    @property
    def comparison(self) -> Comparison | None:
        """The groups that differ by more than the noise; None for one number, for quantiles, and above 200 groups."""
        cells = [
            dict(zip(self.labels, labels_of_cell, strict=True))
            for labels_of_cell in product(*self.labels.values())
            if self.labels
        ]
        return compare(self.query, self.policy, self.event, self.stored, labels=cells)

    @property
    def cost(self) -> Amount:
        return self.charge.cost

    @property
    def entry(self) -> str:
        return self.charge.entry

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per number: its labels, its value, its 95% interval, and the noisy number."""
        read, labels = self._read(0.95), self.labels
        rows_by_cell = []
        for index in np.ndindex(read.values.shape):
            row = {name: labels[name][i] for name, i in zip(labels, index, strict=True)}
            row[self.query.statistic] = read.values[index].item()
            if read.low is not None and read.high is not None:
                row["low"], row["high"] = read.low[index].item(), read.high[index].item()
                row["noisy"] = read.noisy[index].item()
            rows_by_cell.append(row)
        return rows_by_cell

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values. `result` has the noisy integers of the ledger: those that `event` prices."""
        compared = self.comparison
        return {
            "question": self.query.says(),
            "query": query_to_dict(self.query),
            "statistic": self.query.statistic,
            "rows": self.rows(),
            "comparison": compared.to_dict() if compared else None,
            "caution": self.caution,
            "event": self.event.to_dict(),
            "result": self.stored,
            **self.charge.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy) -> Answer:
        """Return the answer that `to_dict` wrote."""
        return cls._from_parts(data, policy, Charge.from_dict(data, policy))

    @classmethod
    def _from_parts(cls, data: Mapping[str, Any], policy: Policy, charge: Charge) -> Answer:
        query, event = query_from_dict(data["query"]), event_from_dict(data["event"])
        return cls(query, policy, event, data["result"], charge)

    def line(self) -> str:
        """Return the value and its error as text."""
        if self.values.ndim:
            compared = self.comparison
            finding = f"   {compared.says()}" if compared else ""
            return f"{self.query.says()}: {self.values.size:,} numbers{finding}{self._caution()}"
        between = self.interval()
        within = f"   (noise: {number(between[0])} to {number(between[1])}, 95%)" if between else ""
        return f"{number(self.value)}{within}{self._caution()}"

    def _caution(self) -> str:
        return f"   ({self.caution})" if self.caution else ""

    def __str__(self) -> str:
        return f"{self.line()}\n{self.charge.says()}"

    def plot(self) -> Chart:
        """Return a chart of the numbers with their 95% intervals."""
        from tidegate.answer.charts import chart

        return chart(self)

    def _repr_html_(self) -> str:
        from tidegate.answer.charts import html

        return html(self)


@dataclass(frozen=True)
class Answers:
    """Several answers under one charge."""

    answers: tuple[Answer, ...]
    charge: Charge

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, number: int) -> Answer:
        return self.answers[number]

    @property
    def cost(self) -> Amount:
        return self.charge.cost

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        parts = [
            {k: v for k, v in answer.to_dict().items() if k not in self.charge.to_dict()} for answer in self.answers
        ]
        return {"answers": parts, **self.charge.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy) -> Answers:
        """Return the answers that `to_dict` wrote; the JSON of a single answer gives a sequence of one."""
        charge = Charge.from_dict(data, policy)
        return cls(tuple(Answer._from_parts(part, policy, charge) for part in data.get("answers", [data])), charge)

    def __str__(self) -> str:
        return "\n".join([*(f"{answer.query.says()}: {answer.line()}" for answer in self.answers), self.charge.says()])

    def _repr_html_(self) -> str:
        return "".join(answer._repr_html_() for answer in self.answers)


@dataclass(frozen=True)
class Expected:
    """One query of a preview."""

    query: Query
    event: Event
    error: float | None
    caution: str
    free: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "question": self.query.says(),
            "query": query_to_dict(self.query),
            "error": self.error,
            "caution": self.caution,
            "free": self.free,
            "event": self.event.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy | None = None) -> Expected:
        """Return the expectation that `to_dict` wrote."""
        query, event = query_from_dict(data["query"]), event_from_dict(data["event"])
        return cls(query, event, data["error"], data["caution"], data["free"])

    def says(self) -> str:
        parts = [f"within {number(self.error)} of the true value with {{confidence}}"] if self.error is not None else []
        parts += [self.caution] if self.caution else []
        parts += [f"free: {self.free}"] if self.free else []
        return f"{self.query.says()}: {'; '.join(parts) or 'the error depends on the data'}"


@dataclass(frozen=True)
class Preview:
    """The cost and the expected error of a request. No row was read, and nothing was charged."""

    expected: tuple[Expected, ...]
    price: Price
    account: Account
    budget: Budget
    confidence: float = 0.95

    @property
    def cost(self) -> Amount:
        """The cost in the account's unit."""
        return self.account.cost_of(self.price)

    @property
    def fits(self) -> bool:
        return self.account.fits(self.price)

    @property
    def error(self) -> float | None:
        """The error of a single query."""
        return self.expected[0].error if len(self.expected) == 1 else None

    def identification(self) -> dict[str, dict[str, float]]:
        """Return the identification of each protected target: now, after this request, by it alone, and its limit."""
        return {
            target.name: {
                "now": float(target.identification(self.account.totals)),
                "after": float(target.identification(self.account.totals + self.price)),
                "alone": float(target.identification(self.price)),
                "ceiling": float(target.rho),
            }
            for target in self.budget.targets
        }

    def yes_no(self) -> dict[str, float]:
        """Return the worst certainty of a yes/no question about one person: now, after this request, by it alone, at the limit."""
        spent = self.account.totals
        losses = {"now": spent, "after": spent + self.price, "alone": self.price}
        certainty = {name: self.budget.yes_no(loss) for name, loss in losses.items()}
        return {**certainty, "ceiling": self.account.yes_no_limit(self.budget)}

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        left = {
            "spent": str(self.account.spent),
            "ceiling": str(self.account.ceiling),
            "policy": self.account.policy,
            "left": str(self.account.left),
            "left_after": str(self.account.left.minus(self.cost)),
            "fits": self.fits,
        }
        return {
            "expected": [expected.to_dict() for expected in self.expected],
            "cost": str(self.cost),
            **left,
            **self.account.in_all_units(self.price, after=self.account.totals + self.price),
            "guarantee": self.budget.guarantee,
            "confidence": self.confidence,
            "identification": self.identification(),
            "yes_no": self.yes_no(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy) -> Preview:
        """Return the preview that `to_dict` wrote."""
        expected = tuple(Expected.from_dict(part) for part in data["expected"])
        account = account_from_dict(data, policy)
        return cls(expected, Price.from_dict(data["cost_by_unit"]), account, budget_of(policy), data["confidence"])

    def __str__(self) -> str:
        risks = "".join(
            f"; identification of {name} at most {p['after']:.3g} afterwards (limit {p['ceiling']:.3g})"
            for name, p in self.identification().items()
        )
        risks += yes_no_in_words(self.yes_no()) if risks else ""
        confidence = f"{100 * self.confidence:g}% confidence"
        lines = [
            f"would cost   {SHORT[self.account.unit]} {self.cost.say()} ({self.account.left.say()} remaining"
            f"{'' if self.fits else ': exceeds the budget'}){risks}"
        ]
        lines += [f"would be     {expected.says().format(confidence=confidence)}" for expected in self.expected]
        return "\n".join([*lines, "Preview only: nothing was charged."])


def yes_no_in_words(certainty: Mapping[str, float]) -> str:
    """Return the worst certainty of a yes/no question, to follow the identification in a preview."""
    after, ceiling = certainty["after"], certainty["ceiling"]
    return f"; yes/no certainty at most {after:.3g} afterwards (limit {ceiling:.3g})"


def label_of(label: Any) -> Any:
    """Return the label of a cell as a JSON value."""
    return label if label is None or isinstance(label, str | int) else float(label)
