"""How far one unit changes counts and scores, by enumeration; and that noise and rates match it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthesize.forest.surveys import COLUMNS, people

from tidegate.noise import SeededBits
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest.groups import group_cells
from tidegate.synthesize.mechanisms.forest.noise import Measurements
from tidegate.synthesize.mechanisms.forest.plan import make_plan
from tidegate.synthesize.mechanisms.forest.selection import HALVES, Candidates, Private, offer_groupings
from tidegate.synthesize.private_rows import ArrayRows

TINY = (Column("a", 3, (0, 1, 2), ordered=False), Column("b", 2, (0, 1), ordered=False))
CELLS = list(product((-1, 0, 1, 2), (-1, 0, 1)))  # -1: not listed


def scores(rows: list[tuple[int, int]], model: np.ndarray, columns: tuple[Column, ...] = TINY) -> np.ndarray:
    """Return the misfits of all candidates, in halves."""
    candidates = offers(columns)
    pieces = [group.coarse for group in candidates.groups]
    private_rows = ArrayRows(np.array(rows).reshape(-1, len(columns)), columns)
    return Private(candidates, lambda: private_rows.pairs(pieces)).misfits(model)


def offers(columns: tuple[Column, ...]) -> Candidates:
    flat = [np.full(column.cells, 1 / column.cells) for column in columns]
    groupings = offer_groupings([column.cells for column in columns], (4, 6), 10)
    return Candidates([group_cells(c, p, [2, 3]) for c, p in zip(columns, flat, strict=True)], groupings)


def largest_move(*, replaced: int, models: int = 40) -> int:
    """Return the largest change over all tables of 2 rows, all replacements of some of them, and several models."""
    generator = np.random.default_rng(4)
    size = int(offers(TINY).offsets[-1])
    moved = 0
    for model in generator.integers(-1, 3, (models, size)):
        by_table = {rows: scores(list(rows), model) for rows in product(CELLS, repeat=2)}
        for rows, new in product(by_table, repeat=2):
            if sum(a != b for a, b in zip(rows, new, strict=True)) <= replaced:
                moved = max(moved, int(np.abs(by_table[rows] - by_table[new]).max()))
    return moved


def test_one_row_changes_no_score_by_more_than_two_halves() -> None:
    assert largest_move(replaced=1, models=3) == HALVES


def test_invalid_model_counts_do_not_raise_the_sensitivity() -> None:
    """NaN and infinity as integers: sums that wrapped around would change by 2**64."""
    ends, offsets = np.iinfo(np.int64), offers(TINY).offsets
    for invalid in (ends.min, ends.max):
        model = np.zeros(int(offsets[-1]), np.int64)
        model[offsets[:-1]] = invalid
        scores_by_row = [scores([row], model).astype(object) for row in CELLS]
        assert max(abs(a - b).max() for a, b in product(scores_by_row, repeat=2)) <= HALVES


def test_two_rows_change_scores_by_twice_as_much() -> None:
    assert largest_move(replaced=2, models=3) == 2 * HALVES


@given(st.integers(0, 2**32 - 1))
def test_one_row_changes_each_set_of_counts_by_at_most_two(seed: int) -> None:
    generator = np.random.default_rng(seed)
    here = people(30, seed)
    there = here.copy()
    there[generator.integers(30)] = generator.integers(-1, 1000, 4)
    rows = [ArrayRows(codes, COLUMNS) for codes in (here, there)]
    for column in COLUMNS:
        assert np.abs(rows[0].margin(column) - rows[1].margin(column)).sum() <= 2
        assert np.abs(rows[0].places(column) - rows[1].places(column)).sum() <= 2
    pairs = [table.pairs(COLUMNS) for table in rows]
    assert all(np.abs(pairs[0][key] - pairs[1][key]).sum() <= 2 for key in pairs[0])


@pytest.mark.parametrize("reach", [1, 2, 7])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(0.1), Fraction(10**9)])
def test_noise_scale_is_at_least_twice_the_reach_over_the_loss(reach: int, epsilon: Fraction) -> None:
    plan = make_plan(Facts(COLUMNS, 1000, reach), epsilon=epsilon, split={})
    measurements = Measurements(plan, Diary(epsilon), reach=reach, bits=SeededBits(1))
    for parts in (1, 17, 333_333, 1_000_000):
        scale, exact = measurements.scale(parts), 2 * reach / plan.loss(parts)
        assert exact <= scale <= exact * (1 + Fraction(1, 2**20)) + Fraction(1, 2**50)
