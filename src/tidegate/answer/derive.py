"""Answers that follow from earlier answers. They are free, because they are arithmetic on public numbers.

a count: total, of a range, or by fewer columns      from a count by columns or a histogram
a mean, variance or standard deviation               from the moments of an earlier variance or deviation
a mean                                               from an earlier sum and count of the same rows
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting import DiscreteGaussian, DiscreteLaplace, GaussianMoments, Moments
from tidegate.answer.comparison import number
from tidegate.answer.fold import Fold, Folding, half_widths
from tidegate.answer.history import Earlier, Quietest, earlier_answers
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.mechanisms.mechanism import Reading, axes_of, clip_reading, most_rows, noise_of
from tidegate.answer.query_json import query_from_dict, query_to_dict
from tidegate.answer.request import Query
from tidegate.answer.rows import cell_rows, kinds_of, labels_of
from tidegate.errors import Unsupported
from tidegate.frames import Row, Rows
from tidegate.ledger import Ledger
from tidegate.policy import Policy


@dataclass(frozen=True)
class Derived(Rows):
    """An answer derived from earlier ones at no cost. `policy` names its groups."""

    query: Query
    values: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]
    entries: tuple[int, ...]
    noisy: NDArray[Any]
    policy: Policy | None = field(default=None, repr=False, compare=False)

    @property
    def error(self) -> float:
        """The widest half-interval of all its numbers, at 95%."""
        return float(np.max((self.high - self.low) / 2)) if self.values.size else 0.0

    def says(self) -> str:
        """Return the source and the error of the answer as text."""
        shown = f"{number(self.values.item())}, " if self.values.ndim == 0 else ""
        return f"{shown}within {number(self.error)}, 95%, from entry {' and '.join(map(str, self.entries))}"

    def rows(self, policy: Policy | None = None) -> list[Row]:
        """Return one dictionary per number: its labels, its value, its 95% interval, and the noisy number."""
        labels = labels_of(self.query, self._policy(policy))
        return cell_rows(labels, {"value": self.values, "low": self.low, "high": self.high, "noisy": self.noisy})

    def _policy(self, policy: Policy | None = None) -> Policy:
        if (policy := policy or self.policy) is None:
            raise Unsupported("This derived answer has no policy to name its groups.", "Call rows(policy).")
        return policy

    def _kinds(self) -> dict[str, type]:
        return kinds_of(self.query, self._policy())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        parts = {"values": self.values.tolist(), "low": self.low.tolist(), "high": self.high.tolist()}
        parts["noisy"] = self.noisy.tolist()
        query = {"question": self.query.says(), "query": query_to_dict(self.query)}
        return {**query, **parts, "error_95": self.error, "from": list(self.entries), "cost": "0"}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy | None = None) -> Derived:
        """Return the derivation that `to_dict` wrote."""
        values, low, high, noisy = (np.array(data[name]) for name in ("values", "low", "high", "noisy"))
        return cls(query_from_dict(data["query"]), values, low, high, tuple(data["from"]), noisy, policy)

    def __str__(self) -> str:
        return f"{self.query.says()}: {self.says()}     cost 0"

    def _repr_html_(self) -> str:
        from tidegate.answer.charts import derived_html

        return derived_html(self)


def derive(query: Query, policy: Policy, ledger: Ledger) -> Derived | None:
    """Return the best answer that follows from earlier ones, or None. Of linked tables, nothing is derived."""
    if policy.tables:
        return None
    earlier = earlier_answers(policy.dataset.name, ledger)
    candidates = [
        *_from_counts(query, policy, earlier),
        *_from_moments(query, policy, earlier),
        *_from_sum_and_count(query, policy, earlier),
    ]
    best = min(candidates, key=lambda answer: answer.error, default=None)
    return None if best is None else replace(best, policy=policy)


def _build(query: Query, read: Reading, *entries: int) -> Derived:
    if read.low is None or read.high is None:
        raise ValueError("Counts and moments must have an interval.")
    return Derived(query, read.values, read.low, read.high, entries, read.noisy)


# ---- counts


@dataclass(frozen=True)
class _Source:
    """An earlier count with the fold from it to the query, and the error of the result."""

    answer: Earlier
    fold: Fold
    half: NDArray[np.int64]

    @property
    def widest(self) -> int:
        return int(self.half.max(initial=0))


def _from_counts(query: Query, policy: Policy, earlier: Quietest) -> Iterator[Derived]:
    """Derive from the source with the least noise; the choice does not depend on its values."""
    if query.statistic not in ("count", "histogram"):
        return
    best = min(_sources(query, policy, earlier), key=lambda source: (source.widest, source.answer.entry), default=None)
    if best is not None:
        noisy = best.fold.apply(np.array(best.answer.stored["cells"], np.int64))
        read = clip_reading(noisy, noisy - best.half, noisy + best.half, ends=(0, most_rows(policy)))
        yield _build(query, read, best.answer.entry)


def _sources(query: Query, policy: Policy, earlier: Quietest) -> Iterator[_Source]:
    folding = Folding(query, policy, axes_of(query, policy))
    for answer in earlier.counts():
        names = [*answer.ask["by"], *([answer.ask["column"]] if answer.ask["column"] else [])]
        if not folding.possible(names) or not _same_universe(answer, policy, names):
            continue
        source = axes_of(Query(answer.ask["ask"], answer.ask["column"], groups=tuple(answer.ask["by"])), policy)
        fold = folding.fold(source)
        if fold is not None and isinstance(answer.event, DiscreteLaplace | DiscreteGaussian):
            yield _Source(answer, fold, half_widths(noise_of(answer.event), fold.parts()))


def _same_universe(answer: Earlier, policy: Policy, names: list[str]) -> bool:
    """Return whether an earlier query has the same rows and columns. A removed column is never the same."""
    if not set(names) <= set(policy.attributes):
        return False
    now = Query("count", groups=tuple(dict.fromkeys(names))).question(policy)
    return all(answer.ask.get(name) == now[name] for name in ("of", "unit", "rows", "edition"))


# ---- moments


def _from_moments(query: Query, policy: Policy, earlier: Quietest) -> Iterator[Derived]:
    """Derive a mean or a deviation from the three noisy moments of a variance."""
    if query.statistic not in ("mean", "variance", "std"):
        return
    for answer in earlier.of(query.question(policy), "variance", "std"):
        if isinstance(answer.event, Moments | GaussianMoments):
            read = mechanism_for(query).read(query, policy, answer.event, answer.stored, confidence=0.95)
            yield _build(query, read, answer.entry)


def _from_sum_and_count(query: Query, policy: Policy, earlier: Quietest) -> Iterator[Derived]:
    """Derive a mean from a sum and a count of the same rows, if every row has a value."""
    attribute: Any = policy.attributes.get(query.column)
    if query.statistic != "mean" or getattr(attribute, "missing", "") != "lowest":
        return
    total, bare = replace(query, statistic="sum"), replace(query, statistic="count", column="")
    sums, counts = earlier.of(total.question(policy), "sum"), earlier.of(bare.question(policy), "count")
    for whole, rows in product(sums, counts):
        top, bottom = _read(total, policy, whole), _read(bare, policy, rows)
        corners = [t / np.maximum(b, 1) for t in (top.low, top.high) for b in (bottom.low, bottom.high)]
        ends = float(attribute.low), float(attribute.high)
        noisy = np.asarray(top.noisy / np.maximum(bottom.noisy, 1))
        low, high = np.clip(np.minimum.reduce(corners), *ends), np.clip(np.maximum.reduce(corners), *ends)
        yield _build(query, Reading(np.clip(noisy, low, high), low, high, noisy), whole.entry, rows.entry)


def _read(query: Query, policy: Policy, answer: Earlier) -> Any:
    return mechanism_for(query).read(
        query, policy, answer.event, answer.stored, confidence=0.975
    )  # two of them: 0.95 together
