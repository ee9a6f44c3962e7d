"""Column types of four engines and values that are hard on them."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis

from tidegate.policy import Attribute, Category, Grid, Integer, Key
from tidegate.testing.columns import HostileColumn, HostileRow

NFC, NFD = "caf\u00e9", "cafe\u0301"
TEXTS = (
    "female", "Female", "FEMALE", "female ", " female", "", NFC, NFD, "o'neil", "fe\u200bmale", "\ufb01", "\u0130", "\u00df",
    "SS", "ss", "\U0001f469", "NULL", "1", "01", "\\x41", "%", "_", 'a"b', "a,b:c", "\t", "male",
)  # fmt: skip
LABELS = ("female", NFC, "o'neil", "SS", "", "1", "\\x41", "%", "a,b:c", "\U0001f469")
SHORT, LONG = Category(LABELS, "value"), Category((*LABELS, *(f"town {n}" for n in range(40))))
WITH_NUL = Category((*LABELS, "a\0b"), "value")
FLAGS, CODES = Category((False, True), "value"), Category((1, 2, -1, 2**63 + 5, 300), "value")
LONG_CODES = Category(tuple(range(-5, 60)))
INTEGERS = (0, 1, -1, 2, 17, 18, 53, 54, 90, 91, 127, -128, 255, 2**15 - 1, -(2**31), 2**31, 2**32 - 1, 2**53 + 1,
            2**63 - 1, -(2**63), -(2**63) + 7, 2**63, 2**63 + 5, 2**64 - 1, 2**127 - 1, -(2**127) + 1)  # fmt: skip
FLOATS = (0.0, -0.0, 17.5, 18.25, 18.5, 53.5, 90.25, 90.75, 1e30, -1e30, math.inf, -math.inf, math.nan)
AGES, NEAR, LOWEST, BEYOND = (
    Integer(18, 90),
    Integer(-5, 5),
    Integer(-(2**63), -(2**63) + 10),
    Integer(2**63, 2**63 + 10),
)
QUARTERS = Grid("-0.5", "20", "0.25", missing="value")


def hexadecimal(text: str) -> str:
    return text.encode().hex()


def columns(kind: str, attributes: Iterable[Attribute], values: Iterable[tuple[str, Any]]) -> list[HostileColumn]:
    return [HostileColumn(kind, attribute, (("NULL", None), *values)) for attribute in attributes]


def whole(kind: str, low: int, high: int, *attributes: Attribute, cast: str = "{}") -> list[HostileColumn]:
    values = [(cast.format(f"'{value}'"), value) for value in INTEGERS if low <= value <= high]
    return columns(kind, attributes, values)


def texts(
    kind: str, literal: str, *attributes: Attribute, longest: int = 100_000, padded: bool = False
) -> list[HostileColumn]:
    """`literal` makes a text of hexadecimal digits. A padded type loses the spaces at the end."""
    stored = [text for text in TEXTS if len(text) <= longest]
    values = [(literal.format(hexadecimal(text)), text.rstrip(" ") if padded else text) for text in stored]
    return columns(kind, attributes, values)


def reals(kind: str, literal: Callable[[float], str], *attributes: Attribute) -> list[HostileColumn]:
    return columns(kind, attributes, [(literal(value), value) for value in FLOATS])


def decimals(kind: str, numbers: Iterable[str], *attributes: Attribute) -> list[HostileColumn]:
    return columns(kind, attributes, [(f"CAST('{number}' AS {kind})", Decimal(number)) for number in numbers])


UUIDS = [str(uuid.UUID(int=n)) for n in (1, 2**64, 2**128 - 1)]

IN_DUCKDB = "decode(unhex('{}'))"
ORDINARY_DECIMALS = ("17.50", "18.25", "90.75", "-0.25", "99.00", "0.00")
DUCKDB = [
    *whole("TINYINT", -(2**7), 2**7 - 1, AGES, NEAR, CODES, LONG_CODES),
    *whole("SMALLINT", -(2**15), 2**15 - 1, AGES, CODES),
    *whole("INTEGER", -(2**31), 2**31 - 1, AGES, NEAR),
    *whole("BIGINT", -(2**63), 2**63 - 1, AGES, NEAR, LOWEST, BEYOND, CODES, LONG_CODES, Integer(0, 10, missing="value")),
    *whole("UTINYINT", 0, 2**8 - 1, AGES, NEAR),
    *whole("USMALLINT", 0, 2**16 - 1, NEAR),
    *whole("UINTEGER", 0, 2**32 - 1, AGES, LOWEST),
    *whole("UBIGINT", 0, 2**64 - 1, AGES, NEAR, BEYOND, CODES, LONG_CODES),
    *whole("HUGEINT", -(2**127), 2**127 - 1, AGES, NEAR),
    *reals("DOUBLE", lambda value: f"CAST('{value}' AS DOUBLE)", AGES, QUARTERS, Integer(18, 90, (30, 50), "value")),
    *reals("FLOAT", lambda value: f"CAST('{value}' AS FLOAT)", AGES),
    *decimals("DECIMAL(38,2)", (*ORDINARY_DECIMALS, "9" * 36 + ".99", "-" + "9" * 36 + ".99"), AGES, QUARTERS),
    *decimals("DECIMAL(4,2)", ORDINARY_DECIMALS, AGES, QUARTERS, BEYOND),
    *decimals("DECIMAL(38,37)", ("1.5", "-9." + "9" * 37, "0." + "0" * 36 + "1"), QUARTERS, AGES),
    *texts("VARCHAR", IN_DUCKDB, SHORT, LONG),
    *columns("VARCHAR", [WITH_NUL], [(IN_DUCKDB.format(hexadecimal(text)), text) for text in ("a\0b", "a", "a\0c", "a\0", "\0")]),
    *columns("VARCHAR", [SHORT], [("repeat('x', 100000)", "x" * 100_000), ("'female'", "female")]),
    *texts("VARCHAR COLLATE NOCASE", IN_DUCKDB, SHORT, LONG),
    *texts("VARCHAR COLLATE NOACCENT", IN_DUCKDB, SHORT, LONG),
    *texts("VARCHAR COLLATE NFC", IN_DUCKDB, SHORT),
    *texts("VARCHAR COLLATE NOCASE.NOACCENT", IN_DUCKDB, SHORT, LONG),
    *columns("BOOLEAN", [FLAGS], [("true", True), ("false", False)]),
    *columns("ENUM('female', 'Female', '', '%')", [SHORT, LONG], [(f"'{text}'", text) for text in ("female", "Female", "", "%")]),
    *texts("VARCHAR COLLATE NOCASE", IN_DUCKDB, Key()),
    *texts("VARCHAR", IN_DUCKDB, Key()),
    *whole("UBIGINT", 0, 2**64 - 1, Key()),
    *columns("UUID", [Key()], [(f"'{value}'", value) for value in UUIDS]),
]  # fmt: skip

IN_POSTGRES = "convert_from(decode('{}', 'hex'), 'UTF8')"
NUMERICS = (*ORDINARY_DECIMALS, "NaN", "Infinity", "-Infinity", "1e1000", "-1e1000", "1e-1000", "-1e-400")
POSTGRES = [
    *whole("smallint", -(2**15), 2**15 - 1, AGES, NEAR, CODES),
    *whole("integer", -(2**31), 2**31 - 1, AGES, LOWEST),
    *whole("bigint", -(2**63), 2**63 - 1, AGES, NEAR, LOWEST, CODES, LONG_CODES),
    *reals("double precision", lambda value: f"'{value}'", AGES, QUARTERS),
    *reals("real", lambda value: f"'{value}'", AGES),
    *decimals("numeric", NUMERICS, AGES, QUARTERS),
    *decimals("numeric(60,5)", (*ORDINARY_DECIMALS, "9" * 50, "NaN"), AGES),
    *texts("text", IN_POSTGRES, SHORT, LONG, WITH_NUL),
    *columns("text", [SHORT], [("repeat('x', 100000)", "x" * 100_000), ("'female'", "female")]),
    *texts('text COLLATE "C"', IN_POSTGRES, SHORT),
    *texts('varchar(20) COLLATE "POSIX"', IN_POSTGRES, SHORT, longest=20),
    *texts("char(8)", IN_POSTGRES, SHORT, LONG, longest=8, padded=True),
    *texts("name", IN_POSTGRES, SHORT),
    *columns("spelling", [SHORT, LONG], [(f"'{text}'", text) for text in ("female", "Female", "%")]),
    *columns("boolean", [FLAGS], [("true", True), ("false", False)]),
    *texts("text", IN_POSTGRES, Key()),
    *texts("char(8)", IN_POSTGRES, Key(), longest=8, padded=True),
    *columns("uuid", [Key()], [(f"'{value}'", value) for value in UUIDS]),
    *whole("bigint", -(2**63), 2**63 - 1, Key()),
]  # fmt: skip

IN_SPARK = "CAST(X'{}' AS STRING)"
SPARK = [
    *whole("TINYINT", -(2**7), 2**7 - 1, NEAR, cast="CAST({} AS TINYINT)"),
    *whole("BIGINT", -(2**63), 2**63 - 1, AGES, LOWEST, LONG_CODES, cast="CAST({} AS BIGINT)"),
    *reals("DOUBLE", lambda value: f"CAST('{value}' AS DOUBLE)", AGES, QUARTERS),
    *decimals("DECIMAL(38,2)", (*ORDINARY_DECIMALS, "9" * 36 + ".99"), AGES),
    *texts("STRING", IN_SPARK, SHORT, LONG),
    *texts("STRING COLLATE UTF8_LCASE", IN_SPARK, SHORT, LONG, Key()),
    *texts("STRING COLLATE UNICODE_CI_AI", IN_SPARK, SHORT),
    *texts("CHAR(8)", IN_SPARK, SHORT, longest=8, padded=True),
    *columns("BOOLEAN", [FLAGS], [("true", True), ("false", False)]),
]

IN_SQLITE = "CAST(x'{}' AS TEXT)"
OTHER_TYPES = (("x'66656d616c65'", None), ("x''", None))
SQLITE = [
    *columns("INTEGER", [AGES, NEAR, CODES, LONG_CODES],
             [*((str(value), value) for value in INTEGERS if -(2**63) < value < 2**63), *OTHER_TYPES, ("'abc'", None), ("17.5", None), ("9e999", None)]),
    *columns("REAL", [AGES, QUARTERS],
             [("0.0", 0.0), ("-0.0", -0.0), ("17.5", 17.5), ("9e999", math.inf), ("-9e999", -math.inf), ("18", 18.0), ("'abc'", None), *OTHER_TYPES]),
    *columns("TEXT", [SHORT, LONG], [*((IN_SQLITE.format(hexadecimal(text)), text) for text in TEXTS), *OTHER_TYPES, ("1", "1"), ("17.5", "17.5")]),
    *columns("TEXT", [WITH_NUL], [(IN_SQLITE.format(hexadecimal(text)), text) for text in ("a\0b", "a", "a\0c", "a\0")]),
    *texts("TEXT COLLATE NOCASE", IN_SQLITE, SHORT, LONG, Key()),
    *texts("TEXT COLLATE RTRIM", IN_SQLITE, SHORT, LONG, Key()),
    *columns("BOOLEAN", [FLAGS], [("1", True), ("0", False), ("2", None), ("'true'", None)]),
]  # fmt: skip


def insert(name: str, rows: list[HostileRow]) -> str:
    shown = (f"({row.world}, '{row.person}', {row.size}, {row.literal})" for row in rows)
    return f"INSERT INTO {name} VALUES {', '.join(shown)}"


def create(name: str, column: HostileColumn) -> str:
    return f"CREATE TABLE {name} (world BIGINT, person VARCHAR(99), size BIGINT, x {column.kind})"


def in_duckdb(column: HostileColumn, rows: list[HostileRow]) -> Any:
    connection = ibis.duckdb.connect()
    connection.raw_sql(create("hostile", column))
    connection.raw_sql(insert("hostile", rows))
    return connection.table("hostile")


def in_sqlite(column: HostileColumn, rows: list[HostileRow]) -> Any:
    connection = ibis.sqlite.connect()
    connection.con.execute(create("hostile", column))
    connection.con.execute(insert("hostile", rows))
    return connection.table("hostile")


class InPostgres:
    """Loads columns into one database, whose session is far from UTC."""

    def __init__(self, url: str) -> None:
        self.connection = ibis.connect(url.replace("postgresql://", "postgres://"))
        self.connection.raw_sql("SET TIME ZONE 'America/New_York'").close()
        self.connection.raw_sql("CREATE TYPE spelling AS ENUM ('female', 'Female', '%')").close()
        self.number = 0

    def __call__(self, column: HostileColumn, rows: list[HostileRow]) -> Any:
        self.number += 1
        name = f"hostile_{self.number}"
        with self.connection.con.cursor() as cursor:
            cursor.execute(create(name, column))
            cursor.execute(insert(name, rows))
        self.connection.con.commit()
        return self.connection.table(name)


class InSpark:
    """Loads columns into tables of a session, whose files are in a folder."""

    def __init__(self, session: Any, folder: Path) -> None:
        self.session, self.folder, self.number = session, folder, 0

    def __call__(self, column: HostileColumn, rows: list[HostileRow]) -> Any:
        self.number += 1
        name = f"hostile_{self.number}_{self.folder.name.replace('-', '_')}"
        columns = f"world BIGINT, person STRING, size BIGINT, x {column.kind}"
        self.session.sql(f"CREATE TABLE {name} ({columns}) USING parquet LOCATION '{self.folder / name}'")
        self.session.sql(insert(name, rows))
        return ibis.pyspark.connect(self.session).table(name)
