"""Unusual tables: any valid public facts give rows within the columns' values."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from synthesize.forest.surveys import (
    COLUMNS,
    LIMITS,
    SHOP,
    Watched,
    by_z,
    is_inside,
    learn,
    learn_codes,
    pairwise,
    people,
    pure,
    sales,
    wide_column,
)

from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest.plan import FEW_GROUPS
from tidegate.synthesize.private_rows import ArrayRows

AGE = Column("age", 60, tuple(range(60)))
SEX = Column("sex", 2, (0, 1), ordered=False)
ONE = Column("planet", 1, (0,), ordered=False)
WIDE = Column("pay", 500, (0,))
JOB = Column("job", 7, tuple(range(7)), ordered=False, missing=True)
JOB_AGAIN = Column("work", 7, tuple(range(7)), ordered=False, missing=True)
NOBODY = Column("pet", 5, tuple(range(5)), ordered=False, missing=True)
HUGE_TOO = wide_column("other id", 2**53)

HUGE = wide_column("id", 2**53)
SPENT = wide_column("spent", 10**7, missing=True)
HEAPED = Column("gain", 200_000, (0, 1, 100, 199_999), even=False, heaped=True, missing=True)
generator = np.random.default_rng(2)

TABLES = {
    "one column": ((AGE,), people(200)[:, :1]),
    "two columns": ((AGE, SEX), people(200)[:, :2]),
    "a constant column": ((AGE, SEX), np.column_stack([np.full(200, 7), people(200)[:, 1]])),
    "a column of one value": ((ONE, SEX), np.column_stack([np.zeros(200, int), people(200)[:, 1]])),
    "nothing but one value": ((ONE,), np.zeros((200, 1), int)),
    "all rows equal": (COLUMNS, np.repeat(people(1), 200, axis=0)),
    "one wide cell": ((WIDE, SEX), np.column_stack([np.arange(200), people(200)[:, 1]])),
    "one wide cell alone": ((WIDE,), np.arange(200)[:, None]),
    "one row": (COLUMNS, people(1)),
    "no rows": (COLUMNS, people(0)),
    "all missing": ((JOB, NOBODY, SEX), np.column_stack([np.full(200, 7), np.full(200, 5), people(200)[:, 1]])),
    "nothing listed": ((SEX, AGE), np.full((200, 2), -1)),
    "some not listed": ((SEX, JOB), np.where(np.arange(200)[:, None] % 3 == 0, -1, people(200)[:, 1:3])),
    "codes outside": ((SEX, JOB, AGE), generator.integers(-(2**60), 2**60, (200, 3))),
    "wide columns": ((HUGE, SPENT), generator.integers(0, 10**7, (200, 2))),
    "the ends of a wide column": ((HUGE, SPENT), np.tile([[0, 0], [2**53 - 1, 10**7]], (100, 1))),
    "one heap in a wide column": ((HUGE, HUGE_TOO), np.full((3000, 2), 2**52 + 12_345)),
    "wide columns without rows": ((HUGE, SPENT, SEX), np.zeros((0, 3), int)),
    "wide columns that are not listed": ((HUGE, SPENT), np.full((200, 2), -1)),
    "wide columns all missing": ((SPENT,), np.full((3000, 1), 10**7)),
    "a heaped column": ((HEAPED, SEX), np.column_stack([np.full(3000, 77), people(3000)[:, 1]])),
    "equal columns": ((JOB, JOB_AGAIN, SEX), people(3000)[:, [2, 2, 1]]),
}
AMOUNTS = (Fraction(1, 10**6), Fraction(1), Fraction(10**12))
KINDS = {"pure": pure, "z": by_z, "pairwise z": pairwise}


@pytest.mark.one_in(7)  # 28 of 198: every table, kind of loss and amount
@pytest.mark.parametrize("amount", AMOUNTS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TABLES)
def test_unusual_tables_give_rows_within_the_columns(name: str, kind: str, amount: Fraction) -> None:
    columns, codes = TABLES[name]
    limit = KINDS[kind](amount)
    model, diary = learn_codes(codes, columns, limit)
    for rows in (0, 1, 333):
        drawn = model.draw(rows, seed=5)
        assert drawn.shape == (rows, len(columns))
        assert is_inside(drawn, columns)
    assert not diary.spent.exceeds(limit)
    assert np.isfinite(model.summary.misfit)
    assert model.from_dict(model.to_dict()).to_dict() == model.to_dict()


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "name", [name for name in TABLES if "listed" not in name and "row" not in name and "outside" not in name]
)
@pytest.mark.parametrize("kind", ["pure", "z"])
def test_huge_limit_reproduces_the_margins(name: str, kind: str) -> None:
    columns, codes = TABLES[name]
    model, _ = learn_codes(codes, columns, KINDS[kind](Fraction(10**12)))
    drawn = model.draw(100_000, seed=5)
    for index, column in enumerate(columns):
        cells = [
            np.bincount(column.cell_of(part[:, index]), minlength=column.cells) / len(part) for part in (codes, drawn)
        ]
        assert np.abs(cells[0] - cells[1]).max() < 0.005


@pytest.mark.one_in(2)
@pytest.mark.parametrize("limit", [pure(2), by_z("0.05")], ids=["pure", "z"])
def test_pairs_of_a_hundred_columns_are_counted_on_few_groups(limit: Loss) -> None:
    generator = np.random.default_rng(8)
    columns = tuple(
        Column(f"c{n}", 200, tuple(range(200)), ordered=bool(n % 2), missing=n % 3 == 0) for n in range(100)
    )
    rows, diary = Watched(generator.integers(0, 200, (500, 100)), columns), Diary(limit)
    model = learn(Facts(columns, 500), rows, diary)
    (counted,) = [coarse for kind, coarse in rows.asked if kind == "pairs"]
    assert max(column.cells for column in counted) <= 2 * FEW_GROUPS  # the rest of a list is between its largest
    assert is_inside(model.draw(10, seed=1), columns)


@pytest.mark.parametrize("mode", LIMITS)
@pytest.mark.parametrize("reach", [2, 50])
def test_several_rows_per_person_add_noise_but_no_loss(reach: int, mode: str) -> None:
    model, diary = learn_codes(people(2000), COLUMNS, LIMITS[mode], reach=reach)
    assert not diary.spent.exceeds(LIMITS[mode])
    assert model.draw(5, seed=1).shape == (5, 4)


def dependence(codes: np.ndarray) -> float:
    """Return how far job is from independence of sex, in total variation."""
    table = np.zeros((2, 8))
    np.add.at(table, (codes[:, 1], codes[:, 2]), 1 / len(codes))
    return float(np.abs(table - np.outer(table.sum(1), table.sum(0))).sum() / 2)


@pytest.mark.parametrize("limit", [pure(4), by_z("0.1")], ids=["pure", "z"])
def test_synthetic_table_preserves_a_dependence(limit: Loss) -> None:
    codes = people(20_000)
    model, _ = learn_codes(codes, COLUMNS, limit)
    assert dependence(codes) > 0.2
    assert dependence(model.draw(20_000, seed=2)) > 0.8 * dependence(codes)


def test_frequent_value_inside_a_wide_cell_is_detected_if_the_limit_allows() -> None:
    codes = people(20_000)
    limits = (pure(8), by_z("0.1"), pure("1/2"))
    drawn = [learn_codes(codes, COLUMNS, limit)[0].draw(20_000, seed=2) for limit in limits]
    share = [(rows[:, 3] == 500).mean() for rows in (codes, *drawn)]
    assert share[1:3] == pytest.approx([share[0]] * 2, abs=0.01)
    assert share[3] < share[0] / 10


@pytest.mark.parametrize("limit", [pure(100), by_z(10)], ids=["pure", "z"])
def test_pairs_with_a_target_are_preferred(limit: Loss) -> None:
    """a and b depend on each other a little more than c and d."""
    generator = np.random.default_rng(1)
    a, c = generator.integers(0, 4, (2, 5000))
    b, d = (np.where(generator.random(5000) < p, x, generator.integers(0, 4, 5000)) for x, p in ((a, 0.8), (c, 0.72)))
    codes, columns = np.column_stack([a, b, c, d]), tuple(Column(name, 4, (0, 1, 2, 3)) for name in "abcd")
    firsts = {}
    for target in ("", "c"):
        (first, *_) = learn_codes(codes, columns, limit, target=target)[0].summary.pairs
        firsts[target] = (first.left, first.right)
    assert firsts == {"": ("a", "b"), "c": ("c", "d")}


def test_columns_that_are_not_searched_for_maps_have_none() -> None:
    diary = Diary(by_z(1))
    facts = Facts(SHOP, 20_000, search_maps=False)
    model = learn(facts, ArrayRows(sales(20_000), SHOP), diary)
    assert model.maps == ()
    assert not any(step.name.startswith(("test", "map", "choice of map")) for step in diary.steps)


def test_low_budget_has_a_banner_and_a_high_one_has_none() -> None:
    codes = people(20_000)
    banners = [learn_codes(codes, COLUMNS, limit)[0].summary.banner for limit in (by_z("1/1000000"), by_z(1))]
    assert re.fullmatch(r"This budget supports margins and \d+ associations? only\.", banners[0])
    assert banners[1] == ""
