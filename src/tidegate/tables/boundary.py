"""The boundary of an engine: every stored value becomes a value that compares byte by byte and converts without an error.

A column's collation, padding and storage type end here. Text becomes its UTF-8 bytes, so that two spellings are never in
one group; numbers become types whose conversion succeeds for every stored value. Everything built on it (codes, groups,
persons) is then a function of each row alone, on every engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ibis
import numpy as np
from numpy.typing import NDArray

from tidegate.policy import Attribute, Boolean, Category, Decimal, Key, Moment, Numeric, Text
from tidegate.tables import functions
from tidegate.tables.axes import ROWS
from tidegate.tables.positions import code_of, is_coded, shapes_of

FEW_LABELS = 16  # up to this number, labels are compared one by one; a longer list is joined
SHIFT = 200_000_000_000  # seconds from the year -4368 to 1970
LABEL, CODE, KEY_TEXT, ISO = "tidegate_label", "tidegate_code", "tidegate_key_text", "tidegate_iso_"


class Boundary:
    """The way one engine presents its columns. This class is for DuckDB."""

    items_sql = "(SELECT unnest(string_split('{}', ',')) AS item) AS listed"
    encodes = True  # text becomes bytes
    least_ignores_null = True

    def __init__(self, expression: Any) -> None:
        self.backend = expression.get_backend()

    def columns(self, table: Any, attributes: Mapping[str, Attribute], *, key: str = "") -> Any:
        """Return the declared columns only: text as bytes, the rest as stored, and a key as text."""
        texts = {
            f"{ISO}{name}": functions.nullif(self._iso(table[name], attribute), "")
            for name, attribute in attributes.items()
            if isinstance(attribute, Moment) and self.is_text(table[name].type())
        }
        if texts:  # in a query of their own: Ibis copies an expression to each of its uses
            table = table.mutate(**texts)
        chosen = {
            name: self._column(table[f"{ISO}{name}" if f"{ISO}{name}" in texts else name], attribute)
            for name, attribute in attributes.items()
        }
        if key:
            column = table[key]
            chosen[KEY_TEXT] = self.text(column) if column.type().is_string() else column.cast("string")
        return table.select(**chosen)

    def is_text(self, kind: Any) -> bool:
        """Return whether the engine stores dates and times of a type as text."""
        return bool(kind.is_string())

    def _iso(self, column: Any, attribute: Moment) -> Any:
        """Return a text that has the form of a date or time; NULL for any other."""
        text = self.text(column)
        return ibis.cases((self.has_shape(text, shapes_of(attribute)), text), else_=ibis.null("string"))

    def _column(self, column: Any, attribute: Attribute) -> Any:
        listed = isinstance(attribute, Category) and attribute.value_type is str
        if column.type().is_string() and isinstance(attribute, Numeric | Category) and not listed:
            column = column if isinstance(attribute, Moment) else _read_text(column, attribute)
        if is_coded(attribute):
            return functions.nullif_code(code_of(column, attribute, self), -1)  # unchanged, but in a query of its own
        if isinstance(attribute, Boolean) and column.type().is_integer():
            values = [(column == ibis.literal(int(value), column.type()), value) for value in (False, True)]
            return ibis.cases(*values, else_=ibis.null("boolean"))
        readable = isinstance(attribute, Category | Key | Text) and column.type().is_string()
        return self.encoded(self.text(column)) if readable else column

    def text(self, column: Any) -> Any:
        """Return text without the padding of its type."""
        return column

    def encoded(self, text: Any) -> Any:
        """Return the bytes of a text, which no collation affects."""
        return functions.encode(text)

    def literal(self, text: str) -> Any:
        """Return a label in the form of `encoded`."""
        return functions.unhex(hexadecimal(text))

    def digest(self, column: Any) -> Any:
        """Return the MD5 of the bytes of an encoded text, in hexadecimal."""
        return functions.md5_of_bytes(column)

    def real(self, column: Any) -> Any:
        """Return a number of any type as floating point."""
        return column.cast("float64")

    def is_nan(self, real: Any) -> Any:
        return real.isnan()

    def rounded(self, decimal: Any, digits: int) -> Any:
        """Return a decimal with this number of digits after the point."""
        return functions.round(decimal, digits)

    def days(self, date: Any) -> Any:
        """Return the days since 1970; any number for NULL. Infinite dates are far away."""
        return functions.date_diff("day", ibis.date(1970, 1, 1), clamp(date, "4000-01-01 (BC)", "12000-01-01"))

    def seconds(self, timestamp: Any) -> Any:
        """Return the whole seconds since 1970 in UTC, or of the wall clock if there is no time zone; any number for NULL."""
        kind = timestamp.type()
        ends = ("1677-09-22", "2262-04-11") if kind.scale == 9 else ("4000-01-01 (BC)", "12000-01-01")
        zone = " 00:00:00+00" if kind.timezone else ""
        shifted = functions.epoch_us(clamp(timestamp, ends[0] + zone, ends[1] + zone)) + SHIFT * 1_000_000
        return (shifted - shifted % 1_000_000) // 1_000_000 - SHIFT  # multiples of 10^6 below 2^59 are exact

    def time_seconds(self, time: Any) -> Any:
        """Return the whole seconds since midnight."""
        return functions.time_us(time) // 1_000_000

    def date_of(self, days: Any) -> Any:
        """Return the date of days since 1970, which are near the years of a policy."""
        return functions.make_date(days.cast("int32"))

    def has_shape(self, text: Any, shapes: Sequence[str]) -> Any:
        """Return whether a text has one of some forms."""
        return text.re_search(f"^({'|'.join(shapes)})$")

    def labels(self, attribute: Category, kind: Any) -> Any:
        """Return the listed values that a column's type can store, and their codes, as a table to join with."""
        possible = possible_labels(attribute, kind)
        values = [hexadecimal(value) if isinstance(value, str) else str(int(value)) for value, _ in possible]
        label = "string" if not self.encodes else "binary"
        kinds = {LABEL: label if attribute.value_type is str else "int64", CODE: "int64"}
        return self._listed(values, [code for _, code in possible], ibis.schema(kinds))

    def numbers(self, labels: NDArray[np.int64], numbers: NDArray[np.int64]) -> Any:
        """Return whole numbers and their labels, which are whole numbers too, as a table to join with."""
        return self._listed(
            list(map(str, labels.tolist())), numbers.tolist(), ibis.schema({LABEL: "int64", CODE: "int64"})
        )

    def _listed(self, values: list[str], codes: list[int], schema: Any) -> Any:
        """Return labels (hexadecimal, or numbers) and codes as a table with a schema."""
        label = "unhex({})" if schema[LABEL].is_binary() else "CAST({} AS BIGINT)"
        items = self.items_sql.format(list_items(values, codes))
        return self.backend.sql(split_items(label, items), schema=schema)

    def as_view(self, expression: Any) -> Any:
        """Return an expression by name if the engine refuses deep queries; otherwise as it is."""
        return expression

    def sum_type(self, largest: int) -> str:
        """Return the type in which whole numbers up to `largest` add up without overflow."""
        return "int64" if largest * ROWS < 2**63 else "decimal(38,0)"


