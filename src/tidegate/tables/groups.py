"""Groups of codes inside the engine, and their way into the cells of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.policy import Category, Gap, Numeric, Policy, Text
from tidegate.tables.axes import Axis, scatter
from tidegate.tables.boundary import Boundary
from tidegate.tables.codes import NO_GAP, OUTSIDE, in_cells, number_code, with_codes, with_products
from tidegate.tables.functions import nullif_code
from tidegate.tables.mappings import Grouping, Measured

PRODUCT, NUMBER = "tidegate_product_", "tidegate_number_"
Cells = NDArray[Any]


def cells_on_axes(fetched: pa.Table, axes: Sequence[Axis], *, final: bool = False) -> list[NDArray[np.int64]]:
    return [axis.cells_of(fetched[f"g{number}"], final=final) for number, axis in enumerate(axes)]


def scattered(
    fetched: pa.Table, axes: Sequence[Axis], measures: Iterable[str], *, final: bool = False
) -> dict[str, Cells]:
    axis_cells, shape = cells_on_axes(fetched, axes, final=final), tuple(axis.length for axis in axes)
    return {name: scatter(shape, axis_cells, integers(fetched[name])) for name in measures}


def in_final_cells(rows: Any, axes: list[Axis], policy: Policy, boundary: Boundary, *, person: str) -> Any:
    """Return the person and the cells of every row, and nothing else. Cells are final: no two of them are added up later."""
    derived = {
        n: axis.attribute.mapped for n, axis in enumerate(axes) if isinstance(axis.attribute, Grouping | Measured)
    }
    plain = {f"g{n}": (axis.name, axis.attribute) for n, axis in enumerate(axes) if n not in derived}
    coded = with_codes(rows.mutate(person=rows[person]), plain, boundary)
    coded = with_products(coded, {f"g{n}": mapped for n, mapped in derived.items()}, policy, boundary, final=True)
    return coded.select(person=coded.person, **{f"g{n}": coded[f"g{n}"].fill_null(OUTSIDE) for n in range(len(axes))})


def group_rows(table: Any, axes: list[Axis], measures: Mapping[str, Any], boundary: Boundary, policy: Policy) -> Any:
    """Return one row for each group of codes, OUTSIDE if one is missing.

    Categories are grouped by their stored bytes first and coded afterwards, so that a list is looked up once for each
    distinct value. The inner groups never leave the engine.
    """
    derived = {
        n: axis.attribute.mapped for n, axis in enumerate(axes) if isinstance(axis.attribute, Grouping | Measured)
    }
    table = with_products(table, {f"{PRODUCT}{n}": mapped for n, mapped in derived.items()}, policy, boundary)
    table = _with_numbers(table, axes, boundary)
    built = {name: build(table) for name, build in measures.items()}
    if not axes:
        return table.aggregate(**built)
    keys = {}
    listed = {f"r{n}": axis for n, axis in enumerate(axes) if isinstance(axis.attribute, Category | Text)}
    for n, axis in enumerate(axes):
        coded = table[f"{PRODUCT}{n}"] if n in derived else _number(table, n, axis, boundary)
        keys[f"r{n}" if f"r{n}" in listed else f"g{n}"] = coded
    first = table.group_by(**keys).aggregate(**built)
    if not listed:
        return first
    coded = with_codes(first, {f"g{name[1:]}": (name, axis.attribute) for name, axis in listed.items()}, boundary)
    codes = {f"g{n}": coded[f"g{n}"].fill_null(OUTSIDE) for n in range(len(axes))}
    return coded.group_by(**codes).aggregate(**{name: coded[name].sum() for name in measures})


def _with_numbers(table: Any, axes: list[Axis], boundary: Boundary) -> Any:
    """Return the table with the codes of numbers that are grouped by other cells, each computed once per row."""
    numbers = {
        f"{NUMBER}{n}": axis for n, axis in enumerate(axes) if isinstance(axis.attribute, Numeric) and _cut(axis)
    }
    codes = {name: number_code(table, axis.name, axis.attribute, boundary) for name, axis in numbers.items()}  # type: ignore[arg-type]
    return table.mutate(**{name: nullif_code(code, OUTSIDE) for name, code in codes.items()}) if codes else table


def _number(table: Any, n: int, axis: Axis, boundary: Boundary) -> Any:
    if not isinstance(axis.attribute, Numeric):
        return table[axis.name]
    if not _cut(axis):
        return number_code(table, axis.name, axis.attribute, boundary)
    number = table[f"{NUMBER}{n}"]
    cell = in_cells(number, axis.starts, axis.starts)  # few groups come back
    return ibis.cases((number == NO_GAP, number), else_=cell) if isinstance(axis.attribute, Gap) else cell


def _cut(axis: Axis) -> bool:
    return bool(axis.starts and axis.firsts)


def integers(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return engine sums as integers: 64-bit if the engine's type is, otherwise Python's integers."""
    if pa.types.is_integer(column.type):
        return np.asarray(column.fill_null(0).to_numpy(), dtype=np.int64)
    return np.array([int(value) if value is not None else 0 for value in column.to_pylist()], dtype=object)


def prepare(expression: Any) -> Callable[[], pa.Table]:
    """Return a function that reads the rows of an expression.

    On DuckDB the expression is compiled once: building and compiling takes 4 ms, reading a small table 1 ms. Other engines
    compile it again each time.
    """
    backend = expression.get_backend()
    if backend.name != "duckdb":
        read: Callable[[], pa.Table] = expression.to_pyarrow
        return read
    statement, schema = backend.compile(expression), expression.schema().to_pyarrow()

    def read_compiled() -> pa.Table:
        rows = backend.con.execute(statement).to_arrow_table()
        return rows if rows.schema.equals(schema) else rows.cast(schema)

    return read_compiled
