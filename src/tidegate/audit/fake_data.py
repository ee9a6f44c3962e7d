"""Data sets made up from what a policy says in public: no private row is read, nothing of the user's budget is spent.

A unit (a row, or a person with all rows) is given by the codes of its columns; columns that are not named are at code 0.
A person gets two rows more than count: whoever counts them all is found out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.accounting import Amount, budget_of
from tidegate.arrays import Ints
from tidegate.policy import Category, EachPerson, Identification, Loss, Numeric, Policy
from tidegate.policy.predicates import OPERATORS, Both, Compare, Opposite, Predicate
from tidegate.tables import Axis, Table, open_table

Codes = Mapping[str, int]
BEYOND = 2  # rows of a person beyond those that count
NAME = "audit"


def copy_of(policy: Policy, *, units: int, name: str = NAME) -> Policy:
    """The policy of a made-up data set: the same columns, unit and ceiling, so many units; no place, nothing else promised.

    The ceiling is also put down as a loss, so that it stays the same where a target has to be left out.
    """
    ceiling = budget_of(policy).ceiling
    key = policy.dataset.unit.key if isinstance(policy.dataset.unit, EachPerson) else None
    kept = {column: one for column, one in policy.attributes.items() if one.countable or column == key}
    dataset = replace(policy.dataset, name=name, source="", ledger="", reports="", rows=units)
    return Policy(dataset, kept, _identification(policy, kept), Loss(ceiling.value) if ceiling else None)


def _identification(policy: Policy, kept: Mapping[str, Any]) -> Identification | None:
    promise = policy.identification
    if promise is None or promise.worlds == "persons":  # their number of worlds depends on that of rows
        return None
    names = tuple(name for name in promise.protect if name in kept)
    prior = {name: given for name, given in promise.prior.items() if name in names}
    return Identification(promise.rho, protect=names, prior=dict(prior)) if names else None


def ceiling_of(policy: Policy) -> Amount:
    """What all answers about a made-up data set may lose together."""
    return budget_of(policy).ceiling


def table_of(policy: Policy, units: Sequence[Codes]) -> Table:
    """A made-up data set on the default engine."""
    unit = policy.dataset.unit
    rows = unit.at_most + BEYOND if isinstance(unit, EachPerson) else 1
    columns: dict[str, Any] = {}
    for name, attribute in policy.attributes.items():
        if isinstance(unit, EachPerson) and name == unit.key:
            columns[name] = [f"unit {n}" for n in range(len(units)) for _ in range(rows)]
        else:
            columns[name] = [value_of(attribute, one.get(name, 0)) for one in units for _ in range(rows)]
    return open_table(policy, pa.table(columns))


def value_of(attribute: Any, code: int) -> Any:
    """The value at a code, as a table holds it."""
    if isinstance(attribute, Category):
        return attribute.values[code]
    value = attribute.value(code)
    return int(value) if value.denominator == 1 and attribute.kind == "integer" else float(value)


def asked_value(attribute: Any, code: int) -> Any:
    """The value at a code, as a question names it."""
    return attribute.values[code] if isinstance(attribute, Category) else attribute.value(code)


@dataclass(frozen=True)
class Imagined:
    """The same integers as `table_of` gives, worked out in memory: an attacker goes through thousands of worlds.

    Only what mechanisms ask of a table in the attacks: counts and moments under simple conditions. `informed.py` compares
    with the engine before it relies on them.
    """

    policy: Policy
    units: tuple[Codes, ...]

    @property
    def rows(self) -> int:
        return self.policy.dataset.unit.rows_per_person

    @property
    def size(self) -> int:
        return self.rows * len(self.units)

    def axis(self, name: str, *, binned: bool = False) -> Axis:
        return Axis(name, self.policy.countable(name), binned)

    def count(self, by: Sequence[Axis] = (), *, where: Predicate | None = None) -> Ints:
        return self._cells(by, where, [1] * len(self.units))

    def moments(
        self, column: str, *, by: Sequence[Axis], where: Predicate | None, center: int, powers: Sequence[int]
    ) -> tuple[Ints, ...]:
        terms = [one.get(column, 0) - center for one in self.units]
        return tuple(self._cells(by, where, [term**power for term in terms]) for power in powers)

    def _cells(self, by: Sequence[Axis], where: Predicate | None, amounts: Sequence[int]) -> Ints:
        cells = np.zeros(tuple(axis.length for axis in by), np.int64)
        for one, amount in zip(self.units, amounts, strict=True):
            if where is None or self._meets(where, one):
                cells[tuple(_cell(axis, one.get(axis.name, 0)) for axis in by)] += self.rows * amount
        return cells

    def _meets(self, where: Predicate, one: Codes) -> bool:
        if isinstance(where, Both):
            return all(self._meets(part, one) for part in where.parts)
        if isinstance(where, Opposite):
            return not self._meets(where.inner, one)
        if not isinstance(where, Compare):
            raise TypeError("Attacks support simple conditions only")
        attribute = self.policy.attribute(where.column)
        return bool(OPERATORS[where.operator](asked_value(attribute, one.get(where.column, 0)), where.value))


def _cell(axis: Axis, code: int) -> int:
    return int(np.searchsorted(axis.firsts, code, side="right") - 1) if axis.firsts else code


def numbers_of(policy: Policy) -> list[str]:
    """Columns with numbers that differ, the protected ones first."""
    return [name for name in _countable(policy) if isinstance(policy.attribute(name), Numeric)]


def categories_of(policy: Policy) -> list[str]:
    """Columns with listed values that differ."""
    return [name for name in _countable(policy) if isinstance(policy.attribute(name), Category)]


def _countable(policy: Policy) -> list[str]:
    protected = policy.identification.protect if policy.identification else ()
    found = [name for name, one in policy.attributes.items() if one.countable and one.size > 1]
    return sorted(found, key=lambda name: name not in protected)
