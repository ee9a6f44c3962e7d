"""Answers that follow from earlier ones, derived value by value: the reference implementation of answer/derive.py.

The rule is the same: the answer with the least noise speaks, and which one that is does not depend on what it says."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from tidegate.accounting import DiscreteLaplace, Moments, Together, event_from_dict
from tidegate.answer.derive import Derived
from tidegate.answer.mechanisms import mechanism_for
from tidegate.answer.mechanisms.mechanism import axes_of
from tidegate.answer.request import Query
from tidegate.ledger import Ledger
from tidegate.noise.laplace import sum_quantile
from tidegate.policy import Numeric, Policy
from tidegate.policy.predicates import holds
from tidegate.tables import Axis

Answered = tuple[int, dict[str, Any], Any, Any]
Row = dict[str, int | None]


def stored_answers(policy: Policy, ledger: Ledger) -> Iterator[Answered]:
    for entry, stored in ledger.answered(policy.dataset.name):
        body = entry.content()
        event, asks = event_from_dict(body["event"]), body["question"]["asks"]
        events = event.parts if isinstance(event, Together) and len(asks) > 1 else (event,)
        for ask, part_event, part in zip(asks, events, stored["parts"], strict=True):
            yield entry.number, ask, part_event, part


def derive_count(query: Query, policy: Policy, ledger: Ledger) -> Derived | None:
    """A count or histogram from the earlier one whose noise is narrowest for it."""
    candidates = []
    for number, ask, event, stored in stored_answers(policy, ledger):
        source = Query(ask["ask"], ask["column"], groups=tuple(ask["by"]))
        if (
            ask["ask"] in ("count", "histogram")
            and isinstance(event, DiscreteLaplace)
            and ask == source.question(policy)
        ):
            totals = _fold(query, policy, source, event.scale, np.array(stored["cells"]))
            if totals is not None:
                values, half = totals
                most = policy.dataset.rows and policy.dataset.rows * policy.dataset.unit.rows_per_person
                shown = [np.clip(part, 0, most) for part in (values, values - half, values + half)]
                candidates.append((int(half.max()), number, Derived(query, *shown, (number,), values)))
    return min(candidates, key=lambda candidate: candidate[:2])[2] if candidates else None


def _fold(query: Query, policy: Policy, source: Query, scale: Fraction, cells: Any) -> tuple[Any, Any] | None:
    old, new = axes_of(source, policy), axes_of(query, policy)
    names = [axis.name for axis in old]
    columns = {axis.name for axis in new} | (query.condition.columns() if query.condition is not None else set())
    if not columns <= set(names):
        return None
    values, parts = (np.zeros([axis.length for axis in new], np.int64) for _ in range(2))
    belongs: dict[tuple[int, ...], set[tuple[int, ...] | None]] = {}
    for codes in product(*(_values(policy, name) for name in names)):
        row: Row = dict(zip(names, codes, strict=True))
        target = _cell(row, new)
        counted = -1 not in target and _meets(query, policy, row)
        belongs.setdefault(_cell(row, old), set()).add(target if counted else None)
    for cell, targets in belongs.items():
        target, *more = targets
        if more or (-1 in cell and target is not None):
            return None
        if target is not None:
            values[target] += cells[cell]
            parts[target] += 1
    return values, np.vectorize(lambda n: sum_quantile(scale, int(n), 0.95), otypes=[np.int64])(parts)


def _values(policy: Policy, name: str) -> list[int | None]:
    attribute: Any = policy.attribute(name)
    return [*range(attribute.size), *([None] if attribute.missing != "lowest" else [])]


def _meets(query: Query, policy: Policy, row: Row) -> bool:
    looks = query.condition.columns() if query.condition is not None else set()
    return query.condition is None or holds(query.condition, policy, {name: row[name] for name in looks}) is True


def _cell(row: Row, axes: list[Axis]) -> tuple[int, ...]:
    """Where a row is counted; -1 along an axis that leaves it out."""
    return tuple(_axis_code(row[axis.name], axis) for axis in axes)


def _axis_code(code: int | None, axis: Axis) -> int:
    if code is None:
        return axis.missing_cell
    if axis.binned and isinstance(axis.attribute, Numeric):
        return sum(start <= code for start in axis.attribute.bin_starts()) - 1
    return code


def derive_mean(query: Query, policy: Policy, ledger: Ledger) -> list[Derived]:
    """A mean, variance or deviation from the variance and the deviation with the least noise."""
    question, derived = query.question(policy), []
    for statistic in ("variance", "std"):
        same = [
            (sum(scale for scale in event.scales if scale), number, event, stored)
            for number, ask, event, stored in stored_answers(policy, ledger)
            if isinstance(event, Moments) and ask == {**question, "ask": statistic}
        ]
        if same:
            _, number, event, stored = min(same, key=lambda candidate: candidate[:2])
            read = mechanism_for(query).read(query, policy, event, stored, confidence=0.95)
            derived.append(Derived(query, read.values, read.low, read.high, (number,), read.noisy))  # type: ignore[arg-type]
    return derived
