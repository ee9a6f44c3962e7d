"""The boundaries of Postgres, Spark and SQLite, and the choice of one. `boundary.py` describes what they do."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import ibis
import ibis.expr.operations as ops

from tidegate.errors import SourceUnreadable, Unsupported
from tidegate.policy import Attribute, Moment, Timestamp
from tidegate.tables import functions
from tidegate.tables.axes import ROWS
from tidegate.tables.boundary import CODE, LABEL, Boundary, clamp, hexadecimal, list_items, split_items
from tidegate.tables.guard import ask_engine
from tidegate.tables.positions import shapes_of


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
        return functions.convert_to(text, "UTF8")

    def literal(self, text: str) -> Any:
        return functions.decode(hexadecimal(text), "hex")

    def _listed(self, values: list[str], codes: list[int], schema: Any) -> Any:
        label = "decode({}, 'hex')" if schema[LABEL].is_binary() else "CAST({} AS BIGINT)"
        items = f"unnest(string_to_array('{list_items(values, codes)}', ',')) AS listed(item)"
        return self.backend.sql(split_items(label, items), schema=schema)

    def days(self, date: Any) -> Any:
        return functions.date_mi(clamp(date, "4713-01-01 BC", "5874897-12-31"), ibis.date(1970, 1, 1))

    def seconds(self, timestamp: Any) -> Any:
        seconds = functions.epoch("epoch", timestamp.truncate("s"))  # infinite for infinity
        return ibis.least(ibis.greatest(seconds, -1e12), 1e12).cast("int64")

    def time_seconds(self, time: Any) -> Any:
        return functions.time_epoch("epoch", time).floor().cast("int64")

    def date_of(self, days: Any) -> Any:
        return functions.date_pli(ibis.date(1970, 1, 1), days.cast("int32"))

    def real(self, column: Any) -> Any:
        if not column.type().is_decimal():
            return column.cast("float64")
        ends = [ibis.literal(end, "string").cast("decimal") for end in ("-1e300", "1e300")]
        inside = ibis.least(ibis.greatest(column, ends[0]), ends[1])
        rounded = functions.round(inside, 300).cast("float64")  # a conversion of 1e-400 fails
        missing = column.isnull() | (column.cast("string") == "NaN")  # LEAST and GREATEST ignore NULL
        return ibis.cases((missing, ibis.null("float64")), else_=rounded)


class SparkBoundary(Boundary):
    """Spark: only the schema of the source shows CHAR(n), which is padded, and whether a timestamp is an instant."""

    items_sql = "(SELECT explode(split('{}', ',')) AS item) AS listed"

    def __init__(self, expression: Any) -> None:
        super().__init__(expression)
        frame = ask_engine(
            lambda: self.backend._session.sql(self.backend.compile(expression)), what="reading the columns' types"
        )
        kinds = {field.name: field.metadata.get("__CHAR_VARCHAR_TYPE_STRING", "") for field in frame.schema}
        self.padded = {name for name, kind in kinds.items() if kind.startswith("char(")}
        self.instants = {field.name for field in frame.schema if field.dataType.typeName() == "timestamp"}

    def _column(self, column: Any, attribute: Attribute) -> Any:
        is_instant = column.get_name() in self.instants
        if isinstance(attribute, Timestamp) and column.type().is_timestamp() and is_instant != bool(attribute.zone):
            raise SourceUnreadable(
                f'Column "{column.get_name()}" is {"an instant" if is_instant else "wall-clock time"} in the source.',
                f"{'Add `zone` to' if is_instant else 'Remove `zone` from'} its line in the policy.",
            )
        return super()._column(column, attribute)

    def text(self, column: Any) -> Any:
        return functions.rtrim(column) if column.get_name() in self.padded else column

    def encoded(self, text: Any) -> Any:
        return text.cast("binary")

    def days(self, date: Any) -> Any:
        return functions.unix_date(date).cast("int64")

    def seconds(self, timestamp: Any) -> Any:
        if timestamp.get_name() in self.instants:
            return functions.unix_seconds(timestamp)
        clock = timestamp.hour() * 3_600 + timestamp.minute() * 60 + timestamp.second()
        return self.days(timestamp.cast("date")) * 86_400 + clock.cast("int64")

    def date_of(self, days: Any) -> Any:
        return functions.date_of_unix(days.cast("int32"))

    def has_shape(self, text: Any, shapes: Sequence[str]) -> Any:
        ends = text.substr(text.length() - 1, 1).isin([*"0123456789Z"])  # `$` also matches before a final line break
        return super().has_shape(text, shapes) & ends


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
        if isinstance(attribute, Moment):
            return super()._column(column, attribute)
        if not (kind.is_string() or kind.is_uuid() or kind.is_numeric()):
            return column
        fitting = ["integer"] if kind.is_integer() else ["integer", "real"] if kind.is_numeric() else ["text"]
        return super()._column(ibis.cases((stored.isin(fitting), column), else_=ibis.null(kind)), attribute)

    def is_text(self, kind: Any) -> bool:
        return True

    def _iso(self, column: Any, attribute: Moment) -> Any:
        text = column.cast("string")
        matches = (column.typeof() == "text") & self.has_shape(text, shapes_of(attribute))
        return ibis.cases((matches, text), else_=ibis.null("string"))

    def digest(self, column: Any) -> Any:
        return functions.md5_of_bytes(column.cast("binary"))  # a text that is not UTF-8 does not reach Python

    def has_shape(self, text: Any, shapes: Sequence[str]) -> Any:
        return ibis.or_(*(functions.glob(shape, text) for shape in shapes))

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

    def as_view(self, expression: Any) -> Any:
        text = ibis.to_sql(expression, dialect="sqlite")
        name = f"tidegate_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
        create = f"CREATE TEMP VIEW IF NOT EXISTS {name} AS {text}"
        ask_engine(lambda: self.backend.con.execute(create), what="preparing the rows")
        return self.backend.sql(f"SELECT * FROM {name}", schema=expression.schema())  # noqa: S608

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
