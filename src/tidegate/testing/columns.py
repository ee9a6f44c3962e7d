"""The contract of an engine's column types.

Every stored value has a code, and one changed row changes counts and sums by no more than the price assumes. A
`HostileColumn` is a type of the engine with difficult values: collations, padding, unsigned and very long numbers, NaN,
similar spellings. The reference implementation here reads one value at a time, in Python.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from tidegate.policy import (
    Attribute,
    Category,
    Dataset,
    EachPerson,
    Integer,
    Key,
    Moment,
    Numeric,
    Policy,
    Text,
    Time,
    Timestamp,
)
from tidegate.policy.predicates import col
from tidegate.tables import Table, open_table
from tidegate.tables.pairs import count_pairs
from tidegate.testing.contract import Contract
from tidegate.testing.engines import code

TIMES = 2  # rows of every value in each table
AT_MOST = 2
SIZES = Integer(0, 9)


@dataclass(frozen=True)
class HostileColumn:
    """A column type of an engine in its own SQL, and values: as SQL literals and as Python reads them."""

    kind: str
    attribute: Attribute
    values: tuple[tuple[str, Any], ...]
    thorough: bool = True  # check every statistic, not only codes and counts

    @property
    def title(self) -> str:
        return f"{self.kind} as {self.attribute.kind} {self.attribute.describe()}"


@dataclass(frozen=True)
class HostileRow:
    """One row to load: its table, a key, a small number, and the hostile value."""

    world: int
    person: str
    size: int
    literal: str
    value: Any


def hostile_rows(column: HostileColumn, *, neighbors: int = 4) -> list[HostileRow]:
    """Return a table of all values, and neighbors that differ from it in one row each."""
    base = list(column.values) * TIMES
    rows = []
    for world in range(neighbors + 1):
        values = list(base)
        if world:
            changed = (7 * world) % len(values)
            values[changed] = column.values[(changed + 3 * world) % len(column.values)]
        for n, (literal, value) in enumerate(values):
            rows.append(HostileRow(world, f"p{n}", n % 10, literal, value))
    return rows


def check_hostile_columns(
    columns: Sequence[HostileColumn],
    load: Callable[[HostileColumn, list[HostileRow]], Any],
    *,
    name: str = "engine",
    neighbors: int = 4,
) -> Contract:
    """Check the contract of column types.

    Args:
        load: Stores the rows of a column and returns an Ibis table with the columns world, person, size (of ordinary
            types) and x (of the hostile type).
    """
    contract = Contract(f"column types of {name}")
    for column in columns:
        rows = hostile_rows(column, neighbors=neighbors)
        loaded: list[Any] = []

        def store(column: HostileColumn = column, rows: Any = rows, loaded: Any = loaded) -> str:
            loaded.append(load(column, rows))
            return ""

        if contract.clause(f"{column.title}: values can be stored", store):
            check = _check_key if isinstance(column.attribute, Key) else _check_values
            check(contract, column, rows, loaded[0])
    return contract


def _check_values(contract: Contract, column: HostileColumn, rows: list[HostileRow], source: Any) -> None:
    worlds = _worlds(rows)
    attributes = {"person": Key(), "size": SIZES, "x": column.attribute}
    policy = Policy(Dataset("hostile"), attributes)
    persons = Policy(Dataset("hostile", unit=EachPerson("person", AT_MOST)), attributes)
    contract.clause(
        f"{column.title}: each value has its code", _codes, open_table(policy, _world(source, 0)), worlds[0]
    )
    vectors = [_vectors(column, open_table(policy, _world(source, world))) for world in range(len(worlds))]
    for statistic in vectors[0] if column.thorough else ["count by x"]:
        contract.clause(
            f"{column.title}: {statistic} equals the reference, and changes by at most its sensitivity",
            _statistic, column, worlds, [vector[statistic] for vector in vectors], statistic,
        )  # fmt: skip
    if not column.thorough:
        return
    bounded = source.mutate(person=source.person.substitute({f"p{n}": f"p{n % 3}" for n in range(len(worlds[0]))}))
    contract.clause(
        f"{column.title}: the rows that count for a person", _persons, persons, _world(bounded, 0), worlds[0]
    )


def _worlds(rows: list[HostileRow]) -> list[list[HostileRow]]:
    return [[row for row in rows if row.world == world] for world in range(rows[-1].world + 1)]


def _world(source: Any, world: int) -> Any:
    return source.filter(source.world == world)


def _codes(table: Table, rows: list[HostileRow]) -> str:
    axis = table.axis("x")
    cells = table.records([row.person for row in rows], [], [axis]).cells
    wrong = sum(cells.get(row.person) != (_cell(row.value, axis),) for row in rows)
    return f"{wrong} of {len(rows)} values have a different code" if wrong else ""


def _cell(value: Any, axis: Any) -> int:
    index = reference_code(value, axis.attribute)
    return int(axis.missing_cell if index is None else index)


def reference_code(value: Any, attribute: Any) -> int | None:
    """Return the code of a value by definition; None if it is missing or not listed.

    A date or time beyond the years 1 to 9999 is given as an infinite number.
    """
    if getattr(attribute, "missing", "") == "lowest":
        index = reference_code(value, replace(attribute, missing="dropped"))
        return 0 if index is None else index
    if value is None:
        return None
    if isinstance(attribute, Category):
        same = type(value) is attribute.value_type and value in attribute.listed
        return attribute.listed.index(value) if same else attribute.size - 1 if attribute.outside == "other" else None
    if isinstance(attribute, Text):
        return int(hashlib.md5(value.encode()).hexdigest()[:8], 16) % attribute.size  # noqa: S324
    number = float(value) if isinstance(value, Decimal) and not value.is_finite() else value
    if isinstance(attribute, Moment):
        cell = _cell_of_moment(number, attribute)
        is_outside, index = not 0 <= cell < attribute.size, int(min(max(cell, 0), attribute.size - 1))
    else:
        is_outside, index = number < attribute.low or number > attribute.high, code(number, attribute)
    return None if is_outside and attribute.outside == "missing" else index


def _cell_of_moment(value: Any, attribute: Any) -> Any:
    """Return the cell of a date or time on an endless grid, by Python's calendar."""
    if isinstance(value, float):
        return value
    if isinstance(attribute, Time):
        seconds = value.hour * 3600 + value.minute * 60 if isinstance(value, dt.time) else value
        return (seconds - attribute.first.hour * 3600 - attribute.first.minute * 60) // attribute.step
    if isinstance(attribute, Timestamp):
        return (value - attribute.first) // dt.timedelta(seconds=attribute.step)
    day, first = value if type(value) is dt.date else value.date(), attribute.first
    if attribute.grid in ("day", "week"):
        return (day - first).days // (7 if attribute.grid == "week" else 1)
    return ((day.year - first.year) * 12 + day.month - first.month) // {"month": 1, "quarter": 3, "year": 12}[
        attribute.grid
    ]


