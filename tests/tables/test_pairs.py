"""All pairs in one job: on every engine the integers of the slow twin, empty cells too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations

import ibis
import numpy as np
import pytest
from naive import tables as naive
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


def cell(row: naive.Row, axis: Axis) -> int:
    """The slow twin: a row's cell on an axis, -1 where it is left out."""
    code = naive.code_of(row[axis.name], axis.attribute)
    if code is None:
        return axis.length - 1 if axis.attribute.missing == "value" else -1  # type: ignore[attr-defined]
    return sum(start <= code for start in axis.starts) - 1 if axis.starts else code


def test_every_pair_has_the_counts_of_the_slow_twin(on_engine: Open, policy: Policy) -> None:
    axes, kept = axes_of(policy), naive.counted(rows(), policy)
    found = count_pairs(on_engine(policy), axes)
    assert set(found) == set(combinations(range(len(axes)), 2))
    for (i, j), cells in found.items():
        wanted = np.zeros((axes[i].length, axes[j].length), np.int64)
        for row in kept:
            if min(place := (cell(row, axes[i]), cell(row, axes[j]))) >= 0:
                wanted[place] += 1
        assert (cells == wanted).all(), (axes[i].name, axes[j].name)


def test_margins_on_given_cells_are_sums_of_single_values(on_engine: Open, policy: Policy) -> None:
    table = on_engine(policy)
    for axis in axes_of(policy)[::2] + axes_of(policy)[3:4]:
        kept = [cell(row, axis) for row in naive.counted(rows(), policy)]
        assert table.count([axis]).tolist() == [kept.count(place) for place in range(axis.length)]
        assert len(axis.labels()) == axis.length


def test_rows_as_codes_are_all_rows_each_once(on_engine: Open, policy: Policy) -> None:
    axes = axes_of(policy)
    wanted = Counter(tuple(cell(row, axis) for axis in axes) for row in naive.counted(rows(), policy))
    assert Counter(map(tuple, rows_as_codes(on_engine(policy), axes, at_once=64).tolist())) == wanted


def test_many_sets_are_asked_in_several_jobs(on_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = POLICIES["each row"]
    whole = count_pairs(on_engine(policy), axes_of(policy))
    monkeypatch.setattr(pairs, "SETS_AT_ONCE", 4)
    for pair, cells in count_pairs(on_engine(policy), axes_of(policy)).items():
        assert (cells == whole[pair]).all()


def test_an_engine_without_grouping_sets_counts_each_pair_on_its_own() -> None:
    policy = POLICIES["each row"]
    sqlite = ibis.sqlite.connect()
    wanted = ["age", "big", "sex"]
    axes = [axis for axis in axes_of(policy) if axis.name in wanted]
    narrow = Policy(policy.dataset, {name: policy.attributes[name] for name in wanted})
    on_sqlite = open_table(narrow, sqlite.create_table("people", arrow(rows()).select(wanted)))
    assert on_sqlite.engine == "sqlite"
    here = count_pairs(open_table(narrow, arrow(rows())), axes)
    for pair, cells in count_pairs(on_sqlite, axes).items():
        assert (cells == here[pair]).all()


def test_more_cells_than_can_be_held_are_refused_before_a_row_is_read() -> None:
    policy = POLICIES["each row"]
    with pytest.raises(TooManyCells, match='the longest is "big" with 1,000,000,001'):
        refuse_too_many([Axis("age", policy.attributes["age"]), Axis("big", policy.attributes["big"])])


def test_one_column_or_no_row_has_no_pairs_or_empty_ones() -> None:
    policy = POLICIES["each row"]
    empty = open_table(policy, arrow(rows()).slice(0, 0))
    axes = axes_of(policy)
    assert count_pairs(empty, axes[:1]) == {}
    assert all(not cells.any() for cells in count_pairs(empty, axes).values())
    assert rows_as_codes(empty, axes).shape == (0, len(axes))
