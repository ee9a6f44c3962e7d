"""What follows from answers that were already given: free, because it is only arithmetic on public numbers.

a count, in all, of a range, or by fewer columns     from a count by columns or a histogram
a mean, variance or standard deviation               from the moments of an earlier variance or deviation
a mean                                               from an earlier sum and count of the same rows
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting import DiscreteLaplace, Moments
from tidegate.answer.comparison import number
from tidegate.answer.fold import Fold, Folding, half_widths
from tidegate.answer.history import Earlier, Quietest, earlier_answers
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.mechanisms.mechanism import Reading, axes_of, most_rows, projected
from tidegate.answer.query_json import query_from_dict, query_to_dict
from tidegate.answer.request import Query
from tidegate.answer.result import label_of
from tidegate.ledger import Ledger
from tidegate.policy import Policy


@dataclass(frozen=True)
class Derived:
    """An answer made of earlier ones. It costs nothing."""

    query: Query
    values: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]
    entries: tuple[int, ...]
    noisy: NDArray[Any]

    @property
    def error(self) -> float:
        """The widest half-interval of all its numbers, at 95%."""
        return float(np.max((self.high - self.low) / 2)) if self.values.size else 0.0

    def says(self) -> str:
        """Where it comes from and how wrong it may be."""
        shown = f"{number(self.values.item())}, " if self.values.ndim == 0 else ""
        return f"{shown}within {number(self.error)}, 95%, from entry {' and '.join(map(str, self.entries))}"

    def rows(self, policy: Policy) -> list[dict[str, Any]]:
        """One dictionary per number: its labels, its value, its 95% interval."""
        axes = axes_of(self.query, policy)
        labels = [[label_of(label) for label in axis.labels()] for axis in axes]
        found = []
        for place in np.ndindex(self.values.shape):
            row = {axis.name: names[i] for axis, names, i in zip(axes, labels, place, strict=True)}
            ends = {"low": self.low[place].item(), "high": self.high[place].item()}
            found.append({**row, "value": self.values[place].item(), **ends, "noisy": self.noisy[place].item()})
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        parts = {"values": self.values.tolist(), "low": self.low.tolist(), "high": self.high.tolist()}
        parts["noisy"] = self.noisy.tolist()
        asked = {"question": self.query.says(), "query": query_to_dict(self.query)}
        return {**asked, **parts, "error_95": self.error, "from": list(self.entries), "cost": "0"}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], policy: Policy | None = None) -> Derived:
        """Return the derivation that `to_dict` wrote."""
        values, low, high, noisy = (np.array(data[name]) for name in ("values", "low", "high", "noisy"))
        return cls(query_from_dict(data["query"]), values, low, high, tuple(data["from"]), noisy)

    def __str__(self) -> str:
        return f"{self.query.says()}: {self.says()}     cost 0"


def derived(query: Query, policy: Policy, ledger: Ledger) -> Derived | None:
    """The best that follows from earlier answers, or None."""
    earlier = earlier_answers(policy.dataset.name, ledger)
    found = [
        *_from_counts(query, policy, earlier),
        *_from_moments(query, policy, earlier),
        *_from_sum_and_count(query, policy, earlier),
    ]
    return min(found, key=lambda one: one.error, default=None)


def _derived(query: Query, read: Reading, *entries: int) -> Derived:
    if read.low is None or read.high is None:
        raise ValueError("counts and moments have an interval")
    return Derived(query, read.values, read.low, read.high, entries, read.noisy)


# ---- counts


@dataclass(frozen=True)
class _Source:
    """An earlier count with the fold that leads from it to what is asked, and how wrong that is."""

    one: Earlier
    fold: Fold
    half: NDArray[np.int64]

    @property
    def widest(self) -> int:
        return int(self.half.max(initial=0))


def _from_counts(query: Query, policy: Policy, earlier: Quietest) -> Iterator[Derived]:
    """From the source with the least noise: chosen before it is seen what it says."""
    if query.statistic not in ("count", "histogram"):
        return
    best = min(_sources(query, policy, earlier), key=lambda source: (source.widest, source.one.entry), default=None)
    if best is not None:
        noisy = best.fold.apply(np.array(best.one.stored["cells"], np.int64))
        read = projected(noisy, noisy - best.half, noisy + best.half, ends=(0, most_rows(policy)))
        yield _derived(query, read, best.one.entry)


def _sources(query: Query, policy: Policy, earlier: Quietest) -> Iterator[_Source]:
    folding = Folding(query, policy, axes_of(query, policy))
    for one in earlier.counts():
        names = [*one.ask["by"], *([one.ask["column"]] if one.ask["column"] else [])]
        if not folding.possible(names) or not _same_universe(one, policy, names):
            continue
        source = axes_of(Query(one.ask["ask"], one.ask["column"], groups=tuple(one.ask["by"])), policy)
        fold = folding.fold(source)
        if fold is not None and isinstance(one.event, DiscreteLaplace):
            yield _Source(one, fold, half_widths(one.event.scale, fold.parts()))


def _same_universe(one: Earlier, policy: Policy, names: list[str]) -> bool:
    """Whether it was asked of the same rows, with the same columns. A column that is not there any more is not."""
    if not set(names) <= set(policy.attributes):
        return False
    now = Query("count", groups=tuple(dict.fromkeys(names))).question(policy)
    return all(one.ask.get(name) == now[name] for name in ("of", "unit", "rows", "edition"))


# ---- moments


def _from_moments(query: Query, policy: Policy, earlier: Quietest) -> Iterator[Derived]:
    """A variance's three noisy moments hold the mean and the deviation too."""
    if query.statistic not in ("mean", "variance", "std"):
        return
    for one in earlier.of(query.question(policy), "variance", "std"):
        if isinstance(one.event, Moments):
            read = mechanism_for(query).read(query, policy, one.event, one.stored, confidence=0.95)
            yield _derived(query, read, one.entry)


def _from_sum_and_count(query: Query, policy: Policy, earlier: Quietest) -> Iterator[Derived]:
    """Where every row has a value, a sum over a count of the same rows is a mean."""
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
        yield _derived(query, Reading(np.clip(noisy, low, high), low, high, noisy), whole.entry, rows.entry)


def _read(query: Query, policy: Policy, one: Earlier) -> Any:
    return mechanism_for(query).read(
        query, policy, one.event, one.stored, confidence=0.975
    )  # two of them: 0.95 together
