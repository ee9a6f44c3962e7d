"""A diary cannot be overspent, and it can be read again."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.synthesize.diary import Diary, Step

HALF = Fraction(1, 2)


def never() -> np.ndarray:
    raise AssertionError("the rows were read")


def test_written_steps_are_read_without_the_rows() -> None:
    first = Diary(Fraction(1))
    margin = first.step("margin", HALF, lambda: np.array([3, -1]))
    pair = first.step("pair", HALF, lambda: np.array([[1, 2], [3, 4]]))
    again = Diary(Fraction(1), first.steps)
    assert again.step("margin", HALF, never).tolist() == margin.tolist()
    assert again.step("pair", HALF, never).tolist() == pair.tolist()
    assert again.left == 0


def test_interrupted_diary_continues() -> None:
    written: list[Step] = []
    first = Diary(Fraction(1), keep=written.append)
    first.step("a", HALF, lambda: np.array([1]))
    second = Diary(Fraction(1), written, keep=written.append)
    second.step("a", HALF, never)
    second.step("b", HALF, lambda: np.array([2]))
    assert [step.name for step in written] == ["a", "b"]


def test_step_that_would_overspend_is_never_measured() -> None:
    diary = Diary(Fraction(1))
    diary.step("a", Fraction(2, 3), lambda: np.array([1]))
    with pytest.raises(ValueError, match="more than the diary"):
        diary.step("b", Fraction(1, 3) + Fraction(1, 10**30), never)
    with pytest.raises(ValueError, match="more than the diary"):
        diary.step("b", Fraction(-1, 3), never)
    assert diary.left == Fraction(1, 3)
    assert len(diary.steps) == 1


def test_reading_counts_as_spending() -> None:
    written = [Step("a", Fraction(2), np.array([1]))]
    with pytest.raises(ValueError, match="more than the diary"):
        Diary(Fraction(1), written).step("a", Fraction(2), never)


@pytest.mark.parametrize(("name", "epsilon"), [("b", HALF), ("a", Fraction(1, 4))])
def test_step_that_differs_from_the_written_one_is_refused(name: str, epsilon: Fraction) -> None:
    diary = Diary(Fraction(1), [Step("a", HALF, np.array([1]))])
    with pytest.raises(ValueError, match="The diary contains"):
        diary.step(name, epsilon, never)


def test_step_that_cannot_be_written_is_not_returned() -> None:
    def full(_: Step) -> None:
        raise OSError("no space")

    diary = Diary(Fraction(1), keep=full)
    with pytest.raises(OSError, match="no space"):
        diary.step("a", HALF, lambda: np.array([1]))
    assert diary.steps == ()


@given(
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=12),
    st.fractions(min_value=0, max_value=9),
    st.booleans(),
)
def test_step_survives_json(values: list[int], epsilon: Fraction, folded: bool) -> None:
    value = np.array(values, np.int64).reshape((1, -1) if folded else (-1,))
    back = Step.from_dict(json.loads(json.dumps(Step("x", epsilon, value).to_dict())))
    assert (back.name, back.epsilon) == ("x", epsilon)
    assert back.value.shape == value.shape
    assert back.value.dtype == np.int64
    assert (back.value == value).all()
