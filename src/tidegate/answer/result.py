"""Answers and previews: the value, its error, its cost, and the resulting risks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from numpy.typing import NDArray

from tidegate.accounting import Amount, Budget, Event, Price, budget_of, event_from_dict
from tidegate.accounting.budget import SHORT
from tidegate.answer.comparison import Comparison, compare, label_text, number
from tidegate.answer.limits import condition_note
from tidegate.answer.mechanisms import mechanism_for, read_stored
from tidegate.answer.mechanisms.mechanism import Reading
from tidegate.answer.query_json import query_from_dict, query_to_dict
from tidegate.answer.request import Query
from tidegate.answer.rows import (
    ALL,
    cell_rows,
    cell_table,
    joint_kinds,
    joint_rows,
    kinds_of,
    labels_of,
    moment_of,
    number_of,
)
from tidegate.answer.sql import SqlPlan, SqlResult
from tidegate.answer.sql.cells import Numbers
from tidegate.charts import Chart
from tidegate.errors import Unsupported
from tidegate.frames import MOST_SHOWN, TEMPORAL, Row, Rows, text_table
from tidegate.ledger import Account, Charge
from tidegate.ledger.charge import account_from_dict
from tidegate.noise.differences import MOST_GROUPS
from tidegate.policy import EachPerson, Policy


@dataclass(frozen=True)
class Answer(Rows):
    """A noisy answer. `values` has one axis per grouped column (and one for a histogram's bins).

    Guarantee:
        A value lies in its public range and in its interval. `noisy` is the number before that.
    """

    query: Query
    policy: Policy
    event: Event
    stored: Any
    charge: Charge

    def read(self, confidence: float = 0.95) -> Reading:
        """Return the numbers with their intervals."""
        return read_stored(self.query, self.policy, self.event, self.stored, confidence=confidence)

    @property
    def values(self) -> NDArray[Any]:
        return self.read().values

    @property
    def noisy(self) -> Any:
        """The numbers before they were clipped to their public range: unbiased, for further arithmetic."""
        noisy = self.read().noisy
        return noisy.item() if noisy.ndim == 0 else noisy

    @property
    def value(self) -> Any:
        """The number (a date for a mean of dates) if there is only one, otherwise the array."""
        return self._shown(self.values.item()) if self.values.ndim == 0 else self.values

    def _shown(self, value: float) -> Any:
        """Return a value between the column's own: for dates and times a position, shown as a date or time."""
        moment = moment_of(self.query, self.policy)
        return value if moment is None else moment.shown(value)

    @property
    def labels(self) -> dict[str, list[Any]]:
        """The labels of the cells along each axis."""
        return labels_of(self.query, self.policy)

    def interval(self, confidence: float = 0.95) -> tuple[Any, Any] | None:
        """Where the true value lies with the given confidence: of the noise alone, for each number on its own. None for
        quantiles, whose error is one of rank (see `caution`)."""
        read = self.read(confidence)
        if read.low is None or read.high is None:
            return None
        ends = read.low, read.high
        return (self._shown(ends[0].item()), self._shown(ends[1].item())) if read.values.ndim == 0 else ends

    @property
    def caution(self) -> str:
        """A note for the reader."""
        notes = [condition_note(self.query, self.policy)]
        notes.append(mechanism_for(self.query).caution(self.query, self.policy, self.event))
        one_cell_of_persons = self.query.statistic == "persons" and not self.query.groups  # all rows are read
        if isinstance(self.policy.dataset.unit, EachPerson) and not one_cell_of_persons:
            most = self.policy.dataset.unit.at_most
            rows = "1 row" if most == 1 else f"{most} rows"
            notes.append(f"a person counts with at most {rows}, so those with more are undercounted")
        return "; ".join(text for text in notes if text)

    @property
    def comparison(self) -> Comparison | None:
        """The groups that differ by more than the noise; None for one number, for quantiles, and above 200 groups."""
        labels = self.labels
        if prod(map(len, labels.values())) > MOST_GROUPS:
            return None
        cells = [dict(zip(labels, cell, strict=True)) for cell in product(*labels.values()) if labels]
        return compare(self.query, self.policy, self.event, self.stored, labels=cells)

    @property
    def cost(self) -> Amount:
        return self.charge.cost

    @property
    def entry(self) -> str:
        return self.charge.entry

    def rows(self, cells: slice = ALL) -> list[Row]:
        """Return one dictionary per number: its labels, its value, its 95% interval, and the noisy number. `cells` is a
        part of them, without a step."""
        numbers = self._numbers()
        moment, shown = moment_of(self.query, self.policy), [name for name in numbers if name != "noisy"]
        rows = cell_rows(self.labels, numbers, cells)
        return rows if moment is None else [row | {n: number_of(row[n], moment) for n in shown} for row in rows]

    def _numbers(self) -> dict[str, Any]:
        read = self.read()
        numbers = {self.query.statistic: read.values}
        if read.low is not None and read.high is not None:
            numbers |= {"low": read.low, "high": read.high, "noisy": read.noisy}
        return numbers

    def to_arrow(self) -> Any:
        """Return the rows as an Arrow table."""
        has_dates = moment_of(self.query, self.policy) is not None
        table = None if has_dates else cell_table(self.labels, self._numbers(), self._kinds())
        return super().to_arrow() if table is None else table

    def _kinds(self) -> dict[str, type]:
        moment, kinds = moment_of(self.query, self.policy), kinds_of(self.query, self.policy)
        if moment is None:
            return kinds
        names = (self.query.statistic, *(() if self.read().low is None else ("low", "high")))
        return kinds | dict.fromkeys(names, TEMPORAL[moment.kind])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values. `result` has the noisy integers of the ledger: those that `event` prices."""
        return {**self.describe(), "rows": self.rows(), "result": self.stored}

    def describe(self) -> dict[str, Any]:
        """Return everything but the numbers as JSON values: `rows` and `result` are empty."""
        compared = self.comparison
        return {
            "question": self.query.says(),
            "query": query_to_dict(self.query),
            "statistic": self.query.statistic,
            "rows": [],
            "comparison": compared.to_dict() if compared else None,
            "caution": self.caution,
            "event": self.event.to_dict(),
            "result": None,
            **self.charge.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy) -> Answer:
        """Return the answer that `to_dict` wrote."""
        return cls._from_parts(data, policy, Charge.from_dict(data, policy))

    @classmethod
    def _from_parts(cls, data: Mapping[str, Any], policy: Policy, charge: Charge) -> Answer:
        query, event = query_from_dict(data["query"]), event_from_dict(data["event"])
        return cls(query, query.target(policy), event, data["result"], charge)

    def line(self) -> str:
        """Return the value and its error as text; the first rows and what differs if there are groups."""
        if self.values.ndim:
            return self._lines()
        between = self.interval()
        within = f"   (noise: {_text(between[0])} to {_text(between[1])}, 95%)" if between else ""
        caution = f"   ({self.caution})" if self.caution else ""
        return f"{_text(self.value)}{within}{caution}"

    def _lines(self) -> str:
        rows, compared = self.rows(slice(MOST_SHOWN)), self.comparison
        headers = [name for name in rows[0] if name != "noisy" or name in self.labels]
        labels = headers[: len(self.labels)]
        shown = [[label_text(row[name]) if name in labels else _text(row[name]) for name in headers] for row in rows]
        finding = [f"{compared.says()}."] if compared else []
        caution = [f"({self.caution})"] if self.caution else []
        return "\n".join([text_table(headers, shown, self.values.size), *finding, *caution])

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
class Answers(Rows):
    """Several answers under one charge. `tables` are the results of SQL statements that compute with the answers."""

    answers: tuple[Answer, ...]
    charge: Charge
    tables: tuple[SqlResult, ...] = ()

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, number: int) -> Answer:
        return self.answers[number]

    @property
    def cost(self) -> Amount:
        return self.charge.cost

    def rows(self) -> list[Row]:
        """Return all answers in one table: side by side if they have the same groups (`mean_age`, `mean_age_low`, ...),
        otherwise one number per row (`question`, the labels, `value`, `low`, `high`). An SQL statement that computes
        with the answers has its own columns; several have a table each (see `tables`)."""
        return self._only_table().rows() if self.tables else joint_rows(self.answers)

    def to_arrow(self) -> Any:
        """Return the rows as an Arrow table; of an SQL statement that computes with the answers, its columns."""
        return self._only_table().to_arrow() if self.tables else super().to_arrow()

    def _only_table(self) -> SqlResult:
        if len(self.tables) > 1:
            raise Unsupported(
                f"These are the results of {len(self.tables)} SQL statements, each with columns of its own.",
                "Use them one by one: `answers.tables[0].to_pandas()`, or download JSON.",
            )
        return self.tables[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader of the tables: their own, then the cautions of the answers that they are computed from."""
        notes = [note for table in self.tables for note in table.notes]
        cautions = [answer.caution for answer in self.answers] if self.tables else []
        return tuple(dict.fromkeys([*notes, *(f"{text[0].upper()}{text[1:]}." for text in cautions if text)]))

    def _kinds(self) -> dict[str, type]:
        return joint_kinds(self.answers)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        charge = self.charge.to_dict()
        parts = [{k: v for k, v in answer.to_dict().items() if k not in charge} for answer in self.answers]
        tables = {"tables": [table.to_dict() for table in self.tables]} if self.tables else {}
        return {"answers": parts, **tables, **charge}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy) -> Answers:
        """Return the answers that `to_dict` wrote; the JSON of a single answer gives a sequence of one."""
        charge = Charge.from_dict(data, policy)
        answers = tuple(Answer._from_parts(part, policy, charge) for part in data.get("answers", [data]))
        return cls(answers, charge, tuple(SqlResult.from_dict(table) for table in data.get("tables", [])))

    def __str__(self) -> str:
        lines = [str(table) for table in self.tables] + list(self.notes) if self.tables else []
        lines = lines or [
            answer.query.says() + (":\n" if answer.values.ndim else ": ") + answer.line() for answer in self.answers
        ]
        return "\n".join([*lines, self.charge.says()])

    def plot(self) -> Chart:
        """Return a chart of the measured numbers with their 95% intervals: one panel per statistic."""
        if not self.answers:
            raise Unsupported("Public numbers have no chart.", "Use to_pandas() and plot its columns.")
        panels = tuple(answer.plot() for answer in self.answers)
        return panels[0] if len(panels) == 1 else Chart("Answers with their 95% intervals", panels=panels)

    def _repr_html_(self) -> str:
        from tidegate.answer.charts import html, tables_html

        return tables_html(self) if self.tables else html(*self.answers)


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
            "price": str(self.price.z if self.price.pure is None else self.price.pure),
            "event": self.event.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy | None = None) -> Expected:
        """Return the expectation that `to_dict` wrote."""
        query, event = query_from_dict(data["query"]), event_from_dict(data["event"])
        return cls(query, event, data["error"], data["caution"], data["free"])

    @property
    def price(self) -> Price:
        return self.event.price

    def says(self, confidence: str = "95% confidence") -> str:
        """Return the query and its expected error as text."""
        parts = [f"within {number(self.error)} of the true value with {confidence}"] if self.error is not None else []
        parts += [self.caution] if self.caution else []
        parts += (
            [f"known at no cost from earlier answers (--free, in Python `derive`): {self.free}"] if self.free else []
        )
        return f"{self.query.says()}: {'; '.join(parts) or 'the error depends on the data'}"


