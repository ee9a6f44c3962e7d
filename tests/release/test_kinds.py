"""Released records of dates, times and decimals: they leave at the grid of the policy and never finer."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal as Number
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.errors import PolicyUnreadable
from tidegate.policy import (
    Attribute,
    Boolean,
    Category,
    Concealment,
    Dataset,
    Date,
    Decimal,
    Integer,
    Key,
    Policy,
    Text,
    Time,
    Timestamp,
)
from tidegate.release.result import Released

ROWS = 60
COLUMNS: dict[str, Attribute] = {
    "name": Key(),
    "joined": Date(dt.date(2024, 1, 1), dt.date(2024, 12, 31), "quarter"),
    "seen": Timestamp(dt.datetime(2024, 10, 27), dt.datetime(2024, 10, 27, 3), "hour", "Europe/Paris"),
    "opened": Time(dt.time(8), dt.time(11), "hour"),
    "price": Decimal("0.00", "1.00", "0.25", ["0.50"]),
    "married": Boolean(),
    "note": Text(),
    "ward": Category(("A", "B")),
}
TRUE = {
    "joined": [dt.date(2024, 1 + n % 12, 17) for n in range(ROWS)],
    "seen": [dt.datetime(2024, 10, 27, n % 4, 41, 13, tzinfo=dt.UTC) for n in range(ROWS)],
    "opened": [dt.time(8 + n % 4, 37, 11) for n in range(ROWS)],
    "price": [Number(n % 100) / 100 for n in range(ROWS)],
    "married": [n % 3 == 0 for n in range(ROWS)],
    "note": [f"secret {n}" for n in range(ROWS)],
}
TABLE = pa.table({"name": [f"p{n}" for n in range(ROWS)], **TRUE, "ward": ["A", "B"] * (ROWS // 2)})


def released(folder: Path, column: str, **options: Any) -> dict[str, dict[str, Any]]:
    """Return the records that leave through a promise about one column; its test is so lenient that some do."""
    attributes = {name: COLUMNS[name] for name in ("name", column, "ward")}
    cells = attributes[column].cells
    promise = Concealment(
        reveals=column,
        about="ward",
        releases=("name", column, "ward"),
        tests="chi-square",
        significance="0.01",
        baseline=[1] * cells,
        **options,
    )
    policy = Policy(Dataset("people", rows=ROWS), attributes, concealments={"hidden": promise})
    with tg.open(policy, table=TABLE, ledger=str(folder / "people.ledger")) as session:
        outcomes = session.release("hidden").request_many([f"p{n}" for n in range(ROWS)])
        records = {key: outcome.record for key, outcome in outcomes.items() if isinstance(outcome, Released)}
    assert len(records) > 5
    assert json.loads(json.dumps(records)) == records
    return records


@pytest.mark.one_in(3)
@pytest.mark.parametrize("shows", ["bins", "values"])
@pytest.mark.parametrize("column", ["joined", "seen", "opened", "price", "married"])
def test_records_leave_at_the_grid_of_the_policy(column: str, shows: Any, tmp_path: Path) -> None:
    records = released(tmp_path, column, shows=shows)
    expected = {
        "joined": lambda value: str(dt.date(2024, 1 + (value.month - 1) // 3 * 3, 1)),
        "seen": lambda value: {0: "2024-10-27 02:00:00", 1: "2024-10-27 02:00:00", 2: "2024-10-27 03:00:00"}[value.hour],
        "opened": lambda value: f"{value.hour:02}:00:00",
        "price": lambda value: on_quarters(value) if shows == "values" else ("0.5-1" if value >= Number("0.375") else "0-0.25"),
        "married": lambda value: value,
    }  # fmt: skip
    for key, record in records.items():
        value = TRUE[column][int(key[1:])]
        assert record[column] == expected[column](value)


def on_quarters(value: Number) -> Any:
    nearest = int(value * 4 + Number("0.5"))
    return nearest // 4 if nearest % 4 == 0 else str(Number(nearest) / 4)


def test_no_stored_date_is_in_the_ledger(tmp_path: Path) -> None:
    released(tmp_path, "joined", shows="values")
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"2024-04-01" in content
    assert not any(f"2024-{month:02}-17".encode() in content for month in range(1, 13))


def test_text_is_never_released() -> None:
    buckets = {"name": Key(), "note": Text(8), "ward": Category(("A", "B"))}
    with pytest.raises(PolicyUnreadable, match=r'"note" cannot be released .* text without a list'):
        Policy(Dataset("p"), buckets, concealments={"x": Concealment(reveals="note", about="ward")})
    plain = {"name": Key(), "note": Text(), "age": Integer(0, 9), "ward": Category(("A", "B"))}
    with pytest.raises(PolicyUnreadable):
        Policy(
            Dataset("p"), plain, concealments={"x": Concealment(reveals="age", about="ward", releases=("age", "note"))}
        )
