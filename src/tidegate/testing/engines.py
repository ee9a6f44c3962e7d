"""The contract of an engine: the same integers as counting row by row in Python, for odd rows too."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.policy import Attribute, Category, Dataset, Grid, Integer, Key, Policy
from tidegate.tables import Table
from tidegate.testing.contract import Contract

ATTRIBUTES: dict[str, Attribute] = {
    "person": Key(),
    "age": Integer(18, 65, (30, 50), "value"),
    "pay": Grid("-0.5", "3", "0.25"),
    "big": Integer(0, 10**9),
    "town": Category(("Aby", "Berg", "Ö|st", "empty town"), "value"),
    "sex": Category((1, 2)),
}
POLICY = Policy(Dataset("contract"), ATTRIBUTES)
GROUPINGS: tuple[tuple[str, ...], ...] = ((), ("age",), ("pay",), ("town",), ("town", "sex"), ("town", "pay", "sex"))
ODD: dict[str, tuple[Any, ...]] = {
    "person": (None, "p1", "p2", "p'3", 'p"4'),
    "age": (None, -5, 17, 18, 30, 49, 50, 65, 66, 10**12),
    "pay": (None, math.nan, math.inf, -math.inf, 0.125, -0.375, 2.875, 1e300, -7.0, 1.3),
    "big": (None, 0, 10**9, 10**15, 123_456_789),
    "town": (None, "Aby", "Berg", "Ö|st", "elsewhere", "aby", "", "Aby "),
    "sex": (None, 1, 2, 3),
}
SCHEMA = pa.schema(
    {
        "person": pa.string(),
        "age": pa.int64(),
        "pay": pa.float64(),
        "big": pa.int64(),
        "town": pa.string(),
        "sex": pa.int32(),
    }
)


def odd_rows(rows: int = 360) -> list[dict[str, Any]]:
    """Return rows with every kind of oddity: outside the bounds, between grid points, missing, unlisted, not a number."""
    return [{name: kinds[(7 * n + n // len(kinds)) % len(kinds)] for name, kinds in ODD.items()} for n in range(rows)]


def check_engine(open_rows: Callable[[Policy, pa.Table], Table], *, name: str = "engine") -> Contract:
    """Check the contract of an engine. `open_rows(policy, rows)` loads an Arrow table and opens it."""
    contract = Contract(f"engine {name}")
    rows = odd_rows()
    opened: list[Table] = []

    def load() -> str:
        opened.append(open_rows(POLICY, pa.Table.from_pylist(rows, schema=SCHEMA)))
        return ""

    if not contract.clause("it opens a table", load):
        return contract
    table = opened[0]
    for by in GROUPINGS:
        cells = " x ".join(by) or "all rows"
        contract.clause(f"counts of {cells}, empty cells too", _counts, table, rows, by)
    for column in ("age", "pay", "big"):
        contract.clause(f"exact sums of {column}", _sums, table, rows, column)
    contract.clause("a key returns its own record and no other", _records, open_rows)
    contract.clause("batches contain every row once", _batches, table, rows)
    return contract


def code(value: Any, attribute: Any) -> int | None:
    """Return the code of a value in its public universe, by definition; None if it is missing."""
    if isinstance(attribute, Category):
        return list(attribute.values).index(value) if value in attribute.values else None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and math.isinf(value):
        return 0 if value < 0 else int(attribute.size) - 1
    index = math.floor((Fraction(value) - attribute.low) / attribute.width + Fraction(1, 2))
    return int(min(max(index, 0), attribute.size - 1))


def _counts(table: Table, rows: list[dict[str, Any]], by: tuple[str, ...]) -> str:
    axes = [table.axis(name) for name in by]
    expected = np.zeros([axis.length for axis in axes], np.int64)
    for row in rows:
        cell = [_cell(row[name], ATTRIBUTES[name]) for name in by]
        if None not in cell:
            expected[tuple(cell)] += 1
    counts = np.asarray(table.count(list(by)))
    if counts.shape != expected.shape:
        return f"the shape is {counts.shape}, not {expected.shape}"
    return "" if (counts == expected).all() else f"{int((counts != expected).sum())} of {expected.size} cells differ"


def _cell(value: Any, attribute: Any) -> int | None:
    index = code(value, attribute)
    return int(attribute.size) if index is None and attribute.missing == "value" else index


def _sums(table: Table, rows: list[dict[str, Any]], column: str) -> str:
    codes = [code(row[column], ATTRIBUTES[column]) for row in rows]
    expected = sum(index for index in codes if index is not None)
    total = int(table.sums(column).item())
    return "" if total == expected else f"{total} and not {expected}"


def _records(open_rows: Callable[[Policy, pa.Table], Table]) -> str:
    rows = [{**row, "person": f"p{n}"} for n, row in enumerate(odd_rows(12))]
    rows[3]["person"] = "p2"
    records = open_rows(POLICY, pa.Table.from_pylist(rows, schema=SCHEMA)).records(
        ["p1", "p2", "no one"], ["person", "town"]
    )
    if records.columns != {"p1": {"person": "p1", "town": rows[1]["town"]}}:
        return "a different record was returned, or none"
    return "" if records.twice == {"p2"} else "a key of two records is not reported"


def _batches(table: Table, rows: list[dict[str, Any]]) -> str:
    names = ["person", "town", "age"]
    counts = Counter(str(row) for batch in table.batches(names, rows=50) for row in batch.to_pylist())
    expected = Counter(str({name: row[name] for name in names}) for row in rows)
    return (
        ""
        if counts == expected
        else f"{sum((counts - expected).values())} too many, {sum((expected - counts).values())} missing"
    )
