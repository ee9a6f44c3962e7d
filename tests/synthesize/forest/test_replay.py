"""The model is a function of its diary: it is rebuilt without the rows, and continues after an interruption."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from synthesize.forest.surveys import COLUMNS, NoRows, Stopped, interrupt_after, learn, people

from tidegate.synthesize.diary import Diary, Step
from tidegate.synthesize.facts import Facts
from tidegate.synthesize.private_rows import ArrayRows

EPSILON = Fraction(6)
KNOWN = Facts(COLUMNS, 10_000)
ROWS = ArrayRows(people(10_000), COLUMNS)


@pytest.fixture(scope="module")
def full_run() -> tuple[list[Step], np.ndarray]:
    diary = Diary(EPSILON)
    drawn = learn(KNOWN, ROWS, diary).draw(500, seed=3)
    return list(diary.steps), drawn


def test_same_diary_gives_the_same_synthetic_rows_without_the_true_rows(
    full_run: tuple[list[Step], np.ndarray],
) -> None:
    steps, drawn = full_run
    again = learn(KNOWN, NoRows(), Diary(EPSILON, steps), seed="other")
    assert (again.draw(500, seed=3) == drawn).all()
    assert (again.draw(500, seed=4) != drawn).any()


def test_diary_survives_json_and_gives_the_same_rows(full_run: tuple[list[Step], np.ndarray]) -> None:
    steps, drawn = full_run
    copied = [Step.from_dict(step.to_dict()) for step in steps]
    assert (learn(KNOWN, NoRows(), Diary(EPSILON, copied)).draw(500, seed=3) == drawn).all()


def test_run_has_every_kind_of_step(full_run: tuple[list[Step], np.ndarray]) -> None:
    assert {step.name.split()[0] for step in full_run[0]} == {"spikes", "margin", "choice", "pair"}


def test_run_interrupted_at_any_step_continues_from_there(full_run: tuple[list[Step], np.ndarray]) -> None:
    """Every step up to the first extra pair, then every fifth."""
    for stop in (*range(1, 10), *range(10, len(full_run[0]) + 1, 5)):
        written: list[Step] = []
        with pytest.raises(Stopped):
            learn(KNOWN, ROWS, Diary(EPSILON, keep=interrupt_after(stop, written)))
        assert [step.to_dict() for step in written] == [step.to_dict() for step in full_run[0][:stop]]
        resumed = Diary(EPSILON, written)
        drawn = learn(KNOWN, ROWS, resumed, seed=stop).draw(50, seed=1)
        assert resumed.steps[:stop] == tuple(written)
        assert resumed.spent <= EPSILON
        assert (learn(KNOWN, NoRows(), Diary(EPSILON, resumed.steps)).draw(50, seed=1) == drawn).all()


def test_diary_of_another_run_is_refused(full_run: tuple[list[Step], np.ndarray]) -> None:
    with pytest.raises(ValueError, match="The diary contains"):
        learn(KNOWN, NoRows(), Diary(EPSILON, full_run[0][1:]))
