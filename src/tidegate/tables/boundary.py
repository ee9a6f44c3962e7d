"""The boundary of an engine: every stored value becomes a value that compares byte by byte and converts without an error.

A column's collation, padding and storage type end here. Text becomes its UTF-8 bytes, so that two spellings are never in
one group; numbers become types whose conversion succeeds for every stored value. Everything built on it (codes, groups,
persons) is then a function of each row alone, on every engine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import ibis
import ibis.expr.operations as ops

from tidegate.errors import SourceUnreadable, Unsupported
from tidegate.policy import Attribute, Category, Key
from tidegate.tables.guard import ask_engine

ROWS = 2**40  # largest expected number of rows: 64-bit sums are used if they cannot overflow with that many
FEW_LABELS = 16  # up to this number, labels are compared one by one; a longer list is joined
LABEL, CODE, KEY_TEXT = "tidegate_label", "tidegate_code", "tidegate_key_text"


@ibis.udf.scalar.builtin(name="encode")  # type: ignore[untyped-decorator]
def _encode(text: str) -> bytes: ...  # type: ignore[empty-body]


@ibis.udf.scalar.builtin(name="convert_to")  # type: ignore[untyped-decorator]
def _convert_to(text: str, encoding: str) -> bytes: ...  # type: ignore[empty-body]


@ibis.udf.scalar.builtin(name="round")  # type: ignore[untyped-decorator]
def _round(number: ibis.dtype("decimal"), digits: int) -> ibis.dtype("decimal"): ...  # type: ignore[valid-type]


@ibis.udf.scalar.builtin(name="rtrim")  # type: ignore[untyped-decorator]
def _rtrim(text: str) -> str: ...  # type: ignore[empty-body]


@ibis.udf.scalar.builtin(name="unhex")  # type: ignore[untyped-decorator]
def _unhex(digits: str) -> bytes: ...  # type: ignore[empty-body]


@ibis.udf.scalar.builtin(name="decode")  # type: ignore[untyped-decorator]
def _decode(digits: str, encoding: str) -> bytes: ...  # type: ignore[empty-body]


class Boundary:
    """The way one engine presents its columns. This class is for DuckDB."""

    items_sql = "(SELECT unnest(string_split('{}', ',')) AS item) AS listed"
    encodes = True  # text becomes bytes
    least_ignores_null = True

    def __init__(self, expression: Any) -> None:
        self.backend = expression.get_backend()

    def columns(self, table: Any, attributes: Mapping[str, Attribute], *, key: str = "") -> Any:
        """Return the declared columns only: text as bytes, the rest as stored, and a key as text."""
        chosen = {name: self._column(table[name], attribute) for name, attribute in attributes.items()}
        if key:
            column = table[key]
            chosen[KEY_TEXT] = self.text(column) if column.type().is_string() else column.cast("string")
        return table.select(**chosen)

    def _column(self, column: Any, attribute: Attribute) -> Any:
        readable = isinstance(attribute, Category | Key) and column.type().is_string()
        return self.encoded(self.text(column)) if readable else column

    def text(self, column: Any) -> Any:
        """Return text without the padding of its type."""
        return column

    def encoded(self, text: Any) -> Any:
        """Return the bytes of a text, which no collation affects."""
        return _encode(text)

    def literal(self, text: str) -> Any:
        """Return a label in the form of `encoded`."""
        return _unhex(_hex(text))

    def real(self, column: Any) -> Any:
        """Return a number of any type as floating point."""
        return column.cast("float64")

    def is_nan(self, real: Any) -> Any:
        return real.isnan()

    def labels(self, attribute: Category, kind: Any) -> Any:
        """Return the listed values that a column's type can store, and their codes, as a table to join with."""
        possible = possible_labels(attribute, kind)
        values = [_hex(value) if isinstance(value, str) else str(int(value)) for value, _ in possible]
        label = "string" if not self.encodes else "binary"
        kinds = {LABEL: label if attribute.value_type is str else "int64", CODE: "int64"}
        return self._listed(values, [code for _, code in possible], ibis.schema(kinds))

    def _listed(self, values: list[str], codes: list[int], schema: Any) -> Any:
        """Return labels (hexadecimal, or numbers) and codes as a table with a schema."""
        label = "unhex({})" if schema[LABEL].is_binary() else "CAST({} AS BIGINT)"
        items = self.items_sql.format(_items(values, codes))
        return self.backend.sql(_split(label, items), schema=schema)

    def sum_type(self, largest: int) -> str:
        """Return the type in which whole numbers up to `largest` add up without overflow."""
        return "int64" if largest * ROWS < 2**63 else "decimal(38,0)"


