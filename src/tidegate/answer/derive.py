"""What follows from answers that were already given: free, because it is only arithmetic on public numbers.

a count, in all, of a range, or by fewer columns     from a count by columns or a histogram
a mean, variance or standard deviation               from the moments of an earlier variance or deviation
a mean                                               from an earlier sum and count of the same rows
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.accounting import DiscreteLaplace, Event, Moments, Together, event_from_dict
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.mechanisms.shape import axes_of
from tidegate.answer.request import Query
from tidegate.answer.result import label_of, number
from tidegate.ledger import Ledger
from tidegate.noise import noise_quantile
from tidegate.policy import Numeric, Policy
from tidegate.policy.predicates import holds
from tidegate.tables import Axis

MOST_CELLS = 200_000


@dataclass(frozen=True)
class Derived:
    """An answer made of earlier ones. It costs nothing."""

    query: Query
    values: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]
    entries: tuple[int, ...]

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
            found.append({**row, "value": self.values[place].item(), **ends})
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        parts = {"values": self.values.tolist(), "low": self.low.tolist(), "high": self.high.tolist()}
        return {"question": self.query.says(), **parts, "error_95": self.error, "from": list(self.entries), "cost": "0"}

    def __str__(self) -> str:
        return f"{self.query.says()}: {self.says()}     cost 0"


@dataclass(frozen=True)
class _Earlier:
    """One answered question, as the ledger has it."""

    entry: int
    ask: dict[str, Any]
    event: Event
    stored: Any


def derived(query: Query, policy: Policy, ledger: Ledger) -> Derived | None:
    """The best that follows from earlier answers, or None."""
    wanted = query.question(policy)
    earlier = list(_earlier(policy, ledger))
    found = [
        *_from_counts(query, policy, earlier),
        *_from_moments(query, policy, wanted, earlier),
        *_from_sum_and_count(query, policy, wanted, earlier),
    ]
    return min(found, key=lambda one: one.error, default=None)


def _earlier(policy: Policy, ledger: Ledger) -> Iterator[_Earlier]:
    for entry, stored in ledger.answered(policy.dataset.name):
        body = entry.content()
        if body["question"].get("verb") != "answer":
            continue
        event = event_from_dict(body["event"])
        asks = body["question"]["asks"]
        events = event.parts if isinstance(event, Together) and len(asks) > 1 else (event,)
        for ask, one, part in zip(asks, events, stored["parts"], strict=True):
            yield _Earlier(entry.number, ask, one, part)


def _same_rows(one: dict[str, Any], other: dict[str, Any], *, but: tuple[str, ...] = ("ask",)) -> bool:
    """Whether two questions are about the same rows, columns and universe."""
    return all(one[name] == other[name] for name in one if name not in but)


# ---- counts


def _from_counts(query: Query, policy: Policy, earlier: list[_Earlier]) -> Iterator[Derived]:
    if query.statistic not in ("count", "histogram"):
        return
    target = axes_of(query, policy)
    for one in earlier:
        if (
            one.ask["ask"] not in ("count", "histogram")
            or one.ask["where"] is not None
            or not isinstance(one.event, DiscreteLaplace)
        ):
            continue
        source = axes_of(Query(one.ask["ask"], one.ask["column"], groups=tuple(one.ask["by"])), policy)
        if not _same_universe(one, policy, source) or math.prod(axis.length for axis in source) > MOST_CELLS:
            continue
        places = _fold(query, policy, source, target)
        if places is not None:
            yield _folded(query, one, one.event.scale, places, tuple(axis.length for axis in target))


def _same_universe(one: _Earlier, policy: Policy, source: list[Axis]) -> bool:
    now = Query("count", groups=tuple(dict.fromkeys(axis.name for axis in source))).question(policy)
    return all(one.ask[name] == now[name] for name in ("of", "unit", "rows"))


def _fold(
    query: Query, policy: Policy, source: list[Axis], target: list[Axis]
) -> dict[tuple[int, ...], tuple[int, ...] | None] | None:
    """For each cell of the source the cell of the target that it belongs to (None: to none), or None altogether where a
    cell belongs partly, or where rows are missing from the source that the target counts."""
    names = [axis.name for axis in source]
    needed = {axis.name for axis in target} | (query.condition.columns() if query.condition is not None else set())
    if not needed <= set(names) or len(set(names)) != len(names):
        return None
    if any(axis.binned and not _binned_alike(axis, target) for axis in source):
        return None
    dropped = [axis.name for axis in source if getattr(axis.attribute, "missing", "") == "dropped"]
    if any(not _ignores_missing(query, policy, name, target) for name in dropped):
        return None
    places: dict[tuple[int, ...], tuple[int, ...] | None] = {}
    for cell in product(*(range(axis.length) for axis in source)):
        counted = _counted(query, policy, source, cell)
        if counted is None:
            return None
        places[cell] = tuple(cell[names.index(axis.name)] for axis in target) if counted else None
    return places


def _counted(query: Query, policy: Policy, source: list[Axis], cell: tuple[int, ...]) -> bool | None:
    """Whether the rows of a cell meet the condition; None where some of a bin do and some do not."""
    if query.condition is None:
        return True
    asked = [
        (axis.name, _codes(axis, place))
        for axis, place in zip(source, cell, strict=True)
        if axis.name in query.condition.columns()
    ]
    if math.prod(len(codes) for _, codes in asked) > MOST_CELLS:
        return None
    found = {
        holds(query.condition, policy, dict(zip((name for name, _ in asked), codes, strict=True))) is True
        for codes in product(*(codes for _, codes in asked))
    }
    return found.pop() if len(found) == 1 else None


def _binned_alike(axis: Axis, target: list[Axis]) -> bool:
    """A bin can only be kept as it is; ranges need single values."""
    one_each = isinstance(axis.attribute, Numeric) and len(axis.attribute.bin_starts()) == axis.attribute.size
    return one_each or any(other.name == axis.name and other.binned for other in target)


def _ignores_missing(query: Query, policy: Policy, name: str, target: list[Axis]) -> bool:
    """Whether rows where a column is missing do not count for the query anyway."""
    if any(axis.name == name for axis in target):
        return True
    if query.condition is None or name not in query.condition.columns():
        return False
    others = [other for other in query.condition.columns() if other != name]
    sizes = [policy.attribute(other).size for other in others]
    if math.prod(sizes) > 10_000:
        return False
    return not any(
        holds(query.condition, policy, {name: None, **dict(zip(others, codes, strict=True))})
        for codes in product(*(range(size) for size in sizes))
    )


def _codes(axis: Axis, place: int) -> list[int | None]:
    """The codes that a cell along an axis stands for."""
    found = axis.attribute
    if axis.binned and isinstance(found, Numeric):
        ends = [*found.bin_starts(), found.size]
        return list(range(ends[place], ends[place + 1])) if place + 1 < len(ends) else [None]
    return [place if place < found.size else None]


def _folded(query: Query, one: _Earlier, scale: Fraction, places: dict[Any, Any], shape: tuple[int, ...]) -> Derived:
    cells = np.array(one.stored["cells"], np.int64)
    values, parts = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for cell, place in places.items():
        if place is not None:
            values[place] += cells[cell]
            parts[place] += 1
    half = np.vectorize(lambda count: sum_quantile(scale, int(count), 0.95), otypes=[np.int64])(parts)
    return Derived(query, values, np.maximum(values - half, 0), np.maximum(values + half, 0), (one.entry,))


def sum_quantile(scale: Fraction, count: int, probability: float) -> int:
    """A bound on the sum of `count` independent noises that holds with the given probability (Chernoff; exact for one)."""
    if count <= 1:
        return noise_quantile(scale, probability) if count else 0
    log_r, wanted = -1 / float(scale), math.log(2 / (1 - probability))
    best = math.inf
    for step in range(1, 200):
        theta = -log_r * step / 200
        log_mgf = (
            2 * math.log1p(-math.exp(log_r))
            - math.log1p(-math.exp(log_r + theta))
            - math.log1p(-math.exp(log_r - theta))
        )
        best = min(best, (count * log_mgf + wanted) / theta)
    return math.ceil(best)


# ---- moments


def _from_moments(query: Query, policy: Policy, wanted: dict[str, Any], earlier: list[_Earlier]) -> Iterator[Derived]:
    """A variance's three noisy moments hold the mean and the deviation too."""
    if query.statistic not in ("mean", "variance", "std"):
        return
    for one in earlier:
        if one.ask["ask"] in ("variance", "std") and isinstance(one.event, Moments) and _same_rows(wanted, one.ask):
            read = mechanism_for(query).read(query, policy, one.event, one.stored, confidence=0.95)
            if read.low is not None and read.high is not None:
                yield Derived(query, read.values, read.low, read.high, (one.entry,))


