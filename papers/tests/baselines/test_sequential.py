"""Whole syntheses by sequential regressions: accurate at a large loss, and valid at a small one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from baselines.small_tables import quiet
from claims.probabilities import bits
from tidegate_papers.baselines.regressions import Regressions, points_of, shares_of
from tidegate_papers.baselines.sequential import Sequential

from tidegate.errors import Unsupported
from tidegate.synthesize.diary import Diary, Loss
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.private_rows import ArrayRows

AGE, SEX = Column("age", 101, tuple(range(101))), Column("sex", 2, (0, 1), ordered=False)
TOWN = Column("town", 3, (0, 1, 2), ordered=False)
PAY = Column("pay", 5_000, tuple(range(0, 5_000, 100)), missing=True)
COLUMNS = (AGE, SEX, TOWN, PAY)
FAST = Sequential(many=4_000, some=400)


def people(rows: int, seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    z = random.standard_normal(rows)
    age = np.clip(np.rint(45 + 12 * z), 0, 100).astype(int)
    sex = (random.random(rows) < 1 / (1 + np.exp(-z))).astype(int)
    powers = np.exp(np.column_stack([0 * z, 0.8 * z, -z - 0.5]))
    town = ((powers / powers.sum(1, keepdims=True)).cumsum(1) < random.random(rows)[:, None]).sum(1)
    pay = np.rint(2_000 + 300 * z + 200 * sex + 200 * random.standard_normal(rows)).astype(int)
    return np.column_stack([age, sex, town, np.where(random.random(rows) < 0.1, PAY.size, np.clip(pay, 0, 4_999))])


def learn(
    codes: np.ndarray, columns: tuple[Column, ...], epsilon: Fraction, model: Sequential = FAST, name: str = "x"
) -> tuple[Regressions, Diary]:
    diary = Diary(epsilon)
    rows = ArrayRows(codes, columns)
    return model.learn(Facts(columns, len(codes)), rows, diary, bits=bits(name), progress=quiet), diary


class Gone(ArrayRows):
    """Rows that must not be read."""

    def __init__(self) -> None:
        pass

    def codes(self, columns: object) -> np.ndarray:
        raise AssertionError("the rows were read")


def test_large_loss_recovers_a_mixed_table() -> None:
    """Not a sampled claim: at epsilon 50 the noise is far below these margins."""
    codes = people(3_000)
    learned, diary = learn(codes, COLUMNS, Fraction(50), name="mixed")
    drawn = learned.draw(20_000, seed=5)
    assert diary.left == 0
    for column, index in zip(COLUMNS, range(4), strict=True):
        assert drawn[:, index].min() >= 0
        assert drawn[:, index].max() < column.size + column.missing
    assert abs((drawn[:, 3] == PAY.size).mean() - 0.1) < 0.02
    here, there = codes[codes[:, 3] < PAY.size], drawn[drawn[:, 3] < PAY.size]
    assert abs(np.corrcoef(here[:, 0], here[:, 3])[0, 1] - np.corrcoef(there[:, 0], there[:, 3])[0, 1]) < 0.06
    assert abs(here[here[:, 1] == 1, 0].mean() - there[there[:, 1] == 1, 0].mean()) < 2
    for town in range(3):
        assert abs((here[:, 2] == town).mean() - (there[:, 2] == town).mean()) < 0.04
        assert abs(here[here[:, 2] == town, 0].mean() - there[there[:, 2] == town, 0].mean()) < 3


def test_parents_are_chosen_if_there_are_many() -> None:
    """The fifth column copies the second with noise; the others are noise."""
    random = np.random.default_rng(2)
    columns = tuple(Column(f"c{n}", 300, (0,)) for n in range(5))
    codes = random.normal(150, 30, (2_000, 5))
    codes[:, 4] = 0.9 * codes[:, 1] + 15 + random.normal(0, 10, 2_000)
    learned, diary = learn(np.clip(np.rint(codes), 0, 299).astype(int), columns, Fraction(40), name="parents")
    assert 1 in learned.states[4].parents
    assert len(learned.states[4].parents) == 3
    drawn = learned.draw(4_000, seed=1)
    assert np.corrcoef(drawn[:, 1], drawn[:, 4])[0, 1] > 0.85
    assert sum("parent" in step.name for step in diary.steps) == 3


def test_diary_gives_the_same_model_without_the_rows() -> None:
    first, diary = learn(people(300), COLUMNS, Fraction(2), Sequential(many=50, some=20), name="again")
    again = Sequential(many=50, some=20).learn(
        Facts(COLUMNS, 300), Gone(), Diary(Fraction(2), diary.steps), bits=bits("never"), progress=quiet
    )
    assert (first.draw(50, seed=3) == again.draw(50, seed=3)).all()


def test_unlisted_values_are_left_out() -> None:
    codes = people(500)
    codes[::7, 0], codes[::5, 1] = -1, -1
    learned, _ = learn(codes, COLUMNS, Fraction(4), Sequential(many=50, some=20), name="unlisted")
    drawn = learned.draw(300, seed=1)
    assert drawn[:, :3].min() >= 0
    assert drawn[:, 1].max() <= 1


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("constant", [False, True])
def test_very_few_rows_still_give_a_table(rows: int, constant: bool) -> None:
    codes = people(rows) if not constant else np.tile([40, 1, 2, PAY.size], (rows, 1))
    learned, diary = learn(codes.reshape(rows, 4), COLUMNS, Fraction(1), Sequential(many=20, some=8), name="few")
    drawn = learned.draw(30, seed=1)
    assert drawn.shape == (30, 4)
    assert diary.spent.pure == 1
    for index, column in enumerate(COLUMNS):
        assert 0 <= drawn[:, index].min() <= drawn[:, index].max() < column.size + column.missing


def test_named_parents_are_used_and_invalid_ones_refused() -> None:
    learned, _ = learn(people(200), COLUMNS, Fraction(1), Sequential({"pay": ["sex"]}, many=20, some=8), name="named")
    assert [state.parents for state in learned.states] == [(), (), (), (1,)]
    with pytest.raises(Unsupported, match="cannot depend on pay"):
        Sequential({"age": ["pay"]}).stages(Facts(COLUMNS, 9), limit=Loss.of_pure(Fraction(1)))


def test_points_of_a_row_are_evenly_spaced_in_its_step() -> None:
    coarse = Column("x", 5, (0,))
    assert shares_of([coarse]) == 16
    assert shares_of([Column("x", 5_000, (0,))]) == 1
    points = points_of(np.array([3]), coarse, index=1, shares=16, seed=1)
    assert sorted(points.values.tolist()) == [3 - 0.5 + (k + 0.5) / 16 for k in range(16)]


def test_number_whose_only_parent_is_constant_is_learned_alone() -> None:
    columns = (Column("always", 1, (0,), ordered=False), Column("pay", 1_000, (0, 500)))
    codes = np.stack([np.zeros(200, np.int64), np.arange(200) * 5], axis=1)
    model = Sequential(parents={"pay": ("always",)}, many=50, some=50)
    learned, diary = learn(codes, columns, Fraction(4), model)
    assert learned.draw(20, seed=1).shape == (20, 2)
    assert diary.left >= 0