def _items(values: list[str], codes: list[int]) -> str:
    """Return labels and codes as one text of digits, which is parsed faster than thousands of rows."""
    return ",".join(f"x{value}:{code}" for value, code in zip(values, codes, strict=True))


def _split(label: str, items: str) -> str:
    shown = label.format("substr(split_part(item, ':', 1), 2)")
    return f"SELECT {shown} AS {LABEL}, CAST(split_part(item, ':', 2) AS BIGINT) AS {CODE} FROM {items}"  # noqa: S608


def _hex(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").hex()


def possible_labels(attribute: Category, kind: Any) -> list[tuple[Any, int]]:
    """Return the listed values that a column's type can store, with their codes: other literals make an engine fail."""
    lowest, highest = kind.bounds if kind.is_integer() else (0, 0)
    return [
        (value, code)
        for code, value in enumerate(attribute.values)
        if not kind.is_integer() or lowest <= int(value) <= highest
    ]


class PostgresBoundary(Boundary):
    """Postgres: CHAR(n) loses its padding when it becomes text; a numeric can be NaN, infinite, or beyond floating point."""

    encodings = ("UTF8", "LATIN1")  # every text in these encodings converts to UTF-8

    def __init__(self, expression: Any) -> None:
        super().__init__(expression)
        self.encoding = self.backend.con.info.parameter_status("server_encoding")

    def _column(self, column: Any, attribute: Attribute) -> Any:
        if column.type().is_string() and self.encoding not in self.encodings:
            raise SourceUnreadable(
                f"The database stores text as {self.encoding}, which cannot always be converted to UTF-8.",
                "Copy the table to a database with the encoding UTF8, or to a Parquet file.",
            )
        return super()._column(column, attribute)

    def text(self, column: Any) -> Any:
        return ops.Cast(
            column, "string"
        ).to_expr()  # CHAR(n) and enumerations are strings to Ibis, which leaves out a cast

    def encoded(self, text: Any) -> Any:
        return _convert_to(text, "UTF8")

    def literal(self, text: str) -> Any:
        return _decode(_hex(text), "hex")

    def _listed(self, values: list[str], codes: list[int], schema: Any) -> Any:
        label = "decode({}, 'hex')" if schema[LABEL].is_binary() else "CAST({} AS BIGINT)"
        items = f"unnest(string_to_array('{_items(values, codes)}', ',')) AS listed(item)"
        return self.backend.sql(_split(label, items), schema=schema)

    def real(self, column: Any) -> Any:
        if not column.type().is_decimal():
            return column.cast("float64")
        ends = [ibis.literal(end, "string").cast("decimal") for end in ("-1e300", "1e300")]
        inside = ibis.least(ibis.greatest(column, ends[0]), ends[1])
        rounded = _round(inside, 300).cast("float64")  # a conversion of 1e-400 fails
        missing = column.isnull() | (column.cast("string") == "NaN")  # LEAST and GREATEST ignore NULL
        return ibis.cases((missing, ibis.null("float64")), else_=rounded)


class SparkBoundary(Boundary):
    """Spark: CHAR(n) is padded on reading and presented as a string; only the schema of the source shows its type."""

    items_sql = "(SELECT explode(split('{}', ',')) AS item) AS listed"

    def __init__(self, expression: Any) -> None:
        super().__init__(expression)
        frame = ask_engine(
            lambda: self.backend._session.sql(self.backend.compile(expression)), what="reading the columns' types"
        )
        kinds = {field.name: field.metadata.get("__CHAR_VARCHAR_TYPE_STRING", "") for field in frame.schema}
        self.padded = {name for name, kind in kinds.items() if kind.startswith("char(")}

    def text(self, column: Any) -> Any:
        return _rtrim(column) if column.get_name() in self.padded else column

    def encoded(self, text: Any) -> Any:
        return text.cast("binary")


class SQLiteBoundary(Boundary):
    """SQLite: any column can store any type; values of another type than the declared one are missing."""

    encodes = least_ignores_null = False

    def __init__(self, expression: Any) -> None:
        super().__init__(expression)
        connection = self.backend.con
        self.encoding = connection.execute("PRAGMA encoding").fetchone()[0]
        connection.create_function("md5", 1, _md5, deterministic=True)

    def _column(self, column: Any, attribute: Attribute) -> Any:
        kind, stored = column.type(), column.typeof()
        if kind.is_string() and self.encoding != "UTF-8":
            raise SourceUnreadable(
                f"The SQLite file stores text as {self.encoding}; only UTF-8 is supported.",
                "Copy it to a Parquet file.",
            )
        if kind.is_decimal():
            raise SourceUnreadable(
                f'Column "{column.get_name()}" is a decimal, which SQLite stores as text or floating point.',
                "Declare it as REAL or INTEGER at the source, or copy the table to a Parquet file.",
            )
        if kind.is_boolean():
            number = column.cast("int64")
            return ibis.cases(
                ((stored == "integer") & (number == 0), ibis.literal(False)),
                ((stored == "integer") & (number == 1), ibis.literal(True)),
                else_=ibis.null("boolean"),
            )
        if not (kind.is_string() or kind.is_uuid() or kind.is_numeric()):
            return column
        fitting = ["integer"] if kind.is_integer() else ["integer", "real"] if kind.is_numeric() else ["text"]
        return ibis.cases((stored.isin(fitting), column), else_=ibis.null(kind))

    def encoded(self, text: Any) -> Any:
        return text  # the result of CASE has no collation: it is compared as bytes

    def is_nan(self, real: Any) -> Any:
        return ibis.literal(False)  # it is stored as NULL

    def _listed(self, values: list[str], codes: list[int], schema: Any) -> Any:
        text = schema[LABEL].is_string()
        labels = [f"CAST(x'{value}' AS TEXT)" if text else value for value in values]
        pairs = ", ".join(f"({label}, {code})" for label, code in zip(labels, codes, strict=True))
        query = f"SELECT column1 AS {LABEL}, column2 AS {CODE} FROM (VALUES {pairs})"  # noqa: S608 - digits alone
        return self.backend.sql(query, schema=schema)

    def sum_type(self, largest: int) -> str:
        if largest * ROWS >= 2**63:
            raise Unsupported(
                f"SQLite adds up 64-bit integers only, and products up to {largest:,} can overflow.",
                "Declare narrower bounds or a coarser step, or copy the table to a Parquet file.",
            )
        return "int64"


def _md5(value: Any) -> str | None:
    if value is None:
        return None
    return hashlib.md5(value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")).hexdigest()  # noqa: S324


BOUNDARIES: dict[str, type[Boundary]] = {
    "duckdb": Boundary,
    "postgres": PostgresBoundary,
    "spark": SparkBoundary,
    "pyspark": SparkBoundary,
    "sqlite": SQLiteBoundary,
}


def boundary_of(expression: Any, engine: str) -> Boundary:
    """Return the boundary of a table's engine. An engine without one is refused: its text comparison is unknown."""
    if engine not in BOUNDARIES:
        raise SourceUnreadable(
            f'Tables on the engine "{engine}" cannot be opened: its text comparison and number conversion are unknown.',
            f"Known engines: {', '.join(sorted(set(BOUNDARIES) - {'pyspark'}))}. Copy the table to a Parquet file.",
        )
    return BOUNDARIES[engine](expression)