@dataclass(frozen=True)
class Preview(Rows):
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

    def rows(self) -> list[Row]:
        """Return one dictionary per query: its expected error at `confidence`, a caution, and why it is free if it is."""
        return [
            {
                "question": expected.query.says(),
                "error": expected.error,
                "confidence": self.confidence,
                "caution": expected.caution or None,
                "free": expected.free or None,
            }
            for expected in self.expected
        ]

    def _kinds(self) -> dict[str, type]:
        return {"error": float, "caution": str, "free": str}

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
        shares = len({expected.event for expected in self.expected}) > 1  # measured together, they have one event
        for expected in self.expected:
            cost = f"{SHORT[self.account.unit]} {self.account.cost_of(expected.price).say()} for " if shares else ""
            lines.append(f"would be     {cost}{expected.says(confidence)}")
        lines += [] if self.expected else ["would be     public numbers, which cost nothing"]
        return "\n".join([*lines, "Preview only: nothing was charged."])

    def _repr_html_(self) -> str:
        from tidegate.answer.charts import preview_html

        return preview_html(self)


def yes_no_in_words(certainty: Mapping[str, float]) -> str:
    """Return the worst certainty of a yes/no question, to follow the identification in a preview."""
    after, ceiling = certainty["after"], certainty["ceiling"]
    return f"; yes/no certainty at most {after:.3g} afterwards (limit {ceiling:.3g})"


def finish_sql(plan: SqlPlan, answers: Iterable[Answer]) -> tuple[SqlResult, ...]:
    """Return the tables of SQL statements from the answers to their queries."""
    by_query = {answer.query: answer for answer in answers}

    def numbers(query: Query) -> Numbers:
        answer = by_query[query]
        return Numbers(query, answer.policy, answer.stored, answer.read(), answer.event)

    return plan.finish(numbers)


def _text(value: Any) -> str:
    return number(value) if isinstance(value, int | float) else str(value)