def _from_sum_and_count(
    query: Query, policy: Policy, wanted: dict[str, Any], earlier: list[_Earlier]
) -> Iterator[Derived]:
    """Where every row has a value, a sum over a count of the same rows is a mean."""
    attribute: Any = policy.attributes.get(query.column)
    if query.statistic != "mean" or getattr(attribute, "missing", "") != "lowest":
        return
    sums = [one for one in earlier if one.ask["ask"] == "sum" and _same_rows(wanted, one.ask)]
    bare = replace(query, statistic="count", column="").question(policy)
    counts = [one for one in earlier if one.ask["ask"] == "count" and _same_rows(bare, one.ask)]
    for total, rows in product(sums, counts):
        top = _read(replace(query, statistic="sum"), policy, total)
        bottom = _read(replace(query, statistic="count", column=""), policy, rows)
        corners = [t / np.maximum(b, 1) for t in (top.low, top.high) for b in (bottom.low, bottom.high)]
        ends = float(attribute.low), float(attribute.high)
        middle = np.clip(top.values / np.maximum(bottom.values, 1), *ends)
        low, high = np.clip(np.minimum.reduce(corners), *ends), np.clip(np.maximum.reduce(corners), *ends)
        yield Derived(query, middle, low, high, (total.entry, rows.entry))


def _read(query: Query, policy: Policy, one: _Earlier) -> Any:
    return mechanism_for(query).read(
        query, policy, one.event, one.stored, confidence=0.975
    )  # two of them: 0.95 together
