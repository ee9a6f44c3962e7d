"""The shares of the single options of a question about a set: how many people chose each one, with its interval.

A report supports an option with probability p if it was chosen, and q otherwise. The share of supporting reports has the
expectation q + (p - q) share, so the estimate is unbiased and its variance is seen (1 - seen) / (p - q)**2 per report.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.arrays import Floats, Ints
from tidegate.collect.comparison import MOST_COMPARED, Difference, differences
from tidegate.collect.encoding import words_of
from tidegate.collect.poisoning import SHARE, Scores, honest_range
from tidegate.errors import Unsupported
from tidegate.exact import say
from tidegate.extras import extra
from tidegate.frames import Row, Rows
from tidegate.operators import BasketOperator, ChoiceOperator
from tidegate.tables.segments import Column

with extra("collect", "Estimating from randomized reports"):
    from scipy.special import ndtri  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from tidegate.collect.survey import Survey

COLUMNS = ("raw", "errors", "low", "high", "low_poisoned", "high_poisoned")


@dataclass(frozen=True, eq=False)
class ShareTable(Rows):
    """One row for each option.

    raw                            the unbiased estimate; it can be below 0 or above 1
    errors                         its standard error, for a population that the respondents are a sample of
    low, high                      its interval, clipped to [0, 1]; each option by itself
    low_poisoned, high_poisoned    the range of the honest reports' share if 1% of the reports were false; None if unknown
    """

    question: str
    attribute: str
    reports: int
    confidence: float
    options: tuple[str, ...]
    raw: Floats
    errors: Floats
    low: Floats
    high: Floats
    low_poisoned: Floats | None = None
    high_poisoned: Floats | None = None

    @property
    def shown(self) -> Floats:
        """The estimate, clipped to [0, 1]."""
        return np.asarray(np.clip(self.raw, 0, 1))

    @property
    def sure(self) -> str:
        """The error bounds, as a sentence."""
        worst = float((self.high - self.low).max())
        confidence = f"{say(100 * self.confidence)}%, each by itself"
        return f"intervals are at most {say(100 * worst)} percentage points wide ({confidence})"

    def __str__(self) -> str:
        rows = (f"{row['option']}: {row['share']:.1%} ({row['low']:.1%} to {row['high']:.1%})" for row in self.rows())
        return "\n".join([f"{self.question}: {self.reports:,} reports; {self.sure}.", *rows])

    def rows(self) -> list[Row]:
        """Return one dictionary per option: its share, its interval, the unclipped estimate and the range if 1% were false."""
        poisoned = {"low_poisoned": self.low_poisoned, "high_poisoned": self.high_poisoned}
        return [
            {
                "option": option,
                "share": float(self.shown[index]),
                "low": float(self.low[index]),
                "high": float(self.high[index]),
                "raw": float(self.raw[index]),
                **{name: None if ends is None else float(ends[index]) for name, ends in poisoned.items()},
            }
            for index, option in enumerate(self.options)
        ]

    def _kinds(self) -> dict[str, type]:
        return {"low_poisoned": float, "high_poisoned": float}

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        about = {"question": self.question, "attribute": self.attribute, "reports": self.reports}
        return {
            **about,
            "confidence": self.confidence,
            "sure": self.sure,
            "rows": self.rows(),
            "errors": self.errors.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ShareTable:
        """Return the table that `to_dict` wrote."""
        rows = data["rows"]
        columns: dict[str, Any] = {
            name: None if any(row[name] is None for row in rows) else np.array([row[name] for row in rows], np.float64)
            for name in COLUMNS
            if name != "errors"
        }
        return cls(
            question=data["question"],
            attribute=data["attribute"],
            reports=data["reports"],
            confidence=data["confidence"],
            options=tuple(row["option"] for row in rows),
            errors=np.array(data["errors"], np.float64),
            **columns,
        )


@dataclass(frozen=True, eq=False)
class Group:
    """Reports with the same p and q: how many support each option, and of how many."""

    supporting: Ints
    reports: Ints
    p: float
    q: float

    @property
    def shares(self) -> Floats:
        return (self.supporting / np.maximum(self.reports, 1) - self.q) / (self.p - self.q)

    @property
    def variances(self) -> Floats:
        """The variance of `shares`; that of one report if there is none."""
        seen = self.q + (self.p - self.q) * np.clip(self.shares, 0, 1)
        return np.asarray(seen * (1 - seen) / (self.p - self.q) ** 2 / np.maximum(self.reports, 1))


def estimate_shares(survey: Survey, name: str, *, confidence: float = 0.95) -> ShareTable:
    """Estimate the share of every option of a question about a set, from all counted reports.

    Raises:
        Unsupported: The question is not about a set, there is no report, or the shares are not identified.
    """
    if not 0 < confidence < 1:
        raise Unsupported(f"`confidence` must be between 0 and 1; it is {confidence:g}.", "Use 0.95, for example.")
    question, operator = survey.collection.questions[name], survey.operators[name]
    if not isinstance(operator, BasketOperator | ChoiceOperator):
        raise Unsupported(
            f'"{name}" is about one value, not about a set of options.', f'Call survey.distribution("{name}").'
        )
    total = survey.asked(name)
    if not total:
        raise Unsupported(f'There is no counted report yet, so the shares of "{name}" cannot be estimated.')
    if question.cuts:
        raise Unsupported(
            f'"{name}" cuts large baskets, so the shares of single items are not identified.',
            f'Call survey.rules("{name}", min_support=...), which shows the range of each support.',
        )
    if isinstance(operator, BasketOperator) and operator.operator.needs_size:
        raw, variances = _by_size(_groups_by_size(survey, name, operator), total)
        groups = []
    else:
        groups = [_only_group(operator, survey.counts(name), total)]
        raw, variances = groups[0].shares, groups[0].variances
    errors, shown = np.sqrt(variances), np.clip(raw, 0, 1)
    wide = float(ndtri((1 + confidence) / 2)) * errors
    table = ShareTable(
        name,
        question.attribute,
        total,
        confidence,
        tuple(words_of(question, code) for code in range(operator.items)),
        raw,
        errors,
        np.clip(
            np.minimum(raw, shown) - wide, 0, 1
        ),  # around both: an estimate below zero does not prove a share of zero
        np.clip(np.maximum(raw, shown) + wide, 0, 1),
    )
    return _with_false_reports(table, groups[0]) if groups else table


def share_differences(survey: Survey, table: ShareTable, most: int = MOST_COMPARED) -> list[Difference]:
    """Return the differences of all pairs of the `most` largest shares of a table, with intervals for all pairs together."""
    chosen = np.sort(np.argsort(-table.raw, kind="stable")[:most])
    if chosen.size < 2:
        return []
    errors = _difference_errors(survey, table, chosen)
    return differences(table.raw[chosen], errors, [table.options[index] for index in chosen])


def _difference_errors(survey: Survey, table: ShareTable, chosen: Ints) -> Floats:
    """Return the standard errors of differences: by counting who supports both, or at most the sum of both errors."""
    operator, errors = survey.operators[table.question], table.errors[chosen]
    if operator.form == "code":  # one option per report: reports about two options are of different people
        return np.asarray(np.hypot(errors[:, None], errors[None, :]))
    if isinstance(operator, BasketOperator) and operator.operator.needs_size:
        return np.asarray(errors[:, None] + errors[None, :])
    both = np.zeros((chosen.size, chosen.size))
    for batch in survey.batches(table.question):
        packed = batch[table.question]
        bits = (packed[:, chosen // 8] >> (chosen % 8).astype(np.uint8) & 1).astype(np.float32)
        both += bits.T @ bits
    group = _only_group(operator, survey.counts(table.question), table.reports)  # type: ignore[arg-type]
    seen = group.supporting[chosen] / table.reports
    either = seen[:, None] + seen[None, :] - 2 * both / table.reports
    variance = np.maximum(either - (seen[:, None] - seen[None, :]) ** 2, 0)
    np.fill_diagonal(variance, 0)
    return np.asarray(np.sqrt(variance / table.reports) / (group.p - group.q))


def decisive_reports(survey: Survey, table: ShareTable, first: int, second: int) -> int:
    """Return the smallest number of false reports without which option `first` would not be ahead of `second`."""
    operator = survey.operators[table.question]
    group = _only_group(operator, survey.counts(table.question), table.reports)  # type: ignore[arg-type]
    (yes, other), (reports, others) = group.supporting[[first, second]], group.reports[[first, second]]
    if operator.form == "set":
        return max(0, int(yes - other))

    def can_turn(false: int) -> bool:
        """Return whether false reports, each a yes to the first or a no to the second, could have made the difference."""
        yes_removed = np.arange(max(0, false - int(others - other)), min(false, int(yes)) + 1)
        ahead = (yes - yes_removed) / np.maximum(reports - yes_removed, 1)
        behind = other / np.maximum(others - (false - yes_removed), 1)
        return not yes_removed.size or bool((ahead <= behind).any())

    return bisect_left(range(int(reports + others)), True, key=can_turn)


def _with_false_reports(table: ShareTable, group: Group) -> ShareTable:
    scores = Scores((1 - group.q) / (group.p - group.q), -group.q / (group.p - group.q))
    false = ceil(SHARE * table.reports)
    shown = np.clip(table.raw, 0, 1)  # around both, as the interval is
    both = zip(np.minimum(table.raw, shown), np.maximum(table.raw, shown), group.reports, strict=True)
    ranges = [honest_range(np.array(ends), int(reports), false, scores) for *ends, reports in both]
    low = np.clip([float(ends[0][0]) for ends in ranges], 0, 1)
    high = np.clip([float(ends[1][1]) for ends in ranges], 0, 1)
    return replace(table, low_poisoned=low, high_poisoned=high)


def _only_group(operator: BasketOperator | ChoiceOperator, counts: Ints, total: int) -> Group:
    if isinstance(operator, ChoiceOperator):
        supporting, reports = operator.seen(counts.tolist(), total)
        return Group(np.array(supporting), np.array(reports), float(operator.p), float(operator.q))
    flip, plans = operator.operator.flip, operator.operator.plans
    p, q = flip if flip is not None else _chances(plans[operator.operator.fixed or 0])
    return Group(counts[: operator.items], np.full(operator.items, total), *_apart(p, q))


def _chances(plan: Any) -> tuple[Any, Any]:
    """Return how often an item of the basket is reported, and any other item."""
    return sum(count * chance for count, chance in enumerate(plan.keep)) / max(plan.size, 1), plan.insert


def _apart(p: Any, q: Any) -> tuple[float, float]:
    if p == q:
        raise Unsupported(
            "Items are reported equally often whether they are in the basket or not, so their shares are not identified.",
            "Choose other parameters in a new version of the collection.",
        )
    return float(p), float(q)


def _groups_by_size(survey: Survey, name: str, operator: BasketOperator) -> list[Group]:
    """Return one group for each size of a basket, which is sent in clear."""
    column, sizes = Column("set", operator.report_size), operator.operator.sizes
    counts = np.zeros((len(sizes), operator.report_size), np.int64)
    for batch in survey.batches(name):
        packed = batch[name]
        for index, size in enumerate(sizes):
            [code] = operator.size_code(size)
            counts[index] += column.count(packed[(packed[:, code // 8] >> code % 8 & 1).astype(bool)])
    groups = []
    for index, size in enumerate(sizes):
        reports = np.full(operator.items, counts[index, operator.size_code(size)[0]])
        if size and reports[0]:
            chances = _apart(*_chances(operator.operator.plans[size]))
            groups.append(Group(counts[index, : operator.items], reports, *chances))
    return groups


def _by_size(groups: Iterable[Group], total: int) -> tuple[Floats, Floats]:
    """Return shares and variances over all sizes; empty baskets contain no item. The shares of sizes are a sample, too."""
    parts = [(group.reports / total, group) for group in groups]
    if not parts:
        raise Unsupported("All baskets are empty.")
    raw = np.asarray(sum(weight * group.shares for weight, group in parts))
    between = sum(weight * np.clip(group.shares, 0, 1) ** 2 for weight, group in parts) - np.clip(raw, 0, 1) ** 2
    within = sum(weight**2 * group.variances for weight, group in parts)
    return raw, np.asarray(within + np.maximum(between, 0) / total)
