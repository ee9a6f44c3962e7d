"""Unusual tables: any valid public facts give rows within the columns' values."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from synthesize.forest.surveys import COLUMNS, Watched, learn, learn_codes, people

from tidegate.synthesize.diary import Diary
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest.plan import FEW_GROUPS

AGE = Column("age", 60, tuple(range(60)))
SEX = Column("sex", 2, (0, 1), ordered=False)
ONE = Column("planet", 1, (0,), ordered=False)
WIDE = Column("pay", 500, (0,))
JOB = Column("job", 7, tuple(range(7)), ordered=False, missing=True)
NOBODY = Column("pet", 5, tuple(range(5)), ordered=False, missing=True)

TABLES = {
    "one column": ((AGE,), people(200)[:, :1]),
    "two columns": ((AGE, SEX), people(200)[:, :2]),
    "a constant column": ((AGE, SEX), np.column_stack([np.full(200, 7), people(200)[:, 1]])),
    "a column of one value": ((ONE, SEX), np.column_stack([np.zeros(200, int), people(200)[:, 1]])),
    "nothing but one value": ((ONE,), np.zeros((200, 1), int)),
    "one wide cell": ((WIDE, SEX), np.column_stack([np.arange(200), people(200)[:, 1]])),
    "one row": (COLUMNS, people(1)),
    "no rows": (COLUMNS, people(0)),
    "all missing": ((JOB, NOBODY, SEX), np.column_stack([np.full(200, 7), np.full(200, 5), people(200)[:, 1]])),
    "nothing listed": ((SEX, AGE), np.full((200, 2), -1)),
    "some not listed": ((SEX, JOB), np.where(np.arange(200)[:, None] % 3 == 0, -1, people(200)[:, 1:3])),
}


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1), Fraction(10**12)], ids=str)
@pytest.mark.parametrize("name", TABLES)
def test_unusual_tables_give_rows_within_the_columns(name: str, epsilon: Fraction) -> None:
    columns, codes = TABLES[name]
    model, diary = learn_codes(codes, columns, epsilon)
    for rows in (0, 1, 333):
        drawn = model.draw(rows, seed=5)
        assert drawn.shape == (rows, len(columns))
        for index, column in enumerate(columns):
            assert ((drawn[:, index] >= 0) & (drawn[:, index] < column.size + column.missing)).all()
    assert diary.spent <= epsilon


@pytest.mark.parametrize("name", [name for name in TABLES if "listed" not in name and "row" not in name])
def test_huge_epsilon_reproduces_the_margins(name: str) -> None:
    columns, codes = TABLES[name]
    model, _ = learn_codes(codes, columns, Fraction(10**12))
    drawn = model.draw(100_000, seed=5)
    for index, column in enumerate(columns):
        cells = [
            np.bincount(column.cell_of(part[:, index]), minlength=column.cells) / len(part) for part in (codes, drawn)
        ]
        assert np.abs(cells[0] - cells[1]).max() < 0.005


def test_pairs_of_a_hundred_columns_are_counted_on_few_groups() -> None:
    generator = np.random.default_rng(8)
    columns = tuple(
        Column(f"c{n}", 200, tuple(range(200)), ordered=bool(n % 2), missing=n % 3 == 0) for n in range(100)
    )
    rows, diary = Watched(generator.integers(0, 200, (500, 100)), columns), Diary(Fraction(2))
    model = learn(Facts(columns, 500), rows, diary)
    (counted,) = [coarse for kind, coarse in rows.asked if kind == "pairs"]
    assert max(column.cells for column in counted) <= 2 * FEW_GROUPS  # the rest of a list is between its largest
    assert model.draw(10, seed=1).shape == (10, 100)


@pytest.mark.parametrize("reach", [2, 50])
def test_several_rows_per_person_add_noise_but_no_loss(reach: int) -> None:
    model, diary = learn_codes(people(2000), COLUMNS, Fraction(1), reach=reach)
    assert diary.spent <= 1
    assert model.draw(5, seed=1).shape == (5, 4)


def dependence(codes: np.ndarray) -> float:
    """Return how far job is from independence of sex, in total variation."""
    table = np.zeros((2, 8))
    np.add.at(table, (codes[:, 1], codes[:, 2]), 1 / len(codes))
    return float(np.abs(table - np.outer(table.sum(1), table.sum(0))).sum() / 2)


def test_synthetic_table_preserves_a_dependence() -> None:
    codes = people(20_000)
    model, _ = learn_codes(codes, COLUMNS, Fraction(4))
    assert dependence(codes) > 0.2
    assert dependence(model.draw(20_000, seed=2)) > 0.8 * dependence(codes)


def test_frequent_value_inside_a_wide_cell_is_detected_if_epsilon_allows() -> None:
    codes = people(20_000)
    drawn = [learn_codes(codes, COLUMNS, epsilon)[0].draw(20_000, seed=2) for epsilon in (Fraction(8), Fraction(1, 2))]
    share = [(rows[:, 3] == 500).mean() for rows in (codes, *drawn)]
    assert share[1] == pytest.approx(share[0], abs=0.01)
    assert share[2] < share[0] / 10


def test_pairs_with_a_target_are_preferred() -> None:
    codes = people(20_000)
    named = [[s.name for s in learn_codes(codes, COLUMNS, Fraction(1), target=t)[1].steps] for t in ("", "gain")]
    counted = [sum("gain" in name for name in names if name.startswith("pair")) for names in named]
    assert counted[1] >= counted[0]
