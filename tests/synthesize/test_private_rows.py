"""Counts of private rows: on every engine, in memory and inside it, those of a plain loop over hostile rows."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reference.tables import code_of
from support.databases import create_database

from tidegate.policy import (
    Attribute,
    Category,
    Dataset,
    Date,
    Decimal,
    EachPerson,
    Gap,
    Grid,
    Integer,
    Key,
    Loss,
    Order,
    Policy,
    Shapes,
    Timestamp,
)
from tidegate.synthesize import private_rows
from tidegate.synthesize.columns import Columns, columns_of
from tidegate.synthesize.facts import Column
from tidegate.synthesize.private_rows import ArrayRows, EngineRows
from tidegate.tables import Table, open_table
from tidegate.tables import codes as table_codes

ROWS = 300
DAY = dt.date(2020, 1, 1)
ATTRIBUTES: dict[str, Attribute] = {
    "person": Key(),
    "admitted": Date(DAY, dt.date(2020, 12, 31), missing="value"),
    "operated": Date(dt.date(2020, 2, 1), dt.date(2021, 6, 30), missing="value"),
    "discharged": Date(dt.date(2019, 6, 1), dt.date(2021, 12, 31), outside="clamp"),
    "low": Integer(-5, 500),
    "high": Integer(0, 900, missing="value"),
    "first": Grid("0.5", "200", "0.25", missing="value", outside="missing"),
    "last": Grid("-1", "300", "0.25", missing="value"),
    "paid": Decimal("0.00", "5.00", "0.05", missing="lowest"),
    "owed": Decimal("0.00", "9.00", "0.05"),
    "opened": Timestamp(dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 20), "hour"),
    "closed": Timestamp(dt.datetime(2024, 1, 3), dt.datetime(2024, 1, 25), "hour", missing="value"),
    "town": Category(("Aby", "Berg", "Ceder"), "value"),
}
ORDERS = {
    "operated": Order("admitted", "refuse"),
    "discharged": Order("operated", "clip"),
    "high": Order("low", "refuse"),
    "last": Order("first", "clip"),
    "owed": Order("paid", "refuse"),
    "closed": Order("opened", "refuse"),
}


def policy(*, persons: bool = False) -> Policy:
    unit = {"unit": EachPerson("person", 2)} if persons else {}
    return Policy(Dataset("clinic", **unit), ATTRIBUTES, None, Loss(1), synthesis=Shapes(orders=ORDERS))


@cache
def hostile_rows() -> list[dict[str, Any]]:
    """Rows with missing ends, values far outside, on the bounds, between two steps, and in the wrong order."""
    draw = random.Random(3)

    def day() -> dt.date | None:
        edges = [None, dt.date(1, 1, 1), dt.date(9999, 12, 31), DAY, dt.date(2020, 12, 31), dt.date(2021, 12, 31)]
        return draw.choice([*edges, *(DAY + dt.timedelta(draw.randrange(-90, 800)) for _ in range(9))])

    def whole() -> int | None:
        return draw.choice([None, -(2**63), 2**63 - 1, -6, -5, 0, 500, 900, 901, *(draw.randrange(900),) * 5])

    def real() -> float | None:
        odd = [None, float("nan"), float("inf"), float("-inf"), -1.0, 0.5, 0.625, 200.0, 200.25, 300.0, 1e300]
        return draw.choice([*odd, *(draw.uniform(0, 200) for _ in range(9))])

    def moment() -> dt.datetime | None:
        near = dt.datetime(2024, 1, 1) + dt.timedelta(minutes=draw.randrange(-3_000, 36_000))
        return draw.choice([None, dt.datetime(1970, 1, 1), dt.datetime(2200, 1, 1), near, near, near, near])

    return [
        {
            "person": draw.choice([None, *(f"p{n}" for n in range(120))]),
            **{name: day() for name in ("admitted", "operated", "discharged")},
            **{name: whole() for name in ("low", "high")},
            **{name: real() for name in ("first", "last", "paid", "owed")},
            **{name: moment() for name in ("opened", "closed")},
            "town": draw.choice(["Aby", "Berg", "Ceder", "aby", None]),
        }
        for _ in range(ROWS)
    ]


def position(value: Any, attribute: Any) -> int | None:
    """Return where a stored value is on the common grid of its kind, None if it is missing."""
    if isinstance(attribute, Date):
        if value is not None and attribute.outside == "clamp":
            value = min(max(value, attribute.first), attribute.last)
        return value.toordinal() if value is not None and attribute.first <= value <= attribute.last else None
    if isinstance(attribute, Timestamp):
        hour = None if value is None else value.replace(minute=0, second=0)
        inside = hour is not None and attribute.first <= hour <= attribute.last
        return int((hour - dt.datetime(2000, 1, 1)).total_seconds()) // 3_600 if inside else None
    outside = getattr(attribute, "outside", "") == "missing"
    if outside and value is not None and not float(attribute.low) <= value <= float(attribute.high):
        return None
    code = code_of(value, attribute)
    return None if code is None else code + int(attribute.low / attribute.width)


def expected_code(row: dict[str, Any], column: Column) -> int:
    """Return a row's code by the definitions of the guide, -1 if the row is left out of the column's counts."""
    gaps = {f"{end} - {order.after}": (order.after, end, order.missing) for end, order in ORDERS.items()}
    if column.name not in gaps:
        attribute: Any = ATTRIBUTES[column.name]
        if isinstance(attribute, Category):
            code = code_of(row[column.name], attribute)
        else:
            at = position(row[column.name], attribute)
            code = None if at is None else at - lowest(attribute)
        return code if code is not None else column.size if attribute.missing == "value" else -1
    start, end, reverse = gaps[column.name]
    lower, upper = ATTRIBUTES[start], ATTRIBUTES[end]
    from_, to = position(row[start], lower), position(row[end], upper)
    missing = column.size if upper.missing == "value" else -1  # type: ignore[attr-defined]
    if to is None:
        return missing
    if from_ is None:
        return missing if lower.missing == "value" else -1  # type: ignore[attr-defined]
    return to - from_ if to >= from_ else 0 if reverse == "clip" else -1


def lowest(attribute: Any) -> int:
    if isinstance(attribute, Date):
        return int(attribute.first.toordinal())
    if isinstance(attribute, Timestamp):
        return int((attribute.first - dt.datetime(2000, 1, 1)).total_seconds()) // 3_600
    return int(attribute.low / attribute.width)


@cache
def arrow() -> pa.Table:
    schema = pa.schema(
        {
            "person": pa.string(),
            **dict.fromkeys(("admitted", "operated", "discharged"), pa.date32()),
            **dict.fromkeys(("low", "high"), pa.int64()),
            **dict.fromkeys(("first", "last", "paid", "owed"), pa.float64()),
            **dict.fromkeys(("opened", "closed"), pa.timestamp("us")),
            "town": pa.string(),
        }
    )
    return pa.Table.from_pylist(hostile_rows(), schema=schema)


Open = Callable[[Policy], Table]


@pytest.fixture(scope="module")
def postgres_clinic(postgres_server: Any) -> str:
    url = create_database(postgres_server, f"t{uuid.uuid4().hex[:12]}")
    kinds = {"string": "text", "int64": "bigint", "double": "double precision", "date32[day]": "date"}
    columns = ", ".join(f'"{field.name}" {kinds.get(str(field.type), "timestamp")}' for field in arrow().schema)
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE clinic ({columns})")
        with cursor.copy("COPY clinic FROM STDIN") as copy:
            for row in hostile_rows():
                copy.write_row([row[name] for name in arrow().column_names])
    return f"{url}&table=clinic"


@pytest.fixture(params=["duckdb", "postgres", "sqlite", pytest.param("spark", marks=pytest.mark.spark)])
def on_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """How to open the clinic on one engine."""
    if request.param == "duckdb":
        return lambda policy: open_table(policy, arrow())
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_clinic")
        return lambda policy: open_table(policy, url)
    if request.param == "sqlite":
        connection = ibis.sqlite.connect()
        kinds = {"string": "TEXT", "int64": "BIGINT", "double": "DOUBLE"}
        columns = ", ".join(f'"{field.name}" {kinds.get(str(field.type), "TEXT")}' for field in arrow().schema)
        connection.con.execute(f"CREATE TABLE clinic ({columns})")
        stored = [[_in_sqlite(row[name]) for name in arrow().column_names] for row in hostile_rows()]
        connection.con.executemany(f"INSERT INTO clinic VALUES ({', '.join('?' * arrow().num_columns)})", stored)
        return lambda policy: open_table(policy, connection.table("clinic"))
    request.getfixturevalue("spark")
    path = tmp_path / "clinic.parquet"
    pq.write_table(arrow(), path, coerce_timestamps="us")
    return lambda policy: open_table(policy, f"spark://local[2]?parquet={path}")


def _in_sqlite(value: Any) -> Any:
    return (
        value.isoformat(" ") if isinstance(value, dt.datetime) else str(value) if isinstance(value, dt.date) else value
    )


def expected_rows(columns: Columns) -> ArrayRows:
    codes = [[expected_code(row, column) for column in columns.learnt] for row in hostile_rows()]
    return ArrayRows(np.array(codes), columns.learnt)


def coarser(column: Column) -> Column:
    """Return the column on arbitrary other cells, as levels and groups of a model have them."""
    draw = random.Random(column.name)
    cuts = {draw.randrange(column.size) for _ in range(min(column.size, 12))}
    return replace(column, starts=tuple(sorted({0, *cuts})))


@pytest.mark.long_for("sqlite-False")  # compiles its queries for 8 s
@pytest.mark.parametrize("in_memory", [True, False])
def test_engines_count_gaps_and_arbitrary_cells_like_a_loop(on_engine: Open, in_memory: bool) -> None:
    columns = columns_of(policy())
    assert {column.name for column in columns.learnt if " - " in column.name} == {
        f"{end} - {order.after}" for end, order in ORDERS.items()
    }
    rows = EngineRows(on_engine(policy()), columns.learnt if in_memory else ())
    assert bool(rows._in_memory) == in_memory
    expected = expected_rows(columns)
    shown = [coarser(column) for column in columns.learnt]
    gaps = [column for column in shown if " - " in column.name]
    for column in (*shown, *columns.learnt) if in_memory else gaps[1:4]:
        assert rows.margin(column).tolist() == expected.margin(column).tolist(), column.name
    pairs = [(i, i + 1) for i in range(len(shown) - 1)] + [(i + 1, i) for i in range(len(shown) - 1)]
    for i, j in pairs if in_memory else pairs[:2]:
        assert (rows.pair(shown[i], shown[j]) == expected.pair(shown[i], shown[j])).all()
    pairs = pairs if in_memory else pairs[::6]
    assert rows.explained(shown, pairs).tolist() == expected.explained(shown, pairs).tolist()
    gap = next(column for column in columns.learnt if column.name == "high - low")
    assert (rows.places(gap) == expected.places(gap)).all()
    codes = np.array(sorted(map(tuple, rows.codes(columns.learnt).tolist())))
    assert (codes == np.array(sorted(map(tuple, expected.codes(columns.learnt).tolist())))).all()


def test_gaps_contain_every_case() -> None:
    """The comparison above would prove nothing if the rows had no reversed, missing or clipped gaps."""
    columns = columns_of(policy())
    codes = expected_rows(columns).codes(columns.learnt)
    for index, column in enumerate(columns.learnt):
        if " - " in column.name:
            assert (codes[:, index] == 0).any() or column.name == "closed - opened"
            assert ((codes[:, index] > 0) & (codes[:, index] < column.size)).any()
            assert (codes[:, index] < 0).any() or column.name == "last - first"
            assert (codes[:, index] == column.size).any() == column.missing


def test_planted_fault_in_the_order_of_columns_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = columns_of(policy())
    gap = next(column for column in columns.learnt if column.name == "high - low")
    expected = expected_rows(columns).margin(gap).tolist()
    monkeypatch.setattr(table_codes, "NO_GAP", -1)  # rows in the wrong order become missing
    assert EngineRows(open_table(policy(), arrow())).margin(gap).tolist() != expected


def test_counts_of_persons_are_bounded_before_gaps_are_computed(on_engine: Open) -> None:
    columns = columns_of(policy(persons=True))
    table = on_engine(policy(persons=True))
    gap = next(column for column in columns.learnt if column.name == "high - low")
    inside, memory = EngineRows(table), EngineRows(table, columns.learnt)
    assert inside.margin(gap).tolist() == memory.margin(gap).tolist()
    town = columns.learnt[-1]
    assert inside.margin(town).sum() == table.size < ROWS


@pytest.mark.long  # test_links.py and test_run.py replace rows and persons
def test_one_row_moves_the_counts_of_a_gap_by_one_row() -> None:
    """A gap is a function of its row: removing a row removes at most one from one cell."""
    columns = columns_of(policy())
    stored = arrow()
    whole = EngineRows(open_table(policy(), stored), columns.learnt)
    for left_out in range(0, ROWS, 29):
        others = pa.concat_tables([stored.slice(0, left_out), stored.slice(left_out + 1)])
        rows = EngineRows(open_table(policy(), others), columns.learnt)
        for column in columns.learnt:
            difference = whole.margin(column) - rows.margin(column)
            assert difference.min() >= 0
            assert difference.sum() <= 1


def test_larger_tables_are_counted_by_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = columns_of(policy())
    monkeypatch.setattr(private_rows, "MOST_BYTES", ROWS * 2)
    rows = EngineRows(open_table(policy(), arrow()), columns.learnt)
    assert rows._in_memory is None
    assert rows.margin(columns.learnt[-1]).sum() == ROWS


@pytest.mark.long_for("sqlite")  # the next test compiles one of the gaps
def test_engine_compiles_gaps_on_a_table_without_rows(on_engine: Open) -> None:
    columns = columns_of(policy())
    EngineRows(on_engine(policy()).without_rows()).rehearse(columns.learnt)


def test_synthetic_rows_keep_every_order() -> None:
    """Codes that no row has, with missing ones and both bounds, still become rows in the declared order."""
    columns = columns_of(policy())
    draw = np.random.default_rng(1)
    codes = np.column_stack(
        [
            np.where(draw.random(4_000) < 0.2, draw.choice([0, column.size - 1], 4_000), draw.integers(0, column.size + column.missing, 4_000))
            for column in columns.learnt
        ]
    )  # fmt: skip
    table = columns.to_arrow(codes, seed=4)
    assert table.column_names == [name for name in ATTRIBUTES if name != "person"]
    for end, order in ORDERS.items():
        pairs = list(zip(table[order.after].to_pylist(), table[end].to_pylist(), strict=True))
        present = [(start, finish) for start, finish in pairs if start is not None and finish is not None]
        assert len(present) > 1_000
        assert all(start <= finish for start, finish in present), end
        assert all(finish is None for start, finish in pairs if start is None), end
        gap: Any = next(gap for gap in columns.gaps.values() if gap.end == end)
        assert isinstance(gap, Gap)
        assert {finish for _, finish in present} <= set(ATTRIBUTES[end].labels()) or end in ("last", "owed")
