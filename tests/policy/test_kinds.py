"""Kinds of columns: their universes, labels, files and refusals."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from decimal import Decimal as Digits
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tidegate.errors import PolicyUnreadable, Unsupported
from tidegate.exact import plain
from tidegate.policy import (
    Attribute,
    Boolean,
    Category,
    Dataset,
    Date,
    Decimal,
    Grid,
    Identification,
    Integer,
    Policy,
    Text,
    Time,
    Timestamp,
    parse_policy,
    read_policy,
    write_policy,
)
from tidegate.policy.predicates import col, holds
from tidegate.policy.toml import policy_from_dict

FILE = """
version = 2
[dataset]
name = "people"
unit = "row"
[attributes]
joined     = { kind = "date", from = 2015-01-01, to = 2024-12-31, grid = "day" }
born       = { kind = "date", from = 1930-05-17, to = 2024-02-29, grid = "quarter", outside = "clamp", missing = "value" }
ordered_at = { kind = "timestamp", from = 2023-01-01, to = 2024-12-31, grid = "hour", zone = "Europe/Paris" }
seen       = { kind = "timestamp", from = 2023-01-01T10:07:00, to = 2023-01-02, grid = "15-minutes", missing = "lowest" }
opened     = { kind = "time", from = 08:00:00, to = 20:00:00, grid = "15-minutes" }
married    = { kind = "boolean", missing = "value" }
price      = { kind = "decimal", from = "0.00", to = "500.00", step = "0.01", bins = ["20", "100"] }
town       = { kind = "category", values = ["Aby", "Berg"], outside = "other" }
age        = { kind = "integer", from = 0, to = 99, outside = "missing" }
coupon     = { kind = "text", buckets = 64 }
note       = { kind = "text" }
"""
POLICY = parse_policy(FILE)
SIZES = {
    "joined": 3653, "born": 376, "ordered_at": 731 * 24, "seen": 56 + 96, "opened": 49, "married": 2, "price": 50_001,
    "town": 3, "age": 100, "coupon": 64, "note": 0,
}  # fmt: skip


def people(**attributes: Attribute) -> Policy:
    return Policy(Dataset("people"), attributes)


def test_policy_with_every_kind_is_written_and_stored_without_loss() -> None:
    assert {name: attribute.size for name, attribute in POLICY.attributes.items()} == SIZES
    assert parse_policy(write_policy(POLICY)) == POLICY
    stored = policy_from_dict(json.loads(json.dumps(POLICY.public_dict())))
    assert stored == POLICY
    assert stored.fingerprint == POLICY.fingerprint


def test_settings_equal_to_their_default_are_not_written() -> None:
    assert Integer(0, 9).to_dict() == {"kind": "integer", "from": 0, "to": 9, "missing": "dropped"}
    assert Grid(0, 1, "0.5").to_dict() == {
        "kind": "grid", "from": 0, "to": 1, "step": Digits("0.5"), "missing": "dropped"
    }  # fmt: skip
    assert Category(("a",)).to_dict() == {"kind": "category", "values": ["a"], "missing": "dropped"}


@pytest.mark.parametrize("name", SIZES)
def test_labels_are_the_label_of_every_code(name: str) -> None:
    attribute = POLICY.attribute(name)
    assert attribute.labels() == [attribute.label(code) for code in range(attribute.size)]


@given(st.fractions(-1000, 1000, max_denominator=64), st.fractions(Fraction(1, 200), 50), st.integers(1, 40))
def test_labels_of_a_grid_are_its_values_as_people_write_them(low: Fraction, step: Fraction, count: int) -> None:
    grid = Grid(low, low + count * step, step)
    assert grid.labels() == [plain(grid.value(code)) for code in range(grid.size)]
    assert [str(label) for label in grid.labels()] == [str(plain(grid.value(code))) for code in range(grid.size)]


GRIDS = {
    "day": dt.date(2015, 1, 7),
    "week": dt.date(2015, 1, 5),
    "month": dt.date(2015, 1, 1),
    "quarter": dt.date(2015, 1, 1),
    "year": dt.date(2015, 1, 1),
}


@pytest.mark.parametrize("grid", GRIDS)
def test_date_is_widened_to_whole_cells(grid: Any) -> None:
    attribute = Date(dt.date(2015, 1, 7), dt.date(2020, 12, 31), grid)
    labels = attribute.labels()
    assert attribute.first == labels[0] == GRIDS[grid]
    assert labels == sorted(set(labels))
    assert labels[-1] <= dt.date(2020, 12, 31) <= attribute.last
    assert attribute.last == (dt.date(2021, 1, 3) if grid == "week" else dt.date(2020, 12, 31))  # a week 53
    assert Date(attribute.first, attribute.last, grid) == attribute
    if grid == "week":
        assert {label.isoweekday() for label in labels} == {1}
        assert labels[-1].isocalendar()[:2] == (2020, 53)


@given(
    st.sampled_from(list(GRIDS)),
    st.dates(),
    st.dates(),
    st.floats(-1e12, 1e12),
)
def test_dates_of_all_years_have_labels_and_positions(grid: Any, one_end: dt.date, other: dt.date, mean: float) -> None:
    attribute = Date(min(one_end, other), max(one_end, other), grid)
    for code in (0, attribute.size // 2, attribute.size - 1):
        assert attribute.position(attribute.label(code)) == code
    assert attribute.first <= min(one_end, other) <= max(one_end, other) <= attribute.last
    assert isinstance(attribute.shown(mean), dt.date)


def test_mean_of_dates_is_a_date() -> None:
    days = Date("2024-02-28", "2024-03-31")  # type: ignore[arg-type]
    assert days.shown(Fraction(1)) == dt.date(2024, 2, 29)
    assert days.shown(1.5) == dt.date(2024, 3, 1)
    months = Date("2024-01-01", "2024-12-31", "month")  # type: ignore[arg-type]
    assert months.shown(1.5) == dt.date(2024, 2, 16)  # the middle of a February of 29 days
    hours = Timestamp("2024-03-31", "2024-03-31", "hour", "Europe/Paris")  # type: ignore[arg-type]
    assert hours.shown(2.5) == dt.datetime(2024, 3, 31, 3, 30)  # 02:30 does not exist on this day
    assert Time("08:00", "10:00", "hour").shown(0.25) == dt.time(8, 15)  # type: ignore[arg-type]
    assert Integer(0, 9).shown(2.5) == 2.5


ZONES = [
    ("Europe/Paris", "hour"), ("America/New_York", "hour"), ("Asia/Kolkata", "30-minutes"), ("Asia/Kathmandu", "15-minutes"),
    ("Australia/Lord_Howe", "30-minutes"), ("America/St_Johns", "30-minutes"), ("Pacific/Apia", "hour"), ("UTC", "minute"),
]  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("zone", "grid"), ZONES)
def test_labels_of_a_zone_are_those_of_zoneinfo(zone: str, grid: Any) -> None:
    attribute = Timestamp(dt.date(2024, 3, 1), dt.date(2024, 11, 30), grid, zone)  # type: ignore[arg-type]
    own = ZoneInfo(zone)
    start = dt.datetime(2024, 3, 1, tzinfo=own).astimezone(dt.UTC)
    end = dt.datetime(2024, 12, 1, tzinfo=own).astimezone(dt.UTC)
    step = dt.timedelta(seconds=attribute.step)
    assert attribute.size == (end - start) // step
    labels = [(start + code * step).astimezone(own).replace(tzinfo=None) for code in range(attribute.size)]
    assert attribute.labels() == labels
    assert attribute.label(attribute.size - 1) == labels[-1]


def test_both_changes_of_the_clock_are_in_the_labels() -> None:
    spring = Timestamp("2024-03-31", "2024-03-31", "hour", "Europe/Paris")  # type: ignore[arg-type]
    autumn = Timestamp("2024-10-27", "2024-10-27", "hour", "Europe/Paris")  # type: ignore[arg-type]
    assert [label.hour for label in spring.labels()] == [0, 1, *range(3, 24)]
    assert [label.hour for label in autumn.labels()] == [0, 1, 2, 2, *range(3, 24)]
    assert autumn.position("2024-10-27 02:00") == 2  # the first of the two
    assert autumn.position("2024-10-27 02:00+01:00") == 3
    written = Timestamp(autumn.first + dt.timedelta(hours=3), autumn.last, "hour", "Europe/Paris")
    assert read_back(written) == written  # the second 02:00 stays the second


@pytest.mark.parametrize("zone", ["Europe/Paris", "America/New_York"])
def test_first_and_last_hours_of_the_calendar_are_points_in_time(zone: str) -> None:
    hours = Timestamp("2024-03-01", "2024-03-31", "hour", zone)  # type: ignore[arg-type]
    first, last = hours.position("0001-01-01"), hours.position("9999-12-31 23:59")
    assert first is not None
    assert last is not None
    assert first < 0
    assert last > hours.size


def read_back(attribute: Attribute) -> Attribute:
    policy = people(x=attribute)
    assert policy_from_dict(json.loads(json.dumps(policy.public_dict()))) == policy
    return parse_policy(write_policy(policy)).attribute("x")


@pytest.mark.parametrize(
    ("zone", "grid", "fitting"),
    [("Asia/Kolkata", "hour", "30-minutes"), ("Asia/Kathmandu", "30-minutes", "15-minutes"), ("America/St_Johns", "hour", "30-minutes")],
)  # fmt: skip
def test_zone_between_the_cells_of_the_grid_is_refused(zone: str, grid: Any, fitting: str) -> None:
    with pytest.raises(PolicyUnreadable, match="parts of the grid") as caught:
        Timestamp(dt.date(2024, 1, 1), dt.date(2024, 12, 31), grid, zone)  # type: ignore[arg-type]
    assert fitting in str(caught.value)


REFUSED = {
    "a grid of hours for a date": 'kind = "date", from = 2015-01-01, to = 2024-12-31, grid = "hour"',
    "a date that does not exist": 'kind = "date", from = "2015-02-30", to = 2024-12-31',
    "ends in the wrong order": 'kind = "date", from = 2015-01-01, to = 2014-12-31',
    "a time as a date": 'kind = "date", from = 2015-01-01T10:00:00, to = 2024-12-31',
    "a number as a date": 'kind = "date", from = 2015, to = 2024',
    "dates in a value of their own": 'kind = "date", from = 2015-01-01, to = 2024-12-31, outside = "other"',
    "an unknown zone": 'kind = "timestamp", from = 2015-01-01, to = 2024-12-31, grid = "hour", zone = "Europe/Atlantis"',
    "a path as a zone": 'kind = "timestamp", from = 2015-01-01, to = 2024-12-31, grid = "hour", zone = "../etc"',
    "an offset without a zone": 'kind = "timestamp", from = 2015-01-01T00:00:00Z, to = 2024-12-31, grid = "hour"',
    "a timestamp without a grid": 'kind = "timestamp", from = 2015-01-01, to = 2024-12-31',
    "a time of a day as a timestamp": 'kind = "timestamp", from = 10:00:00, to = 11:00:00, grid = "hour"',
    "a date as a time of day": 'kind = "time", from = 2015-01-01, to = 2024-12-31, grid = "hour"',
    "times in the wrong order": 'kind = "time", from = 10:00:00, to = 09:00:00, grid = "hour"',
    "a boolean with a lowest value": 'kind = "boolean", missing = "lowest"',
    "a boolean with other values": 'kind = "boolean", outside = "other"',
    "a decimal that is no decimal": 'kind = "decimal", from = 0, to = 1, step = "1/3"',
    "a decimal of too many digits": 'kind = "decimal", from = 0, to = "1e20", step = 1',
    "a category that is clamped": 'kind = "category", values = ["a"], outside = "clamp"',
    "a category that lists (other) first": 'kind = "category", values = ["(other)", "a"], outside = "other"',
    "a category without a list": 'kind = "category"',
    "a list and a file": 'kind = "category", values = ["a"], values_from = "a.csv", column = "a"',
    "a file without a column": 'kind = "category", values_from = "a.csv"',
    "a file that does not exist": 'kind = "category", values_from = "nowhere.csv", column = "a"',
    "text without buckets": 'kind = "text", buckets = 0',
    "text with too many buckets": 'kind = "text", buckets = 1048577',
    "numbers in a value of their own": 'kind = "integer", from = 0, to = 9, outside = "other"',
}


@pytest.mark.parametrize("case", REFUSED)
def test_meaningless_column_is_refused(case: str) -> None:
    head = FILE.partition("[attributes]")[0]
    with pytest.raises(PolicyUnreadable):
        parse_policy(f"{head}[attributes]\nx = {{ {REFUSED[case]} }}\n")


def test_values_come_from_a_public_file_beside_the_policy(tmp_path: Path) -> None:
    content = '\ufeffcode,name\nA01,Typhoid\nA02,"Other, salmonella"\nA01,again\n,none\nÅ3,x\n'.encode()
    (tmp_path / "icd10.csv").write_bytes(content)
    head = FILE.partition("[attributes]")[0]
    line = 'diagnosis = { kind = "category", values_from = "icd10.csv", column = "code" }'
    path = tmp_path / "people.toml"
    path.write_text(f"{head}[attributes]\n{line}\n", "utf-8")
    policy = read_policy(path)
    diagnosis = policy.attribute("diagnosis")
    assert isinstance(diagnosis, Category)
    assert diagnosis.values == ("A01", "A02", "Å3")
    assert diagnosis.to_dict()["sha256"] == hashlib.sha256(content).hexdigest()
    assert read_back(diagnosis) == diagnosis  # the ledger does not need the file
    (tmp_path / "icd10.csv").write_bytes(content.replace(b"Typhoid", b"Fever"))
    assert read_policy(path).fingerprint != policy.fingerprint
    for wrong in ("code\n\n", "name\nTyphoid\n", 'code\n"A01\n'):
        (tmp_path / "icd10.csv").write_text(wrong, "utf-8")
        with pytest.raises(PolicyUnreadable):
            read_policy(path)


def test_other_is_the_last_value_of_a_category() -> None:
    town = POLICY.attribute("town")
    assert isinstance(town, Category)
    assert (town.labels(), town.listed, town.cells) == (["Aby", "Berg", "(other)"], ("Aby", "Berg"), 3)
    assert Category((1, 2), outside="other").labels() == [1, 2, "(other)"]
    assert Category((1, 2), outside="other").value_type is int


def test_text_without_a_list_cannot_be_protected_and_text_without_buckets_not_be_grouped() -> None:
    for text in (Text(), Text(64)):
        with pytest.raises(PolicyUnreadable, match="number of its values"):
            Policy(Dataset("people"), {"note": text}, Identification("0.5", protect=("note",)))
    with pytest.raises(Unsupported, match="without a list of values or buckets"):
        POLICY.countable("note")
    col("note").missing().check(POLICY)
    assert Text(64).bucket("SUMMER") == int(hashlib.md5(b"SUMMER").hexdigest()[:8], 16) % 64


COMPARED = [
    (col("joined") >= "2024-12-31", "joined", {3651: False, 3652: True}),
    (col("joined") >= dt.date(2024, 12, 31), "joined", {3651: False, 3652: True}),
    (col("joined") == dt.date(2016, 2, 29), "joined", {424: True, 425: False}),
    (col("joined") > "2024-12-30 12:00", "joined", {3651: False, 3652: True}),
    (col("joined") < "1000-01-01", "joined", {0: False}),
    (col("joined") >= "1000-01-01", "joined", {0: True, 3652: True}),
    (col("joined") != "2030-01-01", "joined", {0: True}),
    (col("born") >= "1930-04-02", "born", {0: False, 1: True}),  # a quarter is its first day
    (col("ordered_at") < "2023-01-01 02:00", "ordered_at", {1: True, 2: False}),
    (col("ordered_at") < dt.datetime(2023, 1, 1, 1, tzinfo=dt.UTC), "ordered_at", {1: True, 2: False}),
    (col("opened") >= dt.time(8, 10), "opened", {0: False, 1: True}),
    (col("married") == True, "married", {0: False, 1: True}),  # noqa: E712
    (col("price") > Digits("0.01"), "price", {1: False, 2: True}),
    (col("town") == "(other)", "town", {1: False, 2: True}),
    (col("coupon") == "SUMMER", "coupon", {Text(64).bucket("SUMMER"): True, (Text(64).bucket("SUMMER") + 1) % 64: False}),
    (col("coupon") != 63, "coupon", {62: True, 63: False}),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "column", "expected"), COMPARED, ids=lambda value: str(value)[:60])
def test_comparison_with_values_is_one_of_codes(condition: Any, column: str, expected: dict[int, bool]) -> None:
    condition.check(POLICY)
    assert {code: holds(condition, POLICY, {column: code}) for code in expected} == expected
    assert holds(condition, POLICY, {column: None}) is None
    assert json.loads(json.dumps(condition.identity())) == condition.identity()


@pytest.mark.parametrize(
    "condition",
    [
        col("joined") >= 5, col("joined") >= "2024-1-1", col("joined") >= "2024-02-30", col("joined") >= "20240101",
        col("joined") >= "now", col("joined") == True, col("opened") >= "2024-01-01", col("ordered_at") >= "later",  # noqa: E712
        col("seen") >= "2024-01-01 00:00Z", col("married") > False, col("married") == "true", col("town") == "berg",
        col("price") > "much", col("coupon") > "a", col("coupon") == 64, col("coupon") == True, col("note") == "x",  # noqa: E712
    ],
    ids=lambda condition: condition.says(),
)  # fmt: skip
def test_comparison_with_another_kind_is_refused(condition: Any) -> None:
    with pytest.raises(Unsupported):
        condition.check(POLICY)


def test_dates_and_their_text_are_the_same_condition() -> None:
    assert (col("joined") >= dt.date(2020, 1, 1)).identity() == (col("joined") >= "2020-01-01").identity()


def test_kinds_are_public_names() -> None:
    assert tg.Date is Date
    assert tg.Boolean().labels() == [False, True]
    assert tg.Decimal("0.00", "5.00", "0.01").label(250) == Digits("2.5")
    assert (tg.Timestamp, tg.Time, tg.Text, tg.Decimal) == (Timestamp, Time, Text, Decimal)
    assert Boolean() != Category((False, True))


@pytest.mark.parametrize("column", ["joined", "seen", "opened"])
def test_bins_of_dates_are_refused_with_the_grid_as_the_way(column: str) -> None:
    start = FILE.index(f"\n{column} ")
    text = FILE[:start] + FILE[start:].replace(" }", ", bins = [2020-01-01] }", 1)
    with pytest.raises(PolicyUnreadable, match=rf"attributes.{column}.bins: dates and times have no bins") as refusal:
        parse_policy(text)
    assert "Choose a coarser" in refusal.value.do
