"""The baselines of the pMSE paper: exact if they state so, and as good or bad as they are known to be."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from baselines.small_tables import quiet
from claims.probabilities import bits, chance
from tidegate_papers.baselines.bppd import Bppd, sensitivity, statistic
from tidegate_papers.baselines.copula import Copula
from tidegate_papers.baselines.metropolis import Metropolis
from tidegate_papers.baselines.plug_in import PlugIn
from tidegate_papers.baselines.sequential import Sequential
from tidegate_papers.baselines.smooth_histogram import SmoothHistogram, draw_cells, weights

from tidegate.errors import Unsupported
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.private_rows import ArrayRows
from tidegate.testing import check_model

X, Y = Column("x", 9, (0, 3, 6)), Column("y", 4, (0, 1, 2, 3))
SEX = Column("sex", 2, (0, 1), ordered=False)
WIDE = (Column("x", 2_001, (0,)), Column("y", 1_001, (0,)))
ALPHA = 1e-6


def learn(model: object, codes: np.ndarray, columns: tuple[Column, ...], epsilon: Fraction, name: str) -> tuple:
    diary = Diary(epsilon)
    facts, rows = Facts(columns, len(codes)), ArrayRows(codes, columns)
    return model.learn(facts, rows, diary, bits=bits(name), progress=quiet), diary


def line(rows: int) -> np.ndarray:
    random = np.random.default_rng(1)
    x = random.normal(1_000, 250, rows)
    return np.clip(np.rint(np.column_stack([x, 0.3 * x + 200 + random.normal(0, 60, rows)])), 0, [2_000, 1_000]).astype(
        int
    )


# Sufficient statistics


@pytest.mark.parametrize("places", [(0,), (1,), (0, 0), (1, 1), (0, 1)])
def test_one_row_changes_a_statistic_by_at_most_its_sensitivity(places: tuple[int, ...]) -> None:
    values = [statistic((X, Y), np.array([[x, y]]), places) for x, y in product(range(-1, X.size), range(-1, Y.size))]
    most = max(values) - min(values)
    assert most <= sensitivity((X, Y), places)
    assert most >= 0.7 * sensitivity((X, Y), places)  # tight except for uneven halves


def test_posterior_draw_is_close_to_the_data_at_a_large_loss() -> None:
    codes = line(3_000)
    learned, diary = learn(Bppd(), codes, WIDE, Fraction(1_000), "bppd")
    drawn = learned.draw(5_000, seed=1)
    assert diary.left == 0
    assert len(diary.steps) == 5
    assert np.polyfit(*drawn.T, 1)[0] == pytest.approx(0.3, abs=0.02)
    assert drawn.std(0) == pytest.approx(codes.std(0), rel=0.05)
    noisy, _ = learn(Bppd(), codes, WIDE, Fraction(1, 100), "noisy")
    assert noisy.draw(100, seed=1).shape == (100, 2)


def test_sums_of_categories_or_of_wide_columns_are_refused() -> None:
    with pytest.raises(Unsupported, match="sex is not"):
        Bppd().stages(Facts((X, SEX), 9), limit=Loss.of_pure(Fraction(1)))
    with pytest.raises(Unsupported, match="64 bits"):
        Bppd().stages(Facts((Column("x", 2**31, (0,)), X), 10**6), limit=Loss.of_pure(Fraction(1)))


# The smoothed histogram


@pytest.mark.parametrize("reach", [1, 2])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(4)])
def test_ratios_of_a_smooth_histogram_are_within_its_loss(epsilon: Fraction, reach: int) -> None:
    """All tables of three rows on three cells (or unlisted) and all neighbors; P(cell) to the n-th power."""
    column = (Column("x", 3, (0, 1, 2)),)
    facts = Facts(column, 3, reach)
    worst = 0.0
    for table in product((-1, 0, 1, 2), repeat=3):
        for changed in product((-1, 0, 1, 2), repeat=reach):
            other = (*changed, *table[reach:])
            chances = []
            for rows in (table, other):
                each, unlisted, total = weights(np.array([rows.count(c) for c in range(3)]), facts, epsilon)
                chances.append((each + unlisted / 3) / total)
            worst = max(worst, float(np.abs(np.log(chances[0] / chances[1])).max()) * 3)
    assert 0.2 * float(epsilon) < worst <= float(epsilon)


@pytest.mark.parametrize("reach", [1, 2])
@pytest.mark.parametrize("noisy_rows", [2, 3, 4, 5])
def test_smooth_histogram_keeps_its_loss_with_a_noisy_number_of_rows(noisy_rows: int, reach: int) -> None:
    """Persons with up to `reach` rows, replaced by any others; fewer or more rows than the noisy number raise no error."""
    facts, epsilon, worst = Facts((Column("x", 2, (0, 1)),), noisy_rows, reach), Fraction(3), 0.0
    persons = [person for length in range(reach + 1) for person in product((0, 1), repeat=length)]
    for others in product((0, 1), repeat=3):
        tables = [np.bincount([*person, *others], minlength=2) for person in persons]
        for counts in tables:
            draw_cells(counts, facts, epsilon, bits=bits("noisy number"))
        chances = [(each + left / 2) / total for each, left, total in (weights(c, facts, epsilon) for c in tables)]
        worst = max(worst, *(float(np.abs(np.log(a / b)).max()) * noisy_rows for a, b in product(chances, repeat=2)))
    assert 0.2 * float(epsilon) < worst <= float(epsilon)


def test_mixing_weight_is_at_least_the_printed_one() -> None:
    cells, rows, epsilon = 50, 200, 1.5
    each, unlisted, total = weights(np.full(cells, rows // cells), Facts((X,), rows), Fraction(3, 2))
    uniform = cells * rows * 2**20 / total
    printed = cells / (cells + rows * (math.exp(epsilon / rows) - 1))
    assert unlisted == 0
    assert each.sum() == total
    assert printed <= uniform <= printed * 1.001


def test_cells_are_drawn_in_proportion_to_their_weights() -> None:
    """Alpha 1e-6: 20,000 rows, unlisted ones spread evenly."""
    counts = np.array([9_000, 1_000, 8_000])
    facts = Facts((Column("x", 3, (0, 1, 2)),), 20_000)
    drawn = np.bincount(draw_cells(counts, facts, Fraction(40_000), bits=bits("cells")), minlength=3)
    each, unlisted, total = weights(counts, facts, Fraction(40_000))
    assert unlisted > 0
    assert chance(drawn, (each + unlisted / 3) / total) > ALPHA
    assert chance(drawn, (counts + 1.0) / (counts + 1.0).sum()) < ALPHA


def test_smooth_histogram_draws_rows_of_its_cells() -> None:
    codes = np.column_stack([np.arange(40) % 9, np.arange(40) % 4])
    learned, diary = learn(SmoothHistogram(), codes, (X, Y), Fraction(2), "smooth")
    drawn = learned.draw(90, seed=1)
    assert drawn.shape == (90, 2)
    assert drawn.max(0).tolist() <= [8, 3]
    assert diary.left == 0
    with pytest.raises(Unsupported, match="too large"):
        SmoothHistogram().stages(
            Facts((Column("x", 10**7, tuple(range(3_000))),) * 2, 9), limit=Loss.of_pure(Fraction(1))
        )


# Without privacy


def test_plug_in_is_the_best_fit_and_states_that_it_is_not_private() -> None:
    codes = line(2_000)
    mixed = np.column_stack([codes, (codes[:, 0] > 1_000).astype(int)])
    model = PlugIn()
    learned, diary = learn(model, mixed, (*WIDE, SEX), Fraction(1), "plug")
    drawn = learned.draw(5_000, seed=1)
    assert not model.exact
    assert not model.private
    assert diary.steps == ()
    assert np.polyfit(*drawn[:, :2].T, 1)[0] == pytest.approx(np.polyfit(*codes.T, 1)[0], abs=0.02)
    assert drawn[drawn[:, 2] == 1, 0].mean() > drawn[drawn[:, 2] == 0, 0].mean() + 200
    assert "NOT private" in model.stages(Facts(WIDE, 9), limit=Loss.of_pure(Fraction(1)))[0].says


# The protocol of a model

NUMBERS, MIXED = (X, Y), (X, Column("town", 3, (0, 1, 2), ordered=False, missing=True))
MODELS = {Sequential(many=200, some=40): MIXED, Copula(): MIXED, SmoothHistogram(): MIXED, Bppd(): NUMBERS}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_exact_baseline_keeps_the_contract_of_models(model: Any) -> None:
    columns = MODELS[model]
    random = np.random.default_rng(3)
    codes = np.column_stack([random.integers(0, column.size, 400) for column in columns])
    check_model(model, Facts(columns, 400), codes).refuse()
    assert all(stage.says for stage in model.stages(Facts(columns, 400), limit=Loss.of_pure(Fraction(1))))


@pytest.mark.parametrize("model", [*MODELS, Metropolis()], ids=lambda model: model.name)
def test_limit_on_z_is_refused_before_a_row_is_read(model: Any) -> None:
    with pytest.raises(Unsupported, match="requires a pure loss"):
        model.stages(Facts(NUMBERS, 400), limit=Loss(None, Fraction(1), Fraction(2)))
