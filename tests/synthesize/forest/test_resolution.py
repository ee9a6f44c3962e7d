"""Cells are merged where the noise would exceed their counts, by public facts alone."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest.margins import FEWEST, merge_cells
from tidegate.synthesize.mechanisms.forest.plan import make_plan

WIDE = Column("pay", 10_000, (0, 1, *range(50, 10_000, 50)))  # 0 is an atom
SHORT = Column("age", 80, tuple(range(80)))
TOWNS = Column("town", 300, tuple(range(300)), ordered=False)


def merge_columns(rows: int, epsilon: str, columns: tuple[Column, ...] = (WIDE, SHORT, TOWNS)) -> tuple[Column, ...]:
    facts = Facts(columns, rows)
    return merge_cells(columns, facts, make_plan(facts, epsilon=Fraction(epsilon), split={}))


def test_many_rows_keep_all_cells() -> None:
    assert merge_columns(1_000_000, "1") == (WIDE, SHORT, TOWNS)


def test_few_rows_merge_wide_cells_but_not_single_codes() -> None:
    pay, age, town = merge_columns(2_000, "0.25")
    assert (age, town) == (SHORT, TOWNS)
    assert pay.starts[:2] == (0, 1)  # the atom
    assert len(pay.starts) <= 2 * FEWEST


@given(
    st.integers(1, 10**6), st.sampled_from(["0.001", "0.25", "4"]), st.sets(st.integers(1, 499), min_size=1), st.data()
)
def test_merged_cells_are_unions_of_public_cells(rows: int, epsilon: str, cuts: set[int], data: st.DataObject) -> None:
    column = Column("x", 500, (0, *sorted(cuts)), missing=data.draw(st.booleans()))
    (after,) = merge_columns(rows, epsilon, (column,))
    singles = {start for start, end in zip(column.starts, column.ends, strict=False) if end - start == 1}
    assert set(after.starts) <= set(column.starts)
    assert singles <= set(after.starts)
    assert all(end in after.ends for start, end in zip(column.starts, column.ends, strict=False) if start in singles)


def test_fewer_rows_give_fewer_cells() -> None:
    cells = [len(merge_columns(rows, "1")[0].starts) for rows in (100, 1_000, 4_000, 8_000, 16_000, 10**6)]
    assert cells == sorted(cells)
    assert cells[0] < cells[-1]
