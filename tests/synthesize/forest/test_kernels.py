"""The compiled loops compared with their reference implementations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import forest as slow

from tidegate.synthesize.mechanisms.forest import _kernels as fast
from tidegate.synthesize.mechanisms.forest.margins import onto_simplex

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 9), st.integers(1, 9))
def test_coarser_table_has_the_same_sums(seed: int, rows: int, columns: int) -> None:
    generator = np.random.default_rng(seed)
    table = generator.integers(0, 100, (rows, columns))
    left, right = generator.integers(0, 4, rows), generator.integers(0, 3, columns)
    result = fast.coarsen_table(table, left, right, np.zeros((4, 3), np.int64))
    expected = slow.coarsen_table(table, left, right)
    assert all(result[a, b] == expected.get((a, b), 0) for a in range(4) for b in range(3))


@given(seeds, st.integers(0, 30))
def test_weights_are_summed_in_the_cells_of_their_rows(seed: int, rows: int) -> None:
    generator = np.random.default_rng(seed)
    left, right = generator.integers(0, 3, rows).astype(np.int32), generator.integers(0, 4, rows).astype(np.int32)
    weights = generator.random(rows)
    result, expected = fast.weighted_counts(left, right, weights, 3, 4), slow.weighted_counts(left, right, weights)
    assert all(result[a, b] == pytest.approx(expected.get((a, b), 0)) for a in range(3) for b in range(4))


@given(seeds, st.integers(0, 30))
def test_raking_scales_each_row_by_the_factor_of_its_cell(seed: int, rows: int) -> None:
    generator = np.random.default_rng(seed)
    cells = generator.integers(0, 5, rows).astype(np.int32)
    target, weights = 10 * generator.random(5), generator.random(rows) * generator.integers(0, 2, rows)
    result = fast.rake_weights(cells, target, weights, 0.1, 9.0)
    assert result == pytest.approx(slow.rake_weights(cells, target, weights, 0.1, 9.0))


@given(seeds, st.integers(1, 8), st.sampled_from([0.0, 2.0, 9.0]))
def test_average_density_is_the_mean_over_all_segmentations(seed: int, size: int, penalty: float) -> None:
    generator = np.random.default_rng(seed)
    values, widths = generator.normal(3, 4, size), generator.uniform(0.5, 2, size)
    precision = generator.uniform(0.01, 2, size)
    result = fast.average_density(values, widths, precision, penalty)
    assert result == pytest.approx(slow.average_density(values, widths, precision, penalty), rel=1e-8, abs=1e-8)


@given(seeds, st.integers(1, 12), st.integers(0, 20))
def test_rows_are_exchanged_if_that_lowers_the_cost(seed: int, rows: int, times: int) -> None:
    generator = np.random.default_rng(seed)
    cells = np.stack([generator.integers(0, 4, 30), 4 + generator.integers(0, 3, 30)]).astype(np.int32)
    expected, price = generator.uniform(0, rows, 7), generator.uniform(0.1, 2, 7)
    chosen, offers = generator.integers(0, 30, rows), generator.integers(0, 30, times)
    slots = generator.integers(0, rows, times)
    over = np.bincount(cells[:, chosen].ravel(), minlength=7) - expected
    result = fast.exchange_rows(chosen, cells, over, price, slots, offers)
    assert result.tolist() == slow.exchange_rows(chosen, cells, expected, price, slots, offers)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=12), st.floats(0.5, 100))
def test_simplex_projection_equals_the_reference(values: list[float], total: float) -> None:
    result = onto_simplex(np.array(values), total)
    assert result == pytest.approx(slow.onto_simplex(values, total), abs=1e-6)
    assert result.sum() == pytest.approx(total)
