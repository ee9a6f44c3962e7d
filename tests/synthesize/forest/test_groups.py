"""Groups: every cell has one, heavy cells are separate, and pieces are sufficient for pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.synthesize.facts import Column
from tidegate.synthesize.mechanisms.forest.groups import group_cells, largest_and_rest, ordered_groups
from tidegate.synthesize.mechanisms.forest.selection import Candidates, Private, offer_groupings
from tidegate.synthesize.private_rows import ArrayRows

shares = st.lists(st.floats(0, 1), min_size=1, max_size=30).map(np.array)


@given(shares, st.integers(1, 40))
def test_groups_are_numbered_without_gaps_up_to_the_requested_count(share: np.ndarray, count: int) -> None:
    for way in (ordered_groups, largest_and_rest):
        label = way(share, count)
        assert label.shape == share.shape
        assert set(label.tolist()) == set(range(label.max() + 1))
        assert label.max() < max(count, 1)


@given(shares.filter(lambda share: share.sum() > 0), st.integers(2, 10))
def test_cell_as_heavy_as_a_group_is_its_own_group(share: np.ndarray, count: int) -> None:
    label = ordered_groups(share, count)
    heaviest = int(np.argmax(share))
    if share[heaviest] * count > share.sum() * (1 + 1e-9) and share.size > 1:
        assert (label == label[heaviest]).sum() == 1


def test_equal_cells_form_equal_runs() -> None:
    assert ordered_groups(np.full(12, 1 / 12), 4).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_largest_cells_are_separate_and_the_rest_share_a_group() -> None:
    assert largest_and_rest(np.array([0.1, 0.5, 0.05, 0.3, 0.05]), 3).tolist() == [2, 0, 2, 1, 2]


@given(st.integers(0, 2**32 - 1))
def test_counts_on_pieces_give_the_counts_of_every_candidate(seed: int) -> None:
    """Counted once on coarse columns and coarsened in memory: the same as grouping the rows."""
    generator = np.random.default_rng(seed)
    columns = tuple(
        Column(
            name, 40, (0, *sorted(generator.choice(np.arange(1, 40), 20, replace=False).tolist())), ordered=o, missing=m
        )
        for name, o, m in (("a", True, False), ("b", False, True), ("c", True, True))
    )
    codes = np.column_stack([generator.integers(-1, 40 + column.missing, 200) for column in columns])
    offers = offer_groupings([column.cells for column in columns], (9, 30, 80), 12)
    counts = [
        sorted({pair[side] for key, pairs in offers.items() for pair in pairs for side in (0, 1) if key[side] == n})
        for n in range(3)
    ]
    groups = [
        group_cells(c, generator.dirichlet(np.full(c.cells, 0.4)), k) for c, k in zip(columns, counts, strict=True)
    ]
    candidates, rows = Candidates(groups, offers), ArrayRows(codes, columns)
    private = Private(candidates, lambda: rows.pairs([group.coarse for group in groups]))
    for index, candidate in enumerate(candidates.all):
        expected = np.zeros(candidate.shape, np.int64)
        left, right = (
            columns[candidate.left].cell_of(codes[:, candidate.left]),
            columns[candidate.right].cell_of(codes[:, candidate.right]),
        )
        for a, b in zip(left, right, strict=True):
            if a >= 0 and b >= 0:
                expected[candidate.rows.cells[a], candidate.columns.cells[b]] += 1
        assert (private.table(index) == expected).all()
