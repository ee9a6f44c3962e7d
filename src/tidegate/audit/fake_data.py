"""Data sets simulated from the public part of a policy: no private row is read and no budget is spent.

A unit (a row, or a person with all rows) is a mapping from columns to codes; a column that is not named has code 0.
A person gets two rows more than the policy counts, so that a mechanism that counts them all is detected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.accounting import Amount, budget_of
from tidegate.answer.spending import RequestedLoss, in_account_unit
from tidegate.arrays import Ints
from tidegate.policy import (
    Category,
    Dataset,
    EachPerson,
    Identification,
    Loss,
    Moment,
    Numeric,
    Policy,
    Text,
    Timestamp,
)
from tidegate.policy.predicates import OPERATORS, Both, Compare, Opposite, Predicate
from tidegate.tables import Axis, Table, open_table

Codes = Mapping[str, int]
BEYOND = 2  # rows of a person above the number that counts
NAME = "audit"


def copy_policy(policy: Policy, *, units: int, name: str = NAME) -> Policy:
    """Return the policy of a simulated data set: the same columns, unit and budget limit, no source, no other promises.

    A limit on epsilon is also declared as a loss, so that it stays the same if a target has to be removed.
    """
    pure = budget_of(policy).ceilings.pure
    key = policy.dataset.unit.key if isinstance(policy.dataset.unit, EachPerson) else None
    attributes = {
        column: attribute
        for column, attribute in policy.attributes.items()
        if (attribute.countable and not isinstance(attribute, Text)) or column == key
    }
    dataset = simulated_dataset(policy, name=name, rows=units)
    promise, loss = _identification(policy, attributes, units), Loss(pure.value) if pure else None
    return Policy(dataset, attributes, promise, loss, version=policy.version)


def simulated_dataset(policy: Policy, **changes: Any) -> Dataset:
    """Return the data set of a simulated table: the same unit, no locations, and no account with the same persons."""
    bare: Any = {"source": "", "ledger": "", "reports": "", "witness": (), "shares_persons_with": ()}
    return replace(policy.dataset, **{**bare, **changes})


def _identification(policy: Policy, attributes: Mapping[str, Any], units: int) -> Identification | None:
    promise = policy.identification
    if promise is None or promise.worlds == "persons":  # their number of worlds depends on that of rows
        return _persons(policy, units) if promise and promise.guarantee == "average" else None
    names = tuple(name for name in promise.protect if name in attributes)
    chosen: dict[str, Any] = {
        "prior": {name: chances for name, chances in promise.prior.items() if name in names},
        "within": {name: width for name, width in promise.within.items() if name in names},
    }
    return Identification(promise.rho, protect=names, guarantee=promise.guarantee, **chosen) if names else None


def _persons(policy: Policy, units: int) -> Identification | None:
    """Return a promise about as many candidates and unknown persons: it has the same limit of the average loss."""
    promise, rows, (target,) = policy.identification, policy.dataset.rows or 0, budget_of(policy).targets
    if promise is None or promise.population is None or target.guesses > units:  # more unknown persons than units
        return None
    return Identification(
        promise.rho,
        worlds="persons",
        population=promise.population - rows + units,
        known=units - target.guesses,
        guarantee="average",
    )


def budget_limit(policy: Policy) -> Amount:
    """Return the budget limit of all answers about a simulated data set."""
    return budget_of(policy).ceiling


def whole_budget(policy: Policy) -> RequestedLoss:
    """Return the largest loss that one request can spend, in the unit of the account."""
    budget = budget_of(policy)
    if budget.unit == "epsilon" and budget.ceilings.z is not None:  # both are limited, and pure noise is used
        both = min(budget.ceiling.value, in_account_unit(budget, budget.ceilings.z.value).amount)
        return RequestedLoss(both)
    return RequestedLoss(budget.ceiling.value, budget.unit)


def build_table(policy: Policy, units: Sequence[Codes]) -> Table:
    """Return a simulated data set on the default engine."""
    unit = policy.dataset.unit
    rows = unit.at_most + BEYOND if isinstance(unit, EachPerson) else 1
    columns: dict[str, Any] = {}
    for name, attribute in policy.attributes.items():
        if isinstance(unit, EachPerson) and name == unit.key:
            columns[name] = [f"unit {n}" for n in range(len(units)) for _ in range(rows)]
        else:
            columns[name] = [table_value(attribute, codes.get(name, 0)) for codes in units for _ in range(rows)]
    return open_table(policy, pa.table(columns))


def table_value(attribute: Any, code: int) -> Any:
    """Return the value at a code as a table stores it."""
    if isinstance(attribute, Category):
        return attribute.values[code]
    if isinstance(attribute, Timestamp) and attribute.zone:
        return attribute.first + timedelta(seconds=code * attribute.step)
    if isinstance(attribute, Moment):
        return attribute.label(code)
    value = attribute.value(code)
    return int(value) if value.denominator == 1 and attribute.kind == "integer" else float(value)


def query_value(attribute: Any, code: int) -> Any:
    """Return the value at a code as a query names it."""
    if isinstance(attribute, Moment):
        return table_value(attribute, code).isoformat()
    return attribute.values[code] if isinstance(attribute, Category) else attribute.value(code)


@dataclass(frozen=True)
class MemoryTable:
    """The same integers as `build_table` gives, computed in memory, because an adversary evaluates thousands of worlds.

    Supports only what mechanisms request in the attacks: counts and moments under simple conditions. `adversary.py`
    compares it with the engine before it relies on it.
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
        terms = [unit.get(column, 0) - center for unit in self.units]
        return tuple(self._cells(by, where, [term**power for term in terms]) for power in powers)

    def _cells(self, by: Sequence[Axis], where: Predicate | None, amounts: Sequence[int]) -> Ints:
        cells = np.zeros(tuple(axis.length for axis in by), np.int64)
        for unit, amount in zip(self.units, amounts, strict=True):
            if where is None or self._meets(where, unit):
                cells[tuple(_cell(axis, unit.get(axis.name, 0)) for axis in by)] += self.rows * amount
        return cells

    def _meets(self, where: Predicate, unit: Codes) -> bool:
        if isinstance(where, Both):
            return all(self._meets(part, unit) for part in where.parts)
        if isinstance(where, Opposite):
            return not self._meets(where.inner, unit)
        if not isinstance(where, Compare):
            raise TypeError("Attacks support simple conditions only")
        attribute = self.policy.attribute(where.column)
        return bool(OPERATORS[where.operator](query_value(attribute, unit.get(where.column, 0)), where.value))


def _cell(axis: Axis, code: int) -> int:
    return int(np.searchsorted(axis.firsts, code, side="right") - 1) if axis.firsts else code


def numeric_columns(policy: Policy) -> list[str]:
    """Return the numeric columns with at least two values, protected ones first."""
    return [name for name in _countable(policy) if isinstance(policy.attribute(name), Numeric)]


def summed_columns(policy: Policy) -> list[str]:
    """Return the numeric columns that have a sum: not dates and times."""
    return [name for name in numeric_columns(policy) if has_sum(policy.attribute(name))]


def has_sum(attribute: Any) -> bool:
    """Return whether a sum of the column can be requested."""
    return isinstance(attribute, Numeric) and not isinstance(attribute, Moment)


def category_columns(policy: Policy) -> list[str]:
    """Return the category columns with at least two values, protected ones first."""
    return [name for name in _countable(policy) if isinstance(policy.attribute(name), Category)]


def _countable(policy: Policy) -> list[str]:
    protected = policy.identification.protect if policy.identification else ()
    columns = policy.attributes.items()
    names = [name for name, of in columns if of.countable and of.size > 1 and not isinstance(of, Text)]
    return sorted(names, key=lambda name: name not in protected)
