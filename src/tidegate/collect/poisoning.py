"""How far false reports can move an estimate: a range for a stated number of them, beside each interval.

A linear estimate is the mean of the scores c(y) of its reports. If at most m of N reports are false, the estimate f of all reports
limits that of the honest ones alone: it is between (N f - m c_max) / (N - m) and (N f - m c_min) / (N - m). A false report is
any report that the server accepts, so these bounds hold for the worst forgery and are reached by it.

Estimated densities of numbers are not linear in the reports and have no such range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.arrays import Floats
from tidegate.collect.baskets.transitions import support_weights
from tidegate.collect.reconstruct.categories import Shares
from tidegate.operators import Support

SHARE = 0.01  # of all reports, assumed false


@dataclass(frozen=True)
class Scores:
    """The largest and the smallest score that one report can add to an estimated share: c_max and c_min."""

    most: float
    least: float

    def times(self, factor: float) -> Scores:
        """Return the scores of a question that one of `factor` people is asked."""
        return Scores(factor * self.most, factor * self.least)


def share_scores(support: Support) -> Scores:
    """Return the scores of one category: a report supports it, (1 - q) / (p - q), or does not, -q / (p - q)."""
    apart = support.true - support.false
    return Scores((1 - support.false) / apart, -support.false / apart)


def itemset_scores(moments: Sequence[Any], insert: Any, items: int) -> Scores:
    """Return the scores of an itemset of `items` items: one for each number of them that a report can show."""
    weights = [float(weight) for weight in support_weights(moments, insert, items)]
    return Scores(max(weights), min(weights))


def honest_range(estimate: Floats, reports: int, false: int, scores: Scores) -> tuple[Floats, Floats]:
    """Return the smallest and the largest estimate that the honest reports alone can have; unlimited if all can be false.

    Guarantee:
        It contains the unclipped estimate of the honest reports, whatever the `false` reports among `reports` are.
    """
    if false >= reports:
        return np.full_like(estimate, -np.inf), np.full_like(estimate, np.inf)
    total, honest = reports * np.asarray(estimate), reports - false
    return (total - false * scores.most) / honest, (total - false * scores.least) / honest


@dataclass(frozen=True, eq=False)
class Poisoning:
    """The effect of false reports on the shares of a question.

    Args:
        false: The assumed number of false reports: 1% of all, rounded up.
        low: The smallest share that the honest reports alone can have, clipped to [0, 1]; one number for each option.
        high: The largest.
        first: The option with the largest estimate.
        second: The option with the next one.
        decisive: The smallest number of false reports without which `first` would not be ahead of `second`.
    """

    false: int
    low: Floats
    high: Floats
    first: str
    second: str
    decisive: int

    def __str__(self) -> str:
        ahead = lead_text(self.first, self.second, self.decisive)
        return f"The last column assumes that 1% of the reports ({self.false:,}) are false; {ahead}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        ends = {"low": self.low.tolist(), "high": self.high.tolist()}
        return {"false": self.false, **ends, "first": self.first, "second": self.second, "decisive": self.decisive}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Poisoning:
        """Return what `to_dict` wrote."""
        low, high = (np.array(data[name], np.float64) for name in ("low", "high"))
        return cls(data["false"], low, high, data["first"], data["second"], data["decisive"])


def lead_text(first: str, second: str, decisive: int) -> str:
    """Return how many false reports could have decided which of two options is ahead."""
    if not decisive:
        return f'"{first}" and "{second}" are level'
    lead = "1 false report" if decisive == 1 else f"{decisive:,} false reports"
    return f'{lead} could have put "{first}" ahead of "{second}"'


def poisoning(estimated: Shares, labels: Sequence[str]) -> Poisoning:
    """Return the effect of false reports on estimated shares.

    The range is around both the unbiased estimate and the nearest distribution, as the interval is.
    """
    reports, support, raw = round(estimated.total), estimated.support, estimated.raw
    false, scores = int(np.ceil(SHARE * reports - 1e-9)), share_scores(support)
    low, _ = honest_range(np.minimum(raw, estimated.masses), reports, false, scores)
    _, high = honest_range(np.maximum(raw, estimated.masses), reports, false, scores)
    second, first = np.argsort(raw, kind="stable")[-2:]
    lead = reports * (raw[first] - raw[second]) * (support.true - support.false)  # in reports that support them
    ends = np.clip(low, 0, 1), np.clip(high, 0, 1)
    return Poisoning(false, *ends, labels[first], labels[second], round(float(lead)))
