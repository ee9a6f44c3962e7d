"""Stored values cannot make an answer fail, appear in messages, or depend on collations."""

from __future__ import annotations

import logging
import random
import traceback
from dataclasses import replace
from datetime import date
from decimal import Decimal as Digits
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest
from support.databases import create_database
from tables.hostile import (
    DAYS,
    DUCKDB,
    HOURS,
    MONTHS,
    OLD_WALL,
    PRICES,
    SHORT,
    SOME_DAYS,
    SQLITE,
    WALL,
    in_duckdb,
    in_every_run,
    in_sqlite,
)

from tidegate.answer import count, mean
from tidegate.errors import SourceUnreadable, TableError, TidegateError, Unsupported
from tidegate.policy import Category, Dataset, EachPerson, EachRow, Integer, Key, Loss, Numeric, Policy
from tidegate.policy.predicates import col
from tidegate.session import Session
from tidegate.tables import Axis, boundaries, boundary, codes, open_table, positions
from tidegate.tables.inspection import inspect
from tidegate.testing import check_hostile_columns
from tidegate.testing.columns import HostileColumn, HostileRow, hostile_rows

SECRET = 18446744073709550001
SEX = Category(("female", "male"), "value")
MONTHS_OR_MISSING = replace(MONTHS, outside="missing")


def collated_table(collation: str, spellings: list[str]) -> Any:
    connection = ibis.duckdb.connect()
    connection.raw_sql(f"CREATE TABLE people (sex VARCHAR COLLATE {collation})")
    connection.raw_sql(f"INSERT INTO people VALUES {', '.join(f'({text!r})' for text in spellings)}")
    return connection.table("people")


def test_one_row_of_another_spelling_changes_a_count_by_one() -> None:
    policy = Policy(Dataset("people"), {"sex": SEX})
    here = open_table(policy, collated_table("NOCASE", ["Female"] + ["female"] * 99)).count(["sex"])
    there = open_table(policy, collated_table("NOCASE", ["female"] * 100)).count(["sex"])
    assert here.tolist() == [99, 0, 1]
    assert there.tolist() == [100, 0, 0]


def test_default_collation_of_a_session_has_no_effect() -> None:
    source = collated_table("NOCASE", ["Female"] + ["female"] * 9)
    source.get_backend().raw_sql("SET default_collation = 'NOCASE'")
    people = open_table(Policy(Dataset("people"), {"sex": SEX}), source)
    assert people.count(["sex"]).tolist() == [9, 0, 1]
    assert people.count(where=col("sex") == "female").item() == 9


@pytest.mark.parametrize("attribute", [Category((1, 2)), Category(tuple(range(30))), Integer(0, 5)])
def test_unsigned_value_beyond_64_signed_bits_is_counted(attribute: Any, tmp_path: Path) -> None:
    policy = Policy(Dataset("people"), {"x": attribute}, loss=Loss(5))
    source = pa.table({"x": pa.array([1, 2, SECRET], pa.uint64())})
    with Session(policy, table=source, folder=tmp_path) as session:
        cells = session.table.count(["x"])
        assert session.answer(count().by("x"), epsilon=1).values.shape == cells.shape
    assert int(cells.sum()) == (3 if isinstance(attribute, Numeric) else 2)


SECRET_TEXT = "a value of the source"


@pytest.mark.parametrize("by", [[], ["x"], ["label"]])
def test_engine_error_does_not_quote_a_value(by: list[str], caplog: pytest.LogCaptureFixture) -> None:
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE TABLE stored AS SELECT range AS x, 'a' AS label FROM range(9)")
    connection.raw_sql(
        f"CREATE VIEW people AS SELECT CASE WHEN x > 5 THEN error('{SECRET_TEXT}') ELSE x END AS x, label FROM stored"
    )
    policy = Policy(Dataset("people"), {"x": Integer(0, 5), "label": Category(("a", "b"))})
    source = connection.table("people").cast({"x": "int64"})
    with caplog.at_level(logging.DEBUG), pytest.raises(TableError) as raised:
        open_table(policy, source).moments("x", by=by)
    output = "".join(traceback.format_exception(raised.value)) + repr(raised.value.__dict__) + caplog.text
    assert SECRET_TEXT not in output
    assert raised.value.__context__ is None
    assert raised.value.__cause__ is None


def test_code_outside_the_universe_is_missing() -> None:
    axis = Axis("sex", SEX)
    assert axis.cells_of(pa.chunked_array([[0, 1, 2, -1, -2, 10**15, None]])).tolist() == [0, 1, 2, 2, 2, 2, 2]
    dropped = Axis("sex", Category(("female", "male")))
    assert dropped.cells_of(pa.chunked_array([[1, 2, None]])).tolist() == [1, -1, -1]


