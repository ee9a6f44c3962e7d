"""Results as tables: `rows()`, and the same rows as an Arrow table or as a pandas or polars data frame.

The types follow from the values: whole numbers stay whole, dates stay dates, and a missing value is null. A class names the
types that its values cannot show, because there are no rows or only missing ones, or because dates are ISO texts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from tidegate.extras import extra

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Row: TypeAlias = dict[str, Any]
RUN = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet executes a cell that starts with one of these
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
MOST_SHOWN = 30  # rows of a table in text
TEMPORAL: dict[str, type] = {"date": date, "timestamp": datetime, "time": time}  # by the kind of an attribute


class Frames:
    """A result that has an Arrow table, and therefore also data frames. A Python shell shows its text, not its fields."""

    def __init_subclass__(cls) -> None:
        if cls.__str__ is not object.__str__:
            cls.__repr__ = cls.__str__  # type: ignore[method-assign]  # found by `dataclass`, which then adds none

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table: missing values are null."""
        raise NotImplementedError

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas data frame: dates are datetime64, and whole numbers stay whole where some are missing."""
        import pandas as pd
        import pyarrow as pa

        table = self.to_arrow()
        frame: pd.DataFrame = table.to_pandas(date_as_object=False)
        nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
        for name in table.column_names:
            column = table[name]
            if column.null_count and column.type in nullable:
                frame[name] = column.to_pandas(types_mapper=nullable.get)
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return a polars data frame."""
        with extra("polars", "A polars data frame"):
            import polars as pl
        return pl.from_arrow(self.to_arrow())


class Rows(Frames):
    """A result that is a list of rows."""

    def rows(self) -> list[Row]:
        """Return one dictionary per row of the table."""
        raise NotImplementedError

    def _kinds(self) -> Mapping[str, type]:
        """Return the types of columns whose values may not show them, in the order of an empty table."""
        return {}

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table: missing values are null."""
        return arrow_table(self.rows(), self._kinds())


def arrow_table(rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, type] | None = None) -> pa.Table:
    """Return rows as an Arrow table. A column has the type in `kinds` if its values fit, otherwise that of its values."""
    import pyarrow as pa

    kinds = kinds or {}
    names = dict.fromkeys([*(name for row in rows for name in row), *kinds])
    return pa.table({name: arrow_column([row.get(name) for row in rows], kinds.get(name)) for name in names})


def text_table(headers: Sequence[str], rows: Sequence[Sequence[str]], count: int) -> str:
    """Return rows of text in columns, and the number of those that are not among them, of `count` in total."""
    lines = [headers, *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(headers))]
    text = ["  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*text, *([f"and {count - len(rows):,} more rows"] if count > len(rows) else [])])


def rename_labels(labels: Iterable[str], reserved: Iterable[str]) -> dict[str, str]:
    """Return the column of each label; one that is also the name of a number gets an underscore: `count_`."""
    taken, names = {*reserved}, {}
    for label in labels:
        name = label
        while name in taken:
            name += "_"
        taken.add(name)
        names[label] = name
    return names


def safe_cell(value: Any) -> Any:
    """Return a cell of a CSV file that a spreadsheet does not execute: such text is prefixed with an apostrophe.

    Reference:
        OWASP, "CSV Injection".
    """
    if isinstance(value, str) and value.startswith(RUN) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def arrow_column(values: list[Any], kind: type | None) -> pa.Array:
    """Return values as an Arrow column, of type `kind` if they fit."""
    import pyarrow as pa

    if kind in TEMPORAL.values():
        values = _parse(values, kind)
    present = [value for value in values if value is not None]
    types = {type(value) for value in present} or ({kind} if kind else set())
    if kind is float and types <= {int, float}:
        types = {float}
    if not types:
        return pa.array(values, pa.null())
    if types == {datetime}:
        zoned = bool(present) and all(value.tzinfo for value in present)
        return pa.array(values, pa.timestamp("us", "UTC") if zoned else pa.timestamp("us"))
    if types == {int} and any(not -(2**63) <= value < 2**63 for value in present):
        types = {float}
    exact = {
        bool: pa.bool_(),
        int: pa.int64(),
        str: pa.string(),
        date: pa.date32(),
        time: pa.time64("us"),
        list: pa.list_(pa.string()),
    }
    if len(types) == 1 and (single := next(iter(types))) in exact:
        return pa.array(values, exact[single])
    if types == {Decimal}:
        return pa.array(values, None if present else pa.decimal128(38, 9))
    if types <= {int, float, Fraction, Decimal}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _parse(values: list[Any], kind: Any) -> list[Any]:
    """Return ISO texts as dates or times; unchanged if one is not a text of that kind, such as the name of a quarter."""
    try:
        return [kind.fromisoformat(value) if isinstance(value, str) else value for value in values]
    except ValueError:
        return values


def leave_out_pandas() -> None:
    """Keep Arrow from loading pandas in this process. Call it only in a program that never has a data frame.

    Arrow imports pandas with its first array, to recognize data frames, and pandas loads for half a second. Afterward Arrow
    treats pandas as not installed. Nothing happens if pandas is loaded already.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    absence = _Absence()
    sys.meta_path.insert(0, absence)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(absence)


class _Absence:
    """A finder that reports pandas as not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
