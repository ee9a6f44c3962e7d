"""Sampled claims about the forest's loss: each kind of step, attacked where one row reveals most.

Runs of the model itself, stopped after the step. Correct code fails with probability at most ALPHA in each of 3 tests, so
3e-6 for the file.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from claims.probabilities import bits, epsilon_lower_bound

from tidegate.synthesize.diary import Diary, Step
from tidegate.synthesize.facts import Column, Facts
from tidegate.synthesize.mechanisms.forest import Forest, rounds
from tidegate.synthesize.mechanisms.forest.noise import Measurements
from tidegate.synthesize.private_rows import ArrayRows

pytestmark = pytest.mark.claim

ALPHA, RUNS = 1e-6, 3000
EPSILON = Fraction(2)
LARGE = Fraction(8)  # for choices: they get a part of it
Event = Callable[[np.ndarray], bool]


class Enough(Exception):
    """The attacked step was measured."""


def runs(
    name: str, codes: list[list[int]], columns: tuple[Column, ...], written: list[Step], event: Event
) -> np.ndarray:
    """Return whether the event happened at the first step that is not written, in each of many runs."""
    stream, seen = bits(f"forest {name} {codes}"), []

    def keep(step: Step) -> None:
        assert step.name.startswith(name)
        seen.append(event(step.value))
        raise Enough

    rows = ArrayRows(np.array(codes), columns)
    facts = Facts(columns, len(codes))
    epsilon = LARGE if name == "choice" else EPSILON
    for _ in range(RUNS):
        with pytest.raises(Enough):
            Forest().learn(
                facts,
                rows,
                Diary(epsilon, written, keep=keep),
                split=SPLIT[name],
                bits=stream,
                progress=lambda stage, done, of: None,
            )
    return np.array(seen)


THREE = tuple(Column(name, 2, (0, 1)) for name in "abc")
ONE, TWO = THREE[:1], THREE[:2]
SPLIT: dict[str, dict[str, Fraction]] = {
    "margin": {},
    "choice": {"margins": Fraction(3, 1000), "pairs": Fraction(2, 5)},
    "pair": {"margins": Fraction(1, 1000), "choices": Fraction(1, 1000)},
}


def margins(here: bool) -> np.ndarray:
    codes = [[0]] * 5 + [[1]] * 5 if here else [[0]] * 4 + [[1]] * 6
    return runs("margin", codes, ONE, [], lambda noisy: bool(noisy[0] >= 5 and noisy[1] <= 5))


def before_a_choice() -> list[Step]:
    return [Step(f"margin of {column.name}", LARGE / 1000, np.array([40, 40])) for column in THREE]


def before_a_pair() -> list[Step]:
    margins = [Step(f"margin of {column.name}", EPSILON / 2000, np.array([20, 20])) for column in TWO]
    return [*margins, Step("choice 1", EPSILON / 1000, np.array([0]))]


def choices(here: bool) -> np.ndarray:
    """Return whether a and b are chosen: as good as a and c, or 4 halves behind because one row favors only one of them."""
    row, flipped = [0, 0, 0], [1, 1, 1]
    codes = [*[row, flipped] * 20, *[[0, 1, 0], [1, 0, 1]] * 10, *[[0, 0, 1], [1, 1, 0]] * 10]
    moved = codes if here else [[0, 1, 0] if n == 60 else row for n, row in enumerate(codes)]
    return runs("choice", moved, THREE, before_a_choice(), lambda chosen: bool(chosen[0] == 0))


def pairs(here: bool) -> np.ndarray:
    codes = [[0, 0]] * 20 + [[1, 1]] * 20
    moved = codes if here else [[0, 1], *codes[1:]]
    return runs("pair", moved, TWO, before_a_pair(), lambda noisy: bool(noisy[0] >= 20 and noisy[1] <= 0))


@pytest.mark.parametrize("attack", [margins, pytest.param(pairs, marks=pytest.mark.long)])
def test_counts_keep_their_loss(attack: Callable[[bool], np.ndarray]) -> None:
    assert epsilon_lower_bound(attack(True), attack(False), alpha=ALPHA) <= EPSILON


@pytest.mark.parametrize("attack", [margins, pytest.param(pairs, marks=pytest.mark.long)])
def test_half_the_noise_is_detected(attack: Callable[[bool], np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    right = Measurements.scale
    monkeypatch.setattr(Measurements, "scale", lambda self, parts: right(self, parts) / 2)
    assert epsilon_lower_bound(attack(True), attack(False), alpha=ALPHA) > EPSILON


def loss_of_a_choice() -> Fraction:
    shares = {
        stage.name: stage.share for stage in Forest().stages(Facts(THREE, 80), epsilon=LARGE, split=SPLIT["choice"])
    }
    return LARGE * shares["choices"] / 2  # of two rounds


@pytest.mark.long  # test_one_row_changes_no_score_by_more_than_two_halves is exact
def test_choices_keep_their_loss() -> None:
    assert epsilon_lower_bound(choices(True), choices(False), alpha=ALPHA) <= loss_of_a_choice()


@pytest.mark.long  # test_half_the_noise_is_detected stays
def test_score_with_twice_the_stated_sensitivity_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "HALVES", rounds.HALVES // 2)
    assert epsilon_lower_bound(choices(True), choices(False), alpha=ALPHA) > loss_of_a_choice()