def _vectors(column: HostileColumn, table: Table) -> dict[str, Callable[[], np.ndarray[Any, Any]]]:
    """Return every exact vector that an answer uses, not computed yet."""
    vectors: dict[str, Callable[[], Any]] = {
        "count by x": lambda: table.count(["x"]),
        "count by size and x": lambda: table.count(["size", "x"]),
        "pairs": lambda: count_pairs(table, [table.axis("size"), table.axis("x")])[0, 1],
        "count where missing": lambda: table.count(where=col("x").missing()),
    }
    test = _test(column.attribute)
    vectors["count where"] = lambda: table.count(where=test)
    vectors["count where not"] = lambda: table.count(["size"], where=~test)
    if isinstance(column.attribute, Numeric):
        vectors["moments"] = lambda: np.array([cells.item() for cells in table.moments("x")], object)
        vectors["products"] = lambda: table.products(["x", "size"], centers=[1, 1])
    return vectors


def _test(attribute: Any) -> Any:
    value = attribute.label(attribute.size // 2)
    return col("x") >= value if isinstance(attribute, Numeric) else col("x") == value


def _statistic(
    column: HostileColumn, worlds: list[list[HostileRow]], vectors: list[Callable[[], Any]], statistic: str
) -> str:
    results = [np.asarray(vector(), object) for vector in vectors]
    expected = [_reference(column.attribute, rows, statistic) for rows in worlds]
    wrong = sum(not np.array_equal(here, there) for here, there in zip(results, expected, strict=True))
    if wrong:
        return f"{wrong} of {len(results)} tables give different numbers"
    last = max(column.attribute.size - 1, 1)
    largest = {"moments": 1 + last + last**2, "products": (2 + last + SIZES.size) ** 2}.get(statistic, 2)
    moved = max(int(np.abs(other - results[0]).sum()) for other in results[1:])
    return f"one row changes it by {moved}, more than {largest}" if moved > largest else ""


def _reference(attribute: Any, rows: list[HostileRow], statistic: str) -> np.ndarray[Any, Any]:
    codes = [reference_code(row.value, attribute) for row in rows]
    sizes = [row.size for row in rows]
    if statistic == "count where missing":
        return np.array(sum(index is None for index in codes), object)
    if statistic in ("moments", "products"):
        pairs = [(index, size) for index, size in zip(codes, sizes, strict=True) if index is not None]
        if statistic == "moments":
            return np.array([sum(index**power for index, _ in pairs) for power in range(3)], object)
        vectors = [np.array([1, index - 1, size - 1], object) for index, size in pairs]
        return sum((np.outer(vector, vector) for vector in vectors), np.zeros((3, 3), object))
    if statistic.startswith("count where"):
        middle = attribute.size // 2
        true = [index is not None and (index >= middle if isinstance(attribute, Numeric) else index == middle) for index in codes]  # fmt: skip
        if statistic == "count where":
            return np.array(sum(true), object)
        false = [size for size, index, holds in zip(sizes, codes, true, strict=True) if index is not None and not holds]
        return np.array([false.count(size) for size in range(SIZES.size)], object)
    cells = attribute.size + (attribute.missing == "value")
    table = np.zeros((SIZES.size, cells), object)
    for size, index in zip(sizes, codes, strict=True):
        if index is not None or attribute.missing == "value":
            table[size, attribute.size if index is None else index] += 1
    return table.sum(axis=0) if statistic == "count by x" else table


def _persons(policy: Policy, source: Any, rows: list[HostileRow]) -> str:
    """Compare the counted rows of persons: a hash of their codes selects them, and the reference sorts by the same."""
    own: dict[str, list[tuple[str, HostileRow]]] = defaultdict(list)
    for n, row in enumerate(rows):
        own[f"p{n % 3}"].append((_rank(f"p{n % 3}", row, policy), row))
    selected = [row for each in own.values() for _, row in sorted(each, key=lambda ranked: ranked[0])[:AT_MOST]]
    expected = _reference(policy.attributes["x"], selected, "count by size and x")
    counts = open_table(policy, source).count(["size", "x"])
    return "" if np.array_equal(np.asarray(counts, object), expected) else "other rows are counted"


def _rank(person: str, row: HostileRow, policy: Policy) -> str:
    attribute = policy.attributes["x"]
    part = f"{row.size}|{_hashed(row.value, attribute)}|"
    return hashlib.md5(f"{policy.dataset.name}|{part}{person}".encode("utf-8", "surrogatepass")).hexdigest()  # noqa: S324


def _hashed(value: Any, attribute: Any) -> str:
    if isinstance(attribute, Category | Text):
        if isinstance(value, str):
            return hashlib.md5(value.encode()).hexdigest()  # noqa: S324
        return "-" if value is None else str(int(value))
    index = reference_code(value, attribute)
    return "-" if index is None else str(index)


def _check_key(contract: Contract, column: HostileColumn, rows: list[HostileRow], source: Any) -> None:
    attributes = {"x": Key(), "size": SIZES}
    policy = Policy(Dataset("hostile", unit=EachPerson("x", 1)), attributes)
    worlds = _worlds(rows)
    tables = [open_table(policy, _world(source, world)) for world in range(len(worlds))]

    def persons() -> str:
        expected = [len({row.value for row in rows if row.value is not None}) for rows in worlds]
        counts = [int(table.count().item()) for table in tables]
        return "" if counts == expected else f"{counts} persons and not {expected}"

    def by_size() -> str:
        counts = [np.asarray(table.count(["size"]), np.int64) for table in tables]
        moved = max(int(np.abs(other - counts[0]).sum()) for other in counts[1:])
        return f"one row changes the counts by {moved}, more than 4" if moved > 4 else ""  # two persons, one row each

    def records() -> str:
        times = Counter(str(row.value) for row in worlds[0] if row.value is not None)
        records = tables[0].records([*times, "nobody"], ["size"])
        once = {key for key, count in times.items() if count == 1}
        return (
            "" if set(records.columns) == once and records.twice == set(times) - once else "other records are returned"
        )

    contract.clause(f"{column.title}: two spellings are two persons", persons)
    contract.clause(f"{column.title}: one row changes at most two persons", by_size)
    contract.clause(f"{column.title}: a key returns only its own record", records)
