"""The possible worlds of an adversary who knows all rows but one."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.risk.worlds import STATISTICS, at_least, missing_rows, outputs

values = st.lists(st.integers(-5, 5).map(Fraction), min_size=1, max_size=8)


@given(values, st.data())
def test_known_and_missing_rows_form_the_universe(universe: list[Fraction], data: st.DataObject) -> None:
    known = data.draw(st.permutations(universe).flatmap(lambda all: st.integers(0, len(all)).map(lambda n: all[:n])))
    missing = missing_rows(universe, known)
    assert sorted([*known, *missing]) == sorted(universe)


@given(values, values)
def test_every_value_is_a_world_if_values_can_repeat(universe: list[Fraction], known: list[Fraction]) -> None:
    assert missing_rows(universe, known, may_repeat=True) == universe


NAIVE = {
    "mean": lambda world: math.fsum(world) / len(world),
    "sum": math.fsum,
    "median": statistics.median,
    "min": lambda world: sorted(world)[0],
    "max": lambda world: sorted(world)[-1],
    "std": lambda world: math.sqrt(sum((x - sum(world) / len(world)) ** 2 for x in world) / (len(world) - 1)),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAIVE)
@given(known=values, missing=values)
def test_statistics_match_their_names(name: str, known: list[Fraction], missing: list[Fraction]) -> None:
    values_of_worlds = outputs(STATISTICS[name], missing, known)
    for row, value in zip(missing, values_of_worlds, strict=True):
        assert float(value) == pytest.approx(NAIVE[name]([float(x) for x in (*known, row)]), abs=1e-12)


def test_count_includes_rows_of_at_least_the_threshold() -> None:
    worlds = outputs(at_least(Fraction(4)), [Fraction(3), Fraction(4)], [Fraction(1), Fraction(9)])
    assert worlds == [1, 2]