def clamp(column: Any, lowest: str, highest: str) -> Any:
    """Return a date or time between two literals of its own type."""
    first, last = (ibis.literal(end).cast(column.type()) for end in (lowest, highest))
    return ibis.least(ibis.greatest(column, first), last)


def _read_text(column: Any, attribute: Attribute) -> Any:
    """Return a text as a number or truth value; NULL if it is none."""
    if isinstance(attribute, Category) and attribute.value_type is int:
        return ibis.cases((column.re_search("^[+-]?[0-9]+$"), column), else_=ibis.null("string")).try_cast("int64")
    kind = "decimal(38,15)" if isinstance(attribute, Decimal) else "float64"
    return column.try_cast("boolean" if isinstance(attribute, Category) else kind)


def list_items(values: list[str], codes: list[int]) -> str:
    """Return labels and codes as one text of digits, which is parsed faster than thousands of rows."""
    return ",".join(f"x{value}:{code}" for value, code in zip(values, codes, strict=True))


def split_items(label: str, items: str) -> str:
    shown = label.format("substr(split_part(item, ':', 1), 2)")
    return f"SELECT {shown} AS {LABEL}, CAST(split_part(item, ':', 2) AS BIGINT) AS {CODE} FROM {items}"  # noqa: S608


def hexadecimal(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").hex()


def possible_labels(attribute: Category, kind: Any) -> list[tuple[Any, int]]:
    """Return the listed values that a column's type can store, with their codes: other literals make an engine fail."""
    lowest, highest = kind.bounds if kind.is_integer() else (0, 0)
    return [
        (value, code)
        for code, value in enumerate(attribute.listed)
        if not kind.is_integer() or lowest <= int(value) <= highest
    ]
