"""Expressions evaluated over the public universe of their columns, once, instead of over rows.

The universe of several columns is the product of their values, each with one more row for missing. An expression gives every
combination a value; what an engine then needs is a table from codes to cells, numbers, or true and false. Errors of an
expression are public, because no row takes part.

Guarantee:
    The code of a combination depends on one row alone, so a function of it does too: replacing a row replaces one value.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from fractions import Fraction
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import Unsupported
from tidegate.extras import late
from tidegate.policy import Attribute, Numeric, Policy
from tidegate.policy.predicates import Both, Compare, Either, Holds, Predicate, code_bounds
from tidegate.tables.expressions import names_in
from tidegate.tables.mappings import DROPPED, Grouping, Ints, Mapped, Measured
from tidegate.tables.tabulation import Tabulated, short, tabulate

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = late("pyarrow")

STEPS = 2**20  # of a number without a grid of its own
FALSE, TRUE, UNKNOWN = 0, 1, 2


class LatestResults:
    """The latest results by key, at most a fixed number."""

    def __init__(self, most: int) -> None:
        self._most, self._turn = most, Lock()
        self._content: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any, make: Any) -> Any:
        with self._turn:
            if key in self._content:
                self._content.move_to_end(key)
                return self._content[key]
        value = make()
        with self._turn:
            self._content[key] = value
            while len(self._content) > self._most:
                self._content.popitem(last=False)
        return value


_groupings, _measures, _truths, _values = LatestResults(500), LatestResults(500), LatestResults(500), LatestResults(20)


def version_of(policy: Policy) -> tuple[str, ...]:
    """Return what identifies the columns of a policy and its references."""
    return (policy.fingerprint, *sorted({reference.digest for reference in policy.references.values()}))


def grouping_of(policy: Policy, name: str) -> Attribute:
    """Return the cells of a column or of an expression."""
    if name in policy.attributes:
        return policy.countable(name)
    return _groupings.get((version_of(policy), name), lambda: _grouping(policy, name))  # type: ignore[no-any-return]


def measured_of(policy: Policy, name: str) -> Attribute:
    """Return the numbers of a column or of an expression."""
    if name in policy.attributes:
        return policy.countable(name)
    return _measures.get((version_of(policy), name), lambda: _measured(policy, name))  # type: ignore[no-any-return]


def truth_of(policy: Policy, text: str) -> Mapped:
    """Return where a condition is TRUE, FALSE and UNKNOWN."""
    return _truths.get((version_of(policy), text), lambda: _truth(policy, text))  # type: ignore[no-any-return]


def is_never_true(policy: Policy, condition: Predicate | None) -> bool:
    """Return whether no value that the policy declares satisfies a condition: True only if that is certain."""
    if isinstance(condition, Either):
        return all(is_never_true(policy, part) for part in condition.parts)
    if isinstance(condition, Holds):
        return not (truth_of(policy, condition.text).codes == TRUE).any()
    if isinstance(condition, Both) and any(is_never_true(policy, part) for part in condition.parts):
        return True
    parts = condition.parts if isinstance(condition, Both) else (condition,)
    ranges: dict[str, tuple[int, int]] = {}  # first and last code that comparisons allow
    for part in parts:
        if isinstance(part, Compare) and isinstance(attribute := policy.attribute(part.column), Numeric):
            first, last = ranges.get(part.column, (0, attribute.size - 1))
            ranges[part.column] = _narrowed(first, last, code_bounds(attribute, part.operator, part.value))
    return any(first > last for first, last in ranges.values())


def _narrowed(first: int, last: int, bounds: tuple[str, int] | bool) -> tuple[int, int]:
    """Return the codes from `first` to `last` that a comparison allows; an empty range if it allows none."""
    if isinstance(bounds, bool):
        return (first, last) if bounds else (1, 0)
    operator, code = bounds
    lowest = {">=": code, ">": code + 1, "=": code}.get(operator, first)
    highest = {"<=": code, "<": code - 1, "=": code}.get(operator, last)
    return max(first, lowest), min(last, highest)


def base_columns(policy: Policy, name: str) -> list[str]:
    """Return the policy's columns behind a column or an expression; a reference column follows from its foreign key."""
    named = names_in(policy, name)
    return [policy.references[name].foreign if name in policy.references else name for name in named]


