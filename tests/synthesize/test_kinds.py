"""Synthetic dates, times, booleans and decimals: real types, on the policy's grid, the same for the same seed."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal as Number
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from ledger.charges import verify_clean

from tidegate.errors import PolicyUnreadable
from tidegate.policy import (
    Attribute,
    Boolean,
    Category,
    Dataset,
    Date,
    Decimal,
    Follows,
    Integer,
    Key,
    Loss,
    Policy,
    Shape,
    Shapes,
    Text,
    Time,
    Timestamp,
    parse_policy,
    write_policy,
)
from tidegate.session import Session
from tidegate.synthesize.columns import column_of, columns_of, values_of
from tidegate.synthesize.quality.codes import encode

ROWS = 2_000
ATTRIBUTES: dict[str, Attribute] = {
    "person": Key(),
    "joined": Date(dt.date(2015, 1, 1), dt.date(2024, 12, 31), missing="value"),
    "born": Date(dt.date(1950, 1, 1), dt.date(1999, 12, 31), "month"),
    "seen": Timestamp(dt.datetime(2024, 1, 1), dt.datetime(2024, 12, 31, 23), "hour", "Europe/Paris"),
    "sent": Timestamp(dt.datetime(2024, 10, 1), dt.datetime(2024, 10, 7), "15-minutes"),
    "opened": Time(dt.time(8), dt.time(20), "30-minutes"),
    "married": Boolean("value"),
    "price": Decimal("0.00", "5.00", "0.05"),
    "town": Category(("north", "south"), "value", "other"),
    "band": Category((1, 2), "dropped", "other"),
    "note": Text(),
    "coupon": Text(64),
}


def people(seed: int = 1) -> pa.Table:
    """Members joined in the second half of the range; the married opened in the morning."""
    draw = random.Random(seed)
    rows = []
    for number in range(ROWS):
        married = draw.choice([True, False, None])
        minutes = draw.randrange(0, 240) if married else draw.randrange(240, 720)
        day = draw.randrange(1_826, 3_653)
        rows.append(
            {
                "person": f"p{number}",
                "joined": draw.choice([None, *[dt.date(2015, 1, 1) + dt.timedelta(day)] * 9]),
                "born": dt.date(1950, 1, 1) + dt.timedelta(draw.randrange(18_000)),
                "seen": dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=draw.randrange(366 * 1_440 - 60)),
                "sent": dt.datetime(2024, 10, 1) + dt.timedelta(seconds=draw.randrange(6 * 86_400)),
                "opened": dt.time(8 + minutes // 60, minutes % 60, 17),
                "married": married,
                "price": Number(draw.randrange(500)) / 100,
                "town": draw.choice(["north", "south", "elsewhere", None]),
                "band": draw.choice([1, 2, 7]),
                "note": f"secret {number}",
                "coupon": f"c{number % 9}",
            }
        )
    kinds = {"price": pa.decimal128(9, 2), "seen": pa.timestamp("us", "UTC"), "sent": pa.timestamp("us")}
    names = list(rows[0])
    return pa.table({name: pa.array([row[name] for row in rows], kinds.get(name)) for name in names})


POLICY = Policy(Dataset("people", rows=ROWS), ATTRIBUTES, None, Loss(1_000))
LEARNED = [name for name in ATTRIBUTES if name not in ("person", "note", "coupon")]


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("kinds")
    with Session(POLICY, table=people(), folder=folder) as session:
        tables = session.synthesize(epsilon=100)
        yield tables, folder, session


def test_synthetic_columns_have_real_types(synthetic: Any) -> None:
    table = synthetic[0][0].to_arrow()
    assert table.column_names == LEARNED
    types = {name: table.schema.field(name).type for name in LEARNED}
    assert types["joined"] == types["born"] == pa.date32()
    assert types["seen"] == pa.timestamp("us", "Europe/Paris")
    assert types["sent"] == pa.timestamp("us")
    assert types["opened"] == pa.time64("us")
    assert types["married"] == pa.bool_()
    assert pa.types.is_decimal(types["price"])
    assert set(table["band"].to_pylist()) == {1, 2, 3}
    assert set(table["town"].to_pylist()) == {"north", "south", "(other)", None}
    frame = synthetic[0][0].to_pandas()
    assert pd.api.types.is_datetime64_any_dtype(frame["joined"])
    assert str(frame["seen"].dt.tz) == "Europe/Paris"
    assert isinstance(frame["opened"].iloc[0], dt.time)
    assert frame["married"].dtype == pd.BooleanDtype()
    assert verify_clean(synthetic[2].ledger).holds


def test_synthetic_values_are_on_the_grid_and_follow_the_original(synthetic: Any) -> None:
    table = synthetic[0][0].to_arrow()
    seen = [moment for moment in table["seen"].to_pylist() if moment is not None]
    assert all((moment.minute, moment.second) == (0, 0) for moment in seen)
    assert all(moment.minute % 15 == moment.second == 0 for moment in table["sent"].to_pylist())
    assert all(moment.minute % 30 == moment.second == 0 for moment in table["opened"].to_pylist())
    assert all(price % Number("0.05") == 0 for price in table["price"].to_pylist())
    joined = [day for day in table["joined"].to_pylist() if day is not None]
    assert np.mean([day >= dt.date(2020, 1, 1) for day in joined]) > 0.97
    assert 0.05 < table["joined"].null_count / ROWS < 0.15
    morning = [row["opened"].hour < 12 for row in table.to_pylist() if row["married"]]
    assert np.mean(morning) > 0.9


def test_notes_name_text_that_is_left_out(synthetic: Any) -> None:
    says = synthetic[0].says()
    assert "note is left out (text)" in says
    assert "coupon is left out (text)" in says
    assert "band is 3 where it is not a listed number" in says


def test_day_inside_a_month_is_uniform_and_follows_the_seed(synthetic: Any) -> None:
    first = synthetic[0][0]
    days = np.array([day.day for day in first.to_arrow()["born"].to_pylist()])
    assert set(range(1, 29)) <= set(days.tolist())
    assert abs(days.mean() - 15.72) < 6 * 8.8 / np.sqrt(ROWS)  # the mean and deviation of a uniform day of a month
    assert first.draw().to_arrow() == first.to_arrow()
    assert first.draw(seed=9).to_arrow() == first.draw(seed=9).to_arrow()
    assert first.draw(seed=9).to_arrow()["born"] != first.to_arrow()["born"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_can_be_read_again_under_the_same_policy(kind: str, synthetic: Any) -> None:
    from tidegate.synthesize.files import write_tables

    tables, folder, _ = synthetic
    [path] = write_tables(tables, folder / kind, kind=kind)
    attributes = {name: ATTRIBUTES[name] for name in LEARNED}
    original = tables[0].to_arrow()
    if kind == "parquet":
        assert pq.read_table(path) == original
    else:
        first = path.read_text("utf-8").splitlines()[1].split(",")
        seen = original["seen"].to_pylist()[0].astimezone(dt.UTC)
        assert first[LEARNED.index("seen")] == f'"{seen:%Y-%m-%dT%H:%M:%SZ}"'
    read = Policy(Dataset("again", str(path), rows=ROWS), attributes, None, Loss(1))
    with Session(read, folder=folder / kind) as session:
        read_again, written = encode(session.table, attributes), encode(original, attributes)
        different = [name for name in attributes if (read_again.column(name) != written.column(name)).any()]
        assert different == []


def test_quality_compares_dates_and_times(synthetic: Any) -> None:
    tables, _, _ = synthetic
    quality = tables.quality(at_most=500)
    margins = {margin.column: margin for margin in quality.margins}
    assert list(margins) == LEARNED
    for name in LEARNED:
        assert margins[name].distance < max(0.1, 2 * margins[name].expected), name
    joined = margins["joined"]
    assert joined.labels[0] == "2015-01-01"  # cells that the model found: the ends of the range alone
    assert margins["opened"].labels[0] == "08:00:00"
    early = [count for label, count in zip(joined.labels, joined.original, strict=True) if label[-10:] < "2020"]
    assert early
    assert sum(early) == 0  # the engine's rows have the same cells


def test_public_cells_of_many_dates_start_at_months_and_days() -> None:
    column = column_of("joined", Date(dt.date(2015, 1, 15), dt.date(2024, 12, 31)), Shape(), adaptive=False)
    assert len(column.starts) == 120
    day = Date(dt.date(2015, 1, 15), dt.date(2024, 12, 31))
    assert {day.label(start).day for start in column.starts[1:]} == {1}
    stamps = Timestamp(dt.date(2024, 1, 1), dt.date(2024, 12, 31), "hour", "Europe/Paris")
    starts = column_of("seen", stamps, Shape(), adaptive=False).starts
    assert len(starts) == 366
    assert {stamps.label(start).hour for start in starts} == {0}
    assert len(column_of("t", Time(dt.time(0), dt.time(23, 59)), Shape(), adaptive=False).starts) == 96
    clamped = column_of(
        "joined", Date(dt.date(2015, 1, 1), dt.date(2024, 12, 31), outside="clamp"), Shape(), adaptive=False
    )
    assert clamped.starts[:2] == (0, 1)  # dates before the range are counted there


@pytest.mark.parametrize("name", LEARNED)
def test_values_of_codes_have_these_codes(name: str) -> None:
    attribute = ATTRIBUTES[name]
    codes = np.arange(min(attribute.size, 9_000))
    within = np.linspace(0, 1, len(codes), endpoint=False)
    values = values_of(attribute, codes, within=within)
    back = encode(pa.table({name: values}), {name: attribute}).codes[:, 0]
    assert (back == codes).all()


def test_date_can_follow_a_category() -> None:
    attributes = {"wave": Category(("a", "b")), "held": Date(dt.date(2024, 1, 1), dt.date(2024, 12, 31))}
    follows = Shapes({}, {"held": Follows("wave", {"a": dt.date(2024, 3, 1), "b": dt.date(2024, 9, 1)})})
    policy = Policy(Dataset("waves", rows=9), attributes, None, Loss(1), synthesis=follows)
    assert parse_policy(write_policy(policy)) == policy
    table = columns_of(policy).to_arrow(np.array([[0], [1]]))
    assert table["held"].to_pylist() == [dt.date(2024, 3, 1), dt.date(2024, 9, 1)]
    wrong = Shapes({}, {"held": Follows("wave", {"a": dt.date(2024, 3, 1), "b": dt.date(2025, 9, 1)})})
    with pytest.raises(PolicyUnreadable, match="cannot have"):
        Policy(Dataset("waves"), attributes, None, Loss(1), synthesis=wrong)


def test_settings_of_numbers_are_refused_for_dates() -> None:
    attributes = {"held": Date(dt.date(2024, 1, 1), dt.date(2024, 12, 31)), "age": Integer(0, 9)}
    for shape in (Shape("log"), Shape(edges=(3,)), Shape(atoms=(3,))):
        with pytest.raises(PolicyUnreadable, match="write `cells` for dates and times"):
            Policy(Dataset("waves"), attributes, None, Loss(1), synthesis=Shapes({"held": shape}))
    assert column_of("held", attributes["held"], Shape(cells=4)).starts == (0, 91, 183, 274)


def test_csv_is_read_back_by_arrow(synthetic: Any) -> None:
    """Other programs read the texts as dates and times."""
    from tidegate.synthesize.files import write_tables

    tables, folder, _ = synthetic
    [path] = write_tables(tables, folder / "other", kind="csv")
    read = pa_csv.read_csv(path)
    assert read.schema.field("joined").type == pa.date32()
    assert pa.types.is_timestamp(read.schema.field("seen").type)
    assert pa.types.is_time(read.schema.field("opened").type)
