"""Histograms joined by a normal copula."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from baselines.small_tables import quiet
from claims.probabilities import bits
from reference.exponential import probabilities
from scipy.stats import multivariate_normal
from tidegate_papers.baselines.copula import (
    GRID,
    Copula,
    cuts_of,
    group_cells,
    on_simplex,
    rectangles,
    repair_correlations,
    tree_correlations,
)

from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.private_rows import ArrayRows


def learn(codes: np.ndarray, columns: tuple[Column, ...], epsilon: Fraction, name: str) -> tuple[object, Diary]:
    diary = Diary(epsilon)
    facts, rows = Facts(columns, len(codes)), ArrayRows(codes, columns)
    return Copula().learn(facts, rows, diary, bits=bits(name), progress=quiet), diary


def test_rectangles_match_the_bivariate_normal() -> None:
    cuts = np.array([-np.inf, -1.0, 0.3, 2.0, np.inf])
    rho = np.array([-0.95, -0.3, 0.0, 0.4, 0.99])
    boxes = rectangles(cuts, cuts[[0, 2, 4]], rho)
    for index, r in enumerate(rho):
        normal = multivariate_normal([0, 0], [[1, r], [r, 1]])
        below = np.array([[normal.cdf([a, b]) for b in (-9, 0.3, 9)] for a in (-9, -1.0, 0.3, 2.0, 9)])
        assert boxes[index] == pytest.approx(np.diff(np.diff(below, axis=0), axis=1), abs=2e-5)
    assert boxes.sum((1, 2)) == pytest.approx(1)


def test_large_loss_recovers_margins_and_correlations() -> None:
    random = np.random.default_rng(1)
    z = random.multivariate_normal([0, 0, 0], [[1, 0.7, -0.4], [0.7, 1, 0], [-0.4, 0, 1]], 4_000)
    columns = (
        Column("a", 60, tuple(range(0, 60, 5))),
        Column("b", 4, (0, 1, 2, 3)),
        Column("c", 30, tuple(range(30)), missing=True),
    )
    codes = np.column_stack(
        [np.clip(30 + 9 * z[:, 0], 0, 59), np.digitize(z[:, 1], [-1, 0, 1]), np.clip(15 + 4 * z[:, 2], 0, 29)]
    ).astype(int)
    codes[::10, 2] = 30
    learned, diary = learn(codes, columns, Fraction(30), "copula")
    drawn = learned.draw(20_000, seed=1)
    assert diary.left == 0
    assert learned.correlations[0, 1] == pytest.approx(0.7, abs=0.04)
    assert abs((drawn[:, 2] == 30).mean() - 0.1) < 0.02
    for index, column in enumerate(columns):
        here, there = (
            np.bincount(column.cell_of(t[:, index]), minlength=column.cells) / len(t) for t in (codes, drawn)
        )
        assert np.abs(here - there).sum() < 0.06


def test_tree_joins_many_columns() -> None:
    """Twelve columns, each of which depends on the one before."""
    random = np.random.default_rng(2)
    z = np.cumsum(random.standard_normal((3_000, 12)), axis=1) / np.sqrt(np.arange(1, 13))
    columns = tuple(Column(f"c{n}", 8, tuple(range(8))) for n in range(12))
    codes = np.clip(np.rint(3.5 + 1.5 * z), 0, 7).astype(int)
    learned, diary = learn(codes, columns, Fraction(60), "tree")
    pairs = [tuple(step.value) for step in diary.steps if step.name.startswith("pair ")]
    assert len(pairs) == 11
    assert sum(b - a == 1 for a, b in pairs) >= 9
    assert np.linalg.eigvalsh(learned.correlations).min() > -1e-9
    assert learned.correlations[0, 11] > 0.1


def test_choice_of_a_correlation_loses_at_most_its_share() -> None:
    """Every neighbor of a table of four rows: integer misfits change by at most 2."""
    shares = [np.array([0.4, 0.3, 0.3]), np.array([0.5, 0.5])]
    groups = [group_cells(s) for s in shares]
    boxes = np.rint(4 * rectangles(*(cuts_of(s, g) for s, g in zip(shares, groups, strict=True)), GRID)).astype(int)
    cells = list(product(range(groups[0].max() + 1), range(groups[1].max() + 1)))
    table = np.zeros(boxes.shape[1:], int)
    for cell in (cells[0], cells[1], cells[1], cells[-1]):
        table[cell] += 1
    rate, worst = Fraction(1, 4), 0.0  # of epsilon 1 and sensitivity 2
    for removed, added in product([c for c in cells if table[c]], cells):
        other = table.copy()
        other[removed] -= 1
        other[added] += 1
        before, after = (probabilities((-np.abs(boxes - t).sum((1, 2))).tolist(), rate) for t in (table, other))
        worst = max(worst, *(abs(float(np.log(float(a / b)))) for a, b in zip(before, after, strict=True)))
    assert 0.2 < worst <= 1


def test_inconsistent_correlations_are_repaired() -> None:
    fitted = repair_correlations(3, {(0, 1): 0.9, (0, 2): 0.9, (1, 2): -0.9})
    assert np.linalg.eigvalsh(fitted).min() > 0
    assert np.diag(fitted) == pytest.approx(1)
    good = {(0, 1): 0.5, (0, 2): 0.2, (1, 2): 0.1}
    assert repair_correlations(3, good)[0, 1] == pytest.approx(0.5)
    assert tree_correlations(3, {(0, 1): 0.5, (1, 2): 0.5})[0, 2] == pytest.approx(0.25)


@pytest.mark.parametrize("noisy", [[5, -3, 8], [-2, -9, -1], [0, 0, 0], [7]])
def test_noisy_counts_become_shares(noisy: list[int]) -> None:
    shares = on_simplex(np.array(noisy))
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)