def _tabulated(policy: Policy, text: str) -> Tabulated:
    return _values.get((version_of(policy), text), lambda: tabulate(policy, text))  # type: ignore[no-any-return]


def _reachable(policy: Policy, names: Sequence[str], sizes: Sequence[int], *, with_dropped: bool) -> NDArray[np.bool_]:
    """Return the combinations that a row can have; without those whose missing value is dropped, if so requested."""
    reachable = np.ones(tuple(sizes), np.bool_)
    for axis, name in enumerate(names):
        missing = getattr(policy.attribute(name), "missing", "dropped")
        if missing == "lowest" or (missing == "dropped" and not with_dropped):
            index: list[Any] = [slice(None)] * len(sizes)
            index[axis] = -1
            reachable[tuple(index)] = False
    return reachable.reshape(-1)


def _grouping(policy: Policy, text: str) -> Grouping:
    table = _tabulated(policy, text)
    names, sizes, values = table.names, table.sizes, table.values
    if not names:
        raise Unsupported(
            f"{text[:60]} is a constant, so it groups nothing.", "Group by a column or an expression of one."
        )
    encoded = values.dictionary_encode() if not pa.types.is_null(values.type) else None
    if encoded is None:
        raise Unsupported(f"{text[:60]} has no value.", "Group by another expression.")
    codes = np.asarray(encoded.indices.fill_null(DROPPED).to_numpy(zero_copy_only=False), np.int64)
    labels = encoded.dictionary.to_pylist()
    if len(labels) and isinstance(labels[0], list | dict | bytes):
        raise Unsupported(f"{text[:60]} is not a single value.", "Group by a number, text, date or true/false.")
    present = np.unique(codes[_reachable(policy, names, sizes, with_dropped=True)])
    order = sorted((code for code in present.tolist() if code >= 0), key=lambda code: _sort_key(labels[code]))
    cell = np.full(len(labels) + 1, DROPPED, np.int64)
    cell[order] = np.arange(len(order))
    shown = [labels[code] for code in order]
    if (codes[_reachable(policy, names, sizes, with_dropped=False)] == DROPPED).any():
        cell[DROPPED] = len(shown)
        shown.append(None)
    return Grouping(text, table.mapped(cell[codes]), tuple(shown), values.type)


def _sort_key(label: Any) -> Any:
    return (1, 0.0) if isinstance(label, float) and math.isnan(label) else (0, label)


def _measured(policy: Policy, text: str) -> Measured:
    table = _tabulated(policy, text)
    names, sizes, values = table.names, table.sizes, table.values
    kind = values.type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    ):
        what = "is text or a date" if not pa.types.is_null(kind) else "has no value"
        raise Unsupported(
            f"{short(text)} {what}: it can be counted, not added up or ranked.",
            "Use COUNT(*) with GROUP BY, or a number.",
        )
    numbers = np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    there = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_) & _reachable(
        policy, names, sizes, with_dropped=True
    )
    if not there.any() or not np.isfinite(numbers[there]).all():
        raise Unsupported(
            f"{short(text)} is not bounded: on a value that the policy lists it is infinite or not a number.",
            "Avoid division by 0 (NULLIF(x, 0)), and logarithms of 0 (LN(x + 1)).",
        )
    always = not (_reachable(policy, names, sizes, with_dropped=True) & ~there).any()
    missing = "lowest" if always else "dropped"
    affine = _affine(policy, names, numbers) if len(names) == 1 and not there[-1] else None
    if affine is not None:
        low, high, step, sign = affine
        codes = np.arange(sizes[0], dtype=np.int64)
        codes = np.where(codes < sizes[0] - 1, codes if sign > 0 else sizes[0] - 2 - codes, DROPPED)
        return Measured(text, table.mapped(codes), low, high, step, sign, missing=missing)
    low_value, high_value = float(numbers[there].min()), float(numbers[there].max())
    exact = bool((numbers[there] == np.round(numbers[there])).all()) and high_value - low_value <= STEPS
    step = Fraction(1) if exact else _round_step((high_value - low_value) / STEPS)
    low = math.floor(Fraction(low_value) / step) * step
    codes = np.where(there, np.round((np.where(there, numbers, 0.0) - float(low)) / float(step)), DROPPED).astype(
        np.int64
    )
    high = low + int(codes.max()) * step
    return Measured(text, table.mapped(codes), low, high, step, rounded=not exact, missing=missing)


