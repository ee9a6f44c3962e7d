"""The contract of an engine's column types: every stored value has a code, and one changed row changes counts and sums by no
more than the price assumes.

A `HostileColumn` is a type of the engine with values that are hard on it: collations, padding, unsigned and very long
numbers, NaN, spellings that look alike. The reference implementation here reads one value at a time, in Python.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from tidegate.policy import Attribute, Category, Dataset, EachPerson, Integer, Key, Numeric, Policy
from tidegate.policy.predicates import col
from tidegate.tables import Table, open_table
from tidegate.tables.pairs import count_pairs
from tidegate.testing.contract import Contract
from tidegate.testing.engines import code

TIMES = 2  # rows of every value in each
AT_MOST = 2
SIZES = Integer(0, 9)


@dataclass(frozen=True)
class HostileColumn:
    """A column type of an engine, as its own SQL writes it, and values: how its SQL writes them, and what Python reads."""

    kind: str
    attribute: Attribute
    values: tuple[tuple[str, Any], ...]

    @property
    def title(self) -> str:
        return f"{self.kind} as {self.attribute.kind} {self.attribute.describe()}"


@dataclass(frozen=True)
class HostileRow:
    """One row to load: the table it belongs to, a key, a small number, and the hostile value."""

    world: int
    person: str
    size: int
    literal: str
    value: Any


def hostile_rows(column: HostileColumn, *, neighbors: int = 4) -> list[HostileRow]:
    """A table of all values, and neighbors that differ from it in one row each."""
    base = list(column.values) * TIMES
    rows = []
    for world in range(neighbors + 1):
        shown = list(base)
        if world:
            changed = (7 * world) % len(shown)
            shown[changed] = column.values[(changed + 3 * world) % len(column.values)]
        for n, (literal, value) in enumerate(shown):
            rows.append(HostileRow(world, f"p{n}", n % 10, literal, value))
    return rows


def check_hostile_columns(
    columns: Sequence[HostileColumn],
    load: Callable[[HostileColumn, list[HostileRow]], Any],
    *,
    name: str = "engine",
    neighbors: int = 4,
) -> Contract:
    """The contract of column types. `load(column, rows)` stores the rows and returns an Ibis table with the columns
    world, person, size (of ordinary types) and x (of the hostile type)."""
    contract = Contract(f"column types of {name}")
    for column in columns:
        rows = hostile_rows(column, neighbors=neighbors)
        loaded: list[Any] = []

        def store(column: HostileColumn = column, rows: Any = rows, loaded: Any = loaded) -> str:
            loaded.append(load(column, rows))
            return ""

        if contract.clause(f"{column.title}: it can be stored", store):
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
    for statistic in vectors[0]:
        contract.clause(
            f"{column.title}: {statistic} is that of the reference, and moves no more than its sensitivity",
            _statistic, column, worlds, [vector[statistic] for vector in vectors], statistic,
        )  # fmt: skip
    bounded = source.mutate(person=source.person.substitute({f"p{n}": f"p{n % 3}" for n in range(len(worlds[0]))}))
    contract.clause(f"{column.title}: the rows kept for a person", _persons, persons, _world(bounded, 0), worlds[0])


def _worlds(rows: list[HostileRow]) -> list[list[HostileRow]]:
    return [[row for row in rows if row.world == world] for world in range(rows[-1].world + 1)]


def _world(source: Any, world: int) -> Any:
    return source.filter(source.world == world)


def _codes(table: Table, rows: list[HostileRow]) -> str:
    axis = table.axis("x")
    found = table.records([row.person for row in rows], [], [axis]).cells
    wrong = sum(found.get(row.person) != (_cell(row.value, axis),) for row in rows)
    return f"{wrong} of {len(rows)} values have another code" if wrong else ""


def _cell(value: Any, axis: Any) -> int:
    place = reference_code(value, axis.attribute)
    return int(axis.missing_cell if place is None else place)


def reference_code(value: Any, attribute: Any) -> int | None:
    """The code of a value from the definition; None where it is missing or not listed."""
    if isinstance(attribute, Category):
        same = type(value) is attribute.value_type and value in attribute.values
        return attribute.values.index(value) if same else None
    return code(float(value) if isinstance(value, Decimal) and not value.is_finite() else value, attribute)


def _vectors(column: HostileColumn, table: Table) -> dict[str, Callable[[], np.ndarray[Any, Any]]]:
    """Every exact vector that an answer is made of, not computed yet."""
    found: dict[str, Callable[[], Any]] = {
        "count by x": lambda: table.count(["x"]),
        "count by size and x": lambda: table.count(["size", "x"]),
        "pairs": lambda: count_pairs(table, [table.axis("size"), table.axis("x")])[0, 1],
        "count where missing": lambda: table.count(where=col("x").missing()),
    }
    test = _test(column.attribute)
    found["count where"] = lambda: table.count(where=test)
    found["count where not"] = lambda: table.count(["size"], where=~test)
    if isinstance(column.attribute, Numeric):
        found["moments"] = lambda: np.array([cells.item() for cells in table.moments("x")], object)
        found["products"] = lambda: table.products(["x", "size"], centers=[1, 1])
    return found


def _test(attribute: Any) -> Any:
    middle = attribute.size // 2
    value = attribute.values[middle] if isinstance(attribute, Category) else attribute.value(middle)
    return col("x") == value if isinstance(attribute, Category) else col("x") >= value


def _statistic(
    column: HostileColumn, worlds: list[list[HostileRow]], vectors: list[Callable[[], Any]], statistic: str
) -> str:
    found = [np.asarray(vector(), object) for vector in vectors]
    wanted = [_reference(column.attribute, rows, statistic) for rows in worlds]
    wrong = sum(not np.array_equal(here, there) for here, there in zip(found, wanted, strict=True))
    if wrong:
        return f"{wrong} of {len(found)} tables give other numbers"
    last = max(column.attribute.size - 1, 1)
    largest = {"moments": 1 + last + last**2, "products": (2 + last + SIZES.size) ** 2}.get(statistic, 2)
    moved = max(int(np.abs(other - found[0]).sum()) for other in found[1:])
    return f"one row moves it by {moved}, more than {largest}" if moved > largest else ""


def _reference(attribute: Any, rows: list[HostileRow], statistic: str) -> np.ndarray[Any, Any]:
    codes = [reference_code(row.value, attribute) for row in rows]
    sizes = [row.size for row in rows]
    if statistic == "count where missing":
        return np.array(sum(place is None for place in codes), object)
    if statistic in ("moments", "products"):
        pairs = [(place, size) for place, size in zip(codes, sizes, strict=True) if place is not None]
        if statistic == "moments":
            return np.array([sum(place**power for place, _ in pairs) for power in range(3)], object)
        vectors = [np.array([1, place - 1, size - 1], object) for place, size in pairs]
        return sum((np.outer(vector, vector) for vector in vectors), np.zeros((3, 3), object))
    if statistic.startswith("count where"):
        middle = attribute.size // 2
        true = [place is not None and (place == middle if isinstance(attribute, Category) else place >= middle) for place in codes]  # fmt: skip
        if statistic == "count where":
            return np.array(sum(true), object)
        false = [size for size, place, holds in zip(sizes, codes, true, strict=True) if place is not None and not holds]
        return np.array([false.count(size) for size in range(SIZES.size)], object)
    cells = attribute.size + (attribute.missing == "value")
    table = np.zeros((SIZES.size, cells), object)
    for size, place in zip(sizes, codes, strict=True):
        if place is not None or attribute.missing == "value":
            table[size, attribute.size if place is None else place] += 1
    return table.sum(axis=0) if statistic == "count by x" else table


def _persons(policy: Policy, source: Any, rows: list[HostileRow]) -> str:
    """Which rows of a person are kept is decided by a hash of their codes: the reference sorts by the same."""
    own: dict[str, list[tuple[str, HostileRow]]] = defaultdict(list)
    for n, row in enumerate(rows):
        own[f"p{n % 3}"].append((_rank(f"p{n % 3}", row, policy), row))
    kept = [row for each in own.values() for _, row in sorted(each, key=lambda one: one[0])[:AT_MOST]]
    wanted = _reference(policy.attributes["x"], kept, "count by size and x")
    found = open_table(policy, source).count(["size", "x"])
    return "" if np.array_equal(np.asarray(found, object), wanted) else "other rows are kept"


def _rank(person: str, row: HostileRow, policy: Policy) -> str:
    attribute = policy.attributes["x"]
    part = f"{row.size}|{_hashed(row.value, attribute)}|"
    return hashlib.md5(f"{policy.dataset.name}|{part}{person}".encode("utf-8", "surrogatepass")).hexdigest()  # noqa: S324


def _hashed(value: Any, attribute: Any) -> str:
    if isinstance(attribute, Category):
        if isinstance(value, str):
            return hashlib.md5(value.encode()).hexdigest()  # noqa: S324
        return "-" if value is None else str(int(value))
    place = reference_code(value, attribute)
    return "-" if place is None else str(place)


def _check_key(contract: Contract, column: HostileColumn, rows: list[HostileRow], source: Any) -> None:
    attributes = {"x": Key(), "size": SIZES}
    policy = Policy(Dataset("hostile", unit=EachPerson("x", 1)), attributes)
    worlds = _worlds(rows)
    tables = [open_table(policy, _world(source, world)) for world in range(len(worlds))]

    def persons() -> str:
        wanted = [len({row.value for row in rows if row.value is not None}) for rows in worlds]
        found = [int(table.count().item()) for table in tables]
        return "" if found == wanted else f"{found} persons and not {wanted}"

    def by_size() -> str:
        found = [np.asarray(table.count(["size"]), np.int64) for table in tables]
        moved = max(int(np.abs(other - found[0]).sum()) for other in found[1:])
        return f"one row moves the counts by {moved}, more than 4" if moved > 4 else ""  # two persons, one row each

    def records() -> str:
        times = Counter(str(row.value) for row in worlds[0] if row.value is not None)
        found = tables[0].records([*times, "nobody"], ["size"])
        once = {key for key, count in times.items() if count == 1}
        return "" if set(found.columns) == once and found.twice == set(times) - once else "other records are found"

    contract.clause(f"{column.title}: two spellings are two persons", persons)
    contract.clause(f"{column.title}: one row changes at most two persons", by_size)
    contract.clause(f"{column.title}: a key finds its own record alone", records)
