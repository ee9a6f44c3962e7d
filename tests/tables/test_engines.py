"""One suite for all engines: every engine gives the integers of the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from reference import tables as reference
from tables.conftest import POLICIES, rows

from tidegate.errors import TooManyCells, UnknownColumn, Unsupported
from tidegate.policy import Dataset, Grid, Key, Policy
from tidegate.policy.predicates import col
from tidegate.tables import Table

Open = Callable[[Policy], Table]
GROUPINGS = [[], ["age"], ["pay"], ["town"], ["sex", "member"], ["town", "age"], ["town", "pay", "sex"]]


def dense(shape: tuple[int, ...], cells: dict[tuple[int, ...], Any]) -> np.ndarray[Any, Any]:
    grid = np.zeros(shape, object)
    for cell, value in cells.items():
        grid[cell] = value
    return grid


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest) -> Policy:
    return POLICIES[request.param]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("by", GROUPINGS, ids=lambda by: " x ".join(by) or "all")
def test_counts_equal_the_reference_with_empty_cells(on_engine: Open, policy: Policy, by: list[str]) -> None:
    table = on_engine(policy)
    counts = table.count(by)
    assert counts.shape == tuple(table.axis(name).length for name in by)
    assert (counts == dense(counts.shape, reference.count(rows(), policy, by))).all()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("column", "by", "center"),
    [("age", [], 0), ("age", ["town"], 20), ("pay", ["sex"], 7), ("big", [], 5 * 10**8), ("big", ["member"], 0)],
)
def test_moments_are_exact_integers(on_engine: Open, policy: Policy, column: str, by: list[str], center: int) -> None:
    table = on_engine(policy)
    expected = reference.moments(rows(), policy, column, by, center)
    for power, grid in enumerate(table.moments(column, by=by, center=center)):
        cells = {cell: sums[power] for cell, sums in expected.items()}
        assert (grid == dense(grid.shape, cells)).all()


def test_sums_and_histograms_equal_the_moments(on_engine: Open, policy: Policy) -> None:
    table = on_engine(policy)
    full = table.count(["age"])
    starts = policy.attributes["age"].bin_starts()  # type: ignore[attr-defined]
    bins = [*(part.sum() for part in np.split(full[:-1], starts[1:])), full[-1]]
    assert table.histogram("age").tolist() == bins
    assert table.sums("age").item() == sum(code * n for code, n in enumerate(full[:-1]))


def test_record_is_found_by_its_exact_key(on_engine: Open) -> None:
    table = on_engine(POLICIES["each row"])
    once = next(
        row for row in rows() if row["person"] and sum(row["person"] == other["person"] for other in rows()) == 1
    )
    twice = next(
        row["person"]
        for row in rows()
        if sum(row["person"] == other["person"] for other in rows()) > 1 and row["person"]
    )
    axes = [table.axis("age", binned=True), table.axis("town")]
    records = table.records([once["person"], "nobody", twice], ["person", "age", "town"], axes)
    assert records.columns == {once["person"]: {k: once[k] for k in ("person", "age", "town")}}
    assert records.twice == {twice}
    twin = reference.ReferenceTable(table.policy, [once])
    assert records.cells[once["person"]] == tuple(twin._cell(axis, once) for axis in axes)


def test_batches_contain_every_counted_row_once(on_engine: Open, policy: Policy) -> None:
    streamed = [
        row for batch in on_engine(policy).batches(["person", "age", "town"], rows=64) for row in batch.to_pylist()
    ]
    expected = [{k: row[k] for k in ("person", "age", "town")} for row in reference.counted_rows(rows(), policy)]
    assert sorted(map(str, streamed)) == sorted(map(str, expected))


def test_invalid_grouping_is_refused_before_a_row_is_read(on_engine: Open, policy: Policy) -> None:
    table = on_engine(policy)
    with pytest.raises(UnknownColumn, match='Did you mean "town"'):
        table.count(["towns"])
    with pytest.raises(Unsupported, match="cannot be grouped by"):
        table.count(["person"])
    with pytest.raises(Unsupported, match="has no sum"):
        table.sums("town")
    with pytest.raises(TooManyCells, match="more than the limit"):
        table.count(["big", "age"])


AGE, PAY, TOWN, SEX = col("age"), col("pay"), col("town"), col("sex")
CONDITIONS = {
    "at least": AGE >= 30,
    "between grid points": (PAY > 0.3) & (PAY <= 1.6),
    "below everything": AGE < -3,
    "equal to no grid point": PAY == 0.3,
    "unequal to no grid point": PAY != 0.3,
    "a category": TOWN == "Aby",
    "not a category": TOWN != "Aby",
    "not a category, negated": ~(TOWN == "Aby"),
    "one of": SEX.isin([1, 2]),
    "missing or old": AGE.missing() | (AGE >= 60),
    "unknown on one side": (SEX == 1) | (AGE > 40),
    "not both": ~((SEX == 1) & (AGE > 40)),
    "true or false": col("member") == True,  # noqa: E712
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("case", CONDITIONS)
def test_conditions_select_the_rows_of_the_reference(on_engine: Open, policy: Policy, case: str) -> None:
    CONDITIONS[case].check(policy)
    counts = on_engine(policy).count(["town"], where=CONDITIONS[case])
    assert (counts == dense(counts.shape, reference.count(rows(), policy, ["town"], CONDITIONS[case]))).all()


def test_missing_can_count_as_the_lowest_value(on_engine: Open) -> None:
    attributes = {**POLICIES["each row"].attributes, "pay": Grid("-0.5", "3", "0.25", missing="lowest")}
    policy = Policy(Dataset("people"), attributes)
    number, total, _ = on_engine(policy).moments("pay")
    expected = reference.moments(rows(), policy, "pay", [], 0)[()]
    assert [number.item(), total.item()] == expected[:2]
    assert number.item() == len(rows())


def test_records_need_exactly_one_key() -> None:
    import pyarrow as pa

    from tidegate.tables import open_table

    policy = Policy(Dataset("d"), {"a": Key(), "b": Key()})
    with pytest.raises(Unsupported, match="has 2"):
        open_table(policy, pa.table({"a": ["x"], "b": ["y"]})).records(["x"], ["a"])