def _affine(
    policy: Policy, names: Sequence[str], numbers: NDArray[np.float64]
) -> tuple[Fraction, Fraction, Fraction, int] | None:
    """Return the ends, the step and the order of an expression a x + b of one numeric column, and None for any other."""
    attribute = policy.attribute(names[0])
    values = numbers[:-1]
    if not isinstance(attribute, Numeric) or len(values) < 2 or not np.isfinite(values).all():
        return None
    first, last = (Fraction(float(end)).limit_denominator(10**9) for end in (values[0], values[-1]))
    slope = ((last - first) / (len(values) - 1)).limit_denominator(10**12)
    line = float(first) + float(slope) * np.arange(len(values))
    if not slope or np.abs(line - values).max() > 1e-9 * max(1e-300, float(abs(last - first))):
        return None
    low, high = sorted((first, first + slope * (len(values) - 1)))
    return low, high, abs(slope), 1 if slope > 0 else -1


def _round_step(width: float) -> Fraction:
    """Return the smallest 1, 2 or 5 times a power of ten that is at least `width`."""
    power = math.floor(math.log10(width)) if width > 0 else 0
    for factor in (1, 2, 5, 10):
        step = Fraction(factor) * Fraction(10) ** power
        if step >= Fraction(width):
            return step
    raise ValueError("A step must be finite.")


def _truth(policy: Policy, text: str) -> Mapped:
    table = _tabulated(policy, text)
    values = table.values
    if not pa.types.is_boolean(values.type) and not pa.types.is_null(values.type):
        raise Unsupported(f"{text[:60]} is not a condition: it is neither true nor false.", "Compare it with a value.")
    known = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    is_true = np.asarray(values.cast(pa.bool_()).fill_null(False).to_numpy(zero_copy_only=False), np.bool_)
    mapped = table.mapped(np.where(known, is_true.astype(np.int64), UNKNOWN).astype(np.int64))
    mapped.check_listed(text)
    return mapped


def cells_where(policy: Policy, name: str, texts: Sequence[str], count: int) -> NDArray[np.bool_]:
    """Return which cells of a grouping can have rows under conditions on the grouping's own columns."""
    allowed = np.ones(count, np.bool_)
    attribute = grouping_of(policy, name)
    mapped = attribute.mapped if isinstance(attribute, Grouping) else _identity(policy, name, attribute)
    combinations = np.ones(mapped.sizes, np.bool_)
    for text in texts:
        if set(base_columns(policy, text)) <= set(mapped.columns):
            truth = truth_of(policy, text)
            if truth.columns and not (truth.classes or mapped.classes):
                combinations &= _spread(truth, mapped) == TRUE
    cells = mapped.codes[combinations.reshape(-1)]
    if combinations.all():
        return allowed
    present = np.zeros(count, np.bool_)
    present[np.unique(cells[(cells >= 0) & (cells < count)])] = True
    return present


def _identity(policy: Policy, name: str, attribute: Attribute) -> Mapped:
    """Return the codes of a column as a mapping onto themselves."""
    return Mapped((name,), (attribute.size + 1,), np.arange(attribute.size + 1))


def _spread(truth: Mapped, onto: Mapped) -> Ints:
    """Return a mapping over some columns of another one, in its shape."""
    order = sorted(range(len(truth.columns)), key=lambda index: onto.columns.index(truth.columns[index]))
    grid = np.transpose(truth.codes.reshape(truth.sizes), order)
    shape = [size if name in truth.columns else 1 for name, size in zip(onto.columns, onto.sizes, strict=True)]
    return np.broadcast_to(grid.reshape(shape), onto.sizes)
