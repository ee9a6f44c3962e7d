"""All pairs in one job: on every engine the integers of the reference, including empty cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations

import ibis
import numpy as np
import pytest
from reference import tables as reference
from tables.conftest import POLICIES, arrow, rows

from tidegate.errors import TooManyCells
from tidegate.policy import Policy
from tidegate.tables import Axis, Table, open_table, pairs
from tidegate.tables.pairs import count_pairs, refuse_too_many, rows_as_codes

Open = Callable[[Policy], Table]
CUT = {
    "age": (0, 12, 13, 30),
    "pay": (),
    "big": (0, 1, 10**6, 5 * 10**8, 10**9),
    "town": (0, 2),
    "sex": (),
    "member": (),
}


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest) -> Policy:
    return POLICIES[request.param]


def axes_of(policy: Policy) -> list[Axis]:
    return [Axis(name, policy.attributes[name], starts=starts) for name, starts in CUT.items()]


def cell(row: reference.Row, axis: Axis) -> int:
    """Return a row's cell on an axis by the reference, -1 if it is left out."""
    code = reference.code_of(row[axis.name], axis.attribute)
    if code is None:
        return axis.length - 1 if axis.attribute.missing == "value" else -1  # type: ignore[attr-defined]
    return sum(start <= code for start in axis.starts) - 1 if axis.starts else code


def test_pair_counts_equal_the_reference(on_engine: Open, policy: Policy) -> None:
    axes, counted = axes_of(policy), reference.counted_rows(rows(), policy)
    counts = count_pairs(on_engine(policy), axes)
    assert set(counts) == set(combinations(range(len(axes)), 2))
    for (i, j), cells in counts.items():
        expected = np.zeros((axes[i].length, axes[j].length), np.int64)
        for row in counted:
            if min(cells_of_row := (cell(row, axes[i]), cell(row, axes[j]))) >= 0:
                expected[cells_of_row] += 1
        assert (cells == expected).all(), (axes[i].name, axes[j].name)


def test_margins_on_chosen_cells_are_sums_of_single_values(on_engine: Open, policy: Policy) -> None:
    table = on_engine(policy)
    for axis in axes_of(policy)[::2] + axes_of(policy)[3:4]:
        row_cells = [cell(row, axis) for row in reference.counted_rows(rows(), policy)]
        assert table.count([axis]).tolist() == [row_cells.count(cell_number) for cell_number in range(axis.length)]
        assert len(axis.labels()) == axis.length


@pytest.mark.one_in(2)
def test_rows_as_codes_contain_every_row_once(on_engine: Open, policy: Policy) -> None:
    axes = axes_of(policy)
    expected = Counter(tuple(cell(row, axis) for axis in axes) for row in reference.counted_rows(rows(), policy))
    assert Counter(map(tuple, rows_as_codes(on_engine(policy), axes, at_once=64).tolist())) == expected


def test_grouping_sets_are_split_into_several_queries(on_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = POLICIES["each row"]
    whole = count_pairs(on_engine(policy), axes_of(policy))
    monkeypatch.setattr(pairs, "SETS_AT_ONCE", 4)
    for pair, cells in count_pairs(on_engine(policy), axes_of(policy)).items():
        assert (cells == whole[pair]).all()


def test_engine_without_grouping_sets_counts_each_pair_separately() -> None:
    policy = POLICIES["each row"]
    sqlite = ibis.sqlite.connect()
    names = ["age", "big", "sex"]
    axes = [axis for axis in axes_of(policy) if axis.name in names]
    narrow = Policy(policy.dataset, {name: policy.attributes[name] for name in names})
    on_sqlite = open_table(narrow, sqlite.create_table("people", arrow(rows()).select(names)))
    assert on_sqlite.engine == "sqlite"
    here = count_pairs(open_table(narrow, arrow(rows())), axes)
    for pair, cells in count_pairs(on_sqlite, axes).items():
        assert (cells == here[pair]).all()


def test_too_many_cells_are_refused_before_a_row_is_read() -> None:
    policy = POLICIES["each row"]
    with pytest.raises(TooManyCells, match='the longest is "big" with 1,000,000,001'):
        refuse_too_many([Axis("age", policy.attributes["age"]), Axis("big", policy.attributes["big"])])


def test_single_column_has_no_pairs_and_no_rows_give_empty_cells() -> None:
    policy = POLICIES["each row"]
    empty = open_table(policy, arrow(rows()).slice(0, 0))
    axes = axes_of(policy)
    assert count_pairs(empty, axes[:1]) == {}
    assert all(not cells.any() for cells in count_pairs(empty, axes).values())
    assert rows_as_codes(empty, axes).shape == (0, len(axes))
