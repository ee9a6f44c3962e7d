"""The reference implementation of tables/: one row at a time, in Python."""

from __future__ import annotations

import hashlib
import math
import operator as op
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np

from tidegate.policy import Category, EachPerson, Numeric, Policy
from tidegate.policy.predicates import Both, Either, Missing, Opposite
from tidegate.tables import Axis

OPERATORS = {"=": op.eq, "!=": op.ne, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge}

Row = dict[str, Any]


def code_of(value: Any, attribute: Any) -> int | None:
    """Return the code of a value in the public universe, None where it is missing."""
    if isinstance(attribute, Category):
        return attribute.values.index(value) if value in attribute.values else None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return 0 if attribute.missing == "lowest" else None
    if value == math.inf:
        return attribute.size - 1
    if value == -math.inf:
        return 0
    code = (
        math.floor((value - float(attribute.low)) / float(attribute.width) + 0.5) if isinstance(value, float) else None
    )
    if code is None:
        code = math.floor((Fraction(value) - attribute.low) / attribute.width + Fraction(1, 2))
    return min(max(code, 0), attribute.size - 1)


def counted_rows(rows: list[Row], policy: Policy) -> list[Row]:
    """At most k rows a person, by the order of a keyed hash of their codes."""
    unit = policy.dataset.unit
    if not isinstance(unit, EachPerson):
        return rows
    persons: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        if row[unit.key] is not None:
            persons[row[unit.key]].append(row)
    return [
        row for own in persons.values() for row in sorted(own, key=lambda row: _rank(row, policy, unit))[: unit.at_most]
    ]


def _rank(row: Row, policy: Policy, unit: EachPerson) -> str:
    text = (unit.choice or policy.dataset.name) + "|"
    for name, attribute in policy.attributes.items():
        if isinstance(attribute, Numeric):
            part = code_of(row[name], attribute)
            text += ("-" if part is None else str(part)) + "|"
        elif isinstance(attribute, Category):
            text += _raw(row[name]) + "|"
    return hashlib.md5((text + str(row[unit.key])).encode()).hexdigest()


def _raw(value: Any) -> str:
    if value is None:
        return "-"
    return hashlib.md5(value.encode()).hexdigest() if isinstance(value, str) else str(int(value))


def holds(predicate: Any, row: Row, policy: Policy) -> bool | None:
    """Whether a condition holds for a row; None where that is unknown, as in SQL."""
    if isinstance(predicate, Missing):
        return code_of(row[predicate.column], policy.attributes[predicate.column]) is None
    if isinstance(predicate, Opposite):
        inner = holds(predicate.inner, row, policy)
        return None if inner is None else not inner
    if isinstance(predicate, Both | Either):
        parts = [holds(part, row, policy) for part in predicate.parts]
        decisive = isinstance(predicate, Either)
        return decisive if decisive in parts else None if None in parts else not decisive
    attribute: Any = policy.attributes[predicate.column]
    code = code_of(row[predicate.column], attribute)
    if code is None:
        return None
    value = attribute.values[code] if isinstance(attribute, Category) else attribute.low + code * attribute.width
    return bool(OPERATORS[predicate.operator](value, predicate.value))


def count(rows: list[Row], policy: Policy, by: list[str], where: Any = None) -> dict[tuple[int, ...], int]:
    """Rows per cell (codes; missing as a value has the code after the last), cells without rows left out."""
    cells: dict[tuple[int, ...], int] = defaultdict(int)
    for row in counted_rows(rows, policy):
        if where is not None and holds(where, row, policy) is not True:
            continue
        cell = _cell_of(row, policy, by)
        if cell is not None:
            cells[cell] += 1
    return dict(cells)


def moments(
    rows: list[Row], policy: Policy, column: str, by: list[str], center: int
) -> dict[tuple[int, ...], list[int]]:
    """Number, sum and sum of squares of code - center per cell."""
    cells: dict[tuple[int, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in counted_rows(rows, policy):
        cell, code = _cell_of(row, policy, by), code_of(row[column], policy.attributes[column])
        if cell is not None and code is not None:
            for power in range(3):
                cells[cell][power] += (code - center) ** power
    return dict(cells)


def _cell_of(row: Row, policy: Policy, by: list[str]) -> tuple[int, ...] | None:
    cell = []
    for name in by:
        attribute: Any = policy.attributes[name]
        code = code_of(row[name], attribute)
        if code is None and attribute.missing == "dropped":
            return None
        cell.append(attribute.size if code is None else code)
    return tuple(cell)


class ReferenceTable:
    """The verbs of `tidegate.tables.Table` over rows in a list, for tests that need thousands of small tables."""

    engine = "reference"

    def __init__(self, policy: Policy, rows: list[Row]) -> None:
        self.policy, self.rows = policy, rows

    @property
    def size(self) -> int:
        return len(counted_rows(self.rows, self.policy))

    def check_rows(self) -> None:
        """Refuse rows whose number is not the declared one."""
        if self.policy.dataset.rows not in (None, self.size):
            raise ValueError("The policy declares another number of rows.")

    def without_rows(self) -> ReferenceTable:
        """The same columns with no row."""
        return ReferenceTable(self.policy, [])

    def axis(self, name: str) -> Axis:
        return Axis(name, self.policy.countable(name))

    def count(self, axes: list[Axis], *, where: Any = None) -> np.ndarray[Any, Any]:
        return self._fill(axes, where, lambda row: 1)

    def moments(
        self, column: str, *, by: list[Axis], where: Any, center: int, powers: list[int]
    ) -> tuple[np.ndarray[Any, Any], ...]:
        attribute = self.policy.attributes[column]

        def power(exponent: int) -> np.ndarray[Any, Any]:
            def amount(row: Row) -> int:
                code = code_of(row[column], attribute)
                return 0 if code is None else (code - center) ** exponent

            return self._fill(by, where, amount)

        return tuple(power(exponent) for exponent in powers)

    def _fill(self, axes: list[Axis], where: Any, amount: Any) -> np.ndarray[Any, Any]:
        cells = np.zeros(tuple(axis.length for axis in axes), np.int64)
        for row in counted_rows(self.rows, self.policy):
            cell = tuple(self._cell(axis, row) for axis in axes)
            if None not in cell and (where is None or holds(where, row, self.policy) is True):
                cells[cell] += amount(row)
        return cells

    def _cell(self, axis: Axis, row: Row) -> int | None:
        attribute: Any = axis.attribute
        code = code_of(row[axis.name], attribute)
        if code is None:
            return axis.length - 1 if attribute.missing == "value" else None
        if axis.binned and isinstance(attribute, Numeric):
            return sum(start <= code for start in attribute.bin_starts()) - 1
        return code
