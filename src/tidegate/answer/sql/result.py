"""The tables that SQL statements return."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegate.answer.comparison import label_text, number
from tidegate.extras import late
from tidegate.frames import MOST_SHOWN, Frames, arrow_column, rename_labels, text_table

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = late("pyarrow")

Array = NDArray[Any]


PARSERS: dict[str, Any] = {
    "date32[day]": dt.date.fromisoformat,
    "timestamp[us]": dt.datetime.fromisoformat,
    "time64[us]": dt.time.fromisoformat,
    "duration[us]": lambda seconds: dt.timedelta(seconds=seconds),
}


def unique_names(table: pa.Table) -> pa.Table:
    """Return a table whose columns have different names: the second `n` is `n_2`."""
    names: list[str] = []
    for name in table.column_names:
        candidates = [name, *(f"{name}_{number}" for number in range(2, len(table.column_names) + 2))]
        names.append(next(candidate for candidate in candidates if candidate not in names))
    return table.rename_columns(names)


def simple_types(table: pa.Table) -> pa.Table:
    """Return a table in types that every library knows: decimals as floating point, whole numbers with 64 bits."""
    arrays = [
        _durations(column) if pa.types.is_interval(column.type) else column.cast(_simple_type(column.type), safe=False)
        for column in table.columns
    ]
    return pa.Table.from_arrays(arrays, names=table.column_names)


def _durations(column: pa.ChunkedArray) -> pa.Array:
    """Return differences of times as durations; a month counts as 30 days, as it does in comparisons."""
    lengths = [
        value and dt.timedelta(days=30 * value.months + value.days, microseconds=value.nanoseconds // 1000)
        for value in column.to_pylist()
    ]
    return pa.array(lengths, pa.duration("us"))


def _simple_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind):
        return pa.float64() if kind.scale else pa.int64() if kind.precision <= 18 else pa.float64()
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_integer(kind):
        return pa.int64()
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind


def _texts(values: list[Any], *, noisy: bool) -> list[str]:
    """Return a column as text. Whole numbers have separators if they are noisy: others can be years."""
    if all(value is None or (isinstance(value, dt.datetime) and value.time() == dt.time()) for value in values):
        values = [value and value.date() for value in values]
    return [
        number(value) if isinstance(value, float) or (noisy and type(value) is int) else label_text(value)
        for value in values
    ]


def _json(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


@cache
def _types() -> dict[str, pa.DataType]:
    """Return the types of columns in JSON, by name."""
    types = {"bool": pa.bool_(), "int64": pa.int64(), "double": pa.float64(), "string": pa.string()}
    types |= {"date32[day]": pa.date32(), "timestamp[us]": pa.timestamp("us"), "time64[us]": pa.time64("us")}
    return types | {"duration[us]": pa.duration("us")}


def _from_json(values: list[Any], kind: str) -> pa.Array:
    parse: Any = PARSERS.get(kind, lambda value: value)
    return pa.array([None if value is None else parse(value) for value in values], _types().get(kind))


def _end(values: list[Any], kind: str) -> Array:
    return np.array(values if kind not in PARSERS else _from_json(values, kind).to_pylist())


@dataclass(frozen=True)
class SqlResult(Frames):
    """The table that an SQL query returns, with 95% intervals of the columns that are noisy numbers themselves."""

    table: pa.Table
    intervals: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the first rows as text, in columns."""
        headers, rows = self.texts(MOST_SHOWN)
        return text_table(headers, rows, self.table.num_rows)

    def texts(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Return the headers and the first rows as text for people."""
        rows = self.rows()[:most]
        headers = list(rows[0]) if rows else self.table.column_names
        noisy = {*self.intervals, *self._end_names().values()}
        columns = [_texts([row[name] for row in rows], noisy=name in noisy) for name in headers]
        return headers, [list(line) for line in zip(*columns, strict=True)]

    def _end_names(self) -> dict[str, str]:
        """Return the columns of the ends of the intervals: NAME_low and NAME_high, or with an underscore if those exist."""
        ends = (f"{name}_{end}" for name in self.intervals for end in ("low", "high"))
        return rename_labels(ends, self.table.column_names)

    def to_arrow(self) -> pa.Table:
        """Return the columns of the query, then the ends of the intervals as NAME_low and NAME_high."""
        ends = [arrow_column(end.tolist(), None) for both in self.intervals.values() for end in both]
        columns = [*self.table.columns, *simple_types(pa.table(ends, names=[*self._end_names().values()])).columns]
        return pa.Table.from_arrays(columns, names=[*self.table.column_names, *self._end_names().values()])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; dates are texts."""
        columns = [{"name": field.name, "type": str(field.type)} for field in self.table.schema]
        rows = [[_json(value) for value in row.values()] for row in self.table.to_pylist()]
        ends = {
            name: [[_json(value) for value in end.tolist()] for end in both] for name, both in self.intervals.items()
        }
        return {"columns": columns, "rows": rows, "intervals": ends, "notes": list(self.notes)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SqlResult:
        """Return the table that `to_dict` wrote."""
        arrays = []
        for index, column in enumerate(data["columns"]):
            values = [row[index] for row in data["rows"]]
            arrays.append(_from_json(values, column["type"]))
        table = pa.Table.from_arrays(arrays, names=[column["name"] for column in data["columns"]])
        kinds = {column["name"]: column["type"] for column in data["columns"]}
        ends = {
            name: (_end(low, kinds.get(name, "")), _end(high, kinds.get(name, "")))
            for name, (low, high) in data["intervals"].items()
        }
        return cls(table, ends, tuple(data["notes"]))

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per row: the columns, and the ends of the intervals as NAME_low and NAME_high."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows
