"""Charts of answers claim no more than the noise supports, in the reader's order, for any number of cells."""

from __future__ import annotations

import random
import re
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.answer.charts import MOST_CELLS, Order, page_chart, rows_chart
from tidegate.charts import Band, Cell, Interval, Line

VISITS = """
[dataset]
name = "visits"
source = "visits.csv"
unit = "row"
[attributes.at]
kind = "timestamp"
from = 2024-01-31T20:00:00
to = 2024-02-01T03:00:00
grid = "hour"
[promise.loss]
epsilon = 5
"""
TOWNS = {"Dal": 30, "Aby": 10, "Ceder": 20, "Berg": 40}


def part(rows: list[dict[str, Any]], *, differing: int | None = 0) -> dict[str, Any]:
    compared = None if differing is None else {"says": "computed", "differing": differing}
    return {"rows": rows, "statistic": "count", "comparison": compared}


def row(count: float, half: float = 5, **labels: Any) -> dict[str, Any]:
    return {**labels, "count": count, "low": max(0, count - half), "high": count + half, "noisy": count}


def by_town() -> list[dict[str, Any]]:
    return [row(count, town=town) for town, count in TOWNS.items()]


def grid(*, half: float = 5, lines: int = 3, columns: int = 4) -> list[dict[str, Any]]:
    cells = product(range(lines), range(columns))
    return [row(100 * line + column, half, line=f"l{line}", column=f"c{column}") for line, column in cells]


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("policy", ["Dal", "Aby", "Ceder", "Berg"]),
        ("label", ["Aby", "Berg", "Ceder", "Dal"]),
        ("largest", ["Berg", "Dal", "Ceder", "Aby"]),
        ("smallest", ["Aby", "Ceder", "Dal", "Berg"]),
    ],
)
def test_groups_are_dots_with_intervals_in_the_readers_order(order: Order, names: list[str]) -> None:
    chart = page_chart(part(by_town()), order=order)
    assert list(chart.x.categories) == names
    (mark,) = chart.marks
    assert isinstance(mark, Interval)
    assert list(mark.y) == [TOWNS[name] for name in names]
    assert all(low <= value <= high for low, value, high in zip(mark.low, mark.y, mark.high, strict=True))
    assert chart.title == "computed"
    assert chart.table is not None
    assert [line[0] for line in chart.table.rows] == names
    assert len(re.findall("<circle", chart.svg())) == 4


def test_order_of_the_policy_is_the_default_and_not_that_of_noisy_values() -> None:
    assert list(page_chart(part(by_town())).x.categories) == list(TOWNS)


def test_two_columns_are_a_heat_map_with_intervals_in_its_tips() -> None:
    chart = page_chart(part(grid(), differing=3))
    (cells,) = chart.marks
    assert isinstance(cells, Cell)
    assert (chart.x.categories, chart.y.categories) == (("c0", "c1", "c2", "c3"), ("l0", "l1", "l2"))
    assert cells.tips[5] == "l1, c1: count 101, 95% interval 96 to 106"
    darker = dict(zip(((x, y) for x, y in zip(cells.x, cells.y, strict=True)), cells.values, strict=True))
    assert darker[0, 0] < darker[0, 1] < darker[0, 2], "differences above the noise have different shades"
    assert darker[0, 1] == darker[3, 1], "a difference of 3 with intervals of 10 has not"
    assert chart.table is not None
    assert chart.table.columns == ("line", "column", "count", "low", "high", "noisy")


def test_heat_map_without_a_difference_has_one_shade() -> None:
    draws = random.Random(1)
    noisy = [cell | {"count": cell["count"] + draws.gauss(0, 50)} for cell in grid(half=100)]
    (cells,) = page_chart(part(noisy, differing=0)).marks
    assert isinstance(cells, Cell)
    assert len(set(cells.values)) == 1
    assert "equal within the noise" in page_chart(part(noisy, differing=0)).y.title


def test_heat_map_sorted_by_value_becomes_dots() -> None:
    chart = page_chart(part(grid()), order="largest")
    assert chart.x.categories[0] == "l2, c3"
    assert isinstance(chart.marks[0], Interval)


def test_many_cells_are_drawn_in_blocks_that_cover_every_interval() -> None:
    rows = [row(number % 7, half=number % 3, bin=f"b{number}") for number in range(1234)]
    chart = page_chart(part(rows, differing=None))
    band, line = chart.marks
    assert isinstance(band, Band)
    assert isinstance(line, Line)
    assert len(line.x) <= 100
    size = -(-len(rows) // 100)
    for block, (low, mean, high) in enumerate(zip(band.low, line.y, band.high, strict=True)):
        cells = rows[block * size : (block + 1) * size]
        assert low == min(cell["low"] for cell in cells)
        assert high == max(cell["high"] for cell in cells)
        assert mean == pytest.approx(sum(cell["count"] for cell in cells) / len(cells))
    assert f"in blocks of {size}" in chart.title
    assert len(chart.__html__()) < 60_000


def test_largest_chart_of_single_cells_stays_light() -> None:
    charts = [page_chart(part(grid(lines=10, columns=20), differing=5))]
    charts += [rows_chart([row(number, name=f"n{number}") for number in range(60)], "count", title="", unit="")]
    assert MOST_CELLS == 200
    assert all(len(chart.__html__()) < 110_000 for chart in charts)


@pytest.mark.parametrize(
    ("part", "first"), [("month", "2024-01-01"), ("hour", "2024-01-31T20:00:00")], ids=["months", "hours"]
)
def test_months_of_dates_and_times_are_labelled_by_their_first_day(part: str, first: str, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("at\n2024-01-31T21:00:00\n2024-02-01T02:00:00\n")
    (tmp_path / "visits.toml").write_text(VISITS)
    with tg.open(tmp_path / "visits.toml") as session:
        months = session.answer(tg.count().by(f"DATE_TRUNC('{part}', at)"), epsilon=1)
    (label,) = months.labels
    assert months.labels[label][0] == first
    assert months.plot().x.categories[0] == first
    assert months.to_arrow().schema.field(label).type in (pa.date32(), pa.timestamp("us"))
    assert months.to_arrow()[label][0].as_py().isoformat() == first
