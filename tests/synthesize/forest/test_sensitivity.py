"""How far one unit moves what is counted and scored, by enumeration; and that noise and rates are made for it."""

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
    """The misfits of all candidates, in halves."""
    candidates = offers(columns)
    pieces = [group.coarse for group in candidates.groups]
    held = ArrayRows(np.array(rows).reshape(-1, len(columns)), columns)
    return Private(candidates, lambda: held.pairs(pieces)).misfits(model)


def offers(columns: tuple[Column, ...]) -> Candidates:
    flat = [np.full(column.cells, 1 / column.cells) for column in columns]
    found = offer_groupings([column.cells for column in columns], (4, 6), 10)
    return Candidates([group_cells(c, p, [2, 3]) for c, p in zip(columns, flat, strict=True)], found)


def largest_move(*, replaced: int, models: int = 40) -> int:
    """Over all tables of 2 rows, all replacements of some of them, and several models."""
    generator = np.random.default_rng(4)
    size = int(offers(TINY).offsets[-1])
    moved = 0
    for model in generator.integers(-1, 3, (models, size)):
        by_table = {rows: scores(list(rows), model) for rows in product(CELLS, repeat=2)}
        for rows, new in product(by_table, repeat=2):
            if sum(a != b for a, b in zip(rows, new, strict=True)) <= replaced:
                moved = max(moved, int(np.abs(by_table[rows] - by_table[new]).max()))
    return moved


def test_one_row_moves_no_score_by_more_than_two_halves() -> None:
    assert largest_move(replaced=1, models=3) == HALVES


def test_a_model_led_astray_by_floating_point_moves_no_score_by_more() -> None:
    """What nan and infinity become as whole numbers: sums that wrapped around would move by 2**64."""
    ends, places = np.iinfo(np.int64), offers(TINY).offsets
    for astray in (ends.min, ends.max):
        model = np.zeros(int(places[-1]), np.int64)
        model[places[:-1]] = astray
        found = [scores([row], model).astype(object) for row in CELLS]
        assert max(abs(a - b).max() for a, b in product(found, repeat=2)) <= HALVES


def test_two_rows_move_scores_by_twice_as_much() -> None:
    assert largest_move(replaced=2, models=3) == 2 * HALVES


@given(st.integers(0, 2**32 - 1))
def test_one_row_moves_every_count_by_at_most_two_in_all(seed: int) -> None:
    generator = np.random.default_rng(seed)
    here = people(30, seed)
    there = here.copy()
    there[generator.integers(30)] = generator.integers(-1, 1000, 4)
    rows = [ArrayRows(codes, COLUMNS) for codes in (here, there)]
    for column in COLUMNS:
        assert np.abs(rows[0].margin(column) - rows[1].margin(column)).sum() <= 2
        assert np.abs(rows[0].places(column) - rows[1].places(column)).sum() <= 2
    pairs = [held.pairs(COLUMNS) for held in rows]
    assert all(np.abs(pairs[0][key] - pairs[1][key]).sum() <= 2 for key in pairs[0])


@pytest.mark.parametrize("reach", [1, 2, 7])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(0.1), Fraction(10**9)])
def test_noise_is_never_smaller_than_twice_the_reach_over_the_loss(reach: int, epsilon: Fraction) -> None:
    made = make_plan(Facts(COLUMNS, 1000, reach), epsilon=epsilon, split={})
    measuring = Measurements(made, Diary(epsilon), reach=reach, bits=SeededBits(1))
    for parts in (1, 17, 333_333, 1_000_000):
        scale, exact = measuring.scale(parts), 2 * reach / made.loss(parts)
        assert exact <= scale <= exact * (1 + Fraction(1, 2**20)) + Fraction(1, 2**50)
