"""How far one unit changes counts, scores and explained rows, by enumeration and on random tables; and that noise matches it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthesize.forest.surveys import COLUMNS, by_z, pairwise, people, pure

from tidegate.noise import SeededBits
from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.forest import meter
from tidegate.synthesize.mechanisms.forest.groups import group_cells
from tidegate.synthesize.mechanisms.forest.meter import PARTS, Meter
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


# ---- explained rows: the score and the test of a map

RANDOM_TABLES = 100_000


def explained(tables: np.ndarray, cells: tuple[int, int]) -> np.ndarray:
    """Return the sum over lines of the largest count for many tables of codes at once: (tables, rows, 2) to (tables,)."""
    counts = np.zeros((len(tables), *cells), np.int64)
    listed = (tables >= 0).all(axis=2)
    number, row = np.nonzero(listed)
    np.add.at(counts, (number, tables[number, row, 0], tables[number, row, 1]), 1)
    return counts.max(axis=2).sum(axis=1)


@pytest.mark.parametrize("replaced", [1, 2, 3])
def test_replaced_rows_change_explained_rows_by_at_most_their_number(replaced: int) -> None:
    generator = np.random.default_rng(replaced)
    moved = 0
    for rows, left, right in ((3, 2, 2), (5, 3, 2), (8, 4, 4), (12, 3, 5)):
        here = np.stack([generator.integers(-1, size, (RANDOM_TABLES // 4, rows)) for size in (left, right)], axis=2)
        there = here.copy()
        there[:, :replaced] = np.stack(
            [generator.integers(-1, size, (len(here), replaced)) for size in (left, right)], axis=2
        )
        difference = explained(there, (left, right)) - explained(here, (left, right))
        moved = max(moved, int(np.abs(difference).max()))
    assert moved == replaced


@given(st.integers(0, 2**32 - 1))
def test_rows_explain_what_the_definition_says(seed: int) -> None:
    """Missing is a value of `job`; codes that are not listed are left out."""
    generator = np.random.default_rng(seed)
    columns = (Column("x", 6, (0, 2, 3)), COLUMNS[2], COLUMNS[1])
    codes = np.stack([generator.integers(-1, c.size + c.missing, 12) for c in columns], axis=1)
    pairs = [(0, 1), (1, 0), (2, 1), (0, 2)]
    cells = np.stack([column.cell_of(codes[:, n]) for n, column in enumerate(columns)], axis=1)
    expected = [explained(cells[None][:, :, pair], tuple(columns[n].cells for n in pair))[0] for pair in pairs]
    assert ArrayRows(codes, columns).explained(columns, pairs).tolist() == expected


# ---- counts


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
    tables = [table.pair(COLUMNS[0], COLUMNS[2]) for table in rows]
    assert np.abs(tables[0] - tables[1]).sum() <= 2


# ---- the noise, from the formulas of the three prices


@pytest.mark.parametrize("reach", [1, 2, 7])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(0.1), Fraction(10**9)])
def test_laplace_scale_is_at_least_the_sensitivity_over_the_loss(reach: int, epsilon: Fraction) -> None:
    for parts in (1, 17, 333_333, PARTS):
        loss = epsilon * Fraction(parts, PARTS)
        for method, moved in (("counts", 2 * reach), ("scalar", reach)):
            scale = requested_noise("discrete_laplace", pure(epsilon), reach, method, parts)
            assert moved / loss <= scale <= moved / loss * (1 + Fraction(1, 2**20)) + Fraction(1, 2**50)


@pytest.mark.parametrize("reach", [1, 2, 7])
@pytest.mark.parametrize("limit", [by_z(Fraction(1, 100)), pairwise(Fraction(1, 100)), by_z(1000)], ids=str)
def test_gaussian_variance_is_at_least_the_one_that_its_price_needs(reach: int, limit: object) -> None:
    for parts in (1, 17, 333_333, PARTS // 2):
        z = limit.z * Fraction(parts, PARTS)  # type: ignore[attr-defined]
        sigma = requested_noise("discrete_gaussian", limit, reach, "counts", parts)
        assert 1 <= sigma**2 * 2 * z / reach**2 <= 1 + Fraction(1, 2**10)
        sigma = requested_noise("discrete_gaussian", limit, reach, "scalar", parts)
        half = 2 if limit.zcdp == 2 * limit.z else 1  # type: ignore[attr-defined]
        assert 1 <= sigma**2 * 8 * z / half / reach**2 <= 1 + Fraction(1, 2**10)


def requested_noise(sampler: str, limit: object, reach: int, method: str, parts: int) -> Fraction:
    """Return the scale or sigma that a step of some parts requests."""
    requested = []

    def sample(parameter: Fraction, *, size: int, bits: object) -> np.ndarray:
        requested.append(parameter)
        return np.zeros(size, np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meter, sampler, sample)
        at = Meter(Diary(limit), reach=reach, bits=SeededBits(1))  # type: ignore[arg-type]
        getattr(at, method)("step", parts, lambda: np.zeros(3, np.int64) if method == "counts" else 0)
    return requested[0]


@pytest.mark.parametrize("limit", [pure(2), by_z(Fraction(1, 10)), pairwise(Fraction(1, 10))], ids=["e", "z", "2z"])
def test_parts_give_the_requested_deviation_and_not_much_more(limit: object) -> None:
    at = Meter(Diary(limit), reach=2, bits=SeededBits(1))  # type: ignore[arg-type]
    sampler = "discrete_laplace" if at.is_pure else "discrete_gaussian"
    spread = 2**0.5 if at.is_pure else 1.0
    for deviation in (7.0, 40.0, 900.0):
        for method, parts in (
            ("counts", at.parts_for_counts(deviation)),
            ("scalar", at.parts_for_scalar(deviation)),
        ):
            noise = spread * float(requested_noise(sampler, limit, 2, method, parts))
            assert noise <= deviation * (1 + 1e-9)
            assert parts <= 2 or spread * float(requested_noise(sampler, limit, 2, method, parts - 2)) > deviation
        assert at.deviation(500) == pytest.approx(spread * float(requested_noise(sampler, limit, 2, "counts", 500)))
