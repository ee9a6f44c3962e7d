"""Column types of four engines and values that are hard on them."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis
import pytest

import tidegate as tg
from tidegate.policy import Attribute, Boolean, Category, Date, Grid, Integer, Key, Text, Time, Timestamp
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
STRICT_AGES, STRICT_QUARTERS = Integer(18, 90, outside="missing"), Grid("-0.5", "20", "0.25", outside="missing")
PRICES = tg.Decimal("-5.00", "20.00", "0.05", missing="value")
STRICT_PRICES = tg.Decimal("-5.00", "20.00", "0.01", outside="missing")
OTHERS, LONG_OTHERS = Category(LABELS, "value", "other"), Category(LONG.values, outside="other")
OTHER_CODES, TRUTHS = Category((1, 2, -1, 300), outside="other"), Boolean("value")
BUCKETS = Text(16, "value")


UTC = dt.UTC
DAYS = Date(dt.date(2015, 1, 1), dt.date(2024, 12, 31))
CLAMPED_DAYS = Date(dt.date(2015, 1, 1), dt.date(2024, 12, 31), missing="lowest", outside="clamp")
WEEKS = Date(dt.date(2015, 1, 1), dt.date(2024, 12, 31), "week", "value")
MONTHS = Date(dt.date(2015, 1, 1), dt.date(2024, 12, 31), "month", outside="clamp")
QUARTERS_OF_A_YEAR = Date(dt.date(2015, 1, 1), dt.date(2024, 12, 31), "quarter")
YEARS = Date(dt.date(1, 1, 1), dt.date(9999, 12, 31), "year", outside="clamp")
SOME_DAYS = Date(dt.date(2018, 1, 1), dt.date(2024, 12, 31))  # few enough for SQLite's sums
SOME_WALL = Timestamp(dt.date(2024, 3, 1), dt.date(2024, 3, 31), "hour", missing="value")
SOME_HOURS = Timestamp(dt.date(2024, 10, 1), dt.date(2024, 11, 30), "hour", "Europe/Paris")
DATE_KINDS = (DAYS, CLAMPED_DAYS, WEEKS, MONTHS, QUARTERS_OF_A_YEAR, YEARS)
HOURS = Timestamp(dt.date(2024, 1, 1), dt.date(2024, 12, 31), "hour", "Europe/Paris")
MINUTES = Timestamp(dt.date(2024, 10, 26), dt.date(2024, 10, 28), "15-minutes", "America/New_York", outside="clamp")
HALVES = Timestamp(dt.date(2024, 1, 1), dt.date(2024, 1, 31), "30-minutes", "Asia/Kolkata", "value")
WALL = Timestamp(dt.date(2024, 3, 1), dt.date(2024, 11, 30), "hour", missing="value")
OLD_WALL = Timestamp(dt.datetime(1, 1, 1), dt.datetime(1, 1, 2), "minute", outside="clamp")
OPENING = Time(dt.time(8), dt.time(20), "15-minutes", "value")
ALL_DAY = Time(dt.time(0), dt.time(23, 59), "hour", outside="clamp")
DATES = ("2014-12-31", "2015-01-01", "2024-12-31", "2025-01-01", "2015-01-04", "2015-01-05", "2014-12-28", "2014-12-29",
         "2016-02-28", "2016-02-29", "2016-03-01", "2020-12-28", "2020-12-31", "2021-01-03", "2021-01-04", "0001-01-01",
         "9999-12-31", "1900-02-28", "1969-12-31", "1970-01-01", "2000-02-29", "2024-02-29", "2020-02-29")  # fmt: skip
INSTANTS = (
    "2023-12-31 22:59:59.999999", "2023-12-31 23:00:00", "2024-12-31 22:59:59.999999", "2024-12-31 23:00:00",  # ends in Paris
    "2024-03-31 00:59:59.999999", "2024-03-31 01:00:00", "2024-10-27 00:30:00", "2024-10-27 01:00:00", "2024-10-27 01:30:00",
    "2024-11-03 05:30:00", "2024-11-03 06:30:00", "2024-03-10 06:59:59.999999", "2024-03-10 07:00:00", "2024-03-10 02:30:00",
    "2023-12-31 18:29:59.999999", "2023-12-31 18:30:00", "2024-02-29 12:00:00", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999",
    "1883-11-18 12:03:57", "1969-12-31 23:59:59.999999", "2024-10-26 04:00:00", "2024-10-29 03:59:59.999999",
)  # fmt: skip
CLOCKS = (
    "00:00:00",
    "07:59:59.999999",
    "08:00:00",
    "08:14:59.999999",
    "08:15:00",
    "20:00:00",
    "20:14:59",
    "20:15:00",
    "23:59:59.999999",
)
NOT_DATES = ("2024-02-30", "2023-02-29", "1900-02-29", "2024-1-1", "20240101", "now", "today", "infinity", "2024-13-01", "2024-00-10",
             "2024-01-00", "0000-01-01", "2024-01-01 ", " 2024-01-01", "2024-01-01x", "2024-01-01\n", "", "-2024-01-01", "２０２４-01-01",
             "2024-04-31", "12024-01-01")  # fmt: skip
NOT_MOMENTS = ("2024-03-31 24:00:00", "2024-03-31 10:60", "2024-03-31 10:00:60", "2024-03-31", "2024-02-30 10:00:00", "now", "10:00",
               "2024-03-31 10:00\n", "2024-03-31 10:00:00.", "2024-03-31  10:00", "2024-03-31 1:00")  # fmt: skip


def dates(kind: str, *extra: tuple[str, float], attributes: Iterable[Attribute] = DATE_KINDS) -> list[HostileColumn]:
    values = [(f"CAST('{date}' AS {kind})", dt.date.fromisoformat(date)) for date in DATES]
    return columns(kind, attributes, [*values, *extra])


def moments(kind: str, *extra: tuple[str, float], zone: bool, attributes: Iterable[Attribute]) -> list[HostileColumn]:
    offset = "+00" if zone else ""
    values = [(f"CAST('{moment}{offset}' AS {kind})", instant(moment, zone=zone)) for moment in INSTANTS]
    return columns(kind, attributes, [*values, *extra])


def instant(moment: str, *, zone: bool) -> dt.datetime:
    return dt.datetime.fromisoformat(moment).replace(tzinfo=UTC if zone else None)


def times(kind: str, *extra: tuple[str, float]) -> list[HostileColumn]:
    values = [(f"CAST('{clock}' AS {kind})", dt.time.fromisoformat(clock)) for clock in CLOCKS]
    return columns(kind, [OPENING, ALL_DAY], [*values, *extra])


def texts_of_moments(kind: str, literal: str, *attributes: Attribute) -> list[HostileColumn]:
    """Text in ISO 8601 and text that only looks like it."""
    listed = []
    for attribute in attributes:
        if isinstance(attribute, Date):
            values = [(date, dt.date.fromisoformat(date)) for date in DATES]
            values += [(date, None) for date in (*NOT_DATES, "2024-01-01 10:00")]
        elif isinstance(attribute, Time):
            values = [(clock, dt.time.fromisoformat(clock)) for clock in (*CLOCKS, "09:30", "10:00:00.123456789"[:15])]
            values += [
                (clock, None) for clock in ("24:00:00", "9:30", "10:60", "10:00:60", "10", "10:00Z", "10:00\n", "now")
            ]
        elif attribute.zone:
            values = [(f"{moment}Z", instant(moment, zone=True)) for moment in INSTANTS]
            values += [
                (moment, dt.datetime.fromisoformat(moment))
                for moment in ("2024-03-31T03:30+02:00", "2024-10-27 02:00:00.5-05:30")
            ]
            values += [
                (moment, None)
                for moment in ("2024-03-31 10:00", "2024-03-31 10:00+99:00", "2024-03-31 10:00z", *NOT_MOMENTS)
            ]
        else:
            values = [
                (moment, instant(moment, zone=False))
                for moment in (*INSTANTS, "2024-03-31T10:00", "2024-03-31 10:00:00.5")
            ]
            values += [(moment, None) for moment in ("2024-03-31 10:00Z", "2024-03-31 10:00+01:00", *NOT_MOMENTS)]
        listed += columns(kind, [attribute], [(literal.format(hexadecimal(text)), value) for text, value in values])
    return listed


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


FINE_DECIMALS = ("0.025", "0.0249999999", "0.0250000001", "-0.025", "-0.0250000001", "-0.0249999999", "4.975", "4.9750", "20.004",
                 "20.0000000001", "-5.0000000001", "19.975", "0", "-5", "20", "123456.5", "-123456.5")  # fmt: skip
INFINITE = (("'infinity'", math.inf), ("'-infinity'", -math.inf))
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
    *whole("BIGINT", -(2**63), 2**63 - 1, STRICT_AGES, OTHER_CODES, PRICES),
    *whole("UBIGINT", 0, 2**64 - 1, STRICT_AGES, STRICT_PRICES),
    *whole("UTINYINT", 0, 2**8 - 1, Integer(-300, -200, outside="missing"), tg.Decimal(1000, 1001, "0.5")),
    *whole("HUGEINT", -(2**127), 2**127 - 1, PRICES),
    *reals("DOUBLE", lambda value: f"CAST('{value}' AS DOUBLE)", STRICT_AGES, STRICT_QUARTERS, tg.Decimal("-0.5", "20", "0.25")),
    *decimals("DECIMAL(38,2)", (*ORDINARY_DECIMALS, "9" * 36 + ".99", "-" + "9" * 36 + ".99"), PRICES, STRICT_PRICES),
    *decimals("DECIMAL(38,10)", FINE_DECIMALS, PRICES, STRICT_PRICES, tg.Decimal(0, 20, 5)),
    *decimals("DECIMAL(4,2)", ORDINARY_DECIMALS, PRICES, tg.Decimal(1000, 1001, "0.5"), tg.Decimal("0", "5", "0.0005")),
    *decimals("DECIMAL(38,37)", ("1.5", "-9." + "9" * 37, "0." + "0" * 36 + "1", "0.024" + "9" * 34, "0.025"), PRICES, STRICT_PRICES),
    *texts("VARCHAR", IN_DUCKDB, OTHERS, LONG_OTHERS, BUCKETS),
    *texts("VARCHAR COLLATE NOCASE", IN_DUCKDB, OTHERS, LONG_OTHERS, BUCKETS),
    *columns("BOOLEAN", [TRUTHS], [("true", True), ("false", False)]),
    *dates("DATE", ("'infinity'", math.inf), ("'-infinity'", -math.inf), ("'0044-03-15 (BC)'", -math.inf), ("'20000-01-01'", math.inf)),
    *moments("TIMESTAMP", *INFINITE, ("'0044-03-15 (BC) 12:00:00'", -math.inf), zone=False, attributes=[WALL, OLD_WALL]),
    *moments("TIMESTAMPTZ", *INFINITE, zone=True, attributes=[HOURS, MINUTES, HALVES, DAYS, MONTHS]),
    *columns("TIMESTAMP_S", [WALL], [("'2024-03-10 02:30:00'", dt.datetime(2024, 3, 10, 2, 30)), ("'9999-12-31'", dt.datetime(9999, 12, 31)), *INFINITE]),
    *columns("TIMESTAMP_NS", [WALL], [("'2024-03-10 02:59:59.999999999'", dt.datetime(2024, 3, 10, 2, 59)), ("'2262-04-11'", math.inf), ("'1678-01-01'", -math.inf), *INFINITE]),
    *times("TIME", ("'24:00:00'", 86_400)),
    *texts_of_moments("VARCHAR", IN_DUCKDB, SOME_DAYS, WEEKS, MONTHS, SOME_WALL, SOME_HOURS, OPENING),
    *columns("VARCHAR", [AGES, QUARTERS], [("'18.25'", 18.25), ("'-3'", -3), ("'1e400'", math.inf), ("'nan'", None), ("'abc'", None), ("''", None), ("' 20 '", 20)]),
    *columns("VARCHAR", [CODES, LONG_CODES], [("'1'", 1), ("'+2'", 2), ("'1.4'", None), ("'abc'", None), ("'9999999999999999999999'", None), ("'300'", 300)]),
    *columns("VARCHAR", [TRUTHS], [("'true'", True), ("'false'", False), ("'maybe'", None), ("''", None)]),
    *columns("VARCHAR", [PRICES], [("'0.025'", Decimal("0.025")), ("'-0.0250001'", Decimal("-0.0250001")), ("'abc'", None), ("'1e-300'", Decimal("1e-300"))]),
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
    *whole("bigint", -(2**63), 2**63 - 1, STRICT_AGES, PRICES),
    *columns("integer", [TRUTHS], [("0", False), ("1", True), ("2", None), ("-1", None)]),
    *decimals("numeric", (*NUMERICS, *FINE_DECIMALS), PRICES, STRICT_PRICES, STRICT_QUARTERS),
    *decimals("numeric(40,10)", FINE_DECIMALS, PRICES),
    *texts("text", IN_POSTGRES, OTHERS, LONG_OTHERS, BUCKETS),
    *texts("char(8)", IN_POSTGRES, BUCKETS, longest=8, padded=True),
    *columns("boolean", [TRUTHS], [("true", True), ("false", False)]),
    *dates("date", ("'infinity'", math.inf), ("'-infinity'", -math.inf), ("'4713-01-01 BC'", -math.inf), ("'5874897-12-31'", math.inf)),
    *moments("timestamp", *INFINITE, ("'4713-01-01 00:00:00 BC'", -math.inf), ("'294276-12-31'", math.inf), zone=False, attributes=[WALL, OLD_WALL, DAYS]),
    *moments("timestamptz", *INFINITE, ("'294276-12-31 00:00:00+00'", math.inf), zone=True, attributes=[HOURS, MINUTES, HALVES, DAYS, MONTHS]),
    *times("time", ("'24:00:00'", 86_400)),
    *texts_of_moments("text", IN_POSTGRES, SOME_DAYS, SOME_WALL, SOME_HOURS, OPENING),
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
    *columns("BOOLEAN", [FLAGS, TRUTHS], [("true", True), ("false", False)]),
    *decimals("DECIMAL(38,18)", (*FINE_DECIMALS, "9" * 20 + ".99"), PRICES, STRICT_PRICES),
    *texts("STRING", IN_SPARK, OTHERS, LONG_OTHERS, BUCKETS),
    *dates("DATE", attributes=[DAYS, WEEKS, MONTHS]),
    *moments("TIMESTAMP_NTZ", zone=False, attributes=[WALL, OLD_WALL]),
    *moments("TIMESTAMP", zone=True, attributes=[HOURS, MINUTES, DAYS]),
    *texts_of_moments("STRING", IN_SPARK, SOME_DAYS, SOME_WALL, SOME_HOURS, OPENING),
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
    *columns("BOOLEAN", [FLAGS, TRUTHS], [("1", True), ("0", False), ("2", None), ("'true'", None)]),
    *columns("INTEGER", [STRICT_AGES, PRICES], [*((str(value), value) for value in INTEGERS if -(2**63) < value < 2**63), *OTHER_TYPES]),
    *columns("INTEGER", [TRUTHS], [("0", False), ("1", True), ("2", None), ("'true'", None), ("1.5", None)]),
    *columns("REAL", [STRICT_QUARTERS, tg.Decimal("-0.5", "20", "0.25")], [("17.5", 17.5), ("9e999", math.inf), ("-9e999", -math.inf), ("0.125", 0.125), ("'abc'", None)]),
    *texts("TEXT", IN_SQLITE, OTHERS, LONG_OTHERS, BUCKETS),
    *columns("TEXT", [BUCKETS, SHORT], [("'female'", "female"), *OTHER_TYPES]),
    *texts("TEXT COLLATE NOCASE", IN_SQLITE, OTHERS, BUCKETS),
    *texts_of_moments("TEXT", IN_SQLITE, SOME_DAYS, WEEKS, MONTHS, QUARTERS_OF_A_YEAR, SOME_WALL, SOME_HOURS, OPENING),
    *texts_of_moments("DATE", IN_SQLITE, SOME_DAYS, MONTHS),
    *texts_of_moments("TIMESTAMP", IN_SQLITE, SOME_WALL, SOME_HOURS),
    *columns("DATE", [SOME_DAYS], [("'2024-01-01'", dt.date(2024, 1, 1)), ("20240101", None), ("2460000.5", None), *OTHER_TYPES]),
]  # fmt: skip


ESTABLISHED = ("integer", "grid", "category", "key")


def with_brief(listed: list[HostileColumn]) -> list[HostileColumn]:
    """Check every statistic for the first column of a newer kind, and codes and counts for the others."""
    kinds: set[str] = set()
    result = []
    for column in listed:
        kind = column.attribute.kind
        is_first = kind not in kinds and getattr(column.attribute, "outside", "") != "clamp"
        result.append(replace(column, thorough=kind in ESTABLISHED or is_first))
        kinds |= {kind} if is_first else set()
    return result


DUCKDB, POSTGRES, SQLITE, SPARK = (with_brief(listed) for listed in (DUCKDB, POSTGRES, SQLITE, SPARK))


def in_every_run(listed: list[HostileColumn], *, types: bool) -> list[Any]:
    """Mark columns as `long`, except the first of each kind of attribute and, if asked, of each type of the engine."""
    seen: set[Any] = set()
    parameters = []
    for column in listed:
        kinds = {type(column.attribute)} | ({column.kind} if types else set())
        parameters.append(pytest.param(column, marks=[pytest.mark.long] if kinds <= seen else []))
        seen |= kinds
    return parameters


def insert(name: str, rows: list[HostileRow]) -> str:
    shown = (f"({row.world}, '{row.person}', {row.size}, {row.literal})" for row in rows)
    return f"INSERT INTO {name} VALUES {', '.join(shown)}"


def create(name: str, column: HostileColumn) -> str:
    return f"CREATE TABLE {name} (world BIGINT, person VARCHAR(99), size BIGINT, x {column.kind})"


def in_duckdb(column: HostileColumn, rows: list[HostileRow]) -> Any:
    connection = ibis.duckdb.connect()
    connection.raw_sql("SET TimeZone = 'America/New_York'")
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
        connection = ibis.pyspark.connect(self.session)  # sets the time zone to UTC
        self.session.conf.set("spark.sql.session.timeZone", "America/New_York")
        return connection.table(name)
