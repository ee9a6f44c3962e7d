"""Columns are divided into public cells that cover every code once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.synthesize.facts import Column, Facts


@st.composite
def columns(draw: st.DrawFn) -> Column:
    size = draw(st.integers(1, 60))
    starts = sorted({0, *draw(st.lists(st.integers(0, size - 1), max_size=8))})
    return Column("x", size, tuple(starts), missing=draw(st.booleans()))


@given(columns())
def test_every_code_is_in_exactly_one_cell(column: Column) -> None:
    codes = np.arange(column.size + column.missing)
    cells = column.cell_of(codes)
    codes_of_cells = [range(first, end) for first, end in zip(column.firsts, column.ends, strict=True)]
    assert len(codes_of_cells) == column.cells
    assert [c for cell in codes_of_cells for c in cell] == codes.tolist()
    assert all(code in codes_of_cells[cell] for code, cell in zip(codes, cells, strict=True))
    assert column.cell_of(np.array([-1])).tolist() == [-1]


@given(columns(), st.data())
def test_spike_gets_its_own_cell_and_other_cells_stay(column: Column, data: st.DataObject) -> None:
    spikes = data.draw(st.sets(st.integers(0, column.size - 1), max_size=4))
    cut = column.cut_at(spikes)
    for spike in spikes:
        cell = int(cut.cell_of(np.array([spike]))[0])
        assert (cut.firsts[cell], cut.ends[cell]) == (spike, spike + 1)
    assert set(column.starts) <= set(cut.starts)


@pytest.mark.parametrize("starts", [(), (1, 2), (0, 0), (0, 5)])
def test_cells_that_do_not_cover_all_codes_are_refused(starts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="start at 0"):
        Column("x", 5, starts)


def test_columns_are_found_by_name() -> None:
    assert Facts((Column("a", 2, (0, 1)), Column("b", 3, (0,))), rows=9).place("b") == 1
