"""Cells that are found from the rows: golden cuts, and the whole search compared with its reference implementation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import forest as slow
from synthesize.forest.surveys import LIMITS, by_z, learn_codes, pure, wide_column

from tidegate.noise import SeededBits
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.forest.cells import (
    FoundCells,
    codes_without_a_cell,
    cut_cell,
    find_cells,
    level_count,
    start_cells,
)
from tidegate.synthesize.mechanisms.forest.meter import PARTS, Meter
from tidegate.synthesize.private_rows import ArrayRows

GOLDEN = (
    "0, 1, 2, 4, 6, 9, 13, 21, 32, 49, 62, 75, 115, 125, 178, 187, 250, 274, 312, 375, 422, 437, 500, 562, 625, 649, 687, "
    "750, 812, 875, 937, 999"
)
sizes = st.one_of(st.integers(161, 3000), st.sampled_from([640, 641, 10**7, 2**31, 2**53]))


def test_start_cells_of_a_thousand_codes() -> None:
    assert start_cells(1000) == tuple(int(code) for code in GOLDEN.split(","))


def test_cuts_of_a_growing_and_of_an_even_cell() -> None:
    assert cut_cell(100, 1000, 8) == [100, 133, 178, 237, 316, 422, 562, 750]
    assert cut_cell(0, 125, 8) == [0, 16, 31, 47, 62, 78, 94, 109]


def test_narrow_columns_have_no_growing_cells() -> None:
    assert start_cells(640) == (0, 1, *range(40, 640, 40), 639)
    assert start_cells(16) == tuple(range(16))
    assert start_cells(1) == (0,)


@given(sizes)
def test_start_cells_equal_the_reference(size: int) -> None:
    assert list(start_cells(size)) == slow.start_cells(size)


@given(st.integers(0, 2**53 - 1), st.integers(1, 2**53), st.sampled_from([8, 32]))
def test_cuts_equal_the_reference(low: int, width: int, pieces: int) -> None:
    high = min(low + width, 2**53)
    cuts = cut_cell(low, high, pieces)
    assert cuts == slow.cut_cell(low, high, pieces)
    assert cuts[0] == low
    assert len(cuts) <= pieces
    assert all(low <= cut < high for cut in cuts)
    assert high - low == 1 or len(cuts) > 1  # a cell of several codes becomes several cells


@given(sizes, st.sampled_from([8, 32]))
def test_levels_reach_single_codes_or_stop_at_six(size: int, pieces: int) -> None:
    assert level_count(size, pieces) == slow.level_count(size, pieces)


# ---- the search, compared with the reference


def search(
    codes: np.ndarray, column: Column, limit: Loss, *, parts: int, pieces: int, seed: object
) -> tuple[FoundCells, Diary]:
    diary = Diary(limit)
    at, rows = Meter(diary, reach=1, bits=SeededBits(str(seed))), ArrayRows(codes[:, None], [column])
    least = len(codes) / 128
    found_cells = find_cells(
        column, len(codes), at, rows.margin, parts=parts, pieces=pieces, least=least, trim=column.adaptive
    )
    return found_cells, diary


def check_search(codes: np.ndarray, column: Column, limit: Loss, *, parts: int, pieces: int, seed: object) -> Diary:
    """Replay the diary by the reference, and compare cells, estimates, variances and trimmed ends."""
    result, diary = search(codes, column, limit, parts=parts, pieces=pieces, seed=seed)
    at = Meter(Diary(limit), reach=1, bits=SeededBits(1))
    most = slow.level_count(column.size, pieces)
    share = parts // 2 // most
    deviation, cells = at.deviation(share), slow.cells_of(column.starts, column.size)
    steps, levels, fresh = list(diary.steps), [], cells
    while fresh and len(levels) < most:
        step = steps.pop(0)
        assert step.name == f"level {len(levels)} of {column.name}"
        counted = dict(zip(fresh, step.value.astype(float).tolist(), strict=True))
        levels.append((counted, deviation**2))
        cells, fresh = slow.cut_heavy(cells, counted, max(4 * deviation, len(codes) / 128), pieces)
    (leaves,) = steps
    assert leaves.name == f"margin of {column.name}"
    assert list(zip(result.column.starts, result.column.ends, strict=False))[: len(cells)] == cells
    left = parts - share * len(levels)
    assert (
        leaves.loss.z <= limit.z * left / PARTS if limit.pure is None else leaves.loss.pure == limit.pure * left / PARTS
    )
    variance = at.deviation(left) ** 2
    estimate, variances = slow.combine_in_turn(cells, leaves.value.tolist(), variance, levels)
    assert result.estimate == pytest.approx(estimate, rel=1e-9, abs=1e-6)
    assert result.variance == pytest.approx(variances, rel=1e-9)
    starts = slow.cells_of(column.starts, column.size)
    inside = [[n for n, (a, b) in enumerate(cells) if low <= a and b <= high] for low, high in starts]
    first, last = slow.trim(
        [sum(estimate[n] for n in members) for members in inside],
        [1 / (1 / deviation**2 + 1 / (variance * len(members))) for members in inside],
    )
    allowed = [starts[first][0] <= a and b <= starts[last][1] for a, b in cells] + [True] * column.missing
    assert result.allowed.tolist() == (allowed if column.adaptive else [True] * len(allowed))
    return diary


def money(rows: int, size: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    values = np.where(generator.random(rows) < 0.4, 0, generator.lognormal(3 + seed % 5, 1.2, rows))
    return np.minimum(values, size - 1).astype(np.int64)


@settings(max_examples=25)
@given(sizes, st.booleans(), st.sampled_from(["pure", "z"]), st.integers(0, 2**16), st.sampled_from([300, 5000]))
def test_search_equals_the_reference(size: int, missing: bool, mode: str, seed: int, rows: int) -> None:
    column = wide_column("x", size, missing=missing)
    check_search(
        money(rows, size, seed),
        column,
        pure(2) if mode == "pure" else by_z("0.05"),
        parts=400_000 + seed,
        pieces=32 if mode == "pure" else 8,
        seed=seed,
    )


@pytest.mark.parametrize(("size", "widest"), [(10**6, 1), (10**7, 4)])
def test_heavy_single_codes_end_up_alone_or_in_the_narrowest_cells(size: int, widest: int) -> None:
    """Zero and the top are alone from the start; a heap in the middle is cut out, as far as six levels go."""
    heap = size // 13
    codes = np.concatenate([np.full(3000, heap), np.full(2000, 0), money(5000, size, 3) + 1, np.full(900, size - 1)])
    for limit, pieces in ((by_z("0.1"), 8), (pure(3), 32)):
        result, _ = search(codes, wide_column("x", size), limit, parts=PARTS, pieces=pieces, seed=1)
        widths = np.array(result.column.ends) - np.array(result.column.starts)
        around = widths[result.column.cell_of(np.array([0, heap, size - 1]))]
        assert (around <= [1, widest, 1]).all()


def test_declared_cells_of_a_heaped_column_are_refined_and_not_trimmed() -> None:
    column = Column("gain", 1000, (0, 1, 10, 100, 999), even=False, heaped=True)
    generator = np.random.default_rng(3)
    codes = np.where(generator.random(20_000) < 0.5, 500, generator.integers(100, 900, 20_000))
    fitted, diary = learn_codes(codes[:, None], (column,), by_z("0.05"))
    starts = fitted.summary.cells["gain"]
    assert {*column.starts, 500, 501} <= set(starts)
    assert diary.steps[0].value.size == len(column.starts)


@pytest.mark.parametrize("mode", LIMITS)
def test_empty_ends_get_almost_no_rows(mode: str) -> None:
    """Values near the middle of a declared range: at most 1 in 100 rows is drawn far from them, where noise exceeds its threshold."""
    codes = np.random.default_rng(4).normal(500_000, 5_000, 20_000).astype(np.int64)
    fitted, _ = learn_codes(codes[:, None], (wide_column("x", 10**6),), LIMITS[mode])
    drawn = fitted.draw(20_000, seed=1)[:, 0]
    assert np.mean((drawn < 400_000) | (drawn > 600_000)) < 0.01


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.floats(0.5, 50), st.floats(0.5, 50))
def test_combined_counts_of_nested_cells_are_least_squares(seed: int, tops: int, fine: float, coarse: float) -> None:
    """For one level the steps in turn are exact; estimates are those of least squares for all nested levels."""
    generator = np.random.default_rng(seed)
    leaves = slow.cells_of(range(0, 4 * tops, 1), 4 * tops)
    noisy = generator.normal(50, 20, len(leaves))
    level = {(4 * k, 4 * k + 4): float(generator.normal(200, 30)) for k in range(tops)}
    x, v = slow.combine_in_turn(leaves, noisy, fine, [(level, coarse)])
    estimate, variance = slow.combine(leaves, noisy, fine, [(level, coarse)])
    assert x == pytest.approx(estimate)
    assert v == pytest.approx(variance)


@given(st.sets(st.integers(1, 29)), st.booleans())
def test_codes_without_a_cell_are_the_ones_that_share_it(cuts: set[int], missing: bool) -> None:
    column = Column("x", 30, (0, *sorted(cuts)), missing=missing)
    shared = [code for a, b in slow.cells_of(column.starts, 30) if b - a > 1 for code in range(a, b)]
    assert codes_without_a_cell(column).tolist() == shared
    assert codes_without_a_cell(replace(column, starts=tuple(range(30)))).size == 0