@pytest.mark.parametrize("column", in_every_run(DUCKDB, types=False), ids=lambda column: column.title)
def test_nothing_fails_after_the_charge(column: HostileColumn, tmp_path: Path) -> None:
    """With and without the hostile values the same questions are answered for the same price."""
    key = isinstance(column.attribute, Key)
    attributes: dict[str, Any] = {"x": column.attribute, "size": Integer(0, 9)}
    unit = EachPerson("x", 2) if key else EachRow()
    policy = Policy(Dataset("hostile", unit=unit), attributes, loss=Loss(50))
    questions = [count(), count().by("size")]
    if not key:
        questions += [count().by("x"), count().where(col("x").missing())]
    if isinstance(column.attribute, Numeric):
        questions += [mean("x")]
    source = in_duckdb(column, hostile_rows(column, neighbors=1))
    charged = []
    for world in (source.filter(source.world == 0), source.filter(source.x.isnull())):
        with Session(
            policy, table=world, folder=tmp_path / str(len(charged)), ledger=str(tmp_path / f"{len(charged)}.ledger")
        ) as session:
            for question in questions:
                session.answer(question, epsilon=1)
            charged.append(session.account.spent)
    assert charged[0] == charged[1]
    assert float(charged[0]) > 0


REFUSED = {
    "UHUGEINT": [Integer(0, 5), Category((1, 2))],
    "BIGNUM": [Integer(0, 5)],
    "HUGEINT": [Category((1, 2))],
    "DATE": [Integer(0, 5), SEX, Key()],
    "TIMESTAMP": [Integer(0, 5), SEX],
    "TIMESTAMPTZ": [SEX],
    "TIME": [SEX],
    "INTERVAL": [Integer(0, 5), SEX],
    "BIT": [SEX],
    "BLOB": [SEX, Key()],
    "UUID": [SEX],
    "VARCHAR[]": [SEX],
    "DECIMAL(10,0)": [Category((1, 2)), Key()],
    "DOUBLE": [Category((1, 2)), Key()],
}


@pytest.mark.parametrize(
    ("kind", "attribute"), [(kind, attribute) for kind, attributes in REFUSED.items() for attribute in attributes]
)
def test_unsuitable_type_is_refused_before_the_charge(kind: str, attribute: Any, tmp_path: Path) -> None:
    connection = ibis.duckdb.connect()
    connection.raw_sql(f"CREATE TABLE people (x {kind}, size BIGINT)")
    policy = Policy(Dataset("people"), {"x": attribute, "size": Integer(0, 9)}, loss=Loss(5))
    with Session(policy, table=connection.table("people"), folder=tmp_path) as session:
        with pytest.raises(SourceUnreadable, match="is declared as"):
            session.answer(count(), epsilon=1)
        assert not session.account.spent


def pandas_columns() -> dict[str, Any]:
    import pandas as pd

    return {
        "text late among numbers": pd.Series([1.0] * 5_000 + ["a secret"], dtype=object),
        "text first among numbers": pd.Series(["a secret", *[2.0] * 9], dtype=object),
        "a number among text": pd.Series(["female"] * 5_000 + [5], dtype=object),
        "a lone surrogate": pd.Series(["female", "a secret\ud800"], dtype=object),
        "objects": pd.Series([object(), "a secret"], dtype=object),
    }


@pytest.mark.parametrize("case", pandas_columns())
@pytest.mark.parametrize("attribute", [SEX, Integer(0, 9)], ids=["category", "integer"])
def test_pandas_column_of_mixed_types_is_refused_before_the_charge(case: str, attribute: Any, tmp_path: Path) -> None:
    import pandas as pd

    policy = Policy(Dataset("people"), {"x": attribute}, loss=Loss(5))
    with Session(policy, table=pd.DataFrame({"x": pandas_columns()[case]}), folder=tmp_path) as session:
        with pytest.raises(TidegateError) as raised:
            session.answer(count().by("x"), epsilon=1)
        assert not session.account.spent
    assert "a secret" not in "".join(traceback.format_exception(raised.value))


def test_engine_without_a_boundary_is_refused() -> None:
    class Elsewhere:
        columns = ("sex",)

    with pytest.raises(SourceUnreadable, match="cannot be opened"):
        boundaries.boundary_of(Elsewhere(), "mysql")


def test_postgres_encoding_that_does_not_convert_is_refused(postgres_server: Any) -> None:
    import psycopg

    plain = create_database(postgres_server, "plain_encoding")
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute("CREATE DATABASE japanese ENCODING 'EUC_JP' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    url = plain.replace("plain_encoding", "japanese")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE people (sex text)")
    with pytest.raises(SourceUnreadable, match="EUC_JP"):
        open_table(Policy(Dataset("people"), {"sex": SEX}), f"{url}&table=people")


def test_postgres_char_columns_are_counted_without_their_padding(postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE people (sex char(9), person char(5))")
        connection.execute("INSERT INTO people VALUES ('female', 'ann'), ('male', 'bob'), ('female', 'cyd')")
    policy = Policy(Dataset("people"), {"sex": SEX, "person": Key()})
    people = open_table(policy, f"{postgres_url}&table=people")
    assert people.count(["sex"]).tolist() == [2, 1, 0]
    assert people.records(["ann"], ["person", "sex"]).columns == {"ann": {"person": "ann", "sex": "female"}}
    assert {row["sex"] for batch in people.batches(["sex"]) for row in batch.to_pylist()} == {"female", "male"}


def hostile(kind: str, attribute: Any) -> list[HostileColumn]:
    return [column for column in DUCKDB if column.kind == kind and column.attribute == attribute]


def test_grouping_by_raw_text_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: text keeps the engine's own equality."""
    monkeypatch.setattr(boundary.Boundary, "encoded", lambda self, text: text)
    monkeypatch.setattr(boundary.Boundary, "literal", lambda self, text: ibis.literal(text))
    columns = [column for column in DUCKDB if "NOCASE" in column.kind and column.attribute.size == 10]
    broken = check_hostile_columns(columns[:1], in_duckdb, neighbors=1).broken
    assert any("moves" in check.clause or "count by x" in check.clause for check in broken)
    assert any("its code" in check.clause for check in broken)


def test_converting_before_clamping_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: the conversion fails for a value outside the bounds."""

    def faulty(column: Any, attribute: Numeric) -> Any:
        code = column.cast("int64") - int(attribute.low)
        return ibis.least(ibis.greatest(code, 0), attribute.size - 1)

    monkeypatch.setattr(codes, "_whole_code", faulty)
    assert not check_hostile_columns(hostile("UBIGINT", Integer(18, 90)), in_duckdb, neighbors=1).holds


def test_matching_labels_without_their_case_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: one spelling matches another."""

    def faulty(column: Any, attribute: Category, boundary: Any) -> Any:
        text = ibis.cases(*((column == boundary.literal(value.upper()), code) for code, value in enumerate(map(str, attribute.values))), else_=-1)  # fmt: skip
        return text.cast("int64")

    monkeypatch.setattr(codes, "category_code", faulty)
    columns = [column for column in DUCKDB if column.kind == "VARCHAR" and column.attribute.size == 10]
    assert not check_hostile_columns(columns[:1], in_duckdb, neighbors=1).holds


def broken_columns(listed: list[HostileColumn], load: Any) -> set[str]:
    """Return the columns whose contract is broken, by their type."""
    return {column.kind for column in listed if not check_hostile_columns([column], load, neighbors=1).holds}


def test_parsing_text_as_bytes_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: DuckDB reads escapes in CAST(text AS BLOB), and fails for a letter with an accent."""
    monkeypatch.setattr(boundary.Boundary, "encoded", lambda self, text: text.cast("binary"))
    columns = [column for column in DUCKDB if column.kind == "VARCHAR" and column.attribute.size == 10]
    assert broken_columns(columns[:1], in_duckdb) == {"VARCHAR"}


def test_grouping_by_raw_text_is_detected_in_sqlite(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: a column keeps its collation."""
    monkeypatch.setattr(boundaries.SQLiteBoundary, "_column", lambda self, column, attribute: column)
    columns = [column for column in SQLITE if column.kind == "TEXT COLLATE NOCASE" and column.attribute == SHORT]
    assert broken_columns(columns, in_sqlite) == {"TEXT COLLATE NOCASE"}


def test_days_in_the_time_zone_of_the_session_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: an instant becomes a date as the session's clock shows it."""
    monkeypatch.setattr(boundary.Boundary, "seconds", lambda self, time: self.days(time.cast("date")) * 86_400)
    columns = [column for column in DUCKDB if column.kind == "TIMESTAMPTZ" and column.attribute == DAYS]
    assert broken_columns(columns, in_duckdb) == {"TIMESTAMPTZ"}


def test_dates_converted_before_they_are_clamped_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: an infinite date has no number of days."""
    monkeypatch.setattr(boundary, "clamp", lambda column, lowest, highest: column)
    columns = [
        column for column in DUCKDB if column.kind in ("DATE", "TIMESTAMP") and column.attribute in (MONTHS, OLD_WALL)
    ]
    assert broken_columns(columns, in_duckdb) == {"DATE", "TIMESTAMP"}


def test_decimals_rounded_in_floating_point_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: 4.975 is below itself in floating point, and 0.0249999999 is rounded twice."""
    monkeypatch.setattr(positions, "_decimal_code", positions.nearest_code)
    columns = [column for column in DUCKDB if column.kind == "DECIMAL(38,10)"]
    assert broken_columns(columns, in_duckdb) == {"DECIMAL(38,10)"}


def test_dates_that_an_engine_completes_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: SQLite takes February 30 for March 1, and a pattern without an end takes more."""
    monkeypatch.setattr(boundaries.SQLiteBoundary, "has_shape", lambda self, text, shapes: text.length() >= 8)
    columns = [column for column in SQLITE if column.kind == "DATE" and column.attribute == SOME_DAYS]
    assert broken_columns(columns[:1], in_sqlite) == {"DATE"}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMPTZ", "DECIMAL(38,10)", "VARCHAR"])
def test_one_random_row_changes_counts_by_at_most_two(kind: str) -> None:
    """Random tables that differ in one row; each is one group of rows of a single table."""
    draw = random.Random(kind)
    for column in [column for column in DUCKDB if column.kind == kind and not isinstance(column.attribute, Key)]:
        tables = []
        for _ in range(6):
            here = draw.choices(column.values, k=20)
            there = [*here[:-1], draw.choice(column.values)]
            tables += [here, there]
        rows = [HostileRow(n, "p", 0, *value) for n, values in enumerate(tables) for value in values]
        policy = Policy(Dataset("people"), {"world": Integer(0, 11), "x": column.attribute})
        counts = open_table(policy, in_duckdb(column, rows)).count(["world", "x"])
        assert int(counts.sum()) > 0
        assert all(abs(counts[n] - counts[n + 1]).sum() <= 2 for n in range(0, 12, 2)), column.title


def test_time_zone_must_fit_the_column() -> None:
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE TABLE people (instant TIMESTAMPTZ, clock TIMESTAMP, price DECIMAL(9, 2))")
    source = connection.table("people")
    for name, attribute in {"instant": WALL, "clock": HOURS, "price": DAYS}.items():
        with pytest.raises(SourceUnreadable, match="is declared as"):
            open_table(Policy(Dataset("people"), {name: attribute}), source)


def test_records_and_figures_of_the_owner_are_on_the_grid() -> None:
    rows = {
        "person": ["ann", "bob", "eve"],
        "born": [date(2016, 2, 29), date(1900, 1, 1), None],
        "price": pa.array([Digits("4.976"), Digits("0.024"), None], pa.decimal128(9, 3)),
    }
    policy = Policy(Dataset("people"), {"person": Key(), "born": MONTHS_OR_MISSING, "price": PRICES})
    people = open_table(policy, pa.table(rows))
    assert people.records(["ann", "bob"], ["born", "price"]).columns == {
        "ann": {"born": date(2016, 2, 1), "price": 5},
        "bob": {"born": None, "price": 0},
    }
    prices = [row["price"] for batch in people.batches(["price"]) for row in batch.to_pylist()]
    assert prices == [pytest.approx(4.95 + 0.05), pytest.approx(0), None]
    born = next(column for column in inspect(people).columns if column.name == "born")
    assert (born.missing, born.outside) == (1, {"outside": 1})


def test_no_raw_group_leaves_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[Any] = []
    places = Axis.cells_of

    def watch(axis: Axis, column: Any, **options: Any) -> Any:
        fetched.append(column)
        return places(axis, column, **options)

    monkeypatch.setattr(Axis, "cells_of", watch)
    unlisted = pa.table({"sex": [f"unlisted {n}" for n in range(500)]})
    assert open_table(Policy(Dataset("people"), {"sex": SEX}), unlisted).count(["sex"]).tolist() == [0, 0, 500]
    assert [len(column) for column in fetched] == [1]
    assert all(pa.types.is_int64(column.type) for column in fetched)


def test_sqlite_refuses_types_that_it_cannot_count_exactly(tmp_path: Path) -> None:
    connection = ibis.sqlite.connect()
    connection.con.execute("CREATE TABLE people (price DECIMAL(10, 2), pay INTEGER, sex TEXT)")
    source = connection.table("people")
    with pytest.raises(SourceUnreadable, match="decimal"):
        open_table(Policy(Dataset("people"), {"price": Integer(0, 9)}), source)
    policy = Policy(Dataset("people"), {"pay": Integer(0, 10**8)}, loss=Loss(5))
    with Session(policy, table=source, folder=tmp_path) as session:
        with pytest.raises(Unsupported, match="64-bit"):
            session.answer(mean("pay"), epsilon=1)
        assert not session.account.spent
    wide = ibis.sqlite.connect()
    wide.con.execute("PRAGMA encoding = 'UTF-16'")
    wide.con.execute("CREATE TABLE people (sex TEXT)")
    with pytest.raises(SourceUnreadable, match="UTF-16"):
        open_table(Policy(Dataset("people"), {"sex": SEX}), wide.table("people"))
